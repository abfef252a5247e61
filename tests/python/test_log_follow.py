"""Followers of a log that meet damage, gaps and other logs, and logs whose times are ahead of the clock."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from cli_process import here as run

import seglake
from seglake import SegmentLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log of three segments, of ten records each."""
    path = tmp_path / "log"
    with SegmentLog(path, seal=False) as log:
        for first in (0, 10, 20):
            log.write_batch([("type", str(number)) for number in range(first, first + 10)])
            log.roll()
    return path


def _damage(segment: Path) -> None:
    content = bytearray(segment.read_bytes())
    content[20] ^= 1
    segment.write_bytes(content)


KINDS: dict[str, tuple[Callable[[Path], object], int, type[Exception], str]] = {
    "damaged": (_damage, 29, seglake.DamageError, "checksum_mismatch"),
    "missing": (Path.unlink, 20, seglake.FormatError, "segment 2"),
    "another": (
        lambda segment: shutil.copy(min(segment.parent.glob("0*")), segment),
        20,
        seglake.FormatError,
        "another segment",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_wrong_is_an_error_or_passed_over(path: Path, kind: str) -> None:
    change, left, error, words = KINDS[kind]
    begun = SegmentLog(path, readonly=True).tail("start")
    begun.poll()
    change(sorted(path.glob("0*.active"))[1])
    with pytest.raises(error, match=words):
        list(iter(begun.poll, None))
    log = SegmentLog(path, readonly=True, on_damage="skip")
    for reading in (
        lambda: len(list(log)),
        lambda: len(list(log.range())),
        lambda: sum(batch.num_rows for batch in log.batches()),
        lambda: pa.table(log).num_rows,
        lambda: len(list(iter(log.tail("start").poll, None))),
    ):
        with pytest.warns(seglake.exceptions.DamageWarning, match=words):
            assert reading() == left
    if kind == "another":
        # Of what is not asked for no file is opened, and nothing is said.
        first = next(iter(seglake.open(min(path.glob("0*.active"))))).uuid
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(list(log.range([("uuid", "==", first)]))) == 1
    if kind == "missing":
        return  # as the log cannot be listed strictly
    strict = SegmentLog(path, readonly=True)
    with pytest.warns(seglake.exceptions.DamageWarning, match=words):
        assert len(list(iter(strict.tail("start", on_damage="skip").poll, None))) == left
    with pytest.warns(seglake.exceptions.DamageWarning, match=words):
        assert len(list(strict.range(on_damage="skip"))) == left
    with pytest.warns(seglake.exceptions.DamageWarning, match=words):
        assert sum(batch.num_rows for batch in strict.batches(on_damage="skip")) == left
    with pytest.raises(error, match=words):
        list(strict)


@pytest.mark.parametrize("kind", KINDS)
def test_tail_of_the_command_line_goes_on_if_asked_to(path: Path, kind: str) -> None:
    change, left, _, words = KINDS[kind]
    change(sorted(path.glob("0*.active"))[1])
    command = ("log", "tail", "--from", "start", "--no-follow", path)
    stopped = run(*command)
    assert stopped.status in (1, 2)
    assert words in stopped.err
    assert "on_damage" not in stopped.err
    done = run(*command, "--on-damage", "skip")
    assert (done.status, len(done.out.splitlines())) == (1, left)
    assert words in done.err


def test_tail_waits_for_a_log_if_asked_to(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert run("log", "tail", path).status == 2
    command = [sys.executable, "-m", "seglake", "log", "tail", "--retry", "--limit", "2", "--json", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tail:
        assert tail.stderr is not None
        assert b"waiting for it" in tail.stderr.readline()
        path.mkdir()
        with SegmentLog(path) as log:
            log.write_batch([("type", "1"), ("type", "2")])
        out, _ = tail.communicate()
    assert [json.loads(line)["value"] for line in out.splitlines()] == ["1", "2"]
    assert tail.returncode == 0


def test_a_time_far_ahead_is_refused(tmp_path: Path) -> None:
    far = datetime.now(UTC) + timedelta(days=2)
    with SegmentLog(tmp_path / "log") as log:
        with pytest.raises(ValueError, match="max_clock_ahead"):
            log.write("type", b"1", timestamp=far)
        with pytest.raises(ValueError, match="max_clock_ahead"):
            log.write_batch([{"type": "type", "value": b"1", "timestamp": far}])
        log.write("type", b"now")
        assert log.clock_ahead is None
    line = json.dumps({"type": "a", "value": "1", "timestamp": far.isoformat()}).encode()
    command = [sys.executable, "-m", "seglake", "log", "write", "--json", tmp_path / "log"]
    done = subprocess.run(command, input=line, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"--max-clock-ahead" in done.stderr
    done = subprocess.run([*command, "--max-clock-ahead", "3d"], input=line, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_log_that_is_ahead_of_the_clock_says_so(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with SegmentLog(path, max_clock_ahead=timedelta(days=40000)) as log:
        log.write("type", b"1", timestamp=datetime(2106, 1, 1, tzinfo=UTC))
    with pytest.warns(seglake.exceptions.ClockAheadWarning, match="ahead of the clock"), SegmentLog(path) as log:
        assert log.clock_ahead is not None
        assert log.clock_ahead > timedelta(days=10000)
    with pytest.warns(seglake.exceptions.ClockAheadWarning):
        SegmentLog(path, readonly=True)
    assert "ahead of the clock" in run("log", "info", path).out
    assert json.loads(run("log", "info", "--json", path).out)["clock_ahead"] > 1e9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = run("log", "seal", path)
    assert (done.status, "ahead of the clock" in done.err) == (0, True)


def test_the_end_of_time_is_told(tmp_path: Path) -> None:
    last = '{"type": "a", "value": "x", "uuid": "ffffffff-ffff-6fff-bfff-ffffffffffff"}'
    path = tmp_path / "log"
    write = [sys.executable, "-m", "seglake", "log", "write"]
    done = subprocess.run(
        [*write, "--json", "--max-clock-ahead", "9999999d", path], input=last.encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run([*write, path], input=b"short\n", capture_output=True, check=False)
    assert done.returncode == 2
    assert b"the year 5236" in done.stderr
    assert b"--line-bytes" not in done.stderr
