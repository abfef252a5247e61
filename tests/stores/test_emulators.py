"""Stores of Azure and Google in emulators, and HDFS in a small cluster: `make test-stores` installs and tests them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow.fs as pafs
import pytest
from seglake._ingestion.destination import Destination
from segments import write_segment
from test_ingest_stores import age, fetched, left, rows, sources

import seglake
from seglake import IngestError
from seglake._publish import leases, remote

from .emulators import CLIENTS, client, emulator, plain, root


@dataclass
class Emulated:
    """A running emulator, and the client that is tested with it."""

    name: str
    port: int
    log: Path

    def tested(self) -> Any:
        return client(self.name, self.port)

    def plain(self) -> pafs.FileSystem:
        return plain(self.name, self.port)

    @property
    def root(self) -> str:
        return root(self.name)

    def put(self, local: Path, path: str) -> None:
        with self.plain().open_output_stream(path) as file:
            file.write(local.read_bytes())


@pytest.fixture(scope="module", params=CLIENTS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Emulated]:
    """One for all tests, as HDFS takes long to start: each has a folder of its own there."""
    folder = tmp_path_factory.mktemp("emulator")
    with emulator(request.param, folder) as port:
        yield Emulated(request.param, port, folder / "emulator.log")


def test_folders_are_found_and_read(store: Emulated, tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 12)
    for path in ("top.active", "year/month/a.active", "year/month/b.active", "year/c.active"):
        store.put(tmp_path / "a.active", f"{store.root}/src/{path}")
    filesystem = store.tested()
    for folder, files in {"src": 4, "src/year": 3, "src/*": 4, "src/*/*.active": 1, "src/year/month": 2}.items():
        scan = seglake.scan(f"{store.root}/{folder}", filesystem=filesystem)
        assert (folder, len(scan.files())) == (folder, files)
        assert scan.count() == 12 * files
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        seglake.scan(f"{store.root}/yea", filesystem=filesystem).files()


def test_an_object_that_is_replaced_while_it_is_read_is_an_error(store: Emulated, tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 1000, value_bytes=60_000)
    write_segment(tmp_path / "b.active", 1000, value_bytes=60_000)
    store.put(tmp_path / "a.active", f"{store.root}/a.active")
    with seglake.open(f"{store.root}/a.active", filesystem=store.tested()) as reader:
        records = iter(reader)
        next(records)
        store.put(tmp_path / "b.active", f"{store.root}/a.active")
        # Google has each state of an object under a number of its own, and then no more under that.
        with pytest.raises(OSError, match=r"was replaced or deleted|No such file"):
            list(records)


def test_an_ingest_goes_on(store: Emulated, tmp_path: Path) -> None:
    source = sources(tmp_path / "src")
    lake = f"{store.root}/deep/lake"
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


def test_a_look_at_google_cloud_storage_costs_the_same_after_many_runs(store: Emulated, tmp_path: Path) -> None:
    if store.name != "gcs":
        pytest.skip("the others list one level")
    source, lake = sources(tmp_path / "src"), f"{store.root}/costs"
    filesystem = store.tested()
    seglake.ingest(source, lake, filesystem=filesystem)

    def look() -> tuple[int, int]:
        """Counts the requests, and the bytes of their answers: the emulator gives all files in one."""
        before = store.log.stat().st_size
        assert seglake.ingest(source, lake, filesystem=filesystem, format="active").unchanged == 2
        made = re.findall(r'HTTP/1\.1\\" \d+ (\d+)', store.log.read_bytes()[before:].decode())
        return len(made), sum(map(int, made))

    requests, nbytes = look()
    write_segment(tmp_path / "other", 1)
    for number in range(300):
        store.put(tmp_path / "other", f"{lake}/active/records/date=2024-01-31/{number}")
    assert look() == (requests, pytest.approx(nbytes, abs=1000))
    assert requests < 35


def test_a_lock_that_is_renewed_refuses_a_second_run(
    store: Emulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, lake = sources(tmp_path / "src"), f"{store.root}/refused"
    own: Any = Destination.of(lake, store.tested()).store
    with own.lock(own.root / "_lock", b'{"host": "here", "pid": 7}') as is_ours, monkeypatch.context() as patched:
        assert is_ours
        # The holder renews it each time that the second run is about to wait.
        patched.setattr(remote, "_RENEWAL_SECONDS", 0.0)
        with pytest.raises(IngestError, match=r"another ingest is writing here \(process 7 on here"):
            seglake.ingest(source, lake, filesystem=store.tested(), progress=lambda _: own._renew())
    assert seglake.ingest(source, lake, filesystem=store.tested()).records == 16
    assert left(store.plain(), lake) == []


def test_a_lock_is_there_while_it_is_renewed(store: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renewed without a pause, and looked at without a pause."""
    own, other = [cast("Any", Destination.of(f"{store.root}/renewed", store.tested()).store) for _ in range(2)]
    path, ended = own.root / "_lock", threading.Event()
    monkeypatch.setattr(remote, "_RENEWAL_SECONDS", -1.0)

    def renew() -> None:
        while not ended.is_set():
            own._renew()

    with own.lock(path, b"me") as is_ours:
        assert is_ours
        renewing = threading.Thread(target=renew)
        renewing.start()
        try:
            for _ in range(30):
                with other.lock(path, b"other") as is_others:
                    assert not is_others
        finally:
            ended.set()
            renewing.join()
        own.confirm()
    assert left(store.plain(), f"{store.root}/renewed") == []


