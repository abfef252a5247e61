"""Keys and a store's credentials show in no plan, log, event, error or table of Spark's, and keys in no process list.

One session, which logs all that it says, is given both, and makes every mistake with them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_process import seglake as command
from clusters import FORKED, of_no_session
from object_store import ACCESS_KEY, SECRET_KEY, object_store
from secret import KEY, OTHER_KEY, forms_in, key_file, leaking_files
from segments import flip, write_segment

import seglake

pytestmark = [pytest.mark.spark, pytest.mark.more]

# All that Spark says of itself goes into the folder, too; but for the text of SQL statements, which is the user's.
LOGGING = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
logger.spark.name = org.apache.spark
logger.spark.level = debug
logger.statements.name = org.apache.spark.sql.execution.SparkSqlParser
logger.statements.level = info
appender.file.type = File
appender.file.name = file
appender.file.fileName = {folder}/spark.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %p %c: %m%n%ex
"""
# The secrets are read from files, not to be among the arguments. Spark logs the code that it generates, too.
SESSION = """
import json, sys
from pathlib import Path
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from seglake.spark import ingest, IngestError
folder, file, store = sys.argv[1:]
secret, options = Path(file).read_text(), json.loads(Path(store).read_text())
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.codegen.factoryMode", "FALLBACK").config("spark.sql.codegen.wholeStage", "true")
    .config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", f"{folder}/events")
    .config("spark.eventLog.compress", "false").config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{folder}/log4j2.properties")
    .getOrCreate()
)
def explain(frame):
    frame.explain("extended"); frame.explain("formatted")
    print(frame, frame._jdf.queryExecution().toString(), frame._jdf.queryExecution().logical().toJSON())
def fail(*calls):
    for number, wrong in enumerate(calls):
        try:
            wrong()
        except (PySparkException, IngestError) as error:
            print(error)
        else:
            raise AssertionError(f"no error at {number}")
"""
WITH_KEYS = """
def read():
    return spark.read.format("seglake").option("secretKey", secret)
frame = read().load(f"{folder}/in")
explain(frame)
assert frame.where("value IS NOT NULL").count() == 9
sound = frame.where("_corrupt_record IS NULL")
def write(frame, format="active", key=secret):
    writer = frame.write.format("seglake").option("segmentFormat", format).option("secretKey", key)
    writer.mode("append").save(f"{folder}/out")
write(sound)
fail(
    lambda: write(sound.sort("uuid", ascending=False)),
    lambda: write(sound.drop("type")),
    lambda: write(frame),
    lambda: write(sound, "tenant"),
    lambda: write(sound, key=secret + "0"),
    lambda: read().option("mode", "x").load(f"{folder}/in"),
    lambda: read().schema("q int").load(f"{folder}/in").collect(),
    lambda: read().option("keyFile", "/k").load(f"{folder}/in"),
    lambda: read().option("mode", "FAILFAST").load(f"{folder}/in").collect(),
    lambda: read().option("mode", "FAILFAST").load(f"{folder}/foreign").collect(),
    lambda: spark.read.format("seglake").option("secretKey", secret + "0").load(f"{folder}/in"),
    lambda: spark.read.format("seglake").option("secretKey", secret[1:] + "g").load(f"{folder}/in"),
    lambda: spark.read.format("seglake").option("keyFile", secret).load(f"{folder}/in").collect(),
    lambda: spark.read.format("seglake").option("secretKey", secret).option("path", f"{folder}/none").load(),
    lambda: ingest(f"{folder}/foreign", f"{folder}/lake-foreign", spark=spark, key=file),
    lambda: ingest(f"{folder}/in", f"{folder}/lake-none", spark=spark, key=secret),
)
view = f"CREATE TEMPORARY VIEW segments USING seglake OPTIONS (path '{folder}/in', secretKey '{secret}')"
spark.sql(view).explain("extended")
frame = spark.sql("SELECT count(value) AS n FROM segments")
frame.explain("extended")
assert frame.head()["n"] == 9
print(ingest(f"{folder}/in", f"{folder}/lake", spark=spark, key=file, progress=print))
"""
WITH_CREDENTIALS = """
def read(**more):
    return spark.read.format("seglake").options(**(options | more))
frame = read().load("s3://logs/in")
explain(frame)
assert frame.count() == 20
fail(
    lambda: read(**{"fs.secret_access_key": options["fs.secret_access_key"][::-1], "fs.access_key_id": "AKIAOTHER"}).load("s3://logs/in"),
    lambda: read(**{"fs.secret_keys": options["fs.secret_access_key"]}).load("s3://logs/in"),
    lambda: read(mode="x").load("s3://logs/in"),
    lambda: read().load("s3://logs/none"),
    lambda: read(mode="FAILFAST").schema("value binary").load("s3://logs/damaged").collect(),
    lambda: read(segmentFormat="sealed", mode="FAILFAST").load("s3://logs/in").collect(),
)
hidden = {name.replace("fs.", "fs.secret."): value for name, value in options.items()}
given = ", ".join(f"'{name}' '{value}'" for name, value in (hidden | {"path": "s3://logs/in"}).items())
spark.sql(f"CREATE TEMPORARY VIEW stored USING seglake OPTIONS ({given})").explain("extended")
frame = spark.sql("SELECT count(value) AS n FROM stored")
frame.explain("extended")
assert frame.head()["n"] == 20
"""


