"""The Spark session that the ingest makes for itself where it is not given one."""

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from seglake.lake.result import IngestError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_settings", "session"]

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"


@contextmanager
def session(master: str = "local[*]", conf: Mapping[str, str] = MappingProxyType({})) -> Generator["SparkSession"]:
    """Makes a session that says nothing but errors, and stops it in the end; where one is active, uses that.

    Args:
        master: Spark's master URL, for example `local[*]`, or a Spark Connect URL (`sc://...`).
        conf: further settings; they go before the ones made here. Not for an active session.

    Raises:
        IngestError: Java cannot be started.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    builder = SparkSession.builder.appName("seglake ingest")
    if master.startswith("sc://"):
        builder = builder.remote(master)
    else:
        # The executors' Python has to have what this one has; on this machine it can be this very one.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(master)
    with _settings(master, conf) as settings:
        for name, value in settings.items():
            builder = builder.config(name, value)
        try:
            made = builder.getOrCreate()
        except PySparkRuntimeError as error:
            if error.getCondition() != "JAVA_GATEWAY_EXITED":
                raise
            home = os.environ.get("JAVA_HOME", "not set")
            raise IngestError(
                f"Spark cannot start Java: {error} Spark 4 needs Java 17 or newer, and JAVA_HOME names its folder: "
                f"now it is {home}"
            ) from error
        try:
            yield made
        finally:
            made.stop()


@contextmanager
def _settings(master: str, conf: Mapping[str, str]) -> Generator[dict[str, str]]:
    if master.startswith("sc://"):
        yield dict(conf)
        return
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if master.startswith("local"):
        # Without it Spark asks the network for its own name, and listens to the network.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings["spark.driver.host"] = "127.0.0.1"
    settings.update(conf)
    with resources.as_file(resources.files(__package__ or "seglake.spark") / "log4j2.properties") as path:
        given = settings.get(_JAVA_OPTIONS, "")
        if "log4j2.configurationFile" not in given:
            settings[_JAVA_OPTIONS] = f'{given} "-Dlog4j2.configurationFile={Path(path).as_uri()}"'.strip()
        yield settings


def check_settings(conf: Mapping[str, str]) -> None:
    """Refuses settings that hold a key: Spark hands them on as arguments of processes and writes them into its logs.

    Raises:
        IngestError: one does.
    """
    for name in conf:
        # A reference to a secret of the cluster's (`spark.kubernetes.executor.secretKeyRef.*`) holds none.
        if name.endswith(".SEGLAKE_KEY") and ".secretKeyRef." not in name:
            raise IngestError(
                f"the setting {name} would show the key in process lists and in Spark's logs: give its file, or set "
                "the variable itself where the executors are started"
            )
