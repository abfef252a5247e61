"""`seglake.export` and `seglake export`: segments as files of other kinds."""

import base64
import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from cli_process import Finished, here

import seglake

START = datetime(2024, 1, 10, tzinfo=UTC)
parquet = cast("Any", pq)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    for file in range(3):
        with seglake.create(folder / f"{file}.chunks", format="chunked", options={"chunk_records": 50}) as writer:
            for number in range(200 * file, 200 * file + 200):
                writer.write(offset=number, timestamp=START + timedelta(seconds=number), value=b'\xff"\\\n%d,' % number)
    return folder


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_parquet(logs: Path, tmp_path: Path) -> None:
    scan = seglake.scan(logs, include_file_paths="file")
    told: list[tuple[int, int]] = []
    new = tmp_path / "all.parquet"
    exported = seglake.export(scan, new, row_group_size=150, progress=lambda done, total: told.append((done, total)))
    assert exported == (600, 0, 0, ())
    assert parquet.read_table(new) == scan.to_table()
    found = parquet.ParquetFile(new)
    assert [found.metadata.row_group(n).num_rows for n in range(found.num_row_groups)] == [150] * 4
    assert found.metadata.row_group(1).column(0).statistics.min == 150
    assert duckdb.sql(f"SELECT count(*) FROM '{new}' WHERE \"offset\" >= 450").fetchall() == [(150,)]
    assert told[0] == (0, sum(file.nbytes for file in scan.files()))
    assert told[-1] == (told[0][1], told[0][1])
    with pytest.raises(FileExistsError):
        seglake.export(scan, new)
    assert seglake.export(scan.filter([("offset", "<", 3)]), new, if_exists="overwrite").records == 3
    assert parquet.read_table(new).num_rows == 3


def test_arrow_as_file_and_as_stream(logs: Path, tmp_path: Path) -> None:
    scan = seglake.scan(logs)
    seglake.export(scan, tmp_path / "all.arrow")
    assert ipc.open_file(str(tmp_path / "all.arrow")).read_all() == scan.to_table()
    stream = io.BytesIO()
    seglake.export(scan, stream, to="arrow", compression="none")
    assert ipc.open_stream(stream.getvalue()).read_all() == scan.to_table()


def of_row(row: dict[str, str]) -> bytes:
    """The value of a row of CSV with values as text."""
    return base64.b64decode(row["value_base64"]) if row["value_base64"] else row["value"].encode()


def test_csv_tells_null_from_empty_and_loses_no_byte(tmp_path: Path) -> None:
    values = [b"", b'"quoted", \\x5c \\', b"\xff\x00\n", "é".encode()]
    path = tmp_path / "a.active"
    with seglake.create(path, format="active") as writer:
        uuids = [writer.write(type="t", value=value) for value in values]
    new = tmp_path / "all.csv"
    scan = seglake.scan(path)
    assert seglake.export(scan, new).records == len(values)
    text = new.read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["uuid"] for row in rows] == [str(uuid) for uuid in uuids]
    assert [of_row(row) for row in rows] == values
    seglake.export(scan.select(["value", "cause"]), new, if_exists="overwrite")
    assert new.read_text(encoding="utf-8").splitlines()[:2] == ['"value","value_base64","cause"', '"",,']
    assert datetime.fromisoformat(rows[0]["timestamp"]) == next(iter(seglake.open(path))).timestamp


VALUES = [b'{"city": "M\\u00fcnchen", "n": 12345678901234567890.10}', '["ü"]'.encode(), b"plain \\xff", b"\xff", b""]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.active"
    with seglake.create(path, format="active") as writer:
        for value in VALUES:
            writer.write(type=b"a\\b\xff", value=value)
    return path


@pytest.mark.parametrize("form", [None, "text", "json", "base64", "hex"])
def test_values_in_csv(texts: Path, tmp_path: Path, form: str | None) -> None:
    new = tmp_path / "all.csv"
    arguments = () if form is None else ("--value", form)
    assert here("export", texts, "--columns", "type,value", new, *arguments).status == 0
    rows = list(csv.DictReader(io.StringIO(new.read_text(encoding="utf-8"), newline="")))
    assert {row["type"] for row in rows} == {"a\\x5cb\\xff"}
    if form in ("base64", "hex"):
        decode = bytes.fromhex if form == "hex" else base64.b64decode
        assert [decode(row["value"]) for row in rows] == VALUES
        assert rows[0].keys() == {"type", "value"}
        return
    assert [of_row(row) for row in rows] == VALUES
    assert json.loads(rows[0]["value"])["city"] == "München"
    as_they_are = [True, True, form != "json", False]
    assert [row["value"] != "" for row in rows[:4]] == as_they_are


