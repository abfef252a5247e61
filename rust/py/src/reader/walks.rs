//! The passes over a segment: records one by one, in batches, and ranges.

use pyo3::prelude::*;
use seglake::columns::{self, Limits, Selection};
use seglake::format::{Start, Walk};
use seglake::verbs;

use super::Reader;
use crate::batches::Batches;
use crate::error::detached;
use crate::passes::{Made, Passes};
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
        let made = Made::By(self.passes.threads);
        self.core_batches(py, self.selection.clone(), self.limits, made)
    }

    pub(super) fn core_batches(
        &self,
        py: Python<'_>,
        selection: Selection,
        limits: Limits,
        made: Made,
    ) -> PyResult<Batches> {
        use columns::Batches as Core;
        self.shared.check_open()?;
        let (source, options, start) = (self.source.clone(), &self.options, self.start());
        let batches = detached(py, || match (made, start) {
            (Made::Ahead, start) => Core::ahead(source, options, selection, limits, start),
            (Made::By(threads), Start::Beginning) => {
                Core::threaded(source, options, selection, limits, threads)
            }
            (_, start) => Core::starting(source, options, selection, limits, start),
        })?;
        let batches = Batches::new(batches, !self.options.strict, self.shared.clone());
        self.shared.begin(batches.pass());
        Ok(batches)
    }
}
