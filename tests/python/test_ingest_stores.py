"""The ingest into a store: by Delta Lake and Iceberg in S3, once each, whatever races, fails or is cut off."""

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from object_store import ACCESS_KEY, REGION, SECRET_KEY, ObjectStore, Request, object_store
from pyiceberg.catalog.sql import SqlCatalog
from segments import write_segment

import seglake
from seglake.exceptions import IngestError
from seglake.lake.log import LakeLog, RunEntry, lake_log, save
from seglake.tracking.place import StorePlace

if sys.platform == "win32":
    pytest.skip("the ingest runs on Linux and macOS", allow_module_level=True)

KINDS = ("delta", "iceberg")
_MOST_REQUESTS = 22


class Lake:
    """A lake in the store, and a folder of segments for it."""

    def __init__(self, store: ObjectStore, kind: str, folder: Path) -> None:
        self.store, self.kind, self.uri = store, kind, "s3://logs/deep/lake"
        self.logs, self._catalog, self.records, self._files = folder / "logs", folder / "catalog.db", 0, 0
        self.options = {
            "aws_access_key_id": ACCESS_KEY,
            "aws_secret_access_key": SECRET_KEY,
            "aws_endpoint": f"http://{store.endpoint}",
            "aws_region": REGION,
            "aws_allow_http": "true",
        }

    def add(self, records: int = 3) -> None:
        """Adds a segment to the folder."""
        self._files, self.records = self._files + 1, self.records + records
        path = self.logs / f"{self._files:03}.active"
        write_segment(path, records, value_bytes=30 + self._files)
        os.utime(path, (1_700_000_000, 1_700_000_000))

    def run(self) -> seglake.IngestResult:
        how: Any = {"table": self.kind, "storage_options": self.options, "threads": 1}
        how |= {"catalog": f"sqlite:///{self._catalog}"} if self.kind == "iceberg" else {}
        return seglake.ingest(self.logs, self.uri, **how)

    def rows(self, table: str) -> list[dict[str, Any]]:
        if self.kind == "delta":
            found: Any = DeltaTable(f"{self.uri}/{table}", storage_options=self.options).to_pyarrow_table()
        else:
            own: Any = {"uri": f"sqlite:///{self._catalog}", "s3.endpoint": f"http://{self.store.endpoint}"}
            own |= {"s3.access-key-id": ACCESS_KEY, "s3.secret-access-key": SECRET_KEY, "s3.region": REGION}
            found = SqlCatalog("seglake", **own).load_table(("seglake", table)).scan().to_arrow()
        return found.to_pylist()

    def log(self) -> LakeLog:
        return lake_log(StorePlace(self.uri, self.options))

    def check(self) -> None:
        """Each record is there once, and the tables say what the log does."""
        values = Counter(row["value"] for row in self.rows("active"))
        assert (len(values), set(values.values())) == (self.records, {1})
        assert sum(row["added"] for row in self.rows("files")) == self.records
        runs = [row["run"] for row in self.rows("runs")]
        assert len(runs) == len(set(runs))


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Lake]:
    with object_store() as store:
        # All servers of a process have one memory.
        store.filesystem().delete_dir_contents("logs")
        yield Lake(store, request.param, tmp_path)


def test_only_what_is_new_is_added(lake: Lake) -> None:
    lake.add(12)
    lake.add(5)
    result = lake.run()
    assert (result.destination, result.records) == (lake.uri, 17)
    lake.add(4)
    with seglake.create(lake.logs / "001.active", format="active", if_exists="append") as writer:
        writer.write(type="t", value=b"more")
    lake.records += 1
    again = lake.run()
    assert (again.unchanged, again.records) == (1, 5)
    lake.check()
    assert lake.log().load().number == 2


def test_a_file_of_any_size_is_put_by_one_request_that_fails_if_there_is_one(lake: Lake) -> None:
    place, large = StorePlace(lake.uri, lake.options), bytes(9 << 20)
    with lake.store.counting() as requests:
        assert place.put_new("_log/1", large)
    assert [request.method for request in requests] == ["PUT"]
    assert not place.put_new("_log/1", large[1:])
    assert place.put_new("_log/1", large)  # as after an answer that was lost
    assert place.read("_log/1") == large


