"""One Spark session for all tests: starting one takes seconds.

SEGLAKE_SPARK_MASTER says where they run: `local` (without it), `connect`, `local-cluster` or `standalone`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from contextvars import copy_context
from pathlib import Path, PurePath
from typing import Any, Final

import clusters
import pytest
from cli_process import Argument, Finished
from pyspark.sql import SparkSession
from xdist.scheduler import LoadFileScheduling

from java import java_home
from seglake.cli import main
from seglake.spark.session import session

HERE: Final = PurePath("tests/spark")

WITHOUT_SESSION: Final = {
    # These start processes of their own.
    "test_clusters.py",
    "test_pasted.py",
    "test_spark_secrets.py",
    "test_spark_write_processes.py",
    "test_stream_kills.py",
    # These take no Spark.
    "test_arrow_types.py",
    "test_decoder.py",
    "test_imports.py",
    "test_power_loss.py",
    "test_spark_files.py",
    "test_spark_options.py",
    "test_spark_write_commit.py",
    "test_spark_write_options.py",
    "test_spark_write_stores.py",
    "test_spark_write_task.py",
    "test_stores.py",
    "test_stream_files.py",
    "test_stream_log.py",
    "test_stream_sidecars.py",
    "test_stream_stores.py",
    "test_versions.py",
}
"""The files of this folder that run in any process; all others run in one, on one session."""

# Also for tests that start a Spark of their own.
os.environ.update(clusters.JVM)

collect_ignore: Final[list[str]] = []
if clusters.MASTER not in clusters.ON_CLUSTER:
    collect_ignore.append("test_killed_executors.py")


class SessionScheduling(LoadFileScheduling):
    """Gives all files that use the session to one process: each further one would start a Spark of its own."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return str(HERE) if _uses_session(PurePath(file)) else file


def _uses_session(file: PurePath) -> bool:
    return file.parent == HERE and file.name not in WITHOUT_SESSION


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return SessionScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In several processes, begins with this folder: what takes longest must not come last."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and item.path.name in WITHOUT_SESSION:
            raise pytest.UsageError(f"{item.nodeid} uses the Spark session: take its file out of WITHOUT_SESSION")
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(f"{HERE}/"))


@pytest.fixture(scope="session", autouse=True)
def _spark_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Gives a home and a Java to the session and to Sparks that tests start themselves."""
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["SPARK_HOME"] = str(clusters.home(tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.app.name": "seglake tests",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **clusters.QUICK,
        **clusters.EXECUTOR_OPTIONS,
    }
    variables = clusters.environment(folder, os.environ)
    os.environ.update(variables)
    # A Connect server has been given them.
    own = settings if clusters.MASTER != "connect" else {}
    with ExitStack() as stack:
        # Spark's own processes alone are to have it, which it starts with the variables of now.
        with pytest.MonkeyPatch.context() as patched:
            for name, value in clusters.FORKED.items():
                patched.setenv(name, value)
            url = stack.enter_context(clusters.master(clusters.MASTER, folder, variables | clusters.FORKED, settings))
            if clusters.MASTER == "connect":
                os.environ["SPARK_REMOTE"] = url  # where examples find the session, which name none
            running = stack.enter_context(session(url, own))
        yield running


@pytest.fixture(autouse=True)
def _default_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEGLAKE_KEY", raising=False)


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.fixture
def on_session(
    spark: SparkSession, temporary: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Finished]:
    """Runs the command in this process, on the session of the tests: the ingest uses one that is active."""
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def run(*arguments: Argument) -> Finished:
        capsys.readouterr()
        status = copy_context().run(main, ["ingest", "--engine", "spark", *map(os.fsdecode, arguments)])
        return Finished(status, *capsys.readouterr())

    return run
