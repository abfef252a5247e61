"""Kills processes of a Spark stream at random moments while its source is written to, and looks for what is lost.

    python -m tests.stream_kills --kills 30 --source log
    python -m tests.stream_kills --kills 30 --source files
    python -m tests.stream_kills --kills 30 --source both

With `both`, one query reads a log and files. The query runs in a session of processes of its own. A victim is one of
these, at random: the Python of the driver, the JVM, or another Python, which plans batches or reads them. Then the
query is started again with the same checkpoint. In the end the table has to have each number that the writer was told
is on the disk, once. A failure names its seed; moments differ from run to run, since they are those of the machine.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import reduce
from pathlib import Path
from typing import Any, Final

import seglake
from seglake import SegmentLog
from tests.killed import Processes

sys.path.append(str(Path(__file__).with_name("spark")))
from clusters import QUICK

SOURCES: Final = {"log": ("log",), "files": ("files",), "both": ("log", "files")}
_SEGMENT_BYTES: Final = 5_000
_PAUSE_S: Final = 0.2
# A query that does not get on for so long has failed.
_PATIENCE_S: Final = 300.0
_FILES: Final = 4


class Writer(ABC):
    """Writes the numbers from 0 on, in a thread."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.written = 0
        self.error: BaseException | None = None
        self._chosen = random.Random(seed)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Writes until the block ends."""
        self._thread.start()
        try:
            yield
        finally:
            self._ends.set()
            self._thread.join()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            with self._open():
                while not self._ends.wait(_PAUSE_S * self._chosen.random()):
                    count = self._chosen.randint(1, 20)
                    self._write([str(self.written + number).encode() for number in range(count)])
                    self.written += count
                self._finish()
        except BaseException as error:
            self.error = error

    @abstractmethod
    def _open(self) -> Any: ...

    @abstractmethod
    def _write(self, values: list[bytes]) -> None: ...

    @abstractmethod
    def _finish(self) -> None:
        """Leaves nothing that a stream would not read."""


class LogWriter(Writer):
    """Writes a log of small segments, which roll and are sealed meanwhile."""

    def _open(self) -> Any:
        self._log = SegmentLog(self.folder, segment_bytes=_SEGMENT_BYTES)
        return self._log

    def _write(self, values: list[bytes]) -> None:
        self._log.write_batch([("t", value) for value in values])
        if self._chosen.random() < 0.02:
            self._log.roll()

    def _finish(self) -> None:
        pass


class FilesWriter(Writer):
    """Writes files that grow, get other names, are sealed, and come late."""

    @contextmanager
    def _open(self) -> Iterator[None]:
        self._paths: list[Path] = []
        self._names = 0
        yield

    def _write(self, values: list[bytes]) -> None:
        step = self._chosen.random()
        if len(self._paths) < _FILES:
            self._names += 1
            # Each file comes late, when it has some records.
            self._paths.append(self.folder / f"_{self._chosen.randint(0, 99):02}-{self._names}.active")
        number = self._chosen.randrange(len(self._paths))
        path = self._paths[number]
        with seglake.create(path, format="active", if_exists="append") as file:
            for value in values:
                file.write(type="t", value=value)
        name = path.name.removeprefix("_")
        if step < 0.15:
            new = f"{self._chosen.randint(0, 99):02}-{name.partition('-')[2]}"
            self._paths[number] = path.rename(self.folder / new)
        elif step < 0.2:
            self._seal(self._paths.pop(number))

    def _seal(self, path: Path) -> None:
        sealed = self.folder / path.name.removeprefix("_")
        seglake.seal(path, sealed.with_suffix(".sealed"))
        path.unlink()

    def _finish(self) -> None:
        for path in self._paths:
            path.rename(self.folder / path.name.removeprefix("_"))


class Query(Processes):
    """A query in a process of its own, which is started again and again."""

    def __init__(self, source: str, folder: Path) -> None:
        super().__init__(folder / "query.log")
        self.source = source
        self.folder = folder
        self.commits = folder / "checkpoint" / "commits"

    def run(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts it. With arguments somebody reads its output."""
        command = [sys.executable, "-m", "tests.stream_kills", "--query", str(self.folder), "--source", self.source]
        return self.start([*command, *arguments], piped=bool(arguments))

    def batches(self) -> int:
        """Returns how many batches are committed."""
        return sum(path.name.isdigit() for path in self.commits.iterdir()) if self.commits.is_dir() else 0


