//! Looking up records by what identifies them.

use pyo3::prelude::*;
use seglake::format::{Column, Hits, RecordId, Unproven};

use super::Reader;
use crate::arrow;
use crate::batches::Batch;
use crate::error::{detached, raise};
use crate::ids::{id_from_python, ids_from_arrow};
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

    /// What `get_many` gives.
    pub(super) fn look_up_many<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (format, identifying) = (self.format, self.identifying());
        if let Some(arrays) = arrow::import_arrays(ids)? {
            let mut known = Vec::new();
            for array in arrays {
                known.extend(ids_from_arrow(py, format, &identifying, &*array)?);
            }
            let hits = self.look_up(py, known)?;
            let path = self.source.path();
            let batch = py.detach(move || self.selection.hits(&hits, path));
            let batch = Batch::of(batch.map_err(|error| raise(py, error))?);
            return Ok(batch.into_pyobject(py)?.into_any());
        }
        let known = ids
            .try_iter()?
            .map(|id| id_from_python(format, &identifying, &id?));
        let hits = self.look_up(py, known.collect::<PyResult<_>>()?)?;
        Ok(self.found(py, &hits)?.into_pyobject(py)?.into_any())
    }
}
