"""Where the messages of a file lie, worked out from its format alone and not by reading it with seglake."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Layout:
    """The pieces of a file: a record, a block or a chunk, whichever is lost as a whole if one of its bytes is damaged.

    Piece `i` is the bytes `[starts[i], ends[i])` of the file, and in it are the messages `[first[i], first[i + 1])` of
    those that the file holds, counted from 0. `size` is that of the whole file in bytes.
    """

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    size: int

    @classmethod
    def of_records(cls, start: int, sizes: npt.NDArray[np.int64], behind: int = 0) -> Self:
        """One message a piece, each directly behind the one before, and `behind` more bytes behind the last."""
        ends = start + np.cumsum(sizes)
        return cls(ends - sizes, ends, np.arange(sizes.size + 1), start + int(sizes.sum()) + behind)

    @property
    def pieces(self) -> int:
        """How many pieces there are."""
        return self.starts.size

    def extent(self, piece: int) -> tuple[int, int]:
        """The bytes `[start, end)` of one piece."""
        return int(self.starts[piece]), int(self.ends[piece])

    def middle(self, piece: int) -> int:
        """The offset of the byte in the middle of a piece."""
        return sum(self.extent(piece)) // 2

    def touched(self, changed: Iterable[tuple[int, int]]) -> tuple[int, ...]:
        """The messages in the pieces that own at least one of the `changed` bytes, given as ranges `[start, end)`."""
        messages: set[int] = set()
        for start, end in changed:
            first = np.searchsorted(self.ends, start, side="right")
            last = np.searchsorted(self.starts, end, side="left")
            messages.update(range(int(self.first[first]), int(self.first[last])))
        return tuple(sorted(messages))
