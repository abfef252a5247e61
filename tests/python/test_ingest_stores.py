"""The ingest into stores elsewhere: the rows of an ingest on this machine, once, whatever fails or is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import fsspec
import polars as pl
import pyarrow.fs as pafs
import pytest
from cli_process import here
from deltalake import DeltaTable
from object_store import ACCESS_KEY, SECRET_KEY, ObjectStore, Request, object_store
from pyiceberg.catalog.sql import SqlCatalog
from renaming import Hdfs, WebHdfs
from seglake._ingestion import commit as commit_module
from seglake._ingestion import driver
from seglake._ingestion import exchange as exchange_module
from seglake._ingestion import state as state_module
from seglake._ingestion.commit import locked
from seglake._ingestion.destination import Destination, Staging
from seglake._ingestion.exchange import StoreExchange
from seglake._ingestion.layout import TABLES
from segments import flip, write_segment

import seglake
from seglake import IngestError, IngestProgress
from seglake._files import Stores
from seglake._files.fsspec_store import FsspecFile
from seglake._publish import elsewhere, leases, remote
from seglake._publish.manifest import Manifest
from seglake._publish.store import LockTakenError
from seglake.cli.following import followed

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the ingest runs on Linux and macOS")

OLD_S = 1_700_000_000
VECTORS = Path(__file__).parents[1] / "vectors"
LEASE_OF: Any = leases._lease_of  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Generator[ObjectStore]:
    with object_store() as running:
        # All servers of a process have one memory.
        running.filesystem().delete_dir_contents("logs")
        for name, value in environment(running).items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has each lock that is found be that of a dead process."""
    monkeypatch.setattr(leases, "_lease_of", lambda _: -1.0)


def environment(store: ObjectStore) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_ENDPOINT_URL": f"http://{store.endpoint}",
        "AWS_REGION": "eu-central-1",
        "AWS_ALLOW_HTTP": "true",
    }


def once(store: ObjectStore) -> pafs.S3FileSystem:
    """A client that makes each request once."""
    return store.filesystem(retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=1))


