"""Writing in sessions of its own: workers that are killed and tried again, and Spark Connect."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from clusters import of_no_session

import seglake

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Each task's first attempt dies in the middle of its rows; the first task's second one as well.
KILLED = """
import os, signal, sys
from pathlib import Path
from pyspark import TaskContext
from pyspark.sql import SparkSession
out, marks = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2,3]")
    .config("spark.ui.enabled", "false").config("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    .getOrCreate()
)
def deadly(batches):
    task = TaskContext.get()
    for number, batch in enumerate(batches):
        if number == 2 and task.attemptNumber() < (2 if task.partitionId() == 0 else 1):
            Path(marks, f"{task.partitionId()}-{task.attemptNumber()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch
rows = spark.range(0, 1000, 1, 2).selectExpr("id AS offset", "cast(id AS string) AS value")
rows = rows.mapInArrow(deadly, rows.schema)
for format in sys.stdin.read().split():
    (rows if format == "chunked" else rows.selectExpr("'t' AS type", "value")).write.format("seglake").option(
        "segmentFormat", format
    ).option("maxRecordsPerFile", "150").mode("append").save(f"{out}/{format}")
spark.stop()
"""

CONNECT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[2]).getOrCreate()
assert "connect" in type(spark).__module__
rows = spark.range(0, 100, 1, 2).selectExpr("100 - id AS offset", "cast(id AS string) AS value")
def write(frame, mode):
    frame.write.format("seglake").option("segmentFormat", "chunked").mode(mode).save(sys.argv[1])
try:
    write(rows, "append")
except Exception as error:
    assert '.sortWithinPartitions("offset")' in str(error), error
else:
    raise AssertionError("rows that descend were written")
for mode in ("append", "overwrite", "append"):
    write(rows.sortWithinPartitions("offset"), mode)
print(spark.read.format("seglake").load(sys.argv[1]).count())
spark.stop()
"""


def run(script: str, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env=of_no_session(os.environ) | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_workers_that_are_killed_change_nothing(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    formats = ("chunked", "sealed")
    run(KILLED, str(tmp_path / "out"), str(marks), stdin=" ".join(formats))
    assert sorted(path.name for path in marks.iterdir()) == ["0-0", "0-1", "1-0"]
    for format in formats:
        folder = tmp_path / "out" / format
        files = sorted(path for path in folder.iterdir() if path.suffix in {".chunks", ".sealed"})
        read = [int(record.value) for path in files for record in seglake.open(path)]
        assert read == list(range(1000))
        assert [len(list(seglake.open(path))) for path in files] == [150, 150, 150, 50] * 2
        others = {path.name for path in folder.iterdir() if path.suffix not in {".chunks", ".sealed", ".index"}}
        assert others == {"_SUCCESS"}


def test_over_spark_connect(tmp_path: Path, connect_url: str) -> None:
    assert run(CONNECT, str(tmp_path / "out"), connect_url).split()[-1] == "200"
