//! Options by name: `limits=` of reading, `options=` of writing.

use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use seglake::format::{FORMATS, Format, FormatOption, OptionKind, Options, Setting};

use crate::numbers::wrong_type;

/// Options that formats declare, by their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(pub(crate) Vec<(String, Setting)>);

impl Settings {
    /// What a dict holds. Raises TypeError where an argument of this name is none.
    fn of_dict(object: &Bound<'_, PyAny>, argument: &str) -> PyResult<Self> {
        let given = object.cast::<PyDict>();
        let given = given.map_err(|_| wrong_type(argument, "a dict", object))?;
        let each = given.iter().map(|(name, value)| {
            let name: String = name.extract()?;
            let value = setting(&name, &value)?;
            Ok((name, value))
        });
        Ok(Self(each.collect::<PyResult<_>>()?))
    }
}

/// `limits=`.
impl<'py> FromPyObject<'_, 'py> for Settings {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Self::of_dict(&object, "limits")
    }
}

/// `options=`.
pub(crate) struct CreateOptions(pub(crate) Settings);

impl<'py> FromPyObject<'_, 'py> for CreateOptions {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Settings::of_dict(&object, "options").map(Self)
    }
}

impl<'py> IntoPyObject<'py> for &Settings {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let settings = PyDict::new(py);
        for (name, value) in &self.0 {
            match value {
                Setting::Flag(flag) => settings.set_item(name, flag)?,
                Setting::Number(number) => settings.set_item(name, number)?,
                other => {
                    return Err(PyNotImplementedError::new_err(format!(
                        "{other:?} has no form in Python: a bug in seglake"
                    )));
                }
            }
        }
        Ok(settings)
    }
}

/// The value of an option by name.
pub(crate) fn setting(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Setting> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().into());
    }
    let mut declared = FORMATS
        .iter()
        .flat_map(|own| [own.open_options, own.create_options]);
    if declared.any(|own| {
        own.iter()
            .any(|own| own.name == name && !is_set_by_name(own))
    }) {
        return Err(PyValueError::new_err(format!(
            "{name} is an argument of its own"
        )));
    }
    match value.extract::<i128>() {
        Ok(number) if number < 0 => Ok(i64::try_from(number).unwrap_or(i64::MIN).into()),
        Ok(number) => Ok(u64::try_from(number).unwrap_or(u64::MAX).into()),
        Err(_) => Err(wrong_type(name, "an int or a bool", value)),
    }
}

/// A limit that all formats have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum General {
    /// The largest record that is given out.
    RecordBytes,
    /// How many bytes of values a batch has.
    BatchBytes,
}

impl General {
    const fn name(self) -> &'static str {
        match self {
            Self::RecordBytes => "record_bytes",
            Self::BatchBytes => "batch_bytes",
        }
    }
}

impl Settings {
    /// Takes out one that all formats have: a number of at least 1.
    fn take(&mut self, general: General) -> PyResult<Option<u64>> {
        let name = general.name();
        let Some(place) = self.0.iter().position(|(own, _)| own == name) else {
            return Ok(None);
        };
        match self.0.remove(place).1 {
            Setting::Number(number) if number >= 1 => Ok(Some(number.unsigned_abs())),
            Setting::Number(_) => Err(PyValueError::new_err(format!("{name} is at least 1"))),
            _ => Err(PyTypeError::new_err(format!(
                "{name} must be an int, not bool"
            ))),
        }
    }
}

/// What `limits=` says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    /// The largest record that is given out, in bytes.
    pub(crate) record_bytes: Option<u64>,
    /// How many bytes of values a batch has.
    pub(crate) batch_bytes: Option<u64>,
    of_formats: Vec<(String, Setting)>,
}

impl Limits {
    /// What was given, to a function that has these of all formats' limits. Raises ValueError for names that are none, or that
    /// do not concern a format that is named.
    pub(crate) fn new(
        given: Option<Settings>,
        general: &[General],
        format: Option<&Format>,
    ) -> PyResult<Self> {
        let mut given = given.unwrap_or_default();
        let mut take = |one| match general.contains(&one) {
            true => given.take(one),
            false => Ok(None),
        };
        let (record_bytes, batch_bytes) = (take(General::RecordBytes)?, take(General::BatchBytes)?);
        for (name, _) in &given.0 {
            let is_known = FORMATS.iter().any(|format| is_limit(format, name));
            if let Some(format) = format.filter(|format| is_known && !is_limit(format, name)) {
                return Err(PyValueError::new_err(format!(
                    "{name} does not concern {} files",
                    format.name
                )));
            }
            if !is_known {
                let mut names: Vec<_> = general.iter().map(|own| own.name()).collect();
                let declared = FORMATS.iter().flat_map(|format| format.open_options);
                names.extend(
                    declared
                        .filter(|own| is_set_by_name(own))
                        .map(|own| own.name),
                );
                return Err(PyValueError::new_err(format!(
                    "limits has no {name:?}: there are {}",
                    names.join(", ")
                )));
            }
        }
        Ok(Self {
            record_bytes,
            batch_bytes,
            of_formats: given.0,
        })
    }

    /// Options with these limits, but for that of batches.
    pub(crate) fn apply(&self, mut options: Options) -> Options {
        if let Some(bytes) = self.record_bytes {
            options = options.record_bytes(bytes);
        }
        for (name, value) in &self.of_formats {
            options = options.set(name.clone(), *value);
        }
        options
    }
}

fn is_limit(format: &Format, name: &str) -> bool {
    let mut own = format.open_options.iter();
    own.any(|option| option.name == name && is_set_by_name(option))
}

/// Whether an option has no argument of its own.
pub(crate) const fn is_set_by_name(option: &FormatOption) -> bool {
    matches!(
        option.kind,
        OptionKind::Flag { .. } | OptionKind::Number { .. } | OptionKind::Bytes { .. }
    )
}
