"""Kills writers of a log at random moments, with a tail and a reader in other processes, and looks for what is lost.

    python -m tests.log_kills --rounds 1000 --seed 1

Each record says its round, its thread, and its number in these. So whatever survives, a log is right if UUIDs and
rounds ascend, each thread's numbers of a round are 0, 1, 2 and so on, and none that was acknowledged is missing.
Processes are forks of one that has imported everything, so a round is fast. Several lanes run side by side, each in a
folder of its own. A failure names its seed; moments differ from run to run, since they are those of the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import select
import signal
import struct
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import seglake
from seglake import SegmentLog

VALUE = struct.Struct(">III")
ACKNOWLEDGED = struct.Struct(">II")
# A log has so many rounds, so that reading it stays fast.
_ROUNDS_OF_A_LOG = 50
_LIFE_S = 0.02
_RETENTION = {"bytes": 20_000}


@dataclass
class Oracle:
    """Takes the records of a log in order, and raises where one is missing, comes twice or is out of order."""

    has_retention: bool = False
    counts: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    records: int = 0
    _last: seglake.Record | None = None
    _round: int = -1
    _first: int | None = None

    def take(self, record: seglake.Record) -> None:
        round, thread, number = VALUE.unpack_from(record.value)
        assert self._last is None or self._last.uuid < record.uuid, f"{record.uuid} does not ascend"
        assert round >= self._round, f"round {round} after {self._round}"
        # Retention removes the beginning of the log.
        expected = self.counts.get((round, thread), number if self.has_retention and self._is_first(round) else 0)
        assert number == expected, f"round {round}, thread {thread}: expected number {expected}, found {number}"
        self.counts[round, thread] = number + 1
        self._last, self._round = record, round
        self.records += 1
        self._first = round if self._first is None else self._first

    def _is_first(self, round: int) -> bool:
        return self._first is None or round == self._first

    def look(self, log: SegmentLog) -> None:
        """Take what the log has after the last record."""
        for record in log.range(None if self._last is None else [("uuid", ">", self._last.uuid)]):
            self.take(record)

    def check(self, acknowledged: dict[tuple[int, int], int]) -> None:
        first = -1 if self._first is None else self._first
        for (round, thread), number in acknowledged.items():
            if self.has_retention and round <= first:
                continue
            found = self.counts.get((round, thread), 0)
            assert found > number, f"round {round}, thread {thread}: {number} was acknowledged, {found} are there"


def forked(work: Callable[[], None]) -> int:
    """Do some work in a fork, which ends with 3 and the traceback if that raises."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(3)


def append(log: SegmentLog, first: tuple[int, int, int], batch: int, size: int, told: int) -> int:
    """Write some records, of which the first has this round, thread and number, and tell the number of the last one.

    Returns the number of the next.
    """
    round, thread, number = first
    records = [("kill", VALUE.pack(round, thread, number + at) + bytes(size)) for at in range(batch)]
    if batch == 1:
        log.write(*records[0])
    else:
        log.write_batch(records)
    os.write(told, ACKNOWLEDGED.pack(thread, number + batch - 1))
    return number + batch


def is_told(stop: int) -> bool:
    """Whether the other end of this pipe is closed."""
    return bool(select.select([stop], [], [], 0)[0])


