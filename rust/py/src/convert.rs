//! `convert`.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use seglake::format::{Dialect, Format, by_name};
use seglake::verbs::{self, ConvertOptions};

use crate::destination::{Destination, ERROR, Existing};
use crate::error::{OVERWRITE, raise, raise_new};
use crate::field_in::{FieldIn, from_python};
use crate::filters::Filters;
use crate::formats::by_extension;
use crate::key::KeyArgument;
use crate::keywords::with_keywords;
use crate::limits::{General, Settings};
use crate::names;
use crate::open::on_damage;
use crate::parity::{AUTO, SidecarArgument};
use crate::read_options::ReadArguments;
use crate::remote::within;
use crate::report::Report;
use crate::verify::teller;
use crate::write_options::WriteArguments;

/// What may be lost unless columns are named.
const NOTHING: Vec<String> = Vec::new();

with_keywords! {
/// Writes the records of a file to a new one of any format, which appears under its name when it is complete, and returns
/// what was found in the source.
///
/// to: the format to write; None takes it from the extension of `path`.
/// drop: columns that may be lost, by name; fields of structures as "clock.seq". What would be lost otherwise raises
///     ValueError with the names.
/// set: values for columns that the source does not have, the same for all records. None for `uuid` and `timestamp` makes new
///     ones of the present.
/// options: options of `create` for the new file, for example {"dialect": "draft-1.1"}: all but `if_exists`.
/// if_exists: "error" raises FileExistsError where there is a file; "overwrite" replaces it once the new one is complete.
/// on_damage: "raise" converts nothing of a damaged file, "skip" what is sound of it.
/// sidecar: the parity sidecar of the source, as in `verify`. What differs from what it covers is damage.
/// progress: called as in `verify`, with bytes of the source. The other arguments are as in `open`.
///
/// Raises what `open` and `create` raise; ValueError for a record that the new format cannot hold, and for a key that is
/// probably wrong.
///
/// >>> seglake.convert("orders.active", "new.chunks", drop=["uuid", "type"]).records
/// 3
/// >>> seglake.open("new.chunks").get(0).value
/// b'{"order": 1}'
#[pyo3(text_signature = "(source, path, *, to=None, drop=(), set=None, options=None, format=None, dialect=None, filters=None, on_damage=\"raise\", key=None, sidecar=\"auto\", if_exists=\"error\", limits=None, progress=None, filesystem=None, storage_options=None)")]
fn convert(source: &Bound<'_, PyAny>, path: Destination; ConvertArguments<'a> {
    to: Option<&'a str> = None,
    #[pyo3(from_py_with = names::drop)]
    drop: Vec<String> = NOTHING,
    set: Option<Py<PyDict>> = None,
    options: Option<Py<PyDict>> = None,
    format: Option<&'a str> = None,
    dialect: Option<&'a str> = None,
    filters: Option<Filters> = None,
    on_damage: &'a str = "raise",
    key: Option<KeyArgument> = None,
    sidecar: Option<SidecarArgument> = AUTO,
    if_exists: Existing = ERROR,
    limits: Option<Settings> = None,
    progress: Option<Py<PyAny>> = None,
    filesystem: Option<Py<PyAny>> = None,
    storage_options: Option<Py<PyAny>> = None,
}) -> Report;
}

impl ConvertArguments<'_> {
    fn convert(self, source: &Bound<'_, PyAny>, path: Destination) -> PyResult<Report> {
        let py = source.py();
        let on_damage = on_damage(self.on_damage)?;
        let to = match self.to {
            Some(name) => by_name(name).map_err(|error| raise(py, error))?,
            None => by_extension(path.as_ref(), "to")?,
        };
        let write = WriteArguments::from_dict(self.options.as_ref().map(|own| own.bind(py)))?
            .options(py, to)?;
        let set = set_values(
            self.set.as_ref().map(|own| own.bind(py)),
            to,
            write.dialect.unwrap_or_default(),
        )?;
        let within = within(source, &self.filesystem, &self.storage_options)?;
        let arguments = ReadArguments {
            format: self.format,
            dialect: self.dialect,
            key: self.key,
            limits: self.limits,
            sidecar: self.sidecar,
            general: &[General::RecordBytes],
            filesystem: within.as_ref(),
            ..ReadArguments::default()
        };
        let (given, format) = arguments.open(source)?;
        let (source, options) = (given.source, given.options);
        let filter = Filters::filter(self.filters.as_ref(), py, format, options.dialect)?;
        let options = options.on_damage(on_damage).filter(filter);
        let tell = teller(self.progress, source.len());
        let converted = py.detach(|| {
            let set: Vec<_> = set
                .iter()
                .map(|(name, value)| (name.clone(), value.value()))
                .collect();
            let conversion = ConvertOptions::to(to)
                .write(write)
                .drop(&self.drop)
                .set(&set)
                .if_exists(self.if_exists.0);
            verbs::convert(source, &options, path.as_ref(), &conversion, tell)
        });
        converted
            .map(Report)
            .map_err(|error| raise_new(py, error, OVERWRITE))
    }
}

/// Values by the kinds of the columns that they are for. Names of no column are left for the conversion to refuse.
fn set_values(
    set: Option<&Bound<'_, PyDict>>,
    to: &Format,
    dialect: Dialect,
) -> PyResult<Vec<(String, FieldIn<'static>)>> {
    let columns = to.columns(dialect);
    let mut values = Vec::new();
    for (name, value) in set.into_iter().flatten() {
        let name: String = name.extract()?;
        let column = columns.iter().find(|column| column.name == name);
        let value = match column {
            Some(column) => from_python(&value, column.kind, &name)?,
            None => FieldIn::Null,
        };
        values.push((name, value));
    }
    Ok(values)
}
