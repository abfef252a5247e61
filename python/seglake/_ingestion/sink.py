"""From one input file to the output: only what no earlier run has ingested."""

import hashlib
import math
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

import seglake
from seglake._text import path_text

from .carry import DamagedRange, Tail
from .digest import COLUMNS, RecordDigest
from .known import KnownRecords, ReplacedError
from .output import Output
from .plan import PlannedFile
from .repaired import MOST_RANGES, range_digest
from .tables import RAW_PART_BYTES

__all__ = ["FileSink", "UnreadableError"]

# How much is held back of a file after its last record, a few hundred bytes each.
_HELD_RANGES: Final = 4096
_compute: Final = cast("Any", pc)  # typed in part only


class UnreadableError(Exception):
    """The input file cannot be read, unlike an output that cannot be written. `error` is what the library raised."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class FileSink:
    """Puts the records and the damage of one input file into the output.

    Damage is held back until a record follows it, as far as it goes into little memory. So a file for which the key is
    wrong, which has no record, leaves nothing in the output.

    What an earlier run took on the word that the file is final is read again, and left out here. So are the records of
    a file that is read again from its start, because its damage was repaired.

    Args:
        file: the file.
        run: the run.
        output: where the rows go.
        ingested: the records that earlier runs have ingested of a file that is read again from its start.

    Attributes:
        wrote: whether rows have gone to the output.
        records: how many records of the file went there, without those of earlier runs.
        damage: ranges and bytes of the damage that went there, by cause.
        ranges: how many damaged ranges this pass has found, those of an earlier run's tail as well.
        damaged: the damaged ranges that went there, the first `MOST_RANGES` and one more.
        digest: a hash of the records of the segment, up to those of the pass; None if that cannot be told.
    """

    def __init__(self, file: PlannedFile, run: str, output: Output, ingested: KnownRecords | None = None) -> None:
        self.wrote = False
        self.records = 0
        self.damage: dict[str, tuple[int, int]] = {}
        self.ranges = 0
        self.damaged: list[DamagedRange] = []
        self._ingested_before = ingested
        self._place = {"segment": file.segment_name, "path": path_text(file.path)}
        self._run = run
        self._output = output
        self._held: list[seglake.Span] = []
        self._before = None if file.before is None else file.before.carry
        self.digest = RecordDigest() if self._before is None else self._before.digest
        if file.segment is not None:
            self.digest = None  # a log never changes what was read of it
        self._first_damage = math.inf
        self._final_tail = Tail(0)
        self._tail_records = _Places()
        self._pass_records = _Places()
        self._reader: seglake.Reader | None = None

    def begin(self, reader: seglake.Reader) -> None:
        """Begins a pass."""
        self._reader = reader
        if self._before is not None and self._before.tail is not None and reader.format == self._before.position.format:
            # A segment that was sealed since has other bytes there.
            self._final_tail = self._before.tail
        self.ranges = 0
        self._pass_records = _Places()

    def add_records(self, rows: pa.RecordBatch) -> int:
        """Adds records, whose last column is `position`; returns where the last one begins.

        Raises:
            ReplacedError: records that an earlier run has ingested are not there.
        """
        self.release()
        positions: Any = cast("Any", rows).column("position")
        self._pass_records.add(positions)
        if self.digest is not None:
            has_columns = set(COLUMNS) <= set(rows.schema.names)
            self.digest = self.digest.plus(rows) if has_columns else None
        old = 0
        if self._final_tail.records:
            old = _compute.sum(_compute.less(positions, self._final_tail.end)).as_py()
            self._tail_records.add(positions[:old])
            if old < rows.num_rows:
                self._check_tail()
        new: Any = rows.slice(old)
        if self._ingested_before is not None:
            new = new.filter(pa.array([not each for each in self._ingested_before.among(new)]))
        if new.num_rows:
            self._write_records(new)
        return positions[-1].as_py()

    def add_damage(self, span: seglake.Span, last_record: int) -> None:
        """Adds a damaged range; `last_record` is where the last record begins, -1 if there is none yet."""
        self.ranges += 1
        self._first_damage = min(self._first_damage, span.start)
        if span.kind == "record" or span.start < last_record:
            self._write_damage(span)
            return
        self._held.append(span)
        if len(self._held) > _HELD_RANGES:
            self.release()

    def release(self) -> None:
        """Takes the damage that is held back: it is certain."""
        held, self._held = self._held, []
        for span in held:
            self._write_damage(span)

    def finish(self) -> None:
        """Ends the file.

        Raises:
            ReplacedError: records that an earlier run has ingested are not there.
        """
        self.release()
        self._check_tail()
        if self._ingested_before is not None:
            self._ingested_before.check(self._first_damage)

    def tail(self, end: int, size: int) -> Tail:
        """Returns what this pass has taken, up to the end of what was written and the size of the file."""
        return Tail(end, size, self.ranges, self._pass_records.number, self._pass_records.digest())

    def _check_tail(self) -> None:
        tail, found = self._final_tail, self._tail_records
        if tail.records and (found.number, found.digest()) != (tail.records, tail.digest):
            raise ReplacedError(
                f"after its first damage it had {tail.records} records when it was final, and has others now"
            )

    def _write_records(self, rows: pa.RecordBatch) -> None:
        self.wrote = True
        self.records += rows.num_rows
        with_place: Any = rows
        for name, value in self._place.items():
            with_place = with_place.add_column(
                with_place.num_columns - 1, name, pa.repeat(pa.scalar(value), rows.num_rows)
            )
        self._output.add_records(self._source().format, with_place)

    def _write_damage(self, span: seglake.Span) -> None:
        start = span.start
        if start < self._final_tail.end:
            if span.end <= self._final_tail.end or (span.kind == "record" and self._final_tail.records):
                self._note_damage(span)
                return
            if span.kind != "record":
                start = self._final_tail.end
        self.wrote = True
        cause = str(span.cause)
        ranges, nbytes = self.damage.get(cause, (0, 0))
        self.damage[cause] = (ranges + 1, nbytes + span.end - start)
        # A range without bytes (a file that has none and must have some) is a row all the same.
        for part, first in enumerate(range(start, max(span.end, start + 1), RAW_PART_BYTES)):
            raw = self._bytes(first, min(first + RAW_PART_BYTES, span.end))
            place = {"start": start, "end": span.end, "kind": span.kind, "cause": span.cause, "part": part}
            self._output.add_damage(self._source().format, {**self._place, "run": self._run, **place, "raw": raw})
        self._note_damage(span)

    def _note_damage(self, span: seglake.Span) -> None:
        # Of the kind `record` is what is in `records`.
        if span.kind == "record" or len(self.damaged) > MOST_RANGES:
            return
        digest = range_digest()
        for first in range(span.start, span.end, RAW_PART_BYTES):
            digest.update(self._bytes(first, min(first + RAW_PART_BYTES, span.end)))
        self.damaged.append(DamagedRange(span.start, span.end, span.kind != "repaired", digest.hexdigest()))

    def _bytes(self, start: int, stop: int) -> bytes:
        try:
            return bytes(self._source().read_bytes(start, stop))
        except (OSError, seglake.SeglakeError) as error:
            raise UnreadableError(error) from None

    def _source(self) -> seglake.Reader:
        if self._reader is None:
            raise RuntimeError("no pass has begun")
        return self._reader


class _Places:
    """Where records begin: how many there are, and a hash of their places."""

    def __init__(self) -> None:
        self.number = 0
        self._digest = hashlib.blake2b(digest_size=16)

    def add(self, positions: Any) -> None:
        self.number += len(positions)
        whole = memoryview(positions.buffers()[1])
        size = positions.type.bit_width // 8
        self._digest.update(whole[positions.offset * size : (positions.offset + len(positions)) * size])

    def digest(self) -> str:
        return self._digest.hexdigest()
