//! The options of `SegmentLog` that say how it is written.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use seglake::parity::Parameters;
use seglake::store::{Durability, LogOptions, Retention};

use crate::error::raise;
use crate::numbers::quantity;
use crate::numbers::wrong_type;

/// Seconds, a timedelta, or text such as `7d`.
pub(crate) fn duration(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    static READ: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    let read;
    let value = if value.is_instance_of::<PyString>() {
        let function = READ.import(py, "seglake._values", "duration")?;
        read = function
            .call1((value,))
            .map_err(|error| PyValueError::new_err(format!("{name} is {}", error.value(py))))?;
        &read
    } else {
        value
    };
    let seconds = value
        .call_method0("total_seconds")
        .map_or_else(|_| value.extract::<f64>(), |seconds| seconds.extract());
    let seconds = seconds
        .map_err(|_| wrong_type(name, "seconds, a timedelta or text such as \"7d\"", value))?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{name} is {seconds}: it is 0 or more seconds")))
}

/// What `retention=` says.
fn retention_of(given: &Bound<'_, PyAny>) -> PyResult<Retention> {
    let given = given
        .cast::<PyDict>()
        .map_err(|_| wrong_type("retention", "a dict, such as {\"bytes\": 1 << 30}", given))?;
    let mut retention = Retention::default();
    for (name, value) in given.iter() {
        match name.extract::<String>()?.as_str() {
            "age" => retention.age = Some(duration("retention age", &value)?),
            "bytes" => retention.bytes = Some(quantity("retention bytes", 0, &value)?),
            other => {
                return Err(PyValueError::new_err(format!(
                    "retention has no {other:?}: it has age and bytes"
                )));
            }
        }
    }
    Ok(retention)
}

/// Options that say nothing where a log is opened to read.
pub(crate) struct OfWriter<'a, 'py> {
    pub(crate) segment_bytes: Option<Bound<'py, PyAny>>,
    pub(crate) segment_age: Option<Bound<'py, PyAny>>,
    pub(crate) max_clock_ahead: Option<Bound<'py, PyAny>>,
    pub(crate) durability: Option<&'a str>,
    pub(crate) mark_interval: Option<Bound<'py, PyAny>>,
    pub(crate) retention: Option<Bound<'py, PyAny>>,
    pub(crate) seal: Option<bool>,
    pub(crate) protect: Option<&'a str>,
}

impl OfWriter<'_, '_> {
    /// Raises ValueError where one is given.
    pub(crate) fn refuse(&self) -> PyResult<()> {
        let given = [
            ("segment_bytes", self.segment_bytes.is_some()),
            ("segment_age", self.segment_age.is_some()),
            ("max_clock_ahead", self.max_clock_ahead.is_some()),
            ("durability", self.durability.is_some()),
            ("mark_interval", self.mark_interval.is_some()),
            ("retention", self.retention.is_some()),
            ("seal", self.seal.is_some()),
            ("protect", self.protect.is_some()),
        ];
        let given = given.iter().filter(|(_, is)| *is);
        let names: Vec<_> = given.map(|(name, _)| *name).collect();
        match &names[..] {
            [] => Ok(()),
            names => Err(PyValueError::new_err(format!(
                "readonly=True opens the log to read, where {} would say nothing: leave it out",
                names.join(", ")
            ))),
        }
    }

    /// The log's options, without its key.
    pub(crate) fn options(&self, py: Python<'_>) -> PyResult<LogOptions> {
        let core = |error| raise(py, error);
        let mut options = LogOptions::default();
        if let Some(bytes) = &self.segment_bytes {
            options = options.segment_bytes(quantity("segment_bytes", 1, bytes)?);
        }
        if let Some(age) = &self.segment_age {
            options = options.segment_age(duration("segment_age", age)?);
        }
        if let Some(ahead) = &self.max_clock_ahead {
            options = options.max_clock_ahead(duration("max_clock_ahead", ahead)?);
        }
        if let Some(durability) = self.durability {
            options = options.durability(durability.parse::<Durability>().map_err(core)?);
        }
        if let Some(interval) = &self.mark_interval {
            options = options.mark_interval(duration("mark_interval", interval)?);
        }
        if let Some(retention) = &self.retention {
            options = options.retention(retention_of(retention)?);
        }
        if let Some(seal) = self.seal {
            options = options.seal(seal);
        }
        if let Some(profile) = self.protect {
            options = options.protect(profile.parse::<Parameters>().map_err(core)?);
        }
        Ok(options)
    }
}
