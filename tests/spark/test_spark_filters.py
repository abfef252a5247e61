"""Filters of queries: what is chosen by them, that results are those of reading everything, and how much is read."""

import operator
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
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
from segments import DAY, uuid6

import seglake
from seglake._filters import Condition
from seglake._text import unescape
from seglake.spark.filters import pushed
from seglake.spark.source import SegmentDataSource

pytestmark = pytest.mark.spark

ON = "spark.sql.python.filterPushdown.enabled"
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


def test_a_reader_takes_filters_and_gives_all_of_them_back(folder: Path) -> None:
    source = SegmentDataSource({"path": str(file_of(folder, "sealed"))})
    reader = source.reader(source.schema())
    asked: list[Filter] = [EqualTo(("type",), "t/1"), IsNull(("value",))]
    assert list(reader.pushFilters(asked)) == asked
    # Spark refuses readers that have a function of their own while it must not be called.
    assert getattr(reader.pushFilters, "__func__", None) is DataSourceReader.pushFilters
    (partition,) = reader.partitions()
    found = [row for batch in reader.read(partition) for row in cast("pa.RecordBatch", batch).to_pylist()]
    assert {row["type"] for row in found} == {"t/1"}
    assert len(found) == 20


# In Spark itself


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each format, of a sound file and two damaged ones."""
    root = tmp_path_factory.mktemp("damaged")
    random = Random(7)
    for name, sample in SAMPLES.items():
        if sample.read_options:
            continue
        for number in range(3):
            path = root / name / f"{number}.{sample.extension}"
            sample.write(path, 60)
            content = bytearray(path.read_bytes())
            if sample.format == "oplog":  # which has no checksum to notice bits by
                del content[len(content) - number * 5 :]
                number = 0
            for _ in range(number):
                content[random.randrange(len(content))] ^= 1 << random.randrange(8)
            path.write_bytes(content)
    return root


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[Callable[[bool], None]]:
    """Switches pushing down on and off."""
    yield lambda on: spark.conf.set(ON, str(on).lower())
    spark.conf.unset(ON)


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("seglake").options(**options).load(str(path))


def collected(frame: DataFrame) -> list[str]:
    return sorted(str(row) for row in frame.collect())


PREDICATES = {
    "active": [
        "type = 't/1' AND timestamp >= TIMESTAMP'2024-01-31 00:20:00'",
        "timestamp < TIMESTAMP'2024-01-31 00:09:00.000001' AND type IN ('t/0', 't/2')",
        "uuid > '1eebfcc' AND NOT type = 't/1'",
        "_corrupt_record IS NOT NULL",
        "type = 't/1' OR _corrupt_record.kind = 'corrupt'",
        "timestamp > TIMESTAMP'2024-01-31 00:50:00' AND timestamp < TIMESTAMP'2024-01-31 00:40:00'",
    ],
    "tenant": [
        "partition = 2",
        "tenant = 'carrier 1' AND partition BETWEEN 1 AND 3",
        "partition IN (0, 5, 9) AND tenant IS NOT NULL AND index < 3",
        "tenant LIKE 'carrier%' AND partition <> 3",
        "tenant IS NULL",
    ],
    "chunked": [
        "offset >= 150",
        "offset BETWEEN 120 AND 131 AND value IS NOT NULL",
        "offset IN (100, 118, 200) AND timestamp > TIMESTAMP'2023-11-15 00:00:00'",
        "timestamp <= TIMESTAMP'2023-12-01 22:13:20'",
        "offset > 9223372036854775806 OR offset = 102",
    ],
    "draft": ["seq >= 5 AND checkpointer = 2", "seq = 7"],
}
PREDICATES["sealed"] = PREDICATES["active"]


@pytest.mark.parametrize("name", PREDICATES)
def test_results_are_those_of_reading_everything(
    spark: SparkSession, damaged: Path, pushing: Callable[[bool], None], name: str
) -> None:
    pushing(False)
    everything = load(spark, damaged / name).cache()
    assert everything.where("_corrupt_record IS NOT NULL").count() > 0
    counts = 0
    for predicate in PREDICATES[name]:
        expected = collected(everything.where(predicate))
        counts += len(expected)
        pushing(True)
        assert collected(load(spark, damaged / name).where(predicate)) == expected, predicate
    everything.unpersist()
    assert counts > 0


@pytest.mark.parametrize(
    ("name", "options", "predicate"),
    [
        ("active", {"types": "t/1,t/2"}, "type IN ('t/1', 't/2')"),
        ("sealed", {"types": '["t/0"]', "since": "2024-01-31T00:20:00Z"}, "type = 't/0' AND minute(timestamp) >= 20"),
        ("active", {"types": ' ["t/0"] '}, "type = 't/0'"),
        ("tenant", {"tenants": "carrier 1", "partitions": "2,3"}, "tenant = 'carrier 1' AND partition IN (2, 3)"),
        ("chunked", {"startOffset": "120", "endOffset": "150"}, "offset >= 120 AND offset < 150"),
    ],
)
def test_options_choose_as_filters_do(
    spark: SparkSession,
    damaged: Path,
    pushing: Callable[[bool], None],
    name: str,
    options: dict[str, str],
    predicate: str,
) -> None:
    pushing(False)
    expected = collected(load(spark, damaged / name).where(predicate))
    assert expected
    assert collected(load(spark, damaged / name, **options).where("value IS NOT NULL")) == expected
    pushing(True)
    assert collected(load(spark, damaged / name, **options).where(predicate)) == expected


def test_damage_is_met_where_it_is_read(spark: SparkSession, tmp_path: Path, pushing: Callable[[bool], None]) -> None:
    """A job that fails at damage does not fail at what the filters leave unread, and only then."""
    path = tmp_path / "file.tenant"
    SAMPLES["tenant"].write(path, 60)
    with seglake.open(path) as reader:
        position = next(record.position for record in reader if record.partition == 4)
    content = bytearray(path.read_bytes())
    content[position + 6] ^= 1
    path.write_bytes(content)
    strict = load(spark, path, mode="FAILFAST")
    pushing(True)
    assert strict.where("partition = 1").count() == 10
    assert load(spark, path, mode="FAILFAST", partitions="1").count() == 10
    with pytest.raises(Exception, match="checksum_mismatch"):
        strict.where("partition = 4").collect()
    pushing(False)
    with pytest.raises(Exception, match="checksum_mismatch"):
        strict.where("partition = 1").collect()


def test_a_wrong_name_is_refused_on_the_driver(spark: SparkSession, folder: Path) -> None:
    for name, options, message in (
        ("active", {"types": "a\\b"}, r"option types is .*expected \\xNN behind each backslash"),
        ("active", {"types": "[1]"}, "option types is .*expected types with commas"),
        ("tenant", {"types": "a"}, "option types does not concern format tenant: its records have no column type"),
    ):
        with pytest.raises(Exception, match=message):
            load(spark, file_of(folder, name), **options).schema  # noqa: B018 - behind Connect, loading asks nothing
