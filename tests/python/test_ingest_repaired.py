"""The ingest of files that were damaged when an earlier run read them, and were repaired since."""

import json
import os
import random
import re
import shutil
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import damage_view
import pytest
from cli_process import here
from seglake._ingestion import repaired, sink, task
from seglake._ingestion.result import TableKind
from segments import DAY, flip, uuid6, write_segment
from test_ingest_again import age, latest, plain, rows
from test_ingest_parity import FILES, Life

import seglake
from seglake import IngestResult, SegmentLog, ingest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the ingest runs on Linux and macOS")


def damage_now(lake: Path, format: str) -> list[tuple[int, int, str]]:
    """What the view of the documents says is damaged in files that have been of a format."""
    paths = {row["path"] for row in rows(lake, "files") if row["format"] == format}
    return sorted((each.start, each.end, each.kind) for each in damage_view.damage_now(lake) if each.path in paths)


def told(result: IngestResult) -> tuple[int, int, int, dict[str, int]]:
    statuses = {status: number for status, number in result.statuses.items() if number}
    return (result.exit_status, result.records, result.repaired_records, statuses)


# An oplog waits for what is damaged, if it has no sidecar, and without checksums nobody would notice.
CASES = [*((name, "auto") for name in FILES), *((name, None) for name in ("active", "chunked", "sealed", "tenant"))]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "parity"), CASES)
def test_what_was_damaged_comes_in_once_it_is_repaired(tmp_path: Path, name: str, parity: str | None) -> None:
    life, lake, whole = Life(tmp_path / "src", name, random.Random(name)), tmp_path / "lake", tmp_path / "whole"
    life.end = len(life.whole)
    life.path.write_bytes(life.whole)
    life.protect()
    age(life.path.parent)
    arguments: dict[str, Any] = {**life.sample.read_options, "format": life.sample.format, "parity": parity}
    total = ingest(life.path, whole, **arguments).records
    life.struck = {life.whole.index(b"value 000031")}
    flip(life.path, *life.struck)
    age(life.path.parent)
    first = ingest(life.path, lake, **arguments)
    assert (first.records == total) == (parity is not None)
    assert bool(first.repaired_records) == (parity is not None)
    assert damage_now(lake, life.sample.format)
    life.repair()  # which leaves the file its size and time
    assert told(ingest(life.path, lake, **arguments)) == (0, total - first.records, 0, {"sound": 1})
    assert plain(lake, "records") == plain(whole, "records")
    (row,), (expected,) = latest(lake).values(), latest(whole).values()
    assert {key: row[key] for key in row if key != "run"} == {key: expected[key] for key in row if key != "run"}
    assert damage_now(lake, life.sample.format) == []
    assert ingest(life.path, lake, **arguments).run_id is None
    assert len(rows(lake, "records")) == total


def damaged(path: Path, numbers: list[int]) -> tuple[bytes, bytes, list[int]]:
    """Writes a file and damages some records; returns its sound bytes, the damaged ones, and where each begins."""
    written = write_segment(path, 20)
    content = path.read_bytes()
    for number in numbers:
        flip(path, written[number].end - 9)
    return content, path.read_bytes(), [each.start for each in written]


def positions(lake: Path) -> list[int]:
    return sorted(row["position"] for row in rows(lake, "records"))


def test_a_part_that_is_repaired_comes_in_and_the_rest_stays_damaged(tmp_path: Path) -> None:
    path, lake = tmp_path / "a.active", tmp_path / "lake"
    content, broken, starts = damaged(path, [3, 4, 11])
    end = starts[15]
    path.write_bytes(broken[:end])
    assert told(ingest(path, lake)) == (1, 12, 0, {"damaged": 1})
    path.write_bytes(content[: starts[10]] + broken[starts[10] : end])
    assert told(ingest(path, lake)) == (1, 2, 0, {"damaged": 1})
    assert damage_now(lake, "active") == [(starts[11], starts[12], "corrupt")]
    # As it grows, only what is new is read.
    path.write_bytes(content[: starts[10]] + broken[starts[10] :])
    assert ingest(path, lake).records == 5
    assert latest(lake).popitem()[1]["start"] == end
    path.write_bytes(content)
    assert told(ingest(path, lake)) == (0, 1, 0, {"sound": 1})
    assert positions(lake) == starts
    assert len(rows(lake, "damage")) == 3
    assert damage_now(lake, "active") == []


