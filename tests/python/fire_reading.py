"""What readers go through in `test_under_fire_reading.py`: each function is a process's whole work."""

# ruff: noqa: B023 - what a loop defines is called in the same round of it
import array
import gc
import io
import mmap
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from fire_samples import FORMATS, expected, ids, raises, sample, values

import seglake


def arrow_values(reader: seglake.Reader) -> list[bytes]:
    return [value for batch in reader.batches() for value in pa.record_batch(batch).column("value").to_pylist()]


def every_way(path: Path) -> dict[str, Callable[[seglake.Reader], object]]:
    """All that a reader can be asked for, by name; what gives the values of all records gives all of them."""
    known, start = ids(path), next(iter(seglake.open(path))).position
    return {
        "records": values,
        "batches": arrow_values,
        "stream": lambda reader: pa.table(reader).column("value").to_pylist(),
        "range": lambda reader: values(reader.range([])),
        "records_from": lambda reader: values(reader.records_from(start)),
        "get_many": lambda reader: values(reader.get_many(known)),
        "get": lambda reader: [reader.get(*(id if isinstance(id, tuple) else (id,))).value for id in known[::40]],
        "ledger": lambda reader: list(reader.ledger()),
        "read_bytes": lambda reader: reader.read_bytes(0, reader.nbytes),
    }


def truncation(folder: str) -> None:
    """A file that is cut off at any moment gives an error or, where it was read before, right data."""
    for format in FORMATS:
        path = sample(Path(folder), format)
        content, all_values = path.read_bytes(), expected()
        for name, way in every_way(path).items():
            if name in ("range", "records_from", "stream"):
                continue  # the same walk and batches again
            path.write_bytes(content)
            whole = way(seglake.open(path))
            for cut in (0, len(content) - 1):
                path.write_bytes(content)
                reader = seglake.open(path)
                os.truncate(path, cut)
                try:
                    # A look-up need not come to where something is missing.
                    assert way(reader) == whole
                    assert name == "get"
                    assert cut > 0
                except (OSError, pa.ArrowInvalid) as error:
                    assert "shrank" in str(error), f"{format} {name} {cut}: {error}"
        # Between two records.
        for begin in (iter, lambda reader: reader.batches(10), seglake.Reader.ledger):
            path.write_bytes(content)
            reader = seglake.open(path)
            passing: Any = begin(reader)
            first = next(passing)
            os.truncate(path, 100)
            given = [first]
            with raises(OSError, text="shrank"):
                given.extend(passing)
            if begin is iter:
                assert values(given) == all_values[: len(given)]
        path.write_bytes(content)

        def cut_off(done: int, total: int) -> None:
            os.truncate(path, 100)

        with raises(OSError, text="shrank"):
            print(seglake.verify(path, progress=cut_off))
            # All was read in one go: then there was nothing to miss.
            raise OSError("shrank")


def mapped_truncation(folder: str) -> None:
    """The one thing that may kill, and says so."""
    path = sample(Path(folder), "sealed")
    reader = seglake.open(path, memory_map=True)
    os.truncate(path, 0)
    print("truncated", flush=True)
    list(reader)


def closed(folder: str) -> None:
    """A closed reader and all that it gave refuse."""
    for format in FORMATS:
        path = sample(Path(folder), format)
        for name, way in every_way(path).items():
            reader = seglake.open(path)
            begun: list[Any] = [iter(reader), reader.batches(), reader.ledger(), reader.range([])]
            for passing in begun:
                next(passing)
            reader.close()
            reader.close()
            assert reader.closed
            with raises(ValueError, pa.ArrowInvalid, text="closed"):
                way(reader)
            for passing in begun:
                with raises(ValueError, text="closed"):
                    next(passing)
            assert reader.nbytes == path.stat().st_size, name
            assert reader.report.records >= 1


