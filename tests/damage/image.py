"""A file under damage, that knows of each of its bytes where in the undamaged file it stood."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple


class Piece(NamedTuple):
    """Bytes in a row. `origin` is where they stood in the undamaged file; None: they are not of that file."""

    data: bytes
    origin: int | None

    def between(self, start: int, end: int) -> Piece:
        """The part `[start, end)` of it, counted from its own beginning."""
        return Piece(self.data[start:end], None if self.origin is None else self.origin + start)


@dataclass(frozen=True)
class Image:
    """The pieces of a file in their order; no piece is empty."""

    pieces: tuple[Piece, ...]

    @staticmethod
    def of(data: bytes) -> Image:
        """The undamaged file."""
        return Image((Piece(data, 0),) if data else ())

    @cached_property
    def data(self) -> bytes:
        """The file as it is now."""
        return b"".join(piece.data for piece in self.pieces)

    def __len__(self) -> int:
        return len(self.data)

    @cached_property
    def _starts(self) -> list[int]:
        starts, at = list[int](), 0
        for piece in self.pieces:
            starts.append(at)
            at += len(piece.data)
        return starts

    def placed(self) -> Sequence[tuple[int, int, int | None]]:
        """Start, end and origin of each piece. Places are offsets in the file as it is now."""
        return self._placed

    @cached_property
    def _placed(self) -> Sequence[tuple[int, int, int | None]]:
        # The judge asks for it once a record, and a scrambled file has thousands of pieces.
        return [
            (start, start + len(piece.data), piece.origin)
            for start, piece in zip(self._starts, self.pieces, strict=True)
        ]

    def between(self, start: int, end: int) -> list[Piece]:
        """The pieces of `[start, end)`."""
        first = max(0, bisect_right(self._starts, start) - 1)
        found: list[Piece] = []
        for at, piece in zip(self._starts[first:], self.pieces[first:], strict=True):
            if at >= end:
                break
            found.append(piece.between(max(0, start - at), end - at))
        return [piece for piece in found if piece.data]

    def replaced(self, start: int, end: int, by: Iterable[Piece]) -> Image:
        """The file with other pieces in the place of `[start, end)`."""
        return Image(_joined([*self.between(0, start), *by, *self.between(end, len(self))]))

    def inserted(self, at: int, data: bytes) -> Image:
        """The file with foreign bytes in it at `at`; what stood there moves on."""
        return self.replaced(at, at, [Piece(data, None)])

    def overwritten(self, at: int, data: bytes) -> Image:
        """The file with foreign bytes over its own; a byte that stays the same stays the file's own.

        What would reach beyond the end of the file is left out.
        """
        here = self.data[at : at + len(data)]
        pieces: list[Piece] = []
        for same, run in groupby(range(len(here)), key=lambda place: here[place] == data[place]):
            places = list(run)
            start, end = places[0], places[-1] + 1
            pieces += self.between(at + start, at + end) if same else [Piece(data[start:end], None)]
        return self.replaced(at, at + len(here), pieces)

    def places_of(self, start: int, end: int) -> list[int]:
        """Where the bytes `[start, end)` of the undamaged file stand now, whole and in a row."""
        return [
            at + start - origin
            for at, at_end, origin in self.placed()
            if origin is not None and origin <= start and end <= origin + at_end - at
        ]

    def left_of(self, start: int, end: int) -> list[tuple[int, int]]:
        """Where what is left of `[start, end)` of the undamaged file stands now."""
        return [
            (at + max(0, start - origin), at + min(end - origin, at_end - at))
            for at, at_end, origin in self.placed()
            if origin is not None and origin < end and start < origin + at_end - at
        ]

    def area_of(self, start: int, end: int) -> list[tuple[int, int]]:
        """Where `[start, end)` of the undamaged file was: what is left of it, and where the rest of it should be.

        The ranges are half-open and may be empty, where bytes are gone without others in their place.
        """
        before, behind = (-1, 0), (1 << 63, len(self))
        for at, at_end, origin in self.placed():
            if origin is None:
                continue
            origin_end = origin + at_end - at
            # The first of each pair decides; comparing it alone spares most of the work where pieces are many.
            if origin < start and before[0] <= origin_end:
                before = max(before, (min(start, origin_end), at + min(start, origin_end) - origin))
            if origin_end > end and origin <= behind[0]:
                behind = min(behind, (max(end, origin), at + max(0, end - origin)))
        gap_start, gap_end = before[1], behind[1]
        gaps = [(gap_start, gap_end)] if gap_start <= gap_end else [(gap_start, gap_start), (gap_end, gap_end)]
        return [*self.left_of(start, end), *gaps]


def _joined(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Neighbours that were neighbours in the undamaged file, and foreign neighbours, as one piece."""
    rows: list[list[Piece]] = []
    end: int | None = -1
    for piece in pieces:
        if not piece.data:
            continue
        if rows and piece.origin == end:
            rows[-1].append(piece)
        else:
            rows.append([piece])
        end = None if piece.origin is None else piece.origin + len(piece.data)
    return tuple(Piece(b"".join(piece.data for piece in row), row[0].origin) for row in rows)
