"""An ingest into tables of Delta Lake and Apache Iceberg: the rows of plain Parquet, once, whatever is killed."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import quote

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from cli_process import seglake as command
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from segments import flip, write_segment
from sqlalchemy.exc import IntegrityError

import seglake
from seglake.exceptions import IngestError
from seglake.lake import iceberg
from seglake.write import durable

VECTORS = Path(__file__).parents[1] / "vectors"
KINDS: Any = ["delta", "iceberg"]


def age(folder: Path) -> None:
    """Makes files so old that their times say something."""
    for path in folder.rglob("*"):
        os.utime(path, (10**9, 10**9))


def rows(lake: Path, kind: Any, table: str) -> Counter[str]:
    """The rows of a table, whatever keeps track of its files, but for the names of the files."""
    if kind == "parquet":
        files = [str(path) for path in (lake / table).rglob("*.parquet")]
        read = ds.dataset(files).to_table()
    elif kind == "delta":
        read = DeltaTable(str(lake / table)).to_pyarrow_table()
        read = read.drop_columns([name for name in ("date",) if name in read.column_names])
    else:
        uri = f"sqlite:///{quote(str(lake))}/_catalog.db"
        catalog = SqlCatalog("seglake", uri=uri, warehouse=lake.as_uri())
        read = catalog.load_table(("seglake", table)).scan().to_arrow()
    assert "uint64" not in str(read.schema) or kind == "parquet"
    # Those of the run: its name, and whether a file was old enough that its time says something.
    read = read.drop_columns([name for name in ("run", "modified", "started", "seconds") if name in read.column_names])
    # Not as objects of Python, which have no times outside of their calendar.
    for place, name in enumerate(read.column_names):
        if pa.types.is_timestamp(read.schema.field(name).type):
            read = read.set_column(place, name, cast("Any", read.column(name)).cast(pa.int64()))
    return Counter(repr([(name, simple(row[name])) for name in sorted(row)]) for row in read.to_pylist())


def simple(value: Any) -> Any:
    """A number of 64 bits and a decimal alike."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: simple(fields[name]) for name in sorted(fields)}
    if isinstance(value, list):
        return [simple(each) for each in cast("list[Any]", value)]
    return str(value) if not isinstance(value, (bytes, str, type(None))) else value


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    folder.mkdir()
    for format in ("active", "sealed", "tenant", "chunked", "oplog", "tfrecord"):
        for path in sorted((VECTORS / format).glob("*.bin"))[:12]:
            (folder / f"{format}-{path.stem}.{format}").write_bytes(path.read_bytes())
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_the_rows_are_those_of_plain_parquet(source: Path, tmp_path: Path, kind: Any) -> None:
    plain = seglake.ingest(source, tmp_path / "plain")
    kept = seglake.ingest(source, tmp_path / "kept", table=kind)
    assert (kept.statuses, kept.records, kept.damage) == (plain.statuses, plain.records, plain.damage)
    assert len(plain.formats) == 6
    for table in (*plain.formats, "damage", "files", "runs"):
        assert rows(tmp_path / "kept", kind, table) == rows(tmp_path / "plain", "parquet", table), table


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["a lake", "größe+1", "a:b", "50%", "日本"])
def test_a_destination_may_have_any_name(tmp_path: Path, kind: Any, name: str) -> None:
    write_segment(tmp_path / "a.active", 3)
    seglake.ingest(tmp_path / "a.active", tmp_path / name, table=kind)
    write_segment(tmp_path / "b.active", 4)
    seglake.ingest(tmp_path / "b.active", tmp_path / name, table=kind)
    assert sum(rows(tmp_path / name, kind, "active").values()) == 7


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["a%20b", "a#b", "a?b", "a\\b", "a\tb", b"\xff"])
def test_a_name_that_is_read_in_two_ways_is_refused(tmp_path: Path, kind: Any, name: str | bytes) -> None:
    write_segment(tmp_path / "a.active", 3)
    lake = tmp_path / os.fsdecode(name)
    with pytest.raises(IngestError, match=r"which their readers take for something else|expected a path of UTF-8"):
        seglake.ingest(tmp_path / "a.active", lake, table=kind)
    assert not lake.exists()