def processes() -> Iterator[bytes]:
    """The arguments of every process on this machine; nothing where the system does not tell."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except OSError:
            continue  # it has ended


@dataclass(frozen=True)
class Run:
    """What the script left behind, and what the machine showed while it ran."""

    folder: Path
    out: str
    err: str
    processes: bytes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("secrets") / "all"
    written = write_segment(folder / "in" / "k.active", 10, key=KEY)
    flip(folder / "in" / "k.active", written[4].end - 9)
    write_segment(folder / "foreign" / "f.active", 10, key=OTHER_KEY)
    (folder / "events").mkdir()
    (folder / "log4j2.properties").write_text(LOGGING.format(folder=folder))
    file = key_file(folder, KEY.hex().encode())
    content = segment(folder.with_name("sound.active"), 20)
    stored = folder.with_name("store")
    with object_store() as store:
        store.put("in/a.active", content)
        store.put("damaged/a.active", content[:500] + bytes([content[500] ^ 1]) + content[501:])
        stored.write_text(json.dumps(store.options()))
        return watched([sys.executable, "-c", SESSION + WITH_KEYS + WITH_CREDENTIALS, folder, file, stored], folder)


def segment(path: Path, records: int) -> bytes:
    write_segment(path, records, key=KEY)
    return path.read_bytes()


def watched(command: list[str | Path], folder: Path) -> Run:
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=of_no_session(os.environ)
        | FORKED
        | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SEGLAKE_KEY": KEY.hex()},
        cwd=folder,
    )
    seen: set[bytes] = set()
    while True:
        seen.update(processes())
        try:
            out, err = process.communicate(timeout=0.5)
            break
        except subprocess.TimeoutExpired:
            continue
    assert process.returncode == 0, err[-4000:]
    return Run(folder, out.decode(), err.decode(), b"\n".join(seen))


def test_no_plan_log_or_error_shows_it(run: Run) -> None:
    assert "BatchScan seglake" in run.out
    assert "option mode is 'x'" in run.out
    assert "secretKey -> *********(redacted)" in run.out
    assert "WrongKeyError" in run.out
    log = (run.folder / "spark.log").read_text()
    assert "DEBUG" in log
    assert "Lost task" in log
    for shown in (run.out, run.err, log):
        assert forms_in(shown) == []


def test_it_is_the_key_of_what_was_written(run: Run) -> None:
    (path,) = (run.folder / "out").glob("*.active")
    assert len(list(seglake.open(path, key=KEY))) == 9
    with pytest.raises(seglake.WrongKeyError):
        list(seglake.open(path))


def test_no_event_or_table_shows_it(run: Run) -> None:
    events = [json.loads(line) for path in (run.folder / "events").rglob("events_*") for line in path.open()]
    assert "SparkListenerEnvironmentUpdate" in {event["Event"] for event in events}
    assert list((run.folder / "lake" / "active").rglob("*.parquet"))
    assert leaking_files(run.folder) == []


def test_no_process_list_shows_it(run: Run) -> None:
    if Path("/proc/self/cmdline").exists():
        assert b"org.apache.spark" in run.processes
    assert forms_in(run.processes) == []


@pytest.mark.parametrize("name", ["spark.executorEnv.SEGLAKE_KEY", "spark.yarn.appMasterEnv.SEGLAKE_KEY"])
def test_a_setting_that_would_show_it_is_refused(name: str, tmp_path: Path) -> None:
    write_segment(tmp_path / "in" / "k.active", 3, key=KEY)
    done = command("ingest", tmp_path / "in", tmp_path / "lake", "--conf", f"{name}={KEY.hex()}")
    assert (done.status, "process lists" in done.err) == (2, True)
    assert forms_in(done.out + done.err) == []
    assert not (tmp_path / "lake").exists()


def test_the_key_is_that_of_the_files(run: Run) -> None:
    assert seglake.verify(run.folder / "foreign" / "f.active", key=OTHER_KEY).ok


def test_credentials_show_nowhere(run: Run) -> None:
    assert "check the credentials" in run.out
    assert "'secret_keys' is not valid for store" in run.out
    assert "s3://logs/damaged/a.active" in run.out
    files = {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
    assert any(b"SparkListenerSQLExecutionStart" in content for content in files.values())
    shown = [run.out.encode(), run.err.encode(), *map(bytes, files), *files.values()]
    for secret in (ACCESS_KEY, SECRET_KEY, SECRET_KEY[::-1], "AKIAOTHER"):
        assert not any(secret.encode() in text for text in shown)
