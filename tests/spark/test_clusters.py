"""Behind Connect and on clusters, with executors that have the wheel's packages and nothing else of this project.

These run the scripts of `examples/` as a user would. All tests of this folder run there with `make test-clusters`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import clusters
import pytest
from samples import SAMPLES, autobase
from segments import flip, write_segment

import seglake

pytestmark = [pytest.mark.spark, pytest.mark.more]

ROOT = Path(__file__).parents[2]

# Where the package is that executors import, told by each of them, and what they read; then an example, as it is.
LOOK = """
import runpy, sys
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
del sys.argv[:2]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


# A client for all scripts that need none of their own: the server starts other Pythons for each session. It takes a
# script and its arguments, and gives what the script printed and how it failed.
CLIENT = """
import contextlib, io, json, sys, traceback
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
assert "connect" in type(spark).__module__
for line in sys.stdin:
    script, *sys.argv[1:] = json.loads(line)
    shown, failure = io.StringIO(), None
    with contextlib.redirect_stdout(shown):
        try:
            exec(script, {"__name__": "__main__", "spark": spark})
        except BaseException:
            failure = traceback.format_exc()
    print(json.dumps([shown.getvalue(), failure]), flush=True)
"""

WRITE = """
import sys
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
"""

INGEST = """
import sys
import seglake.spark
from pathlib import Path
from seglake.spark import ingest_job
read = spark.read.format("seglake").load(sys.argv[1])
print(type(read).__module__, read.where("value IS NOT NULL").count())
result = seglake.spark.ingest(sys.argv[1], sys.argv[2], spark=spark)
print(result.records, result.exit_status)
print(ingest_job.SparkEngine(spark).parallelism())
Path(f"{sys.argv[2]}-2").mkdir()
def hindered():
    Path(f"{sys.argv[2]}-2", "_staging").write_bytes(b"")
    return spark
try:
    seglake.spark.ingest(sys.argv[1], f"{sys.argv[2]}-2", spark=hindered)
except seglake.spark.IngestError as error:
    print(error)
"""

FROM_OPLOG = """
import sys
from seglake.spark.functions import from_oplog
frame = spark.read.format("seglake").option("dialect", "autobase").load(sys.argv[2])
assert frame.where("_corrupt_record IS NULL").count() == 20, frame.count()
ops = spark.read.format("seglake").load(sys.argv[1]).select(from_oplog("value", "autobase").alias("op"))
assert ops.where("op._error IS NULL").count() == 20
print([row.length for row in ops.selectExpr("explode(op.clock) AS head").select("head.*").collect()])
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
    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        # Tasks wait for all executors, or the first to be there could be done with them before there is another.
        "spark.scheduler.minRegisteredResourcesRatio": "1",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    }
    outer = clusters.of_no_session(os.environ)
    inherited = {name: value for name, value in outer.items() if not name.startswith(("PYTHON", "SEGLAKE_"))}
    variables = clusters.environment(folder, inherited, str(python))
    with clusters.master(kind, folder, variables, settings) as url:
        if kind == "connect":
            yield variables | {"SPARK_REMOTE": url}
        else:
            settings |= clusters.EXECUTOR_OPTIONS
            given = " ".join(f"--conf {shlex.quote(f'{name}={value}')}" for name, value in settings.items())
            yield variables | {"PYSPARK_SUBMIT_ARGS": f"--master {url} {given} pyspark-shell"}


@pytest.fixture(scope="module")
def connect(executor_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which a script finds a server, whatever the session of the tests: the two live apart."""
    with running("connect", tmp_path_factory.mktemp("connect"), executor_python) as environment:
        yield environment


def run(environment: dict[str, str], *command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False, timeout=300)


def look(folder: Path, lake: Path) -> list[str | Path]:
    """The arguments of the script that has executors read segments, by themselves and in an example."""
    example = (ROOT / "examples" / "cluster.py", folder, lake, "--fail-on-damage")
    return [folder / "a.active", *example, "--option", "segmentFormat=active"]


