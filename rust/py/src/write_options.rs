//! The keyword arguments of writing.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use seglake::OrBug;
use seglake::format::{Format, WriteOptions};

use crate::error::raise;
use crate::interrupt::signals;
use crate::key::{self, KeyArgument};
use crate::options::{Named, dialect, setting};

/// The options of a new file: the given ones, those that are set already, and the key of `key` or among the former. Raises ValueError for
/// one of `arguments`, which are arguments of their own.
pub(crate) fn write_options(
    py: Python<'_>,
    format: &Format,
    given: Option<&Named>,
    arguments: &[&str],
    mut key: Option<KeyArgument>,
    set: WriteOptions,
) -> PyResult<WriteOptions> {
    let core = |error| raise(py, error);
    let mut options = set.interrupt(signals());
    for (name, value) in Named::given(given, py)? {
        match name.as_str() {
            name if arguments.contains(&name) => {
                return Err(PyValueError::new_err(format!(
                    "{name} is an argument of its own, not one of `options`"
                )));
            }
            "key" => key = value.extract()?,
            "dialect" => options = options.dialect(Some(dialect(&value)?)),
            name => options = options.set(name.to_owned(), setting(name, &value)?),
        }
    }
    // The key in the environment is for the formats that have one.
    if key.is_some() || format.writes_with("key") {
        let keys = key::keys(py, key.as_ref())?;
        let key = keys.first().or_bug("a key where none was given, too");
        options = options.key(*key.map_err(core)?);
    }
    options.check(format).map_err(core)?;
    Ok(options)
}
