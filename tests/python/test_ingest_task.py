"""Single tasks, without Spark: files that fail while they are read, and what the output holds back."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from segments import OTHER_KEY, flip, write_segment

import seglake
from seglake._text import path_text
from seglake.lake import read as read_module
from seglake.lake.log import DataFile
from seglake.lake.options import IngestOptions
from seglake.lake.parquet import DAMAGE_SCHEMA, NULL_DATE, DateWriter, RollingWriter, Target
from seglake.lake.plan import FileGroup, PlannedFile
from seglake.lake.progress import Progress
from seglake.lake.task import TaskOutcome, TaskRunner
from seglake.tracking.place import LocalPlace
from seglake.tracking.state import FileState


def identity(path: Path) -> str | None:
    for key in (None, OTHER_KEY):
        with suppress(OSError, seglake.SeglakeError):
            return seglake.incremental.identity(path, key=key)
    return None


def run(lake: Path, paths: Sequence[Path], progress: Progress | None = None) -> TaskOutcome:
    sizes = [path.stat().st_size if path.exists() else 0 for path in paths]
    groups = [
        FileGroup([PlannedFile(str(path), FileState(path_text(str(path)), size), identity=identity(path))])
        for path, size in zip(paths, sizes, strict=True)
    ]
    options = IngestOptions.of(target_file_size=1 << 30)
    return TaskRunner(LocalPlace(lake), "run", options).run(0, groups, progress or Progress())


def values(lake: Path, outcome: TaskOutcome, table: str = "active") -> list[bytes]:
    column = "raw" if table == "damage" else "value"
    files = [lake / "_staging/run" / f"{Path(file.path).name}.inprogress" for file in outcome.data.get(table, [])]
    return sorted(value for file in files for value in pq.ParquetFile(file).read()[column].to_pylist())


class FailingBatches:
    """Batches of a file whose reading fails after the first, as with a broken disk."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self._given = 0

    def __iter__(self) -> "FailingBatches":
        return self

    def __next__(self) -> Any:
        self._given += 1
        if self._given > 1:
            raise OSError(5, "Input/output error")
        return next(self._batches)