@pytest.mark.parametrize("made", ["now", "earlier", "by choice"])
def test_manifests_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str) -> None:
    """All of them are read to list the table's files. Others may choose not to merge them."""
    monkeypatch.setattr(iceberg, "_MERGED_MANIFESTS", 4)
    lake = tmp_path / "lake"

    def table() -> Any:
        catalog = SqlCatalog("seglake", uri=f"sqlite:///{lake}/_catalog.db", warehouse=lake.as_uri())
        return catalog.load_table(("seglake", "files"))

    for number in range(10):
        write_segment(tmp_path / f"src/{number}.active", 2)
        age(tmp_path / "src")
        assert seglake.ingest(tmp_path / "src", lake, table="iceberg").records == 2
        if number == 0 and made != "now":
            with table().transaction() as changed:
                if made == "earlier":
                    changed.remove_properties("commit.manifest-merge.enabled", "commit.manifest.min-count-to-merge")
                else:
                    changed.set_properties({"commit.manifest-merge.enabled": "false"})
    manifests = table().current_snapshot().manifests(table().io)
    assert len(manifests) == 10 if made == "by choice" else len(manifests) <= 4
    assert sum(rows(lake, "iceberg", "files").values()) == 10
    assert sum(rows(lake, "iceberg", "active").values()) == 20
    assert seglake.ingest(tmp_path / "src", lake, table="iceberg").records == 0


@pytest.mark.parametrize("kind", KINDS)
def test_runs_add_to_the_tables(tmp_path: Path, kind: Any) -> None:
    lake = tmp_path / "lake"
    write_segment(tmp_path / "src/a.active", 5)
    seglake.ingest(tmp_path / "src/a.active", lake, table=kind)
    written = write_segment(tmp_path / "src/b.active", 7)
    flip(tmp_path / "src/b.active", written[3].end - 9)
    seglake.ingest(tmp_path / "src/b.active", lake, table=kind)
    numbers = {table: sum(rows(lake, kind, table).values()) for table in ("active", "damage", "files")}
    assert numbers == {"active": 11, "damage": 1, "files": 2}


@pytest.mark.parametrize("kind", ["parquet", *KINDS])
def test_all_tables_of_a_destination_are_of_one_kind(tmp_path: Path, kind: Any) -> None:
    write_segment(tmp_path / "src/a.active", 5)
    write_segment(tmp_path / "src/b.active", 5)
    seglake.ingest(tmp_path / "src/a.active", tmp_path / "lake", table=kind)
    for other in {"parquet", *KINDS} - {kind}:
        with pytest.raises(IngestError, match=f"its tables are of the kind {kind}, and {other} is asked for"):
            seglake.ingest(tmp_path / "src/b.active", tmp_path / "lake", table=other)
    assert sum(rows(tmp_path / "lake", kind, "active").values()) == 5


def test_a_run_that_died_is_completed_as_the_kind_that_it_was_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_segment(tmp_path / "a.active", 3)

    def fails(*_: object) -> None:
        raise OSError("no")

    with monkeypatch.context() as patched, pytest.raises(IngestError, match="The next ingest completes it"):
        patched.setattr("seglake.lake.tables._ParquetTables.apply", fails)
        seglake.ingest(tmp_path / "a.active", tmp_path / "lake")
    with pytest.raises(IngestError, match="its tables are of the kind parquet, and delta is asked for"):
        seglake.ingest(tmp_path / "a.active", tmp_path / "lake", table="delta")
    assert seglake.ingest(tmp_path / "a.active", tmp_path / "lake").records == 0
    assert sum(rows(tmp_path / "lake", "parquet", "active").values()) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_oplogs_of_one_dialect_are_in_a_table(tmp_path: Path, kind: Any) -> None:
    folder = tmp_path / "src"
    folder.mkdir()
    for name, path in zip("ab", sorted((VECTORS / "oplog").glob("*.bin")), strict=False):
        (folder / f"{name}.oplog").write_bytes(path.read_bytes())
    seglake.ingest(folder / "a.oplog", tmp_path / "lake", table=kind, format="oplog", options={"dialect": "draft"})
    with pytest.raises(IngestError, match=r"its records have other columns than those of dialect autobase: draft"):
        seglake.ingest(
            folder / "b.oplog", tmp_path / "lake", table=kind, format="oplog", options={"dialect": "autobase"}
        )


