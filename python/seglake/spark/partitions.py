"""What the tasks of a query read."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from seglake.tracking.tasks import Slice, pack, split, task_bytes

from .decode import Decoder

__all__ = ["SegmentPartition", "partitions"]


@dataclass(frozen=True)
class SegmentPartition(InputPartition):
    """What one task reads, in order."""

    slices: tuple[Slice, ...]


def partitions(slices: Sequence[Slice], decoder: Decoder) -> list[SegmentPartition]:
    """Splits large files and packs all into tasks, as the options of the load say."""
    options = decoder.options
    limit = task_bytes(
        slices,
        most=options.max_partition_bytes,
        open_cost_bytes=options.open_cost_bytes,
        parallelism=options.min_partitions,
    )
    # What counts for opening a file is left over, as with Spark's own file sources: a part of a file has all of a task.
    # Some tenants or partitions of a file are found by its table of contents, so it is read whole for them.
    finds = any(column in ("tenant", "partition") for _, (column, _, _) in options.conditions)
    parts = split(slices, sys.maxsize if finds else limit, decoder.open_to_split)
    tasks = pack(list(parts), limit, options.open_cost_bytes)
    return [SegmentPartition(tuple(task)) for task in tasks]
