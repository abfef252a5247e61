"""Four ways to break a segment, each in a known place.

A plan is made from the layout alone, so that what the reader says can be held against what was really done. Which
records are lost follows from the bytes that were changed, and from nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .layout import Segment


@dataclass(frozen=True)
class Overwrite:
    """`data` written over the bytes at offset `at`."""

    at: int
    data: bytes


@dataclass(frozen=True)
class DamagedRange:
    """Bytes `[start, end)` that a reader should name as damage, and with which words."""

    start: int
    end: int
    kind: str
    cause: str


@dataclass(frozen=True)
class Damage:
    """What is done to one segment, and what must come of it.

    `preallocate` is the size in bytes to which the file is laid out before it is written (0: as long as its records),
    and `truncate` the size to which it is cut at the end (None: not cut). `lost` are the numbers of the records,
    counted from 0, that own a changed byte.
    """

    about: str
    lost: tuple[int, ...]
    ranges: tuple[DamagedRange, ...]
    overwrites: tuple[Overwrite, ...] = ()
    preallocate: int = 0
    truncate: int | None = None

    def apply(self, path: Path) -> None:
        """Break the file at `path` in place."""
        with path.open("r+b") as file:
            for overwrite in self.overwrites:
                file.seek(overwrite.at)
                file.write(overwrite.data)
            if self.truncate is not None:
                file.truncate(self.truncate)
            file.flush()
            os.fsync(file.fileno())


def flip_bits(segment: Segment) -> Damage:
    """One bit flipped in the bodies of three records: what an ageing disk or bad memory does."""
    count = segment.messages.num_rows
    records = (count // 4, count // 2, count * 3 // 4)
    overwrites: list[Overwrite] = []
    for bit, record in enumerate(records):
        value = segment.value(record)
        middle = len(value) // 2
        flipped = bytes([value[middle] ^ 1 << bit])
        overwrites.append(Overwrite(segment.value_position(record) + middle, flipped))
    return Damage(
        about="a bit flipped in each of three bodies",
        lost=_owners(segment, overwrites),
        ranges=tuple(DamagedRange(*segment.extent(record), "corrupt", "checksum_mismatch") for record in records),
        overwrites=tuple(overwrites),
    )


def overwrite_length(segment: Segment) -> Damage:
    """A length field that claims four gigabytes: a reader that believes it loses the rest of the file."""
    record = segment.messages.num_rows // 3
    overwrites = [Overwrite(segment.value_length_position(record), b"\xff\xff\xff\xff")]
    return Damage(
        about="a length field overwritten with FF FF FF FF",
        lost=_owners(segment, overwrites),
        ranges=(DamagedRange(*segment.extent(record), "corrupt", "length_out_of_bounds"),),
        overwrites=tuple(overwrites),
    )


def tear_tail(segment: Segment) -> Damage:
    """The file ends in the middle of its last record: the machine stopped while it was written."""
    record = segment.messages.num_rows - 1
    start, _ = segment.extent(record)
    cut = segment.value_position(record) + len(segment.value(record)) // 2
    return Damage(
        about="the tail torn off in mid-record",
        lost=tuple(segment.touched(cut, segment.end)),
        ranges=(DamagedRange(start, cut, "torn_tail", "length_out_of_bounds"),),
        truncate=cut,
    )


def tear_preallocated(segment: Segment) -> Damage:
    """The same in a file that was laid out in advance: the half of the record that never came is zeros."""
    record = segment.messages.num_rows - 1
    start, end = segment.extent(record)
    cut = segment.value_position(record) + len(segment.value(record)) // 2
    overwrites = [Overwrite(cut, bytes(end - cut))]
    return Damage(
        about="preallocated, and torn in mid-record",
        lost=_owners(segment, overwrites),
        ranges=(DamagedRange(start, cut, "torn_tail", "checksum_mismatch"),),
        overwrites=tuple(overwrites),
        preallocate=_round_up(segment.end, 1 << 20) + (1 << 20),
    )


DAMAGES: Mapping[str, Callable[[Segment], Damage]] = {
    "2013-03": flip_bits,
    "2013-06": overwrite_length,
    "2013-09": tear_tail,
    "2013-12": tear_preallocated,
}
"""Which month is broken, and how. The other eight stay sound."""


def plan(segments: list[Segment]) -> dict[str, Damage]:
    """What is done to which month, for the months among `segments` that are broken at all."""
    return {segment.month: DAMAGES[segment.month](segment) for segment in segments if segment.month in DAMAGES}


def intact(segments: list[Segment], damages: Mapping[str, Damage]) -> npt.NDArray[np.bool_]:
    """For each message of all segments, in order: whether none of its bytes was changed."""
    masks: list[npt.NDArray[np.bool_]] = []
    for segment in segments:
        mask = np.ones(segment.messages.num_rows, dtype=np.bool_)
        if segment.month in damages:
            mask[list(damages[segment.month].lost)] = False
        masks.append(mask)
    return np.concatenate(masks)


def _owners(segment: Segment, overwrites: list[Overwrite]) -> tuple[int, ...]:
    lost = {record for change in overwrites for record in segment.touched(change.at, change.at + len(change.data))}
    return tuple(sorted(lost))


def _round_up(size: int, step: int) -> int:
    return -(-size // step) * step
