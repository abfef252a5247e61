"""Many processes that use one log: `make soak` does it for ten minutes, and measures them too."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

if not hasattr(os, "fork") or not Path("/proc/self/status").exists():
    pytest.skip("there are no forks, or nothing tells of processes", allow_module_level=True)

from tests.log_soak import Sample, growth, too_much

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20


def test_nothing_is_lost_beside_all_others(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.log_soak", "--seconds", "4", "--seed", "1"]
    environment = {**os.environ, "TMPDIR": os.fspath(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ", 0 acknowledged" not in done.stdout
    assert "none lost, twice or out of order" in done.stdout


def measured(rss: float = 0, descriptors: float = 0, threads: float = 0) -> list[Sample]:
    """Samples of 100 s at which much goes up and down, and to which so much is added evenly."""
    noise = random.Random(7)
    return [
        Sample(
            at,
            (100 + noise.choice([0, 0, 30])) * MIB + rss * at / 100,
            20 + noise.choice([0, 1, 40]) + descriptors * at / 100,
            4 + noise.choice([0, 2]) + threads * at / 100,
        )
        for at in range(100)
    ]


def test_what_goes_up_and_down_does_not_grow() -> None:
    assert too_much(measured()) == []
    assert too_much(measured()[:4]) == []


def test_what_grows_early_is_warming_up() -> None:
    early = [Sample(at, min(at, 40) * MIB, min(at, 40), min(at, 40)) for at in range(100)]
    assert growth(early) == Sample(49, 0, 0, 0)


@pytest.mark.parametrize(
    ("samples", "name"),
    [
        (measured(rss=20 * MIB), "rss"),
        (measured(descriptors=20), "descriptors"),
        (measured(threads=8), "threads"),
    ],
)
def test_what_leaks_is_noticed(samples: list[Sample], name: str) -> None:
    assert [found.split(":")[0] for found in too_much(samples)] == [name]
