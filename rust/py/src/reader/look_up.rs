//! Looking up records by what identifies them.

use pyo3::prelude::*;
use seglake::format::{Column, Hits, RecordId, Unproven};

use super::Reader;
use crate::error::detached;
use crate::record::{Record, RecordMaker};

impl Reader {
    /// The columns that records are found by.
    pub(super) fn identifying(&self) -> Vec<&'static Column> {
        self.format.identifying(self.options.dialect).collect()
    }

    /// Looks up records; `None` stands for what no record can be found by.
    pub(super) fn look_up(&self, py: Python<'_>, ids: Vec<Option<RecordId>>) -> PyResult<Hits> {
        self.shared.check_open()?;
        let hits = detached(py, || self.lookup.get(&self.source, &self.options, ids))?;
        if hits.unproven == Some(Unproven::Damage) {
            self.shared.warn_of_miss(py, self.source.path())?;
        }
        Ok(hits)
    }

    /// The records that were looked up.
    pub(super) fn found(&self, py: Python<'_>, hits: &Hits) -> PyResult<Vec<Option<Py<Record>>>> {
        RecordMaker::new(self.format.name, self.columns()).found(py, hits)
    }
}
