"""Parts of a file: together they give what the whole file gives."""

import io
import pickle
import random
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

import seglake

RECORDS = 400


def _uuid(number: int) -> uuid.UUID:
    return uuid.UUID(int=(0x1EE << 116 | number << 84) & ~(0xF << 76) | 6 << 76 | 2 << 62)


MAKERS: dict[str, Callable[[int], dict[str, Any]]] = {
    "active": lambda n: {"uuid": _uuid(n), "type": "t", "value": b"%d" % n * 50},
    "sealed": lambda n: {"uuid": _uuid(n), "type": "t", "value": b"%d" % n * 50},
    "tenant": lambda n: {"partition": n // 50, "tenant": f"t{n // 5 % 10}", "value": b"%d" % n * 50},
    "chunked": lambda n: {"offset": n, "timestamp_us": n, "value": bytes((n * i) % 251 for i in range(99))},
    "oplog": lambda n: {"version": 1, "value": b"%d" % n * 50, "checkpointer": 1, "clock": [], "abi": 0, "batch": 0},
}
SPLIT = ["sealed", "tenant", "chunked"]


@pytest.fixture(params=list(MAKERS))
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"file.{request.param}"
    write(path, request.param)
    return path


def write(path: Path, format: str, value: Callable[[int], bytes] | None = None, **options: Any) -> None:
    if format == "chunked":
        options["options"] = {"chunk_records": 10}
    with seglake.create(path, format=cast("Any", format), **options) as writer:
        for number in range(RECORDS):
            fields = MAKERS[format](number)
            writer.write(**fields if value is None else {**fields, "value": value(number)})


def format_of(path: Path) -> Any:
    return path.suffix[1:]


def damage(path: Path) -> None:
    """Damages values, at a third and at a half of the file, behind what says where they are."""
    data = bytearray(path.read_bytes())
    for at in (len(data) // 3, len(data) // 2):
        data[at // 128 * 128 + 60] ^= 1
    path.write_bytes(data)


def rows(
    path: Path, part: seglake.incremental.Part | None = None, **options: Any
) -> tuple[pa.Table, list[seglake.Span]]:
    with seglake.open(path, format=format_of(path), on_damage="skip", **options) as whole:
        reader = whole if part is None else whole.part(part)
        batches = reader.batches()
        read = [(pa.record_batch(cast("Any", batch)), batch.damage) for batch in batches]
        schema = pa.schema(cast("Any", reader.schema))
        return pa.Table.from_batches([rows for rows, _ in read], schema), [s for _, spans in read for s in spans]


@pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")
@pytest.mark.parametrize("damaged", [False, True])
def test_parts_together_are_the_whole(path: Path, damaged: bool) -> None:
    if damaged:
        damage(path)
    with seglake.open(path, format=format_of(path), on_damage="skip") as reader:
        parts = reader.split(5000)
        assert [part.is_whole for part in parts] == ([False] * len(parts) if format_of(path) in SPLIT else [True])
        if format_of(path) in SPLIT:
            assert len(parts) > 3
            assert sum(part.nbytes for part in parts) <= reader.nbytes
    whole, spans = rows(path)
    read = [rows(path, part) for part in parts]
    assert pa.concat_tables([table for table, _ in read]).combine_chunks() == whole.combine_chunks()
    assert sorted(span for _, own in read for span in own) == sorted(spans)
    assert bool(spans) == (damaged and format_of(path) != "oplog")  # which has no checksums


@pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")
def test_records_of_a_part_one_by_one(path: Path) -> None:
    options = {"format": format_of(path), "on_damage": "skip"}
    with seglake.open(path, **options) as reader:
        parts = reader.split(5000)
        positions = [record.position for record in reader]
    found = [record.position for part in parts for record in seglake.open(path, **options).part(part)]
    assert found == positions


def test_parts_and_their_readers_are_pickled(path: Path) -> None:
    with seglake.open(path, format=format_of(path)) as reader:
        part = reader.split(5000)[-1]
    again = pickle.loads(pickle.dumps(part))
    assert again == part
    assert hash(again) == hash(part)
    assert again == seglake.incremental.Part.from_json(part.to_json())
    assert part.to_json() in repr(part)
    with seglake.open(path, format=format_of(path)).part(part) as reader:
        other = pickle.loads(pickle.dumps(reader))
        assert [record.position for record in other] == [record.position for record in reader]


def test_a_small_file_is_one_part(path: Path) -> None:
    with seglake.open(path, format=format_of(path)) as reader:
        parts = reader.split()
        assert [part.is_whole for part in parts] == [True]
        assert parts[0].nbytes == reader.nbytes
        assert parts == reader.split(reader.nbytes)


@pytest.mark.parametrize("format", SPLIT)
def test_strict_reading_of_a_part_raises_its_own_damage(format: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, format)
    damage(path)
    with seglake.open(path, format=cast("Any", format)) as reader:
        parts = reader.split(5000)
        with pytest.raises(seglake.DamageError) as whole:
            list(reader.batches())
    raised: list[int | None] = []
    for part in parts:
        with seglake.open(path, format=cast("Any", format)).part(part) as reader:
            try:
                list(reader.batches())
            except seglake.DamageError as error:
                raised.append(error.byte_offset)
    assert 1 <= len(raised) <= 2
    assert raised[0] == whole.value.byte_offset


@pytest.mark.parametrize("format", SPLIT)
def test_a_part_of_another_file_is_refused(format: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, format)
    with seglake.open(path, format=cast("Any", format)) as reader:
        part = reader.split(5000)[1]
    with path.open("ab") as file:
        file.write(b"more")
    with (
        seglake.open(path, format=cast("Any", format)).part(part) as reader,
        pytest.raises(ValueError, match="file: this is a part of another file, or the file has changed"),
    ):
        list(reader.batches())


def test_what_is_no_part_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="this is not a part of a file"):
        seglake.incremental.Part.from_json("{}")
    with seglake.open(path, format=format_of(path)) as reader:
        with pytest.raises(ValueError, match="max_bytes is 0: it is at least 1"):
            reader.split(0)
        reader.close()
        with pytest.raises(ValueError, match="the reader is closed"):
            reader.split()


def test_a_sealed_file_is_split_without_its_key_and_not_without_its_trailer(tmp_path: Path) -> None:
    key = bytes(range(32))
    write(tmp_path / "keyed", "sealed", key=key)
    with seglake.open(tmp_path / "keyed", format="sealed") as reader:
        parts = reader.split(5000)
    assert len(parts) > 3
    with seglake.open(tmp_path / "keyed", format="sealed", key=key) as reader:
        assert reader.split(5000) == parts
        whole = [record.uuid for record in reader]
    read = [seglake.open(tmp_path / "keyed", format="sealed", key=key).part(part) for part in parts]
    assert [record.uuid for reader in read for record in reader] == whole
    write(tmp_path / "plain", "sealed", options={"trailer": False})
    with seglake.open(tmp_path / "plain", format="sealed") as reader:
        assert [part.is_whole for part in reader.split(5000)] == [True]


@pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")
def test_under_a_wrong_key_one_part_says_so(tmp_path: Path) -> None:
    path = tmp_path / "keyed.sealed"
    write(path, "sealed", key=bytes(range(32)))
    with seglake.open(path, on_damage="skip") as reader:
        parts = reader.split(5000)
    read = [rows(path, part) for part in parts]
    assert [table.num_rows for table, _ in read] == [0] * len(parts)
    assert [span for _, own in read for span in own] == rows(path)[1]


@pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")
@pytest.mark.parametrize("threads", [2, None])
def test_threads_give_the_rows_of_one(path: Path, threads: int | None) -> None:
    damage(path)
    whole, spans = rows(path, options={"batch_bytes": 3000})
    table, own = rows(path, options={"batch_bytes": 3000}, threads=threads)
    assert table.combine_chunks() == whole.combine_chunks()
    assert sorted(own) == sorted(spans)
    with seglake.open(
        path, format=format_of(path), on_damage="skip", options={"batch_bytes": 3000}, threads=threads
    ) as reader:
        again = pickle.loads(pickle.dumps(reader))
        assert pa.RecordBatchReader.from_stream(again).read_all().combine_chunks() == whole.combine_chunks()
        batches = reader.batches()
        list(batches)
        one = seglake.open(path, format=format_of(path), on_damage="skip").batches()
        list(one)
        assert (batches.report.records, batches.report.damage) == (one.report.records, one.report.damage)


@pytest.mark.parametrize("format", SPLIT)
def test_threads_raise_what_one_raises(format: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, format)
    damage(path)
    raised: list[str] = []
    for threads in (1, 3):
        with (
            seglake.open(path, format=cast("Any", format), options={"batch_bytes": 3000}, threads=threads) as reader,
            pytest.raises(seglake.DamageError) as error,
        ):
            list(reader.batches())
        raised.append(str(error.value))
    assert raised[0] == raised[1]
    with pytest.raises(ValueError, match="threads is 0: it is at least 1"):
        seglake.open(path, format=cast("Any", format), threads=0)


def test_threads_read_file_objects(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, "sealed")
    with (
        path.open("rb") as file,
        seglake.open(file, format="sealed", options={"batch_bytes": 3000}, threads=3) as reader,
    ):
        assert sum(batch.num_rows for batch in reader.batches()) == RECORDS
        next(reader.batches())  # and leaves the rest


@pytest.fixture
def large(tmp_path: Path) -> Callable[[str], Path]:
    """A damaged file of a format, large enough to be verified in parts."""

    def make(format: str) -> Path:
        path = tmp_path / f"large.{format}"
        write(path, format, lambda number: random.Random(number).randbytes(10_000))
        damage(path)
        return path

    return make


@pytest.mark.sampled(3)
@pytest.mark.parametrize("format", ["active", *SPLIT])
def test_threads_verify_as_one_does(format: Any, large: Callable[[str], Path]) -> None:
    path = large(format)
    one = seglake.verify(path, format=format, explain=True)
    assert not one.ok
    assert one.diagnoses
    for threads in (1, 2, 5, None):
        told: list[tuple[int, int]] = []
        report = seglake.verify(
            path, format=format, explain=True, threads=threads, progress=lambda *done, told=told: told.append(done)
        )
        assert report.to_dict() == one.to_dict()
        assert {total for _, total in told} == {path.stat().st_size}
        assert path.stat().st_size in [done for done, _ in told]
    with path.open("rb") as file:
        for source in (file, file.read(), bytearray(path.read_bytes())):
            report = seglake.verify(source, format=format, threads=3)
            assert (report.damage, report.records) == (one.damage, one.records)
    assert seglake.verify(path, format=format, threads=3, memory_map=True).damage == one.damage


@pytest.mark.parametrize("format", SPLIT)
def test_what_progress_raises_ends_threads_that_verify(format: Any, large: Callable[[str], Path]) -> None:
    path = large(format)

    def progress(done: int, total: int) -> None:
        raise KeyError(total)

    with pytest.raises(KeyError, match=str(path.stat().st_size)):
        seglake.verify(path, format=format, threads=2, progress=progress)


@pytest.mark.parametrize("format", SPLIT)
def test_what_a_file_object_raises_ends_threads_that_verify(format: Any, large: Callable[[str], Path]) -> None:
    path = large(format)

    class Failing(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            if threading.current_thread() is not threading.main_thread():
                raise ZeroDivisionError("in a thread")
            return super().read(size)

    with Failing(path) as file:
        assert seglake.verify(file, format=format, threads=1).records
        with pytest.raises(OSError, match="in a thread") as error:
            seglake.verify(file, format=format, threads=2)
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_there_is_at_least_one_thread_to_verify() -> None:
    with pytest.raises(ValueError, match="threads is 0: it is at least 1"):
        seglake.verify(b"", format="active", threads=0)