@pytest.mark.parametrize("form", ["text", "json", "base64", "hex"])
def test_values_in_json_lines_are_as_cat_shows_them(texts: Path, tmp_path: Path, form: str) -> None:
    new = tmp_path / "all.jsonl"
    assert here("export", texts, "--columns", "type,value", "--value", form, new).status == 0
    shown = here("cat", "--json", "--columns", "type,value", "--value", form, texts).out
    assert new.read_text(encoding="ascii") == shown
    assert here("export", texts, "--columns", "type,value", "--value", form, "-").out == shown


@pytest.mark.parametrize("format", ["active", "sealed", "tenant", "chunked", "oplog", "tfrecord"])
def test_json_lines_of_every_format(vectors: Path, tmp_path: Path, format: str) -> None:
    path = vectors / format / "typical.bin"
    new = tmp_path / "all.jsonl"
    seglake.export(seglake.scan(path, format=format), new)
    for row, record in zip(
        map(json.loads, new.read_text(encoding="ascii").splitlines()), seglake.open(path, format=format), strict=True
    ):
        assert row["value"] == (None if record.value is None else base64.b64encode(record.value).decode())
        if "uuid" in row:
            assert row["uuid"] == str(record.uuid)
        if row.get("clock"):
            assert row["clock"][0]["length"] == record.clock[0]["length"]
    for kind in ("parquet", "csv", "arrow"):
        exported = seglake.export(seglake.scan(path, format=format), tmp_path / f"all.{kind}")
        assert exported.records == row_count(path, format)


def test_wrong_types_are_said(logs: Path, tmp_path: Path) -> None:
    export = cast("Any", seglake.export)
    path = logs / "0.chunks"
    assert export(path, tmp_path / "all.csv").records == export(str(path), tmp_path / "again.csv").records == 200
    for wrong in (seglake.open(path), 5):
        with pytest.raises(TypeError):
            export(wrong, tmp_path / "all.csv")
    scan = seglake.scan(path)
    with pytest.raises(TypeError, match="destination must be a path, a URI or a binary file object, not int"):
        export(scan, 5)
    with pytest.raises(TypeError, match="damage must be a path or a URI, not int"):
        export(scan, tmp_path / "a.csv", damage=5)
    with pytest.raises(TypeError, match="row_group_size must be an int, not str"):
        export(scan, tmp_path / "a.csv", row_group_size="5")
    seglake.export(scan, tmp_path / "a.csv")
    with pytest.raises(FileExistsError, match='if_exists="overwrite" replaces it'):
        seglake.export(scan, tmp_path / "a.csv")


def row_count(path: Path, format: str) -> int:
    with seglake.open(path, format=format) as reader:
        return reader.count_rows()


def test_a_time_that_no_calendar_has(tmp_path: Path) -> None:
    path = tmp_path / "far.chunks"
    with seglake.create(path, format="chunked") as writer:
        writer.write(offset=0, timestamp=2**62, value=b"")
    seglake.export(seglake.scan(path), tmp_path / "far.csv")
    assert f"{2**62} µs since 1970" in (tmp_path / "far.csv").read_text(encoding="utf-8")


def test_damage_stops_or_is_written_beside(logs: Path, tmp_path: Path) -> None:
    damage(logs / "1.chunks")
    [span] = seglake.verify(logs / "1.chunks").damage
    new = tmp_path / "all.parquet"
    with pytest.raises(seglake.DamageError):
        seglake.export(seglake.scan(logs), new)
    assert not [path for path in tmp_path.iterdir() if path != logs]
    with pytest.warns(seglake.exceptions.DamageWarning):
        exported = seglake.export(seglake.scan(logs, on_damage="skip"), new, damage=tmp_path / "damage.parquet")
    assert exported == (550, 1, span.nbytes, ())
    [row] = parquet.read_table(tmp_path / "damage.parquet").to_pylist()
    assert tuple(row.values()) == (str(logs / "1.chunks"), *span)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("all.txt", {}, "all.txt: the extension is none of .parquet"),
        ("all.parquet", {"to": "orc"}, "to is one of parquet, arrow, csv, jsonl, not 'orc'"),
        ("all.parquet", {"row_group_size": 0}, "row_group_size is 0"),
        ("all.parquet", {"damage": "d.csv"}, 'on_damage="skip"'),
        ("logs/0.chunks", {"to": "csv", "if_exists": "overwrite"}, "is among the files that are read"),
        ("all.parquet", {"compression": "nope"}, "nope"),
        ("all.csv", {"value": "utf8"}, "`value` is one of text, json, base64, hex, not 'utf8'"),
        ("all.parquet", {"value": "text"}, "`value` is for csv and jsonl: parquet has values as they are"),
    ],
)
def test_wrong_arguments(logs: Path, tmp_path: Path, name: str, arguments: dict[str, Any], said: str) -> None:
    before = (logs / "0.chunks").read_bytes()
    with pytest.raises((ValueError, OSError), match=said):
        seglake.export(seglake.scan(logs), tmp_path / name, **arguments)
    assert (logs / "0.chunks").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"logs"}


