//! `open`.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use seglake::columns::{Limits, Selection, UuidType};

use crate::error::raise;
use crate::part::Part;
use crate::passes::Passes;
use crate::read_options::{Opened, ReadArguments, at_least_one, thread_count};
use crate::reader::Reader;
use crate::reopening::Reopening;
use crate::wanted::Filter;

/// Opens a file for reading. `source` is a path, a URI that `pyarrow.fs` or `fsspec` knows, a seekable binary file object, or a
/// buffer.
///
/// format: the format's name; None tells it by content and extension.
/// dialect: how an oplog's messages are laid out: "draft" (default), "draft-1.1" or "autobase".
/// index: where a chunked file's index is: a path, URI, file object or buffer; None looks beside the file, False uses none.
/// key, keys, key_file: a key of 32 bytes, several to try in order, or a file that holds one (32 raw bytes or 64 hexadecimal
///     digits). Without any, the environment variable SEGLAKE_KEY is used where it is set, else the public default key.
/// on_damage: "raise" raises DamageError at damage, "skip" reads on behind it and warns once (DamageWarning).
/// since, until: the records wanted, half-open; aware datetimes, or UUIDs of version 6 for formats that have them.
/// start_offset, end_offset: the message offsets wanted, half-open (chunked).
/// partitions, tenants: the partition IDs and tenant IDs wanted (tenant); tenants as text or bytes.
/// types: the record types wanted, as text or bytes (active, sealed).
/// prune: False goes through the file up to where no wanted record can follow, and reports what it finds on the way. True reads
///     no more than wanted records can be in, by a proven index or table of contents, or a chunked file's headers: the same
///     records, but damage elsewhere goes unnoticed, and `report` is of what was read. Where an index is damaged, or does not lead
///     to what is wanted, all of the file is read.
/// part: one of the parts that `Reader.split` gave: records and batches are of this part alone, while looking up and `ledger()`
///     are of the whole file. Raises ValueError for a part of another file.
/// columns: the columns of Arrow batches; beside the format's own there are "path", "position", and "cause", which says what
///     is wrong with a record that is given out all the same.
/// batch_bytes, batch_rows: a batch ends before it has more bytes of values or more rows, but has at least one row.
/// threads: how many threads, 1 by default, read batches and Arrow streams, None for one for each core: of files that
///     `Reader.split` can split. Rows, damage and errors are those of one thread, in the same order; memory is for a few
///     batches for each thread. With prune=True or part= there is one. A file that was made such that a part of it cannot be
///     read by itself, as no damage makes it, raises ValueError.
/// max_record_bytes: a larger record raises LimitError when it is to be returned.
/// max_chunk_bytes, limit_chunk_bytes: a chunk whose content has more bytes than the first is decoded twice instead of into a
///     buffer; one that has more than the second raises LimitError (chunked).
/// uuid_type: UUID columns as fixed-size binary ("fixed"), plain binary ("binary") or text ("string").
/// mmap: False reads the file in windows, so memory stays flat and a file that shrinks is an error. True maps it: faster to
///     look up in, but where somebody truncates the file meanwhile, or its disk fails, the process is killed (SIGBUS); where
///     somebody writes to it, what was checked may not be what is returned.
/// views: True gives bytes and text in Arrow as views (binary_view, string_view): values are not copied but named where they
///     are in the map or buffer, which stays for as long as any batch does. Needs mmap=True, or bytes or a read-only buffer that
///     nobody changes meanwhile; not for chunked files, whose values are compressed. Single records and get() are as ever.
/// filesystem: a `pyarrow.fs.FileSystem` or an `fsspec` file system. `source` is then a path or URI within it, and so is `index`.
///
/// Raises FileNotFoundError and other OSErrors, FormatError where the format cannot be told, ValueError (also for options that
/// do not concern the format, where it is named), TypeError.
#[pyfunction]
#[pyo3(signature = (
    source, *, format=None, dialect=None, index=None, key=None, keys=None, key_file=None, on_damage="raise", since=None,
    until=None, start_offset=None, end_offset=None, partitions=None, tenants=None, types=None, prune=false, part=None, columns=None,
    batch_bytes=8388608, batch_rows=131072, threads=Some(1), max_record_bytes=2147483647, max_chunk_bytes=None, limit_chunk_bytes=None,
    uuid_type="fixed", mmap=false, views=false, filesystem=None,
))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments")]
pub(crate) fn open<'py>(
    source: &Bound<'py, PyAny>,
    format: Option<&str>,
    dialect: Option<&str>,
    index: Option<&Bound<'py, PyAny>>,
    key: Option<&[u8]>,
    keys: Option<Vec<Vec<u8>>>,
    key_file: Option<PathBuf>,
    on_damage: &str,
    since: Option<&Bound<'py, PyAny>>,
    until: Option<&Bound<'py, PyAny>>,
    start_offset: Option<i64>,
    end_offset: Option<i64>,
    partitions: Option<Vec<u32>>,
    tenants: Option<&Bound<'py, PyAny>>,
    types: Option<&Bound<'py, PyAny>>,
    prune: bool,
    part: Option<Py<Part>>,
    columns: Option<Vec<String>>,
    batch_bytes: usize,
    batch_rows: usize,
    threads: Option<usize>,
    max_record_bytes: u64,
    max_chunk_bytes: Option<u64>,
    limit_chunk_bytes: Option<u64>,
    uuid_type: &str,
    mmap: bool,
    views: bool,
    filesystem: Option<&Bound<'py, PyAny>>,
) -> PyResult<Reader> {
    let py = source.py();
    let strict = is_strict(on_damage)?;
    let uuids = match uuid_type {
        "fixed" => UuidType::Fixed,
        "binary" => UuidType::Binary,
        "string" => UuidType::Text,
        other => {
            return Err(PyValueError::new_err(format!(
                "uuid_type is \"fixed\", \"binary\" or \"string\", not {other:?}"
            )));
        }
    };
    let thread_count = thread_count(threads)?;
    at_least_one("batch_bytes", batch_bytes)?;
    at_least_one("batch_rows", batch_rows)?;
    let filter = Filter {
        since,
        until,
        start_offset,
        end_offset,
        partitions: partitions.clone(),
        tenants,
        types,
    };
    let wanted = filter.wanted()?;
    let arguments = ReadArguments {
        format,
        dialect,
        index,
        key,
        keys,
        key_file: key_file.clone(),
        max_chunk_bytes,
        limit_chunk_bytes,
        mmap,
        filesystem,
        views,
    };
    let Opened {
        source,
        path,
        format,
        options,
        origin,
        ..
    } = arguments.open(source)?;
    let options = options
        .strict(strict)
        .filter(wanted)
        .prune(prune)
        .max_record_bytes(max_record_bytes);
    let selection = Selection::new(format, &options, columns.as_deref(), uuids);
    let selection = selection.and_then(|selection| match views {
        true => selection.with_views(format, &source),
        false => Ok(selection),
    });
    let selection = selection.map_err(|error| raise(py, error))?;
    let limits = Limits::default().bytes(batch_bytes).rows(batch_rows);

    let concerned = |name: &str| format.open_options.contains(&name);
    let again = PyDict::new(py);
    again.set_item("format", format.name)?;
    again.set_item("dialect", dialect.filter(|_| concerned("dialect")))?;
    again.set_item("index", index.filter(|_| concerned("index")))?;
    again.set_item("key_file", key_file)?;
    again.set_item("on_damage", on_damage)?;
    again.set_item("since", since)?;
    again.set_item("until", until)?;
    again.set_item("start_offset", start_offset)?;
    again.set_item("end_offset", end_offset)?;
    again.set_item("partitions", partitions)?;
    again.set_item("tenants", tenants)?;
    again.set_item("types", types)?;
    again.set_item("prune", prune)?;
    again.set_item("part", part.as_ref())?;
    again.set_item("columns", columns)?;
    again.set_item("batch_bytes", batch_bytes)?;
    again.set_item("batch_rows", batch_rows)?;
    again.set_item("threads", threads)?;
    again.set_item("max_record_bytes", max_record_bytes)?;
    for (name, bytes) in [
        ("max_chunk_bytes", max_chunk_bytes),
        ("limit_chunk_bytes", limit_chunk_bytes),
    ] {
        again.set_item(name, bytes.filter(|_| concerned(name)))?;
    }
    again.set_item("uuid_type", uuid_type)?;
    again.set_item("mmap", mmap)?;
    again.set_item("views", views)?;
    again.set_item("filesystem", filesystem)?;
    let reopening = Reopening {
        path,
        origin,
        arguments: again.unbind(),
    };
    Ok(Reader::new(
        source,
        format,
        options,
        selection,
        limits,
        Passes {
            part: part.map(|part| part.get().0.clone()),
            threads: thread_count,
        },
        reopening,
    ))
}

/// Whether `on_damage` says to stop at damage.
pub(crate) fn is_strict(on_damage: &str) -> PyResult<bool> {
    match on_damage {
        "raise" => Ok(true),
        "skip" => Ok(false),
        other => Err(PyValueError::new_err(format!(
            "on_damage is \"raise\" or \"skip\", not {other:?}"
        ))),
    }
}
