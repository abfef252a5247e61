"""Checkpoints of the state of an ingest: they say what the tables say, or are not used."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake
from dying import deadly, in_a_process
from pyiceberg.catalog.sql import SqlCatalog
from seglake._ingestion import state as state_module
from seglake._ingestion.checkpoint import read_checkpoint
from seglake._ingestion.destination import Destination
from seglake._ingestion.lake.tables import LakeTables, lake_tables
from seglake._ingestion.state import State, load_state, save_state
from seglake._ingestion.tables import FILES_SCHEMA
from segments import write_segment

import seglake
from seglake._publish.store import LOCAL

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the ingest runs on Linux and macOS")


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a checkpoint be written for each file."""
    monkeypatch.setattr(state_module, "_CHECKPOINT_FILES", 1)


@pytest.fixture(scope="module")
def carry(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("carry")
    write_segment(folder / "one/a.active", 3)
    seglake.ingest(folder / "one", folder / "first")
    (row,) = rows(folder / "first")
    return str(row["carry"])


def rows(lake: Path) -> list[dict[str, Any]]:
    return pa.concat_tables([pq.read_table(path, partitioning=None) for path in tables(lake)]).to_pylist()


def tables(lake: Path) -> list[Path]:
    return sorted(lake.glob("*/files/*.parquet"))


def checkpoints(lake: Path) -> list[Path]:
    return sorted(lake.glob("_state/*"))


def write_run(lake: Path, format: str, name: str, rows: list[dict[str, Any]]) -> Path:
    path = lake / format / "files" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, FILES_SCHEMA), path)
    return path


def run(number: int) -> str:
    return f"20260101T{number // 3600:02}{number // 60 % 60:02}{number % 60:02}Z-{number:08x}"


def drawn(chance: random.Random, number: int, carry: str) -> dict[str, Any]:
    """A row of a few segments at a few paths: they are renamed, replaced, copied and refused, in any order."""
    path = f"/logs/{chance.choice('abc')}"
    status = chance.choice(["sound", "sound", "damaged", "copy", "replaced", "unreadable"])
    is_in = status in ("sound", "damaged")
    segment = chance.choice(["s", "s#2", "t", path]) if is_in or status == "replaced" else path
    row = {"segment": segment, "run": run(number), "path": path, "status": status, "records": number, "size": number}
    if is_in:
        row = {**row, "format": "active", "end": number, "pending_bytes": 0, "modified": None, "carry": carry}
        is_copy = status == "damaged" and segment == path
        return {**row, "records": 0, "error": f"why {number % 2}"} if is_copy else row
    return {**row, "modified": chance.choice([None, number]), "error": f"why {number}"}


def by_tables(lake: Path, kind: LakeTables | None = None) -> State:
    """The state that is read from all files of the tables."""
    aside = lake / "_aside"
    if (lake / "_state").exists():
        (lake / "_state").rename(aside)
    state = load_state(Destination.local(lake), kind)
    if aside.exists():
        aside.rename(lake / "_state")
    return replace(state, uncovered=0)


def grown(lake: Path, seed: int, carry: str) -> Iterator[State]:
    """Adds runs to a lake, and yields the state after each as it is loaded."""
    chance = random.Random(seed)
    for number in range(9):
        for format in ("active", "sealed")[: chance.choice([1, 1, 2])]:
            write_run(lake, format, run(number), [drawn(chance, number, carry) for _ in range(chance.choice([1, 3]))])
        yield load_state(Destination.local(lake))


@pytest.mark.parametrize("seed", range(10))
def test_a_state_is_the_same_with_and_without_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, carry: str, seed: int
) -> None:
    monkeypatch.setattr(state_module, "_CHECKPOINT_FILES", seed % 5 + 1)
    lake = tmp_path / "lake"
    for state in grown(lake, seed, carry):
        assert replace(state, uncovered=0) == by_tables(lake)
        save_state(Destination.local(lake), state)
        assert load_state(Destination.local(lake)).uncovered < seed % 5 + 1
    assert [path.suffix for path in checkpoints(lake)] == [".checkpoint"]


def test_a_look_reads_what_no_checkpoint_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, carry: str) -> None:
    lake, read = tmp_path / "lake", list[str]()
    for number in range(100):
        row = drawn(random.Random(0), number, carry)
        write_run(lake, "active", run(number), [row])
        if number % 10 == 9:
            state = load_state(Destination.local(lake))
            save_state(Destination.local(lake), state)
    parquet = Destination.parquet
    monkeypatch.setattr(Destination, "parquet", lambda self, path: read.append(path.stem) or parquet(self, path))  # pyright: ignore
    state = load_state(Destination.local(lake))
    assert len(read) == state.uncovered == 30
    assert (read[-1], state.last_run) == (run(99), run(99))
    assert len(checkpoints(lake)) == 1


