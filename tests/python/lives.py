"""Lives of a folder: random steps between ingests, and what the ingest promises of the tables after each run.

    python tests/python/lives.py --lives 300                # lists the failures by kind
    python tests/python/lives.py --lives 300 --table delta
    python tests/python/lives.py --seed 17 --shrink         # one life, with the fewest steps that still fail

A life is a list of steps, each with a seed of its own, so that a step does the same when others are dropped. The model
knows what each file has, which records a reader gets of it, and what was there when a run began. It asks the code under
test nothing but its tables.

The promise, as it is checked after each run that came to its end:

- Each record that is readable in a file is in `records` under the source of the file, once, as it was written.
- Nothing else is in `records`, and nothing leaves it. A file is of the source of its first record.
- The same key with other content is a `conflict`, and no other file is one.
- The latest row of each file in `files` is true. Each byte is accounted for. `damage` has what the row counts.
- What a run adds to a source is what `files` says.
- A run of a folder that did not change adds nothing.
"""

from __future__ import annotations

import argparse
import functools
import io
import os
import re
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import pyarrow.parquet as pq
from samples import EPOCH_US, draft
from segments import DAY, uuid6

import seglake

TABLES: Final = ("parquet", "delta", "iceberg")
GROWING: Final = ("active", "chunked", "oplog")
BY_POSITION: Final = ("oplog", "tenant")
EXTENSIONS: Final = {
    "active": ".active",
    "sealed": ".sealed",
    "chunked": ".chunks",
    "oplog": ".oplog",
    "tenant": ".tenant",
}
_KEYS: Final = {"active": "uuid", "sealed": "uuid", "chunked": "offset"}
_MOST_FILES: Final = 6
_MOST_RECORDS: Final = 14
_OLD_NS: Final = 1_700_000_000_000_000_000
_SETTLED_S: Final = 2.5
_STUCK_S: Final = 60.0
# What makes another source of a root: a fingerprint.
_OTHER: Final = re.compile(r"(?:[#-][0-9a-f]{8}|#[0-9]+)$")

Key = Any


# What is in files


