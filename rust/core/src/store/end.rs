//! How far a segment's file has to reach, and the files that say so: where it ends, and why it is frozen. docs/formats/log.md, "How far a
//! segment reaches".

use std::path::Path;
use std::sync::Arc;

use super::folder::{Segment, write_new};
use super::mark::{Mark, SLOT_BYTES};
use super::name::{SegmentId, SegmentKind};
use crate::checksum::Key;
use crate::disk::{DiskRef, Opening};
use crate::error::{Error, Result};
use crate::parity::{Coverage, Files};
use crate::saturating::saturating_usize;
use crate::source::{Bound, BoundSource, FileSource, SaidBy, Source};

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
    pub(super) fn of(
        disk: &DiskRef,
        folder: &Path,
        key: &Key,
        mark: &Mark,
        segment: &Segment,
        is_newest: bool,
    ) -> Self {
        if segment.kind == SegmentKind::Sealed {
            return Self::default();
        }
        let marked = Bound::of_mark(mark, segment.id);
        if is_newest && !segment.is_frozen {
            return Self::up_to(marked);
        }
        let frozen = segment
            .is_frozen
            .then(|| Frozen::read(disk, folder, segment.id));
        let frozen = frozen.flatten().and_then(|frozen| frozen.synced);
        let frozen = frozen.map(|offset| Bound {
            offset,
            last: None,
            said_by: SaidBy::Frozen,
            is_complete: false,
        });
        let end = Bound::of_end(disk, folder, segment.id, key);
        let (bound, is_complete) = match frozen {
            Some(frozen) => (frozen, false),
            None => (Bound::of_name(), true),
        };
        let bound = bound.or_later(Some(marked)).or_later(end);
        Self {
            bound: Some(Bound {
                is_complete,
                ..bound
            }),
            is_limit: false,
        }
    }

    /// Nothing is read.
    pub(super) fn is_nothing(&self) -> bool {
        self.is_limit && self.bound.is_some_and(|bound| bound.offset == 0)
    }

    /// The UUID of the last record that is read, if that is known.
    pub(super) fn last(&self) -> Option<[u8; 16]> {
        self.bound.filter(|_| self.is_limit)?.last
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
        let is_marked = mark.sequence == id.sequence && mark.offset > 0;
        Self {
            offset: if is_marked { mark.offset } else { 0 },
            last: is_marked.then_some(mark.last),
            said_by: SaidBy::Mark,
            is_complete: true,
        }
    }

    /// Where nothing else is said: a segment gets its name with its first record.
    pub(super) const fn of_name() -> Self {
        Self {
            said_by: SaidBy::Name,
            ..Self::of_given(1)
        }
    }

    /// Up to where records were given to somebody: the mark said so.
    pub(super) const fn of_given(offset: u64) -> Self {
        Self {
            offset,
            last: None,
            said_by: SaidBy::Mark,
            is_complete: true,
        }
    }

    /// What the file `_SEGMENT.end` says; `None` where it is lost, damaged, or of another log.
    pub(super) fn of_end(disk: &DiskRef, folder: &Path, id: SegmentId, key: &Key) -> Option<Self> {
        let path = folder.join(id.end_name());
        let mut slot = [0; SLOT_BYTES];
        let read = disk
            .handle(&path, Opening::ReadOwn)
            .and_then(|file| file.read_exact_at(&mut slot, 0));
        if read.is_err() {
            return None;
        }
        let end = Mark::decode(&slot, key).filter(|end| end.sequence == id.sequence)?;
        Some(Self {
            offset: end.offset,
            last: Some(end.last),
            said_by: SaidBy::End,
            is_complete: true,
        })
    }

    /// What the parity sidecar of an active file covers: `protect` had it on the disk before. Nothing of it may be taken for a torn tail, or be
    /// written over: a repair would restore it. `None` where there is none that can be read.
    pub(super) fn of_sidecar(disk: &DiskRef, folder: &Path, id: SegmentId) -> Option<Self> {
        let kind = SegmentKind::Active;
        // Most have none, and then nothing else is opened.
        let Ok(sidecar) = FileSource::open_on(disk, &folder.join(id.sidecar_name(kind))) else {
            return None;
        };
        let Ok(file) = FileSource::open_on(disk, &folder.join(id.file_name(kind))) else {
            return None;
        };
        let Ok(Some(coverage)) = Coverage::read(Files::new(&file, &sidecar)) else {
            return None;
        };
        Some(Self {
            offset: coverage.covered,
            last: None,
            said_by: SaidBy::Sidecar,
            is_complete: true,
        })
    }

    /// The one of two that is further on.
    pub(super) fn or_later(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.offset >= self.offset => other,
            _ => self,
        }
    }
}

/// Removes the file that says where a segment ends, which is sealed by now or gone. A leftover does no harm: it is removed when the
/// log is opened the next time.
pub(super) fn forget_end(disk: &DiskRef, folder: &Path, id: SegmentId) {
    let _ = disk.unlink(&folder.join(id.end_name()));
}

/// Writes down where a segment ends, all of which is on the disk: from then on a cut is noticed, wherever it is.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn write_end(
    disk: &DiskRef,
    folder: &Path,
    id: SegmentId,
    end: &Mark,
    key: &Key,
) -> Result<()> {
    write_new(disk, &folder.join(id.end_name()), |out| {
        out.write_all_at(&end.encode(key), 0)
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
    /// What is said of a segment, if anything can be read of it.
    fn read(disk: &DiskRef, folder: &Path, id: SegmentId) -> Option<Self> {
        let path = folder.join(id.frozen_name());
        let file = disk.handle(&path, Opening::ReadOwn).ok()?;
        let mut bytes = vec![0; saturating_usize(file.len().ok()?).min(MOST_BYTES)];
        file.read_exact_at(&mut bytes, 0).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

/// Writes down why a segment is kept as it is. Then writing can go on in a new one.
pub(super) fn freeze(
    disk: &DiskRef,
    folder: &Path,
    id: SegmentId,
    reason: &str,
    synced: Option<u64>,
) -> Result<()> {
    let said = Frozen {
        reason: reason.to_owned(),
        synced,
    };
    let text = serde_json::to_vec(&said).map_err(|error| {
        Error::io(
            Some(folder),
            "cannot describe a frozen segment",
            error.into(),
        )
    })?;
    write_new(disk, &folder.join(id.frozen_name()), |out| {
        out.write_all_at(&text, 0)
    })
}

/// Why a segment is kept as it is that the disk cannot read.
pub(super) fn unreadable_page((offset, error): (u64, String)) -> String {
    format!("the disk cannot read the page at offset {offset}: {error}")
}
