"""The view of what is damaged now, beside lives of files: renamed, sealed, repaired, replaced, copied and gone."""

import os
import random
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from damage_view import DOCUMENT, Damage, damage_now
from segments import DAY, flip, write_segment
from test_ingest_again import latest, of, rows

import seglake
from seglake import ingest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the ingest runs on Linux and macOS")

RECORDS: Final = 12


class Content(NamedTuple):
    """What a file has: a log, its first records, and which of these are damaged."""

    log: int
    format: str
    end: int
    damaged: frozenset[int] = frozenset()


class Lives:
    """A folder of files of two logs."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.scratch, self.chance = folder / "src", folder / "scratch", chance
        self.folder.mkdir()
        self.files: dict[str, Content] = {}
        self.moment = 1_700_000_000

    def put(self, name: str, content: Content) -> None:
        path = self.scratch / f"{content.log}.active"
        path.unlink(missing_ok=True)
        write_segment(path, content.end, first=DAY + timedelta(days=100 * content.log))
        if content.format == "sealed":
            sealed = path.with_suffix(".sealed")
            sealed.unlink(missing_ok=True)
            seglake.seal(path, sealed)
            path = sealed
        with seglake.open(path) as reader:
            places = [record.position + 45 for record in reader]
        for number in content.damaged:
            flip(path, places[number])
        path.replace(self.folder / name)
        self.files[name] = content
        self.moment += 1
        os.utime(self.folder / name, (self.moment, self.moment))

    def some(self, first: int, end: int) -> frozenset[int]:
        """Records that are damaged, never the first or the last of a file: these it is known by."""
        between = range(max(1, first), end - 1)
        return frozenset(self.chance.sample(between, min(len(between), self.chance.choice([0, 1, 1, 2]))))

    def step(self, is_all_there: bool) -> str:
        name = self.chance.choice("abcd")
        to = self.chance.choice("abcd")
        own = self.files.get(name)
        if own is None:
            end = self.chance.randint(4, RECORDS)
            damaged = self.some(0, end) if is_all_there else frozenset[int]()
            self.put(
                name, Content(self.chance.choice([0, 0, 1]), self.chance.choice(["active", "sealed"]), end, damaged)
            )
            return f"{name}: {self.files[name]}"
        what = self.chance.choice(["grow", "repair", "rename", "rename", "seal", "copy", "rotate", "remove"])
        if what == "grow" and own.format == "active":
            end = self.chance.randint(own.end, RECORDS)
            self.put(name, own._replace(end=end, damaged=own.damaged | self.some(own.end, end)))
        elif what == "repair":
            self.put(name, own._replace(damaged=frozenset()))
        elif what in ("rename", "rotate") and to not in self.files:
            self.files[to] = self.files.pop(name)
            (self.folder / name).rename(self.folder / to)
            if what == "rotate":
                self.put(name, Content(1 - own.log, "active", self.chance.randint(4, RECORDS)))
        elif what == "seal" and own.format == "active" and not own.damaged:
            self.put(name, own._replace(format="sealed"))
        elif what == "copy" and to not in self.files:
            self.put(to, own._replace(damaged=own.damaged | self.some(0, own.end)))
        elif what == "remove":
            del self.files[name]
            (self.folder / name).unlink()
        return f"{what} {name} {to}: {self.files.get(name)}"

    def damage(self) -> set[tuple[str, int]]:
        """Each damaged byte of the files that are there."""
        paths = [self.folder / name for name in self.files]
        return {
            (str(path), at)
            for path in paths
            for span in seglake.verify(path).damage
            for at in range(span.start, span.end)
        }


def listed(lake: Path) -> set[tuple[str, int]]:
    """Each byte that the view lists."""
    return {(each.path, at) for each in damage_now(lake) for at in range(each.start, each.end)}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(16))
def test_the_view_has_the_damage_that_is_there(tmp_path: Path, seed: int) -> None:
    lives, lake = Lives(tmp_path, random.Random(seed)), tmp_path / "lake"
    told: list[str] = []
    for _ in range(10):
        before = listed(lake)
        there = all(Path(row["path"]).exists() for row in latest(lake).values() if row["error"] is None)
        told.append(lives.step(there))
        if not lives.files:
            continue
        result = ingest(lives.folder, lake)
        if result.statuses["replaced"]:
            return  # what it is to be compared with is gone
        now, paths = listed(lake), {str(lives.folder / name) for name in lives.files}
        assert {each for each in now if each[0] in paths} == lives.damage(), told
        # Of a file that is gone the view has what it had, but for a segment that is at another path.
        assert {each for each in now if each[0] not in paths} <= before, told
        moved = {row["path"] for row in latest(lake).values() if row["error"] is None}
        gone = {path for path, _ in now} - paths
        assert all(path in moved or of(lake, Path(path))["error"] for path in gone), told


def test_the_damage_of_a_renamed_file_is_at_its_new_path(tmp_path: Path) -> None:
    lives, lake = Lives(tmp_path, random.Random(1)), tmp_path / "lake"
    lives.put("a", Content(0, "active", 8, frozenset({3})))
    ingest(lives.folder, lake)
    (lives.folder / "a").rename(lives.folder / "b")
    lives.put("a", Content(1, "active", 8))
    ingest(lives.folder, lake)
    (span,) = seglake.verify(lives.folder / "b").damage
    assert damage_now(lake) == [Damage(str(lives.folder / "b"), span.start, span.end, span.kind)]


def test_damage_of_an_active_file_has_no_place_in_what_it_was_sealed_to(tmp_path: Path) -> None:
    lives, lake = Lives(tmp_path, random.Random(1)), tmp_path / "lake"
    lives.put("a", Content(0, "active", 8, frozenset({3})))
    ingest(lives.folder, lake)
    lives.put("a", Content(0, "sealed", 8))
    ingest(lives.folder, lake)
    # The segment stays damaged: the record is not in the tables.
    assert (of(lake, lives.folder / "a")["status"], damage_now(lake)) == ("damaged", [])


def test_a_replaced_file_has_no_damage(tmp_path: Path) -> None:
    lives, lake = Lives(tmp_path, random.Random(1)), tmp_path / "lake"
    lives.put("a", Content(0, "active", 8, frozenset({3})))
    ingest(lives.folder, lake)
    lives.put("a", Content(1, "active", 8))
    assert ingest(lives.folder, lake).statuses["replaced"] == 1
    assert damage_now(lake) == []


def test_a_file_that_goes_on_where_another_one_is_damaged_is_so_too(tmp_path: Path) -> None:
    """The run has found the damage in the other one."""
    lives, lake = Lives(tmp_path, random.Random(1)), tmp_path / "lake"
    lives.put("a", Content(0, "active", 5))
    ingest(lives.folder, lake)
    lives.put("a", Content(0, "active", 8, frozenset({6})))
    lives.put("b", Content(0, "active", 10, frozenset({6})))
    assert ingest(lives.folder, lake).records == 4
    assert listed(lake) == lives.damage()
    assert {each.path for each in damage_now(lake)} == {str(lives.folder / name) for name in "ab"}
    assert len(rows(lake, "records")) == 9


def test_a_sealed_file_and_a_longer_active_one_that_is_damaged(tmp_path: Path) -> None:
    """No run has read the active file from its start."""
    lives, lake = Lives(tmp_path, random.Random(1)), tmp_path / "lake"
    lives.put("a", Content(0, "sealed", 5))
    lives.put("b", Content(0, "active", 10, frozenset({6})))
    assert ingest(lives.folder, lake).records == 9
    assert listed(lake) == lives.damage()


def test_of_files_that_are_damaged_in_different_places_each_has_its_own(tmp_path: Path) -> None:
    """The run has read one as the segment, and then the other one."""
    lives, lake = Lives(tmp_path, random.Random(1)), tmp_path / "lake"
    lives.put("a", Content(0, "active", 8, frozenset({3})))
    lives.put("b", Content(0, "active", 8, frozenset({5})))
    assert ingest(lives.folder, lake).records == 8
    assert listed(lake) == lives.damage()


def test_damage_of_a_sealed_file_has_no_place_in_an_active_one(tmp_path: Path) -> None:
    """What a sidecar restores is damage, too, and the segment goes on where the sealed file ends."""
    lives, lake = Lives(tmp_path, random.Random(1)), tmp_path / "lake"
    lives.put("a.sealed", Content(0, "sealed", 5))
    seglake.protect(lives.folder / "a.sealed")
    lives.put("a.sealed", Content(0, "sealed", 5, frozenset({3})))
    ingest(lives.folder, lake)
    lives.put("b", Content(0, "active", 10))
    assert ingest(lives.folder, lake).records == 5
    assert listed(lake) == lives.damage()


def test_duckdb_leaves_out_files_that_are_gone(tmp_path: Path) -> None:
    lives, lake = Lives(tmp_path, random.Random(1)), tmp_path / "lake"
    for log, name in enumerate("ab"):
        lives.put(name, Content(log, "active", 8, frozenset({3})))
    ingest(lives.folder, lake)
    (lives.folder / "a").unlink()
    ingest(lives.folder, lake)
    assert len(damage_now(lake)) == 2
    (query,) = re.findall(r"`(FROM damage_now WHERE .*?)`", DOCUMENT.read_text())
    assert [each.path for each in damage_now(lake, query.replace("/var/log/segments", str(lives.folder)))] == [
        str(lives.folder / "b")
    ]
