"""Tenant: the flights of each airline together, and within an airport: partition and tenant. One month is broken."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import seglake

from ..damage import Damage, flip_bits
from ..layout import Layout
from .segment import Segment

# Magic, version and number of blocks in front of the table of contents, its CRC and the number of partitions behind it.
HEAD_BYTES = 4 + 2 + 4
CONTENTS_END_BYTES = 4 + 4
# Partition, length of the tenant's name, number of messages, offset, length and CRC of the block.
ENTRY_BYTES = 4 + 4 + 4 + 8 + 8 + 4
TENANT_COUNT_BYTES = 4
# Number of messages, length of the tenant's name.
BLOCK_HEAD_BYTES = 4 + 4
VALUE_LENGTH_BYTES = 4


class Tenant(Segment):
    """A block for each airport (the partition) and airline (the tenant), named in a table of contents."""

    format = "tenant"
    extension = "tenant"
    columns: ClassVar = ["partition", "tenant", "index", "value"]

    def __init__(self, folder: Path, name: str, messages: pa.Table) -> None:
        messages = messages.sort_by([(column, "ascending") for column in ("partition", "tenant", "offset")])
        self.blocks = messages.group_by(["partition", "tenant"], use_threads=False).aggregate([([], "count_all")])
        counts = self.blocks["count_all"].to_numpy()
        self.first = np.concatenate([[0], np.cumsum(counts)])
        index = np.arange(messages.num_rows) - np.repeat(self.first[:-1], counts)
        super().__init__(folder, name, messages.append_column("index", pa.array(index)))

    def write(self) -> None:
        """Write the messages in the order in which they came: the writer puts them into blocks."""
        with seglake.create(self.path, format="tenant") as writer:
            writer.write_batch(self.messages.sort_by("offset").select(["partition", "tenant", "value"]))

    def locate(self) -> Layout:
        """All lengths are known, and so all positions."""
        names = pc.binary_length(self.blocks["tenant"]).to_numpy()
        messages = np.add.reduceat(VALUE_LENGTH_BYTES + self.lengths("value"), self.first[:-1])
        sizes = BLOCK_HEAD_BYTES + names + messages
        partitions = np.cumsum(np.diff(self.blocks["partition"].to_numpy(), prepend=-1) != 0)
        contents = HEAD_BYTES + int((ENTRY_BYTES + names).sum()) + CONTENTS_END_BYTES
        ends = contents + TENANT_COUNT_BYTES * partitions + np.cumsum(sizes)
        return Layout(ends - sizes, ends, self.first, int(ends[-1]))

    def plan(self) -> Damage | None:
        """A flipped bit costs a block: it has one checksum."""
        if self.name != "2013-06":
            return None
        return flip_bits(self.layout, [self.layout.pieces // 2], "checksum_mismatch", "a bit flipped in one block")
