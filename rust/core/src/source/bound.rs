//! How far a segment of a log has to reach. docs/formats/log.md, "How far a segment reaches".

use std::path::Path;

use super::Source;
use crate::error::{Error, Finding, Result};
use crate::ledger::Cause;
use crate::words::words;

words! {
    /// What says how far a segment of a log is on the disk.
    SaidBy {
        /// The synced mark.
        Mark = "mark",
        /// The file that says where the segment ends.
        End = "end",
        /// The file that says why the segment is frozen.
        Frozen = "frozen",
        /// Its parity sidecar.
        Sidecar = "sidecar",
        /// Its name, which is that of its first record.
        Name = "name",
    }
}

impl SaidBy {
    /// What an error calls it.
    const fn name(self) -> &'static str {
        match self {
            Self::Mark => "the synced mark",
            Self::End => "its .end file",
            Self::Frozen => "its .frozen file",
            Self::Sidecar => "its sidecar",
            Self::Name => "its name",
        }
    }
}

/// Up to where a segment of a log is known to be on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The offset in bytes that its records have to reach. It is a lower bound: there may be more.
    pub offset: u64,
    /// The UUID of the last record up to there, if that is known.
    pub last: Option<[u8; 16]>,
    /// What says so.
    pub said_by: SaidBy,
    /// Whether everything after it was on the disk as well, so that damage there is damage. Else nobody was told of a record there.
    pub is_complete: bool,
}

impl Bound {
    /// Up to an offset, where everything after it was on the disk as well.
    pub(crate) const fn new(said_by: SaidBy, offset: u64, last: Option<[u8; 16]>) -> Self {
        Self {
            offset,
            last,
            said_by,
            is_complete: true,
        }
    }

    /// Whether what is wrong at an offset is damage.
    pub(crate) const fn counts(&self, at: u64) -> bool {
        at < self.offset || self.is_complete
    }

    /// **The rule**: refuses a segment of which something is missing. Its sound records end at the offset `end`, the last one has the
    /// UUID `last` if that is known, and nothing but zeros or the end of the file, which has `len` bytes, follows.
    ///
    /// - The records have to reach the offset. Else the cause is `length_out_of_bounds`, whether the file was cut, within a record or
    ///   between two, or has zeros instead. It is at `end`, and takes all bytes up to the offset, also those that the file lacks.
    /// - The last record up to the offset has to have the UUID. Else the cause is `count_mismatch`, at that record, which is kept.
    ///
    /// Damage before the offset that is something else keeps its own cause. All who read a segment of a log, or decide on one, go
    /// by this: the walk asks it where it finds nothing more (`walk/stream.rs`), and recovery of what it found.
    ///
    /// # Errors
    /// [`Error::Damage`].
    pub(crate) fn check(
        &self,
        path: Option<&Path>,
        end: u64,
        last: Option<[u8; 16]>,
        len: u64,
    ) -> Result<()> {
        let finding = match last {
            _ if end < self.offset => Some(self.cut(len)),
            Some(last) if end == self.offset => self.other_last(last),
            _ => None,
        };
        match finding {
            Some(finding) => Err(Error::damage(path, end, finding)),
            None => Ok(()),
        }
    }

    /// What is found where sound records end before the offset.
    pub(crate) fn cut(&self, len: u64) -> Finding {
        let found = match len < self.offset {
            true => format!("the end of the file at offset {len}"),
            false => "zeros".to_owned(),
        };
        Finding::words(Cause::LengthOutOfBounds, self.expected(), found)
    }

    /// What is found if the last record up to the offset has another UUID.
    pub(crate) fn other_last(&self, found: [u8; 16]) -> Option<Finding> {
        let expected = self.last.filter(|expected| *expected != found)?;
        let [expected, found] = [expected, found].map(uuid::Uuid::from_bytes);
        Some(Finding::words(
            Cause::CountMismatch,
            format!("{}, the last one {expected}", self.expected()),
            format!("the last one {found}"),
        ))
    }

    fn expected(&self) -> String {
        let records = match self.said_by {
            SaidBy::Name => "a record".to_owned(),
            _ => format!("records up to offset {}", self.offset),
        };
        format!("{records}, as {} says", self.said_by.name())
    }
}

/// How many bytes a source has to have: its own, or as many as it is known to have had.
pub(crate) fn expected_len(source: &dyn Source) -> u64 {
    match source.bound() {
        Some(bound) => source.len().max(bound.offset),
        None => source.len(),
    }
}
