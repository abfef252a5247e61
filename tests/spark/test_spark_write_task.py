"""What tasks do with their rows, without Spark: files of a bounded size, and refusals that say what to add."""

import uuid
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from samples import SAMPLES, draft, in_chunk, of_tenant, value, with_uuid
from segments import DAY

import seglake
from seglake.spark.arrow_types import arrow_schema
from seglake.spark.schema import DAMAGE_TYPE
from seglake.spark.write.job import Job
from seglake.spark.write.options import WriteOptions
from seglake.spark.write.schema import WriteSchema
from seglake.spark.write.task import SegmentCommitMessage, TaskWriter


class Write:
    """A write into a folder, whose tasks are run by hand."""

    def __init__(self, folder: Path, format: str, rows: Sequence[dict[str, Any]], **options: str) -> None:
        self.options = WriteOptions.parse({"path": str(folder), "segmentFormat": format, **options})
        self.table = pa.Table.from_pylist(list(rows))
        self.schema = WriteSchema.check(from_arrow_schema(self.table.schema), self.options)
        self.job = Job.begin(folder, overwrites=False, success_file=False)

    def run(self, partition: int = 0, attempt: int = 0, batch_size: int = 7) -> SegmentCommitMessage:
        task = TaskWriter(self.options, self.schema, self.job, partition, attempt)
        return task.write(self.table.to_batches(max_chunksize=batch_size))

    def commit(self, *messages: SegmentCommitMessage) -> list[Path]:
        self.job.commit([file for message in messages for file in message.files])
        return sorted(path for path in self.job.folder.iterdir() if not path.name.startswith("_"))


def read(path: Path, **options: Any) -> list[dict[str, Any]]:
    return [record.to_dict() for record in seglake.open(path, **options)]


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def records(format: str, count: int) -> list[dict[str, Any]]:
    made = [SAMPLES[format].make(number) for number in range(count)]
    return [{name: str(item) if isinstance(item, uuid.UUID) else item for name, item in row.items()} for row in made]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.mark.parametrize("batch_size", [1, 7, 100])
@pytest.mark.parametrize(("most", "sizes"), [(1, [1] * 20), (6, [6, 6, 6, 2]), (20, [20]), (21, [20])])
def test_files_have_at_most_so_many_records(folder: Path, batch_size: int, most: int, sizes: list[int]) -> None:
    write = Write(folder, "active", records("active", 20), maxRecordsPerFile=str(most))
    message = write.run(batch_size=batch_size)
    assert [file.records for file in message.files] == sizes
    files = write.commit(message)
    assert [path.name[-11:] for path in files] == [f"c{number:03d}.active" for number in range(len(sizes))]
    assert [row["value"] for path in files for row in read(path)] == [value(number) for number in range(20)]


@pytest.mark.parametrize("batch_size", [1, 7, 100])
def test_files_have_at_most_so_many_bytes_unless_a_record_has_more(folder: Path, batch_size: int) -> None:
    lengths = [10, 10, 10, 30, 5, 5, 200, 1, 60, 20, 19, 1, 60]
    rows = [{"offset": number, "value": b"v" * length} for number, length in enumerate(lengths)]
    # An offset counts for 8 bytes.
    write = Write(folder, "chunked", rows, maxBytesPerFile="100")
    files = [path for path in write.commit(write.run(batch_size=batch_size)) if path.suffix == ".chunks"]
    assert [[len(row["value"]) for row in read(path)] for path in files] == [
        [10, 10, 10, 30],
        [5, 5],
        [200],
        [1, 60],
        [20, 19, 1],
        [60],
    ]
    assert all(path.with_suffix(".index").exists() for path in files)


def test_counted_rows_begin_a_file_only_where_they_count_from_0(folder: Path) -> None:
    rows = [{**of_tenant(number), "index": number % 5} for number in range(20)]
    write = Write(folder, "tenant", rows, maxRecordsPerFile="6")
    message = write.run(batch_size=3)
    assert [file.records for file in message.files] == [10, 10]
    files = write.commit(message)
    assert [(row["partition"], row["tenant"], row["index"]) for path in files for row in read(path)] == [
        (row["partition"], row["tenant"], row["index"]) for row in rows
    ]


