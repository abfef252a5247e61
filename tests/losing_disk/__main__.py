"""Lets writers write to a file system that loses what was not synced, and checks what is left.

    python -m tests.losing_disk --losses 1000 --seed 1
    python -m tests.losing_disk --losses 300 --mutants     # and without the syncs of each kind of file

Each round mounts the file system, runs the writer in another process, and loses power in many ways at many moments.
With --mutants a kind of sync is left out at a time, and at least one of these losses has to be noticed.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.python.power_loss import lay_out

from .journal import Journal
from .protocol import mount, unmount
from .writers import SCENARIOS, Scenario

ROOT = Path(__file__).resolve().parents[2]
# Of so many losses power is lost in one run of the writer.
_LOSSES_OF_A_RUN = 50
# What the mark says is a lower bound: records after it are read as well. Without a file that says where a segment ends
# only a cut is not noticed.
_LOG = {"log/_mark", "log/._#.end.#.tmp"}
_NOT_NEEDED = {
    "log": _LOG,
    "log again": _LOG,
    "retained log": _LOG,
    # All files are moved out of it, to a folder that is synced.
    "commands": {".seglake.#.tmp/"},
}


def can_mount() -> str | None:
    """Why no file system can be mounted here; None where one can."""
    if not sys.platform.startswith("linux"):
        return "there is no /dev/fuse"
    with tempfile.TemporaryDirectory() as folder:
        try:
            descriptor = mount(Path(folder))
        except (OSError, subprocess.CalledProcessError) as error:
            return f"no file system can be mounted by /dev/fuse: {error}"
        # Nobody answers, so it ends at once.
        os.close(descriptor)
        unmount(Path(folder))
    return None


@contextmanager
def losing(folder: Path, journal: Path, begun: Path) -> Iterator[None]:
    """Mount the file system at a folder, with what is in another one. Its journal is in a file afterwards."""
    folder.mkdir()
    arguments = [sys.executable, "-m", "tests.losing_disk.protocol", *map(os.fspath, (folder, journal, begun))]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"mounted\n", "the file system was not mounted"
            yield
        finally:
            unmount(folder)
            server.wait(60)


def journal_of(name: str, scenario: Scenario, folder: Path, seed: int) -> Journal:
    """What a writer does to the disk."""
    begun, journal, told = folder / "begun", folder / "journal", b""
    if scenario.after is not None:
        earlier = folder / "earlier"
        earlier.mkdir()
        before, choice = journal_of(scenario.after, SCENARIOS[scenario.after], earlier, seed), random.Random(seed)
        moment = before.moment(choice)
        lay_out(before.state(moment, choice), begun)
        told = before.told(moment)
    else:
        begun.mkdir()
        scenario.prepare(begun)
    at = folder / "disk"
    with losing(at, journal, begun):
        arguments = [sys.executable, "-m", "tests.losing_disk.writers", name, os.fspath(at), str(seed)]
        subprocess.run(arguments, cwd=ROOT, check=True)
    done: Journal = pickle.loads(journal.read_bytes())
    done.before = told
    return done


def lose(scenario: Scenario, journal: Journal, folder: Path, choice: random.Random) -> Exception | None:
    """Lose power once. Returns what was wrong."""
    moment = journal.moment(choice)
    lay_out(journal.state(moment, choice), folder)
    last = journal.state(len(journal.events), _Keeping())
    try:
        scenario.check(folder, journal.told(moment), last)
    except Exception as error:
        return error
    return None


class _Keeping(random.Random):
    """Loses nothing."""

    def random(self) -> float:
        return 0.5

    def choice(self, seq: Sequence[float]) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        return seq[-1]


def kind(path: str) -> str:
    """A path without the numbers in it, also of times."""
    return re.sub(r"[0-9a-f]{8}([0-9a-fTZ-]*[0-9a-f])?", "#", path)


def run(name: str, losses: int, seed: int) -> Iterator[tuple[Journal, Path]]:
    """Lose power so many times, in runs of a writer, each of which is given.

    Raises:
        AssertionError: something was wrong.
    """
    scenario = SCENARIOS[name]
    for at in range(0, losses, _LOSSES_OF_A_RUN):
        with tempfile.TemporaryDirectory(prefix="seglake-losing-") as own:
            folder = Path(own)
            journal = journal_of(name, scenario, folder, seed + at)
            for number in range(at, min(losses, at + _LOSSES_OF_A_RUN)):
                error = lose(scenario, journal, folder / str(number), random.Random(seed + number))
                assert error is None, f"{name}, seed {seed}, loss {number}: {type(error).__name__}: {error}"
            yield journal, folder


def unnoticed(name: str, journal: Journal, folder: Path, losses: int) -> Iterator[str]:
    """The kinds of files and folders whose syncs could be left out."""
    scenario = SCENARIOS[name]
    for left_out in sorted({kind(path) for path in journal.synced()} - _NOT_NEEDED.get(name, set())):
        mutant = journal.without(lambda path, left_out=left_out: kind(path) == left_out)
        places = (folder / f"{left_out.replace('/', '-')} {number}" for number in range(losses))
        if not any(lose(scenario, mutant, at, random.Random(number)) for number, at in enumerate(places)):
            yield left_out


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--losses", type=int, default=1000, help="of each writer")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 16))
    parser.add_argument("--mutants", action="store_true", help="leave out syncs, too")
    parser.add_argument("writers", nargs="*", default=[*SCENARIOS])
    options = parser.parse_args()
    reason = can_mount()
    if reason is not None:
        sys.exit(reason)
    print(f"seed {options.seed}", flush=True)
    for name in options.writers:
        began, events, kinds = time.monotonic(), 0, set[str]()
        missed: set[str] | None = None
        for journal, folder in run(name, options.losses, options.seed):
            events += len(journal.events) - journal.begun
            kinds |= {kind(path) for path in journal.synced()}
            if options.mutants:
                found = {*unnoticed(name, journal, folder, _LOSSES_OF_A_RUN)}
                missed = found if missed is None else missed & found
        took = time.monotonic() - began
        print(f"{name}: {options.losses:,} losses of power, {events:,} changes, {took:.0f} s", flush=True)
        if options.mutants:
            print("  noticed if left out:", ", ".join(sorted(kinds - (missed or set()) - _NOT_NEEDED.get(name, set()))))
        if missed:
            sys.exit(f"{name}: could be left out: {', '.join(sorted(missed))}")


if __name__ == "__main__":
    main()