# Forks, and dies in front of the n-th step of each fork that changes something that others see.
SCRIPT = """
import os, signal, sys
from dying import print_deaths
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
import seglake
from seglake.write import durable
from seglake.tracking.place import LocalPlace

import seglake.lake.tables, seglake.lake.engine

source, folder, kind, stride = sys.argv[1:5]
calls = fatal = 0

def deadly(owner, name, is_static=False):
    function = getattr(owner, name)

    def call(*arguments, **named):
        global calls
        calls += 1
        if calls == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)

    setattr(owner, name, staticmethod(call) if is_static else call)

deadly(LocalPlace, "put_new")
deadly(LocalPlace, "put")
deadly(LocalPlace, "remove")
deadly(durable, "rename")
deadly(durable, "rename_new")
deadly(seglake.lake.tables.shutil, "rmtree")
deadly(DeltaTable, "create", True)
deadly(DeltaTable, "create_write_transaction")
deadly(SqlCatalog, "create_table")
deadly(Table, "_do_commit")

def ingest(step):
    global fatal
    fatal = step
    seglake.ingest(source, f"{folder}/lake-{step}", table=kind)

print_deaths(ingest, 100, int(stride))
"""


@pytest.mark.parametrize("kind", ["parquet", *KINDS])
def test_killed_in_front_of_any_step_it_is_completed(tmp_path: Path, kind: Any, stride: int) -> None:
    source = tmp_path / "src"
    written = write_segment(source / "a.active", 6)
    flip(source / "a.active", written[3].end - 9)
    more = tmp_path / "more/b.active"
    write_segment(more, 4)
    # A file that was modified just now gets another row as soon as its time says something.
    for path in (source / "a.active", more):
        os.utime(path, (10**9, 10**9))
    script = [sys.executable, "-c", SCRIPT, str(source), str(tmp_path), kind, str(stride)]
    done = subprocess.run(script, check=False, capture_output=True, text=True, cwd=Path(__file__).parent)
    statuses = [int(line) for line in done.stdout.split()]
    # Without a step of this number it ends.
    assert statuses == [-signal.SIGKILL] * (len(statuses) - 1) + [0], done.stderr
    steps = range(1, len(statuses) * stride + 1, stride)
    assert steps[-1] > 8
    expected = None
    for fatal in reversed(steps):
        lake = tmp_path / f"lake-{fatal}"
        # The next run completes it, or reads it anew where nothing of it was certain.
        is_certain = (lake / "_log/00000000000000000001.json").exists()
        seglake.ingest([more] if is_certain else [source, more], lake, table=kind)
        found = {table: rows(lake, kind, table) for table in ("active", "damage", "files")}
        expected = expected or found
        assert found == expected, fatal
        assert seglake.ingest([source, more], lake, table=kind).run_id is None


@pytest.mark.parametrize("kind", KINDS)
def test_on_the_command_line(tmp_path: Path, kind: str) -> None:
    write_segment(tmp_path / "src/a.active", 5)
    done = command("ingest", tmp_path / "src", tmp_path / "lake", "--table", kind, "--json")
    assert (done.status, json.loads(done.out)["records"], done.err) == (0, 5, "")
    assert sum(rows(tmp_path / "lake", kind, "active").values()) == 5


def test_a_catalog_of_ones_own(tmp_path: Path) -> None:
    write_segment(tmp_path / "src/a.active", 5)
    database = f"sqlite:///{tmp_path / 'own.db'}"
    given = {"uri": database, "namespace": "logs.raw"}
    seglake.ingest(tmp_path / "src", tmp_path / "lake", table="iceberg", catalog=given)
    catalog = SqlCatalog("seglake", uri=database)
    assert catalog.load_table(("logs", "raw", "active")).scan().to_arrow().num_rows == 5
    assert not (tmp_path / "lake/_catalog.db").exists()


