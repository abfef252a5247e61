"""`row_hashes`: rows have the same hash exactly if their values are the same, whatever holds them."""

import decimal
import io
import struct
import sys
import threading
import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from highway_hash import checksum
from hypothesis import given, settings
from hypothesis import strategies as st

from seglake._native import row_hashes

FLOATS = [0.0, -0.0, 1.5, float("inf"), float("nan")]
TEXTS = ["", "a", "ab", "b", "\0", "é", "x" * 11, "x" * 12, "x" * 13, "x" * 1023, "x" * 1024, "y" + "x" * 1023]
LEAVES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.null(), []),
    (pa.bool_(), [False, True]),
    (pa.int8(), [0, 1, -1]),
    (pa.uint16(), [0, 1, 256]),
    (pa.int64(), [0, 1, -1, 256, 2**63 - 1]),
    (pa.uint64(), [0, 1, 2**64 - 1]),
    (pa.float32(), FLOATS),
    (pa.float64(), FLOATS),
    (pa.decimal128(20, 2), [decimal.Decimal("0.00"), decimal.Decimal("0.01"), decimal.Decimal("-1.00")]),
    (pa.date32(), [0, 1]),
    (pa.time64("us"), [0, 1]),
    (pa.timestamp("us", "UTC"), [0, 1, -1]),
    (pa.duration("us"), [0, 1]),
    (pa.binary(2), [b"ab", b"\0\0"]),
    (pa.string(), TEXTS),
    (pa.large_string(), TEXTS),
    (pa.string_view(), TEXTS),
    (pa.binary(), [text.encode() for text in TEXTS]),
    (pa.large_binary(), [text.encode() for text in TEXTS]),
    (pa.binary_view(), [text.encode() for text in TEXTS]),
]


def canonical(value: Any) -> Any:
    """A value that is equal to another exactly if both are the same."""
    if isinstance(value, float):
        return struct.pack("<d", value)
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

    def a_large_list(each: Typed) -> Typed:
        return pa.large_list(each[0]), nullable(st.lists(each[1], max_size=3))

    def a_fixed_list(each: Typed) -> Typed:
        return pa.list_(each[0], 2), nullable(st.lists(each[1], min_size=2, max_size=2))

    def a_map(each: Typed) -> Typed:
        return pa.map_(pa.string(), each[0]), nullable(st.lists(st.tuples(st.sampled_from("ab"), each[1]), max_size=3))

    def a_struct(both: tuple[Typed, Typed]) -> Typed:
        first, second = both
        values = st.fixed_dictionaries({"a": first[1], "b": second[1]})
        return pa.struct({"a": first[0], "b": second[0]}), nullable(values)

    return st.one_of(
        inner.map(a_list),
        inner.map(a_large_list),
        inner.map(a_fixed_list),
        inner.map(a_map),
        st.tuples(inner, inner).map(a_struct),
    )


LEAF = st.sampled_from(LEAVES).map(lambda leaf: (leaf[0], nullable(st.sampled_from(leaf[1])) if leaf[1] else st.none()))
TYPED = st.recursive(LEAF, nested, max_leaves=4)


def hashes(rows: Any) -> list[int]:
    return pa.array(row_hashes(rows)).to_pylist()


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


OTHERS = {
    pa.string(): [pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int8(), pa.string())],
    pa.binary(): [pa.large_binary(), pa.binary_view(), pa.dictionary(pa.uint32(), pa.large_binary())],
    pa.binary(2): [pa.binary(), pa.dictionary(pa.int64(), pa.binary())],
    pa.int64(): [pa.dictionary(pa.int16(), pa.int64())],
    pa.list_(pa.string()): [pa.large_list(pa.large_string()), pa.list_(pa.string_view()), pa.list_(pa.string(), 2)],
    pa.map_(pa.string(), pa.int8()): [pa.list_(pa.struct({"k": pa.large_string(), "v": pa.int8()}))],
}
VALUES: dict[pa.DataType, list[Any]] = {
    pa.string(): [*TEXTS, None],
    pa.binary(): [*(text.encode() for text in TEXTS), None],
    pa.binary(2): [b"ab", None, b"cd"],
    pa.int64(): [1, None, 1, 2],
    pa.list_(pa.string()): [["a", None], None, ["", "b"]],
    pa.map_(pa.string(), pa.int8()): [[("a", 1), ("b", None)], [], None],
}


