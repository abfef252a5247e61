"""The extension module: everything here is re-exported by `seglake`."""

import uuid as _uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import Any, BinaryIO, Literal, Protocol, Self, TypeAlias, final, overload

from typing_extensions import Buffer

from seglake._remote import RemoteFile
from seglake._types import Diagnosis, DialectName, Format, FormatName, Span

__all__ = [
    "Batch",
    "Batches",
    "Detection",
    "Index",
    "Ledger",
    "Part",
    "Reader",
    "Record",
    "Records",
    "Recovered",
    "Report",
    "Schema",
    "Writer",
    "__version__",
    "convert",
    "create",
    "decode_message",
    "decode_system",
    "detect",
    "encode_message",
    "formats",
    "index",
    "open",
    "recover",
    "seal",
    "undo_recover",
    "uuid6",
    "verify",
]

__version__: str

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

_Source: TypeAlias = str | PathLike[str] | BinaryIO | Buffer | RemoteFile
# A `pyarrow.fs.FileSystem` or an `fsspec` file system, neither of which is needed to import this.
_FileSystem: TypeAlias = object
_Bound: TypeAlias = datetime | _uuid.UUID
_Index: TypeAlias = _Source | bool
_Names: TypeAlias = Sequence[str | bytes]

def open(
    source: _Source,
    *,
    format: FormatName | None = None,
    dialect: DialectName | None = None,
    index: _Index | None = None,
    key: bytes | None = None,
    keys: Sequence[bytes] | None = None,
    key_file: str | PathLike[str] | None = None,
    on_damage: Literal["raise", "skip"] = "raise",
    since: _Bound | None = None,
    until: _Bound | None = None,
    start_offset: int | None = None,
    end_offset: int | None = None,
    partitions: Sequence[int] | None = None,
    tenants: _Names | None = None,
    types: _Names | None = None,
    prune: bool = False,
    part: Part | None = None,
    columns: Sequence[str] | None = None,
    batch_bytes: int = 8388608,
    batch_rows: int = 131072,
    threads: int | None = ...,  # 1
    max_record_bytes: int = 2147483647,
    max_chunk_bytes: int | None = None,
    limit_chunk_bytes: int | None = None,
    uuid_type: Literal["fixed", "binary", "string"] = "fixed",
    mmap: bool = False,
    views: bool = False,
    filesystem: _FileSystem | None = None,
) -> Reader: ...
def verify(
    source: _Source,
    *,
    format: FormatName | None = None,
    dialect: DialectName | None = None,
    key: bytes | None = None,
    keys: Sequence[bytes] | None = None,
    key_file: str | PathLike[str] | None = None,
    limit_chunk_bytes: int | None = None,
    mmap: bool = False,
    explain: bool | int | None = None,
    threads: int | None = ...,  # 1
    progress: Callable[[int, int], object] | None = None,
    filesystem: _FileSystem | None = None,
) -> Report: ...
def create(
    path: str | PathLike[str],
    *,
    format: FormatName,
    key: bytes | None = None,
    key_file: str | PathLike[str] | None = None,
    append: bool | None = None,
    overwrite: bool | None = None,
    preallocate: int | None = None,
    zero_torn_tail: bool | None = None,
    trailer: bool | None = None,
    version: int | None = None,
    dialect: DialectName | None = None,
    chunk_bytes: int | None = None,
    chunk_records: int | None = None,
    level: int | None = None,
    index: bool | None = None,
    memory_bytes: int | None = None,
) -> Writer: ...
def formats(*, dialect: DialectName | None = None) -> dict[str, Format]: ...
def detect(
    source: _Source,
    *,
    dialect: DialectName | None = None,
    key: bytes | None = None,
    keys: Sequence[bytes] | None = None,
    key_file: str | PathLike[str] | None = None,
    filesystem: _FileSystem | None = None,
) -> Detection: ...
def seal(
    source: _Source,
    path: str | PathLike[str],
    *,
    key: bytes | None = None,
    keys: Sequence[bytes] | None = None,
    key_file: str | PathLike[str] | None = None,
    on_damage: Literal["raise", "skip"] = "raise",
    trailer: bool = True,
    overwrite: bool = False,
    progress: Callable[[int, int], object] | None = None,
    filesystem: _FileSystem | None = None,
) -> Report: ...
def recover(
    source: _Source,
    path: str | PathLike[str],
    *,
    quarantine: str | PathLike[str] | None = None,
    overwrite: bool = False,
    force: bool = False,
    renumber: bool = False,
    format: FormatName | None = None,
    dialect: DialectName | None = None,
    key: bytes | None = None,
    keys: Sequence[bytes] | None = None,
    key_file: str | PathLike[str] | None = None,
    limit_chunk_bytes: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    filesystem: _FileSystem | None = None,
) -> Recovered: ...
def undo_recover(
    recovered: _Source,
    path: str | PathLike[str],
    *,
    quarantine: str | PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], object] | None = None,
    filesystem: _FileSystem | None = None,
) -> int: ...
def convert(
    source: _Source,
    path: str | PathLike[str],
    *,
    to: FormatName | None = None,
    drop: Sequence[str] | None = None,
    set: Mapping[str, Any] | None = None,
    write: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    format: FormatName | None = None,
    dialect: DialectName | None = None,
    key: bytes | None = None,
    keys: Sequence[bytes] | None = None,
    key_file: str | PathLike[str] | None = None,
    on_damage: Literal["raise", "skip"] = "raise",
    since: _Bound | None = None,
    until: _Bound | None = None,
    start_offset: int | None = None,
    end_offset: int | None = None,
    partitions: Sequence[int] | None = None,
    tenants: _Names | None = None,
    types: _Names | None = None,
    max_record_bytes: int = 2147483647,
    max_chunk_bytes: int | None = None,
    limit_chunk_bytes: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    filesystem: _FileSystem | None = None,
) -> Report: ...
def index(
    source: _Source,
    path: str | PathLike[str] | None = None,
    *,
    overwrite: bool = True,
    limit_chunk_bytes: int | None = None,
    filesystem: _FileSystem | None = None,
) -> Index: ...
def decode_message(data: Buffer, *, dialect: DialectName = "draft", seq: int | None = None) -> Record: ...
def decode_system(data: Buffer, *, dialect: DialectName = "draft") -> dict[str, Any]: ...
def encode_message(
    record: Record | Mapping[str, Any] | None = None, /, *, dialect: DialectName = "draft", **fields: Any
) -> bytes: ...
def uuid6(timestamp: datetime | None = None) -> _uuid.UUID: ...

