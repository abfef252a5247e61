//! The records of a walk one by one, each a copy.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;

use crate::engine::{Step, Walk};
use crate::error::Result;
use crate::record::{Column, Record};
use crate::verbs::Report;

/// The records of a file, in file order: an iterator that ends after its first error. It keeps the file open by itself.
///
/// An error of beginning to read is the first item. Of a file that is still being written
/// ([`Eof::Growing`](crate::format::Eof::Growing)) it ends where the file ends now.
pub struct Records {
    columns: &'static [Column],
    /// What reads, or why it could not begin; `None` at the end.
    walk: Option<Result<Box<dyn Walk>>>,
    /// Those records of the walk's last step that were not returned yet.
    rows: Range<usize>,
    report: Report,
}

impl Records {
    /// What this walk gives, if it could begin. `report` is of nothing yet.
    pub(super) const fn new(
        columns: &'static [Column],
        walk: Result<Box<dyn Walk>>,
        report: Report,
    ) -> Self {
        Self {
            columns,
            walk: Some(walk),
            rows: 0..0,
            report,
        }
    }

    /// What was found in the bytes that have been read so far. After the last record, that is all of the file, unless records
    /// were chosen.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    fn advance(&mut self, walk: &mut dyn Walk) -> Result<Option<Record>> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(Record::of(self.columns, &*walk.rows(), row)));
            }
            if walk.step()? != Step::More {
                self.report.note(walk);
                return Ok(None);
            }
            self.report.add(walk);
            self.rows = 0..walk.rows().len();
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Result<Record>> {
        let mut walk = match self.walk.take()? {
            Ok(walk) => walk,
            Err(error) => return Some(Err(error)),
        };
        let next = self.advance(&mut *walk).transpose();
        if matches!(next, Some(Ok(_))) {
            self.walk = Some(Ok(walk));
        }
        next
    }
}

impl FusedIterator for Records {}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records")
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
