"""`seglake export` where files, disks, names and processes do what they should not."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from cli_process import here

import seglake
from seglake.cli.vocabulary import WRONG_KEY

KINDS = ("parquet", "arrow", "csv", "jsonl")
START = datetime(2024, 1, 10, tzinfo=UTC)
parquet = cast("Any", pq)


def write(path: Path, rows: int = 50, key: bytes | None = None, value: bytes = b"x" * 100) -> Path:
    with seglake.create(path, format="active", key=key) as writer:
        for number in range(rows):
            writer.write(uuid=seglake.uuid6(START + timedelta(seconds=number)), type="t", value=value)
    return path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(3):
        write(folder / f"{number}.active")
    return folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


class _Full(io.RawIOBase):
    """A file on a disk that is full after so many bytes."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        self._room -= len(content)
        if self._room < 0:
            raise OSError(28, os.strerror(28))
        return len(content)


@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_that_is_full(logs: Path, tmp_path: Path, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from seglake.write import new_file

    random = os.urandom(1 << 20)
    write(logs / "large.active", 3, value=random)
    with pytest.raises(OSError, match="No space"):
        seglake.export(seglake.scan(logs), cast("Any", _Full(100_000)), to=kind, compression="none")

    full = new_file._Named.write  # pyright: ignore[reportPrivateUsage]

    def fails(file: Any, content: Any, /) -> int:
        if file.tell() + len(content) > 100_000:
            raise OSError(28, os.strerror(28))
        return full(file, content)

    monkeypatch.setattr(new_file._Named, "write", fails)  # pyright: ignore[reportPrivateUsage]
    done = here("export", logs, tmp_path / f"all.{kind}", "--compression", "none")
    assert (done.status, done.out) == (2, "")
    assert "No space left on device" in done.err
    assert "unexpected" not in done.err
    assert names(tmp_path) == {"logs"}


@pytest.mark.skipif(os.name == "nt", reason="which has no such signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_stopped_midway(logs: Path, tmp_path: Path, kind: str, number: signal.Signals) -> None:
    large = write(logs / "large.active", 100, value=b"x" * 100_000)
    for more in range(10):
        (logs / f"more{more}.active").hardlink_to(large)
    new = tmp_path / f"all.{kind}"
    words = [sys.executable, "-m", "seglake", "export", str(logs), str(new)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while names(tmp_path) == {"logs"} and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == (-number if number == signal.SIGKILL else 130)
    assert not new.exists()
    if number == signal.SIGINT:
        assert err.strip() == "seglake: interrupted"
        assert names(tmp_path) == {"logs"}
    # What is left has a hidden name: it is neither read nor in the way.
    assert all(name.startswith(".") for name in names(tmp_path) - {"logs"})
    done = here("export", logs, new)
    assert done.status == 0
    assert " of 14 files, " in done.out


@pytest.mark.skipif(os.name == "nt", reason="where pipes close in another way")
def test_a_closed_pipe_is_quiet(logs: Path) -> None:
    write(logs / "large.active", 5000)
    words = [sys.executable, "-m", "seglake", "export", str(logs), "-"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"uuid": ')
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 141


def test_the_new_file_in_the_folder_that_is_read(logs: Path) -> None:
    new = logs / "all.parquet"
    assert here("export", logs, new).status == 0
    assert parquet.read_table(new).num_rows == 150
    before = new.read_bytes()
    again = here("export", logs, new, "--overwrite")
    assert again.status == 2
    assert "all.parquet: is among the files that are read: name another one" in again.err
    elsewhere = here("export", logs, logs.parent / "all.csv")
    assert elsewhere.status == 2
    assert "all.parquet: cannot tell the format" in elsewhere.err
    assert here("export", logs, "--glob", "*.active", new, "--overwrite").status == 0
    assert parquet.read_table(io.BytesIO(before)) == parquet.read_table(new)


@pytest.mark.parametrize("link", ["symlink", "hardlink"])
def test_a_file_that_is_read_by_another_name(logs: Path, tmp_path: Path, link: str) -> None:
    source = logs / "1.active"
    before = source.read_bytes()
    other = tmp_path / "other.csv"
    if link == "symlink":
        other.symlink_to(source)
    else:
        other.hardlink_to(source)
    scan = seglake.scan(logs)
    with source.open("ab") as file:  # its size is another than when it was found
        file.write(bytes(100))
    for written in ({"destination": other}, {"destination": tmp_path / "new.csv", "damage": other}):
        with pytest.raises(ValueError, match=r"other\.csv: is among the files that are read"):
            seglake.export(
                seglake.scan(logs, on_damage="skip") if "damage" in written else scan,
                if_exists="overwrite",
                **cast("Any", written),
            )
    assert source.read_bytes() == before + bytes(100)


def test_records_and_damage_in_one_file(logs: Path, tmp_path: Path) -> None:
    scan = seglake.scan(logs, on_damage="skip")
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="is to be written twice"):
        seglake.export(scan, tmp_path / "a.csv", damage=tmp_path / "link" / "a.csv", if_exists="overwrite")
    assert names(tmp_path) == {"logs", "link"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are Unix's")
def test_what_is_no_file_is_not_replaced(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    for name, said in (("folder", "is a folder"), ("pipe", "is a device or a pipe")):
        done = here("export", logs, tmp_path / f"{name}.csv", "--overwrite")
        assert done.status == 2
        assert f"{name}.csv: {said}: name the file to write" in done.err
    assert names(tmp_path) == {"logs", "folder.csv", "pipe.csv"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are Unix's")
def test_what_is_passed_over_is_said(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(logs / "pipe")
    (logs / "loop").symlink_to(logs)
    (logs / "dead.active").symlink_to(tmp_path / "gone.active")
    (logs / "again.active").symlink_to(logs / "0.active")
    monkeypatch.chdir(logs)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        done = here("export", logs, tmp_path / "all.csv")
    assert done.status == 0
    assert " 150 records of 3 files, " in done.out  # each once
    reasons = {
        "pipe": "a named pipe",
        "loop": "a linked folder",
        "dead.active": "a link that leads nowhere",
        "socket": "a socket",
    }
    said = {f"seglake: {logs / name}: passed over: {reason}" for name, reason in reasons.items()}
    assert set(done.err.splitlines()) == said
    assert {(Path(path).name, reason) for path, reason in seglake.scan(logs).passed_over()} == set(reasons.items())


@pytest.mark.parametrize("kind", KINDS)
def test_no_records_at_all(tmp_path: Path, kind: str) -> None:
    (tmp_path / "empty.active").write_bytes(b"")
    new = tmp_path / f"all.{kind}"
    assert here("export", tmp_path / "empty.active", new).status == 0
    columns = ["uuid", "timestamp", "type", "value"]
    if kind == "parquet":
        assert parquet.read_table(new).column_names == columns
        assert duckdb.sql(f"SELECT count(*) FROM '{new}'").fetchall() == [(0,)]
    elif kind == "arrow":
        assert ipc.open_file(str(new)).read_all().column_names == columns
    else:
        assert new.read_text() == ('"uuid","timestamp","type","value","value_base64"\n' if kind == "csv" else "")
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    done = here("export", nothing, tmp_path / f"none.{kind}")
    assert done.status == 2
    assert "no files to read" in done.err


def _gone(path: Path) -> None:
    path.unlink()


def _shorter(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 + 7)


def _other_format(path: Path) -> None:
    path.unlink()
    with seglake.create(path, format="chunked") as writer:
        writer.write(offset=0, timestamp=START, value=b"")


@pytest.mark.parametrize(
    ("change", "said"),
    [(_gone, "No such file"), (_shorter, "9.active"), (_other_format, "9.active: is chunked, while .*0.active is")],
)
def test_a_file_that_changes_midway_is_an_error(
    logs: Path, tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    last = write(logs / "9.active", 5000, value=b"y" * 1000)
    changed: list[bool] = []

    def at_first(done: int, total: int) -> None:
        if not changed:
            change(last)
            changed.append(True)

    with pytest.raises((OSError, seglake.SeglakeError), match=said):
        seglake.export(seglake.scan(logs, threads=1), tmp_path / "all.parquet", progress=at_first)
    assert names(tmp_path) == {"logs"}


def test_a_file_that_grows_midway(logs: Path, tmp_path: Path) -> None:
    last = logs / "2.active"

    def at_first(done: int, total: int) -> None:
        if done == 0:
            with seglake.create(last, format="active", if_exists="append") as writer:
                writer.write(type="t", value=b"more")

    exported = seglake.export(seglake.scan(logs, threads=1), tmp_path / "all.parquet", progress=at_first)
    assert exported.records == parquet.read_table(tmp_path / "all.parquet").num_rows == 151


def test_another_key_for_one_of_many(logs: Path, tmp_path: Path) -> None:
    write(logs / "1a.active", key=b"k" * 32)
    done = here("export", logs, tmp_path / "all.csv")
    assert done.status == 2
    assert f"1a.active: {WRONG_KEY}\n" in done.err
    assert names(tmp_path) == {"logs"}
    done = here("export", logs, tmp_path / "all.csv", "--on-damage", "skip")
    assert done.status == 2  # no damage, but not all records
    assert f"1a.active: skipped: {WRONG_KEY}\n" in done.err
    with pytest.warns(seglake.exceptions.DamageWarning):
        exported = seglake.export(seglake.scan(logs, on_damage="skip"), tmp_path / "all.csv", if_exists="overwrite")
    assert exported.wrong_key == (str(logs / "1a.active"),)
    keys = [bytes(32), b"k" * 32]
    assert seglake.export(seglake.scan(logs, key=keys), tmp_path / "all.csv", if_exists="overwrite").records == 200


def test_a_file_that_cannot_be_read(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seglake.read import scan as _scan

    opened = _scan.open

    def refused(source: Any, **arguments: Any) -> Any:
        if str(source).endswith("1.active"):
            raise PermissionError(13, os.strerror(13), str(source))
        return opened(source, **arguments)

    monkeypatch.setattr(_scan, "open", refused)
    done = here("export", logs, tmp_path / "all.csv")
    assert (done.status, done.out) == (2, "")
    assert "1.active: Permission denied" in done.err
    assert names(tmp_path) == {"logs"}


def test_oplogs_of_two_dialects(vectors: Path, tmp_path: Path) -> None:
    for name in ("typical.bin", "typical_11.bin"):
        (tmp_path / f"{name[:-4]}.oplog").write_bytes((vectors / "oplog" / name).read_bytes())
    done = here("export", tmp_path, "--glob", "*.oplog", tmp_path / "all.jsonl")
    assert done.status in (1, 2)
    assert "typical_11.oplog: " in done.err
    assert not (tmp_path / "all.jsonl").exists()


def test_texts_of_any_bytes_in_csv(tmp_path: Path) -> None:
    kinds = [b'a,"b"', b"line\r\nline", b"\x00\x1b[31m", b"=1+1", "é\u202e\u2028".encode(), b"\xff\\", b" a ", b""]
    with seglake.create(tmp_path / "a.active", format="active") as writer:
        for kind in kinds:
            writer.write(type=kind, value=kind)
    scan = seglake.scan(tmp_path / "a.active")
    seglake.export(scan, tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    shown = [kind.replace(b"\\", b"\\x5c").decode(errors="backslashreplace") for kind in kinds]
    assert [row["type"] for row in rows] == shown
    values = [base64.b64decode(row["value_base64"]) or row["value"].encode() for row in rows]
    assert values == kinds
    seglake.export(scan, tmp_path / "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_text(encoding="ascii").splitlines()
    assert [json.loads(line)["type"] for line in lines] == shown


def test_row_groups_by_which_duckdb_skips(tmp_path: Path) -> None:
    for day in range(4):
        with seglake.create(tmp_path / f"{day}.active", format="active") as writer:
            for second in range(100):
                moment = START + timedelta(days=day, seconds=second)
                writer.write(uuid=seglake.uuid6(moment), type=f"type.{day}", value=b"x" * 100)
    new = tmp_path / "all.parquet"
    assert here("export", tmp_path, "--glob", "*.active", "--row-group-size", "100", new).status == 0
    metadata = duckdb.sql(
        "SELECT row_group_id, stats_min_value, stats_max_value, stats_null_count"
        f" FROM parquet_metadata('{new}') WHERE path_in_schema = 'type'"
    )
    assert metadata.fetchall() == [(day, f"type.{day}", f"type.{day}", 0) for day in range(4)]
    group = parquet.ParquetFile(new).metadata.row_group(2)
    assert all(group.column(place).has_offset_index for place in range(group.num_columns))
    for condition, rows, groups in (
        ("timestamp >= TIMESTAMPTZ '2024-01-13 00:00:00Z'", 100, 1),
        ("type = 'type.2'", 100, 1),
        ("uuid = ''", 0, None),
        ("true", 400, 4),
    ):
        asked = f"SELECT count(*), max(value) FROM '{new}' WHERE {condition}"
        assert duckdb.sql(asked).fetchall()[0][0] == rows
        with duckdb.connect() as connection:
            plan = connection.execute(f"EXPLAIN ANALYZE {asked}").fetchall()[0][1]
        scanned = re.search(r"Row Groups Scanned: (\d+) / 4", plan)
        if groups is not None:
            assert scanned is not None, plan
            assert int(scanned[1]) == groups


def test_arrow_needs_no_memory_for_all(logs: Path) -> None:
    stream = io.BytesIO()
    assert seglake.export(seglake.scan(logs), stream, to="arrow").records == 150
    assert sum(batch.num_rows for batch in ipc.open_stream(pa.BufferReader(stream.getvalue()))) == 150
