//! The options of `SegmentLog` that say how it is written.

use std::str::FromStr;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use seglake::parity::Parameters;
use seglake::store::{Durability, LogOptions, Retention};

use crate::error::raise;
use crate::numbers::{quantity, wrong_type};

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

type Set = fn(LogOptions, &Bound<'_, PyAny>) -> PyResult<LogOptions>;

/// The options that say how a log is written: how each is set.
const OF_WRITER: [(&str, Set); 8] = [
    ("segment_bytes", |options, bytes| {
        Ok(options.segment_bytes(quantity("segment_bytes", 1, bytes)?))
    }),
    ("segment_age", |options, age| {
        Ok(options.segment_age(duration("segment_age", age)?))
    }),
    ("max_clock_ahead", |options, ahead| {
        Ok(options.max_clock_ahead(duration("max_clock_ahead", ahead)?))
    }),
    ("durability", |options, name| {
        Ok(options.durability(word::<Durability>("durability", name)?))
    }),
    ("mark_interval", |options, interval| {
        Ok(options.mark_interval(duration("mark_interval", interval)?))
    }),
    ("retention", |options, given| {
        Ok(options.retention(retention_of(given)?))
    }),
    ("seal", |options, seal| {
        let whether = seal.extract();
        Ok(options.seal(whether.map_err(|_| wrong_type("seal", "a bool", seal))?))
    }),
    ("protect", |options, profile| {
        Ok(options.protect(word::<Parameters>("protect", profile)?))
    }),
];

fn word<T: FromStr<Err = seglake::Error>>(name: &str, given: &Bound<'_, PyAny>) -> PyResult<T> {
    let text: &str = given
        .extract()
        .map_err(|_| wrong_type(name, "str", given))?;
    text.parse().map_err(|error| raise(given.py(), error))
}

/// The options of a log, of those that are given: not None. One that is only to be read takes none.
pub(crate) fn log_options(
    given: Option<&Bound<'_, PyDict>>,
    readonly: bool,
) -> PyResult<LogOptions> {
    let mut options = LogOptions::default();
    let mut names = Vec::new();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        let known = OF_WRITER.iter().find(|(own, _)| *own == name);
        let (_, set) = known.ok_or_else(|| {
            let text = format!("SegmentLog.__new__() got an unexpected keyword argument '{name}'");
            PyTypeError::new_err(text)
        })?;
        if !value.is_none() {
            options = set(options, &value)?;
            names.push(name);
        }
    }
    match readonly && !names.is_empty() {
        true => Err(PyValueError::new_err(format!(
            "readonly=True opens the log to read, where {} would say nothing: leave it out",
            names.join(", ")
        ))),
        false => Ok(options),
    }
}
