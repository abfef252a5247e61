"""Credentials of a store show in no plan, log, event or error of Spark's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from clusters import of_no_session
from object_store import ACCESS_KEY, SECRET_KEY, object_store
from samples import SAMPLES
from test_spark_secret_keys import LOGGING

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCRIPT = """
import json, sys
from pathlib import Path
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
folder = sys.argv[1]
options = json.loads(sys.stdin.read())
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")
    .config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", f"{folder}/events")
    .config("spark.eventLog.compress", "false").config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{folder}/log4j2.properties")
    .getOrCreate()
)
def read(**more):
    return spark.read.format("seglake").options(**(options | more))
frame = read().load("s3://logs/in")
frame.explain("extended"); frame.explain("formatted")
print(frame, frame._jdf.queryExecution().toString(), frame._jdf.queryExecution().logical().toJSON())
assert frame.count() == 20
for number, wrong in enumerate((
    lambda: read(**{"fs.secret_key": options["fs.secret_key"][::-1], "fs.access_key": "AKIAOTHER"}).load("s3://logs/in"),
    lambda: read(**{"fs.secret_keys": options["fs.secret_key"]}).load("s3://logs/in"),
    lambda: read(mode="x").load("s3://logs/in"),
    lambda: read().load("s3://logs/none"),
    lambda: read(mode="FAILFAST").schema("value binary").load("s3://logs/damaged").collect(),
    lambda: read(segmentFormat="sealed", mode="FAILFAST").load("s3://logs/in").collect(),
)):
    try:
        wrong()
    except PySparkException as error:
        print(error)
    else:
        raise AssertionError(f"no error at {number}")
hidden = {name.replace("fs.", "fs.secret."): value for name, value in options.items()}
given = ", ".join(f"'{name}' '{value}'" for name, value in (hidden | {"path": "s3://logs/in"}).items())
spark.sql(f"CREATE TEMPORARY VIEW segments USING seglake OPTIONS ({given})").explain("extended")
frame = spark.sql("SELECT count(value) AS n FROM segments")
frame.explain("extended")
assert frame.head()["n"] == 20
spark.stop()
"""


def test_credentials_show_nowhere(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    (folder / "events").mkdir(parents=True)
    (folder / "log4j2.properties").write_text(LOGGING.format(folder=folder))
    SAMPLES["active"].write(tmp_path / "a.active")
    content = bytearray((tmp_path / "a.active").read_bytes())
    with object_store() as store:
        store.put("in/a.active", bytes(content))
        content[len(content) // 2] ^= 1
        store.put("damaged/a.active", bytes(content))
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(folder)],
            input=json.dumps(store.options()).encode(),
            capture_output=True,
            env=of_no_session(os.environ) | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            cwd=folder,
            check=False,
        )
    shown = [done.stdout, done.stderr, *(path.read_bytes() for path in folder.rglob("*") if path.is_file())]
    assert done.returncode == 0, done.stderr[-4000:].decode()
    assert b"BatchScan seglake" in done.stdout
    assert b"check the credentials" in done.stdout
    assert b"unknown option 'fs.secret_keys'" in done.stdout
    assert b"DamageError" in done.stdout
    assert any(b"SparkListenerSQLExecutionStart" in text for text in shown)
    assert any(b"DEBUG" in text for text in shown[2:])
    for secret in (ACCESS_KEY, SECRET_KEY, SECRET_KEY[::-1], "AKIAOTHER"):
        assert not any(secret.encode() in text for text in shown)
