//! Finds records without reading a whole file.

use std::ops::Range;

use super::Walk;
use crate::error::Result;
use crate::private::Sealed;
use crate::record::{Checked, Column, RecordId, RecordSet, Rows};
use crate::spec::Filter;

/// The result of looking up several records.
#[derive(Default)]
pub struct Hits {
    /// The records that were found, as sets of rows in any order.
    pub sets: Vec<Box<dyn RecordSet>>,
    /// For each identifier the set and the row in it; `None` if no record was found.
    pub places: Vec<Option<(usize, usize)>>,
    /// Why a record that was not found may still be in the file; `None` if every miss is proven.
    pub unproven: Option<Unproven>,
    /// The columns of the records, once it is the result of a whole look-up.
    pub(crate) columns: Option<&'static [Column]>,
}

/// Why a record that was not found may still be in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unproven {
    /// The file has no checksums that could prove it.
    Unchecked,
    /// A range where the record could be is damaged.
    Damage,
}

impl Unproven {
    /// Its name, for machines: `unchecked` or `damage`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unchecked => "unchecked",
            Self::Damage => "damage",
        }
    }

    /// Why a miss is unproven, from what a walk met; `None` if it is proven.
    pub(crate) const fn of(is_damaged: bool, checked: Checked) -> Option<Self> {
        match checked {
            _ if is_damaged => Some(Self::Damage),
            Checked::Structure => Some(Self::Unchecked),
            Checked::Checksum | Checked::Parity => None,
        }
    }
}

impl Hits {
    /// Calls `look` for all identifiers in the order of the request. Each call gets the rows of as many of them as are
    /// adjacent in one set, or `None` for misses, and how many identifiers that is.
    pub fn runs(&self, mut look: impl FnMut(Option<(&dyn Rows, Range<usize>)>, usize)) {
        let sets: Vec<_> = self.sets.iter().map(|set| set.rows()).collect();
        let follows =
            |before: &Option<(usize, usize)>, next: &Option<(usize, usize)>| match (before, next) {
                (Some((set, row)), Some((other, next))) => set == other && row + 1 == *next,
                (None, None) => true,
                _ => false,
            };
        for run in self.places.chunk_by(follows) {
            let first = run.first().copied().flatten();
            let rows = first.and_then(|(set, row)| Some((&**sets.get(set)?, row..row + run.len())));
            look(rows, run.len());
        }
    }

    /// Calls `look` for each identifier, in the order of the request.
    pub fn each(&self, mut look: impl FnMut(Option<(&dyn Rows, usize)>)) {
        let sets: Vec<_> = self.sets.iter().map(|set| set.rows()).collect();
        for place in &self.places {
            let found = place.and_then(|(set, row)| sets.get(set).map(|rows| (&**rows, row)));
            look(found);
        }
    }
}

/// Finds records of one open file. What it has proven of an index stays proven as long as this value lives.
pub trait Lookup: Sealed + Send + Sync {
    /// Finds records by identifiers, which may come in any order and repeat. Records are verified as by a walk. A
    /// record that was not found is not in the file, unless [`Hits::unproven`] is set.
    ///
    /// # Errors
    /// - [`Error::Usage`](crate::Error::Usage) for an identifier that the format does not have.
    /// - [`Error::Damage`](crate::Error::Damage) in strict reading, at damage where the record might be.
    /// - Those of [`open`](crate::format::open) and [`Walk::step`].
    fn get(&self, ids: &[RecordId]) -> Result<Hits>;

    /// Prepares the fastest look-up now, in memory that [`Options`](super::Options) bound. Without this call it happens after enough
    /// records were looked up to pay for it.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::Interrupted`](crate::Error::Interrupted).
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    /// Returns a walk over the records that match. It reads no more of the file than needed, so its ranges are not a
    /// ledger of the whole file: they are those that a full walk would settle for the same bytes, and may have gaps
    /// between them.
    ///
    /// # Errors
    /// As [`open`](crate::format::open).
    fn range(&self, filter: &Filter) -> Result<Box<dyn Walk>>;
}
