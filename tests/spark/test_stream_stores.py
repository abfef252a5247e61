"""Batches of a stream of files in an object store, without Spark, with the states in the store or on the disk."""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from object_store import ObjectStore, Request

import seglake

pytest.importorskip("seglake.spark.stream.reader", reason="streams need PySpark 4.2")

from stream_query import Query
from stream_segment import Segment

LATER_NS = 60 * 10**9
# In a segment of nine records, each of two of these: what is neither in the first piece nor in the last record.
MIB = 1 << 20
MIDDLE = (4 * MIB, 16 * MIB)


class Stored(Segment):
    """A segment that grows on the disk, and of which each size is put into the store."""

    def __init__(self, store: ObjectStore, folder: Path, name: str) -> None:
        super().__init__(folder / name)
        self.store = store
        self.key = f"files/{name}.active"

    def grow(self, count: int) -> list[str]:
        """Appends records, and puts them. Returns their values."""
        values = super().grow(count)
        self.put()
        return values

    def put(self) -> None:
        self.store.put(self.key, self.path.read_bytes())

    def rename(self, name: str) -> None:
        self.store.filesystem().move(f"logs/{self.key}", f"logs/files/{name}")
        self.key = f"files/{name}"


@pytest.fixture(autouse=True)
def _empty(store: ObjectStore) -> None:
    store.filesystem().delete_dir_contents("logs")


@pytest.fixture(params=["on the disk", "in the store"])
def states(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "states") if request.param == "on the disk" else "s3://logs/states/of-queries"


def stream(store: ObjectStore, states: str, **options: str) -> Query:
    own = {"stateLocation": states, "segmentFormat": "active", **store.options(), **options}
    return Query("s3://logs/files", **own)


def test_new_objects_and_what_others_grew_by_come_once(store: ObjectStore, states: str, tmp_path: Path) -> None:
    a, b = Stored(store, tmp_path, "a"), Stored(store, tmp_path, "b")
    rows = a.grow(3)
    query = stream(store, states)
    assert query.batch() == rows
    assert query.batch() == []
    more = sorted(a.grow(2) + b.grow(1))
    assert query.plan()
    later = a.grow(2)
    assert sorted(query.read()) == more
    query.restart()
    assert sorted(query.read()) == more
    assert query.batch() == later
    a.rename("z.active")
    assert query.batch() == []
    rows = a.grow(1)
    query.restart()
    assert query.batch() == rows
    assert query.batch() == []


def test_an_object_that_is_put_again_as_it_was_has_not_grown(store: ObjectStore, states: str, tmp_path: Path) -> None:
    a = Stored(store, tmp_path, "a")
    rows = a.grow(3)
    query = stream(store, states)
    assert query.batch() == rows
    a.put()
    assert query.batch() == []


