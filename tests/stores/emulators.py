"""Emulators of stores on loopback: Azurite, fake-gcs-server, and a cluster of HDFS in one JVM."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import fsspec
import pyarrow.fs as pafs
import pyspark

# What `make test-stores` installs.
INSTALLED: Final = Path(__file__).parents[2] / "build/stores"
# The account that Azurite has.
ACCOUNT: Final = "devstoreaccount1"
KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CLIENTS: Final = ("gcs", "azure", "webhdfs")
# Hadoop's classes, which PySpark has but for those of servers.
JARS: Final = Path(pyspark.__file__).with_name("jars")
IVY: Final = INSTALLED / "ivy"


def root(name: str) -> str:
    """The URI of the bucket, or the folder of HDFS that stands for it."""
    return {"gcs": "gs://logs", "azure": "az://logs", "webhdfs": "/logs"}[name]


def within(uri: str) -> str:
    """The path that a client takes for a URI."""
    return uri.partition("://")[2] or uri


def reaching(name: str, port: int) -> dict[str, Any]:
    """The argument by which an emulator is reached."""
    if name == "gcs":
        of_no_one = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
        account = json.dumps({"gcs_base_url": f"http://127.0.0.1:{port}", "disable_oauth": True, **of_no_one})
        return {"storage_options": {"service_account_key": account, "allow_http": "true"}}
    if name == "azure":
        endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        own = {"account_name": ACCOUNT, "account_key": KEY, "endpoint": endpoint, "allow_http": "true"}
        return {"storage_options": own}
    own = fsspec.filesystem("webhdfs", host="127.0.0.1", port=port, user="root", skip_instance_cache=True)
    return {"filesystem": own}


@contextmanager
def emulator(name: str, folder: Path) -> Generator[int]:
    """Runs the emulator that a client is for, with an empty bucket; gives its port."""
    port = _free_port()
    with (folder / "emulator.log").open("wb") as log:
        process = subprocess.Popen(_command(name, port), cwd=folder, stdout=log, stderr=log)
    try:
        _wait(lambda: _begin(name, port), process)
        yield port
    finally:
        process.kill()
        process.wait()


def plain(name: str, port: int) -> pafs.FileSystem:
    """A client that shows what is there."""
    if name == "webhdfs":
        return pafs.PyFileSystem(pafs.FSSpecHandler(reaching(name, port)["filesystem"]))
    if name == "gcs":
        return pafs.GcsFileSystem(
            anonymous=True,
            scheme="http",
            endpoint_override=f"127.0.0.1:{port}",
            project_id="seglake",
            retry_time_limit=timedelta(seconds=10),
        )
    return pafs.AzureFileSystem(
        ACCOUNT,
        account_key=KEY,
        blob_storage_authority=f"127.0.0.1:{port}",
        dfs_storage_authority=f"127.0.0.1:{port}",
        blob_storage_scheme="http",
        dfs_storage_scheme="http",
    )


def install_hdfs() -> None:
    """Has Spark fetch what a cluster of HDFS needs beside PySpark's own jars."""
    from pyspark.sql import SparkSession

    (api,) = JARS.glob("hadoop-client-api-*.jar")
    version = re.sub(r"^hadoop-client-api-|\.jar$", "", api.name)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.jars.packages", f"org.apache.hadoop:hadoop-client-minicluster:{version}")
    builder.config("spark.jars.ivy", str(IVY)).getOrCreate().stop()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def _command(name: str, port: int) -> list[str]:
    if name == "gcs":
        options = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-public-host", f"127.0.0.1:{port}"]
        return [str(INSTALLED / "fake-gcs-server"), *options, "-backend", "memory", "-log-level", "info"]
    if name == "webhdfs":
        (servers,) = (IVY / "jars").glob("*hadoop-client-minicluster*.jar")
        settings = ["-Dhdfs.minidfs.basedir=hdfs", "-Ddfs.permissions.enabled=false", "-Ddfs.replication=1"]
        ports = ["-nnport", str(_free_port()), "-nnhttpport", str(port)]
        main = ["org.apache.hadoop.mapreduce.MiniHadoopClusterManager", "-nomr", "-format"]
        return ["java", "-Xmx500m", "-cp", f"{servers}:{JARS}/*", *main, *ports, *settings]
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    return [str(INSTALLED / "node_modules/.bin/azurite-blob"), "--blobPort", str(port), *options]


def _begin(name: str, port: int) -> None:
    """Makes the bucket, and writes into it: the servers of HDFS that keep files start after the one of names."""
    filesystem, first = plain(name, port), f"{within(root(name))}/first"
    filesystem.create_dir(within(root(name)))
    with filesystem.open_output_stream(first) as file:
        file.write(b"first")
    filesystem.delete_file(first)


def _wait(made: Callable[[], None], process: subprocess.Popen[bytes]) -> None:
    """Does something as soon as the emulator takes requests."""
    end = time.monotonic() + 120
    while True:
        try:
            made()
            return
        except Exception:
            if process.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    assert sys.argv[1:] == ["install"]
    install_hdfs()
