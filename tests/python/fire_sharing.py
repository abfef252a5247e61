"""What readers that several threads, processes or signal handlers share go through in `test_under_fire_reading.py`."""

# ruff: noqa: B023 - what a loop defines is called in the same round of it
import gc
import io
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from fire_reading import arrow_values, every_way
from fire_samples import FORMATS, RECORDS, expected, forked, ids, raises, sample, values

import seglake


def threads(folder: str) -> None:
    """Many threads share a reader: each gets all of it, or of what they share each record goes to one."""
    for format in FORMATS:
        path = sample(Path(folder), format)
        content = path.read_bytes()
        ways, all_values = every_way(path), expected()
        sources: list[Any] = [path, bytearray(content), io.BytesIO(content)]
        for source in sources:
            index: Any = {"index": path.with_suffix(".index")} if format == "chunked" else {}
            reader = seglake.open(source, format=format, options=index)
            shared: list[Any] = [iter(reader), reader.batches()]
            together: list[list[bytes]] = [[], []]
            failures: list[BaseException] = []

            def work(number: int) -> None:
                try:
                    for name in list(ways)[number::4]:
                        given = ways[name](reader)
                        if isinstance(given, list) and name not in ("ledger", "get"):
                            assert given == all_values, name
                        assert reader.report.records <= RECORDS
                        together[0].extend(values(shared[0]))
                        for batch in shared[1]:
                            together[1].extend(pa.record_batch(batch).column("value").to_pylist())
                except BaseException as error:
                    failures.append(error)
                    raise

            workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            assert not failures, failures
            for given in together:
                assert sorted(given) == sorted(all_values)


def closed_by_another_thread(folder: str) -> None:
    path = sample(Path(folder), "active")
    for _ in range(20):
        reader = seglake.open(path)
        ended: list[object] = []

        def work() -> None:
            try:
                while True:
                    assert values(reader) == expected()
            except ValueError as error:
                ended.append(error)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        time.sleep(0.005)
        reader.close()
        for worker in workers:
            worker.join()
        assert ["closed" in str(error) for error in ended] == [True] * 4


def forks(folder: str) -> None:
    """A child reads on where its parent was, and so does the parent."""
    for format in FORMATS:
        path = sample(Path(folder), format)
        ways, all_values = every_way(path), expected()
        for source in (path, path.read_bytes(), bytearray(path.read_bytes())):
            index: Any = {"index": path.with_suffix(".index")} if format == "chunked" else {}
            reader = seglake.open(source, format=format, options=index)
            passing = iter(reader)
            before = [next(passing) for _ in range(5)]

            def child() -> None:
                assert values([*before, *passing]) == all_values
                assert values(reader) == all_values
                reader.get_many(ids(path)[:3])
                assert reader.report.records == RECORDS

            for _ in range(2):
                forked(child)
            for way in ways.values():
                way(reader)
            assert values([*before, *passing]) == all_values
        # Another process that moves the same position would make a sound file look damaged: it is told so.
        with path.open("rb") as file:
            reader = seglake.open(file, format=format)

            def refused() -> None:
                with raises(OSError, text="open the file again"):
                    list(reader)

            forked(refused)
            assert values(reader) == all_values


def _read_in_pool(path: str) -> int:
    return sum(1 for _ in seglake.open(path))


def pool(folder: str) -> None:
    path = sample(Path(folder), "sealed")
    reader = seglake.open(path)
    next(iter(reader))
    with multiprocessing.get_context("fork").Pool(3) as workers:
        assert workers.map(_read_in_pool, [str(path)] * 12) == [RECORDS] * 12
    assert values(reader) == expected()


def fork_among_threads(folder: str) -> None:
    """A child of a process whose threads read: what they were in the middle of is refused, all else is right."""
    warnings.simplefilter("ignore")
    path = sample(Path(folder), "active")
    reader = seglake.open(path)
    shared: list[Any] = [iter(reader)]
    stopping = threading.Event()

    def work() -> None:
        while not stopping.is_set():
            shared[0] = iter(reader)
            values(shared[0])

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(12):

            def child() -> None:
                try:
                    given = values(shared[0])
                    assert given == expected()[RECORDS - len(given) :]
                except RuntimeError as error:
                    assert "forked" in str(error)
                assert values(reader) == expected()
                assert arrow_values(reader) == expected()

            forked(child)
    finally:
        stopping.set()
        for worker in workers:
            worker.join()