def test_a_run_that_finds_nothing_new_makes_few_requests(lake: Lake) -> None:
    lake.add()
    lake.run()
    log = lake.log()
    state = log.load()
    # As many entries as are read at most: the next one is followed by a checkpoint.
    found: list[int] = []
    for number in range(2, 32):
        entry = RunEntry(f"run-{number:05}", state.table_format or "parquet")
        assert log.put(number, entry)
        state.add(number, entry)
        save(log, state)
        if number in (2, 15, 16, 31):
            lake.run()  # says that they are applied
            with lake.store.counting() as made:
                assert lake.run().unchanged == 1
            assert {request.method for request in made} == {"GET"}
            found.append(len(made))
    assert max(found) <= _MOST_REQUESTS


@pytest.mark.parametrize("rounds", [2, pytest.param(4, marks=pytest.mark.more)])
def test_two_runs_at_once_add_each_record_once(lake: Lake, rounds: int) -> None:
    results: list[seglake.IngestResult] = []
    for number in range(1, rounds + 1):
        lake.add()
        lake.add()
        both = [threading.Thread(target=lambda: results.append(lake.run())) for _ in range(2)]
        for each in both:
            each.start()
        for each in both:
            each.join()
        assert sum(result.records for result in results) == 6 * number
    lake.check()


def from_request(number: int, what: Callable[[int, Request], str | None]) -> Callable[[Request], str | None]:
    """Returns what has requests fail from a number on, which begins with 1."""
    count = [0]

    def fault(request: Request) -> str | None:
        count[0] += 1
        return what(count[0] - number, request) if count[0] >= number else None

    return fault


def test_cut_off_before_any_request_the_next_run_completes_it(lake: Lake, stride: int) -> None:
    """For the store that is a process that was killed: nothing comes from it any more."""
    number, ended = 1, False
    while not ended:
        lake.add()
        lake.store.fault = from_request(number, lambda *_: "403")
        try:
            before = lake.run().records
            ended = True
        except (OSError, IngestError) as error:
            assert SECRET_KEY not in str(error)
            before = 0
        lake.store.fault = None
        after = lake.run().records
        assert (before, after) in ((3, 0), (0, 3), (0, 0))
        number += 2 + stride + number * stride // 8  # a table of Delta Lake takes more requests each time
    lake.check()
    assert number > 20


def test_an_answer_that_is_lost_is_no_second_run(lake: Lake) -> None:
    """Of the request that commits: it is made again, and finds the entry there."""
    lake.add()
    lost: list[str] = []

    def fault(request: Request) -> str | None:
        if request.method == "PUT" and request.path.endswith(".json") and "/_log/" in request.path and not lost:
            lost.append(request.path)
            return "lost"
        return None

    lake.store.fault = fault
    assert lake.run().records == 3
    assert lost == ["/logs/deep/lake/_log/00000000000000000001.json"]
    lake.check()


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_what_cannot_be_in_a_store_is_refused(lake: Lake) -> None:
    lake.add()
    for kind, said in (("parquet", "takes a mounted file system"), ("iceberg", "expected a catalog")):
        how: Any = {"table": kind, "storage_options": lake.options}
        with pytest.raises(IngestError, match=said):
            seglake.ingest(lake.logs, lake.uri, **how)
    for uri in ("s3://", "s3://logs/a%20b", "s3://logs/a?b", "s3://logs/../b"):
        with pytest.raises(IngestError, match="expected a folder: a path"):
            seglake.ingest(lake.logs, uri, table="delta")


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_the_environment_says_how_a_store_is_reached(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in lake.options.items():
        monkeypatch.setenv(name.upper(), value)
    lake.add()
    assert seglake.ingest(lake.logs, lake.uri, table="delta").records == 3
    lake.check()


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
@pytest.mark.parametrize("by", ["environment", "options"])
def test_sources_in_a_store(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    how: Any = {"storage_options": lake.options} if by == "options" else {}
    for name, value in lake.options.items() if by == "environment" else ():
        monkeypatch.setenv(name.upper().replace("AWS_ENDPOINT", "AWS_ENDPOINT_URL"), value)
    lake.add(20)
    content = (lake.logs / "001.active").read_bytes()
    with seglake.open(lake.logs / "001.active") as reader:
        half = list(reader)[10].position
    for end, records in ((half, 10), (len(content), 10)):
        lake.store.put("src/a.active", content[:end])
        assert seglake.ingest("s3://logs/src", tmp_path / "lake", **how).records == records
    lake.store.put("src/copy.active", content)
    assert seglake.ingest("s3://logs/src", tmp_path / "lake", **how).records == 0
