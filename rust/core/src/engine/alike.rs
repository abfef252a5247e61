//! Whether a unit has the same records in two files.

use std::sync::Arc;

use super::Format;
use crate::error::Result;
use crate::ledger::Span;
use crate::source::Source;
use crate::spec::Filter;
use crate::walk::{Begin, Eof, Options, Step, Walk};

/// Whether a unit of records is sound in both of two files, and has the same records there. Its bytes may differ only in a format with
/// checksums of records and not of the bytes that these are compressed to; in others this is false if they do.
///
/// # Errors
/// Those of opening the files and of [`Walk::step`].
pub(crate) fn has_same_records(
    files: [Arc<dyn Source>; 2],
    format: &Format,
    options: &Options,
    unit: &Span,
) -> Result<bool> {
    if format.has_plain_values {
        return Ok(false);
    }
    let options = options
        .clone()
        .without_parity()
        .strict(false)
        .values(true)
        .filter(Filter::default())
        .eof(Eof::Final);
    let [first, second] = files.map(|file| Records::open(file, format, &options, unit));
    let (mut first, mut second) = (first?, second?);
    loop {
        match (first.advance()?, second.advance()?) {
            (false, false) => return Ok(first.is_sound && second.is_sound),
            (true, true) if first.is_at_the_same(&second) => {}
            _ => return Ok(false),
        }
    }
}

/// The records of a unit, one after the other.
struct Records {
    walk: Box<dyn Walk>,
    unit: Span,
    columns: usize,
    /// The next row of the last step, if there was one.
    next: Option<usize>,
    /// Whether the unit was found to be sound.
    is_sound: bool,
}

impl Records {
    fn open(
        file: Arc<dyn Source>,
        format: &Format,
        options: &Options,
        unit: &Span,
    ) -> Result<Self> {
        Ok(Self {
            walk: format.open_for(file, options, Begin::Offset(unit.start).into())?,
            unit: *unit,
            columns: format.columns(options.dialect).len(),
            next: None,
            is_sound: false,
        })
    }

    /// Comes to the next record of the unit. Gives whether there is one.
    fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some(next) = self.next {
                let rows = self.walk.rows();
                let is_own = |row: &usize| rows.position(*row) == self.unit.start;
                if let Some(row) = (next..rows.len()).find(is_own) {
                    self.next = Some(row + 1);
                    return Ok(true);
                }
            }
            if self.walk.offset() >= self.unit.end || self.walk.step()? != Step::More {
                return Ok(false);
            }
            self.next = Some(0);
            let own = Span {
                cause: None,
                ..self.unit
            };
            self.is_sound |= self.walk.spans().contains(&own);
        }
    }

    /// Whether the record that was come to last is the same as another one.
    fn is_at_the_same(&self, other: &Self) -> bool {
        let (rows, others) = (self.walk.rows(), other.walk.rows());
        let row = |records: &Self| records.next.and_then(|next| next.checked_sub(1));
        let (Some(row), Some(other)) = (row(self), row(other)) else {
            return false;
        };
        (0..self.columns).all(|column| rows.field(row, column) == others.field(other, column))
    }
}
