//! The fields of a record to be written, from whatever holds one in Python.

use std::collections::HashSet;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};
use seglake::format::{Column, ColumnKind};

use crate::field_in::{FieldIn, from_python};
use crate::record::Record;

/// Columns that readers add to those of a format: a writer takes them as said already.
const BESIDE: [&str; 3] = ["path", "position", "cause"];

/// The fields that may come without their names, in this order, where records have them.
const UNNAMED: [&str; 2] = ["type", "value"];

/// Refuses a tuple that is not of a type and a value.
pub(crate) fn check_pair(pair: &Bound<'_, PyTuple>) -> PyResult<()> {
    match pair.len() {
        2 => Ok(()),
        len => Err(PyTypeError::new_err(format!(
            "a record as a tuple has two fields, type and value, not {len}"
        ))),
    }
}

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

    /// The fields of what `write` is called with: a record or a mapping, or the fields, of which the first may have no names.
    pub(crate) fn of_call(
        &self,
        given: &Bound<'_, PyTuple>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<FieldIn<'static>>> {
        // Made for this call, so that it may be added to.
        let named = match fields {
            Some(fields) => fields.clone(),
            None => PyDict::new(given.py()),
        };
        if given.is_empty() {
            return self.of_mapping(named.as_mapping());
        }
        if let Ok(record) = given.get_item(0)
            && (record.is_instance_of::<Record>() || record.cast::<PyMapping>().is_ok())
        {
            if given.len() > 1 || fields.is_some() {
                return Err(PyTypeError::new_err(
                    "give a record or its fields, not both",
                ));
            }
            return self.of_row(&record);
        }
        if given.len() > UNNAMED.len() || !UNNAMED.iter().all(|name| self.has(name)) {
            let names: Vec<_> = self.columns.iter().map(|column| column.name).collect();
            return Err(PyTypeError::new_err(format!(
                "expected a Record, a mapping, or fields by their names ({}){}",
                names.join(", "),
                if self.has("type") {
                    "; only type and value may come without"
                } else {
                    ""
                }
            )));
        }
        for (name, value) in UNNAMED.iter().zip(given) {
            if named.contains(name)? {
                return Err(PyTypeError::new_err(format!("{name} is given twice")));
            }
            named.set_item(name, value)?;
        }
        self.of_mapping(named.as_mapping())
    }

    /// The fields of a row of a batch: a record, a mapping, or a tuple of type and value.
    pub(crate) fn of_row(&self, row: &Bound<'_, PyAny>) -> PyResult<Vec<FieldIn<'static>>> {
        if let Ok(record) = row.cast::<Record>() {
            return self.of_record(row.py(), record.get());
        }
        if let Ok(pair) = row.cast::<PyTuple>() {
            check_pair(pair)?;
            return self.of_call(pair, None);
        }
        let mapping = row.cast::<PyMapping>();
        self.of_mapping(mapping.map_err(|_| {
            PyTypeError::new_err("a record is a Record, a mapping, or a tuple of type and value")
        })?)
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
        let field = |column: &Column| match record.raw(py, column.name)? {
            Some(value) => from_python(&value, column.kind, column.name),
            None => Ok(FieldIn::Null),
        };
        self.columns.iter().map(field).collect()
    }

    /// The fields of a mapping as `Record.to_dict` gives it: of text its bytes go first, of times their microseconds.
    fn of_mapping(&self, mapping: &Bound<'_, PyMapping>) -> PyResult<Vec<FieldIn<'static>>> {
        let exact = |column: &Column| match column.kind {
            ColumnKind::Text => Some(format!("{}_bytes", column.name)),
            ColumnKind::Timestamp => Some(format!("{}_us", column.name)),
            _ => None,
        };
        for key in mapping.keys()?.iter() {
            let key: String = key.extract()?;
            let is_exact = |column: &Column| exact(column).as_ref() == Some(&key);
            let known = BESIDE.contains(&key.as_str()) || self.has(&key);
            if !known && !self.columns.iter().any(is_exact) {
                return Err(self.unknown(&key));
            }
        }
        let field = |column: &Column| {
            let exact = exact(column);
            for name in exact.as_deref().into_iter().chain([column.name]) {
                if mapping.contains(name)? {
                    return from_python(&mapping.get_item(name)?, column.kind, name);
                }
            }
            Ok(FieldIn::Null)
        };
        self.columns.iter().map(field).collect()
    }
}
