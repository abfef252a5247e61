"""Uses one log for minutes from many processes, and looks for what is lost and for what grows.

    python -m tests.log_soak --seconds 600 --seed 1

Writers follow one another, each with several threads; most are killed. Retention and rolls remove segments under the
readers. Beside them, from beginning to end: two tails, a reader that looks up, iterates and makes Arrow batches, and a
process that verifies the log and takes snapshots of it. The records are those of `tests.log_kills`, which also tells
what is lost, comes twice or is out of order.

Memory, descriptors and threads of each process that lives for a minute or more are measured. In the second half of
its life they may not grow by more than `TOLERANCES`: of the slopes between any two samples the median counts, so that
the ups and downs of single reads do not.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import select
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

import seglake
from seglake import SegmentLog
from seglake._native import list_log
from tests.log_kills import ACKNOWLEDGED, Oracle, append, counts_told, follow, forked, is_told

# A process that is younger still fills its caches.
_LIFE_MEASURED_S = 60
# The processes that write in a row before one lives long.
_SHORT_LIVES = 20
_MOST_SAMPLES = 600
_KNOWN_RECORDS = 200


class Sample(NamedTuple):
    """What a process has at one moment."""

    at: float
    rss: float
    descriptors: float
    threads: float


TOLERANCES = Sample(0, 8 << 20, 6, 2)
"""How much may be added in the second half of a process's life: bytes, descriptors, threads."""


@dataclass
class Process:
    """A process that is measured, and the pipe by which it tells its results."""

    name: str
    pid: int
    result: int
    samples: list[Sample] = field(default_factory=list[Sample])

    def look(self, now: float) -> None:
        """Take a sample, unless the process is gone."""
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        assert ended is None or ended.si_status in (0, signal.SIGKILL), f"{self.name} failed: its error is above"
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            status = dict(line.split(":", 1) for line in Path(f"/proc/{self.pid}/status").read_text().splitlines())
            if "VmRSS" in status:
                descriptors = len(os.listdir(f"/proc/{self.pid}/fd"))  # noqa: PTH208 - names alone
                rss = int(status["VmRSS"].split()[0]) * 1024
                self.samples.append(Sample(now, rss, descriptors, int(status["Threads"])))


