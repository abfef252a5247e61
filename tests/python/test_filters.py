"""Conditions as people write them: tuples, text, and expressions of pyarrow mean the same, and agree with pyarrow."""

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seglake
from seglake._values import WrongValueError
from seglake.read.filters import plain

START = datetime(2024, 2, 29, tzinfo=UTC)
TYPES = ("order", "order.paid", "order_paid", "it's", "100%", "Täst", "")


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record an hour, of each type in turn."""
    path = tmp_path_factory.mktemp("orders") / "orders.active"
    with seglake.create(path, format="active") as writer:
        for hour in range(40):
            time = START + timedelta(hours=hour)
            writer.write(uuid=seglake.uuid6(time), type=TYPES[hour % len(TYPES)], value=f"{hour}")
    return path


@pytest.fixture(scope="module")
def chunks(orders: Path) -> Path:
    """The same with offsets."""
    path = orders.with_name("orders.chunks")
    seglake.convert(orders, path, drop=["uuid", "type"])
    return path


def read(path: Path, filters: Any) -> list[int]:
    found = [int(record.value) for record in seglake.open(path, filters=filters)]
    pruned = [int(record.value) for record in seglake.open(path, filters=filters, prune=True)]
    assert found == pruned
    assert seglake.scan(path, filters=filters).count_rows() == len(found)
    return found


HOURS = list(range(40))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (("type", "==", "order.paid"), HOURS[1::7]),
        ([["type = 'order.paid'", ("timestamp", "<", "2024-02-29T05:00:00Z")]], [1]),
        ("type = 'order.paid'", HOURS[1::7]),
        ('"type" <> "order"  and type!=order.paid AND type NOT IN (order_paid, "100%", \'\', Täst)', HOURS[3::7]),
        ("type = 'it''s'", HOURS[3::7]),
        ("type LIKE 'order._aid'", HOURS[1::7]),
        (r"type like 'order\_paid'", HOURS[2::7]),
        (r"type LIKE '100\%'", HOURS[4::7]),
        ("type LIKE 'T_st'", HOURS[5::7]),
        ("type not like '%r%' AND value <= 2", [10, 11, 12, 13, 17, 18, 19]),
        (("type", "NOT  LIKE", "%"), []),
        ("timestamp BETWEEN '2024-02-29 01:00Z' AND 2024-02-29T03:00Z", [1, 2, 3]),
        (("timestamp", "between", [START, START + timedelta(hours=1)]), [0, 1]),
        ("timestamp >= 2024-03-01 AND type IS NOT NULL", HOURS[24:]),
        ("timestamp IS NULL", []),
        (("timestamp", "is null"), []),
        (("timestamp", "is not null", None), HOURS),
        (("timestamp", ">=", date(2024, 3, 1)), HOURS[24:]),
        (("timestamp", "in", [date(2024, 3, 1), "2024-02-29"]), [0, 24]),
        (("timestamp", ">=", np.datetime64("2024-03-01")), HOURS[24:]),
        (("timestamp", ">=", np.datetime64("2024-03-01T01:00:00.000000001", "ns").astype("datetime64[s]")), HOURS[25:]),
        (("timestamp", "<", pd.Timestamp("2024-02-29T01:00", tz="Europe/Berlin")), []),
        (("timestamp", ">", timedelta(days=1)), []),
        (("timestamp", "<", "1h"), HOURS),
        (("timestamp", "<", "yesterday"), HOURS),
        ([], HOURS),
    ],
)
def test_conditions(filters: Any, expected: list[int], orders: Path) -> None:
    assert read(orders, filters) == expected
    assert read(orders, plain(filters)) == expected
    assert read(orders, [filters]) == expected
    assert [int(record.value) for record in seglake.open(orders, filters=iter([filters]))] == expected


def test_numbers(chunks: Path) -> None:
    assert read(chunks, "offset between 3 and 0x5") == [3, 4, 5]
    assert read(chunks, [("offset", ">=", "38")]) == [38, 39]
    assert read(chunks, ("offset", "==", 10**30)) == []
    for number, error in ((10**50, f"offset is out of range: {10**50}"), ("five", '"five": expected a whole number')):
        with pytest.raises(ValueError, match=error):
            read(chunks, ("offset", "==", number))
    with pytest.raises(TypeError, match="offset must be an int"):
        read(chunks, ("offset", ">=", 1.5))


FIELD = pc.field


@pytest.mark.parametrize(
    "expression",
    [
        FIELD("type") == "order.paid",
        (FIELD("type") != "order") & (FIELD("timestamp") >= START + timedelta(hours=20)),
        ~(FIELD("timestamp") < START + timedelta(hours=20)),
        FIELD("timestamp") > pa.scalar(START + timedelta(hours=20), pa.timestamp("ns", "UTC")),
        FIELD("type").isin(["order", 'quo"te\n', "it's"]) & pc.starts_with(FIELD("type"), "or"),
        FIELD("type").isin([str(number) for number in range(100)]),
        FIELD("type").is_valid() & ~FIELD("type").is_null(),
        FIELD("timestamp").is_null(),
        pc.match_like(FIELD("type"), r"%\_p%"),
        ~pc.match_like(FIELD("type"), "T_st"),
        ~~pc.match_like(FIELD("type"), "T_st"),
        pc.ends_with(FIELD("type"), "%"),
        pc.match_substring(FIELD("type"), "_"),
        FIELD("value") == b"7",
        FIELD("value").isin([b"7", b"8"]),
        pc.scalar(True) & (FIELD("value") == b"7"),
        pc.scalar("order") == FIELD("type"),
    ],
    ids=str,
)
def test_expressions_agree_with_pyarrow(expression: pc.Expression, orders: Path) -> None:
    whole = pa.table(seglake.open(orders))
    assert pa.table(seglake.open(orders, filters=expression)) == whole.filter(expression)
    assert pa.table(seglake.scan(orders, filters=[expression])) == whole.filter(expression)


TIMES = st.integers(-1, 41).map(lambda hour: START + timedelta(hours=hour))
TEXTS = st.sampled_from(TYPES) | st.text(alphabet="ord_%.'ä", max_size=4)


@st.composite
def expressions(draw: st.DrawFn) -> tuple[pc.Expression, Any, str]:
    """A condition as an expression, as a tuple, and as text."""
    kind = draw(st.sampled_from(["text", "time", "in", "like", "between"]))
    text = draw(TEXTS)
    quoted = "'" + text.replace("'", "''") + "'"
    if kind == "like":
        return pc.match_like(FIELD("type"), text), ("type", "like", text), f"type LIKE {quoted}"
    if kind == "in":
        return FIELD("type").isin([text, "order"]), ("type", "in", [text, "order"]), f"type IN ({quoted}, order)"
    low, high = draw(TIMES), draw(TIMES)
    if kind == "between":
        both = (FIELD("timestamp") >= low) & (FIELD("timestamp") <= high)
        text = f"timestamp BETWEEN {low:%Y-%m-%dT%H:%MZ} AND '{high}'"
        return both, ("timestamp", "between", (low, high)), text
    sign, apply = draw(
        st.sampled_from(
            [
                ("==", lambda left, right: left == right),
                ("!=", lambda left, right: left != right),
                ("<", lambda left, right: left < right),
                ("<=", lambda left, right: left <= right),
                (">", lambda left, right: left > right),
                (">=", lambda left, right: left >= right),
            ]
        )
    )
    if kind == "time":
        return apply(FIELD("timestamp"), low), ("timestamp", sign, low), f"timestamp{sign}{low.isoformat()}"
    return apply(FIELD("type"), text), ("type", sign, text), f"type {sign} {quoted}"


@given(drawn=st.lists(expressions(), min_size=1, max_size=3))
def test_all_ways_to_write_conditions_mean_the_same(orders: Path, drawn: list[tuple[pc.Expression, Any, str]]) -> None:
    expression, *others = [each[0] for each in drawn]
    for other in others:
        expression &= other
    expected = [int(value) for value in pa.table(seglake.open(orders)).filter(expression)["value"].to_pylist()]
    assert read(orders, expression) == expected
    assert read(orders, [each[1] for each in drawn]) == expected
    assert read(orders, " AND ".join(each[2] for each in drawn)) == expected


@pytest.mark.parametrize(
    ("filters", "error", "said"),
    [
        ([[("type", "==", "a")], [("type", "==", "b")]], ValueError, "2 lists, which OR joins: expected conditions"),
        ((FIELD("type") == "a") | (FIELD("type") == "b"), ValueError, "joined by AND"),
        (~((FIELD("type") == "a") & (FIELD("value") == "b")), ValueError, "NOT of several"),
        (~FIELD("type").isin(["a"]), ValueError, "Give (column, 'not in', values)"),
        (FIELD("type").isin(["a", None]), ValueError, "nothing equals null"),
        (pc.starts_with(FIELD("type"), "a\\"), ValueError, "Give (column, 'like', pattern)"),
        (pc.match_like(FIELD("type"), r"\\a"), ValueError, "Give (column, 'like', pattern)"),
        (FIELD("timestamp").cast(pa.int64()) > 5, ValueError, "cast is not among"),
        (pc.starts_with(FIELD("type"), "a", ignore_case=True), ValueError, "starts_with is not among"),
        (FIELD("a", "b") == 5, ValueError, "nested_field_ref is not among"),
        (pc.scalar(False), ValueError, "whatever a record has"),
        (FIELD("timestamp") > datetime(2024, 1, 1), ValueError, "no time zone"),
        (FIELD("colour") == 5, ValueError, "cannot filter active records by colour"),
        (pl.col("type") == "a", TypeError, "LazyFrame"),
        (b"type", TypeError, "not bytes"),
        ({"type": "a"}, TypeError, "not dict"),
        (5, TypeError, "not int"),
        (("type", "is null", 5), TypeError, "filters takes"),
        (("type", "==", None), ValueError, "is null"),
        (("timestamp", "between", START), ValueError, "two values"),
        (("timestamp", ">=", pd.Timestamp("2024-01-01T00:00:00.000000001Z")), ValueError, "finer than microseconds"),
        (("timestamp", ">=", np.datetime64("NaT")), ValueError, "whole microseconds"),
        (("timestamp", ">=", np.datetime64("2024-01-01T00:00:00.000000001")), ValueError, "whole microseconds"),
        (("timestamp", ">=", pd.Timestamp("2024-01-01")), ValueError, "time zone"),
        (("timestamp", ">=", 10**30), ValueError, "out of range"),
        (("timestamp", "like", "2024%"), ValueError, "expected a time|by like"),
        (("uuid", "like", "1%"), ValueError, "not text or bytes"),
        (("type", "like", 5), TypeError, "str or bytes"),
        ("type = 'a' OR type = 'b'", WrongValueError, "joined by AND"),
        ("type = NULL", WrongValueError, "IS NULL or IS NOT NULL"),
        ("type = order paid", WrongValueError, "quotes"),
        ("type = 'a", WrongValueError, "a quote is not closed"),
        ("type", WrongValueError, "COLUMN OP VALUE"),
        ("type = ", WrongValueError, "COLUMN OP VALUE"),
        ("type ~ a", WrongValueError, "COLUMN OP VALUE"),
        ("type IN 'a'", WrongValueError, "COLUMN OP VALUE"),
        ("type IN ()", WrongValueError, "COLUMN OP VALUE"),
        ("type IN ('a'", WrongValueError, "COLUMN OP VALUE"),
        ("type NOT = 'a'", WrongValueError, "COLUMN OP VALUE"),
        ("timestamp BETWEEN 1h, 2h", WrongValueError, "COLUMN OP VALUE"),
        ("type = 'a' AND", WrongValueError, "COLUMN OP VALUE"),
        ("(type = 'a')", WrongValueError, "COLUMN OP VALUE"),
        ("type IS 'a'", WrongValueError, "COLUMN OP VALUE"),
        ("", WrongValueError, "COLUMN OP VALUE"),
    ],
    ids=str,
)
def test_what_is_no_condition(filters: Any, error: type[Exception], said: str, orders: Path) -> None:
    said = "|".join(re.escape(each) for each in said.split("|"))
    with pytest.raises(error, match=said):
        seglake.open(orders, filters=filters)
    with pytest.raises(error, match=said):
        seglake.scan(orders, filters=filters)


def test_days_and_times_without_an_offset_are_those_of_a_zone() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    [(_, _, day)] = plain("timestamp >= 2024-01-10", berlin)
    [(_, _, time)] = plain("timestamp >= '2024-01-10 12:00'", berlin)
    assert (day, time) == (datetime(2024, 1, 9, 23, tzinfo=UTC), datetime(2024, 1, 10, 11, tzinfo=UTC))


def test_times_are_settled_once(orders: Path) -> None:
    [(_, _, first)] = plain([("timestamp", ">=", timedelta(hours=1))])
    now = datetime.now(UTC)
    assert timedelta(0) <= now - timedelta(hours=1) - first < timedelta(minutes=1)
    scan = seglake.scan(orders, filters="timestamp < 1h").filter(("type", "==", "order"))
    assert plain(scan.arguments["filters"]) == scan.arguments["filters"]
    assert scan.count_rows() == len(HOURS[::7])


def test_patterns_on_bytes_are_those_of_bytes_as_in_pyarrow(tmp_path: Path) -> None:
    path = tmp_path / "a.active"
    texts = ["€", "😀", "ab", "é"]
    with seglake.create(path) as segment:
        segment.write_batch([(text, text.encode()) for text in texts])
    table = seglake.open(path).to_table()
    for column in ("type", "value"):
        for pattern in ("_", "__", "___", "%__", "%_"):
            expected = table.filter(pc.match_like(table[column], pattern))
            found = seglake.open(path, filters=[(column, "like", pattern)]).to_table()
            assert found["value"].to_pylist() == expected["value"].to_pylist(), (column, pattern)


def test_times_out_of_range_do_not_wrap_around(tmp_path: Path) -> None:
    path = tmp_path / "a.active"
    with seglake.create(path) as segment:
        segment.write("t", b"v")
    with pytest.raises(ValueError, match="whole microseconds"):
        seglake.open(path, filters=[("timestamp", "<", np.datetime64("300000-01-01", "s"))])
