"""The cost of planning a read of many files: in the driver's Python alone, and as a query.

SEGLAKE_SPARK_MANY (200,000) is the largest number of files. They are names of a few files, of 20 records each.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from seglake.spark.source import SegmentDataSource

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from _interleaved import Suite
from _logs import write
from _session import session

MOST: Final = int(os.environ.get("SEGLAKE_SPARK_MANY", "200000"))
COUNTS: Final = [count for count in (100, 10_000) if count < MOST] + [MOST]
GOAL_S: Final = 10.0
"""The target in seconds for planning a read of any number of local files."""
# File systems list large folders slowly, and allow about 65,000 names of a file.
IN_A_FOLDER: Final = 10_000
RECORDS: Final = 20


def make(folder: Path, count: int) -> None:
    """Makes `count` small segments, in folders of 10,000."""
    first = folder
    for number in range(count):
        below = folder / f"{number // IN_A_FOLDER:04}"
        path = below / f"{number:07}.active"
        if number % IN_A_FOLDER == 0:
            below.mkdir()
            write(path, "active", RECORDS, 128)
            first = path
        else:
            path.hardlink_to(first)


def planned(folder: Path, format: str | None) -> dict[str, float]:
    """Plans as Spark does, which asks one process for the schema and another for the tasks.

    Gives the seconds that passes, the bytes sent to the JVM, the tasks, and the most memory of the process in bytes.
    """
    begun = time.perf_counter()
    options = {"path": str(folder), "recursivefilelookup": "true"} | ({"segmentformat": format} if format else {})
    source = SegmentDataSource(options)
    schema = source.schema()
    reader = pickle.loads(pickle.dumps(source)).reader(schema)
    tasks = [pickle.dumps(partition) for partition in reader.partitions()]
    sent = len(pickle.dumps(reader)) + sum(map(len, tasks))
    seconds = time.perf_counter() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return {"seconds": seconds, "sent": sent, "tasks": len(tasks), "memory": memory}


def in_a_new_process(folder: Path, format: str | None) -> dict[str, float]:
    """Plans in a separate process, to measure its memory alone."""
    command = [sys.executable, __file__, "--plan", str(folder), *([format] if format else [])]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def queried(spark: SparkSession, folder: Path, count: int) -> float:
    """Seconds of a whole query that counts the records of these files."""
    begun = time.perf_counter()
    load = spark.read.format("seglake").option("recursiveFileLookup", "true").load(str(folder))
    assert load.count() == count * RECORDS
    return time.perf_counter() - begun


def main() -> int:
    """Measures."""
    if sys.argv[1:2] == ["--plan"]:
        print(json.dumps(planned(Path(sys.argv[2]), *(sys.argv[3:] or [None]))))
        return 0
    suite = Suite("spark_planning")
    with session() as spark:
        for count in COUNTS:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                make(folder, count)
                for format in ("active", None):
                    plan = in_a_new_process(folder, format)
                    told = f"spark/planning/{count:,} files, format {'named' if format else 'found'}"
                    suite.add(told, "the goal", [(plan["seconds"], GOAL_S)], 1.0, "s", "goal")
                    megabytes = f"{plan['sent'] / 1e6:.1f} MB sent, {plan['memory'] / 1e6:.0f} MB of memory"
                    print(f"    {plan['tasks']:,.0f} tasks, {megabytes}", flush=True)
                seconds = queried(spark, folder, count)
                suite.add(
                    f"spark/planning/{count:,} files, a query",
                    "the goal of its plan",
                    [(seconds, GOAL_S)],
                    unit="s",
                    kind="goal",
                )
    suite.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