def dropped(folder: str) -> None:
    """Iterators that nobody goes on with, and readers that go before their iterators, in any order."""
    for format in FORMATS:
        path = sample(Path(folder), format)
        for _ in range(20):
            reader = seglake.open(path, options={"batch_bytes": 60})
            begun: list[Any] = [iter(reader), reader.batches(10), reader.ledger(), reader.range([]), iter(reader)]
            for passing in begun:
                next(passing)
            stream = pa.RecordBatchReader.from_stream(reader)
            stream.read_next_batch()
            begun.append(stream)
            del begun[::2], reader, stream
            gc.collect()
            for passing in begun:
                next(iter(passing))
        reader = seglake.open(path)
        passing = iter(reader)
        first = next(passing)
        del reader
        assert values([first, *passing]) == expected()
        del begun, passing
        # In a cycle, so that only the collector can free them.
        reader = seglake.open(path)
        cycle: list[Any] = [reader, iter(reader), reader.batches()]
        cycle.append(cycle)
        del reader, cycle
        gc.collect()
        descriptors = Path("/proc/self/fd")
        if descriptors.is_dir():
            links = [descriptor for descriptor in descriptors.iterdir() if descriptor.is_symlink()]
            open_files = [str(link.readlink()) for link in links]
            assert str(path) not in open_files


def kept_views(folder: str) -> None:
    """Arrow arrays and bytes outlive their reader and their file."""
    for format in FORMATS:
        for how in ({}, {"memory_map": True}):
            path = sample(Path(folder), format)
            reader = seglake.open(path, **how)
            tables = [pa.table(reader), pa.Table.from_batches([pa.record_batch(batch) for batch in reader.batches()])]
            found = reader.get_many(pa.array(ids(path)[:5])) if format in ("chunked", "oplog") else None
            views = [memoryview(record.value) for record in reader]
            column = pa.record_batch(next(iter(reader.batches()))).column("value").buffers()[-1]
            del reader
            for file in Path(folder).iterdir():
                os.truncate(file, 0)
                file.unlink()
            gc.collect()
            for table in tables:
                assert table.column("value").to_pylist() == expected()
            assert views == expected()
            assert bytes(column)[:100] == expected()[0][:100]
            if found is not None:
                assert pa.record_batch(found).column("value").to_pylist() == expected()[:5]