@pytest.mark.parametrize("format", ["active", "sealed"])
def test_a_file_that_is_being_restored_waits_until_it_is(tmp_path: Path, format: str) -> None:
    path, lake = tmp_path / f"a.{format}", tmp_path / "lake"
    write_segment(tmp_path / "b.active", 20)
    if format == "sealed":
        seglake.seal(tmp_path / "b.active", path)
    else:
        shutil.move(tmp_path / "b.active", path)
    content = path.read_bytes()
    with seglake.open(path) as reader:
        starts = sorted(record.position for record in reader)
    flip(path, starts[3] + 30)
    broken = path.read_bytes()
    assert ingest(path, lake).records == 19
    half = bytearray(content)
    half[starts[8] : starts[10]] = bytes(starts[10] - starts[8])
    path.write_bytes(half)
    ingest(path, lake)
    assert len(rows(lake, "records")) == 19
    path.write_bytes(broken)
    ingest(path, lake)
    path.write_bytes(content)
    assert told(ingest(path, lake)) == (0, 1, 0, {"sound": 1})
    assert positions(lake) == starts


def test_another_complete_file_with_as_many_records_is_no_repaired_one(tmp_path: Path) -> None:
    path, lake = tmp_path / "a.sealed", tmp_path / "lake"

    def write(values: dict[int, bytes]) -> list[int]:
        with seglake.create(path, format="sealed", if_exists="overwrite") as writer:
            for number in range(10):
                value = values.get(number, b"value %d" % number)
                writer.write(uuid=uuid6(DAY + timedelta(minutes=number), number), type="t", value=value)
        with seglake.open(path) as reader:
            return sorted(record.position for record in reader)

    starts = write({})
    flip(path, starts[3])
    assert ingest(path, lake).records == 9
    write({7: b"VALUE 7"})
    assert told(ingest(path, lake)) == (1, 0, 0, {"replaced": 1})
    assert len(rows(lake, "records")) == 9


def of_format(format: str, folder: Path) -> tuple[Path, bytes, list[int]]:
    """Writes a file of 20 records; returns it, its bytes and where each record begins."""
    path = folder / f"a.{format}"
    write_segment(folder / "written", 20)
    if format == "sealed":
        seglake.seal(folder / "written", path)
        (folder / "written").unlink()
    else:
        shutil.move(folder / "written", path)
    with seglake.open(path) as reader:
        return path, path.read_bytes(), sorted(record.position for record in reader)


@pytest.mark.parametrize("format", ["active", "sealed"])
@pytest.mark.parametrize("place", ["beside", "instead", "together"])
def test_a_sound_copy_of_a_damaged_file_is_the_same_segment(tmp_path: Path, format: str, place: str) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    path, content, starts = of_format(format, src)
    flip(path, starts[5] + 30)
    if place != "together":
        assert told(ingest(src, lake)) == (1, 19, 0, {"damaged": 1})
    if place == "instead":
        path.rename(src / f"bad.{format}")
        path.write_bytes(content)
    else:
        (src / f"b.{format}").write_bytes(content)
    result = ingest(src, lake)
    assert (result.exit_status, result.statuses["damaged"], result.errors) == (1, 1, ())
    damaged = src / f"{'bad' if place == 'instead' else path.stem}.{format}"
    broken = damaged.read_bytes()
    age(src)
    for _ in range(3):
        result = ingest(src, lake)
        assert result.records == 0
    assert (result.run_id, result.unchanged) == (None, 2)
    assert positions(lake) == starts
    found = {row["segment"]: row for row in latest(lake).values()}
    copy = found.pop(str(damaged))
    assert (copy["status"], copy["records"], copy["nbytes"]) == ("damaged", 0, len(content))
    assert copy["error"].endswith(f"its records are those of {found.popitem()[1]['path']}")
    ranges = [(span.start, span.end) for span in seglake.verify(damaged).damage]
    assert [(start, end) for start, end, _ in damage_now(lake, format)] == ranges
    (row,) = (row for row in rows(lake, "damage") if row["segment"] == str(damaged))
    assert row["raw"] == broken[row["start"] : row["end"]]
    # It is repaired, which leaves it its size and time.
    damaged.write_bytes(content)
    age(src)
    assert told(ingest(src, lake)) == (0, 0, 0, {"copy": 1})
    assert damage_now(lake, format) == []
    assert ingest(src, lake).run_id is None


