//! The one mapping of errors to Python's exceptions.

use std::ffi::CString;
use std::io::ErrorKind;
use std::path::Path;

use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyOSError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use seglake::Error;
use seglake::text::printable;
use uuid::Uuid;

use crate::interrupt;

/// The module that defines the exceptions, in Python so that they pickle and subclass like any other.
const ERRORS: &str = "seglake._errors";

/// The exception for an error of the core.
pub(crate) fn raise(py: Python<'_>, error: Error) -> PyErr {
    match exception(py, error) {
        Ok(exception) | Err(exception) => exception,
    }
}

/// Runs `work` without the GIL. What it returns as an error is raised.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> seglake::Result<T> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(|error| raise(py, error))
}

fn exception(py: Python<'_>, error: Error) -> PyResult<PyErr> {
    let fields = PyDict::new(py);
    if !matches!(error, Error::Columns { .. } | Error::Bug(_)) {
        fields.set_item("path", error.path().map(Path::as_os_str))?;
    }
    let class = match error {
        Error::Damage(damage) => {
            fields.set_item("byte_offset", damage.offset)?;
            fields.set_item("cause", damage.cause.as_str())?;
            fields.set_item("expected", damage.finding.expected())?;
            fields.set_item("actual", damage.finding.actual())?;
            fields.set_item("next", damage.next())?;
            match damage.wrong_key {
                true => "WrongKeyError",
                false => "DamageError",
            }
        }
        Error::Limit {
            what,
            needed,
            option,
            limit,
            ..
        } => {
            let reason =
                format!("{what} needs {needed} bytes, more than {option} = {limit} allows");
            fields.set_item("reason", printable(&reason))?;
            fields.set_item("option", option)?;
            fields.set_item("next", format!("raise {option} and read again"))?;
            "LimitError"
        }
        Error::Number {
            record,
            field,
            value,
            ..
        } => {
            let reason = format!(
                "{record}field {field}: {value} is above 2^63-1, the most that an int64 stores"
            );
            fields.set_item("reason", reason)?;
            fields.set_item("option", "uint64_type")?;
            fields.set_item("next", "read such numbers as decimals")?;
            "LimitError"
        }
        Error::Format { message, next, .. } => {
            fields.set_item("reason", printable(&message))?;
            fields.set_item("next", next)?;
            "FormatError"
        }
        Error::Log { fault, message, .. } => {
            fields.set_item("reason", printable(&message))?;
            fields.set_item("next", fault.next())?;
            fields.set_item("cause", fault.as_str())?;
            "FormatError"
        }
        Error::Columns {
            ref lost,
            ref missing,
            ..
        } => {
            fields.set_item("lost", lost)?;
            fields.set_item("missing", missing)?;
            fields.set_item("reason", error.to_string())?;
            "ColumnsError"
        }
        Error::OutcomeUnknown {
            uuids,
            written,
            reason,
            ..
        } => {
            fields.set_item("reason", printable(&reason))?;
            fields.set_item("uuids", uuids)?;
            fields.set_item("written", written)?;
            "OutcomeUnknownError"
        }
        Error::Partial {
            path,
            written,
            source,
        } => {
            let reason = source.to_string();
            return partial(py, &path, &written, &reason, raise(py, *source));
        }
        Error::SegmentGone { sequence, .. } => {
            fields.set_item("sequence", sequence)?;
            "SegmentGoneError"
        }
        Error::Replaced {
            offset,
            expected,
            found,
            ..
        } => {
            fields.set_item("byte_offset", offset)?;
            fields.set_item("expected", expected)?;
            fields.set_item("actual", found)?;
            "ReplacedError"
        }
        // The class of what only this library raises: readers of many files go on with the others.
        Error::Bug(bug) => {
            fields.set_item("reason", bug.to_string())?;
            "SeglakeError"
        }
        Error::Io {
            path,
            action,
            source,
            ..
        } => return os_error(py, path.as_deref(), &action, &source),
        Error::Interrupted => {
            return Ok(interrupt::take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(())));
        }
        error => return Ok(PyValueError::new_err(error.to_string())),
    };
    of_class(class, &fields)
}

/// An exception of a class of ours, by its fields.
fn of_class(class: &str, fields: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    let errors = fields.py().import(ERRORS)?;
    let error = errors.call_method(class, (), Some(fields))?;
    Ok(PyErr::from_value(error))
}

/// `PartialWriteError`: these records of a batch are in a log. `hindered` is why the others are not.
pub(crate) fn partial(
    py: Python<'_>,
    path: &Path,
    written: &[Uuid],
    reason: &str,
    hindered: PyErr,
) -> PyResult<PyErr> {
    let fields = PyDict::new(py);
    fields.set_item("reason", printable(reason))?;
    fields.set_item("path", path.as_os_str())?;
    fields.set_item("written", written)?;
    let partial = of_class("PartialWriteError", &fields)?;
    partial.set_cause(py, Some(hindered));
    Ok(partial)
}

/// Whether an error refuses what was given.
pub(crate) fn is_refusal(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyTypeError>(py)
}

