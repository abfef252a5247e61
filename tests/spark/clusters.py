"""Spark's ways to run, each on this machine alone: in one process, behind a Connect server, or on a cluster."""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark

__all__ = [
    "EXECUTOR_OPTIONS",
    "FORKED",
    "JVM",
    "MASTER",
    "MASTERS",
    "ON_CLUSTER",
    "QUICK",
    "environment",
    "home",
    "master",
    "of_no_session",
]

MASTERS: Final = ("local", "connect", "local-cluster", "standalone")
"""`local`: driver and executors in one JVM. `connect`: a client of a server that runs as `local`. `local-cluster`: two
executors, a JVM each. `standalone`: a master and two workers, a JVM each, as on a cluster of machines."""

ON_CLUSTER: Final = ("local-cluster", "standalone")

MASTER: Final = os.environ.get("SEGLAKE_SPARK_MASTER", "local")
"""Where the tests run."""

JAVA_OPTIONS: Final = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""A JVM of the tests ends before the optimising compiler, a parallel collector and verified classes pay off."""

QUICK: Final = {
    # A query of the tests is run once: compiling it takes longer.
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
"""Settings with which small queries take less time."""

_PROPERTIES: Final = " ".join(f"-D{name}={value}" for name, value in QUICK.items())

JVM: Final = {
    "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
    "SPARK_LAUNCHER_OPTS": JAVA_OPTIONS,
    "SPARK_SUBMIT_OPTS": f"{JAVA_OPTIONS} {_PROPERTIES}",
}
"""Variables under which Spark starts its JVMs with these options, but for executors; drivers with these settings, too,
where they give none of their own."""

EXECUTOR_OPTIONS: Final = {"spark.executor.extraJavaOptions": JAVA_OPTIONS}
"""The setting that gives them to executors."""

FORKED: Final = {
    "PYTHONPATH": os.pathsep.join(filter(None, (str(Path(__file__).with_name("forked")), os.environ.get("PYTHONPATH"))))
}
"""Variables under which a process that Spark forks for Python has imported what takes it long."""

_SPARK: Final = Path(pyspark.__file__).parent
_START_S: Final = 120
_WORKERS: Final = 2


def home(folder: Path) -> Path:
    """Makes a home of Spark below `folder`, of links.

    local-cluster writes what executors log below it, which else is where the package is installed. Without the folder
    `python` executors import the package as it is installed, too, and not from an archive of its sources, which each
    process compiles anew.
    """
    made = folder / "spark"
    made.mkdir()
    for entry in _SPARK.iterdir():
        if entry.name not in ("python", "work"):
            (made / entry.name).symlink_to(entry)
    return made


def environment(folder: Path, inherited: Mapping[str, str], python: str = sys.executable) -> dict[str, str]:
    """Gives variables under which Spark keeps to the loopback interface and writes below `folder` alone.

    `python` is that of the executors.
    """
    return {
        **inherited,
        "PYSPARK_PYTHON": python,
        "SPARK_HOME": str(home(folder)),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Also of a Connect server, which takes no less.
        "SPARK_DAEMON_MEMORY": "1g",
    }


def of_no_session(variables: Mapping[str, str]) -> dict[str, str]:
    """Gives variables for a script that starts a Spark of its own: without what a client of Connect leaves in them."""
    left = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE")
    return {name: value for name, value in variables.items() if name not in left}


@contextmanager
def master(kind: str, folder: Path, variables: Mapping[str, str], settings: Mapping[str, str]) -> Generator[str]:
    """Starts what has to run beside the driver, and stops it in the end; gives the URL of Spark's master.

    For `connect` it is that of the server, for `SparkSession.builder.remote`; the settings of its own are given to it.
    """
    with ExitStack() as running:
        match kind:
            case "local":
                yield "local[2]"
            case "connect":
                yield _connect(settings, variables, running)
            case "local-cluster":
                yield f"local-cluster[{_WORKERS},1,1024]"
            case "standalone":
                yield _standalone(folder, variables, running)
            case _:
                raise ValueError(
                    f"there is no way to run Spark that is called {kind!r}: there are {', '.join(MASTERS)}"
                )


def _connect(settings: Mapping[str, str], variables: Mapping[str, str], running: ExitStack) -> str:
    loopback = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": "0"}
    # Without its log nobody would know the port.
    given = [f"{name}={value}" for name, value in ({**settings, **loopback} | {"spark.log.level": "INFO"}).items()]
    options = ["--master", "local[2]", *(word for setting in given for word in ("--conf", setting))]
    server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", *options, "spark-internal")
    lines = running.enter_context(_daemon("SparkSubmit", *server, variables=variables))
    return "sc://" + _wait_for(lines, r"Spark Connect server started at: (\S+)")


def _standalone(folder: Path, variables: Mapping[str, str], running: ExitStack) -> str:
    loopback = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    lines = running.enter_context(_daemon("master.Master", *loopback, variables=variables))
    url = _wait_for(lines, r"Starting Spark master at (spark://\S+)")
    for number in range(_WORKERS):
        places = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker-{number}"))
        lines = running.enter_context(_daemon("worker.Worker", *loopback, *places, url, variables=variables))
        _wait_for(lines, "Successfully registered with master")
    return url


@contextmanager
def _daemon(name: str, *arguments: str, variables: Mapping[str, str]) -> Generator[Iterator[str]]:
    """Runs one of Spark's own processes; gives the lines that it logs, and stops it in the end."""
    command = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    with subprocess.Popen(
        command,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        # Read to its end, or it would stand still once the pipe is full.
        reader = threading.Thread(target=lambda output: [*map(lines.put, output), lines.put("")], args=[process.stdout])
        reader.start()
        try:
            yield iter(lambda: lines.get(timeout=_START_S), "")
        finally:
            process.terminate()  # a worker ends its executors
            try:
                process.wait(_START_S)
            except subprocess.TimeoutExpired:
                process.kill()
            reader.join()


def _wait_for(lines: Iterator[str], pattern: str) -> str:
    """Waits for a line; gives the group of the pattern."""
    seen: list[str] = []
    for line in lines:
        seen.append(line)
        if found := re.search(pattern, line):
            return found[found.lastindex or 0]
    raise RuntimeError(f"ended without a line {pattern!r}:\n{''.join(seen[-100:])}")
