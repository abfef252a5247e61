"""A key that is told apart from everything else, and what it looks like wherever it might have got to."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

KEY = hashlib.sha256(b"the key that must show nowhere").digest()
OTHER_KEY = hashlib.sha256(b"another key").digest()

# No text or number holds so much of the key by chance.
_PART_BYTES = 8


def _forms(part: bytes) -> Iterator[tuple[str, bytes]]:
    """What bytes look like, as they are and in the ways in which programs write them. Letters are lower-case."""
    yield "raw", part
    yield "hex", part.hex().encode()
    yield "hex with spaces", part.hex(" ").encode()
    yield "bytes literal", repr(part)[2:-1].encode()
    yield "JSON text", json.dumps(part.decode("latin-1"))[1:-1].encode()
    yield "UTF-8", part.decode("latin-1").encode()
    for comma in (", ", ","):
        yield "list", comma.join(map(str, part)).encode()
    for order in ("little", "big"):
        number = int.from_bytes(part, order)
        yield f"{order}-endian number", str(number).encode()
        yield f"{order}-endian number", f"{number:x}".encode()


def _needles() -> Iterator[tuple[str, bytes]]:
    for start in range(len(KEY) - _PART_BYTES + 1):
        yield from _forms(KEY[start : start + _PART_BYTES])
    yield "number", str(int.from_bytes(KEY, "big")).encode()
    # In base64 bytes look different at each of three places. Whole groups of three do not depend on what stands around.
    for start in range(3):
        group = KEY[start : start + 24]
        yield "base64", base64.b64encode(group)
        yield "base64", base64.urlsafe_b64encode(group)


_NEEDLES = tuple(dict.fromkeys((name, needle) for name, needle in _needles()))


def forms_in(text: str | bytes) -> list[str]:
    """The forms in which a part of the key stands in a text."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    both = data + b"\0" + data.lower()
    return sorted({name for name, needle in _NEEDLES if needle in both})


def leaks(texts: Iterable[str | bytes]) -> list[tuple[list[str], str | bytes]]:
    """Those of the texts that show a part of the key, and in which forms."""
    return [(found, text) for text in texts if (found := forms_in(text))]


def leaking_files(folder: Path) -> list[str]:
    """The files below a folder that show a part of the key, by what is in them or by their names."""
    files = [str(path) for path in folder.rglob("*")]
    return [name for name in files if forms_in(name) or (Path(name).is_file() and forms_in(Path(name).read_bytes()))]


def key_file(folder: Path, content: bytes = KEY) -> Path:
    """A file with a key, beside `folder` and not in it, where it would be found."""
    path = folder.with_name(f"{folder.name}-key")
    path.write_bytes(content)
    return path
