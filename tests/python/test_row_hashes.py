"""`row_hashes`: rows have the same hash exactly if their values are the same."""

import decimal
import io
import sys
import threading
import time
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglake._native import row_hashes
from seglake.lake.table import lake_schema
from seglake.read.formats import native_schema

TEXTS = ["", "a", "ab", "b", "\0", "é", "x" * 1023, "x" * 1024, "y" + "x" * 1023]
LEAVES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [False, True]),
    (pa.int64(), [0, 1, -1, 256, 2**63 - 1]),
    (pa.uint64(), [0, 1, 2**64 - 1]),
    (pa.decimal128(20, 0), [decimal.Decimal(0), decimal.Decimal(1), decimal.Decimal(2**64 - 1)]),
    (pa.timestamp("us", "UTC"), [0, 1, -1]),
    (pa.string(), TEXTS),
    (pa.binary(), [text.encode() for text in TEXTS]),
]


def canonical(value: Any) -> Any:
    """A value that is equal to another exactly if both are the same."""
    if isinstance(value, dict):
        return tuple((name, canonical(each)) for name, each in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(canonical, value))
    return value


def nullable(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


Typed = tuple[pa.DataType, st.SearchStrategy[Any]]


def nested(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    def a_list(each: Typed) -> Typed:
        return pa.list_(each[0]), nullable(st.lists(each[1], max_size=3))

    def a_struct(both: tuple[Typed, Typed]) -> Typed:
        first, second = both
        values = st.fixed_dictionaries({"a": first[1], "b": second[1]})
        return pa.struct({"a": first[0], "b": second[0]}), nullable(values)

    return st.one_of(
        inner.map(a_list),
        st.tuples(inner, inner).map(a_struct),
    )


LEAF = st.sampled_from(LEAVES).map(lambda leaf: (leaf[0], nullable(st.sampled_from(leaf[1]))))
TYPED = st.recursive(LEAF, nested, max_leaves=4)


def hashes(rows: Any) -> list[int]:
    return memoryview(row_hashes(rows)).cast("Q").tolist()


@given(data=st.data())
@settings(max_examples=250)
def test_rows_are_equal_exactly_if_their_values_are(data: st.DataObject) -> None:
    types, values = zip(*data.draw(st.lists(TYPED, min_size=1, max_size=3)), strict=True)
    rows = data.draw(st.lists(st.tuples(*values), min_size=1, max_size=10))
    columns = [pa.array([row[at] for row in rows], type) for at, type in enumerate(types)]
    batch = pa.record_batch(columns, [str(at) for at in range(len(columns))])
    found = hashes(batch)
    told = [canonical(row) for row in rows]
    assert [[one == other for other in found] for one in found] == [[one == other for other in told] for one in told]
    start = data.draw(st.integers(0, len(rows)))
    assert hashes(batch[start:]) == found[start:]
    assert hashes(batch.to_struct_array()[start:]) == found[start:]
    assert [hashes(batch[at : at + 1])[0] for at in range(len(rows))] == found
    assert hashes(pa.concat_batches([batch[start:], batch[:start]])) == found[start:] + found[:start]


def test_values_under_a_null_do_not_count() -> None:
    inner = pa.array([1, 2, 2], pa.int64())
    both = pa.StructArray.from_arrays([inner], ["a"], mask=pa.array([True, True, False]))
    first, second, third = hashes(pa.record_batch({"s": both}))
    assert first == second != third


@pytest.mark.parametrize("table", ["parquet", "delta"])
def test_parquet_changes_no_hash(table: Literal["parquet", "delta"]) -> None:
    keys = [{"key": b"a", "length": 1}, None, {"key": None, "length": 2**64 - 1}]
    rows = [{"seq": seq, "clock": keys[: seq % 4], "value": b"x" * seq, "keys": [b"", None]} for seq in range(20)]
    batch = pa.RecordBatch.from_pylist(rows, native_schema("oplog", None, "string"))
    if table == "delta":
        batch = batch.cast(lake_schema(batch.schema))
    expected = hashes(batch)
    assert len({*expected}) == len(rows)
    file = io.BytesIO()
    pq.write_table(pa.table(batch), file, row_group_size=7)
    found = pq.read_table(pa.BufferReader(file.getvalue())).cast(batch.schema).to_batches(max_chunksize=3)
    assert [each for batch in found for each in hashes(batch)] == expected


def test_lengths_are_part_of_it() -> None:
    assert len({*hashes(pa.record_batch({"a": ["a", "ab", "", "abc"], "b": ["bc", "c", "abc", ""]}))}) == 4
    lists = pa.record_batch(
        {"a": [[["a"], ["b"]], [["a", "b"]], [["a", "b"], []], [[], ["a", "b"]], [[None]], [None], []]}
    )
    assert len({*hashes(lists)}) == 7
    nulls = pa.record_batch({"a": pa.array(["", None, ""]), "b": pa.array([None, "", ""])})
    assert len({*hashes(nulls)}) == 3


def test_rows_without_columns_and_no_rows() -> None:
    assert hashes(pa.record_batch({"a": pa.array([], pa.int64())})) == []
    rows = pa.StructArray.from_buffers(pa.struct([]), 3, [None])
    assert len({*hashes(rows)}) == 1 and len(hashes(rows)) == 3


def deep(levels: int) -> pa.RecordBatch:
    type = pa.int64()
    for _ in range(levels):
        type = pa.list_(type)
    return pa.record_batch({"a": pa.array([None], type)})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pa.array([1]), "an Arrow record batch or struct array, not .*Int64Array"),
        (pa.table({"a": [1]}), "not .*Table"),
        (b"rows", "not bytes"),
        (
            pa.record_batch({"a": pa.array([1, 1], pa.run_end_encoded(pa.int16(), pa.int8()))}),
            "found one of type RunEnd",
        ),
        (pa.record_batch({"a": pa.array([[1]], pa.list_view(pa.int8()))}), "found one of type ListView"),
        (pa.record_batch({"a": pa.array([1.5])}), "found one of type Float64"),
        (deep(63), "nested at most 64 deep"),
        (deep(1000), "nested at most 64 deep"),
    ],
)
def test_what_has_no_such_rows_is_refused(rows: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        row_hashes(rows)


def test_types_may_be_nested() -> None:
    assert len(hashes(deep(62))) == 1


def test_other_threads_run_meanwhile() -> None:
    batch = pa.record_batch({"value": pa.array([b"x" * (1 << 20)] * 256)})
    turns = 0
    is_done = threading.Event()

    def count() -> None:
        nonlocal turns
        while not is_done.is_set():
            turns += 1
            time.sleep(0.0001)

    thread = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)  # no thread has to let others run
    try:
        thread.start()
        before = turns
        row_hashes(batch)
        meanwhile = turns - before
    finally:
        sys.setswitchinterval(interval)
        is_done.set()
        thread.join()
    assert meanwhile