@pytest.mark.parametrize(
    ("catalog", "said"),
    [
        (
            "sqlite:////nowhere/at/all.db",
            r"^sqlite:////nowhere/at/all\.db: the catalog cannot be opened: .*unable to open database file\. "
            r"Name the URI of an SQL database that can be reached with `catalog`$",
        ),
        (
            "mysql+oursql://me:hidden@host/db?password=hidden",
            r"^mysql\+oursql://me:\*\*\*@host/db: the catalog cannot be opened: .*",
        ),
        ("no URI, and hidden", r"^Iceberg: the catalog cannot be opened: "),
        (
            {"type": "hive", "uri": "thrift://host:1"},
            r"^thrift://host:1: the catalog .*: pip install \S+$",
        ),
    ],
)
def test_a_catalog_that_does_not_open_is_named(tmp_path: Path, catalog: Any, said: str) -> None:
    write_segment(tmp_path / "a.active", 1)
    with pytest.raises(IngestError, match=said) as raised:
        seglake.ingest(tmp_path / "a.active", tmp_path / "lake", table="iceberg", catalog=catalog)
    assert "hidden" not in str(raised.value)


def test_destinations_do_not_share_a_table_of_a_catalog(tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 3)
    write_segment(tmp_path / "b.active", 4)
    catalog = f"sqlite:///{tmp_path}/shared.db"
    seglake.ingest(tmp_path / "a.active", tmp_path / "one", table="iceberg", catalog=catalog)
    with pytest.raises(IngestError, match=r"two/active: expected its table seglake\.active .*/one/active\."):
        seglake.ingest(tmp_path / "b.active", tmp_path / "two", table="iceberg", catalog=catalog)
    own = {"uri": catalog, "namespace": "two"}
    assert seglake.ingest(tmp_path / "b.active", tmp_path / "two", table="iceberg", catalog=own).records == 4
    table = SqlCatalog("seglake", uri=catalog).load_table(("seglake", "active"))
    assert len(table.scan().to_arrow()) == 3


@pytest.mark.parametrize("kind", ["parquet", *KINDS])
def test_a_lake_whose_log_is_gone_is_not_begun_anew(tmp_path: Path, kind: Any) -> None:
    lake = tmp_path / "lake"
    write_segment(tmp_path / "a.active", 3)
    seglake.ingest(tmp_path / "a.active", lake, table=kind)
    (lake / "_log").rename(tmp_path / "log")
    with pytest.raises(IngestError, match=r"expected no table, as there is no log of a lake"):
        seglake.ingest(tmp_path / "a.active", lake, table=kind)
    (tmp_path / "log").rename(lake / "_log")
    assert seglake.ingest(tmp_path / "a.active", lake, table=kind).records == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": "csv"}, "table is one of parquet, delta, iceberg, not 'csv'"),
        ({"table": "delta", "catalog": "sqlite:///x"}, "`catalog` is for tables of Iceberg, and `table` is delta"),
    ],
)
def test_wrong_arguments(tmp_path: Path, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        seglake.ingest(tmp_path, tmp_path / "lake", **arguments)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = __import__("importlib.util").util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "deltalake" else find_spec(name))
    with pytest.raises(IngestError, match=r"the ingest needs deltalake: pip install .seglake.delta"):
        seglake.ingest(tmp_path, tmp_path / "lake", table="delta")


def test_a_namespace_that_another_run_makes_meanwhile_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = SqlCatalog.create_namespace

    def late(self: SqlCatalog, namespace: Any, properties: Any = MappingProxyType({})) -> None:
        create(self, namespace, properties)
        raise IntegrityError("INSERT", None, Exception("UNIQUE constraint failed"))

    monkeypatch.setattr(SqlCatalog, "create_namespace", late)
    write_segment(tmp_path / "a.active", 4)
    assert seglake.ingest(tmp_path / "a.active", tmp_path / "lake", table="iceberg").records == 4


def test_what_another_run_removes_meanwhile_need_not_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync, gone = durable.sync_file, list[str]()

    def removed(path: Any) -> None:
        if "metadata/snap-" in str(path):
            gone.append(str(path))
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        sync(path)

    monkeypatch.setattr(durable, "sync_file", removed)
    write_segment(tmp_path / "a.active", 4)
    assert seglake.ingest(tmp_path / "a.active", tmp_path / "lake", table="iceberg").records == 4
    assert gone
