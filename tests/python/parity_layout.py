"""The bytes of parity sidecars as slow, plain code: heads, blocks, entries and the code over GF(2^8).

Written from the document alone. `parity_reference` has the rules by which sidecars are read. Names of one letter are
those of the document.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from highway_hash import checksum

MAGIC = b"SLKPRTY1"
HEAD_BYTES = 56
ENTRY_BYTES = 8
BLOCK_SIZES = (64, 128, 256, 512, 1024, 2048, 4096)
CHECKED = struct.Struct(">8s8sHBBHHQQQ")


class Set(NamedTuple):
    """What all frames of a sidecar have in common: bytes 8 to 21 of a head."""

    set_id: bytes
    B: int
    k: int
    m: int
    G: int

    @property
    def band_bytes(self) -> int:
        """The bytes of FILE that a band has."""
        return self.B * self.k * self.G


class Shape(NamedTuple):
    """What the set and the length of a frame give."""

    b: int
    n: int
    g: int
    parity: int
    """The number of parity blocks."""
    front_bytes: int
    second: int
    """Where copy 1 stands, counted from where the frame begins."""
    frame_bytes: int


class Head(NamedTuple):
    """A head whose checksum and fields are right."""

    set: Set
    copy: int
    band: int
    length: int
    covered: int

    @property
    def shape(self) -> Shape:
        """The sizes and counts of its frame."""
        return shape(self.set, self.length)

    @property
    def start(self) -> int:
        """Where its band begins in FILE."""
        return self.band * self.set.band_bytes

    def encode(self) -> bytes:
        """The 56 bytes of it."""
        s = self.set
        fields = CHECKED.pack(MAGIC, s.set_id, s.B, s.k, s.m, s.G, self.copy, self.band, self.length, self.covered)
        return fields + checksum(fields)


@lru_cache(maxsize=10_000)
def shape(of: Set, length: int) -> Shape:
    """The sizes and counts of a frame that covers `length` bytes."""
    fitting = (b for b in BLOCK_SIZES if of.m * b >= min(length, of.B) and of.k * b >= length)
    b = min(next(fitting, of.B), of.B)
    n = -(-length // b)
    g = -(-n // of.k)
    front = HEAD_BYTES + ENTRY_BYTES * (n + of.m * g)
    second = front + of.m * g * b
    return Shape(b, n, g, of.m * g, front, second, second + front)


@lru_cache(maxsize=10_000)
def decode_head(data: bytes) -> Head | None:
    """The head that 56 bytes are, by rule 1."""
    if len(data) != HEAD_BYTES or data[:8] != MAGIC or checksum(data[:48]) != data[48:]:
        return None
    _, set_id, B, k, m, G, copy, band, length, covered = CHECKED.unpack(data[:48])
    of = Set(set_id, B, k, m, G)
    right = (
        B in BLOCK_SIZES
        and k >= 1
        and m >= 1
        and k + m <= 256
        and 1 <= G <= 256
        and copy in (0, 1)
        and 1 <= length <= of.band_bytes
        and band * of.band_bytes + length <= covered < 1 << 63
    )
    return Head(of, copy, band, length, covered) if right else None


def entry(head: Head, t: int, block: bytes) -> bytes:
    """Entry t of a frame's table, if that is its block."""
    lanes = (int.from_bytes(head.set.set_id, "big"), head.band, t, 0)
    return checksum(block, struct.pack("<4Q", *lanes))


def xor(left: bytes, right: bytes) -> bytes:
    """The sum of two blocks."""
    return (int.from_bytes(left, "big") ^ int.from_bytes(right, "big")).to_bytes(len(left), "big")


def masked(of: Set, block: bytes) -> bytes:
    """A parity block as it is stored, or one that is stored as the code gives it."""
    return xor(block, of.set_id * (len(block) // 8))


def _times(a: int, b: int) -> int:
    product = 0
    while b:
        if b & 1:
            product ^= a
        a <<= 1
        if a & 0x100:
            a ^= 0x11D
        b >>= 1
    return product


TIMES = [bytes(_times(a, b) for b in range(256)) for a in range(256)]
"""TIMES[a][b] is a·b; TIMES[a] is also what `bytes.translate` multiplies a block by a with."""
INVERSE = [0, *(TIMES[a].index(1) for a in range(1, 256))]


@lru_cache(maxsize=100_000)
def factors(known: tuple[int, ...], x: int) -> tuple[int, ...]:
    """What the values at the known points are multiplied by; the sum is the value at x."""
    found: list[int] = []
    for i in known:
        factor = 1
        for j in known:
            if j != i:
                factor = TIMES[TIMES[factor][x ^ j]][INVERSE[i ^ j]]
        found.append(factor)
    return tuple(found)


def value(points: Mapping[int, bytes | None], x: int, size: int) -> bytes:
    """The block at point x, from the blocks at k points. None is a block of zeros."""
    known = tuple(sorted(points))
    total = 0
    for point, factor in zip(known, factors(known, x), strict=True):
        block = points[point]
        if block is not None:
            total ^= int.from_bytes(block.translate(TIMES[factor]), "big")
    return total.to_bytes(size, "big")


def split(data: bytes, b: int) -> list[bytes]:
    """The data blocks of a band, the last one padded."""
    return [data[at : at + b].ljust(b, b"\0") for at in range(0, len(data), b)]


def encode_frame(head: Head, data: bytes) -> bytes:
    """The frame for the bytes of a band."""
    assert len(data) == head.length, "a frame covers as many bytes as its head says"
    of, (b, n, g, parity, *_) = head.set, head.shape
    blocks = split(data, b)
    assert len(blocks) == n
    stored: list[bytes] = []
    for j in range(parity):
        group = blocks[j % g :: g]
        points = {point: group[point] if point < len(group) else None for point in range(of.k)}
        stored.append(masked(of, value(points, of.k + j // g, b)))
    table = b"".join(entry(head, t, block) for t, block in enumerate(blocks + stored))
    fronts = [head._replace(copy=copy).encode() + table for copy in (0, 1)]
    return fronts[0] + b"".join(stored) + fronts[1]
