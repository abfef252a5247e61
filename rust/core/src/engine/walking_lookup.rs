//! A look-up for formats without an index.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Format;
use super::open::{self, Pending};
use crate::error::Result;
use crate::private::Sealed;
use crate::record::{Order, OwnedRows, RecordId};
use crate::source::Source;
use crate::spec::Filter;
use crate::walk::{Begin, Hits, Lookup, Options, Step, Unproven, Walk};

/// Walks the file.
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
    fn plan(&self, ids: &[RecordId]) -> Sought {
        let identifying: Vec<_> = self.format.identifying(self.options.dialect).collect();
        let mut plan = Sought {
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
struct Sought {
    /// The places of the identifying columns.
    columns: Vec<usize>,
    filter: Filter,
    /// Identifiers that were not met yet, with their places in the request.
    missing: BTreeMap<RecordId, Vec<usize>>,
    /// Whether records ascend by the identifier, so that none follows a greater one.
    ascends: bool,
}

impl Sealed for WalkingLookup {}

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
                let Some(id) = RecordId::of_row(&*rows, row, &plan.columns) else {
                    continue;
                };
                if plan.ascends {
                    // Smaller identifiers that were not met are not in the file.
                    plan.missing = plan.missing.split_off(&id);
                }
                let Some(places) = plan.missing.remove(&id) else {
                    continue;
                };
                let row = found.push(&*rows, row);
                for place in places {
                    if let Some(place) = hits.places.get_mut(place) {
                        *place = Some((0, row));
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
        let (open, source, begin) = (self.format.walk, self.source.clone(), Begin::Beginning);
        match open::growing(self.format, &*source, &options, begin)? {
            Some(growing) => {
                let walk = open(source.clone(), &growing, begin.into())?;
                let format = (open, self.format.unfinished);
                Ok(Pending::around(walk, format, source, &options))
            }
            None => open(source, &options, begin.into()),
        }
    }
}
