"""The log of a lake: runs that race, that are killed before each step, that lose the power, and what they leave."""

import itertools
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from segments import write_segment

import seglake
from seglake.exceptions import IngestError
from seglake.lake.compact import compact
from seglake.lake.log import LakeLog, RunEntry, lake_log, save
from seglake.lake.task import TaskRunner
from seglake.tracking.log import CommitLog
from seglake.tracking.place import LocalPlace
from seglake.tracking.state import FileState

if sys.platform == "win32":
    pytest.skip("the ingest runs on Linux and macOS", allow_module_level=True)

from power_loss import Disk, lay_out

KINDS = ("parquet", "delta", "iceberg")


def rows(lake: Path, kind: str, table: str) -> list[dict[str, Any]]:
    if kind == "delta":
        return DeltaTable(str(lake / table)).to_pyarrow_table().to_pylist()
    if kind == "iceberg":
        catalog = SqlCatalog("seglake", uri=f"sqlite:///{lake}/_catalog.db")
        return catalog.load_table(("seglake", table)).scan().to_arrow().to_pylist()
    return ds.dataset([str(file) for file in (lake / table).rglob("*.parquet")]).to_table().to_pylist()


def numbers(lake: Path) -> list[int]:
    return sorted(int(path.stem) for path in (lake / "_log").glob("*.json"))


def check(lake: Path, kind: str, records: int, dead: int = 0) -> None:
    """Each record is there once, and the tables say what the log does. So many runs may have died uncommitted."""
    values = Counter(row["value"] for row in rows(lake, kind, "active"))
    assert (len(values), set(values.values())) == (records, {1})
    assert sum(row["added"] for row in rows(lake, kind, "files")) == records
    runs = [row["run"] for row in rows(lake, kind, "runs")]
    assert len(runs) == len(set(runs)) == len(numbers(lake)) == max(numbers(lake))
    assert len(list(lake.glob("_staging/*"))) <= dead


def sources(folder: Path) -> Path:
    write_segment(folder / "a.active", 3)
    write_segment(folder / "b.active", 5, value_bytes=30)
    return old(folder)


