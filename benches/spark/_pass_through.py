"""The engine's limit: a data source that only returns ready Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

__all__ = ["PassThrough"]


@lru_cache(maxsize=1)
def prebuilt(path: str) -> list[pa.RecordBatch]:
    """The batches of an Arrow IPC file; read once by each worker. Spark reuses workers for later queries."""
    with pa.ipc.open_file(Path(path).read_bytes()) as file:
        return [file.get_batch(number) for number in range(file.num_record_batches)]


@dataclass(frozen=True)
class Repeated(InputPartition):
    """One task: all batches, `times` times."""

    times: int


class PassThroughReader(DataSourceReader):
    """Returns the batches of `path`, in as many tasks as `times` has numbers, so many times in each."""

    def __init__(self, path: str, times: Sequence[int]) -> None:
        self._path = path
        self._times = times

    def partitions(self) -> Sequence[InputPartition]:
        """One for each task."""
        return [Repeated(times) for times in self._times]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Returns the batches."""
        assert isinstance(partition, Repeated)
        for _ in range(partition.times):
            yield from prebuilt(self._path)


class PassThrough(DataSource):
    """`spark.read.format("pass_through")`; the options are those of its reader, `times` with commas."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__({})
        self._path = options["path"]
        self._times = [int(number) for number in options["times"].split(",")]

    @classmethod
    def name(cls) -> str:
        """Returns the name for `spark.read.format`."""
        return "pass_through"

    def schema(self) -> StructType:
        """Returns the schema of the batches."""
        return from_arrow_schema(prebuilt(self._path)[0].schema, prefer_timestamp_ntz=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plans the read."""
        return PassThroughReader(self._path, self._times)
