"""The ingest in threads of this process: what it needs, how it ends early, and on the command line."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from cli_process import seglake as command
from segments import flip, write_segment

import seglake
import seglake.spark
from seglake.exceptions import IngestError
from seglake.lake.parquet import RollingWriter
from seglake.lake.result import IngestArguments
from seglake.types import IngestProgress


def visible(lake: Path) -> list[str]:
    """The files that are there."""
    return sorted(path.name for path in lake.rglob("*") if path.is_file())


def test_sources_may_have_any_name_and_the_destination_is_text(tmp_path: Path) -> None:
    source = tmp_path / os.fsdecode(b"b\xffd")
    try:
        write_segment(source / "a.active", 5)
    except OSError:
        pytest.skip("this file system takes no such name")
    assert seglake.ingest(source, tmp_path / "lake").records == 5
    for folder in (tmp_path / os.fsdecode(b"l\xffke"), source.with_name("li\udcffnk") / "lake"):
        with pytest.raises(IngestError, match=r"\\xff.*: expected a path of UTF-8") as caught:
            seglake.ingest(source, folder)
        assert str(caught.value).isprintable()
        assert not folder.exists()


def records(lake: Path) -> int:
    return ds.dataset([str(path) for path in (lake / "active").rglob("*.parquet")]).count_rows()


WITHOUT_SPARK = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "pandas"):
            raise ImportError(name)

sys.meta_path.insert(0, Missing())
import seglake
from seglake.cli import main

print(seglake.ingest(sys.argv[1], sys.argv[2]).records)
sys.exit(main(["ingest", sys.argv[1], sys.argv[3], "--json"]))
"""


def test_it_needs_no_spark(tmp_path: Path) -> None:
    written = write_segment(tmp_path / "src/a.active", 50)
    flip(tmp_path / "src/a.active", written[3].end - 9)
    script = [sys.executable, "-c", WITHOUT_SPARK, tmp_path / "src", tmp_path / "lake", tmp_path / "lake2"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    first, second = done.stdout.splitlines()
    assert (first, json.loads(second)["records"]) == ("49", 49)
    assert records(tmp_path / "lake") == records(tmp_path / "lake2") == 49


def test_threads_work_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        write_segment(tmp_path / f"src/{name}.active", 5)
    # None goes on before three are open.
    barrier = threading.Barrier(3, timeout=60)
    real_open = seglake.incremental.resume

    def open_(source: Any, *position: Any, **options: Any) -> Any:
        barrier.wait()
        return real_open(source, *position, **options)

    monkeypatch.setattr(seglake.incremental, "resume", open_)
    assert seglake.ingest(tmp_path / "src", tmp_path / "lake", threads=3).records == 15


def test_no_more_threads_than_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: set[str] = set()
    real_open = seglake.incremental.resume

    def open_(source: Any, *position: Any, **options: Any) -> Any:
        names.add(threading.current_thread().name)
        return real_open(source, *position, **options)

    for number in range(12):
        write_segment(tmp_path / f"src/{number:02}.active", 5)
    monkeypatch.setattr(seglake.incremental, "resume", open_)
    assert seglake.ingest(tmp_path / "src", tmp_path / "lake", threads=2).records == 60
    assert 1 <= len(names) <= 2


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(28, "No space left on device"),
            r"^/.*/lake: a task failed, nothing was ingested: OSError: No space left on device\. "
            r"Free space on the disk of /.*/lake, and ingest again$",
        ),
        (
            OSError(5, "Input/output error", "/a/b"),
            r"^/a/b: a task failed, nothing was ingested: OSError: Input/output",
        ),
    ],
)
def test_an_error_in_one_task_stops_all_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, said: str
) -> None:
    for number in range(8):
        write_segment(tmp_path / f"src/{number}.active", 5)
    flush = RollingWriter.flush
    calls: list[int] = []

    def failing(writer: RollingWriter) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise error
        flush(writer)

    with monkeypatch.context() as patched:
        patched.setattr(RollingWriter, "flush", failing)
        with pytest.raises(IngestError, match=said):
            seglake.ingest(tmp_path / "src", tmp_path / "lake", threads=2)
    assert visible(tmp_path / "lake") == []
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("seglake-ingest")] == []
    assert seglake.ingest(tmp_path / "src", tmp_path / "lake").records == 40


class LongReader:
    """A file with very many batches, of which no more are asked for than `most`."""

    def __init__(self, reader: seglake.Reader, failed: threading.Event, given: list[int], most: int) -> None:
        self._reader, self._failed, self._given, self._most = reader, failed, given, most
        self.format, self.nbytes = reader.format, reader.nbytes

    def __enter__(self) -> "LongReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def batches(self, **options: Any) -> Iterator[Any]:
        (batch,) = self._reader.batches(**options)
        assert self._failed.wait(60)
        for number in range(self._most):
            self._given.append(number)
            yield batch
        raise OSError(5, "Input/output error")


