"""Reads what a file grew by since an earlier run, or all of it."""

from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import pyarrow as pa

import seglake
from seglake._formats import grows
from seglake._text import printable_path

from .carry import Carry, Sums
from .plan import PlannedFile
from .progress import TaskProgress
from .sink import FileSink, UnreadableError
from .tables import Uint64Type

__all__ = ["Grown", "WrongKeyFoundError", "read_growth"]


class WrongKeyFoundError(Exception):
    """No record of a file checks although its structure is sound."""


class Opening(Protocol):
    """Opens a file to read what it has after a position."""

    def __call__(self, position: seglake.Position | None, *, final: bool) -> seglake.Reader:
        """Opens it; `final` tells whether it grows no more."""
        ...


@dataclass(frozen=True)
class Grown:
    """What a file is by now.

    Attributes:
        format: its format.
        checked: how far its bytes could be checked.
        end: up to which byte it was read; None of a segment that was read by UUIDs.
        sums: what the whole segment is.
        pending_bytes: the unfinished tail, which is in no table yet.
        carry: what a later run goes on with.
        hides_records: whether records follow what is pending, which is therefore damage and no unfinished tail. They
            are in no table yet either.
        repaired_records: how many records of those that were read a sidecar restores.
        refused_sidecar: why the sidecar was ignored, as `Reader.parity_refused` says it.
    """

    format: str
    checked: str
    end: int | None
    sums: Sums
    pending_bytes: int
    carry: Carry
    hides_records: bool = False
    repaired_records: int = 0
    refused_sidecar: str | None = None

    def with_records(self, number: int) -> "Grown":
        """Returns it with another number of records: some of the segment may be damaged in this file."""
        more = Sums(records=number - self.sums.records)
        return replace(self, sums=self.sums.plus(more), carry=replace(self.carry, sums=self.carry.sums.plus(more)))


def read_growth(
    file: PlannedFile,
    first: seglake.Reader,
    opening: Opening,
    sink: FileSink,
    progress: TaskProgress,
    *,
    final: bool,
    uint64_type: Uint64Type,
) -> Grown:
    """Reads a file to its end, in a pass over what has come, and one over its tail if the file is final.

    What is before the tail is then the same whether the file was final or not. The tail may be read again.

    Raises:
        ReplacedError: it is not the file that earlier runs have ingested.
        UnreadableError: it cannot be read.
        WrongKeyFoundError: the key is probably wrong.
    """
    before = None if file.before is None else file.before.carry
    report, position, pending = _pass(first, sink, progress, uint64_type)
    _check_sum(file, report, position)
    # Only what was never read before tells of the key: a single record that was added may be damaged.
    if report.wrong_key and (before is None or not before.sums.records):
        raise WrongKeyFoundError
    sink.release()
    added = Sums.of(report, sink.ranges)
    carry = Carry(position, added) if before is None else before.at(position, added)
    carry = replace(carry, digest=sink.digest)
    sums, end, size = carry.sums, position.byte_offset, first.nbytes
    repaired = report.repaired_records
    if end == 0 and position.uuid is not None:
        # A segment of a log that was sealed since it was listed.
        sink.finish()
        return Grown(first.format, report.checked, None, sums, 0, carry, repaired_records=repaired)
    if pending and (final or (before is not None and before.is_final(size))):
        with opening(position, final=True) as reader:
            report, of_all, _ = _pass(reader, sink, progress, uint64_type)
            if report.wrong_key and not sums.records:
                raise WrongKeyFoundError
            sink.release()
        if position.identity is None:
            # An oplog that begins with damage is identified by what its end proves.
            carry = replace(carry, position=of_all)
        carry = replace(carry, tail=sink.tail(end + pending, size))
        sums = sums.plus(Sums.of(report, sink.ranges))
        repaired += report.repaired_records
        end, pending = size, 0
        hides_records = False
    else:
        hides_records = pending > 0 and _has_records(opening, position)
        tail_ranges = 0 if carry.tail is None else carry.tail.ranges
        # The zeros after the last record are not read as long as the file may grow into them.
        unused = max(0, size - end - pending)
        sums = sums.plus(Sums(ranges=tail_ranges, unused_bytes=unused))
    sink.finish()
    return Grown(first.format, report.checked, end, sums, pending, carry, hides_records, repaired)


def _has_records(opening: Opening, position: seglake.Position) -> bool:
    """Tells whether there is a record anywhere after a position.

    Raises:
        UnreadableError: it cannot be read.
    """
    with opening(position, final=True) as reader:
        try:
            return any(batch.num_rows for batch in reader.batches(warn=False))
        except (OSError, seglake.SeglakeError) as error:
            raise UnreadableError(error) from None


def _pass(
    reader: seglake.Reader, sink: FileSink, progress: TaskProgress, uint64_type: Uint64Type
) -> tuple[seglake.Report, seglake.Position, int]:
    """Reads to the end; returns the report, where to go on, and the number of pending bytes."""
    sink.begin(reader)
    last_record = -1
    batches = reader.batches(warn=False, uint64_type=uint64_type)  # damage has a table of its own
    while True:
        try:
            batch = next(batches, None)
        except (OSError, seglake.SeglakeError) as error:
            raise UnreadableError(error) from None
        if batch is None:
            break
        if batch.num_rows:
            last_record = sink.add_records(pa.record_batch(cast("Any", batch)))
            progress.read_to(last_record, batch.num_rows)
        for span in batch.damage:
            sink.add_damage(span, last_record)
            progress.damage_found()
            progress.read_to(span.end, 0)
    position = reader.position
    if position is None:
        raise RuntimeError("a pass that ended has no position")
    return batches.report, position, reader.pending_bytes or 0


def _check_sum(file: PlannedFile, report: seglake.Report, position: seglake.Position) -> None:
    """Sees to it that each byte is accounted for.

    Raises:
        RuntimeError: the parts do not add up.
    """
    found = sum(total.nbytes for total in report.totals)
    before = None if file.before is None else file.before.carry.position
    expected = report.nbytes
    # Of a segment that was sealed since, or sealed anew, only what follows a record is read.
    is_same = before is None or (before.format == position.format and grows(position.format))
    if file.segment is None and is_same:
        expected = position.byte_offset - (0 if before is None else before.byte_offset)
    if found != expected:
        raise RuntimeError(f"{printable_path(file.path)}: of {expected} bytes {found} are accounted for")
