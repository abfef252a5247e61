"""How text, numbers, records and tables are written, for people and as JSON.

The one place that makes untrusted text fit for a terminal or a line of JSON. Types, tenants, values and paths are bytes
that somebody else chose. Written as they are they could move the cursor, change colours, retitle the window, reverse
the reading direction or end the line.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from seglake._json_text import ValueForm as ValueForm
from seglake._json_text import base64_text as base64_text
from seglake._json_text import json_compact as json_compact
from seglake._json_text import json_text as json_text
from seglake._json_text import json_value
from seglake._text import printable as printable
from seglake._values import instant, instant_us

from .terminal import is_coloured, is_terminal, is_unicode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.text import Text

    from seglake import Format, Record

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_FOR_PEOPLE = ("timestamp", "text", "int64")
_NUMBERS = ("int64", "uint64")
# How much of a value a line for people shows where no terminal's width limits it.
_PREVIEW_BYTES = 64 * 1024
# What a cut through the middle of an escape leaves.
_HALF_ESCAPE = re.compile(r"\\(x[0-9a-f]?|u[0-9a-f]{0,3}|U[0-9a-f]{0,7})?\Z")
# On a terminal no field may push the value out of sight, and none is padded beyond a readable width.
_FIELD_CELLS = 40
_PADDED_CELLS = 24
_FEWEST_CELLS = 14
_FEWEST_DIGITS = 4
_VALUE_CELLS = 16
_GAP = "  "


def printable_lines(text: str) -> str:
    """Like `printable`, for a text of our own that has line breaks and holds words that are not ours."""
    return "\n".join(printable(line) for line in text.split("\n"))


def printable_bytes(value: bytes) -> str:
    r"""The bytes as UTF-8 text, with `\xNN` for each byte that is not part of it, escaped as `printable`."""
    return printable(value.decode("utf-8", "backslashreplace"))


def count(number: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun: `1 record`, `1,234 records`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def size(number: int) -> str:
    """A number of bytes in the largest fitting binary unit: `999 bytes`, `11.8 MiB`."""
    scaled, unit = float(number), 0
    while scaled >= 1024 and unit < len(_UNITS) - 1:
        scaled, unit = scaled / 1024, unit + 1
    if unit == 0:
        return count(number, "byte")
    return f"{scaled:.1f} {_UNITS[unit]}"


def exact_size(number: int) -> str:
    """A number of bytes exactly, with a rounded one after it where that helps: `12,345,678 bytes (11.8 MiB)`."""
    exact = count(number, "byte")
    return exact if number < 1024 else f"{exact} ({size(number)})"


def named_lines(lines: Iterable[tuple[str, str]]) -> list[str]:
    """Lines below a headline, each with a name in front."""
    return [f"  {name:<11} {text}" for name, text in lines]


def plain(value: Any, of_bytes: Callable[[bytes], str] = base64_text) -> Any:
    """A field as JSON knows it: instants as ISO 8601 in UTC, UUIDs as text, bytes in base64, also within lists."""
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes):
        return of_bytes(value)
    if isinstance(value, dict):
        return {str(name): plain(item, of_bytes) for name, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, of_bytes) for item in cast("list[Any]", value)]
    return value


def shown(value: Any, form: ValueForm) -> str:
    """A field other than the value as printable text on one line: structures as JSON, bytes as hex or base64."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return printable(value)
    converted = plain(value, base64_text if form == "base64" else bytes.hex)
    return converted if isinstance(converted, str) else json_compact(converted)


