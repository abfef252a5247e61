//! `Records`: a pass that gives records one by one.

use std::collections::VecDeque;
use std::sync::Arc;

use pyo3::prelude::*;
use seglake::format::{Column, Room, Step, Walk};
use seglake::verbs;

use crate::error::raise;
use crate::exclusive::{Exclusive, InUse};
use crate::passes::{Pass, Shared};
use crate::record::{Record, RecordMaker};

/// Up to 32 records are made at once, of at most 16 KiB, which fits the nearest cache. `empty`: a larger record is made alone.
const AHEAD: Room = Room {
    rows: 32,
    bytes: 16 << 10,
    empty: true,
};

struct State {
    walk: Box<dyn Walk>,
    next_row: usize,
    report: verbs::Report,
    maker: RecordMaker,
    /// Records that were made and not given out yet.
    made: VecDeque<Py<Record>>,
}

impl State {
    /// Goes on to where there are rows that were not given out. Gives false at the end.
    fn advance(&mut self) -> seglake::Result<bool> {
        while self.made.is_empty() && self.next_row >= self.walk.rows().len() {
            if self.walk.step()? != Step::More {
                return Ok(false);
            }
            self.next_row = 0;
            self.report.add(&*self.walk);
        }
        Ok(true)
    }

    /// The next one of the records at hand. Several are made at once, so that the walk is asked for its rows less often.
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Py<Record>>> {
        if let Some(record) = self.made.pop_front() {
            return Ok(Some(record));
        }
        let rows = self.walk.rows();
        let (count, _) = rows.fitting(self.next_row, AHEAD);
        for _ in 0..count {
            match self.maker.record(py, &*rows, self.next_row) {
                Ok(record) => self.made.push_back(record),
                // It is made again when it is its turn.
                Err(_) if !self.made.is_empty() => break,
                Err(error) => {
                    self.next_row += 1;
                    return Err(error);
                }
            }
            self.next_row += 1;
        }
        Ok(self.made.pop_front())
    }
}

impl Pass for Exclusive<State> {
    fn report(&self) -> Result<verbs::Report, InUse> {
        Ok(self.hold()?.report.clone())
    }
}

/// An iterator over the records of a reader.
///
/// >>> orders = seglake.open("orders.active")
/// >>> next(iter(orders)).type
/// 'order.created'
#[pyclass(frozen, module = "seglake.types")]
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
        mut report: verbs::Report,
        lenient: bool,
        shared: Arc<Shared>,
    ) -> Self {
        report.summary.checked = walk.checked();
        Self {
            state: Arc::new(Exclusive::new(State {
                walk,
                next_row: 0,
                report,
                maker: RecordMaker::new(format, columns),
                made: VecDeque::new(),
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

    fn __repr__(&self) -> String {
        self.shared.shown("Records")
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