def write(path: Path, round: int, seed: int, has_retention: bool, told: int) -> None:
    """Write until killed, and tell each number whose write returned."""
    choice = random.Random(seed)
    log = SegmentLog(
        path,
        durability=choice.choice(["fsync", "flush"]),
        segment_bytes=choice.choice([200, 2000, 20_000]),
        seal=has_retention or choice.random() < 0.6,
        retention=_RETENTION if has_retention else None,  # pyright: ignore[reportArgumentType]
    )

    def run(thread: int, batch: int, size: int) -> None:
        number = 0
        while True:
            number = append(log, (round, thread, number), batch, size, told)

    threads = [
        threading.Thread(target=run, args=(thread, choice.choice([1, 1, 5]), choice.choice([0, 30, 300])))
        for thread in range(choice.randint(1, 6))
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def follow(path: Path, has_retention: bool, stop: int, told: int, again: int | None = None) -> None:
    """Follow the log until told to stop, and tell how many records of each round and thread came.

    again: after so many records open the log once more, and go on after the last one.
    """
    log = SegmentLog(path, readonly=True)
    oracle, tail = Oracle(has_retention), log.tail("start")
    while True:
        is_over = is_told(stop)
        try:
            while (record := tail.poll(0.01)) is not None:
                oracle.take(record)
                if again is not None and oracle.records % again == 0:
                    log = SegmentLog(path, readonly=True)
                    tail = log.tail(record.uuid)
        except seglake.exceptions.SegmentGoneError:
            # The tail was too slow, which it is told.
            assert has_retention
            oracle, tail = Oracle(has_retention), log.tail("start")
            continue
        if is_over:
            break
    with open(told, "w") as out:
        out.writelines(f"{round} {thread} {count}\n" for (round, thread), count in sorted(oracle.counts.items()))


def counts_told(told: int) -> dict[tuple[int, int], int]:
    """What `follow` told."""
    with open(told) as lines:
        return {(int(a), int(b)): int(c) for a, b, c in (line.split() for line in lines)}


def read(path: Path, has_retention: bool, stop: int) -> None:
    """Read the whole log again and again."""
    most = 0
    while not is_told(stop):
        oracle = Oracle(has_retention)
        try:
            with SegmentLog(path, readonly=True) as log:
                oracle.look(log)
        except (seglake.exceptions.SegmentGoneError, FileNotFoundError):
            assert has_retention
            continue
        assert has_retention or oracle.records >= most, f"{oracle.records} records after {most}"
        most = oracle.records
        time.sleep(0.02)


def kill_in_a_round(path: Path, round: int, choice: random.Random, has_retention: bool) -> dict[tuple[int, int], int]:
    """Start a writer and kill it. Returns the last acknowledged number of each thread."""
    ours, theirs = os.pipe()
    seed = choice.randrange(1 << 32)

    def work() -> None:
        os.close(ours)
        write(path, round, seed, has_retention, theirs)

    pid = forked(work)
    os.close(theirs)
    if choice.random() < 0.75:
        # Otherwise it dies while it opens the log.
        select.select([ours], [], [], 60)
    time.sleep(choice.random() * _LIFE_S)
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    with open(ours, "rb") as pipe:  # noqa: PTH123 - a descriptor
        told = pipe.read()
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "the writer failed: its error is above"
    whole = len(told) // ACKNOWLEDGED.size * ACKNOWLEDGED.size
    return {(round, thread): number for thread, number in ACKNOWLEDGED.iter_unpack(told[:whole])}


def run_log(path: Path, rounds: Iterable[int], choice: random.Random, has_retention: bool) -> int:
    """Kill writers of one log. Returns how many of their writes were acknowledged."""
    SegmentLog(path).close()
    (stopped, stop), (result, told) = os.pipe(), os.pipe()

    def beside(work: Callable[[], None]) -> int:
        def alone() -> None:
            os.close(stop)
            work()

        return forked(alone)

    pids = [
        beside(lambda: follow(path, has_retention, stopped, told)),
        beside(lambda: read(path, has_retention, stopped)),
    ]
    os.close(told)
    acknowledged: dict[tuple[int, int], int] = {}
    oracle = Oracle(has_retention)
    try:
        for round in rounds:
            acknowledged |= kill_in_a_round(path, round, choice, has_retention)
            if choice.random() < 0.5:
                continue  # the next writer puts the log in order
            with SegmentLog(path, seal=False) as log:
                if has_retention:
                    oracle = Oracle(has_retention)
                oracle.look(log)
            oracle.check(acknowledged)
        SegmentLog(path).close()
        again = Oracle(has_retention)
        with SegmentLog(path, readonly=True) as log:
            again.look(log)
        again.check(acknowledged)
    finally:
        os.close(stop)
        followed = counts_told(result)
        os.close(stopped)
        ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert ends == [0, 0], f"the tail or the reader failed: {ends}; the error is above"
    assert has_retention or followed == again.counts, "the tail gave other records than the log has"
    return sum(number + 1 for number in acknowledged.values())


def run_lane(folder: Path, rounds: Sequence[int], seed: int) -> int:
    """Kill writers in these rounds, in several logs one after the other."""
    choice, acknowledged = random.Random(seed), 0
    for at in range(0, len(rounds), _ROUNDS_OF_A_LOG):
        has_retention = choice.random() < 0.3
        with tempfile.TemporaryDirectory(dir=folder) as own:
            part = rounds[at : at + _ROUNDS_OF_A_LOG]
            acknowledged += run_log(Path(own) / "log", part, choice, has_retention)
    return acknowledged


def run(folder: Path, rounds: int, seed: int, lanes: int = 2) -> int:
    """Kill writers so many times. Returns how many writes were acknowledged.

    Raises:
        AssertionError: something was lost, came twice or out of order. What is on standard error.
    """
    results: list[tuple[int, int]] = []
    for lane in range(lanes):
        ours, theirs = os.pipe()

        def work(lane: int = lane, theirs: int = theirs) -> None:
            own = range(lane, rounds, lanes)
            os.write(theirs, str(run_lane(folder, own, seed * 1000 + lane)).encode())

        results.append((forked(work), ours))
        os.close(theirs)
    acknowledged, failed = 0, False
    for pid, ours in results:
        with open(ours) as pipe:  # noqa: PTH123 - a descriptor
            told = pipe.read()
        failed = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0 or failed
        acknowledged += int(told or 0)
    assert not failed, f"a lane failed with seed {seed}: its error is on standard error"
    return acknowledged


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 16))
    parser.add_argument("--lanes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    began = time.monotonic()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="seglake-kills-") as folder:
        acknowledged = run(Path(folder), options.rounds, options.seed, options.lanes)
    took = time.monotonic() - began
    told = f"{options.rounds:,} kills, {acknowledged:,} acknowledged records"
    print(f"{told}: none lost, twice or out of order, {took:.0f} s")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
