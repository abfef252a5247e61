"""Runs the command line as a process of its own, in a pipe or on a terminal."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seglake.cli import main

# A process that hangs is a failure, not a slow test.
TIMEOUT_S = 300
# What could change how the program behaves, from the shell that the tests were started in.
_OWN_VARIABLES = (
    *("SEGLAKE_KEY", "SEGLAKE_DEBUG", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TERM"),
    *("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"),  # which a client of Spark Connect leaves behind
)

Argument = str | bytes | Path


@dataclass(frozen=True)
class Finished:
    """How a process ended and what it wrote."""

    status: int
    out: str
    err: str

    def json_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if name not in _OWN_VARIABLES}
    return {**clean, "PYTHONIOENCODING": "utf-8", **(changes or {})}


def command(*arguments: Argument, python: Argument = sys.executable) -> list[str]:
    return [os.fsdecode(word) for word in (python, "-m", "seglake", *arguments)]


def seglake(
    *arguments: Argument,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    python: Argument = sys.executable,
) -> Finished:
    """Runs `seglake` with pipes all around."""
    done = subprocess.run(
        command(*arguments, python=python),
        input=stdin,
        capture_output=True,
        env=environment(env),
        timeout=TIMEOUT_S,
        check=False,
    )
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())


def here(capsys: pytest.CaptureFixture[str], *arguments: Argument) -> Finished:
    """Runs `seglake` in this process: for tests of so many files that a process for each would take minutes."""
    capsys.readouterr()
    # In a context of its own: `--debug` is for one run.
    status = copy_context().run(main, [os.fsdecode(word) for word in arguments])
    out, err = capsys.readouterr()
    return Finished(status, out, err)


def on_terminal(
    *arguments: Argument, columns: int = 100, env: Mapping[str, str] | None = None, only: str | None = None
) -> tuple[str, Finished]:
    """Runs `seglake` with output and error on a pseudo-terminal, or `only` one of them; returns what that got first."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if only == "error" else theirs,
        stderr=subprocess.PIPE if only == "output" else theirs,
        env=environment({"TERM": "xterm-256color", **(env or {})}),
    )
    os.close(theirs)
    try:
        seen = _drain(ours).decode().replace("\r\n", "\n")
        out, err = (pipe.read().decode() if pipe else "" for pipe in (process.stdout, process.stderr))
        return seen, Finished(process.wait(TIMEOUT_S), out, err)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _drain(descriptor: int) -> bytes:
    seen = b""
    while True:
        try:
            block = os.read(descriptor, 65536)
        except OSError:  # Linux: the last process that had the terminal open has ended
            return seen
        if not block:
            return seen
        seen += block
