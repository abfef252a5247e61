//! How far a segment's file has to reach, and the files that say so: where it ends, and why it is frozen. docs/formats/log.md, "How far a
//! segment reaches".

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::folder::{LogFolder, Segment, open_file};
use super::mark::{Mark, SLOT_BYTES};
use super::name::{SegmentId, SegmentKind};
use crate::bug::OrBug as _;
use crate::disk::Opening;
use crate::error::Result;
use crate::parity::{Coverage, Files};
use crate::saturating::saturating_usize;
use crate::source::{Bound, BoundSource, FileSource, SaidBy, Source};
use crate::walk::Options;

/// How much of a segment's file is read, and how far it has to reach. Nothing is said of a sealed file, which tells by itself where
/// it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SegmentExtent {
    /// How far it has to reach, if that is known.
    pub(super) bound: Option<Bound>,
    /// What is after that is not read: nobody was told of it, and it may be taken back.
    pub(super) is_limit: bool,
}

impl SegmentExtent {
    /// Up to there, and no further.
    pub(super) const fn up_to(bound: Bound) -> Self {
        Self {
            bound: Some(bound),
            is_limit: true,
        }
    }

    /// What is said of a segment: of the newest one by the mark, as long as it is open, and of others by all that says anything.
    pub(super) fn of(folder: &LogFolder, mark: &Mark, segment: &Segment, is_newest: bool) -> Self {
        if segment.kind == SegmentKind::Sealed {
            return Self::default();
        }
        let marked = Bound::of_mark(mark, segment.id);
        if is_newest && !segment.is_frozen {
            return Self::up_to(marked);
        }
        let mut bound = Bound::of_name();
        // Where nothing can be read of what is said, all of it counts.
        if segment.is_frozen
            && let Ok(Frozen { synced, .. }) = Frozen::read(folder, segment.id)
            && let Some(offset) = synced
        {
            bound = Bound::new(SaidBy::Frozen, offset, None);
            bound.is_complete = false;
        }
        let is_complete = bound.is_complete;
        let bound = bound.or_later(Some(marked));
        let bound = bound.or_later(Bound::of_end(folder, segment.id));
        Self {
            bound: Some(Bound {
                is_complete,
                ..bound
            }),
            is_limit: false,
        }
    }

    /// Up to where it is read, if not to its end.
    pub(super) fn limit(&self) -> Option<Bound> {
        self.bound.filter(|_| self.is_limit)
    }

    /// Nothing is read.
    pub(super) fn is_nothing(&self) -> bool {
        self.limit().is_some_and(|limit| limit.offset == 0)
    }

    /// The UUID of the last record that is read, if that is known.
    pub(super) fn last(&self) -> Option<[u8; 16]> {
        self.limit()?.last
    }

    /// Opens as much of a segment: of the file that was listed, or of the one that it is by now, which is sealed meanwhile. Returns also
    /// which of both that is.
    ///
    /// # Errors
    /// As [`open_file`].
    pub(super) fn open(
        &self,
        folder: &Path,
        options: &Options,
        listed: (SegmentId, SegmentKind),
    ) -> Result<(Arc<dyn Source>, SegmentKind)> {
        let (file, kind) = open_file(folder, options, listed)?;
        let source = match kind {
            SegmentKind::Active => self.within(file),
            SegmentKind::Sealed => Arc::new(file),
        };
        Ok((source, kind))
    }

    /// As much of an active file.
    pub(super) fn within(&self, file: FileSource) -> Arc<dyn Source> {
        let file = Arc::new(file);
        match self.bound {
            None => file,
            Some(bound) if self.is_limit => Arc::new(BoundSource::up_to(file, bound)),
            Some(bound) => Arc::new(BoundSource::whole(file, bound)),
        }
    }
}

impl Bound {
    /// What the synced mark says of a segment: an offset of 0 if it is in another one.
    pub(super) fn of_mark(mark: &Mark, id: SegmentId) -> Self {
        match mark.sequence == id.sequence && mark.offset > 0 {
            true => Self::new(SaidBy::Mark, mark.offset, Some(mark.last)),
            false => Self::of_given(0),
        }
    }

