//! `open`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use seglake::OnDamage;
use seglake::columns::UuidType;

use crate::error::raise;
use crate::filters::Filters;
use crate::key::KeyArgument;
use crate::keywords::with_keywords;
use crate::names;
use crate::numbers;
use crate::options::Named;
use crate::parity::{AUTO, SidecarArgument};
use crate::passes::Passes;
use crate::read_options::{ReadArguments, thread_count};
use crate::reader::{Reader, Wanted};
use crate::remote::{Filesystem, StorageOptions};
use crate::reopening::Reopening;

with_keywords! {
/// Opens a file for reading. `source` is a path, a URI of a store (`s3://`, `gs://`, `az://`, `https://`, `hdfs://`), a seekable binary file object, or a
/// buffer.
///
/// format: the format's name; None tells it by content and extension.
/// columns: the columns of Arrow batches; beside the format's own there are "path", "position", and "cause", which says what
///     is wrong with a record that is given out all the same.
/// filters: the records to give: a condition as a tuple of a column, an operator and a value, or a list of them, which are joined by
///     AND. Also text as in SQL ("type = 'order.paid' AND offset >= 5"), and pyarrow expressions. Operators are ==, !=, <, <=, >, >=,
///     in, not in, between, like, not like, is null and is not null. Times are aware datetimes, np.datetime64 (UTC), microseconds
///     since 1970, or ISO 8601 text, in UTC where it has no offset; dates are the beginning of their day in UTC; a timedelta or "1h" is that long ago.
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
/// threads: how many threads read batches and Arrow streams: of files that `Reader.split` can split, parts of 16 MiB and more. With
///     more than one a reader's iterators do not survive a fork. None: one for each core, 8 at most. Rows, damage and errors are those of one thread, in the same order; memory is for a few
///     batches for each thread. With prune=True there is one. A file that was made such that a part of it cannot be read by
///     itself, as no damage makes it, raises ValueError: threads=1 reads it.
/// memory_map: False reads the file in windows, so memory stays flat and a file that shrinks is an error. True maps it: faster to
///     look up in, but where somebody truncates the file meanwhile, or its disk fails, the process is killed (SIGBUS); where
///     somebody writes to it, what was checked may not be what is returned.
/// prune: False goes through the file up to where no record of `filters` can follow, and reports what it finds on the way. True
///     reads no more than such records can be in, by a proven index or table of contents, or a chunked file's headers: the same
///     records, but damage elsewhere goes unnoticed, and `report` is of what was read. Where an index is damaged, or does not
///     lead to a record that is asked for, all of the file is read: of a tenant file whose table of contents is damaged only once.
/// uuid_type: UUID columns as fixed-size binary of 16 bytes in network byte order ("uuid"), the same with Arrow's extension type
///     `arrow.uuid`, which DuckDB and pyarrow take for UUIDs ("arrow.uuid"), plain binary ("binary") or text ("string").
/// options: a dict of what concerns some formats only, and of limits in bytes; a name that does not concern a `format` that is
///     named is an error. Oplogs: `dialect`, how their messages are laid out: "draft" (default), "draft-1.1" or "autobase". Chunked
///     files: `index`, where it is: a path, URI, file object or buffer, or False for none (by default it is looked for beside the
///     file); `chunk_bytes` (268435456): a chunk with more content raises LimitError. Sealed files: `lookup_table_bytes`
///     (16777216): the most memory for a table that makes `get` faster. All: `record_bytes` (2147483647): a larger record raises
///     LimitError when it is to be returned; `batch_bytes` (8388608): a batch ends before it has more bytes of values, but has at
///     least one row.
/// filesystem: a `pyarrow.fs.FileSystem` or an `fsspec` file system. `source` is then a path or URI within it, and so is an index.
/// storage_options: settings of the store of a URI by the keys of `object_store`, as delta-rs and polars take them. What is not given
///     comes from the environment. With them, an index and `sidecar` are named by URIs, too.
///
/// Raises FileNotFoundError and other OSErrors, FormatError where the format cannot be told, ValueError (also for options that
/// do not concern the format, where it is named), TypeError.
///
/// >>> filters = [("type", "in", ["order.paid", "order.shipped"])]
/// >>> with seglake.open("orders.active", filters=filters) as orders:
/// ...     [record.type for record in orders]
/// ['order.paid', 'order.shipped']
fn open(source: &Bound<'_, PyAny>; OpenArguments<'a> [keywords] {
    format: Option<&'a str> = None,
    #[pyo3(from_py_with = names::columns)]
    columns: Option<Vec<String>> = None,
    filters: Option<Filters> = None,
    on_damage: &'a str = "raise",
    key: Option<KeyArgument> = None,
    sidecar: Option<SidecarArgument> = AUTO,
    #[pyo3(from_py_with = numbers::threads)]
    threads: Option<usize> = ONE_THREAD,
    prune: bool = false,
    memory_map: bool = false,
    uuid_type: &'a str = "uuid",
    options: Option<Named> = None,
    filesystem: Option<Filesystem> = None,
    storage_options: Option<StorageOptions> = None,
}) -> Reader;
}

/// With more, iterators would not survive a fork, and a file object of Python would be read while its own callers wait.
const ONE_THREAD: Option<usize> = Some(1);

impl OpenArguments<'_> {
    fn open(self, source: &Bound<'_, PyAny>) -> PyResult<Reader> {
        let py = source.py();
        let on_damage = self.on_damage.parse().map_err(|error| raise(py, error))?;
        let uuids = uuids(self.uuid_type)?;
        let reopening = Reopening::new("open", self.keywords(py)?, self.key.as_ref());
        let arguments = ReadArguments::new(self.format, self.key, self.options)
            .general()
            .mmap(self.memory_map)
            .sidecar(self.sidecar)
            .within(source, self.filesystem, self.storage_options)?;
        let (mut given, format) = arguments.open(source)?;
        given.options = given.options.on_damage(on_damage).prune(self.prune);
        let wanted = Wanted {
            columns: self.columns,
            filters: self.filters,
            uuids,
        };
        let passes = Passes::over(None, thread_count(self.threads));
        Reader::new(py, given, format, wanted, passes, reopening)
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
