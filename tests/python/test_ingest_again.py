"""Runs that follow each other: the five sentences of docs/ingest.md, on a folder whose files change in between."""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from samples import draft
from segments import DAY, flip, write_segment

import seglake
from seglake.cli import main

_T0 = 1_700_000_000


class Folder:
    """A folder of segments and the lake that they are ingested into. Each change has a time of its own."""

    def __init__(self, root: Path) -> None:
        self.logs, self.lake, self._time = root / "logs", root / "lake", _T0
        self.logs.mkdir()

    def settle(self) -> None:
        """Gives files that were just written times that differ, and lie back."""
        for path in self.logs.rglob("*"):
            if path.stat().st_mtime > _T0 + 1_000_000:
                self._time += 10
                os.utime(path, (self._time, self._time))

    def run(self, **how: Any) -> seglake.IngestResult:
        """Ingests; afterwards each record is there once, and `files` adds up."""
        self.settle()
        result = seglake.ingest(self.logs, self.lake, **how)
        keys = [(row["source"], row["uuid"]) for row in self.rows("active", "sealed")]
        assert len(keys) == len(set(keys)) == sum(row["added"] for row in self.rows("files"))
        return result

    def rows(self, *tables: str) -> list[dict[str, Any]]:
        """Returns the rows of tables, in the order of their runs."""
        files = [str(file) for name in tables for file in sorted((self.lake / name).rglob("*.parquet"))]
        return ds.dataset(files).to_table().to_pylist() if files else []

    def now(self) -> dict[str, str]:
        """Returns the status of each file, as the view `files_now` has it."""
        latest = {row["path"]: row["status"] for row in sorted(self.rows("files"), key=lambda row: row["run"])}
        return {Path(path).name: status for path, status in latest.items() if status != "renamed"}

    def damage_now(self) -> int:
        """Returns how many damaged ranges the last whole reading of each file found, and what came after it."""
        whole = {
            row["path"]: row["run"] for row in sorted(self.rows("files"), key=lambda r: r["run"]) if row["start"] == 0
        }
        here = {row["path"] for row in self.rows("files") if Path(row["path"]).name in self.now()}
        return sum(row["run"] >= whole[row["path"]] and row["path"] in here for row in self.rows("damage"))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def _append(path: Path, source: Path, number: int) -> None:
    """Appends what another segment has beyond what is there, up to a number of records."""
    with seglake.open(source) as reader:
        ends = [record.position for record in reader] + [source.stat().st_size]
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        content = source.read_bytes()
        file.write(content[file.tell() : ends[number]])


def test_a_file_that_grows_adds_what_is_new(folder: Folder, tmp_path: Path) -> None:
    write_segment(tmp_path / "whole.active", 30)
    path = folder.logs / "a.active"
    path.touch()
    for number in (10, 20, 30):
        _append(path, tmp_path / "whole.active", number)
        assert folder.run().records == 10
    starts = [row["start"] for row in sorted(folder.rows("files"), key=lambda row: row["run"])]
    ends = [row["end"] for row in sorted(folder.rows("files"), key=lambda row: row["run"])]
    assert starts == [0, *ends[:-1]]
    assert folder.run().unchanged == 1


def _renamed(folder: Folder) -> None:
    (folder.logs / "a.active").rename(folder.logs / "b.active")


def _copied(folder: Folder) -> None:
    shutil.copy(folder.logs / "a.active", folder.logs / "b.active")


def _sealed(folder: Folder) -> None:
    seglake.convert(folder.logs / "a.active", folder.logs / "b.sealed", to="sealed")


def _sealed_and_deleted(folder: Folder) -> None:
    _sealed(folder)
    (folder.logs / "a.active").unlink()


