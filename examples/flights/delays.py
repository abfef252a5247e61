"""A question with an answer: which airline comes late, and by how much?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from .checks import Check
from .formats import Segment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = """
SELECT format,
       flight.carrier                       AS carrier,
       count(flight.arr_delay)              AS flights,
       sum(flight.arr_delay)                AS total_minutes,
       avg(flight.arr_delay)                AS mean_minutes
FROM   (SELECT format, from_json(CAST(value AS STRING), 'carrier STRING, arr_delay INT') AS flight
        FROM   ({records}))
WHERE  flight.arr_delay IS NOT NULL
GROUP  BY format, flight.carrier
ORDER  BY mean_minutes, carrier
"""


class CarrierDelay(NamedTuple):
    """One airline: its code, how many flights arrived, the sum and the mean of their delays in minutes."""

    carrier: str
    flights: int
    total_minutes: int
    mean_minutes: float


def delays_by_sql(spark: SparkSession, records: Mapping[str, Path]) -> dict[str, list[CarrierDelay]]:
    """The answer for each format: Spark SQL over the Parquet files of its records."""
    tables = [f"SELECT '{name}' AS format, value FROM parquet.`{path.resolve()}`" for name, path in records.items()]
    answers: dict[str, list[CarrierDelay]] = {name: [] for name in records}
    for name, *delay in spark.sql(QUERY.format(records=" UNION ALL ".join(tables))).collect():
        answers[name].append(CarrierDelay(*delay))
    return answers


def delays_by_table(flights: pd.DataFrame) -> list[CarrierDelay]:
    """The same from the rows of the public table, without any of the machinery in between."""
    grouped = flights.dropna(subset=["arr_delay"]).groupby("carrier")["arr_delay"].agg(["count", "sum", "mean"])
    rows = [CarrierDelay(str(code), int(n), int(total), float(mean)) for code, n, total, mean in grouped.itertuples()]
    return sorted(rows, key=lambda delay: (delay.mean_minutes, delay.carrier))


def undamaged(ordered: pd.DataFrame, segments: Sequence[Segment]) -> pd.DataFrame:
    """Those rows of the public table that the segments hold, without those that are lost."""
    return ordered.loc[np.concatenate([segment.records["offset"].drop_null().to_numpy() for segment in segments])]


def same_answer(by_sql: list[CarrierDelay], by_table: list[CarrierDelay]) -> Check:
    """Both answers are equal: not nearly, but to the last bit, since they are sums of whole minutes."""
    arrivals = sum(delay.flights for delay in by_sql)
    detail = f"{arrivals:,}" if by_sql == by_table else f"SQL {by_sql}, table {by_table}"
    return Check("SQL over the lake and the public table give the same answer", by_sql == by_table, detail)
