"""Writes into a store, without Spark: with every request failing in turn, killed at every step, and two at once."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest
from object_store import ACCESS_KEY, SECRET_KEY, Fault, ObjectStore, Request, object_store
from pyarrow.fs import FileSelector

from seglake.spark.stores import SparkStores
from seglake.spark.write.existing import PartFile
from seglake.spark.write.store_job import StoreJob

OLD = ["old-1.active", "old-2.active"]
URI = "s3://logs/out"
CHANGING = ("PUT", "POST", "DELETE")


@pytest.fixture
def server() -> Generator[ObjectStore]:
    with object_store() as running:
        # All servers of a process have one memory.
        running.filesystem().delete_dir_contents("logs")
        yield running


def begin(server: ObjectStore, uri: str = URI, *, overwrites: bool = False, **options: str) -> StoreJob:
    stores = SparkStores.parse(server.options() | options, [uri])
    return StoreJob.begin(uri, stores, overwrites=overwrites, success_file=True)


def put(job: StoreJob, task: int, attempt: int, *extensions: str) -> PartFile:
    """What a task does: a file, perhaps with an index."""
    names = tuple(f"part-{task:05d}-{job.id}-{attempt}-c000.{extension}" for extension in extensions)
    with job.writing() as folder:
        for name in names:
            (folder / name).write_text(name)
            job.put(folder / name)
            assert not (folder / name).exists()
    return PartFile(names, 1)


def written(job: StoreJob) -> list[PartFile]:
    """What two tasks have put, one of them with an index, and what an attempt has that does not count."""
    put(job, 0, 7, "chunks", "index")
    return [put(job, 0, 1, "chunks", "index"), put(job, 1, 2, "active")]


def names(*files: PartFile) -> list[str]:
    return sorted(name for file in files for name in file.names)


def below(server: ObjectStore, uri: str = URI) -> dict[str, bytes]:
    filesystem = server.filesystem()
    found = filesystem.get_file_info(FileSelector(uri.removeprefix("s3://"), allow_not_found=True))
    contents: dict[str, bytes] = {}
    for info in found:
        with filesystem.open_input_file(info.path) as file:
            contents[info.base_name] = file.read()
    return contents


def visible(server: ObjectStore, uri: str = URI) -> list[str]:
    """The names of the files that readers see, which have the content that belongs to them."""
    found = {name: content for name, content in below(server, uri).items() if not name.startswith("_")}
    assert all(content.decode() == name for name, content in found.items())
    return sorted(found)


def hidden(server: ObjectStore, uri: str = URI) -> list[str]:
    return sorted(name for name in below(server, uri) if name.startswith("_"))


def filled(server: ObjectStore, prefix: str = "out") -> str:
    for name in OLD:
        server.put(f"{prefix}/{name}", name.encode())
    server.put(f"{prefix}/_SUCCESS", b"")
    return f"s3://logs/{prefix}"


@pytest.mark.parametrize("overwrites", [False, True])
def test_a_commit_leaves_what_counts_and_says_so_last(server: ObjectStore, overwrites: bool) -> None:
    filled(server)
    job = begin(server, overwrites=overwrites)
    assert hidden(server) == [f"_writing-{job.id}"]
    files = written(pickle.loads(pickle.dumps(job)))  # as tasks do
    assert set(visible(server)) > {*OLD, *names(*files)}
    with server.counting() as made:
        job.commit(files)
    assert visible(server) == sorted([*names(*files), *([] if overwrites else OLD)])
    assert hidden(server) == ["_SUCCESS"]
    changing = [(request.method, request.path.rpartition("/")[2]) for request in made if request.method in CHANGING]
    removals = [("POST", "logs")] * (5 if overwrites else 3)  # S3 takes many at a time
    assert changing == [("PUT", f"_writing-{job.id}"), *removals, ("PUT", "_SUCCESS")]
    job.abort()
    assert visible(server) == sorted([*names(*files), *([] if overwrites else OLD)])


def test_an_empty_file_is_for_a_frame_without_rows(server: ObjectStore) -> None:
    job = begin(server)
    empty, other = put(job, 0, 1, "sealed")._replace(records=0), put(job, 1, 2, "sealed")
    job.commit([empty, other])
    assert visible(server) == names(other)


@pytest.mark.parametrize("was_complete", [False, True])
def test_an_abort_leaves_what_was_there(server: ObjectStore, was_complete: bool) -> None:
    if was_complete:
        filled(server)
    before = below(server)
    job = begin(server, overwrites=True)
    files = written(job)
    server.filesystem().delete_file(f"logs/out/{files[0].names[0]}")  # and leaves its index alone
    job.abort()
    assert below(server) == before
    job.abort()
    assert below(server) == before


def test_what_is_no_segment_is_not_overwritten(server: ObjectStore) -> None:
    filled(server)
    server.put("out/notes.txt", b"some text that is no segment")
    before = below(server)
    with pytest.raises(ValueError, match=r"^s3://logs/out: expected nothing but segments .* notes\.txt\. Nothing was"):
        begin(server, overwrites=True)
    assert below(server) == before
    server.put("file", b"x")
    with pytest.raises(NotADirectoryError, match=r"^s3://logs/file: expected a folder .* this is a file"):
        begin(server, "s3://logs/file")


@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_an_attempt_that_is_too_late_leaves_nothing(server: ObjectStore, ends: str) -> None:
    job = begin(server)
    files = [put(job, 0, 1, "active")]
    late = f"part-00000-{job.id}-9-c000.active"
    with job.writing() as folder:
        (folder / late).write_text(late)
        server.fault = lambda request: end() if late in request.path and request.method == "PUT" else None

        def end() -> None:
            server.fault = None
            job.commit(files) if ends == "commit" else job.abort()

        with pytest.raises(FileNotFoundError, match="the write has ended meanwhile: of this attempt nothing counts"):
            job.put(folder / late)
        job.discard([late])  # as its task does then
    assert visible(server) == (names(*files) if ends == "commit" else [])
    with pytest.raises(FileNotFoundError, match="the write has ended meanwhile"), job.writing():
        pass


def test_the_last_of_writes_at_once_says_that_the_folder_is_complete(server: ObjectStore) -> None:
    first, second = begin(server), begin(server)
    files = written(first), written(second)
    first.commit(files[0])
    assert hidden(server) == [f"_writing-{second.id}"]
    second.commit(files[1])
    assert hidden(server) == ["_SUCCESS"]
    assert visible(server) == names(*files[0], *files[1])


@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_a_write_that_begins_while_another_ends(server: ObjectStore, ends: str) -> None:
    filled(server)
    first, began = begin(server), list[StoreJob]()

    def fault(request: Request) -> None:
        if request.path.endswith("_SUCCESS") and request.method == "PUT":
            server.fault = None
            began.append(begin(server))

    server.fault = fault
    first.commit(written(first)) if ends == "commit" else first.abort()
    assert hidden(server) == [f"_writing-{began[0].id}"]
    began[0].commit([])
    assert hidden(server) == ["_SUCCESS"]


def test_after_a_killed_write_no_other_says_that_the_folder_is_complete(server: ObjectStore) -> None:
    filled(server)
    killed = begin(server)
    lost = written(killed)
    job = begin(server)
    files = written(job)
    job.commit(files)
    assert hidden(server) == [f"_writing-{killed.id}"]
    assert set(names(*lost)) < set(visible(server))
    follow(server, URI)
    assert visible(server) == sorted([*OLD, *names(*files)])
    job = begin(server)
    job.commit([])
    assert hidden(server) == ["_SUCCESS"]
    begin(server)
    job = begin(server, overwrites=True)
    files = written(job)
    job.commit(files)
    assert (hidden(server), visible(server)) == (["_SUCCESS"], names(*files))


def test_a_file_of_a_task_that_is_gone_costs_nothing(server: ObjectStore) -> None:
    filled(server)
    job = begin(server, overwrites=True)
    files = written(job)
    job.discard(files[1].names)
    with pytest.raises(
        OSError, match=r"s3://logs/out: the commit could not begin: .*expected the file part-00001-.*gone"
    ):
        job.commit(files)
    job.abort()
    assert (visible(server), hidden(server)) == (OLD, ["_SUCCESS"])


def follow(server: ObjectStore, uri: str) -> None:
    """Does what the objects of killed writes say."""
    found = below(server, uri)
    for name in [name for name in found if name.startswith("_writing-")]:
        text, *complete = found[name].decode().splitlines()
        own = name.removeprefix("_writing-")
        if "remove the segments that are not listed here" in text:
            removed = [each for each in found if not each.startswith("_") and each not in complete]
        else:
            assert f"remove {'other ' if complete else ''}part-*-{own}-*" in text
            removed = [each for each in found if own in each and each != name and each not in complete]
        for each in [*removed, name]:
            server.filesystem().delete_file(f"{uri.removeprefix('s3://')}/{each}")


def committed(server: ObjectStore, job: StoreJob, files: list[PartFile], fault: Fault) -> OSError | None:
    """Commits while requests meet a fault; returns what was raised."""
    server.fault = fault
    try:
        job.commit(files)
    except OSError as error:
        return error
    finally:
        server.fault = None
    return None


def check(server: ObjectStore, job: StoreJob, files: list[PartFile], error: OSError | None) -> bool:
    """Checks what is there after a commit that overwrites; returns whether it is what was written."""
    uri, new = job.uri, names(*files)
    shown = visible(server, uri)
    if error is None:
        assert (shown, hidden(server, uri)) == (new, ["_SUCCESS"])
        return True
    said = str(error)
    assert SECRET_KEY not in said
    assert said.partition("]")[2].strip().startswith(uri), said
    # All of the old is there or all of the new, and nothing says that this is all.
    assert set(OLD) <= set(shown) or set(new) <= set(shown)
    assert hidden(server, uri) in ([f"_writing-{job.id}"], [], ["_SUCCESS"])
    job.abort()  # what Spark does then
    is_new = "All of the write is visible: do not repeat it" in said
    assert is_new != ("the commit could not begin" in said)
    left = re.search("; remove (.*)$", said) if is_new else None
    if is_new:
        assert set(new) <= set(visible(server, uri))
    elif hidden(server, uri) == ["_SUCCESS"]:
        assert visible(server, uri) == OLD
    # What is left is named in the error, and in the object.
    if left is not None:
        *named, last = re.split(", | and ", left[1])
        more = int(last.removesuffix(" more")) if last.endswith(" more") else 0
        remain = {each for each in below(server, uri) if each != "_SUCCESS"} - set(new)
        assert len(remain - {*named, last}) <= more
    follow(server, uri)
    assert visible(server, uri) in (OLD, new)
    return visible(server, uri) == new


FAULTS = {
    "refused": ("503", ("GET", "HEAD", *CHANGING)),
    "answer lost": ("lost", CHANGING),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", FAULTS)
def test_each_request_in_turn(server: ObjectStore, fault: str) -> None:
    kind, methods = FAULTS[fault]
    outcomes: list[tuple[bool, bool]] = []
    for fatal in range(1, 100):
        uri = filled(server, f"{fatal}")
        job = begin(server, uri, overwrites=True, **{"fs.max_retries": "0"})
        files = written(job)
        made, hit = iter(range(1, 1000)), list[Request]()

        def act(request: Request, fatal: int = fatal, made: Any = made, hit: list[Request] = hit) -> str | None:
            if request.method not in methods or next(made) != fatal:
                return None
            hit.append(request)
            return kind

        error = committed(server, job, files, act)
        outcomes.append((check(server, job, files, error), error is None))
        if not hit:
            break
    else:
        pytest.fail("it did not end")
    assert outcomes[-1] == (True, True)
    assert len(outcomes) > 5
    assert any(not is_new for is_new, _ in outcomes) or kind == "lost"


def test_each_request_is_repeated(server: ObjectStore) -> None:
    uri = filled(server)
    job = begin(server, uri, overwrites=True, **{"fs.max_retries": "2"})
    files = written(job)
    seen: Counter[tuple[str, str, str]] = Counter()

    def act(request: Request) -> str | None:
        asked = (request.method, request.path, request.query)
        seen[asked] += 1
        # The second of two is the first one again, or would have passed.
        return "lost" if request.method in CHANGING and seen[asked] % 2 else None

    error = committed(server, job, files, act)
    assert error is None
    assert check(server, job, files, error)
    assert all(number > 1 for (method, _, _), number in seen.items() if method in CHANGING)


def test_a_driver_that_dies_leaves_what_can_be_put_in_order(server: ObjectStore) -> None:
    """As if the store was gone from some request on, and Spark could not abort either."""
    outcomes: list[bool] = []
    for fatal in range(1, 100):
        uri = filled(server, f"{fatal}")
        job = begin(server, uri, overwrites=True, **{"fs.max_retries": "0"})
        files = written(job)
        made = [0]

        def act(request: Request, fatal: int = fatal, made: list[int] = made) -> str | None:
            made[0] += request.method in CHANGING
            return "503" if made[0] >= fatal else None

        error = committed(server, job, files, act)
        if error is None:
            break
        shown = set(visible(server, uri))
        assert set(OLD) <= shown or set(names(*files)) <= shown
        assert "_SUCCESS" not in hidden(server, uri)
        follow(server, uri)
        assert visible(server, uri) in (OLD, names(*files))
        outcomes.append(visible(server, uri) == names(*files))
    else:
        pytest.fail("it did not end")
    # First nothing of it stays, and from some request on everything does.
    assert outcomes == sorted(outcomes)
    assert 0 < sum(outcomes) < len(outcomes)


def test_an_upload_of_a_task_whose_answer_is_lost_fails_and_leaves_nothing(server: ObjectStore) -> None:
    job = begin(server, **{"fs.max_retries": "0"})
    name = f"part-00000-{job.id}-1-c000.active"
    with job.writing() as folder:
        (folder / name).write_text("records")
        server.fault = lambda request: "lost" if request.method == "PUT" else None
        with pytest.raises(OSError, match=rf"s3://logs/out/{name}"):
            job.put(folder / name)
        server.fault = None
        job.discard([name])
    assert visible(server) == []


def test_errors_name_the_uri_and_show_no_secret(server: ObjectStore) -> None:
    with pytest.raises(OSError, match=r"s3://nowhere/out") as caught:
        begin(server, "s3://nowhere/out")
    with pytest.raises(PermissionError, match=r"check the credentials.*s3://logs/out") as refused:
        begin(server, **{"fs.access_key_id": "AKIAWRONG42", "fs.secret_access_key": "wrong-too"})
    for error in (caught, refused):
        assert not any(secret in str(error.value) for secret in (ACCESS_KEY, SECRET_KEY, "AKIAWRONG42", "wrong-too"))
    assert SECRET_KEY not in repr(begin(server))


def test_a_begin_that_fails_leaves_nothing(server: ObjectStore) -> None:
    uri = filled(server)
    for kind, method in (("503", "POST"), ("lost", "PUT")):
        server.fault = lambda request, kind=kind, method=method: (method == request.method and end(kind)) or None

        def end(kind: str) -> str:
            server.fault = None
            return kind

        with pytest.raises(OSError, match=uri):
            begin(server, uri, **{"fs.max_retries": "0"})
        assert (visible(server), hidden(server)) == (OLD, ["_SUCCESS"])
