"""Oplog: what three writers of one autobase appended, one for each airport; `examples/autobase` has their files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from ..damage import Damage, tear_tail
from ..layout import Layout
from ..messages import AIRPORTS, partition
from .segment import Segment

ORIGINALS = Path(__file__).parents[2] / "autobase"
DIALECT = "autobase"
MONTH = "2013-01"
KEY_BYTES = 32


class Oplog(Segment):
    """The first flights of January from one airport, among them messages with which the writers speak to each other."""

    format = "oplog"
    extension = "oplog"
    columns: ClassVar = ["seq", "value"]

    @classmethod
    def of_months(cls, folder: Path, months: Mapping[str, pa.Table]) -> Sequence[Self]:
        """One file for each airport."""
        return [cls(folder, airport, _messages(airport, months[MONTH])) for airport in AIRPORTS]

    def write(self) -> None:
        """The file is the npm package's, so it is only copied."""
        shutil.copyfile(_original(self.name), self.path)

    def locate(self) -> Layout:
        """The file is messages, each behind its length."""
        ends = np.array([end for end, _ in _framed(_original(self.name).read_bytes())])
        return Layout.of_records(0, np.diff(ends, prepend=0))

    def plan(self) -> Damage | None:
        """The file ends in the middle of the last flight; with it go the messages behind."""
        if self.name != "JFK":
            return None
        flights = self.messages["offset"].is_valid().to_numpy()
        return tear_tail(self.layout, int(np.flatnonzero(flights)[-1]), "the tail torn off in mid-message")


def _original(airport: str) -> Path:
    return ORIGINALS / f"{airport}.oplog"


def _messages(airport: str, month: pa.Table) -> pa.Table:
    """What is in an airport's oplog. Raises `RuntimeError` if its flights are not the first ones of the month."""
    values = [_value(message) for _, message in _framed(_original(airport).read_bytes())]
    # A message without a value is an acknowledgement, one of exactly a key's length adds a writer.
    is_flight = [value is not None and len(value) != KEY_BYTES for value in values]
    departures = month.filter(pa.array(month["partition"].to_numpy() == partition(airport)))
    flights = departures.slice(0, sum(is_flight))
    if [value for value, flight in zip(values, is_flight, strict=True) if flight] != flights["value"].to_pylist():
        raise RuntimeError(f"{_original(airport)}: expected the first flights from {airport} of {MONTH}, got others")
    numbers = iter(flights["offset"].to_pylist())
    offsets = [next(numbers) if flight else None for flight in is_flight]
    columns = {"seq": pa.array(range(len(values))), "value": values, "offset": pa.array(offsets, pa.int64())}
    return pa.table(columns)


def _framed(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each message of a file, and the offset of its end."""
    end = 0
    while end < len(data):
        length, start = _uint(data, end)
        end = start + length
        yield end, data[start:end]


def _value(message: bytes) -> bytes | None:
    """The value of a message of version 2: version, clock (keys and lengths), batch, value and more."""
    _version, at = _uint(message, 0)
    heads, at = _uint(message, at)
    for _ in range(heads):
        _length, at = _uint(message, at + KEY_BYTES)
    _batch, at = _uint(message, at)
    length, at = _uint(message, at)
    return message[at : at + length] or None


def _uint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and the offset behind it: a byte, or 0xfd, 0xfe, 0xff and then 2, 4, 8, little-endian."""
    if data[at] < 0xFD:
        return data[at], at + 1
    end = at + 1 + (2 << data[at] - 0xFD)
    return int.from_bytes(data[at + 1 : end], "little"), end
