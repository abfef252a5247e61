"""The commit of a write into a store, without Spark: with every request failing in turn, and killed at every step."""

from __future__ import annotations

import pickle
import signal
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest
from dying import deadly, in_a_process
from fsspec.implementations.local import LocalFileSystem
from object_store import ACCESS_KEY, SECRET_KEY, Fault, ObjectStore, Request, object_store
from renaming import Hdfs, WebHdfs

from seglake._publish import leases, remote
from seglake._publish.elsewhere import Target
from seglake._publish.remote import RemoteStore
from seglake.spark.stores import Stores as SparkStores
from seglake.spark.write.job import Job, PartFile
from seglake.stores import Stores

OLD = ["old-1.active", "old-2.active"]
URI = "s3://logs/out"
LEASE_SECONDS = leases.LEASE_SECONDS
PRIMITIVES = ("_send", "_write", "_copy", "_move", "_remove", "_remove_tree", "_make_folder")


def begin(store: RemoteStore, *, overwrites: bool = False) -> Job:
    return Job.begin(store.root, overwrites=overwrites, success_file=True, store=store)


def staged(job: Job) -> list[PartFile]:
    """What two tasks have put aside, one of them with an index, and what an attempt has that does not count."""
    files: list[PartFile] = []
    for task, extensions in enumerate((["chunks", "index"], ["active"])):
        names = [f"part-{task:05d}-{job.id}-c000.{extension}" for extension in extensions]
        files.append(PartFile(tuple((f"{task}-{name}", name) for name in names), 1))
    everything = [*(move for file in files for move in file.moves), ("7-lost", "lost")]
    with job.store.scratch(job.staging) as folder:
        for staged_name, name in everything:
            (folder / staged_name).write_text(name)
            job.store.stage(folder / staged_name, job.staging / staged_name)
            assert not (folder / staged_name).exists()
    return files


def names(files: list[PartFile]) -> list[str]:
    return sorted(name for file in files for _, name in file.moves)


def visible(store: RemoteStore) -> list[str]:
    """The names of the files that readers see, which have the content that belongs to them."""
    found = [path for path in store.children(store.root) if not path.name.startswith(("_", "."))]
    for path in found:
        source = store.source(path)
        assert source.read_at(0, source.size).decode() == path.name
    return [path.name for path in found]


def waiting(store: RemoteStore) -> list[Path]:
    """The staging folders that have something in them."""
    return [folder for folder in store.children(store.root / "_temporary") if store.children(folder)]


@pytest.fixture
def server() -> Generator[ObjectStore]:
    with object_store() as running:
        # All servers of a process have one memory.
        running.filesystem().delete_dir_contents("logs")
        yield running


