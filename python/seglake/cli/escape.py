"""The one place that makes untrusted text fit for a terminal or a line of JSON.

Types, tenants, values and paths are bytes that somebody else chose. Written as they are they could move the cursor,
change colours, retitle the window, reverse the reading direction or end the line.
"""

from __future__ import annotations

import json
import re
from typing import Any

from seglake._text import printable

__all__ = ["json_ascii", "json_compact", "json_text", "printable", "printable_bytes", "printable_lines"]

_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode
_encode_compact = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
_NOT_PLAIN_ASCII = re.compile(r"[^\x20-\x7e]")


def printable_lines(text: str) -> str:
    """Like `printable`, for a text of our own that has line breaks and holds words that are not ours."""
    return "\n".join(printable(line) for line in text.split("\n"))


def printable_bytes(value: bytes) -> str:
    r"""The bytes as UTF-8 text, with `\xNN` for each byte that is not part of it, escaped as `printable`."""
    return printable(value.decode("utf-8", "backslashreplace"))


def json_text(value: Any) -> str:
    """The value as one line of JSON in plain ASCII, which no terminal acts on and no encoding loses."""
    # Of all that the encoder leaves as it is only DEL is not printable, and that can only stand within a string.
    return _encode(value).replace("\x7f", "\\u007f")


def json_compact(value: Any) -> str:
    """Like `json_text`, without blanks."""
    return _encode_compact(value).replace("\x7f", "\\u007f")


def json_ascii(document: str) -> str:
    r"""A JSON document, valid already, in plain ASCII on one line, with the same meaning.

    In valid JSON a control character stands only between tokens, where a blank does as well, and any other character
    that is not plain ASCII only within a string, where `\uNNNN` is the same character.
    """
    if document.isascii() and document.isprintable():
        return document
    return _NOT_PLAIN_ASCII.sub(_json_spelled, document)


def _json_spelled(match: re.Match[str]) -> str:
    character = match.group()
    if character < " ":
        return " "
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