def old(folder: Path) -> Path:
    for path in folder.rglob("*.active"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return folder


def age(path: Path, hours: int) -> None:
    then = time.time() - hours * 3600
    os.utime(path, (then, then))


def meanwhile(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Has another run come first when a run commits."""
    put, is_first = CommitLog.put, [True]

    def late(self: LakeLog, number: int, entry: RunEntry) -> bool:
        if is_first.pop() if is_first else False:
            work()
        return put(self, number, entry)

    monkeypatch.setattr(CommitLog, "put", late)


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each task that is run."""
    run, calls = TaskRunner.run, list[int]()

    def counted(self: TaskRunner, *arguments: Any) -> Any:
        calls.append(1)
        return run(self, *arguments)

    monkeypatch.setattr(TaskRunner, "run", counted)
    return calls


@pytest.mark.parametrize("kind", KINDS)
def test_two_runs_with_other_files_both_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, tasks: list[int]
) -> None:
    lake = tmp_path / "lake"
    write_segment(tmp_path / "one/a.active", 3)
    write_segment(tmp_path / "two/b.active", 5, value_bytes=30)
    write_segment(tmp_path / "three/c.active", 7, value_bytes=50)
    seglake.ingest(tmp_path / "three", lake, table=kind, threads=1)
    meanwhile(monkeypatch, lambda: seglake.ingest(tmp_path / "two", lake, table=kind, threads=1))
    assert seglake.ingest(tmp_path / "one", lake, table=kind, threads=1).records == 3
    assert (numbers(lake), len(tasks)) == ([1, 2, 3], 3)
    check(lake, kind, 15)


@pytest.mark.parametrize("kind", KINDS)
def test_of_two_runs_with_the_same_files_the_second_plans_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    source, lake = sources(tmp_path / "src"), tmp_path / "lake"
    meanwhile(monkeypatch, lambda: seglake.ingest(source, lake, table=kind))
    late = seglake.ingest(source, lake, table=kind)
    assert (late.run_id, late.records, late.unchanged, late.files) == (None, 0, 2, 0)
    check(lake, kind, 8)
    shutil.copy(source / "a.active", source / "copy.active")
    write_segment(source / "c.active", 7, value_bytes=50)
    old(source)
    meanwhile(monkeypatch, lambda: seglake.ingest(source / "c.active", lake, table=kind))
    late = seglake.ingest(source, lake, table=kind)
    assert (late.records, late.files, late.unchanged) == (0, 1, 3)
    check(lake, kind, 15)


def test_two_copies_that_two_runs_read_at_once_come_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = tmp_path / "lake"
    write_segment(tmp_path / "one/a.active", 9)
    (tmp_path / "two").mkdir()
    shutil.copy(tmp_path / "one/a.active", tmp_path / "two/copy.active")
    meanwhile(monkeypatch, lambda: seglake.ingest(tmp_path / "two", lake))
    assert seglake.ingest(tmp_path / "one", lake).records == 0
    check(lake, "parquet", 9)


# A first run, and a second that dies before its n-th step, each n in a fork and a lake of its own.
DEATHS = """
import os, signal, sys
from pathlib import Path
import seglake
from dying import print_deaths
from seglake.write import durable
from seglake.lake import delta, iceberg, tables
from seglake.lake.compact import compact
from seglake.tracking.place import LocalPlace
root, kind, is_compacted = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "compact"
owners = {
    durable: ("rename", "rename_new"),
    LocalPlace: ("put", "remove", "sync", "writing"),
    tables.shutil: ("rmtree",),
    delta.DeltaLakeTable: ("_create", "_commit"),
    iceberg.IcebergLakeTable: ("_create", "_commit"),
}

def work(fatal):
    lake, calls = root / f"lake-{fatal:03}", 0
    for number in range(2 if is_compacted else 1):
        seglake.ingest(root / f"earlier-{number}", lake, table=kind, threads=1)

    def deadly(function):
        def call(*arguments, **named):
            nonlocal calls
            calls += 1
            if calls == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)
        return call

    for owner, names in owners.items():
        for name in names:
            setattr(owner, name, deadly(getattr(owner, name)))
    if is_compacted:
        compact(lake)
    else:
        seglake.ingest(root / "src", lake, table=kind, threads=1)

print_deaths(work, 200, int(sys.argv[4]))
"""


def deaths(root: Path, *how: str, stride: int) -> range:
    """Returns the steps before which the second run was killed."""
    script = [sys.executable, "-c", DEATHS, root, *how, str(stride)]
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(script, capture_output=True, text=True, check=False, env=environment)
    statuses = done.stdout.split()
    assert statuses == ["-9"] * (len(statuses) - 1) + ["0"], done.stderr
    return range(1, (len(statuses) - 1) * stride + 1, stride)


@pytest.mark.parametrize("kind", KINDS)
def test_killed_before_any_step_the_next_run_completes_it(tmp_path: Path, kind: Any, stride: int) -> None:
    source = sources(tmp_path / "src")
    write_segment(tmp_path / "earlier-0/c.active", 7, value_bytes=50)
    steps = deaths(tmp_path, kind, "ingest", stride=stride)
    assert steps[-1] + stride > 10
    for step in steps:
        lake = tmp_path / f"lake-{step:03}"
        again = seglake.ingest(source, lake, table=kind)
        assert (again.records, again.unchanged) in ((8, 0), (0, 2)), step
        check(lake, kind, 15, dead=1 if again.records else 0)
        assert seglake.ingest(source, lake, table=kind).run_id is None


def test_a_compaction_that_is_killed_is_completed_by_the_next_run(tmp_path: Path, stride: int) -> None:
    source = sources(tmp_path / "src")
    write_segment(tmp_path / "earlier-0/c.active", 7, value_bytes=50)
    write_segment(tmp_path / "earlier-1/d.active", 6, value_bytes=60)
    steps = deaths(tmp_path, "parquet", "compact", stride=stride)
    assert steps[-1] + stride > 8
    for step in steps:
        lake = tmp_path / f"lake-{step:03}"
        seglake.ingest(source, lake)
        values = Counter(row["value"] for row in rows(lake, "parquet", "active"))
        assert (len(values), set(values.values())) == (21, {1}), step
        compact(lake)
        assert len(list((lake / "active/date=2024-01-31").iterdir())) == 1
        assert len(rows(lake, "parquet", "active")) == 21


def test_what_a_run_committed_that_died_long_ago_comes_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, lake = sources(tmp_path / "src"), tmp_path / "lake"

    def failing(*_: object) -> bool:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("seglake.lake.tables._ParquetTables._place_file", failing)
        with pytest.raises(IngestError, match=r"committed, and making it visible failed: .*next ingest completes it"):
            seglake.ingest(source, lake)
    for folder in (lake / "_staging").iterdir():
        age(folder, hours=25)
    shutil.rmtree(source)
    source.mkdir()
    assert seglake.ingest(source, lake).files == 0  # nothing is there to be ingested
    check(lake, "parquet", 8)


def test_what_a_run_committed_and_is_gone_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, lake = sources(tmp_path / "src"), tmp_path / "lake"
    with monkeypatch.context() as patched:
        patched.setattr("seglake.lake.tables._ParquetTables.apply", lambda *_: (_ for _ in ()).throw(OSError(5, "no")))
        with pytest.raises(IngestError):
            seglake.ingest(source, lake)
    shutil.rmtree(lake / "_staging")
    with pytest.raises(IngestError, match=r"/_staging/.*\.inprogress\. Restore it: .*/active/date="):
        seglake.ingest(source, lake)


def test_staged_files_that_no_entry_names_stay_for_a_day(tmp_path: Path) -> None:
    source, lake = sources(tmp_path / "src"), tmp_path / "lake"
    staged = lake / "_staging/20240131T000000Z-0000beef"
    staged.mkdir(parents=True)
    for hours, is_there in ((23, True), (25, False)):
        age(staged, hours)
        seglake.ingest(source, lake)
        assert staged.exists() == is_there


@pytest.mark.parametrize("content", [None, b"", b"{", b"null", b'{"run": 1}', b'{"version": 2}'])
def test_an_entry_that_is_missing_or_torn_is_named(tmp_path: Path, content: bytes | None) -> None:
    source, lake = tmp_path / "src", tmp_path / "lake"
    for number in range(3):
        write_segment(source / f"{number}.active", 3, value_bytes=30 + number)
        seglake.ingest(old(source), lake)
    entry = lake / "_log/00000000000000000002.json"
    kept = entry.read_bytes()
    entry.unlink() if content is None else entry.write_bytes(content)
    with pytest.raises(IngestError, match=r"_log.*00000000000000000002\.json.*ingest into another lake"):
        seglake.ingest(source, lake)
    entry.write_bytes(kept)
    assert seglake.ingest(source, lake).unchanged == 3


@pytest.mark.parametrize("kind", KINDS)
def test_tables_without_a_log_are_refused(tmp_path: Path, kind: Any) -> None:
    source, lake = sources(tmp_path / "src"), tmp_path / "lake"
    seglake.ingest(source, lake, table=kind)
    shutil.rmtree(lake / "_log")
    with pytest.raises(IngestError, match="expected no table, as there is no log of a lake"):
        seglake.ingest(source, lake, table=kind)


def test_another_kind_of_tables_is_refused(tmp_path: Path) -> None:
    source, lake = sources(tmp_path / "src"), tmp_path / "lake"
    seglake.ingest(source, lake)
    with pytest.raises(IngestError, match="its tables are of the kind parquet, and delta is asked for"):
        seglake.ingest(source, lake, table="delta")


def filled(folder: Path, entries: int) -> LakeLog:
    log, state = lake_log(LocalPlace(folder)), lake_log(LocalPlace(folder)).load()
    for number in range(1, entries + 1):
        # Each second entry is of a file that is known.
        entry = RunEntry(f"run-{number:05}", "parquet", files=[FileState(f"/{number // 2}", number)])
        assert log.put(number, entry)
        state.add(number, entry)
        save(log, state)
    return log


def test_a_log_of_a_thousand_entries_is_loaded_in_few_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(tmp_path, 1000)
    checkpoints = sorted(int(path.stem) for path in (tmp_path / "_log").glob("*.checkpoint"))
    assert checkpoints == [*range(16, 1001, 16)]
    read, calls = LocalPlace.read, list[str]()
    monkeypatch.setattr(LocalPlace, "read", lambda self, name: (calls.append(name), read(self, name))[1])
    state = log.load()
    assert len(calls) == 2 + 1000 % 16
    assert (state.number, state.run, len(state.files), state.files["/500"].size) == (1000, "run-01000", 501, 1000)
    # It says what the entries do, which are read where it is gone.
    (tmp_path / f"_log/{checkpoints[-1]:020}.checkpoint").unlink()
    assert log.load() == state
    assert len(calls) > 1000


def test_a_checkpoint_that_is_torn_is_named(tmp_path: Path) -> None:
    log = filled(tmp_path, 16)
    checkpoint = tmp_path / "_log/00000000000000000016.checkpoint"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-9])
    with pytest.raises(IngestError, match=r"00000000000000000016\.checkpoint"):
        log.load()


