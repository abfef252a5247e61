//! `open`.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use seglake::OnDamage;
use seglake::columns::{Limits, Selection, UuidType};
use seglake::format::Format;
use seglake::source::Source;

use crate::error::raise;
use crate::filters::Filters;
use crate::key::{KeyArgument, Origin};
use crate::keywords::with_keywords;
use crate::limits::{General, Settings};
use crate::names;
use crate::numbers;
use crate::parity::{AUTO, SidecarArgument};
use crate::part::Part;
use crate::passes::Passes;
use crate::read_options::{ONE, ReadArguments, thread_count};
use crate::reader::Reader;
use crate::remote::within;
use crate::reopening::Reopening;

with_keywords! {
/// Opens a file for reading. `source` is a path, a URI of a store (`s3://`, `gs://`, `az://`, `https://`, `hdfs://`), a seekable binary file object, or a
/// buffer.
///
/// format: the format's name; None tells it by content and extension.
/// dialect: how an oplog's messages are laid out: "draft" (default), "draft-1.1" or "autobase".
/// columns: the columns of Arrow batches; beside the format's own there are "path", "position", and "cause", which says what
///     is wrong with a record that is given out all the same.
/// filters: the records to give: a condition as a tuple of a column, an operator and a value, or a list of them, which are joined by
///     AND. Also text as in SQL ("type = 'order.paid' AND offset >= 5"), and pyarrow expressions. Operators are ==, !=, <, <=, >, >=,
///     in, not in, between, like, not like, is null and is not null. Times are aware datetimes, np.datetime64 (UTC), microseconds
///     since 1970, or ISO 8601 text with its zone; dates are the beginning of their day in UTC; a timedelta or "1h" is that long ago.
///     UUIDs are uuid.UUIDs, 16 bytes or text, types and tenants text as records show it or bytes. In patterns of like, `%` stands
///     for any text and `_` for one character (in `value` one byte); a backslash before them takes that away. UUIDs are ordered by their time: such
///     bounds are of version 6.
/// on_damage: "raise" raises DamageError at damage, "skip" reads on after it and warns once (DamageWarning). "repair" is
///     as "skip", and gives records that the parity sidecar restores: nothing is written, and `report` has their damaged bytes as
///     "repaired" all the same.
/// sidecar: the parity sidecar of the file, as in `verify`. What differs from what it covers is damage. Each block that is read (4 KiB or
///     less) is verified, so a look-up verifies only where it reads. A band (16 MiB) is judged as a whole if one of its blocks is damaged,
///     and then the whole file is.
/// key: the key of the checksums: 32 bytes, the path of a file that holds one (32 raw bytes or 64 hexadecimal digits), or a list
///     of these to try in order. None: the environment variable SEGLAKE_KEY where it is set, else the public default key.
/// threads: how many threads, 1 by default, read batches and Arrow streams, None for one for each core: of files that
///     `Reader.split` can split. Rows, damage and errors are those of one thread, in the same order; memory is for a few
///     batches for each thread. With prune=True or part= there is one. A file that was made such that a part of it cannot be
///     read by itself, as no damage makes it, raises ValueError.
/// memory_map: False reads the file in windows, so memory stays flat and a file that shrinks is an error. True maps it: faster to
///     look up in, but where somebody truncates the file meanwhile, or its disk fails, the process is killed (SIGBUS); where
///     somebody writes to it, what was checked may not be what is returned.
/// copy: False gives bytes and text in Arrow as views (binary_view, string_view): values are not copied but named where they
///     are in the map or buffer, which stays for as long as any batch does. Needs memory_map=True, or bytes or a read-only buffer that
///     nobody changes meanwhile; not for chunked files, whose values are compressed. Single records and get() are as ever.
/// prune: False goes through the file up to where no record of `filters` can follow, and reports what it finds on the way. True
///     reads no more than such records can be in, by a proven index or table of contents, or a chunked file's headers: the same
///     records, but damage elsewhere goes unnoticed, and `report` is of what was read. Where an index is damaged, or does not
///     lead to a record that is asked for, all of the file is read: of a tenant file whose table of contents is damaged only once.
/// part: one of the parts that `Reader.split` gave: records and batches are of this part alone, while looking up and `ledger()`
///     are of the whole file. Raises ValueError for a part of another file.
/// index: where a chunked file's index is: a path, URI, file object or buffer; None looks beside the file, False uses none.
/// uuid_type: UUID columns as fixed-size binary of 16 bytes in network byte order ("uuid"), the same with Arrow's extension type
///     `arrow.uuid`, which DuckDB and pyarrow take for UUIDs ("arrow.uuid"), plain binary ("binary") or text ("string").
/// batch_size: a batch ends before it has more rows; it has at least one.
/// limits: a dict of limits in bytes. `record_bytes` (2147483647): a larger record raises LimitError when it is to be returned.
///     `batch_bytes` (8388608): a batch ends before it has more bytes of values, but has at least one row. Of chunked files:
///     `chunk_bytes` (268435456): a chunk with more content raises LimitError. Of sealed files: `lookup_table_bytes` (16777216): the most memory
///     for a table that makes `get` faster.
/// filesystem: a `pyarrow.fs.FileSystem` or an `fsspec` file system. `source` is then a path or URI within it, and so is `index`.
/// storage_options: settings of the store of a URI by the keys of `object_store`, as delta-rs and polars take them. What is not given
///     comes from the environment. With them, `index` and `sidecar` are named by URIs, too.
///
/// Raises FileNotFoundError and other OSErrors, FormatError where the format cannot be told, ValueError (also for options that
/// do not concern the format, where it is named), TypeError.
///
/// >>> filters = [("type", "in", ["order.paid", "order.shipped"])]
/// >>> with seglake.open("orders.active", filters=filters) as orders:
/// ...     [record.type for record in orders]
/// ['order.paid', 'order.shipped']
#[pyo3(text_signature = "(source, *, format=None, dialect=None, columns=None, filters=None, on_damage=\"raise\", key=None, threads=1, sidecar=\"auto\", memory_map=False, copy=True, prune=False, part=None, index=None, uuid_type=\"uuid\", batch_size=131072, limits=None, filesystem=None, storage_options=None)")]
fn open(source: &Bound<'_, PyAny>; OpenArguments<'a> [keywords] {
    format: Option<&'a str> = None,
    dialect: Option<&'a str> = None,
    #[pyo3(from_py_with = names::columns)]
    columns: Option<Vec<String>> = None,
    filters: Option<Filters> = None,
    on_damage: &'a str = "raise",
    key: Option<KeyArgument> = None,
    #[pyo3(from_py_with = numbers::threads)]
    threads: Option<usize> = ONE,
    sidecar: Option<SidecarArgument> = AUTO,
    memory_map: bool = false,
    copy: bool = true,
    prune: bool = false,
    part: Option<Py<Part>> = None,
    index: Option<Py<PyAny>> = None,
    uuid_type: &'a str = "uuid",
    #[pyo3(from_py_with = numbers::batch_size)]
    batch_size: usize = 131072,
    limits: Option<Settings> = None,
    filesystem: Option<Py<PyAny>> = None,
    storage_options: Option<Py<PyAny>> = None,
}) -> Reader;
}