@dataclass(frozen=True)
class Line:
    """What a program writes, record after record; a fork writes what another line did, and from a record on its own."""

    number: int
    format: str
    parent: Line | None = None
    at: int = 0
    same_keys: bool = True

    def value(self, number: int) -> bytes:
        if self.parent is not None and number < self.at:
            return self.parent.value(number)
        return b"line %04d record %04d %s" % (self.number, number, b"." * (number * 7 % 11))

    def root(self, number: int) -> int:
        """The line whose key a record has."""
        if self.parent is not None and (number < self.at or self.same_keys):
            return self.parent.root(number)
        return self.number

    def fields(self, number: int) -> dict[str, Any]:
        """What a writer of the format takes."""
        value, format = self.value(number), self.format
        if format == "chunked":
            return {"offset": 100 + 2 * number, "timestamp_us": EPOCH_US + number * 10_000_000_000, "value": value}
        if format == "oplog":
            return {**draft(number), "value": value}
        if format == "tenant":
            return {"partition": number // 4, "tenant": f"carrier {number // 2}", "value": value}
        moment = DAY + timedelta(hours=7 * number)
        name = uuid6(moment, self.root(number) * 1000 + number)
        return {"uuid": name, "type": f"t/{number % 3}", "value": value}


@dataclass(eq=False)
class File:
    """A file as the model knows it.

    Attributes:
        path: where it is.
        line: what its program writes.
        whole: its bytes up to the end of its last record, as they should be.
        ends: of a file that grows, where it may be cut: the end in bytes and the number of records there.
        torn: the bytes of a record that is not finished.
        format: its format.
        had: all names that it had.
    """

    path: Path
    line: Line
    whole: bytes = b""
    ends: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    torn: bytes = b""
    format: str = ""
    had: list[str] = field(default_factory=list[str])

    @property
    def content(self) -> bytes:
        """The bytes as they should be."""
        return self.whole + self.torn

    @property
    def count(self) -> int:
        """The number of whole records."""
        return self.ends[-1][1]

    @property
    def grows(self) -> bool:
        return self.format in GROWING

    @property
    def sidecar(self) -> Path:
        return Path(f"{self.path}.par")

    def is_sound(self) -> bool:
        return self.path.read_bytes() == self.content

    def values(self) -> list[bytes]:
        return [self.line.value(number) for number in range(self.count)]


def _options(format: str) -> dict[str, Any]:
    return {"options": {"chunk_records": 3, "index": False}} if format == "chunked" else {}


def _bytes_of(line: Line, format: str, records: Iterable[int], before: bytes = b"") -> bytes:
    """Writes records, after others in a file that grows."""
    with tempfile.TemporaryDirectory(prefix="lives-") as folder:
        path = Path(folder) / f"a{EXTENSIONS[format]}"
        if before:
            path.write_bytes(before)
        own = {**_options(format), **({"if_exists": "append"} if before else {})}
        with seglake.create(path, format=format, **own) as writer:
            for number in records:
                writer.write(**line.fields(number))
        return path.read_bytes()


@functools.cache
def _appended(line: Line, before: bytes, first: int, records: int) -> bytes:
    return _bytes_of(line, line.format, range(first, first + records), before)


@functools.cache
def _complete(line: Line, format: str, records: int) -> bytes:
    return _bytes_of(line, format, range(records))


# What a reader gets of them


@dataclass(frozen=True)
class Facts:
    """What a reader gets of a file.

    Attributes:
        size, modified_ns: as the system has them.
        status: what a row of the file has to say.
        identity: of its first sound record.
        records: key, value and position of each.
        pending: the bytes of its unfinished tail.
        damage: the damaged ranges.
        nbytes: how many bytes its sidecar makes of it.
        format: its format.
        is_settled: whether it would have another time if it had changed since.
        fields: all that is known of each record, as text.
        is_clear: whether content and name tell the format. If not, a run may know it only from an earlier one.
        stored: its bytes.
    """

    size: int
    modified_ns: int
    status: str
    identity: str | None = None
    records: tuple[tuple[Key, bytes, int], ...] = ()
    pending: int = 0
    damage: tuple[tuple[int, int, str, str], ...] = ()
    nbytes: int = 0
    format: str | None = None
    is_settled: bool = True
    is_clear: bool = True
    fields: tuple[str, ...] = field(default=(), repr=False)
    stored: bytes = field(default=b"", repr=False)

    @property
    def refused(self) -> bool:
        """Whether it cannot be read."""
        return self.status in ("wrong_key", "limit", "unreadable", "not_a_segment")

    @property
    def content(self) -> dict[Key, bytes]:
        """Its records."""
        return {key: value for key, value, _ in self.records}


def _status_of(error: Exception) -> str:
    for kind, status in (
        (seglake.WrongKeyError, "wrong_key"),
        (seglake.exceptions.LimitError, "limit"),
        (seglake.FormatError, "not_a_segment"),
    ):
        if isinstance(error, kind):
            return status
    return "unreadable"


_read: dict[tuple[str, str, bytes, bytes | None], Facts] = {}


def facts_of(path: Path, format: str) -> Facts:
    """Reads a file as its sidecar restores it."""
    status, beside = path.stat(), Path(f"{path}.par")
    sidecar = beside.read_bytes() if beside.exists() else None
    known = path.suffix, format, path.read_bytes(), sidecar
    found = _read.get(known)
    if found is None:
        if len(_read) > 4096:
            _read.clear()
        found = _facts(path)
        if found.status == "not_a_segment":
            named = _facts(path, format)
            found = found if named.refused else replace(named, is_clear=False)
        _read[known] = found
    is_settled = time.time_ns() - status.st_mtime_ns > _SETTLED_S * 1e9
    found = replace(found, size=status.st_size, modified_ns=status.st_mtime_ns, is_settled=is_settled)
    return replace(found, stored=known[2])


@functools.lru_cache(4096)
def facts_of_bytes(content: bytes, format: str) -> Facts:
    """The same of bytes."""
    with tempfile.TemporaryDirectory(prefix="lives-") as folder:
        path = Path(folder) / f"a{EXTENSIONS[format]}"
        path.write_bytes(content)
        return _facts(path, format)


def _from(facts: Facts, start: int, size: int) -> Facts:
    """What is read from a position on."""
    records = tuple(each for each in facts.records if each[2] >= start)
    damage = tuple(each for each in facts.damage if each[1] > start)
    return replace(facts, size=size, nbytes=size, records=records, damage=damage, identity=None)


def may_be_taken_for(earlier: Facts, now: Facts) -> bool:
    """Whether nobody can see that a file changed since.

    It has its size and time, or only lost what was read from it, so soon that its time may be the same. A run looks
    closer at a file that was damaged.
    """
    if earlier.size != now.size or earlier.status == "damaged":
        return False
    if earlier.modified_ns == now.modified_ns:
        return True
    return not earlier.is_settled and now.content.items() <= earlier.content.items()


def _facts(path: Path, named: str | None = None) -> Facts:
    try:
        with seglake.incremental.resume(path, None, on_damage="repair", format=named) as reader:
            format = reader.format
            found = [(record.position, record.to_dict(), _key(format, record)) for record in _quiet(reader)]
            records = tuple((key, bytes(fields["value"] or b""), position) for position, fields, key in found)
            batches = reader.batches(warn=False)
            for _ in batches:
                pass
            nbytes = max(path.stat().st_size, reader.nbytes)
            report, position, pending = batches.report, reader.position, reader.pending_bytes or 0
        damage = tuple((span.start, span.end, str(span.kind), str(span.cause)) for span in report.damage)
        status = "damaged" if damage else "sound" if records and not pending else "pending"
        if report.wrong_key and not records:
            return Facts(0, 0, "wrong_key", format=format)
        if pending and not damage:
            with seglake.incremental.resume(path, position, on_damage="repair", final=True, format=named) as reader:
                status = "damaged" if any(True for _ in _quiet(reader)) else status
    except (OSError, seglake.SeglakeError) as error:
        return Facts(0, 0, _status_of(error))
    try:
        identity = seglake.incremental.identity(path, format=named)
    except (OSError, seglake.SeglakeError):
        identity = None
    return Facts(0, 0, status, identity, records, pending, damage, nbytes, format, fields=tuple(map(str, found)))


def _quiet(reader: Any) -> Generator[Any]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
        yield from reader


def _key(format: str, record: Any) -> Key:
    if format in ("active", "sealed"):
        return str(record.uuid)
    return record.offset if format == "chunked" else record.position


# What is in tables


class Row(NamedTuple):
    """A row of `records`."""

    source: str
    key: Key
    value: bytes
    path: str
    position: int


class FileRow(NamedTuple):
    """A row of `files`."""

    run: str
    path: str
    source: str
    status: str
    start: int | None
    end: int | None
    pending: int | None
    nbytes: int | None
    records: int
    added: int | None
    size: int | None
    error: str | None


class DamageRow(NamedTuple):
    """A row of `damage`."""

    run: str
    path: str
    start: int
    end: int
    kind: str
    cause: str


@dataclass
class Lake:
    """All rows."""

    records: list[Row] = field(default_factory=list[Row])
    files: list[FileRow] = field(default_factory=list[FileRow])
    damage: list[DamageRow] = field(default_factory=list[DamageRow])

    def add(self, table: str, format: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Adds rows of a table as it is stored."""
        for row in rows:
            if table == "files":
                names = ("start", "end", "pending_bytes", "nbytes", "records")
                numbers = [row[name] for name in names]
                last = row["added"], row["size"], row["error"]
                self.files.append(FileRow(row["run"], row["path"], row["source"], row["status"], *numbers, *last))
            elif table == "damage":
                if row["part"] == 0:
                    self.damage.append(DamageRow(*(row[name] for name in DamageRow._fields)))
            else:
                key = row[_KEYS.get(format, "position")]
                self.records.append(Row(row["source"], key, row["value"] or b"", row["path"], row["position"]))


class Code:
    """The ingest under test: one table of records for each format, and `damage` and `files`."""

    def ingest(self, source: Path, lake: Path, table: str) -> Any:
        return seglake.ingest(source, lake, threads=1, table=table)  # pyright: ignore

    def rows(self, lake: Path, table: str) -> Lake:
        found = Lake()
        for name, format, rows in self._tables(lake, table):
            found.add(name, format, rows)
        return found

    def _tables(self, lake: Path, table: str) -> Generator[tuple[str, str, list[dict[str, Any]]]]:
        if table == "iceberg":
            if (lake / "_catalog.db").exists():
                catalog = _catalog(lake)
                for space in catalog.list_namespaces():
                    for names in catalog.list_tables(space):
                        if names[-1] != "runs":
                            name = names[-1] if names[-1] in ("damage", "files") else "records"
                            yield name, names[-1], _iceberg_rows(catalog, names, name)
            return
        rows = _rows_in if table == "parquet" else _delta_rows
        for format in (*EXTENSIONS, "damage", "files"):
            yield (name := format if format in ("damage", "files") else "records"), format, rows(lake / format, name)


_COLUMNS: Final = {
    "records": ("source", "uuid", "offset", "position", "value", "path"),
    "damage": (*DamageRow._fields, "part"),
    "files": (
        *("run", "path", "source", "status", "start", "end", "pending_bytes", "nbytes", "records", "added"),
        *("size", "error"),
    ),
}


@functools.lru_cache(8192)
def _parquet_rows(path: str, size: int, modified_ns: int, name: str) -> list[dict[str, Any]]:
    with pq.ParquetFile(path) as file:
        columns = [each for each in _COLUMNS[name] if each in file.schema_arrow.names]
        return file.read(columns=columns).to_pylist()


def _rows_in(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for path in sorted(folder.rglob("*.parquet")):
        status = path.stat()
        rows += _parquet_rows(os.fspath(path), status.st_size, status.st_mtime_ns, name)
    return rows


def _delta_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    from deltalake import DeltaTable

    if not (folder / "_delta_log").is_dir():
        return []
    return _chosen(DeltaTable(os.fspath(folder)).to_pyarrow_table(), name)


def _iceberg_rows(catalog: Any, names: tuple[str, ...], name: str) -> list[dict[str, Any]]:
    return _chosen(catalog.load_table(names).scan().to_arrow(), name)


def _chosen(table: Any, name: str) -> list[dict[str, Any]]:
    return table.select([each for each in _COLUMNS[name] if each in table.column_names]).to_pylist()


def _catalog(lake: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog("seglake", uri=f"sqlite:///{lake / '_catalog.db'}", warehouse=os.fspath(lake))


# Runs that die, or are met by something in the middle


class Killed(BaseException):
    """The process has died: no `except Exception` holds it."""


class Calls:
    """Counts the calls of a run that change something on the disk, and does something before one of them.

    A run that is killed does nothing any more, also not in `finally`.
    """

    def __init__(self, fatal: int, meanwhile: Callable[[], None] | None = None) -> None:
        self.fatal = fatal
        self.count = 0
        self.names: list[str] = []
        self._meanwhile = meanwhile
        self._is_dead = False
        self._is_busy = False
        self._lock = threading.Lock()

    def _before(self, name: str) -> None:
        if self._is_busy:
            return
        with self._lock:
            if self._is_dead:
                raise Killed(name)
            self.count += 1
            self.names.append(name)
            if self.count != self.fatal:
                return
            if self._meanwhile is None:
                self._is_dead = True
                raise Killed(name)
            self._is_busy = True
        try:
            # In a thread of its own: nothing that this one holds is its.
            other = threading.Thread(target=self._meanwhile, daemon=True)
            other.start()
            other.join(_STUCK_S)
            if other.is_alive():
                raise Killed("the other run waits for this one")
        finally:
            self._is_busy = False

    def _watched(self, name: str, function: Callable[..., Any], *, opens: bool = False) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if name == "close" and self._is_dead:
                # It changes nothing that counts, and complains when it is collected if it was not called.
                return function(*arguments, **options)
            if not opens or _writes(*arguments, **options):
                self._before(name)
            return function(*arguments, **options)

        return call

    @contextmanager
    def watching(self) -> Generator[Calls]:
        """Has them counted while the block runs."""
        from seglake.write import durable

        shown = sys.unraisablehook

        def show(found: Any) -> None:
            if not issubclass(found.exc_type, Killed):  # what is collected after a kill may try to clean up
                shown(found)

        with ExitStack() as stack:
            stack.enter_context(patch.object(sys, "unraisablehook", show))
            for name in ("rename", "replace", "link", "unlink", "remove", "mkdir", "rmdir"):
                stack.enter_context(patch.object(os, name, self._watched(name, getattr(os, name))))
            for name in ("rename", "rename_new", "sync_file", "sync_folder"):
                stack.enter_context(patch.object(durable, name, self._watched(name, getattr(durable, name))))
            stack.enter_context(patch.object(os, "open", self._watched("os.open", os.open, opens=True)))
            stack.enter_context(patch.object(io, "open", self._watched("open", io.open, opens=True)))
            for owner, name in _calls_of_packages():
                stack.enter_context(patch.object(owner, name, self._watched(name, getattr(owner, name))))
            yield self


def _calls_of_packages() -> list[tuple[Any, str]]:
    found: list[tuple[Any, str]] = [(pq.ParquetWriter, "write_table"), (pq.ParquetWriter, "close")]
    if "deltalake" in sys.modules:
        from deltalake import DeltaTable

        found += [(DeltaTable, "create_write_transaction")]
    if "pyiceberg.catalog.sql" in sys.modules:
        from pyiceberg.catalog.sql import SqlCatalog

        found += [(SqlCatalog, "create_table"), (SqlCatalog, "commit_table")]
    return found


def _writes(_: object, mode: Any = "r", *__: Any, **options: Any) -> bool:
    mode = options.get("flags", options.get("mode", mode)) if not isinstance(mode, int) else mode
    if isinstance(mode, int):
        return bool(mode & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    return any(each in mode for each in "wax+")


# The life


class Step(NamedTuple):
    """What happens next, and the seed of how."""

    name: str
    seed: int

    def __str__(self) -> str:
        return f"{self.name}:{self.seed}"


class FailedError(AssertionError):
    """A promise that was not kept.

    Attributes:
        failures: the kind of each, and what was found.
    """

    def __init__(self, failures: Sequence[tuple[str, str]]) -> None:
        super().__init__("\n".join(f"{kind}: {found}" for kind, found in failures))
        self.failures = tuple(failures)

    @property
    def kinds(self) -> set[str]:
        return {kind for kind, _ in self.failures}


@dataclass
class Life:
    """A folder, its model, and the lake that it is ingested into."""

    code: Code
    table: str
    folder: Path
    ignored: frozenset[str] = frozenset()
    story: list[str] = field(default_factory=list[str])
    files: list[File] = field(default_factory=list[File])
    _lines: int = 0
    _clock: int = 0
    _calls: int = 60
    # What was there when a run began: by root and key the values, by path all facts and roots.
    _possible: dict[tuple[str, Key], set[bytes]] = field(default_factory=lambda: defaultdict(set[bytes]))
    _seen: dict[str, list[tuple[Facts, set[str]]]] = field(default_factory=lambda: defaultdict(list[Any]))
    _roots: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set[str]))
    # The file at each path when a run last came to its end, and its inode; None where another run was since.
    _at: dict[str, tuple[File, int] | None] = field(default_factory=dict[str, Any])
    _before: Lake = field(default_factory=Lake)
    _has_died: bool = False

    def __post_init__(self) -> None:
        self.source, self.lake = self.folder / "source", self.folder / "lake"
        self.source.mkdir(parents=True)

    # Steps

    def do(self, step: Step) -> None:
        """Does a step, if it can be done."""
        chance = Random(step.seed)
        self._clock += 1
        told = getattr(self, f"_{step.name}")(chance)
        for file in self.files:
            # It may have left its sidecar, or have lost its trailer.
            if file.format in ("oplog", "sealed") and not self._reads_only_what_was_written(file):
                file.path.write_bytes(file.content)
                told = f"{told}; {self._name(file)} is as it was, as its damage would be read"
        self.story.append(f"{step}  {told or '(not possible)'}")

    def _modified(self, path: Path, chance: Random, *, rot: bool = False) -> None:
        """Gives a file its time: mostly one long ago, as files that a run does not look at twice have."""
        if rot or chance.random() < 0.8:
            self._clock += 1
            os.utime(path, ns=(_OLD_NS, _OLD_NS + self._clock * 1_000_000_000))

    def _pick(self, chance: Random, fits: Callable[[File], bool] = lambda _: True) -> File | None:
        fitting = [file for file in self.files if fits(file)]
        return chance.choice(fitting) if fitting else None

    def _name(self, file: File) -> str:
        return os.fspath(file.path.relative_to(self.source))

    def _new_path(self, chance: Random, format: str) -> Path:
        folder = self.source / chance.choice(["", "", "below"])
        folder.mkdir(exist_ok=True)
        self._clock += 1
        return folder / f"{chance.choice('abc')}{self._clock}{EXTENSIONS[format]}"

    def _line(self, format: str, parent: Line | None = None, at: int = 0, same_keys: bool = True) -> Line:
        self._lines += 1
        return Line(self._lines, format, parent, at, same_keys)

    def _write(self, file: File, chance: Random) -> None:
        """Writes the content in place, or as a new file."""
        if chance.random() < 0.5 or not file.path.exists():
            new = file.path.with_name(f".{file.path.name}.new")
            new.write_bytes(file.content)
            new.rename(file.path)
        else:
            with file.path.open("r+b") as opened:
                opened.write(file.content)
                opened.truncate()

    def _extend(self, file: File, chance: Random, records: int) -> bytes:
        """Has the model's file grow; returns what comes after what it had."""
        before = file.content
        while records > 0:
            more = 1 if file.torn else records
            whole = _appended(file.line, file.whole, file.count, more)
            if not whole.startswith(file.content) and not file.content.startswith(whole):
                raise RuntimeError(f"{file.path}: a writer changed what was there")
            file.ends.append((len(whole), file.count + more))
            file.whole, file.torn, records = whole, b"", records - more
        if chance.random() < 0.3:
            self._tear(file, chance)
        return file.content[len(before) :]

    def _tear(self, file: File, chance: Random) -> None:
        following = _appended(file.line, file.whole, file.count, 1)
        file.torn = following[len(file.whole) : chance.randrange(len(file.whole) + 1, len(following))]

    def _make(self, path: Path, line: Line, chance: Random, records: int) -> File:
        file = File(path, line, format=line.format)
        if file.grows:
            self._extend(file, chance, records)
        else:
            records = max(records, 1)
            file.whole, file.ends = _complete(line, line.format, records), [(0, 0), (0, records)]
        self.files.append(file)
        self._write(file, chance)
        self._modified(path, chance)
        return file

    def _new(self, chance: Random) -> str:
        if len(self.files) >= _MOST_FILES:
            return self._delete(chance)
        format = chance.choice([*EXTENSIONS, "active", "active", "chunked", "oplog"])
        file = self._make(self._new_path(chance, format), self._line(format), chance, chance.randrange(6))
        return f"{self._name(file)}: {file.count} records, {len(file.torn)} bytes torn"

    def _can_grow(self, file: File) -> bool:
        return file.count < _MOST_RECORDS and (not file.grows or file.path.stat().st_size == len(file.content))

    def _grow(self, chance: Random) -> str | None:
        file = self._pick(chance, self._can_grow)
        if file is None:
            return None
        records = chance.randint(1, 4)
        if not file.grows:
            # Sealed anew.
            count = file.count + records
            file.whole, file.ends = _complete(file.line, file.format, count), [(0, 0), (0, count)]
            self._write(file, chance)
            self._modified(file.path, chance)
            return f"{self._name(file)}: anew with {count} records"
        if not file.torn and file.whole and file.is_sound() and chance.random() < 0.4:
            own = {"format": file.format, **_options(file.format), "if_exists": "append"}
            with seglake.create(file.path, **own) as writer:
                for number in range(file.count, file.count + records):
                    writer.write(**file.line.fields(number))
            file.whole = file.path.read_bytes()
            file.ends.append((len(file.whole), file.count + records))
        else:
            more = self._extend(file, chance, records)
            with file.path.open("ab") as opened:
                opened.write(more)
        self._modified(file.path, chance)
        return f"{self._name(file)}: to {file.count} records, {len(file.torn)} bytes torn"

    def _move(self, file: File, path: Path, *, with_sidecar: bool) -> None:
        sidecar = file.sidecar
        file.had.append(os.fspath(file.path))
        self.files[:] = [each for each in self.files if each is file or each.path != path]
        file.path.rename(path)
        file.path = path
        if with_sidecar and sidecar.exists():
            sidecar.rename(file.sidecar)

    def _rotate(self, chance: Random) -> str | None:
        file = self._pick(chance)
        if file is None or len(self.files) >= _MOST_FILES:
            return None
        path, with_sidecar = file.path, chance.random() < 0.7
        moved = [path]
        for number in range(1, 9):
            older = next((each for each in self.files if each.path == Path(f"{path}.{number}")), None)
            if older is None:
                break
            moved.append(older.path)
        for number in range(len(moved), 0, -1):
            own = next(each for each in self.files if each.path == moved[number - 1])
            self._move(own, Path(f"{path}.{number}"), with_sidecar=with_sidecar)
        new = self._make(path, self._line(file.format), chance, chance.randrange(5))
        return f"{self._name(new)}: {len(moved)} moved on, anew with {new.count} records"

    def _copytruncate(self, chance: Random) -> str | None:
        file = self._pick(chance, lambda each: each.grows)
        if file is None or len(self.files) >= _MOST_FILES:
            return None
        own = self._copy_of(file, Path(f"{file.path}.old{self._clock}"), chance)
        os.truncate(file.path, 0)
        line = self._line(file.format)
        file.line, file.whole, file.torn, file.ends = line, b"", b"", [(0, 0)]
        if chance.random() < 0.6:
            file.path.write_bytes(self._extend(file, chance, chance.randint(1, 4)))
        self._modified(file.path, chance)
        return f"{self._name(file)}: copied to {self._name(own)}, anew with {file.count} records"

    def _rename(self, chance: Random) -> str | None:
        file = self._pick(chance)
        if file is None:
            return None
        before = self._name(file)
        self._move(file, self._new_path(chance, file.format), with_sidecar=chance.random() < 0.7)
        return f"{before} -> {self._name(file)}"

    def _copy_of(self, file: File, path: Path, chance: Random) -> File:
        (shutil.copy2 if chance.random() < 0.5 else shutil.copy)(file.path, path)
        own = File(path, file.line, file.whole, list(file.ends), file.torn, file.format)
        self.files.append(own)
        if file.sidecar.exists() and chance.random() < 0.5:
            shutil.copy(file.sidecar, own.sidecar)
        return own

    def _copy(self, chance: Random) -> str | None:
        file = self._pick(chance)
        if file is None or len(self.files) >= _MOST_FILES:
            return None
        return f"{self._name(file)} -> {self._name(self._copy_of(file, self._new_path(chance, file.format), chance))}"

    def _seal(self, chance: Random, *, deletes: bool = False) -> str | None:
        file = self._pick(chance, lambda each: each.format == "active" and each.count > 0 and not each.torn)
        if file is None or not file.is_sound() or (not deletes and len(self.files) >= _MOST_FILES):
            return None
        # Beside it, or under a name that was sealed before.
        path = file.path.with_name(f"{file.path.name.partition('.')[0]}.sealed")
        seglake.seal(file.path, path, if_exists="overwrite")
        self.files[:] = [each for each in self.files if each.path != path]
        own = File(path, file.line, path.read_bytes(), [(0, 0), (0, file.count)], format="sealed")
        self.files.append(own)
        self._modified(path, chance)
        if deletes:
            self._remove(file)
        return f"{self._name(file)} -> {self._name(own)}{', deleted' if deletes else ''}: {own.count} records"

    def _seal_and_delete(self, chance: Random) -> str | None:
        return self._seal(chance, deletes=True)

    def _flip(self, chance: Random, *, covered: bool = False) -> str | None:
        file = self._pick(chance, lambda each: each.path.stat().st_size > 0 and each.sidecar.exists() >= covered)
        if file is None:
            return None
        before, status = file.path.read_bytes(), file.path.stat()
        for _ in range(20):
            places = [
                chance.randrange(min(len(before), chance.choice([40, 10_000]))) for _ in range(chance.randint(1, 2))
            ]
            content = bytearray(before)
            for at in places:
                content[at] ^= 1 << chance.randrange(8)
            # In place: what a disk loses leaves the time as it is, a program that goes wrong does not.
            with file.path.open("r+b") as opened:
                opened.write(content)
            if self._reads_only_what_was_written(file):
                break
        else:
            with file.path.open("r+b") as opened:
                opened.write(before)
            os.utime(file.path, ns=(status.st_atime_ns, status.st_mtime_ns))
            return None
        if chance.random() < 0.5:
            os.utime(file.path, ns=(status.st_atime_ns, status.st_mtime_ns))
        else:
            self._modified(file.path, chance)
        return f"{self._name(file)}: at {sorted(places)}"

    def _flip_protected(self, chance: Random) -> str | None:
        return self._flip(chance, covered=True)

    def _reads_only_what_was_written(self, file: File) -> bool:
        """Whether what was damaged is missed: in files without checksums it may be read, as something else."""
        found, as_written = facts_of(file.path, file.format).fields, facts_of_bytes(file.whole, file.format)
        if file.format != "oplog":
            return set(found) <= set(as_written.fields)
        # What a reader gets is what comes first in the file, as it was, also from where a run goes on.
        views, stored = [found], file.path.read_bytes()
        if not file.sidecar.exists():
            # A run goes on at the end of any record, as a file may have been cut within the next.
            ends = {position for *_, position in as_written.records} | {end for end, _ in file.ends}
            views += [facts_of_bytes(file.content[:end] + stored[end:], file.format).fields for end in ends]
        return all(as_written.fields[: len(each)] == each for each in views)

    def _repair(self, chance: Random) -> str | None:
        file = self._pick(chance, lambda each: not each.is_sound())
        if file is None:
            return None
        status, own = file.path.stat(), chance.random()
        is_same = status.st_size == len(file.content)
        self._write(file, chance)
        if is_same and own < 0.5:
            os.utime(file.path, ns=(status.st_atime_ns, status.st_mtime_ns))
        else:
            self._modified(file.path, chance)
        return f"{self._name(file)}: its bytes are back"

    def _cut(self, chance: Random) -> str | None:
        """Damage that comes back: the file is shorter for a while."""
        file = self._pick(chance, lambda each: each.path.stat().st_size > 1)
        if file is None:
            return None
        os.truncate(file.path, chance.randrange(file.path.stat().st_size))
        if not self._reads_only_what_was_written(file):
            self._write(file, chance)
        self._modified(file.path, chance)
        return f"{self._name(file)}: {file.path.stat().st_size} bytes of {len(file.content)}"

    def _truncate(self, chance: Random) -> str | None:
        """A file goes back, and goes on from there, perhaps in another way."""
        file = self._pick(chance, lambda each: each.grows and len(each.ends) > 1)
        if file is None or not file.is_sound():
            return None
        file.ends = file.ends[: chance.randint(1, len(file.ends) - 1)]
        file.whole, file.torn = file.whole[: file.ends[-1][0]], b""
        if file.count == 0 or chance.random() < 0.5:
            file.line = self._line(file.format, file.line, file.count, chance.random() < 0.5)
        if chance.random() < 0.4:
            self._extend(file, chance, chance.randint(1, 4))
        self._write(file, chance)
        self._modified(file.path, chance)
        return f"{self._name(file)}: {file.count} records, {len(file.torn)} bytes torn, of line {file.line.number}"

    def _anew(self, chance: Random) -> str | None:
        file = self._pick(chance)
        if file is None:
            return None
        path = file.path
        self.files.remove(file)
        if chance.random() < 0.5:
            path.unlink()
        own = self._make(path, self._line(file.format), chance, chance.randrange(6))
        return f"{self._name(own)}: anew with {own.count} records"

    def _fork(self, chance: Random) -> str | None:
        file = self._pick(chance, lambda each: each.count > 1)
        if file is None or len(self.files) >= _MOST_FILES:
            return None
        same_keys = chance.random() < 0.6
        own = File(self._new_path(chance, file.format), file.line, format=file.format)
        if file.grows:
            own.ends = file.ends[: chance.randint(2, len(file.ends))]
            own.whole = file.whole[: own.ends[-1][0]]
            own.line = self._line(file.format, file.line, own.count, same_keys)
            self._extend(own, chance, chance.randrange(4))
        else:
            at, count = chance.randint(1, file.count), file.count + chance.randrange(3)
            own.line = self._line(file.format, file.line, at, same_keys)
            own.whole, own.ends = _complete(own.line, own.format, count), [(0, 0), (0, count)]
        self.files.append(own)
        self._write(own, chance)
        self._modified(own.path, chance)
        kind = "the same keys" if same_keys else "other keys"
        return f"{self._name(own)}: as {self._name(file)} for {own.line.at} of {own.count} records, then {kind}"

    def _delete(self, chance: Random) -> str | None:
        file = self._pick(chance)
        if file is None or len(self.files) < 2:
            return None
        self._remove(file)
        return self._name(file)

    def _remove(self, file: File) -> None:
        file.path.unlink()
        file.sidecar.unlink(missing_ok=True)
        self.files.remove(file)

    def _touch(self, chance: Random) -> str | None:
        file = self._pick(chance)
        if file is None:
            return None
        self._modified(file.path, chance, rot=chance.random() < 0.5)
        return self._name(file)

    def _protect(self, chance: Random) -> str | None:
        file = self._pick(chance, lambda each: bool(each.whole) and each.is_sound())
        if file is None:
            return None
        with suppress(ValueError, seglake.SeglakeError):  # the sidecar may be that of another file
            return f"{self._name(file)}: {seglake.protect(file.path, format=file.format).change}"
        return None

    def _unprotect(self, chance: Random) -> str | None:
        file = self._pick(chance, lambda each: each.sidecar.exists())
        if file is None:
            return None
        file.sidecar.unlink()
        return self._name(file)

    def _restore(self, chance: Random) -> str | None:
        """Repairs a file by its sidecar."""
        file = self._pick(chance, lambda each: each.sidecar.exists() and not each.is_sound())
        if file is None:
            return None
        try:
            outcome = seglake.repair(file.path, force=True, format=file.format).outcome
        except (ValueError, seglake.SeglakeError):
            return None
        for left in self.source.rglob("*.damaged"):
            left.unlink()
        if not self._reads_only_what_was_written(file):
            self._write(file, chance)
        return f"{self._name(file)}: {outcome}"

    # Runs

    def _ingest(self) -> None:
        self.code.ingest(self.source, self.lake, self.table)

    def _begin(self) -> dict[str, Facts]:
        """Notes what a run may find."""
        facts = {os.fspath(file.path): facts_of(file.path, file.format) for file in self.files}
        for file in self.files:
            before = self._at.get(path := os.fspath(file.path))
            if before is None or before[0] is not file:
                self._at[path] = None
        by_source: dict[str, set[tuple[Key, bytes]]] = defaultdict(set[tuple[Key, bytes]])
        for row in self._before.records:
            by_source[row.source].add((row.key, row.value))
        latest = _latest(self._before.files)
        for path, now in facts.items():
            names, known = self.names_of(path), dict[str, str]()
            for row in filter(None, map(latest.get, names)):
                known[row.source] = _root(row.source)
            # What was there goes on, whatever became of its first record.
            own = {root for source, root in known.items() if by_source[source] & now.content.items()}
            # A file that moved may be found again, or not. Of a run that died nobody knows whether it is certain.
            may_be_new = not own or len(names) > 1 or self._has_died
            # Where keys are positions, what differs there is another source.
            pairs = {pair for source in known for pair in by_source[source]}
            keys = {key for key, _ in pairs}
            may_be_new |= any(key in keys and (key, value) not in pairs for key, value in now.content.items())
            if may_be_new and now.identity is not None:
                own.add(now.identity)
            # What was read before it was damaged is not looked at again if it grows.
            sound = self._sound_facts(path)
            own |= {root for source, root in known.items() if by_source[source] & sound.content.items()}
            if self._has_died:
                own.update(*(self._roots[name] for name in names))
            self._roots[path] = own
            self._seen[path].append((now, own))
            for root in own:
                for key, value, _ in (*now.records, *sound.records):
                    self._possible[root, key].add(value)
        return facts

    def _sound_facts(self, path: str) -> Facts:
        file = self.file_at(path)
        return facts_of_bytes(file.content, file.format)

    def file_at(self, path: str) -> File:
        """The file of a path."""
        return next(file for file in self.files if os.fspath(file.path) == path)

    def seen_of(self, path: str) -> list[tuple[Facts, set[str]]]:
        """What runs may have found of a file, and its sources, the last first, also under the names that it had."""
        return [each for name in self.names_of(path) for each in reversed(self._seen[name])]

    def names_of(self, path: str) -> list[str]:
        """The path of a file, and those that it had."""
        return [path, *(name for file in self.files if os.fspath(file.path) == path for name in file.had)]

    def _run(self, _: Random) -> str:
        facts = self._begin()
        if not facts:
            return "nothing is there"
        try:
            self._ingest()
        except Exception as error:
            if self._may_refuse(facts):
                return f"refused: {_said(error)}"
            raise FailedError([("error", _said(error))]) from error
        self._check(facts)
        return "checked"

    def _may_refuse(self, facts: Mapping[str, Facts]) -> bool:
        """Whether the run may stop, as nothing can be read with this key."""
        return any(each.status == "wrong_key" for each in facts.values()) and not any(
            each.records for each in facts.values()
        )

    def _run_killed(self, chance: Random) -> str:
        return self._die(chance.random())

    def _die(self, place: float) -> str:
        facts = self._begin()
        if not facts:
            return "nothing is there"
        calls = Calls(1 + int(place * self._calls))
        try:
            with calls.watching():
                self._ingest()
        except Killed as killed:
            self._has_died = True
            return f"killed before call {calls.fatal}, {killed}"
        except Exception as error:
            if self._may_refuse(facts):
                return f"refused: {_said(error)}"
            raise FailedError([("error", _said(error))]) from error
        self._calls = max(calls.count, 5)
        self._check(facts)
        return f"it had but {calls.count} calls, checked"

    def _run_within(self, chance: Random) -> str:
        """Another run, from begin to end, in the middle of one."""
        facts = self._begin()
        if not facts:
            return "nothing is there"
        failed: list[Exception] = []

        def other() -> None:
            try:
                self._ingest()
            except Exception as error:
                failed.append(error)

        calls = Calls(1 + int(chance.random() * self._calls), other)
        self._has_died = True
        try:
            with calls.watching():
                self._ingest()
        except Killed as killed:
            raise FailedError([("stuck", str(killed))]) from killed
        except Exception as error:
            failed.append(error)
        if calls.count < calls.fatal:
            self._calls = max(calls.count, 5)
        return self._after_two(facts, failed, f"at call {calls.fatal}")

    def _run_twice(self, _: Random) -> str:
        """Two runs at once."""
        facts = self._begin()
        if not facts:
            return "nothing is there"
        failed: list[Exception] = []
        start = threading.Barrier(2)

        def own() -> None:
            start.wait()
            try:
                self._ingest()
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=own, daemon=True) for _ in range(2)]
        self._has_died = True
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_STUCK_S)
        if any(thread.is_alive() for thread in threads):
            raise FailedError([("stuck", "two runs at once")])
        return self._after_two(facts, failed, "side by side")

    def _after_two(self, facts: Mapping[str, Facts], failed: Sequence[Exception], how: str) -> str:
        if failed and not self._may_refuse(facts):
            raise FailedError([("error", f"two runs: {_said(failed[0])}")]) from failed[0]
        if failed:
            return f"{how}, refused"
        self._check(facts)
        return f"{how}, checked"

    def _run_changing(self, chance: Random) -> str:
        """A step in the middle of a run: what the run took may be what was there before or after it."""
        before = self._begin()
        if not before:
            return "nothing is there"
        step = Step(chance.choice(_MEANWHILE), chance.randrange(1 << 30))
        told, failed = list[str](), list[BaseException]()

        def meanwhile() -> None:
            try:
                told.append(getattr(self, f"_{step.name}")(Random(step.seed)) or "(not possible)")
                self._has_died = True
                self._begin()
            except BaseException as error:
                failed.append(error)

        calls = Calls(1 + int(chance.random() * self._calls), meanwhile)
        try:
            with calls.watching():
                self._ingest()
        except Exception as error:
            if not self._may_refuse(before):
                raise FailedError([("error", f"{step.name} meanwhile: {_said(error)}")]) from error
        if failed:
            raise failed[0]
        if not told:
            self._check(before)
            return f"it had but {calls.count} calls, checked"
        return f"at call {calls.fatal} {step.name} {told[0]}"

    # The promise

    def _check(self, facts: Mapping[str, Facts]) -> None:
        lake = self.code.rows(self.lake, self.table)
        failures = [each for each in _Check(self, lake, facts).failures() if each[0] not in self.ignored]
        if failures:
            raise FailedError(failures)
        self._before, self._has_died = lake, False
        self._at.update((os.fspath(file.path), (file, file.path.stat().st_ino)) for file in self.files)

    def end(self) -> None:
        """Runs once more, and then again, when there can be nothing new."""
        chance = Random(0)
        for file in self.files:
            if time.time() - file.path.stat().st_mtime < _SETTLED_S:
                self._modified(file.path, chance, rot=True)
        self.do(Step("run", 0))
        before, facts = self._before, self._begin()
        if not facts or not self.story[-1].endswith("checked"):
            return
        self._run(chance)
        self.story.append("run again  checked")
        new = _new_rows(before.files, self._before.files)
        if len(self._before.records) != len(before.records) or new:
            raise FailedError([("again", f"{Path(row.path).name}: {row.status} {row.error or ''}") for row in new[:3]])