def test_runs_have_names_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the clock goes back: the latest row of a file is that of its last run."""
    lake, names = tmp_path / "lake", list[str]()
    for number in range(4):
        write_segment(tmp_path / f"src/{number}.active", 3, value_bytes=30 + number)
        names.append(str(seglake.ingest(tmp_path / "src", lake).run_id))
    assert names == sorted(names)
    assert len(set(name.partition("-")[0] for name in names)) == 4


def test_a_loss_of_power_leaves_a_lake_that_the_next_run_completes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, lake = sources(tmp_path / "src"), tmp_path / "disk/lake"
    write_segment(tmp_path / "earlier/c.active", 7, value_bytes=50)
    seglake.ingest(tmp_path / "earlier", lake)
    disk = Disk(tmp_path / "disk")
    with monkeypatch.context() as patched:
        disk.watch(patched)
        seglake.ingest(source, lake, threads=1)
        done = disk.moment()
    found = Counter[bool]()
    for number, (moment, state) in zip(itertools.count(), disk.states(), strict=False):
        folder = tmp_path / f"after-{number}"
        lay_out(state, folder)
        again = seglake.ingest(source, folder / "lake")
        assert again.records in (0, 8), moment
        assert moment < done or again.records == 0
        check(folder / "lake", "parquet", 15, dead=1)
        found[again.records == 0] += 1
        shutil.rmtree(folder)
    assert min(found[True], found[False]) > 10
