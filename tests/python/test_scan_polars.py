"""A scan as a polars LazyFrame: whatever is asked of it, the answer is that of the same rows in memory.

The interface of polars to sources says of itself that it may change. Tried with 2.1; 1.30 gives the same answers,
and has fewer conditions translated.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import polars as pl
import pytest

import seglake
from seglake.read.polars import conditions
from seglake.read.scan import Scan

START = datetime(2024, 1, 10, tzinfo=UTC)
MIDDLE = START + timedelta(seconds=70)
FILES, ROWS = 3, 50
TYPES = ("a", "b", "é\\x5c", b"\xff\x00\\")

c = pl.col


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    for file in range(FILES):
        with seglake.create(folder / f"{file}.active", format="active") as writer:
            for number in range(ROWS):
                moment = START + timedelta(seconds=ROWS * file + number, microseconds=number % 3)
                writer.write(uuid=seglake.uuid6(moment), type=TYPES[number % 4], value=b"%d" % number)
    return folder


# Conditions that are translated, that are not, and that only seem to be like those that are.
PREDICATES: dict[str, Callable[[Any], pl.Expr]] = {
    "after": lambda _: c("timestamp") > MIDDLE,
    "turned": lambda _: pl.lit(MIDDLE) > c("timestamp"),
    "another zone": lambda _: c("timestamp") >= MIDDLE.astimezone(timezone(timedelta(hours=5))),
    "between": lambda _: c("timestamp").is_between(MIDDLE, MIDDLE + timedelta(seconds=9)),
    "between, open": lambda _: c("timestamp").is_between(MIDDLE, MIDDLE + timedelta(seconds=9), closed="none"),
    "other unit": lambda _: c("timestamp").dt.cast_time_unit("ms") > MIDDLE,
    "unit of the literal": lambda _: c("timestamp") > pl.lit(MIDDLE).dt.cast_time_unit("ns"),
    "cast to a day": lambda _: c("timestamp").cast(pl.Date) == START.date(),
    "cast to a number": lambda _: c("timestamp").cast(pl.Int64) > int(MIDDLE.timestamp()) * 1_000_000,
    "cast to a small number": lambda _: c("value").bin.size().cast(pl.Int8) == 2,
    "far past": lambda _: c("timestamp") < datetime(1, 1, 1, tzinfo=UTC),
    "far future": lambda _: c("timestamp") < datetime(9999, 1, 1, tzinfo=UTC),
    "text": lambda _: c("type") == "a",
    "text, not": lambda _: c("type") != "a",
    "text, negated": lambda _: ~(c("type") == "a"),
    "text in": lambda _: c("type").is_in(["a", "b", "nothing"]),
    "text not in": lambda _: ~c("type").is_in(["a", "b"]),
    "text in none": lambda _: c("type").is_in(cast("list[str]", [])),
    "text in null": lambda _: c("type").is_in(["a", None]),
    "text in null, equal": lambda _: c("type").is_in(["a", None], nulls_equal=True),
    "text that no bytes are shown as": lambda _: c("type") == "é\\",
    "text of bytes": lambda _: c("type") == "\\xff\x00\\x5c",
    "empty text": lambda _: c("type") == "",
    "texts ordered": lambda _: c("type") > "a",
    "text begins": lambda _: c("type").str.starts_with("\\xff"),
    "text matches": lambda _: c("type").str.contains("^(a|b)$"),
    "text, missing": lambda _: c("type").eq_missing("a"),
    "text, not missing": lambda _: c("type").ne_missing(None),
    "text as bytes": lambda _: c("type").cast(pl.Binary) == b"a",
    "text of another column": lambda _: c("type") == c("file"),
    "null": lambda _: c("type").is_null(),
    "not null": lambda _: c("type").is_not_null(),
    "compared with null": lambda _: c("type") == pl.lit(None, pl.String),
    "or": lambda _: (c("type") == "a") | (c("timestamp") < MIDDLE),
    "and": lambda _: (c("type") == "a") & (c("timestamp") < MIDDLE),
    "and of or": lambda _: ((c("type") == "a") | (c("type") == "b")) & (c("timestamp") >= MIDDLE),
    "not and": lambda _: ~((c("type") == "a") & (c("timestamp") < MIDDLE)),
    "either": lambda _: (c("type") == "a") ^ (c("timestamp") < MIDDLE),
    "all": lambda _: pl.all_horizontal(c("type") == "a", c("timestamp") < MIDDLE),
    "contradiction": lambda _: (c("timestamp") < START) & (c("timestamp") > MIDDLE),
    "a comparison compared": lambda _: (c("type") == "a").is_in([False]),
    "when": lambda _: pl.when(c("type") == "a").then(c("timestamp") > MIDDLE).otherwise(c("timestamp") < MIDDLE),
    "path": lambda _: c("file").str.ends_with("1.active"),
    "path, equal": lambda _: c("file") == "a",
    "value": lambda _: c("value") == b"5",
    "uuid": lambda uuid: c("uuid") == uuid,
    "uuid, not": lambda uuid: c("uuid") != uuid,
    "uuids after": lambda uuid: c("uuid") > uuid,
    "uuid that is none": lambda uuid: c("uuid") < uuid[:5],
    "whole column": lambda _: c("timestamp") > c("timestamp").mean(),
    "rows before": lambda _: c("timestamp").shift(1) < MIDDLE,
    "always": lambda _: pl.lit(value=True),
    "never": lambda _: pl.lit(value=False),
}

QUERIES: dict[str, Callable[[pl.LazyFrame, pl.Expr], pl.LazyFrame]] = {
    "all": lambda frame, predicate: frame.filter(predicate),
    "limit before": lambda frame, predicate: frame.head(60).filter(predicate),
    "limit behind": lambda frame, predicate: frame.filter(predicate).head(7),
    "limits around": lambda frame, predicate: frame.head(60).filter(predicate).head(5),
    "slice before": lambda frame, predicate: frame.slice(20, 30).filter(predicate),
    "last": lambda frame, predicate: frame.filter(predicate).tail(3),
    "other columns": lambda frame, predicate: frame.filter(predicate).select("value", "timestamp"),
    "how many": lambda frame, predicate: frame.filter(predicate).select(pl.len()),
    "two": lambda frame, predicate: frame.filter(predicate).filter(c("timestamp") < MIDDLE),
    "grouped": lambda frame, predicate: frame.filter(predicate).group_by("type").len().sort("type"),
}


@pytest.mark.parametrize("uuid_type", ["uuid", "string"])
@pytest.mark.parametrize("named", PREDICATES)
def test_answers_are_those_of_rows_in_memory(folder: Path, named: str, uuid_type: Any) -> None:
    scan = seglake.scan(folder, include_file_paths="file", uuid_type=uuid_type)
    lazy, eager = scan.to_polars(), pl.DataFrame(scan)
    assert lazy.collect_schema() == eager.schema
    predicate = PREDICATES[named](eager["uuid"][60])
    for query in QUERIES.values():
        assert query(lazy, predicate).collect().equals(query(eager.lazy(), predicate).collect())


def test_nulls(vectors: Path) -> None:
    scan = seglake.scan(vectors / "oplog" / "typical.bin", format="oplog")
    lazy, eager = scan.to_polars(), pl.DataFrame(scan)
    assert any(eager[name].null_count() for name in eager.columns)
    for name, kind in eager.schema.items():
        numbers: list[pl.Expr] = [c(name) != 1, c(name) < 5, c(name).is_in([0, 1]), c(name) > 2**70, c(name) >= -1]
        for predicate in (c(name).is_null(), c(name).is_not_null(), *(numbers if kind.is_integer() else [])):
            assert lazy.filter(predicate).collect().equals(eager.filter(predicate)), predicate
            assert lazy.filter(~predicate).collect().equals(eager.filter(~predicate)), predicate


def test_a_column_of_paths_with_the_name_of_one_that_is_not_read(folder: Path) -> None:
    lazy = seglake.scan(folder, columns=["uuid"], include_file_paths="type").to_polars()
    path = str(folder / "1.active")
    assert lazy.filter(c("type") == path).select(pl.len()).collect().item() == ROWS
    assert lazy.filter(c("type") != "a").select(pl.len()).collect().item() == FILES * ROWS


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        (c("type").is_in(["a", "b"]), [("type", "in", ["a", "b"])]),
        (c("number").is_in([1, 2]), [("number", "in", [1, 2])]),
        (c("number").is_in([1, None]), []),
        (c("number").is_in([1.5]), []),
        (c("value").is_in([b"a"]), []),
        (c("number").is_between(1, 5), [("number", ">=", 1), ("number", "<=", 5)]),
        (c("number").is_between(1, 5, closed="left"), [("number", ">=", 1), ("number", "<", 5)]),
        (c("number") != 5, [("number", "!=", 5)]),
        (c("number") > 5.5, []),
        (c("uuid") == UUID(int=5).bytes, [("uuid", "==", UUID(int=5))]),
        (c("uuid") >= str(UUID(int=5)), [("uuid", ">=", UUID(int=5))]),
        (c("uuid") >= str(UUID(int=10)).upper(), []),
        (c("uuid") >= "1ee", []),
        (c("number").cast(pl.Int8) > 5, []),
        (~c("number").is_between(1, 5), []),
    ],
)
def test_conditions(predicate: pl.Expr, found: list[object]) -> None:
    assert conditions(predicate, {"number": "int64", "type": "text", "uuid": "uuid", "value": "binary"}) == found


def test_what_a_query_does_not_need_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, Any]] = []
    batches = Scan.batches

    def noted(scan: Scan) -> Any:
        asked.append((sorted(scan.arguments["columns"]), scan.arguments["filters"]))
        return batches(scan)

    monkeypatch.setattr(Scan, "batches", noted)
    lazy = seglake.scan(folder, filters=[("type", "!=", "b")], include_file_paths="file").to_polars()
    lazy.filter(c("type") == "a").select("value").collect()
    assert asked == [(["type", "value"], [("type", "!=", "b"), ("type", "==", "a")])]
    asked.clear()
    lazy.head(5).filter(c("type") == "a").select("value").collect()
    assert asked == [(["type", "value"], [("type", "!=", "b")])]  # the limit counts other types, too
    asked.clear()
    assert lazy.select(pl.len()).collect().item() == sum(TYPES[n % 4] != "b" for n in range(ROWS)) * FILES
    assert len(asked[0][0]) == 1  # one that polars chooses


def test_damage_is_an_error_or_skipped(folder: Path, tmp_path: Path) -> None:
    content = bytearray((folder / "0.active").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "a.active").write_bytes(content)
    with pytest.raises((seglake.DamageError, pl.exceptions.ComputeError), match=r"a\.active"):
        seglake.scan(tmp_path).to_polars().collect()
    with pytest.warns(seglake.exceptions.DamageWarning):
        assert seglake.scan(tmp_path, on_damage="skip").to_polars().collect().height == ROWS - 1