/// `RowError`: a row of a batch is refused for a ValueError or TypeError, which it comes of. Other errors are what they are.
pub(crate) fn of_row(py: Python<'_>, row: usize, error: PyErr) -> PyErr {
    if !is_refusal(py, &error) {
        return error;
    }
    let reason = error.value(py).str();
    let of_row =
        reason.and_then(|reason| py.import(ERRORS)?.call_method1("RowError", (reason, row)));
    match of_row {
        Ok(of_row) => {
            let of_row = PyErr::from_value(of_row);
            of_row.set_cause(py, Some(error));
            of_row
        }
        Err(failure) => failure,
    }
}

/// `DamageWarning`.
pub(crate) fn damage_warning(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, ERRORS, intern!(py, "DamageWarning").to_str()?)
}

/// Warns of something. Raises where warnings are errors, and ValueError for a text with a NUL, which Python's interface does not take.
pub(crate) fn warn(py: Python<'_>, class: &Bound<'_, PyAny>, text: String) -> PyResult<()> {
    PyErr::warn(py, class, &CString::new(text)?, 1)
}

/// The error of what writes a new file. Where there is a file already, it says which argument decides what becomes of it.
pub(crate) fn raise_new(py: Python<'_>, error: Error, next: &str) -> PyErr {
    match error {
        Error::Io {
            path,
            action,
            source,
            ..
        } if source.kind() == ErrorKind::AlreadyExists => numbered(
            Some(17),
            path.as_deref(),
            format!("{action}: there is a file: {next}"),
        ),
        error => raise(py, error),
    }
}

/// What `raise_new` says of verbs that replace a file if they are to.
pub(crate) const OVERWRITE: &str = "if_exists=\"overwrite\" replaces it";

/// The system's error as Python has it: with its number, so that its class is the right one (`FileNotFoundError`, ...).
fn os_error(
    py: Python<'_>,
    path: Option<&Path>,
    action: &str,
    error: &std::io::Error,
) -> PyResult<PyErr> {
    let raised = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<PyErr>());
    if let Some(raised) = raised {
        return of_file_object(py, path, action, raised);
    }
    let (number, words) = number_and_words(py, error)?;
    Ok(numbered(number, path, format!("{action}: {words}")))
}

/// The system's error as Python's own calls raise it: in its words alone.
pub(crate) fn of_system(py: Python<'_>, path: &Path, error: &std::io::Error) -> PyErr {
    match number_and_words(py, error) {
        Ok((number, words)) => numbered(number, Some(path), words),
        Err(failure) => failure,
    }
}

fn number_and_words(py: Python<'_>, error: &std::io::Error) -> PyResult<(Option<i32>, String)> {
    // Windows numbers its errors otherwise than Python's `errno`: there the kind tells.
    let of_system = error.raw_os_error().filter(|_| cfg!(unix));
    let number = of_system.or(match error.kind() {
        ErrorKind::NotFound => Some(2),
        ErrorKind::PermissionDenied => Some(13),
        ErrorKind::ResourceBusy => Some(16),
        ErrorKind::AlreadyExists => Some(17),
        ErrorKind::IsADirectory => Some(21),
        _ => None,
    });
    let strerror = |number: i32| -> PyResult<String> {
        let words = py.import("os")?.call_method1("strerror", (number,))?;
        Ok(words.to_string())
    };
    // Rust adds the number to the system's words; Python's exceptions have it as a field.
    let words = match of_system {
        Some(number) => strerror(number)?,
        // Of an error without words of its own, the system's.
        None => match number.filter(|_| error.get_ref().is_none()) {
            Some(number) => strerror(number)?,
            None => error.to_string(),
        },
    };
    Ok((number, words))
}

/// What the caller's own file object raised: an OSError of the same number that comes of it. What is no error but a wish to
/// end (KeyboardInterrupt, SystemExit) stays what it is.
fn of_file_object(
    py: Python<'_>,
    path: Option<&Path>,
    action: &str,
    raised: &PyErr,
) -> PyResult<PyErr> {
    if !raised.is_instance_of::<PyException>(py) {
        return Ok(raised.clone_ref(py));
    }
    let number = raised
        .value(py)
        .getattr("errno")
        .and_then(|number| number.extract::<Option<i32>>());
    let number = number.ok().flatten();
    let words = match raised.value(py).getattr("strerror") {
        Ok(words) if number.is_some() && !words.is_none() => words.to_string(),
        _ => raised.to_string(),
    };
    let error = numbered(number, path, format!("{action}: {words}"));
    error.set_cause(py, Some(raised.clone_ref(py)));
    Ok(error)
}

/// An OSError, of the class that goes with its number.
fn numbered(number: Option<i32>, path: Option<&Path>, text: String) -> PyErr {
    match (number, path) {
        (Some(number), Some(path)) => {
            PyOSError::new_err((number, text, path.as_os_str().to_os_string()))
        }
        (Some(number), None) => PyOSError::new_err((number, text)),
        (None, Some(path)) => PyOSError::new_err(format!("{}: {text}", seglake::text::path(path))),
        (None, None) => PyOSError::new_err(text),
    }
}