def test_numbers_may_be_decimals(folder: Path) -> None:
    rows = [{**of_tenant(number), "index": Decimal(number % 5)} for number in range(20)]
    write = Write(folder / "tenant", "tenant", rows, maxRecordsPerFile="6", maxBytesPerFile="1000")
    assert [file.records for file in write.run().files] == [10, 10]
    wrong = Write(folder / "wrong", "tenant", [{**rows[0], "partition": Decimal(1 << 32)}])
    with pytest.raises(ValueError, match=r"there is no partition 4294967296: [^.]*$"):
        wrong.run()
    offsets = [{"offset": Decimal(number), "value": value(number)} for number in (1, 3, 2)]
    with pytest.raises(ValueError, match=r'row 2: .* 2 does not ascend.*\.sortWithinPartitions\("offset"\)'):
        Write(folder / "offsets", "chunked", offsets).run()


def test_rows_that_are_not_counted_may_begin_a_file_anywhere(folder: Path) -> None:
    write = Write(folder, "tenant", [of_tenant(number) for number in range(20)], maxRecordsPerFile="6")
    assert [file.records for file in write.run().files] == [6, 6, 6, 2]


def test_an_oplog_with_numbers_is_one_file(folder: Path) -> None:
    rows = [{**draft(number), "seq": number} for number in range(20)]
    assert [file.records for file in Write(folder, "oplog", rows, maxRecordsPerFile="6").run().files] == [20]
    without = Write(folder, "oplog", [draft(number) for number in range(20)], maxRecordsPerFile="6")
    message = without.run()
    assert [file.records for file in message.files] == [6, 6, 6, 2]
    assert [[row["seq"] for row in read(path)] for path in without.commit(message)] == [[*range(6)]] * 3 + [[0, 1]]


def test_uuids_are_made_where_there_are_none(folder: Path) -> None:
    write = Write(folder, "sealed", [{"type": "t", "value": value(number)} for number in range(20)])
    (path,) = write.commit(write.run())
    names = [row["uuid"] for row in read(path)]
    assert sorted(set(names)) == names


def swapped(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*rows[:9], rows[10], rows[9], *rows[11:]]


