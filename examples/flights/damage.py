"""What is done to a file, and what must come of it.

Damage is planned from the layout alone, so that what the reader says can be held against what was really done. Which
messages are lost follows from the bytes that were changed, and from nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .layout import Layout


@dataclass(frozen=True)
class Flip:
    """One bit flipped in the byte at offset `at`; bit 0 is the lowest."""

    at: int
    bit: int

    @property
    def changed(self) -> tuple[int, int]:
        """The bytes `[start, end)` that this changes."""
        return self.at, self.at + 1

    def apply(self, file: BinaryIO) -> None:
        """Do it to an open file."""
        file.seek(self.at)
        byte = file.read(1)[0]
        file.seek(self.at)
        file.write(bytes([byte ^ 1 << self.bit]))


@dataclass(frozen=True)
class Overwrite:
    """`data` written over the bytes at offset `at`."""

    at: int
    data: bytes

    @property
    def changed(self) -> tuple[int, int]:
        """The bytes `[start, end)` that this changes."""
        return self.at, self.at + len(self.data)

    def apply(self, file: BinaryIO) -> None:
        """Do it to an open file."""
        file.seek(self.at)
        file.write(self.data)


@dataclass(frozen=True)
class DamagedRange:
    """Bytes `[start, end)` that a reader should name as damage, and with which words."""

    start: int
    end: int
    kind: str
    cause: str


@dataclass(frozen=True)
class Damage:
    """What is done to one file, and what must come of it.

    `lost` are the numbers of the messages, counted from 0, that own a changed byte, or share a block or a chunk with
    one that does. `size` is the length in bytes to which the file is cut, or extended with zeros, after all other
    changes (None: neither).
    """

    about: str
    lost: tuple[int, ...]
    ranges: tuple[DamagedRange, ...]
    changes: tuple[Flip | Overwrite, ...] = ()
    size: int | None = None

    def apply(self, path: Path) -> None:
        """Break the file at `path` in place."""
        with path.open("r+b") as file:
            for change in self.changes:
                change.apply(file)
            if self.size is not None:
                file.truncate(self.size)
            file.flush()
            os.fsync(file.fileno())


def flip_bits(layout: Layout, pieces: Sequence[int], cause: str, about: str) -> Damage:
    """One bit flipped in the middle of each of some pieces: what an ageing disk or bad memory does."""
    flips = tuple(Flip(layout.middle(piece), bit) for bit, piece in enumerate(pieces))
    return Damage(
        about=about,
        lost=layout.touched(flip.changed for flip in flips),
        ranges=tuple(DamagedRange(*layout.extent(piece), "corrupt", cause) for piece in pieces),
        changes=flips,
    )


def tear_tail(layout: Layout, piece: int, about: str) -> Damage:
    """The file ends in the middle of a piece: the machine stopped while it was written."""
    start, _ = layout.extent(piece)
    cut = layout.middle(piece)
    return Damage(
        about=about,
        lost=layout.touched([(cut, layout.size)]),
        ranges=(DamagedRange(start, cut, "torn_tail", "length_out_of_bounds"),),
        size=cut,
    )
