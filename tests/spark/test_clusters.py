"""Behind Connect and on clusters, with executors that have the wheel's packages and nothing else of this project.

These run the scripts of `examples/` as a user would. All tests of this folder run there with `make test-clusters`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import clusters
import pytest
from segments import flip, write_segment

from seglake.spark.java import ensure_java

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]

# Where the package is that executors import, told by each of them, and what they read.
LOOK = """
import sys
from pyspark.sql import SparkSession

def look(batches):
    import os, pyarrow, seglake
    list(batches)
    yield pyarrow.RecordBatch.from_pydict({"found": [f"{os.getppid()} {seglake.__file__} {seglake.__version__}"]})

spark = SparkSession.builder.getOrCreate()
frame = spark.read.format("seglake").option("mode", "FAILFAST").load(sys.argv[1])
print("records", frame.count())
for row in spark.range(8, numPartitions=8).mapInArrow(look, "found string").distinct().collect():
    print("executor", row.found)
spark.stop()
"""


@pytest.fixture(scope="module")
def executor_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with what is in the wheel, Spark and Arrow.

    Which files the wheel has, tests/python/test_packaging.py checks. Spark and Arrow are those of the tests: their
    folder is on the path, but not what files in it that end in .pth add to it.
    """
    environment = tmp_path_factory.mktemp("executors") / "environment"
    venv.create(environment, symlinks=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    for package in ("seglake", "pyspark_seglake"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "python" / package, packages / package, ignore=ignored)
    (packages / "spark.pth").write_text(sysconfig.get_path("purelib"))
    return environment / "bin" / "python"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two segments, one of them with a damaged record."""
    folder = tmp_path_factory.mktemp("segments")
    write_segment(folder / "a.active", 10)
    written = write_segment(folder / "b.active", 10)
    flip(folder / "b.active", written[3].end - 9)
    return folder


@contextmanager
def running(kind: str, folder: Path, python: Path) -> Generator[dict[str, str]]:
    """Starts a cluster, and gives the environment in which a script finds it."""
    ensure_java()
    settings = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.sql.shuffle.partitions": "2"}
    outer = clusters.of_no_session(os.environ)
    inherited = {name: value for name, value in outer.items() if not name.startswith(("PYTHON", "SEGLAKE_"))}
    variables = clusters.environment(folder, inherited, str(python))
    with clusters.master(kind, folder, variables, settings) as url:
        if kind == "connect":
            yield variables | {"SPARK_REMOTE": url}
        else:
            given = " ".join(f"--conf {name}={value}" for name, value in settings.items())
            yield variables | {"PYSPARK_SUBMIT_ARGS": f"--master {url} {given} pyspark-shell"}


def run(environment: dict[str, str], *command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False, timeout=300)


@pytest.mark.parametrize("kind", [kind for kind in clusters.MASTERS if kind != "local"])
def test_executors_need_nothing_but_the_wheel(kind: str, executor_python: Path, folder: Path, tmp_path: Path) -> None:
    with running(kind, tmp_path, executor_python) as environment:
        looked = run(environment, executor_python, "-c", LOOK, folder / "a.active")
        assert looked.returncode == 0, looked.stdout + looked.stderr
        assert "records 10\n" in looked.stdout
        executors = re.findall(r"^executor (\d+) (\S+) ", looked.stdout, re.MULTILINE)
        assert {Path(file).parents[4] for _, file in executors} == {executor_python.parents[1]}
        if kind in clusters.ON_CLUSTER:
            assert len({parent for parent, _ in executors}) == 2, "one of the executors had nothing to do"

        lake = tmp_path / "lake"
        script = (executor_python, ROOT / "examples" / "cluster.py", folder, "--to", lake)
        done = run(environment, *script, "--fail-on-damage", "--option", "segmentFormat=active")
        assert done.returncode == 1, done.stdout + done.stderr
        first, second = done.stdout.splitlines()
        assert first == f"19 records written to {lake}, 1 damaged ranges"
        assert re.fullmatch(rf"  {folder / 'b.active'}: bytes [\d,]+ to [\d,]+: corrupt, checksum_mismatch", second)


def test_the_example_of_kafka(executor_python: Path, tmp_path: Path) -> None:
    with running("local", tmp_path, executor_python) as environment:
        done = run(environment, executor_python, ROOT / "examples" / "kafka_oplog.py")
    assert done.returncode == 0, done.stdout + done.stderr
    broken = [line for line in done.stdout.splitlines() if re.fullmatch(r"\|\w{8}\| +4\| +1\|", line)]
    assert len(broken) == 1
    # Message 1 of the second writer was written when the first had two messages, the third one.
    seen = re.findall(r"^\|1 +\|1 +\|\w{8}\|\w{8} +\|(\d+) +\|(.*?) *\|$", done.stdout, re.MULTILINE)
    assert sorted(seen) == [("0", "cyd says 0"), ("1", "ada says 1")]


@pytest.mark.parametrize("name", ["cluster", "kafka_oplog"])
def test_examples_tell_how_they_are_called(name: str, executor_python: Path) -> None:
    done = run(dict(os.environ), executor_python, ROOT / "examples" / f"{name}.py", "--help")
    assert done.returncode == 0, done.stderr
    assert f"examples/{name}.py" in done.stdout