def fork_among_parts(folder: str) -> None:
    """A child of a process whose threads read the parts of a file lets go of what these were in the middle of."""
    path = sample(Path(folder), "sealed")
    for _ in range(15):
        shared = [seglake.open(path, threads=3, options={"batch_bytes": 60}).batches(3)]
        first = pa.record_batch(next(shared[0])).column("value").to_pylist()

        def child() -> None:
            with raises(ValueError, text="is a fork"):
                next(shared[0])
            shared.clear()
            gc.collect()
            assert arrow_values(seglake.open(path, threads=2, options={"batch_bytes": 60})) == expected()

        forked(child)
        rest = [value for batch in shared[0] for value in pa.record_batch(batch).column("value").to_pylist()]
        assert first + rest == expected()


class Meddling(io.BytesIO):
    """A file that uses its own reader in the middle of being read, once."""

    meddle: Callable[[], object] | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        meddle, self.meddle = self.meddle, None
        if meddle is not None:
            meddle()
        return super().read(size)


def within_itself(folder: str) -> None:
    """Who uses a reader within its own use is told so, and does not wait for himself for ever."""
    for format in FORMATS:
        content = sample(Path(folder), format).read_bytes()
        ranged: Callable[[seglake.Reader], Any] = lambda reader: reader.range([])  # noqa: E731
        for begin in (iter, seglake.Reader.batches, seglake.Reader.ledger, ranged):
            file = Meddling(content)
            reader = seglake.open(file, format=format)
            passing: Any = begin(reader)
            refused: list[str] = []

            def again() -> None:
                try:
                    next(passing)
                except RuntimeError as error:
                    refused.append(str(error))

            file.meddle = again
            list(passing)
            assert len(refused) <= 1
            assert all("within its own use" in text for text in refused)
            if file.meddle is None:
                assert refused, f"{format} {begin}"
            # Reading the file itself again would move it.
            file.meddle = lambda: values(reader)
            with raises(OSError, text="within its own use"):
                values(reader)
            assert values(reader) == expected()


def reported_by_a_signal(folder: str) -> None:
    """A handler that looks how far the reading is, at every moment of it."""
    path = Path(folder) / "zeros.active"
    path.touch()
    os.truncate(path, 1 << 38)
    reader = seglake.open(path)
    looks: list[object] = []

    class Enough(Exception):
        pass

    def look(number: int, frame: object) -> None:
        try:
            looks.append(reader.report)
        except RuntimeError as error:
            looks.append(error)
        if len(looks) == 5:
            raise Enough

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    with raises(Enough):
        list(reader)
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert any("within its own use" in str(found) for found in looks), looks


def no_deadlock(folder: str) -> None:
    """Threads that begin, step and ask for the report, each waiting for what another has."""
    path = sample(Path(folder), "active")
    with path.open("rb") as file:
        reader = seglake.open(file)
        stopping = time.monotonic() + 1.5

        def step() -> None:
            while time.monotonic() < stopping:
                assert values(reader) == expected()

        def begin() -> None:
            while time.monotonic() < stopping:
                iter(reader)

        def report() -> None:
            while time.monotonic() < stopping:
                assert reader.report.records <= RECORDS

        workers = [threading.Thread(target=work) for work in (step, step, begin, begin, report, report)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


class AtTheEnd:
    """Reads when it is freed."""

    def __init__(self, path: Path, label: str) -> None:
        self.reader = seglake.open(path)
        self.passing = iter(self.reader)
        next(self.passing)
        self.label = label
        self.write = os.write

    def __del__(self) -> None:
        assert len(list(self.passing)) == RECORDS - 1
        assert len(list(self.reader)) == RECORDS
        self.write(1, f"{self.label}\n".encode())


def finalisers(folder: str) -> None:
    """Readers used by finalisers, also by those that run when the interpreter ends, while threads still read."""
    import atexit

    # Whose globals no thread holds on to: they are freed while the interpreter ends.
    import __main__

    kept: list[object] = []
    __main__.kept = kept  # pyright: ignore[reportAttributeAccessIssue]
    for format in FORMATS:
        path = sample(Path(folder), format)
        AtTheEnd(path, f"{format} freed")
        cycle: list[object] = [AtTheEnd(path, f"{format} collected")]
        cycle.append(cycle)
        del cycle
        gc.collect()
        kept.append(AtTheEnd(path, f"{format} at the end"))
        atexit.register(lambda path=path: print(len(list(seglake.open(path)))))

        def read_on(path: Path = path) -> None:
            while True:
                seglake.verify(path)
                list(seglake.open(path))

        threading.Thread(target=read_on, daemon=True).start()
