"""Emulators of Azure Blob Storage and Google Cloud Storage on loopback: Azurite and fake-gcs-server."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow.fs as pafs

# What `make test-stores` installs.
INSTALLED: Final = Path(__file__).parents[2] / "build/stores"
# The account that Azurite has.
ACCOUNT: Final = "devstoreaccount1"
KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
BUCKET: Final = "logs"
CLIENTS: Final = ("gcs", "azure", "obstore-azure")


def client(name: str, port: int) -> Any:
    """A file system of an emulator."""
    if name == "gcs":
        return pafs.GcsFileSystem(
            anonymous=True,
            scheme="http",
            endpoint_override=f"127.0.0.1:{port}",
            project_id="seglake",
            retry_time_limit=timedelta(seconds=10),
        )
    if name == "azure":
        return pafs.AzureFileSystem(
            ACCOUNT,
            account_key=KEY,
            blob_storage_authority=f"127.0.0.1:{port}",
            dfs_storage_authority=f"127.0.0.1:{port}",
            blob_storage_scheme="http",
            dfs_storage_scheme="http",
        )
    from obstore.fsspec import FsspecStore

    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    return FsspecStore(
        "az", account_name=ACCOUNT, account_key=KEY, endpoint=endpoint, client_options={"allow_http": True}
    )


@contextmanager
def emulator(name: str, folder: Path) -> Generator[int]:
    """Runs the emulator that a client is for, with an empty bucket; gives its port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    if name == "gcs":
        command = INSTALLED / "fake-gcs-server"
        options = ["-scheme", "http", "-host", "127.0.0.1", "-port", port, "-public-host", f"127.0.0.1:{port}"]
        options += ["-backend", "memory", "-log-level", "error"]
    else:
        command = INSTALLED / "node_modules/.bin/azurite-blob"
        options = [
            "--blobPort",
            port,
            "--inMemoryPersistence",
            "--skipApiVersionCheck",
            "--disableTelemetry",
            "--silent",
        ]
    with (folder / "emulator.log").open("wb") as log:
        process = subprocess.Popen([command, *map(str, options)], cwd=folder, stdout=log, stderr=log)
    try:
        _wait(port, process)
        client("gcs" if name == "gcs" else "azure", port).create_dir(BUCKET)
        yield port
    finally:
        process.kill()
        process.wait()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None, "the emulator ended"
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError("the emulator does not listen")