def preview(value: bytes, form: ValueForm, most: int) -> str:
    """The beginning of a value, `most` bytes of it, as printable text on one line."""
    head = value[:most]
    if form == "hex":
        return head.hex()
    if form == "base64":
        return base64_text(head[: max(3, most // 3 * 3)])
    if len(value) > most:
        # Not half a character at the cut: a continuation byte belongs to what stands before it.
        while len(head) > max(most - 3, 1) and value[len(head)] & 0xC0 == 0x80:
            head = head[:-1]
    return printable_bytes(head)


def column_kinds(format: Format) -> Mapping[str, str]:
    """The kind of each column by its name."""
    return {column.name: column.kind for column in format.columns}


def columns_for_people(format: Format) -> list[str]:
    """The columns that a person wants to see of each record, in their order.

    Those that say which record it is (identifiers, numbers, times, short texts), and its value. A UUID says little
    beside the time that is in it; counters, flags and structures are for who asks for them.
    """

    def is_shown(name: str, kind: str) -> bool:
        return name == "value" or kind in _FOR_PEOPLE or (name in format.identifier and kind != "uuid")

    return [name for name, kind in column_kinds(format).items() if is_shown(name, kind)]


class JsonLines:
    """One JSON object of each record; its keys are the column names.

    A field that its column's form cannot show without loss stands under a key that says how it is shown instead:
    `value_base64` for a value that is not UTF-8 or not JSON, `timestamp_us` for an instant outside the years 1 to 9999.
    """

    def __init__(self, columns: Sequence[str], form: ValueForm, path: str | None) -> None:
        self._columns = tuple((name, json_text(name)) for name in columns)
        self._form: ValueForm = form
        self._path = path

    def line(self, record: Record) -> str:
        """The record as one line of plain ASCII, without the line break."""
        return "{" + ", ".join([self._field(record, name, key) for name, key in self._columns]) + "}"

    def _field(self, record: Record, name: str, key: str) -> str:
        if name == "value":
            return json_value(record.value, self._form)
        value = self._path if name == "path" else getattr(record, name)
        if name == "timestamp" and value is None:
            return f'"timestamp_us": {record.timestamp_us}'
        return f"{key}: {json_text(plain(value))}"


class PlainLines:
    """One line of printable text of each record; on a terminal cut to its width and coloured."""

    def __init__(
        self,
        columns: Sequence[str],
        form: ValueForm,
        path: str | None,
        *,
        format: Format,
        stream: TextIO,
        file_bytes: int,
    ) -> None:
        self._columns = tuple(columns)
        self._form: ValueForm = form
        self._path = path
        self._columns_wide = shutil.get_terminal_size().columns if is_terminal(stream) else None
        self._coloured = is_coloured(stream)
        self._ellipsis = "…" if is_unicode(stream) else "..."
        # Columns line up as far as the widest field so far; positions from the start.
        self._numbers = {name for name, kind in column_kinds(format).items() if kind in _NUMBERS}
        self._widths = {name: _FEWEST_DIGITS if name in self._numbers else _FEWEST_CELLS for name in columns}
        self._position_digits = len(str(file_bytes))

    def line(self, record: Record) -> str:
        """The record as one line, without the line break."""
        parts: list[str] = []
        taken = 0
        for name in self._columns:
            if name == "value":
                room = None if self._columns_wide is None else max(self._columns_wide - taken, _VALUE_CELLS)
                text = self._value(record.value, room)
            else:
                text = self._field(record, name)
                taken += _cells(text) + 2
            parts.append(click.style(text, fg=_COLOURS.get(name)) if self._coloured and text.strip() else text)
        return "  ".join(parts).rstrip()

    def _field(self, record: Record, name: str) -> str:
        if name == "position":
            return str(record.position).rjust(self._position_digits)
        if name == "timestamp":
            moment = record.timestamp
            text = instant(moment) if moment is not None else instant_us(record.timestamp_us)
        else:
            text = shown(self._path if name == "path" else getattr(record, name), self._form)
        if self._columns_wide is not None and _cells(text) > _FIELD_CELLS:
            text = self._cut(text, _FIELD_CELLS, "")
        width = self._widths[name] = max(self._widths[name], min(_cells(text), _PADDED_CELLS))
        padding = " " * (width - _cells(text))
        return padding + text if name in self._numbers else text + padding

    def _value(self, value: bytes | None, room: int | None) -> str:
        if value is None:
            return "-"
        most = _PREVIEW_BYTES if room is None else min(_PREVIEW_BYTES, 4 * room)
        text = preview(value, self._form, most)
        whole = len(value) <= most
        if room is None:
            return text if whole else f"{text}{self._ellipsis} {size(len(value))}"
        return text if whole and _cells(text) <= room else self._cut(text, room, f" {size(len(value))}")

    def _cut(self, text: str, room: int, remark: str) -> str:
        """The text's beginning in at most `room` cells, with a sign that more follows and how much there is in all."""
        from rich.cells import set_cell_size

        ending = self._ellipsis + remark
        head = set_cell_size(text, max(room - len(ending), 1)).rstrip()
        return _HALF_ESCAPE.sub("", head) + ending


def _cells(text: str) -> int:
    """How many cells of a terminal printable text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


_COLOURS = {"position": "bright_black", "timestamp": "cyan", "type": "yellow"}


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
