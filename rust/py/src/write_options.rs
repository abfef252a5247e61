//! The keyword arguments of writing.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use seglake::OrBug;
use seglake::format::{Dialect, Format, IfExists, Setting, WriteOptions};

use crate::error::raise;
use crate::interrupt::signals;
use crate::key::{self, KeyArgument};
use crate::limits::{Settings, setting};

/// What `create` and `convert` take; `None` is the default.
#[derive(Default)]
pub(crate) struct WriteArguments {
    pub(crate) key: Option<KeyArgument>,
    pub(crate) dialect: Option<String>,
    pub(crate) if_exists: IfExists,
    pub(crate) settings: Settings,
}

impl WriteArguments {
    /// The same from a dict, where all are options by name.
    pub(crate) fn from_dict(given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut arguments = Self::default();
        for (name, value) in given.into_iter().flatten() {
            let name: String = name.extract()?;
            match name.as_str() {
                "key" => arguments.key = value.extract()?,
                "dialect" => arguments.dialect = value.extract()?,
                _ => arguments.set(&name, setting(&name, &value)?),
            }
        }
        Ok(arguments)
    }

    pub(crate) fn set(&mut self, name: &str, value: Setting) {
        self.settings.0.push((name.to_owned(), value));
    }

    /// The options. Raises ValueError where the core refuses them.
    pub(crate) fn options(self, py: Python<'_>, format: &Format) -> PyResult<WriteOptions> {
        let core = |error| raise(py, error);
        let dialect = self
            .dialect
            .as_deref()
            .map(str::parse::<Dialect>)
            .transpose();
        let mut options = WriteOptions::default()
            .if_exists(self.if_exists)
            .dialect(dialect.map_err(core)?)
            .interrupt(signals());
        // The key in the environment is for the formats that have one.
        if self.key.is_some() || format.writes_with("key") {
            let (keys, _) = key::keys(py, self.key.as_ref())?;
            let key = keys.first().or_bug("a key where none was given, too");
            options = options.key(*key.map_err(core)?);
        }
        for (name, value) in self.settings.0 {
            options = options.set(name, value);
        }
        options.check(format).map_err(core)?;
        Ok(options)
    }
}
