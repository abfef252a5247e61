"""The ingest in processes of its own: killed while it works, and with no session given."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession
from segments import DAY, OTHER_KEY, write_segment

from seglake.spark import ingest

pytestmark = [pytest.mark.spark, pytest.mark.more]

LEFT = ("PYSPARK_PYTHON", "SEGLAKE_KEY")


def run(script: str, *arguments: Path | str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    inherited = {name: value for name, value in os.environ.items() if name not in LEFT}
    return subprocess.run(command, capture_output=True, text=True, env=inherited | environment, check=False)


def count(dst: Path, table: str) -> int:
    files = [str(path) for path in (dst / table).rglob("*.parquet")]
    return ds.dataset(files).count_rows() if files else 0


KILLED_BEFORE_COMMIT = """
import os, signal, sys
import seglake.spark
def progress(seen):
    if seen.files_done:
        os.kill(os.getpid(), signal.SIGKILL)
seglake.spark.ingest(sys.argv[1], sys.argv[2], progress=progress)
"""

KILLED_WHILE_RENAMING = """
import os, signal, sys
import seglake.spark
from seglake.write import durable
rename, calls = durable.rename, 0
def deadly(*arguments):
    global calls
    calls += 1
    if calls == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*arguments)
durable.rename = deadly
seglake.spark.ingest(sys.argv[1], sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize("script", [KILLED_BEFORE_COMMIT, KILLED_WHILE_RENAMING], ids=["commit", "renaming"])
def test_the_run_after_one_that_was_killed_ends_right(spark: SparkSession, tmp_path: Path, script: str) -> None:
    src, dst = tmp_path / "src", tmp_path / "lake"
    for number in range(6):
        write_segment(src / f"{number}.active", 50, first=DAY.replace(month=number % 2 + 1, day=1))
    done = run(script, src, dst)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert list((dst / "_staging").iterdir()) != []
    assert count(dst, "files") == 0
    if script is KILLED_WHILE_RENAMING:
        # It was committed. The next run completes it, and then finds that all is there.
        assert ingest(src, dst, spark=spark).records == 0
    else:
        assert ingest(src, dst, spark=spark).records == 300
    assert (count(dst, "active"), count(dst, "damage")) == (300, 0)
    # It is of one run: of the killed one all, or nothing.
    runs = {path.name[: len("20240131T000000Z-0000beef")] for path in (dst / "active").rglob("*.parquet")}
    assert len(runs) == 1
    files = ds.dataset([str(path) for path in (dst / "files").rglob("*.parquet")]).to_table()
    assert len(files["source"].unique()) == 6


QUIET = """
import sys
import seglake.spark
result = seglake.spark.ingest(sys.argv[1], sys.argv[2])
print(result.records, result.exit_status)
from pyspark.sql import SparkSession
assert SparkSession.getActiveSession() is None
"""


@pytest.mark.slow
def test_a_session_of_its_own_is_quiet_and_stopped(tmp_path: Path) -> None:
    write_segment(tmp_path / "src/a.active", 5, key=OTHER_KEY)
    # Executors find the key where the caller does.
    done = run(QUIET, tmp_path / "src", tmp_path / "lake", SEGLAKE_KEY=OTHER_KEY.hex())
    assert (done.returncode, done.stdout) == (0, "5 0\n"), done.stderr
    # Java itself says these, each version another, before anything of Spark runs.
    of_java = ("WARNING: Using incubator modules", "WARNING: package sun.security.action not in java.base")
    assert [line for line in done.stderr.splitlines() if not line.startswith(of_java)] == []
