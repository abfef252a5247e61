"""From one input file to the output: only what no earlier run has ingested, and nothing that is not certain yet."""

import hashlib
from collections.abc import Iterable
from typing import Any, Final, cast

import pyarrow as pa

import seglake
from seglake._text import path_text

from .output import Output
from .plan import PlannedFile
from .state import Carry
from .tables import RAW_PART_BYTES

__all__ = ["FileSink", "ReplacedError", "UnreadableError"]

# How much is held back of a file behind its last record, a few hundred bytes each.
_HELD_RANGES: Final = 4096
_EDGE_BYTES: Final = 4096


class ReplacedError(Exception):
    """What earlier runs ingested of a file is not in it any more."""


class UnreadableError(Exception):
    """The input file cannot be read, unlike an output that cannot be written. `error` is what the library raised."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class FileSink:
    """Puts the records and the damage of one input file into the output.

    Damage is held back until a record follows it, as far as it goes into little memory. So a file for which the key is
    wrong, which has no record, leaves nothing in the output. And the unfinished tail of a file that grows stays out.

    Attributes:
        wrote: whether rows have gone to the output.
        records: how many records of the file went there, without those of earlier runs.
        damage: ranges and bytes of the damage that went there, by cause.
        pending: the damaged ranges that stay out: the unfinished tail.
    """

    def __init__(self, file: PlannedFile, run: str, reader: seglake.Reader, output: Output) -> None:
        self.wrote = False
        self.records = 0
        self.damage: dict[str, tuple[int, int]] = {}
        self.pending: list[seglake.Span] = []
        self._file = file
        self._place = {"segment": file.identity, "path": path_text(file.path)}
        self._run = run
        self._reader = reader
        self._format = reader.format
        self._output = output
        self._seen_records = 0
        self._seen_ranges = 0
        self._last_uuid: str | None = None
        self._held: list[seglake.Span] = []
        self._is_past_old = False
        before = file.before
        # The records of a sealed segment are those of the active one, in the same order, at other places.
        self._is_same_format = before is not None and before.format == reader.format
        self._skip_ranges = before.carry.ranges if before is not None and self._is_same_format else 0

    def check_edges(self) -> None:
        """Checks that what earlier runs have read begins and ends with the same bytes.

        Raises:
            ReplacedError: it does not.
            UnreadableError: it cannot be read.
        """
        before = self._file.before
        if before is None or before.carry.edges is None:
            return
        try:
            is_same = self._is_same_format and self._edges(before.end) == before.carry.edges
        except ValueError:  # it is shorter
            is_same = False
        if not is_same:
            raise ReplacedError(f"its first {before.end} bytes are not those that were ingested")

    def add_records(self, rows: pa.RecordBatch) -> int:
        """Adds records, whose last column is `position`; returns where the last one begins."""
        self.release()
        positions: Any = cast("Any", rows).column("position")
        last: int = positions[-1].as_py()
        old = self._old_records(rows.num_rows)
        if "uuid" in rows.schema.names and old:
            self._last_uuid = cast("Any", rows).column("uuid")[old - 1].as_py()
        self._seen_records += rows.num_rows
        if old < rows.num_rows:
            self._pass_old()
            if "uuid" in rows.schema.names:
                self._last_uuid = cast("Any", rows).column("uuid")[-1].as_py()
            self._write_records(rows.slice(old))
        return last

    def add_damage(self, span: seglake.Span, last_record: int) -> None:
        """Adds a damaged range; `last_record` is where the last record begins, -1 if there is none yet."""
        if span.kind == "record" or span.start < last_record:
            self._take(span)
            return
        self._held.append(span)
        if len(self._held) > _HELD_RANGES:
            self.release()

    def release(self) -> None:
        """Takes the damage that is held back: it is certain."""
        held, self._held = self._held, []
        for span in held:
            self._take(span)

    def finish(self, *, is_growing: bool) -> None:
        """Ends the file. The tail of one that grows stays pending.

        Raises:
            ReplacedError: records or damaged ranges of earlier runs are not in it any more.
        """
        if is_growing:
            self.pending, self._held = self._held, []
        self.release()
        self._pass_old()
        if self._seen_ranges < self._skip_ranges:
            raise ReplacedError(f"its first {self._skip_ranges} damaged ranges are not those that were ingested")

    @property
    def ranges(self) -> int:
        """How many damaged ranges the file has, without the tail that is pending."""
        return self._seen_ranges

    def carry(self, end: int) -> Carry:
        """Returns what a later run needs to go on at `end`.

        Raises:
            UnreadableError: the file cannot be read.
        """
        edges = None if self._file.segment is not None else self._edges(end)
        return Carry(self._seen_ranges, edges, self._last_uuid)

    def _old_records(self, rows: int) -> int:
        """Returns how many of the next records earlier runs have ingested. They count, as places change with a seal."""
        before = self._file.before
        return 0 if before is None else min(rows, max(0, before.records - self._seen_records))

    def _pass_old(self) -> None:
        """Checks, once, that the records of earlier runs have come."""
        before = self._file.before
        if before is None or self._is_past_old:
            return
        self._is_past_old = True
        if self._seen_records < before.records or self._last_uuid != before.carry.last:
            raise ReplacedError(f"its first {before.records} records are not those that were ingested")

    def _take(self, span: seglake.Span) -> None:
        self._seen_ranges += 1
        if self._seen_ranges > self._skip_ranges:
            self._write_damage(span)

    def _write_records(self, rows: pa.RecordBatch) -> None:
        self.wrote = True
        self.records += rows.num_rows
        with_place: Any = rows
        for name, value in self._place.items():
            with_place = with_place.add_column(
                with_place.num_columns - 1, name, pa.repeat(pa.scalar(value), rows.num_rows)
            )
        self._output.add_records(self._format, with_place)

    def _write_damage(self, span: seglake.Span) -> None:
        self.wrote = True
        cause = str(span.cause)
        ranges, nbytes = self.damage.get(cause, (0, 0))
        self.damage[cause] = (ranges + 1, nbytes + span.end - span.start)
        # A range without bytes (a file that has none and must have some) is a row all the same.
        for part, start in enumerate(range(span.start, max(span.end, span.start + 1), RAW_PART_BYTES)):
            raw = self._bytes(start, min(start + RAW_PART_BYTES, span.end))
            place = {"start": span.start, "end": span.end, "kind": span.kind, "cause": span.cause, "part": part}
            self._output.add_damage(self._format, {**self._place, "run": self._run, **place, "raw": raw})

    def _edges(self, end: int) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for start, stop in _edge_ranges(end):
            digest.update(self._bytes(start, stop))
        return digest.hexdigest()

    def _bytes(self, start: int, stop: int) -> bytes:
        try:
            return bytes(self._reader.read_bytes(start, stop))
        except (OSError, seglake.SeglakeError) as error:
            raise UnreadableError(error) from None


def _edge_ranges(end: int) -> Iterable[tuple[int, int]]:
    yield 0, min(end, _EDGE_BYTES)
    yield max(0, end - _EDGE_BYTES), end
