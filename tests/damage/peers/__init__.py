"""Other file formats for messages, damaged alike: each module writes one's files, and reads them in several ways.

Their packages are in requirements/damage.txt, which only `make damage` installs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..messages import Message

Row = tuple[int, bytes]
"""A message that was read: its number and everything else that was written of it."""


@dataclass(frozen=True)
class Peer:
    """A way to write messages to a file, and a way to read them, one at a time, until an exception ends it."""

    package: str
    write: Callable[[Path, Sequence[Message]], None]
    read: Callable[[Path], Iterator[Row]]


def row(message: Message) -> Row:
    """What a peer must give back."""
    return message.number, payload(message)


def payload(message: Message) -> bytes:
    """Type and value, for formats that have one field for both."""
    return bytes([len(message.type)]) + message.type + message.value
