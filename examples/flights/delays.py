"""A question with an answer: which airline comes late, and by how much?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from .checks import Check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = """
SELECT flight.carrier                       AS carrier,
       count(flight.arr_delay)              AS flights,
       sum(flight.arr_delay)                AS total_minutes,
       avg(flight.arr_delay)                AS mean_minutes
FROM   (SELECT from_json(CAST(value AS STRING), 'carrier STRING, arr_delay INT') AS flight
        FROM   parquet.`{records}`
        WHERE  type IN ('flight.arrived', 'flight.delayed'))
GROUP  BY flight.carrier
ORDER  BY mean_minutes
"""


class CarrierDelay(NamedTuple):
    """One airline: its code, how many flights arrived, the sum and the mean of their delays in minutes."""

    carrier: str
    flights: int
    total_minutes: int
    mean_minutes: float


def delays_by_sql(spark: SparkSession, records: Path) -> list[CarrierDelay]:
    """The answer from what was ingested: Spark SQL over the Parquet files in the folder `records`."""
    rows = spark.sql(QUERY.format(records=records.resolve().as_posix())).collect()
    return [CarrierDelay(*row) for row in rows]


def delays_by_table(flights: pd.DataFrame) -> list[CarrierDelay]:
    """The same from the rows of the public table, without any of the machinery in between."""
    grouped = flights.dropna(subset=["arr_delay"]).groupby("carrier")["arr_delay"].agg(["count", "sum", "mean"])
    rows = [CarrierDelay(str(code), int(n), int(total), float(mean)) for code, n, total, mean in grouped.itertuples()]
    return sorted(rows, key=lambda delay: delay.mean_minutes)


def same_answer(by_sql: list[CarrierDelay], by_table: list[CarrierDelay]) -> Check:
    """Both answers are equal: not nearly, but to the last bit, since they are sums of whole minutes."""
    flights = sum(delay.flights for delay in by_sql)
    counted = f"{len(by_sql)} airlines, {flights:,} arrivals"
    detail = counted if by_sql == by_table else f"SQL {by_sql}, table {by_table}"
    return Check("SQL over the lake and the public table give the same answer", by_sql == by_table, detail)
