"""Files in an object store: read as files on a disk are, in few requests, and no failure is taken for damage."""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import fsspec
import pytest
from object_store import ACCESS_KEY, SECRET_KEY, ObjectStore, Request

import seglake
from seglake.stores import has_password

FORMATS = ["active", "sealed", "tenant", "chunked", "oplog"]


def write(path: Path, format: str, records: int = 200, value_bytes: int = 1000) -> Path:
    """A segment of records that no compression makes smaller."""
    random.seed(7)
    options: dict[str, Any] = {"options": {"chunk_records": 16}} if format == "chunked" else {}
    with seglake.create(path, format=format, **options) as writer:
        for number in range(records):
            value = random.randbytes(value_bytes)
            if format in ("active", "sealed"):
                writer.write(uuid=seglake.uuid6(), type="t", value=value)
            elif format == "tenant":
                writer.write(partition=number // 20, tenant="a", value=value)
            elif format == "chunked":
                writer.write(offset=number, timestamp_us=number, value=value)
            else:
                writer.write(version=1, checkpointer=1, checkpoint=None, clock=[], abi=0, batch=1, value=value)
    return path


def damaged(content: bytes) -> bytes:
    """The content with bits that are wrong in the middle, and its end cut off."""
    changed = bytearray(content[: len(content) * 9 // 10])
    changed[len(changed) // 2] ^= 0x40
    return bytes(changed)


def seen(source: Any, **options: Any) -> tuple[list[dict[str, Any]], list[seglake.Span], str]:
    """Everything that there is to know of a file."""
    with seglake.open(source, on_damage="skip", **options) as reader:
        return [record.to_dict() for record in reader], list(reader.ledger()), reader.format


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")
def test_what_is_read_is_what_is_read_from_a_disk(
    format: str, is_damaged: bool, store: ObjectStore, tmp_path: Path
) -> None:
    path = write(tmp_path / f"log.{format}", format, 400)
    if is_damaged:
        path.write_bytes(damaged(path.read_bytes()))
    uri = store.put(f"same/{path.name}", path.read_bytes())
    storage_options = store.storage_options()
    by_path = seen(path, format=format)
    assert len(by_path[0]) > 100
    assert seen(uri, format=format, storage_options=storage_options) == by_path
    local, remote = (
        seglake.verify(path, format=format, explain=0),  # what to do about damage is another thing elsewhere
        seglake.verify(uri, format=format, explain=0, storage_options=storage_options),
    )
    assert remote.to_dict() | {"path": str(path)} == local.to_dict()
    assert remote.ok is not is_damaged
    if not is_damaged:
        assert seglake.detect(uri, storage_options=storage_options).format == format


def test_a_path_within_the_file_system_is_as_good_as_a_uri(store: ObjectStore, tmp_path: Path) -> None:
    uri = store.put("a b%20c.active", write(tmp_path / "x.active", "active").read_bytes())
    filesystem = {"filesystem": store.filesystem()}
    for source, given in (
        (uri, {"storage_options": store.storage_options()}),
        (uri, filesystem),
        ("logs/a b%20c.active", filesystem),
    ):
        with seglake.open(source, **given) as reader:
            assert reader.path == source
            again = pickle.loads(pickle.dumps(reader))
            assert [record.uuid for record in again] == [record.uuid for record in reader]


def test_a_file_system_of_fsspec_is_read(tmp_path: Path) -> None:
    content = write(tmp_path / "x.sealed", "sealed").read_bytes()
    memory: Any = fsspec.filesystem("memory")
    memory.pipe_file("/seglake/x.sealed", content)
    for report in (
        seglake.verify("seglake/x.sealed", filesystem=memory),
        seglake.verify("memory://seglake/x.sealed", filesystem=memory),
    ):
        assert (report.ok, report.records) == (True, 200)
    with pytest.raises(FileNotFoundError, match="memory://seglake/none"):
        seglake.open("memory://seglake/none", filesystem=memory)
    with pytest.raises(ValueError, match=r"memory://seglake/x\.sealed: expected a path, or a URI with // of s3://, "):
        seglake.open("memory://seglake/x.sealed")


def test_a_file_system_is_one_of_the_two_kinds(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"pyarrow\.fs\.FileSystem or an fsspec file system, not str"):
        seglake.open("x", filesystem="s3://")
    with pytest.raises(TypeError, match="filesystem= needs a path or URI, not bytes"):
        seglake.open(b"", filesystem=fsspec.filesystem("memory"))
    with pytest.raises(ValueError, match="memory_map=True needs a path"):
        seglake.open(write(tmp_path / "x.active", "active").as_uri(), memory_map=True)


@pytest.mark.parametrize("secret", [SECRET_KEY, SECRET_KEY.replace("/", ""), "not-to-be/12/x"])
def test_a_password_in_a_uri_is_refused_and_not_shown(secret: str) -> None:
    with pytest.raises(ValueError, match="a password in it") as caught:
        seglake.open(f"s3://{ACCESS_KEY}:{secret}@logs/x")
    assert "not-to-be" not in str(caught.value)


def test_a_port_is_no_password() -> None:
    for uri in ("hdfs://host:8020/logs/a@b", "hdfs://[::1]:8020/a@b", "s3://logs/a:b@c", "hdfs://host:8020?user=a:b@c"):
        assert not has_password(uri), uri


# How much is read, and by how many requests.


def gets(requests: list[Request]) -> list[Request]:
    return [request for request in requests if request.method == "GET"]


def test_a_small_file_takes_two_requests(store: ObjectStore, tmp_path: Path) -> None:
    uri = store.put("small.sealed", write(tmp_path / "x.sealed", "sealed").read_bytes())
    with store.counting() as made:
        assert seglake.verify(uri, storage_options=store.storage_options()).ok
    assert [request.method for request in made] == ["HEAD", "GET"]


def test_a_scan_reads_each_byte_about_once_in_large_pieces(store: ObjectStore, tmp_path: Path) -> None:
    path = write(tmp_path / "x.active", "active", 400, 50_000)
    uri = store.put("large.active", path.read_bytes())
    with store.counting() as made:
        assert seglake.verify(uri, format="active", storage_options=store.storage_options()).records == 400
    sent = sum(request.sent for request in gets(made))
    assert sent == path.stat().st_size
    assert len(gets(made)) < 20


@pytest.mark.parametrize("format", ["tenant", "chunked", "sealed"])
def test_who_asks_for_little_gets_little(format: str, store: ObjectStore, tmp_path: Path) -> None:
    path = write(tmp_path / f"x.{format}", format, 800, 10_000)
    uri = store.put(f"large.{format}", path.read_bytes())
    if format == "chunked":
        store.put("large.index", path.with_suffix(".index").read_bytes())
    wanted: dict[str, Any] = {
        "tenant": [("partition", "==", 20)],
        "chunked": [("offset", ">=", 400), ("offset", "<", 416)],
    }
    with seglake.open(path, format=format) as local:
        number = next(iter(local.range(wanted[format]))) if format in wanted else list(local)[400]
    with store.counting() as made, seglake.open(uri, format=format, storage_options=store.storage_options()) as reader:
        found = reader.get(number.uuid) if format == "sealed" else next(iter(reader.range(wanted[format])))
    assert found is not None
    assert found.value == number.value
    assert sum(request.sent for request in gets(made)) < path.stat().st_size / 6
    assert len(made) < 30


def test_the_index_beside_a_log_is_used_and_missed_by_one_request(store: ObjectStore, tmp_path: Path) -> None:
    path = write(tmp_path / "x.chunks", "chunked", 800, 10_000)
    uri = store.put("indexed/x.chunks", path.read_bytes())
    storage_options = store.storage_options()

    def look_up() -> tuple[int, int]:
        with store.counting() as made, seglake.open(uri, storage_options=storage_options) as reader:
            record = reader.get(700)
            assert record is not None
            assert record.offset == 700
        return len([request for request in made if request.path.endswith(".index")]), len(gets(made))

    without_index, many = look_up()
    assert without_index == 1
    store.put("indexed/x.index", path.with_suffix(".index").read_bytes())
    with_index, few = look_up()
    assert with_index == 2
    assert few < many / 4
    with seglake.open(uri, storage_options=storage_options) as reader:
        index = reader.index()
        assert index is not None
        assert index.path == uri.replace(".chunks", ".index")
        assert index.ok
    with (
        store.counting() as made,
        seglake.open(uri, storage_options=storage_options, options={"index": False}) as reader,
    ):
        assert reader.get(700) is not None
    assert not any(request.path.endswith(".index") for request in made)


# What may go wrong.


def test_what_is_not_there_or_not_allowed_is_said(store: ObjectStore) -> None:
    storage_options = store.storage_options()
    for uri in ("s3://logs/none.active", "s3://no-such-bucket/x"):
        with pytest.raises(FileNotFoundError, match=f"or no such bucket: '{uri}'"):
            seglake.open(uri, storage_options=storage_options)
    uri = store.put("guarded.active", b"")
    with pytest.raises(PermissionError, match=r"check the credentials.*s3://logs/guarded\.active") as caught:
        seglake.open(uri, storage_options=store.storage_options(access_key_id="AKIAWRONG"))
    assert SECRET_KEY not in str(caught.value)


@pytest.mark.parametrize("fault", ["503", "reset", "cut", "slow"])
def test_what_passes_is_no_error(fault: str, store: ObjectStore, tmp_path: Path) -> None:
    path = write(tmp_path / "x.active", "active", 300, 10_000)
    uri = store.put(f"passing-{fault}.active", path.read_bytes())
    failed: set[str | None] = set()

    def once(request: Request) -> str | None:
        # The client waits longer and longer, so only the first request and one that reads on fail.
        if request.method != "GET" or request.range in failed or len(failed) == 2:
            return None
        failed.add(request.range)
        return fault

    store.fault = once
    report = seglake.verify(uri, storage_options=store.storage_options())
    assert len(failed) == 2
    assert (report.ok, report.records) == (True, 300)


@pytest.mark.parametrize("fault", ["503", "reset", "cut", "403"])
def test_what_lasts_is_an_error_and_never_damage(fault: str, store: ObjectStore, tmp_path: Path) -> None:
    path = write(tmp_path / "x.active", "active", 400, 10_000)
    uri = store.put(f"lasting-{fault}.active", path.read_bytes())
    storage_options = store.storage_options(max_retries=1)
    behind = 2_500_000

    def fails(request: Request) -> str | None:
        if request.method == "GET" and request.range and int(request.range[6:].split("-")[0]) > behind:
            return fault
        return None

    store.fault = fails
    with pytest.raises(OSError, match=rf"cannot read \d+ bytes at offset \d+.*s3://logs/lasting-{fault}") as caught:
        seglake.verify(uri, storage_options=storage_options)
    if fault != "403":
        assert "try later, or give it more attempts" in str(caught.value)
    else:
        assert isinstance(caught.value, PermissionError)
    with seglake.open(uri, format="active", storage_options=storage_options, on_damage="skip") as reader:
        records = iter(reader)
        with pytest.raises(OSError, match="cannot read"):
            for count, _ in enumerate(records):
                assert count < 400
        assert not reader.report.damage
        # Once the store is well again, so is the reader.
        store.fault = None
        assert sum(1 for _ in reader) == 400


def test_an_object_that_is_replaced_meanwhile_is_no_damage(store: ObjectStore, tmp_path: Path) -> None:
    path = write(tmp_path / "x.active", "active", 400, 10_000)
    content = path.read_bytes()
    other = write(tmp_path / "y.active", "active", 400, 10_000).read_bytes()
    assert len(content) == len(other)
    uri = store.put("replaced.active", content)
    with seglake.open(uri, storage_options=store.storage_options()) as reader:
        records = iter(reader)
        next(records)
        store.put("replaced.active", damaged(other).ljust(len(other), b"\0"))
        with pytest.raises(OSError, match="replaced or deleted while it was read"):
            for _ in records:
                pass
    store.put("replaced.active", content)
    with seglake.open(uri, storage_options=store.storage_options()) as reader:
        records = iter(reader)
        next(records)
        # Nothing of it is damaged, and yet it is not what was opened.
        store.put("replaced.active", content[:-1] + bytes([content[-1] ^ 1]))
        store.put("replaced.active", other)
        with pytest.raises(OSError, match="replaced or deleted while it was read"):
            for _ in records:
                pass


@pytest.mark.sampled(3)
@pytest.mark.parametrize("format", ["sealed", "tenant", "chunked"])
def test_several_threads_verify_a_file(format: Any, store: ObjectStore, tmp_path: Path) -> None:
    path = write(tmp_path / f"x.{format}", format, 300, 10_000)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    uri = store.put(path.name, bytes(content))
    one = seglake.verify(uri, storage_options=store.storage_options())
    assert not one.ok
    assert seglake.verify(uri, storage_options=store.storage_options(), threads=3).to_dict() == one.to_dict()


def test_every_verb_reads_from_a_file_system(tmp_path: Path) -> None:
    """What it writes is on this machine, where a name of the other one leads nowhere."""
    memory: Any = fsspec.filesystem("memory")

    def put(name: str, content: bytes) -> str:
        memory.pipe_file(f"/verbs/{name}", content)
        return f"/verbs/{name}"

    path = write(tmp_path / "x.active", "active")
    source = put("x.active", path.read_bytes())
    assert seglake.seal(source, tmp_path / "x.sealed", filesystem=memory).records == 200
    assert seglake.convert(seglake.open(source, filesystem=memory), tmp_path / "y.sealed").records == 200
    assert (tmp_path / "y.sealed").read_bytes() == (tmp_path / "x.sealed").read_bytes()

    broken = damaged(path.read_bytes())
    recovered = seglake.recover(put("broken.active", broken), tmp_path / "good.active", filesystem=memory)
    assert recovered.lost
    good = put("good.active", (tmp_path / "good.active").read_bytes())
    with pytest.raises(ValueError, match="not on this machine: name its quarantine"):
        seglake.undo_recover(good, tmp_path / "back.active", filesystem=memory)
    seglake.undo_recover(good, tmp_path / "back.active", quarantine=recovered.quarantine, filesystem=memory)
    assert (tmp_path / "back.active").read_bytes() == broken

    log = put("x.chunked", write(tmp_path / "x.chunked", "chunked").read_bytes())
    with pytest.raises(ValueError, match="its index cannot be written beside it: name a destination"):
        seglake.index(source=log, filesystem=memory)
    own = seglake.index(log, tmp_path / "own.index", filesystem=memory)
    assert own.ok
    assert (tmp_path / "own.index").read_bytes() == (tmp_path / "x.index").read_bytes()


def test_nothing_is_written_to_a_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which a path would make a folder `memory:`."""
    path = write(tmp_path / "x.active", "active")
    log = write(tmp_path / "x.chunked", "chunked")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memory:" / "a").mkdir(parents=True)
    uri = "memory://a/new"
    for writing in (
        lambda: seglake.create(uri, format="active"),
        lambda: seglake.seal(path, uri),
        lambda: seglake.convert(path, uri, to="sealed"),
        lambda: seglake.recover(path, uri),
        lambda: seglake.recover(path, tmp_path / "new", quarantine=uri),
        lambda: seglake.undo_recover(path, uri),
        lambda: seglake.index(log, uri),
    ):
        with pytest.raises(ValueError, match="memory://a/new: only files on this machine are written"):
            writing()
    assert not list((tmp_path / "memory:" / "a").iterdir())


# Processes.

SCRIPT = """
import json, os, sys
import seglake
options, what = sys.argv[1:]
store = {"storage_options": json.loads(options)}
records = iter(seglake.open("s3://logs/process.active", format="active", **store))
for _ in range(300):
    next(records)
if what == "fork":
    if os.fork() == 0:
        for act in (lambda: sum(1 for _ in records), lambda: seglake.open("s3://logs/process.active", **store)):
            try:
                print(act())
            except OSError as error:
                print(error)
        sys.stdout.flush()
        os._exit(0)
    os.wait()
print("end")
"""


@pytest.mark.parametrize(
    "what", ["end", pytest.param("fork", marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"))]
)
def test_a_process_ends_and_forks_while_it_reads_ahead(what: str, store: ObjectStore, tmp_path: Path) -> None:
    store.put("process.active", write(tmp_path / "x.active", "active", 800, 10_000).read_bytes())
    # What is read ahead is still on its way when the process forks or ends.
    store.fault = lambda request: "slow" if request.range and int(request.range[6:].split("-")[0]) > 3_000_000 else None
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(store.storage_options()), what],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()
    assert said[-1] == "end"
    if what == "fork":
        assert "cannot be reached in a fork of a process that has reached one" in said[-2]
        assert "do not outlive a fork of the process: open the file again here" in said[0]


STUCK = """
import atexit, signal, sys, threading
import fsspec, seglake
from fsspec.implementations.memory import MemoryFileSystem

stuck = threading.Event()

class Store(MemoryFileSystem):
    def cat_file(self, path, start=None, end=None, **kwargs):
        if start > 3_000_000:
            stuck.set()
            threading.Event().wait()
        return super().cat_file(path, start=start, end=end, **kwargs)

def interrupt():
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)

store = Store()
store.pipe_file("/stuck.active", open(sys.argv[1], "rb").read())
records = iter(seglake.open("/stuck.active", format="active", filesystem=store))
atexit.register(interrupt)  # called first
for _ in range(300):
    next(records)
stuck.wait()
print("end")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarms")
def test_ctrl_c_ends_the_wait_for_a_store_that_does_not_answer(tmp_path: Path) -> None:
    path = write(tmp_path / "x.active", "active", 800, 10_000)
    done = subprocess.run(
        [sys.executable, "-c", STUCK, path], capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert (done.stdout, done.returncode >= 0) == ("end\n", True), done.stderr
    assert "KeyboardInterrupt" in done.stderr
