"""Writing in a session of its own: workers that are killed and tried again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from clusters import FORKED, of_no_session

import seglake

pytestmark = [pytest.mark.spark, pytest.mark.more]

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


def run(script: str, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env=of_no_session(os.environ) | FORKED | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
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
