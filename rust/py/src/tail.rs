//! `Tail`: the records of a log as they come.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use seglake::format::{Column, active};
use seglake::store::{Tail as CoreTail, TailFrom};
use uuid::Uuid;

use crate::error::raise;
use crate::exclusive::{Exclusive, InUse};
use crate::field_in::uuid_field;
use crate::log_facts::warn_of_skipped;
use crate::record::{Record, RecordMaker};

/// How long a thread waits before signal handlers may run.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Where following begins: "start", "now", or after a UUID.
pub(crate) fn tail_from(from: &Bound<'_, PyAny>) -> PyResult<TailFrom> {
    if from.is_instance_of::<PyString>() {
        match from.extract::<String>()?.as_str() {
            "start" => return Ok(TailFrom::Start),
            "now" => return Ok(TailFrom::Now),
            _ => {}
        }
    }
    Ok(TailFrom::After(Uuid::from_bytes(uuid_field(from, "uuid")?)))
}

/// An iterator over the records of a log as they come: `SegmentLog.tail` makes it.
///
/// >>> log = seglake.SegmentLog("log", readonly=True)
/// >>> next(log.tail("start")).type
/// 'order.created'
#[pyclass(frozen, module = "seglake")]
pub(crate) struct Tail {
    tail: Exclusive<CoreTail>,
    maker: Exclusive<RecordMaker>,
}

impl Tail {
    /// Of records with these columns.
    pub(crate) fn new(tail: CoreTail, columns: &'static [Column]) -> Self {
        Self {
            maker: Exclusive::new(RecordMaker::new(active::FORMAT.name, columns)),
            tail: Exclusive::new(tail),
        }
    }

    /// The next record, waiting for it at most so long; `None` where there is none.
    fn next(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Option<Py<Record>>> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => SIGNAL_INTERVAL,
            };
            let (found, skipped) = py.detach(|| {
                let mut tail = self.tail.hold()?;
                let found = tail.wait(left.min(SIGNAL_INTERVAL));
                Ok::<_, InUse>((found, tail.take_skipped()))
            })?;
            warn_of_skipped(py, skipped)?;
            if found.map_err(|error| raise(py, error))? {
                let (mut tail, mut maker) =
                    (self.tail.hold_attached(py)?, self.maker.hold_attached(py)?);
                if let Some(record) = tail.take(|rows, row| maker.record(py, rows, row)) {
                    return record.map(Some);
                }
                continue; // another thread took it
            }
            py.check_signals()?;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(None);
            }
        }
    }
}

#[pymethods]
impl Tail {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Record>>> {
        self.next(py, None)
    }

    /// Returns the next record, or None where there is none yet. Does not wait by default: `timeout` is how many seconds it waits at most for
    /// one to come, and None waits for ever, as the iterator does.
    ///
    /// Raises ValueError for a timeout of less than 0, and what the iterator raises.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> log.tail("start").poll().type
    /// 'order.created'
    /// >>> log.tail("now").poll(timeout=0.01)
    #[pyo3(signature = (timeout=0.0))]
    fn poll(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Py<Record>>> {
        let timeout = timeout.map(|seconds| {
            Duration::try_from_secs_f64(seconds).map_err(|_| {
                PyValueError::new_err(format!("timeout is {seconds}: it is 0 or more seconds"))
            })
        });
        self.next(py, timeout.transpose()?)
    }

    /// The UUID of the last record that was given, after which another tail can begin; None before the first.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> tail = log.tail("start")
    /// >>> tail.poll().uuid == tail.last
    /// True
    #[getter]
    fn last(&self, py: Python<'_>) -> PyResult<Option<Uuid>> {
        Ok(self.tail.hold_attached(py)?.last())
    }
}
