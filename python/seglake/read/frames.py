"""Tables and data frames of batches, as readers, scans and logs give them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from seglake._native import Batch, Schema, arrow_stream, collect

if TYPE_CHECKING:
    import pandas  # pyright: ignore[reportMissingTypeStubs]
    import polars
    import pyarrow

    from seglake._native import Batches

__all__ = ["ScanBatches", "head", "need", "to_pandas", "to_polars", "to_table"]


class ScanBatches(Iterator[Batch]):
    """The records of a scan as `Batch`es, in flat memory; one may have damage and no rows.

    Those that are left are an Arrow stream, which pyarrow, polars and DuckDB take once.

    Example:
        >>> import seglake
        >>> orders = seglake.scan("logs", glob="*.active")
        >>> [batch.num_rows for batch in orders.batches()]
        [3, 3]
    """

    def __init__(self, schema: Schema, batches: Generator[Batch]) -> None:
        self._schema = schema
        self._batches = batches

    @property
    def schema(self) -> Schema:
        """The columns that each batch has."""
        return self._schema

    def __next__(self) -> Batch:
        return next(self._batches)

    def close(self) -> None:
        """Ends the reading: there are no more batches."""
        self._batches.close()

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        del requested_schema  # as the interface allows
        return arrow_stream(self._schema, (batch for batch in self if batch.num_rows))


class _Collected:
    """Rows in memory, which libraries take as an Arrow stream."""

    def __init__(self, batches: Batches | ScanBatches, rows: int | None = None) -> None:
        self._stream = collect(batches, rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        del requested_schema  # as the interface allows
        return self._stream


def need(package: str, use: str) -> None:
    """Refuses where a package is not installed.

    Raises:
        ImportError: it is not.
    """
    if find_spec(package) is None:
        raise ImportError(f"{use} needs {package}: pip install {package}")


def to_table(batches: Batches | ScanBatches) -> pyarrow.Table:
    """Returns all rows as a table."""
    need("pyarrow", "to_table")
    import pyarrow as pa

    return pa.table(cast("Any", _Collected(batches)))


def head(batches: Batches | ScanBatches, rows: int) -> pyarrow.Table:
    """Returns the first rows as a table."""
    need("pyarrow", "head")
    import pyarrow as pa

    return pa.table(cast("Any", _Collected(batches, rows)))


def to_pandas(batches: Batches | ScanBatches) -> pandas.DataFrame:
    """Returns all rows as a data frame of pandas."""
    need("pandas", "to_pandas")
    table: Any = to_table(batches)
    return table.to_pandas()


def to_polars(batches: Batches | ScanBatches) -> polars.DataFrame:
    """Returns all rows as a data frame of polars."""
    need("polars", "to_polars")
    import polars as pl

    return pl.DataFrame(_Collected(batches))