def _new_rows(before: Sequence[FileRow], now: Sequence[FileRow]) -> list[FileRow]:
    return list((Counter(now) - Counter(before)).elements())


def _said(error: BaseException) -> str:
    deepest = error
    while deepest.__cause__ is not None:
        deepest = deepest.__cause__
    places = traceback.extract_tb(deepest.__traceback__)[-2:]
    at = " < ".join(f"{Path(each.filename).name}:{each.lineno}" for each in reversed(places))
    return f"{type(error).__name__}: {str(error)[:300]} ({at})"


def _root(source: str) -> str:
    return source if source.startswith("/") else _OTHER.sub("", source)


def _latest(rows: Iterable[FileRow]) -> dict[str, FileRow]:
    return {row.path: row for row in sorted(rows, key=lambda row: row.run)}


def _joined(damage: Iterable[tuple[int, int, str, str]]) -> set[tuple[int, int, str, str]]:
    """Joins ranges of one cause that touch, as a pass that was split has two of them."""
    found: list[tuple[int, int, str, str]] = []
    for start, end, kind, cause in sorted(damage):
        if found and found[-1][1:] == (start, kind, cause):
            start = found.pop()[0]
        found.append((start, end, kind, cause))
    return set(found)


class _Check:
    """Compares the tables with what a run has found in the folder."""

    def __init__(self, life: Life, lake: Lake, facts: Mapping[str, Facts]) -> None:
        self._life = life
        self._lake = lake
        self._facts = facts
        self._found: list[tuple[str, str]] = []
        self._latest = _latest(lake.files)
        self._sources: dict[str, dict[Key, bytes]] = defaultdict(dict[Key, bytes])

    def failures(self) -> list[tuple[str, str]]:
        self._check_records()
        self._check_sources()
        for path, now in self._facts.items():
            self._check_file(path, now)
        self._check_added()
        self._check_left()
        return self._found

    def _fail(self, kind: str, found: str) -> None:
        if sum(kind == other for other, _ in self._found) < 3:
            self._found.append((kind, found))

    def _check_records(self) -> None:
        before = Counter(self._life._before.records)
        for row in before - Counter(self._lake.records):
            self._fail("vanished", f"{row}: an earlier run had it")
        possible = self._life._possible
        for row in self._lake.records:
            own = self._sources[row.source]
            if row.key in own:
                self._fail("twice", f"{row}: also with {own[row.key]!r}")
            own[row.key] = row.value
            if row.value not in possible.get((_root(row.source), row.key), ()):
                known = [root for (root, key), values in possible.items() if key == row.key and row.value in values]
                self._fail("source" if known else "invented", f"{row}: expected of one of {known}")

    def _check_sources(self) -> None:
        """Several sources of one root are there only where they differ."""
        by_root: dict[str, list[str]] = defaultdict(list[str])
        for source in self._sources:
            by_root[_root(source)].append(source)
        for root, sources in by_root.items():
            if len(sources) > 1 and root.partition(":")[0] not in BY_POSITION:
                self._fail("source", f"{root}: expected one source, found {sources}")
            for number, first in enumerate(sources):
                for second in sources[number + 1 :]:
                    one, other = self._sources[first], self._sources[second]
                    if all(other.get(key, value) == value for key, value in one.items()):
                        self._fail("source", f"{first} and {second} have nothing that differs")

    def _check_file(self, path: str, now: Facts) -> None:
        name, row = Path(path).name, self._latest.get(path)
        if row is None:
            self._fail("lost" if now.records else "silent", f"{name}: {now.status}, {len(now.records)} records, no row")
            return
        # Nobody can see that a file changed which has its size and time.
        candidates = [(now, self._life._roots[path])]
        candidates += [each for each in self._life.seen_of(path) if may_be_taken_for(each[0], now)]
        ordinary, file = len(candidates), self._life.file_at(path)
        resumed = row
        if row.start is None and file.had:
            # It was only renamed: its numbers are those of the row before.
            names = set(self._life.names_of(path))
            own = [each for each in self._lake.files if each.path in names and each.source == row.source]
            before = [each for each in own if each.run < row.run and each.end]
            resumed = row._replace(start=max(before, key=lambda each: each.run).start) if before else row
        if resumed.start and file.grows:
            # What was before was read by an earlier run, as it was.
            start = resumed.start
            for earlier, roots in [candidates[0], *self._life.seen_of(path)]:
                view = facts_of_bytes(file.content[:start] + earlier.stored[start:], file.format)
                time = {"modified_ns": earlier.modified_ns, "is_settled": earlier.is_settled}
                if earlier is now or may_be_taken_for(replace(view, size=earlier.size, **time), now):
                    candidates.append((_from(view, start, now.size), roots))
        failed = [
            [
                (kind, found)
                for kind, found in self._of_file(path, row if number < ordinary else resumed, *each)
                if kind not in self._life.ignored
            ]
            for number, each in enumerate(candidates)
        ]
        for kind, found in min(failed, key=len):
            self._fail(kind, f"{name}: {found}; {row}")

    def _of_file(self, path: str, row: FileRow, now: Facts, roots: set[str]) -> Generator[tuple[str, str]]:
        if now.refused:
            if row.status != now.status:
                yield "untrue", f"expected {now.status}"
            return
        if row.status == "not_a_segment" and not now.is_clear:
            return
        if row.status == "renamed":
            yield "refused", f"of {len(now.records)} records none is taken"
            return
        content, own = now.content, self._sources.get(row.source, {})
        others = [key for key, value in content.items() if own.get(key, value) != value]
        if row.status == "conflict":
            known = [own for source, own in self._sources.items() if _root(source) in roots]
            if all(own.get(key, value) == value for own in known for key, value in content.items()):
                yield "conflict", f"expected {now.status}: no key of its {len(content)} has other content"
            elif row.added:
                yield "added", f"expected that a conflict adds nothing, found {row.added}"
            return
        missing = sorted((key for key in content if key not in own), key=str)
        if others:
            yield "unnamed", f"expected a conflict: {others[0]} has other content in {row.source}"
        elif missing:
            yield "lost", f"{len(missing)} of {len(content)} records, as {missing[0]}"
        # Another file of the same run may have added what its records are known by.
        known = {_root(each.source) for each in self._lake.files if each.path == path and each.run < row.run}
        is_known = _root(row.source) in roots or (row.added == 0 and _root(row.source) in known)
        if now.identity is not None and content and not is_known:
            yield "source", f"expected one of {roots}"
        if not content and row.source and row.source not in self._sources:
            yield "nameless", "expected no source, as it has no record"
        yield from self._numbers(path, row, now)

    def _numbers(self, path: str, row: FileRow, now: Facts) -> Generator[tuple[str, str]]:
        """The row is of a whole reading of what is there, or of one of what was new and the row before it."""
        before = [each for each in self._lake.files if each.run < row.run and each.source == row.source]
        before = [each for each in before if row.start and each.end == row.start and each.status != "conflict"]
        after = sum(position >= (row.start or 0) for _, _, position in now.records)
        counts = {len(now.records), *(each.records + after for each in before)}
        statuses = {now.status, *("damaged" for each in before if each.status == "damaged")}
        if any(each.status != "damaged" for each in before) and not any(
            end > (row.start or 0) for _, end, _, _ in now.damage
        ):
            # What is damaged in what was read before is not looked at.
            statuses |= {"pending" if now.pending or not now.records else "sound"}
        if row.status not in statuses:
            is_empty = row.status == "sound" and not now.records
            yield "nameless" if is_empty else "untrue", f"expected {' or '.join(sorted(statuses))}, found {row.status}"
        if row.records not in counts:
            yield "untrue", f"expected {' or '.join(map(str, sorted(counts)))} records, found {row.records}"
        if row.size != now.size:
            yield "untrue", f"expected {now.size} bytes, found {row.size}"
        elif row.nbytes != now.nbytes:
            yield "bytes", f"of {now.nbytes} bytes {row.nbytes} are accounted for"
        if row.pending != now.pending:
            yield "untrue", f"expected {now.pending} bytes pending, found {row.pending}"
        if row.start == 0 and row.status == "damaged" and len(now.damage) < 1000:
            listed = _joined(each[2:] for each in self._lake.damage if (each.run, each.path) == (row.run, path))
            if listed != _joined(now.damage):
                missing, more = _joined(now.damage) - listed, listed - _joined(now.damage)
                yield "damage", f"missing {sorted(missing)[:3]}, and {sorted(more)[:3]} too many"

    def _check_added(self) -> None:
        added, rows = Counter[str](), Counter(row.source for row in self._lake.records)
        for row in self._lake.files:
            added[row.source] += row.added or 0
        for source in added.keys() | rows.keys():
            if added[source] != rows[source]:
                self._fail("added", f"{source}: {added[source]} were added, {rows[source]} are there")

    def _check_left(self) -> None:
        """Where a file was that is elsewhere now, its row says so."""
        for path, found in self._life._at.items():
            row = self._latest.get(path)
            if found is None or row is None or row.status == "renamed" or os.path.lexists(path):
                continue
            file, inode = found
            if file in self._life.files and file.path.stat().st_ino == inode:
                self._fail("ghost", f"{Path(path).name}: it is at {file.path.name} now; {row}")


