"""Small protected files, and the damage that is done to them and their sidecars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import NamedTuple

from parity_layout import HEAD_BYTES, Head, Set, encode_frame, masked
from parity_reference import Frame, Refused, choose, extend, find_frames, protect

SPECIMENS = 200
UNIT = 64


class Specimen(NamedTuple):
    """A file and its sidecar, both sound. Its last bytes may not be covered."""

    set: Set
    file: bytes
    covered: int
    is_crafted: bool
    """Whether its parity has heads that are of no frame."""
    sidecars: tuple[bytes, ...]
    """The sidecar after each time that it was extended."""

    @property
    def sidecar(self) -> bytes:
        """The sidecar as it is."""
        return self.sidecars[-1]


@cache
def specimen(number: int) -> Specimen:
    """One of SPECIMENS files. They are few, so that hashes of sound blocks can be remembered."""
    random = Random(f"specimen {number}")
    mirrors = number % 10 == 0
    k = 1 if mirrors else random.randint(1, 5)
    of = Set(random.randbytes(8), random.choice((64, 64, 64, 128)), k, random.randint(1, 3), random.randint(1, 4))
    size = random.randint(1, random.choice((100, 1000, 3000)))
    file = _crafted_file(random, of, size) if mirrors else _file(random, size)
    ends = [random.randint(max(1, size - 150), size) if random.random() < 0.2 else size]
    while random.random() < 0.5 and ends[0] > 1:
        ends.insert(0, random.randint(1, ends[0] - 1))
    sidecars = [protect(file, of, ends[0])]
    for end in ends[1:]:
        sidecars.append(extend(file, sidecars[-1], end))
    return Specimen(of, file, ends[-1], mirrors, tuple(sidecars))


def _file(random: Random, size: int) -> bytes:
    """Random bytes, zeros, a text that repeats, or some of each."""
    pieces = (
        random.randbytes(size),
        bytes(size),
        (b"the same line again, 32 bytes.\r\n" * (size // 32 + 1))[:size],
    )
    if random.random() < 0.6:
        return pieces[0]
    cuts = sorted(random.randrange(size + 1) for _ in range(2))
    chosen = random.choices(pieces, k=3)
    return b"".join(piece[start:end] for piece, start, end in zip(chosen, (0, *cuts), (*cuts, size), strict=True))


def _crafted_file(random: Random, of: Set, size: int) -> bytes:
    """A file whose parity, with k = 1, has heads of its own set, as if its author knew the set id."""
    blocks: list[bytes] = []
    while len(blocks) * UNIT < size:
        head = _crafted_head(random, of, size)
        blocks += [masked(of, (head._replace(copy=copy).encode()).ljust(UNIT, b"\0")) for copy in (0, 1)]
    return b"".join(blocks)[:size]


def _crafted_head(random: Random, of: Set, size: int) -> Head:
    """A head with right fields that is of no frame."""
    band = random.randint(0, size // of.band_bytes + random.randint(0, 2))
    if random.random() < 0.05:
        band = random.randrange(1 << 40)
    length = random.choice((of.band_bytes, random.randint(1, of.band_bytes)))
    covered = band * of.band_bytes + length
    if random.random() < 0.2:
        covered = random.randint(covered, max(covered, 2 * size, (1 << 63) - 1 if random.random() < 0.1 else 0))
    return Head(of, random.randint(0, 1), band, length, covered)


@dataclass
class Pattern:
    """A file and its sidecar, damaged."""

    seed: int
    of: Specimen
    file: bytes
    sidecar: bytes
    force: bool = False
    is_forged: bool = False
    """Whether the sidecar has frames of the set that were made for other bytes."""
    is_crafted: bool = False
    """Whether there are heads of the set that are of no frame."""
    about: list[str] = field(default_factory=list[str])


def pattern(seed: int) -> Pattern:
    """The pattern of a number."""
    random = Random(seed)
    of = specimen(random.randrange(SPECIMENS))
    found = Pattern(seed, of, of.file, of.sidecar, force=random.random() < 0.05, is_crafted=of.is_crafted)
    where = random.choice(("file", "file", "sidecar", "both", "both"))
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5))):
        if where == "file" or (where == "both" and random.random() < 0.5):
            name, damage = random.choice(FILE)
            found.file = damage(found.file, random)
            found.about.append(f"file: {name}")
        elif random.random() < 0.5:
            name, damage = random.choice(BYTES)
            found.sidecar = damage(found.sidecar, random)
            found.about.append(f"sidecar: {name}")
        else:
            name, change = random.choice(FRAMES)
            found.sidecar = change(found, find_frames(found.sidecar), random)
            found.about.append(f"sidecar: {name}")
    return found


# Damage to any bytes


def _span(data: bytes, random: Random, longest: int = 6 * UNIT) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.randint(1, longest))


def _aligned(data: bytes, random: Random) -> int:
    return random.randrange(len(data) // UNIT + 1) * UNIT


def _flip(data: bytes, random: Random) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    changed[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _flips(data: bytes, random: Random) -> bytes:
    for _ in range(random.randint(2, 20)):
        data = _flip(data, random)
    return data


def _burst(data: bytes, random: Random) -> bytes:
    start, end = _span(data, random)
    return data[:start] + random.randbytes(end - start) + data[end:]


def _zeroed(data: bytes, random: Random) -> bytes:
    start = _aligned(data, random)
    end = min(len(data), start + UNIT * random.randint(1, 6))
    return data[:start] + bytes(max(0, end - start)) + data[end:]


def _swapped(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    first, second = _aligned(data, random), _aligned(data, random)
    nbytes = min(UNIT, len(data) - max(first, second))
    changed[first : first + nbytes] = data[second : second + nbytes]
    changed[second : second + nbytes] = data[first : first + nbytes]
    return bytes(changed)


def _misplaced(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    source, target = _aligned(data, random), _aligned(data, random)
    nbytes = min(UNIT * random.randint(1, 4), len(data) - max(source, target))
    changed[target : target + nbytes] = data[source : source + nbytes]
    return bytes(changed)


def _truncated(data: bytes, random: Random) -> bytes:
    if random.random() < 0.05:
        return b""
    return data[: random.randrange(len(data) + 1)] if random.random() < 0.3 else data[: -random.randint(1, 4 * UNIT)]


def _inserted(data: bytes, random: Random) -> bytes:
    at, new = random.randrange(len(data) + 1), random.randint(1, 2 * UNIT)
    return data[:at] + (random.randbytes(new) if random.random() < 0.7 else bytes(new)) + data[at:]


def _deleted(data: bytes, random: Random) -> bytes:
    start, end = _span(data, random, longest=random.choice((1, UNIT, 6 * UNIT)))
    return data[:start] + data[end:]


def _appended(data: bytes, random: Random) -> bytes:
    new = random.randint(1, 12 * UNIT)
    return data + (random.randbytes(new) if random.random() < 0.7 else bytes(new))


def _all_zeros(data: bytes, _: Random) -> bytes:
    return bytes(len(data))


def _another(data: bytes, random: Random) -> bytes:
    return random.randbytes(random.choice((len(data), random.randrange(len(data) + 100))))


Damage = Callable[[bytes, Random], bytes]
BYTES: list[tuple[str, Damage]] = [
    ("flip", _flip),
    ("flips", _flips),
    ("burst", _burst),
    ("zeroed", _zeroed),
    ("swapped", _swapped),
    ("misplaced", _misplaced),
    ("truncated", _truncated),
    ("inserted", _inserted),
    ("deleted", _deleted),
]
FILE: list[tuple[str, Damage]] = [
    *BYTES,
    *BYTES,
    ("appended", _appended),
    ("appended", _appended),
    ("all zeros", _all_zeros),
    ("another file", _another),
]

# Damage to a sidecar that knows where frames are


def _in_a_frame(found: Pattern, frames: list[Frame], random: Random) -> bytes:
    """Damage to a head, an entry or a parity block of one frame, or to two of them alike."""
    if not frames:
        return found.sidecar
    frame = random.choice(frames)
    b, n, _, parity, front, second, _ = frame.shape
    t, j = random.randrange(n + parity), random.randrange(parity)
    heads = [(0, HEAD_BYTES), (second, HEAD_BYTES)]
    entries = [(HEAD_BYTES + 8 * t, 8), (second + HEAD_BYTES + 8 * t, 8)]
    tables = [(HEAD_BYTES, front - HEAD_BYTES), (second + HEAD_BYTES, front - HEAD_BYTES)]
    chosen = random.choice((heads[:1], heads[1:], heads, entries, entries, tables[:1], tables, [(front + j * b, b)]))
    changed = bytearray(found.sidecar)
    zeros = random.random() < 0.3
    for at, nbytes in chosen:
        start = frame.start + at
        end = min(frame.end, len(changed), start + nbytes)
        if start < end:
            changed[start:end] = bytes(end - start) if zeros else random.randbytes(end - start)
    return bytes(changed)


def _frames_moved(found: Pattern, frames: list[Frame], random: Random) -> bytes:
    """Frames dropped, twice there, in another order, or with bytes between them."""
    pieces = [frame.data for frame in frames]
    if not pieces:
        return found.sidecar
    at = random.randrange(len(pieces))
    kind = random.randrange(5)
    if kind == 0:
        del pieces[at]
    elif kind == 1:
        pieces.insert(random.randrange(len(pieces) + 1), pieces[at])
    elif kind == 2:
        random.shuffle(pieces)
    elif kind == 3:
        pieces.insert(at, random.randbytes(random.randint(1, 200)))
    else:
        pieces.insert(at, bytes(random.randint(1, 200)))
    return b"".join(pieces)


def _torn(found: Pattern, frames: list[Frame], random: Random) -> bytes:
    """The last frame as an extension leaves it that was interrupted."""
    if not frames:
        return found.sidecar
    last = frames[-1]
    changed = bytearray(found.sidecar[: last.end])
    for at in (0, last.shape.second)[: random.randint(1, 2)]:
        end = min(len(changed), last.start + at + HEAD_BYTES)
        changed[last.start + at : end] = bytes(max(0, end - last.start - at))
    return bytes(changed[: random.randint(last.start, len(changed))] if random.random() < 0.5 else changed)


def _stale(found: Pattern, _: list[Frame], random: Random) -> bytes:
    """The sidecar as it was before it was extended."""
    return random.choice(found.of.sidecars)


def _extended(found: Pattern, _: list[Frame], random: Random) -> bytes:
    """The sidecar extended as it is, if that is not refused, for FILE as it was written, with more appended."""
    grown = found.of.file + Random(0).randbytes(300)
    try:
        sidecar = extend(grown, found.sidecar, random.randint(found.of.covered, len(grown)))
    except Refused:
        return found.sidecar
    found.of = found.of._replace(file=grown)
    if found.file == found.of.file[: len(found.file)]:
        found.file = grown
    return sidecar


def _foreign(found: Pattern, frames: list[Frame], random: Random) -> bytes:
    """Frames of another sidecar, put between those of this one."""
    at = random.choice([0, *(min(frame.end, len(found.sidecar)) for frame in frames)])
    other = specimen(random.randrange(SPECIMENS)).sidecar
    return found.sidecar[:at] + other + found.sidecar[at:]


def _crafted(found: Pattern, _: list[Frame], random: Random) -> bytes:
    """A head of the set, or a pair of them, that is of no frame, over other bytes or between them."""
    found.is_crafted = True
    head = _crafted_head(random, found.of.set, len(found.of.file))
    changed = bytearray(found.sidecar)
    at = random.randrange(len(changed) + 1)
    over = random.random() < 0.7
    changed[at : at + (HEAD_BYTES if over else 0)] = head.encode()
    other = at + head.shape.second
    if head.copy == 0 and other <= len(changed) and random.random() < 0.6:
        changed[other : other + HEAD_BYTES] = head._replace(copy=1).encode()
    return bytes(changed)


def _forged(found: Pattern, frames: list[Frame], random: Random) -> bytes:
    """A frame of the set for other bytes."""
    head = _crafted_head(random, found.of.set, len(found.of.file))._replace(copy=0)
    if head.length > 4096:
        return found.sidecar
    found.is_forged = found.is_crafted = True
    own = found.of.file[head.start : head.start + head.length]
    frame = encode_frame(head, random.randbytes(head.length) if random.random() < 0.5 else _flip_all(own, head))
    at = random.choice([0, *(min(each.end, len(found.sidecar)) for each in frames)])
    return found.sidecar[:at] + frame + found.sidecar[at:]


def _chain(found: Pattern, _: list[Frame], random: Random) -> bytes:
    """Pairs of heads for one full band after the other, side by side, and a frame for the band after them."""
    found.is_forged = found.is_crafted = True
    of = found.of.set
    head = Head(of, 0, 0, of.band_bytes, of.band_bytes)
    most = head.shape.second // HEAD_BYTES
    data = random.randbytes(random.randint(1, of.band_bytes))
    bands = random.randint(1, most)
    start = bands * of.band_bytes
    real = encode_frame(Head(of, 0, bands, len(data), start + len(data)), data)
    chain = bytearray(max(head.shape.second + bands * HEAD_BYTES, bands * HEAD_BYTES + len(real)))
    for band in range(bands):
        covered = (band + 1) * of.band_bytes
        for copy, at in ((0, band * HEAD_BYTES), (1, head.shape.second + band * HEAD_BYTES)):
            chain[at : at + HEAD_BYTES] = Head(of, copy, band, of.band_bytes, covered).encode()
    chain[bands * HEAD_BYTES : bands * HEAD_BYTES + len(real)] = real
    return bytes(chain) + (found.sidecar if random.random() < 0.3 else b"")


def _flip_all(own: bytes, head: Head) -> bytes:
    """The band's own bytes with one of them changed, as far as there are any."""
    changed = bytearray(own.ljust(head.length, b"\0"))
    changed[head.length // 2] ^= 1
    return bytes(changed)


FRAMES: list[tuple[str, Callable[[Pattern, list[Frame], Random], bytes]]] = [
    *[("in a frame", _in_a_frame)] * 4,
    *[("frames moved", _frames_moved)] * 3,
    *[("torn", _torn)] * 2,
    ("stale", _stale),
    ("extended", _extended),
    ("foreign frames", _foreign),
    *[("crafted heads", _crafted)] * 2,
    ("forged frame", _forged),
    ("chain of heads", _chain),
]

# What is promised


def is_within(found: Pattern) -> bool:
    """Whether the damage is within what is promised to be repaired bit for bit: no group has more than m.

    The sidecar has its frames in their places, each with a head, and no other heads. It may be in more cases.
    """
    own, size = found.of, min(found.of.covered, len(found.of.file))
    original = find_frames(own.sidecar)
    if len(found.sidecar) != len(own.sidecar) or own.covered > size:
        return False
    there = find_frames(found.sidecar)
    if [frame[:3] for frame in map(_place, there)] != [frame[:3] for frame in map(_place, original)]:
        return False
    verified = 0
    for frame in choose(original, len(own.file)):
        now = found.sidecar[frame.start : frame.end]
        of, (b, n, g, parity, front, second, _) = frame.head.set, frame.shape
        entries = [
            any(now[at : at + 8] == frame.data[at : at + 8] for at in (HEAD_BYTES + 8 * t, second + HEAD_BYTES + 8 * t))
            for t in range(n + parity)
        ]
        for group in range(g):
            known, left = of.k - len(range(group, n, g)), 0
            for i in range(group, n, g):
                start = frame.head.start + i * b
                end = min(start + b, frame.head.start + frame.head.length)
                same = found.file[start:end] == own.file[start:end]
                known += same and entries[i]
                verified += same and entries[i]
                left += not (same and entries[i])
                if not same and not entries[i]:
                    return False
            for j in range(group, parity, g):
                at = front + j * b
                known += entries[n + j] and now[at : at + b] == frame.data[at : at + b]
            if left and known < of.k:
                return False
    return verified > 0 or not any(found.file) or found.force


def _place(frame: Frame) -> tuple[int, int, Head]:
    return frame.start, frame.end, frame.head
