"""Chunked: a compressed log of timestamped records. One month is broken."""

from __future__ import annotations

import struct
from typing import ClassVar

import numpy as np

import seglake

from ..damage import Damage, flip_bits
from ..layout import Layout
from .segment import Segment

# Flags, length of the payload, offset of the first record, number of records, CRC.
HEADER = struct.Struct(">BIqII")
ALIGNMENT_BYTES = 0x80
# Few enough that a damaged chunk costs little, many enough to compress well.
CHUNK_RECORDS = 500


class Chunked(Segment):
    """A header and a zstd frame for every 500 flights. A record's offset is the flight's number in the year."""

    format = "chunked"
    extension = "chunks"
    columns: ClassVar = ["offset", "timestamp", "value"]

    def write(self) -> None:
        """Write the messages as they are."""
        with seglake.create(self.path, format="chunked", options={"chunk_records": CHUNK_RECORDS}) as writer:
            writer.write_batch(self.messages.select(self.columns))

    def locate(self) -> Layout:
        """How far a chunk was compressed only its header knows: they are followed from one to the next."""
        data = self.path.read_bytes()
        starts: list[int] = []
        ends: list[int] = []
        first = [0]
        position = 0
        while position < len(data):
            _, length, _, count, _ = HEADER.unpack_from(data, position)
            starts.append(position)
            ends.append(position + HEADER.size + length)
            first.append(first[-1] + count)
            position = -(-ends[-1] // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        return Layout(np.array(starts), np.array(ends), np.array(first), position)

    def plan(self) -> Damage | None:
        """A flipped bit costs a chunk: nothing of it can be decompressed and be sure to be right."""
        if self.name != "2013-09":
            return None
        chunk = (self.layout.pieces - 1) // 2
        return flip_bits(self.layout, [chunk], "payload_invalid", "a bit flipped in one compressed chunk")
