"""What the bytes of a file look like, whatever its format: zeros, 0xff, text, random; and which sectors are alike."""

from __future__ import annotations

import string
import zlib
from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

__all__ = ["CLASSES", "SECTOR_BYTES", "Alike", "Cells", "alike", "cells_of", "look", "sectors_of"]

ReadAt = Callable[[int, int], bytes]

SECTOR_BYTES: Final = 512
_MOST_CELLS: Final = 4096
_CELL_BYTES: Final = (16, 64, 512)
"""Of small files; of others a cell is a number of whole pages."""
_READ_BYTES: Final = 1 << 18
_SAMPLE_BYTES: Final = 4096
_TEXT: Final = string.printable.encode()
_MOST_SECTORS: Final = 128
_MOST_PLACES: Final = 3

CLASSES: Final = {"0": "zeros", "f": "0xff", "t": "text", "r": "random", "o": "other"}
"""Compressed and encrypted bytes look random."""


class Alike(NamedTuple):
    """Bytes that are in a file twice: `nbytes` at `at` are also at `other`."""

    at: int
    other: int
    nbytes: int


class Cells(NamedTuple):
    """A file in cells of equal size: the class of each cell as one letter."""

    cell_bytes: int
    classes: str


def cells_of(nbytes: int) -> int:
    """How many bytes a cell of a file has, so that there are at most 4,096 of them."""
    for cell_bytes in _CELL_BYTES:
        if nbytes <= cell_bytes * _MOST_CELLS:
            return cell_bytes
    cell_bytes = 4096
    while nbytes > cell_bytes * _MOST_CELLS:
        cell_bytes *= 2
    return cell_bytes


def sectors_of(read_at: ReadAt, start: int, end: int) -> list[tuple[bytes, int]]:
    """The first sectors that a range touches, with their offsets, without those of one byte only."""
    first = start // SECTOR_BYTES * SECTOR_BYTES
    last = min(end, first + _MOST_SECTORS * SECTOR_BYTES)
    sectors = ((read_at(at, SECTOR_BYTES), at) for at in range(first, last, SECTOR_BYTES))
    return [(sector, at) for sector, at in sectors if len(sector) == SECTOR_BYTES and len(set(sector)) > 1]


def look(
    read_at: ReadAt, start: int, end: int, cell_bytes: int, sectors: Collection[bytes] = ()
) -> tuple[Cells, dict[bytes, list[int]]]:
    """Read a range once: the class of each cell, and where the sectors are in it, the first few places of each.

    Args:
        read_at: reads bytes by offset and number.
        start: where the range begins, at a multiple of `cell_bytes`.
        end: where it ends.
        cell_bytes: the size of a cell.
        sectors: what to look for at multiples of 512.
    """
    classes: list[str] = []
    places: dict[bytes, list[int]] = {}
    block_bytes = max(_READ_BYTES // cell_bytes * cell_bytes, SECTOR_BYTES)
    kinds: set[str] = set()
    for at in range(start, end, block_bytes):
        block = read_at(at, min(block_bytes, end - at))
        if not block:
            break  # a segment that is shorter than its log says
        if cell_bytes <= block_bytes:
            classes += (_class_of(block[own : own + cell_bytes]) for own in range(0, len(block), cell_bytes))
        else:
            kinds.add(_class_of(block))
            if (at + block_bytes - start) % cell_bytes == 0 or at + block_bytes >= end:
                classes.append(kinds.pop() if len(kinds) == 1 else "o")
                kinds = set()
        if sectors:
            for own in range(-at % SECTOR_BYTES, len(block) - SECTOR_BYTES + 1, SECTOR_BYTES):
                sector = block[own : own + SECTOR_BYTES]
                if sector in sectors and len(found := places.setdefault(sector, [])) < _MOST_PLACES:
                    found.append(at + own)
    return Cells(cell_bytes, "".join(classes)), places


def alike(sectors: Iterable[tuple[bytes, int]], places: dict[bytes, list[int]]) -> list[Alike]:
    """Which sectors are elsewhere too, those one after the other as one, the longest first."""
    found: list[Alike] = []
    for sector, at in sectors:
        for other in places.get(sector, ()):
            if other == at:
                continue
            last = next((own for own in found if own[0] + own[2] == at and own[1] + own[2] == other), None)
            if last is None:
                found.append(Alike(at, other, SECTOR_BYTES))
            else:
                found[found.index(last)] = last._replace(nbytes=last.nbytes + SECTOR_BYTES)
    return sorted(found, key=lambda own: (-own.nbytes, own.at, own.other))


def _class_of(block: bytes) -> str:
    if block.count(0) == len(block):
        return "0"
    if block.count(0xFF) == len(block):
        return "f"
    sample = block[:_SAMPLE_BYTES]
    strange = len(sample.translate(None, _TEXT))
    if strange * 8 < len(sample) or _is_utf8(sample):
        return "t"
    if len(sample) < SECTOR_BYTES:
        return "r" if len(sample) >= 32 and len(set(sample)) * 8 > len(sample) * 7 else "o"
    return "r" if len(zlib.compress(sample, 1)) * 100 > len(sample) * 96 else "o"


def _is_utf8(sample: bytes) -> bool:
    """Whether it is text in UTF-8, which may be cut at both ends; control characters are rare in text."""
    kept = sample.decode("utf-8", "ignore").encode()
    return len(kept) * 16 > len(sample) * 15 and sum(own < 0x20 for own in sample) * 8 < len(sample)
