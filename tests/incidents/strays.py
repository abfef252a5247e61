"""Random damage: whether what `verify` calls proven is the truth, or makes the file sound at no higher price.

A number names each damage, and does it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import seglake

from ..damage.image import Image
from ..damage.kinds import KINDS, Kind, Surroundings
from .answer import Diagnosis
from .samples import LAST_MONTH, Sample, active, chunked, ledger, oplog, sealed, tenant, tfrecord
from .undone import price, undone


def lengths(image: Image, random: Random, around: Surroundings) -> Image:
    """One to four bytes near the start of a record, block or chunk are others: as often as not those of a length."""
    at = random.choice(around.places) + random.randrange(32)
    size = random.choice((1, 2, 4))
    value = random.choice((0, random.randrange(1 << 8 * size), (1 << 8 * size) - 1))
    return image.overwritten(at, value.to_bytes(size, random.choice(("big", "little"))))


def shuffle(image: Image, random: Random, around: Surroundings) -> Image:
    """Some sectors are in each other's place."""
    size = random.choice((128, *around.sectors))
    starts = random.sample(range(0, max(1, len(image) - size), size), k=min(random.randint(2, 5), len(image) // size))
    pieces = [image.between(start, start + size) for start in starts]
    for start, own in zip(sorted(starts), pieces, strict=True):
        image = image.replaced(start, start + size, own)
    return image


_MADE: dict[str, Kind] = {**KINDS, "lengths": lengths, "shuffle": shuffle}
_ZEROS = frozenset({"zeroed_sector", "zeroed_tail", "only_zeros", "interrupted_write"})
_MOVED = frozenset({"moved_sector", "duplicated_sector"})
_TWICE = frozenset({"repeated_block", "inserted_bytes", "duplicated_records", "concatenated"})
_TRUE: dict[str, frozenset[str]] = {
    "zero": _ZEROS,
    "zero-sectors": _ZEROS,
    "ones": frozenset({"erased_sector"}),
    "scramble": frozenset({"foreign_sector"}),
    "swap-sectors": _MOVED,
    "shuffle": _MOVED,
    "misdirect": _MOVED,
    "truncate": frozenset({"truncated", "interrupted_write", "empty"}),
    "cut-out": frozenset({"missing_bytes"}),
    "insert": frozenset({"inserted_bytes"}),
    "insert-zeros": frozenset({"inserted_bytes"}),
    "duplicate": _TWICE,
    "append": frozenset({"inserted_bytes", "zeroed_tail"}),
    "tear": frozenset({"interrupted_write", "zeroed_tail", "zeroed_sector", "stale_data", "foreign_sector"}),
    "stale-sectors": frozenset({"stale_data", "foreign_sector"}),
}
"""What a kind of damage may be called, beside bits that are flipped. Several at once may be called any of it."""


@dataclass(frozen=True)
class Stray:
    """A random damage of a small file."""

    number: int

    @property
    def random(self) -> Random:
        """The source of all that is random in it."""
        return Random(f"stray {self.number}")

    @property
    def name(self) -> str:
        """The file."""
        return list(_samples())[self.number % len(_samples())]

    @property
    def kind(self) -> str:
        """What is done to it."""
        return list(_MADE)[self.number // len(_samples()) % len(_MADE)]

    def __str__(self) -> str:
        return f"{self.number}: {self.name}, {self.kind}"

    def damaged(self) -> Image:
        """The damaged file."""
        sample, around = _samples()[self.name]
        return _MADE[self.kind](Image.of(sample.data), self.random, around)


def faults(stray: Stray) -> Iterator[str]:
    """What is called proven of a damaged file, and is neither true nor a cheaper explanation."""
    sample, _ = _samples()[stray.name]
    image = stray.damaged()
    for own in seglake.verify(image.data, format=sample.format).to_dict()["diagnoses"]:
        is_proven = own["certainty"] == "proven" and own["reason"] != "consequence"
        if is_proven and not (_is_true(own, stray, sample, image) or _is_cheaper(own, sample, image)):
            yield f"{stray}: {own['reason']}, {own['start']} to {own['end']}: {own['evidence']}"


def _is_true(own: Diagnosis, stray: Stray, sample: Sample, image: Image) -> bool:
    if own["repairs"]:
        return all(_was(sample, image, repair) for repair in own["repairs"])
    known = frozenset[str]().union(*_TRUE.values()) if stray.kind == "several" else _TRUE.get(stray.kind, frozenset())
    return own["reason"] in known and _is_damaged(image, *own["place"])


def _was(sample: Sample, image: Image, repair: dict[str, Any]) -> bool:
    """Whether a byte was the proposed one before the damage, going by what is around it in what it belongs to."""
    origins = [
        origin + repair["byte_offset"] - start
        for start, end, origin in image.placed()
        if origin is not None and start <= repair["end"] and repair["start"] <= end
    ]
    return any(0 <= origin < len(sample) and sample.data[origin] == repair["new"] for origin in origins)


def _is_damaged(image: Image, start: int, end: int) -> bool:
    """Whether bytes of a range are foreign, or not next to the bytes that they were next to."""
    return not any(at <= start and end <= at_end for at, at_end, origin in image.placed() if origin is not None)


def _is_cheaper(own: Diagnosis, sample: Sample, image: Image) -> bool:
    """Whether the file is as it was with a cause undone, or sound for no more changed bytes than there are."""
    mended = undone(image.data, own)
    if mended == sample.data:
        return True
    if price(own) > _price(sample, image):
        return False
    if mended is None:
        # What belongs there is known to `verify` alone.
        return own.get("is_sound", False)
    return seglake.verify(mended, format=sample.format, explain=False).ok


def _price(sample: Sample, image: Image) -> int:
    """How many bytes the damage changed: those that are foreign or in another place, and those that are missing."""
    kept = 0
    end = 0
    for at, at_end, origin in image.placed():
        if origin is not None and origin >= end:
            kept += at_end - at
            end = origin + at_end - at
    return max(len(image), len(sample)) - kept


@cache
def _samples() -> dict[str, tuple[Sample, Surroundings]]:
    made = {
        "active": active(60),
        "active-preallocated": active(40, preallocate=20_000),
        "sealed": sealed(60),
        "sealed-no-trailer": sealed(60, trailer=False),
        "tenant": tenant(60),
        "tenant-version-1": tenant(60, version=1),
        "chunked": chunked(300, chunk_bytes=4096),
        "oplog": oplog(60),
        "tfrecord": tfrecord(60),
    }
    earlier = {"active": active, "sealed": sealed, "tenant": tenant, "chunked": chunked, "oplog": oplog}
    return {
        name: (sample, _around(sample, earlier.get(sample.format, tfrecord)(300, day=LAST_MONTH, seed=4)))
        for name, sample in made.items()
    }


def _around(sample: Sample, earlier: Sample) -> Surroundings:
    places = [start for start, _, _ in ledger(sample)]
    return Surroundings(places=places, earlier=earlier.data, appends=[at for at in places if at > len(sample) // 2])
