"""The ledger of the formats that are written whole, for the readers that the library is compared with.

Damage is learnt out of file order there, so what a reader finds is laid over the file: what comes first keeps a byte.
"""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple


class Range(NamedTuple):
    """A range of the ledger."""

    start: int
    end: int
    kind: str
    cause: str | None


SEPARATE = ("record", "block")
BYTES_ARE_MISSING = ("truncated_header", "truncated_trailer", "length_out_of_bounds")


class Coverage:
    """Says of each byte of a file what takes it."""

    def __init__(self, size: int) -> None:
        self.takers: list[int | None] = [None] * size
        self.taken: list[tuple[str, str | None]] = []

    def take(self, start: int, end: int, kind: str) -> None:
        """Gives what is still free of a range to something sound."""
        self._take(start, end, kind, None)

    def damage(self, start: int, end: int, cause: str) -> bool:
        """Gives what is still free of a range to damage. Whether anything was free."""
        return self._take(start, end, "corrupt", cause)

    def _take(self, start: int, end: int, kind: str, cause: str | None) -> bool:
        free = [at for at in range(start, min(end, len(self.takers))) if self.takers[at] is None]
        for at in free:
            self.takers[at] = len(self.taken)
        self.taken.append((kind, cause))
        return bool(free)

    def ledger(self) -> list[Range]:
        """The ranges in file order, alike ones joined. Every byte must have been taken."""
        pieces: list[Range] = []
        at = 0
        for taker, run in groupby(self.takers):
            assert taker is not None, f"nothing takes byte {at}"
            end = at + sum(1 for _ in run)
            pieces.append(Range(at, end, *self.taken[taker]))
            at = end
        ledger: list[Range] = []
        for piece in pieces:
            kind = piece.kind
            if piece.cause in BYTES_ARE_MISSING and piece.end == len(self.takers):
                kind = "torn_tail"
            if (
                ledger
                and kind not in SEPARATE
                and ledger[-1].end == piece.start
                and ledger[-1][2:] == (kind, piece.cause)
            ):
                ledger[-1] = ledger[-1]._replace(end=piece.end)
            else:
                ledger.append(piece._replace(kind=kind))
        return ledger
