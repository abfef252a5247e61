"""The extension module: everything here is re-exported by `seglake`."""

import uuid as _uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from os import PathLike
from types import TracebackType
from typing import Any, BinaryIO, Literal, NoReturn, Protocol, Self, TypeAlias, final, overload

import polars
from pandas import DataFrame  # pyright: ignore[reportMissingTypeStubs]
from pyarrow import Table
from pyarrow.compute import Expression
from typing_extensions import Buffer

from seglake._results import Detection, Protected, Recovered, Repaired, Uuids
from seglake._types import (
    ActiveOptions,
    Block,
    ChunkedOptions,
    Coverage,
    Diagnosis,
    DialectName,
    Formats,
    IndexItem,
    LogMark,
    LogRecovery,
    LogSegment,
    LogUnread,
    NewFileOptions,
    OpenOptions,
    OplogOptions,
    ParityReport,
    ProfileName,
    Retention,
    SealedOptions,
    Span,
    System,
    TenantOptions,
    Total,
)
from seglake.read.frames import ScanBatches
from seglake.stores import RemoteFile

__all__ = [
    "Batch",
    "Batches",
    "Index",
    "Ledger",
    "ListedSegment",
    "Part",
    "Position",
    "Reader",
    "Record",
    "Records",
    "Report",
    "Schema",
    "SegmentLog",
    "Tail",
    "Writer",
    "__version__",
    "arrow_stream",
    "collect",
    "convert",
    "coverage",
    "create",
    "decode_message",
    "decode_system",
    "detect",
    "encode_message",
    "formats",
    "identity",
    "index",
    "is_beside_segment",
    "is_log_name",
    "keep_unclosed",
    "list_log",
    "open",
    "protect",
    "recover",
    "rename",
    "rename_new",
    "repair",
    "report_words",
    "resume",
    "row_hashes",
    "seal",
    "sync_file",
    "sync_folder",
    "undo_recover",
    "uuid6",
    "uuid_array",
    "verify",
    "verify_parity",
]

__version__: str

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

_Source: TypeAlias = str | PathLike[str] | BinaryIO | Buffer | RemoteFile | ListedSegment
# A `pyarrow.fs.FileSystem` or an `fsspec` file system, neither of which is needed to import this.
_FileSystem: TypeAlias = object
_KeyFile: TypeAlias = str | PathLike[str]
_Key: TypeAlias = bytes | _KeyFile | Sequence[bytes | _KeyFile]
_Condition: TypeAlias = tuple[str, str] | tuple[str, str, Any]
_Filters: TypeAlias = str | _Condition | Expression | Sequence[str | _Condition | Expression | Sequence[_Condition]]
_CreateOptions: TypeAlias = ActiveOptions | OplogOptions | SealedOptions | TenantOptions | ChunkedOptions
_Rows: TypeAlias = _ArrowStream | _ArrowArray | Iterable[Record | Mapping[str, Any] | tuple[str | Buffer, str | Buffer]]