def _cut(folder: Folder) -> None:
    os.truncate(folder.logs / "a.active", (folder.logs / "a.active").stat().st_size // 2)


def _protected(folder: Folder) -> None:
    seglake.protect(folder.logs / "a.active")


def _replaced_by_itself(folder: Folder) -> None:
    _copied(folder)
    (folder.logs / "b.active").replace(folder.logs / "a.active")


def _moved(folder: Folder) -> None:
    (folder.logs / "deep").mkdir()
    (folder.logs / "a.active").rename(folder.logs / "deep/a.active")


@pytest.mark.parametrize(
    "change",
    [_renamed, _copied, _sealed, _sealed_and_deleted, _cut, _protected, _replaced_by_itself, _moved],
    ids=lambda change: change.__name__,
)
def test_records_that_are_there_do_not_come_again(folder: Folder, change: Callable[[Folder], None]) -> None:
    write_segment(folder.logs / "a.active", 20)
    assert folder.run().records == 20
    change(folder)
    result = folder.run()
    assert result.records == 0 and result.ok
    present = {path.name for path in folder.logs.rglob("*") if path.suffix in (".active", ".sealed")}
    assert present == {name for name in folder.now() if name in present}
    assert folder.run().files == 0


def test_two_copies_that_grow_add_each_record_once(folder: Folder, tmp_path: Path) -> None:
    write_segment(tmp_path / "whole.active", 30)
    for name in ("a.active", "b.active"):
        (folder.logs / name).touch()
    for number, records in ((10, 10), (20, 10), (30, 10)):
        for name in ("a.active", "b.active"):
            _append(folder.logs / name, tmp_path / "whole.active", number)
        assert folder.run().records == records


def test_a_file_that_was_cut_and_is_whole_again(folder: Folder) -> None:
    write_segment(folder.logs / "a.active", 20)
    content = (folder.logs / "a.active").read_bytes()
    folder.run()
    _cut(folder)
    folder.run()
    (folder.logs / "a.active").write_bytes(content)
    assert folder.run().records == 0


def test_a_rotated_log(folder: Folder) -> None:
    path = folder.logs / "app.active"
    for number in range(3):
        write_segment(folder.logs / "new", 5 + number, first=DAY + timedelta(days=number))
        if path.exists():
            path.rename(folder.logs / f"app.active.{number}")
        (folder.logs / "new").rename(path)
        assert folder.run().records == 5 + number
    assert set(folder.now()) == {"app.active", "app.active.1", "app.active.2"}


@pytest.mark.parametrize("how", ["in place", "anew"])
def test_what_is_repaired_comes_in_and_its_damage_goes(folder: Folder, how: str) -> None:
    path = folder.logs / "a.active"
    written = write_segment(path, 20)
    content = path.read_bytes()
    flip(path, written[7].end - 9)
    assert (folder.run().records, folder.damage_now()) == (19, 1)
    if how == "in place":
        path.write_bytes(content)
    else:
        path.unlink()
        path.write_bytes(content)
    assert (folder.run().records, folder.damage_now(), folder.now()) == (1, 0, {"a.active": "sound"})


def test_a_first_record_that_is_damaged_and_restored(folder: Folder) -> None:
    path = folder.logs / "a.active"
    written = write_segment(path, 20)
    content = path.read_bytes()
    folder.run()
    flip(path, written[0].end - 9)
    assert folder.run().records == 0
    path.write_bytes(content)
    assert folder.run().records == 0


def test_other_content_under_a_key_is_a_conflict_said_once(folder: Folder) -> None:
    path = folder.logs / "a.active"
    write_segment(path, 20)
    folder.run()
    other = folder.logs / "b.active"
    with seglake.open(path) as reader, seglake.create(other, format="active") as writer:
        for number, record in enumerate(reader):
            value = b"other" if number == 9 else bytes(record.value)
            writer.write(uuid=record.uuid, type=record.type, value=value)
    result = folder.run()
    assert result.records == 0 and result.exit_status == 1
    assert [error.status for error in result.errors] == ["conflict"]
    again = folder.run()
    assert (again.errors, again.unchanged_refused, again.exit_status) == ((), 1, 0)


def test_an_unreadable_file_is_tried_again_and_said_once(folder: Folder) -> None:
    path = folder.logs / "notes.txt"
    path.write_bytes(b"this is not a segment at all, and long enough")
    write_segment(folder.logs / "b.active", 3)
    assert [error.status for error in folder.run().errors] == ["not_a_segment"]
    again = folder.run()
    assert (again.errors, again.unchanged_refused, again.ok) == ((), 1, True)
    path.unlink()
    write_segment(path, 5, first=DAY + timedelta(days=1))
    assert folder.run().records == 5


def test_a_tail_that_was_final_and_is_finished_later(folder: Folder, tmp_path: Path) -> None:
    written = write_segment(tmp_path / "whole.active", 10)
    content = (tmp_path / "whole.active").read_bytes()
    path = folder.logs / "a.active"
    path.write_bytes(content[: written[8].end + 7])
    assert folder.run().statuses["pending"] == 1
    assert folder.run(final=True).statuses["damaged"] == 1
    assert folder.damage_now() == 1
    path.write_bytes(content)
    assert (folder.run().records, folder.damage_now()) == (1, 0)


def test_a_file_that_is_renamed_and_grows_adds_what_is_new(folder: Folder, tmp_path: Path) -> None:
    write_segment(tmp_path / "whole.active", 30)
    (folder.logs / "a.active").touch()
    _append(folder.logs / "a.active", tmp_path / "whole.active", 20)
    folder.run()
    size = (folder.logs / "a.active").stat().st_size
    _renamed(folder)
    _append(folder.logs / "b.active", tmp_path / "whole.active", 30)
    assert (folder.run().records, folder.now()) == (10, {"b.active": "sound"})
    assert [row["start"] for row in folder.rows("files") if row["path"].endswith("b.active")] == [size]


@pytest.mark.parametrize("truncated", [False, True], ids=["anew", "copytruncate"])
def test_other_records_under_an_old_name_are_another_source(folder: Folder, truncated: bool) -> None:
    path = folder.logs / "a.active"
    write_segment(path, 20)
    folder.run()
    if truncated:
        shutil.copy(path, folder.logs / "a.active.1")
        write_segment(folder.logs / "new", 25, first=DAY + timedelta(days=9))
        path.write_bytes((folder.logs / "new").read_bytes())  # the inode stays
        (folder.logs / "new").unlink()
    else:
        path.unlink()
        write_segment(path, 25, first=DAY + timedelta(days=9))
    assert folder.run().records == 25
    assert len({row["source"] for row in folder.rows("active")}) == 2
    assert set(folder.now()) == ({"a.active", "a.active.1"} if truncated else {"a.active"})


def test_what_seglake_repairs_was_there_before(folder: Folder) -> None:
    path = folder.logs / "a.active"
    written = write_segment(path, 20)
    seglake.protect(path)
    flip(path, written[7].end - 9)
    result = folder.run()
    assert (result.records, result.repaired_records, folder.now()["a.active"]) == (20, 1, "damaged")
    seglake.repair(path)
    assert (folder.run().records, folder.damage_now(), folder.now()["a.active"]) == (0, 0, "sound")


def test_a_forked_oplog_is_another_source(tmp_path: Path) -> None:
    for name, other in (("a", 0), ("b", 50)):
        (tmp_path / "src").mkdir(exist_ok=True)
        with seglake.create(tmp_path / f"src/{name}.oplog", format="oplog") as writer:
            for number in range(10):
                writer.write(**draft(number if number < 5 else number + other))
        assert seglake.ingest(tmp_path / "src", tmp_path / "lake").records == 10
    table = ds.dataset([str(file) for file in (tmp_path / "lake/oplog").rglob("*.parquet")]).to_table()
    one, other = sorted(set(map(str, table.column("source").to_pylist())))
    assert other.startswith(f"{one}#")


def test_a_fork_of_a_fork_is_a_third_source(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()

    def write(name: str, numbers: list[int]) -> None:
        (tmp_path / "src" / name).unlink(missing_ok=True)
        with seglake.create(tmp_path / "src" / name, format="oplog") as writer:
            for number in numbers:
                writer.write(**draft(number))

    write("a.oplog", [*range(10)])
    write("b.oplog", [*range(5), *range(50, 60)])
    assert seglake.ingest(tmp_path / "src", tmp_path / "lake").records == 25
    # Another file in the place of either: of both it has the records up to where they differ.
    for name in ("a", "b"):
        write(f"{name}.oplog", [*range(5), *range(50, 53), 90] if name == "b" else [*range(7), 91])
        seglake.ingest(tmp_path / "src", tmp_path / "lake")
    table = ds.dataset([str(file) for file in (tmp_path / "lake/oplog").rglob("*.parquet")]).to_table()
    rows = Counter((row["source"], row["position"]) for row in table.to_pylist())
    assert set(rows.values()) == {1}
    assert len({source for source, _ in rows}) == 4


def test_a_run_fails_for_what_is_new(folder: Folder) -> None:
    written = write_segment(folder.logs / "a.active", 20)
    flip(folder.logs / "a.active", written[7].end - 9)
    folder.settle()
    run = ["ingest", str(folder.logs), str(folder.lake), "--engine", "local"]
    statuses = [main([*run, *how]) for how in ([], [], ["--fail-on", "all"], ["--fail-on", "never"])]
    assert statuses == [1, 0, 1, 0]
    # What is known is not said again where the file grows, or is read again; what is new is.
    with seglake.create(folder.logs / "a.active", format="active", if_exists="append") as writer:
        writer.write(type="t", value=b"more")
    assert [main(run), main([*run, "--fail-on", "all"])] == [0, 1]
    flip(folder.logs / "a.active", written[9].end - 9)
    assert [main(run), main(run)] == [1, 0]


def test_a_run_that_learns_a_time_alone_has_nothing_to_say(folder: Folder) -> None:
    path = folder.logs / "a.active"
    write_segment(path, 5)
    # Modified a moment ago: it may change without getting another time.
    assert seglake.ingest(folder.logs, folder.lake).run_id is not None
    folder.settle()
    assert folder.run().run_id is None