def test_objects_that_did_not_change_are_not_asked_for(
    store: ObjectStore, states: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seglake.stores import find_files

    def find(*given: Any) -> Any:
        listing = find_files(*given)
        listing.listed_ns += LATER_NS  # what is young is looked at again
        return listing

    monkeypatch.setattr("seglake.spark.stream.folder.find_files", find)
    for name in "abc":
        Stored(store, tmp_path, name).grow(2)
    query = stream(store, states)
    assert len(query.batch()) == 6
    with store.counting() as made:
        assert query.batch() == []
    assert not [request for request in made if ".active" in request.path]


def test_an_object_that_was_replaced(store: ObjectStore, states: str, tmp_path: Path) -> None:
    a = Stored(store, tmp_path, "a")
    a.grow(2)
    query = stream(store, states)
    query.batch()
    (tmp_path / "other").mkdir()
    other = Stored(store, tmp_path / "other", "a")
    rows = other.grow(2)
    assert query.batch() == rows
    other.grow(1)
    assert query.plan()
    store.filesystem().delete_file("logs/files/a.active")
    with pytest.raises(FileNotFoundError, match=r"no file with its records is there now.*s3://logs/files/a\.active"):
        query.read()


def test_what_is_wrong_with_the_folder_of_states(store: ObjectStore, tmp_path: Path) -> None:
    a = Stored(store, tmp_path, "a")
    a.grow(1)
    with pytest.raises(ValueError, match="expected a folder outside of those that are streamed"):
        stream(store, "s3://logs/files/states").batch()
    query = stream(store, "s3://logs/states")
    query.batch()
    a.grow(1)
    (state,) = [each.path for each in store.filesystem().get_file_info(_below("logs/states")) if each.is_file]
    store.put(state.removeprefix("logs/"), b"{")
    query.restart()
    with pytest.raises(ValueError, match=r"s3://logs/states/\w+/_log/0+1\.json: expected an entry of the log"):
        query.batch()
    store.filesystem().delete_file(state)
    with pytest.raises(ValueError, match=r"expected state 1 of stream .* which the checkpoint has, found none"):
        query.batch()


def _below(folder: str) -> Any:
    import pyarrow.fs

    return pyarrow.fs.FileSelector(folder, recursive=True)


def test_a_state_that_cannot_be_written_is_no_end_of_a_batch(store: ObjectStore, tmp_path: Path) -> None:
    rows = Stored(store, tmp_path, "a").grow(2)
    query = stream(store, "s3://logs/states", **{"fs.max_retries": "0"})

    def fails(request: Request) -> str | None:
        return "503" if request.method in ("PUT", "POST") and "/states/" in request.path else None

    store.fault = fails
    with pytest.raises(OSError, match="s3://logs/states/"):
        query.batch()
    store.fault = None
    assert query.batch() == rows


def test_few_states_stay(store: ObjectStore, tmp_path: Path) -> None:
    a = Stored(store, tmp_path, "a")
    query = stream(store, "s3://logs/states", minStatesToRetain="2")
    for _ in range(5):
        a.grow(1)
        query.batch()
    left = [each for each in store.filesystem().get_file_info(_below("logs/states")) if each.is_file]
    assert len(left) == 7


@pytest.mark.parametrize("seed", range(3))
def test_each_record_once_whatever_happens_in_between(store: ObjectStore, tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    stored = [Stored(store, tmp_path, name) for name in "abc"]
    rows = stored[0].grow(1)
    query = stream(store, "s3://logs/states", maxBytesPerTrigger="100")
    for step in range(30):
        one = chosen.choice(stored)
        match chosen.randrange(5):
            case 0 | 1:
                rows += one.grow(chosen.randint(1, 3))
            case 2 if one.number:
                one.rename(f"{chosen.randint(0, 9)}-{one.name}-{step}.active")
            case 3:
                query.restart()
            case _:
                query.batch()
    while query.batch():
        pass
    assert sorted(query.rows) == sorted(rows)


def test_tasks_get_no_secret_that_is_shown(store: ObjectStore, tmp_path: Path) -> None:
    Stored(store, tmp_path, "a").grow(1)
    query = stream(store, "s3://logs/states")
    assert query.plan()
    (partition,) = query.reader.partitions(query.previous, query.start())
    assert store.options()["fs.secret_access_key"] not in repr(partition)
    assert pickle.loads(pickle.dumps(partition)) == partition


@pytest.fixture
def large(store: ObjectStore, tmp_path: Path) -> Stored:
    """A segment that is read with several requests."""
    a = Stored(store, tmp_path, "a")
    with seglake.create(a.path, format="active") as writer:
        for number in range(9):
            writer.write(type="t", value=(f"{number}-" * MIB).encode())
    a.put()
    return a


def while_it_is_read(store: ObjectStore, key: str, changes: list[Callable[[], object]]) -> None:
    """Has an object changed, step by step, each time before a piece is read that is neither its first nor its last."""
    left, one_at_a_time = list(changes), threading.Lock()

    def change(request: Request) -> None:
        if request.method == "GET" and request.path.endswith(key) and request.range is not None:
            start = int(request.range.removeprefix("bytes=").partition("-")[0])
            with one_at_a_time:
                if left and MIDDLE[0] <= start < MIDDLE[1]:
                    left.pop(0)()

    store.fault = change


def test_an_object_that_grows_while_it_is_read(store: ObjectStore, large: Stored) -> None:
    query = stream(store, "s3://logs/states")
    assert query.plan()
    while_it_is_read(store, large.key, [lambda: large.grow(2)])
    with pytest.raises(OSError, match="read it again"):
        query.read()
    assert len(query.read()) == 9  # as Spark tries the task again
    store.fault = None
    assert query.batch() == ["a-0", "a-1"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ignored", ["false", "true"])
@pytest.mark.parametrize("change", ["other", "shorter", "a byte that was read"])
def test_an_object_that_is_another_while_it_is_read(
    store: ObjectStore, large: Stored, change: str, ignored: str
) -> None:
    query = stream(store, "s3://logs/states", ignoreMissingFiles=ignored)
    assert query.plan()
    content = large.path.read_bytes()
    large.path.unlink()
    with seglake.create(large.path, format="active") as writer:
        writer.write(type="t", value=b"x" * len(content))
    changes: dict[str, Callable[[], object]] = {
        "other": large.put,
        "shorter": lambda: store.put(large.key, content[: len(content) // 2]),
        "a byte that was read": lambda: store.put(large.key, content[:1000] + b"?" + content[1001:]),
    }
    while_it_is_read(store, large.key, [changes[change]])
    error = OSError if change == "a byte that was read" else seglake.exceptions.ReplacedError
    with pytest.raises(error, match=r"while (the batch|it) was read"):
        query.read()
    store.fault = None
    if change == "a byte that was read":
        return  # that is damage to who reads it anew
    query.restart()
    if ignored == "true":
        assert query.read() == []
    else:
        with pytest.raises(seglake.exceptions.ReplacedError, match="Put it back and start the query again"):
            query.read()


@pytest.mark.parametrize("starting_from", ["start", "now"])
@pytest.mark.parametrize("format", ["sealed", "tenant"])
def test_to_plan_complete_objects_little_of_them_is_read(
    store: ObjectStore, tmp_path: Path, format: str, starting_from: str
) -> None:
    with seglake.create(tmp_path / "a", format=format) as writer:
        for number in range(20):
            fields: dict[str, Any] = {"sealed": {"type": "t"}, "tenant": {"partition": 1, "tenant": f"{number:02}"}}
            writer.write(value=bytes([number]) * MIB, **fields[format])
    store.put("files/a", (tmp_path / "a").read_bytes())
    query = stream(store, "s3://logs/states", segmentFormat=format, startingFrom=starting_from)
    with store.counting() as made:
        assert query.plan()
    # Both to identify it and to find its end, some pieces are read ahead.
    assert sum(request.sent for request in made) < 12 * MIB
    assert len(query.read()) == (20 if starting_from == "start" else 0)
    assert query.batch() == []
