//! Iterates over the records of a walk, copying each.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;

use crate::error::Result;
use crate::record::{Column, Record};
use crate::verbs::Report;
use crate::walk::{Step, Walk};

/// The records of a file, in file order: an iterator that ends after its first error. It keeps the file open.
///
/// If the file could not be opened, the error is the first item. For a file that is still being written
/// ([`Eof::Growing`](crate::format::Eof::Growing)) the iterator ends where the file ends now.
pub struct Records {
    columns: &'static [Column],
    /// The walk, or the error if it could not be opened; `None` at the end.
    walk: Option<Result<Box<dyn Walk>>>,
    /// The rows of the walk's last step that were not returned yet.
    rows: Range<usize>,
    report: Report,
}

impl Records {
    /// Iterates over `walk`. `report` is still empty.
    pub(crate) fn new(
        columns: &'static [Column],
        walk: Result<Box<dyn Walk>>,
        mut report: Report,
    ) -> Self {
        if let Ok(walk) = &walk {
            report.summary.checked = walk.checked();
        }
        Self {
            columns,
            walk: Some(walk),
            rows: 0..0,
            report,
        }
    }

    /// The report on the bytes that were read so far. After the last record it covers the whole file, unless a filter
    /// was set.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    fn advance(&mut self, walk: &mut dyn Walk) -> Result<Option<Record>> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(Record::of(
                    self.report.format.identifier,
                    self.columns,
                    &*walk.rows(),
                    row,
                )));
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
