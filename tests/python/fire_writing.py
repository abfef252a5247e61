"""What writers go through in `test_under_fire_writing.py`: each function is a process's whole work."""

# ruff: noqa: B023 - what a loop defines is called in the same round of it
import gc
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli_samples import EXTENSIONS
from fire_samples import FORMATS, RECORDS, expected, forked, raises, values, write

import seglake

APPENDED = ("active", "chunked", "oplog", "tfrecord")
WHOLE = ("sealed", "tenant")
# So much is in a file with its index beside it, or with nothing.
ALLOWED = {format: {f"new.{extension}"} for format, extension in EXTENSIONS.items()}
ALLOWED["chunked"].add("new.index")


def create(folder: str, format: str, **how: Any) -> seglake.Writer:
    options: dict[str, Any] = {
        "format": format,
        **({"options": {"chunk_records": 7}} if format == "chunked" else {}),
        **how,
    }
    return seglake.create(Path(folder) / f"new.{EXTENSIONS[format]}", **options)


def written(writer: seglake.Writer, numbers: range) -> seglake.Writer:
    for number in numbers:
        write(writer, writer.format, number)
    return writer


def check(folder: str, format: str, records: int) -> None:
    """That the file is sound and holds these records, and that nothing else is in the folder."""
    path = Path(folder) / f"new.{EXTENSIONS[format]}"
    assert {file.name for file in Path(folder).iterdir()} == ALLOWED[format]
    report = seglake.verify(path, format=format)
    assert report.ok, report.damage
    assert values(seglake.open(path)) == expected()[:records]
    if format == "chunked":
        index = seglake.open(path).index()
        assert index is not None
        assert index.ok
    for file in Path(folder).iterdir():
        file.unlink()


def check_empty(folder: str) -> None:
    assert list(Path(folder).iterdir()) == []


def closed(folder: str) -> None:
    """A closed writer refuses, and keeps what it has."""
    for format in FORMATS:
        writer = written(create(folder, format), range(20))
        writer.close()
        writer.close()
        assert writer.closed
        calls: list[Callable[[], object]] = [
            lambda: write(writer, format, 20),
            lambda: writer.write_batch(seglake.open(writer.path)),
            writer.flush,
            writer.sync,
            writer.__enter__,
            lambda: writer.position,
            lambda: writer.last,
        ]
        for call in calls:
            with raises(ValueError, text="closed"):
                call()
        writer.abandon()
        check(folder, format, 20)


def threads(folder: str) -> None:
    """Threads that share a writer: each record is written once and whole, also while others flush and look."""
    for format in FORMATS:
        writer = create(folder, format)
        given = iter(range(RECORDS))
        lock = threading.Lock()
        failures: list[BaseException] = []
        stopping = threading.Event()

        def work() -> None:
            try:
                while True:
                    # Formats that keep an order are given the records in it.
                    with lock:
                        number = next(given, None)
                        if number is None:
                            return
                        write(writer, format, number)
            except BaseException as error:
                failures.append(error)

        def meddle() -> None:
            while not stopping.is_set():
                writer.flush()
                assert writer.position is None or writer.position >= 0
                assert not writer.closed
                repr(writer.last)

        workers = [threading.Thread(target=work) for _ in range(4)]
        others = [threading.Thread(target=meddle) for _ in range(2)]
        for thread in (*workers, *others):
            thread.start()
        for worker in workers:
            worker.join()
        stopping.set()
        for other in others:
            other.join()
        assert not failures, failures
        writer.close()
        check(folder, format, RECORDS)


def closed_by_another_thread(folder: str) -> None:
    for format in FORMATS:
        writer = create(folder, format)
        ends: list[object] = []

        def work() -> None:
            try:
                for number in range(RECORDS):
                    write(writer, format, number)
            except ValueError as error:
                ends.append(error)

        worker = threading.Thread(target=work)
        worker.start()
        while not ends and writer.last is None and format != "tenant":
            pass
        writer.close()
        worker.join()
        assert all("closed" in str(error) for error in ends)
        records = len(list(seglake.open(writer.path)))
        check(folder, format, records)


