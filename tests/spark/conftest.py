"""One Spark session for all tests: starting one takes seconds.

SEGLAKE_SPARK_MASTER says where they run: `local` (without it), `connect`, `local-cluster` or `standalone`.
"""

import os
from collections.abc import Iterator

import clusters
import pytest
from pyspark.sql import SparkSession

from seglake.spark.java import ensure_java
from seglake.spark.session import session

if clusters.MASTER not in clusters.ON_CLUSTER:
    collect_ignore = ["test_killed_executors.py"]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    ensure_java()
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.app.name": "seglake tests",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        # A query of the tests is run once: compiling it takes longer.
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        **clusters.EXECUTOR_OPTIONS,
    }
    variables = clusters.environment(folder, os.environ)
    os.environ.update(variables)
    # A Connect server has been given them.
    own = settings if clusters.MASTER != "connect" else {}
    with clusters.master(clusters.MASTER, folder, variables, settings) as url:
        if clusters.MASTER == "connect":
            os.environ["SPARK_REMOTE"] = url  # where examples find the session, which name none
        with session(url, own) as running:
            yield running


@pytest.fixture(autouse=True)
def _default_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEGLAKE_KEY", raising=False)