@pytest.mark.parametrize("table", ["parquet", "delta", "iceberg"])
def test_a_damaged_copy_that_goes_on_as_the_segment_is_damaged(tmp_path: Path, table: TableKind) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(src / "a.active", 20)
    content = (src / "a.active").read_bytes()
    begun = content[: written[15].end]
    (src / "a.active").write_bytes(begun)
    (src / "b.active").write_bytes(begun)
    flip(src / "b.active", written[5].end - 9)
    flip(src / "b.active", written[9].end - 9)
    broken = (src / "b.active").read_bytes()
    age(src)

    def run() -> tuple[int, int, int, dict[str, int]]:
        return told(ingest(src, lake, table=table))

    assert run() == (1, 16, 0, {"sound": 1, "damaged": 1})
    (src / "a.active").unlink()
    (src / "b.active").write_bytes(broken + content[written[15].end : written[18].end])
    age(src)
    assert run() == (1, 3, 0, {"damaged": 1})
    (row,) = (row for row in latest(lake).values() if row["segment"] != row["path"])
    assert (Path(row["path"]).name, row["status"], row["records"], row["start"]) == ("b.active", "damaged", 19, 0)
    if table == "parquet":
        ranges = [(written[number].start, written[number].end, "corrupt") for number in (5, 9)]
        assert damage_now(lake, "active") == ranges
    (src / "b.active").write_bytes(content)
    age(src)
    assert run() == (0, 1, 0, {"sound": 1})
    assert positions(lake) == [each.start for each in written]
    assert damage_now(lake, "active") == [] or table != "parquet"


@pytest.mark.parametrize("format", ["active", "sealed"])
@pytest.mark.parametrize("is_later", [False, True])
def test_of_copies_that_are_damaged_in_different_places_each_record_comes_once(
    tmp_path: Path, format: str, is_later: bool
) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    path, content, starts = of_format(format, src)
    flip(path, starts[5] + 30)
    if is_later:
        assert ingest(src, lake).records == 19
    other = src / f"b.{format}"
    other.write_bytes(content)
    flip(other, starts[9] + 30)
    age(src)
    assert ingest(src, lake).records == 1 + 19 * (not is_later)
    ingest(src, lake)
    result = ingest(src, lake)
    assert (result.run_id, result.unchanged) == (None, 2)
    assert positions(lake) == starts
    assert len({row["segment"] for row in rows(lake, "records")}) == 1
    assert sorted(row["status"] for row in latest(lake).values()) == ["damaged", "damaged"]
    assert sorted(start for start, _, _ in damage_now(lake, format)) == [starts[5], starts[9]]
    # Each is repaired.
    for each in (other, path):
        each.write_bytes(content)
        age(src)
        assert ingest(src, lake).records == 0
    assert ingest(src, lake).exit_status == 0
    assert positions(lake) == starts
    assert damage_now(lake, format) == []


@pytest.mark.parametrize("lost", [[9], [2, 9], [2]])
def test_a_longer_file_that_is_damaged_elsewhere_goes_on(tmp_path: Path, lost: list[int]) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    path, content, starts = of_format("active", src)
    path.write_bytes(content[: starts[14]])
    flip(path, starts[5] + 30)
    assert ingest(src, lake).records == 13
    (src / "b.active").write_bytes(content)
    for number in lost:
        flip(src / "b.active", starts[number] + 30)
    assert ingest(src, lake).records == 7
    assert positions(lake) == starts
    assert {row["segment"]: row["records"] for row in latest(lake).values() if row["records"]} == {
        rows(lake, "records")[0]["segment"]: 20
    }
    found = [start for start, _, _ in damage_now(lake, "active")]
    assert sorted(found) == sorted([starts[5], *(starts[number] for number in lost)])


