"""A file as a picture: cells in rows, each row in two lanes: what the ledger says, and what the bytes look like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from ..render import count, size
from .content import CLASSES, Alike, Cells
from .markup import Html, element
from .parts import scrolled
from .states import MISSING, STATES, Run, worst

__all__ = ["Map", "boundary", "figure", "patterns"]

_COLUMNS: Final = 256
_CELL: Final = 4
_GUTTER: Final = 74
_LEDGER: Final = 12
_CONTENT: Final = 6
_ROW: Final = 26
_TOP: Final = 16
_RULERS: Final = (512, 4096, 65536, 1 << 20, 16 << 20, 256 << 20)
_BOUNDARIES: Final = (65536, 4096, 512)
_LEAST_RULED: Final = 8
_MOST_MISSING: Final = 1024


class Map(NamedTuple):
    """What is drawn: cells of a file from an offset on.

    Attributes:
        start: the offset of the first cell.
        cells: what their bytes look like.
        runs: the states of the file's bytes.
        missing: how many bytes are missing beyond the end of the file.
        targets: the damaged ranges, and what they are.
        links: what arrows are drawn for: from `other` to `at`.
    """

    start: int
    cells: Cells
    runs: Sequence[Run]
    missing: int = 0
    targets: Sequence[tuple[int, int, str]] = ()
    links: Sequence[Alike] = ()

    @property
    def end(self) -> int:
        """The offset where what is there of the file ends."""
        return max((run.end for run in self.runs if run.letter != MISSING.letter), default=0)

    @property
    def letters(self) -> str:
        """The state of each cell."""
        own = self.cells.cell_bytes
        at = (self.start + own * number for number in range(len(self.cells.classes)))
        there = "".join(worst(self.runs, start, min(start + own, self.end)) for start in at)
        return there + MISSING.letter * min(-(-self.missing // own), _MOST_MISSING)


def figure(own: Map, name: str, label: str) -> Html:
    """The picture with its legend.

    Args:
        own: what is drawn.
        name: an identifier that no other picture of the page has.
        label: what it is a picture of.
    """
    letters = own.letters
    return element("figure", scrolled(label, _draw(own, letters, name, label)), _legend(own, letters))


def _size(nbytes: int) -> str:
    return size(nbytes).replace(".0", "")


def boundary(offset: int) -> str | None:
    """What an offset is a multiple of, in words: `64 KiB * 7`; None where that is no sector."""
    of = next((own for own in _BOUNDARIES if offset and offset % own == 0), None)
    return None if of is None else f"{_size(of)} * {offset // of:,}"


def _draw(own: Map, letters: str, name: str, label: str) -> Html:
    """The picture, and in words what it shows."""
    cell_bytes = own.cells.cell_bytes
    rows = max(-(-len(letters) // _COLUMNS), 1)
    wide, high = _GUTTER + _COLUMNS * _CELL + 2, _TOP + rows * _ROW
    parts = [
        element("title", label),
        element("desc", _in_words(own, letters)),
        *_rulers(own, len(letters)),
        *_lane(letters, {letter: state.style for letter, state in STATES.items()}, 0, _LEDGER),
        *_lane(own.cells.classes, {letter: f"class-{letter}" for letter in CLASSES}, _LEDGER + 1, _CONTENT),
        *(_text(own.start + row * _COLUMNS * cell_bytes, row) for row in range(rows)),
        *_targets(own),
        *_links(own, name),
        element("path", class_="chosen", d=""),
    ]
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {wide} {high}",
        width=wide,
        height=high,
        role="img",
        aria_label=label,
        class_="map",
        **{"data-start": own.start, "data-cell": cell_bytes, "data-end": own.end},
    )


def _place(cell: int) -> tuple[int, int]:
    return _GUTTER + cell % _COLUMNS * _CELL, _TOP + cell // _COLUMNS * _ROW


def _lane(letters: str, styles: dict[str, str], top: int, high: int) -> Iterable[Html]:
    """One path for each sort of cell."""
    drawn: dict[str, list[str]] = {}
    for row in range(0, len(letters), _COLUMNS):
        at = row
        for letter, group in groupby(letters[row : row + _COLUMNS]):
            number = len(list(group))
            x, y = _place(at)
            drawn.setdefault(letter, []).append(f"M{x} {y + top}h{number * _CELL}v{high}h{-number * _CELL}z")
            at += number
    for letter, paths in drawn.items():
        yield element("path", class_=styles[letter], d="".join(paths))


def _rulers(own: Map, cells: int) -> Iterable[Html]:
    """Thin lines at multiples of a sector or page, thick ones at those of the next larger size."""
    cell = own.cells.cell_bytes
    ruled = [step for step in _RULERS if _LEAST_RULED * cell <= step <= _COLUMNS * cell]
    for step, style in zip(ruled[:2], ("thin", "thick"), strict=False):
        places = (_place(at) for at in range(-own.start % step // cell, cells, step // cell))
        lines = "".join(f"M{x} {y - 3}v{_LEDGER + _CONTENT + 4}" for x, y in places)
        yield element("path", class_=f"ruler {style}", d=lines)
    said = [f"{mark} line: {_size(step)}" for step, mark in zip(ruled, ("thin", "thick"), strict=False)]
    yield element("text", "; ".join([f"cell: {_size(cell)}", *said]), x=_GUTTER, y=9, class_="scale")


def _text(offset: int, row: int) -> Html:
    return element("text", f"{offset:,}", x=_GUTTER - 6, y=_TOP + row * _ROW + 11, class_="offset")


def _targets(own: Map) -> Iterable[Html]:
    """A frame around the cells of each damage, with a mark where an edge is on a boundary."""
    cell = own.cells.cell_bytes
    last = own.start + len(own.cells.classes) * cell
    for start, end, said in own.targets:
        if start >= last or end <= own.start:
            continue
        first, stop = max(start - own.start, 0) // cell, -(-(min(end, last) - own.start) // cell)
        frames: list[str] = []
        at = first
        while at < stop:
            number = min(_COLUMNS - at % _COLUMNS, stop - at)
            x, y = _place(at)
            frames.append(f"M{x - 1} {y - 1}h{number * _CELL + 2}v{_LEDGER + _CONTENT + 3}h{-number * _CELL - 2}z")
            at += number
        marks = [element("path", class_="frame", d="".join(frames))]
        for edge in (start, end):
            if boundary(edge) and own.start <= edge < last:
                x, y = _place((edge - own.start) // cell)
                marks.append(element("path", class_="edge", d=f"M{x} {y - 1}l-3 -5h6z"))
        yield element("g", element("title", said), *marks)


def _links(own: Map, name: str) -> Iterable[Html]:
    """An arrow for each link, from its other end."""
    shown = [link for link in own.links if own.start <= min(link.at, link.other) and max(link.at, link.other) < own.end]
    if not shown:
        return
    tip = element("path", d="M0 0L6 3L0 6z", class_="tip")
    yield element(
        "marker", tip, id=f"{name}-tip", viewBox="0 0 6 6", refX=5, refY=3, markerWidth=6, markerHeight=6, orient="auto"
    )
    for link in shown:
        (x1, y1), (x2, y2) = (_place((at - own.start) // own.cells.cell_bytes) for at in (link.other, link.at))
        bend = max(min(y1, y2) - 12, 2)
        yield element(
            "path", class_="link", d=f"M{x1} {y1}Q{(x1 + x2) // 2} {bend} {x2} {y2}", marker_end=f"url(#{name}-tip)"
        )


def _in_words(own: Map, letters: str) -> str:
    """What a picture shows, for who does not see it."""
    cell = own.cells.cell_bytes
    # Of what is missing not all is drawn.
    missing = -(-own.missing // cell)
    counted = [
        f"{count(missing if state is MISSING else letters.count(each), 'cell')} {state.name}"
        for each, state in STATES.items()
        if each in letters
    ]
    looks = [f"{own.cells.classes.count(each):,} {word}" for each, word in CLASSES.items() if each in own.cells.classes]
    places = [said for *_, said in own.targets[:10]]
    return (
        f"Bytes {own.start:,} to {own.end:,} in cells of {count(cell, 'byte')}. By the ledger: {', '.join(counted)}. "
        f"By their content: {', '.join(looks)}." + (f" Damage: {'; '.join(places)}." if places else "")
    )


def _legend(own: Map, letters: str) -> Html:
    """What the patterns of a picture mean: those that are in it."""
    states = [_key(each.style, f"{each.letter} {each.name}") for each in STATES.values() if each.letter in letters]
    looks = [_key(f"class-{letter}", word) for letter, word in CLASSES.items() if letter in own.cells.classes]
    arrows = element("dd", "→ to the same bytes, or from the entry that leads there") if own.links else None
    parts = (element("dt", "ledger"), *states, element("dt", "content"), *looks, arrows)
    return element("dl", *parts, class_="legend", aria_label="Legend")


def _key(style: str, name: str) -> Html:
    swatch = element("path", class_=style, d="M0 0h18v12h-18z")
    return element("dd", element("svg", swatch, width=18, height=12, aria_hidden="true"), " ", name)


def patterns() -> Html:
    """The patterns that states are drawn with: once on a page."""
    lines = {
        "corrupt": "M0 0L6 6M6 0L0 6",
        "torn": "M0 3q1.5 -3 3 0t3 0",
        "unreached": "M0 3h6",
        "back": "M0 1.5h6M0 4.5h6",
        "restorable": "M3 0v6",
        "missing": "M0 6L6 0",
        "unlisted": "M0 1h2M3 4h2",
        "kept": "M1 0v6M4 0v6",
        "unused": "M2 3h1",
    }
    own = [
        element(
            "pattern",
            element("rect", width=6, height=6, class_=f"ground-{name}"),
            element("path", d=path, class_=f"line-{name}"),
            id=f"pattern-{name}",
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
        )
        for name, path in lines.items()
    ]
    return element("svg", element("defs", *own), width=0, height=0, class_="defs", aria_hidden="true")