def open(
    source: _Source,
    *,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    filters: _Filters | None = None,
    on_damage: Literal["raise", "skip", "repair"] = "raise",
    key: _Key | None = None,
    sidecar: _Source | None = "auto",
    threads: int | None = 1,
    prune: bool = False,
    memory_map: bool = False,
    uuid_type: Literal["uuid", "arrow.uuid", "binary", "string"] = "uuid",
    options: OpenOptions | None = None,
    filesystem: _FileSystem | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Reader:
    """Opens a file for reading. `source` is a path, a URI of a store (`s3://`, `gs://`, `az://`, `https://`,
    `hdfs://`), a seekable binary file object, or a buffer.

    format: the format's name; None tells it by content and extension.
    columns: the columns of Arrow batches; beside the format's own there are "path", "position", and "cause",
        which says what is wrong with a record that is given out all the same.
    filters: the records to give: a condition as a tuple of a column, an operator and a value, or a list of them,
        which are joined by AND. Also text as in SQL ("type = 'order.paid' AND offset >= 5"), and pyarrow
        expressions. Operators are ==, !=, <, <=, >, >=, in, not in, between, like, not like, is null and is not
        null. Times are aware datetimes, np.datetime64 (UTC), microseconds since 1970, or ISO 8601 text, in UTC
        where it has no offset; dates are the beginning of their day in UTC; a timedelta or "1h" is that long ago.
        UUIDs are uuid.UUIDs, 16 bytes or text, types and tenants text as records show it or bytes. In patterns of
        like, `%` stands for any text and `_` for one character (in `value` one byte); a backslash before them
        takes that away. UUIDs are ordered by their time: such bounds are of version 6.
    on_damage: "raise" raises DamageError at damage, "skip" reads on after it and warns once (DamageWarning).
        "repair" is as "skip", and gives records that the parity sidecar restores: nothing is written, and
        `report` has their damaged bytes as "repaired" all the same.
    sidecar: the parity sidecar of the file, as in `verify`. What differs from what it covers is damage. Each
        block that is read (4 KiB or less) is verified, so a look-up verifies only where it reads. A band (16 MiB)
        is judged as a whole if one of its blocks is damaged, and then the whole file is.
    key: the key of the checksums: 32 bytes, the path of a file that holds one (32 raw bytes or 64 hexadecimal
        digits), or a list of these to try in order. None: the environment variable SEGLAKE_KEY where it is set,
        else the public default key.
    threads: how many threads read batches and Arrow streams: of files that `Reader.split` can split, parts of 16
        MiB and more. With more than one a reader's iterators do not survive a fork. None: one for each core, 8 at
        most. Rows, damage and errors are those of one thread, in the same order; memory is for a few batches for
        each thread. With prune=True there is one. A file that was made such that a part of it cannot be read by
        itself, as no damage makes it, raises ValueError: threads=1 reads it.
    memory_map: False reads the file in windows, so memory stays flat and a file that shrinks is an error. True
        maps it: faster to look up in, but where somebody truncates the file meanwhile, or its disk fails, the
        process is killed (SIGBUS); where somebody writes to it, what was checked may not be what is returned.
    prune: False goes through the file up to where no record of `filters` can follow, and reports what it finds on
        the way. True reads no more than such records can be in, by a proven index or table of contents, or a
        chunked file's headers: the same records, but damage elsewhere goes unnoticed, and `report` is of what was
        read. Where an index is damaged, or does not lead to a record that is asked for, all of the file is read:
        of a tenant file whose table of contents is damaged only once.
    uuid_type: UUID columns as fixed-size binary of 16 bytes in network byte order ("uuid"), the same with Arrow's
        extension type `arrow.uuid`, which DuckDB and pyarrow take for UUIDs ("arrow.uuid"), plain binary
        ("binary") or text ("string").
    options: a dict of what concerns some formats only, and of limits in bytes; a name that does not concern a
        `format` that is named is an error. Oplogs: `dialect`, how their messages are laid out: "draft" (default),
        "draft-1.1" or "autobase". Chunked files: `index`, where it is: a path, URI, file object or buffer, or
        False for none (by default it is looked for beside the file); `chunk_bytes` (268435456): a chunk with more
        content raises LimitError. Sealed files: `lookup_table_bytes` (16777216): the most memory for a table that
        makes `get` faster. All: `record_bytes` (2147483647): a larger record raises LimitError when it is to be
        returned; `batch_bytes` (8388608): a batch ends before it has more bytes of values, but has at least one
        row.
    filesystem: a `pyarrow.fs.FileSystem` or an `fsspec` file system. `source` is then a path or URI within it,
        and so is an index.
    storage_options: settings of the store of a URI by the keys of `object_store`, as delta-rs and polars take
        them. What is not given comes from the environment. With them, an index and `sidecar` are named by URIs,
        too.

    Raises FileNotFoundError and other OSErrors, FormatError where the format cannot be told, ValueError (also for
    options that do not concern the format, where it is named), TypeError.

    >>> filters = [("type", "in", ["order.paid", "order.shipped"])]
    >>> with seglake.open("orders.active", filters=filters) as orders:
    ...     [record.type for record in orders]
    ['order.paid', 'order.shipped']
    """

def resume(
    source: _Source,
    position: Position | None,
    *,
    size: int | None = None,
    final: bool = False,
    only_end: bool = False,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    filters: _Filters | None = None,
    on_damage: Literal["raise", "skip", "repair"] = "raise",
    key: _Key | None = None,
    sidecar: _Source | None = "auto",
    uuid_type: Literal["uuid", "arrow.uuid", "binary", "string"] = "uuid",
    options: OpenOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Reader:
    """Opens a file to read what it grew by since a position; all of it where that is None. Each pass of the reader,
    and its `ledger()`, are of that alone. Once a pass has read to the end, `Reader.position` says where to go on,
    and `Reader.pending_bytes` how much of an unfinished record is left. `source` is as in `open`.

    Records, damage and bytes of one call after the other add up to those of one reading of the file. An active
    file that was sealed since goes on after the last record that was read. No more is read than the new bytes,
    and a look at the first record and the last one that was read; but zeros at the end of a preallocated file are
    looked at each time, and an oplog of the dialect "draft-1.1" with many keys is read from its beginning. With a
    parity sidecar each block that is read (4 KiB or less) is verified. A band (16 MiB) is judged as a whole if
    one of its blocks is damaged, and then the whole file is.

    A file is read as its sidecar has it, so a position does not depend on what is damaged meanwhile, repaired
    later, or read without the sidecar. Of a file without checksums nothing is read that would have to be taken
    back: DamageError is raised, whatever `on_damage` is, where lost blocks are reached in one that may grow, and
    if the sidecar is of another file.

    size: read no more than this many bytes of the file: as many as were listed.
    final: the file grows no more, so that an unfinished record at its end is damage. The position stays before
        it: if it is finished after all, it is read then.
    only_end: a pass is only to find where the new bytes end. `position` and `pending_bytes` are as after any
        pass, and there is a record or damage if there would be. But of a chunked file most chunks are left out,
        without being decompressed: those that headers lead over to the last sound one. In other formats, with
        `filters`, with a parity sidecar, of objects of a store and if `on_damage` is "raise", it changes nothing.
        The others are as in `open`. A file of a file system is given as the file object that this opens.

    Raises ReplacedError where it is another file than the position is of, or less of it is left, and what `open`
    raises.

    >>> orders = seglake.incremental.resume("orders.active", None, size=150)
    >>> [record.type for record in orders], orders.pending_bytes
    (['order.created', 'order.paid'], 45)
    >>> [record.type for record in seglake.incremental.resume("orders.active", orders.position)]
    ['order.shipped']
    """

def identity(
    source: _Source,
    *,
    size: int | None = None,
    format: str | None = None,
    key: _Key | None = None,
    sidecar: _Source | None = "auto",
    options: OpenOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> str | None:
    """What identifies a file while it grows and when it is sealed, as text; None as long as it has no whole record
    that is sound. It is made of the first one: of the format's family ("segment" for active and sealed), the UUID
    where it has one, and a hash.

    Files whose first records are the same have the same identity. So files of one identity may be two: `resume`
    with the position of one raises ReplacedError for the other. The arguments are as in `resume`; the first
    record is the one that the sidecar restores.

    >>> identity = seglake.incremental.identity
    >>> identity("orders.active").split(":")[0], identity("orders.active", size=10)
    ('segment', None)
    """

def uuid_array(data: bytes, /) -> tuple[object, object]:
    """UUIDs of 16 bytes each, one after the other, as an array of `arrow.uuid`: two PyCapsules.

    >>> from seglake._native import uuid_array
    >>> [type(capsule).__name__ for capsule in uuid_array(bytes(32))]
    ['PyCapsule', 'PyCapsule']
    """

def verify(
    source: _Source,
    *,
    format: str | None = None,
    key: _Key | None = None,
    explain: bool | int | None = 100,
    threads: int | None = None,
    sidecar: _Source | None = "auto",
    memory_map: bool = False,
    options: OpenOptions | None = None,
    progress: Callable[[int, int], object] | None = None,
    filesystem: _FileSystem | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Report:
    """Reads a file to its end and checks every record; damage is in the report, not raised.

    `progress(done, total)` is called now and then, and at the end, with bytes; what it raises ends the verifying.

    explain: also find what damage probably comes from, for this many damaged ranges, the first ones; 0 or None
        for none. They are in `report.diagnoses`: `reason` of each is what the damage comes from, `certainty` how
        sure that is, `evidence` why. A damaged file is then read again as far as the last of them, and `progress`
        told of that as well.
    threads: how many threads read a file that `Reader.split` can split. None: one for each core, 8 at most. The
        report is the same. Where only one reading of the whole can tell what is damaged, that follows, and
        `progress` begins anew.
    sidecar: the parity sidecar of the file: "auto" is the one beside a path of this machine, if there is one, as
        `protect` writes it; None is to read without; else a path, URI, file object or buffer. What differs from
        what it covers is damage, also in files without checksums (`checked` is then "parity"): of the kind
        "repaired" if `repair` can restore it. `report.parity` has the rest. The others are as in `open`.

    Raises FormatError where the format cannot be told, OSError where the file cannot be read, or the sidecar
    beside it may not be.

    >>> report = seglake.verify("damaged.active")
    >>> report.ok, report.records, report.damage
    (False, 2, [Span(start=54, end=105, kind='corrupt', cause='checksum_mismatch')])
    """

def verify_parity(
    source: _Source,
    *,
    sidecar: _Source | None = "auto",
    progress: Callable[[int, int], object] | None = None,
    filesystem: _FileSystem | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> ParityReport | None:
    """Verifies a file of any kind by its parity sidecar, and the sidecar by the file. Unlike `verify` it does not
    look at the format of the file, so it is for what was protected as "raw". None where there is no sidecar. The
    arguments are as there.

    Raises OSError where the file cannot be read, or the sidecar may not be.

    >>> seglake.protect("orders.active").change
    'created'
    >>> seglake.parity.verify("orders.active").outcome
    'sound'
    """

def create(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    key: _Key | None = None,
    if_exists: Literal["error", "append", "overwrite"] = "error",
    zero_torn_tail: bool = False,
    options: _CreateOptions | None = None,
) -> Writer:
    """Creates a file, or opens one to append to.

    format: the format's name; None takes it from the extension of `path`. What does not concern it raises
        ValueError.
    key: the key of the checksums, as in `open` (active, sealed). Of several the first is written with.
    if_exists: what is done with a file that exists already. "error" raises FileExistsError; "append" goes on
        after its last record, and walks it first (active, chunked, oplog, tfrecord); "overwrite" replaces it once
        the new one is complete (sealed, tenant).
    zero_torn_tail: if an existing file ends in one record, chunk or message that was not written to its end, move
        that into `FILE.OFFSET.quarantine` beside it, synced, and go on there. Otherwise it raises DamageError.
        All other damage at the end, and a key that seems wrong, always do. FormatError where the file is probably
        of another format or program. What does not belong into a chunked file's index is moved in the same way,
        and DamageWarning names each new file: an index that listed more than the file has is the only list of
        what is missing.
    options: a dict of what else the format declares; `formats()` has names, kinds, ranges and defaults. Oplogs:
        `dialect`, how messages are laid out: "draft" (default), "draft-1.1" or "autobase". Active: `preallocate`
        (0), fill the file with zeros to this many bytes beforehand, so that appending need not grow it. Sealed:
        `trailer` (True), whether checksums are written after the data. Tenant: `version` (2), of the layout;
        `memory_bytes` (67108864), how many bytes of messages are kept in memory before they are spilled to
        temporary files. Chunked: `chunk_bytes` (262144) and `chunk_records` (65536), how much a chunk has at
        most, which is lost together where it is damaged; `level` (1), of zstd; `index` (True), whether the index
        is written beside the file.

    Raises OSError where the file cannot be written or another writer has it open; ValueError.

    >>> with seglake.create("new.active") as orders:
    ...     id = orders.write("order.paid", b"...")
    >>> seglake.open("new.active").get(id).type
    'order.paid'
    """

def formats(*, options: OpenOptions | None = None) -> Formats:
    """The formats that there are: a tuple of Formats, in which one is also found by its name.

    options: as in `open`: the columns of an oplog depend on its `dialect`.

    >>> [format.name for format in seglake.formats()]
    ['active', 'sealed', 'tenant', 'chunked', 'oplog', 'tfrecord']
    >>> seglake.formats()["chunked"].identifier
    ('offset',)
    """

def detect(
    source: _Source,
    *,
    key: _Key | None = None,
    options: OpenOptions | None = None,
    filesystem: _FileSystem | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Detection:
    """Tells a file's format by its content, and by its extension where the content does not tell. Formats without a
    magic number (active, oplog, tfrecord) are told by their first records; an oplog's are decoded as `dialect`
    among the `options` says, which are as in `open`.

    Raises OSError where the file cannot be read.

    >>> seglake.detect("orders.sealed").format
    'sealed'
    """

def seal(
    source: _Source,
    destination: str | PathLike[str],
    *,
    trailer: bool = True,
    on_damage: Literal["raise", "skip"] = "raise",
    key: _Key | None = None,
    if_exists: Literal["error", "overwrite"] = "error",
    progress: Callable[[int, int], object] | None = None,
    filesystem: _FileSystem | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Report:
    """Makes a sealed segment of an active one, and returns what was found in the source. Each record keeps the
    checksum that it has, which is never computed anew; the new file is read back before it gets its name.

    trailer: whether the checksums are written after the data.
    if_exists: "error" raises FileExistsError where there is a file; "overwrite" replaces it once the new one is
        complete.
    on_damage: "raise" seals nothing of a damaged file, "skip" what is sound of it: the report tells of the rest.
    progress: called as in `verify`, with bytes of the source. The other arguments are as in `open`.

    Raises DamageError, WrongKeyError (whatever `on_damage` says), ValueError where the source is no active
    segment, OSError.

    >>> seglake.seal("orders.active", "new.sealed").records
    3
    """

def recover(
    source: _Source,
    destination: str | PathLike[str],
    *,
    quarantine: str | PathLike[str] | None = None,
    renumber: bool = False,
    force: bool = False,
    format: str | None = None,
    key: _Key | None = None,
    if_exists: Literal["error", "overwrite"] = "error",
    options: OpenOptions | None = None,
    progress: Callable[[int, int], object] | None = None,
    filesystem: _FileSystem | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Recovered:
    """Writes the sound records of a damaged file to a new one of the same format, with the checksums that they had,
    and every other byte to a quarantine, with a manifest from which `undo_recover` makes the file again. The
    source is never touched.

    The new file is read back, and the damaged one put together again from it and the quarantine, before any of
    them appears: then all do, synced, or none does. A sound file is copied as it is.

    quarantine: where the bytes go that are not in the new file; the manifest gets `.manifest.jsonl` appended to
        its name. None: `destination` with `.quarantine` appended, and only if there are any.
    if_exists: "error" raises FileExistsError where there is a file; "overwrite" replaces it once the new one is
        complete.
    force: recover also a file in which nothing checks, which is probably read with a wrong key: all of it is put
        aside.
    renumber: where a message is lost that others follow, give those other numbers, and rewrite what refers to
        them (oplog).
    progress: called as in `verify`. The other arguments are as there.

    Raises ValueError where nothing checks, where messages would have to be renumbered or cannot be, and where two
    of the files are the same; what `verify` raises; OSError where a file cannot be written.

    >>> recovered = seglake.recover("damaged.active", "sound.active")
    >>> recovered.records, recovered.quarantined_bytes
    (2, 51)
    >>> seglake.verify("sound.active").ok
    True
    """

def undo_recover(
    recovered: _Source,
    destination: str | PathLike[str],
    *,
    quarantine: str | PathLike[str] | None = None,
    if_exists: Literal["error", "overwrite"] = "error",
    progress: Callable[[int, int], object] | None = None,
    filesystem: _FileSystem | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Writes the file again that `recover` made `recovered` of, bit for bit, and returns its length in bytes.

    Both files are held against the manifest before anything is written, and the result before it gets its name.

    quarantine: the file in which the other bytes are. None: `recovered` with `.quarantine` appended to its name;
        a recovered file that is elsewhere needs it.
    if_exists: "error" raises FileExistsError where there is a file; "overwrite" replaces it once the new one is
        complete.
    progress: called as in `verify`, with the bytes that are read, twice.
    filesystem, storage_options: as in `open`; `recovered` is then within it.

    Raises FormatError where the manifest is none, or the files are not those that it is about; ValueError;
    OSError.

    >>> recovered = seglake.recover("damaged.active", "sound.active")
    >>> seglake.undo_recover("sound.active", "as-it-was.active") == seglake.verify("damaged.active").nbytes
    True
    """

def coverage(
    source: _Source,
    *,
    sidecar: _Source | None = "auto",
    filesystem: _FileSystem | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Coverage | None:
    """What the parity sidecar of a file covers, by the sidecar's heads alone: neither is verified, which `verify`
    does. None where there is no sidecar. `source` and `sidecar` are as there.

    Raises OSError where the file cannot be read, or the sidecar may not be.

    >>> seglake.protect("orders.active").change
    'created'
    >>> coverage = seglake.parity.coverage("orders.active")
    >>> coverage.profile, coverage.state, coverage.covered_bytes == coverage.nbytes
    ('128+8', 'covered', True)
    """

def protect(
    path: str | PathLike[str],
    *,
    profile: ProfileName | None = None,
    as_it_is: bool = False,
    lazy: bool = False,
    sidecar: str | PathLike[str] = "auto",
    format: str | None = None,
    key: _Key | None = None,
    options: OpenOptions | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Protected:
    """Makes the parity sidecar of a file, from which `repair` restores damaged bytes, or extends it if the file has
    grown. The file itself is never written to.

    First the file is verified by its format; a damaged one is refused. All of it is covered, but for unused space
    and a torn tail of a file that is appended to. What is covered must not change afterwards: append to the file,
    and protect it again. That costs what was appended: complete bands that are covered are not read, so damage
    there is left to `verify`.

    profile: data and parity blocks of a group: "128+8", "128+4", "128+16" or "128+8-long". None: that of an
        existing sidecar, "128+8" for a new one.
    as_it_is: begin a new sidecar for the file as it is, damaged or not. An existing one is replaced.
    lazy: leave the last 16 MiB as they are until what is not covered of them is 1/16 of what is.
    sidecar: the path of the sidecar. "auto": `path` with `.par` appended; for a link without one, that of the
        file that it leads to.
    format: as in `verify`, or "raw" for a file of any other kind: it is not verified, and covered whole.
    progress: called as in `verify`. The other arguments are as there.

    Raises DamageError where the file is damaged, by its format or by what the sidecar covers; WrongKeyError;
    FormatError where the format cannot be told, or the sidecar is none; ValueError where the sidecar has another
    profile; OSError, also where another process writes the sidecar.

    >>> seglake.protect("orders.active").change
    'created'
    >>> seglake.protect("orders.active").change
    'unchanged'
    """

def repair(
    path: str | PathLike[str],
    *,
    destination: str | PathLike[str] | None = None,
    force: bool = False,
    sidecar: str | PathLike[str] = "auto",
    format: str | None = None,
    key: _Key | None = None,
    options: OpenOptions | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Repaired:
    """Repairs a file and its parity sidecar, each from the other. New files take their places, or go to another
    path.

    The repaired file is written to a new one and read back. Then the damaged file is renamed to `path` with
    `.damaged` appended, and the new one gets its name, permissions and time of modification. So does the sidecar
    if it changes. To undo that, rename the damaged file back. Nothing is written if nothing changes. For a link
    this is the file that it leads to. There has to be space for a copy of the file. A repair that was interrupted
    is run again. What cannot be repaired stays as it is, and is in `damage`: `recover` writes what is sound of
    such a file to a new one.

    destination: where the repaired file goes, with its sidecar beside it; neither may be there. Then nothing else
        changes. None: new files take the places of the damaged ones.
    force: repair also a file of which nothing is as it was protected, records that their own checksums prove, and
        a file without checksums that was modified after it was protected.
    sidecar, format: as in `protect`. progress: called as in `verify`. The other arguments are as there.

    Raises ValueError where the sidecar is probably that of another file, or of an earlier state of it, and where
    there is a damaged file of an earlier repair: move or remove it; FormatError where it is no sidecar; OSError,
    also where there is none, and where another process writes one of the files.

    >>> import shutil
    >>> shutil.copy("orders.active", "new.active")
    'new.active'
    >>> seglake.protect("new.active").change
    'created'
    >>> with open("new.active", "r+b") as orders:
    ...     orders.seek(60), orders.write(b"?")
    (60, 1)
    >>> seglake.repair("new.active").damaged, seglake.verify("new.active").ok
    ('new.active.damaged', True)
    """

def report_words() -> tuple[set[str], set[str], set[str]]:
    """The words that reports use: the kinds of ranges, those of parity sidecars included, the causes of damage, and
    the reasons.

    >>> from seglake._native import report_words
    >>> kinds, causes, reasons = report_words()
    >>> "torn_tail" in kinds, "bad_uuid" in causes, "consequence" in reasons
    (True, True, True)
    """

def collect(batches: Batches | ScanBatches, rows: int | None = None) -> object:
    """All that is left of `Batches` or `ScanBatches`, or so many of the first rows, in memory, as an Arrow stream: a
    PyCapsule. Errors are raised as they are, not wrapped as within a stream. Nothing of Python is called to pull
    from it: libraries pull without the GIL, which PyO3 believes to be held as long as one of its functions runs.

    >>> from seglake._native import collect
    >>> type(collect(seglake.open("orders.active").batches(), 2)).__name__
    'PyCapsule'
    """

def arrow_stream(schema: Schema, batches: Iterable[Batch]) -> object:
    """The batches of an iterator, whose columns are of the schema's types, as an Arrow stream with the schema's
    names: a PyCapsule.

    >>> import pyarrow
    >>> from seglake._native import arrow_stream
    >>> orders = seglake.open("orders.active")
    >>> type(arrow_stream(orders.schema, orders.batches())).__name__
    'PyCapsule'
    """

def convert(
    source: _Source | Reader,
    destination: str | PathLike[str],
    *,
    to: str | None = None,
    drop: Sequence[str] = (),
    set: Mapping[str, Any] | None = None,
    options: NewFileOptions | None = None,
    if_exists: Literal["error", "overwrite"] = "error",
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Writes the records of a file to a new one of any format, which appears under its name when it is complete, and
    returns what was found in the source.

    source: as in `open`, or a Reader, of which its `filters`, `on_damage`, key and other arguments count, but not
        its columns. Damage is an error unless the Reader skips it.
    to: the format to write; None takes it from the extension of `destination`.
    drop: columns that may be lost, by name; fields of structures as "clock.seq". What would be lost otherwise
        raises ValueError with the names.
    set: values for columns that the source does not have, the same for all records. None for `uuid` and
        `timestamp` makes new ones of the present.
    options: those of `create` for the new file, and its `key`: {"dialect": "draft-1.1"}.
    if_exists: "error" raises FileExistsError where there is a file; "overwrite" replaces it once the new one is
        complete.
    dry_run: do all of it except that the new file appears: to learn whether all records can be stored, and what
        would be lost.
    progress: called as in `verify`, with bytes of the source.

    Raises what `open` and `create` raise; ValueError for a record that the new format cannot hold, for a key that
    is probably wrong, and for a Reader of a part, or of what a file grew by.

    >>> seglake.convert("orders.active", "new.chunks", drop=["uuid", "type"]).records
    3
    >>> paid = seglake.open("orders.active", filters="type = 'order.paid'")
    >>> seglake.convert(paid, "paid.active").records
    1
    """

def index(
    source: _Source,
    destination: str | PathLike[str] | None = None,
    *,
    if_exists: Literal["error", "overwrite"] = "error",
    format: str | None = None,
    options: OpenOptions | None = None,
    progress: Callable[[int, int], object] | None = None,
    filesystem: _FileSystem | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Index:
    """Builds the index of a chunked file anew, from its sound chunks, and returns it. It appears when it is
    complete: at `destination`, or beside the file with the extension `index`.

    if_exists: what is done with an index that exists already. "error" raises FileExistsError; "overwrite"
        replaces it once the new one is complete, unless it knows more than the file has (`Index.beyond`).
    progress: called as in `verify`.
    format, options, filesystem, storage_options: as in `open`. The index of a file elsewhere needs a
        `destination`.

    Raises ValueError where the source is of another format, has no path on this machine and none is given, or
    would be replaced itself; and where an existing index knows more than the file has. OSError; LimitError.
    Damage of the file is no error: chunks that are damaged have no item.

    >>> seglake.index("orders.chunks", "new.index").items
    [IndexItem(offset=0, position=0), IndexItem(offset=2, position=128)]
    """

def decode_message(data: Buffer, *, dialect: DialectName = "draft", seq: int | None = None) -> Record:
    """Decodes one message of an oplog that comes from elsewhere: a body in another format, a column of a table, a
    queue. `data` is the message without the length that frames it in a file.

    dialect: "draft", "draft-1.1" or "autobase".
    seq: its sequence number, if that is known: a message of "draft-1.1" can refer to its own keys then.
        References to keys of other messages give null keys.

    Raises DamageError where the bytes are no message of this dialect, with the offset within the message.

    >>> from seglake import oplog
    >>> data = oplog.encode(version=1, checkpointer=1, clock=[], abi=0, batch=1, value=b"v")
    >>> oplog.decode(data).value
    b'v'
    """

def decode_system(data: Buffer, *, dialect: DialectName = "draft") -> System:
    """Decodes the part of a message that is never encrypted: a System, with the rest of the message as bytes.

    Raises DamageError as `decode_message`; ValueError for the dialect "autobase", whose messages begin otherwise.

    >>> from seglake import oplog
    >>> data = oplog.encode(version=1, checkpointer=1, clock=[], abi=0, batch=1, value=b"v")
    >>> oplog.decode_system(data).version
    1
    """

def encode_message(
    record: Record | Mapping[str, Any] | None = None, /, *, dialect: DialectName = "draft", **fields: Any
) -> bytes:
    """Encodes one message of an oplog, without the length that frames it in a file: a Record, a mapping with the
    same names, or the fields. What `decode_message` gives encodes back to the same bytes where they were written
    in the shortest way.

    In "draft-1.1", `seq` is needed where the message refers to its own keys; other references have to be given
    with their `seq` and `offset`. In "autobase" version 2 is written.

    Raises ValueError for what the dialect cannot hold, TypeError.

    >>> from seglake import oplog
    >>> oplog.encode(version=1, checkpointer=1, clock=[], abi=0, batch=1, value=b"v").hex()
    '01010000010176'
    """

def uuid6(timestamp: datetime | None = None) -> _uuid.UUID:
    """A UUID of version 6, time-ordered (RFC 9562).

    Without `timestamp`, of the present time: each is greater than the one before, also within 100 ns and when the
    clock steps back. With `timestamp`, an aware datetime, of that time to the microsecond: repeated calls with
    one time ascend.

    Raises ValueError for a naive datetime or a time before 1582-10-15 or after 5236-03-31.

    >>> from datetime import UTC, datetime
    >>> seglake.uuid6(datetime(2024, 6, 15, 5, tzinfo=UTC)).version
    6
    """

def keep_unclosed() -> bool:
    """Has the writers that nobody closed write what they have: called when the process is about to end. They stay
    open, as what else is called then may write to them. Returns whether a writer that nobody closed has lost
    records, now or before.

    >>> from seglake._native import keep_unclosed
    >>> keep_unclosed()
    False
    """

def sync_file(path: str | PathLike[str], /) -> None:
    """Makes the content of a closed or flushed file survive a loss of power. Raises OSError.

    >>> from seglake._native import sync_file
    >>> sync_file("orders.active")
    """

def sync_folder(path: str | PathLike[str], /) -> None:
    """Makes the names in a folder survive a loss of power. Raises OSError. Windows syncs no folders, so there it
    does nothing.

    >>> from seglake._native import sync_folder
    >>> sync_folder(".")
    """

def rename(path: str | PathLike[str], to: str | PathLike[str], /) -> None:
    """Gives a file another name, and replaces the file that has it. The name survives a loss of power once its
    folder is synced. Raises OSError.

    >>> from seglake._native import rename
    >>> rename("orders.active", "orders-1.active")
    """

def rename_new(path: str | PathLike[str], to: str | PathLike[str], /) -> None:
    """Gives a file another name, as `rename` does, but replaces none. Raises FileExistsError where the name is
    taken, and OSError, also where the file system can only replace.

    >>> from seglake._native import rename_new
    >>> rename_new("orders.active", "orders-1.active")
    """

def row_hashes(rows: _ArrowArray, /) -> bytes:
    """Returns a hash of each row of a record batch or struct array with columns as those of records: 8 bytes each,
    in the machine's byte order. Rows with columns of the same types have the same hash if all their values are
    the same. A null differs from each value. Names of columns do not count.

    Raises TypeError for another object, a column of a type that no column of records has, or types nested deeper
    than 64.

    >>> import pyarrow
    >>> from seglake._native import row_hashes
    >>> rows = pyarrow.record_batch({"type": ["paid", "sent", "paid"]})
    >>> first, second, third = memoryview(row_hashes(rows)).cast("Q")
    >>> first == third, first == second
    (True, False)
    """

@final
class Reader:
    """An open segment. It can be read more than once, and by several threads: each iteration is a pass of its own.

    >>> orders = seglake.open("orders.active")
    >>> orders.count_rows(), orders.format
    (3, 'active')
    """
    @property
    def path(self) -> str | None:
        """The file's path; None where the source is no path.

        >>> orders = seglake.open("orders.active")
        >>> orders.path
        'orders.active'
        """
    @property
    def format(self) -> str:
        """The format's name.

        >>> orders = seglake.open("orders.active")
        >>> orders.format
        'active'
        """
    @property
    def nbytes(self) -> int:
        """The length of the file when it was opened, in bytes.

        >>> orders = seglake.open("orders.active")
        >>> orders.nbytes
        159
        """
    @property
    def schema(self) -> Schema:
        """The columns that Arrow batches have. `pyarrow.schema(reader.schema)` makes it a pyarrow schema.

        >>> orders = seglake.open("orders.active")
        >>> orders.schema.names
        ['uuid', 'timestamp', 'type', 'value']
        """
    @property
    def unproven(self) -> Literal["damage", "unchecked"] | None:
        """Why something that `get` or `get_many` did not find may be in the file all the same: `damage`, or
        `unchecked` for files without checksums. None where all that was not found is proven not to be there.

        >>> messages = seglake.open("orders.oplog")
        >>> messages.get(7), messages.unproven
        (None, 'unchecked')
        """
    @property
    def parity_refused(self) -> Literal["no_frame", "another_file"] | None:
        """Why the parity sidecar that the file is read by counts for nothing, as `ParityReport.refused` says it;
        None if it counts, or there is none.

        >>> seglake.protect("orders.active").change
        'created'
        >>> orders = seglake.open("orders.active")
        >>> orders.count_rows(), orders.parity_refused
        (3, None)
        """
    @property
    def report(self) -> Report:
        """What the latest pass has read so far. Before the first, it says what the records will be checked by.

        >>> orders = seglake.open("orders.active")
        >>> orders.count_rows(), orders.report.ok
        (3, True)
        """
    @property
    def position(self) -> Position | None:
        """Of a reader that `resume` gave: where to go on, once a pass has read to the end. None before that, and for
        other readers.

        >>> orders = seglake.incremental.resume("orders.active", None)
        >>> orders.count_rows(), orders.position.byte_offset
        (3, 159)
        """
    @property
    def pending_bytes(self) -> int | None:
        """Of a reader that `resume` gave: how many bytes of an unfinished record are at the end, once a pass has
        read to there. They are read when it is finished. None before that, and for other readers.

        >>> orders = seglake.incremental.resume("orders.active", None, size=150)
        >>> orders.count_rows(), orders.pending_bytes
        (2, 45)
        """
    def position_after_all(self) -> Position | None:
        """The position after all of a sealed or tenant file, which does not grow. Only the first record and the end
        are read for it. A whole pass gives the same position. None for a file that may grow, for one without a
        sound record, and for a reader that `resume` did not return or that begins at a position.

        Raises OSError if the file cannot be read, or was replaced meanwhile.

        >>> orders = seglake.incremental.resume("orders.sealed", None)
        >>> orders.position_after_all().byte_offset == orders.nbytes
        True
        """
    @property
    def closed(self) -> bool:
        """Whether the reader is closed.

        >>> with seglake.open("orders.active") as orders:
        ...     pass
        >>> orders.closed
        True
        """
    def __contains__(self, id: object, /) -> bool: ...
    def __bool__(self) -> Literal[True]: ...
    def __len__(self) -> NoReturn: ...
    def __array__(self, *arguments: object, **options: object) -> NoReturn: ...
    def __iter__(self) -> Records: ...
    def batches(
        self,
        batch_size: int = 131072,
        *,
        warn: bool = True,
        ahead: bool = False,
        uint64_type: Literal["uint64", "int64", "decimal"] = "uint64",
    ) -> Batches:
        """The records as Arrow record batches, which `pyarrow.record_batch` takes. Errors are raised as they are,
        while those within an Arrow stream come wrapped.

        batch_size: a batch ends before it has more rows; it has at least one.

        Each has the damage that was passed over on the way to it, as `Batch.damage`. If you report that, pass
        `warn=False`: then no DamageWarning is issued. Which warnings are shown is a setting of the whole process.

        For engines that take batches one by one: with `ahead`, a thread makes the next batch while you use the
        last one. With `uint64_type`, unsigned 64-bit numbers are `int64` ("int64"; LimitError for a number above
        2^63-1) or `decimal128(20, 0)` ("decimal").

        >>> orders = seglake.open("orders.active")
        >>> sum(batch.num_rows for batch in orders.batches())
        3
        """
    def to_table(self) -> Table:
        """The records as a `pyarrow.Table`, which takes as much memory as they do. Needs pyarrow.

        >>> orders = seglake.open("orders.active")
        >>> orders.to_table().column("type").to_pylist()
        ['order.created', 'order.paid', 'order.shipped']
        """
    def to_pandas(self) -> DataFrame:
        """The records as a `pandas.DataFrame`, whose columns are made of those of `to_table`. Needs pyarrow and
        pandas.

        >>> orders = seglake.open("orders.active", columns=["type"])
        >>> orders.to_pandas().shape
        (3, 1)
        """
    def to_polars(self) -> polars.DataFrame:
        """The records as a `polars.DataFrame`. Needs polars. What a scan gives is a `LazyFrame`.

        >>> orders = seglake.open("orders.active", columns=["type"])
        >>> orders.to_polars().shape
        (3, 1)
        """
    def head(self, rows: int = 5) -> Table:
        """The first `rows` records as a `pyarrow.Table`, without reading much more of the file than these. Needs
        pyarrow.

        Damage before them is an error, or passed over, as `on_damage` says. Raises ValueError where `rows` is
        negative.

        >>> orders = seglake.open("orders.active")
        >>> orders.head(1).num_rows
        1
        """
    def count_rows(self) -> int:
        """The number of records: those of `filters`, where there are some. Every record is checked, and none is
        copied.

        >>> orders = seglake.open("orders.active")
        >>> orders.count_rows()
        3
        """
    def split(self, max_bytes: int = 134217728) -> list[Part]:
        """Splits the file into parts of about `max_bytes` bytes each, which `part` reads by themselves, on any
        machine. Together they give each record, and each damaged range, that the whole file gives, once, in their
        order.

        There is one part where the file has no more bytes, where its format has no parts (active, oplog,
        tfrecord), or where it is not certain that parts give what the whole does: sealed files without a trailer,
        under a key that was not given, or with a damaged index; tenant files of version 1 or with a damaged table
        of contents; chunked files with a damaged header or a torn tail. Reads no records. Raises ValueError where
        `max_bytes` is not positive.

        >>> parts = seglake.open("orders.sealed").split(64)
        >>> sum(seglake.open("orders.sealed").part(part).count_rows() for part in parts)
        3
        """
    def part(self, part: Part, /) -> Reader:
        """A reader of one of the parts that `split` gave: its records and batches are of this part alone, while
        looking up and `ledger()` are of the whole file. Else it is as this one. Raises ValueError, when it reads,
        for a part of another file.

        >>> orders = seglake.open("orders.sealed")
        >>> [orders.part(part).count_rows() for part in orders.split()]
        [3]
        """
    def get(self, *id: Any, **fields: Any) -> Record | None:
        """One record, or None: by its UUID (active, sealed; a `uuid.UUID`, its 16 bytes or its text), offset
        (chunked), sequence number (oplog), or by partition, tenant and index (tenant), positional or by name.

        What is found has been checked. Reading strictly, damage at which the record might have stood is an error.
        Without checksums (sealed files without a trailer, version 1 of tenant files, oplogs) that a record is
        absent cannot be proven.

        >>> orders = seglake.open("orders.chunks")
        >>> orders.get(2).timestamp.isoformat(), orders.get(3)
        ('2024-06-15T07:00:00+00:00', None)
        >>> seglake.open("orders.tenant").get(0, "acme", 1).value
        b'{"order": 1}'
        """
    @overload
    def get_many(self, ids: _ArrowStream | _ArrowArray) -> Batch:
        """Several records, None where there is none, in the order in which they are asked for; some may be asked for
        twice.

        `ids` is a sequence of what `get` takes, tuples where that is several things: the result is a list of
        Records. Or it is an Arrow array (of a struct where it is several things): the result is a Batch of as
        many rows with the reader's columns, all null where there is no such record: the fastest way, for UUIDs
        with an array of `fixed_size_binary[16]`.

        >>> orders = seglake.open("orders.chunks")
        >>> [record and record.offset for record in orders.get_many([2, 9, 0])]
        [2, None, 0]
        """
    @overload
    def get_many(self, ids: Iterable[Any]) -> list[Record | None]: ...
    def range(self, filters: _Filters) -> Records:
        """The records that meet `filters`, as in `open`, reading no more of the file than it takes.

        >>> orders = seglake.open("orders.chunks")
        >>> [record.offset for record in orders.range([("offset", ">=", 1)])]
        [1, 2]
        """
    def partitions(self) -> list[int]:
        """The partitions of a tenant file, in ascending order. Raises ValueError for other formats.

        >>> orders = seglake.open("orders.tenant")
        >>> orders.partitions()
        [0]
        """
    def tenants(self, partition: int | None = None) -> list[str]:
        """The tenants of a tenant file, or of one of its partitions, each once in ascending order, as text like
        `Record.tenant`. Reads no more than the table of contents where that is sound. Raises ValueError for other
        formats.

        >>> orders = seglake.open("orders.tenant")
        >>> orders.tenants()
        ['acme', 'globex']
        """
    def blocks(self) -> list[Block]:
        """The sound blocks of a tenant file as Blocks in file order, whatever `on_damage` says. Raises ValueError
        for other formats.

        >>> orders = seglake.open("orders.tenant")
        >>> [(block.tenant, block.messages) for block in orders.blocks()]
        [('acme', 2), ('globex', 1)]
        """
    def index(self) -> Index | None:
        """A chunked file's index, held against the file; None where there is none. Raises ValueError for other
        formats.

        >>> orders = seglake.open("orders.chunks")
        >>> orders.index().ok
        True
        """
    def ledger(self, *, damaged_only: bool = False) -> Ledger:
        """The whole file as Spans in file order, whatever `on_damage` says. Each byte of the file is in exactly one.
        `damaged_only`: without those that are sound.

        >>> orders = seglake.open("orders.active")
        >>> sum(span.nbytes for span in orders.ledger()) == orders.nbytes
        True
        """
    @property
    def damage(self) -> list[Span]:
        """The damaged ranges that the latest pass has met so far, as in `Report.damage`: after reading to the end,
        all that concerned it. Before the first pass none. `seglake.verify` finds those of the whole file.

        >>> orders = seglake.open("damaged.active", on_damage="skip")
        >>> orders.count_rows(), [span.cause for span in orders.damage]
        (2, ['checksum_mismatch'])
        """
    def records_from(self, position: int) -> Records:
        """The records from the one that begins at `position` on: an offset in bytes, as `Record.position` gives it.
        Where no record begins there, it is damage.

        >>> orders = seglake.open("orders.active")
        >>> first, second, third = (record.position for record in orders)
        >>> [record.type for record in orders.records_from(second)]
        ['order.paid', 'order.shipped']
        """
    def read_bytes(self, start: int, end: int, *, restored: bool = False) -> bytes:
        """Bytes `start` to `end` of the file, as they are. `restored`: as the parity sidecar has them that it is
        read by. What a file that was cut off lacks is left out, unless it is restored.

        >>> orders = seglake.open("orders.active")
        >>> len(orders.read_bytes(0, 16))
        16
        """
    def close(self) -> None:
        """Closes the reader: every later use of it, also by iterators that it gave, raises ValueError.

        >>> orders = seglake.open("orders.active")
        >>> orders.close()
        >>> orders.closed
        True
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class ListedSegment:
    """A segment of a log as it was when `list_log` listed it: `open` and `verify` take it for what it was then, also
    when it was sealed since. It holds nothing open, and pickles.

    >>> from seglake._native import list_log
    >>> segments, synced = list_log("log")
    >>> seglake.open(segments[0]).count_rows()
    2
    """
    def __new__(
        cls,
        path: str,
        nbytes: int,
        bound: tuple[int, str | None, str, bool] | None,
        is_open: bool,
        is_frozen: bool,
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[str, int, tuple[int, str | None, str, bool] | None, bool, bool]: ...
    @property
    def log(self) -> str:
        """The log's folder.

        >>> from seglake._native import list_log
        >>> segments, synced = list_log("log")
        >>> segments[1].log
        'log'
        """
    @property
    def path(self) -> str:
        """The path of its file when it was listed.

        >>> from seglake._native import list_log
        >>> segments, synced = list_log("log")
        >>> segments[1].path.endswith(".active")
        True
        """
    @property
    def format(self) -> str:
        """The name of its format when it was listed.

        >>> from seglake._native import list_log
        >>> segments, synced = list_log("log")
        >>> [segment.format for segment in segments]
        ['sealed', 'active']
        """
    @property
    def is_sealed(self) -> bool:
        """Whether it was sealed when it was listed, so that its file is complete.

        >>> from seglake._native import list_log
        >>> segments, synced = list_log("log")
        >>> [segment.is_sealed for segment in segments]
        [True, False]
        """
    @property
    def nbytes(self) -> int:
        """How many bytes of it are to be read.

        >>> from seglake._native import list_log
        >>> segments, synced = list_log("log")
        >>> segments[1].nbytes == synced.byte_offset
        True
        """
    @property
    def sequence(self) -> int:
        """Its place in the log.

        >>> from seglake._native import list_log
        >>> segments, synced = list_log("log")
        >>> [segment.sequence for segment in segments]
        [1, 2]
        """
    @property
    def first(self) -> _uuid.UUID:
        """The UUID of its first record, which is its identity: it stays when the segment is sealed.

        >>> from seglake._native import list_log
        >>> segments, synced = list_log("log")
        >>> segments[0].first < segments[1].first
        True
        """
    @property
    def synced(self) -> int | None:
        """The offset that its records have to reach, where that is known: up to there it was on the disk.

        >>> from seglake._native import list_log
        >>> segments, synced = list_log("log")
        >>> segments[0].synced, segments[1].synced == synced.byte_offset
        (None, True)
        """
    @property
    def is_open(self) -> bool:
        """Whether it was being written: what is after `synced` is not read.

        >>> from seglake._native import list_log
        >>> segments, synced = list_log("log")
        >>> [segment.is_open for segment in segments]
        [False, True]
        """
    def up_to(self, synced: int, last: str | None, /) -> Self:
        """It as it was when it was being written, and on the disk up to this offset, with this UUID of the last
        record.

        >>> from seglake._native import list_log
        >>> segments, synced = list_log("log")
        >>> segments[1].up_to(synced.byte_offset, str(synced.last)) == segments[1]
        True
        """
    def check(self, *, key: _Key | None = None) -> None:
        """Opens it, and raises DamageError where its file ends before it has to. The key is as in `open`.

        >>> from seglake._native import list_log
        >>> segments, synced = list_log("log")
        >>> segments[1].check()
        """
    @property
    def unread(self) -> LogUnread | None:
        """What readers leave out of it, as a LogUnread; None where that is nothing, and in a copy.

        >>> from seglake._native import list_log
        >>> segments, synced = list_log("log")
        >>> segments[1].unread is None
        True
        """
    @property
    def is_frozen(self) -> bool:
        """Whether it is damaged or cut off, and kept as it is.

        >>> from seglake._native import list_log
        >>> segments, synced = list_log("log")
        >>> segments[1].is_frozen
        False
        """

def is_beside_segment(name: str, /) -> bool:
    """Whether a file of this name belongs to a segment of a log, whether or not that is still there: its parity
    sidecar, or what a repair or a recovery put aside.

    >>> from seglake._native import is_beside_segment
    >>> is_beside_segment("00000000000000000001-1eeafd69-b6b0-69f3-b9f1-1b8e6a30ade3.sealed.par")
    True
    """

def is_log_name(name: str, /) -> bool:
    """Whether a file of this name makes its folder that of a log: it is a synced mark, or a segment.

    >>> from seglake._native import is_log_name
    >>> is_log_name("_mark"), is_log_name("orders.sealed")
    (True, False)
    """

def list_log(
    folder: str | PathLike[str], *, key: _Key | None = None
) -> tuple[tuple[ListedSegment, ...], LogMark | None]:
    """Lists a log: its segments at one moment, in order, and how far it was known to be on the disk then. The key is
    as in `open`.

    Raises OSError where the folder cannot be read, FormatError where segments are missing, WrongKeyError where
    nothing checks under the key.

    >>> from seglake._native import list_log
    >>> segments, synced = list_log("log")
    >>> len(segments), synced.sequence
    (2, 2)
    """

@final
class Part:
    """A part of a file, from `Reader.split`: `Reader.part` reads it by itself. It holds no bytes of records and no
    key, and pickles as the JSON that `to_json` gives.

    >>> orders = seglake.open("orders.sealed")
    >>> [part] = orders.split()
    >>> orders.part(part).count_rows()
    3
    """
    @staticmethod
    def from_json(json: str) -> Part:
        """A part from what `to_json` gave. Raises ValueError where it is none.

        >>> [part] = seglake.open("orders.sealed").split()
        >>> seglake.incremental.Part.from_json(part.to_json()) == part
        True
        """
    def to_json(self) -> str:
        """The part as JSON, which is opaque: it may look different in another version.

        >>> [part] = seglake.open("orders.sealed").split()
        >>> type(part.to_json())
        <class 'str'>
        """
    @property
    def nbytes(self) -> int:
        """About how many bytes of the file are read for it.

        >>> [part] = seglake.open("orders.sealed").split()
        >>> part.nbytes == seglake.open("orders.sealed").nbytes
        True
        """
    @property
    def is_whole(self) -> bool:
        """Whether it is the whole file.

        >>> [part] = seglake.open("orders.sealed").split()
        >>> part.is_whole
        True
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Position:
    """Up to where a file was read, and what reading on needs: `resume` takes it, and `Reader.position` gives it. It
    holds no key and no value of a record, and pickles as the JSON that `to_json` gives.

    >>> orders = seglake.incremental.resume("orders.active", None)
    >>> orders.count_rows(), orders.position.byte_offset
    (3, 159)
    """
    @staticmethod
    def from_json(json: str) -> Position:
        """A position from what `to_json` gave, which may come from anywhere: it is checked. Raises ValueError where
        it is none.

        >>> orders = seglake.incremental.resume("orders.active", None)
        >>> orders.count_rows()
        3
        >>> seglake.incremental.Position.from_json(orders.position.to_json()) == orders.position
        True
        """
    def to_json(self) -> str:
        """The position as JSON, which is opaque but for its member `version`. It has at most 52 KiB, most often some
        500 bytes.

        >>> orders = seglake.incremental.resume("orders.active", None)
        >>> orders.count_rows(), type(orders.position.to_json())
        (3, <class 'str'>)
        """
    @property
    def format(self) -> str:
        """The name of the format that the file had.

        >>> orders = seglake.incremental.resume("orders.active", None)
        >>> orders.count_rows(), orders.position.format
        (3, 'active')
        """
    @property
    def identity(self) -> str | None:
        """What identifies the file, as `identity` gives it; None as long as it had no whole record that is sound.

        >>> orders = seglake.incremental.resume("orders.active", None)
        >>> orders.count_rows(), orders.position.identity == seglake.incremental.identity("orders.active")
        (3, True)
        """
    @property
    def byte_offset(self) -> int:
        """The offset up to which the file was read. 0 for a segment of a log that was sealed since it was listed:
        see `uuid`.

        >>> orders = seglake.incremental.resume("orders.active", None)
        >>> orders.count_rows(), orders.position.byte_offset
        (3, 159)
        """
    @property
    def uuid(self) -> _uuid.UUID | None:
        """The UUID of the last sound record that was read; None if that is not known, and for formats whose records
        have none.

        >>> orders = seglake.incremental.resume("orders.active", None)
        >>> orders.count_rows(), orders.position.uuid == list(seglake.open("orders.active"))[-1].uuid
        (3, True)
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Records(Iterator[Record]):
    """An iterator over the records of a reader.

    >>> orders = seglake.open("orders.active")
    >>> next(iter(orders)).type
    'order.created'
    """
    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...

@final
class Batches(Iterator[Batch]):
    """An iterator over record batches. Those that are left are an Arrow stream, which pyarrow, polars and DuckDB
    take once.

    >>> orders = seglake.open("orders.active")
    >>> [batch.num_rows for batch in orders.batches()]
    [3]
    """
    def __iter__(self) -> Self: ...
    def __next__(self) -> Batch: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    @property
    def schema(self) -> Schema:
        """The columns that each batch has.

        >>> batches = seglake.open("orders.active").batches()
        >>> batches.schema.names
        ['uuid', 'timestamp', 'type', 'value']
        """
    @property
    def report(self) -> Report:
        """What this pass has read so far.

        >>> batches = seglake.open("orders.active").batches()
        >>> [batch.num_rows for batch in batches], batches.report.records
        ([3], 3)
        """

@final
class Ledger(Iterator[Span]):
    """An iterator over the ranges of a file, in file order.

    >>> [span.kind for span in seglake.open("damaged.active").ledger()]
    ['record', 'corrupt', 'record']
    """
    def __iter__(self) -> Self: ...
    def __next__(self) -> Span: ...

@final
class Batch:
    """Some records as an Arrow record batch, and the damage that was found on the way to them.

    >>> import pyarrow
    >>> [batch] = seglake.open("orders.active").batches()
    >>> pyarrow.record_batch(batch).num_rows
    3
    """
    @property
    def num_rows(self) -> int:
        """How many records there are; 0 where only damage was found.

        >>> [batch] = seglake.open("orders.active").batches()
        >>> batch.num_rows
        3
        """
    @property
    def value_bytes(self) -> int:
        """How many bytes the records' values have.

        >>> [batch] = seglake.open("orders.active").batches()
        >>> batch.value_bytes
        36
        """
    def renamed(self, schema: Schema) -> Batch:
        """The same records and damage, with the names of a schema whose columns have the same types. Raises
        ValueError where they have not.

        >>> import pyarrow
        >>> orders = seglake.open("orders.chunks", columns=["value"])
        >>> [batch] = orders.batches()
        >>> renamed = batch.renamed(orders.schema.renamed("value", "body"))
        >>> pyarrow.record_batch(renamed).schema.names
        ['body']
        """
    @property
    def damage(self) -> list[Span]:
        """Damaged ranges that became known since the batch before, as Spans in file order.

        >>> batches = seglake.open("damaged.active", on_damage="skip").batches()
        >>> [span.cause for batch in batches for span in batch.damage]
        ['checksum_mismatch']
        """
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class Schema:
    """The columns of batches.

    >>> import pyarrow
    >>> schema = seglake.open("orders.active").schema
    >>> pyarrow.schema(schema).names
    ['uuid', 'timestamp', 'type', 'value']
    """
    @property
    def names(self) -> list[str]:
        """The columns' names.

        >>> orders = seglake.open("orders.active")
        >>> orders.schema.names
        ['uuid', 'timestamp', 'type', 'value']
        """
    @property
    def types(self) -> list[str]:
        """The columns' Arrow types, as text.

        >>> orders = seglake.open("orders.chunks")
        >>> orders.schema.types
        ['Int64', 'Timestamp(µs, "UTC")', 'Binary']
        """
    def renamed(self, name: str, new: str) -> Schema:
        """The same columns with another name for the one that is called `name`.

        >>> orders = seglake.open("orders.chunks")
        >>> orders.schema.renamed("value", "body").names
        ['offset', 'timestamp', 'body']
        """
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Record:
    """A checked record. Its attributes are the columns of its format; those that are structures are dicts, or lists
    of them.

    >>> record = next(iter(seglake.open("orders.active")))
    >>> record.type, record.value
    ('order.created', b'{"order": 1}')
    """
    @property
    def uuid(self) -> _uuid.UUID:
        """active, sealed: the record's `uuid.UUID`, of version 6.

        >>> record = next(iter(seglake.open("orders.active")))
        >>> record.uuid.version
        6
        """
    @property
    def timestamp(self) -> datetime | None:
        """active, sealed, chunked: the record's time as an aware datetime in UTC, to the microsecond; None where the
        calendar cannot hold it.

        >>> record = next(iter(seglake.open("orders.active")))
        >>> record.timestamp.isoformat()
        '2024-06-15T05:00:00+00:00'
        """
    @property
    def timestamp_us(self) -> int:
        """active, sealed, chunked: the record's time in microseconds since 1970-01-01 UTC.

        >>> record = next(iter(seglake.open("orders.active")))
        >>> record.timestamp_us
        1718427600000000
        """
    @property
    def type(self) -> str:
        r"""active, sealed: the type as text: UTF-8, with `\xNN` for each byte that is not, and `\x5c` for a
        backslash.

        >>> record = next(iter(seglake.open("orders.active")))
        >>> record.type
        'order.created'
        """
    @property
    def type_bytes(self) -> bytes:
        """active, sealed: the type as it is in the file.

        >>> record = next(iter(seglake.open("orders.active")))
        >>> record.type_bytes
        b'order.created'
        """
    @property
    def partition(self) -> int:
        """tenant: the partition's ID.

        >>> orders = seglake.open("orders.tenant")
        >>> [record.partition for record in orders]
        [0, 0, 0]
        """
    @property
    def tenant(self) -> str:
        """tenant: the tenant's ID as text, shown like `type`.

        >>> orders = seglake.open("orders.tenant")
        >>> [record.tenant for record in orders]
        ['acme', 'acme', 'globex']
        """
    @property
    def tenant_bytes(self) -> bytes:
        """tenant: the tenant's ID as it is in the file.

        >>> orders = seglake.open("orders.tenant")
        >>> next(iter(orders)).tenant_bytes
        b'acme'
        """
    @property
    def index(self) -> int:
        """tenant: the record's place among those of its tenant in its partition, from 0.

        >>> orders = seglake.open("orders.tenant")
        >>> [record.index for record in orders]
        [0, 1, 0]
        """
    @property
    def offset(self) -> int:
        """chunked: the message offset.

        >>> orders = seglake.open("orders.chunks")
        >>> [record.offset for record in orders]
        [0, 1, 2]
        """
    @property
    def seq(self) -> int:
        """oplog: the message's place in the log, from 0.

        >>> [message.seq for message in seglake.open("orders.oplog")]
        [0, 1, 2]
        """
    @property
    def version(self) -> int:
        """oplog: the version of the message's layout.

        >>> message = seglake.open("orders.oplog").get(0)
        >>> message.version
        1
        """
    @property
    def checkpointer(self) -> int | None:
        """oplog: how many messages ago the last checkpoint was.

        >>> message = seglake.open("orders.oplog").get(0)
        >>> message.checkpointer
        1
        """
    @property
    def checkpoint(self) -> dict[str, Any] | None:
        """oplog: the checkpoint as a dict, or None.

        >>> message = seglake.open("orders.oplog").get(0)
        >>> print(message.checkpoint)
        None
        """
    @property
    def clock(self) -> list[dict[str, Any]]:
        """oplog: the vector clock as a list of dicts of `key` and `length`.

        >>> message = seglake.open("orders.oplog").get(0)
        >>> [entry["length"] for entry in message.clock]
        [5]
        """
    @property
    def abi(self) -> int | None:
        """oplog: the version of the application's values.

        >>> message = seglake.open("orders.oplog").get(0)
        >>> message.abi
        0
        """
    @property
    def batch(self) -> int:
        """oplog: how many messages of an atomic batch are still to come.

        >>> message = seglake.open("orders.oplog").get(0)
        >>> message.batch
        0
        """
    @property
    def keys(self) -> list[bytes] | None:
        """oplog: the keys that the message declares, as a list of bytes, or None.

        >>> from seglake import oplog
        >>> key = bytes(32)
        >>> fields = {"version": 1, "checkpointer": 1, "clock": [], "abi": 0, "batch": 0, "value": b"", "keys": [key]}
        >>> data = oplog.encode({**fields, "seq": 0}, dialect="draft-1.1")
        >>> oplog.decode(data, dialect="draft-1.1").keys == [key]
        True
        """
    @property
    def max_supported_version(self) -> int | None:
        """oplog, `autobase`: the newest version that the writer understood, or None.

        >>> message = seglake.open("autobase.oplog", options={"dialect": "autobase"}).get(0)
        >>> print(message.max_supported_version)
        None
        """
    @property
    def optimistic(self) -> bool | None:
        """oplog, `autobase`: whether the message is optimistic.

        >>> message = seglake.open("autobase.oplog", options={"dialect": "autobase"}).get(0)
        >>> message.optimistic
        False
        """
    @property
    def digest(self) -> dict[str, Any] | None:
        """oplog, `autobase`: the digest as a dict of `pointer` and `key`, or None.

        >>> message = seglake.open("autobase.oplog", options={"dialect": "autobase"}).get(0)
        >>> print(message.digest)
        None
        """
    @property
    def trace(self) -> dict[str, Any] | None:
        """oplog, `autobase`: the trace as a dict, or None.

        >>> message = seglake.open("autobase.oplog", options={"dialect": "autobase"}).get(0)
        >>> print(message.trace)
        None
        """
    @property
    def flags(self) -> int | None:
        """oplog, `autobase`: the outer flags as they are in the message, or None.

        >>> message = seglake.open("autobase.oplog", options={"dialect": "autobase"}).get(0)
        >>> type(message.flags)
        <class 'int'>
        """
    @property
    def extra(self) -> bytes | None:
        """oplog, `autobase`: bytes after the fields that this version knows, or None.

        >>> message = seglake.open("autobase.oplog", options={"dialect": "autobase"}).get(0)
        >>> print(message.extra)
        None
        """
    @property
    def value(self) -> bytes | Any:
        """The message; None where an oplog's has none.

        >>> record = next(iter(seglake.open("orders.active")))
        >>> record.value
        b'{"order": 1}'
        """
    @property
    def position(self) -> int:
        """Where the record begins in its file, in bytes; in a chunked file, where its chunk does.

        >>> orders = seglake.open("orders.active")
        >>> [record.position for record in orders]
        [0, 54, 105]
        """
    @property
    def cause(self) -> str | None:
        """What is wrong with a record that is given out all the same (`dangling_reference`), or None.

        >>> record = next(iter(seglake.open("orders.active")))
        >>> print(record.cause)
        None
        """
    def __getitem__(self, name: str, /) -> Any: ...
    def to_dict(self) -> dict[str, Any]:
        """The fields, those among them that are derived, and the position as a dict of the same names.

        >>> orders = seglake.open("orders.chunks")
        >>> orders.get(1).to_dict()["offset"]
        1
        """
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Report:
    """What was found in a file, or in the part of it that has been read.

    >>> report = seglake.verify("damaged.active")
    >>> report.ok, report.records
    (False, 2)
    """
    @property
    def ok(self) -> bool:
        """Whether nothing is damaged.

        >>> report = seglake.verify("damaged.active")
        >>> report.ok
        False
        """
    def __bool__(self) -> bool: ...
    @property
    def path(self) -> str | None:
        """The file, or None for a buffer.

        >>> report = seglake.verify("damaged.active")
        >>> report.path
        'damaged.active'
        """
    @property
    def format(self) -> str:
        """The format's name.

        >>> report = seglake.verify("damaged.active")
        >>> report.format
        'active'
        """
    @property
    def checked(self) -> Literal["checksum", "structure", "parity"]:
        """How records were checked: "checksum", or where the file has no checksums "parity" (by its sidecar) or
        "structure".

        >>> report = seglake.verify("damaged.active")
        >>> report.checked
        'checksum'
        """
    @property
    def nbytes(self) -> int:
        """How many bytes of the file are accounted for: all of them once it has been read to its end.

        >>> report = seglake.verify("damaged.active")
        >>> report.nbytes == sum(total.nbytes for total in report.totals)
        True
        """
    @property
    def records(self) -> int:
        """How many records are sound.

        >>> report = seglake.verify("damaged.active")
        >>> report.records
        2
        """
    @property
    def repaired_records(self) -> int:
        """How many records have damaged bytes that the file's parity sidecar restores. They are not among the sound
        ones.

        >>> seglake.verify("damaged.active").repaired_records
        0
        """
    @property
    def first_timestamp_us(self) -> int | None:
        """The least time of a record, in microseconds since 1970-01-01 UTC.

        >>> report = seglake.verify("damaged.active")
        >>> report.first_timestamp_us
        1718427600000000
        """
    @property
    def last_timestamp_us(self) -> int | None:
        """The greatest time of a record, in microseconds since 1970-01-01 UTC.

        >>> report = seglake.verify("damaged.active")
        >>> report.last_timestamp_us
        1718434800000000
        """
    @property
    def totals(self) -> list[Total]:
        """Bytes and ranges by kind and cause, as Totals.

        >>> report = seglake.verify("damaged.active")
        >>> [(total.kind, total.ranges) for total in report.totals]
        [('record', 2), ('corrupt', 1)]
        """
    @property
    def damage(self) -> list[Span]:
        """The first 10,000 damaged ranges, in file order, as Spans.

        >>> report = seglake.verify("damaged.active")
        >>> [(span.start, span.end) for span in report.damage]
        [(54, 105)]
        """
    @property
    def damage_truncated(self) -> bool:
        """Whether there are more damaged ranges than `damage` names; `totals` counts them all.

        >>> report = seglake.verify("damaged.active")
        >>> report.damage_truncated
        False
        """
    @property
    def wrong_key(self) -> bool:
        """Whether nothing checked though the structure is sound to the end: the key is probably not the file's.

        >>> seglake.verify("orders.active", key=bytes([7] * 32)).wrong_key
        True
        """
    @property
    def parity(self) -> ParityReport | None:
        """What the file's parity sidecar says of both, as ParityReport. None where the file was verified without
        one.

        >>> seglake.protect("orders.active").change
        'created'
        >>> seglake.verify("orders.active").parity.outcome
        'sound'
        """
    @property
    def diagnoses(self) -> list[Diagnosis]:
        """What the first damaged ranges probably come from, as Diagnosis, in the order of `damage`: empty unless
        `verify` was asked to explain.

        >>> [diagnosis] = seglake.verify("damaged.active").diagnoses
        >>> diagnosis.start, diagnosis.cause
        (54, 'checksum_mismatch')
        """
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_dict(self) -> dict[str, Any]:
        """All attributes as a dict of the same names, fit for JSON: each total, damaged range and diagnosis is a
        dict of its fields.

        >>> report = seglake.verify("damaged.active")
        >>> report.to_dict()["records"]
        2
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Index:
    """The index of a chunked file, as it is on disk and as far as it agrees with the file.

    >>> index = seglake.open("orders.chunks").index()
    >>> len(index), index.ok
    (2, True)
    """
    @property
    def path(self) -> str | None:
        """The index's path; None where it is no file.

        >>> orders = seglake.open("orders.chunks")
        >>> orders.index().path
        'orders.index'
        """
    @property
    def nbytes(self) -> int:
        """The index's length in bytes.

        >>> orders = seglake.open("orders.chunks")
        >>> orders.index().nbytes
        40
        """
    @property
    def ok(self) -> bool:
        """Whether all of it agrees with the file.

        >>> orders = seglake.open("orders.chunks")
        >>> orders.index().ok
        True
        """
    @property
    def beyond(self) -> IndexItem | None:
        """The IndexItem whose chunk would be the last of those after the end of the file; None where there are none.
        It is there if the file was cut off, or if the index is that of another one: then the index is the only
        list of what is missing.

        >>> orders = seglake.open("orders.chunks")
        >>> orders.index().beyond is None
        True
        """
    @property
    def items(self) -> list[IndexItem]:
        """The items that hold, as IndexItems.

        >>> orders = seglake.open("orders.chunks")
        >>> orders.index().items
        [IndexItem(offset=0, position=0), IndexItem(offset=2, position=128)]
        """
    def ledger(self) -> Ledger:
        """The index's own ranges as Spans in order; an item that holds is a `record`.

        >>> orders = seglake.open("orders.chunks")
        >>> [span.kind for span in orders.index().ledger()]
        ['record', 'record']
        """
    def __len__(self) -> int: ...

@final
class Writer:
    """Writes records to one file. Leaving the `with` block closes it.

    Append-only formats (active, chunked, oplog, tfrecord) buffer: `flush` hands records to the operating system,
    `sync` to the disk, and what was written until an exception leaves the `with` block is valid. Formats that are
    written whole (sealed, tenant) appear under their name when they are closed, and not at all when the block is
    left by an exception.

    >>> with seglake.create("new.chunks", format="chunked") as orders:
    ...     orders.write(timestamp=0, value=b"first"), orders.write(timestamp=1, value=b"second")
    (0, 1)
    """
    @property
    def path(self) -> str:
        """The file's path.

        >>> with seglake.create("new.active", format="active") as orders:
        ...     orders.path
        'new.active'
        """
    @property
    def format(self) -> str:
        """The format's name.

        >>> with seglake.create("new.active", format="active") as orders:
        ...     orders.format
        'active'
        """
    @property
    def extension(self) -> str:
        """The usual extension of such files, without the dot.

        >>> with seglake.create("new.log", format="active") as orders:
        ...     orders.extension
        'active'
        """
    @property
    def required(self) -> list[str]:
        """The columns of which each record has a value of its own, in their order. The others follow from the rest
        or may be missing.

        >>> with seglake.create("new.active", format="active") as orders:
        ...     orders.required
        ['uuid', 'type', 'value']
        """
    @property
    def position(self) -> int | None:
        """Where the next record will begin, in bytes from the start of the file; None where that is not known yet.

        >>> with seglake.create("new.active", format="active") as orders:
        ...     orders.position
        0
        """
    @property
    def last(self) -> Any:
        """What the last record in the file is found by, as `write` returned it; None while there is none.

        >>> with seglake.create("new.chunks", format="chunked") as orders:
        ...     orders.last, orders.write(timestamp=0, value=b""), orders.last
        (None, 0, 0)
        """
    @property
    def found(self) -> Report | None:
        """What was in the file when it was opened to append to; None where formats are written whole.

        >>> with seglake.create("new.active", format="active") as orders:
        ...     orders.found.records
        0
        """
    @property
    def closed(self) -> bool:
        """Whether the writer is closed.

        >>> with seglake.create("new.active", format="active") as orders:
        ...     pass
        >>> orders.closed
        True
        """
    @overload
    def write(self, record: Record | Mapping[str, Any], /) -> Any:
        """Writes one record: a Record, a mapping with the same names as `Record.to_dict` gives, or the fields.
        Returns what it will be found by: its UUID (active, sealed), offset (chunked), sequence number (oplog),
        position (tfrecord), or partition, tenant and index (tenant).

        Fields go by their names. Of active and sealed files type and value may come first without: `write(type,
        value, *, timestamp=None, uuid=None)`, as `SegmentLog.write` has them. The UUID is then made of
        `timestamp`, an aware datetime or microseconds since 1970, or of the present time.

        What follows from the rest may be left out: `uuid`, `timestamp`, `offset`, `index`, `seq`. `type` and
        `tenant` as text are taken as records show them. `value` as text is written as UTF-8. A `partition` and
        `tenant` without a `value` add a tenant that has no messages.

        Raises ValueError for what the format cannot hold (UUIDs or offsets that do not ascend, lengths, unknown
        fields), and TypeError: nothing is written then. Raises OSError where a full buffer cannot be written.

        >>> with seglake.create("new.tenant") as orders:
        ...     orders.write(partition=0, tenant="acme", value="first")
        (0, 'acme', 0)
        """
    @overload
    def write(
        self,
        type: str | Buffer,
        value: str | Buffer,
        /,
        *,
        timestamp: datetime | int | None = None,
        uuid: _uuid.UUID | str | bytes | None = None,
    ) -> Any: ...
    @overload
    def write(self, **fields: Any) -> Any: ...
    def write_batch(self, records: _Rows, /) -> int:
        """Writes many records and returns how many: an Arrow table, record batch or stream, or an iterable of
        Records, mappings with the names of `write`, or (active, sealed) tuples of type and value. Columns that
        may be left out in `write` may be missing. `path`, `position` and `cause` may be there too, and are not
        written.

        Raises RowError for what `write` refuses: its `row` is the number of the row, and those before it are
        written. Where the iterable fails, raises its error, and `last` says which record was written last. Raises
        ValueError for other columns.

        >>> with seglake.create("new.active") as orders:
        ...     orders.write_batch([("order.created", b"1"), {"type": "order.paid", "value": b"2"}])
        2
        """
    def flush(self) -> None:
        """Hands all records to the operating system. After an OSError it can be called again.

        >>> with seglake.create("new.active", format="active") as orders:
        ...     id = orders.write(type="order.paid", value=b"")
        ...     orders.flush()
        ...     seglake.verify("new.active").records
        1
        """
    def sync(self) -> None:
        """Hands all records to the disk. After an OSError the file must be opened again.

        >>> with seglake.create("new.active", format="active") as orders:
        ...     id = orders.write(type="order.paid", value=b"")
        ...     orders.sync()
        """
    def close(self) -> None:
        """Completes and closes the file. Closing twice does nothing; after an OSError it can be called again.

        >>> orders = seglake.create("new.active", format="active")
        >>> orders.close()
        >>> orders.closed
        True
        """
    def abandon(self) -> None:
        """Closes the file without completing it: append-only formats keep what was written, the others leave
        nothing.

        >>> import os
        >>> orders = seglake.create("new.sealed", format="sealed")
        >>> orders.abandon()
        >>> os.path.exists("new.sealed")
        False
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class SegmentLog:
    """A durable log: a folder of segments, one of which is written. Use it in a `with` block, or call `close`.

    One process writes, with any number of threads; any number of processes read. Every segment is a file of its
    own: an active segment, which becomes a sealed one in the background when it is full. Names that begin with
    `_` are the log's own.

    path: the folder; one that does not exist is made.
    key: the key of the checksums, as in `open`; one.
    segment_bytes: a segment ends before it has more bytes. None is 64 MiB.
    segment_age: a segment ends before a record that is later than its first one by so many seconds, a timedelta,
        or text such as "12h", going by their UUIDs. All durations may be given so.
    max_clock_ahead: a record whose time is so much ahead of the clock is refused: all later ones would get its
        time. None is a day.
    durability: what `write` waits for. "fsync": the record is on the disk, and survives a loss of power; threads
        that write at the same time share a sync. "flush": the operating system has it, and it survives the end of
        the process. "none": it may be in the memory of the process alone. None is "fsync".
    mark_interval: so long after a write the mark survives a loss of power as well: damage before it is never
        taken for the end of the log. Readers see it at once. None is 0.1.
    retention: a dict of what is removed, whenever a segment is sealed: `age`, sealed and frozen segments that are
        older, such as "7d"; `bytes`, the oldest ones while all of these together have more bytes.
    seal: whether segments that are full are sealed. None is True.
    protect: a profile as in `seglake.protect`, such as "128+8": each sealed segment gets a parity sidecar, from
        which `repair` restores damaged bytes. Those that have none yet get one in the background. None: no
        sidecars are made.
    on_damage: what reading the log does at damage. "raise" raises DamageError after the records before it, and
        FormatError for a segment that is missing; "skip" goes on after it, and warns (DamageWarning).
    readonly: open the log to read, beside its writer. Nothing is locked or changed. Of the others only `key` and
        `on_damage` can be given then.

    Raises OSError where the folder cannot be used, or another writer has it open (the error names its process);
    FormatError where segments are missing, and for a folder of other files; WrongKeyError where nothing checks
    under the key; FileNotFoundError with readonly=True. Warns (ClockAheadWarning) where the last record is ahead
    of the clock, which `clock_ahead` tells.

    >>> with seglake.SegmentLog("new") as log:
    ...     uuid = log.write("order.paid", b"...")
    ...     [record.type for record in log]
    ['order.paid']
    """
    def __new__(
        cls,
        path: str | PathLike[str],
        *,
        key: _Key | None = None,
        segment_bytes: int | None = None,
        segment_age: float | timedelta | str | None = None,
        max_clock_ahead: float | timedelta | str | None = None,
        durability: Literal["fsync", "flush", "none"] | None = None,
        mark_interval: float | timedelta | str | None = None,
        retention: Retention | None = None,
        seal: bool | None = None,
        protect: ProfileName | None = None,
        on_damage: Literal["raise", "skip"] = "raise",
        readonly: bool = False,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """The log's folder.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.path
        'log'
        """
    @property
    def readonly(self) -> bool:
        """Whether the log is open to read only.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.readonly
        True
        """
    @property
    def closed(self) -> bool:
        """Whether the log is closed.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.closed
        False
        """
    @property
    def recovered(self) -> list[LogRecovery]:
        """What was put in order when the log was opened, since its last writer did not close it: a list of
        LogRecovery.

        >>> with seglake.SegmentLog("new") as log:
        ...     log.recovered
        []
        """
    @property
    def clock_ahead(self) -> timedelta | None:
        """How far the last record is ahead of the clock, as a timedelta: records of the present time get times after
        it. None by less than a second.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.clock_ahead is None
        True
        """
    @property
    def unread(self) -> LogUnread | None:
        """What readers leave out, as a LogUnread, since it is after the synced mark and no writer has the log open;
        None if that is nothing. Reading such a log warns of it (UnreadWarning).

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.unread is None
        True
        """
    @property
    def synced(self) -> LogMark | None:
        """How far the log is known to be on the disk, as a LogMark; None while nothing is.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.synced.sequence
        2
        """
    def write(
        self,
        type: str | Buffer,
        value: str | Buffer,
        *,
        timestamp: datetime | int | None = None,
        uuid: _uuid.UUID | str | bytes | None = None,
    ) -> _uuid.UUID:
        """Appends one record and waits as `durability` says. Returns its UUID.

        type: text, shown as records show it, or bytes; at most 255 bytes.
        value: bytes, or text as UTF-8; at most 4294967295 bytes.
        timestamp: an aware datetime or microseconds since 1970, of which the UUID is made; None is the present
            time.
        uuid: a UUID of version 6 that is greater than all in the log, instead of one that is made.

        Raises ValueError for what the log cannot hold, and OSError where it cannot be written, such as to a full
        disk: the record is not in the log then. Raises OutcomeUnknownError where a sync failed: the record may be
        in the log or not, and nothing more can be written.

        >>> with seglake.SegmentLog("new") as log:
        ...     uuid = log.write("order.paid", b"...")
        ...     log.get(uuid).value
        b'...'
        """
    def write_batch(self, records: _Rows, /) -> Uuids:
        """Appends many records and waits once for all of them. Returns their UUIDs, a sequence that makes each one
        when it is asked for.

        records: an Arrow table, record batch or stream with the columns `type` and `value`, and perhaps `uuid` or
            `timestamp`; or an iterable of Records, mappings with these names, or tuples of type and value.

        The batch is not a transaction: after a crash some of its records may be in the log. Raises RowError for
        what `write` refuses: its `row` is the number of the row, and those before it are in the log. Raises
        PartialWriteError where only the first records could be written, such as to a full disk, and
        OutcomeUnknownError as `write` does: the attribute `written` of both has the UUIDs of those that are in
        the log. An Arrow stream is written batch by batch, and an iterable in pieces of 16 MiB: where it fails
        after the first, that is a PartialWriteError as well. Otherwise raises what `write` or the iterable
        raises, and none of the records is in the log.

        >>> with seglake.SegmentLog("new") as log:
        ...     len(log.write_batch([("order.created", b"1"), ("order.paid", b"2")]))
        2
        """
    def sync(self) -> None:
        """Makes all records that were written survive a loss of power, and visible to readers. Raises what `write`
        raises.

        >>> with seglake.SegmentLog("new", durability="none") as log:
        ...     uuid = log.write("order.paid", b"...")
        ...     log.sync()
        ...     log.synced.last == uuid
        True
        """
    def roll(self) -> None:
        """Ends the active segment: the next record begins another, and the old one is sealed. Raises what `write`
        raises.

        >>> with seglake.SegmentLog("new") as log:
        ...     for value in "ab":
        ...         uuid = log.write("order.paid", value)
        ...         log.roll()
        ...     len(log.segments())
        2
        """
    def wait_sealed(self) -> None:
        """Waits until all segments that are full are sealed, with `protect` until sealed ones have their sidecar,
        and those that `retention` names are removed. Raises what hindered sealing or protecting, which is tried
        again when the log is opened next, or removing, which is tried again when the next segment ends.

        >>> with seglake.SegmentLog("new") as log:
        ...     uuid = log.write("order.paid", b"...")
        ...     log.roll()
        ...     log.wait_sealed()
        ...     log.segments()[0].kind
        'sealed'
        """
    def retain(self, *, age: float | timedelta | str | None = None, bytes: int | None = None) -> list[LogSegment]:
        """Removes the oldest sealed and frozen segments and returns them as a list of LogSegment. The newest segment
        always stays.

        age: those that are older than so many seconds, a timedelta, or text such as "7d".
        bytes: the oldest ones, while all of these together have more bytes.

        >>> with seglake.SegmentLog("new") as log:
        ...     len(log.retain(bytes=1_000_000))
        0
        """
    def close(self) -> None:
        """Makes all records survive a loss of power and closes the log. Segments that are full are sealed before
        this returns. Closing twice does nothing. Raises what `write` raises; the log is closed all the same.
        Ctrl-C interrupts the wait for segments to be sealed: nothing more is written then, but other writers are
        kept out until `close` is called again and waits on, or the log is freed.

        >>> log = seglake.SegmentLog("new")
        >>> log.close()
        >>> log.closed
        True
        """
    def snapshot(self, path: str | PathLike[str], /) -> None:
        """Makes a folder with what is on the disk now, which is a log of its own: it can be read and written, and
        this log as well. Sealed segments are linked where that is possible, so that they take no room until
        retention removes them here.

        path: the folder, which does not exist yet. It appears when all of it is on the disk.

        Raises FileExistsError where there is something, and OSError where it cannot be written.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.snapshot("taken")
        >>> len(seglake.SegmentLog("taken", readonly=True).segments())
        2
        """
    def segments(self) -> list[LogSegment]:
        """The segments that are there now, in order, as a list of LogSegment.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> [(segment.sequence, segment.kind) for segment in log.segments()]
        [(1, 'sealed'), (2, 'active')]
        """
    def get(self, uuid: _uuid.UUID | str | bytes, /) -> Record | None:
        """Finds one record by its UUID; None if it is not in the log. Raises DamageError where damage may have been
        it.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.get(log.synced.last).type
        'order.shipped'
        """
    def get_many(self, uuids: Iterable[_uuid.UUID | str | bytes], /) -> list[Record | None]:
        """Several records by their UUIDs, None where there is none, in the order in which they are asked for. Each
        segment is opened once.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> [record and record.type for record in log.get_many([log.synced.last, seglake.uuid6()])]
        ['order.shipped', None]
        """
    def range(self, filters: _Filters | None = None, *, on_damage: Literal["raise", "skip"] | None = None) -> Records:
        """The records that meet all filters, as an iterator. Segments that cannot have any are not opened.

        filters: as in `open`.
        on_damage: as that of the log, or another one here.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> [record.value for record in log.range([("type", "==", "order.paid")])]
        [b'2']
        """
    def __contains__(self, id: object, /) -> bool: ...
    def __bool__(self) -> Literal[True]: ...
    def __len__(self) -> NoReturn: ...
    def __array__(self, *arguments: object, **options: object) -> NoReturn: ...
    def __iter__(self) -> Records: ...
    def batches(
        self,
        *,
        columns: Sequence[str] | None = None,
        filters: _Filters | None = None,
        uuid_type: Literal["uuid", "arrow.uuid", "binary", "string"] = "uuid",
        batch_size: int = 131072,
        on_damage: Literal["raise", "skip"] | None = None,
    ) -> Batches:
        """The records as Arrow record batches, which `pyarrow.record_batch` takes: those that are on the disk now.
        Segments that cannot have any are not opened.

        columns: their names; None is all. Beside those of the records there are `path`, the log's folder, and
            `position`, the offset in the segment in bytes.
        filters: as in `open`.
        uuid_type: the type of UUIDs, as in `open`.
        batch_size: a batch ends before it has more rows; it has at least one.
        on_damage: as that of the log, or another one here.

        The log itself has Arrow's stream interface, for pyarrow, polars and DuckDB: `pyarrow.table(log)`.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> [batch.num_rows for batch in log.batches(filters=[("type", "==", "order.paid")])]
        [1]
        """
    def to_table(
        self,
        *,
        columns: Sequence[str] | None = None,
        filters: _Filters | None = None,
        uuid_type: Literal["uuid", "arrow.uuid", "binary", "string"] = "uuid",
        on_damage: Literal["raise", "skip"] | None = None,
    ) -> Table:
        """The records as a `pyarrow.Table`, which takes as much memory as they do. The arguments are as in
        `batches`. Needs pyarrow.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.to_table(columns=["type"]).num_rows
        3
        """
    def to_pandas(
        self,
        *,
        columns: Sequence[str] | None = None,
        filters: _Filters | None = None,
        uuid_type: Literal["uuid", "arrow.uuid", "binary", "string"] = "uuid",
        on_damage: Literal["raise", "skip"] | None = None,
    ) -> DataFrame:
        """The records as a `pandas.DataFrame`, whose columns are made of those of `to_table`. Needs pyarrow and
        pandas.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.to_pandas(columns=["type"]).shape
        (3, 1)
        """
    def to_polars(
        self,
        *,
        columns: Sequence[str] | None = None,
        filters: _Filters | None = None,
        uuid_type: Literal["uuid", "arrow.uuid", "binary", "string"] = "uuid",
        on_damage: Literal["raise", "skip"] | None = None,
    ) -> polars.DataFrame:
        """The records as a `polars.DataFrame`. The arguments are as in `batches`. Needs polars.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.to_polars(columns=["type"]).shape
        (3, 1)
        """
    def head(
        self,
        rows: int = 5,
        *,
        columns: Sequence[str] | None = None,
        filters: _Filters | None = None,
        uuid_type: Literal["uuid", "arrow.uuid", "binary", "string"] = "uuid",
        on_damage: Literal["raise", "skip"] | None = None,
    ) -> Table:
        """The first `rows` records as a `pyarrow.Table`, without reading much more than these. The arguments are as
        in `batches`. Needs pyarrow. Raises ValueError where `rows` is negative.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.head(2).column("type").to_pylist()
        ['order.created', 'order.paid']
        """
    def count_rows(self, filters: _Filters | None = None, *, on_damage: Literal["raise", "skip"] | None = None) -> int:
        """The number of records that meet all filters. Each is checked, and none is copied.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.count_rows(), log.count_rows([("type", "==", "order.paid")])
        (3, 1)
        """
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def tail(
        self,
        start: Literal["now", "start"] | _uuid.UUID | str | bytes | None = None,
        *,
        on_damage: Literal["raise", "skip"] | None = None,
    ) -> Tail:
        """Follows the log: an iterator that waits for records to come, also from a writer in another process, and
        gives each once. It gives what is on the disk, so that no crash takes back what was given.

        start: "now", "start", or the UUID of the record after which to begin.
        on_damage: as that of the log, or another one here.

        Raises, while iterating, SegmentGoneError where retention removed a segment before it was read,
        FormatError where one is missing, DamageError where it is damaged, and ReplacedError where another log has
        its place. With on_damage="skip" each is warned of (DamageWarning), and it goes on after it.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> [record.type for record in iter(log.tail("start").poll, None)]
        ['order.created', 'order.paid', 'order.shipped']
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Tail:
    """An iterator over the records of a log as they come: `SegmentLog.tail` makes it.

    >>> log = seglake.SegmentLog("log", readonly=True)
    >>> next(log.tail("start")).type
    'order.created'
    """
    @property
    def last(self) -> _uuid.UUID | None:
        """The UUID of the last record that was given, after which another tail can begin; None before the first.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> tail = log.tail("start")
        >>> tail.poll().uuid == tail.last
        True
        """
    def poll(self, timeout: float | None = 0.0) -> Record | None:
        """Returns the next record, or None where there is none yet. Does not wait by default: `timeout` is how many
        seconds it waits at most for one to come, and None waits for ever, as the iterator does.

        Raises ValueError for a timeout of less than 0, and what the iterator raises.

        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.tail("start").poll().type
        'order.created'
        >>> log.tail("now").poll(timeout=0.01)
        """
    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...
