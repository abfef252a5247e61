"""`kill -9` of a log's writers: `make kills` does it 1,000 times, with new seeds."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.log_kills import Oracle

from seglake import SegmentLog

ROOT = Path(__file__).resolve().parents[2]
Numbers = list[tuple[int, int, int]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_lost_by_kills(tmp_path: Path, seed: int) -> None:
    # A process of its own: forks of one with threads may stand still.
    command = [sys.executable, "-m", "tests.log_kills", "--rounds", "24", "--seed", str(seed), "--lanes", "2"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": os.fspath(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "24 kills" in done.stdout
    assert ", 0 acknowledged" not in done.stdout


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([(0, 0, 0), (0, 0, 2)], "expected number 1, found 2"),
        ([(0, 0, 0), (0, 0, 0)], "expected number 1, found 0"),
        ([(0, 0, 0), (1, 0, 1)], "expected number 0, found 1"),
        ([(1, 0, 0), (0, 0, 0)], "round 0 after 1"),
        ([(0, 0, 0)], "1 was acknowledged, 1 are there"),
    ],
)
def test_the_oracle_notices(tmp_path: Path, numbers: Numbers, words: str) -> None:
    with SegmentLog(tmp_path / "log") as log:
        log.write_batch([("kill", struct.pack(">III", *each)) for each in numbers])
        oracle = Oracle()

        def looks() -> None:
            oracle.look(log)
            oracle.check({(0, 0): 1})

        check: Callable[[], None] = looks
        with pytest.raises(AssertionError, match=words):
            check()
