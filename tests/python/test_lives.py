"""Lives of a folder: `make test` lives fifty, `make properties` LIVES (10,000) with new seeds."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from lives import Code, Lake, Step, import_tables, live_of, shrunk, steps_of, told

LIVES = int(os.environ.get("LIVES", "50"))
SEED = int(os.environ.get("LIVES_SEED", "0"))
# Tables of these kinds take longer: a tenth of the lives are theirs.
SHARES = {"parquet": 1, "delta": 10, "iceberg": 10}
AT_ONCE = 10
SHARED_MEMORY = Path("/dev/shm")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the ingest runs on Linux and macOS")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in memory where there is one: no life loses power, so nothing has to reach a disk."""
    return SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else tmp_path_factory.mktemp("lives")


@pytest.mark.parametrize(
    ("table", "first"),
    [
        (table, first)
        for table, share in SHARES.items()
        for first in range(SEED, SEED + max(1, LIVES // share), AT_ONCE)
    ],
)
def test_the_promise_is_kept(folder: Path, table: str, first: int) -> None:
    import_tables(table)
    for seed in range(first, min(first + AT_ONCE, SEED + max(1, LIVES // SHARES[table]))):
        steps = steps_of(seed)
        error, story = live_of(steps, table, folder)
        if error is not None:
            fewer = shrunk(steps, table, folder, error.kinds)
            again, shorter = live_of(fewer, table, folder)
            # Two runs side by side may not fail again.
            found = (error, story, steps) if again is None else (again, shorter, fewer)
            pytest.fail(told(seed, table, *found), pytrace=False)


def without_one(lake: Lake) -> None:
    del lake.records[0]


def with_one_twice(lake: Lake) -> None:
    lake.records.append(lake.records[0])


def with_other_content(lake: Lake) -> None:
    lake.records[0] = lake.records[0]._replace(value=b"other")


def of_another_source(lake: Lake) -> None:
    source = f"{lake.records[0].source.rpartition(':')[0]}:0123456789abcdef"
    lake.records.extend([row._replace(source=source) for row in lake.records])


def without_damage(lake: Lake) -> None:
    lake.damage.clear()


def with_another(change: dict[str, object]) -> Callable[[Lake], None]:
    def lie(lake: Lake) -> None:
        lake.files[:] = [row._replace(**change) for row in lake.files]  # pyright: ignore[reportArgumentType]

    return lie


STEPS = [Step("new", 1), Step("new", 2), Step("flip", 4), Step("run", 0)]


LIES: dict[str, tuple[str, Callable[[Lake], None]]] = {
    "a record is missing": ("lost", without_one),
    "a record is there twice": ("twice", with_one_twice),
    "a record is another": ("invented", with_other_content),
    "records are also of another source": ("source", of_another_source),
    "damage is missing": ("damage", without_damage),
    "a number is wrong": ("untrue", with_another({"records": 1000})),
    "a status is wrong": ("untrue", with_another({"status": "limit"})),
    "bytes are missing": ("bytes", with_another({"nbytes": 7})),
    "files are refused": ("refused", with_another({"status": "renamed"})),
    "files have no row": ("lost", lambda lake: lake.files.clear()),
}


@pytest.mark.parametrize("lie", LIES)
def test_the_referee_notices(folder: Path, monkeypatch: pytest.MonkeyPatch, lie: str) -> None:
    kind, change = LIES[lie]
    rows = Code.rows
    error, story = live_of(STEPS, "parquet", folder)
    assert error is None, "\n".join(story)

    def lying(self: Code, lake: Path, table: str) -> Lake:
        found = rows(self, lake, table)
        copied = replace(found, records=list(found.records), files=list(found.files), damage=list(found.damage))
        change(copied)
        return copied

    monkeypatch.setattr(Code, "rows", lying)
    error, story = live_of(STEPS, "parquet", folder)
    assert error is not None, "\n".join(story)
    assert kind in error.kinds


def test_a_row_that_is_gone_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, calls = Code.rows, list[Path]()

    def lying(self: Code, lake: Path, table: str) -> Lake:
        found = rows(self, lake, table)
        calls.append(lake)
        if len(calls) == 2:
            del found.records[0]
        return found

    monkeypatch.setattr(Code, "rows", lying)
    error, _ = live_of([Step("new", 1), Step("run", 0), Step("run", 0)], "parquet", folder)
    assert error is not None
    assert "vanished" in error.kinds


def test_a_run_is_killed_before_each_of_its_calls(folder: Path) -> None:
    """Also before the last, and none of those that it has left is made after that."""
    story: list[str] = []
    for place in range(0, 100, 7):
        life_steps = [Step("new", 1), Step("new", 2), Step("run_killed", place), Step("run", 0)]
        error, story = live_of(life_steps, "parquet", folder)
        assert error is None, "\n".join(story)
    assert any("killed before call" in each for each in story)


def test_a_life_is_the_same_for_a_seed(folder: Path) -> None:
    assert steps_of(3) == steps_of(3) != steps_of(4)
    steps = [step for step in steps_of(5) if not step.name.startswith("run")]
    assert live_of(steps, "parquet", folder)[1][:-2] == live_of(steps, "parquet", folder)[1][:-2]
