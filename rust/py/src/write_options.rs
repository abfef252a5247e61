//! The keyword arguments of writing.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use seglake::OrBug;
use seglake::format::{Dialect, Format, IfExists, Setting, WriteOptions};

use crate::error::raise;
use crate::interrupt::signals;
use crate::key::{self, KeyArgument};
use crate::options::{Named, dialect, setting};

/// What `create` and `convert` take; `None` is the default.
#[derive(Default)]
pub(crate) struct WriteArguments {
    pub(crate) key: Option<KeyArgument>,
    dialect: Option<Dialect>,
    pub(crate) if_exists: IfExists,
    settings: Vec<(String, Setting)>,
}

impl WriteArguments {
    /// What `options=` says. Options of formats that are among `arguments`, which `create` takes by themselves, raise ValueError.
    pub(crate) fn new(py: Python<'_>, given: Option<&Named>, arguments: &[&str]) -> PyResult<Self> {
        let mut own = Self::default();
        for (name, value) in Named::given(given, py)? {
            match name.as_str() {
                name if arguments.contains(&name) => {
                    return Err(PyValueError::new_err(format!(
                        "{name} is an argument of its own, not one of `options`"
                    )));
                }
                "key" => own.key = value.extract()?,
                "dialect" => own.dialect = Some(dialect(&value)?),
                name => own.set(name, setting(name, &value)?),
            }
        }
        Ok(own)
    }

    pub(crate) fn set(&mut self, name: &str, value: Setting) {
        self.settings.push((name.to_owned(), value));
    }

    /// The options. Raises ValueError where the core refuses them.
    pub(crate) fn options(self, py: Python<'_>, format: &Format) -> PyResult<WriteOptions> {
        let core = |error| raise(py, error);
        let mut options = WriteOptions::default()
            .if_exists(self.if_exists)
            .dialect(self.dialect)
            .interrupt(signals());
        // The key in the environment is for the formats that have one.
        if self.key.is_some() || format.writes_with("key") {
            let keys = key::keys(py, self.key.as_ref())?;
            let key = keys.first().or_bug("a key where none was given, too");
            options = options.key(*key.map_err(core)?);
        }
        for (name, value) in self.settings {
            options = options.set(name, value);
        }
        options.check(format).map_err(core)?;
        Ok(options)
    }
}