@pytest.fixture(autouse=True)
def no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has each lock that is found be that of a dead process."""
    monkeypatch.setattr(leases, "LEASE_SECONDS", -1.0)


@pytest.fixture
def lease(no_lease: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", LEASE_SECONDS)


def connected(server: ObjectStore, uri: str = URI, **options: str) -> RemoteStore:
    return RemoteStore(SparkStores.parse(server.options() | options, [uri]), uri)


def filled(server: ObjectStore, prefix: str) -> str:
    for name in OLD:
        server.put(f"{prefix}/{name}", name.encode())
    return f"s3://logs/{prefix}"


@pytest.mark.parametrize("overwrites", [False, True])
def test_a_commit_shows_what_counts_and_leaves_nothing_else(server: ObjectStore, overwrites: bool) -> None:
    store = connected(server, filled(server, "out"))
    job = begin(store, overwrites=overwrites)
    files = staged(pickle.loads(pickle.dumps(job)))  # as a task does
    assert visible(store) == OLD
    job.commit(files)
    assert visible(store) == sorted([*names(files), *([] if overwrites else OLD)])
    assert set(store.names_in(store.root)) - set(visible(store)) == {"_SUCCESS"}
    assert waiting(store) == []
    job.abort()
    assert visible(store) == sorted([*names(files), *([] if overwrites else OLD)])


def test_an_abort_leaves_nothing(server: ObjectStore) -> None:
    store = connected(server)
    job = begin(store)
    staged(job)
    job.abort()
    job.abort()
    assert [
        info for info in server.filesystem().get_file_info(pafs.FileSelector("logs", recursive=True)) if info.is_file
    ] == []


def test_what_is_no_segment_is_not_overwritten(server: ObjectStore) -> None:
    store = connected(server, filled(server, "out"))
    server.put("out/notes.txt", b"some text that is no segment")
    with pytest.raises(ValueError, match=r"^s3://logs/out: expected nothing but segments .* notes\.txt\. Nothing was"):
        begin(store, overwrites=True)
    server.put("file", b"x")
    with pytest.raises(NotADirectoryError, match=r"^s3://logs/file: expected a folder .* this is a file"):
        begin(connected(server, "s3://logs/file"))


CHANGING = ("PUT", "POST", "DELETE")
# What is done to a request, and which requests it is done to. The client asks once.
FAULTS = {
    "refused": ("503", ("GET", "HEAD", *CHANGING)),
    "answer lost": ("lost", CHANGING),
}
# What is done to each request once. The client asks again.
REPEATED = {"answer lost": "lost", "hung up": "reset"}


def committed(server: ObjectStore, job: Job, files: list[PartFile], fault: Fault) -> OSError | None:
    """Commits while requests meet a fault; returns what was raised."""
    server.fault = fault
    try:
        job.commit(files)
    except OSError as error:
        return error
    finally:
        server.fault = None
    return None


def check(store: RemoteStore, job: Job, files: list[PartFile], error: OSError | None) -> bool:
    """Checks what is there after a commit; returns whether it is what was written."""
    shown = visible(store)
    if error is None:
        assert shown == names(files)
    # There may be some of both; never less than all of one.
    assert set(OLD) <= set(shown) or set(names(files)) <= set(shown)
    said = str(error or "")
    assert SECRET_KEY not in said
    assert error is None or said.partition("]")[2].strip().startswith(store.name(store.root)), said
    if error is not None:
        job.abort()  # what Spark does then
    begin(store).abort()
    after = visible(store)
    assert after in (OLD, names(files))
    is_new = after == names(files)
    assert is_new or error is not None
    if "Nothing of it is visible" in said or "Nothing was changed" in said:
        assert shown == OLD
        assert not is_new
    if "All of" in said:
        assert is_new
    assert waiting(store) == []
    return is_new


@pytest.mark.parametrize("fault", FAULTS)
def test_each_request_in_turn(server: ObjectStore, fault: str, stride: int) -> None:
    kind, methods = FAULTS[fault]
    outcomes: list[tuple[bool, bool]] = []
    for fatal in range(1, 200, stride):
        uri = filled(server, f"{fatal}")
        job = begin(connected(server, uri, **{"fs.max_retries": "0"}), overwrites=True)
        files = staged(job)
        made, hit = iter(range(1, 1000)), list[Request]()

        def act(request: Request, fatal: int = fatal, made: Any = made, hit: list[Request] = hit) -> str | None:
            if request.method not in methods or next(made) != fatal:
                return None
            hit.append(request)
            return kind

        error = committed(server, job, files, act)
        outcomes.append((check(connected(server, uri), job, files, error), error is None))
        if not hit:
            break
        if kind == "lost":
            # The store is asked what became of a request. Only a part of an upload has no effect that could be seen.
            assert error is None or "uploads" in hit[0].query or "partNumber" in hit[0].query
    else:
        pytest.fail("it did not end")
    assert outcomes[-1] == (True, True)
    assert len(outcomes) * stride > 15


@pytest.mark.parametrize("fault", REPEATED)
def test_each_request_is_repeated(server: ObjectStore, fault: str) -> None:
    uri = filled(server, "out")
    job = begin(connected(server, uri, **{"fs.max_retries": "2"}), overwrites=True)
    files = staged(job)
    seen: Counter[tuple[str, str, str]] = Counter()

    def act(request: Request) -> str | None:
        asked = (request.method, request.path, request.query)
        seen[asked] += 1
        # The second of two is the first one again, or would have passed.
        return REPEATED[fault] if request.method in CHANGING and seen[asked] % 2 else None

    error = committed(server, job, files, act)
    assert error is None
    assert check(connected(server, uri), job, files, error)
    hit = [number for (method, _, _), number in seen.items() if method in CHANGING]
    assert len(hit) > 5
    assert all(number > 1 for number in hit)


def test_a_store_that_is_gone_from_some_request_on(server: ObjectStore, stride: int) -> None:
    """As if the driver died there: what it has left is put in order by the next write.

    From one that changes something on: what is there is the same from those on that come after the one before.
    """
    outcomes: list[bool] = []
    for fatal in range(1, 200, stride):
        uri = filled(server, f"{fatal}")
        job = begin(connected(server, uri, **{"fs.max_retries": "0"}), overwrites=True)
        files = staged(job)
        made = [0]

        def act(request: Request, fatal: int = fatal, made: list[int] = made) -> str | None:
            made[0] += request.method in CHANGING
            return "503" if made[0] >= fatal else None

        error = committed(server, job, files, act)
        outcomes.append(check(connected(server, uri), job, files, error))
        if error is None and made[0] < fatal:
            break
    else:
        pytest.fail("it did not end")
    # First nothing of it stays, and from some request on everything does.
    assert outcomes == sorted(outcomes)
    assert 0 < sum(outcomes) < len(outcomes)
    assert len(outcomes) * stride > 15


class Objects(LocalFileSystem):
    """An object store of fsspec, in a folder: what is written shows when it is closed, and there are no renames."""

    protocol = "s3"

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        raise AssertionError("an object store renames nothing")

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        super().cp_file(path1, f"{path2}.part", **options)
        Path(f"{path2}.part").replace(path2)

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        return super()._open(path, mode, **options) if mode == "rb" else Upload(path, mode)

    def rm_file(self, path: str) -> None:
        super().rm_file(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        for each in sorted(Path(path).rglob("*"), reverse=True):
            each.unlink() if each.is_file() else each.rmdir()
        Path(path).rmdir()


class Upload:
    before: Callable[[str], None] | None = None

    def __init__(self, path: str, mode: str) -> None:
        self.path, self.mode, self.parts, self.closed = path, mode, [b""], False

    def write(self, part: bytes) -> int:
        self.parts.append(bytes(part))
        return len(part)

    def close(self) -> None:
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        if Upload.before is not None:
            Upload.before(self.path)
        if "x" in self.mode and Path(self.path).exists():
            raise FileExistsError(self.path)
        Path(f"{self.path}.part").write_bytes(b"".join(self.parts))
        Path(f"{self.path}.part").replace(self.path)


KINDS: list[Callable[[], Any]] = [Objects, Hdfs, WebHdfs, pafs.LocalFileSystem]


def on_disk(make: Callable[[], Any], folder: Path) -> RemoteStore:
    return RemoteStore(Stores(make()), str(folder))


def target_of(store: RemoteStore) -> Target:
    return store._target  # pyright: ignore[reportPrivateUsage]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("overwrites", [False, True])
@pytest.mark.parametrize("make", KINDS)
def test_a_commit_that_dies_is_put_in_order_by_the_next_write(
    tmp_path: Path, make: Callable[[], Any], overwrites: bool
) -> None:
    outcomes: list[bool] = []
    for fatal in range(1, 100):
        folder = tmp_path / str(fatal)
        folder.mkdir()
        for name in OLD:
            (folder / name).write_text(name)
        store = on_disk(make, folder)
        job = begin(store, overwrites=overwrites)
        files = staged(job)

        def commit(
            job: Job = job, files: list[PartFile] = files, store: RemoteStore = store, fatal: int = fatal
        ) -> None:
            deadly(target_of(store), PRIMITIVES, fatal)
            job.commit(files)

        ended = in_a_process(commit)
        new = sorted([*names(files), *([] if overwrites else OLD)])
        if ended == 0:
            assert visible(store) == new
            break
        assert ended == -signal.SIGKILL
        shown = set(visible(store))
        assert set(OLD) <= shown or set(names(files)) <= shown
        begin(on_disk(make, folder)).abort()
        assert visible(store) in (OLD, new)
        outcomes.append(visible(store) == new)
        if waiting(store):  # it had not come to its manifest, and could be at work still; or had removed it
            job.abort()
        assert waiting(store) == []
        assert visible(store) == (new if outcomes[-1] else OLD)
    else:
        pytest.fail("the commit did not end")
    assert outcomes == sorted(outcomes)
    assert 0 < sum(outcomes) < len(outcomes)


def test_a_commit_at_work_is_left_alone_until_its_lock_is_old(
    server: ObjectStore, lease: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = filled(server, "out")
    store, other = connected(server, uri), connected(server, uri)
    job = begin(store, overwrites=True)
    files = staged(job)
    target = target_of(store)
    remove, seen = target.remove, [0]

    def meanwhile(path: str, name: str) -> None:
        if path.endswith(".active") and "_temporary" in path:
            seen[0] += 1
            before = visible(other)
            begin(other).abort()
            assert visible(other) == before
        remove(path, name)

    monkeypatch.setattr(target, "remove", meanwhile)
    job.commit(files)
    assert seen == [1]
    assert visible(store) == names(files)


@pytest.mark.parametrize("last", [False, True])
def test_a_process_that_was_held_for_dead_changes_nothing_more(
    server: ObjectStore, monkeypatch: pytest.MonkeyPatch, last: bool
) -> None:
    """Another takes the lock before the last file has its name, or after it and before the old ones are removed."""
    uri = filled(server, "out")
    store = connected(server, uri)
    job = begin(store, overwrites=True)
    files = staged(job)
    place, calls = store.place, iter(range(1, 10))

    def meanwhile(source: Path, final: Path) -> None:
        number = next(calls)
        if number == 3 and not last:
            begin(connected(server, uri)).abort()
        place(source, final)
        if number == 3 and last:
            begin(connected(server, uri)).abort()

    monkeypatch.setattr(store, "place", meanwhile)
    said = "held for dead: .* look before you write again" if last else "Nothing of it is visible"
    with pytest.raises(OSError, match=f"s3://logs/out: .*{said}"):
        job.commit(files)
    job.abort()
    assert visible(store) == (names(files) if last else OLD)


def test_a_lock_is_renewed_by_its_holder_alone(server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store, other = connected(server), connected(server)
    path = store.root / "lock"
    monkeypatch.setattr(remote, "_RENEWAL_SECONDS", -1.0)
    with store.lock(path) as is_ours:
        assert is_ours
        with server.counting() as made:
            store.remove(store.root / "nothing")
        assert any(request.path == "/logs/out/lock" and request.method == "PUT" for request in made)
        with other.lock(path) as is_others:
            assert is_others
            with pytest.raises(OSError, match="another has taken it for dead"):
                store.remove(store.root / "nothing")
            other.confirm()
    assert not store.exists(path)


def test_one_process_holds_a_lock(server: ObjectStore, lease: None) -> None:
    store, other = connected(server), connected(server)
    path = store.root / "lock"
    with store.lock(path) as is_ours, other.lock(path) as is_others:
        assert (is_ours, is_others) == (True, False)
    with other.lock(path) as is_ours:
        assert is_ours
    assert store.children(store.root) == []


def test_of_two_that_take_a_lock_at_once_one_has_it(server: ObjectStore) -> None:
    store = connected(server)

    def meanwhile(request: Request) -> None:
        if request.path == "/logs/out/lock" and request.method == "PUT":
            server.fault = None
            server.put("out/lock", b"of another")

    server.fault = meanwhile
    with store.lock(store.root / "lock") as is_ours:
        assert not is_ours
    assert server.fault is None
    assert store.exists(store.root / "lock")


def test_a_store_with_conditions_says_who_has_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = on_disk(Objects, tmp_path)
    monkeypatch.setattr(Upload, "before", lambda path: Path(path).write_bytes(b"of another"))
    with store.lock(store.root / "lock") as is_ours:
        assert not is_ours
    assert (tmp_path / "lock").read_bytes() == b"of another"


@pytest.mark.parametrize("make", KINDS)
def test_a_write_that_has_not_come_to_its_commit_is_left_alone(tmp_path: Path, make: Callable[[], Any]) -> None:
    store, other = on_disk(make, tmp_path), on_disk(make, tmp_path)
    first = begin(store)
    files = [staged(first)]
    second = begin(other)
    files.append(staged(second))
    first.commit(files[0])
    second.commit(files[1])
    assert visible(store) == sorted([*names(files[0]), *names(files[1])])


def test_what_is_left_of_putting_away_is_removed_by_the_next_write(
    server: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = connected(server)
    job = begin(store)
    files = staged(job)

    def refuse(_: str) -> None:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(target_of(store), "_remove_tree", refuse)
        job.commit(files)
    left = [path.name for path in store.children(job.staging)]
    assert "7-lost" in left
    assert "manifest.json" not in left
    begin(store).abort()
    assert waiting(store) == []
    assert visible(store) == names(files)


def test_a_rename_whose_answer_is_lost_is_done(tmp_path: Path) -> None:
    class Forgetful(Hdfs):
        def mv(self, path1: str, path2: str, **options: Any) -> None:
            super().mv(path1, path2, **options)
            if not path2.endswith((".json", "lock", "begun")) and "_temporary" not in path2:
                raise OSError(5, "no answer")

    store = on_disk(Forgetful, tmp_path)
    job = Job.begin(store.root, overwrites=False, success_file=False, store=store)
    files = staged(job)
    job.commit(files)
    assert visible(store) == names(files)


def test_what_the_store_does_not_copy_itself_is_sent_through(
    server: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = connected(server, filled(server, "out"))
    monkeypatch.setattr(target_of(store), "copy", None)
    target_of(store).most_copied = 3
    job = begin(store)
    files = staged(job)
    job.commit(files)
    assert visible(store) == sorted([*OLD, *names(files)])


def test_an_upload_of_a_task_whose_answer_is_lost_is_there(server: ObjectStore, tmp_path: Path) -> None:
    store = connected(server, **{"fs.max_retries": "0"})
    written, staged = tmp_path / "part", store.root / "_temporary" / "job" / "1"
    written.write_text("records")
    server.fault = lambda request: "lost" if request.method == "PUT" else None
    store.stage(written, staged)
    server.fault = None
    assert store.exists(staged)


def test_errors_name_the_uri_and_show_no_secret(server: ObjectStore) -> None:
    with pytest.raises(OSError, match=r"s3://nowhere/out") as caught:
        begin(connected(server, "s3://nowhere/out"))
    wrong = connected(server, **{"fs.access_key_id": "AKIAWRONG42", "fs.secret_access_key": "wrong-too"})
    with pytest.raises(PermissionError, match=r"check the credentials.*s3://logs/out") as refused:
        begin(wrong)
    for error in (caught, refused):
        assert not any(secret in str(error.value) for secret in (ACCESS_KEY, SECRET_KEY, "AKIAWRONG42", "wrong-too"))
    assert SECRET_KEY not in repr(connected(server))
