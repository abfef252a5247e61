//! Finding records without reading a whole file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::filtered::Filtering;
use super::{Filter, Format, Options, Start, Step, Walk};
use crate::error::{Error, Result};
use crate::own::Own;
use crate::record::{Checked, Column, Found, Order, OwnedRows, RecordId, Rows, Scalar};
use crate::source::Source;

/// What looking up several records gave.
#[derive(Default)]
pub struct Hits {
    /// Records that were found, in any order and number of sets.
    pub sets: Vec<Box<dyn Found>>,
    /// For each that was asked for the set and the row in it; `None` where there is no such record.
    pub places: Vec<Option<(usize, usize)>>,
    /// Why something that was not found may be there all the same; `None` where all that was not found is proven not to be there.
    pub unproven: Option<Unproven>,
}

/// Why a record that was not found may be in the file all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unproven {
    /// The file has no checksums that would show it.
    Unchecked,
    /// Damage was met where the record could be.
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

    /// Why nothing is proven by what was met of a file.
    pub(crate) const fn of(is_damaged: bool, checked: Checked) -> Option<Self> {
        match checked {
            _ if is_damaged => Some(Self::Damage),
            Checked::Structure => Some(Self::Unchecked),
            Checked::Checksum => None,
        }
    }
}

impl Hits {
    /// Calls `look` with the records that were asked for, in that order, as many at once as lie side by side in one set, or are
    /// not there: the rows, and how many records that is.
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

    /// Calls `look` with each record that was asked for, in that order.
    pub fn each(&self, mut look: impl FnMut(Option<(&dyn Rows, usize)>)) {
        let sets: Vec<_> = self.sets.iter().map(|set| set.rows()).collect();
        for place in &self.places {
            let found = place.and_then(|(set, row)| sets.get(set).map(|rows| (&**rows, row)));
            look(found);
        }
    }
}

/// Finds records of one open file. What has been proven of an index once holds as long as this lives.
pub trait Lookup: Own + Send + Sync {
    /// Finds records, in any order, also the same one twice. What is found has been checked like by a walk, and what is not
    /// found is not there, unless [`Hits::unproven`] says otherwise.
    ///
    /// # Errors
    /// [`Error::Usage`] for an identifier that the format does not have; as [`open`](crate::format::open) and [`Walk::step`]. Reading strictly,
    /// damage at which a record might have stood is an error.
    fn get(&self, ids: &[RecordId]) -> Result<Hits>;

    /// Reads now what makes looking up as fast as it gets, in memory as [`Options`] bound it. Otherwise that happens once so many
    /// records were looked up that it would have paid.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Interrupted`].
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    /// A walk over the records that meet the conditions. It reads no more of the file than it must, and so gives no ledger of the
    /// rest: the ranges that it gives are those that a walk through all of the file would give of what was read, which need not
    /// touch.
    ///
    /// # Errors
    /// As [`open`](crate::format::open).
    fn range(&self, filter: &Filter) -> Result<Box<dyn Walk>>;
}

/// A look-up in formats without an index: by walking.
pub(crate) struct WalkingLookup {
    format: &'static Format,
    source: Arc<dyn Source>,
    options: Options,
}

impl WalkingLookup {
    pub(crate) fn new(format: &'static Format, source: Arc<dyn Source>, options: &Options) -> Self {
        // Pruning is what a look-up is for.
        let options = options.clone().format(format).prune(false);
        Self {
            format,
            source,
            options,
        }
    }

    /// What a walk has to meet to come past all of these.
    fn plan(&self, ids: &[RecordId]) -> Plan {
        let identifying: Vec<_> = self.format.identifying(&self.options).collect();
        let mut plan = Plan {
            filter: Filter::default(),
            missing: BTreeMap::new(),
            ascends: matches!(identifying.as_slice(), [column] if column.order == Order::Ascending),
            columns: self.format.identifying_places(&self.options),
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

/// What is looked for in one walk.
struct Plan {
    /// The places of the columns that have it.
    columns: Vec<usize>,
    filter: Filter,
    /// What has not been met, with the places among all that were asked for.
    missing: BTreeMap<RecordId, Vec<usize>>,
    /// Whether records ascend by it, so that behind a greater one it does not come any more.
    ascends: bool,
}

impl Own for WalkingLookup {}

impl Lookup for WalkingLookup {
    fn get(&self, ids: &[RecordId]) -> Result<Hits> {
        let mut plan = self.plan(ids);
        let mut hits = Hits {
            sets: Vec::new(),
            places: vec![None; ids.len()],
            unproven: None,
        };
        if plan.missing.is_empty() {
            return Ok(hits);
        }
        let mut found = OwnedRows::new(self.format.columns(&self.options));
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
                    // What is smaller and was not met is not there.
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
        (self.format.walk)(self.source.clone(), &options, Start::Beginning)
    }
}

/// A look-up that refuses to look for what records do not have, whatever the format.
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
            None => self.lookup.get(ids),
        }
    }

    fn prepare(&self) -> Result<()> {
        self.lookup.prepare()
    }

    fn range(&self, filter: &Filter) -> Result<Box<dyn Walk>> {
        let columns = self.format.columns(&self.options);
        let rest = filter.rest(self.format, columns)?;
        if rest.needs_values(columns) && !self.options.values {
            return Err(Error::Usage(
                "cannot filter by bodies and texts where bodies are not read".to_owned(),
            ));
        }
        Ok(Filtering::around(self.lookup.range(filter)?, rest))
    }
}

/// The error of an identifier of other columns than this format's.
fn no_such_id(format: &Format, id: &RecordId) -> Error {
    let names = format.identifier.join(", ");
    let shown: Vec<_> = id.values().iter().map(Scalar::to_string).collect();
    Error::Usage(format!(
        "{} records are found by {names}, and not by {}",
        format.name,
        shown.join(", ")
    ))
}
