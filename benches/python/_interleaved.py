"""Measures two ways to do one thing in turns, and takes the median of their ratios.

Other load on the machine slows both alike.
"""

from __future__ import annotations

import gc
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal, TypedDict

ROUNDS: Final = 8
"""An even number: each side goes first in half of the rounds."""
MIN_SECONDS: Final = 0.05
"""The shortest measurement in seconds: shorter work is repeated within it."""
MILLIONS: Final = "M/s"
"""The unit of rates in millions of items a second. Rates of other units are not converted."""
COSTS: Final = frozenset({"s", "MiB"})
"""The units of which less is better."""

Kind = Literal["limit", "peer", "itself", "goal"]
"""What seglake is compared with: the least work of any program, another program, itself, or a fixed number."""


class Row(TypedDict):
    """One line of the table."""

    name: str
    beside: str
    kind: Kind
    unit: str
    ours: float
    reference: float
    ratio: float
    """How many times as good seglake is: the median of all rounds."""
    low: float
    """The lower quartile of the rounds' ratios."""
    high: float
    """The upper quartile."""
    rounds: int
    target: float | None
    holds: bool | None


class Suite:
    """The comparisons of one suite, in items a second by `clock`.

    The default clock is the time that the process is on a processor, rather than time that passes: that of one
    thread, or of all threads that a peer starts. If other processes do the work, pass a clock of theirs.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.process_time, rounds: int = ROUNDS) -> None:
        self._name = name
        self._clock = clock
        self._rounds = rounds
        self._rows: list[Row] = []

    def compare(
        self,
        name: str,
        beside: str,
        ours: tuple[Callable[[], object], float],
        theirs: tuple[Callable[[], object], float],
        target: float | None = None,
        unit: str = MILLIONS,
        kind: Kind = "peer",
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        """Compares ours with theirs, each with the number of items of one run.

        The sides take turns in going first. `prepare` runs before each round and is not measured. The garbage collector
        runs as usual, but skips the objects that the suite holds.
        """
        prepare()
        gc.freeze()
        repeats = [max(1, math.ceil(MIN_SECONDS / max(self._seconds(run, 1), 1e-9))) for run, _ in (ours, theirs)]
        sides = list(zip((ours, theirs), repeats, strict=True))
        rates: list[tuple[float, float]] = []
        for number in range(self._rounds):
            prepare()
            gc.freeze()
            swapped = number % 2 == 1
            first, second = (
                items / self._seconds(run, times) for (run, items), times in (reversed(sides) if swapped else sides)
            )
            rates.append((second, first) if swapped else (first, second))
        gc.unfreeze()
        self.add(name, beside, rates, target, unit, kind)

    def add(
        self,
        name: str,
        beside: str,
        found: Sequence[tuple[float, float]],
        target: float | None = None,
        unit: str = MILLIONS,
        kind: Kind = "peer",
    ) -> None:
        """Adds a row for what was measured in turns, ours and theirs: items a second, or what something costs."""
        ratios = [other / own if unit in COSTS else own / other for own, other in found]
        ratio = statistics.median(ratios)
        low, high = quartiles(ratios)
        scale = 1e6 if unit == MILLIONS else 1.0
        row: Row = {
            "name": name,
            "beside": beside,
            "kind": kind,
            "unit": unit,
            "ours": statistics.median(own for own, _ in found) / scale,
            "reference": statistics.median(other for _, other in found) / scale,
            "ratio": ratio,
            "low": low,
            "high": high,
            "rounds": len(ratios),
            "target": target,
            "holds": None if target is None else ratio >= target,
        }
        self._rows.append(row)
        goal = "" if target is None else f"  target {target:.2f}{'' if row['holds'] else '  MISSED'}"
        print(
            f"{name:<44} {row['ours']:>9.3f} {row['unit']:<5} {beside:<44} {row['reference']:>9.3f}"
            f"  ratio {ratio:>7.2f} ({low:.2f} to {high:.2f}){goal}",
            flush=True,
        )

    def finish(self) -> None:
        """Writes the rows into the folder SEGLAKE_RATIOS, if that is set."""
        if folder := os.environ.get("SEGLAKE_RATIOS"):
            path = Path(folder) / f"{self._name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(self._rows, indent=2) + "\n")

    def _seconds(self, run: Callable[[], object], times: int) -> float:
        """How long one run takes, of so many in a row."""
        begun = self._clock()
        for _ in range(times):
            run()
        return (self._clock() - begun) / times


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """The lower and the upper quartile, interpolated between two values."""
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, method="inclusive")
    return low, high
