"""Filters of queries as the library takes them: what is chosen by them. Without Spark."""

import operator
import pickle
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, cast

import pyarrow as pa
import pytest
from golden import FORMATS as FORMATS_OF_VECTORS
from golden import WRONG_KEY
from golden_files import CASES, link, spark_options
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)
from samples import SAMPLES
from segments import DAY, flip, uuid6, write_segment

import seglake
from seglake._filters import Condition
from seglake._text import unescape
from seglake.spark.filters import pushed, rows_wanted
from seglake.spark.schema import DAMAGE_TYPE
from seglake.spark.source import SegmentDataSource

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FORMATS = ("active", "sealed", "tenant", "chunked")
Row = dict[str, Any]

COMPARISONS: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    In: lambda own, values: own in values,
}


def columns(format: str) -> tuple[seglake.Column, ...]:
    return seglake.formats()[format].columns


def rows(source: Path | bytes, format: str, conditions: list[Condition] | None = None) -> list[Row]:
    """The records that are read, as Spark has them."""
    arguments: Any = {"format": format, "uuid_type": "string", "on_damage": "raise", "prune": True}
    with seglake.open(source, **arguments, filters=conditions) as reader:
        return pa.table(reader).to_pylist()


def matches(row: Row, each: Any) -> bool:
    """Whether Spark keeps a row, by a filter that compares a column with a value."""
    return COMPARISONS[type(each)](row[each.attribute[0]], each.value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("filters")
    for name in FORMATS:
        sample = SAMPLES[name]
        sample.write(root / f"{name}.{sample.extension}", 60)
    return root


def file_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.{SAMPLES[name].extension}"


def literals(column: str, values: list[Any]) -> st.SearchStrategy[Any]:
    """Values that a filter may compare a column with: a record's, one beside it, or none of any record's."""
    one = st.sampled_from(values)
    match values[0]:
        case datetime():
            return st.builds(lambda time, by: time + by * MICROSECOND, one, st.integers(-1, 1))
        case int():
            far = st.sampled_from([-1, 0, 1 << 32, (1 << 63) - 1, -(1 << 63)])
            return st.one_of(st.builds(operator.add, one, st.integers(-1, 1)), far)
        case _ if column == "uuid":
            beside = st.builds(lambda text, by: str(uuid.UUID(int=uuid.UUID(text).int + by)), one, st.integers(-1, 1))
            others = [values[3].upper(), values[4][:9], "", "zzz", str(uuid.UUID(int=5)), f"{{{values[5]}}}"]
            return st.one_of(beside, beside, st.sampled_from(others))
        case _:
            return st.one_of(one, st.sampled_from(["", "none", "a\\", "\\x41", "\\xff", "\\x5c"]))


@st.composite
def filters(draw: st.DrawFn, found: list[Row]) -> list[Any]:
    """Filters that all have to be true."""
    chosen: list[Any] = []
    for _ in range(draw(st.integers(0, 3))):
        column = draw(st.sampled_from([name for name in found[0] if name != "value"]))
        literal = literals(column, [row[column] for row in found])
        kind: Any = draw(st.sampled_from(list(COMPARISONS)))
        chosen.append(kind((column,), draw(st.lists(literal, max_size=4) if kind is In else literal)))
    return chosen


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_is_read_has_all_that_matches(name: str, data: st.DataObject, folder: Path) -> None:
    everything = rows(file_of(folder, name), name)
    asked = data.draw(filters(everything))
    found = rows(file_of(folder, name), name, pushed(asked, columns(name)))
    assert [row for row in everything if row in found] == found
    matching = [row for row in everything if all(matches(row, each) for each in asked)]
    assert [row for row in found if all(matches(row, each) for each in asked)] == matching


FIRST = uuid6(DAY, 5)


@pytest.mark.parametrize(
    ("format", "given_", "expected"),
    [
        ("sealed", GreaterThan(("uuid",), str(FIRST)), ("uuid", ">", FIRST)),
        ("sealed", LessThanOrEqual(("uuid",), FIRST.bytes), ("uuid", "<=", FIRST)),
        ("sealed", EqualTo(("uuid",), bytearray(FIRST.bytes)), ("uuid", "in", [FIRST])),
        ("sealed", In(("uuid",), (str(uuid.UUID(int=5)), "none", None)), ("uuid", "in", [uuid.UUID(int=5)])),
        ("sealed", In(("uuid",), ("none", str(FIRST).upper())), ("uuid", "in", [])),
        ("sealed", In(("timestamp",), cast("Any", [DAY, None])), ("timestamp", "in", [DAY])),
        ("active", LessThan(("timestamp",), DAY), ("timestamp", "<", DAY)),
        ("sealed", In(("type",), ("b", "c")), ("type", "in", [b"b", b"c"])),
        ("tenant", EqualTo(("tenant",), "a\\x5c\\xff"), ("tenant", "in", [b"a\\\xff"])),
        ("tenant", EqualNullSafe(("tenant",), "\\"), ("tenant", "in", [])),
        ("tenant", GreaterThan(("partition",), 5), ("partition", ">", 5)),
        ("tenant", In(("index",), (1, 2)), ("index", "in", [1, 2])),
        ("chunked", GreaterThanOrEqual(("offset",), -3), ("offset", ">=", -3)),
        ("oplog", EqualTo(("seq",), 1 << 63), ("seq", "in", [1 << 63])),
    ],
)
def test_filters_are_pushed_as_the_library_takes_them(format: str, given_: Filter, expected: Condition) -> None:
    assert pushed([given_], columns(format)) == [expected]
    assert pushed([given_, IsNull(("type",)), given_], columns(format)) == [expected, expected]


@pytest.mark.parametrize(
    "untold",
    [
        IsNull(("type",)),
        IsNotNull(("type",)),
        Not(EqualTo(("type",), "a")),
        StringStartsWith(("type",), "a"),
        EqualTo(("type", "a"), "a"),
        EqualTo(("other",), "a"),
        EqualTo(("value",), b"a"),
        EqualNullSafe(("type",), None),
        GreaterThan(("type",), "a"),
        GreaterThan(("uuid",), "1EEAFD69-9B8A-6CEE-B9F1-1B8E6A30ADE3"),
        LessThan(("uuid",), "1eeafd69-9b8a-4cee-b9f1-1b8e6a30ade3"),
        LessThan(("timestamp",), datetime(2024, 1, 1)),
        EqualTo(("partition",), 5),
    ],
)
def test_what_the_library_does_not_compare_as_spark_does_is_left_to_spark(untold: Filter) -> None:
    assert pushed([untold], columns("sealed")) == []


@pytest.mark.parametrize(
    "untold",
    [
        EqualTo(("partition",), True),
        EqualTo(("partition",), 5.0),
        In(("partition",), cast("Any", (1, "2"))),
        LessThan(("partition",), "5"),
        EqualTo(("tenant",), b"a"),
        LessThanOrEqual(("tenant",), "a"),
    ],
)
def test_values_of_another_kind_are_left_to_spark(untold: Filter) -> None:
    assert pushed([untold], columns("tenant")) == []


def test_texts_stand_for_the_bytes_that_show_so(tmp_path: Path) -> None:
    random = Random(1)
    kinds = [bytes(random.choice(b"\\x5cA\xff\xc3\xa4") for _ in range(random.randrange(6))) for _ in range(200)]
    path = tmp_path / "kinds.active"
    with seglake.create(path, format="active") as writer:
        for number, kind in enumerate(kinds):
            writer.write(uuid=uuid6(DAY, number), type=kind, value=b"")
    assert [unescape(record.type) for record in seglake.open(path)] == kinds
    assert [unescape(text) for text in ("\\", "\\x", "\\x5", "a\\n", "\\xgg", "\ud800")] == [None] * 6


def test_a_reader_takes_filters_only_on_request(folder: Path) -> None:
    """Spark refuses readers that have a function of their own for it where it must not call that."""
    source = SegmentDataSource({"path": str(file_of(folder, "sealed"))})
    assert type(source.reader(source.schema())).pushFilters is DataSourceReader.pushFilters


def test_a_reader_takes_filters_and_gives_all_of_them_back(folder: Path) -> None:
    source = SegmentDataSource({"path": str(file_of(folder, "sealed")), "pushDownPredicate": "true"})
    reader = source.reader(source.schema())
    asked: list[Filter] = [EqualTo(("type",), "t/1"), IsNull(("value",))]
    assert list(reader.pushFilters(asked)) == asked
    (partition,) = reader.partitions()
    found = [row for batch in reader.read(partition) for row in cast("pa.RecordBatch", batch).to_pylist()]
    assert {row["type"] for row in found} == {"t/1"}
    assert len(found) == 20


BROKEN = "_corrupt_record"


@pytest.mark.parametrize(
    ("filters", "sound", "damaged"),
    [
        ([], True, True),
        ([IsNull((BROKEN,))], True, False),
        ([EqualTo(("type",), "a"), IsNotNull((BROKEN,))], False, True),
        ([IsNotNull((BROKEN,)), IsNull((BROKEN,))], False, False),
        ([IsNotNull((BROKEN, "kind")), EqualTo((BROKEN, "kind"), "corrupt")], False, True),
        ([GreaterThan((BROKEN, "start"), 5)], False, True),
        ([In((BROKEN, "cause"), ("a", "b"))], False, True),
        # All of these may be true of rows without a report, or are not understood.
        ([IsNull((BROKEN, "cause"))], True, True),
        ([EqualNullSafe((BROKEN, "cause"), None)], True, True),
        ([Not(EqualTo((BROKEN, "kind"), "corrupt"))], True, True),
        ([IsNull(("type",)), IsNotNull(("other",)), IsNotNull(("type", BROKEN))], True, True),
    ],
)
def test_filters_on_damage_choose_rows(filters: list[Any], sound: bool, damaged: bool) -> None:
    assert rows_wanted(filters, BROKEN) == (sound, damaged)
    assert rows_wanted(filters, None) == (True, True)


def reported(source: SegmentDataSource, *asked: Filter) -> list[Row]:
    """The rows of a reader that is given filters."""
    reader = source.reader(source.schema())
    assert list(reader.pushFilters(list(asked))) == list(asked)
    reader = pickle.loads(pickle.dumps(reader)) if (partitions := reader.partitions()) else reader
    batches = [batch for each in partitions for batch in reader.read(each)]
    assert all(batch.num_rows for batch in batches)  # pyright: ignore
    table: Any = pa.Table.from_batches(cast("Any", batches)) if batches else pa.table({})
    if "timestamp" in table.column_names:  # which Python cannot show beyond the years 1 to 9999
        place = table.column_names.index("timestamp")
        table = table.set_column(place, "timestamp", table["timestamp"].cast(pa.int64()))
    return table.to_pylist()


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("format", FORMATS_OF_VECTORS)
def test_rows_with_and_without_damage_are_those_of_reading_everything(
    format: str, mode: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    chosen = [case for case in CASES if case.format == format and case.id not in WRONG_KEY]
    assert len(chosen) > 20
    counts = [0, 0]
    for case in chosen:
        folder = tmp_path / case.path.stem
        folder.mkdir()
        options = {"path": str(link(case, folder)), **spark_options(case), "mode": mode}
        with subtests.test(case.id):
            source = SegmentDataSource({**options, "metadataColumns": "position", "pushDownPredicate": "true"})
            schema = source.schema()
            if mode == "DROPMALFORMED":
                schema = schema.add(BROKEN, DAMAGE_TYPE)
                source.schema = lambda schema=schema: schema
            everything = reported(source)
            for index, keeps in enumerate((IsNull((BROKEN,)), IsNotNull((BROKEN,)))):
                expected = [row for row in everything if (row[BROKEN] is None) == (index == 0)]
                counts[index] += len(expected)
                assert reported(source, keeps) == expected
            assert reported(source, IsNull((BROKEN,)), IsNotNull((BROKEN,))) == []
    assert counts[0] > 100
    assert (counts[1] > 0) == (mode == "PERMISSIVE")


def test_looking_for_damage_decodes_no_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.active"
    flip(path, write_segment(path, 10)[3].end - 9)
    opened: list[tuple[str, ...]] = []
    real = seglake.open

    def watched(*arguments: Any, **options: Any) -> Any:
        opened.append(options.get("columns"))
        return real(*arguments, **options)

    source = SegmentDataSource({"path": str(path), "segmentFormat": "active", "pushDownPredicate": "true"})
    schema = source.schema()
    monkeypatch.setattr(seglake, "open", watched)
    reader = source.reader(schema)
    opened.clear()
    reader.pushFilters([IsNotNull((BROKEN,))])
    (partition,) = reader.partitions()
    (batch,) = reader.read(partition)
    assert cast("pa.RecordBatch", batch).num_rows == 1
    assert opened == [("position",)]
