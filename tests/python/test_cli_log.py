"""`seglake log`: what is written comes out, is checked, sealed and removed."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import here
from hostile import TEXTS, unsafe

import seglake

COMMANDS = ("write", "tail", "info", "verify", "seal", "retain")


def run(*arguments: str | Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "seglake", "log", *map(os.fspath, arguments)]
    return subprocess.run(command, input=given, capture_output=True, check=False)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "logs"
    with seglake.SegmentLog(path, segment_bytes=2000) as log:
        log.write_batch([("order.paid", f"value {number}") for number in range(99)])
        log.write("\\xff\\x5c", b"\xff not UTF-8")
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_each_has_help_with_examples_that_parse(name: str) -> None:
    done = here("log", name, "--help")
    assert (done.status, done.err) == (0, "")
    lines = [line for line in done.out.split("Examples:")[1].splitlines() if line.strip()]
    assert len(lines) >= 3
    for line in lines:
        assert f"seglake log {name} " in line
        for word in line.split():
            if word.startswith("--"):
                assert f"{word} " in done.out


def test_lines_are_written_and_followed(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    done = run("write", "--type", "line", path, given=b"first\n\nthird without an end")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"3 records written" in done.stderr
    done = run("tail", "--from", "start", "--no-follow", "--json", "--value", "text", path)
    assert done.returncode == 0
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["value"] for record in records] == ["first", "", "third without an end"]
    assert {record["type"] for record in records} == {"line"}
    after = run("tail", "--from", records[1]["uuid"], "--no-follow", "--limit", "5", path)
    assert after.stdout.count(b"\n") == 1
    assert run("tail", "--no-follow", path).stdout == b""
    assert run("tail", "--from", "yesterday", path).returncode == 2


def test_json_that_tail_prints_is_what_write_takes(log: Path, tmp_path: Path) -> None:
    shown = run("tail", "--from", "start", "--no-follow", "--json", log).stdout
    copy = tmp_path / "copy"
    assert run("write", "--json", copy, given=shown).returncode == 0
    assert run("tail", "--from", "start", "--no-follow", "--json", copy).stdout == shown


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{", "JSON object"),
        (b"[]", "not list"),
        (b'{"type": "a"}', "value and value_base64"),
        (b'{"value": "a"}', "key type"),
        (b'{"type": "a", "value": 1}', "text as value"),
        (b'{"type": "a", "value": "", "other": 1}', "'other'"),
        (b'{"type": "a", "value_base64": "?"}', "line 3"),
        (b'{"type": "a", "value": "", "uuid": "x"}', "UUID"),
    ],
)
def test_a_wrong_line_is_named_and_those_before_it_are_written(tmp_path: Path, line: bytes, words: str) -> None:
    path = tmp_path / "logs"
    good = b'{"type": "a", "value": "1"}\n{"type": "a", "value": "2"}\n'
    done = run("write", "--json", path, given=good + line + b"\n" + good)
    assert done.returncode == 2
    assert words in done.stderr.decode()
    assert "line 3" in done.stderr.decode()
    with seglake.SegmentLog(path, readonly=True) as log:
        assert [record.value for record in log] == [b"1", b"2"]


def test_info_verify_seal_and_retain(log: Path) -> None:
    done = run("info", "--json", log)
    facts = json.loads(done.stdout)
    assert done.returncode == 0
    assert facts["segments"][-1]["kind"] == "active"
    assert facts["synced"]["sequence"] == len(facts["segments"])
    assert b"synced up to offset" in run("info", log).stdout
    done = run("verify", log)
    assert (done.returncode, done.stdout.decode().split(": ")[1]) == (
        0,
        f"sound, {len(facts['segments'])} segments, 100 records\n",
    )
    done = run("seal", log)
    assert done.returncode == 0
    assert all(path.suffix == ".sealed" for path in log.iterdir() if not path.name.startswith("_"))
    done = run("retain", "--bytes", "3000", log)
    assert done.returncode == 0
    assert done.stdout.count(b"removed ") >= 1
    assert run("retain", log).returncode == 2
    assert run("verify", log).returncode == 0


def test_damage_is_found_and_named(log: Path) -> None:
    active = next(log.glob("*.active"))
    sealed = sorted(log.glob("*.sealed"))[1]
    for path in (active, sealed):
        data = bytearray(path.read_bytes())
        place = data.index(b"value ")
        data[place] ^= 1
        path.write_bytes(data)
        done = run("verify", log)
        assert done.returncode == 1
        assert f"{path}: checksum_mismatch at offset".encode() in done.stdout
        lines = [json.loads(line) for line in run("verify", "--json", log).stdout.splitlines()]
        assert [line["path"] for line in lines if not line["ok"]] == [os.fspath(path)]
        data[place] ^= 1
        path.write_bytes(data)
    # What a writer has not synced yet is none.
    offset = json.loads(run("info", "--json", log).stdout)["synced"]["byte_offset"]
    active.write_bytes(active.read_bytes()[:offset] + b"\x1e\xea half a record")
    done = run("verify", "--json", log)
    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[-1])["pending_bytes"] > 0


def test_keys(tmp_path: Path) -> None:
    path, key, other = tmp_path / "logs", tmp_path / "key", tmp_path / "other"
    key.write_bytes(bytes(range(32)))
    other.write_bytes(bytes(32))
    assert run("write", "--key-file", key, path, given=b"a\n").returncode == 0
    assert run("verify", "--key-file", key, path).returncode == 0
    done = run("write", "--key-file", other, path, given=b"b\n")
    assert done.returncode == 2
    assert b"wrong key" in done.stderr
    assert bytes(range(32)).hex().encode() not in done.stderr
    assert b"1 record" in run("verify", "--key-file", key, path).stdout


def test_two_writers(log: Path) -> None:
    with seglake.SegmentLog(log):
        done = run("write", log, given=b"a\n")
    assert done.returncode == 2
    assert f"process {os.getpid()}".encode() in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_following_ends_with_ctrl_c(log: Path) -> None:
    command = [sys.executable, "-m", "seglake", "log", "tail", os.fspath(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        # It may begin after the first lines; then more come.
        while not select.select([follower.stdout], [], [], 0.2)[0]:
            assert run("write", log, given=b"a\n").returncode == 0
        assert follower.stdout.readline().rstrip().endswith(b"a")
        follower.send_signal(signal.SIGINT)
        assert follower.wait() == 130


def test_hostile_records_are_shown_as_text(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    with seglake.SegmentLog(path) as log:
        for text in TEXTS:
            log.write(text[:255], text)
    for arguments in ([], ["--json"], ["--value", "hex"]):
        done = here("log", "tail", "--from", "start", "--no-follow", *arguments, os.fspath(path))
        assert done.status == 0
        assert unsafe(done.out) == []
