"""Measures Spark's processes: processor time and memory of a JVM and of the Python workers that it starts (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Peak", "peaks", "processor_seconds", "reset_peaks"]

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Peak:
    """The most memory that the JVM and that any one Python worker had in use at a time, in bytes."""

    jvm: int
    worker: int


def processor_seconds() -> float:
    """Processor time of all processes below this one, with those of theirs that have ended; not this one's."""
    ticks = 0
    for process in _descendants():
        try:
            # After the name, which may contain anything: fields 14 to 17 are utime, stime, cutime and cstime.
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended, and is in its parent's count
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS


def reset_peaks() -> None:
    """Resets the peaks."""
    for process in _descendants():
        (process / "clear_refs").write_text("5")


def peaks() -> Peak:
    """The peaks of the running processes since `reset_peaks`."""
    jvm = worker = 0
    for process in _descendants():
        lines = (process / "status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines)
        if "VmHWM" not in status:
            continue
        peak = int(status["VmHWM"].split()[0]) << 10
        if status["Name"].strip() == "java":
            jvm = max(jvm, peak)
        else:
            worker = max(worker, peak)
    return Peak(jvm, worker)


def _descendants() -> Iterator[Path]:
    parents: dict[int, int] = {}
    for process in _PROC.iterdir():
        if process.name.isdigit():
            try:
                parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    for process in parents:
        above = process
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and process != above:
            yield _PROC / str(process)
