"""Keeps the ratios of runs in a file, one JSON object a line, and compares those of this run with earlier ones.

    make bench BENCH_ARGS="--history bench-history.jsonl"

Only runs on the same machine are compared: ratios differ by up to a third between machines.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypedDict

RUNS: Final = 10
"""The median is taken of so many runs, the last ones on the same machine."""
LEAST_RUNS: Final = 3
"""Fewer earlier runs do not show how much a ratio varies."""
MOVED: Final = 0.1
"""A ratio has moved if it is off the median by more than this share, and outside the range of the earlier ratios."""


class HistoryError(Exception):
    """A history cannot be read. The message says what to do."""


class Ratio(TypedDict):
    """The ratio of one row."""

    name: str
    beside: str
    ratio: float
    low: float
    high: float


class Run(TypedDict):
    """One run of `make bench`: a line of the file."""

    date: str
    """When it ended, in UTC."""
    commit: str | None
    """None where there is no repository."""
    machine: str
    rows: list[Ratio]


@dataclass(frozen=True)
class Move:
    """A ratio, and those of the same row in earlier runs, the oldest first."""

    name: str
    beside: str
    ratio: float
    earlier: tuple[float, ...]

    @property
    def median(self) -> float | None:
        """The median of the earlier ones; None for a row that is new."""
        return statistics.median(self.earlier) if self.earlier else None

    @property
    def change(self) -> float | None:
        """The relative distance from that median: 0.1 for a tenth more."""
        return None if self.median is None else self.ratio / self.median - 1

    @property
    def has_moved(self) -> bool:
        """Whether it is off by more than the noise of earlier runs."""
        if self.change is None or len(self.earlier) < LEAST_RUNS:
            return False
        outside = not min(self.earlier) <= self.ratio <= max(self.earlier)
        return outside and abs(self.change) > MOVED


def read(path: Path) -> list[Run]:
    """The runs of a history, the oldest first; none where there is no file.

    Raises:
        HistoryError: a line is not a run.
    """
    if not path.exists():
        return []
    runs: list[Run] = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        try:
            runs.append(run_of(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise HistoryError(f"{path}: line {number} is not a run ({error!r}): remove that line") from error
    return runs


def run_of(told: Any) -> Run:
    """A run as it was read from JSON.

    Raises:
        KeyError, TypeError, ValueError: the JSON is not a run.
    """
    rows: list[Ratio] = [
        {
            "name": str(row["name"]),
            "beside": str(row["beside"]),
            "ratio": float(row["ratio"]),
            "low": float(row["low"]),
            "high": float(row["high"]),
        }
        for row in told["rows"]
    ]
    return {"date": str(told["date"]), "commit": told["commit"], "machine": str(told["machine"]), "rows": rows}


def append(path: Path, run: Run) -> None:
    """Adds a run to a history in one step: an interrupted call leaves the file as it was."""
    before = path.read_text() if path.exists() else ""
    whole = path.with_name(f"{path.name}.new")
    whole.write_text(f"{before}{json.dumps(run)}\n")
    whole.replace(path)


def moves(runs: Sequence[Run], now: Run) -> Iterator[Move]:
    """Each ratio of this run beside those of the last runs on the same machine that measured it."""
    alike = [run for run in runs if run["machine"] == now["machine"]]
    for row in now["rows"]:
        key = (row["name"], row["beside"])
        earlier = [other["ratio"] for run in alike for other in run["rows"] if (other["name"], other["beside"]) == key]
        yield Move(*key, row["ratio"], tuple(earlier[-RUNS:]))
