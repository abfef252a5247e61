"""Reads one file into the tables: what is new of it, or whole without those records that its source has already."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import seglake
from seglake._native import row_hashes
from seglake._text import error_text, path_text, printable_path
from seglake.parity.by_sidecar import listed_size
from seglake.read.formats import LOCATION_COLUMNS, column_names, grows, key_column, numbering_columns
from seglake.tracking.state import FileState, Sums
from seglake.tracking.status import FileStatus

from .keys import SourceKeys
from .options import IngestOptions
from .output import FileOutput
from .parquet import DAMAGE_SCHEMA, RAW_PART_BYTES, records_schema, uint64_type_of
from .plan import PlannedFile
from .progress import TaskProgress
from .result import DamageTotal, add_damage

__all__ = [
    "ConflictError",
    "FileReading",
    "FileRow",
    "NotContinuedError",
    "NotReadError",
    "load_keys",
]

_compute: Final = cast("Any", pc)  # typed in part only
_BATCH_ROWS: Final = 8192
# Of a file that no key fits all is damage: it is no reason to write what may be taken back.
_HELD_SPANS: Final = 1000
# Hostile files have millions of damaged ranges: their rows are made many at a time.
_DAMAGE_ROWS: Final = 1024


class NotReadError(Exception):
    """Nothing of a file is ingested."""

    def __init__(self, status: FileStatus, reason: str, format: str | None = None) -> None:
        super().__init__(reason)
        self.status: FileStatus = status
        self.format = format

    @classmethod
    def of(cls, error: Exception, format: str | None = None) -> NotReadError:
        """Makes it of what the library has raised."""
        status: FileStatus = "unreadable"
        if isinstance(error, seglake.WrongKeyError):
            status = "wrong_key"
        elif isinstance(error, seglake.exceptions.LimitError):
            status = "limit"
        elif isinstance(error, seglake.FormatError):
            status = "not_a_segment"
        elif isinstance(error, seglake.DamageError):
            advice = (
                "The file has no checksums, and its parity sidecar does not prove it. Restore the file; if the sidecar "
                "is of another one, remove it; or have the file read as it is: `sidecar=None`"
            )
            return cls(status, f"{error}. {advice}", format)
        return cls(status, error_text(error), format)


class NotContinuedError(Exception):
    """A file does not go on where an earlier run ended: it is to be read whole."""


class ConflictError(Exception):
    """A record of a file has the key of one that its source has, and other content.

    Attributes:
        key: its key.
        fingerprint: of the first such record.
    """

    def __init__(self, key: str, fingerprint: int) -> None:
        super().__init__(key)
        self.key = key
        self.fingerprint = fingerprint


class FileRow(msgspec.Struct, omit_defaults=True):
    """What became of one input file: its state, and a row of `files`.

    Attributes:
        state: what the next run goes on from.
        has_row: whether the row says anything that the last did not.
        checked: how far its bytes could be checked.
        start: the byte from which this run has read it; None if it was not read.
        end: the byte up to which it was read; None of a segment of a log that was sealed while the run began.
        row_sums: what the whole file is, up to its end.
        added: the records that the run has added.
        repaired_records: of those that it read, how many a sidecar restores.
        refused_sidecar: why its sidecar was ignored.
        damage: the ranges and bytes of its damage for each cause, as far as this run has read.
        is_known_damage: whether it is damaged as it was when it was read last.
    """

    state: FileState
    has_row: bool = True
    checked: str | None = None
    start: int | None = None
    end: int | None = None
    row_sums: Sums | None = None
    added: int = 0
    repaired_records: int = 0
    refused_sidecar: str | None = None
    damage: dict[str, DamageTotal] = {}
    is_known_damage: bool = False


def _content(names: Sequence[str], format: str) -> list[str]:
    return [name for name in names if name not in {*numbering_columns(format), *LOCATION_COLUMNS, "source"}]


def load_keys(
    keys: SourceKeys,
    source: str,
    files: Mapping[str, Sequence[str]],
    options: IngestOptions,
    opened: Callable[[str], Any],
) -> None:
    """Loads the keys of the records that a source has in the lake.

    Args:
        keys: where they go.
        source: the source.
        files: the Parquet files that may have some, by the format of their table.
        options: how they were written.
        opened: opens one.

    Raises:
        OSError: a file cannot be read.
    """
    for format, paths in files.items():
        schema: Any = records_schema(format, options)
        key, content = key_column(format), _content(schema.names, format)
        columns = sorted({"source", key, *content})
        own_schema = pa.schema([schema.field(name) for name in columns])
        for path in paths:
            table: Any = pq.ParquetFile(opened(path))
            names = [table.metadata.schema.column(number).path for number in range(table.metadata.num_columns)]
            place = names.index("source")
            for group in range(table.num_row_groups):
                bounds = table.metadata.row_group(group).column(place).statistics
                if bounds is not None and bounds.has_min_max and not bounds.min <= source <= bounds.max:
                    continue
                for batch in table.iter_batches(_BATCH_ROWS, row_groups=[group], columns=columns):
                    own = batch.filter(_compute.equal(batch.column("source"), source))
                    if own.num_rows:
                        # Who rewrites the files of a table may give its columns other types.
                        own = pa.Table.from_batches([own]).select(columns).cast(own_schema)
                        own = own.combine_chunks().to_batches()[0]
                        keys.add(own.column(key), _hashes(own, content))


def _hashes(rows: Any, content: Sequence[str]) -> Any:
    hashes = row_hashes(rows.select(list(content)))
    return cast("Any", pa).Array.from_buffers(pa.uint64(), rows.num_rows, [None, pa.py_buffer(hashes)])


@contextmanager
def _told(reader: seglake.Reader) -> Generator[None]:
    """Has errors of reading name the file and its format."""
    try:
        yield
    except (OSError, seglake.SeglakeError) as error:
        raise NotReadError.of(error, reader.format) from None


@dataclass
class FileReading:
    """Reads one file, as records of one source.

    Attributes:
        file: the file.
        source: the source.
        options: how files are read.
        run: the name of the run.
        progress: what hears how far it is.
        keys: which records the source has; None if it has none of this file, or what is read is new by itself.
        noted: what is to know the records that are added, for the next file of the source.
    """

    file: PlannedFile
    source: str
    options: IngestOptions
    run: str
    progress: TaskProgress
    output: FileOutput
    keys: SourceKeys | None = None
    noted: SourceKeys | None = None
    added: int = 0
    ranges: int = 0
    damage: dict[str, DamageTotal] = field(default_factory=dict[str, DamageTotal])
    _format: str = ""
    _damage_rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _damage_bytes: int = 0
    _held: list[tuple[seglake.Reader, seglake.Span]] = field(default_factory=list[tuple[seglake.Reader, seglake.Span]])

    def open(self, position: seglake.incremental.Position | None, *, final: bool) -> seglake.Reader:
        """Opens the file from a position on.

        Raises:
            NotContinuedError: it does not go on there.
            NotReadError: it cannot be read.
        """
        file, options = self.file, self.options
        is_known = file.segment is not None or position is not None
        try:
            return seglake.incremental.resume(
                file.segment or file.path,
                position,
                size=None if file.segment is not None else listed_size(file.path, file.now.size, options.sidecar),
                final=final,
                format=options.format if is_known else self._format,
                key=options.key_files,
                on_damage=options.on_damage,
                sidecar=options.sidecar,
                columns=[*column_names(self._format, options.format_options), "position"],
                uuid_type="string",
                storage_options=options.storage_options,
                **options.format_options.arguments(self._format),
            )
        except seglake.exceptions.ReplacedError as error:
            raise NotContinuedError(str(error)) from None
        except (OSError, seglake.SeglakeError) as error:
            raise NotReadError.of(error, self._format) from None

    def has_any(self, format: str) -> bool:
        """Tells whether the source has any record of the file."""
        self._format = format
        assert self.keys is not None
        with self.open(None, final=False) as reader, _told(reader):
            for batch in reader.batches(warn=False, uint64_type=uint64_type_of(self.options.table)):
                rows: Any = pa.record_batch(cast("Any", batch))
                if rows.num_rows:
                    there, conflicts = self.keys.look(*self._keyed(rows))
                    if (there & ~conflicts).any():
                        return True
        return False

    def read(self, format: str) -> FileRow:
        """Reads what is new of the file, or all of it.

        Raises:
            NotContinuedError: it does not go on where it was expected to.
            ConflictError: a record has the key of one that the source has, and is another.
            NotReadError: it cannot be read.
        """
        self._format = format
        file, before = self.file, self.file.before if self.file.goes_on else None
        position = None
        if before is not None and before.position is not None:
            position = seglake.incremental.Position.from_json(before.position)
        with self.open(position, final=False) as reader, _told(reader):
            if position is not None and reader.format != position.format:
                raise NotContinuedError(f"it was {position.format}, and is {reader.format}")
            report, at, pending = self._pass(reader)
            if file.segment is None and _is_another(file):
                raise NotContinuedError("another file is at its path than when it was listed")
            if position is None and at.identity is not None and at.identity != file.identity:
                raise NotContinuedError("it begins otherwise than when it was listed")
            self._check_sum(report, position, at)
            if report.wrong_key and (before is None or not before.sums.records):
                reason = (
                    f"{printable_path(file.path)}: no record checks although the structure is sound, so the key is "
                    "probably not the one that it was written with"
                )
                raise NotReadError("wrong_key", reason, reader.format)
            self._release()
            sums = Sums.of(report, self.ranges)
            sums = sums if before is None else before.sums.plus(sums)
            row_sums, end, repaired = sums, at.byte_offset, report.repaired_records
            goes_on = grows(reader.format)
            is_hidden, size = False, reader.nbytes
            was_sealed = end == 0 and at.uuid is not None
            if was_sealed:
                goes_on = False  # a segment of a log that was sealed since it was listed
            elif pending and (self.options.final or (file.segment is not None and file.segment.is_frozen)):
                ranges = self.ranges
                with self.open(at, final=True) as tail, _told(tail):
                    report, at, _ = self._pass(tail)
                    self._release()
                row_sums = sums.plus(Sums.of(report, self.ranges - ranges))
                repaired += report.repaired_records
                end, pending, goes_on = size, 0, False
            else:
                is_hidden = pending > 0 and self._has_records(at)
                # The zeros after the last record are not read as long as the file may grow into them.
                row_sums = sums.plus(Sums(unused_bytes=max(0, size - end - pending)))
            self._pass_on_damage()
            refused = reader.parity_refused
            # A file that has no whole record yet has nothing but a tail, if anything.
            status: FileStatus = "pending" if pending or (goes_on and at.identity is None) else "sound"
            state = msgspec.structs.replace(
                file.now,
                status="damaged" if row_sums.ranges or is_hidden else status,
                format=reader.format,
                source=self.source if row_sums.records else "",
                position=at.to_json() if goes_on and at.identity is not None else None,
                sums=sums,
                pending_bytes=pending,
            )
            known = file.before
            was_damaged = known is not None and known.status == state.status == "damaged"
            is_all_known = not self.ranges if before is not None else known is not None and sums == known.sums
            return FileRow(
                state,
                has_row=before is None or self.added > 0 or self.ranges > 0 or _differ(before, state),
                checked=report.checked,
                start=0 if before is None else before.size if position is None else position.byte_offset,
                end=None if was_sealed else end,
                row_sums=row_sums,
                added=self.added,
                repaired_records=repaired if self.options.on_damage == "repair" else 0,
                refused_sidecar=refused,
                damage=self.damage,
                is_known_damage=was_damaged and is_all_known and row_sums.ranges == sums.ranges,
            )

    def _has_records(self, position: seglake.incremental.Position) -> bool:
        """Tells whether there is a record anywhere after a position."""
        with self.open(position, final=True) as reader, _told(reader):
            return any(batch.num_rows for batch in reader.batches(warn=False))

    def _pass(self, reader: seglake.Reader) -> tuple[seglake.Report, seglake.incremental.Position, int]:
        """Reads to the end; returns the report, where to go on, and the number of pending bytes."""
        last_record = -1
        # Damage has a table of its own.
        batches = reader.batches(warn=False, uint64_type=uint64_type_of(self.options.table))
        for batch in batches:
            if batch.num_rows:
                rows: Any = pa.record_batch(cast("Any", batch))
                last_record = rows.column("position")[-1].as_py()
                self._release()
                self._add_records(reader.format, rows)
                self.progress.read_to(last_record, records=batch.num_rows)
            for span in batch.damage:
                self.ranges += 1
                self._held.append((reader, span))
                if len(self._held) > _HELD_SPANS:
                    self._release()
                self.progress.read_to(span.end, damage=1)
        position = reader.position
        if position is None:
            raise RuntimeError("a pass that ended has no position")
        return batches.report, position, reader.pending_bytes or 0

    def _add_records(self, format: str, rows: Any) -> None:
        keyed = None
        if self.keys is not None:
            keyed = self._keyed(rows)
            there, conflicts = self.keys.look(*keyed)
            if conflicts.any():
                first = int(conflicts.argmax())
                raise ConflictError(str(keyed[0][first].as_py()), keyed[1][first].as_py())
            if there.any():
                mask = pa.array(~there)
                rows = rows.filter(mask)
                keyed = tuple(each.filter(mask) for each in keyed)
        if not rows.num_rows:
            return
        if self.noted is not None:
            self.noted.add(*(keyed or self._keyed(rows)))
        self.added += rows.num_rows
        for name, value in (("source", self.source), ("path", path_text(self.file.path))):
            rows = rows.add_column(rows.num_columns - 1, name, pa.repeat(pa.scalar(value), rows.num_rows))
        self.output.add(format, rows)

    def _keyed(self, rows: Any) -> tuple[Any, Any]:
        return rows.column(key_column(self._format)), _hashes(rows, _content(rows.schema.names, self._format))

    def _release(self) -> None:
        held, self._held = self._held, []
        for reader, span in held:
            self._add_damage(reader, span)

    def _add_damage(self, reader: seglake.Reader, span: seglake.Span) -> None:
        cause = str(span.cause)
        add_damage(self.damage, {cause: DamageTotal(1, span.end - span.start)})
        # A range without bytes (a file that has none and must have some) is a row all the same.
        for part, first in enumerate(range(span.start, max(span.end, span.start + 1), RAW_PART_BYTES)):
            raw = bytes(reader.read_bytes(first, min(first + RAW_PART_BYTES, span.end)))
            place = (self.source, self.run, path_text(self.file.path))
            row = (*place, span.start, span.end, span.kind, cause, part, raw)
            self._damage_rows.append(dict(zip(DAMAGE_SCHEMA.names, row, strict=True)))
            self._damage_bytes += len(raw)
            if len(self._damage_rows) >= _DAMAGE_ROWS or self._damage_bytes >= RAW_PART_BYTES:
                self._pass_on_damage()

    def _pass_on_damage(self) -> None:
        if self._damage_rows:
            self.output.add("damage", pa.RecordBatch.from_pylist(self._damage_rows, DAMAGE_SCHEMA))
        self._damage_rows, self._damage_bytes = [], 0

    def _check_sum(
        self, report: seglake.Report, before: seglake.incremental.Position | None, at: seglake.incremental.Position
    ) -> None:
        """Sees to it that each byte is accounted for.

        Raises:
            RuntimeError: the parts do not add up.
        """
        found, expected = sum(total.nbytes for total in report.totals), report.nbytes
        if self.file.segment is None and grows(at.format):
            expected = at.byte_offset - (0 if before is None else before.byte_offset)
        if found != expected:
            raise RuntimeError(f"{printable_path(self.file.path)}: of {expected} bytes {found} are accounted for")


def _is_another(file: PlannedFile) -> bool:
    """Tells whether another file is at the path than when it was listed. What is gone was read all the same."""
    try:
        return file.now.inode not in (None, os.stat(file.path).st_ino)  # noqa: PTH116 - no path is made
    except OSError:
        return False


def _differ(before: FileState, now: FileState) -> bool:
    names = ("path", "status", "format", "source", "size", "sums", "pending_bytes")
    return any(getattr(before, name) != getattr(now, name) for name in names)
