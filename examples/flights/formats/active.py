"""Active: a log that is appended to. Four of the months are broken, each in another way."""

from __future__ import annotations

from typing import ClassVar

import seglake

from ..damage import Damage, DamagedRange, Overwrite, flip_bits, tear_tail
from ..layout import Layout
from .segment import Segment

UUID_BYTES = 16
TYPE_LENGTH_BYTES = 1
VALUE_LENGTH_BYTES = 4
CHECKSUM_BYTES = 8
FRAME_BYTES = UUID_BYTES + TYPE_LENGTH_BYTES + VALUE_LENGTH_BYTES + CHECKSUM_BYTES


class Active(Segment):
    """A record for each flight: uuid, type, value and checksum, one record directly behind the other."""

    format = "active"
    extension = "active"
    columns: ClassVar = ["uuid", "type", "value"]

    def write(self) -> None:
        """Write the messages as they are."""
        with seglake.create(self.path, format="active") as writer:
            writer.write_batch(self.messages.select(self.columns))

    def locate(self) -> Layout:
        """All lengths are known, and so all positions."""
        return Layout.of_records(0, FRAME_BYTES + self.lengths("type") + self.lengths("value"))

    def plan(self) -> Damage | None:
        """Which month is broken, and how."""
        count = self.messages.num_rows
        match self.name:
            case "2013-03":
                thirds = [count // 4, count // 2, count * 3 // 4]
                return flip_bits(self.layout, thirds, "checksum_mismatch", "a bit flipped in each of three bodies")
            case "2013-06":
                return self._overwrite_length(count // 3)
            case "2013-09":
                return tear_tail(self.layout, count - 1, "the tail torn off in mid-record")
            case "2013-12":
                return self._tear_preallocated(count - 1)
        return None

    def _overwrite_length(self, record: int) -> Damage:
        """A length field that claims four gigabytes: a reader that believes it loses the rest of the file."""
        start, end = self.layout.extent(record)
        type_bytes = int(self.lengths("type")[record])
        change = Overwrite(start + UUID_BYTES + TYPE_LENGTH_BYTES + type_bytes, b"\xff" * VALUE_LENGTH_BYTES)
        return Damage(
            about="a length field overwritten with FF FF FF FF",
            lost=self.layout.touched([change.changed]),
            ranges=(DamagedRange(start, end, "corrupt", "length_out_of_bounds"),),
            changes=(change,),
        )

    def _tear_preallocated(self, record: int) -> Damage:
        """Torn in a file that was laid out in advance: the half of the record that never came is zeros."""
        start, end = self.layout.extent(record)
        change = Overwrite(self.layout.middle(record), bytes(end - self.layout.middle(record)))
        return Damage(
            about="preallocated, and torn in mid-record",
            lost=self.layout.touched([change.changed]),
            ranges=(DamagedRange(start, change.at, "torn_tail", "checksum_mismatch"),),
            changes=(change,),
            size=_round_up(end, 1 << 20) + (1 << 20),
        )


def _round_up(size: int, step: int) -> int:
    return -(-size // step) * step
