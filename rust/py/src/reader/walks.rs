//! The passes over a segment: records one by one, in batches, and ranges.

use pyo3::prelude::*;
use seglake::columns::{self, Limits, Selection};
use seglake::format::{Start, Walk};
use seglake::verbs;

use super::Reader;
use crate::batches::Batches;
use crate::error::detached;
use crate::passes::Passes;
use crate::records::Records;

impl Reader {
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
        self.shared.begin(records.pass());
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
        self.shared.begin(batches.pass());
        Ok(batches)
    }
}
