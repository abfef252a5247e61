"""Runs a command in a session of processes of its own, of which any can be killed: what tests of real kills share."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

sys.path.append(str(Path(__file__).with_name("spark")))
from clusters import FORKED, JVM

__all__ = ["Processes"]

_EXECUTOR: Final = "CoarseGrainedExecutorBackend"


class Processes:
    """A command and all that it starts.

    Args:
        log: the file that takes what they say.
    """

    def __init__(self, log: Path) -> None:
        self._path = log
        self._log = log.open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str], *, piped: bool = False, **variables: str) -> subprocess.Popen[bytes]:
        """Starts it; `piped` is for who reads its standard output."""
        # Where the two differ, PySpark refuses to start a worker.
        python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        self._process = subprocess.Popen(
            command,
            cwd=Path(__file__).parents[1],
            env={**os.environ, **JVM, **FORKED, **python, **variables},
            stdout=subprocess.PIPE if piped else self._log,
            stderr=self._log,
            start_new_session=True,
        )
        return self._process

    def listed(self) -> dict[int, str]:
        """Returns the processes of its session, and what each of them is: driver, jvm, executor or python."""
        process = self._process
        assert process is not None
        listed = subprocess.run(
            ["ps", "-o", "pid=,stat=,args=", "-s", str(process.pid)], check=False, capture_output=True, text=True
        ).stdout
        found: dict[int, str] = {}
        for line in listed.splitlines():
            number, state, arguments = line.split(maxsplit=2)
            if state.startswith("Z"):
                continue  # it has ended, and nobody has asked for its status
            found[int(number)] = self._kind(int(number), arguments)
        return {pid: kind for pid, kind in found.items() if kind != "python" or "pyspark" in _arguments(pid)}

    def kill_one(self, chosen: random.Random) -> str | None:
        """Kills one of any kind, each kind as likely as the others. Returns which; None if it had ended."""
        kinds = self.listed()
        if not kinds:
            return None
        kind = chosen.choice(sorted(set(kinds.values())))
        return kind if _kill(chosen.choice([pid for pid, own in kinds.items() if own == kind])) else None

    def end(self) -> None:
        """Kills what is left of it."""
        process = self._process
        if process is None:
            return
        while left := list(self.listed()):
            for pid in left:
                _kill(pid)
            process.poll()
            time.sleep(0.05)
        process.wait()
        self._process = None

    def said(self) -> str:
        """Returns the end of what they have said."""
        return self._path.read_text(errors="replace")[-4000:]

    def _kind(self, pid: int, arguments: str) -> str:
        assert self._process is not None
        if pid == self._process.pid:
            return "driver"
        if arguments.split(" ", 1)[0].rpartition("/")[2] != "java":
            return "python"
        return "executor" if _EXECUTOR in arguments else "jvm"


def _arguments(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
