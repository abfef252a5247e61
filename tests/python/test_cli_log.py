"""`seglake log`: what is written comes out, is checked, sealed and removed."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from cli_process import Finished, here, pasted
from cli_process import seglake as in_a_process
from hostile import TEXTS, unsafe

import seglake

COMMANDS = ("write", "tail", "info", "verify", "seal", "snapshot", "retain")


def run(*arguments: str | Path, given: bytes = b"") -> Finished:
    return here("log", *arguments, stdin=given)


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


@pytest.mark.parametrize(("name", "meant"), [("follow", "tail"), ("verfy", "verify"), ("retian", "retain")])
def test_an_unknown_command_suggests_the_nearest(name: str, meant: str) -> None:
    done = run(name, "logs")
    assert (done.status, done.out) == (2, "")
    assert f"no such command: {name}; did you mean {meant}?" in done.err
    assert f"there are {', '.join(COMMANDS)}" in run("parchment").err


def test_lines_are_written_and_followed(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    done = run("write", "--type", "line", path, given=b"first\n\nthird without an end")
    assert (done.status, done.out) == (0, "")
    assert "3 records written" in done.err
    done = run("tail", "--from", "start", "--no-follow", "--json", "--value", "text", path)
    assert done.status == 0
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [record["value"] for record in records] == ["first", "", "third without an end"]
    assert {record["type"] for record in records} == {"line"}
    assert run("tail", "--from", "start", "--limit", "0", path).out == ""  # and waits for nothing
    after = run("tail", "--from", records[1]["uuid"], "--no-follow", "--limit", "5", path)
    assert after.out.count("\n") == 1
    assert run("tail", "--no-follow", path).out == ""
    assert run("tail", "--from", "yesterday", path).status == 2


def test_json_that_tail_prints_is_what_write_takes(log: Path, tmp_path: Path) -> None:
    shown = run("tail", "--from", "start", "--no-follow", "--json", log).out
    copy = tmp_path / "copy"
    assert run("write", "--json", copy, given=shown.encode()).status == 0
    assert run("tail", "--from", "start", "--no-follow", "--json", copy).out == shown


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
    assert done.status == 2
    assert words in done.err
    assert "line 3" in done.err
    with seglake.SegmentLog(path, readonly=True) as log:
        assert [record.value for record in log] == [b"1", b"2"]


def counted(path: Path) -> list[bytes]:
    with seglake.SegmentLog(path, readonly=True) as log:
        return [record.value for record in log]


@pytest.mark.parametrize("durability", ["fsync", "flush", "none"])
@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"type": "a" * 256, "value": ""}, "255"),
        ({"type": "a", "value": "", "uuid": "1eeafd69-b6b0-69f3-b9f1-1b8e6a30ade3"}, "does not ascend"),
        (
            {
                "type": "a",
                "value": "",
                "uuid": "1eeafd69-b6b0-69f3-b9f1-1b8e6a30ade3",
                "timestamp": "2024-01-01T00:00:00Z",
            },
            "not that of the UUID",
        ),
    ],
)
def test_what_the_log_refuses_has_its_line(tmp_path: Path, record: object, words: str, durability: str) -> None:
    path = tmp_path / "logs"
    with seglake.SegmentLog(path) as log:
        log.write("a", b"before")
    good = b'{"type": "a", "value": "1"}\n' * 3
    given = good + json.dumps(record).encode() + b"\n" + good
    done = run("write", "--json", "--durability", durability, path, given=given)
    error = done.err
    assert done.status == 2
    assert "standard input: line 4: " in error
    assert words in error
    assert "row" not in error
    assert "written   3 records, which are on the disk" in error
    assert "correct line 4, and write from there on" in error
    assert counted(path) == [b"before", b"1", b"1", b"1"]


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("size", [1001, 10_000_000])
def test_a_line_has_a_longest_length(tmp_path: Path, form: list[str], end: bytes, size: int) -> None:
    path = tmp_path / "logs"
    good = b'{"type": "a", "value": "1"}'
    given = b"\n".join([good] * 5) + b"\n" + b" " * size + end
    done = run("write", *form, "--line-bytes", "1000", path, given=given)
    assert done.status == 2
    assert "standard input: line 6: " in done.err
    assert "1,000 bytes" in done.err
    assert "written   5 records" in done.err
    assert "raise --line-bytes, and write from line 6 on" in done.err
    assert len(counted(path)) == 5
    longest = b"x" * 1000 + end
    assert run("write", "--line-bytes", "1000", tmp_path / "other", given=longest).status == 0


def test_a_wrong_type_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    for given, words in (("a" * 256, "expected at most 255 bytes, found 256"), ("\\", "a backslash begins")):
        done = here("log", "write", "--type", given, os.fspath(path), stdin=b"a\n")
        assert done.status == 2
        assert "--type" in done.err
        assert words in done.err
        assert not path.exists()
    assert here("log", "write", "--type", "\\xff" * 255, os.fspath(path), stdin=b"a\n").status == 0
    with seglake.SegmentLog(path, readonly=True) as log:
        assert [record.type_bytes for record in log] == [b"\xff" * 255]


# The limit on a file's size stands for a full disk: the system refuses the write.
FULL = """
import resource, signal, sys
from seglake.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="setrlimit")
@pytest.mark.parametrize("durability", ["fsync", "flush", "none"])
def test_after_a_full_disk_the_rest_can_be_written(tmp_path: Path, durability: str) -> None:
    path = tmp_path / "logs"
    given = [b"%099d" % number for number in range(30_000)]
    command = [sys.executable, "-c", FULL, "log", "write", "--durability", durability, os.fspath(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdin is not None
        assert writer.stderr is not None
        try:
            # In pieces, so that there is more than one batch.
            for at in range(0, len(given), 500):
                writer.stdin.write(b"\n".join(given[at : at + 500]) + b"\n")
                writer.stdin.flush()
        except BrokenPipeError:
            pass
        # What is left in the buffer finds no reader either.
        with suppress(BrokenPipeError):
            writer.stdin.close()
        error = writer.stderr.read().decode()
    assert writer.returncode == 2, error
    assert "File too large" in error
    written = counted(path)
    assert written == given[: len(written)]
    assert f"written   {len(written):,} record" in error
    assert "next " in error
    rest = b"\n".join(given[len(written) :])
    assert run("write", path, given=rest).status == 0
    assert counted(path) == given


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("durability", ["fsync", "none"])
def test_a_signal_ends_with_all_lines_that_came(tmp_path: Path, number: int, status: int, durability: str) -> None:
    path = tmp_path / "logs"
    command = [sys.executable, "-m", "seglake", "log", "write", "--durability", durability, os.fspath(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdin is not None
        assert writer.stderr is not None
        writer.stdin.write(b"first\n")
        writer.stdin.flush()
        # Its file is there: by now signals are noted.
        while not list(path.glob("*.active")):
            assert writer.poll() is None
        writer.stdin.write(b"second\nthird\nhalf a line")
        writer.stdin.flush()
        writer.send_signal(number)
        assert writer.wait() == status
        error = writer.stderr.read().decode()
    name = signal.Signals(number).name
    assert error == f"seglake: {name}: {path}: 3 records written; 11 bytes of a line without an end left out\n"
    assert counted(path) == [b"first", b"second", b"third"]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
def test_each_line_of_a_slow_pipe_is_durable_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    seglake.SegmentLog(path).close()
    command = [sys.executable, "-m", "seglake", "log", "write", os.fspath(path)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as writer,
        seglake.SegmentLog(path, readonly=True) as log,
    ):
        assert writer.stdin is not None
        tail = log.tail("start")
        for number in range(5):
            writer.stdin.write(b"%d\n" % number)
            writer.stdin.flush()
            record = tail.poll(30)
            assert record is not None
            assert record.value == b"%d" % number
        writer.stdin.close()
        assert writer.wait() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
def test_a_closed_pipe_ends_following(log: Path) -> None:
    command = [sys.executable, "-m", "seglake", "log", "tail", "--from", "start", os.fspath(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        follower.stdout.readline()
        follower.stdout.close()
        # Nothing more is written to the log, so only looking at the pipe shows it.
        assert follower.wait(60) == 141
        assert follower.stderr.read() == b""


def test_no_log_is_named(tmp_path: Path) -> None:
    for name in ("tail", "info", "verify"):
        assert "does not exist" in run(name, tmp_path / "none").err
        done = run(name, tmp_path)
        assert done.status == 2
        assert "expected a log, found a folder without segments" in done.err
        assert "seglake log write DIR" in done.err


def test_info_verify_seal_and_retain(log: Path) -> None:
    done = run("info", "--json", log)
    facts = json.loads(done.out)
    assert done.status == 0
    assert facts["segments"][-1]["kind"] == "active"
    assert facts["synced"]["sequence"] == len(facts["segments"])
    # What is filled with zeros ahead of the records is none of it.
    *sealed, active = facts["segments"]
    assert active["nbytes"] == facts["synced"]["byte_offset"]
    assert [own["nbytes"] for own in sealed] == [Path(own["path"]).stat().st_size for own in sealed]
    assert "synced up to offset" in run("info", log).out
    done = run("verify", log)
    *segments, folder, total = done.out.splitlines()
    assert (done.status, len(segments)) == (0, len(facts["segments"]))
    assert f"a log of {len(segments)} segments" in folder
    assert f"{len(segments)} sound; 100 records" in total
    done = run("seal", log)
    assert done.status == 0
    assert all(path.suffix == ".sealed" for path in log.iterdir() if not path.name.startswith("_"))
    done = run("retain", "--bytes", "3000", log)
    assert done.status == 0
    assert done.out.count("removed ") >= 1
    assert run("retain", log).status == 2
    assert run("verify", log).status == 0


def test_sealed_segments_are_protected_if_asked(log: Path, tmp_path: Path) -> None:
    def bare() -> list[Path]:
        return [path for path in log.glob("*.sealed") if not Path(f"{path}.par").exists()]

    assert len(bare()) > 1
    assert run("seal", "--protect", "--profile", "128+4", log).status == 0
    assert bare() == []
    assert seglake.protect(next(log.glob("*.sealed"))).profile == "128+4"
    assert run("verify", log).status == 0
    assert run("seal", "--profile", "128+4", log).status == 2
    path = tmp_path / "new"
    assert run("write", "--protect", "--segment-bytes", "100", path, given=b"line\n" * 20).status == 0
    assert len(list(path.glob("*.sealed.par"))) == len(list(path.glob("*.sealed"))) > 1
    assert list(path.glob("*.active.par")) == []


def test_damage_is_found_and_named(log: Path) -> None:
    active = next(log.glob("*.active"))
    sealed = sorted(log.glob("*.sealed"))[1]
    for path in (active, sealed):
        data = bytearray(path.read_bytes())
        place = data.index(b"value ")
        data[place] ^= 1
        path.write_bytes(data)
        done = run("verify", log)
        assert done.status == 1
        assert f"{path}: damaged: " in done.out.replace("\n", " ")
        assert "flipped bit (proven)" in done.out
        lines = [json.loads(line) for line in run("verify", "--json", log).out.splitlines()]
        assert [line["path"] for line in lines if not line["ok"]] == [os.fspath(path)]
        data[place] ^= 1
        path.write_bytes(data)
    # What is after the mark is none.
    offset = json.loads(run("info", "--json", log).out)["synced"]["byte_offset"]
    active.write_bytes(active.read_bytes()[:offset] + b"\x1e\xea half a record")
    done = run("verify", "--json", log)
    assert done.status == 1  # but no writer is there that will write the rest
    assert json.loads(done.out.splitlines()[-1])["nbytes"] == offset


def test_keys(tmp_path: Path) -> None:
    path, key, other = tmp_path / "logs", tmp_path / "key", tmp_path / "other"
    key.write_bytes(bytes(range(32)))
    other.write_bytes(bytes(32))
    assert run("write", "--key-file", key, path, given=b"a\n").status == 0
    assert run("verify", "--key-file", key, path).status == 0
    done = run("write", "--key-file", other, path, given=b"b\n")
    assert done.status == 2
    assert "wrong key" in done.err
    assert bytes(range(32)).hex() not in done.err
    assert "1 record" in run("verify", "--key-file", key, path).out


def test_what_is_advised_for_a_log_reads_it_with_its_key(tmp_path: Path) -> None:
    path, key = tmp_path / "logs", tmp_path / "the key"
    key.write_bytes(bytes(range(32)))
    with seglake.SegmentLog(path, key=key, segment_bytes=2000) as log:
        log.write_batch([("order.paid", f"value {number}") for number in range(99)])
    sorted(path.glob("*.sealed"))[1].unlink()
    lost = run("verify", "--key-file", key, path)
    assert lost.status == 2
    [command] = re.findall(r"  next +(.*)", lost.err)
    assert pasted(command, tmp_path).returncode == 1
    assert 0 < (tmp_path / "logs-sound.jsonl").read_bytes().count(b"\n") < 99
    # Without it, what is advised afterwards has none.
    assert "--key-file" not in run("verify", path).err.partition("next")[2].partition("\n")[0]


def test_two_writers(log: Path) -> None:
    with seglake.SegmentLog(log):
        done = in_a_process("log", "write", log, stdin=b"a\n")
    assert done.status == 2
    assert f"process {os.getpid()}" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_following_ends_with_ctrl_c(log: Path) -> None:
    command = [sys.executable, "-m", "seglake", "log", "tail", os.fspath(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        # It may begin after the first lines; then more come.
        while not select.select([follower.stdout], [], [], 0.2)[0]:
            assert in_a_process("log", "write", log, stdin=b"a\n").status == 0
        assert follower.stdout.readline().rstrip().endswith(b"a")
        follower.send_signal(signal.SIGINT)
        assert follower.wait() == 130
        assert follower.stderr is not None
        assert follower.stderr.read() == b""


def test_hostile_records_are_shown_as_text(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    with seglake.SegmentLog(path) as log:
        for text in TEXTS:
            log.write(text[:255], text)
    for arguments in ([], ["--json"], ["--value", "hex"]):
        done = here("log", "tail", "--from", "start", "--no-follow", *arguments, os.fspath(path))
        assert done.status == 0
        assert unsafe(done.out) == []


def test_a_snapshot_is_a_log(log: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    done = here("log", "snapshot", str(log), str(taken))
    assert (done.status, done.err) == (0, "")
    assert "segment" in done.out
    with seglake.SegmentLog(log, readonly=True) as own, seglake.SegmentLog(taken, readonly=True) as copy:
        assert [record.uuid for record in own] == [record.uuid for record in copy]
    again = here("log", "snapshot", str(log), str(taken))
    assert again.status == 2
    assert "taken" in again.err
    assert "exists" in again.err
