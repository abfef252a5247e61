//! Finds records by message offset. Only the chunks that hold them are decompressed.
//!
//! Chunks are found by hopping from header to header. The index only says where to begin hopping. An answer is
//! good if the headers around it verify, ascend and lead from one to the next. Otherwise the segment is walked
//! from there, or from its beginning, so that the answer is that of a scan: an index can lead past damage at which
//! a scan ends. Headers hold no times, so a look-up by time without message offsets reads all chunks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::hop::{Gap, Hop, chunk_of};
use super::index::{first_item, partition};
use super::judge::{Fault, Refusal};
use super::layout::Item;
use super::walk::{ChunkedScan, Until};
use super::{COLUMNS, index};
use crate::bug::OrBug;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::private::Sealed;
use crate::record::{OwnedRows, RecordId, Value};
use crate::source::Source;
use crate::spec::Filter;
use crate::sync::Unpoisoned as _;
use crate::walk::input::DataEnd;
use crate::walk::{Begin, Hits, Lookup, Options, Step, Unproven, Walk};

pub(super) struct ChunkedLookup {
    source: Arc<dyn Source>,
    options: Options,
    index: Option<Arc<dyn Source>>,
    known: Mutex<Known>,
    data_end: DataEnd,
}

/// Gaps that were reached by hopping from the file's beginning, in order. Every n-th is kept, n growing as they
/// become many.
#[derive(Debug)]
struct Known {
    gaps: Vec<Gap>,
    every: u64,
    since: u64,
}

impl Known {
    /// The last but one of them before a message offset.
    fn before(&self, offset: u64) -> Gap {
        let place = self.gaps.partition_point(|gap| gap.end <= offset);
        match place.checked_sub(2).and_then(|place| self.gaps.get(place)) {
            Some(gap) => *gap,
            None => Gap::default(), // the beginning
        }
    }

    /// Adds a gap that was reached, if it is the n-th.
    fn reach(&mut self, gap: Gap) {
        if self.gaps.last().is_some_and(|last| last.at >= gap.at) {
            return;
        }
        self.since += 1;
        if self.since < self.every {
            return;
        }
        self.since = 0;
        self.gaps.push(gap);
        if self.gaps.len() >= LIMITS.max_known_chunks {
            let mut place = 0_usize;
            self.gaps.retain(|_| {
                place += 1;
                place.is_multiple_of(2)
            });
            self.every = self.every.saturating_mul(2);
        }
    }
}

/// The result of locating a message offset.
enum Located {
    /// If it exists, a walk from this gap meets it, and also all greater offsets below this one.
    After(Gap, u64),
    /// It does not exist: it falls into this gap. The next chunk, if there is one, begins with this message
    /// offset.
    Absent(Gap, Option<i64>),
    /// Only a walk from the beginning can decide.
    Unknown,
}

/// Records that were found, and the row of each message offset.
struct Records {
    places: BTreeMap<i64, usize>,
    rows: OwnedRows,
    /// Whether damage was met where something was not found.
    is_damaged: bool,
}