    /// What is known of a segment that records may be appended to: what the mark says, what was written down when it ended, or what its
    /// sidecar covers, if somebody protected the file. A crash may have come before the mark was synced, or before there was a next
    /// segment.
    pub(super) fn of_appended(folder: &LogFolder, mark: &Mark, id: SegmentId) -> Self {
        Self::of_mark(mark, id)
            .or_later(Self::of_end(folder, id))
            .or_later(Self::of_sidecar(folder, id))
    }

    /// What is known of a segment that is to be sealed: it has a record, reaches the offset that its writer gives, if it knows one, and
    /// what was written down when it ended.
    pub(super) fn of_complete(folder: &LogFolder, given: Option<u64>, id: SegmentId) -> Self {
        Self::of_name()
            .or_later(given.map(Self::of_given))
            .or_later(Self::of_end(folder, id))
    }

    /// Where nothing else is said: a segment gets its name with its first record.
    const fn of_name() -> Self {
        Self::new(SaidBy::Name, 1, None)
    }

    /// Up to where records were given to somebody: the mark said so.
    pub(super) const fn of_given(offset: u64) -> Self {
        Self::new(SaidBy::Mark, offset, None)
    }

    /// What the file `_SEGMENT.end` says; `None` where it is lost, damaged, or of another log.
    pub(super) fn of_end(folder: &LogFolder, id: SegmentId) -> Option<Self> {
        let path = folder.join(id.end_name());
        let mut slot = [0; SLOT_BYTES];
        let opened = folder.disk.handle(&path, Opening::ReadOwn);
        let read = opened.and_then(|file| file.read_exact_at(&mut slot, 0));
        if read.is_err() {
            return None;
        }
        let end = Mark::decode(&slot, &folder.key).filter(|end| end.sequence == id.sequence)?;
        Some(Self::new(SaidBy::End, end.offset, Some(end.last)))
    }

    /// What the parity sidecar of an active file covers: `protect` had it on the disk before. Nothing of it may be taken for a torn tail, or be
    /// written over: a repair would restore it. `None` where there is none that can be read.
    fn of_sidecar(folder: &LogFolder, id: SegmentId) -> Option<Self> {
        let kind = SegmentKind::Active;
        let open = |name: String| FileSource::open_on(&folder.disk, &folder.join(name));
        // Most have none, and then nothing else is opened.
        if let Ok(sidecar) = open(id.sidecar_name(kind))
            && let Ok(file) = open(id.file_name(kind))
            && let Ok(Some(coverage)) = Coverage::read(Files::new(&file, &sidecar))
        {
            return Some(Self::new(SaidBy::Sidecar, coverage.covered, None));
        }
        None
    }

    /// The one of two that is further on.
    fn or_later(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.offset >= self.offset => other,
            _ => self,
        }
    }
}

/// Writes down where a segment ends, all of which is on the disk: from then on a cut is noticed, wherever it is.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn write_end(folder: &LogFolder, id: SegmentId, end: &Mark) -> Result<()> {
    folder.write_new(&id.end_name(), |out| {
        out.write_all_at(&end.encode(&folder.key), 0)
    })
}

/// More than any description of a frozen segment has.
const MOST_BYTES: usize = 1 << 20;

/// What the file beside a frozen segment says.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Frozen {
    /// Why it is frozen.
    reason: String,
    /// The offset up to which it was on the disk, in bytes; `None` means all of it. Damage before that is an error, damage
    /// after it can only be of records that nobody was told of.
    synced: Option<u64>,
}

impl Frozen {
    /// What is said of a segment.
    fn read(folder: &LogFolder, id: SegmentId) -> io::Result<Self> {
        let path = folder.join(id.frozen_name());
        let file = folder.disk.handle(&path, Opening::ReadOwn)?;
        let mut bytes = vec![0; saturating_usize(file.len()?).min(MOST_BYTES)];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

/// Writes down why a segment is kept as it is. Then writing can go on in a new one.
pub(super) fn freeze(
    folder: &LogFolder,
    id: SegmentId,
    reason: String,
    synced: Option<u64>,
) -> Result<()> {
    let text = serde_json::to_vec(&Frozen { reason, synced });
    let text = text.or_bug("a text and a number as JSON")?;
    folder.write_new(&id.frozen_name(), |out| out.write_all_at(&text, 0))
}

/// Why a segment is kept as it is that the disk cannot read.
pub(super) fn unreadable_page((offset, error): (u64, String)) -> String {
    format!("the disk cannot read the page at offset {offset}: {error}")
}
