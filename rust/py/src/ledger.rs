//! `Ledger`: a pass that gives the ranges of a file.

use std::sync::Arc;

use pyo3::prelude::*;
use seglake::verbs;

use crate::error::raise;
use crate::exclusive::{Exclusive, InUse};
use crate::passes::Shared;
use crate::report::span;

/// An iterator over the ranges of a file, in file order.
#[pyclass(frozen, module = "seglake")]
pub(crate) struct Ledger {
    ledger: Exclusive<verbs::Ledger>,
    shared: Arc<Shared>,
}

impl Ledger {
    pub(crate) fn new(ledger: verbs::Ledger, shared: Arc<Shared>) -> Self {
        Self {
            ledger: Exclusive::new(ledger),
            shared,
        }
    }
}

#[pymethods]
impl Ledger {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.shared.check_open()?;
        let next = py
            .detach(|| Ok::<_, InUse>(self.ledger.hold()?.next().transpose()))?
            .map_err(|error| raise(py, error))?;
        next.map(|next| span(py, &next)).transpose()
    }
}
