"""Stores of Azure and Google, as emulators have them: `make test-stores` installs those, and runs these tests."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest
from segments import write_segment
from test_ingest_stores import age, fetched, left, rows, sources

import seglake
from seglake._publish import remote

from .emulators import BUCKET, CLIENTS, client, emulator


@dataclass
class Emulated:
    """A running emulator, and the client that is tested with it."""

    name: str
    port: int

    def tested(self) -> Any:
        return client(self.name, self.port)

    def plain(self) -> pafs.FileSystem:
        """A client that shows what is there."""
        return client("gcs" if self.name == "gcs" else "azure", self.port)

    def put(self, local: Path, path: str) -> None:
        with self.plain().open_output_stream(path) as file:
            file.write(local.read_bytes())


@pytest.fixture(params=CLIENTS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Emulated]:
    with emulator(request.param, tmp_path) as port:
        yield Emulated(request.param, port)


def test_folders_are_found_and_read(store: Emulated, tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 12)
    for path in ("top.active", "year/month/a.active", "year/month/b.active", "year/c.active"):
        store.put(tmp_path / "a.active", f"{BUCKET}/src/{path}")
    filesystem = store.tested()
    for folder, files in {"src": 4, "src/year": 3, "src/*": 4, "src/*/*.active": 1, "src/year/month": 2}.items():
        scan = seglake.scan(f"{BUCKET}/{folder}", filesystem=filesystem)
        assert (folder, len(scan.files())) == (folder, files)
        assert scan.count() == 12 * files
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        seglake.scan(f"{BUCKET}/yea", filesystem=filesystem).files()


def test_an_object_that_is_replaced_while_it_is_read_is_an_error(store: Emulated, tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 1000, value_bytes=60_000)
    write_segment(tmp_path / "b.active", 1000, value_bytes=60_000)
    store.put(tmp_path / "a.active", f"{BUCKET}/a.active")
    with seglake.open(f"{BUCKET}/a.active", filesystem=store.tested()) as reader:
        records = iter(reader)
        next(records)
        store.put(tmp_path / "b.active", f"{BUCKET}/a.active")
        # Google has each state of an object under a number of its own, and then no more under that.
        with pytest.raises(OSError, match=r"was replaced or deleted|No such file"):
            list(records)


def test_an_ingest_goes_on(store: Emulated, tmp_path: Path) -> None:
    source = sources(tmp_path / "src")
    lake = f"{BUCKET}/deep/lake"
    assert seglake.ingest(source, lake, filesystem=store.tested()).records == 16
    write_segment(source / "c.active", 7)
    age(source)
    assert seglake.ingest(source, lake, filesystem=store.tested()).records == 7
    assert seglake.ingest(source, lake, filesystem=store.tested()).run_id is None
    seglake.ingest(source, tmp_path / "plain")
    expected, found = rows(tmp_path / "plain"), rows(fetched(store.plain(), lake, tmp_path / "kept"))
    assert {name: found[name] for name in found if not name.endswith("/files")} == {
        name: expected[name] for name in expected if not name.endswith("/files")
    }
    assert [path for path in left(store.plain(), lake) if not path.startswith("_state/")] == []


def test_one_process_has_the_lock(store: Emulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = sources(tmp_path / "src")
    write_segment(tmp_path / "other", 1)
    store.put(tmp_path / "other", f"{BUCKET}/lake/_lock")
    monkeypatch.setattr(remote, "_lease_of", lambda _: 2.0)
    # Nobody renews it: it is taken over when its time is up.
    assert seglake.ingest(source, f"{BUCKET}/lake", filesystem=store.tested()).records == 16
    assert left(store.plain(), f"{BUCKET}/lake") == []


SCRIPT = """
import sys
from dying import deadly, print_deaths
import pyarrow.parquet, seglake, seglake._ingestion.threads
from seglake._publish import elsewhere
from tests.stores.emulators import client

name, port, source = sys.argv[1], int(sys.argv[2]), sys.argv[3]
target = elsewhere._ArrowTarget if name in ("gcs", "azure") else elsewhere._ObstoreTarget

def ingest(fatal):
    deadly(target, ("_send", "_copy", "_remove", "_remove_tree"), fatal)
    seglake.ingest(source, f"logs/lake-{fatal}", filesystem=client(name, port), threads=1)

print_deaths(ingest, 200)
"""


def test_killed_in_front_of_any_step_it_is_completed(
    store: Emulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = sources(tmp_path / "src")
    script = [sys.executable, "-c", SCRIPT, store.name, str(store.port), str(source)]
    done = subprocess.run(script, check=False, capture_output=True, text=True)
    statuses = [int(line) for line in done.stdout.split()]
    assert statuses == [-signal.SIGKILL] * (len(statuses) - 1) + [0], done.stderr
    assert len(statuses) > 20
    monkeypatch.setattr(remote, "_lease_of", lambda _: -1.0)
    seglake.ingest(source, tmp_path / "plain")
    expected = rows(tmp_path / "plain")
    for fatal in range(1, len(statuses) + 1):
        lake = f"{BUCKET}/lake-{fatal}"
        seglake.ingest(source, lake, filesystem=store.tested())
        assert rows(fetched(store.plain(), lake, tmp_path / f"kept-{fatal}"), polars=False) == expected