impl OpenArguments<'_> {
    fn open(self, source: &Bound<'_, PyAny>) -> PyResult<Reader> {
        let py = source.py();
        let on_damage = self.on_damage.parse().map_err(|error| raise(py, error))?;
        let uuids = uuids(self.uuid_type)?;
        let threads = thread_count(self.threads);
        let keywords = self.keywords(py)?;
        let within = within(source, &self.filesystem, &self.storage_options)?;
        let arguments = ReadArguments {
            format: self.format,
            dialect: self.dialect,
            index: self.index.as_ref().map(|index| index.bind(py)),
            key: self.key,
            limits: self.limits,
            general: &[General::RecordBytes, General::BatchBytes],
            mmap: self.memory_map,
            sidecar: self.sidecar,
            filesystem: within.as_ref(),
            views: !self.copy,
        };
        let (given, format) = arguments.open(source)?;
        let (source, options) = (given.source, given.options);
        let filter = Filters::filter(self.filters.as_ref(), py, format, options.dialect)?;
        let filter = options.filter.clone().both(&filter);
        let options = options.on_damage(on_damage);
        let options = options.filter(filter).prune(self.prune);
        let selection = Selection::new(format, &options, self.columns.as_deref(), uuids);
        let mut selection = selection.map_err(|error| raise(py, error))?;
        if !self.copy {
            selection = viewed(selection, format, &source)?;
        }
        let bounds = bounds(self.batch_size, given.limits.batch_bytes);
        let reopening = Reopening {
            path: given.path,
            has_key: matches!(given.origin, Origin::Given),
            function: "open",
            keywords: keywords.unbind(),
        };
        let part = self.part.map(|part| part.get().0.clone());
        let passes = Passes::over(part, threads);
        Ok(Reader::new(
            source, format, options, selection, bounds, passes, reopening,
        ))
    }
}

/// The columns, with values viewed where they are.
fn viewed(
    selection: Selection,
    format: &'static Format,
    source: &Arc<dyn Source>,
) -> PyResult<Selection> {
    if !format.has_plain_values {
        return Err(PyValueError::new_err(format!(
            "copy=False does not concern {} files: their values do not lie in the file as they are. Leave it out",
            format.name
        )));
    }
    selection.with_views(format, source).map_err(|_| {
        PyValueError::new_err(
            "copy=False needs a file in memory: open a path with memory_map=True, or give bytes or a read-only buffer",
        )
    })
}

/// The bounds of a batch.
pub(crate) fn bounds(rows: usize, bytes: Option<u64>) -> Limits {
    let bounds = Limits::default().rows(rows);
    match bytes {
        Some(bytes) => bounds.bytes(usize::try_from(bytes).unwrap_or(usize::MAX)),
        None => bounds,
    }
}

/// How UUIDs come.
pub(crate) fn uuids(name: &str) -> PyResult<UuidType> {
    match name {
        "uuid" => Ok(UuidType::Fixed),
        "arrow.uuid" => Ok(UuidType::Extension),
        "binary" => Ok(UuidType::Binary),
        "string" => Ok(UuidType::Text),
        other => Err(PyValueError::new_err(format!(
            "uuid_type is \"uuid\", \"arrow.uuid\", \"binary\" or \"string\", not {other:?}"
        ))),
    }
}

/// What `on_damage` says, where no sidecar is read.
pub(crate) fn on_damage(name: &str) -> PyResult<OnDamage> {
    match name {
        "raise" => Ok(OnDamage::Raise),
        "skip" => Ok(OnDamage::Skip),
        other => Err(PyValueError::new_err(format!(
            "on_damage is \"raise\" or \"skip\", not {other:?}"
        ))),
    }
}
