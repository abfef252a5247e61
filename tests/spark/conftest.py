"""One Spark session for all tests: starting one takes seconds.

SEGLAKE_SPARK_MASTER says where they run: `local` (without it), `connect`, `local-cluster` or `standalone`.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import clusters
import pytest
from pyspark.sql import SparkSession

from seglake.spark.java import ensure_java

MASTER = os.environ.get("SEGLAKE_SPARK_MASTER", "local")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    ensure_java()
    folder = tmp_path_factory.mktemp("spark")
    settings = _settings(folder)
    variables = clusters.environment(folder, os.environ)
    os.environ.update(variables)
    with clusters.master(MASTER, folder, variables, settings) as url:
        builder = SparkSession.builder.remote(url) if MASTER == "connect" else SparkSession.builder.master(url)
        for name, value in settings.items() if MASTER != "connect" else ():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()


@pytest.fixture(scope="module")
def connect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server for clients in processes of their own, whatever the session of the tests: the two do not live together.

    Clients that start one by `remote("local")` all do so at the same port.
    """
    ensure_java()
    folder = tmp_path_factory.mktemp("connect")
    variables = clusters.environment(folder, clusters.of_no_session(os.environ))
    with clusters.master("connect", folder, variables, _settings(folder)) as url:
        yield url


def _settings(folder: Path) -> dict[str, str]:
    return {
        "spark.app.name": "seglake tests",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


@pytest.fixture(autouse=True)
def _default_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEGLAKE_KEY", raising=False)
