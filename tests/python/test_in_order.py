"""Work side by side: what threads, forks and interruptions do to it."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from seglake.read.in_order import in_order

THREADS = 3


def own_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "seglake"]


def twice(thing: int) -> Iterator[int]:
    yield thing
    yield thing


def test_things_that_fail_late_lose_nothing_before_them() -> None:
    def things() -> Iterator[int]:
        yield from range(4)
        raise KeyError("things")

    def slowly(thing: int) -> Iterator[int]:
        for number in range(4):
            time.sleep(0.01)
            yield number

    seen: list[tuple[int, int]] = []
    with pytest.raises(KeyError, match="things"):
        for each in in_order(things(), slowly, THREADS):
            seen.append(each)
    assert seen == [(thing, number) for thing in range(4) for number in range(4)]
    assert not own_threads()


def test_fewer_threads_than_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def most_two(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", most_two)
    assert len(list(in_order(range(20), twice, 8))) == 40
    assert len(started) == 2
    with pytest.raises(RuntimeError, match="can't start"):
        list(in_order(range(20), twice, 8))
    assert not own_threads()


def test_dropped_within_one_of_its_own_threads() -> None:
    errors: list[object] = []
    held: list[object] = []
    at_two = threading.Event()

    def dropping(thing: int) -> Iterator[int]:
        yield thing
        if thing == 2:
            at_two.wait(30)
            held.clear()  # the last reference: the generator is closed here
        yield thing

    hook = sys.unraisablehook
    sys.unraisablehook = errors.append
    try:
        work = in_order(range(9), dropping, THREADS)
        assert next(work) == (0, 0)
        held.append(work)
        del work
        at_two.set()
        deadline = time.monotonic() + 30
        while own_threads() and time.monotonic() < deadline:
            time.sleep(0.01)
        gc.collect()
    finally:
        sys.unraisablehook = hook
    assert not own_threads()
    assert not errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only Unix forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_is_told_and_does_not_wait() -> None:
    work = in_order(range(100), twice, THREADS)
    assert next(work) == (0, 0)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        status = 1
        try:
            list(work)
        except RuntimeError as error:
            status = 0 if "begin anew here" in str(error) else 2
        del work
        gc.collect()
        if len(list(in_order(range(10), twice, THREADS))) != 20:
            status = 3
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(work)) == 199


@pytest.mark.skipif(os.name == "nt", reason="which sends no signals")
def test_an_interruption_ends_the_threads(tmp_path: Path) -> None:
    script = tmp_path / "work.py"
    script.write_text(
        "import threading, time\n"
        "from seglake.read.in_order import in_order\n"
        "def slowly(thing):\n"
        "    for number in range(10_000):\n"
        "        time.sleep(0.01)\n"
        "        yield number\n"
        "try:\n"
        "    for each in in_order(range(9), slowly, 3):\n"
        "        print(*each, flush=True)\n"
        "except KeyboardInterrupt:\n"
        "    print([thread.name for thread in threading.enumerate()])\n",
        encoding="utf-8",
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["0 0\n", "0 1\n"]
        process.send_signal(signal.SIGINT)
        assert process.stdout.read().splitlines()[-1] == "['MainThread']"
        assert process.wait(30) == 0
