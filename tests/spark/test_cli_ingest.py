"""`seglake ingest`: what it prints and how it ends. What it writes has tests of its own.

It starts Spark in a process of its own where the output of a starting Spark is tested, else it uses the session.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from cli_process import Argument, Finished, command, environment, seglake

pytestmark = pytest.mark.spark

VECTORS = Path(__file__).parents[1] / "vectors" / "active"


def run(temporary: Path, *arguments: Argument) -> Finished:
    """Runs the command in a process of its own."""
    return seglake("ingest", *arguments, "--master", "local[1]", env={"TMPDIR": str(temporary)})


def truth(stem: str) -> dict[str, Any]:
    return json.loads((VECTORS / f"{stem}.json").read_text())


def said(error: str) -> list[str]:
    """The lines of standard error without what Java itself says, each version another."""
    return [line for line in error.splitlines() if not line.startswith("WARNING: ")]


@pytest.mark.more
def test_json_is_all_that_a_pipe_gets(temporary: Path, tmp_path: Path) -> None:
    stems = ["typical", "flip_message", "torn_in_body_preallocated"]
    done = run(temporary, *(VECTORS / f"{stem}.bin" for stem in stems), tmp_path / "lake", "--final", "--json")
    assert (done.status, said(done.err)) == (1, [])
    result = json.loads(done.out)
    truths = [truth(stem) for stem in stems]
    assert done.out.count("\n") == 1
    assert result["files"] == 3
    assert (result["statuses"]["sound"], result["statuses"]["damaged"]) == (1, 2)
    # They begin alike, so they are one source.
    assert result["records"] == len({record["uuid"] for each in truths for record in each["records"]})
    assert result["nbytes"] == sum(each["size"] for each in truths)
    damage = [span for each in truths for span in each["ledger"] if span[3] is not None]
    assert result["damage"] == {
        "checksum_mismatch": {"ranges": len(damage), "nbytes": sum(end - start for start, end, _, _ in damage)}
    }


@contextmanager
def terminal_for_errors(monkeypatch: pytest.MonkeyPatch, columns: int) -> Generator[list[bytes]]:
    """Makes standard error a terminal while the block runs; fills the list with what that got."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    seen: list[bytes] = []
    reader = threading.Thread(target=drain, args=[ours, seen])
    reader.start()
    saved = os.dup(2)
    os.dup2(theirs, 2)
    try:
        with monkeypatch.context() as patched, os.fdopen(theirs, "w", encoding="utf-8") as error:
            patched.setenv("TERM", "xterm-256color")
            patched.setattr(sys, "stderr", error)
            yield seen
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        reader.join()
        os.close(ours)


def drain(descriptor: int, seen: list[bytes]) -> None:
    """Reads until nobody has the terminal open any more, which Linux tells by an error."""
    with suppress(OSError):
        while block := os.read(descriptor, 65536):
            seen.append(block)


def test_a_person_gets_progress_and_a_table(
    on_session: Callable[..., Finished], temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with terminal_for_errors(monkeypatch, 120) as blocks:
        done = on_session(VECTORS / "typical.bin", tmp_path / "lake")
    seen = b"".join(blocks).decode()
    assert done.status == 0
    assert "starting Spark" in seen
    assert "of 1 file," in seen
    assert "WARN" not in seen
    rows = dict(line.rsplit(maxsplit=1) for line in done.out.splitlines() if re.search(r"\S +[\d,.]+$", line))
    assert rows["files"] == "1"
    assert rows["records"] == str(len(truth("typical")["records"]))
    assert rows["bytes"] == f"{truth('typical')['size']:,}"
    assert done.out.splitlines()[-1] == f"{tmp_path / 'lake'}/{{active,damage,files,runs}}/"


def test_a_wrong_key_is_trouble_and_is_not_shown(on_session: Callable[..., Finished], tmp_path: Path) -> None:
    key = "5e" * 32
    (tmp_path / "key").write_text(key)
    done = on_session(VECTORS / "typical.bin", tmp_path / "lake", "--key-file", tmp_path / "key")
    assert (done.status, done.out) == (2, "")
    assert str(VECTORS / "typical.bin") in done.err
    assert "key" in done.err
    assert key not in done.err
    assert list(tmp_path.glob("lake/active/**/*.parquet")) == []


@pytest.mark.more
def test_follow_goes_on_with_one_session(temporary: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "src", tmp_path / "lake"
    source.mkdir()
    shutil.copyfile(VECTORS / "typical.bin", source / "a.active")
    words = command("ingest", source, out, "--follow", "--json", "--master", "local[1]")
    own = environment({"TMPDIR": str(temporary)})
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=own) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["records"] == len(truth("typical")["records"])
        jvms = children(process.pid)
        shutil.copyfile(VECTORS / "flip_message.bin", tmp_path / "new")
        (tmp_path / "new").rename(source / "b.active")
        second = json.loads(process.stdout.readline())
        assert second["records"] == len(truth("flip_message")["records"])
        assert children(process.pid) == jvms != []
        process.send_signal(signal.SIGINT)
        assert (process.wait(), process.stdout.read()) == (130, b"")
        assert said(process.stderr.read().decode()) == ["", "seglake: interrupted"]
    assert list((out / "_staging").iterdir()) == []


def children(pid: int) -> list[str]:
    """The processes that one has started."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], check=True, capture_output=True, text=True)
    return listed.stdout.split()


@pytest.mark.more
def test_a_failure_of_spark_is_one_line(temporary: Path, tmp_path: Path) -> None:
    done = run(temporary, VECTORS / "typical.bin", tmp_path / "lake", "--conf", "spark.python.worker.reuse=maybe")
    assert (done.status, done.out) == (2, "")
    [line] = said(done.err)
    assert line.startswith("seglake: the Spark job failed, nothing was ingested: ")
    assert "spark.python.worker.reuse" in line
