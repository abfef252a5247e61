"""Many trials, and what they add up to."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

from . import index_trial
from .judge import Verdict
from .layouts import LAYOUTS
from .peers.trial import PEER_NAMES
from .trial import Trial
from .worker import Worker

MANY = 20_000
"""Messages of a file in which one bit is flipped, ours and the peers'."""

EXAMPLES = 5


def every_kind(layouts: Iterable[str], kinds: Iterable[str], seeds: Iterable[int]) -> Iterator[Trial]:
    """Small files, each damaged in each way."""
    layouts, kinds = list(layouts), list(kinds)
    return (Trial(layout, kind, seed) for seed in seeds for layout in layouts for kind in kinds)


def one_flip(names: Iterable[str], seeds: Iterable[int]) -> Iterator[Trial]:
    """Large files with one bit flipped."""
    names = list(names)
    return (Trial(name, "flip", seed, MANY) for seed in seeds for name in names)


def small_names() -> list[str]:
    """What small files there are: each layout's, and the index of a chunked log."""
    return [*LAYOUTS, index_trial.NAME]


def large_names() -> list[str]:
    """Each layout whose large files bear damage in a way of their own."""
    return [name for name in LAYOUTS if name not in ("active-preallocated", "active-nested")]


@dataclass
class Share:
    """Shares of records, each trial's as much as any other's."""

    total: float = 0
    trials: int = 0
    worst: float = 1
    worst_trial: str = ""

    def add(self, part: int, whole: int, trial: str) -> None:
        """Count one trial; one in which there was nothing to give back does not count."""
        if whole:
            share = part / whole
            self.total += share
            self.trials += 1
            if share < self.worst:
                self.worst, self.worst_trial = share, trial

    @property
    def mean(self) -> float:
        """The mean of all; 1 where there was none."""
        return self.total / self.trials if self.trials else 1


@dataclass
class Tally:
    """What the trials of one layout, or of one peer, add up to. Numbers are of trials."""

    name: str
    trials: int = 0
    silent: int = 0
    crashes: int = 0
    faults: int = 0
    lost: int = 0
    undetectable: int = 0
    strangers: int = 0
    barred: int = 0
    errors: int = 0
    good: Share = field(default_factory=Share)
    """Of the records of which every byte that they need is whole, those returned."""
    reachable: Share = field(default_factory=Share)
    """The same without those that the rules of the format do not return either."""
    all: Share = field(default_factory=Share)
    """Of all records, those returned."""
    by_kind: dict[str, Share] = field(default_factory=dict[str, Share])
    """As `good`, for each kind of damage."""
    with_sidecar: Share = field(default_factory=Share)
    """Of all records, those returned with `on_damage="repair"` if the file has a parity sidecar."""
    restored: Share = field(default_factory=Share)
    """Of the files, those that `repair` restored."""
    restored_by_kind: dict[str, Share] = field(default_factory=dict[str, Share])
    """The same for each kind of damage."""
    examples: list[str] = field(default_factory=list[str])
    """Trials in which something is wrong, and what."""

    def add(self, trial: Trial, verdict: Verdict) -> None:
        """Count one trial."""
        name = str(trial)
        self.trials += 1
        self.silent += bool(verdict.silent)
        self.crashes += verdict.crash is not None
        self.faults += bool(verdict.faults)
        self.lost += bool(verdict.lost)
        self.undetectable += bool(verdict.undetectable)
        self.strangers += bool(verdict.strangers)
        self.barred += bool(verdict.barred)
        self.errors += verdict.error is not None
        self.good.add(verdict.kept, verdict.good, name)
        self.reachable.add(verdict.kept, verdict.good - verdict.barred, name)
        self.all.add(verdict.right, verdict.records, name)
        self.by_kind.setdefault(trial.kind, Share()).add(verdict.kept, verdict.good, name)
        if verdict.restored is not None:
            self.with_sidecar.add(verdict.restored.right, verdict.records, name)
            self.restored.add(verdict.restored.whole, 1, name)
            self.restored_by_kind.setdefault(trial.kind, Share()).add(verdict.restored.whole, 1, name)
        if not verdict.ok and len(self.examples) < EXAMPLES:
            what = [verdict.crash or "", *verdict.silent, *verdict.lost, *verdict.faults]
            self.examples.append(f"{name}: {next(filter(None, what))}")

    @property
    def is_ours(self) -> bool:
        """Whether this library's format is tried, and not a peer."""
        return self.name not in PEER_NAMES

    @property
    def is_checked(self) -> bool:
        """Whether the format has checksums."""
        return self.name not in LAYOUTS or LAYOUTS[self.name].checked

    def failures(self, *, target: float = 0) -> list[str]:
        """Why the campaign fails, if it does. Peers cannot fail it."""
        if not self.is_ours:
            return []
        found = [
            f"{self.name}: {number} trials with {what}"
            for number, what in (
                (self.silent, "silent errors"),
                (self.crashes, "crashes"),
                (self.faults, "faults"),
                (self.lost, "sound records lost"),
            )
            if number
        ]
        if self.is_checked and self.reachable.worst < target:
            worst = self.reachable
            found.append(f"{self.name}: {worst.worst:.2%} of the sound records in {worst.worst_trial}")
        return found


def run(
    trials: Iterable[Trial],
    worker: Worker,
    *,
    seconds: float | None = None,
    progress: Callable[[Trial, int], None] = lambda trial, number: None,
) -> dict[str, Tally]:
    """Run trials until they end or the time is over, and add them up by layout. Each has its turn at least once.

    Ctrl-C ends them early. `progress` is called before each trial, with how many there were.
    """
    tallies: dict[str, Tally] = {}
    end = None if seconds is None else time.monotonic() + seconds
    first_round: int | None = None
    with contextlib.suppress(KeyboardInterrupt):
        for number, trial in enumerate(trials):
            first_round = trial.seed if first_round is None else first_round
            if end is not None and trial.seed != first_round and time.monotonic() > end:
                break
            progress(trial, number)
            verdict = worker.perform(str(trial))
            tallies.setdefault(trial.layout, Tally(trial.layout)).add(trial, verdict)
    return tallies


def seeds(first: int, rounds: int | None) -> Iterable[int]:
    """So many seeds, or without end."""
    return count(first) if rounds is None else range(first, first + rounds)