def test_command(logs: Path, tmp_path: Path) -> None:
    new = tmp_path / "all.parquet"
    done = here("export", logs, new, "--include-file-paths", "file", "--glob", "*.chunks", "--glob", "x*")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"{new}: 600 records of 3 files, ")
    assert parquet.read_table(new).column_names == ["offset", "timestamp", "value", "file"]
    again = here("export", logs, new)
    assert (again.status, again.out) == (2, "")
    assert "exists already: nothing was written\n  next      --overwrite replaces it" in again.err
    done = here("export", "--json", logs, new, "--overwrite", "--where", "offset >= 590", "--end-offset", "595")
    assert done.json_lines() == [
        {
            "path": str(new),
            "files": 3,
            "unread": [],
            "records": 5,
            "damaged_ranges": 0,
            "damaged_bytes": 0,
            "wrong_key": [],
        }
    ]


def test_command_to_standard_output(logs: Path) -> None:
    done = here("export", logs / "0.chunks", "-", "--columns", "offset", "--end-offset", "2")
    assert done.out == '{"offset": 0}\n{"offset": 1}\n'


def test_command_with_damage(logs: Path, tmp_path: Path) -> None:
    damage(logs / "1.chunks")
    new = tmp_path / "all.csv"
    done = here("export", logs, new)
    assert done.status == 1
    assert "1.chunks: damaged" in done.err
    assert not new.exists()
    done = here("export", logs, new, "--on-damage", "skip", "--damage", tmp_path / "damage.csv")
    assert done.status == 1
    assert "skipped 1 damaged range, " in done.err
    assert len(new.read_text().splitlines()) == 551
    assert (tmp_path / "damage.csv").read_text().splitlines()[0] == '"path","start","end","kind","cause"'


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing", "a.csv"], "nothing: there is no such file or folder"),
        (["logs", "a.txt"], "a.txt: the extension is none of"),
        (["logs", "s3://u:p@bucket/a.csv"], "a password in it"),
        (["logs", "a.csv", "--damage", "d.csv"], "--on-damage skip"),
        (["logs", "a.csv", "--on-damage", "skip", "--damage", "a.csv"], "is to be written twice"),
        (["-", "a.csv"], "standard input"),
        (["logs", "a.csv", "--columns", "nope"], 'no column "nope"'),
        (["logs", "a.csv", "--where", "nope == 1"], "they have no such column"),
        (["logs", "folder/a.csv"], "folder/a.csv: No such file or directory"),
    ],
)
def test_wrong_commands(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    run: Callable[..., Finished] = here
    done = run("export", *arguments)
    assert done.status == 2
    assert said in done.err
    assert "unexpected" not in done.err
    assert {path.name for path in tmp_path.iterdir()} == {logs.name}


def test_arrow_types_of_uuids(vectors: Path, tmp_path: Path) -> None:
    path = vectors / "active" / "typical.bin"
    types = {"string": pa.string(), "uuid": pa.binary(16), "arrow.uuid": pa.uuid(), "binary": pa.binary()}
    for name, kind in types.items():
        new = tmp_path / f"{name}.arrow"
        assert here("export", path, new, "--uuid-type", name).status == 0
        assert ipc.open_file(str(new)).schema.field("uuid").type == kind
        assert here("export", path, tmp_path / f"{name}.parquet", "--uuid-type", name).status == 0
        if name != "binary":
            assert here("export", path, tmp_path / f"{name}.csv", "--uuid-type", name).status == 0
            first = (tmp_path / f"{name}.csv").read_text(encoding="utf-8").splitlines()[1]
            assert first.startswith(f'"{next(iter(seglake.open(path, format="active"))).uuid}"')
