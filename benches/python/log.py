"""Batches that Python writes to a log, compared with the same batches that Rust writes, by the clock on the wall."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
from _interleaved import ROUNDS, Suite

import seglake

ROOT: Final = Path(__file__).resolve().parents[2]
BINARY: Final = Path(os.environ.get("SEGLAKE_RATIOS_BINARY", ROOT / "target" / "ratios" / "release" / "seglake-ratios"))
"""What writes the batches of Rust: `make bench` builds it there."""
TYPE: Final = "order.created"
VALUE_BYTES: Final = 128
BATCHES: Final = 300
RECORDS: Final = 1000
"""The records of each batch."""
TARGET: Final = 0.5

Durability = Literal["fsync", "none"]


def pairs() -> list[tuple[str, bytes]]:
    """A batch as pairs of type and value, each of which is an object of its own."""
    return [(TYPE, bytes([number % 256]) * VALUE_BYTES) for number in range(RECORDS)]


def table() -> pa.RecordBatch:
    """The same batch in Arrow."""
    types, values = zip(*pairs(), strict=True)
    return pa.record_batch({"type": pa.array(types), "value": pa.array(values, pa.binary())})


def python(folder: Path, durability: Durability, batch: Any) -> float:
    """Returns the records a second of this process."""
    with seglake.SegmentLog(folder, durability=durability, segment_bytes=1 << 40) as log:
        begun = time.perf_counter()
        for _ in range(BATCHES):
            log.write_batch(batch)
        return BATCHES * RECORDS / (time.perf_counter() - begun)


def rust(folder: Path, durability: Durability) -> float:
    """Returns the records a second of the program in Rust."""
    arguments = ["--log-batches", folder, durability, str(BATCHES), str(RECORDS)]
    done = subprocess.run([BINARY, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def compare(suite: Suite, name: str, durability: Durability, make: Callable[[], Any]) -> None:
    """Measures both in turns, each into a new log."""
    batch = make()
    rates: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            own = python(Path(folder) / "own", durability, batch)
            rates.append((own, rust(Path(folder) / "other", durability)))
    suite.add(f"batches of {RECORDS} from Python, {name}, {durability}", "from Rust", rates, TARGET, kind="itself")


def main() -> None:
    """Measures, and writes the results."""
    suite = Suite("python_log", time.perf_counter)
    for durability in ("none", "fsync"):
        compare(suite, "tuples", durability, pairs)
        compare(suite, "Arrow", durability, table)
    suite.finish()


if __name__ == "__main__":
    main()