# Lives

_WEIGHTS: Final = {
    **{"new": 6, "grow": 12, "rotate": 2, "copytruncate": 2, "rename": 3, "copy": 3, "seal": 2, "seal_and_delete": 2},
    **{"flip": 4, "flip_protected": 3, "repair": 5, "cut": 2, "truncate": 2, "anew": 2, "fork": 4, "delete": 1},
    **{"touch": 1, "protect": 3, "unprotect": 1, "restore": 3},
    **{"run": 10, "run_killed": 7, "run_within": 3, "run_twice": 2, "run_changing": 2},
}
_MEANWHILE: Final = ("new", "grow", "grow", "rename", "rotate", "copytruncate", "seal_and_delete", "delete", "repair")


def steps_of(seed: int, most: int = 24) -> list[Step]:
    """The steps of a life."""
    chance = Random(seed)
    names = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=chance.randint(6, most))
    return [Step(name, chance.randrange(1 << 30)) for name in ("new", "new", *names)]


def live(
    steps: Sequence[Step], table: str, folder: Path, ignored: frozenset[str] = frozenset()
) -> tuple[FailedError | None, list[str]]:
    """Lives a life; returns what failed, and what happened."""
    life = Life(Code(), table, folder, ignored)
    step: Step | None = None
    try:
        for step in steps:
            life.do(step)
        step = None
        life.end()
    except FailedError as error:
        life.story.append(f"{step or 'run again'}  FAILED")
        return error, life.story
    return None, life.story


