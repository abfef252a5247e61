//! `Ledger`: a pass that gives the ranges of a file.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use seglake::ledger::Span;
use seglake::verbs;

use crate::error::raise;
use crate::exclusive::{Exclusive, InUse};
use crate::passes::Shared;
use crate::typed::span;

/// How many ranges are passed over before Python is asked whether the user wants to stop.
const RANGES_AT_ONCE: usize = 1 << 16;

type Spans = dyn Iterator<Item = seglake::Result<Span>> + Send;

/// An iterator over the ranges of a file, in file order.
///
/// >>> [span.kind for span in seglake.open("damaged.active").ledger()]
/// ['record', 'corrupt', 'record']
#[pyclass(frozen, module = "seglake.types")]
pub(crate) struct Ledger {
    ledger: Exclusive<Box<Spans>>,
    shared: Arc<Shared>,
    damaged_only: bool,
}

impl Ledger {
    pub(crate) fn new(ledger: verbs::Ledger, shared: Arc<Shared>, damaged_only: bool) -> Self {
        Self {
            ledger: Exclusive::new(Box::new(ledger)),
            shared,
            damaged_only,
        }
    }

    /// The ranges of a chunked file's index, which are known already.
    pub(crate) fn of_index(path: Option<&Path>, nbytes: u64, spans: Vec<Span>) -> Self {
        Self {
            ledger: Exclusive::new(Box::new(spans.into_iter().map(Ok))),
            shared: Arc::new(Shared::new(path, "index", nbytes)),
            damaged_only: false,
        }
    }

    /// Goes on to the next range that is wanted, or so far that it is time to look for signals.
    fn step(&self) -> Result<ControlFlow<seglake::Result<Option<Span>>>, InUse> {
        let mut ledger = self.ledger.hold()?;
        for _ in 0..RANGES_AT_ONCE {
            match ledger.next().transpose() {
                Ok(Some(sound)) if self.damaged_only && sound.cause.is_none() => {}
                Ok(found) => return Ok(ControlFlow::Break(Ok(found))),
                Err(error) => return Ok(ControlFlow::Break(Err(error))),
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

#[pymethods]
impl Ledger {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __repr__(&self) -> String {
        self.shared.shown("Ledger")
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.shared.check_open()?;
        let next = loop {
            match py.detach(|| self.step())? {
                ControlFlow::Break(found) => break found.map_err(|error| raise(py, error))?,
                ControlFlow::Continue(()) => py.check_signals()?,
            }
        };
        next.map(|next| span(py, &next)).transpose()
    }
}
