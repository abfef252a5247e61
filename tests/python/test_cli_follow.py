"""`seglake ingest --follow` after errors: it waits for what may pass, and ends at what cannot."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cli_process import command, environment
from segments import DAY, write_segment

import seglake
from seglake import IngestResult
from seglake.cli.following import followed
from seglake.cli.ingest import _Output  # pyright: ignore[reportPrivateUsage]
from seglake.exceptions import IngestError
from seglake.lake.result import can_pass
from seglake.tracking.place import LocalPlace

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the ingest runs on Linux and macOS")

NEW, OLD = IngestResult("run", "lake"), IngestResult(None, "lake")
FULL = OSError(errno.ENOSPC, "full", "lake")
AWAY = IngestError("away", may_pass=True)
BUSY = IngestError("process 7 is writing", may_pass=True)
BUSY_TOO = IngestError("process 8 is writing", may_pass=True)
GONE = FileNotFoundError(errno.ENOENT, "gone", "src")
WRONG = IngestError("wrong")


class EndError(Exception):
    """The end of a test."""


def seen(*outcomes: Exception | IngestResult) -> list[object]:
    """What a command that follows shows, and how long it waits, until the last outcome, which is an error."""
    events: list[object] = []
    left = iter(outcomes)

    def run() -> IngestResult:
        outcome = next(left)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def told(error: Exception, seconds: float) -> None:
        events.append((error, seconds))

    with pytest.raises(type(outcomes[-1]) if isinstance(outcomes[-1], Exception) else StopIteration):
        followed(run, events.append, told, events.append)
    return events


def test_an_error_that_may_pass_is_shown_once_and_waited_for_in_growing_pauses() -> None:
    assert seen(NEW, *[FULL] * 9, OLD, OLD, EndError()) == [
        *(NEW, 2.0),
        *((FULL, 1.0), 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0),
        *(OLD, 2.0, 2.0),
    ]


def test_another_error_is_shown_too_and_the_pauses_begin_anew_after_a_success() -> None:
    assert seen(FULL, FULL, AWAY, AWAY, OLD, FULL, EndError()) == [
        *((FULL, 1.0), 1.0, 2.0),
        *((AWAY, 4.0), 4.0, 8.0),
        *(OLD, 2.0),
        *((FULL, 1.0), 1.0),
    ]


def test_errors_with_other_words_are_others() -> None:
    assert seen(AWAY, BUSY, BUSY_TOO, EndError()) == [*((AWAY, 1.0), 1.0), *((BUSY, 2.0), 2.0), 4.0]


def test_what_cannot_pass_ends_it_at_once_and_later() -> None:
    assert seen(WRONG) == []
    assert seen(OLD, FULL, WRONG) == [OLD, 2.0, (FULL, 1.0), 1.0]
    assert seen(ValueError("a bug")) == []
    assert seen(NotADirectoryError(errno.ENOTDIR, "a file", "lake")) == []
    assert seen(BrokenPipeError(errno.EPIPE, "nobody reads")) == []


def test_a_source_is_waited_for_once_it_was_there() -> None:
    assert seen(GONE) == []
    assert seen(OLD, GONE, WRONG) == [OLD, 2.0, (GONE, 1.0), 1.0]


def test_a_run_is_shown_if_it_has_something_new() -> None:
    assert seen(OLD, OLD, NEW, OLD, EndError()) == [OLD, 2.0, 2.0, NEW, 2.0, 2.0]


def unreadable_state(folder: Path) -> None:
    seglake.ingest(folder.parent / "src", folder)
    (folder / "_log/00000000000000000001.json").write_text("{}")


@pytest.mark.parametrize(
    ("prepare", "given", "may_pass"),
    [
        (lambda lake: None, {"options": {"dialect": "nonsense"}}, False),
        (lambda lake: lake.write_bytes(b""), {}, False),
        (unreadable_state, {}, False),
        (lambda lake: (lake.parent / "src").rename(lake.parent / "other"), {}, True),
    ],
)
def test_which_errors_of_an_ingest_may_pass(
    tmp_path: Path, prepare: Callable[[Path], object], given: dict[str, str], may_pass: bool
) -> None:
    write_segment(tmp_path / "src/a.active", 5)
    lake = tmp_path / "lake"
    prepare(lake)
    with pytest.raises(ValueError if given else IngestError) as caught:
        seglake.ingest(tmp_path / "src", lake, **given)  # pyright: ignore[reportArgumentType]
    assert can_pass(caught.value) is may_pass
    if isinstance(caught.value, IngestError):
        assert caught.value.may_pass is may_pass


def test_a_disk_that_is_full_may_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object, **__: object) -> None:
        raise FULL

    write_segment(tmp_path / "src/a.active", 5)
    for name in ("writing", "put_new", "put", "sync"):
        with monkeypatch.context() as patched, pytest.raises((IngestError, OSError)) as caught:
            patched.setattr(LocalPlace, name, no_space)
            seglake.ingest(tmp_path / "src", tmp_path / f"lake-{name}")
        assert can_pass(caught.value), name
        seglake.ingest(tmp_path / "src", tmp_path / f"lake-{name}")


def test_it_runs_again_until_it_is_interrupted(tmp_path: Path) -> None:
    write_segment(tmp_path / "src/a.active", 5)
    words = command("ingest", tmp_path / "src", tmp_path / "lake", "--follow", "--json")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["records"] == 5
        write_segment(tmp_path / "b.active", 7, first=DAY + timedelta(days=1))
        (tmp_path / "b.active").rename(tmp_path / "src/b.active")
        while (said := json.loads(process.stdout.readline()))["records"] == 0:
            pass
        assert said["records"] == 7
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr.read() == b"\nseglake: interrupted\n"


def test_a_person_is_told_what_it_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    _Output(as_json=False, fail_on="new").error(IngestError("the store is away\x1b[31m"), 1.0)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("seglake: the store is away")
    assert said.err.endswith("\n  next      this is tried again in 1 s, then after pauses of up to 60 s\n")
    assert "\x1b" not in said.err