def live_of(
    steps: Sequence[Step], table: str, parent: Path, ignored: frozenset[str] = frozenset()
) -> tuple[FailedError | None, list[str]]:
    """The same in a folder that is removed after it."""
    with tempfile.TemporaryDirectory(prefix="life-", dir=parent, ignore_cleanup_errors=True) as folder:
        before, tempfile.tempdir = tempfile.tempdir, folder  # what is killed leaves its temporary folders
        try:
            return live(steps, table, Path(folder).resolve(), ignored)
        finally:
            tempfile.tempdir = before


def shrunk(
    steps: Sequence[Step], table: str, parent: Path, kinds: set[str], ignored: frozenset[str] = frozenset()
) -> list[Step]:
    """Drops steps as long as what is left fails in the same way."""
    steps, at = list(steps), len(steps) - 1
    size = max(1, len(steps) // 4)
    while size:
        at = len(steps) - size
        while at >= 0:
            fewer = steps[:at] + steps[at + size :]
            failed, _ = live_of(fewer, table, parent, ignored)
            if failed is not None and failed.kinds & kinds:
                steps = fewer
            at -= size
        size //= 2
    return steps


def told(seed: int, table: str, error: FailedError, story: Iterable[str], steps: Iterable[Step]) -> str:
    """What a failure says."""
    shown = " ".join(map(str, steps))
    again = f"python tests/python/lives.py --table {table} --steps '{shown}'"
    return "\n".join([f"life {seed} ({table})", *(f"  {each}" for each in story), str(error), again])


def _main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lives", type=int, default=0, help="so many, from the seed on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", choices=TABLES, default="parquet")
    parser.add_argument("--shrink", action="store_true", help="drop the steps that it does not take")
    parser.add_argument("--steps", help="live these")
    parser.add_argument("--kind", help="shrink failures of this kind only")
    parser.add_argument("--ignore", nargs="*", default=[], metavar="KIND", help="go on after failures of these kinds")
    options = parser.parse_args()
    ignored = frozenset(options.ignore)
    import_tables(options.table)
    kinds: dict[str, list[int]] = defaultdict(list[int])
    failures = 0
    parent = Path(tempfile.gettempdir())
    if options.steps:
        lives = [(0, [Step(name, int(seed)) for name, seed in (each.split(":") for each in options.steps.split())])]
    else:
        lives = [(seed, steps_of(seed)) for seed in range(options.seed, options.seed + max(options.lives, 1))]
    for seed, steps in lives:
        error, story = live_of(steps, options.table, parent, ignored)
        if error is None:
            if len(lives) == 1:
                print("\n".join(story))
            continue
        failures += 1
        for kind in error.kinds:
            kinds[kind].append(seed)
        if options.shrink and (options.kind is None or options.kind in error.kinds):
            steps = shrunk(steps, options.table, parent, {options.kind} if options.kind else error.kinds, ignored)
            again, more = live_of(steps, options.table, parent, ignored)
            error, story = (again, more) if again is not None else (error, story)
        print(told(seed, options.table, error, story, steps), flush=True)
    print(f"\n{len(lives)} lives, {failures} failed", file=sys.stderr)
    for kind, seeds in sorted(kinds.items()):
        print(f"{kind:10} {len(seeds):4}  {' '.join(map(str, seeds[:12]))}", file=sys.stderr)


def import_tables(table: str) -> None:
    """Imports what a kind of tables needs, so that its calls can be watched."""
    if table == "delta":
        import deltalake  # noqa: F401
    elif table == "iceberg":
        import pyiceberg.catalog.sql  # noqa: F401


if __name__ == "__main__":
    _main()
