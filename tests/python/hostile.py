"""Names, types, tenant IDs and values that somebody chose who wants to do harm."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import seglake

FIRST = uuid.UUID("1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3")
START_US = 1_700_000_000_000_000
EXTENSIONS = {"active": "active", "sealed": "sealed", "tenant": "tenant", "chunked": "chunks", "oplog": "oplog"}

TEXTS: tuple[bytes, ...] = tuple(
    text.encode() if isinstance(text, str) else text
    for text in (
        "\x1b[5;45mblinks\x1b[2J",
        "\x1b]0;title\x07\x1b]8;;http://example.com\x1b\\link\x1b]8;;\x1b\\",
        "\x1bP1$r0m\x1b\\\x1b_apc\x1b\\\x9b31m\x9d0;x\x9c",
        "a\r\nseglake: all sound\nb\x0b\x0c\x85",
        "\u202egpj.exe\u2066\u200b\u2028\ufeff",
        "nul\0behind it",
        "\b\b\b\b\x7f",
        "../../outside",
        "/tmp/outside",
        "a/b",
        "..",
        "date=2024-01-01",
        "%s %n %(x)s {x} {0.__class__} ${HOME} $(touch outside) `touch outside`",
        "<script>alert(1)</script><img src=x onerror=alert(1)>&amp;",
        "'; DROP TABLE records; -- \" OR 1=1",
        "[red]red[/red][link=http://example.com]link[/link][/] :smile:",
        '{"value": 1}, "more": [',
        "=1+cmd|' /C calc'!A0",
        "-rf",
        "--debug",
        "back\\slash \\x1b \\u202e",
        b"\xff\xfe\x80 no UTF-8 \xed\xa0\x80",
        "x" * 250,
        "",
    )
)


def file_names() -> Iterator[bytes]:
    """Those that a file system takes: all but NUL and the separator may be in a name."""
    for text in TEXTS:
        name = text.replace(b"\0", b"").replace(b"/", b"")[:200]
        if name.strip(b"."):
            yield name


def record(format: str, number: int, text: bytes) -> dict[str, Any]:
    """A record that holds a text wherever it can."""
    value = text + b"\r\n" + text
    if format in ("active", "sealed"):
        return {"uuid": uuid.UUID(int=FIRST.int + number), "type": text, "value": value}
    if format == "tenant":
        return {"partition": 7, "tenant": text, "value": value}
    if format == "chunked":
        return {"timestamp": START_US + number, "value": value}
    return {"version": 1, "checkpointer": 1, "clock": [], "abi": 0, "batch": 1, "value": value}


def write(path: Path, format: str, first: bytes = b"") -> Path:
    """Writes a segment of such records. What is put in front of the first one's value makes it a segment of its own."""
    with seglake.create(path, format=format) as writer:
        # Tenants stand in the order of their IDs.
        for number, text in enumerate(sorted(TEXTS) if format == "tenant" else TEXTS):
            fields = record(format, number, text)
            writer.write(**(fields if number else {**fields, "value": first + fields["value"]}))
    return path


def damage(source: Path, path: Path) -> Path:
    """Copies a file with one bit changed in the middle."""
    content = bytearray(source.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)
    return path


# All colours and weights but those that the texts above ask for.
_STYLES = re.compile(r"\x1b\[(?!5;45m)(?:\d{1,3}(?:;\d{1,3})*)?m")
# What a progress bar does: hide and show the cursor, go up a line, erase it, begin it anew.
_PROGRESS = re.compile(r"\x1b\[(?:\?25[hl]|1A|2K)|\r")


def unsafe(text: str, *, styled: bool = False, progress: bool = False) -> list[str]:
    """The lines of an output for people that hold what a terminal acts on, or what hides or reorders text.

    Args:
        text: the output.
        styled: it may be coloured.
        progress: there may be a progress bar in it.
    """
    if styled:
        text = _STYLES.sub("", text)
    if progress:
        text = _PROGRESS.sub("", text)
    return [line for line in text.removesuffix("\n").split("\n") if not line.isprintable()]