def fork_leaving(writer: seglake.Writer, leave: Callable[[], object]) -> None:
    """Forks, and leaves the child by `leave`, which ends the process."""
    child = os.fork()
    if child == 0:
        leave()
        os._exit(7)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, writer


def forks(folder: str) -> None:
    """A child that inherits an unflushed writer writes and removes nothing, however it ends; its parent goes on."""
    warnings.simplefilter("error")
    for format in FORMATS:
        writer = written(create(folder, format), range(20))

        def try_all() -> None:
            own: list[Callable[[], object]] = [writer.flush, writer.sync, writer.close]
            if format in WHOLE:
                own = [writer.close]
            for call in own:
                with raises(OSError, text="fork"):
                    call()

        def free() -> None:
            writer.abandon()

        forked(try_all)
        forked(gc.collect)
        written(writer, range(20, 30))
        child = os.fork()
        if child == 0:
            # To the end of the interpreter, which frees the writer: there is nothing to warn of, and nothing to write.
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        written(writer, range(30, 40))
        if format in WHOLE:
            forked(free)
        writer.close()
        fork_leaving(writer, lambda: sys.exit(0))
        check(folder, format, 40)


def fork_in_the_middle(folder: str) -> None:
    """Children are forked while a thread writes, and end at once."""
    for format in FORMATS:
        writer = create(folder, format)

        def work() -> None:
            written(writer, range(RECORDS))

        worker = threading.Thread(target=work)
        worker.start()
        while worker.is_alive():
            forked(gc.collect)
        worker.join()
        writer.close()
        check(folder, format, RECORDS)


def fork_of_a_verb(folder: str) -> None:
    """A progress callback that forks: the child ends within the verb, and takes nothing away from it."""
    source = written(create(folder, "active"), range(20))
    source.close()
    content = Path(source.path).read_bytes()
    Path(source.path).unlink()
    for verb in ("seal", "convert"):
        format = "sealed" if verb == "seal" else "chunked"
        path = Path(folder) / f"new.{EXTENSIONS[format]}"
        children: list[int] = []

        def progress(done: int, total: int) -> None:
            child = os.fork()
            if child == 0:
                raise SystemExit(0)
            children.append(child)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0

        try:
            if verb == "seal":
                seglake.seal(content, path, progress=progress)
            else:
                seglake.convert(content, path, drop=["uuid", "type"], progress=progress)
        except SystemExit:
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(9)
        assert children
        check(folder, format, 20)


KEPT: list[object] = []


def unclosed(folder: str, format: str) -> None:
    """The interpreter ends with a writer that nobody closed, and one in a cycle."""
    writer = written(create(folder, format), range(20))
    cycle: list[object] = [writer]
    cycle.append(cycle)
    KEPT.append(cycle)


def freed_by_an_exception(folder: str) -> None:
    """A writer that is freed while an exception is raised, which is the one that comes out."""
    for format in FORMATS:
        for action in ("ignore", "error"):
            warnings.simplefilter(action, ResourceWarning)
            with raises(ZeroDivisionError):
                # The first of the two is freed on the way out.
                print(written(create(folder, format), range(20)), 1 / 0)
            if format in APPENDED:
                check(folder, format, 20)
            else:
                check_empty(folder)


def interrupted(folder: str) -> None:
    """Ctrl-C while writing: what is appended is a file of whole records, what is written whole is not there."""
    for format in FORMATS:
        written_records = 0
        try:
            with create(folder, format) as writer:
                for number in range(RECORDS):
                    if number == 50:
                        os.kill(os.getpid(), signal.SIGINT)
                    write(writer, format, number)
                    written_records += 1
        except KeyboardInterrupt:
            pass
        assert written_records in (50, 51)
        if format in APPENDED:
            check(folder, format, written_records)
        else:
            check_empty(folder)


