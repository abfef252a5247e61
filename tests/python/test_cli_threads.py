"""How many threads `seglake verify` gives to each file."""

import os
from pathlib import Path
from typing import Any

import pytest

import seglake
from seglake.cli import main
from seglake.parity import by_sidecar as _by_sidecar


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of threads of each call of `seglake.verify` by the command, in order."""
    threads: list[int] = []
    verify = seglake.verify

    def noted(source: Any, **options: Any) -> seglake.Report:
        threads.append(options["threads"])
        return verify(source, **options)

    monkeypatch.setattr(_by_sidecar, "verify", noted)
    return threads


@pytest.mark.parametrize(
    ("cores", "threads"), [(None, 1), (1, 1), (2, 2), (7, 7), (8, 8), (9, 8), (200, 8)], ids=lambda value: str(value)
)
def test_default_is_one_thread_a_core_and_at_most_eight(
    cores: int | None, threads: int, vectors: Path, given: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert main(["verify", "--quiet", str(vectors / "active" / "extremes.bin")]) == 0
    assert given == [threads]


@pytest.mark.parametrize("threads", [1, 2, 9, 64])
def test_each_file_gets_the_number_of_the_option(threads: int, vectors: Path, given: list[int]) -> None:
    files = [str(vectors / "active" / "extremes.bin")] * 3
    assert main(["verify", "--quiet", "--threads", str(threads), *files]) == 0
    assert given == [threads] * 3


@pytest.mark.parametrize("threads", ["0", "-1", "x", "1.5"])
def test_other_values_than_positive_numbers_are_refused(threads: str, vectors: Path, given: list[int]) -> None:
    assert main(["verify", "--threads", threads, str(vectors / "active" / "extremes.bin")]) == 2
    assert given == []
