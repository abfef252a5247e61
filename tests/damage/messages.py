"""The messages of which all files are made, ours and the peers'."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

START = datetime(2024, 1, 31, tzinfo=UTC)
_UUID_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)


@dataclass(frozen=True)
class Message:
    """One message. `time` is its own, and no other message has it."""

    number: int
    time: datetime
    type: bytes
    value: bytes

    @property
    def timestamp_us(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        return (self.time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

    @property
    def uuid(self) -> uuid.UUID:
        """The UUID, version 6, of the message's time and number."""
        ticks = (self.time - _UUID_EPOCH) // timedelta(microseconds=1) * 10
        return uuid.UUID(int=(ticks >> 12) << 80 | 6 << 76 | (ticks & 0xFFF) << 64 | 2 << 62 | self.number)


def messages(count: int, *, start: datetime = START, seed: int = 0) -> list[Message]:
    """Messages a second apart: mostly text like that of an application's log, some binary, some empty.

    The seed changes what they say, and not how long they are: files of as many messages have the same layout.
    """
    lengths, words = Random(count), Random(f"{count} {start} {seed}")
    made: list[Message] = []
    for number in range(count):
        size = lengths.choice((0, 1, 20, 60, 80, 100, 150, 200, 300))
        if lengths.randrange(4) == 0:
            value = words.randbytes(size)
        else:
            fields = {"n": number, "host": f"node-{words.randrange(40)}", "trace": f"{words.getrandbits(64):016x}"}
            value = json.dumps(fields).encode().ljust(size, b".")[:size]
        kind = b"type/%d" % lengths.randrange(5)
        made.append(Message(number, start + timedelta(seconds=number), kind, value))
    return made
