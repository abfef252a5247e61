"""Lives of a file and its copies, which are damaged, repaired, longer or gone: what the ingest says of them."""

import os
import random
import sys
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final
from uuid import UUID as Uuid

import pytest
from seglake._ingestion import state as state_module
from segments import TYPE, Written, flip, write_segment
from test_ingest_again import latest, rows
from test_ingest_repaired import damage_now

import seglake
from seglake import ingest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the ingest runs on Linux and macOS")

RECORDS: Final = 12


class Copies:
    """Files of one segment, each with a length and damaged records."""

    def __init__(self, folder: Path, format: str, chance: random.Random) -> None:
        self.folder, self.format, self.chance = folder / "src", format, chance
        self.written = write_segment(folder / "whole.active", RECORDS)
        self.content = (folder / "whole.active").read_bytes()
        if format == "sealed":
            seglake.seal(folder / "whole.active", folder / "whole.sealed")
            self.content = (folder / "whole.sealed").read_bytes()
        with seglake.open(folder / f"whole.{format}") as reader:
            starts = [record.position for record in reader]
        self.places = {number: start + 40 for number, start in enumerate(starts)}
        self.folder.mkdir()
        self.files: dict[str, tuple[int, frozenset[int]]] = {}
        self.moment = 1_700_000_000

    def damage(self, most: int) -> frozenset[int]:
        """Records that are damaged, never the first or the last of a file: these it is known by."""
        return (
            frozenset(self.chance.sample(range(1, most - 1), self.chance.choice([0, 1, 1, 2])))
            if most > 3
            else frozenset()
        )

    def put(self, name: str, end: int, damaged: frozenset[int]) -> None:
        self.files[name] = (end, damaged)
        content = bytearray(self.content if self.format == "sealed" else self.content[: self.written[end - 1].end])
        for number in damaged:
            content[self.places[number]] ^= 1
        path = self.folder / f"{name}.{self.format}"
        path.write_bytes(content)
        self.moment += 1
        os.utime(path, (self.moment, self.moment))

    def begin(self, name: str, lake: Path) -> None:
        end = self.chance.randint(4, RECORDS) if self.format == "active" else RECORDS
        # A file that goes on where another one was that is gone cannot be compared: its damage is not looked for.
        there = all(Path(row["path"]).exists() for row in latest(lake).values() if row["error"] is None)
        self.put(name, end, self.damage(end) if there else frozenset())

    def repair(self, name: str) -> None:
        end, damaged = self.files[name]
        self.put(name, end, frozenset(sorted(damaged)[1:]) if self.chance.random() < 0.4 else frozenset())

    def grow(self, name: str) -> None:
        end, damaged = self.files[name]
        if self.format == "active":
            more = self.chance.randint(end, RECORDS)
            new = frozenset(number for number in self.damage(more) if number >= end)
            self.put(name, more, damaged | new)

    def remove(self, name: str) -> None:
        del self.files[name]
        (self.folder / f"{name}.{self.format}").unlink()

    def step(self, lake: Path) -> None:
        name = self.chance.choice("abc")
        if name not in self.files:
            self.begin(name, lake)
        elif self.chance.random() < 0.3:
            self.remove(name)
        else:
            self.chance.choice([self.repair, self.grow])(name)

    def has_shorter_one_that_adds(self) -> bool:
        """Whether a file has what is damaged in a longer one: it is a segment of its own."""
        files = self.files.values()
        return any(end < other and set(range(end)) & damaged - own for end, own in files for other, damaged in files)

    def bytes_damaged(self) -> set[int]:
        found: set[int] = set()
        for name in self.files:
            for span in seglake.verify(self.folder / f"{name}.{self.format}").damage:
                found.update(range(span.start, span.end))
        return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("format", ["active", "sealed"])
