//! Finds records without reading a whole file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::filtered::Filtering;
use super::pending::{self, Pending};
use super::{Filter, Format, Options, Start, Step, Walk};
use crate::error::{Error, Result};
use crate::own::Own;
use crate::record::{Checked, Column, Order, OwnedRows, RecordId, RecordSet, Rows, Scalar};
use crate::source::Source;

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
pub trait Lookup: Own + Send + Sync {
    /// Finds records by identifiers, which may come in any order and repeat. Records are verified as by a walk. A
    /// record that was not found is not in the file, unless [`Hits::unproven`] is set.
    ///
    /// # Errors
    /// - [`Error::Usage`] for an identifier that the format does not have.
    /// - [`Error::Damage`] in strict reading, at damage where the record might be.
    /// - Those of [`open`](crate::format::open) and [`Walk::step`].
    fn get(&self, ids: &[RecordId]) -> Result<Hits>;

    /// Prepares the fastest look-up now, in memory that [`Options`] bound. Without this call it happens after enough
    /// records were looked up to pay for it.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Interrupted`].
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

/// A look-up for formats without an index: walks the file.
pub(crate) struct WalkingLookup {
    format: &'static Format,
    source: Arc<dyn Source>,
    options: Options,
}

impl WalkingLookup {
    pub(crate) fn new(format: &'static Format, source: Arc<dyn Source>, options: &Options) -> Self {
        // A look-up prunes by itself.
        let options = options.clone().format(format).prune(false);
        Self {
            format,
            source,
            options,
        }
    }

    /// Plans one walk that meets all records of `ids`.
    fn plan(&self, ids: &[RecordId]) -> Plan {
        let identifying: Vec<_> = self.format.identifying(self.options.dialect).collect();
        let mut plan = Plan {
            filter: Filter::default(),
            missing: BTreeMap::new(),
            ascends: matches!(identifying.as_slice(), [column] if column.order == Order::Ascending),
            columns: self.format.identifying_places(self.options.dialect),
        };
        for (place, id) in ids.iter().enumerate() {
            plan.missing.entry(id.clone()).or_default().push(place);
        }
        if let Some((first, _)) = plan.missing.first_key_value().filter(|_| plan.ascends) {
            for (value, column) in first.values().iter().zip(identifying) {
                plan.filter = plan.filter.at_least(column.name, value.clone());
            }
        }
        plan
    }
}

/// What one walk looks for.
struct Plan {
    /// The places of the identifying columns.
    columns: Vec<usize>,
    filter: Filter,
    /// Identifiers that were not met yet, with their places in the request.
    missing: BTreeMap<RecordId, Vec<usize>>,
    /// Whether records ascend by the identifier, so that none follows a greater one.
    ascends: bool,
}

impl Own for WalkingLookup {}

impl Lookup for WalkingLookup {
    fn get(&self, ids: &[RecordId]) -> Result<Hits> {
        let mut plan = self.plan(ids);
        let mut hits = Hits {
            places: vec![None; ids.len()],
            ..Hits::default()
        };
        if plan.missing.is_empty() {
            return Ok(hits);
        }
        let mut found = OwnedRows::new(self.format.columns(self.options.dialect));
        let mut walk = self.range(&plan.filter)?;
        let mut is_damaged = false;
        while !plan.missing.is_empty() && walk.step()? == Step::More {
            is_damaged |= walk.found_damage();
            let rows = walk.rows();
            for row in 0..rows.len() {
                let Some(own) = RecordId::of_row(&*rows, row, &plan.columns) else {
                    continue;
                };
                if plan.ascends {
                    // Smaller identifiers that were not met are not in the file.
                    plan.missing = plan.missing.split_off(&own);
                }
                let Some(places) = plan.missing.remove(&own) else {
                    continue;
                };
                let own = found.push(&*rows, row);
                for place in places {
                    if let Some(place) = hits.places.get_mut(place) {
                        *place = Some((0, own));
                    }
                }
                if plan.missing.is_empty() {
                    break;
                }
            }
        }
        if hits.places.contains(&None) {
            hits.unproven = Unproven::of(is_damaged, walk.checked());
        }
        hits.sets.push(Box::new(found));
        Ok(hits)
    }

    fn range(&self, filter: &Filter) -> Result<Box<dyn Walk>> {
        let options = self.options.clone().filter(filter.clone());
        let (open, source, start) = (self.format.walk, self.source.clone(), Start::Beginning);
        match pending::growing(self.format, &*source, &options, &start)? {
            Some(growing) => {
                let walk = open(source.clone(), &growing, start)?;
                let own = (open, self.format.unfinished);
                Ok(Pending::around(walk, own, source, &options))
            }
            None => open(source, &options, start),
        }
    }
}

/// Refuses identifiers and conditions that the format's records cannot have, for any format's look-up.
pub(crate) struct Guarded {
    pub(crate) format: &'static Format,
    pub(crate) identifier: Vec<&'static Column>,
    pub(crate) options: Options,
    pub(crate) lookup: Box<dyn Lookup>,
}

impl Own for Guarded {}

impl Lookup for Guarded {
    fn get(&self, ids: &[RecordId]) -> Result<Hits> {
        match ids.iter().find(|id| !id.fits(&self.identifier)) {
            Some(id) => Err(no_such_id(self.format, id)),
            None => {
                let mut hits = self.lookup.get(ids)?;
                hits.columns = Some(self.format.columns(self.options.dialect));
                Ok(hits)
            }
        }
    }

    fn prepare(&self) -> Result<()> {
        self.lookup.prepare()
    }

    fn range(&self, filter: &Filter) -> Result<Box<dyn Walk>> {
        let columns = self.format.columns(self.options.dialect);
        let rest = filter.rest(self.format, columns)?;
        if rest.needs_values(columns) && !self.options.values {
            return Err(Error::Usage(
                "cannot filter by bodies or texts if bodies are not read: read with values"
                    .to_owned(),
            ));
        }
        Ok(Filtering::around(self.lookup.range(filter)?, rest))
    }
}

/// The error for an identifier of columns that this format does not identify records by.
fn no_such_id(format: &Format, id: &RecordId) -> Error {
    let names = format.identifier.join(", ");
    let shown: Vec<_> = id.values().iter().map(Scalar::to_string).collect();
    Error::Usage(format!(
        "{} records are found by {names}: expected values of these columns, found {}",
        format.name,
        shown.join(", ")
    ))
}
