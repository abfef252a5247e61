//! The keyword arguments of writing.

use std::borrow::Cow;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use seglake::OrBug;
use seglake::format::{Dialect, Format, WriteOptions};

use crate::error::raise;
use crate::interrupt::signals;
use crate::key;

/// What `create` and `convert` take; `None` is the default.
#[derive(Default)]
pub(crate) struct WriteArguments<'a> {
    pub(crate) key: Option<Cow<'a, [u8]>>,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) append: Option<bool>,
    pub(crate) overwrite: Option<bool>,
    pub(crate) preallocate: Option<u64>,
    pub(crate) zero_torn_tail: Option<bool>,
    pub(crate) trailer: Option<bool>,
    pub(crate) version: Option<u16>,
    pub(crate) dialect: Option<Cow<'a, str>>,
    pub(crate) chunk_bytes: Option<u64>,
    pub(crate) chunk_records: Option<u32>,
    pub(crate) level: Option<i32>,
    pub(crate) index: Option<bool>,
    pub(crate) memory_bytes: Option<u64>,
}

impl WriteArguments<'static> {
    /// The same from a dict of keyword arguments.
    pub(crate) fn from_dict(given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut arguments = Self::default();
        for (name, value) in given.into_iter().flatten() {
            let name: String = name.extract()?;
            match name.as_str() {
                "key" => arguments.key = value.extract::<Option<Vec<u8>>>()?.map(Cow::Owned),
                "key_file" => arguments.key_file = value.extract()?,
                "preallocate" => arguments.preallocate = value.extract()?,
                "trailer" => arguments.trailer = value.extract()?,
                "version" => arguments.version = value.extract()?,
                "dialect" => arguments.dialect = value.extract::<Option<String>>()?.map(Cow::Owned),
                "chunk_bytes" => arguments.chunk_bytes = value.extract()?,
                "chunk_records" => arguments.chunk_records = value.extract()?,
                "level" => arguments.level = value.extract()?,
                "index" => arguments.index = value.extract()?,
                "memory_bytes" => arguments.memory_bytes = value.extract()?,
                _ => {
                    return Err(PyValueError::new_err(format!(
                        "{name:?} is no option for a new file"
                    )));
                }
            }
        }
        Ok(arguments)
    }
}

impl WriteArguments<'_> {
    /// The options, where all that was given concerns the format. Raises ValueError otherwise.
    pub(crate) fn options(self, py: Python<'_>, format: &Format) -> PyResult<WriteOptions> {
        let given = [
            ("key", self.key.is_some() || self.key_file.is_some()),
            ("append", self.append.is_some()),
            ("overwrite", self.overwrite.is_some()),
            ("preallocate", self.preallocate.is_some()),
            ("zero_torn_tail", self.zero_torn_tail.is_some()),
            ("trailer", self.trailer.is_some()),
            ("version", self.version.is_some()),
            ("dialect", self.dialect.is_some()),
            ("chunk_bytes", self.chunk_bytes.is_some()),
            ("chunk_records", self.chunk_records.is_some()),
            ("level", self.level.is_some()),
            ("index", self.index.is_some()),
            ("memory_bytes", self.memory_bytes.is_some()),
        ];
        let foreign = given
            .iter()
            .find(|(name, given)| *given && !format.create_options.contains(name));
        if let Some((name, _)) = foreign {
            return Err(PyValueError::new_err(format!(
                "{name} does not concern {} files: their options are {}",
                format.name,
                format.create_options.join(", ")
            )));
        }
        let (keys, _) = key::keys(py, self.key.as_deref(), None, self.key_file.as_deref())?;
        let key = keys.first().or_bug("a key where none was given, too");
        let key = key.map_err(|error| raise(py, error))?;
        let dialect = self.dialect.as_deref().map(Dialect::by_name).transpose();
        let default = WriteOptions::default();
        Ok(WriteOptions::default()
            .key(*key)
            .append(self.append.unwrap_or(default.append))
            .overwrite(self.overwrite.unwrap_or(default.overwrite))
            .preallocate(self.preallocate.unwrap_or(default.preallocate))
            .zero_torn_tail(self.zero_torn_tail.unwrap_or(default.zero_torn_tail))
            .trailer(self.trailer.unwrap_or(default.trailer))
            .version(self.version.unwrap_or(default.version))
            .dialect(
                dialect
                    .map_err(|error| raise(py, error))?
                    .unwrap_or(default.dialect),
            )
            .chunk_bytes(self.chunk_bytes.unwrap_or(default.chunk_bytes))
            .chunk_records(self.chunk_records.unwrap_or(default.chunk_records))
            .level(self.level.unwrap_or(default.level))
            .index(self.index.unwrap_or(default.index))
            .memory_bytes(self.memory_bytes.unwrap_or(default.memory_bytes))
            .interrupt(signals()))
    }
}
