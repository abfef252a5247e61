"""How many threads `seglake verify` gives to each file."""

import os
from pathlib import Path
from typing import Any

import pytest

import seglake
from seglake.cli import main


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of threads that files are verified with, in order."""
    threads: list[int] = []
    verify = seglake.verify

    def noted(source: Any, **options: Any) -> seglake.Report:
        threads.append(options["threads"])
        return verify(source, **options)

    monkeypatch.setattr(seglake, "verify", noted)
    return threads


@pytest.mark.parametrize(
    ("cores", "threads"), [(None, 1), (1, 1), (2, 2), (7, 7), (8, 8), (9, 8), (200, 8)], ids=lambda value: str(value)
)
def test_by_default_one_a_core_and_eight_at_most(
    cores: int | None, threads: int, vectors: Path, given: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert main(["verify", "--quiet", str(vectors / "active" / "extremes.bin")]) == 0
    assert given == [threads]


@pytest.mark.parametrize("threads", [1, 2, 9, 64])
def test_as_many_as_are_asked_for_each_file(threads: int, vectors: Path, given: list[int]) -> None:
    files = [str(vectors / "active" / "extremes.bin")] * 3
    assert main(["verify", "--quiet", "--threads", str(threads), *files]) == 0
    assert given == [threads] * 3


@pytest.mark.parametrize("threads", ["0", "-1", "x", "1.5"])
def test_no_thread_at_all_is_refused(threads: str, vectors: Path, given: list[int]) -> None:
    assert main(["verify", "--threads", threads, str(vectors / "active" / "extremes.bin")]) == 2
    assert given == []
