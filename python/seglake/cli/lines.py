"""A record as one line: JSON that loses nothing, or text for people."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, Protocol, TextIO

import click

from .escape import json_ascii, json_text
from .fields import Fields, ValueForm, base64_text, instant_shown, plain, preview, shown
from .quantity import size
from .terminal import is_coloured, is_terminal, is_unicode

if TYPE_CHECKING:
    from seglake import Record

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


class Lines(Protocol):
    """Makes a line of a record."""

    def line(self, record: Record) -> str:
        """The record as one line, without the line break."""
        ...


class JsonLines:
    """One JSON object of each record; its keys are the column names.

    A field that its column's form cannot show without loss stands under a key that says how it is shown instead:
    `value_base64` for a value that is not UTF-8 or not JSON, `timestamp_us` for an instant outside the years 1 to 9999.
    """

    def __init__(self, columns: Sequence[str], form: ValueForm, fields: Fields) -> None:
        self._columns = tuple((name, json_text(name)) for name in columns)
        self._encode_value = _ENCODERS[form]
        self._no_value_key = "value_base64" if form == "json" else "value"
        self._fields = fields

    def line(self, record: Record) -> str:
        """The record as one line of plain ASCII, without the line break."""
        return "{" + ", ".join([self._field(record, name, key) for name, key in self._columns]) + "}"

    def _field(self, record: Record, name: str, key: str) -> str:
        value = self._fields.of(record, name)
        if name == "value":
            if value is None:
                # Told apart from a value that is JSON's null.
                return f'"{self._no_value_key}": null'
            encoded = self._encode_value(value)
            return f'"value_base64": {_base64(value)}' if encoded is None else f'"value": {encoded}'
        if name == "timestamp" and value is None:
            return f'"timestamp_us": {record.timestamp_us}'
        return f"{key}: {json_text(plain(value))}"


class PlainLines:
    """One line of printable text of each record; on a terminal cut to its width and coloured."""

    def __init__(
        self, columns: Sequence[str], form: ValueForm, fields: Fields, *, stream: TextIO, file_bytes: int
    ) -> None:
        self._columns = tuple(columns)
        self._form: ValueForm = form
        self._fields = fields
        self._columns_wide = shutil.get_terminal_size().columns if is_terminal(stream) else None
        self._coloured = is_coloured(stream)
        self._ellipsis = "…" if is_unicode(stream) else "..."
        # Columns line up as far as the widest field so far; positions from the start.
        self._widths = dict.fromkeys(self._columns, 0)
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
        field = self._fields.of(record, name)
        text = instant_shown(record) if name == "timestamp" else shown(field, self._form)
        if self._columns_wide is not None and _cells(text) > _FIELD_CELLS:
            text = self._cut(text, _FIELD_CELLS, "")
        is_number = isinstance(field, int) or (field is None and self._widths[name] < _FEWEST_CELLS)
        fewest = _FEWEST_DIGITS if is_number else _FEWEST_CELLS
        width = self._widths[name] = max(self._widths[name], fewest, min(_cells(text), _PADDED_CELLS))
        padding = " " * (width - _cells(text))
        return padding + text if is_number else text + padding

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


def _base64(value: bytes) -> str:
    return f'"{base64_text(value)}"'


def _hex(value: bytes) -> str:
    return f'"{value.hex()}"'


def _text(value: bytes) -> str | None:
    try:
        return json_text(value.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _json(value: bytes) -> str | None:
    """The value's own text where it is valid JSON: numbers keep all digits, objects all names in their order."""
    try:
        text = value.decode("utf-8")
        _decode(text)
    except (ValueError, RecursionError):
        return None
    return json_ascii(text).strip(" ")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# Whether it is JSON is all that is asked: numbers stay text, however long they are.
_decode = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_constant).decode
_ENCODERS: dict[ValueForm, Callable[[bytes], str | None]] = {
    "base64": _base64,
    "hex": _hex,
    "text": _text,
    "json": _json,
}
_COLOURS = {"position": "bright_black", "timestamp": "cyan", "type": "yellow"}
