"""Text that is fit for a message: what it quotes may be somebody else's, and it goes to terminals and into logs."""

from __future__ import annotations

import os
import re

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_HEX_BYTE = re.compile("x([0-9a-fA-F]{2})")


def printable(text: str) -> str:
    r"""The text with every character that is not printable spelled out: `\n`, `\x1b`, `\u202e`.

    Escaped are control characters (C0, DEL, C1), line and paragraph separators, everything invisible that changes how
    text reads (bidirectional overrides, zero-width characters), lone surrogates (bytes of a path that are not UTF-8)
    and unassigned characters: what `str.isprintable` refuses. Backslashes stay as they are, so this is for people to
    read and cannot be reversed.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _spelled(character) for character in text)


def printable_path(path: str | os.PathLike[str]) -> str:
    """A path as `printable` text."""
    return printable(os.fspath(path))


def path_text(path: str) -> str:
    r"""Returns a path, or a text with a path in it, as columns show it: bytes that are no UTF-8 as `\xNN`."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def error_text(error: BaseException) -> str:
    """Returns the text of an error. The file comes first, as in all errors: Python puts a number before it."""
    if isinstance(error, OSError) and error.strerror is not None and isinstance(error.filename, str):
        return f"{printable_path(error.filename)}: {error.strerror}"
    return str(error)


def _spelled(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00  # how Python has a byte of a path that is not UTF-8
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def unescape(text: str) -> bytes | None:
    r"""The bytes that the library shows as this text, `\xNN` being a byte; None where no bytes show so."""
    first, *parts = text.split("\\")
    try:
        shown = first.encode()
        for part in parts:
            byte = _HEX_BYTE.match(part)
            if byte is None:
                return None
            shown += bytes.fromhex(byte[1]) + part[byte.end() :].encode()
    except UnicodeEncodeError:
        return None
    return shown
