//! `convert`.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use seglake::format::{Dialect, Filter, Format, WriteOptions, by_name};
use seglake::verbs::{self, ConvertOptions};

use crate::destination::{Destination, ERROR, Existing};
use crate::error::{OVERWRITE, raise, raise_new};
use crate::field_in::{FieldIn, from_python};
use crate::formats::by_extension;
use crate::keywords::with_keywords;
use crate::names;
use crate::options::Named;
use crate::parity::AUTO;
use crate::read_options::ReadArguments;
use crate::reader::Reader;
use crate::report::Report;
use crate::verify::{Progress, teller};
use crate::write_options::write_options;

/// What may be lost unless columns are named.
const NOTHING: Vec<String> = Vec::new();

with_keywords! {
/// Writes the records of a file to a new one of any format, which appears under its name when it is complete, and returns
/// what was found in the source.
///
/// source: as in `open`, or a Reader, of which its `filters`, `on_damage`, key and other arguments count, but not its columns. Damage
///     is an error unless the Reader skips it.
/// to: the format to write; None takes it from the extension of `destination`.
/// drop: columns that may be lost, by name; fields of structures as "clock.seq". What would be lost otherwise raises
///     ValueError with the names.
/// set: values for columns that the source does not have, the same for all records. None for `uuid` and `timestamp` makes new
///     ones of the present.
/// options: those of `create` for the new file, and its `key`: {"dialect": "draft-1.1"}.
/// if_exists: "error" raises FileExistsError where there is a file; "overwrite" replaces it once the new one is complete.
/// dry_run: do all of it except that the new file appears: to learn whether all records can be stored, and what would be lost.
/// progress: called as in `verify`, with bytes of the source.
///
/// Raises what `open` and `create` raise; ValueError for a record that the new format cannot hold, for a key that is probably
/// wrong, and for a Reader of a part, or of what a file grew by.
///
/// >>> seglake.convert("orders.active", "new.chunks", drop=["uuid", "type"]).records
/// 3
/// >>> paid = seglake.open("orders.active", filters="type = 'order.paid'")
/// >>> seglake.convert(paid, "paid.active").records
/// 1
fn convert(source: &Bound<'_, PyAny>, destination: Destination; ConvertArguments<'a> {
    to: Option<&'a str> = None,
    #[pyo3(from_py_with = names::drop)]
    drop: Vec<String> = NOTHING,
    set: Option<Py<PyDict>> = None,
    options: Option<Named> = None,
    if_exists: Existing = ERROR,
    dry_run: bool = false,
    progress: Option<Progress> = None,
}) -> Report;
}

impl ConvertArguments<'_> {
    fn convert(self, source: &Bound<'_, PyAny>, destination: Destination) -> PyResult<Report> {
        let py = source.py();
        let to = match self.to {
            Some(name) => by_name(name).map_err(|error| raise(py, error))?,
            None => by_extension(destination.as_ref(), "to")?,
        };
        let not_new = ["if_exists", "zero_torn_tail"];
        let (given, write) = (self.options.as_ref(), WriteOptions::default());
        let write = write_options(py, to, given, &not_new, None, write)?;
        let set = set_values(
            self.set.as_ref().map(|own| own.bind(py)),
            to,
            write.dialect.unwrap_or_default(),
        )?;
        let (source, options) = match source.cast::<Reader>() {
            Ok(reader) => reader.get().whole()?,
            Err(_) => {
                let given = ReadArguments::default().sidecar(AUTO).open(source)?.0;
                // Of a segment of a log that was sealed since it was listed, all is converted.
                (given.source, given.options.filter(Filter::default()))
            }
        };
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
                .if_exists(self.if_exists.0)
                .dry_run(self.dry_run);
            verbs::convert(source, &options, destination.as_ref(), &conversion, tell)
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