class FailingReader:
    def __init__(self, reader: seglake.Reader) -> None:
        self._reader = reader
        self.format = reader.format
        self.nbytes = reader.nbytes
        self.parity_refused = None

    def __enter__(self) -> "FailingReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def batches(self, **options: Any) -> FailingBatches:
        return FailingBatches(self._reader.batches(**options))

    def read_bytes(self, start: int, end: int) -> bytes:
        return self._reader.read_bytes(start, end)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of files whose reading fails half-way; of the others each is noted when it is opened."""
    names: set[str] = set()
    real_resume = seglake.incremental.resume

    def resume(source: Any, position: Any, **options: Any) -> Any:
        reader = real_resume(source, position, **options)
        return FailingReader(reader) if isinstance(source, str) and Path(source).name in names else reader

    monkeypatch.setattr(seglake.incremental, "resume", resume)
    return names


def test_a_file_that_fails_half_way_leaves_no_record(tmp_path: Path, failing: set[str]) -> None:
    written = {name: write_segment(tmp_path / f"{name}.active", 5) for name in ("a", "b", "c", "d")}
    flip(tmp_path / "c.active", written["c"][2].end - 9)
    failing.update({"b.active", "d.active"})
    outcome = run(tmp_path / "s", sorted(tmp_path.glob("*.active")))
    assert values(tmp_path / "s", outcome) == sorted(
        each.value for name in ("a", "c") for number, each in enumerate(written[name]) if (name, number) != ("c", 2)
    )
    assert [(Path(row.state.path).stem, row.added, row.state.status) for row in outcome.files] == [
        ("a", 5, "sound"),
        ("b", 0, "unreadable"),
        ("c", 4, "damaged"),
        ("d", 0, "unreadable"),
    ]
    assert [row.state.error is None for row in outcome.files] == [True, False, True, False]
    assert "Input/output error" in str(outcome.files[1].state.error)
    assert len(values(tmp_path / "s", outcome, "damage")) == 1


def test_a_single_file_that_fails_half_way(tmp_path: Path, failing: set[str]) -> None:
    write_segment(tmp_path / "a.active", 5)
    failing.add("a.active")
    outcome = run(tmp_path / "s", [tmp_path / "a.active"])
    assert (outcome.data, outcome.files[0].added) == ({}, 0)
    assert outcome.files[0].state.error is not None


def test_files_that_are_gone_or_no_files_have_their_error(tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 5)
    (tmp_path / "folder.active").mkdir()
    outcome = run(tmp_path / "s", [tmp_path / "a.active", tmp_path / "folder.active", tmp_path / "gone.active"])
    assert [row.state.error is None for row in outcome.files] == [True, False, False]
    assert len(values(tmp_path / "s", outcome)) == 5


def test_an_output_that_cannot_be_written_is_no_error_of_the_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_segment(tmp_path / "a.active", 5)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RollingWriter, "flush", full)
    with pytest.raises(OSError, match="No space left"):
        run(tmp_path / "s", [tmp_path / "a.active"])


def test_a_wrong_key_leaves_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_module, "_HELD_SPANS", 0)
    for name, key in (("a", None), ("k", OTHER_KEY), ("z", None)):
        write_segment(tmp_path / f"{name}.active", 5, key=key)
        seglake.seal(tmp_path / f"{name}.active", tmp_path / f"{name}.sealed", key=key)
    outcome = run(tmp_path / "s", sorted(tmp_path.glob("*.sealed")))
    assert [(row.state.status, row.state.format, row.added) for row in outcome.files] == [
        ("sound", "sealed", 5),
        ("wrong_key", "sealed", 0),
        ("sound", "sealed", 5),
    ]
    assert len(values(tmp_path / "s", outcome, "sealed")) == 10
    assert list(outcome.data) == ["sealed"]


def test_each_attempt_has_files_of_its_own(tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 5)
    first, second = (run(tmp_path / "s", [tmp_path / "a.active"]) for _ in range(2))
    assert {file.path for file in first.data["active"]}.isdisjoint(file.path for file in second.data["active"])
    assert values(tmp_path / "s", first) == values(tmp_path / "s", second)
    assert not list((tmp_path / "s").rglob("*.parquet"))


def test_progress_counts_what_fails(tmp_path: Path, failing: set[str]) -> None:
    for name in ("a", "b", "c"):
        write_segment(tmp_path / f"{name}.active", 5)
    failing.add("b.active")
    progress = Progress()
    run(tmp_path / "s", sorted(tmp_path.glob("*.active")), progress)
    assert (progress.files, progress.nbytes) == (3, 3 * (tmp_path / "a.active").stat().st_size)


def test_a_report_that_does_not_add_up_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_segment(tmp_path / "a.active", 5)
    path = str(tmp_path / "a.active")
    # A file that is longer than its parts.
    monkeypatch.setattr(read_module.FileReading, "_pass", wrong_pass)
    with pytest.raises(RuntimeError, match=r"a\.active: of 415 bytes 414 are accounted for"):
        run(tmp_path / "s", [Path(path)])


def wrong_pass(_: object, reader: seglake.Reader) -> Any:
    class Report:
        nbytes = 415
        totals = (seglake.types.Total("record", None, 414, 5),)

    reader.count_rows()
    return Report(), reader.position, 0


def test_paths_that_are_no_text() -> None:
    assert path_text("/a/b\udcff.active") == "/a/b\\xff.active"
    assert path_text("/a/ü.active") == "/a/ü.active"


SCHEMA = pa.schema([("timestamp", pa.timestamp("us", "UTC")), ("value", pa.binary())])


def batch(moments: Sequence[int | None], value: bytes = b"x") -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"timestamp": moments, "value": [value] * len(moments)}, SCHEMA)


def partitions(files: Sequence[DataFile]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for file in files:
        folder = file.path.rpartition("/")[0]
        counts[folder] = counts.get(folder, 0) + file.rows
    return counts


def target(folder: Path, nbytes: int = 1 << 30) -> Target:
    return Target(LocalPlace(folder), "run", "task", False, nbytes)


DAY_US = 86_400_000_000


def test_dates_at_their_borders(tmp_path: Path) -> None:
    writer = DateWriter(target(tmp_path), "records", SCHEMA)
    year_10000 = (datetime.max.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) + 1
    year_1 = (datetime.min.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    writer.append(batch([0, DAY_US - 1, DAY_US, -1, None]))
    writer.append(batch([year_10000 - 1, year_10000, year_1, year_1 - 1, 2**63 - 1, -(2**63)]))
    assert partitions(writer.finish()) == {
        "records/date=1970-01-01": 2,
        "records/date=1970-01-02": 1,
        "records/date=1969-12-31": 1,
        "records/date=9999-12-31": 1,
        "records/date=0001-01-01": 1,
        f"records/date={NULL_DATE}": 5,
    }


def test_records_of_formats_without_a_timestamp_have_no_partitions(tmp_path: Path) -> None:
    plain = pa.RecordBatch.from_pydict({"value": [b"a", b"b"]})
    writer = DateWriter(target(tmp_path), "records", plain.schema)
    writer.append(plain)
    assert partitions(writer.finish()) == {"records": 2}


def test_more_dates_than_are_held_at_a_time(tmp_path: Path) -> None:
    writer = DateWriter(target(tmp_path), "records", SCHEMA)
    days = [day * DAY_US for day in range(1100)]
    writer.append(batch(days))
    writer.append(batch(days[:10]))
    files = writer.finish()
    assert sum(partitions(files).values()) == 1110
    assert len(partitions(files)) == 1100
    assert len({file.path for file in files}) == len(files)


def test_buffered_rows_and_open_files_are_bounded(tmp_path: Path) -> None:
    writer = DateWriter(target(tmp_path, 1 << 40), "records", SCHEMA)
    value = bytes(1 << 20)
    for day in range(300):
        writer.append(batch([day * DAY_US], value))
        held = list(writer._writers.values())
        assert sum(each.buffered_bytes for each in held) <= 128 << 20
        assert sum(each.is_open for each in held) <= 32
    assert sum(partitions(writer.finish()).values()) == 300


def test_damage_is_written_many_rows_at_a_time(tmp_path: Path) -> None:
    writer = DateWriter(target(tmp_path), "damage", DAMAGE_SCHEMA)
    for number in range(5000):
        place = {"source": "/a", "run": "r", "path": "/a", "start": number, "end": number + 1}
        row = {**place, "kind": "corrupt", "cause": "x", "part": 0, "raw": b"r"}
        writer.append(pa.RecordBatch.from_pylist([row], DAMAGE_SCHEMA))
    (file,) = writer.finish()
    metadata = pq.read_metadata(tmp_path / file.path)
    assert (metadata.num_rows, metadata.num_row_groups) == (5000, 1)