def test_a_checkpoint_that_is_damaged_is_ignored_and_made_anew(tmp_path: Path, always: None, carry: str) -> None:
    lake = tmp_path / "lake"
    for state in grown(lake, 1, carry):
        save_state(Destination.local(lake), state)
    destination, expected = Destination.local(lake), by_tables(lake)
    (path,) = checkpoints(lake)
    content = path.read_bytes()
    later = path.with_name(f"{run(99)}.checkpoint")
    chance = random.Random(0)
    flips = [bytearray(content) for _ in range(60)]
    for flipped in flips:
        flipped[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    line, _, rest = content.partition(b"\n")
    torn = [content[: chance.randrange(len(content))] for _ in range(20)]
    for damaged in (*map(bytes, flips), *torn, b"", b"{}\n" + rest, b"[]\n", line, content + b"\0"):
        path.write_bytes(damaged)
        state = load_state(destination)
        assert replace(state, uncovered=0) == expected
        assert state.uncovered == len(tables(lake))
    save_state(destination, load_state(destination))
    assert path.read_bytes() == content
    # Under the name of another run it has not what its name says.
    path.rename(later)
    assert load_state(destination).uncovered == len(tables(lake))
    save_state(destination, load_state(destination))
    assert checkpoints(lake) == [path]


def test_a_checkpoint_is_of_the_files_that_are_there_and_no_others(tmp_path: Path, always: None, carry: str) -> None:
    lake = tmp_path / "lake"
    for state in grown(lake, 2, carry):
        save_state(Destination.local(lake), state)
    destination = Destination.local(lake)
    files = load_state(destination).files
    assert read_checkpoint(destination, files) is not None

    def is_used() -> bool:
        state = load_state(destination)
        assert replace(state, uncovered=0) == by_tables(lake)
        return state.uncovered < len(tables(lake))

    assert is_used()
    # One was removed, so that its segments are ingested again.
    gone = tables(lake)[3]
    gone.rename(tmp_path / "gone")
    assert not is_used()
    (tmp_path / "gone").rename(gone)
    assert is_used()
    # One was written anew, under its name, with fewer rows.
    content, own = gone.read_bytes(), pq.read_table(gone, partitioning=None)
    pq.write_table(own.slice(1), gone)
    assert not is_used()
    gone.write_bytes(content)
    assert is_used()
    # One was added in the midst of them.
    row = drawn(random.Random(1), 4, carry)
    added = write_run(lake, "tenant", run(4), [row])
    assert not is_used()
    added.unlink()
    # Others have put rows of earlier runs into a file of their own.
    added = write_run(lake, "active", "part-00000", [{**row, "path": "/logs/d"}])
    assert not is_used()
    save_state(destination, load_state(destination))
    assert not is_used()
    added.unlink()
    assert is_used()


def restored_delta(lake: Path) -> None:
    table = DeltaTable(lake / "active/files")
    table.restore(table.version() - 1)


def compacted_delta(lake: Path) -> None:
    DeltaTable(lake / "active/files").optimize.compact()


def deleted_delta(lake: Path) -> None:
    DeltaTable(lake / "active/files").delete("path LIKE '%b.active'")


def appended_delta(lake: Path) -> None:
    table: Any = DeltaTable(lake / "active/files").to_pyarrow_table()
    write_deltalake(lake / "active/files", table.slice(0, 1), mode="append")


def iceberg(lake: Path) -> Any:
    return SqlCatalog("seglake", uri=f"sqlite:///{lake}/_catalog.db").load_table(("active", "files"))


def restored_iceberg(lake: Path) -> None:
    table = iceberg(lake)
    table.manage_snapshots().rollback_to_snapshot(table.current_snapshot().parent_snapshot_id).commit()


def compacted_iceberg(lake: Path) -> None:
    iceberg(lake).overwrite(iceberg(lake).scan().to_arrow())


def deleted_iceberg(lake: Path) -> None:
    iceberg(lake).delete(f"path = '{lake.parent}/src/b.active'")


def appended_iceberg(lake: Path) -> None:
    iceberg(lake).append(iceberg(lake).scan().to_arrow().slice(0, 1))


CHANGES = ("restored", "compacted", "deleted", "appended")


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_checkpoint_is_of_the_table_as_it_was(tmp_path: Path, always: None, kind: Any) -> None:
    source, first = tmp_path / "src", tmp_path / "lake"
    for name in "abcd":
        write_segment(source / f"{name}.active", 1)
        os.utime(source / f"{name}.active", (1_700_000_000, 1_700_000_000))
        seglake.ingest(source, first, table=kind, threads=1)
    shutil.copytree(first, tmp_path / "copy")
    for change in CHANGES:
        if first.exists():
            shutil.rmtree(first)  # tables of Iceberg cannot be moved
        shutil.copytree(tmp_path / "copy", first)
        destination = Destination.local(first)
        lake = lake_tables(kind, destination)
        before = load_state(destination, lake)
        assert (len(before.files), before.uncovered) == (4, 1)
        assert replace(before, uncovered=0) == by_tables(first, lake)
        save_state(destination, before)
        assert load_state(destination, lake).uncovered == 0
        globals()[f"{change}_{kind}"](first)
        lake = lake_tables(kind, destination)
        after = load_state(destination, lake)
        assert after.uncovered == len(after.files), change
        assert replace(after, uncovered=0) == by_tables(first, lake)
        assert len(after.ingested) == (3 if change in ("restored", "deleted") else 4)
        # Then there is one of it, whoever wrote its files.
        save_state(destination, after)
        again = load_state(destination, lake)
        assert (again.uncovered, replace(again, uncovered=0)) == (0, by_tables(first, lake))


def test_a_table_with_unknown_reader_features_is_an_error(tmp_path: Path, always: None) -> None:
    source, first = tmp_path / "src", tmp_path / "lake"
    for name in "ab":
        write_segment(source / f"{name}.active", 1)
        seglake.ingest(source, first, table="delta", threads=1)
    destination = Destination.local(first)
    lake = lake_tables("delta", destination)
    assert load_state(destination, lake).uncovered == 1
    table = DeltaTable(first / "active/files")
    table.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    with pytest.raises(OSError, match=r"deletionVectors.* not .*\w\. Drop these features of the table") as raised:
        load_state(destination, lake)
    assert raised.value.filename == str(first / "active/files")


def test_a_run_does_not_fail_for_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, always: None) -> None:
    source, lake = tmp_path / "src", tmp_path / "lake"
    for name in "ab":
        write_segment(source / f"{name}.active", 3)
        seglake.ingest(source, lake)
    (path,) = checkpoints(lake)
    shutil.rmtree(path.parent)
    path.parent.write_bytes(b"in its way")
    write_segment(source / "c.active", 3)
    assert seglake.ingest(source, lake).records == 3


