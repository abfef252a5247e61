"""Sealed: the active segments, finished: read-only, with an index of UUIDs. One month is broken."""

from __future__ import annotations

from typing import ClassVar

import seglake

from ..damage import Damage, flip_bits
from ..layout import Layout
from .segment import Segment

INDEX_ENTRY_BYTES = 24
TYPE_LENGTH_BYTES = 1
VALUE_LENGTH_BYTES = 4
CHECKSUM_BYTES = 8
# Key check, count, index hash and magic.
TRAILER_BYTES = 32


class Sealed(Segment):
    """An index entry for each flight, a terminator, the messages, and a trailer with their checksums."""

    format = "sealed"
    extension = "sealed"
    columns: ClassVar = ["uuid", "type", "value"]

    def write(self) -> None:
        """Seal the active segment of the same month: each message keeps the checksum that it has there."""
        seglake.seal(self.path.parents[1] / "active" / f"{self.name}.active", self.path)

    def locate(self) -> Layout:
        """All lengths are known, and so all positions."""
        count = self.messages.num_rows
        sizes = TYPE_LENGTH_BYTES + self.lengths("type") + VALUE_LENGTH_BYTES + self.lengths("value")
        return Layout.of_records(INDEX_ENTRY_BYTES * (count + 1), sizes, count * CHECKSUM_BYTES + TRAILER_BYTES)

    def plan(self) -> Damage | None:
        """A flipped bit costs one message: the index says where the next one is."""
        if self.name != "2013-03":
            return None
        record = self.messages.num_rows // 2
        return flip_bits(self.layout, [record], "checksum_mismatch", "a bit flipped in one body")
