"""Tables of Delta Lake and Apache Iceberg: a run is in them once, whatever happens to its commit."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.table import Table

from seglake.lake.delta import DeltaLakeTable
from seglake.lake.iceberg import IcebergLakeTable
from seglake.lake.log import DataFile
from seglake.lake.options import IngestOptions
from seglake.lake.parquet import DAMAGE_SCHEMA, FILES_SCHEMA, RUNS_SCHEMA, records_schema
from seglake.lake.table import LakeTable, TableChangedError, lake_schema

SCHEMA = pa.schema(
    [
        pa.field("uuid", pa.string()),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("number", pa.decimal128(20, 0)),
    ]
)
DAY = datetime(2024, 1, 31, tzinfo=UTC)


class Kind:
    """One of the kinds of tables, in a folder of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder / "active"
        self.folder.mkdir(parents=True)
        self.is_delta = name == "delta"
        if not self.is_delta:
            database, warehouse = folder / "catalog.db", folder.as_uri()
            self.catalog = SqlCatalog("seglake", uri=f"sqlite:///{database}", warehouse=warehouse)

    def table(self) -> LakeTable:
        if self.is_delta:
            return DeltaLakeTable(str(self.folder), {"date": pa.date32()})
        return IcebergLakeTable(self.catalog, ("lake", "active"), self.folder.as_uri())

    def file(self, name: str, rows: int, *, dated: bool = True) -> DataFile:
        partition = DAY.date().isoformat() if dated else None
        path = f"date={partition or '__HIVE_DEFAULT_PARTITION__'}/{name}.parquet"
        (self.folder / path).parent.mkdir(exist_ok=True)
        columns = [
            [f"{name}-{row}" for row in range(rows)],
            [DAY if dated else None] * rows,
            [Decimal(2**64 - 1)] * rows,
        ]
        pq.write_table(pa.Table.from_arrays(columns, schema=SCHEMA), self.folder / path)
        status = (self.folder / path).stat()
        return DataFile(f"active/{path}", status.st_size, rows, int(status.st_mtime * 1000), {"date": partition})

    def uuids(self) -> list[str]:
        if self.is_delta:
            rows = DeltaTable(str(self.folder)).to_pyarrow_table(columns=["uuid"])
        else:
            rows = self.catalog.load_table(("lake", "active")).scan(selected_fields=("uuid",)).to_arrow()
        return sorted(rows.column("uuid").to_pylist())


