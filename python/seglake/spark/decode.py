"""What runs on the executors: files in, Arrow batches in the schema of the load out."""

import logging
import socket
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

import pyarrow as pa

import seglake
from seglake._text import path_text, printable_path
from seglake.stores import SegmentFile
from seglake.tracking.tasks import After, Slice

from .arrow_types import arrow_schema
from .notes import Notes
from .option_names import in_options, naming_options
from .options import ReadOptions
from .schema import ReadSchema
from .stream.look import check_read, open_growth, replaced_while_read

__all__ = ["Decoder", "cause_of"]

_DAMAGE_ROWS: Final = 8192
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decoder:
    """Decodes files of one format into the batches that Spark expects; picklable, it holds nothing open.

    Attributes:
        format: the format.
        options: what the load was asked for.
        read_schema: the columns.
    """

    format: str
    options: ReadOptions
    read_schema: ReadSchema

    def decode(self, slices: Sequence[Slice]) -> Generator[pa.RecordBatch]:
        """Yields the records of files or parts of files, and a row for each damaged range where the load asks for them.

        A record that can be read although something in it is damaged is one row: its fields and what is wrong.

        Raises:
            seglake.DamageError: the mode is FAILFAST, or the schema has no column that reports damage.
            seglake.exceptions.LimitError: a record, chunk or number is larger than the options or its type allow.
            seglake.WrongKeyError: as above, without option ignoreCorruptFiles.
            seglake.FormatError: likewise, of a file that is no segment.
            seglake.exceptions.SegmentGoneError: a segment of a log was removed since the read was planned.
            FileNotFoundError: a file is gone since the read was planned.
            OSError: a file cannot be read, likewise; or it is one that the mode does not leave out.
        """
        with naming_options():
            yield from self._decode_slices(slices)

    def _decode_slices(self, slices: Sequence[Slice]) -> Generator[pa.RecordBatch]:
        schema = arrow_schema(self.read_schema.schema)
        with Notes().written(_LOG) as notes:
            for slice in slices:
                yield from self._decode_slice(slice, schema, notes)

    def _decode_slice(self, slice: Slice, schema: pa.Schema, notes: Notes) -> Generator[pa.RecordBatch]:
        file, part, after, growth, bad = slice.file, slice.part, slice.after, slice.growth, slice.bad
        path = file.path
        if bad is not None:
            if not (self._skips or self.options.ignore_corrupt_files):
                raise seglake.FormatError(f"nothing of it can be read: {bad}", path=path, next=self._advice)
            yield from self._bad_file(file, bad, schema, notes)
            return
        with self._collecting_errors(slice) as failed:
            try:
                reader = self._open(slice)
            except seglake.exceptions.SegmentGoneError:
                if self.options.ignore_missing_files:
                    return
                raise
            except seglake.exceptions.ReplacedError as error:
                if not self.options.ignore_missing_files:
                    raise
                notes.add("replaced", f"{error}. It is left out")
                return
            except FileNotFoundError as error:
                if growth is not None and error.filename == path and not self.options.ignore_missing_files:
                    raise
                if error.filename != path:  # the other files that are opened are those that options name
                    is_sidecar = error.filename == self.options.sidecar
                    option = "sidecar" if is_sidecar else "keyFile"
                    raise FileNotFoundError(
                        f"option {option}: {printable_path(error.filename or '')}: there is no such file on "
                        f"{socket.gethostname()}, where {printable_path(path)} is to be read"
                    ) from None
                if self.options.ignore_missing_files:
                    return
                raise FileNotFoundError(
                    f"{printable_path(path)}: was there when the read was planned and is gone now; "
                    "option ignoreMissingFiles leaves such files out"
                ) from None
            with reader:
                try:
                    yield from self._decode(path, reader, schema, after, notes, is_growth=growth is not None)
                    if growth is not None:
                        check_read(growth, reader, self.options, self.format)
                except OSError as error:
                    if growth is None:
                        raise
                    raise replaced_while_read(growth, self.options, self.format, error) from None
                except seglake.DamageError as error:
                    raise self._explained(error) from None
                except ValueError as error:
                    if part is None or type(error) is not ValueError:
                        raise
                    raise ValueError(
                        f"{error}. In Spark: load it anew, or, if it has not changed, with option maxPartitionBytes of "
                        "at least its size"
                    ) from None
        for error in failed:
            yield from self._bad_file(file, cause_of(error), schema, notes, in_options(str(error)))

    @contextmanager
    def _collecting_errors(self, slice: Slice) -> Generator[list[Exception]]:
        """Takes an error by which nothing can be read of a file into a list, if others are read on.

        What a stream has planned is read or an error: its state says that it was.
        """
        failed: list[Exception] = []
        try:
            yield failed
        except (seglake.FormatError, seglake.WrongKeyError, OSError) as error:
            if slice.growth is not None or slice.file.segment is not None or not self.goes_on(error, slice.file.path):
                raise
            failed.append(error)

    def goes_on(self, error: Exception, path: str) -> bool:
        """Tells whether an error by which nothing of a file can be read stops no other file."""
        return (self._skips or self.options.ignore_corrupt_files) and self.options.goes_on(error, path)

    def _bad_file(
        self, file: SegmentFile, cause: str, schema: pa.Schema, notes: Notes, error: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yields a row for a file of which nothing can be read, or notes that it is left out."""
        if self.reports_bad_files:
            report = {"path": path_text(file.path), "start": 0, "end": file.size, "kind": "file", "cause": cause}
            yield pa.RecordBatch.from_pylist([{self.options.corrupt_column: report}], schema)
        else:
            notes.add(cause, f"{error or f'{printable_path(file.path)}: {cause}'}. It is left out")

    @property
    def reports_bad_files(self) -> bool:
        """Whether there is a row for a file of which nothing can be read."""
        return self._skips and self.options.mode == "PERMISSIVE" and not self.options.ignore_corrupt_files

    @property
    def _skips(self) -> bool:
        """Whether damage is passed by, being reported in rows or left out on request."""
        if self.options.mode == "PERMISSIVE":
            return self.read_schema.corrupt_column is not None
        return self.options.mode == "DROPMALFORMED"

    def open_to_split(self, slice: Slice) -> seglake.Reader:
        """Opens a file on the driver, without the key's file: that is for the executors alone."""
        return self._opened(slice, key=self.options.driver_key)

    def _open(self, slice: Slice) -> seglake.Reader:
        later = [("uuid", ">", slice.after.last)] if slice.after is not None else []
        read: dict[str, Any] = {
            "on_damage": "raise" if not self._skips else "repair" if self.options.repair else "skip",
            "columns": self.read_schema.columns,
            "uuid_type": self.read_schema.uuid_type,
            "filters": [*(condition for _, condition in self.options.conditions), *later],
        }
        if slice.growth is not None:
            return open_growth(slice.growth, self.options, self.format, slice.part, **read)
        reader = self._opened(slice, key=self.options.read_key, prune=True, **read)
        return reader if slice.part is None else reader.part(slice.part)

    def _opened(self, slice: Slice, *, key: Any = None, **more: Any) -> seglake.Reader:
        format = slice.format or self.format
        return seglake.open(
            self.options.stores.source(slice.file),
            # A segment of a log may have another format by now, which it says itself.
            format=format if slice.file.segment is None else self.options.segment_format,
            key=key,
            sidecar=self.options.sidecar,
            **self.options.format_options.arguments(format),
            **more,
        )

    def _decode(
        self,
        path: str,
        reader: seglake.Reader,
        schema: pa.Schema,
        after: After | None,
        notes: Notes,
        *,
        is_growth: bool,
    ) -> Iterator[pa.RecordBatch]:
        # Spark's engine takes a batch while the next one is made. It has no uint64.
        uint64_type: Any = "int64" if self.read_schema.uint64_type == "bigint" else "decimal"
        batches = reader.batches(warn=False, ahead=True, uint64_type=uint64_type)
        first: seglake.Span | None = None
        # What is wrong with records that are given out all the same, by their position. It is known no later than they.
        in_records: dict[int, seglake.Span] = {}
        # What may turn out to be all damage of a file that is to be left out then.
        held: list[seglake.Span] | None = [] if self.options.ignore_corrupt_files and not is_growth else None
        for batch in batches:
            damage = _reported(batch.damage, after, reader)
            if held is not None:
                held += damage
                if not batch.num_rows:
                    continue
                damage, held = held, None
            first = first or next(iter(damage), None)
            if "cause" in self.read_schema.columns:
                in_records.update((span.start, span) for span in damage if span.kind == "record")
                damage = [span for span in damage if span.kind != "record"]
            if batch.num_rows:
                rows = self._record_rows(path, pa.record_batch(cast("Any", batch)), in_records, schema)
                if rows.num_rows:
                    yield rows
            yield from self._damage_rows(path, damage, schema)
        if not batches.report.wrong_key:
            if first is not None and self.options.mode == "DROPMALFORMED":
                notes.add(
                    "damage",
                    f"{printable_path(path)}: damage is left out, first {first.cause} at offset {first.start}; "
                    "`seglake verify` lists all of it",
                )
            yield from self._damage_rows(path, [*(held or ()), *in_records.values()], schema)
            return
        found = (
            "no record checks although the structure is sound; the key is probably not the one that the file was "
            "written with"
        )
        if self.options.mode == "PERMISSIVE" and held is None:
            notes.add("wrong_key", f"{printable_path(path)}: {found}. All of it is reported as damage")
        elif not is_growth:
            notes.add("wrong_key", f"{printable_path(path)}: {found}. It is left out")
        else:
            damaged = batches.report.damage[0]
            raise seglake.WrongKeyError(
                path=path,
                byte_offset=damaged.start,
                cause=damaged.cause or "checksum_mismatch",
                expected="checksums made with the key with which the batch was planned",
                actual="no checksum that agrees with it",
                next="Give the executors the key that the driver has",
            )

    def _record_rows(
        self, path: str, rows: pa.RecordBatch, in_records: dict[int, seglake.Span], schema: pa.Schema
    ) -> pa.RecordBatch:
        """Returns records as Spark wants them. Takes the damage that stands in their rows out of `in_records`."""
        reports = None
        if "cause" in rows.schema.names:
            causes = _column(rows, "cause")
            damaged = causes.is_valid()
            spans = [in_records.pop(position) for position in _column(rows, "position").filter(damaged).to_pylist()]
            if self.options.mode == "PERMISSIVE":
                given = iter(spans)
                reports = (
                    [_report(path, next(given)) if bad else None for bad in damaged.to_pylist()] if spans else None
                )
            elif spans:
                rows = rows.filter(_column(rows, "cause").is_null())
        if self.read_schema.corrupt_column in rows.schema.names:  # decoded for its own sake, and not to be shown
            rows = cast("Any", rows).drop_columns([self.read_schema.corrupt_column])
        for name in schema.names:
            # What is in the schema and not in the batch is the path, or else the column that reports damage.
            if name not in rows.schema.names:
                field = cast("Any", schema).field(name)
                if name == "path" or reports is None:
                    value = cast("Any", pa).scalar(path_text(path) if name == "path" else None, field.type)
                    column = cast("Any", pa).repeat(value, rows.num_rows)
                else:
                    column = cast("Any", pa).array(reports, field.type)
                rows = cast("Any", rows).append_column(field, column)
        return rows.select(schema.names).cast(schema)

    def _damage_rows(self, path: str, spans: Sequence[seglake.Span], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yields a row for each range, in which all columns are null but the one that reports damage."""
        if self.options.mode != "PERMISSIVE":
            return
        for first in range(0, len(spans), _DAMAGE_ROWS):
            some = [_report(path, span) for span in spans[first : first + _DAMAGE_ROWS]]
            yield pa.RecordBatch.from_pylist([{self.options.corrupt_column: report} for report in some], schema)

    def _explained(self, error: seglake.DamageError) -> seglake.DamageError:
        """Says what to do about damage that is an error here, in the words of this source's options."""
        if isinstance(error, seglake.WrongKeyError):
            return error
        return type(error)(
            path=error.path,
            byte_offset=error.byte_offset,
            cause=error.cause,
            expected=error.expected,
            actual=error.actual,
            next=self._advice,
        )

    @property
    def _advice(self) -> str:
        """What to do about what is an error here and a row elsewhere."""
        name = self.options.corrupt_column
        return (
            f"The schema given has no column to report damage in: add {name} "
            "struct<path: string, start: bigint, end: bigint, kind: string, cause: string> to it, "
            "or set mode to DROPMALFORMED to leave damage out"
            if self.options.mode == "PERMISSIVE"
            else "Mode PERMISSIVE reads what is sound, and reports damage in rows; `seglake verify` lists all of it"
        )


def cause_of(error: Exception) -> str:
    """Returns why nothing of a file can be read, as `Slice.bad` says it."""
    if isinstance(error, seglake.WrongKeyError):
        return "wrong_key"
    if isinstance(error, seglake.exceptions.ReplacedError):
        return "conflict"
    return "not_a_segment" if isinstance(error, seglake.FormatError) else "unreadable"


def _reported(damage: Sequence[seglake.Span], after: After | None, reader: seglake.Reader) -> Sequence[seglake.Span]:
    """Returns the damage that was not reported before: all damage of a segment that has been sealed meanwhile."""
    if after is None or reader.format != "active":
        return damage
    return [span for span in damage if span.start >= after.byte]


def _column(rows: pa.RecordBatch, name: str) -> Any:
    return cast("Any", rows).column(name)


def _report(path: str, span: seglake.Span) -> dict[str, Any]:
    return {"path": path_text(path), "start": span.start, "end": span.end, "kind": span.kind, "cause": span.cause}
