//! What the formats are, for Python: the library's own table.

use std::path::Path;

use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use seglake::format::{Column, FORMATS, Format, FormatOption, OptionKind, Options};

use crate::options::{Named, Reading};
use crate::typed::{typed, typed_by_name};

/// The formats that there are: a tuple of Formats, in which one is also found by its name.
///
/// options: as in `open`: the columns of an oplog depend on its `dialect`.
///
/// >>> [format.name for format in seglake.formats()]
/// ['active', 'sealed', 'tenant', 'chunked', 'oplog', 'tfrecord']
/// >>> seglake.formats()["chunked"].identifier
/// ('offset',)
#[pyfunction]
#[pyo3(signature = (*, options=None))]
pub(crate) fn formats(py: Python<'_>, options: Option<Named>) -> PyResult<Bound<'_, PyAny>> {
    let options = Reading::new(py, options.as_ref(), true, None)?.options;
    let formats = FORMATS.iter().map(|format| object(py, format, &options));
    let formats = PyTuple::new(py, formats.collect::<PyResult<Vec<_>>>()?)?;
    typed(py, "Formats", (formats,))
}

/// The format whose extension a path has. `argument`: what names the format instead.
pub(crate) fn by_extension(path: &Path, argument: &str) -> PyResult<&'static Format> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let found = FORMATS
        .iter()
        .find(|format| Some(format.extension) == extension);
    found.copied().ok_or_else(|| {
        let known: Vec<_> = FORMATS
            .iter()
            .map(|format| format!(".{}", format.extension))
            .collect();
        PyValueError::new_err(format!(
            "{}: the extension is none of {}: name the format with `{argument}`",
            seglake::text::path(path),
            known.join(", ")
        ))
    })
}

/// A `seglake.Format`.
fn object<'py>(py: Python<'py>, format: &Format, options: &Options) -> PyResult<Bound<'py, PyAny>> {
    let column = |own: &Column| {
        let facts = (
            own.name,
            own.kind.as_str(),
            own.optional,
            own.order.as_str(),
        );
        typed(py, "Column", facts)
    };
    let columns = format.columns(options.dialect).iter().map(column);
    let fields = PyDict::new(py);
    fields.set_item("name", format.name)?;
    fields.set_item("extension", format.extension)?;
    fields.set_item("index_extension", format.index_extension())?;
    let columns = PyTuple::new(py, columns.collect::<PyResult<Vec<_>>>()?)?;
    fields.set_item("columns", columns)?;
    fields.set_item("identifier", PyTuple::new(py, format.identifier)?)?;
    fields.set_item("open_options", options_of(py, format.open_options)?)?;
    fields.set_item("create_options", options_of(py, format.create_options)?)?;
    fields.set_item("splittable", format.is_splittable())?;
    fields.set_item("checked", format.checked.as_str())?;
    fields.set_item("marks_damage", format.marks_damage)?;
    typed_by_name("Format", &fields)
}

fn made<'py>(py: Python<'py>, option: impl PyCallArgs<'py>) -> PyResult<Bound<'py, PyAny>> {
    typed(py, "FormatOption", option)
}

/// `seglake.types.FormatOption`s by their names.
fn options_of<'py>(py: Python<'py>, options: &[FormatOption]) -> PyResult<Bound<'py, PyDict>> {
    let by_name = PyDict::new(py);
    for option in options {
        let (name, about) = (option.name, option.about);
        let made = match option.kind {
            OptionKind::Flag { default } => made(py, (name, "flag", about, default)),
            OptionKind::Number {
                default,
                least,
                most,
            } => made(py, (name, "number", about, default, least, most)),
            OptionKind::Bytes {
                default,
                least,
                most,
            } => made(py, (name, "bytes", about, default, least, most)),
            OptionKind::Name(choices) => {
                let (none, all) = (py.None(), PyTuple::new(py, choices)?);
                let default = choices.first();
                made(py, (name, "name", about, default, &none, &none, all))
            }
            OptionKind::Key => made(py, (name, "key", about)),
            OptionKind::Index => made(py, (name, "index", about)),
            _ => made(py, (name, "other", about)),
        };
        by_name.set_item(name, made?)?;
    }
    Ok(by_name)
}
