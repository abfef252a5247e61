"""Standard output is whole, or it is an error: slow, full and closed pipes, and full disks."""

from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from unittest.mock import patch

import pytest
from cli_process import TIMEOUT_S, command, environment, here

import seglake
from seglake.cli import main

if sys.platform != "win32":
    import fcntl
    import termios

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes do not block there")

# More than a pipe of Linux or macOS has room for.
VALUE_BYTES = 190_000
RECORDS = 2
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("cat", "big.active"),
    ("cat", "--json", "big.active"),
    ("cat", "--json", "--value", "hex", "big.active"),
    ("log", "tail", "log", "--from", "start", "--no-follow"),
    ("extract", "big.active", "--range", "1000:180000"),
    ("info", "--json", "big.active"),
    ("verify", "--json", "big.active"),
    ("export", "big.active", "-"),
    ("--help",),
    ("cat", "--help"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("output")
    value = bytes(range(32, 127)) * (VALUE_BYTES // 95)
    with seglake.create(folder / "big.active", format="active") as writer, seglake.SegmentLog(folder / "log") as log:
        for _ in range(RECORDS):
            writer.write(type="t", value=value)
            log.write("t", value)
    return folder


@pytest.fixture(autouse=True)
def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def stream(descriptor: int, *, buffered: bool) -> io.TextIOWrapper:
    """What Python makes of standard output, or with `python -u` or PYTHONUNBUFFERED."""
    raw = io.FileIO(descriptor, "w")
    return io.TextIOWrapper(
        io.BufferedWriter(raw) if buffered else raw,  # pyright: ignore[reportArgumentType]
        encoding="utf-8",
        write_through=not buffered,
    )


def with_output(output: io.TextIOWrapper, words: tuple[str, ...]) -> tuple[int, str]:
    """Runs a command; returns its status, and what it said on standard error."""
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with output, patch.object(sys, "stdout", output), patch.object(sys, "stderr", said):
        status = copy_context().run(main, list(words))
    said.flush()
    return status, said.buffer.getvalue().decode()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


def read_slowly(descriptor: int) -> bytes:
    found = b""
    while block := os.read(descriptor, 5_000):
        found += block
    return found


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("words", COMMANDS)
def test_a_pipe_gets_all_of_it(words: tuple[str, ...], blocking: bool, buffered: bool) -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, blocking)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(read_slowly, ours)
        assert with_output(stream(theirs, buffered=buffered), words) == (0, "")
    os.close(ours)
    assert found.result().decode() == here(*words).out


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("words", COMMANDS)
def test_a_pipe_whose_reader_has_gone_is_told_by_the_status(
    words: tuple[str, ...], blocking: bool, buffered: bool
) -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, blocking)
    os.close(ours)
    assert with_output(stream(theirs, buffered=buffered), words) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("words", COMMANDS)
def test_a_full_disk_is_an_error(words: tuple[str, ...], buffered: bool) -> None:
    full = stream(os.open("/dev/full", os.O_WRONLY), buffered=buffered)
    assert with_output(full, words) == (2, "seglake: standard output: No space left on device\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_completion_that_is_not_written_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_SEGLAKE_COMPLETE", "bash_source")
    full = stream(os.open("/dev/full", os.O_WRONLY), buffered=True)
    assert with_output(full, ()) == (2, "seglake: standard output: No space left on device\n")


def test_an_unbuffered_file_that_takes_a_part_of_it_is_an_error(tmp_path: Path) -> None:
    """As in containers, which set PYTHONUNBUFFERED: a write that is cut short is not the end of it."""
    limited = f"ulimit -f 100; exec {shlex.join(command('extract', 'big.active', '--range', '1000:180000'))}"
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            ["bash", "-c", limited],
            stdout=out,
            stderr=subprocess.PIPE,
            env=environment({"PYTHONUNBUFFERED": "1"}),
            timeout=TIMEOUT_S,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, b"seglake: standard output: File too large\n")


@pytest.mark.skipif(sys.platform != "linux", reason="only there a pipe tells what is in it")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_is_interrupted_is_not_written_twice(tmp_path: Path, unbuffered: str) -> None:
    with seglake.create(tmp_path / "a.active", format="active") as writer:
        writer.write(type="t", value=bytes(range(32, 127)) * 60)
    words = ("cat", tmp_path / "a.active")
    ours, theirs = os.pipe()
    # Not the whole of a text that fits into the buffer finds room.
    room = fcntl.fcntl(theirs, fcntl.F_GETPIPE_SZ)
    before = room - 4096
    os.write(theirs, bytes(before))
    changes = {"PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(command(*words), stdout=theirs, stderr=subprocess.PIPE, env=environment(changes)) as process:
        os.close(theirs)
        while int.from_bytes(fcntl.ioctl(ours, termios.FIONREAD, bytes(4)), sys.byteorder) < room:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        found = read_slowly(ours)[before:]
        assert process.wait(TIMEOUT_S) == 130
    os.close(ours)
    assert here(*words).out.startswith(found.decode())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
@pytest.mark.parametrize("buffered", [True, False])
def test_the_status_tells_where_no_message_can(buffered: bool) -> None:
    full = stream(os.open("/dev/full", os.O_WRONLY), buffered=buffered)
    with full, patch.object(sys, "stderr", full):
        assert copy_context().run(main, ["cat", "missing"]) == 2