@final
class Reader:
    @property
    def path(self) -> str | None: ...
    @property
    def format(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def unproven(self) -> Literal["damage", "unchecked"] | None: ...
    @property
    def report(self) -> Report: ...
    @property
    def closed(self) -> bool: ...
    def __iter__(self) -> Records: ...
    def batches(self) -> Batches: ...
    def split(self, max_bytes: int = 134217728) -> list[Part]: ...
    def get(self, *id: Any, **fields: Any) -> Record | None: ...
    @overload
    def get_many(self, ids: _ArrowStream | _ArrowArray) -> Batch: ...
    @overload
    def get_many(self, ids: Iterable[Any]) -> list[Record | None]: ...
    def range(
        self,
        since: _Bound | int | None = None,
        until: _Bound | int | None = None,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        partitions: Sequence[int] | None = None,
        tenants: _Names | None = None,
        types: _Names | None = None,
    ) -> Records: ...
    def partitions(self) -> list[int]: ...
    def tenants(self, partition: int | None = None) -> list[str]: ...
    def blocks(self) -> list[dict[str, Any]]: ...
    def index(self) -> Index | None: ...
    def ledger(self) -> Ledger: ...
    def records_from(self, position: int) -> Records: ...
    def read_bytes(self, start: int, end: int) -> bytes: ...
    def close(self) -> None: ...
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
class Part:
    @staticmethod
    def from_json(json: str) -> Part: ...
    def to_json(self) -> str: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def is_whole(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Records(Iterator[Record]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...

@final
class Batches(Iterator[Batch]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> Batch: ...
    @property
    def report(self) -> Report: ...

@final
class Ledger(Iterator[Span]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> Span: ...

@final
class Batch:
    @property
    def num_rows(self) -> int: ...
    @property
    def value_bytes(self) -> int: ...
    @property
    def damage(self) -> list[Span]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class Schema:
    @property
    def names(self) -> list[str]: ...
    @property
    def types(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Record:
    @property
    def uuid(self) -> _uuid.UUID: ...
    @property
    def timestamp(self) -> datetime | None: ...
    @property
    def timestamp_us(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def type_bytes(self) -> bytes: ...
    @property
    def partition(self) -> int: ...
    @property
    def tenant(self) -> str: ...
    @property
    def tenant_bytes(self) -> bytes: ...
    @property
    def index(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def seq(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def checkpointer(self) -> int | None: ...
    @property
    def checkpoint(self) -> dict[str, Any] | None: ...
    @property
    def clock(self) -> list[dict[str, Any]]: ...
    @property
    def abi(self) -> int | None: ...
    @property
    def batch(self) -> int: ...
    @property
    def keys(self) -> list[bytes] | None: ...
    @property
    def max_supported_version(self) -> int | None: ...
    @property
    def optimistic(self) -> bool | None: ...
    @property
    def digest(self) -> dict[str, Any] | None: ...
    @property
    def trace(self) -> dict[str, Any] | None: ...
    @property
    def flags(self) -> int | None: ...
    @property
    def extra(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | Any: ...
    @property
    def position(self) -> int: ...
    @property
    def cause(self) -> str | None: ...
    def to_dict(self) -> dict[str, Any]: ...

@final
class Report:
    @property
    def ok(self) -> bool: ...
    @property
    def path(self) -> str | None: ...
    @property
    def format(self) -> str: ...
    @property
    def checked(self) -> Literal["checksum", "structure"]: ...
    @property
    def bytes(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def first_timestamp_us(self) -> int | None: ...
    @property
    def last_timestamp_us(self) -> int | None: ...
    @property
    def totals(self) -> list[dict[str, Any]]: ...
    @property
    def damage(self) -> list[Span]: ...
    @property
    def truncated(self) -> bool: ...
    @property
    def wrong_key(self) -> bool: ...
    @property
    def diagnoses(self) -> list[Diagnosis]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_dict(self) -> dict[str, Any]: ...

@final
class Recovered:
    @property
    def report(self) -> Report: ...
    @property
    def lost(self) -> bool: ...
    @property
    def path(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def carried(self) -> int: ...
    @property
    def quarantined(self) -> int: ...
    @property
    def quarantine(self) -> str | None: ...
    @property
    def manifest(self) -> str | None: ...
    @property
    def index(self) -> str | None: ...
    def to_dict(self) -> dict[str, Any]: ...

@final
class Index:
    @property
    def path(self) -> str | None: ...
    @property
    def size(self) -> int: ...
    @property
    def ok(self) -> bool: ...
    @property
    def items(self) -> list[tuple[int, int]]: ...
    @property
    def ledger(self) -> list[Span]: ...
    def __len__(self) -> int: ...

@final
class Detection:
    @property
    def format(self) -> str | None: ...
    @property
    def confidence(self) -> Literal["certain", "likely", "unknown"]: ...
    @property
    def reason(self) -> str: ...

@final
class Writer:
    @property
    def path(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def extension(self) -> str: ...
    @property
    def required(self) -> list[str]: ...
    @property
    def position(self) -> int | None: ...
    @property
    def last(self) -> Any: ...
    @property
    def found(self) -> Report | None: ...
    @property
    def closed(self) -> bool: ...
    def write(self, record: Record | Mapping[str, Any] | None = None, /, **fields: Any) -> Any: ...
    def write_batch(self, data: _ArrowStream | _ArrowArray, /) -> int: ...
    def flush(self) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