def conditional(store: ObjectStore) -> Any:
    """A client that makes requests with conditions."""
    fsspec_of_obstore = pytest.importorskip("obstore.fsspec")
    own = {"access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY, "region": "eu-central-1"}
    config = {**own, "endpoint": f"http://{store.endpoint}"}
    return fsspec_of_obstore.FsspecStore("s3", config=config, client_options={"allow_http": True})


def repeating(store: ObjectStore) -> pafs.S3FileSystem:
    """A client that soon makes a request again, where others wait for up to a second."""
    return store.filesystem(retry_strategy=pafs.AwsDefaultS3RetryStrategy(max_attempts=3))


def age(*folders: Path) -> None:
    """Makes files old enough for their times to tell."""
    for folder in folders:
        for path in folder.rglob("*"):
            if path.stat().st_mtime != OLD_S:  # else it would be changed
                os.utime(path, (OLD_S, OLD_S))


def fetched(filesystem: pafs.FileSystem, folder: str, to: Path) -> Path:
    """Copies a folder of a store here."""
    for info in filesystem.get_file_info(pafs.FileSelector(folder, recursive=True)):
        if info.type == pafs.FileType.File:
            own = to / info.path[len(folder) + 1 :]
            own.parent.mkdir(parents=True, exist_ok=True)
            with filesystem.open_input_file(info.path) as file:
                own.write_bytes(file.read())
    return to


def content(connection: duckdb.DuckDBPyConnection) -> Counter[str]:
    """The rows of the view `t`, but for what depends on when and where."""
    connection.execute("SET TimeZone = 'UTC'")
    columns = [row[0] for row in connection.execute("DESCRIBE t").fetchall()]
    shown = ", ".join(
        f'hex("{name}")' if name in ("value", "raw") else f'CAST("{name}" AS VARCHAR)'
        for name in columns
        if name not in ("run", "modified", "date")
    )
    return Counter(map(str, connection.execute(f"SELECT {shown} FROM t").fetchall()))


def lake_rows(
    store: ObjectStore, kind: str, lake: str, catalog: Path, *, polars: bool = True
) -> dict[str, Counter[str]]:
    """The same of tables of Delta Lake and Iceberg."""
    found: dict[str, Counter[str]] = {}
    for table in TABLES:
        by_polars: int | None = None
        if kind == "delta":
            uri = f"{lake}/active/{table}"
            arrow: Any = DeltaTable(uri).to_pyarrow_table()
            if polars:
                # Named, as polars remembers stores: it would first ask that of the last test for some seconds.
                scanned = pl.scan_delta(uri, storage_options=environment(store))
                by_polars = scanned.select(pl.len()).collect().item()
        else:
            own: Any = {"uri": f"sqlite:///{catalog}", "s3.endpoint": f"http://{store.endpoint}"}
            there = SqlCatalog("seglake", **own, **{"s3.region": "eu-central-1"}).load_table(("active", table))
            arrow = there.scan().to_arrow()
            if polars:
                by_polars = len(there.scan().to_polars())
        with duckdb.connect() as connection:
            connection.register("t", arrow)
            found[f"active/{table}"] = content(connection)
        assert by_polars in (None, sum(found[f"active/{table}"].values()))
    return found


def rows(lake: Path, *, polars: bool = True) -> dict[str, Counter[str]]:
    """The rows of all tables by DuckDB; polars has to find as many."""
    found: dict[str, Counter[str]] = {}
    with duckdb.connect() as connection:
        for folder in [folder for table in TABLES for folder in sorted(lake.glob(f"[!_.]*/{table}"))]:
            files = f"{folder}/**/*.parquet"
            connection.execute(f"CREATE OR REPLACE VIEW t AS FROM read_parquet('{files}', hive_partitioning => false)")
            own = content(connection)
            if polars:
                by_polars = pl.scan_parquet(files, hive_partitioning=False).select(pl.len()).collect().item()
                assert by_polars == sum(own.values())
            found[f"{folder.parent.name}/{folder.name}"] = own
    return found


def visible(filesystem: pafs.FileSystem, folder: str) -> list[str]:
    """What readers see."""
    found = filesystem.get_file_info(pafs.FileSelector(folder, recursive=True, allow_not_found=True))
    own = [info.path[len(folder) + 1 :] for info in found if info.type == pafs.FileType.File]
    return sorted(path for path in own if not path.startswith(("_", ".")))


def left(filesystem: pafs.FileSystem, folder: str) -> list[str]:
    """What is there that no reader looks at."""
    found = filesystem.get_file_info(pafs.FileSelector(folder, recursive=True, allow_not_found=True))
    own = [info.path[len(folder) + 1 :] for info in found if info.type == pafs.FileType.File]
    return sorted(path for path in own if path.startswith(("_", ".")))


def sources(folder: Path) -> Path:
    """Two segments, one of them damaged."""
    written = write_segment(folder / "a.active", 12)
    flip(folder / "a.active", written[3].end - 9)
    write_segment(folder / "b.active", 5)
    age(folder)
    return folder


def memory() -> Any:
    filesystem: Any = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    return filesystem


def test_the_rows_are_those_of_an_ingest_on_this_machine(store: ObjectStore, tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    for format in ("active", "sealed", "tenant", "chunked", "oplog", "tfrecord"):
        for path in sorted((VECTORS / format).glob("*.bin"))[:6]:
            (source / f"{format}-{path.stem}.{format}").write_bytes(path.read_bytes())
    plain = seglake.ingest(source, tmp_path / "plain")
    kept = seglake.ingest(source, "s3://logs/deep/lake")
    assert kept.destination == "s3://logs/deep/lake"
    assert (kept.statuses, kept.records, kept.damage) == (plain.statuses, plain.records, plain.damage)
    filesystem = store.filesystem()
    assert len(plain.formats) == 6
    assert rows(fetched(filesystem, "logs/deep/lake", tmp_path / "kept")) == rows(tmp_path / "plain")
    assert left(filesystem, "logs/deep/lake") == []


@pytest.mark.parametrize(
    "make", [lambda: memory(), Hdfs, WebHdfs, pafs.LocalFileSystem], ids=["memory", "hdfs", "webhdfs", "arrow"]
)
def test_other_stores_by_filesystem(tmp_path: Path, make: Callable[[], Any]) -> None:
    source, filesystem = sources(tmp_path / "src"), make()
    lake = str(tmp_path / "lake")
    assert seglake.ingest(source, lake, filesystem=filesystem).records == 16
    write_segment(source / "c.active", 3)
    again = seglake.ingest(source, lake, filesystem=filesystem)
    assert (again.unchanged, again.records) == (2, 3)
    seglake.ingest(source, tmp_path / "plain")
    here = filesystem if isinstance(filesystem, pafs.FileSystem) else pafs.PyFileSystem(pafs.FSSpecHandler(filesystem))
    assert rows(fetched(here, lake, tmp_path / "kept")) == rows(tmp_path / "plain") | {
        "active/files": rows(tmp_path / "kept")["active/files"]
    }


def test_only_what_is_new_is_added(store: ObjectStore, tmp_path: Path) -> None:
    source, filesystem = sources(tmp_path / "src"), store.filesystem()
    lake: Any = {"dst": "logs/lake", "filesystem": filesystem}
    assert seglake.ingest(source, **lake).records == 16
    before = visible(filesystem, "logs/lake")
    with store.counting() as made:
        again = seglake.ingest(source, **lake)
    assert (again.run_id, again.unchanged, again.records) == (None, 2, 0)
    assert visible(filesystem, "logs/lake") == before
    assert {request.path for request in made if request.method in ("PUT", "POST")} <= {
        "/logs/lake/_lock",
        "/logs/lake/",
    }
    with seglake.create(source / "b.active", format="active", if_exists="append") as writer:
        writer.write(type="t", value=b"more")
    write_segment(source / "c.active", 7)
    grown = seglake.ingest(source, **lake)
    assert (grown.unchanged, grown.records, grown.statuses["sound"]) == (1, 8, 2)
    kept = fetched(filesystem, "logs/lake", tmp_path / "kept")
    records = pl.read_parquet(kept / "active/records/**/*.parquet", hive_partitioning=False)
    assert (len(records), records["value"].n_unique()) == (24, 24)
    # From another machine, with the same tables.
    age(source)
    assert seglake.ingest(source, "s3://logs/lake").records == 0
    assert seglake.ingest(source, "s3://logs/lake").unchanged == 3


def test_checkpoints_save_requests(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, filesystem = tmp_path / "src", store.filesystem()
    for number in range(6):
        write_segment(source / f"{number}.active", 1)
        age(source)
        assert seglake.ingest(source, "logs/lake", filesystem=filesystem).records == 1

    def look() -> int:
        with store.counting() as made:
            assert seglake.ingest(source, "logs/lake", filesystem=filesystem).unchanged == 6
        return len(made)

    without = look()
    monkeypatch.setattr(state_module, "_CHECKPOINT_FILES", 3)
    look()
    assert [path for path in left(filesystem, "logs/lake") if path.startswith("_state/")]
    assert look() <= without - 6
    filesystem.delete_dir("logs/lake/_state")
    assert look() > without


def test_what_is_on_its_way_is_seen_by_nobody(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, filesystem = sources(tmp_path / "src"), store.filesystem()
    seen: list[tuple[int, ...]] = []

    def look(request: Request) -> None:
        # In front of each copy.
        if request.method == "PUT" and request.path.endswith(".parquet"):
            names = [path.split("/")[-1] for path in store_keys()]
            seen.append(tuple(sum(f"/{table}/" in key for key in store_keys()) for table in TABLES))
            assert not any(name.endswith(".inprogress") for name in names)

    def store_keys() -> list[str]:
        return [key for key in visible(filesystem, "logs/lake") if key.endswith(".parquet")]

    store.fault = look
    monkeypatch.setattr(remote.RemoteStore, "at_a_time", 1)
    seglake.ingest(source, "s3://logs/lake", filesystem=store.filesystem())
    assert len(seen) > 3
    # All of the records, then all of the damage, then what lists them.
    assert seen == sorted(seen)
    assert seen[-1][2] == 0
    assert seen[-1][1] == 1


def test_one_run_at_a_time(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that finds a lock looks at it until it is renewed."""
    monkeypatch.setattr(remote, "_RENEWAL_SECONDS", 0.05)
    monkeypatch.setattr(leases, "_LOOK_SECONDS", 0.05)
    source, seen = sources(tmp_path / "src"), list[IngestProgress]()
    destination = Destination.of("s3://logs/lake")
    who = rf"\(process {os.getpid()} on .*, since 20..-..-..T..:..:..Z by its clock\)"
    with locked(destination), pytest.raises(IngestError, match=rf"^s3://logs/lake: another ingest is .*here {who}"):
        seglake.ingest(source, "s3://logs/lake", progress=seen.append)
    assert all(
        re.fullmatch(rf"waiting for another ingest {who}, which.* \d+ s at most", str(each.waiting)) for each in seen
    )
    seen.clear()
    assert seglake.ingest(source, "s3://logs/lake", progress=seen.append).records == 16
    assert [each.waiting for each in seen if each.waiting is not None] == []
    assert left(store.filesystem(), "logs/lake") == []


# Runs an ingest with a short lease, and does something in front of a step of it.
LEASED = """
import os, signal, sys
import seglake
from seglake._ingestion import commit
from seglake._publish import remote
from seglake._publish.manifest import Manifest
from seglake._publish.store import LockTakenError

commit._LEASE_S = 1.0
owner, name, then = sys.argv[2:]
owner = getattr(remote, owner, None) or getattr(commit, owner)
function = getattr(owner, name)
def stops(*arguments, **named):
    setattr(owner, name, function)
    os.kill(os.getpid(), getattr(signal, then))
    return function(*arguments, **named)
setattr(owner, name, stops)
seglake.ingest(sys.argv[1], "s3://logs/lake", threads=1)
"""


@pytest.fixture
def leased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_module, "_LEASE_S", 1.0)
    monkeypatch.setattr(leases, "_LOOK_SECONDS", 0.05)


def test_the_lock_of_a_run_that_was_killed_expires(store: ObjectStore, tmp_path: Path, leased: None) -> None:
    source, seen = sources(tmp_path / "src"), list[IngestProgress]()
    words = [sys.executable, "-c", LEASED, source, "Manifest", "write_down", "SIGKILL"]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert "_lock" in left(store.filesystem(), "logs/lake")
    done = seglake.ingest(source, "s3://logs/lake", progress=seen.append)
    assert done.records == 16
    assert all("waiting for another ingest (process" in each.waiting for each in seen if each.waiting is not None)
    assert "_lock" not in left(store.filesystem(), "logs/lake")


@pytest.mark.parametrize("step", [("Manifest", "write_down"), ("RemoteStore", "place"), ("RemoteStore", "confirm")])
def test_a_run_that_was_paused_adds_nothing_twice(
    store: ObjectStore, tmp_path: Path, leased: None, step: tuple[str, str]
) -> None:
    source, kept = sources(tmp_path / "src"), tmp_path / "kept"
    words = [sys.executable, "-c", LEASED, source, *step, "SIGSTOP"]
    with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        done = seglake.ingest(source, "s3://logs/lake")
        assert (done.records, done.unchanged) == ((0, 2) if step[1] == "place" else (16, 0))
        process.send_signal(signal.SIGCONT)
        assert b"another run took the lock of this one" in process.stderr.read()
    assert process.returncode == 1
    again = seglake.ingest(source, "s3://logs/lake")
    assert (again.records, again.unchanged) == (0, 2)
    seglake.ingest(source, tmp_path / "plain")
    assert rows(fetched(store.filesystem(), "logs/lake", kept)) == rows(tmp_path / "plain")


@pytest.mark.parametrize("lease", ['"abc"', "[]", "null", "NaN", "-1", "1e300", "1" + 400 * "0"])
def test_a_lock_with_another_lease_than_runs_have_is_held_for_the_usual_time(
    lease: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_LOOK_SECONDS", 0.01)
    own = remote.RemoteStore(Stores(memory()), "/lake")
    path, waited = own.root / "_lock", list[float]()
    own.write_durably(own.root, path, f'{{"token": "a", "holder": "", "lease": {lease}}}'.encode())

    def waits(seconds: float) -> None:
        waited.append(seconds)
        own.remove(path)

    with own.lock(path, waiting=waits) as is_ours:
        assert is_ours
    assert [590 < seconds <= 600 for seconds in waited] == [True]


def test_a_lock_of_the_future_is_waited_for_as_long_as_it_says_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = (remote.RemoteStore(Stores(memory()), "/lake") for _ in range(2))
    monkeypatch.setattr(leases, "_LOOK_SECONDS", 0.01)
    waited, path = list[float](), own.root / "_lock"
    with own.lock(path, lease_s=0.2):
        now = own._now(path)  # pyright: ignore[reportPrivateUsage]
        assert now is not None
        monkeypatch.setattr(remote.RemoteStore, "_now", lambda *_: now - 1e6)  # set back meanwhile
        with other.lock(path, waiting=waited.append) as is_others:
            assert is_others
    assert waited[0] <= 0.2


def test_a_lock_whose_age_a_store_does_not_tell_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = (remote.RemoteStore(Stores(memory()), "/lake") for _ in range(2))
    monkeypatch.setattr(remote.RemoteStore, "_now", lambda *_: None)
    monkeypatch.setattr(leases, "_LOOK_SECONDS", 0.01)
    waited, path = list[float](), own.root / "_lock"

    def renews(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            own._held[path].renewed -= 100  # pyright: ignore[reportPrivateUsage]
            own._renew()  # pyright: ignore[reportPrivateUsage]

    with own.lock(path, lease_s=600.0) as is_ours, other.lock(path, waiting=renews) as is_others:
        assert (is_ours, is_others) == (True, False)
        assert len(waited) == 3
        own.confirm()
    waited.clear()
    with own.lock(path, lease_s=0.2) as is_ours, other.lock(path, waiting=waited.append) as is_others:
        assert (is_ours, is_others) == (True, True)
        assert waited
        assert waited == sorted(waited, reverse=True)
        with pytest.raises(OSError, match="another has taken it for dead"):
            own.confirm()


def test_a_lock_is_renewed_while_the_run_is_busy(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_RENEWAL_SECONDS", 0.01)
    source, renewed, is_busy = sources(tmp_path / "src"), threading.Event(), threading.Event()

    def look(request: Request) -> None:
        if is_busy.is_set() and request.path == "/logs/lake/_lock" and request.method in ("PUT", "POST"):
            renewed.set()

    def busy(_: object) -> None:
        is_busy.set()
        assert renewed.wait(30)

    store.fault = look
    assert seglake.ingest(source, "s3://logs/lake", progress=busy).records == 16
    store.fault = None
    # The last renewal came before the lock was given up.
    assert left(store.filesystem(), "logs/lake") == []


@pytest.mark.parametrize("moment", ["reading", "manifest"])
def test_a_run_that_was_held_for_dead_adds_nothing_twice(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """It stands still for so long that another takes its lock, adds the same files, and ends."""
    source, filesystem = sources(tmp_path / "src"), store.filesystem()
    confirm, calls = remote.RemoteStore.confirm, [0]

    def other() -> None:
        monkeypatch.setattr(leases, "_lease_of", lambda _: -1.0)
        assert seglake.ingest(source, "s3://logs/lake", filesystem=store.filesystem()).records == 16
        monkeypatch.setattr(leases, "_lease_of", LEASE_OF)

    def stalls(self: remote.RemoteStore) -> None:
        calls[0] += 1
        if moment == "reading" and calls[0] == 1:
            other()
        confirm(self)

    write_durably = remote.RemoteStore.write_durably

    def is_late(self: remote.RemoteStore, root: Path, path: Path, content: bytes, **given: bool) -> None:
        if moment == "manifest" and path.name == commit_module.MANIFEST and calls[0] == 1:
            calls[0] += 1
            other()
        write_durably(self, root, path, content, **given)

    monkeypatch.setattr(remote.RemoteStore, "confirm", stalls)
    monkeypatch.setattr(remote.RemoteStore, "write_durably", is_late)
    with pytest.raises(IngestError, match=r"another has taken it for dead"):
        seglake.ingest(source, "s3://logs/lake", filesystem=filesystem)
    monkeypatch.undo()
    for name, value in environment(store).items():
        monkeypatch.setenv(name, value)
    more = tmp_path / "more"
    write_segment(more / "c.active", 3)
    monkeypatch.setattr(leases, "_lease_of", lambda _: -1.0)
    assert seglake.ingest([source, more], "s3://logs/lake").records == 3
    kept = fetched(filesystem, "logs/lake", tmp_path / "kept")
    found = rows(kept)
    seglake.ingest(source, tmp_path / "plain")
    seglake.ingest([source, more], tmp_path / "plain")
    assert found == rows(tmp_path / "plain")


def test_of_two_runs_that_died_the_one_that_had_begun_is_completed(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest of the first came late: the second did not see it, added the same files, and died half-way."""
    source = sources(tmp_path / "src")

    def dies(*_: object) -> None:
        raise OSError("no")

    with monkeypatch.context() as patched, pytest.raises(IngestError):
        patched.setattr(commit_module, "_roll_forward", dies)
        seglake.ingest(source, "s3://logs/lake")
    place = remote.RemoteStore.place

    def places_records(self: remote.RemoteStore, staged: Path, final: Path) -> None:
        if "files" in final.parts:
            raise OSError("no")
        place(self, staged, final)

    with monkeypatch.context() as patched, pytest.raises(IngestError):
        patched.setattr(driver, "settle_dead_runs", lambda *_: None)
        patched.setattr(remote.RemoteStore, "place", places_records)
        seglake.ingest(source, "s3://logs/lake")
    assert len([path for path in left(store.filesystem(), "logs/lake") if path.endswith("manifest.json")]) == 2
    assert seglake.ingest(source, "s3://logs/lake").unchanged == 2
    seglake.ingest(source, tmp_path / "plain")
    assert rows(fetched(store.filesystem(), "logs/lake", tmp_path / "kept")) == rows(tmp_path / "plain")


def test_a_run_that_another_completed_does_not_say_that_it_failed(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = sources(tmp_path / "src")
    place, others = remote.RemoteStore.place, [0]

    def stalls(self: remote.RemoteStore, staged: Path, final: Path) -> None:
        monkeypatch.setattr(remote.RemoteStore, "place", place)
        monkeypatch.setattr(leases, "_lease_of", lambda _: -1.0)
        others[0] = seglake.ingest(source, "s3://logs/lake").unchanged
        monkeypatch.setattr(remote, "_RENEWAL_SECONDS", -1.0)
        place(self, staged, final)

    monkeypatch.setattr(remote.RemoteStore, "at_a_time", 1)
    monkeypatch.setattr(remote.RemoteStore, "place", stalls)
    with pytest.raises(IngestError, match=r"took the lock of this one.* All of it is ingested, or nothing\."):
        seglake.ingest(source, "s3://logs/lake")
    assert others == [2]


def test_a_small_file_that_is_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, path = remote.RemoteStore(Stores(Hdfs()), str(tmp_path)), tmp_path / "a"
    read, meanwhile = FsspecFile._read, list[Callable[[], object]]()  # pyright: ignore[reportPrivateUsage]

    def fails(self: FsspecFile, offset: int, size: int) -> bytes:
        if not meanwhile:
            return read(self, offset, size)
        meanwhile.pop()()
        raise FileNotFoundError("not any more")

    monkeypatch.setattr(FsspecFile, "_read", fails)
    path.write_bytes(b"first")
    meanwhile[:] = [lambda: path.write_bytes(b"a third one"), lambda: path.write_bytes(b"second")]
    assert own._get(path) == b"a third one"  # pyright: ignore[reportPrivateUsage]
    meanwhile[:] = [lambda: None]
    with pytest.raises(FileNotFoundError):
        own._get(path)  # pyright: ignore[reportPrivateUsage]
    meanwhile[:] = [path.unlink]
    assert own._get(path) is None  # pyright: ignore[reportPrivateUsage]


def test_an_empty_lock_is_being_written(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `pyarrow.fs` does in Azure, also when it is renewed."""
    monkeypatch.setattr(leases, "_LOOK_SECONDS", 0.01)
    own, waited = remote.RemoteStore(Stores(store.filesystem()), "logs/lake"), list[float]()
    store.put("lake/_lock", b"")
    with own.lock(own.root / "_lock") as is_ours:
        assert not is_ours

    def is_complete(seconds: float) -> None:
        waited.append(seconds)
        store.put("lake/_lock", b'{"token": "of another"}')

    with own.lock(own.root / "_lock", waiting=is_complete) as is_ours:
        assert not is_ours
    assert [50 < seconds <= 60 for seconds in waited] == [True]
    store.put("lake/_lock", b"")
    monkeypatch.setattr(leases, "_BEGUN_SECONDS", 0.1)
    with own.lock(own.root / "_lock", waiting=waited.append) as is_ours:
        assert is_ours


def test_a_rename_whose_answer_is_lost_is_done(tmp_path: Path) -> None:
    class Lossy(Hdfs):
        lost = 0

        def mv(self, path1: str, path2: str, **options: Any) -> None:
            super().mv(path1, path2, **options)
            if self.exists(path2) and type(self).lost < 30:
                type(self).lost += 1
                raise OSError("no answer")

    own = remote.RemoteStore(Stores(Lossy()), str(tmp_path / "lake"))
    with own.lock(own.root / "_lock") as is_ours, pytest.MonkeyPatch.context() as patched:
        assert is_ours
        patched.setattr(remote, "_RENEWAL_SECONDS", -1.0)
        own._renew()  # pyright: ignore[reportPrivateUsage]
        own.confirm()
    assert Lossy.lost == 2
    assert seglake.ingest(sources(tmp_path / "src"), str(tmp_path / "lake"), filesystem=Lossy()).records == 16
    seglake.ingest(tmp_path / "src", tmp_path / "plain")
    assert rows(tmp_path / "lake") == rows(tmp_path / "plain")


@pytest.mark.parametrize("make", [lambda: memory(), Hdfs, WebHdfs], ids=["memory", "hdfs", "webhdfs"])
def test_a_lock_is_there_at_each_moment_of_its_renewal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any]
) -> None:
    """HDFS renames onto no file. So a run that looks in front of any request finds the lock, and who holds it."""
    own, other = (remote.RemoteStore(Stores(make()), str(tmp_path / "lake")) for _ in range(2))
    path, looks = own.root / "_lock", [0]

    def looking(name: str) -> None:
        function = getattr(elsewhere._FsspecTarget, name)  # pyright: ignore[reportPrivateUsage]

        def call(self: Any, *arguments: Any, **named: Any) -> Any:
            if self is own._target and own._held:  # pyright: ignore[reportPrivateUsage]
                looks[0] += 1
                assert other.holder(path) == b"me"
                with other.lock(path) as is_others:
                    assert not is_others
            return function(self, *arguments, **named)

        monkeypatch.setattr(elsewhere._FsspecTarget, name, call)  # pyright: ignore[reportPrivateUsage]

    for name in ("_write", "_move", "_remove", "children", "get"):
        looking(name)
    with own.lock(path, b"me") as is_ours:
        assert is_ours
        monkeypatch.setattr(remote, "_RENEWAL_SECONDS", -1.0)
        for _ in range(3):
            own._renew()  # pyright: ignore[reportPrivateUsage]
        own.confirm()
        monkeypatch.undo()
    assert looks[0] > 9
    assert list((tmp_path / "lake").rglob("*.*")) == []


def test_all_locks_are_renewed_however_often_they_are_confirmed(store: ObjectStore) -> None:
    own = remote.RemoteStore(Stores(store.filesystem()), "logs/lake")
    with own.lock(own.root / "a_lock"), own.lock(own.root / "b_lock"):
        for held in own._held.values():  # pyright: ignore[reportPrivateUsage]
            held.renewed -= 2 * remote._RENEWAL_SECONDS  # pyright: ignore[reportPrivateUsage]
        own.confirm()
        store.requests.clear()
        own._renew()  # pyright: ignore[reportPrivateUsage]
        own._renew()  # pyright: ignore[reportPrivateUsage]
    written = [each.path for each in store.requests if each.method == "PUT" and each.path.endswith("_lock")]
    assert written == ["/logs/lake/a_lock", "/logs/lake/b_lock"]


def test_what_no_manifest_names_stays_for_a_day(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, filesystem = sources(tmp_path / "src"), store.filesystem()
    store.put("lake/_staging/20200101T000000Z-00000000/task-00000-1/x.inprogress", b"x")
    seglake.ingest(source, "s3://logs/lake")
    assert left(filesystem, "logs/lake") == ["_staging/20200101T000000Z-00000000/task-00000-1/x.inprogress"]
    monkeypatch.setattr(commit_module, "_KEPT_S", -1.0)
    seglake.ingest(source, "s3://logs/lake")
    assert left(filesystem, "logs/lake") == []


def test_following_outlasts_a_store_that_refuses_and_one_that_is_away(store: ObjectStore, tmp_path: Path) -> None:
    """It fails from another request on each time, and then comes back."""
    source, filesystem = sources(tmp_path / "src"), once(store)
    made, fatal, shown, errors, pauses = [0], [1], list[Any](), list[str](), list[float]()

    def act(request: Request) -> str | None:
        made[0] += 1
        return None if made[0] < fatal[0] else "503" if fatal[0] % 2 else "reset"

    def sleep(seconds: float) -> None:
        if shown:
            raise KeyboardInterrupt
        pauses.append(seconds)
        assert len(pauses) < 20, errors
        made[0], fatal[0] = 0, fatal[0] + 13 if len(pauses) < 8 else 10_000

    store.fault = act
    with pytest.raises(KeyboardInterrupt):
        followed(
            lambda: seglake.ingest(source, "logs/lake", filesystem=filesystem, threads=1),
            shown.append,
            lambda error, seconds: errors.append(str(error)),
            sleep,
        )
    store.fault = None
    assert [result.records + 8 * result.unchanged for result in shown] == [16]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert 1 <= len(errors) < len(pauses)
    seglake.ingest(source, tmp_path / "plain")
    assert rows(fetched(store.filesystem(), "logs/lake", tmp_path / "kept")) == rows(tmp_path / "plain")


# Forks before it has reached any store, and dies in front of the n-th step of each fork that others could see.
SCRIPT = """
import os, signal, sys
from dying import print_deaths
import pyarrow.parquet, pyarrow.fs, deltalake, pyiceberg.catalog.sql, pyiceberg.io.pyarrow
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
import seglake
from seglake._publish.elsewhere import _ArrowTarget
from seglake._ingestion import driver
import seglake._ingestion.threads

source, given, first, stride = sys.argv[1], eval(sys.argv[2]), sys.argv[3], int(sys.argv[4])

def deadly(fatal):
    calls, has_begun = [0], [False]
    def before(owner, name, is_static=False):
        function = getattr(owner, name)
        def call(*arguments, **named):
            has_begun[0] = has_begun[0] or any(str(each).endswith(first) for each in arguments)
            calls[0] += has_begun[0]
            if calls[0] == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)
        setattr(owner, name, staticmethod(call) if is_static else call)
    for name in ("_send", "_copy", "_remove", "_remove_tree"):
        before(_ArrowTarget, name)
    before(DeltaTable, "create", True)
    before(DeltaTable, "create_write_transaction")
    before(SqlCatalog, "create_table")
    before(Table, "_do_commit")

def ingest(fatal):
    deadly(fatal)
    named = {name: value.format(fatal=fatal) for name, value in given.items()}
    seglake.ingest(source, threads=1, **named)

print_deaths(ingest, 200, stride)
"""


def killed(source: Path, given: dict[str, str], stride: int, first: str = "") -> range:
    """Kills an ingest in front of its steps, from the one on that writes a file; returns which, and one more."""
    script = [sys.executable, "-c", SCRIPT, str(source), repr(given), first, str(stride)]
    done = subprocess.run(script, check=False, capture_output=True, text=True, cwd=Path(__file__).parent)
    statuses = [int(line) for line in done.stdout.split()]
    assert statuses == [-signal.SIGKILL] * (len(statuses) - 1) + [0], done.stderr
    return range(1, len(statuses) * stride + 1, stride)


def test_killed_in_front_of_any_step_it_is_completed(
    store: ObjectStore, tmp_path: Path, no_lease: None, stride: int
) -> None:
    source, filesystem = sources(tmp_path / "src"), store.filesystem()
    steps = killed(source, {"dst": "s3://logs/lake-{fatal}"}, stride)
    assert steps[-1] > 20
    seglake.ingest(source, tmp_path / "plain")
    expected = rows(tmp_path / "plain")
    completed: list[bool] = []
    for fatal in steps:
        lake = f"logs/lake-{fatal}"
        listed = [path for path in visible(filesystem, lake) if "/files/" in path]
        manifests = [path for path in left(filesystem, lake) if path.endswith("/manifest.json")]
        if listed:  # what is listed is complete
            assert rows(fetched(filesystem, lake, tmp_path / f"seen-{fatal}"), polars=False) == expected
        again = seglake.ingest(source, f"s3://{lake}")
        # A run with a manifest is completed, and not planned anew.
        assert again.unchanged == (2 if manifests or listed else 0)
        completed.append(bool(manifests or listed))
        assert rows(fetched(filesystem, lake, tmp_path / f"kept-{fatal}"), polars=fatal % 8 == 0) == expected
        waiting = [path for path in left(filesystem, lake) if not path.endswith((".inprogress", "/begun"))]
        assert waiting == []
    assert completed == sorted(completed)
    assert 0 < sum(completed) < len(completed)


@pytest.mark.parametrize("kind", ["delta", pytest.param("iceberg", marks=pytest.mark.more)])
def test_tables_are_completed_when_killed_in_front_of_any_step(
    store: ObjectStore, tmp_path: Path, no_lease: None, kind: Any, stride: int
) -> None:
    """In front of the manifest the steps are those of plain Parquet, as above."""
    source, filesystem = tmp_path / "src", store.filesystem()
    written = write_segment(source / "a.active", 4)
    flip(source / "a.active", written[1].end - 9)
    age(source)
    catalog = {"catalog": f"sqlite:///{tmp_path}/{{fatal}}.db"} if kind == "iceberg" else {}
    steps = killed(source, {"dst": "s3://logs/lake-{fatal}", "table": kind, **catalog}, stride, "/number.json")
    assert steps[-1] > 12
    seglake.ingest(source, tmp_path / "plain")
    expected = rows(tmp_path / "plain")
    completed = 0
    for fatal in steps:
        lake = f"s3://logs/lake-{fatal}"
        own = {name: value.format(fatal=fatal) for name, value in catalog.items()}
        manifests = [path for path in left(filesystem, f"logs/lake-{fatal}") if path.endswith("/manifest.json")]
        again = seglake.ingest(source, lake, table=kind, **own)
        assert again.unchanged == 1 or not manifests
        found = lake_rows(store, kind, lake, tmp_path / f"{fatal}.db", polars=fatal % 8 == 0)
        assert found == expected, fatal
        completed += bool(manifests)
        if completed % 3 == 1:  # what was completed is no news
            third = seglake.ingest(source, lake, table=kind, **own)
            assert (third.unchanged, third.records) == (1, 0)
    assert completed * stride > 8


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_tables_in_a_store_grow(store: ObjectStore, tmp_path: Path, kind: Any) -> None:
    source = sources(tmp_path / "src")
    own: Any = {"catalog": f"sqlite:///{tmp_path}/c.db"} if kind == "iceberg" else {}
    assert seglake.ingest(source, "s3://logs/lake", table=kind, **own).records == 16
    write_segment(source / "c.active", 3)
    age(source)
    assert seglake.ingest(source, "s3://logs/lake", table=kind, **own).records == 3
    assert seglake.ingest(source, "s3://logs/lake", table=kind, **own).unchanged == 3
    found = lake_rows(store, kind, "s3://logs/lake", tmp_path / "c.db")
    assert {table: sum(content.values()) for table, content in found.items()} == {
        "active/records": 19,
        "active/damage": 1,
        "active/files": 3,
    }
    with pytest.raises(IngestError, match=rf"its tables are of the kind {kind}, and parquet is asked for"):
        seglake.ingest(source, "s3://logs/lake")


def test_tables_take_what_reaches_the_store(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = sources(tmp_path / "src")
    for name in environment(store):
        monkeypatch.delenv(name)
    filesystem = store.filesystem()
    options = {
        "access_key_id": ACCESS_KEY,
        "secret_access_key": SECRET_KEY,
        "endpoint": f"http://{store.endpoint}",
        "region": "eu-central-1",
        "allow_http": "true",
    }
    done = seglake.ingest(source, "s3://logs/d", table="delta", filesystem=filesystem, storage_options=options)
    assert done.records == 16
    catalog = {
        "uri": f"sqlite:///{tmp_path}/c.db",
        "s3.access-key-id": ACCESS_KEY,
        "s3.secret-access-key": SECRET_KEY,
        "s3.endpoint": f"http://{store.endpoint}",
        "s3.region": "eu-central-1",
    }
    done = seglake.ingest(source, "s3://logs/i", table="iceberg", filesystem=filesystem, catalog=catalog)
    assert done.records == 16


def test_a_store_that_refuses_the_library_of_the_tables_is_named(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOTHER")
    with pytest.raises(OSError, match=r"the table cannot be read: .*403 Forbidden.*: 's3://logs/lake/") as caught:
        seglake.ingest(sources(tmp_path / "src"), "s3://logs/lake", table="delta", filesystem=store.filesystem())
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("named", "given", "message"),
    [
        ("s3://logs/lake", {"table": "iceberg"}, r"^s3://logs/lake: expected a catalog of the Iceberg tables"),
        ("logs/lake", {"table": "delta"}, r"^logs/lake: expected a URI, by which tables"),
        ("logs/lake", {"table": "iceberg", "catalog": "sqlite://"}, r"^logs/lake: expected a URI, by which tables"),
    ],
)
def test_tables_that_cannot_be_in_a_store(
    store: ObjectStore, tmp_path: Path, named: str, given: Any, message: str
) -> None:
    with pytest.raises(IngestError, match=message):
        seglake.ingest(sources(tmp_path / "src"), named, filesystem=store.filesystem(), **given)
    assert visible(store.filesystem(), "logs") == []
    assert left(store.filesystem(), "logs") == []


# What is done to a request, whether the client makes it again, to each of how many, and of which methods.
FAULTS = {
    "refused": ("503", False, 3, ("GET", "HEAD", "PUT", "POST", "DELETE")),
    "answer lost": ("lost", False, 1, ("PUT", "POST", "DELETE")),
    "answer lost and repeated": ("lost", True, 4, ("PUT", "POST", "DELETE")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_request_in_turn(store: ObjectStore, tmp_path: Path, no_lease: None, fault: str, stride: int) -> None:
    kind, repeats, step, methods = FAULTS[fault]
    source = tmp_path / "src"
    write_segment(source / "a.active", 4)
    age(source)
    filesystem = store.filesystem()
    seglake.ingest(source, tmp_path / "plain")
    expected = rows(tmp_path / "plain")
    failed = 0
    for fatal in range(1, 300, step * stride):
        lake = f"logs/{fatal}"
        made = iter(range(1, 10_000))
        hit: list[Request] = []

        def act(request: Request, fatal: int = fatal, made: Any = made, hit: list[Request] = hit) -> str | None:
            if request.method not in methods or next(made) != fatal:
                return None
            hit.append(request)
            return kind

        client = repeating(store) if repeats else once(store)
        store.fault = act
        error: Exception | None = None
        try:
            seglake.ingest(source, lake, filesystem=client, threads=1)
        except (IngestError, OSError) as raised:
            error = raised
            failed += 1
        store.fault = None
        assert error is None or SECRET_KEY not in str(error)
        shown = visible(filesystem, lake)
        if error is not None and "completes it" not in str(error):
            assert shown == []
        if error is not None and "completes it" in str(error):
            assert seglake.ingest(source, lake, filesystem=filesystem).unchanged == 1
        else:
            seglake.ingest(source, lake, filesystem=filesystem)
        own = rows(fetched(filesystem, lake, tmp_path / f"kept-{fatal}"), polars=fatal % 8 == 1)
        assert own == expected, (error, hit)
        if not hit:
            break
    else:
        pytest.fail("it did not end")
    assert fatal > 30
    assert failed == 0 if repeats else failed > 0


def test_a_slow_store_that_loses_answers(store: ObjectStore, tmp_path: Path) -> None:
    source = sources(tmp_path / "src")
    met: set[tuple[str, str]] = set()
    store.delay = 0.02

    def act(request: Request) -> str:
        one = (request.method, request.path.rpartition(".")[2])
        if request.method == "GET" or one in met:
            return "slow"
        met.add(one)
        return "lost"

    store.fault = act
    assert seglake.ingest(source, "s3://logs/lake", filesystem=repeating(store)).records == 16
    store.fault = None
    assert len(met) > 5
    seglake.ingest(source, tmp_path / "plain")
    assert rows(fetched(store.filesystem(), "logs/lake", tmp_path / "kept")) == rows(tmp_path / "plain")
    assert left(store.filesystem(), "logs/lake") == []


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("s3://logs/file", r"^s3://logs/file: expected a folder for the tables, or nothing yet; a file is there"),
        ("s3://", r"names no folder"),
        ("s3:/logs/lake", r"^s3:/logs/lake: expected a path, or a URI with //, as in s3://bucket/lake$"),
        ("s3://no-such-bucket/lake", r"no-such-bucket"),
        ("s3://logs/lake#1", r"^s3://logs/lake#1: expected the URI of a folder .* the one of logs/lake\."),
        ("s3://logs/a%20b", r"the one of logs/a b\."),
        ("s3://logs/a//b", r"the one of logs/a/b\."),
        ("s3://logs/a/./b", r"the one of logs/a/b\."),
        ("s3://logs/a/../b", r"the one of logs/a/\.\./b\."),
        ("s3://logs/lake?scheme=http", r"the one of logs/lake\."),
        (f"s3://{ACCESS_KEY}:not-to-be-shown@logs/lake", r"a URI with a password in it"),
        ("nonsense://logs/lake", r"nonsense"),
        ("s3://logs/a b", r"^s3://logs/a b: .*Choose another name, or give filesystem= and the path within it$"),
    ],
)
def test_what_is_no_destination(store: ObjectStore, tmp_path: Path, named: str, message: str) -> None:
    store.put("file", b"x")
    with pytest.raises(IngestError, match=message) as caught:
        seglake.ingest(sources(tmp_path / "src"), named)
    assert "not-to-be-shown" not in str(caught.value)
    assert visible(store.filesystem(), "logs") == ["file"]
    with pytest.raises(TypeError, match=r"filesystem must be"):
        seglake.ingest(tmp_path / "src", "lake", filesystem="s3")  # pyright: ignore


def test_a_folder_within_a_file_system_may_have_any_name(store: ObjectStore, tmp_path: Path) -> None:
    source, filesystem = sources(tmp_path / "src"), store.filesystem()
    for name in ("a b", "a%20b", "größe", "a#b", "a?b", "日本"):
        assert seglake.ingest(source, f"logs/{name}", filesystem=filesystem).records == 16
        assert seglake.ingest(source, f"logs/{name}", filesystem=filesystem).unchanged == 2
        assert rows(fetched(filesystem, f"logs/{name}", tmp_path / name))
    with pytest.raises(IngestError, match=r"which their readers take for something else"):
        seglake.ingest(source, "s3://logs/a%20c", filesystem=filesystem, table="delta")


def test_a_file_uri_is_a_folder_of_this_machine(tmp_path: Path) -> None:
    result = seglake.ingest(sources(tmp_path / "src"), f"file://{tmp_path}/lake")
    assert result.destination == str(tmp_path / "lake")
    assert (tmp_path / "lake/active/records").is_dir()


@pytest.mark.parametrize(
    ("bucket", "access_key", "endpoint", "said"),
    [
        ("nowhere", ACCESS_KEY, None, r"^s3://nowhere/lake/_lock: .*create the bucket, or name another one$"),
        ("logs", "wrong", None, r"^s3://logs/lake: .*check the credentials, and what they allow$"),
        ("logs", ACCESS_KEY, "127.0.0.1:9", r"^s3://logs/lake: .*; check that the store runs, and its address \(AWS_"),
        ("logs", ACCESS_KEY, "nowhere.invalid", r"^s3://logs/lake: .*resolve.*; check that the store runs, and its"),
    ],
)
def test_what_is_wrong_with_a_store_is_told_with_what_to_do(
    store: ObjectStore,
    tmp_path: Path,
    bucket: str,
    access_key: str,
    endpoint: str | None,
    said: str,
) -> None:
    once_only = pafs.AwsStandardS3RetryStrategy(max_attempts=1)
    filesystem = store.filesystem(
        access_key=access_key, endpoint_override=endpoint or store.endpoint, retry_strategy=once_only
    )
    write_segment(tmp_path / "a.active", 3)
    with pytest.raises(IngestError, match=said):
        seglake.ingest(tmp_path / "a.active", f"s3://{bucket}/lake", filesystem=filesystem)


@pytest.mark.parametrize("fault", ["cut", "short"])
@pytest.mark.parametrize("part", ["_lock", "files/", ".parquet", "_staging/", "lake/&"])
def test_half_an_answer_is_an_error_or_does_not_matter(
    store: ObjectStore, tmp_path: Path, fault: str, part: str
) -> None:
    """Whether the connection ends early, or the answer says that it is all."""
    source, filesystem = sources(tmp_path / "src"), once(store)
    assert seglake.ingest(source, "logs/lake", filesystem=filesystem).records == 16
    asked: list[str] = []

    def act(request: Request) -> str | None:
        listed = f"{unquote(request.query)}&".endswith(f"{part}&" if part != "lake/&" else part)
        if request.method == "GET" and (listed if "max-keys=1000" in request.query else request.path.endswith(part)):
            asked.append(request.path)
            return fault
        return None

    store.fault = act
    with pytest.raises((IngestError, OSError), match=r"logs/lake") as caught:
        seglake.ingest(source, "logs/lake", filesystem=filesystem)
    assert isinstance(caught.value, IngestError) or caught.value.filename
    store.fault = None
    assert asked
    if part != "_lock":  # whose own half is not known for what it is
        assert left(filesystem, "logs/lake") == []
    # This process waits for no lock that it gave up.
    assert seglake.ingest(source, "logs/lake", filesystem=filesystem).unchanged == 2


def test_a_lock_is_given_back_if_it_was_not_read_back(store: ObjectStore) -> None:
    own, asked = remote.RemoteStore(Stores(once(store)), "logs/lake"), list[Request]()

    def once_only(request: Request) -> str | None:
        if request.method != "GET" or not request.path.endswith("_lock"):
            return None
        asked.append(request)
        return "503" if len(asked) == 1 else None

    store.fault = once_only
    with pytest.raises(OSError, match=r"_lock"), own.lock(own.root / "_lock"):
        pass
    assert len(asked) == 2
    assert left(store.filesystem(), "logs/lake") == []


def test_an_interrupted_run_leaves_nothing(store: ObjectStore, tmp_path: Path) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        seglake.ingest(sources(tmp_path / "src"), "s3://logs/lake", progress=interrupt)
    assert visible(store.filesystem(), "logs/lake") == []
    assert left(store.filesystem(), "logs/lake") == []


def test_obstore_creates_in_one_step(store: ObjectStore, tmp_path: Path) -> None:
    source, filesystem = sources(tmp_path / "src"), conditional(store)
    assert seglake.ingest(source, "s3://logs/lake", filesystem=filesystem).records == 16
    write_segment(source / "c.active", 3)
    assert seglake.ingest(source, "logs/lake", filesystem=filesystem).records == 3
    assert left(store.filesystem(), "logs/lake") == []
    scan = seglake.scan(source / "c.active")
    assert seglake.export(scan, "s3://logs/x.csv", filesystem=filesystem).records == 3
    target = remote.target_of(Stores(filesystem).connect("s3://logs/x.csv")[0])
    with pytest.raises(FileExistsError):
        target._send(tmp_path / "src/c.active", "logs/x.csv", create=True)  # pyright: ignore[reportPrivateUsage]


def test_a_manifest_replaces_no_other_where_the_store_has_conditions(store: ObjectStore, tmp_path: Path) -> None:
    kept = remote.RemoteStore(Stores(conditional(store)), "s3://logs/lake")
    staging, manifest = kept.root / "_staging" / "run", Manifest("run", [])

    def meanwhile(request: Request) -> None:
        if request.method == "PUT" and request.path.endswith("manifest.json"):
            store.fault = None
            store.put("lake/_staging/run/manifest.json", b"of another")

    store.fault = meanwhile
    for _ in range(2):  # in the same moment, and afterwards
        with pytest.raises(FileExistsError):
            manifest.write_down(kept.root, staging, kept)
        assert kept._get(staging / "manifest.json") == b"of another"  # pyright: ignore[reportPrivateUsage]


def test_a_lock_that_is_given_up_while_it_is_taken_over_is_taken(no_lease: None) -> None:
    obstore, of_obstore = pytest.importorskip("obstore"), pytest.importorskip("obstore.fsspec")
    stored: Any = of_obstore.FsspecStore("memory")
    kept = remote.RemoteStore(Stores(stored), "memory://bucket/lake")
    path = kept.root / "_lock"
    kept._put(path, b'{"token": "of another"}')  # pyright: ignore[reportPrivateUsage]

    def vanishes(*arguments: Any, **options: Any) -> object:
        if isinstance(options.get("mode"), dict):
            kept.remove(path)
        return put(*arguments, **options)

    put = obstore.put
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(obstore, "put", vanishes)
        with kept.lock(path) as is_ours:
            assert is_ours
    assert not kept.exists(path)


def test_a_folder_as_a_store_of_obstore_has_locks_too(tmp_path: Path, no_lease: None) -> None:
    """It cannot replace a file on a condition."""
    of_obstore = pytest.importorskip("obstore.fsspec")
    stored: Any = of_obstore.FsspecStore("file")
    kept = remote.RemoteStore(Stores(stored), f"file://{tmp_path}/lake")
    path = kept.root / "_lock"
    kept._put(path, b'{"token": "of another"}')  # pyright: ignore[reportPrivateUsage]
    with kept.lock(path) as is_ours:
        assert is_ours


def test_a_lock_is_taken_and_renewed_in_one_step_where_the_store_has_conditions(
    store: ObjectStore, no_lease: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = remote.RemoteStore(Stores(conditional(store)), "s3://logs/lake")
    path, other = kept.root / "_lock", b'{"token": "of another"}'

    def meanwhile(request: Request) -> None:
        if request.method == "PUT" and request.path.endswith("_lock"):
            store.fault = None
            store.put("lake/_lock", other)

    store.put("lake/_lock", b'{"token": "of the dead"}')
    store.fault = meanwhile
    with kept.lock(path) as is_ours:
        assert not is_ours
    assert kept._get(path) == other  # pyright: ignore[reportPrivateUsage]
    with kept.lock(path) as is_ours:
        assert is_ours
        monkeypatch.setattr(remote, "_RENEWAL_SECONDS", -1.0)
        kept.remove(kept.root / "renews")
        kept.confirm()
        store.fault = meanwhile
        with pytest.raises(LockTakenError):
            kept.remove(kept.root / "renews")
    assert kept._get(path) == other  # pyright: ignore[reportPrivateUsage]


def test_driver_and_tasks_tell_each_other_through_the_store(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange_module.StoreExchange, "interval_s", 0.0)
    own = remote.RemoteStore(Stores(store.filesystem()), "logs/lake")
    exchange = StoreExchange(own, own.root / "_staging" / "run")
    assert exchange.reports() == []
    assert not exchange.is_stopped()
    exchange.write_plan(3, [1, None, "a"])
    exchange.report(3, [1, 2, 3, 4])
    exchange.report(3, [5, 2, 3, 4])
    exchange.stop()
    assert exchange.is_stopped()
    assert exchange.read_plan(3) == [1, None, "a"]
    assert exchange.reports() == [[5, 2, 3, 4]]
    with pytest.raises(FileNotFoundError, match=r"plan/4\.json"):
        exchange.read_plan(4)
    assert Staging(own, exchange.folder, exchange).run_id == "run"


def test_no_run_fails_for_its_progress(store: ObjectStore, tmp_path: Path) -> None:
    own = remote.RemoteStore(Stores(once(store)), "logs/lake")
    exchange = StoreExchange(own, own.root / "_staging" / "run")
    exchange.report(3, [1, 2, 3, 4])
    exchange.report(4, [5, 6, 7, 8])
    # One that grew between the request for its size and the one for its bytes.
    store.put("lake/_staging/run/progress/5.json", b'{"content": [9, 9, 9, 99')
    assert exchange.reports() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    store.fault = lambda request: "503" if request.path.endswith(("4.json", "stop")) else None
    assert exchange.reports() == [[1, 2, 3, 4]]
    exchange.report(4, [6, 6, 7, 8])
    assert not exchange.is_stopped()
    store.fault = lambda request: "503"
    assert exchange.reports() == []


def test_command(store: ObjectStore, tmp_path: Path) -> None:
    source = sources(tmp_path / "src")
    done = here("ingest", source, "--to", "s3://logs/lake", "--json")
    assert (done.status, done.err) == (1, "")
    assert json.loads(done.out)["destination"] == "s3://logs/lake"
    with suppress(AssertionError):
        done = here("ingest", source, "--to", "s3://logs/lake")
    assert "nothing to ingest: no file is new" in done.out
