//! Looking up records of one reader.

use std::sync::{Arc, OnceLock};

use seglake::format::{self, Hits, Lookup, Options, RecordId, Unproven};
use seglake::source::Source;

/// Made when something is looked up first; it keeps what it has proven of an index.
#[derive(Default)]
pub(crate) struct LazyLookup {
    made: OnceLock<Arc<dyn Lookup>>,
    /// Why something that was looked up and not found may be there all the same: damage first.
    unproven: [OnceLock<Unproven>; 2],
}

impl LazyLookup {
    pub(crate) fn made(
        &self,
        source: &Arc<dyn Source>,
        options: &Options,
    ) -> seglake::Result<Arc<dyn Lookup>> {
        if let Some(lookup) = self.made.get() {
            return Ok(lookup.clone());
        }
        // Not made under a lock, since reading may run Python code: two threads may make one each, and the first is kept.
        let made: Arc<dyn Lookup> = Arc::from(format::lookup(source.clone(), options)?);
        Ok(self.made.get_or_init(|| made).clone())
    }

    /// Why something that was looked up and not found may be there all the same.
    pub(crate) fn unproven(&self) -> Option<Unproven> {
        self.unproven.iter().find_map(OnceLock::get).copied()
    }

    /// Looks up records; `None` stands for what no record can be found by.
    pub(crate) fn get(
        &self,
        source: &Arc<dyn Source>,
        options: &Options,
        ids: Vec<Option<RecordId>>,
    ) -> seglake::Result<Hits> {
        let is_known: Vec<_> = ids.iter().map(Option::is_some).collect();
        let known: Vec<_> = ids.into_iter().flatten().collect();
        let mut hits = self.made(source, options)?.get(&known)?;
        if let Some(unproven) = hits.unproven {
            let [damage, other] = &self.unproven;
            match unproven {
                Unproven::Damage => damage.get_or_init(|| unproven),
                _ => other.get_or_init(|| unproven),
            };
        }
        if known.len() == is_known.len() {
            return Ok(hits);
        }
        let mut places = std::mem::take(&mut hits.places).into_iter();
        let place = |known: &bool| known.then(|| places.next().flatten()).flatten();
        hits.places = is_known.iter().map(place).collect();
        Ok(hits)
    }
}