@pytest.fixture(params=["delta", "iceberg"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    return Kind(request.param, tmp_path)


def test_a_table_that_is_not_there_has_nothing(kind: Kind) -> None:
    table = kind.table()
    assert (table.committed(), table.files_with("a")) == (0, [])


def test_a_run_is_appended_once(kind: Kind) -> None:
    table = kind.table()
    files = [kind.file("one", 3), kind.file("two", 2, dated=False)]
    for _ in range(3):
        table.append(1, SCHEMA, files)
    table.append(2, SCHEMA, [kind.file("three", 1)])
    kind.table().append(2, SCHEMA, [kind.file("three", 1)])
    assert kind.table().committed() == 2
    assert kind.uuids() == ["one-0", "one-1", "one-2", "three-0", "two-0", "two-1"]


def test_a_run_without_files_makes_the_table(kind: Kind) -> None:
    kind.table().append(1, SCHEMA, [])
    assert kind.table().committed() == 1
    assert kind.uuids() == []


def test_other_engines_read_it(kind: Kind) -> None:
    kind.table().append(1, SCHEMA, [kind.file("one", 3), kind.file("two", 2, dated=False)])
    if kind.is_delta:
        frame = pl.read_delta(str(kind.folder))
        assert sorted(set(frame["date"].to_list()), key=str) == [date(2024, 1, 31), None]
        frame = frame.drop("date")
    else:
        frame = cast("pl.DataFrame", pl.scan_iceberg(kind.catalog.load_table("lake.active")).collect())
    assert frame["number"].to_list() == [Decimal(2**64 - 1)] * 5
    assert frame["timestamp"].null_count() == 2
    rows: Any = duckdb.from_arrow(frame.to_arrow()).aggregate("count(distinct uuid), max(timestamp)")
    assert rows.fetchall() == [(5, DAY)]


def commit_of(kind: Kind) -> tuple[Any, str]:
    return (DeltaTable, "create_write_transaction") if kind.is_delta else (Table, "_do_commit")


def interrupted(kind: Kind, monkeypatch: pytest.MonkeyPatch, then: Callable[[Callable[[], Any]], Any]) -> list[int]:
    """Has each commit go through `then`, which is given what commits; returns a list that grows with each."""
    owner, name = commit_of(kind)
    commit, calls = getattr(owner, name), list[int]()

    def replaced(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        return then(lambda: commit(*arguments, **named))

    monkeypatch.setattr(owner, name, replaced)
    return calls


def test_a_commit_whose_answer_is_lost_is_looked_at_again(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    kind.table().append(1, SCHEMA, [])
    lost = DeltaError("timed out") if kind.is_delta else CommitStateUnknownException("timed out")

    def committed_unheard(commit: Callable[[], Any]) -> None:
        commit()
        raise lost

    calls = interrupted(kind, monkeypatch, committed_unheard)
    kind.table().append(2, SCHEMA, [kind.file("one", 3)])
    assert len(calls) == 1
    assert kind.uuids() == ["one-0", "one-1", "one-2"]


def test_a_commit_that_failed_is_an_error(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    kind.table().append(1, SCHEMA, [])
    failed = DeltaError("no room") if kind.is_delta else CommitStateUnknownException("no room")

    def never(_: Callable[[], Any]) -> None:
        raise failed

    interrupted(kind, monkeypatch, never)
    with pytest.raises(OSError, match="the table cannot be written: no room"):
        kind.table().append(2, SCHEMA, [kind.file("one", 3)])
    assert kind.table().committed() == 1
    monkeypatch.undo()
    kind.table().append(2, SCHEMA, [kind.file("one", 3)])
    assert kind.uuids() == ["one-0", "one-1", "one-2"]


def test_changes_of_others_are_committed_upon(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else appends between the look at the table and the commit."""
    kind.table().append(1, SCHEMA, [])
    foreign, mine = kind.file("foreign", 1), kind.file("mine", 1)
    pending = [foreign]

    def late(commit: Callable[[], Any]) -> Any:
        if pending:
            file = pending.pop()
            append_foreign(kind, file)
        return commit()

    calls = interrupted(kind, monkeypatch, late)
    kind.table().append(2, SCHEMA, [mine])
    assert len(calls) >= 2  # the first was too late
    assert kind.uuids() == ["foreign-0", "mine-0"]
    assert kind.table().committed() == 2


def test_the_same_run_by_two_at_once_is_in_it_once(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the lock of the destination prevents: even then the run is not there twice."""
    kind.table().append(1, SCHEMA, [])
    file = kind.file("mine", 2)
    waiting = [True]

    def late(commit: Callable[[], Any]) -> Any:
        if waiting and waiting.pop():
            kind.table().append(2, SCHEMA, [file])
        return commit()

    interrupted(kind, monkeypatch, late)
    kind.table().append(2, SCHEMA, [file])
    assert kind.uuids() == ["mine-0", "mine-1"]


def test_a_table_that_others_change_each_time_is_an_error(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    kind.table().append(1, SCHEMA, [])
    conflict = CommitFailedError("conflict") if kind.is_delta else CommitFailedException("conflict")

    def never(_: Callable[[], Any]) -> None:
        raise conflict

    calls = interrupted(kind, monkeypatch, never)
    with pytest.raises(TableChangedError, match="others changed the table each of 10 times"):
        kind.table().append(2, SCHEMA, [kind.file("one", 3)])
    assert len(calls) == 10
    assert kind.table().committed() == 1


def append_foreign(kind: Kind, file: DataFile) -> None:
    if kind.is_delta:
        from deltalake import write_deltalake

        rows = pq.ParquetFile(kind.folder.parent / file.path).read()
        write_deltalake(str(kind.folder), rows.append_column("date", pa.array([DAY.date()])), mode="append")
    else:
        kind.catalog.load_table("lake.active").add_files([f"{kind.folder.parent.as_uri()}/{file.path}"])


@pytest.mark.parametrize(
    ("format", "dialect"),
    [
        ("active", None),
        ("sealed", None),
        ("tenant", None),
        ("chunked", None),
        ("oplog", "draft"),
        ("oplog", "draft-1.1"),
        ("oplog", "autobase"),
    ],
)
def test_tables_take_the_columns_of_all_formats(tmp_path: Path, format: str, dialect: Any) -> None:
    catalog = SqlCatalog("seglake", uri=f"sqlite:///{tmp_path / 'catalog.db'}", warehouse=tmp_path.as_uri())
    schemas = {
        "records": records_schema(format, IngestOptions.of(options={"dialect": dialect})),
        "damage": DAMAGE_SCHEMA,
        "files": FILES_SCHEMA,
        "runs": RUNS_SCHEMA,
    }
    for name, schema in schemas.items():
        delta = DeltaLakeTable(str(tmp_path / "delta" / name))
        iceberg = IcebergLakeTable(catalog, ("lake", format, name), (tmp_path / "iceberg" / name).as_uri())
        for table in (delta, iceberg):
            table.append(1, lake_schema(schema), [])
        found: Any = pa.schema(cast("Any", DeltaTable(str(tmp_path / "delta" / name)).schema().to_arrow()))
        own: Any = catalog.load_table(("lake", format, name)).schema().as_arrow()
        assert found.names == own.names == schema.names
        assert "uint64" not in f"{found} {own}"
