//! `Ledger`: a pass that gives the ranges of a file.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use seglake::Result;
use seglake::format::{Step, Walk};
use seglake::ledger::Span;

use crate::error::raise;
use crate::reader::{Shared, lock};
use crate::report::span;

/// An iterator over the ranges of a file.
#[pyclass(frozen, module = "seglake")]
pub(crate) struct Ledger {
    state: Mutex<(Box<dyn Walk>, VecDeque<Span>)>,
    shared: Arc<Shared>,
}

impl Ledger {
    pub(crate) fn new(walk: Box<dyn Walk>, shared: Arc<Shared>) -> Self {
        Self {
            state: Mutex::new((walk, VecDeque::new())),
            shared,
        }
    }

    fn next(&self) -> Result<Option<Span>> {
        let (walk, spans) = &mut *lock(&self.state);
        while spans.is_empty() && walk.step()? == Step::More {
            spans.extend(walk.spans());
        }
        Ok(spans.pop_front())
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
            .detach(|| self.next())
            .map_err(|error| raise(py, error))?;
        next.map(|next| span(py, &next)).transpose()
    }
}
