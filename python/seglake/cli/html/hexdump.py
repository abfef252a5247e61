"""Bytes of a file in rows of 16, each with the letter of its state, and what is damaged marked in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from .markup import Html, element, join
from .states import STATES, Run, worst

__all__ = ["dump"]

_ROW_BYTES: Final = 16
_MOST_ROWS: Final = 16


def dump(windows: Sequence[tuple[int, bytes]], runs: Sequence[Run], edges: Sequence[int]) -> Html:
    """The rows around the edges of a damage: what a page shows without its script."""
    shown: list[Html] = []
    last = None
    for at, block in windows:
        for offset in range(at, at + len(block), _ROW_BYTES):
            if min(abs(offset - edge) for edge in edges) > _MOST_ROWS // 2 * _ROW_BYTES:
                continue
            if last is not None and offset != last + _ROW_BYTES:
                shown.append(element("i", f"… {offset - last - _ROW_BYTES:,} bytes …\n"))
            shown.append(_row(block[offset - at : offset - at + _ROW_BYTES], offset, runs))
            last = offset
    return element("pre", *shown, class_="hex", tabindex="0", aria_label="Bytes in hexadecimal and as ASCII")


def _row(row: bytes, offset: int, runs: Sequence[Run]) -> Html:
    letters = [worst(runs, at, at + 1) for at in range(offset, offset + len(row))]
    digits: list[str] = []
    text: list[str] = []
    at = 0
    for letter, group in groupby(letters):
        start, at = at, at + len(list(group))
        pairs = [("  " if own == 8 else " " if own else "") + f"{row[own]:02x}" for own in range(start, at)]
        plain = "".join(chr(own) if 0x20 <= own < 0x7F else "." for own in row[start:at])
        for shown, said in ((digits, "".join(pairs)), (text, plain)):
            shown.append(said if letter == "S" else element("mark", said, class_=STATES[letter].style))
    gap = 3 * (_ROW_BYTES - len(row)) + (3 if len(row) > 8 else 4)
    margin = worst(runs, offset, offset + len(row))
    return join(f"{margin} {offset:>10,}  ", *digits, " " * gap, *text, Html("\n"))