def check_executors(shown: str, python: Path, folder: Path, lake: Path) -> int:
    """Checks what the script printed; gives how many processes started the Pythons of executors."""
    executors = re.findall(r"^executor (\d+) (\S+) ", shown, re.MULTILINE)
    assert {Path(file).parents[4] for _, file in executors} == {python.parents[1]}
    records, *_, first, second = shown.splitlines()
    assert records == "records 10"
    assert first == f"19 records written to {lake}, 1 damaged ranges"
    assert re.fullmatch(rf"  {folder / 'b.active'}: bytes [\d,]+ to [\d,]+: corrupt, checksum_mismatch", second)
    return len({parent for parent, _ in executors})


# What starts their two executors is all that they differ in: a standalone cluster is tried by `make test-clusters`.
@pytest.mark.parametrize("kind", sorted({"local-cluster", clusters.MASTER} & {*clusters.ON_CLUSTER}))
def test_executors_need_nothing_but_the_wheel(kind: str, executor_python: Path, folder: Path, tmp_path: Path) -> None:
    with running(kind, tmp_path, executor_python) as environment:
        done = run(environment, executor_python, "-c", LOOK, *look(folder, tmp_path / "lake"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert check_executors(done.stdout, executor_python, folder, tmp_path / "lake") == 2


Client = Callable[..., tuple[str, str | None]]


@pytest.fixture(scope="module")
def client(connect: dict[str, str], executor_python: Path) -> Iterator[Client]:
    """Runs a script as a client of the server; gives what it printed, and how it failed."""
    command = [executor_python, "-c", CLIENT]
    with subprocess.Popen(
        command, env=connect, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        asked, answered = process.stdin, process.stdout
        assert asked is not None
        assert answered is not None

        def run(script: str, *arguments: str | Path) -> tuple[str, str | None]:
            print(json.dumps([script, *map(str, arguments)]), file=asked, flush=True)
            line = answered.readline()
            assert line, f"the client ended with status {process.wait()}"
            shown, failure = json.loads(line)
            return shown, failure

        yield run
        process.kill()


def over_connect(client: Client, script: str, *arguments: Path) -> list[str]:
    """Runs a script; gives the lines that it printed."""
    shown, failure = client(script, *arguments)
    assert failure is None, shown + failure
    return shown.splitlines()


def test_nor_does_a_connect_server(client: Client, executor_python: Path, folder: Path, tmp_path: Path) -> None:
    shown, failure = client(LOOK, *look(folder, tmp_path / "lake"))
    assert (failure or "").endswith("SystemExit: 1\n"), failure
    check_executors(shown, executor_python, folder, tmp_path / "lake")


def test_writing_over_connect(client: Client, tmp_path: Path) -> None:
    assert over_connect(client, WRITE, tmp_path / "out") == ["200"]


def test_ingesting_over_connect(client: Client, folder: Path, tmp_path: Path) -> None:
    *shown, failure = over_connect(client, INGEST, folder / "a.active", tmp_path / "lake")
    assert shown == ["pyspark.sql.connect.dataframe 10", "10 0", "2"]
    # What the task failed with, and none of what Spark says around it.
    assert failure.startswith("the Spark job failed, nothing was ingested: NotADirectoryError: ")


def test_from_oplog_over_connect(client: Client, tmp_path: Path) -> None:
    messages = [autobase(number) for number in range(20)]
    SAMPLES["autobase"].write(tmp_path / "o.oplog")
    with seglake.create(tmp_path / "a.active", format="active") as writer:
        for fields in messages:
            writer.write(type="op", value=seglake.oplog.encode(fields, dialect="autobase"))
    shown = over_connect(client, FROM_OPLOG, tmp_path / "a.active", tmp_path / "o.oplog")
    assert shown == [str([entry["length"] for fields in messages for entry in fields["clock"]])]


def test_the_example_of_kafka(connect: dict[str, str], executor_python: Path) -> None:
    done = run(connect, executor_python, ROOT / "examples" / "kafka_oplog.py")
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
