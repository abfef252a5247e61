"""Two ways to do one thing, in turns, and the median of their ratios: what else the machine does hits both alike."""

from __future__ import annotations

import json
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypedDict

ROUNDS: Final = 7
MIN_SECONDS: Final = 0.05
"""One measurement lasts at least so long: what is shorter is repeated within it."""
MILLIONS: Final = "M/s"
"""The unit of rates that are told in millions of items a second; in any other they are told as they are."""
COSTS: Final = frozenset({"s", "MiB"})
"""The units of what is the better the less it is."""


class Row(TypedDict):
    """One line of the table."""

    name: str
    beside: str
    unit: str
    ours: float
    reference: float
    ratio: float
    target: float | None
    holds: bool | None


class Suite:
    """The comparisons of one suite, told in items a second by `clock`.

    Without another clock that is the time that the process is on a processor, rather than time that passes: it is of
    one thread, or of all that a peer starts. Where other processes do the work, the clock has to be of theirs.
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
        ours: tuple[Callable[[], object], int],
        theirs: tuple[Callable[[], object], int],
        target: float | None = None,
        unit: str = MILLIONS,
    ) -> None:
        """Measures ours beside theirs, each with the number of items that one run works on."""
        rates: list[tuple[float, float]] = []
        repeats = [max(1, math.ceil(MIN_SECONDS / max(self._seconds(run, 1), 1e-9))) for run, _ in (ours, theirs)]
        for _ in range(self._rounds):
            own, other = (
                items / self._seconds(run, times) for (run, items), times in zip((ours, theirs), repeats, strict=True)
            )
            rates.append((own, other))
        self.add(name, beside, rates, target, unit)

    def add(
        self,
        name: str,
        beside: str,
        found: Sequence[tuple[float, float]],
        target: float | None = None,
        unit: str = MILLIONS,
    ) -> None:
        """Adds a row for what was measured in turns, ours and theirs: items a second, or what something costs."""
        ratio = statistics.median(other / own if unit in COSTS else own / other for own, other in found)
        scale = 1e6 if unit == MILLIONS else 1.0
        row: Row = {
            "name": name,
            "beside": beside,
            "unit": unit,
            "ours": statistics.median(own for own, _ in found) / scale,
            "reference": statistics.median(other for _, other in found) / scale,
            "ratio": ratio,
            "target": target,
            "holds": None if target is None else ratio >= target,
        }
        self._rows.append(row)
        told = "" if target is None else f"  target {target:.2f}{'' if row['holds'] else '  MISSED'}"
        print(
            f"{name:<44} {row['ours']:>9.3f} {row['unit']:<5} {beside:<34} {row['reference']:>9.3f}"
            f"  ratio {ratio:>7.2f}{told}",
            flush=True,
        )

    def finish(self) -> None:
        """Writes what was found into the folder SEGLAKE_RATIOS, if that is set."""
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
