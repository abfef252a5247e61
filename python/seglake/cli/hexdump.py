"""Bytes as rows of hexadecimal digits and text, each with its offset."""

from __future__ import annotations

_ROW_BYTES = 16
_PLAIN = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in range(256))


def hexdump(block: bytes, offset: int) -> str:
    """Rows of 16 bytes, each ended by a line break: offset, the bytes in two groups of eight, what of them is ASCII."""
    return "".join(_row(block[at : at + _ROW_BYTES], offset + at) for at in range(0, len(block), _ROW_BYTES))


def _row(row: bytes, offset: int) -> str:
    text = row.decode("latin-1").translate(_PLAIN)
    return f"{offset:08x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  |{text}|\n"
