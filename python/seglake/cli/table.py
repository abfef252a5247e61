"""Tables of short words and numbers, without lines, as wide as they need to be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

_GAP = "  "


def table(
    header: Sequence[str] | None, rows: Iterable[Sequence[str]], *, right: Sequence[int] = (), style: str = ""
) -> Text:
    """A table as text, without a line break at its end and without blanks at the ends of its lines.

    Args:
        header: the columns' titles, or None for a table without.
        rows: the cells: printable text without line breaks, of characters that take one cell of a terminal each.
        right: the numbers of the columns that stand flush right.
        style: the style of the rows in which the second column is not empty, in the words of rich.
    """
    from rich.text import Text

    lines = [list(row) for row in ([header] if header else [])] + [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = Text()
    for number, line in enumerate(lines):
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        is_header = header is not None and number == 0
        text.append("\n" if number else "")
        text.append(_GAP.join(cells).rstrip(), "bold" if is_header else style if line[1] else "")
    return text