def test_an_error_in_one_task_stops_the_others_in_the_middle_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fails", "goes on"):
        write_segment(tmp_path / f"src/{name}.active", 5)
    failed, given, real_resume = threading.Event(), list[int](), seglake.incremental.resume

    def resume(source: Any, position: Any, **options: Any) -> Any:
        if Path(source).stem == "fails":
            failed.set()
            raise RuntimeError("a bug")
        return LongReader(real_resume(source, position, **options), failed, given, 5_000)

    monkeypatch.setattr(seglake.incremental, "resume", resume)
    with pytest.raises(IngestError, match=r"a task failed, nothing was ingested: RuntimeError: a bug"):
        seglake.ingest(tmp_path / "src", tmp_path / "lake", threads=2)
    assert len(given) < 5_000


INTERRUPTED = """
import os, signal, sys, threading
import seglake
from seglake.cli import main

real_resume, entered = seglake.incremental.resume, threading.Event()

def resume(source, position, **options):
    reader = real_resume(source, position, **options)
    if not entered.is_set():
        entered.set()
        os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C: to the main thread, while this one works
    return reader

seglake.incremental.resume = resume
sys.exit(main(["ingest", sys.argv[1], sys.argv[2]]))
"""


def test_ctrl_c_ends_it_with_nothing_visible(tmp_path: Path) -> None:
    for number in range(8):
        write_segment(tmp_path / f"src/{number}.active", 5)
    script = [sys.executable, "-c", INTERRUPTED, tmp_path / "src", tmp_path / "lake"]
    done = subprocess.run(script, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nseglake: interrupted\n")
    assert visible(tmp_path / "lake") == []


KILLED = """
import os, pathlib, signal, sys
import seglake

def progress(seen):
    # A file may be done before anything is staged. After the last one all is.
    if list(pathlib.Path(sys.argv[2]).glob("_staging/*")):
        os.kill(os.getpid(), signal.SIGKILL)

seglake.ingest(sys.argv[1], sys.argv[2], progress=progress)
"""


def test_the_run_after_one_that_was_killed_ends_right(tmp_path: Path) -> None:
    for number in range(6):
        write_segment(tmp_path / f"src/{number}.active", 50)
    script = [sys.executable, "-c", KILLED, tmp_path / "src", tmp_path / "lake"]
    done = subprocess.run(script, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(list((tmp_path / "lake/_staging").iterdir())) == 1
    assert seglake.ingest(tmp_path / "src", tmp_path / "lake").records == 300
    assert records(tmp_path / "lake") == 300


def test_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    lake, large = small_disk / "lake", tmp_path / "large.active"
    with seglake.create(large, format="active") as writer:
        for _ in range(60):
            writer.write(type="noise", value=os.urandom(100_000))
    done = command("ingest", large, lake)
    assert (done.status, done.out) == (2, "")
    assert "No space left on device" in done.err
    assert "Traceback" not in done.err
    assert visible(lake) == []
    write_segment(tmp_path / "small.active", 20)
    assert seglake.ingest(tmp_path / "small.active", lake).exit_status == 0
    assert records(lake) == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threads": 0}, "threads is 0: it is at least 1"),
        ({"options": {"lookup_table_bytes": -1}}, "lookup_table_bytes is -1: expected at least 0, in bytes"),
    ],
)
def test_wrong_arguments(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    write_segment(tmp_path / "a.active", 1)
    with pytest.raises(ValueError, match=message):
        seglake.ingest(tmp_path / "a.active", tmp_path / "lake", **arguments)
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("fromat", r"did you mean format\?"),
        ("table_format", r"did you mean format or table\?"),
        ("progres", r"did you mean progress\?"),
        ("zzz", "there are .*, format, .*, storage_options$"),
    ],
)
@pytest.mark.parametrize("ingest", [seglake.ingest, seglake.spark.ingest], ids=["threads", "spark"])
def test_an_argument_that_is_not_there(tmp_path: Path, ingest: Any, name: str, hint: str) -> None:
    write_segment(tmp_path / "a.active", 1)
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}': {hint}"):
        ingest(tmp_path / "a.active", tmp_path / "lake", **{name: "draft"})


def test_the_help_lists_all_options() -> None:
    listed = (seglake.ingest.__doc__ or "").split("Options, by keyword: ")[1].split(".")[0]
    assert re.findall("`(.+?)`", listed) == ["threads", "progress", *IngestArguments.__annotations__]


def test_progress_is_told_to_the_end(tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 50)
    seen: list[IngestProgress] = []
    seglake.ingest(tmp_path / "a.active", tmp_path / "lake", progress=seen.append)
    assert (seen[-1].files_done, seen[-1].files_total, seen[-1].records) == (1, 1, 50)
    assert seen[-1].bytes_done == seen[-1].bytes_total == (tmp_path / "a.active").stat().st_size


def test_the_command_prints_a_table(tmp_path: Path) -> None:
    written = write_segment(tmp_path / "a.active", 50)
    flip(tmp_path / "a.active", written[3].end - 9)
    (tmp_path / "notes.txt").write_text("some text")
    names = ["a.active", "notes.txt"]
    done = command("ingest", *(tmp_path / name for name in names), tmp_path / "lake", "--threads", "1")
    assert (done.status, done.err) == (1, "")
    assert "checksum_mismatch" in done.out
    assert "`seglake verify` of the same files and folders says which are damaged" in done.out
    assert f"\n  {tmp_path / 'notes.txt'}: not a segment: cannot tell the format: " in done.out
    assert done.out.splitlines()[-1] == f"{tmp_path / 'lake'}/{{active,damage,files,runs}}/"
