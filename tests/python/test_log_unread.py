"""A log hides no records: what its readers leave out, as it is after the synced mark, is said on every surface."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from cli_process import here as run

import seglake
from seglake import SegmentLog

KINDS = ("lost", "older", "elsewhere")


def write(log: SegmentLog, count: int) -> None:
    log.write_batch([("order.paid", b"x" * 100) for _ in range(count)])


@pytest.fixture(params=KINDS)
def hidden(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, int]:
    """A log of two segments, 20 records and a mark that hides some of these, and how many records it hides."""
    path = tmp_path / "log"
    with SegmentLog(path, seal=False) as log:
        write(log, 10)
        log.roll()
        mark = (path / "_mark").read_bytes()
        write(log, 4)
    if request.param == "older":
        mark = (path / "_mark").read_bytes()
    with SegmentLog(path, seal=False) as log:
        write(log, 6)
    (path / "_mark").write_bytes(mark)
    if request.param == "lost":
        (path / "_mark").unlink()
    return path, {"lost": 10, "older": 6, "elsewhere": 10}[request.param]


def test_python_warns_of_what_it_does_not_read(hidden: tuple[Path, int], tmp_path: Path) -> None:
    path, count = hidden
    words = f"{count} records are not read, in .* bytes of segment 2 .*no writer has the log open"
    with pytest.warns(seglake.exceptions.UnreadWarning, match=words) as warned:
        scan = seglake.scan(path)
    assert scan.count_rows() == 20 - count
    [unread] = scan.unread()
    log = SegmentLog(path, readonly=True)
    assert log.unread == unread
    with pytest.warns(seglake.exceptions.UnreadWarning) as again:
        iter(log)
    assert {str(each.message) for each in (*warned, *again)} == {str(unread)}
    assert (unread.path, unread.sequence, unread.records) == (str(path), 2, count)
    newest = max(path.glob("0*2-*.active"))
    assert newest.read_bytes()[unread.byte_offset :].rstrip(b"\0").__len__() <= unread.nbytes
    whole = [record.uuid for record in seglake.open(newest)]
    with pytest.warns(seglake.exceptions.UnreadWarning):
        assert len(list(log)) == 20 - count
    with pytest.warns(seglake.exceptions.UnreadWarning):
        assert sum(batch.num_rows for batch in log.batches()) == 20 - count
    with pytest.warns(seglake.exceptions.UnreadWarning):
        assert pa.table(log).num_rows == 20 - count
    with pytest.warns(seglake.exceptions.UnreadWarning):
        log.tail("start")
    with pytest.warns(seglake.exceptions.UnreadWarning):
        assert log.get(whole[-1]) is None
    if unread.byte_offset:
        with pytest.warns(seglake.exceptions.UnreadWarning):
            log.snapshot(tmp_path / "taken")
    with pytest.warns(seglake.exceptions.UnreadWarning):
        result = seglake.ingest(path, tmp_path / "lake")
    assert (result.records, result.ok, result.exit_status) == (20 - count, False, 1)
    assert result.to_dict()["unread"] == [unread._asdict()]
    assert [found.error is not None for found in seglake.scrub(path)][:1] == [True]


def test_the_command_line_says_what_it_does_not_read(hidden: tuple[Path, int], tmp_path: Path) -> None:
    path, count = hidden
    newest = max(path.glob("0*2-*.active"))
    for command in (
        ("cat", path),
        ("info", path),
        ("verify", path),
        ("verify", newest),
        ("export", path, tmp_path / "out.jsonl"),
        ("log", "tail", "--from", "start", "--no-follow", path),
        ("log", "info", path),
        ("log", "verify", path),
    ):
        done = run(*command)
        assert done.status == 1, (command, done.out, done.err)
        assert f"{count} records are not read" in done.err, command
    done = run("log", "info", "--json", path)
    said = json.loads(done.out)
    assert said["unread"]["records"] == count
    assert [segment["nbytes"] for segment in said["segments"]][1] == len(newest.read_bytes().rstrip(b"\0"))
    lines = [json.loads(line) for line in run("verify", "--json", path).out.splitlines()]
    assert [line["log"]["unread"] and line["log"]["unread"]["records"] for line in lines] == [None, count]
    (path / "_lock").unlink()
    assert run("verify", newest).status == 1
    alone = shutil.copy(newest, tmp_path)
    assert run("verify", alone).err == ""
    done = run("export", path, tmp_path / "again.jsonl", "--json")
    assert json.loads(done.out)["unread"][0]["records"] == count
    done = run("ingest", path, tmp_path / "lake", "--engine", "local", "--json")
    assert (done.status, json.loads(done.out)["unread"][0]["records"]) == (1, count)
    # As the message says.
    subprocess.run([sys.executable, "-m", "seglake", "log", "write", path], stdin=subprocess.DEVNULL, check=True)
    for name in (path, newest):
        done = run("verify", name)
        assert (done.status, done.err) == (0, "")


_WRITES = """
import sys, seglake
log = seglake.SegmentLog(sys.argv[1])
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def written(hidden: tuple[Path, int]) -> Iterator[Path]:
    """The log while another process has it open, and a mark that is behind."""
    path, _ = hidden
    mark = (path / "_mark").read_bytes() if (path / "_mark").exists() else bytes(8192)
    with subprocess.Popen(
        [sys.executable, "-c", _WRITES, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (path / "_mark").write_bytes(mark)
        yield path
        process.kill()


def test_with_a_writer_nothing_is_said(written: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert seglake.scan(written).unread() == []
        assert len(list(SegmentLog(written, readonly=True))) < 20
    done = run("verify", written)
    assert (done.status, done.err) == (0, "")


def test_numbers_of_a_log_are_those_of_its_files(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with SegmentLog(path, seal=False) as log:
        for _ in range(2):
            write(log, 10)
            log.roll()
        write(log, 10)
    first, second, third = sorted(path.glob("0*.active"))
    whole = third.read_bytes()
    third.write_bytes(whole[:500])
    done = run("log", "info", "--json", path)
    assert done.status == 1
    assert [segment["nbytes"] for segment in json.loads(done.out)["segments"]][2] == 500
    assert "segment shorter than its log says: expected records up to offset" in done.err
    statuses = {run(*command).status for command in (("log", "verify", path), ("verify", path), ("verify", third))}
    assert statuses == {1}
    third.write_bytes(whole)
    shutil.copy(first, second)
    for command in (("log", "info", path), ("log", "verify", path), ("verify", path), ("verify", second)):
        done = run(*command)
        assert (done.status, "another segment" in done.err) == (2, True), command
    first.unlink()
    second.unlink()
    assert run("verify", third).status == 0


def test_a_file_of_a_log_that_cannot_be_listed_is_verified_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with SegmentLog(path, seal=False) as log:
        for _ in range(3):
            write(log, 10)
            log.roll()
    files = sorted(path.glob("0*.active"))
    files[1].unlink()
    done = run("verify", files[0])
    assert done.status == 0
    assert "a segment is missing" in done.err
    assert "is taken by itself" in done.err


def test_what_is_wrong_with_the_files_of_a_log_has_a_name(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with SegmentLog(path, seal=False) as log:
        for _ in range(3):
            write(log, 10)
            log.roll()
    first, second, *_ = sorted(path.glob("0*.active"))
    kept = second.read_bytes()
    second.write_bytes(first.read_bytes())
    lines = run("verify", "--json", path).json_lines()
    assert [line["reason"] for line in lines if "error" in line] == ["other_segment"]
    second.unlink()
    [line] = run("verify", "--json", path).json_lines()
    assert (line["reason"], line["ok"], line["path"]) == ("missing_segment", False, str(path))
    (path / f"{1:020}{second.name[20:]}").write_bytes(kept)
    assert [line["reason"] for line in run("verify", "--json", path).json_lines()] == ["doubled_segment"]
    first.unlink()
    (path / f"{2:020}{first.name[20:]}").write_bytes(b"")
    [line] = run("verify", "--json", path).json_lines()
    assert line["reason"] == "foreign_segment" and "of different logs" in line["error"]
    assert "segments of different logs" in run("explain", "foreign_segment").out
