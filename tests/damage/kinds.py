"""What disks, memory, networks, file systems and people do to files: one function for each kind of damage.

Each takes a file, a source of randomness, and what it must know of the file. The same seed does the same damage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from .image import Image


@dataclass(frozen=True)
class Surroundings:
    """What damage depends on beside the file itself.

    Half of all damage begins at one of `places`, or close to it. `sectors` are the sizes in bytes of what is zeroed,
    swapped, torn or stale as one. `earlier` is a file that lay on the same sectors before. `appends` are the places at
    which an append may have begun. `longest` bounds runs, in bytes.
    """

    places: Sequence[int] = ()
    sectors: Sequence[int] = (512, 4096)
    earlier: bytes = b""
    appends: Sequence[int] = (0,)
    longest: int = 4096


Kind = Callable[[Image, Random, Surroundings], Image]


def _place(image: Image, random: Random, around: Surroundings) -> int:
    """A place within the file, its end included."""
    if around.places and random.randrange(2):
        return min(len(image), random.choice(around.places) + random.choice((0, 0, 0, 1, 2, 3, 15)))
    return random.randint(0, len(image))


def _length(random: Random, most: int) -> int:
    """A length from 1 on, short ones as likely as long ones."""
    return min(most, random.randrange(1, 2 << random.randrange(max(1, most.bit_length()))))


def _run(image: Image, random: Random, around: Surroundings) -> tuple[int, int]:
    """A range of bytes; empty only at the end of the file."""
    start = _place(image, random, around)
    return start, min(len(image), start + _length(random, around.longest))


def _sectors(image: Image, size: int) -> list[int]:
    """Where the sectors of a file begin."""
    return list(range(0, len(image), size))


def flip(image: Image, random: Random, around: Surroundings) -> Image:
    """One bit is flipped."""
    at = min(_place(image, random, around), len(image) - 1)
    return image.overwritten(at, bytes([image.data[at] ^ 1 << random.randrange(8)])) if len(image) else image


def flips(image: Image, random: Random, around: Surroundings) -> Image:
    """Several bits are flipped, anywhere."""
    for _ in range(random.randint(2, 8)):
        image = flip(image, random, around)
    return image


def scramble(image: Image, random: Random, around: Surroundings) -> Image:
    """A run of bytes is overwritten by random ones."""
    start, end = _run(image, random, around)
    return image.overwritten(start, random.randbytes(end - start))


def zero(image: Image, random: Random, around: Surroundings) -> Image:
    """A run of bytes becomes 0x00."""
    start, end = _run(image, random, around)
    return image.overwritten(start, bytes(end - start))


def ones(image: Image, random: Random, around: Surroundings) -> Image:
    """A run of bytes becomes 0xff."""
    start, end = _run(image, random, around)
    return image.overwritten(start, b"\xff" * (end - start))


def zero_sectors(image: Image, random: Random, around: Surroundings) -> Image:
    """One to three sectors in a row become 0x00."""
    size = random.choice(around.sectors)
    start = random.choice(_sectors(image, size) or [0])
    return image.overwritten(start, bytes(size * random.randint(1, 3)))


def swap_sectors(image: Image, random: Random, around: Surroundings) -> Image:
    """Two sectors are in each other's place."""
    size = random.choice(around.sectors)
    starts = _sectors(image, size)
    one, other = sorted(random.choices(starts or [0], k=2))
    if one == other:
        return image
    first, second = image.between(one, one + size), image.between(other, other + size)
    return image.replaced(other, other + size, first).replaced(one, one + size, second)


def truncate(image: Image, random: Random, around: Surroundings) -> Image:
    """The file ends early."""
    return image.replaced(_place(image, random, around), len(image), [])


def cut_out(image: Image, random: Random, around: Surroundings) -> Image:
    """A run of bytes is missing; what stood behind it has moved up."""
    start, end = _run(image, random, around)
    return image.replaced(start, end, [])


def insert(image: Image, random: Random, around: Surroundings) -> Image:
    """Random bytes stand between the file's own."""
    return image.inserted(_place(image, random, around), random.randbytes(_length(random, around.longest)))


def insert_zeros(image: Image, random: Random, around: Surroundings) -> Image:
    """Zeros stand between the file's own bytes."""
    return image.inserted(_place(image, random, around), bytes(_length(random, around.longest)))


def duplicate(image: Image, random: Random, around: Surroundings) -> Image:
    """A run of bytes stands twice, the second time directly behind the first: a retried write."""
    start, end = _run(image, random, around)
    return image.replaced(end, end, image.between(start, end))


def misdirect(image: Image, random: Random, around: Surroundings) -> Image:
    """A run of bytes has been written a second time, over others."""
    start, end = _run(image, random, around)
    target = _place(image, random, around)
    pieces = image.between(start, min(end, start + len(image) - target))
    return image.replaced(target, target + sum(len(piece.data) for piece in pieces), pieces)


def append(image: Image, random: Random, around: Surroundings) -> Image:
    """Random bytes, or zeros, stand behind the file's end."""
    size = _length(random, around.longest)
    return image.inserted(len(image), random.choice((bytes(size), random.randbytes(size))))


def tear(image: Image, random: Random, around: Surroundings) -> Image:
    """Of an append some sectors were written; the others hold what was there before.

    That is zeros, where the space was allocated in advance, or an earlier file's bytes, where it was recycled. Now and
    then the file's length is not written either, and it ends behind a sector that was.
    """
    size = random.choice(around.sectors)
    begin = random.choice([at for at in around.appends if at < len(image)] or [0])
    before = around.earlier if random.randrange(2) else b""
    odds = random.choice((0.25, 0.5, 0.9))
    for start in _sectors(image, size):
        if start + size > begin and random.random() < odds:
            lost = max(start, begin), min(start + size, len(image))
            image = image.overwritten(lost[0], before[lost[0] : lost[1]].ljust(lost[1] - lost[0], b"\0"))
    if random.randrange(4) == 0:
        image = truncate(image, random, replace(around, places=[at for at in _sectors(image, size) if at >= begin]))
    return image


def stale_sectors(image: Image, random: Random, around: Surroundings) -> Image:
    """One to three sectors in a row hold what an earlier file had there: writes that never arrived."""
    size = random.choice(around.sectors)
    start = random.choice(_sectors(image, size) or [0])
    return image.overwritten(start, around.earlier[start : start + size * random.randint(1, 3)])


def several(image: Image, random: Random, around: Surroundings) -> Image:
    """Two to four of the other kinds, one after the other."""
    for kind in random.choices(SINGLE, k=random.randint(2, 4)):
        image = kind(image, random, around)
    return image


SINGLE: tuple[Kind, ...] = (
    flip,
    flips,
    scramble,
    zero,
    ones,
    zero_sectors,
    swap_sectors,
    truncate,
    cut_out,
    insert,
    insert_zeros,
    duplicate,
    misdirect,
    append,
    tear,
    stale_sectors,
)
KINDS: dict[str, Kind] = {kind.__name__.replace("_", "-"): kind for kind in (*SINGLE, several)}
