//! The fields of a record to be written, from whatever holds one in Python.

use std::collections::HashSet;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use seglake::format::{Column, ColumnKind};

use crate::field_in::{FieldIn, from_python};
use crate::record::Record;

/// Columns that readers add to those of a format: a writer takes them as said already.
const BESIDE: [&str; 3] = ["path", "position", "cause"];

/// What records to be written have.
pub(crate) struct Fields {
    pub(crate) format: &'static str,
    pub(crate) columns: &'static [Column],
}

impl Fields {
    pub(crate) const fn new(format: &'static str, columns: &'static [Column]) -> Self {
        Self { format, columns }
    }

    /// Refuses names that are no columns, or come twice: what they hold would be lost.
    pub(crate) fn check_names<'a>(&self, names: impl Iterator<Item = &'a str>) -> PyResult<()> {
        let mut known = HashSet::new();
        for name in names.filter(|name| !BESIDE.contains(name)) {
            if !self.has(name) {
                return Err(self.unknown(name));
            }
            if !known.insert(name) {
                return Err(PyValueError::new_err(format!(
                    "expected one column {name}, found two, one of which would be lost: drop it first"
                )));
            }
        }
        Ok(())
    }

    /// The fields of a record, a mapping, or keyword arguments.
    pub(crate) fn of_arguments<'py>(
        &self,
        py: Python<'py>,
        record: Option<&Bound<'py, PyAny>>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<FieldIn<'static>>> {
        match (record, fields) {
            (None, Some(fields)) => self.of_mapping(fields.as_mapping()),
            (None, None) => self.of_mapping(PyDict::new(py).as_mapping()),
            (Some(_), Some(_)) => Err(PyTypeError::new_err(
                "give a record or its fields, not both",
            )),
            (Some(record), None) => {
                match record.cast::<Record>() {
                    Ok(record) => self.of_record(py, record.get()),
                    Err(_) => self.of_mapping(record.cast::<PyMapping>().map_err(|_| {
                        PyTypeError::new_err("record must be a Record or a mapping")
                    })?),
                }
            }
        }
    }

    /// What would be lost: names that are no columns.
    fn unknown(&self, name: &str) -> PyErr {
        let names: Vec<_> = self.columns.iter().map(|column| column.name).collect();
        PyValueError::new_err(format!(
            "{} records have no {name:?}, so it would be lost: drop it first. They have {}",
            self.format,
            names.join(", ")
        ))
    }

    fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    /// The fields of a record of this or another format.
    fn of_record(&self, py: Python<'_>, record: &Record) -> PyResult<Vec<FieldIn<'static>>> {
        let lost = record
            .columns()
            .iter()
            .find(|column| !self.has(column.name));
        if let Some(lost) = lost {
            return Err(self.unknown(lost.name));
        }
        let field = |column: &Column| {
            if record.columns().iter().any(|own| own.name == column.name) {
                from_python(&record.raw(py, column.name)?, column.kind, column.name)
            } else {
                Ok(FieldIn::Null)
            }
        };
        self.columns.iter().map(field).collect()
    }

    /// The fields of a mapping as `Record.to_dict` gives it: of text its bytes go first, of times their microseconds.
    fn of_mapping(&self, mapping: &Bound<'_, PyMapping>) -> PyResult<Vec<FieldIn<'static>>> {
        for key in mapping.keys()?.iter() {
            let key: String = key.extract()?;
            let derived = |column: &Column| match column.kind {
                ColumnKind::Text => key.strip_suffix("_bytes") == Some(column.name),
                ColumnKind::Timestamp => key.strip_suffix("_us") == Some(column.name),
                _ => false,
            };
            let known = BESIDE.contains(&key.as_str()) || self.has(&key);
            if !known && !self.columns.iter().any(derived) {
                return Err(self.unknown(&key));
            }
        }
        let field = |column: &Column| {
            let exact = match column.kind {
                ColumnKind::Text => format!("{}_bytes", column.name),
                ColumnKind::Timestamp => format!("{}_us", column.name),
                _ => String::new(),
            };
            for name in [exact.as_str(), column.name] {
                if !name.is_empty() && mapping.contains(name)? {
                    return from_python(&mapping.get_item(name)?, column.kind, name);
                }
            }
            Ok(FieldIn::Null)
        };
        self.columns.iter().map(field).collect()
    }
}