@pytest.mark.parametrize(
    ("type", "other"),
    [(type, other) for type, others in OTHERS.items() for other in others],
    ids=str,
)
def test_what_holds_a_value_does_not_count(type: pa.DataType, other: pa.DataType) -> None:
    values = VALUES[type]
    expected = hashes(pa.record_batch({"a": pa.array(values, type)}))
    assert len(set(expected)) == len({canonical(value) for value in values})
    if isinstance(type, pa.MapType):
        values = [value and [{"k": key, "v": each} for key, each in value] for value in values]
    array = pa.array(values, other)
    assert hashes(pa.record_batch({"name": array})) == expected
    assert hashes(pa.record_batch({"a": array[1:]})) == expected[1:]


def test_values_under_a_null_do_not_count() -> None:
    inner = pa.array([1, 2, 2], pa.int64())
    both = pa.StructArray.from_arrays([inner], ["a"], mask=pa.array([True, True, False]))
    first, second, third = hashes(pa.record_batch({"s": both}))
    assert first == second != third
    keys = pa.array([0, None, 1], pa.int8())
    dictionary = pa.DictionaryArray.from_arrays(keys, pa.array([None, "b"]))
    first, second, third = hashes(pa.record_batch({"d": dictionary}))
    assert first == second != third == hashes(pa.record_batch({"d": ["b"]}))[0]


def test_parquet_changes_no_hash() -> None:
    own = [(type, values) for type, values in LEAVES if type not in (pa.binary_view(), pa.string_view())]
    most = max(len(values) for _, values in own)
    columns = {
        str(at): pa.array([*values, *[None] * (most - len(values))], type) for at, (type, values) in enumerate(own)
    }
    columns["list"] = pa.array(
        [[{"a": "x", "b": None}], [], None, [None]] * (most // 4),
        pa.list_(pa.struct({"a": pa.string(), "b": pa.int8()})),
    )
    batch = pa.record_batch(columns)
    expected = hashes(batch)
    for arguments in ({}, {"store_schema": False}):
        file = io.BytesIO()
        pq.write_table(pa.table(batch), file, row_group_size=5, **arguments)
        for chosen in ({}, {"read_dictionary": ["13", "14"]}):
            table = pq.read_table(pa.BufferReader(file.getvalue()), **chosen)
            found = [each for batch in table.to_batches(max_chunksize=3) for each in hashes(batch)]
            assert found == expected


def test_lengths_are_part_of_it() -> None:
    assert len({*hashes(pa.record_batch({"a": ["a", "ab", "", "abc"], "b": ["bc", "c", "abc", ""]}))}) == 4
    lists = pa.record_batch(
        {"a": [[["a"], ["b"]], [["a", "b"]], [["a", "b"], []], [[], ["a", "b"]], [[None]], [None], []]}
    )
    assert len({*hashes(lists)}) == 7
    nulls = pa.record_batch({"a": pa.array(["", None, ""]), "b": pa.array([None, "", ""])})
    assert len({*hashes(nulls)}) == 3


def test_it_is_highway_hash() -> None:
    row = pa.record_batch({"a": ["abc"], "b": pa.array([5], pa.uint16()), "c": pa.array([None], pa.int8())})
    encoded = b"\1" + b"\1" + (3).to_bytes(8, "little") + b"abc" + b"\1\5\0" + b"\0"
    assert hashes(row) == [int.from_bytes(checksum(encoded), "big")]


def test_rows_without_columns_and_no_rows() -> None:
    assert hashes(pa.record_batch({"a": pa.array([], pa.int8())})) == []
    rows = pa.StructArray.from_buffers(pa.struct([]), 3, [None])
    assert len({*hashes(rows)}) == 1 and len(hashes(rows)) == 3


def test_many_rows_go_over_windows() -> None:
    values = [f"{number}" * (number % 400) for number in range(20_000)]
    batch = pa.record_batch({"number": range(20_000), "value": values})
    found = hashes(batch)
    assert len({*found}) == 20_000
    assert hashes(batch[7777:]) == found[7777:]


def deep(levels: int) -> pa.RecordBatch:
    type = pa.int8()
    for _ in range(levels):
        type = pa.list_(type)
    return pa.record_batch({"a": pa.array([None], type)})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pa.array([1]), "expected an Arrow record batch or struct array .*, found Int64Array"),
        (pa.table({"a": [1]}), "found .*Table"),
        (b"rows", "found bytes"),
        (
            pa.record_batch({"a": pa.array([1, 1], pa.run_end_encoded(pa.int16(), pa.int8()))}),
            "found one of type RunEnd",
        ),
        (pa.record_batch({"a": pa.array([[1]], pa.list_view(pa.int8()))}), "found one of type ListView"),
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
