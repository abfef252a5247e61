"""Runs what may kill a process in a process of its own, and tells how that ended."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# A process that waits for ever is a failure, not a slow test.
TIMEOUT_S = 300
RUN = "import sys, {module}; {module}.{name}(*sys.argv[1:])"


def run(scenario: Callable[..., None], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Calls `scenario(*arguments)`, a function of a module beside this one, in a new process."""
    script = RUN.format(module=scenario.__module__, name=scenario.__name__)
    here = str(Path(__file__).parent)
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", script, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        # To it and all its forks: each says where it was, and ends.
        os.killpg(process.pid, signal.SIGABRT)
        out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def survives(scenario: Callable[..., None], *arguments: str | Path) -> str:
    """Calls it likewise: it must end by itself, and right. Returns what it wrote."""
    done = run(scenario, *arguments)
    ended = signal.Signals(-done.returncode).name if done.returncode < 0 else f"status {done.returncode}"
    assert done.returncode == 0, f"{ended}\n{done.stdout}{done.stderr}"
    assert "panicked" not in done.stderr, done.stderr
    return done.stdout
