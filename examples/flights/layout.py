"""Where each message lies in its segment, worked out from the format alone and not by reading the file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

UUID_BYTES = 16
TYPE_LENGTH_BYTES = 1
VALUE_LENGTH_BYTES = 4
CHECKSUM_BYTES = 8
FRAME_BYTES = UUID_BYTES + TYPE_LENGTH_BYTES + VALUE_LENGTH_BYTES + CHECKSUM_BYTES


@dataclass(frozen=True)
class Segment:
    """One month's messages and where they begin in the file that holds them."""

    month: str
    messages: pa.Table

    @property
    def file_name(self) -> str:
        """The name of the segment's file."""
        return f"{self.month}.active"

    @cached_property
    def positions(self) -> npt.NDArray[np.int64]:
        """The offset of each record's first byte, and behind the last one the offset where the records end."""
        sizes = pc.add(pc.binary_length(self.messages["type"]), pc.binary_length(self.messages["value"]))
        ends = np.cumsum(sizes.to_numpy().astype(np.int64) + FRAME_BYTES)
        return np.concatenate([np.zeros(1, np.int64), ends])

    @property
    def end(self) -> int:
        """The offset where the records end; in a file without unused space, its length."""
        return int(self.positions[-1])

    def extent(self, record: int) -> tuple[int, int]:
        """The bytes `[start, end)` of one record."""
        return int(self.positions[record]), int(self.positions[record + 1])

    def value_length_position(self, record: int) -> int:
        """The offset of the four bytes that say how long the record's value is."""
        kind: str = self.messages["type"][record].as_py()
        return self.extent(record)[0] + UUID_BYTES + TYPE_LENGTH_BYTES + len(kind.encode())

    def value_position(self, record: int) -> int:
        """The offset of the first byte of the record's value."""
        return self.value_length_position(record) + VALUE_LENGTH_BYTES

    def value(self, record: int) -> bytes:
        """The record's value as it was written."""
        return self.messages["value"][record].as_py()

    def touched(self, start: int, end: int) -> range:
        """The records that own at least one of the bytes `[start, end)`."""
        first = int(np.searchsorted(self.positions, start, side="right")) - 1
        last = int(np.searchsorted(self.positions, end, side="left"))
        return range(first, min(last, self.messages.num_rows))