@pytest.mark.filterwarnings("ignore::seglake.DamageWarning")
@pytest.mark.parametrize("format", ["active", "sealed"])
def test_logs_that_begin_alike_and_are_damaged_where_they_differ_are_not_one(tmp_path: Path, format: str) -> None:
    """What is damaged hides where they part: only a record after it that is sound in both proves that they do not."""
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()
    content: dict[str, tuple[bytes, list[int]]] = {}
    for name, values in (("a", b"x" * 40), ("b", b"y" * 40)):
        with seglake.create(src / f"{name}.{format}", format=format) as writer:  # pyright: ignore
            for number in range(12 if name == "a" or format == "sealed" else 14):
                value = b"%06d" % number + (values if number >= 6 else b"z" * 40)
                writer.write(
                    uuid=uuid6(DAY + timedelta(minutes=number), number + (number >= 6) * ord(name)),
                    type="t",
                    value=value,
                )
        with seglake.open(src / f"{name}.{format}") as reader:
            content[name] = ((src / f"{name}.{format}").read_bytes(), sorted(record.position for record in reader))
    starts = content["a"][1]
    # One is damaged where they part, and the other one at the last records of that.
    for name, numbers in (("a", range(6, 10)), ("b", (10, 11))):
        for number in numbers:
            flip(src / f"{name}.{format}", starts[number] + 30)
    expected: set[bytes] = set()
    for name in content:
        with seglake.open(src / f"{name}.{format}", on_damage="skip") as reader:
            expected |= {record.value for record in reader}
    ingest(src / f"a.{format}", lake)
    for _ in range(2):
        ingest(src, lake)
    assert {row["value"] for row in rows(lake, "records")} == expected
    for name, (whole, _) in content.items():
        (src / f"{name}.{format}").write_bytes(whole)
    for _ in range(2):
        ingest(src, lake)
    expected = set()
    for name in content:
        with seglake.open(src / f"{name}.{format}") as reader:
            expected |= {record.value for record in reader}
    assert {row["value"] for row in rows(lake, "records")} == expected


@pytest.mark.parametrize("final", [False, True])
def test_a_damaged_file_with_more_records_is_not_the_sound_one(tmp_path: Path, *, final: bool) -> None:
    """Its damage is told, though the other file has what is lost of it."""
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(src / "a.active", 10)
    content = (src / "a.active").read_bytes()
    (src / "a.active").write_bytes(content[:-20] + bytes(2000))  # larger, and so the first
    (src / "b.active").write_bytes(content)
    flip(src / "b.active", written[4].end - 9)
    age(src)
    result = ingest(src, lake, final=final)
    assert (result.exit_status, result.statuses["damaged"]) == (1, 1 + final)
    damage = {(Path(row["path"]).name, row["kind"]) for row in rows(lake, "damage")}
    assert damage == {("b.active", "corrupt")} | ({("a.active", "torn_tail")} if final else set())
    assert {row["value"] for row in rows(lake, "records")} == {each.value for each in written}


