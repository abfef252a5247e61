"""Readers under fire, each in a process of its own: an error or right data, never a crash and no waiting for ever."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path

import fire_reading
import fire_sharing
import pytest
from fire import run, survives
from fire_samples import FORMATS, RECORDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals, forks and unlinked files are Unix's")

EVERYWHERE = [
    fire_reading.truncation,
    fire_reading.closed,
    fire_reading.dropped,
    fire_reading.kept_views,
    fire_sharing.threads,
    fire_sharing.closed_by_another_thread,
    fire_sharing.forks,
    fire_sharing.pool,
    fire_sharing.fork_among_threads,
    fire_sharing.fork_among_parts,
    fire_reading.buffers,
    fire_reading.written_meanwhile,
    fire_reading.closed_file_object,
    fire_reading.interrupted,
    fire_reading.raising,
    fire_sharing.within_itself,
    fire_sharing.reported_by_a_signal,
    fire_sharing.no_deadlock,
]


@pytest.mark.parametrize("scenario", EVERYWHERE, ids=lambda scenario: scenario.__name__)
def test_reading(scenario: Callable[[str], None], tmp_path: Path) -> None:
    survives(scenario, tmp_path)


def test_finalisers_and_the_end_of_the_interpreter(tmp_path: Path) -> None:
    said = survives(fire_sharing.finalisers, tmp_path).split("\n")
    for format in FORMATS:
        for moment in ("freed", "collected", "at the end"):
            assert said.count(f"{format} {moment}") == 1, said
    assert said.count(str(RECORDS)) == len(FORMATS)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it may be another signal")
def test_a_map_of_a_file_that_is_cut_off_is_as_documented(tmp_path: Path) -> None:
    done = run(fire_reading.mapped_truncation, tmp_path)
    assert done.stdout == "truncated\n"
    assert done.returncode == -signal.SIGBUS
