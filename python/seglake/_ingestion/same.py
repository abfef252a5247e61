"""Tells of files that begin with the same record how they are related: one segment, copies, or several."""

import array
import hashlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, cast

import pyarrow as pa

import seglake
from seglake._formats import grows

from .repaired import MOST_RANGES
from .state import Ingested

__all__ = ["Relation", "relation"]

Relation = Literal["copy", "damaged copy", "longer", "anew", "other"]
"""How a file is related to a segment.

It has no more, and may be damaged; has that and more, or what is damaged there; has other bytes after its last record;
or differs.
"""

_CHUNK_BYTES: Final = 1 << 20
_COLUMNS: Final = ("uuid", "type", "value")


def relation(
    open_all: Callable[[str, int | None, str | None], seglake.Reader],
    path: str,
    size: int,
    known: str,
    before: Ingested,
) -> Relation:
    """Compares a file with the one of a segment, up to where the segment was ingested.

    Their bytes are compared, as sidecars restore them, but for those that are damaged in one of both. Of an active and
    a sealed file, whose bytes differ, the records are.

    Args:
        open_all: opens a file of a format to read all of it, up to a size in bytes, and to pass over damage.
        path: the file.
        size: its size in bytes.
        known: the file of the segment.
        before: how far the segment was ingested.

    Raises:
        OSError: one of them cannot be read.
        seglake.SeglakeError: likewise.
    """
    own = before.carry.position
    with open_all(path, size, None) as reader, open_all(known, None, own.format) as other:
        if reader.format != own.format:
            return _by_records(reader, other, before)
        batches = reader.batches(warn=False)
        damaged = _damaged(batches)
        if reader.position is None:
            raise RuntimeError("a pass that ended has no position")
        # An unfinished tail may be the beginning of what the segment has there, or differ from it.
        end = reader.position.byte_offset
        if _is_repaired(reader, other, before, end, damaged):
            return "longer"
        copy: Relation = "damaged copy" if damaged else "copy"
        if not grows(own.format):
            # What can be read of one depends on all of its bytes.
            if end == own.byte_offset and _same_bytes(reader, other, end, damaged):
                return copy
            return _of_sealed(reader, other, batches.report.ok, before) if own.format == "sealed" else "other"
        tail, size = before.carry.tail, end + (reader.pending_bytes or 0)
        goes_on = end == own.byte_offset and tail is not None and size > tail.end
        if end <= own.byte_offset and not goes_on:
            # Of two files that are being written either may have more of a record that is not finished.
            return copy if _same_bytes(reader, other, max(end, min(size, other.nbytes)), damaged) else "other"
        if tail is not None and _same_bytes(reader, other, tail.end):
            return "longer"
        # With all bytes: a file that is damaged where the segment is sound cannot be the one that it goes on in.
        if not _same_bytes(reader, other, own.byte_offset) or (tail is not None and tail.records):
            return "other"
        return "longer" if tail is None else "anew"


def _damaged(batches: seglake.Batches) -> list[tuple[int, int]]:
    """Reads a file to its end; returns its damaged ranges, or none if they are many."""
    found: list[tuple[int, int]] = []
    for batch in batches:
        if len(found) <= MOST_RANGES:
            found.extend((span.start, span.end) for span in batch.damage if span.kind not in ("record", "repaired"))
    return found if len(found) <= MOST_RANGES else []


def _is_repaired(
    reader: seglake.Reader, other: seglake.Reader, before: Ingested, end: int, damaged: Sequence[tuple[int, int]]
) -> bool:
    """Tells whether a file is sound where the one of a segment is damaged, and has all else that was ingested of it."""
    own, until = before.carry, before.carry.position.byte_offset
    if own.damage is None or own.tail is not None or damaged or end < until:
        return False
    hidden = [(each.start, each.end) for each in own.damage.ranges]
    return _same_bytes(reader, other, until, hidden) and not _same_bytes(reader, other, until)


def _same_bytes(one: seglake.Reader, other: seglake.Reader, end: int, but_for: Sequence[tuple[int, int]] = ()) -> bool:
    """Tells whether the bytes up to an offset are the same, but for some ranges."""
    if min(one.nbytes, other.nbytes) < end:
        return False
    at = 0
    for first, after in [*sorted(but_for), (end, end)]:
        for start in range(at, min(first, end), _CHUNK_BYTES):
            stop = min(first, end, start + _CHUNK_BYTES)
            if one.read_bytes(start, stop, restored=True) != other.read_bytes(start, stop, restored=True):
                return False
        at = max(at, after)
    return True


def _by_records(reader: seglake.Reader, other: seglake.Reader, before: Ingested) -> Relation:
    """Compares an active file with a sealed one."""
    expected = before.carry.sums.records
    number, digest = _records(reader, None)
    if number < expected:
        return "copy" if _records(other, number) == (number, digest) else "other"
    if _records(reader, expected) != _records(other, expected):
        return "other"
    # A sealed file takes the place of an active one that has the same.
    is_less = before.carry.position.format == "sealed"
    return "copy" if is_less and number == expected else "longer"


def _of_sealed(reader: seglake.Reader, other: seglake.Reader, is_sound: bool, before: Ingested) -> Relation:
    """Compares two sealed files: one may have been sealed earlier, and either may have no checksums."""
    expected = before.carry.sums.records
    number, digest = _records(reader, None)
    if number <= expected:
        return "copy" if is_sound and _records(other, number) == (number, digest) else "other"
    # Of a damaged segment another file may have what is lost.
    is_longer = before.status == "sound" and _records(reader, expected) == _records(other, expected)
    return "longer" if is_longer else "other"


def _records(reader: seglake.Reader, most: int | None) -> tuple[int, str]:
    """Returns the number of the first records, at most so many, and a hash of them."""
    digests = [hashlib.blake2b(digest_size=16) for _ in range(2 * len(_COLUMNS))]
    number = 0
    for own in reader.batches(warn=False):
        batch: Any = pa.record_batch(cast("Any", own))
        rows = batch.num_rows if most is None else min(batch.num_rows, most - number)
        for column, name in enumerate(_COLUMNS):
            # Lengths and contents apart, so that it does not matter how the rows are in batches.
            values = batch.column(name).slice(0, rows).cast(pa.large_binary())
            whole = pa.concat_arrays([values])
            offsets = memoryview(whole.buffers()[1]).cast("q")[whole.offset : whole.offset + rows + 1]
            lengths = [stop - start for start, stop in itertools.pairwise(offsets)]
            digests[2 * column].update(array.array("q", lengths).tobytes())
            if rows and whole.buffers()[2] is not None:
                digests[2 * column + 1].update(memoryview(whole.buffers()[2])[offsets[0] : offsets[-1]])
        number += rows
        if number == most:
            break
    return number, "".join(each.hexdigest() for each in digests)
