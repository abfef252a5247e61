//! Options by name: `options=` of reading and of writing.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
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
    match value.extract::<i128>() {
        Ok(number) if number < 0 => Ok(i64::try_from(number).unwrap_or(i64::MIN).into()),
        Ok(number) => Ok(u64::try_from(number).unwrap_or(u64::MAX).into()),
        Err(_) => Err(wrong_type(name, "an int or a bool", value)),
    }
}

/// The options of reading that all formats have.
const GENERAL: &[&str] = &["record_bytes", "batch_bytes"];

/// What `options=` of reading says.
#[derive(Default)]
pub(crate) struct Reading<'py> {
    /// The largest record that is given out, in bytes.
    record_bytes: Option<u64>,
    /// How many bytes of values a batch has.
    pub(crate) batch_bytes: Option<u64>,
    pub(crate) index: Option<Bound<'py, PyAny>>,
    dialect: Option<Dialect>,
    of_formats: Vec<(String, Setting)>,
}

impl<'py> Reading<'py> {
    /// What was given, to a function that has those of all formats or not. Raises ValueError for names that are none, or that do not
    /// concern a format that is named: where it is to be told, they are for the files that they concern.
    pub(crate) fn new(
        py: Python<'py>,
        given: Option<&Named>,
        general: bool,
        format: Option<&Format>,
    ) -> PyResult<Self> {
        let mut own = Self::default();
        for (name, value) in Named::given(given, py)? {
            check(&name, general, format)?;
            match name.as_str() {
                "record_bytes" => own.record_bytes = Some(bytes(&name, &value)?),
                "batch_bytes" => own.batch_bytes = Some(bytes(&name, &value)?),
                "dialect" => own.dialect = Some(dialect(&value)?),
                "index" => own.index = Some(value),
                _ => {
                    let value = setting(&name, &value)?;
                    own.of_formats.push((name, value));
                }
            }
        }
        Ok(own)
    }

    /// Options with these, but for those of batches and of an index.
    pub(crate) fn apply(&self, mut options: Options) -> Options {
        if let Some(bytes) = self.record_bytes {
            options = options.record_bytes(bytes);
        }
        for (name, value) in &self.of_formats {
            options = options.set(name.clone(), *value);
        }
        options.dialect(self.dialect.unwrap_or_default())
    }
}

/// `dialect` among the options.
pub(crate) fn dialect(value: &Bound<'_, PyAny>) -> PyResult<Dialect> {
    let name: String = value
        .extract()
        .map_err(|_| wrong_type("dialect", "str", value))?;
    name.parse().map_err(|error| raise(value.py(), error))
}

/// A number of bytes of at least 1.
fn bytes(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    match setting(name, value)? {
        Setting::Number(number) if number >= 1 => Ok(number.unsigned_abs()),
        Setting::Number(_) => Err(PyValueError::new_err(format!("{name} is at least 1"))),
        _ => Err(PyTypeError::new_err(format!(
            "{name} must be an int, not bool"
        ))),
    }
}

/// Refuses a name that no format reads with, or not this one.
fn check(name: &str, general: bool, format: Option<&Format>) -> PyResult<()> {
    let general = if general { GENERAL } else { &[] };
    let reads_with = |format: &Format| of(format).any(|own| own.name == name);
    let is_known = FORMATS.iter().any(|own| reads_with(own));
    if general.contains(&name) || (is_known && format.is_none_or(reads_with)) {
        return Ok(());
    }
    let mut names = general.to_vec();
    match format {
        Some(format) => names.extend(of(format).map(|own| own.name)),
        None => names.extend(FORMATS.iter().flat_map(|own| of(own)).map(|own| own.name)),
    }
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