@pytest.mark.parametrize(
    ("format", "rows", "message"),
    [
        (
            "active",
            swapped(records("active", 20)),
            r'partition 3, row 10: the UUID .* does not ascend.*\.sortWithinPartitions\("uuid"\) as .*\.sort\(',
        ),
        (
            "sealed",
            [*records("sealed", 5), records("sealed", 5)[4]],
            r'row 5: the UUID .* does not ascend.*\.dropDuplicates\(\["uuid"\]\)\.sortWithinPartitions\("uuid"\)',
        ),
        (
            "chunked",
            swapped([in_chunk(number) for number in range(20)]),
            r'row 10: the message offset 118 does not ascend.*\.sortWithinPartitions\("offset"\)',
        ),
        (
            "oplog",
            [{**draft(number), "seq": number + 5} for number in range(20)],
            r'row 0: seq is 5.*\.drop\("seq"\).*\.repartition\(1\)\.sortWithinPartitions\("seq"\)',
        ),
        (
            "oplog",
            [{**draft(number), "seq": number % 15} for number in range(20)],
            r'row 15: seq is 0, and the next message in the file is 15.*\.drop\("seq"\)',
        ),
        (
            "tenant",
            [{**of_tenant(number), "index": number % 4} for number in range(20)],
            r'row 4: index 0 is not the next one.*\.drop\("index"\).*\("partition", "tenant", "index"\)',
        ),
        ("tenant", [{**of_tenant(0), "partition": -1, "index": 0}], r"row 0: there is no partition -1: [^.]*$"),
        ("tenant", [{**of_tenant(0), "partition": 1 << 32}], "row 0: there is no partition 4294967296"),
        ("chunked", [{**in_chunk(1), "offset": -1}], "row 0: the message offset -1 does not ascend"),
        ("oplog", [{**draft(1), "batch": -1}], "row 0: batch is out of range: -1"),
        ("oplog", [draft(1), {**draft(1), "batch": None}], 'row 1: column batch is null.*where\\("batch IS NOT NULL"'),
        ("oplog", [draft(0), {**draft(0), "checkpoint": None}], "row 1: checkpointer 0 needs a checkpoint"),
        ("active", [with_uuid(0), {**with_uuid(1), "value": None}], "row 1: column value is null"),
        ("active", [with_uuid(0), {**with_uuid(1), "uuid": None}], "row 1: column uuid is null"),
        ("chunked", [in_chunk(0), {**in_chunk(1), "offset": None}], "row 1: column offset is null"),
        ("tenant", [of_tenant(0), {**of_tenant(1), "value": None}], "row 1: column value is null"),
        ("active", [{"uuid": "no uuid", "type": "t", "value": b""}], 'row 0: uuid is "no uuid": expected a UUID'),
        (
            "active",
            [{"uuid": str(uuid.UUID(int=0)), "type": "t", "value": b""}],
            r'is not of version 6.*\.drop\("uuid", ',
        ),
        ("active", [{"type": "a\\b", "value": b""}], r"row 0: in a type given as text a backslash"),
    ],
)
def test_rows_that_are_refused(folder: Path, format: str, rows: list[dict[str, Any]], message: str) -> None:
    rows = [{name: str(item) if isinstance(item, uuid.UUID) else item for name, item in row.items()} for row in rows]
    for row in rows:
        if "timestamp_us" in row:
            row["timestamp"] = DAY if row.pop("timestamp_us") is not None else None
    write = Write(folder, format, rows)
    with pytest.raises(ValueError, match=message):
        write.run(partition=3)
    assert everything(write.job.staging) == []


def test_a_time_that_no_calendar_holds_hinders_no_advice(folder: Path) -> None:
    write = Write(folder, "chunked", [{"offset": number, "timestamp": DAY, "value": b""} for number in (2, 1)])
    times = cast("Any", pa).array([1 << 62, -(1 << 62)], pa.timestamp("us", "UTC"))
    place = write.table.schema.names.index("timestamp")
    write.table = write.table.set_column(place, "timestamp", times)
    with pytest.raises(ValueError, match=r'row 1: .*\.sortWithinPartitions\("offset"\)'):
        write.run()
    write.table = write.table.take([1, 0])
    (path, _) = write.commit(write.run(attempt=1))
    assert [record.timestamp_us for record in seglake.open(path)] == [-(1 << 62), 1 << 62]


def test_an_index_that_only_the_end_shows_to_be_wrong(folder: Path) -> None:
    # Past its memory a tenant's messages are in temporary files, and their number is not at hand.
    rows = [{"partition": 0, "tenant": "t", "index": number, "value": b"v" * 50} for number in (0, 1, 2, 4)]
    write = Write(folder, "tenant", rows, memoryBytes="60")
    with pytest.raises(ValueError, match=r'partition 0: index 4 was given.*\.drop\("index"\)'):
        write.run()
    assert everything(write.job.staging) == []


def with_damage(rows: Sequence[dict[str, Any]], damaged: dict[str, Any] | None) -> pa.Table:
    table = pa.Table.from_pylist(list(rows))
    reports: list[Any] = [None] * len(rows)
    if damaged is not None:
        reports[-1] = damaged
    type = arrow_schema(cast("Any", DAMAGE_TYPE))
    return cast("Any", table).append_column("_corrupt_record", pa.array(reports, pa.struct(list(cast("Any", type)))))


