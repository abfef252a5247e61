"""Writers on a file system that loses what was not synced, by real calls: `make fuse` loses more often."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.losing_disk.journal import Journal, Length, Names, Sync, Told, Write

ROOT = Path(__file__).resolve().parents[2]
A, B = 2, 3


def states(journal: Journal) -> set[tuple[tuple[str, bytes | None], ...]]:
    """What many losses of power after all of it leave."""
    moment = len(journal.events)
    return {tuple(sorted(journal.state(moment, random.Random(seed)).items())) for seed in range(200)}


def test_what_is_synced_is_certain_and_nothing_else() -> None:
    made = [Names(1, (), ((1, "a", A),)), Write(A, 0, b"1"), Sync(A, "a"), Sync(1, "/")]
    assert states(Journal(events=[*made])) == {(("a", b"1"),)}
    assert states(Journal(events=[*made[:-1]])) == {(("a", b"1"),), ()}
    assert states(Journal(events=[*made[:2], made[3]])) == {(("a", b"1"),), (("a", b""),)}
    assert states(Journal(events=[*made]).without(lambda path: path == "a")) == {(("a", b"1"),), (("a", b""),)}
    more = [*made, Length(A, 2), Write(A, 1, b"2")]
    assert states(Journal(events=more)) == {(("a", content),) for content in (b"1", b"1\0", b"12")}


def test_sectors_are_lost_one_by_one() -> None:
    made = [Names(1, (), ((1, "a", A),)), Sync(1, "/"), Write(A, 0, b"x" * 1024)]
    lost = {state[0][1] for state in states(Journal(events=[*made]))}
    assert lost == {b"", b"x" * 512, bytes(512) + b"x" * 512, b"x" * 1024}


def test_a_rename_is_one_step_of_the_folder_that_it_goes_to() -> None:
    folders = {1, B}
    made = [Names(1, (), ((1, "f", B),)), Names(1, (), ((1, "a", A),)), Sync(1, "/")]
    moved = Names(B, ((1, "a", A),), ((B, "b", A),))
    before, after = (("a", b""), ("f", None)), (("f", None), ("f/b", b""))
    assert states(Journal(folders, [*made, moved])) == {before, after}
    assert states(Journal(folders, [*made, moved, Sync(1, "/")])) == {before, after}
    assert states(Journal(folders, [*made, moved, Sync(B, "f/")])) == {after}


def test_nothing_is_moved_into_a_folder_that_is_lost() -> None:
    folders = {1, B}
    made = [Names(1, (), ((1, "a", A),)), Sync(1, "/"), Names(1, (), ((1, "f", B),))]
    moved = [*made, Names(B, ((1, "a", A),), ((B, "b", A),))]
    kept, before, after = (("a", b""),), (("a", b""), ("f", None)), (("f", None), ("f/b", b""))
    assert states(Journal(folders, moved)) == {kept, before, after}
    # A name that is certain is not taken back, though no path leads to it.
    assert states(Journal(folders, [*moved, Sync(B, "f/")])) == {(), after}


def test_what_was_told_before_the_loss_counts() -> None:
    journal = Journal(events=[Told(b"1"), Write(A, 0, b"x"), Told(b"2")], before=b"0")
    assert [journal.told(moment) for moment in range(4)] == [b"0", b"01", b"01", b"012"]


def run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tests.losing_disk", "--seed", "1", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": os.fspath(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def fuse() -> None:
    """Skip where no file system can be mounted."""
    from tests.losing_disk.__main__ import can_mount

    reason = can_mount()
    if reason is not None:
        pytest.skip(reason)


@pytest.mark.usefixtures("fuse")
@pytest.mark.parametrize("writer", ["log", "log again", "retained log", "formats", "commands", "ingest"])
def test_what_was_promised_is_there(tmp_path: Path, writer: str) -> None:
    done = run(tmp_path, "--losses", "25", writer)
    assert done.returncode == 0, done.stderr
    assert f"{writer}: 25 losses of power" in done.stdout


@pytest.mark.usefixtures("fuse")
def test_a_sync_that_is_left_out_is_noticed(tmp_path: Path) -> None:
    done = run(tmp_path, "--losses", "50", "--mutants", "formats")
    assert done.returncode == 0, done.stderr
    assert ".t.sealed.#.tmp, .t.tenant.#.tmp, /, t.active, t.chunks, t.index, t.oplog" in done.stdout