impl ChunkedLookup {
    pub(super) fn new(source: Arc<dyn Source>, options: &Options) -> Self {
        Self {
            index: index::find(&*source, options),
            source,
            options: options.clone(),
            known: Mutex::new(Known {
                gaps: Vec::new(),
                every: 1,
                since: 0,
            }),
            data_end: DataEnd::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Remembered gaps stay valid even if a thread panicked.
        self.known.lock().unpoisoned()
    }

    fn data_end(&self) -> Result<u64> {
        self.data_end.of(&*self.source, &self.options)
    }

    /// Hops from a gap to where `offset` is, and passes each gap to `met`.
    fn seek(&self, mut gap: Gap, offset: u64, mut met: impl FnMut(Gap)) -> Result<Located> {
        let mut before = gap;
        loop {
            self.options.poll()?;
            met(gap);
            let header = match gap.hop(&*self.source, || self.data_end())? {
                Hop::Chunk(header) => header,
                Hop::End => return Ok(Located::Absent(gap, None)),
                // The offset does not ascend, or a chunk before it claims too much.
                Hop::Fault(Fault::Refused(_, Refusal::OutOfOrder { .. })) => {
                    return Ok(Located::Unknown);
                }
                // Nothing confirms the header of the chunk before it, so the walk begins with that chunk.
                Hop::Fault(_) => return Ok(Located::After(before, u64::MAX)),
            };
            let next = Gap::after(header, gap.at);
            if offset < header.start.cast_unsigned() {
                let hop = next.hop(&*self.source, || self.data_end())?;
                return Ok(if hop.confirms() {
                    Located::Absent(gap, Some(header.start))
                } else {
                    Located::After(gap, offset + 1)
                });
            }
            if offset < header.end() {
                return Ok(Located::After(gap, header.end()));
            }
            (before, gap) = (gap, next);
        }
    }

    fn locate(&self, offset: u64) -> Result<Located> {
        if let Some(located) = self.locate_by_index(offset)? {
            return Ok(located);
        }
        let begin = self.known().before(offset);
        self.seek(begin, offset, |gap| self.known().reach(gap))
    }

    /// Hops from where the index points. `None` if the index does not help, or misleads.
    fn locate_by_index(&self, offset: u64) -> Result<Option<Located>> {
        let Some(index) = self.index.as_deref() else {
            return Ok(None);
        };
        let low = partition(index, |item| is_at_most(item, offset))?;
        let mut before = (low.saturating_sub(LIMITS.near_index_items)..low).rev();
        let Some((last_item, last)) =
            self.next_chunk(index, &mut before, |item| is_at_most(item, offset))?
        else {
            return Ok(None);
        };
        // One chunk further back, so that two items must agree on where chunks are. Bytes that only look like a
        // chunk are then not taken for one.
        let is_in_front =
            |item: Item| item.offset < last_item.offset && item.file_offset < last_item.file_offset;
        let first = self.next_chunk(index, &mut before, is_in_front)?;
        let begin = Gap {
            at: first.map_or(0, |(_, position)| position),
            end: 0,
        };
        let mut lands = false;
        let located = self.seek(begin, offset, |gap| lands |= gap.at == last)?;
        let astray = !lands || matches!(located, Located::Unknown);
        Ok((!astray).then_some(located))
    }

    /// The next of these items that a chunk's header confirms and whose offset is in `wanted`, and where its chunk
    /// is.
    fn next_chunk(
        &self,
        index: &dyn Source,
        places: &mut impl Iterator<Item = u64>,
        wanted: impl Fn(Item) -> bool,
    ) -> Result<Option<(Item, u64)>> {
        for place in places {
            let item = first_item(index, place..place + 1)?.map(|(_, item)| item);
            let Some(item) = item.filter(|item| wanted(*item)) else {
                continue;
            };
            if let Some(position) = chunk_of(item, &*self.source)? {
                return Ok(Some((item, position)));
            }
        }
        Ok(None)
    }

    /// Steps through `walk` until each of `offsets`, which ascend, is found, or the walk ends.
    fn collect(scan: ChunkedScan, offsets: &[u64], found: &mut Records) -> Result<()> {
        let (mut left, mut walk) = (offsets.len(), scan.into_walk());
        let mut is_damaged = false;
        while left > 0 && walk.step()? == Step::More {
            is_damaged |= walk.found_damage();
            let rows = walk.rows();
            for row in 0..rows.len() {
                let Value::Int64(offset) = rows.field(row, 0) else {
                    continue;
                };
                if offsets.binary_search(&offset.cast_unsigned()).is_ok() {
                    left -= 1;
                    let row = found.rows.push(&*rows, row);
                    found.places.insert(offset, row);
                }
            }
        }
        found.is_damaged |= left > 0 && is_damaged;
        Ok(())
    }

    /// Finds the records of `offsets`, which ascend, as far as the segment has them.
    fn find(&self, offsets: &[u64]) -> Result<Records> {
        let options = self.options.clone().filter(Filter::default()).values(true);
        let mut found = Records {
            places: BTreeMap::new(),
            rows: OwnedRows::new(COLUMNS),
            is_damaged: false,
        };
        let mut unknown = Vec::new();
        let mut rest = offsets;
        while let Some((&offset, others)) = rest.split_first() {
            let below = |end: u64| others.partition_point(|offset| *offset < end);
            let taken = match self.locate(offset)? {
                Located::Unknown => {
                    unknown.push(offset);
                    0
                }
                Located::Absent(_, None) => others.len(),
                Located::Absent(_, Some(next)) => below(next.cast_unsigned()),
                Located::After(gap, end) => {
                    let taken = below(end);
                    let (here, _) = rest.split_at(1 + taken);
                    let last = here.last().or_bug("the offset that was located")?;
                    // If some are missing, it ends at the first good chunk after them.
                    let mut walk = ChunkedScan::after_gap(self.source.clone(), &options, gap)?;
                    walk.unit.bounds.offsets = offset..last + 1;
                    Self::collect(walk, here, &mut found)?;
                    taken
                }
            };
            (_, rest) = others.split_at(taken);
        }
        if let (Some(&first), Some(&last)) = (unknown.first(), unknown.last()) {
            let mut walk = ChunkedScan::open(self.source.clone(), &options, Begin::Beginning)?;
            walk.unit.bounds.offsets = first..last + 1;
            Self::collect(walk, &unknown, &mut found)?;
        }
        Ok(found)
    }
}

impl Sealed for ChunkedLookup {}

impl Lookup for ChunkedLookup {
    fn get(&self, ids: &[RecordId]) -> Result<Hits> {
        // Identifiers that are negative or do not fit name no record.
        let mut offsets: Vec<_> = ids
            .iter()
            .filter_map(RecordId::as_integer::<i64>)
            .filter_map(|offset| u64::try_from(offset).ok())
            .collect();
        offsets.sort_unstable();
        offsets.dedup();
        let found = self.find(&offsets)?;
        let place = |id: &RecordId| {
            let row = found.places.get(&id.as_integer()?)?;
            Some((0, *row))
        };
        let places = ids.iter().map(place).collect();
        Ok(Hits {
            unproven: found.is_damaged.then_some(Unproven::Damage),
            sets: vec![Box::new(found.rows)],
            places,
            ..Hits::default()
        })
    }

    fn range(&self, filter: &Filter) -> Result<Box<dyn Walk>> {
        let options = self.options.clone().filter(filter.clone());
        let walk = ChunkedScan::open(self.source.clone(), &options, Begin::Beginning)?;
        if filter.least("offset").or(filter.end("offset")).is_none() {
            return Ok(Box::new(walk.into_walk()));
        }
        let (offsets, len) = (&walk.unit.bounds.offsets, self.source.len());
        let gap = match offsets.is_empty() {
            true => Gap { at: len, end: 0 },
            false => match self.locate(offsets.start)? {
                Located::Unknown => return Ok(Box::new(walk.into_walk())),
                Located::After(gap, _) | Located::Absent(gap, _) => gap,
            },
        };
        let at = gap.at.min(len);
        let mut walk = ChunkedScan::after_gap(self.source.clone(), &options, Gap { at, ..gap })?;
        walk.state.until = Until::Filter;
        Ok(Box::new(walk.into_walk()))
    }
}

/// Whether an item's chunk begins at or before `offset`.
fn is_at_most(item: Item, offset: u64) -> bool {
    u64::try_from(item.offset).is_ok_and(|start| start <= offset)
}
