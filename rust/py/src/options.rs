//! Options by name: `options=` of reading and of writing.

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use seglake::columns::Limits;
use seglake::format::{Dialect, FORMATS, Format, FormatOption, OptionKind, Options, Setting};

use crate::error::raise;
use crate::numbers::wrong_type;

/// `options=`, in a dict of its own: whoever gave it may change the other one.
#[derive(IntoPyObject, IntoPyObjectRef)]
pub(crate) struct Named(Py<PyDict>);

impl<'py> FromPyObject<'_, 'py> for Named {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let given = object.cast::<PyDict>();
        let given = given.map_err(|_| wrong_type("options", "a dict", &object))?;
        Ok(Self(given.copy()?.unbind()))
    }
}

impl Named {
    /// The names with their values. None is the default of each.
    pub(crate) fn given<'py>(
        named: Option<&Self>,
        py: Python<'py>,
    ) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let given = named.into_iter().flat_map(|named| named.0.bind(py));
        let given = given.filter(|(_, value)| !value.is_none());
        given
            .map(|(name, value)| Ok((name.extract()?, value)))
            .collect()
    }
}

/// The value of an option that has no field of its own.
pub(crate) fn setting(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Setting> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().into());
    }
    match value.extract::<i64>() {
        Ok(number) => Ok(number.into()),
        // What is too large for that is refused as that is, or as good as no limit.
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            Ok(if value.lt(0)? { i64::MIN } else { i64::MAX }.into())
        }
        Err(_) => Err(wrong_type(name, "an int or a bool", value)),
    }
}

/// The options of reading that all formats have.
static GENERAL: [FormatOption; 2] = [
    FormatOption::bytes(
        "record_bytes",
        Options::RECORD_BYTES,
        [1, u64::MAX],
        "the largest record that is given out",
    ),
    FormatOption::bytes(
        "batch_bytes",
        Limits::BYTES as u64,
        [1, u64::MAX],
        "how many bytes of values a batch has",
    ),
];

/// What `options=` of reading says.
pub(crate) struct Reading<'py> {
    /// Without the index, which is not open.
    pub(crate) options: Options,
    /// The bounds of a batch.
    pub(crate) limits: Limits,
    pub(crate) index: Option<Bound<'py, PyAny>>,
}

impl<'py> Reading<'py> {
    /// What was given, to a function that has those of all formats or not. Raises ValueError for names that are none, or that do not
    /// concern a format that is named: where it is to be told, they are for the files that they concern. Also for values that the options
    /// do not take.
    pub(crate) fn new(
        py: Python<'py>,
        given: Option<&Named>,
        general: bool,
        format: Option<&Format>,
    ) -> PyResult<Self> {
        let (mut options, mut limits) = (Options::default(), Limits::default());
        let mut index = None;
        for (name, value) in Named::given(given, py)? {
            let option = declared(&name, general, format)?;
            match option.kind {
                OptionKind::Name(_) => options = options.dialect(dialect(&value)?),
                OptionKind::Index => index = Some(value),
                _ => {
                    let value = setting(&name, &value)?;
                    option.check(value).map_err(|error| raise(py, error))?;
                    match (name.as_str(), value) {
                        ("record_bytes", Setting::Number(bytes)) => {
                            options = options.record_bytes(bytes.unsigned_abs());
                        }
                        ("batch_bytes", Setting::Number(bytes)) => {
                            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                            limits = limits.bytes(bytes);
                        }
                        _ => options = options.set(name, value),
                    }
                }
            }
        }
        Ok(Self {
            options,
            limits,
            index,
        })
    }
}

/// `dialect` among the options.
pub(crate) fn dialect(value: &Bound<'_, PyAny>) -> PyResult<Dialect> {
    let name: String = value
        .extract()
        .map_err(|_| wrong_type("dialect", "str", value))?;
    name.parse().map_err(|error| raise(value.py(), error))
}

/// The option of this name that is taken. Refuses a name that no format reads with, or not this one.
fn declared(name: &str, general: bool, format: Option<&Format>) -> PyResult<&'static FormatOption> {
    let general: &[_] = if general { &GENERAL } else { &[] };
    let all: Vec<_> = FORMATS.iter().flat_map(|own| of(own)).collect();
    let is_known = all.iter().any(|option| option.name == name);
    let own = format.map_or(all, |format| of(format).collect());
    let taken = general.iter().chain(own);
    if let Some(option) = taken.clone().find(|option| option.name == name) {
        return Ok(option);
    }
    let names: Vec<_> = taken.map(|option| option.name).collect();
    let there_are = match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    };
    Err(PyValueError::new_err(match format {
        Some(format) if is_known => {
            let format = format.name;
            format!(
                "{name} does not concern {format} files: options of reading them here are {there_are}"
            )
        }
        _ => format!("there is no option {name:?} here: there are {there_are}"),
    }))
}

/// The options that a format is read with, without those that are arguments.
fn of(format: &Format) -> impl Iterator<Item = &'static FormatOption> {
    let declared = format.open_options.iter();
    declared.filter(|option| option.kind != OptionKind::Key)
}