def kill_and_compare(source: str, kills: int, seed: int, folder: Path) -> dict[str, Any]:
    """Kills processes of a query, and compares its table with what was written.

    Raises:
        AssertionError: something is lost or doubled, or the query does not get on.
    """
    chosen = random.Random(seed)
    writers: dict[str, Writer] = {}
    for name in SOURCES[source]:
        (folder / name).mkdir()
        writers[name] = (LogWriter if name == "log" else FilesWriter)(folder / name, seed)
    query = Query(source, folder)
    killed: Counter[str] = Counter()
    ended = 0
    try:
        with ExitStack() as stack:
            for writer in writers.values():
                stack.enter_context(writer.running())
            process = query.run()
            wounded = False
            while killed.total() < kills:
                before, patience = query.batches(), time.monotonic() + _PATIENCE_S
                while process.poll() is None and query.batches() == before:
                    assert time.monotonic() < patience, f"the query does not get on: {query.said()}"
                    time.sleep(0.05)
                assert wounded or process.poll() is None, f"the query has ended by itself: {query.said()}"
                if process.poll() is None:
                    time.sleep(2 * chosen.random())
                    kind = query.kill_one(chosen)
                    if kind is not None:
                        killed[kind] += 1
                    wounded = True
                    # Spark may start a worker again; then the query goes on.
                    if kind == "python" and chosen.random() < 0.5:
                        continue
                    time.sleep(chosen.random())
                ended += 1
                query.end()
                process = query.run()
                wounded = False
            query.end()
        done = query.run("--finish")
        out, _ = done.communicate(timeout=2 * _PATIENCE_S)
        assert done.returncode == 0, query.said()
    finally:
        query.end()
    found = json.loads(out.splitlines()[-1])
    expected = {
        name: {"count": writer.written, "distinct": writer.written, "min": 0, "max": writer.written - 1}
        for name, writer in writers.items()
    }
    assert found == expected, f"expected {expected}, found {found}"
    return {**found, "killed": dict(killed), "started": ended + 1, "batches": query.batches()}


def run_query(folder: Path, source: str, *, finish: bool) -> None:
    """Runs the query in this process: on and on, or to the end of what there is, and tells what the table has."""
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import expr

    from seglake.spark.session import session

    settings = {**QUICK, "spark.sql.streaming.noDataMicroBatches.enabled": "false"}
    with session("local[2]", settings) as spark:
        frames: list[DataFrame] = []
        for name in SOURCES[source]:
            while not any((folder / name).glob("[0-9]*")):
                time.sleep(0.1)  # without a file the schema is not known
            options = {} if name == "log" else {"stateLocation": str(folder / "states")}
            stream = spark.readStream.format("seglake").options(**options).load(str(folder / name))
            frames.append(stream.selectExpr(f"'{name}' AS source", "bigint(string(value)) AS number"))
        written = reduce(DataFrame.union, frames).writeStream.format("parquet")
        written = written.option("checkpointLocation", str(folder / "checkpoint"))
        if not finish:
            written.trigger(processingTime="0 seconds").start(str(folder / "table")).awaitTermination()
            return
        written.trigger(availableNow=True).start(str(folder / "table")).awaitTermination()
        table = (
            spark.read.parquet(str(folder / "table"))
            .groupBy("source")
            .agg(
                expr("count(*) AS count"),
                expr("count(DISTINCT number) AS distinct"),
                expr("min(number) AS min"),
                expr("max(number) AS max"),
            )
        )
        found = {
            row.source: {name: row[name] for name in ("count", "distinct", "min", "max")} for row in table.collect()
        }
        print(json.dumps(found), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--source", choices=SOURCES, default="log")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--query", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--finish", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.query is not None:
        run_query(given.query, given.source, finish=given.finish)
        return 0
    print(f"source {given.source}, seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        begun = time.monotonic()
        found = kill_and_compare(given.source, given.kills, given.seed, Path(name))
    print(f"{found}, {time.monotonic() - begun:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