def test_damage_is_no_record(folder: Path) -> None:
    rows = records("active", 5)
    write = Write(folder, "active", rows)
    write.table = with_damage(rows, None)
    write.schema = WriteSchema.check(from_arrow_schema(write.table.schema), write.options)
    assert [file.records for file in write.run().files] == [5]
    damaged = {"path": "/logs/a.active", "start": 7, "end": 9, "kind": "corrupt", "cause": "checksum_mismatch"}
    write.table = with_damage([*rows, dict.fromkeys(rows[0])], damaged)
    message = (
        r"row 5: column _corrupt_record reports damage \(checksum_mismatch in /logs/a\.active from 7 to 9\).*"
        r'\.where\("_corrupt_record IS NULL"\)'
    )
    with pytest.raises(ValueError, match=message):
        write.run(attempt=1)


def test_numbers_of_64_bits(folder: Path) -> None:
    large = (1 << 64) - 1
    write = Write(folder, "oplog", [draft(1)])
    batch = write.table.schema.names.index("batch")
    decimals = cast("Any", pa).array([large], pa.decimal128(20, 0))
    write.table = write.table.set_column(batch, "batch", decimals)
    write.schema = WriteSchema.check(from_arrow_schema(write.table.schema), write.options)
    (path,) = write.commit(write.run())
    assert [row["batch"] for row in read(path)] == [large]


def test_only_the_first_task_makes_a_file_of_no_rows(folder: Path) -> None:
    write = Write(folder, "active", records("active", 1))
    write.table = write.table.slice(0, 0)
    first, second = write.run(partition=0), write.run(partition=1, attempt=1)
    assert ([file.records for file in first.files], second.files) == ([0], ())
    (path,) = write.commit(first, second)
    assert path.stat().st_size == 0


def test_a_file_of_no_rows_is_left_out_where_there_are_others(folder: Path) -> None:
    write = Write(folder, "sealed", records("sealed", 3))
    rows, write.table = write.table, write.table.slice(0, 0)
    empty = write.run(partition=0)
    write.table = rows
    (path,) = write.commit(empty, write.run(partition=1, attempt=1))
    assert len(read(path)) == 3


def test_of_two_attempts_at_a_task_only_one_counts(folder: Path) -> None:
    write = Write(folder, "active", records("active", 5))
    tasks = [TaskWriter(write.options, write.schema, write.job, 0, attempt) for attempt in (1, 2)]
    first: list[pa.RecordBatch] = write.table.to_batches(max_chunksize=2)

    def interleaved() -> Iterator[pa.RecordBatch]:
        yield first[0]
        other.append(tasks[1].write(first))
        yield from first[1:]

    other: list[SegmentCommitMessage] = []
    own = tasks[0].write(interleaved())
    assert {file.names for file in own.files}.isdisjoint(file.names for file in other[0].files)
    (path,) = write.commit(own)
    assert len(read(path)) == 5
    assert everything(folder) == [path.name]


def test_an_attempt_that_is_too_late_leaves_nothing(folder: Path) -> None:
    write = Write(folder, "sealed", records("sealed", 5), maxRecordsPerFile="3")
    batches = write.table.to_batches(max_chunksize=1)
    late = TaskWriter(write.options, write.schema, write.job, 0, 2)

    def while_the_job_ends() -> Iterator[pa.RecordBatch]:
        yield from batches[:3]
        write.commit(write.run(attempt=1))
        yield from batches[3:]

    with pytest.raises(FileNotFoundError, match="cannot put"):
        late.write(while_the_job_ends())
    with pytest.raises(FileNotFoundError, match=r"the folder that the driver has made .*All machines have to see"):
        write.run(attempt=3)
    assert [name[-11:] for name in everything(folder)] == ["c000.sealed", "c001.sealed"]


def test_keys_are_those_of_the_options(folder: Path) -> None:
    key = bytes(range(32))
    write = Write(folder, "active", records("active", 5), secretKey=key.hex())
    (path,) = write.commit(write.run())
    assert len(read(path, key=key)) == 5
    with pytest.raises(seglake.WrongKeyError):
        read(path)


def test_a_key_file_that_is_missing(folder: Path, tmp_path: Path) -> None:
    write = Write(folder, "sealed", records("sealed", 5), keyFile=str(tmp_path / "_key"))
    with pytest.raises(FileNotFoundError, match="_key"):
        write.run()
    assert everything(write.job.staging) == []