def growth(samples: Sequence[Sample]) -> Sample:
    """How much is added in the second half of these samples, as of the median of the slopes between any two."""
    half = samples[len(samples) // 2 :]
    if len(half) < 3:
        return Sample(0, 0, 0, 0)
    span = half[-1].at - half[0].at

    def added(at: int) -> float:
        pairs = itertools.combinations(half, 2)
        return span * statistics.median((b[at] - a[at]) / (b.at - a.at) for a, b in pairs)

    return Sample(span, added(1), added(2), added(3))


def too_much(samples: Sequence[Sample]) -> list[str]:
    """What grows by more than the tolerance."""
    added = growth(samples)
    names = Sample._fields[1:]
    return [
        f"{name}: +{more:,.0f} in {added.at:.0f} s, {most:,.0f} tolerated"
        for name, more, most in zip(names, added[1:], TOLERANCES[1:], strict=True)
        if more > most
    ]


def write(path: Path, round: int, seed: int, retained: int, told: int, stop: int) -> None:
    """Write with several threads, and keep house beside them, until told to stop."""
    choice = random.Random(seed)
    log = SegmentLog(
        path,
        durability=choice.choice(["fsync", "flush"]),
        segment_bytes=choice.choice([retained // 100, retained // 10]),
        segment_age=choice.choice([None, 0.5]),
        retention={"bytes": retained},
    )
    is_over = threading.Event()

    def run(thread: int, batch: int, size: int) -> None:
        number, pause = 0, random.Random(thread)
        while not is_over.is_set():
            number = append(log, (round, thread, number), batch, size, told)
            time.sleep(pause.random() * 0.004)

    threads = [
        threading.Thread(target=run, args=(thread, choice.choice([1, 1, 20]), choice.choice([0, 30, 300])))
        for thread in range(choice.randint(2, 5))
    ]
    for each in threads:
        each.start()
    while not is_told(stop):
        keep_house(log, choice, retained)
        time.sleep(0.02)
    is_over.set()
    for each in threads:
        each.join()
    # Not before: where segments roll faster than they are sealed, there is no end to wait for.
    log.wait_sealed()
    log.close()


def keep_house(log: SegmentLog, choice: random.Random, retained: int) -> None:
    """Do something that is not writing in the process that writes."""
    with contextlib.suppress(seglake.exceptions.SegmentGoneError):
        match choice.randrange(5):
            case 0:
                log.sync()
            case 1:
                log.roll()
            case 2:
                log.retain(bytes=retained * 3 // 4)
            case 3:
                synced = log.synced
                assert synced is None or log.get(synced.last) is not None, f"{synced} is not there"
            case _:
                # An iterator that is not read to its end.
                next(iter(log), None)


def tell(told: int, done: Counter[str]) -> None:
    with open(told, "w") as out:
        json.dump(done, out)


@dataclass
class Reader:
    """Reads a log in all ways, on an object that stays open and on new ones."""

    path: Path
    choice: random.Random
    known: list[seglake.Record] = field(default_factory=list[seglake.Record])

    def __post_init__(self) -> None:
        self._kept = SegmentLog(self.path, readonly=True)

    def read_once(self) -> str:
        """Read in one of the ways, and return its name."""
        way = self.choice.choice([self.whole, self.get, self.get, self.after, self.arrow, self.one_after])
        with contextlib.suppress(seglake.exceptions.SegmentGoneError):
            way(self._kept if self.choice.random() < 0.5 else SegmentLog(self.path, readonly=True))
        return way.__name__

    def whole(self, log: SegmentLog) -> None:
        """Read all records."""
        oracle, known = Oracle(has_retention=True), list[seglake.Record]()
        for record in log:
            oracle.take(record)
            if len(known) < _KNOWN_RECORDS:
                known.append(record)
            elif (at := self.choice.randrange(oracle.records)) < _KNOWN_RECORDS:
                known[at] = record
        self.known = known

    def get(self, log: SegmentLog) -> None:
        """Look records up by their UUID."""
        for known in self.choice.sample(self.known, min(10, len(self.known))):
            found = log.get(known.uuid)
            is_removed = found is None and known.uuid < log.segments()[0].first
            assert is_removed or (found is not None and found.value == known.value), f"{known.uuid}: {found}"

    def after(self, log: SegmentLog) -> None:
        """Read what comes after a record."""
        oracle = Oracle(has_retention=True)
        for record in log.range([("uuid", ">", known.uuid) for known in self.choice.sample(self.known, 1)]):
            oracle.take(record)

    def one_after(self, log: SegmentLog) -> None:
        """Begin to read after a record."""
        for known in self.choice.sample(self.known, 1):
            next(log.range([("uuid", ">", known.uuid)]), None)

    def arrow(self, log: SegmentLog) -> None:
        """Read the UUIDs as Arrow batches."""
        last = b""
        for batch in log.batches(columns=["uuid"], uuid_type="binary", batch_size=5000):
            uuids = pa.record_batch(batch).column(0)
            assert last < uuids[0].as_py(), f"{uuids[0]} after {last.hex()}"
            last = uuids[-1].as_py()


def read(path: Path, seed: int, stop: int, told: int) -> None:
    """Read in all ways until told to stop."""
    reader, done = Reader(path, random.Random(seed)), Counter[str]()
    reader.whole(SegmentLog(path, readonly=True))
    while not is_told(stop):
        if reader.known:
            done[reader.read_once()] += 1
        else:
            reader.whole(SegmentLog(path, readonly=True))
        time.sleep(0.02)
    tell(told, done)


def verify_all(path: Path) -> int:
    """Verify all segments of a log. Returns how many there were."""
    segments, _ = list_log(path)
    for segment in segments:
        # The next writer removes one in which a writer died before its first record, and cuts off what is torn.
        try:
            report = seglake.verify(segment, threads=2)
        except (seglake.exceptions.SegmentGoneError, FileNotFoundError):
            continue
        except OSError as error:
            assert "the file shrank while it was read" in str(error), error
            continue
        assert report.ok, f"{segment.path}: {report.damage}"
    return len(segments)


def verify(path: Path, copies: Path, seed: int, stop: int, told: int) -> None:
    """Verify, and take snapshots, which are verified and written to, until told to stop."""
    choice, done = random.Random(seed), Counter[str]()
    while not is_told(stop):
        done["segments verified"] += verify_all(path)
        time.sleep(0.1)
        log = SegmentLog(path, readonly=True)
        if log.synced is None:
            continue  # there is nothing to take
        to = copies / str(done["snapshots"])
        # Where segments roll faster than it links them, it gives up after some tries.
        with contextlib.suppress(seglake.exceptions.SegmentGoneError, FileNotFoundError):
            log.snapshot(to)
            verify_all(to)
            taken = Oracle(has_retention=True)
            with SegmentLog(to, readonly=choice.random() < 0.5) as copy:
                taken.look(copy)
                if not copy.readonly:
                    copy.write("soak", b"")
            done["snapshots"] += 1
        shutil.rmtree(to, ignore_errors=True)
    tell(told, done)


class Soak:
    """One log and the processes that use it."""

    def __init__(self, folder: Path, seconds: float, seed: int) -> None:
        self.folder, self.path, self.seconds, self.seed = folder, folder / "log", seconds, seed
        self.choice = random.Random(seed)
        self.retained = int(min(8 << 20, max(200_000, seconds * 20_000)))
        self.acknowledged: dict[tuple[int, int], int] = {}
        self.beside: list[Process] = []
        self.writers: list[Process] = []
        self.killed = 0
        self.interval = max(0.05, seconds / _MOST_SAMPLES)
        self._next_look = 0.0
        (folder / "copies").mkdir()
        SegmentLog(self.path).close()

    def start(self, name: str, work: Callable[[int, int], None]) -> tuple[Process, int]:
        """Do some work in a process, which gets a descriptor to know the end by and one to tell by."""
        (stopped, stop), (result, told) = os.pipe(), os.pipe()

        def alone() -> None:
            os.close(result)
            for each in (stop, *self._stops):
                os.close(each)
            work(stopped, told)

        pid = forked(alone)
        os.close(told)
        os.close(stopped)
        return Process(name, pid, result), stop

    _stops: tuple[int, ...] = ()

    def run(self) -> None:
        """Use the log for the time."""
        path, copies, seed, began = self.path, self.folder / "copies", self.seed, time.monotonic()
        for name, work in (
            ("tail", lambda stop, told: follow(path, True, stop, told)),
            ("tail anew", lambda stop, told: follow(path, True, stop, told, again=500)),
            ("reader", lambda stop, told: read(path, seed, stop, told)),
            ("verifier", lambda stop, told: verify(path, copies, seed, stop, told)),
        ):
            process, stop = self.start(name, work)
            self.beside.append(process)
            self._stops = (*self._stops, stop)
        left = self.seconds
        for round in itertools.count():
            is_long = round % (_SHORT_LIVES + 1) == _SHORT_LIVES
            life = self.seconds / 5 if is_long else self.choice.random() * min(1.5, self.seconds / 40)
            self.write(round, min(life, left), is_killed=not is_long and self.choice.random() < 0.6)
            left = self.seconds - (time.monotonic() - began)
            if left <= 0:
                break
        # The last writer may have been killed: this takes in what it wrote behind its mark, so that the tails give it.
        SegmentLog(path).close()

    def write(self, round: int, life: float, is_killed: bool) -> None:
        """Let a process write for so many seconds."""
        path, retained, seed = self.path, self.retained, self.choice.randrange(1 << 32)
        writer, stop = self.start(f"writer {round}", lambda stop, told: write(path, round, seed, retained, told, stop))
        end, told, is_open = time.monotonic() + life, b"", True
        while is_open:
            now = time.monotonic()
            if stop >= 0 and now >= end:
                if is_killed:
                    os.kill(writer.pid, signal.SIGKILL)
                os.close(stop)
                stop = -1
            if now >= self._next_look:
                self._next_look = now + self.interval
                for process in (writer, *self.beside):
                    process.look(now)
            wait = self._next_look - now if stop < 0 else min(self._next_look, end) - now
            if select.select([writer.result], [], [], max(wait, 0))[0]:
                more = os.read(writer.result, 1 << 16)
                is_open, told = bool(more), told + more
                whole = len(told) // ACKNOWLEDGED.size * ACKNOWLEDGED.size
                for thread, number in ACKNOWLEDGED.iter_unpack(told[:whole]):
                    self.acknowledged[round, thread] = number
                told = told[whole:]
        if stop >= 0:
            os.close(stop)
        os.close(writer.result)
        code = os.waitstatus_to_exitcode(os.waitpid(writer.pid, 0)[1])
        assert code == (-signal.SIGKILL if is_killed else 0), f"writer {round} failed: its error is above"
        self.killed += is_killed
        self.writers.append(writer)

    def stop(self) -> tuple[list[dict[tuple[int, int], int]], Counter[str]]:
        """Stop the processes. Returns what the tails counted, and what the others did."""
        for each in self._stops:
            os.close(each)
        followed: list[dict[tuple[int, int], int]] = []
        done = Counter[str]()
        failed: list[str] = []
        for process in self.beside:
            if process.name.startswith("tail"):
                followed.append(counts_told(process.result))
            else:
                with open(process.result) as told:  # noqa: PTH123 - a descriptor
                    done.update(json.loads(told.read() or "{}"))
            if os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1]) != 0:
                failed.append(process.name)
        assert not failed, f"failed: {failed}; the errors are above"
        return followed, done

    def check(self, followed: Sequence[dict[tuple[int, int], int]]) -> None:
        """Compare what is there, and what the tails gave, with what was acknowledged."""
        last = Oracle(has_retention=True)
        with SegmentLog(self.path) as log:
            last.look(log)
        last.check(self.acknowledged)
        verify_all(self.path)
        for counts in followed:
            first = min(round for round, _ in counts)
            for (round, thread), number in self.acknowledged.items():
                found = counts.get((round, thread), 0)
                assert round <= first or found > number, f"a tail gave {found} of {round}, {thread}: {number + 1}"

    def show(self) -> list[str]:
        """Print what was measured. Returns what grew."""
        grew: list[str] = []
        for process in (*self.beside, *self.writers):
            lived = process.samples[-1].at - process.samples[0].at if process.samples else 0
            if lived < _LIFE_MEASURED_S:
                continue
            added, half = growth(process.samples), process.samples[len(process.samples) // 2 :]
            have = [statistics.median(each) for each in zip(*half, strict=True)][1:]
            told = (
                f"{have[0] / (1 << 20):.1f} MiB {added.rss / (1 << 20):+.2f}",
                f"{have[1]:.0f} descriptors {added.descriptors:+.1f}",
                f"{have[2]:.0f} threads {added.threads:+.1f}",
            )
            print(f"  {process.name}, {lived:.0f} s, median and growth of its second half: {', '.join(told)}")
            grew += [f"{process.name}: {each}" for each in too_much(process.samples)]
        return grew


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 16))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="seglake-soak-") as folder:
        soak = Soak(Path(folder), options.seconds, options.seed)
        try:
            soak.run()
        finally:
            followed, done = soak.stop()
        soak.check(followed)
    records = sum(number + 1 for number in soak.acknowledged.values())
    print(f"{len(soak.writers)} writers, {soak.killed} killed, {records:,} acknowledged records, {dict(done)}")
    print(f"tails began in rounds {[min(round for round, _ in counts) for counts in followed]}")
    grew = soak.show()
    if grew:
        sys.exit("\n".join(grew))
    print("none lost, twice or out of order; nothing grew")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