def test_a_copy_that_is_damaged_in_the_same_record_is_a_copy(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    path, content, starts = of_format("active", src)
    flip(path, starts[5] + 30)
    ingest(src, lake)
    (src / "b.active").write_bytes(content)
    flip(src / "b.active", starts[5] + 31)
    assert told(ingest(src / "b.active", lake)) == (1, 0, 0, {"damaged": 1})
    assert positions(lake) == [*starts[:5], *starts[6:]]
    assert damage_now(lake, "active") == [(starts[5], starts[6], "corrupt")] * 2


@pytest.mark.parametrize("more", [0, 3])
def test_damage_has_no_place_in_a_file_that_was_sealed_since(tmp_path: Path, more: int) -> None:
    """Of an active file, or of a sealed one with fewer records: what begins where that was is in `records`."""
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(src / "a.active", 21)
    write_segment(tmp_path / "a.active", 21 + more)
    if more:
        seglake.seal(src / "a.active", src / "a.sealed")
        (src / "a.active").unlink()
        with seglake.open(src / "a.sealed") as reader:
            flip(src / "a.sealed", [record.position for record in reader][13] + 40)
    else:
        flip(src / "a.active", written[13].end - 9)
    age(src)
    assert told(ingest(src, lake)) == (1, 20, 0, {"damaged": 1})
    for path in src.iterdir():
        path.unlink()
    seglake.seal(tmp_path / "a.active", src / "a.sealed")
    age(src)
    assert ingest(src, lake).records == more
    for moment in (1_700_000_001, 1_700_000_002):  # which changes what tells when the file was changed
        os.utime(src / "a.sealed", (moment, moment))
        assert told(ingest(src, lake)) in ((1, 0, 0, {"damaged": 1}), (0, 0, 0, {}))
    values = [row["value"][2:8] for row in rows(lake, "records")]
    assert sorted(values) == [b"%06d" % number for number in range(21 + more) if number != 13]
    assert [row["status"] for row in latest(lake).values()] == ["damaged"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("trailer", [True, False])
@pytest.mark.parametrize("name", ["a.sealed", "b.sealed"])
@pytest.mark.parametrize("other", [1, 4, 9, None])
def test_a_sealed_file_of_the_same_size_that_differs_is_another(
    tmp_path: Path, name: str, other: int | None, *, trailer: bool
) -> None:
    """In a record or, with `None`, by damage alone. The first file is gone, so they cannot be compared."""
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()

    def write(name: str, other: int | None) -> int:
        with seglake.create(src / name, format="sealed", options={"trailer": trailer}) as writer:
            for number in range(10):
                value = b"other %d" % number if number == other else b"value %d" % number
                writer.write(uuid=uuid6(DAY + timedelta(minutes=number), number), type="t", value=value)
        return (src / name).stat().st_size

    size = write("a.sealed", None)
    assert ingest(src, lake).records == 10
    (src / "a.sealed").unlink()
    assert write(name, other) == size
    if other is None:
        flip(src / name, (src / name).read_bytes().index(b"value 4"))
    age(src)
    assert told(ingest(src, lake)) == (1, 0, 0, {"replaced": 1})
    assert len(rows(lake, "records")) == 10


def test_a_damaged_file_is_opened_again_only_if_it_was_changed(tmp_path: Path) -> None:
    path, lake = tmp_path / "a.active", tmp_path / "lake"
    damaged(path, [3])
    os.utime(path, (1_700_000_000, 1_700_000_000))
    ingest(path, lake)
    assert ingest(path, lake).unchanged == 1
    path.chmod(0o600)
    again = ingest(path, lake)
    assert (again.unchanged, again.run_id) == (0, None)


def test_a_file_that_is_in_another_state_is_compared_once(tmp_path: Path) -> None:
    path, lake = tmp_path / "a.active", tmp_path / "lake"
    content, _, starts = damaged(path, [3])
    age(tmp_path)
    ingest(path, lake)
    path.write_bytes(content[: starts[8]] + bytes(20) + content[starts[8] + 20 :])
    age(tmp_path)
    assert ingest(path, lake).run_id is not None
    assert ingest(path, lake).unchanged == 1
    path.write_bytes(content)
    age(tmp_path)
    assert told(ingest(path, lake)) == (0, 1, 0, {"sound": 1})


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a file was read as a whole to see whether its damage was repaired: one entry for each time."""
    made: list[int] = []

    def counting(*arguments: Any) -> Any:
        made.append(len(made))
        return repaired.known_records(*arguments)

    monkeypatch.setattr(task, "known_records", counting)
    return made


def test_a_log_that_grows_is_not_read_as_a_whole_until_damage_can_be_clear(tmp_path: Path, looks: list[int]) -> None:
    """A damaged record is repaired while another one breaks."""
    path, lake = tmp_path / "a.active", tmp_path / "lake"
    written = write_segment(path, 80)
    content = path.read_bytes()

    def grown(number: int, *broken: int) -> int:
        """Writes so many records, some of them damaged, and ingests; returns how many records were added."""
        path.write_bytes(content[: written[number].start])
        for each in broken:
            flip(path, written[each].end - 9)
        return ingest(path, lake).records

    assert grown(30, 8) == 29
    assert (grown(31, 8), len(looks)) == (1, 0)
    assert (grown(32, 12), len(looks)) == (1, 1)  # record 8 is there, and 12 is not: that may be any two others
    for number in range(33, 37):
        assert (grown(number, 12), len(looks)) == (1, 1)
    assert (grown(37, 12, 8), len(looks)) == (1, 1)  # as it was at first
    assert (grown(38, 12, 5), len(looks)) == (1, 1)  # that 5 broke, too, is not noticed until the file is read
    assert (grown(39), len(looks)) == (2, 2)
    assert told(ingest(path, lake)) == (0, 0, 0, {"sound": 1})
    assert positions(lake) == [each.start for each in written[:39]]


def test_a_log_whose_damage_is_not_clear_is_read_as_a_whole_each_time_it_doubles(
    tmp_path: Path, looks: list[int]
) -> None:
    path, lake = tmp_path / "a.active", tmp_path / "lake"
    written = write_segment(path, 80)
    content = path.read_bytes()
    found: list[int] = []
    for number in (10, 11, *range(20, 70, 2), 70, 70):
        path.write_bytes(content[: written[number].start])
        flip(path, written[3 if number == 10 else 5].end - 9)
        ingest(path, lake)
        found.append(len(looks))
    # At 11 records, at 22, at 44; and when it was changed and has not grown.
    assert found == [0, 1, 1, *[2] * 11, *[3] * 13, 3, 4]
    path.write_bytes(content[: written[71].start])
    assert ingest(path, lake).records == 2
    assert positions(lake) == [each.start for each in written[:71]]


def test_a_sidecar_that_appears_is_noticed_where_damage_was_not_clear(tmp_path: Path, looks: list[int]) -> None:
    path, lake = tmp_path / "a.active", tmp_path / "lake"
    written = write_segment(path, 40)
    content = path.read_bytes()

    def grown(number: int, broken: int, sidecar: bytes | None = None) -> int:
        path.write_bytes(content[: written[number].start])
        flip(path, written[broken].end - 9)
        if sidecar is not None:
            path.with_name("a.active.par").write_bytes(sidecar)
        return ingest(path, lake).records

    path.write_bytes(content[: written[30].start])
    seglake.protect(path)
    sidecar = path.with_name("a.active.par")
    kept = sidecar.read_bytes()
    sidecar.unlink()
    assert (grown(30, 8), grown(31, 12), grown(32, 12), len(looks)) == (29, 1, 1, 1)
    assert (grown(33, 12, kept), len(looks)) == (2, 2)
    assert positions(lake) == [each.start for each in written[:33]]


def test_what_was_left_out_by_choice_stays_out(tmp_path: Path) -> None:
    path, lake = tmp_path / "a.active", tmp_path / "lake"
    content, _, _ = damaged(path, [])
    seglake.protect(path)
    flip(path, 500)
    assert told(ingest(path, lake, on_damage="skip")) == (1, 19, 0, {"damaged": 1})
    path.write_bytes(content)
    assert ingest(path, lake).records == 0
    assert len(rows(lake, "records")) == 19
    assert latest(lake).popitem()[1]["status"] == "damaged"


def test_more_ranges_than_are_remembered_stay_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (repaired, sink):
        monkeypatch.setattr(module, "MOST_RANGES", 2)
    for numbers, records in (([3, 11], 2), ([3, 8, 11], 0)):
        path, lake = tmp_path / str(records) / "a.active", tmp_path / f"lake {records}"
        content, _, _ = damaged(path, numbers)
        ingest(path, lake)
        path.write_bytes(content)
        assert ingest(path, lake).records == records
        assert latest(lake).popitem()[1]["status"] == ("sound" if records else "damaged")


def test_a_sealed_segment_of_a_log_is_repaired(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    with SegmentLog(folder, segment_bytes=1 << 12, protect="128+8") as log:
        for number in range(300):
            log.write(type="t", value=b"value %06d" % number)
        log.wait_sealed()
    sealed = min(folder.glob("*.sealed"))
    for parity in ("auto", None):
        lake = tmp_path / f"lake {parity}"
        flip(sealed, sealed.read_bytes().index(b"value 000003"))
        first = ingest(folder, lake, parity=parity)
        assert (first.statuses["damaged"], first.records) == (1, 299 if parity is None else 300)
        seglake.repair(sealed, force=True)
        Path(f"{sealed}.damaged").unlink()
        assert told(ingest(folder, lake, parity=parity)) == (0, 300 - first.records, 0, {"sound": 1})
        assert len(rows(lake, "records")) == 300
        assert ingest(folder, lake, parity=parity).run_id is None


def test_the_command_says_how_many_records_sidecars_restored(tmp_path: Path) -> None:
    path = tmp_path / "a.active"
    damaged(path, [])
    seglake.protect(path)
    flip(path, 500)
    shown = here("ingest", str(path), "--to", str(tmp_path / "lake"))
    assert re.search(r"^records +20\n  restored by sidecars +1$", shown.out, re.MULTILINE)
    as_json = here("ingest", str(path), "--to", str(tmp_path / "other"), "--json")
    assert json.loads(as_json.out)["repaired_records"] == 1