STEPS = ("make_folder", "write_durably", "remove", "sync_names")


def test_killed_in_front_of_each_step_the_state_is_that_of_the_tables(
    tmp_path: Path, always: None, stride: int
) -> None:
    source, first = tmp_path / "src", tmp_path / "first"
    for name in "abc":
        write_segment(source / f"{name}.active", 3)
        os.utime(source / f"{name}.active", (1_700_000_000, 1_700_000_000))
        seglake.ingest(source, first, threads=1)
    assert len(checkpoints(first)) == 1
    write_segment(source / "d.active", 3)
    os.utime(source / "d.active", (1_700_000_000, 1_700_000_000))
    seen: set[bool] = set()
    for fatal in range(1, 100, stride):
        lake = tmp_path / f"lake-{fatal}"
        shutil.copytree(first, lake)

        def work(lake: Path = lake, fatal: int = fatal) -> None:
            deadly(LOCAL, STEPS, fatal)
            seglake.ingest(source, lake, threads=1)

        status = in_a_process(work)
        assert status in (0, -signal.SIGKILL)
        assert replace(load_state(Destination.local(lake)), uncovered=0) == by_tables(lake)
        seen.add([path.name for path in checkpoints(lake)] == [path.name for path in checkpoints(first)])
        seglake.ingest(source, lake, threads=1)
        assert sorted(row["path"] for row in rows(lake)) == [str(source / f"{name}.active") for name in "abcd"]
        assert 1 <= len(checkpoints(lake)) <= 2  # one that is left over goes with the next
        if status == 0:
            break
    assert fatal > 6
    assert seen == {False, True}


@pytest.mark.parametrize("has_checkpoints", [False, True])
def test_two_files_of_a_segment_that_are_replaced_get_a_row_each(
    tmp_path: Path, has_checkpoints: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_checkpoints:
        monkeypatch.setattr(state_module, "_CHECKPOINT_FILES", 1)
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(src / "a.active", 10)
    content = (src / "a.active").read_bytes()
    seglake.ingest(src, lake)
    (src / "a.active").unlink()
    for name in "bc":
        (src / f"{name}.active").write_bytes(content[: written[4].end])
    assert seglake.ingest(src, lake).statuses["replaced"] == 2
    for _ in range(3):
        again = seglake.ingest(src, lake)
        assert (again.statuses["replaced"], again.run_id) == (2, None)
    # One of them is what it was, and the other is a copy of it.
    (src / "b.active").write_bytes(content)
    assert seglake.ingest(src, lake).statuses["copy"] == 1
    assert [row["status"] for row in rows(lake)].count("replaced") == 2
    assert seglake.ingest(src, lake).run_id is None
