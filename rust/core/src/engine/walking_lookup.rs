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
}

impl Sealed for WalkingLookup {}

impl Lookup for WalkingLookup {
    /// One walk meets all records of `ids`.
    fn get(&self, ids: &[RecordId]) -> Result<Hits> {
        // Identifiers that were not met yet, with their places in the request.
        let mut missing: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (place, id) in ids.iter().enumerate() {
            missing.entry(id.clone()).or_default().push(place);
        }
        let mut hits = Hits {
            places: vec![None; ids.len()],
            ..Hits::default()
        };
        let Some((first, _)) = missing.first_key_value() else {
            return Ok(hits);
        };
        let dialect = self.options.dialect;
        let identifying: Vec<_> = self.format.identifying(dialect).collect();
        let places = self.format.identifying_places(dialect);
        // If records ascend by the identifier, none follows a greater one.
        let ascends = matches!(&*identifying, [column] if column.order == Order::Ascending);
        let mut filter = Filter::default();
        if ascends {
            for (value, column) in first.values().iter().zip(identifying) {
                filter = filter.at_least(column.name, value.clone());
            }
        }
        let mut found = OwnedRows::new(self.format.columns(dialect));
        let mut walk = self.range(&filter)?;
        let mut is_damaged = false;
        while !missing.is_empty() && walk.step()? == Step::More {
            is_damaged |= walk.found_damage();
            let rows = walk.rows();
            for row in 0..rows.len() {
                let Some(id) = RecordId::of_row(&*rows, row, &places) else {
                    continue;
                };
                if ascends {
                    // Smaller identifiers that were not met are not in the file.
                    missing = missing.split_off(&id);
                }
                let Some(asked) = missing.remove(&id) else {
                    continue;
                };
                let row = found.push(&*rows, row);
                for place in asked {
                    if let Some(place) = hits.places.get_mut(place) {
                        *place = Some((0, row));
                    }
                }
                if missing.is_empty() {
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
                Ok(Pending::around(walk, self.format, source, &options))
            }
            None => open(source, &options, begin.into()),
        }
    }
}