def interrupted_while_closing(folder: str, stride: str) -> None:
    """A signal handler that raises, at moments a stride apart of writing, closing and of what comes behind it."""

    class Stopped(Exception):
        pass

    fired = False

    def stop(number: int, frame: object) -> None:
        nonlocal fired
        fired = True
        raise Stopped

    signal.signal(signal.SIGALRM, stop)
    for format in FORMATS:
        for moment in range(1, 30, int(stride)):
            for file in Path(folder).iterdir():
                file.unlink()
            fired = False
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.002 * moment)
                with create(folder, format) as writer:
                    written(writer, range(RECORDS))
                # What a finaliser is stopped by is not raised any further.
                while not fired:
                    time.sleep(0.001)
            except Stopped:
                pass
            signal.setitimer(signal.ITIMER_REAL, 0)
            gc.collect()
            names = {file.name for file in Path(folder).iterdir()}
            assert names <= ALLOWED[format], names
            path = Path(folder) / f"new.{EXTENSIONS[format]}"
            if path.exists():
                records = values(seglake.open(path, format=format, on_damage="skip"))
                assert records == expected()[: len(records)]
                assert seglake.verify(path, format=format).ok
                assert format in APPENDED or len(records) == RECORDS


def size_limit(folder: str) -> None:
    """A limit to the size of files is an error and no death by SIGXFSZ; once it is gone, writing goes on."""
    import resource  # not at the top: Windows does not have it, but imports this module

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for format in FORMATS:
        writer = create(folder, format)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
        failed = None
        done = 0
        for number in range(RECORDS):
            try:
                write(writer, format, number)
            except OSError as error:
                failed = error
                assert error.errno == 27, error
                assert "stay buffered" in str(error)
                assert Path(folder) in Path(error.filename).parents
            # The record itself is kept.
            done = number + 1
        for _ in range(2):
            with raises(OSError, text="File too large"):
                writer.close()
        assert failed is not None or format == "tenant"
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        writer.close()
        check(folder, format, done)


def size_limit_of_verbs(folder: str) -> None:
    """The same for what makes new files: an error, and nothing is left behind."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    source = written(create(folder, "active"), range(RECORDS))
    source.close()
    content = Path(source.path).read_bytes()
    Path(source.path).unlink()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    with raises(OSError, text="File too large"):
        seglake.seal(content, Path(folder) / "new.sealed")
    check_empty(folder)
    with raises(OSError, text="File too large"):
        seglake.recover(content[:-3], Path(folder) / "new.active")
    check_empty(folder)
    given: dict[str, dict[str, Any]] = {
        "active": {},
        "sealed": {},
        "tenant": {"drop": ["uuid", "type"], "set": {"partition": 1, "tenant": "t"}},
        "chunked": {"drop": ["uuid", "type"]},
        "oplog": {
            "drop": ["uuid", "type", "timestamp"],
            "set": {"version": 1, "checkpointer": 1, "clock": [], "abi": 0, "batch": 1},
        },
    }
    given["tenant"]["drop"].append("timestamp")
    for format, how in given.items():
        with raises(OSError, text="File too large"):
            seglake.convert(content, Path(folder) / "new", to=format, **how)  # pyright: ignore[reportArgumentType]
        check_empty(folder)


def full_disk(folder: str) -> None:
    """A small file system fills up: errors, whole records only, and writing goes on once there is room."""
    for format in FORMATS:
        ballast = Path(folder) / "ballast"
        ballast.write_bytes(bytes(2 << 20))
        writer = create(folder, format)
        with raises(OSError, text="No space left"):
            written(writer, range(RECORDS))
            writer.close()
        if format in APPENDED:
            with raises(OSError, text="No space left"):
                writer.flush()
            ballast.unlink()
            writer.flush()
            kept = len(list(seglake.open(writer.path)))
            assert kept > 20
            writer.close()
            check(folder, format, kept)
        else:
            writer.abandon()
            ballast.unlink()
            check_empty(folder)