def buffers(folder: str) -> None:
    """A buffer that somebody writes to gives an error or what stood in it, and cannot be resized meanwhile."""
    import numpy as np

    for format in FORMATS:
        path = sample(Path(folder), format)
        content, all_values = path.read_bytes(), expected()
        with path.open("rb") as file:
            padded = content + bytes(-len(content) % 4)
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            readable: list[Any] = [bytearray(content), memoryview(content), np.frombuffer(content, np.uint8), mapped]
            if len(padded) == len(content):
                readable.append(array.array("I", content))
            for source in readable:
                assert values(seglake.open(source, format=format)) == all_values, type(source)
            mapped.close()
        with raises(TypeError, ValueError, BufferError):
            seglake.open(memoryview(content)[::2], format=format)

        buffer = bytearray(content)
        reader = seglake.open(buffer, format=format)
        passing = iter(reader)
        given = [next(passing)]
        with raises(BufferError):
            buffer.extend(b"x")
        buffer[len(buffer) // 2 :] = b"\xff" * (len(buffer) - len(buffer) // 2)
        with raises(seglake.DamageError, OSError):
            given.extend(passing)
        assert values(given) == all_values[: len(given)]
        del reader, passing
        gc.collect()
        buffer.extend(b"x")


def written_meanwhile(folder: str) -> None:
    """Threads write to a buffer while others read it: checksummed records are right, or not given."""
    import numpy as np

    for format in ("active", "sealed", "chunked"):
        content = np.frombuffer(sample(Path(folder), format).read_bytes(), np.uint8).copy()
        known = set(expected())
        stopping = threading.Event()

        def scribble() -> None:
            place = 1
            while not stopping.is_set():
                place = place * 48271 % 2147483647
                content[place % len(content)] ^= 0xFF
                content[place % len(content)] ^= 0xFF

        writers = [threading.Thread(target=scribble) for _ in range(2)]
        for writer in writers:
            writer.start()
        warnings.simplefilter("ignore")
        try:
            for _ in range(5):
                reader = seglake.open(content, format=format, on_damage="skip")
                assert set(values(reader)) <= known
                assert set(arrow_values(reader)) <= known
        finally:
            stopping.set()
            for writer in writers:
                writer.join()


def closed_file_object(folder: str) -> None:
    path = sample(Path(folder), "active")
    file = path.open("rb")
    reader = seglake.open(file)
    passing = iter(reader)
    next(passing)
    file.close()
    with raises(OSError, text="closed file"):
        list(passing)


class Interrupting(io.BytesIO):
    """A file whose n-th read is where somebody presses Ctrl-C, or an exception of one's own comes up."""

    reads = 0
    at = 0
    raised: BaseException | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        if self.reads == self.at:
            if self.raised is not None:
                raise self.raised
            os.kill(os.getpid(), signal.SIGINT)
        return super().read(size)


def verbs(folder: Path, format: str, known: list[Any]) -> dict[str, Callable[[Any], object]]:
    """Every call that reads a source."""

    def opened(source: Any) -> seglake.Reader:
        return seglake.open(source, format=format)

    def identity(source: Any) -> object:
        return seglake.convert(opened(source), folder / f"copy.{format}", to=format)

    calls: dict[str, Callable[[Any], object]] = {
        "open": opened,
        "detect": seglake.detect,
        "verify": lambda source: seglake.verify(source, format=format),
        "records": lambda source: values(opened(source)),
        "batches": lambda source: arrow_values(opened(source)),
        "ledger": lambda source: list(opened(source).ledger()),
        "range": lambda source: values(opened(source).range([])),
        "get_many": lambda source: values(opened(source).get_many(known[:3])),
        "convert": identity,
        "recover": lambda source: seglake.recover(source, folder / f"copy.{format}", format=format),
    }
    if format == "active":
        calls["seal"] = lambda source: seglake.seal(source, folder / "sealed")
    if format == "tenant":
        calls["tenants"] = lambda source: opened(source).tenants()
        calls["blocks"] = lambda source: opened(source).blocks()
    if format == "chunked":
        calls["index"] = lambda source: seglake.index(source, folder / "index")
    return calls


def empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def taken(folder: Path, format: str) -> tuple[bytes, list[Any]]:
    """What a sample holds, and what its records are found by; the folder is left empty."""
    path = sample(folder, format)
    content, known = path.read_bytes(), ids(path)
    empty(folder)
    return content, known


def counted(
    folder: Path, format: str, content: bytes, known: list[Any]
) -> Iterator[tuple[str, Callable[[Any], object], int]]:
    """Every call that reads a source, by name, and how often it reads where nothing goes wrong."""
    for name, call in verbs(folder, format, known).items():
        whole = Interrupting(content)
        call(whole)
        empty(folder)
        yield name, call, whole.reads


def interrupted(folder: str) -> None:
    """Ctrl-C at every read of every call: KeyboardInterrupt, and nothing is left behind."""
    place = Path(folder)
    for format in FORMATS:
        content, known = taken(place, format)
        for name, call, reads in counted(place, format, content, known):
            places = range(1, reads + 1)
            for at in [*places[:3], *places[3 : -1 : max(1, len(places) // 4)], *places[-1:]]:
                source = Interrupting(content)
                source.at = at
                try:
                    call(source)
                except KeyboardInterrupt:
                    pass
                else:
                    raise AssertionError(f"{format} {name}: went on at read {at} of {reads}")
                # An index is complete and in its place before it is read back.
                left = [file.name for file in place.iterdir() if name != "index" or file.name != "index"]
                assert left == [], f"{format} {name} at read {at}"
                empty(place)


def raising(folder: str) -> None:
    """What a file object or a progress callback raises comes out, and nothing is left behind."""
    place = Path(folder)
    for format in FORMATS:
        content, known = taken(place, format)
        for name, call, reads in counted(place, format, content, known):
            if reads == 0:
                continue
            for raised in (OSError(5, "the cable is out"), LookupError("no such part"), SystemExit(3)):
                source = Interrupting(content)
                source.at, source.raised = 1, raised
                try:
                    call(source)
                except OSError as error:
                    assert not isinstance(raised, SystemExit)
                    assert error.__cause__ is raised, f"{format} {name}"
                    assert error.errno == getattr(raised, "errno", None)
                    assert "offset 0" in str(error)
                    assert str(raised.args[-1]) in str(error)
                except SystemExit as error:
                    assert error is raised
                else:
                    raise AssertionError(f"{format} {name}: {raised!r} was lost")
                assert list(place.iterdir()) == [], f"{format} {name}"

        class OwnError(Exception):
            pass

        def progress(done: int, total: int) -> None:
            raise OwnError

        calls: list[Callable[[], object]] = [
            lambda: seglake.verify(content, format=format, progress=progress),
            lambda: seglake.recover(content, place / f"copy.{format}", format=format, progress=progress),
            lambda: seglake.convert(content, place / f"copy.{format}", to=format, progress=progress),
        ]
        if format == "active":
            calls.append(lambda: seglake.seal(content, place / "sealed", progress=progress))
        for call in calls:
            with raises(OwnError):
                call()
            assert list(place.iterdir()) == []
