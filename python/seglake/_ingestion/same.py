"""Compares a file with the file of a segment that begins with the same record: is it a copy, is it longer, or another?

Bytes are compared, as sidecars restore them, up to where the shorter file ends. Bytes that are damaged in one of both
are not. Of an active and a sealed file, and of sealed files that are not alike, the records are compared.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, cast

import pyarrow as pa

import seglake
from seglake._formats import grows

from .agree import agreement
from .digest import COLUMNS, RecordDigest, record_batches, streams
from .known import KnownRecords, KnownUpTo
from .repaired import MOST_RANGES, RESTORED, bytes_digest, differs_from_sound, overlaps
from .state import Ingested

__all__ = ["UNKNOWN", "Damage", "Related", "Relation", "other_tail", "relation"]

Relation = Literal["copy", "longer", "repaired", "anew", "other"]
"""How a file is related to a segment.

- `copy`: it has no more than the segment.
- `longer`: it has all of the segment, and more.
- `repaired`: it has records that are damaged in the segment's file, maybe since that was read. It may be damaged
  elsewhere.
- `anew`: it has the records of the segment, but other bytes after the last one.
- `other`: it differs, or it cannot be proven that it does not.
"""


class Damage(NamedTuple):
    """What is damaged in a file, and whether its unfinished tail may be.

    Attributes:
        ranges: start, end and kind of each range, at most `MOST_RANGES`, without the tail.
        is_all: whether there are no more.
        tail: of a copy, how many bytes its unfinished tail has; 0 if the segment's file has these bytes there, too.
    """

    ranges: tuple[tuple[int, int, str], ...] = ()
    is_all: bool = True
    tail: int = 0

    @property
    def is_none(self) -> bool:
        """Whether it is certain that nothing is damaged, and not even the tail is."""
        return self == Damage()

    @property
    def lost(self) -> list[tuple[int, int]]:
        """The ranges of which nothing restores the bytes; none if these are not all."""
        return [(start, end) for start, end, kind in self.ranges if kind not in RESTORED] * self.is_all

    @property
    def listed(self) -> list[tuple[int, int]]:
        """The ranges of which nothing is in `records`, or only what a sidecar restores."""
        return [(start, end) for start, end, kind in self.ranges if kind != "record"]


UNKNOWN: Final = Damage(is_all=False)
"""That of a file in which damage was not looked for."""


class Related(NamedTuple):
    """How a file is related to a segment.

    Attributes:
        relation: how it is.
        damage: what is damaged in the file.
        known: if the file goes on as the segment and has other damage, which of its records are in `records`. It is
            read again from its start then, so that its damage is told of.
    """

    relation: Relation
    damage: Damage = Damage()
    known: KnownRecords | None = None


def other_tail(
    open_all: Callable[[str, int | None, str | None], seglake.Reader], path: str, known: str, before: Ingested
) -> int:
    """Returns how many bytes the unfinished tail of a file has, if they differ from what another has there; else 0.

    Args:
        open_all: as for `relation`.
        path: the file.
        known: the other one.
        before: how far the file was ingested.

    Raises:
        OSError: one of them cannot be read.
        seglake.SeglakeError: likewise.
    """
    position, tail = before.carry.position, before.carry.tail
    start = position.byte_offset
    end = start + before.pending_bytes if tail is None else tail.end
    if end <= start:
        return 0
    with open_all(path, before.size, position.format) as reader, open_all(known, None, None) as other:
        is_known = reader.format != other.format or _same_bytes(reader, other, end, [(0, start)])
    return 0 if is_known else end - start


class _Pass(NamedTuple):
    """What a pass over a file has found.

    Attributes:
        damage: what is damaged in it.
        known: how many of its records are in `records`, if the segment is damaged and of the same format; else 0.
        adds: how many other records it then has up to where the segment was read.
        first: where its first record begins; 0 if it has none.
        end: up to where it was read.
        tail_end: up to where its unfinished tail reaches.
    """

    damage: Damage
    known: int
    adds: int
    first: int
    end: int
    tail_end: int


_CHUNK_BYTES: Final = 1 << 20


def relation(
    open_all: Callable[[str, int | None, str | None], seglake.Reader],
    path: str,
    size: int,
    known: str,
    before: Ingested,
) -> Related:
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
    with open_all(path, size, None) as reader, open_all(known, None, before.carry.position.format) as other:
        found = _pass(reader, before)
        how = _relation(reader, other, before, found)
        if how == "other" and reader.format == other.format:
            how, known_records = _but_for_damage(reader, other, before, found)
            if known_records is not None:
                return Related(how, found.damage, known_records)
        if how == "other" and _has_all_that_was_read(reader, before):
            return Related("repaired", found.damage, KnownUpTo(before.carry))
        if how == "other" and "sealed" in (reader.format, other.format):
            return _by_sound_records(reader, other, before, found.damage)
        if how == "copy" and reader.format == other.format:
            differs = not _same_bytes(reader, other, found.tail_end, [(0, found.end)])
            return Related(how, found.damage._replace(tail=(found.tail_end - found.end) * differs))
        return Related(how, found.damage, _known(reader, before, how, found.damage))


def _known(reader: seglake.Reader, before: Ingested, found: Relation, damage: Damage) -> KnownRecords | None:
    """Tells which records of a file are in `records`, if its damage has other places than that of the segment."""
    position = before.carry.position
    is_by_records = reader.format != position.format or not grows(reader.format)
    if found != "longer" or not is_by_records or not damage.ranges or position.uuid is None:
        return None
    last = reader.get(position.uuid)
    is_after = last is not None and damage.ranges[0][0] > last.position
    return None if is_after else KnownUpTo(before.carry)


def _relation(reader: seglake.Reader, other: seglake.Reader, before: Ingested, found: _Pass) -> Relation:
    own = before.carry.position
    if reader.format != own.format:
        return _by_records(reader, other, before)
    damaged, end = found.damage.lost, found.end
    if not grows(own.format):
        # What can be read of one depends on all of its bytes.
        if end == own.byte_offset and _same_bytes(reader, other, end, damaged):
            return "copy"
        return _of_sealed(reader, other, before) if own.format == "sealed" else "other"
    tail = before.carry.tail
    goes_on = end == own.byte_offset and tail is not None and found.tail_end > tail.end
    if end <= own.byte_offset and not goes_on:
        return "copy" if _same_bytes(reader, other, _compared(reader, other, found), damaged) else "other"
    # A tail that was damage alone is read again with what has come: its damage is that of this file.
    if tail is not None and tail.records and _same_bytes(reader, other, tail.end):
        return "longer"
    # With all bytes: of a file that is damaged where the segment is sound, `_but_for_damage` tells.
    if not _same_bytes(reader, other, own.byte_offset) or (tail is not None and tail.records):
        return "other"
    return "longer" if tail is None else "anew"


def _compared(reader: seglake.Reader, other: seglake.Reader, found: _Pass) -> int:
    """Returns up to where the bytes of a file have to be those of a longer one.

    The unfinished tail does not have to: what it begins is compared when it is finished, as the file has changed then.
    """
    if reader.format != "oplog":
        return found.end
    # It has no checksums: all after its first damage is its tail, also records that are finished.
    return max(found.end, min(found.tail_end, other.nbytes))


def _pass(reader: seglake.Reader, before: Ingested) -> _Pass:
    """Reads a file to its end."""
    own = before.carry
    known = KnownRecords(own) if own.damage is not None and reader.format == own.position.format else None
    found: list[tuple[int, int, str]] = []
    number, adds, first = 0, 0, None
    for each in reader.batches(warn=False):
        if each.num_rows:
            rows: Any = pa.record_batch(cast("Any", each))
            first = rows.column("position")[0].as_py() if first is None else first
            own_known, own_new = (0, 0) if known is None else known.count(rows)
            number, adds = number + own_known, adds + own_new
        if len(found) <= MOST_RANGES:
            found.extend((span.start, span.end, span.kind) for span in each.damage)
    damage = Damage(tuple(found[:MOST_RANGES]), len(found) <= MOST_RANGES)
    if reader.position is None:
        raise RuntimeError("a pass that ended has no position")
    end = reader.position.byte_offset
    return _Pass(damage, number, adds, first or 0, end, end + (reader.pending_bytes or 0))


def _but_for_damage(
    reader: seglake.Reader, other: seglake.Reader, before: Ingested, found: _Pass
) -> tuple[Relation, KnownRecords | None]:
    """Compares files of which one or both are damaged, but for what is damaged in either.

    What a file has where the other is damaged is compared with nothing. So the last record of the shorter one has to be
    sound in both: logs that went on in different ways differ there. Of a sealed file the index tells that. Records that
    were ingested and have rotted since are compared by their hash.

    Returns:
        How they are related; if the file goes on as the segment, which of its records are known.
    """
    own, position, damage = before.carry, before.carry.position, found.damage
    is_known = own.tail is None and damage.is_all and (own.damage is not None or not own.sums.ranges)
    if not is_known:
        return "other", None
    earlier = [] if own.damage is None else [(each.start, each.end) for each in own.damage.ranges]
    # The segment's file may have rotted since it was read.
    lost = _pass(other, before).damage.lost
    since = [each for each in lost if each not in earlier]
    hidden = [*damage.lost, *earlier, *since]
    end, until = found.end, position.byte_offset
    last = min(end, until)
    if grows(position.format):
        is_proven = not any(start < last <= stop for start, stop in hidden)
    else:
        is_at_first = not (damage.lost or since) or min(start for start, _ in hidden) >= found.first
        is_proven = end == until and is_at_first
    if end >= until and not damage.lost:
        is_proven = is_proven and found.known == own.sums.records
    if not hidden or not is_proven or not _same_bytes(reader, other, last, hidden):
        return "other", None
    known = KnownRecords(own)
    if differs_from_sound({each: known.sound[each] for each in known.sound if each[0] < end}, damage.lost, reader):
        return "other", None
    if end > until or (end == until and (found.adds or not damage.lost)):
        is_proven = _is_what_rotted(reader, other, before, lost) and _note_sound(known, reader, other, damage, lost)
        return ("repaired", known) if is_proven else ("other", None)
    is_copy = not found.adds and _same_bytes(reader, other, _compared(reader, other, found), hidden)
    return ("copy" if is_copy else "other"), None


def _is_what_rotted(
    reader: seglake.Reader, other: seglake.Reader, before: Ingested, lost: Sequence[tuple[int, int]]
) -> bool:
    """Tells whether a file has the records that were ingested and are damaged in the segment's file now.

    The hash of all that were ingested tells. Nothing has to be proven where both files have the same bytes.
    """
    known = KnownRecords(before.carry)
    pieces = [(start, end) for each in lost for start, end, is_known in known.cut(*each) if is_known]
    if all(each in known.sound or _has_same_bytes(reader, other, *each) for each in pieces):
        return True
    found = RecordDigest()
    for rows in record_batches(reader):
        found = found.plus(rows.filter(pa.array(known.among(rows))))
    return found == before.carry.digest and found.number == before.carry.sums.records


def _note_sound(
    known: KnownRecords,
    reader: seglake.Reader,
    other: seglake.Reader,
    damage: Damage,
    lost: Sequence[tuple[int, int]],
) -> bool:
    """Notes what is damaged in a file and sound in the segment's, as those records are not compared until a repair.

    Args:
        known: which records are known by the bytes at which they begin in the segment's file. It takes the notes.
        reader: the file.
        other: the segment's file.
        damage: what is damaged in the file.
        lost: what is damaged in the segment's file.

    Returns:
        Whether all was noted that has to be: what is damaged in both has to be the same, or was noted before.
    """
    earlier = dict(known.sound)
    for each in damage.lost:
        for start, end, is_known in known.cut(*each):
            if not is_known or (start, end) in earlier:
                continue
            if not overlaps(start, end, lost):
                known.sound[start, end] = bytes_digest(other, start, end, restored=True)
            elif overlaps(start, end, earlier) or not _has_same_bytes(reader, other, start, end):
                return False
    return True


def _has_all_that_was_read(reader: seglake.Reader, before: Ingested) -> bool:
    """Tells by their hash whether a file begins with the records that were read, whatever their file has by now."""
    own, found = before.carry, RecordDigest()
    number = own.sums.records
    if own.tail is not None or own.position.uuid is None or own.digest is None or own.digest.number != number:
        return False
    for rows in record_batches(reader):
        if not set(COLUMNS) <= set(rows.schema.names):
            return False
        found = found.plus(rows.slice(0, number - found.number))
        if found.number == number:
            break
    return found == own.digest


def _by_sound_records(reader: seglake.Reader, other: seglake.Reader, before: Ingested, damage: Damage) -> Related:
    """Compares the records of files of which one or both are damaged, and one is sealed.

    A file that is damaged where the segment is sound can be a copy, which is compared again when it is repaired. It
    cannot go on as the segment: what comes back in it then would be taken for what is in `records`.
    """
    others, formats = _pass(other, before).damage, {reader.format, other.format}
    is_certain = damage.is_all and others.is_all and formats <= {"active", "sealed"}
    if not is_certain or not _has_all_that_was_read(other, before):
        return Related("other", damage)
    own = before.carry
    lost = [each for each in others.lost if each[0] < own.position.byte_offset]
    found = agreement(reader, damage.lost, other, lost, own.sums.records, most=MOST_RANGES)
    if found is None:
        return Related("other", damage)
    if not found.adds and (not found.is_longer or (found.lacks and not found.goes_on)):
        return Related("copy", damage)
    if not found.is_longer or found.lacks:
        return Related("other", damage)
    return Related("repaired", damage, KnownUpTo(own, found.adds))


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


def _has_same_bytes(one: seglake.Reader, other: seglake.Reader, start: int, end: int) -> bool:
    return bytes_digest(one, start, end, restored=True) == bytes_digest(other, start, end, restored=True)


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
    if is_less and before.status != "sound" and _records(other, None)[0] != expected:
        return "other"  # some that were damaged are not in the tables, so their number does not tell which are
    return "copy" if is_less and number == expected else "longer"


def _of_sealed(reader: seglake.Reader, other: seglake.Reader, before: Ingested) -> Relation:
    """Compares two sealed files: one may have been sealed earlier, and either may have no checksums."""
    expected = before.carry.sums.records
    number, digest = _records(reader, None)
    if number <= expected:
        return "copy" if _records(other, number) == (number, digest) else "other"
    # Of a damaged segment another file may have what is lost.
    is_longer = before.status == "sound" and _records(reader, expected) == _records(other, expected)
    return "longer" if is_longer else "other"


def _records(reader: seglake.Reader, most: int | None) -> tuple[int, str]:
    """Returns the number of the first records, at most so many, and a hash of them."""
    digests = [hashlib.blake2b(digest_size=16) for _ in range(2 * len(COLUMNS))]
    number = 0
    for batch in record_batches(reader):
        rows = batch.num_rows if most is None else min(batch.num_rows, most - number)
        for digest, data in zip(digests, streams(batch, rows), strict=True):
            digest.update(data)
        number += rows
        if number == most:
            break
    return number, "".join(each.hexdigest() for each in digests)