@pytest.mark.parametrize("seed", range(8))
def test_the_damage_of_a_file_and_its_copies_is_told(
    tmp_path: Path, format: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        monkeypatch.setattr(state_module, "_CHECKPOINT_FILES", 1)
    life, lake = Copies(tmp_path, format, random.Random(f"{format} {seed}")), tmp_path / "lake"
    there: set[int] = set()
    gone: set[int] = set()
    is_certain = True
    for _ in range(8):
        before = life.bytes_damaged()
        life.step(lake)
        gone |= before - life.bytes_damaged()
        if not life.files:
            continue
        result = ingest(life.folder, lake)
        if result.statuses["replaced"]:
            return  # what it is to be compared with is gone
        assert result.errors == ()
        there |= {n for end, damaged in life.files.values() for n in set(range(end)) - damaged}
        values: Counter[Any] = Counter(row["value"] for row in rows(lake, "records"))
        expected = Counter(life.written[number].value for number in there)
        # A shorter file that has what is damaged in a longer one is a segment of its own: its records may come twice.
        is_certain = is_certain and not life.has_shorter_one_that_adds()
        assert values == expected if is_certain else set(values) == set(expected)
        now = {at for start, end, _ in damage_now(lake, format) for at in range(start, end)}
        assert life.bytes_damaged() <= now <= life.bytes_damaged() | gone
        result = ingest(life.folder, lake)  # a sound file that another took the place of gets its row now
        assert (result.errors, result.damage, result.records) == ((), {}, 0)
        states = {row["path"]: row["status"] for row in latest(lake).values()}
        for name in life.files:
            path = life.folder / f"{name}.{format}"
            assert (states[str(path)] == "damaged") == (not seglake.verify(path).ok), name
    assert ingest(life.folder, lake).run_id is None or not life.files


@pytest.mark.parametrize("trailer", [True, False])
def test_a_damaged_sealed_copy_goes_on_as_an_active_segment(tmp_path: Path, trailer: bool) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(tmp_path / "whole.active", RECORDS)
    content = (tmp_path / "whole.active").read_bytes()

    def seal(records: int) -> None:
        (src / "b.sealed").unlink(missing_ok=True)
        with seglake.create(src / "b.sealed", format="sealed", options={"trailer": trailer}) as writer:
            for each in written[:records]:
                writer.write(uuid=each.uuid, type=TYPE, value=each.value)

    src.mkdir()
    (src / "a.active").write_bytes(content[: written[8].end])
    assert ingest(src, lake).records == 9
    seal(7)
    with seglake.open(src / "b.sealed") as reader:
        last = [record.position for record in reader][-1]
    flip(src / "b.sealed", last + 17)  # its length, which is checked without a trailer, too
    assert ingest(src, lake).statuses["damaged"] == 1
    seal(RECORDS)
    result = ingest(src, lake)
    assert (result.records, result.statuses["sound"], result.statuses["copy"]) == (RECORDS - 9, 1, 1)
    assert ingest(src, lake).records == 0
    assert Counter(row["value"] for row in rows(lake, "records")) == Counter(each.value for each in written)
    assert damage_now(lake, "sealed") == []


def test_an_active_file_does_not_go_on_in_a_sealed_one_of_which_records_are_missing(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(tmp_path / "whole.active", RECORDS)
    content = (tmp_path / "whole.active").read_bytes()
    src.mkdir()

    def seal(records: int) -> None:
        (tmp_path / "begun.active").write_bytes(content[: written[records - 1].end])
        (src / "a.sealed").unlink(missing_ok=True)
        seglake.seal(tmp_path / "begun.active", src / "a.sealed")

    seal(8)
    with seglake.open(src / "a.sealed") as reader:
        starts = [record.position for record in reader]
    flip(src / "a.sealed", starts[3] + 35)
    assert ingest(src, lake).records == 7
    seal(10)
    ingest(src, lake)
    (src / "b.active").write_bytes(content)
    ingest(src, lake)
    found = Counter((row["segment"], row["value"]) for row in rows(lake, "records"))
    assert set(found.values()) == {1}
    assert {value for _, value in found} == {each.value for each in written}


@pytest.mark.parametrize("formats", [("active", "sealed"), ("sealed", "active")])
def test_the_damage_of_a_longer_file_of_another_format_is_told(tmp_path: Path, formats: tuple[str, str]) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(tmp_path / "whole.active", RECORDS)
    whole = (tmp_path / "whole.active").read_bytes()
    content: dict[str, bytes] = {}
    for format, count in zip(formats, (5, RECORDS), strict=True):
        path = tmp_path / "part.active"
        path.write_bytes(whole[: written[count - 1].end])
        if format == "sealed":
            seglake.seal(path, tmp_path / "part.sealed")
        content[format] = (tmp_path / f"part.{format}").read_bytes()
    src.mkdir()
    for format, found in zip(formats, (4, RECORDS - 5), strict=True):
        (src / f"a.{format}").write_bytes(content[format])
        flip(src / f"a.{format}", content[format].index(written[1].value))
        assert ingest(src, lake).records == found
        assert ingest(src, lake).records == 0
        (span,) = seglake.verify(src / f"a.{format}").damage
        listed = [(row["start"], row["end"]) for row in rows(lake, "damage") if row["path"] == str(src / f"a.{format}")]
        assert (span.start, span.end) in listed
        assert (span.start, span.end, span.kind) in damage_now(lake, format)
    for format in formats:
        (src / f"a.{format}").write_bytes(content[format])
    assert ingest(src, lake).records == 1
    assert Counter(row["value"] for row in rows(lake, "records")) == Counter(each.value for each in written)
    assert damage_now(lake, formats[1]) == []


@pytest.mark.parametrize(("format", "count"), [("active", 8), ("active", 10), ("active", RECORDS), ("sealed", 10)])
def test_a_sound_copy_of_a_file_that_has_rotted_since_is_one_segment(tmp_path: Path, format: str, count: int) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(tmp_path / "whole.active", RECORDS)
    whole = (tmp_path / "whole.active").read_bytes()

    def put(name: str, count: int) -> None:
        (src / f"{name}.active").write_bytes(whole[: written[count - 1].end])
        if format == "sealed":
            seglake.seal(src / f"{name}.active", src / f"{name}.sealed")
            (src / f"{name}.active").unlink()

    src.mkdir()
    put("a", 10)
    assert ingest(src, lake).records == 10
    rotten = src / f"a.{format}"
    flip(rotten, rotten.read_bytes().index(written[4].value))
    put("b", count)
    for _ in range(2):
        ingest(src, lake)
    there = Counter(each.value for each in written[: max(count, 10)])
    assert Counter(row["value"] for row in rows(lake, "records")) == there
    assert ingest(src, lake).run_id is None
    # The one that has all of it is the segment now.
    states = {Path(row["path"]).name: row["status"] for row in latest(lake).values()}
    if count >= 10:
        assert states == {rotten.name: "damaged", f"b.{format}": "sound"}
        (span,) = seglake.verify(rotten).damage
        assert damage_now(lake, format) == [(span.start, span.end, span.kind)]


@pytest.mark.parametrize("at_once", [True, False])
def test_damage_that_begins_in_the_unfinished_tail_of_a_copy_is_told_whole(tmp_path: Path, at_once: bool) -> None:
    source, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(tmp_path / "whole.active", 6)
    content = bytearray((tmp_path / "whole.active").read_bytes())
    start, end = written[3].start, written[3].end
    content[end - 1] ^= 1
    source.mkdir()
    (source / "torn.active").write_bytes(content[: end - 1].ljust(2048, b"\0"))
    if not at_once:
        ingest(source, lake, final=True)
    (source / "longer.active").write_bytes(content)
    ingest(source, lake, final=True)
    own = [row for row in rows(lake, "damage") if row["path"].endswith("longer.active")]
    assert [(row["start"], row["end"]) for row in own] == [(start, end)]
    values = [row["value"] for row in rows(lake, "records")]
    assert len(values) == len(set(values)) == 5


def put_copies(
    folder: Path, files: dict[str, bytes], order: str, lake: Path, *, final: bool, settled: bool = False
) -> None:
    """Ingests files one after the other, or all at once. If they are settled, the next run takes them for unchanged."""
    folder.mkdir()
    for name in order.split() or files:
        (folder / name).write_bytes(files[name])
        os.utime(folder / name, (moment := 1_700_000_000 if settled else 4_000_000_000, moment))
        if order:
            ingest(folder, lake, final=final)
    ingest(folder, lake, final=final)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("order", ["a b", "b a", ""])
@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize("settled", [False, True])
def test_a_copy_of_which_the_last_record_is_damaged_is_one_segment(
    tmp_path: Path, order: str, final: bool, is_damaged: bool, settled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "_CHECKPOINT_FILES", 1)
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(tmp_path / "whole.active", 8)
    content = (tmp_path / "whole.active").read_bytes()
    start, end = written[3].start, written[3].end - (not is_damaged)
    copy = bytearray(content[:end])
    if is_damaged:
        copy[-9] ^= 1
    put_copies(src, {"a": content, "b": bytes(copy)}, order, lake, final=final, settled=settled)
    # Only a tail that no other file has is damage, and only once no file grows any more.
    for is_final in (final, True, True, False):
        result = ingest(src, lake, final=is_final)
        assert (result.records, result.run_id is None) == (0, is_final == final or final or not is_damaged)
        final = final or is_final
        assert Counter(row["value"] for row in rows(lake, "records")) == Counter(each.value for each in written)
        is_told = is_damaged and final
        states = {Path(row["path"]).name: row["status"] for row in latest(lake).values()}
        assert states == {"a": "sound", "b": "damaged" if is_told else "copy"}
        assert [place[:2] for place in damage_now(lake, "active")] == [(start, end)] * is_told
    (src / "b").write_bytes(content[: written[3].end])
    result = ingest(src, lake)
    assert (result.exit_status, result.statuses["copy"], damage_now(lake, "active")) == (0, 1, [])
    assert Counter(row["value"] for row in rows(lake, "records")) == Counter(each.value for each in written)


@pytest.mark.parametrize("order", ["a b", "b a", ""])
@pytest.mark.parametrize("final", [False, True])
def test_a_tail_that_becomes_a_record_of_another_segment_is_not_lost(tmp_path: Path, order: str, final: bool) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(tmp_path / "whole.active", 8)
    content = (tmp_path / "whole.active").read_bytes()
    with seglake.create(tmp_path / "fork.active", format="active") as writer:
        writer.write(uuid=written[3].uuid, type=TYPE, value=b"of another log")
    fork = content[: written[2].end] + (tmp_path / "fork.active").read_bytes()
    put_copies(src, {"a": content, "b": fork[:-1]}, order, lake, final=final)
    assert Counter(row["value"] for row in rows(lake, "records")) == Counter(each.value for each in written)
    (src / "b").write_bytes(fork)
    for _ in range(2):
        ingest(src, lake)
    found = Counter(row["value"] for row in rows(lake, "records"))
    # What both begin with is there for both.
    assert found == Counter([*(each.value for each in [*written, *written[:3]]), b"of another log"])


@pytest.mark.parametrize("order", ["ab", "ba", ""])
def test_records_after_damage_of_an_oplog_are_no_tail_of_a_copy(tmp_path: Path, order: str) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()
    content: dict[str, bytearray] = {}
    for name in "ab":
        with seglake.create(tmp_path / name, format="oplog") as writer:
            for number in range(8):
                value = f"{number} of {name if number > 3 else '-'}".encode()
                writer.write(version=1, checkpointer=1, checkpoint=None, clock=[], abi=0, batch=1, value=value)
        content[name] = bytearray((tmp_path / name).read_bytes())
    one = len(content["b"]) // 8
    content["b"] = content["b"][: 6 * one]
    content["b"][3 * one + 3] ^= 0xFF
    for name in order or "ab":
        (src / name).write_bytes(content[name])
        os.utime(src / name, (4_000_000_000, 4_000_000_000))  # each run looks at it again
        if order or name == "b":
            ingest(src, lake, format="oplog")
    assert ingest(src, lake, format="oplog").run_id is None
    ingest(src, lake, format="oplog", final=True)
    found = {row["value"] for row in rows(lake, "records")}
    assert {b"4 of b", b"5 of b", b"7 of a"} <= found


def put_part(folder: Path, name: str, format: str, written: list[Written], damaged: tuple[int, ...]) -> None:
    """Writes a file of these records, some of which are damaged."""
    path = folder / f"{name}.{format}"
    part = folder.parent / "part.sealed"
    with seglake.create(part, format="sealed", if_exists="overwrite") as writer:
        for each in written:
            writer.write(uuid=each.uuid, type=TYPE, value=each.value)
    seglake.convert(part, path, to=format, overwrite=True)
    content = path.read_bytes()
    for number in damaged:
        flip(path, content.index(written[number].value))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("counts", [(10, 10), (10, RECORDS), (RECORDS, 10)])
@pytest.mark.parametrize("formats", [("active", "sealed"), ("sealed", "active"), ("sealed", "sealed")])
@pytest.mark.parametrize("damaged", [((), (3,)), ((3,), ()), ((2, 3), (6,)), ((3,), (2, 3)), ((1, 6), (6,))])
@pytest.mark.parametrize("is_in_turn", [True, False])
def test_files_that_are_damaged_in_different_records_are_one_segment(
    tmp_path: Path,
    counts: tuple[int, int],
    formats: tuple[str, str],
    damaged: tuple[tuple[int, ...], tuple[int, ...]],
    is_in_turn: bool,
) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(tmp_path / "whole.active", RECORDS)
    src.mkdir()
    for name, format, count, own in zip("ab", formats, counts, damaged, strict=True):
        put_part(src, name, format, written[:count], own)
        if is_in_turn:
            ingest(src, lake)
    ingest(src, lake)
    first = 0 if is_in_turn else max(range(2), key=lambda number: (formats[number] == "sealed", counts[number]))
    second = 1 - first
    adds, lacks = {*damaged[first]} - {*damaged[second]}, {*damaged[second]} - {*damaged[first]}
    # One that has records which the other lacks is not the same segment if it is shorter, or lacks others itself.
    is_once = not (adds and (lacks or counts[second] < counts[first])) and not (
        lacks and counts[second] > counts[first]
    )
    there = {n for count, own in zip(counts, damaged, strict=True) for n in set(range(count)) - set(own)}
    for expected in (there, set(range(max(counts)))):
        found = Counter(row["value"] for row in rows(lake, "records"))
        assert set(found) == {written[number].value for number in expected}
        assert max(found.values()) == 1 or not is_once
        assert ingest(src, lake).run_id is None or any(damaged)
        for name, format, count in zip("ab", formats, counts, strict=True):
            put_part(src, name, format, written[:count], ())
        result = ingest(src, lake)
        assert (result.exit_status, result.damage) == (0, {})


@pytest.mark.sampled(5)
@pytest.mark.parametrize("formats", [*product(("active", "sealed"), repeat=2)])
@pytest.mark.parametrize("change", ["value", "uuid", "more", "more_damaged", "longer", "other_damaged", "last", "hole"])
@pytest.mark.parametrize("is_first", [True, False])
def test_damaged_files_that_differ_lose_nothing(
    tmp_path: Path, formats: tuple[str, str], change: str, is_first: bool
) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    whole = write_segment(tmp_path / "whole.active", RECORDS)
    written = whole[:10]
    another = replace(written[6], uuid=Uuid(int=written[6].uuid.int + 1), value=written[6].value.replace(b"0", b"x"))
    others, damaged = {
        "value": ([*written[:6], replace(written[6], value=another.value), *written[7:]], (3,)),
        "uuid": ([*written[:6], another, *written[7:]], (3,)),
        "more": ([*written[:7], another, *written[7:]], (3, 6)),
        "more_damaged": ([*written[:7], another, *written[7:]], (6, 7)),
        "longer": ([*written[:7], another, *whole[7:]], (6, 7)),
        "other_damaged": ([*written[:7], another, *written[7:]], (7,)),
        "hole": ([*written[:6], another, *whole[7:]], (6,)),
        "last": ([*written[:9], replace(another, uuid=written[9].uuid)], (9,)),
    }[change]
    src.mkdir()
    for name in "ab" if is_first else "ba":
        put_part(
            src, name, formats["ab".index(name)], written if name == "a" else others, () if name == "a" else damaged
        )
        ingest(src, lake)
    ingest(src, lake)
    put_part(src, "b", formats[1], others, ())
    ingest(src, lake)
    result = ingest(src, lake)
    found = {row["value"] for row in rows(lake, "records")}
    if change == "hole" and formats == ("active", "active") and is_first:
        # The bytes are the same but for this record, which may not count as the one that was ingested.
        assert (result.exit_status, result.statuses["replaced"]) == (1, 1)
        found.add(another.value)
    assert found == {each.value for each in [*written, *others]}


@pytest.mark.parametrize("repaired", [(3,), (6,), (3, 6)])
@pytest.mark.parametrize("is_another", [False, True])
def test_what_is_repaired_has_to_be_what_was_ingested(
    tmp_path: Path, repaired: tuple[int, ...], is_another: bool
) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    whole = write_segment(tmp_path / "whole.active", RECORDS)
    others = list(whole)
    for number in repaired if is_another else ():
        others[number] = replace(whole[number], value=whole[number].value.replace(b"0", b"x"))
    src.mkdir()
    put_part(src, "a", "active", whole[:10], ())
    ingest(src, lake)
    put_part(src, "b", "active", others, (3, 6))
    ingest(src, lake)
    (src / "a.active").unlink()  # nothing but what was noted can tell
    put_part(src, "b", "active", others, tuple({3, 6} - {*repaired}))
    result = ingest(src, lake)
    assert result.statuses["replaced"] == is_another
    assert (result.exit_status == 1) is (is_another or len(repaired) == 1)
    put_part(src, "b", "active", whole, ())
    result = ingest(src, lake)
    assert (result.exit_status, result.statuses["sound"]) == (0, 1)
    assert Counter(row["value"] for row in rows(lake, "records")) == Counter(each.value for each in whole)


def other_value(record: Written) -> Written:
    return replace(record, value=record.value.replace(b"0", b"x"))


def test_what_a_sidecar_restores_is_what_was_ingested(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    whole = write_segment(tmp_path / "whole.active", RECORDS)
    src.mkdir()
    put_part(src, "a", "active", whole[:10], ())
    seglake.protect(src / "a.active")
    ingest(src, lake)
    flip(src / "a.active", whole[3].start + 50)
    put_part(src, "b", "active", whole, (3,))
    ingest(src, lake)
    put_part(src, "b", "active", whole, ())
    result = ingest(src, lake)
    assert (result.statuses["sound"], result.statuses["replaced"]) == (1, 0)
    assert Counter(row["value"] for row in rows(lake, "records")) == Counter(each.value for each in whole)


def test_what_a_sidecar_restores_has_to_be_what_was_ingested(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    whole = write_segment(tmp_path / "whole.active", RECORDS)
    others = [*whole[:3], other_value(whole[3]), *whole[4:]]
    src.mkdir()
    put_part(src, "b", "active", others, ())
    seglake.protect(src / "b.active")
    sidecar = (src / "b.active.par").rename(tmp_path / "b.par")
    (src / "b.active").unlink()
    put_part(src, "a", "active", whole[:10], ())
    ingest(src, lake)
    put_part(src, "b", "active", others, (3,))
    ingest(src, lake)
    flip(src / "b.active", whole[3].start + 52)
    sidecar.rename(src / "b.active.par")
    for _ in range(2):
        result = ingest(src, lake)
        assert (result.exit_status, result.statuses["replaced"]) == (1, 1)
        put_part(src, "b", "active", others, ())


@pytest.mark.parametrize("count", [8, 12, 14])
def test_a_sound_copy_of_a_file_whose_damage_was_noted_has_to_be_what_was_ingested(tmp_path: Path, count: int) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    whole = write_segment(tmp_path / "whole.active", 14)
    others = [*whole[:3], other_value(whole[3]), *whole[4:]]
    src.mkdir()
    put_part(src, "a", "active", whole[:10], ())
    ingest(src, lake)
    put_part(src, "b", "active", others[:12], (3,))
    ingest(src, lake)
    (src / "a.active").unlink()
    put_part(src, "c", "active", others[:count], ())
    ingest(src, lake)
    expected = {each.value for each in [*whole[:12], *others[:count]]}
    assert {row["value"] for row in rows(lake, "records")} == expected


def test_files_that_are_damaged_in_one_record_in_two_ways_are_repaired(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    whole = write_segment(tmp_path / "whole.active", 14)
    src.mkdir()
    put_part(src, "a", "active", whole[:10], ())
    ingest(src, lake)
    put_part(src, "b", "active", whole[:12], (3,))
    ingest(src, lake)
    put_part(src, "c", "active", whole, ())
    flip(src / "c.active", whole[3].start + 60)
    ingest(src, lake)
    put_part(src, "c", "active", whole, ())
    result = ingest(src, lake)
    assert (result.statuses["sound"], result.statuses["replaced"]) == (1, 0)
    assert Counter(row["value"] for row in rows(lake, "records")) == Counter(each.value for each in whole)


@pytest.mark.parametrize("damaged", [((), (6,)), ((6,), ()), ((5,), (6,)), ((), (3,))])
@pytest.mark.parametrize("is_another", [False, True])
def test_what_has_rotted_has_to_be_what_was_ingested(
    tmp_path: Path, damaged: tuple[tuple[int, ...], tuple[int, ...]], is_another: bool
) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    whole = write_segment(tmp_path / "whole.active", RECORDS)
    others = [*whole[:3], other_value(whole[3]) if is_another else whole[3], *whole[4:]]
    src.mkdir()
    put_part(src, "a", "active", whole[:10], damaged[0])
    ingest(src, lake)
    flip(src / "a.active", whole[3].start + 60)
    put_part(src, "b", "active", others, damaged[1])
    ingest(src, lake)
    put_part(src, "b", "active", others, ())
    ingest(src, lake)
    put_part(src, "a", "active", whole[:10], ())
    assert ingest(src, lake).exit_status == 0
    found = Counter(row["value"] for row in rows(lake, "records"))
    assert set(found) == {each.value for each in [*whole, *others]}
    if damaged == ((6,), ()) and not is_another:
        assert max(found.values()) == 1  # the hash of what was ingested proves it
