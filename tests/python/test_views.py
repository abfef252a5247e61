"""Values as views of what is read: the same as copies, and there for as long as a batch is."""

from __future__ import annotations

import array
import gc
import io
import mmap
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cli_samples import sample
from golden import Case, every

import seglake

VALUES = [b"", b"twelve bytes", b"thirteen byte", bytes(1000), b"x" * 40]

pytestmark = pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / "views.active"
    with seglake.create(path, format="active") as writer:
        for number in range(200):
            type_ = ["created", "a type of some length", b"\xff\\"][number % 7 % 3]
            writer.write(type=type_, value=VALUES[number % len(VALUES)] + b"%d" % (number % 3))
    return path


def batches(reader: seglake.Reader) -> list[Any]:
    return [pa.record_batch(batch) for batch in reader.batches()]


def plain(table: pa.Table) -> pa.Table:
    """The same table without views."""
    kinds = {pa.binary_view(): pa.binary(), pa.string_view(): pa.string()}
    return table.cast(pa.schema([field.with_type(kinds.get(field.type, field.type)) for field in table.schema]))


@pytest.mark.parametrize("limits", [{}, {"batch_size": 2}])
@every(lambda case: case.format != "chunked")
def test_views_are_what_copies_are(case: Case, limits: dict[str, int]) -> None:
    columns = ["path", "position", "cause", *case.open().schema.names]
    data = memoryview(case.path.read_bytes())
    expected = pa.table(case.open(data, columns=columns, **limits))
    table = pa.table(case.open(data, columns=columns, copy=False, **limits))
    table.validate(full=True)
    assert table.schema.field("value").type == pa.binary_view()
    assert table.schema.field("path").type == table.schema.field("cause").type == pa.string_view()
    assert plain(table) == expected


def test_schema(segment: Path) -> None:
    reader = seglake.open(segment, memory_map=True, copy=False)
    assert dict(zip(reader.schema.names, reader.schema.types, strict=True)) == {
        "uuid": "FixedSizeBinary(16)",
        "timestamp": 'Timestamp(µs, "UTC")',
        "type": "Utf8View",
        "value": "BinaryView",
    }
    (first, *_) = reader.batches()
    assert pa.record_batch(first).schema == pa.schema(reader.schema)
    found = pa.record_batch(reader.get_many(pa.array([next(iter(reader)).uuid.bytes], pa.binary(16))))
    assert found.schema == pa.schema(reader.schema)
    assert found["value"].to_pylist() == [next(iter(reader)).value]


@pytest.mark.parametrize("make", [bytes, lambda data: memoryview(bytearray(data)).toreadonly(), pa.py_buffer])
def test_nothing_is_copied(segment: Path, make: Any) -> None:
    source = make(segment.read_bytes())
    start = pa.py_buffer(source).address
    (batch,) = batches(seglake.open(source, copy=False))
    _, views, _, named = batch["value"].buffers()
    assert named.address >= start
    assert named.address + named.size <= start + segment.stat().st_size
    assert views.size == 16 * 200
    assert [len(value) for value in batch["value"].to_pylist()] == [len(VALUES[i % 5]) + 1 for i in range(200)]


def test_a_map_stays_as_long_as_a_batch(segment: Path) -> None:
    expected = pa.table(seglake.open(segment))["value"].to_pylist()
    with seglake.open(segment, memory_map=True, copy=False, batch_size=70) as reader:
        given = batches(reader)
    del reader
    segment.unlink()
    gc.collect()
    last = given[-1].slice(10)["value"]
    assert [value for batch in given for value in batch["value"].to_pylist()] == expected
    del given
    gc.collect()
    assert last.to_pylist() == expected[150:]


def test_a_map_that_python_made(segment: Path) -> None:
    expected = pa.table(seglake.open(segment))["value"].to_pylist()
    with segment.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    (batch,) = batches(seglake.open(mapped, copy=False))
    with pytest.raises(BufferError):
        mapped.close()
    assert batch["value"].to_pylist() == expected
    del batch
    gc.collect()
    mapped.close()


def test_a_batch_travels_without_the_rest_of_the_file(segment: Path) -> None:
    first, *_ = batches(seglake.open(segment, memory_map=True, copy=False, batch_size=5))
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, first.schema) as writer:
        writer.write_batch(first)
    assert len(stream.getvalue()) < 5000 < segment.stat().st_size
    assert pa.ipc.open_stream(stream.getvalue()).read_all() == pa.Table.from_batches([first])
    assert pickle.loads(pickle.dumps(first)) == first


def test_a_reader_with_views_is_opened_again(segment: Path) -> None:
    reader = seglake.open(segment, memory_map=True, copy=False)
    again = pickle.loads(pickle.dumps(reader))
    assert pa.table(again) == pa.table(reader)
    assert pa.table(again).schema.field("value").type == pa.binary_view()


def test_polars_and_duckdb(segment: Path) -> None:
    duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    expected = pa.table(seglake.open(segment))
    reader = seglake.open(segment, memory_map=True, copy=False)
    frame = pl.DataFrame(reader)
    assert frame["value"].to_list() == expected["value"].to_pylist()
    assert frame["type"].to_list() == expected["type"].to_pylist()
    viewed = duckdb.from_arrow(pa.table(reader))
    found = viewed.aggregate("count(*), sum(octet_length(value)), max(type)").fetchall()
    values, types = expected["value"].to_pylist(), expected["type"].to_pylist()
    assert found == [(200, sum(map(len, values)), max(types))]


def test_what_cannot_be_viewed(segment: Path, tmp_path: Path) -> None:
    for source in (segment, segment.open("rb"), segment.as_uri()):
        with pytest.raises(ValueError, match="copy=False needs a file in memory: open a path with memory_map=True"):
            seglake.open(source, copy=False)
    with pytest.raises(ValueError, match=r"copy=False .*toreadonly"):
        seglake.open(bytearray(segment.read_bytes()), copy=False)
    with pytest.raises(ValueError, match=r"copy=False .*contiguous"):
        seglake.open(memoryview(segment.read_bytes())[::2], copy=False)
    with pytest.raises(ValueError, match="copy=False does not concern chunked files"):
        seglake.open(sample(tmp_path, "chunked"), memory_map=True, copy=False)


def test_a_buffer_of_larger_items(segment: Path) -> None:
    data = segment.read_bytes()
    items = array.array("Q", data + bytes(-len(data) % 8))
    assert pa.table(seglake.open(memoryview(items).toreadonly(), copy=False))["value"].to_pylist() == [
        record.value for record in seglake.open(segment)
    ]
