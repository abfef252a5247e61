"""Flights as messages: a UUID from the scheduled departure, a type from what happened, the row as JSON.

A message has what any of the formats keeps of it; each format takes its columns.
"""

from __future__ import annotations

from uuid import UUID

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

# 100 ns ticks from the first day of the Gregorian calendar (1582-10-15), where UUID time begins, to 1970-01-01.
GREGORIAN_TO_UNIX_TICKS = 0x01B2_1DD2_1381_4000

# The node of every UUID here. Its first byte is odd, which says that it is nobody's network card (RFC 9562, 6.10).
NODE = int.from_bytes(b"\x01nyc13", "big")

# The US Department of Transportation counts a flight as delayed from this many minutes on.
DELAYED_MINUTES = 15

FIELDS = [
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "sched_dep_time",
    "dep_time",
    "dep_delay",
    "sched_arr_time",
    "arr_time",
    "arr_delay",
    "air_time",
    "distance",
]

# New York's airports. A flight's partition is the number of the one that it leaves from, counted from 1.
AIRPORTS = ["EWR", "JFK", "LGA"]

SCHEMA = pa.schema(
    [
        ("offset", pa.int64()),  # the number of the flight in the year, from 0
        ("uuid", pa.string()),
        ("timestamp", pa.timestamp("us", tz="UTC")),  # of the scheduled departure
        ("type", pa.string()),
        ("partition", pa.int64()),
        ("tenant", pa.string()),  # the airline
        ("value", pa.binary()),
    ]
)


def in_segment_order(flights: pd.DataFrame) -> pd.DataFrame:
    """The flights in the order of their messages: by scheduled departure, then by who flies from where."""
    return flights.sort_values(["scheduled", "carrier", "flight", "origin"], ignore_index=True)


def messages_by_month(ordered: pd.DataFrame) -> dict[str, pa.Table]:
    """The messages of each month (New York's, `"2013-01"` and so on), one for each row of `ordered`, in the same order.

    `ordered` comes from `in_segment_order`. Every table has the columns of `SCHEMA`, and its UUIDs ascend strictly.
    """
    columns = {
        "offset": pa.array(range(len(ordered))),
        "uuid": _uuids(ordered),
        "timestamp": pa.array(ordered["scheduled"], pa.timestamp("us", tz="UTC")),
        "type": _types(ordered),
        "partition": pa.array(ordered["origin"].map(partition)),
        "tenant": pa.array(ordered["carrier"], pa.string()),
        "value": _values(ordered),
    }
    messages = pa.table(columns, schema=SCHEMA)
    months = (ordered["year"] * 100 + ordered["month"]).value_counts(sort=False).sort_index()
    result: dict[str, pa.Table] = {}
    # The order in UTC is also the order in New York, so that a month is one run of rows.
    first = 0
    for month, count in months.items():
        result[f"{month // 100}-{month % 100:02}"] = messages.slice(first, count)
        first += count
    return result


def partition(airport: str) -> int:
    """The partition of flights from an airport: `"EWR"` is 1."""
    return AIRPORTS.index(airport) + 1


def pack_uuids(ticks: npt.NDArray[np.uint64], sequence: npt.NDArray[np.uint64]) -> npt.NDArray[np.void]:
    """UUIDs of version 6: the 100 ns `ticks` since 1582-10-15, most significant bits first, then a 14-bit `sequence`.

    Raises `ValueError` if a sequence does not fit its 14 bits.
    """
    if sequence.size and int(sequence.max()) >= 1 << 14:
        raise ValueError(f"the clock sequence of a UUID has 14 bits, {int(sequence.max())} needs more")
    words = np.empty((ticks.size, 2), dtype=">u8")
    words[:, 0] = (ticks >> np.uint64(12)) << np.uint64(16) | np.uint64(0x6000) | ticks & np.uint64(0xFFF)
    words[:, 1] = np.uint64(0x8000_0000_0000_0000) | sequence << np.uint64(48) | np.uint64(NODE)
    return words.view("V16").reshape(-1)


def _uuids(flights: pd.DataFrame) -> pa.Array:
    """Up to 28 flights leave in the same minute: the clock sequence numbers them, so that the UUIDs ascend strictly."""
    scheduled = flights["scheduled"]
    unix_us = scheduled.dt.tz_localize(None).to_numpy("datetime64[us]").view(np.int64)
    ticks = unix_us.astype(np.uint64) * np.uint64(10) + np.uint64(GREGORIAN_TO_UNIX_TICKS)
    same_minute = flights.groupby("scheduled").cumcount().to_numpy(np.uint64)
    packed = pack_uuids(ticks, same_minute)
    return pa.array([str(UUID(bytes=each.tobytes())) for each in packed], pa.string())


def _types(flights: pd.DataFrame) -> pa.Array:
    """What happened: it never left, it left and did not reach its destination, it came late, or it came."""
    kinds = np.full(len(flights), "flight.arrived", dtype=object)
    kinds[(flights["arr_delay"] >= DELAYED_MINUTES).fillna(value=False).to_numpy(bool)] = "flight.delayed"
    kinds[flights["arr_delay"].isna().to_numpy()] = "flight.diverted"
    kinds[flights["dep_time"].isna().to_numpy()] = "flight.cancelled"
    return pa.array(kinds, pa.string())


def _values(flights: pd.DataFrame) -> pa.Array:
    lines = flights[FIELDS].to_json(orient="records", lines=True)
    return pa.array(str(lines).splitlines(), pa.string()).cast(pa.binary())
