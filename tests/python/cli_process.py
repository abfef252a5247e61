"""Runs the command line: in this process, as a process of its own with pipes, or on a terminal.

Use `here` to test what a command prints and does. Use a process to test what only a process has: its start, its streams
and their encoding, pipes, signals, and what `PYTHONPATH` changes.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

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


def wait_until_read(process: subprocess.Popen[Any], nbytes: int) -> None:
    """Waits until a process has read so much, where the system tells (Linux), or else for as long as that may take."""
    told = Path(f"/proc/{process.pid}/io")
    if not told.exists():
        time.sleep(3)
        return
    while process.poll() is None and int(told.read_text().split()[1]) < nbytes:
        time.sleep(0.01)


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


def pasted(command: str, folder: Path, *, timeout: int = TIMEOUT_S) -> subprocess.CompletedProcess[bytes]:
    """Runs a command line in bash, with the `seglake` of this Python, for so many seconds at most."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        check=False,
    )


def here(*arguments: Argument, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Finished:
    """Runs `seglake` in this process, with the streams, environment and warnings of a new process.

    A new process would take a quarter of a second to start. `tests/python/test_cli_process.py` checks that both print
    and do the same.
    """
    own = {"PYTHONIOENCODING": "utf-8", **(env or {})}
    # Python reads these variables only when it starts.
    changed = [name for name in env or {} if name.startswith("PYTHON")]
    assert not changed, f"{changed} takes a process"
    out, err = BytesIO(), BytesIO()
    with ExitStack() as stack:
        stack.enter_context(_environment(own))
        stack.enter_context(_warnings_on_standard_error())
        source = stack.enter_context(_pipe_with(stdin))
        printed = stack.enter_context(TextIOWrapper(out, encoding="utf-8"))
        complained = stack.enter_context(TextIOWrapper(err, encoding="utf-8", errors="backslashreplace"))
        for name, stream in (("stdin", source), ("stdout", printed), ("stderr", complained)):
            stack.enter_context(patch.object(sys, name, stream))
        # In a context of its own, so that `--debug` ends with the command.
        status = copy_context().run(main, [os.fsdecode(word) for word in arguments])
        printed.flush()
        complained.flush()
        return Finished(status, out.getvalue().decode(), err.getvalue().decode())


@contextmanager
def _environment(changes: Mapping[str, str]) -> Generator[None]:
    """Sets the environment to what `environment` gives a new process, and resets it afterwards."""
    before = {name: os.environ.get(name) for name in (*_OWN_VARIABLES, *changes)}
    try:
        for name in before:
            os.environ.pop(name, None)
        os.environ.update(changes)
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _pipe_with(content: bytes) -> Generator[TextIOWrapper]:
    """Opens a pipe for reading, which a thread fills with the bytes."""
    reader, writer = os.pipe()
    if not content:
        os.close(writer)
        with open(reader, encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor
            yield stream
        return

    def write() -> None:
        # A command that has read enough may have closed the other end.
        with suppress(BrokenPipeError), open(writer, "wb") as pipe:  # noqa: PTH123 - a descriptor
            pipe.write(content)

    thread = Thread(target=write)
    thread.start()
    try:
        with open(reader, encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor
            yield stream
    finally:
        thread.join()


@contextmanager
def _warnings_on_standard_error() -> Generator[None]:
    """Prints warnings as Python does by default, instead of giving them to pytest."""

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))

    with warnings.catch_warnings():
        warnings.resetwarnings()
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        warnings.showwarning = show
        yield


def on_terminal(
    *arguments: Argument,
    columns: int = 100,
    env: Mapping[str, str] | None = None,
    only: str | None = None,
    script: str | None = None,
) -> tuple[str, Finished]:
    """Runs `seglake` with output and error on a pseudo-terminal, or `only` one of them; returns what that got first.

    With `script` it runs that text of Python instead.
    """
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        command(*arguments) if script is None else [sys.executable, "-c", script, *map(os.fsdecode, arguments)],
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
