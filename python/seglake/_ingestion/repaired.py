"""Files that were damaged when an earlier run read them, and were repaired since.

What a run leaves out as damaged comes in once it is repaired, each record once:

1. `may_be_repaired`: the file was changed since it was read. Its change time tells, which no repair can set.
2. `only_damage_changed`: the bytes of its damaged ranges are others now, and all others are as they were, as far as
   that is known.
3. `known_records`: all records that were ingested are found outside of these ranges, so the others are new. Those that
   were ingested from another file are found in them, as that file had them.
4. The file is then read again from its start, without its known records, and its damage is listed anew.

If a step fails, the segment goes on as before, and its missing records stay out.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa

import seglake
from seglake._formats import grows

from .carry import Carry, Damaged, DamagedRange, Looked
from .known import KnownRecords, ReplacedError

__all__ = [
    "MOST_RANGES",
    "RESTORED",
    "bytes_digest",
    "can_be_read_again",
    "change_time_ns",
    "cut_at_known",
    "damage_after",
    "differs_from_sound",
    "is_listed",
    "known_records",
    "may_be_repaired",
    "only_damage_changed",
    "overlaps",
    "range_digest",
    "rest_digest",
]

MOST_RANGES: Final = 1000
"""The most damaged ranges of a file that are remembered. The column `carry` has about 50 bytes for each."""

RESTORED: Final = ("record", "repaired")
"""The kinds of damage of which a sidecar restores the bytes."""

_OpenAt = Callable[["seglake.Position | None"], seglake.Reader]
_PIECE_BYTES: Final = 8 << 20


def change_time_ns(path: str) -> int | None:
    """Returns when a file was changed, in nanoseconds since 1970; None if that cannot be told.

    It is the time that no program can set: a repair leaves the file its time of modification.
    """
    try:
        return Path(path).stat().st_ctime_ns
    except OSError:
        return None


def range_digest() -> "hashlib.blake2b":
    """Returns the hash by which a later run notices that a damaged range is not as it was."""
    return hashlib.blake2b(digest_size=8)


def rest_digest(reader: seglake.Reader, ranges: Iterable[DamagedRange]) -> str:
    """Returns a hash of all bytes of a file but those in damaged ranges.

    Raises:
        OSError, seglake.SeglakeError: it cannot be read.
    """
    digest, at = range_digest(), 0
    for start, end in [*sorted((each.start, each.end) for each in ranges), (reader.nbytes, reader.nbytes)]:
        _add(digest, reader, at, min(start, reader.nbytes))
        at = max(at, end)
    return f"{reader.nbytes} {digest.hexdigest()}"


def _is_as_it_was(reader: seglake.Reader, damaged: DamagedRange) -> bool:
    return bytes_digest(reader, damaged.start, damaged.end) == damaged.digest


def bytes_digest(reader: seglake.Reader, start: int, end: int, *, restored: bool = False) -> str:
    """Returns the hash of some bytes of a file, as far as it has them; `restored`: as its sidecar restores them.

    Raises:
        OSError, seglake.SeglakeError: they cannot be read.
    """
    digest = range_digest()
    _add(digest, reader, start, min(end, reader.nbytes), restored=restored)
    return digest.hexdigest()


def _add(digest: "hashlib.blake2b", reader: seglake.Reader, start: int, end: int, *, restored: bool = False) -> None:
    for first in range(start, end, _PIECE_BYTES):
        digest.update(reader.read_bytes(first, min(first + _PIECE_BYTES, end), restored=restored))


def damage_after(
    before: Carry | None, found: Sequence[DamagedRange], changed: int | None, reader: seglake.Reader
) -> Damaged | None:
    """Returns the damage of a file after a run has added to it; None if it cannot be told any more.

    It cannot where the bytes of the file have other places than an earlier run noted, as when it was sealed since.

    Args:
        before: what earlier runs have noted.
        found: the damaged ranges that the run has put into `damage`.
        changed: when the file was changed, as `change_time_ns` says.
        reader: the file.

    Raises:
        OSError, seglake.SeglakeError: it cannot be read.
    """
    if before is not None and before.position.format == reader.format:
        before = before.without_tail()  # it was read again, and what is still damaged in it was found again
    earlier = () if before is None or before.damage is None else before.damage.ranges
    is_known = before is None or before.damage is not None or not (before.sums.ranges or before.tail)
    is_elsewhere = before is not None and (
        before.position.format != reader.format
        or (not grows(reader.format) and before.position.byte_offset != reader.nbytes)
    )
    if not is_known or (earlier and is_elsewhere) or len(earlier) + len(found) > MOST_RANGES:
        return None
    ranges = (*earlier, *found)
    if not ranges:
        return None
    if not grows(reader.format):
        # The position in a file that does not grow stands for all of its bytes, damaged ones as well.
        return Damaged(ranges, changed, rest_digest(reader, ranges))
    looked = None if before is None or before.damage is None else before.damage.looked
    return Damaged(ranges, changed, looked=looked)


def may_be_repaired(path: str, before: Carry) -> bool:
    """Tells whether a damaged file was changed since an earlier run read it."""
    damage = before.damage
    return damage is not None and (damage.changed is None or damage.changed != change_time_ns(path))


def is_listed(before: Carry, found: Sequence[tuple[int, int]] | None, reader: seglake.Reader) -> bool:
    """Tells whether the damage of a file up to where it was read is what an earlier run listed, byte for byte.

    Args:
        before: what that run has noted.
        found: the damaged ranges that the file has now; None if only those that were listed are looked at.
        reader: the file.

    Raises:
        OSError, seglake.SeglakeError: it cannot be read.
    """
    end = before.position.byte_offset
    if before.damage is None or (not grows(reader.format) and end != reader.nbytes):
        return False
    if found is not None:
        listed = sorted((each.start, each.end) for each in before.damage.ranges if each.start < end)
        if listed != sorted(each for each in found if each[0] < end):
            return False
    return all(_is_as_it_was(reader, each) for each in before.damage.ranges)


def can_be_read_again(before: Carry, format: str, size: int) -> bool:
    """Tells whether the places of records in a file of some format and size are those that earlier runs have noted."""
    position = before.position
    is_there = position.format == format and before.tail is None
    return is_there and (grows(format) or position.byte_offset == size)


def cut_at_known(damage: Damaged | None, known: KnownRecords, reader: seglake.Reader) -> Damaged | None:
    """Returns damage of which nothing hides records that are known.

    Raises:
        OSError, seglake.SeglakeError: the file cannot be read.
    """
    if damage is None:
        return None
    ranges: list[DamagedRange] = []
    for each in damage.ranges:
        for start, end, is_known in known.cut(each.start, each.end):
            digest = each.digest
            if (start, end) != (each.start, each.end):
                digest = bytes_digest(reader, start, end)
            sound = known.sound.get((start, end)) if is_known else None
            ranges.append(DamagedRange(start, end, each.hides_records and not is_known, digest, sound))
            if len(ranges) > MOST_RANGES:
                return None
    return damage._replace(ranges=tuple(ranges))


def only_damage_changed(before: Carry, open_at: _OpenAt) -> bool:
    """Tells whether damaged ranges of a file are not as they were, and all else is, as far as that is known.

    Args:
        before: what earlier runs have noted.
        open_at: opens the file to read it from its start, or from a position if all is there that was before it.
    """
    damage, position, tail = before.damage, before.position, before.tail
    # Of an oplog that was final what it has after its first damage is compared, and anything else is read once more.
    if damage is None or (tail is not None and tail.records):
        return False
    if not any(each.start < position.byte_offset for each in damage.ranges):
        return False
    try:
        with open_at(position if damage.rest is None else None) as reader:
            if all(_is_as_it_was(reader, each) for each in damage.ranges) or _has_only_grown(reader, before):
                return False
            return damage.rest is None or damage.rest == rest_digest(reader, damage.ranges)
    except (OSError, seglake.SeglakeError):
        return False


def _has_only_grown(reader: seglake.Reader, before: Carry) -> bool:
    """Tells whether a file has only grown since it was read as a whole, as far as the places tell that were damaged.

    Other places are not looked at. So it is read once more when it has twice the size, or was changed and did not grow.
    """
    looked = None if before.damage is None else before.damage.looked
    if looked is None or not before.position.byte_offset < reader.nbytes < 2 * looked.size:
        return False
    return all(bytes_digest(reader, start, end) == digest for start, end, digest in looked.places)


def known_records(before: Carry, open_at: _OpenAt) -> KnownRecords | Looked | None:
    """Reads a file whose damaged ranges were changed, and tells which of its records are in `records`.

    If records that were ingested are damaged now, as when the file is being restored right now, that cannot be told.

    Returns:
        The known records; if these cannot be told, what was seen, by which a later run knows whether to read it again;
        None if it is to read it again in any case.

    Raises:
        ReplacedError: where records were damaged that were ingested from another file it has other ones.
    """
    if before.damage is None:
        return None
    known, end = KnownRecords(before), before.position.byte_offset
    number, places, lost = 0, {(each.start, each.end) for each in before.damage.ranges}, list[tuple[int, int]]()
    try:
        with open_at(None) as again:
            batches = again.batches(warn=False)
            for own in batches:
                batch: Any = pa.record_batch(cast("Any", own))
                number += sum(known.among(batch))
                places |= {(span.start, min(span.end, end)) for span in own.damage if span.start < end}
                lost += ((span.start, span.end) for span in own.damage if span.kind not in RESTORED)
            _check_sound(before.damage, lost, again)
            if again.format == before.position.format and number == before.sums.records:
                return known
            # With a sidecar records can come back although no byte of the file is another.
            if not grows(again.format) or batches.report.parity is not None or len(places) > MOST_RANGES:
                return None
            found = ((start, after, bytes_digest(again, start, after)) for start, after in sorted(places))
            return Looked(again.nbytes, tuple(found))
    except (OSError, seglake.SeglakeError):
        return None


def _check_sound(before: Damaged, lost: Sequence[tuple[int, int]], reader: seglake.Reader) -> None:
    differs = differs_from_sound({(each.start, each.end): each.sound for each in before.ranges}, lost, reader)
    if differs is not None:
        raise ReplacedError(
            f"expected in bytes {differs[0]} to {differs[1]} the records that were ingested from another file while "
            "they were damaged in this one, found other ones"
        )


def differs_from_sound(
    sound: Mapping[tuple[int, int], str | None], lost: Sequence[tuple[int, int]], reader: seglake.Reader
) -> tuple[int, int] | None:
    """Returns a range of a file that has not the bytes that another file had there; None if there is none.

    Args:
        sound: the hashes of those bytes, by the start and the end of their ranges.
        lost: what is damaged in the file, and restored by nothing: no range that has some of it is compared.
        reader: the file.

    Raises:
        OSError, seglake.SeglakeError: it cannot be read.
    """
    for (start, end), expected in sound.items():
        is_sound = expected is not None and not overlaps(start, end, lost)
        if is_sound and bytes_digest(reader, start, end, restored=True) != expected:
            return start, end
    return None


def overlaps(start: int, end: int, ranges: Iterable[tuple[int, int]]) -> bool:
    """Tells whether a range of bytes has some of others."""
    return any(first < end and start < after for first, after in ranges)