def test_a_lock_that_is_not_renewed_is_taken_over(
    store: Emulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = sources(tmp_path / "src")
    write_segment(tmp_path / "other", 1)
    store.put(tmp_path / "other", f"{store.root}/locked/_lock")
    monkeypatch.setattr(leases, "_lease_of", lambda _: 2.0)
    assert seglake.ingest(source, f"{store.root}/locked", filesystem=store.tested()).records == 16
    assert left(store.plain(), f"{store.root}/locked") == []


SCRIPT = """
import sys
from dying import deadly, print_deaths
import pyarrow.parquet, seglake, seglake._ingestion.threads
from seglake._publish import elsewhere
from tests.stores.emulators import client, root

name, port, source = sys.argv[1], int(sys.argv[2]), sys.argv[3]
own = {"obstore-azure": elsewhere._ObstoreTarget, "webhdfs": elsewhere._FsspecTarget}
steps = (("_write", "_move") if name == "webhdfs" else ("_send", "_copy")) + ("_remove", "_remove_tree")

def ingest(fatal):
    deadly(own.get(name, elsewhere._ArrowTarget), steps, fatal)
    seglake.ingest(source, f"{root(name)}/lake-{fatal}", filesystem=client(name, port), threads=1)

print_deaths(ingest, 200)
"""


def test_killed_in_front_of_any_step_it_is_completed(
    store: Emulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = sources(tmp_path / "src")
    script = [sys.executable, "-c", SCRIPT, store.name, str(store.port), str(source)]
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(script, env=os.environ | path, check=False, capture_output=True, text=True)
    statuses = [int(line) for line in done.stdout.split()]
    assert statuses == [-signal.SIGKILL] * (len(statuses) - 1) + [0], done.stderr
    assert len(statuses) > 20
    monkeypatch.setattr(leases, "_lease_of", lambda _: -1.0)
    seglake.ingest(source, tmp_path / "plain")
    expected = rows(tmp_path / "plain")
    for fatal in range(1, len(statuses) + 1):
        lake = f"{store.root}/lake-{fatal}"
        seglake.ingest(source, lake, filesystem=store.tested())
        assert rows(fetched(store.plain(), lake, tmp_path / f"kept-{fatal}"), polars=False) == expected
