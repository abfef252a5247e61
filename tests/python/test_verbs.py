"""Readers, scans and logs are read by the same verbs, and are tables for pyarrow and polars."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import seglake

ROWS = [("order.created", b"1"), ("order.paid", b"2"), ("order.shipped", b"\xff3")]
PAID: list[tuple[str, str, Any]] = [("type", "==", "order.paid")]
COLUMNS = ["uuid", "timestamp", "type", "value"]
KINDS = ["reader", "scan", "log"]


@pytest.fixture
def things(tmp_path: Path) -> dict[str, Any]:
    with seglake.SegmentLog(tmp_path / "log") as log:
        uuids = log.write_batch(ROWS[:2])
        log.roll()
        uuids = [*uuids, *log.write_batch(ROWS[2:])]
    with seglake.create(tmp_path / "orders.active", format="active") as writer:
        for uuid, (kind, value) in zip(uuids, ROWS, strict=True):
            writer.write(uuid=uuid, type=kind, value=value)
    return {
        "reader": seglake.open(tmp_path / "orders.active"),
        "scan": seglake.scan(tmp_path / "log"),
        "log": seglake.SegmentLog(tmp_path / "log", readonly=True),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_verbs(things: dict[str, Any], kind: str) -> None:
    thing = things[kind]
    table = thing.to_table()
    assert table.column_names == COLUMNS
    assert table.column("type").to_pylist() == [kind for kind, _ in ROWS]
    assert pa.table(thing) == table
    assert pa.table(thing.batches()) == table
    assert [record.value for record in thing] == [value for _, value in ROWS]
    assert thing.count_rows() == 3
    assert thing.head() == table
    assert thing.head(2) == table.slice(0, 2)
    assert thing.head(0) == table.schema.empty_table()
    with pytest.raises(ValueError, match="rows is -1: it is at least 0"):
        thing.head(-1)
    frame = thing.to_pandas()
    assert list(frame.columns) == COLUMNS
    assert frame.equals(table.to_pandas())
    polars = thing.to_polars()
    assert isinstance(polars, pl.LazyFrame if kind == "scan" else pl.DataFrame)
    expected = pl.DataFrame(table)
    assert polars.lazy().collect().equals(expected)
    assert pl.DataFrame(thing).equals(expected)
    assert pl.DataFrame(thing.batches()).equals(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_a_stream_of_what_is_left(things: dict[str, Any], kind: str) -> None:
    batches = things[kind].batches()
    assert batches.schema.names == COLUMNS
    assert pa.schema(batches).names == COLUMNS
    rows = next(batches).num_rows
    assert pa.table(batches).num_rows == 3 - rows
    assert pa.table(batches).num_rows == 0
    assert next(batches, None) is None


def test_what_a_log_takes_for_each_call(things: dict[str, Any]) -> None:
    log = things["log"]
    whole = log.to_table()
    assert log.to_table(columns=["type", "value"], filters=PAID) == whole.select(["type", "value"]).slice(1, 1)
    assert log.to_table(columns=["uuid"], uuid_type="string")["uuid"].to_pylist() == [str(own.uuid) for own in log]
    assert log.to_pandas(columns=["value"], filters=PAID)["value"].to_list() == [b"2"]
    assert log.to_polars(columns=["value"], filters=PAID)["value"].to_list() == [b"2"]
    assert log.head(1, columns=["type"])["type"].to_pylist() == ["order.created"]
    assert log.head(1, filters=PAID)["value"].to_pylist() == [b"2"]
    assert (log.count_rows(PAID), log.count_rows(filters=[("type", "==", "none")])) == (1, 0)
    for verb in (log.to_table, log.to_pandas, log.to_polars, log.head, log.batches):
        with pytest.raises(ValueError, match="offset"):
            verb(columns=["offset"])
        with pytest.raises(TypeError, match="columns must be a list of names"):
            verb(columns="type")
        with pytest.raises(ValueError, match="on_damage"):
            verb(on_damage="stop")
    log.close()
    for verb in (log.to_table, log.to_pandas, log.to_polars, log.head, log.count_rows):
        with pytest.raises(ValueError, match="the log is closed"):
            verb()


def test_many_records_of_a_log(things: dict[str, Any]) -> None:
    log = things["log"]
    records = list(log)
    first, second, third = (record.uuid for record in records)
    other = seglake.uuid6()
    assert log.get_many([third, other, str(first), second.bytes, third]) == [
        records[2], None, records[0], records[1], records[2],
    ]  # fmt: skip
    assert log.get_many([]) == []
    assert log.get_many(uuid for uuid in (second,)) == [records[1]]
    with pytest.raises(ValueError, match="UUID"):
        log.get_many(["no UUID"])
    with pytest.raises(TypeError):
        log.get_many(5)
    log.close()
    with pytest.raises(ValueError, match="the log is closed"):
        log.get_many([first])


def test_damage_in_every_verb(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with seglake.SegmentLog(path) as log:
        for number in range(3):
            log.write("t", b"%d" % number)
    (segment,) = path.glob("*.active")
    content = bytearray(segment.read_bytes())
    second = [record.position for record in seglake.open(segment)][1]
    content[second] ^= 1
    segment.write_bytes(content)
    log = seglake.SegmentLog(path, readonly=True)
    for verb in (log.to_table, log.to_pandas, log.to_polars, log.head, log.count_rows):
        with pytest.raises(seglake.DamageError):
            verb()
        with pytest.warns(seglake.exceptions.DamageWarning):
            found = verb(on_damage="skip")
        assert (found if isinstance(found, int) else len(found)) == 2


def test_a_scan_names_files_in_batches_and_by_file(tmp_path: Path) -> None:
    for name in "ab":
        with seglake.create(tmp_path / f"{name}.active", format="active") as writer:
            writer.write(type=name, value=b"")
    scan = seglake.scan(tmp_path, include_file_paths="file")
    assert [record.type for record in scan] == ["a", "b"]
    assert [pa.record_batch(batch).column("file").to_pylist() for batch in scan.batches()] == [
        [str(tmp_path / "a.active")],
        [str(tmp_path / "b.active")],
    ]
    assert [(Path(path).name, batch.num_rows) for path, batch in scan.batches_by_file()] == [
        ("a.active", 1),
        ("b.active", 1),
    ]
    batches = scan.batches()
    next(batches)
    batches.close()
    assert list(batches) == []


def test_renamed_batches_are_of_the_same_types(tmp_path: Path) -> None:
    path = tmp_path / "a.active"
    with seglake.create(path, format="active") as writer:
        writer.write(type="t", value=b"")
    reader = seglake.open(path, columns=["type"])
    (batch,) = reader.batches()
    assert pa.record_batch(batch.renamed(reader.schema.renamed("type", "kind"))).schema.names == ["kind"]
    for columns in (["value"], ["type", "value"]):
        with pytest.raises(ValueError, match="Arrow"):
            batch.renamed(seglake.open(path, columns=columns).schema)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("package", "verb"), [("pandas", "to_pandas"), ("polars", "to_polars"), ("pyarrow", "head")])
def test_a_package_that_is_not_there(
    things: dict[str, Any], kind: str, package: str, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (kind, verb) == ("scan", "head"):
        verb = "to_table"
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"{verb} needs {package}: pip install {package}"):
        getattr(things[kind], verb)()


@pytest.mark.parametrize("kind", KINDS)
def test_what_would_read_all_or_lose_columns_is_refused_by_name(things: dict[str, Any], kind: str) -> None:
    thing = things[kind]
    with pytest.raises(TypeError, match=rf"a {kind} has no length: count_rows\(\) reads all"):
        len(thing)
    assert thing
    assert len(list(thing)) == 3
    for use in (pd.DataFrame, np.asarray, np.array):
        with pytest.raises(TypeError, match=r"to_pandas\(\) makes a pandas.DataFrame"):
            use(thing)


def test_a_uuid_is_in_a_file_and_in_a_log(things: dict[str, Any]) -> None:
    uuids = [record.uuid for record in things["log"]]
    for thing in (things["reader"], things["log"]):
        assert all(uuid in thing for uuid in uuids)
        assert str(uuids[1]) in thing
        assert uuids[2].bytes in thing
        assert seglake.uuid6() not in thing
        for wrong in ("order.paid", 5, next(iter(thing))):
            with pytest.raises((TypeError, ValueError)):
                assert wrong in thing
    with pytest.raises(TypeError, match="choose records by `filter`"):
        assert uuids[0] in things["scan"]


def test_what_other_formats_find_records_by(tmp_path: Path) -> None:
    with seglake.create(tmp_path / "a.tenant") as writer:
        writer.write(partition=0, tenant="acme", value="1")
    with seglake.create(tmp_path / "a.chunks") as writer:
        writer.write(timestamp=0, value="1")
    tenants, chunks = seglake.open(tmp_path / "a.tenant"), seglake.open(tmp_path / "a.chunks")
    assert (0, "acme", 0) in tenants
    assert (0, "acme", 1) not in tenants
    assert 0 in chunks
    assert 1 not in chunks
    with pytest.raises(TypeError, match="tenant records are found by partition, tenant, index"):
        assert 0 in tenants


def test_a_record_has_its_columns_by_name(things: dict[str, Any]) -> None:
    record = next(iter(things["log"]))
    for name, value in record.to_dict().items():
        assert record[name] == value
    with pytest.raises(KeyError, match="active records have no offset: they have uuid, timestamp, type, value"):
        record["offset"]
    with pytest.raises(TypeError):
        record[0]
    with pytest.raises(TypeError, match="not iterable"):
        iter(record)


def test_a_report_is_true_where_the_file_is_sound(tmp_path: Path) -> None:
    path = tmp_path / "a.active"
    with seglake.create(path) as writer:
        writer.write("t", b"v")
    assert seglake.verify(path)
    path.write_bytes(path.read_bytes()[:-1])
    assert not seglake.verify(path)
