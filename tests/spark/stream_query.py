"""Stands for Spark: plans and reads the batches of a stream."""

import pickle
from pathlib import Path
from typing import Any

from seglake.spark.source import SegmentDataSource


class Query:
    """What Spark does with a stream: plans a batch, notes its end, reads it, and goes on there."""

    def __init__(self, path: Path | str, **options: str) -> None:
        self.path = path
        self.options = options
        self.offsets: list[str] = []
        self.rows: list[str] = []
        self.damage: list[Any] = []
        self.restart()

    def restart(self) -> None:
        source = SegmentDataSource({"path": str(self.path), **self.options})
        schema = source.schema()
        source = pickle.loads(pickle.dumps(source))
        self.reader: Any = source.streamReader(schema)
        self.reader.getDefaultReadLimit()  # raises what is wrong

    def start(self) -> dict[str, Any]:
        return pickle.loads(self.offsets[-1].encode("latin-1")) if self.offsets else self.reader.initialOffset()

    def plan(self, limit: Any = None) -> bool:
        """Plans the next batch and notes its end. Returns whether there is one."""
        start = self.start()
        end = self.reader.latestOffset(start, limit or self.reader.getDefaultReadLimit())
        if end == start:
            return False
        self.previous = start
        self.offsets.append(pickle.dumps(end, 0).decode("latin-1"))
        return True

    def read(self) -> list[str]:
        """Reads the batch that was planned last, as executors do. Spark may do so again and again.

        What it reports as damage is in `damage` then.
        """
        partitions = self.reader.partitions(self.previous, self.start())
        reader = pickle.loads(pickle.dumps(self.reader))
        batches = [batch for own in pickle.loads(pickle.dumps(list(partitions))) for batch in reader.read(own)]
        columns = ("value", "_corrupt_record")
        rows: list[Any] = []
        for batch in batches:
            rows += batch.select([name for name in columns if name in batch.schema.names]).to_pylist()
        self.damage = [row["_corrupt_record"] for row in rows if row.get("_corrupt_record") is not None]
        return [row["value"].decode() for row in rows if row.get("value") is not None]

    def batch(self, limit: Any = None) -> list[str]:
        """The records of the next batch."""
        if not self.plan(limit):
            return []
        rows = self.read()
        self.rows += rows
        return rows
