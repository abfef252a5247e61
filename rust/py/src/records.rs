//! `Records`: a pass that gives records one by one.

use std::sync::Arc;

use pyo3::prelude::*;
use seglake::format::{Column, Step, Walk};
use seglake::verbs;

use crate::error::raise;
use crate::exclusive::{Exclusive, InUse};
use crate::passes::{Pass, Shared};
use crate::record::{Maker, Record};

struct State {
    walk: Box<dyn Walk>,
    next_row: usize,
    report: verbs::Report,
    maker: Maker,
}

impl State {
    /// Goes on to where there are rows that were not given out. Gives false at the end.
    fn advance(&mut self) -> seglake::Result<bool> {
        while self.next_row >= self.walk.rows().len() {
            if self.walk.step()? != Step::More {
                return Ok(false);
            }
            self.next_row = 0;
            self.report.add(&*self.walk);
        }
        Ok(true)
    }

    /// The next one of the records at hand.
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Py<Record>>> {
        let rows = self.walk.rows();
        let row = self.next_row;
        if row >= rows.len() {
            return Ok(None);
        }
        self.next_row += 1;
        self.maker.record(py, &*rows, row).map(Some)
    }
}

impl Pass for Exclusive<State> {
    fn report(&self) -> Result<verbs::Report, InUse> {
        Ok(self.hold()?.report.clone())
    }
}

/// An iterator over the records of a reader.
#[pyclass(frozen, module = "seglake")]
pub(crate) struct Records {
    state: Arc<Exclusive<State>>,
    lenient: bool,
    shared: Arc<Shared>,
}

impl Records {
    pub(crate) fn new(
        walk: Box<dyn Walk>,
        format: &'static str,
        columns: &'static [Column],
        report: verbs::Report,
        lenient: bool,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            state: Arc::new(Exclusive::new(State {
                walk,
                next_row: 0,
                report,
                maker: Maker::new(format, columns),
            })),
            lenient,
            shared,
        }
    }

    pub(crate) fn pass(&self) -> Arc<dyn Pass> {
        self.state.clone()
    }
}

#[pymethods]
impl Records {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Record>>> {
        loop {
            self.shared.check_open()?;
            if let Some(record) = self.state.hold_attached(py)?.next(py)? {
                return Ok(Some(record));
            }
            let advanced = py.detach(|| Ok::<_, InUse>(self.state.hold()?.advance()))?;
            if self.lenient {
                self.shared.warn(py, &*self.state)?;
            }
            if !advanced.map_err(|error| raise(py, error))? {
                return Ok(None);
            }
        }
    }
}
