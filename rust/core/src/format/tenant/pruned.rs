//! The scan of a sound table of contents that reads only blocks that match: each entry is taken by itself. It ends
//! at a block that is not where its entry says, because only a scan through the whole file may find that one. `Course` chooses among the scans.

use super::VERSION_1;
use super::block_search::{BlockSearch, Places, Verdict};
use super::claims::{Claims, Origin};
use super::front::{COUNT_BYTES, Front};
use super::judge::Fault;
use super::listed::Listed;
use super::partition_search::{self, PartitionSearch};
use super::partitions::{OpenPartition, Partitions};
use super::reading::{ScanState, SearchScope};
use super::toc::Entry;
use super::unlisted::Unlisted;
use crate::error::Result;
use crate::ledger::Kind;
use crate::walk::Advance;

/// Searches for blocks of version 2, or partitions of version 1.
#[derive(Debug)]
pub(super) enum Pruned {
    Blocks(BlockSearch),
    Partitions(PartitionSearch),
}

/// The result of an advance.
pub(super) enum Pruning {
    Advance(Advance),
    /// The block is not where the entry says.
    Failed(Entry, Fault),
}

impl Pruned {
    /// Advances by an entry. Sets `part` to the partition whose blocks come next.
    pub(super) fn advance(
        &mut self,
        on: &mut ScanState,
        part: &mut Option<OpenPartition>,
    ) -> Result<Pruning> {
        let source = &*on.input.source;
        let Some(entry) = on.place.table.entries.peek(source)? else {
            return Ok(Pruning::Advance(Advance::End));
        };
        let filter = match self {
            Self::Blocks(_) => {
                let filter = &on.emitter.filter;
                filter.has(source, entry.partition, &entry.tenant)?
            }
            Self::Partitions(..) => on.emitter.filter.has_partition(entry.partition),
        };
        if !filter {
            on.ranges.leave_entry(entry.at, entry.end)?;
            on.place.table.pass();
            return Ok(Pruning::Advance(Advance::On));
        }
        let entry = entry.clone();
        let fault = match self.find(on, &entry, part)? {
            Ok(advance) => return Ok(Pruning::Advance(advance)),
            Err(fault) => fault,
        };
        on.ranges.flush();
        if on.is_held() || !on.ranges.spans.is_empty() {
            return Ok(Pruning::Advance(Advance::Full)); // good messages are emitted first
        }
        Ok(Pruning::Failed(entry, fault))
    }

    /// Commits what the entry names.
    fn find(
        &mut self,
        on: &mut ScanState,
        entry: &Entry,
        part: &mut Option<OpenPartition>,
    ) -> Result<std::result::Result<Advance, Fault>> {
        match self {
            Self::Blocks(search) => {
                let good = match search.find(on, entry, on.input.front.end(), Places::Named)? {
                    Verdict::Full => return Ok(Ok(Advance::Full)),
                    Verdict::Failed(fault) => return Ok(Err(fault)),
                    Verdict::Good(good) => good,
                };
                if !good.is_as_stated(&*on.input.source, entry)? {
                    return Ok(Err(Fault::Disagrees));
                }
                on.place.table.pass();
                on.ranges.skip_to(good.at);
                on.ranges.cover(good.end(), Kind::Block, None, Origin::None);
                search.commit(on, entry, good)?;
            }
            Self::Partitions(search) => {
                let good = match search.find(on, entry)? {
                    partition_search::Verdict::Good(good) => good,
                    partition_search::Verdict::Disagrees(_) => return Ok(Err(Fault::Disagrees)),
                    partition_search::Verdict::Cut(_, fault)
                    | partition_search::Verdict::Failed(fault) => return Ok(Err(fault)),
                };
                on.place.table.pass();
                on.ranges.skip_to(good.at);
                let header = good.at + COUNT_BYTES;
                on.ranges.cover(header, Kind::Header, None, Origin::None);
                *part = Some(OpenPartition::begin(on, good));
                search.go_past(&mut on.place, good.end, entry.partition);
            }
        }
        Ok(Ok(Advance::On))
    }
}

/// The scan of a file, with its progress.
#[derive(Debug)]
pub(super) enum Course {
    /// None: the front decides about the whole file.
    Refused,
    /// Version 1.
    Partitions(Partitions),
    /// Version 2 with a sound table of contents.
    Listed(Listed),
    /// Version 2 without a sound table of contents.
    Unlisted(Unlisted),
    /// Only the blocks that match, with a sound table of contents.
    Pruned(Pruned),
}

impl Course {
    /// The scan of a file with this front, of which everything up to `at` is committed.
    pub(super) fn of(front: &Front, reach: SearchScope, at: u64) -> Self {
        let is_v1 = front.version == VERSION_1;
        match reach {
            _ if front.refused => Self::Refused,
            SearchScope::LockedFile if is_v1 => {
                Self::Pruned(Pruned::Partitions(Default::default()))
            }
            SearchScope::LockedFile => Self::Pruned(Pruned::Blocks(BlockSearch::default())),
            SearchScope::AfterLast if is_v1 => Self::Partitions(Partitions::default()),
            SearchScope::AfterLast if front.is_sound() => Self::Listed(Listed {
                search: BlockSearch::default(),
                claims: Claims::new(at, front.len),
                progress: None,
            }),
            SearchScope::AfterLast => Self::Unlisted(Unlisted::new(front.toc_end, front.len)),
        }
    }
}
