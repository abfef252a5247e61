//! The passes over a segment: records one by one, in batches, and ranges.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use seglake::columns::{self, Limits, Selection, UuidType};
use seglake::format::{Start, Walk};
use seglake::parity::ProtectedSource;
use seglake::verbs;

use super::Reader;
use crate::batches::Batches;
use crate::error::{detached, raise};
use crate::ledger::Ledger;
use crate::passes::{Pass, Passes};
use crate::records::Records;

impl Reader {
    pub(super) fn spans(&self, py: Python<'_>, damaged_only: bool) -> PyResult<Ledger> {
        self.shared.check_open()?;
        // The ledger is of the whole file, or of what it grew by.
        let start = self.passes.growth.as_ref();
        let start = start.map_or(Start::Beginning, Start::Growth);
        let ledger =
            py.detach(|| verbs::Ledger::starting(self.source.clone(), &self.options, start));
        Ok(Ledger::new(
            ledger.map_err(|error| raise(py, error))?,
            self.shared.clone(),
            damaged_only,
        ))
    }

    pub(super) fn begin(&self, pass: Arc<dyn Pass>) {
        self.shared.begin(pass);
    }

    pub(super) fn records(
        &self,
        py: Python<'_>,
        open: impl FnOnce() -> seglake::Result<Box<dyn Walk>> + Send,
    ) -> PyResult<Records> {
        self.shared.check_open()?;
        let walk = detached(py, open)?;
        let records = Records::new(
            walk,
            self.format.name,
            self.columns(),
            verbs::Report::of(self.format, &*self.source),
            !self.options.strict,
            self.shared.clone(),
        );
        self.begin(records.pass());
        Ok(records)
    }

    /// Where a pass begins.
    pub(super) fn start(&self) -> Start<'_> {
        match &self.passes {
            Passes {
                growth: Some(growth),
                ..
            } => Start::Growth(growth),
            Passes {
                part: Some(part), ..
            } => Start::Part(part),
            _ => Start::Beginning,
        }
    }

    /// The records with the reader's columns.
    pub(super) fn own_batches(&self, py: Python<'_>) -> PyResult<Batches> {
        self.core_batches(py, self.selection.clone(), self.limits, self.passes.threads)
    }

    /// The records, read ahead in a thread.
    pub(super) fn batches_ahead(
        &self,
        py: Python<'_>,
        selection: Selection,
        limits: Limits,
    ) -> PyResult<Batches> {
        let (source, start) = (self.source.clone(), self.start());
        self.begun(py, || {
            columns::Batches::ahead(source, &self.options, selection, limits, start)
        })
    }

    pub(super) fn core_batches(
        &self,
        py: Python<'_>,
        selection: Selection,
        limits: Limits,
        threads: usize,
    ) -> PyResult<Batches> {
        let (source, start) = (self.source.clone(), self.start());
        self.begun(py, || match start {
            Start::Beginning => {
                columns::Batches::threaded(source, &self.options, selection, limits, threads)
            }
            start => columns::Batches::starting(source, &self.options, selection, limits, start),
        })
    }

    /// The pass that `open` opens.
    fn begun(
        &self,
        py: Python<'_>,
        open: impl FnOnce() -> seglake::Result<columns::Batches> + Send,
    ) -> PyResult<Batches> {
        self.shared.check_open()?;
        let batches = detached(py, open)?;
        let batches = Batches::new(batches, !self.options.strict, self.shared.clone());
        self.begin(batches.pass());
        Ok(batches)
    }

    /// What `count_rows` gives.
    pub(super) fn counted(&self, py: Python<'_>) -> PyResult<u64> {
        let position = ["position".to_owned()];
        let selection =
            Selection::new(self.format, &self.options, Some(&position), UuidType::Fixed);
        let selection = selection.map_err(|error| raise(py, error))?;
        self.core_batches(py, selection, self.limits, self.passes.threads)?
            .count_rows(py)
    }

    /// What `read_bytes` gives.
    pub(super) fn bytes_between<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        end: u64,
        restored: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.shared.check_open()?;
        let size = self.source.len();
        let file = ProtectedSource::of(&*self.source).filter(|_| !restored);
        let source = file.as_ref().map_or(&self.source, |own| own.file());
        let start_there = start.min(source.len());
        let len = end
            .checked_sub(start)
            .filter(|_| end <= size)
            .and_then(|_| usize::try_from(end.min(source.len()) - start_there).ok());
        let len = len.ok_or_else(|| {
            PyValueError::new_err(format!(
                "bytes {start} to {end} are not a range of a file of {size} bytes"
            ))
        })?;
        let mut bytes = vec![0; len];
        detached(py, || source.read_exact_at(start_there, &mut bytes))?;
        Ok(PyBytes::new(py, &bytes))
    }
}
