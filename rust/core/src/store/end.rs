//! Where a segment ends that nothing is appended to any more. docs/formats/log.md, "The end of a segment".

use std::path::Path;

use super::frozen::write_new;
use super::mark::{Mark, SLOT_BYTES};
use super::name::SegmentId;
use crate::checksum::Key;
use crate::disk::{DiskRef, Opening};
use crate::error::{Damage, Error, Finding, Result};
use crate::ledger::Cause;

/// Up to where a segment is known to be on the disk. It is a lower bound: there may be more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// The offset in bytes that its records have to reach.
    pub(super) offset: u64,
    /// The UUID of the last record up to there, if that is known.
    pub(super) last: Option<[u8; 16]>,
    /// What says so.
    pub(super) said_by: &'static str,
}

impl Bound {
    /// What the synced mark says of the segment that it is in.
    pub(super) const fn of_mark(offset: u64, last: Option<[u8; 16]>) -> Self {
        Self {
            offset,
            last,
            said_by: "the synced mark",
        }
    }

    /// What the file `_SEGMENT.end` says; `None` where it is lost, damaged, or of another log.
    pub(super) fn read(disk: &DiskRef, folder: &Path, id: SegmentId, key: &Key) -> Option<Self> {
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
            said_by: "its .end file",
        })
    }

    /// The one of two that is further on.
    pub(super) fn or_later(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.offset >= self.offset => other,
            _ => self,
        }
    }

    /// What is missing of a segment whose sound records end at this offset with this UUID. The UUID is not compared where it is not
    /// known.
    fn missing(&self, end: u64, last: Option<[u8; 16]>) -> Option<Finding> {
        let expected = format!(
            "records up to offset {}, as {} says",
            self.offset, self.said_by
        );
        if end < self.offset {
            let found = format!("records up to offset {end}");
            let cause = Cause::LengthOutOfBounds;
            return Some(Finding::words(cause, expected, found));
        }
        let (expected_last, last) = self.last.zip(last)?;
        if end > self.offset || expected_last == last {
            return None;
        }
        let [expected_last, last] = [expected_last, last].map(uuid::Uuid::from_bytes);
        Some(Finding::words(
            Cause::CountMismatch,
            format!("{expected}, the last one {expected_last}"),
            format!("the last one {last}"),
        ))
    }

    /// Refuses a file whose sound records end at this offset with this UUID, if any are missing.
    ///
    /// # Errors
    /// [`Error::Damage`].
    pub(super) fn check(
        &self,
        path: Option<&Path>,
        end: u64,
        last: Option<[u8; 16]>,
    ) -> Result<()> {
        match self.missing(end, last) {
            None => Ok(()),
            Some(finding) => Err(Error::Damage(Box::new(Damage::new(path, end, finding)))),
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
