"""Kills processes of `seglake ingest --engine spark` at random moments, and compares its tables with whole runs'.

    python -m tests.ingest_kills --kills 30

In each round the sources grow: new files, more records, damage. One ingest of them is let run to its end, in another
lake. The other one runs in a session of processes of its own, with Spark's executors in the JVM of the driver or as
processes of a cluster. One of its processes is killed: the Python of the driver, its JVM, an executor, or a Python that
runs tasks. Then the ingest is run again, sometimes while what is left of the killed one is still at work. Both lakes
must then have the same rows, for DuckDB and polars after each round, and for Spark in the end. A failure names its
seed; moments differ from run to run, since they are those of the machine.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import polars as pl

import seglake
from seglake.lake.parquet import STAGING
from tests.killed import Processes

sys.path.append(str(Path(__file__).with_name("spark")))
import clusters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTERS: Final = ("local[2]", "local-cluster[2,1,1024]")
_PATIENCE_S: Final = 300.0
_FILES: Final = 6
_RECORDS: Final = 300
_YOUNG_S: Final = 3600.0
_MODIFIED_S: Final = 1_700_000_000
# An ingest that found damage has this status, and one that found none 0.
_ENDED: Final = (0, 1)
# A run is killed this soon after one of its steps, at the latest.
_AFTER_S: Final = {
    "": 6.0,
    f"{STAGING}/*": 2.0,
    f"{STAGING}/*/*": 1.0,
    "_log/*.json": 0.02,
}


class Sources:
    """Files of several formats, which grow from round to round."""

    def __init__(self, folder: Path, chosen: random.Random) -> None:
        self.folder = folder
        self._chosen = chosen
        self._active: list[Path] = []
        folder.mkdir()

    def grow(self, number: int) -> None:
        """Adds files, and records to those that grow; damages and seals some."""
        chosen = self._chosen
        for own in range(_FILES):
            path = self.folder / f"{number:03}-{own}.active"
            self._append(path)
            self._active.append(path)
        for path in chosen.sample(self._active, min(len(self._active), _FILES)):
            self._append(path)
        sealed = self._active.pop(chosen.randrange(len(self._active)))
        seglake.seal(sealed, sealed.with_suffix(".sealed"))
        sealed.unlink()
        with seglake.create(self.folder / "all.chunks", format="chunked", if_exists="append") as writer:
            for offset in range(number * _RECORDS, (number + 1) * _RECORDS):
                writer.write(offset=offset, value=bytes(50))
        damaged = self.folder / f"{number:03}-damaged.active"
        self._append(damaged)
        content = bytearray(damaged.read_bytes())
        content[chosen.randrange(len(content))] ^= 1
        damaged.write_bytes(content)
        for path in self.folder.iterdir():
            if time.time() - path.stat().st_mtime < _YOUNG_S:
                # Young files are looked at again, and say so in their rows.
                os.utime(path, (_MODIFIED_S + number, _MODIFIED_S + number))

    def _append(self, path: Path) -> None:
        with seglake.create(path, format="active", if_exists="append") as writer:
            for _ in range(self._chosen.randint(1, _RECORDS)):
                writer.write(type="t", value=self._chosen.randbytes(self._chosen.randint(0, 100)))


class Ingest(Processes):
    """The command that is killed."""

    def __init__(self, sources: Path, lake: Path, folder: Path) -> None:
        super().__init__(folder / "ingest.log")
        self.lake = lake
        self._sources = sources
        self._variables = clusters.environment(folder, {})

    def run(self, master: str) -> subprocess.Popen[bytes]:
        """Starts it."""
        command = [sys.executable, "-m", "seglake", "ingest", str(self._sources), str(self.lake)]
        command += ["--engine", "spark", "--master", master]
        for name, value in {**clusters.QUICK, **clusters.EXECUTOR_OPTIONS}.items():
            command += ["--conf", f"{name}={value}"]
        return self.start(command, **self._variables)

    def killed(self, chosen: random.Random, process: subprocess.Popen[bytes]) -> str | None:
        """Kills one of its processes some time after some step; None if it has ended before."""
        step = chosen.choice(list(_AFTER_S))
        before = {str(path) for path in self.lake.glob(step)} if step else set[str]()
        while step and {str(path) for path in self.lake.glob(step)} <= before:
            if process.poll() is not None:
                return None
            time.sleep(0.001)
        time.sleep(_AFTER_S[step] * chosen.random())
        return self.kill_one(chosen) if process.poll() is None else None


def ended(process: subprocess.Popen[bytes], ingest: Ingest) -> int:
    """Waits for the end of an ingest. Returns its status."""
    try:
        return process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"the ingest does not end: {ingest.said()}") from None


def tables(lake: Path) -> list[str]:
    """Returns the tables of a lake but for `runs`: runs differ in number."""
    return sorted({path.name for path in lake.glob("[!_.]*")} - {"runs"})


def in_duckdb(expected: Path, found: Path) -> list[Any]:
    """Returns rows that one of two tables has and the other lacks."""
    with duckdb.connect() as connection:
        for name, folder in (("expected", expected), ("found", found)):
            columns = "* EXCLUDE (run)" if folder.name in ("damage", "files") else "*"
            source = f"read_parquet('{folder}/**/*.parquet', union_by_name=true)"
            connection.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM {source}")
        both = ("FROM expected EXCEPT ALL FROM found", "FROM found EXCEPT ALL FROM expected")
        return [row for query in both for row in connection.execute(query).fetchall()]


def in_polars(expected: Path, found: Path) -> list[Any]:
    """Does the same by polars."""
    counted: list[Counter[str]] = []
    for folder in (expected, found):
        frame = pl.read_parquet(f"{folder}/**/*.parquet", hive_partitioning=True)
        counted.append(Counter(map(repr, frame.select(pl.exclude("run")).iter_rows())))
    return [*(counted[0] - counted[1]), *(counted[1] - counted[0])]


def in_spark(spark: SparkSession) -> Callable[[Path, Path], list[Any]]:
    """Does the same by Spark."""

    def differences(expected: Path, found: Path) -> list[Any]:
        one, other = (spark.read.parquet(str(folder)).drop("run") for folder in (expected, found))
        return [*one.exceptAll(other).take(5), *other.exceptAll(one).take(5)]

    return differences


def compare(expected: Path, found: Path, differences: Callable[[Path, Path], list[Any]]) -> None:
    """Compares all tables of two lakes.

    Raises:
        AssertionError: they differ.
    """
    assert tables(expected) == tables(found), f"expected {tables(expected)}, found {tables(found)}"
    for table in tables(expected):
        rows = differences(expected / table, found / table)
        assert not rows, f"{table} differs in rows such as {rows[:3]}"


def kill_and_compare(
    kills: int, seed: int, folder: Path, *, masters: Sequence[str] = MASTERS, on_spark: bool = True
) -> dict[str, Any]:
    """Kills ingests, runs them again, and compares. Leaves the lakes `expected` and `found` in the folder.

    Args:
        kills: how many processes are killed.
        seed: what is written and killed depends on it.
        folder: an empty folder.
        masters: those of Spark.
        on_spark: whether Spark runs an ingest again, too.

    Raises:
        AssertionError: the tables differ, or an ingest that nobody killed failed.
    """
    chosen = random.Random(seed)
    sources = Sources(folder / "sources", chosen)
    expected, found = folder / "expected", folder / "found"
    killed: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    left: list[Ingest] = []
    own = folder / "own"
    own.mkdir()
    number = 0
    try:
        while killed.total() < kills:
            number += 1
            sources.grow(number)
            seglake.ingest(sources.folder, expected)
            (own / str(number)).mkdir()
            ingest = Ingest(sources.folder, found, own / str(number))
            left.append(ingest)
            master = chosen.choice(masters)
            process = ingest.run(master)
            kind = ingest.killed(chosen, process)
            if kind is not None:
                killed[f"{kind} of {master}"] += 1
            if kind in (None, "executor", "python") or chosen.random() < 0.5:
                # Spark may start a task again, and then the ingest ends as ever.
                status = ended(process, ingest)
                statuses["ended as ever" if status in _ENDED else "failed"] += 1
                assert kind is not None or status in _ENDED, ingest.said()
                ingest.end()
            elif kind == "jvm":
                ended(process, ingest)
            if on_spark:
                again(ingest, sources.folder, found, own / f"{number}-again")
            else:
                seglake.ingest(sources.folder, found)
            compare(expected, found, in_duckdb)
            compare(expected, found, in_polars)
    finally:
        for each in left:
            each.end()
    return {"killed": dict(killed), "rounds": number, **statuses}


def again(before: Ingest, sources: Path, lake: Path, folder: Path) -> None:
    """Runs an ingest again, to its end."""
    folder.mkdir()
    ingest = Ingest(sources, lake, folder)
    try:
        status = ended(ingest.run(MASTERS[0]), ingest)
        assert status in _ENDED, f"{ingest.said()}; before: {before.said()}"
    finally:
        ingest.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    from seglake.spark.session import session

    with tempfile.TemporaryDirectory() as name:
        begun, folder = time.monotonic(), Path(name)
        found = kill_and_compare(given.kills, given.seed, folder)
        with session("local[2]", clusters.QUICK) as spark:
            compare(folder / "expected", folder / "found", in_spark(spark))
    print(f"{found}, {time.monotonic() - begun:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
