"""What the ingest takes for one segment: files that are renamed, sealed, rotated and copied."""

import os
import shutil
import sys
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID as Uuid

import pyarrow.dataset as ds
import pytest
from samples import SAMPLES
from seglake._ingestion.result import no_files
from segments import DAY, TYPE, Written, flip, write_segment

import seglake
from seglake import ingest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the ingest runs on Linux and macOS")


def rows(lake: Path, table: str) -> list[dict[str, Any]]:
    """The rows of all formats, in the order of their runs, and of one run by format."""
    found: list[dict[str, Any]] = []
    for path in sorted(lake.glob(f"*/{table}/**/*.parquet"), key=lambda path: (path.name, path)):
        found.extend(ds.dataset(str(path)).to_table().to_pylist())
    return found


def values(lake: Path) -> Counter[bytes]:
    return Counter(row["value"] for row in rows(lake, "records"))


def segments(lake: Path) -> dict[str, tuple[str, str, int]]:
    """Name of the file, status and number of records of each segment, in short."""
    return {
        row["segment"].rpartition(":")[2][-20:]: (Path(row["path"]).name, row["status"], row["records"])
        for row in rows(lake, "files")
        if row["segment"].startswith("segment:")
    }


def names(lake: Path) -> dict[str, int]:
    """How many records there are of each segment."""
    return Counter(row["segment"] for row in rows(lake, "records"))


def statuses(**numbers: int) -> dict[Any, int]:
    return {**no_files(), **numbers}


def begin(path: Path, count: int, whole: int = 20) -> bytes:
    """Writes the first records of a segment; returns all of it."""
    source = path.parent / "whole"
    write_segment(source, whole)
    content = source.read_bytes()
    source.unlink()
    path.write_bytes(content[: len(content) // whole * count])
    return content


@pytest.mark.parametrize("name", SAMPLES)
def test_a_renamed_file_is_the_same_segment(tmp_path: Path, name: str) -> None:
    sample, src, lake = SAMPLES[name], tmp_path / "src", tmp_path / "lake"
    sample.write(src / f"a.{sample.extension}")
    options: Any = sample.read_options
    assert ingest(src, lake, **options).records == 20
    (segment,) = names(lake)
    assert segment == seglake.identity(src / f"a.{sample.extension}", format=sample.format, **options)
    (src / "below").mkdir()
    (src / f"a.{sample.extension}").rename(src / "below/b")
    (src / "a.index").unlink(missing_ok=True)
    result = ingest(src, lake, **options)
    assert (result.records, result.statuses) == (0, statuses(sound=1))
    assert rows(lake, "files")[-1]["path"] == str(src / "below/b")
    assert rows(lake, "files")[-1]["records"] == 20
    assert names(lake) == {segment: 20}


def test_files_that_are_rotated_lose_and_double_nothing(tmp_path: Path) -> None:
    src, lake, expected = tmp_path / "src", tmp_path / "lake", Counter[bytes]()
    for turn in range(6):
        if turn == 5:
            (src / "a.3").unlink()  # the oldest goes, and all others move on
        for number in (2, 1, 0):
            if (src / f"a.{number}").exists():
                (src / f"a.{number}").rename(src / f"a.{number + 1}")
        if (src / "a").exists():
            # It grew before it was renamed.
            content = (src / "a").read_bytes()
            write_segment(tmp_path / "again/a", 8, first=DAY.replace(year=2023 + turn), value_bytes=turn + 19)
            assert (tmp_path / "again/a").read_bytes().startswith(content)
            (tmp_path / "again/a").rename(src / "a.0")
            (src / "a").unlink()
        write_segment(src / "a", 5, first=DAY.replace(year=2024 + turn), value_bytes=turn + 20)
        result = ingest(src, lake)
        assert (result.errors, result.exit_status) == ((), 0)
        for path in src.iterdir():
            for record in seglake.open(path, format="active"):
                expected[record.value] = 1
        assert values(lake) == expected
    assert sorted(names(lake).values()) == [5, 8, 8, 8, 8, 8]


@pytest.mark.parametrize("stays", [True, False])
def test_an_active_file_that_is_sealed_to_another_name_is_one_segment(tmp_path: Path, stays: bool) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()
    content = begin(src / "a.active", 12)
    assert ingest(src, lake).records == 12
    (src / "a.active").write_bytes(content)
    seglake.seal(src / "a.active", src / "a.sealed")
    if not stays:
        (src / "a.active").unlink()
    result = ingest(src, lake)
    assert (result.records, result.exit_status) == (8, 0)
    assert result.statuses == (statuses(sound=1, copy=1) if stays else statuses(sound=1))
    assert sorted(segments(lake).values()) == [("a.sealed", "sound", 20)]
    assert len(names(lake)) == 1
    assert set(values(lake).values()) == {1}
    if stays:
        (copy,) = (row for row in rows(lake, "files") if row["status"] == "copy")
        assert (copy["path"], copy["records"], copy["nbytes"]) == (str(src / "a.active"), 0, None)
        assert copy["error"].endswith(f"its records are those of {src / 'a.sealed'}")
    for path in src.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    ingest(src, lake)
    assert ingest(src, lake).files == 0
    assert sum(values(lake).values()) == 20


def test_a_sealed_file_takes_the_place_of_an_active_one_that_was_ingested(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    write_segment(src / "a.active", 20)
    os.utime(src / "a.active", (1_700_000_000, 1_700_000_000))
    assert ingest(src, lake).records == 20
    seglake.seal(src / "a.active", src / "a.sealed")
    assert ingest(src, lake).records == 0
    assert segments(lake).popitem()[1] == ("a.sealed", "sound", 20)
    for _ in range(3):
        assert ingest(src, lake).records == 0
    assert segments(lake).popitem()[1] == ("a.sealed", "sound", 20)
    assert [row["status"] for row in rows(lake, "files")].count("copy") == 1
    # And the other way round: the sealed one is all that there was, and the active one appears again.
    shutil.copy(src / "a.active", tmp_path / "kept")
    (src / "a.active").unlink()
    ingest(src, lake)
    (tmp_path / "kept").rename(src / "z.active")
    assert ingest(src, lake).statuses["copy"] == 1
    assert sum(values(lake).values()) == 20


def seal(path: Path, written: list[Written], trailer: bool) -> None:
    """Writes a sealed segment of these records, in the place of another one."""
    with seglake.create(path, format="sealed", if_exists="overwrite", options={"trailer": trailer}) as writer:
        for each in written:
            writer.write(uuid=each.uuid, type=TYPE, value=each.value)


@pytest.mark.parametrize("trailers", [(True, True), (False, False), (True, False), (False, True)])
@pytest.mark.parametrize("place", ["beside", "instead", "same"])
def test_a_segment_that_is_sealed_anew_with_more_records_is_one(
    tmp_path: Path, trailers: tuple[bool, bool], place: str
) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(src / "a.active", 20)
    content = (src / "a.active").read_bytes()
    (src / "a.active").write_bytes(content[: written[2].end])
    assert ingest(src, lake).records == 3
    (src / "a.active").unlink()
    read = 3
    for turn, count in enumerate((6, 9, 13, 20)):
        path = src / ("a.sealed" if place == "same" else f"{turn}.sealed")
        if place == "instead":
            for old in src.iterdir():
                old.unlink()
        seal(path, written[:count], trailers[turn % 2])
        result = ingest(src, lake)
        assert (result.records, result.exit_status, result.errors) == (count - read, 0, ())
        assert result.statuses == statuses(sound=1, copy=turn if place == "beside" else 0)
        assert values(lake) == Counter(each.value for each in written[:count])
        assert segments(lake).popitem()[1] == (path.name, "sound", count)
        read = count
    assert len(names(lake)) == 1
    assert ingest(src, lake).records == 0


def test_segments_that_are_sealed_with_other_records_lose_nothing(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()
    written = write_segment(tmp_path / "a.active", 20)
    seal(src / "a.sealed", written[:8], trailer=True)
    assert ingest(src, lake).records == 8
    # The same with and without checksums.
    seal(src / "b.sealed", written[:8], trailer=False)
    assert ingest(src, lake).statuses["copy"] == 1
    (src / "b.sealed").unlink()
    # Another record in front of the last one, beside it, and in its place.
    other = [*written[:3], replace(written[3], value=b"other"), *written[4:12]]
    seal(src / "b.sealed", other, trailer=True)
    assert ingest(src, lake).records == 12
    assert sorted(names(lake).values()) == [8, 12]
    (src / "b.sealed").unlink()
    seal(src / "a.sealed", [*written[:3], *written[4:12]], trailer=True)
    result = ingest(src, lake)
    assert (result.records, result.statuses) == (0, statuses(replaced=1))
    # What is damaged in one is taken from another.
    again = tmp_path / "again"
    seal(src / "a.sealed", written[:8], trailer=True)
    place = (src / "a.sealed").read_bytes().index(written[4].value)
    flip(src / "a.sealed", place)
    assert ingest(src, again).records == 7
    seal(src / "b.sealed", written[:12], trailer=True)
    assert ingest(src, again).records == 5
    assert values(again) == Counter(each.value for each in written[:12])


@pytest.mark.parametrize("format", ["active", "sealed"])
@pytest.mark.parametrize("place", ["instead", "same"])
@pytest.mark.parametrize("change", ["value", "type", "uuid", "lengths", "missing"])
def test_a_file_that_is_sealed_with_other_records_in_the_place_of_another_is_told_of(
    tmp_path: Path, format: str, place: str, change: str
) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(tmp_path / "a.active", 20)
    content = (tmp_path / "a.active").read_bytes()
    src.mkdir()
    for count in (4, 9):  # what was read comes from two runs
        if format == "active":
            (src / "a").write_bytes(content[: written[count - 1].end])
        else:
            seal(src / "a", written[:count], trailer=False)
        assert ingest(src, lake).records == (4 if count == 4 else 5)
    if place == "instead":
        (src / "a").unlink()
    others = {
        "value": replace(written[5], value=written[5].value.replace(b"0", b"1")),
        "uuid": replace(written[5], uuid=Uuid(int=written[5].uuid.int + 1)),
    }
    own = [*written[:5], *([others[change]] if change in others else []), *written[6:14]]
    if change == "lengths":
        first, second = written[5].value, written[6].value
        own.insert(5, replace(written[5], value=first + second[:1]))
        own[6] = replace(written[6], value=second[1:])
    if change == "missing":
        own.insert(6, replace(written[6], uuid=Uuid(int=written[6].uuid.int + 1)))  # as many
    with seglake.create(src / ("a" if place == "same" else "b"), format="sealed", if_exists="overwrite") as writer:
        for number, each in enumerate(own if change != "type" else written[:14]):
            writer.write(uuid=each.uuid, type="x" if (change, number) == ("type", 5) else TYPE, value=each.value)
    for _ in range(2):
        result = ingest(src, lake)
        assert (result.records, result.statuses, result.exit_status) == (0, statuses(replaced=1), 1)
        assert values(lake) == Counter(each.value for each in written[:9])
    # The right one goes on.
    seal(src / ("a" if place == "same" else "b"), written, trailer=True)
    assert ingest(src, lake).records == 11
    assert values(lake) == Counter(each.value for each in written)
    assert rows(lake, "files")[-1]["nbytes"] == rows(lake, "files")[-1]["size"]


def test_damage_of_a_file_that_was_sealed_since_is_told_where_it_is(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(src / "a.active", 12)
    content = (src / "a.active").read_bytes()
    (src / "a.active").write_bytes(content[: written[8].end])
    assert ingest(src, lake).records == 9
    (src / "a.active").unlink()
    seal(src / "b.sealed", written, trailer=True)
    sound = (src / "b.sealed").read_bytes()
    place = sound.index(written[4].value)
    flip(src / "b.sealed", place)
    result = ingest(src, lake)
    assert (result.records, result.statuses) == (3, statuses(damaged=1))
    (row,) = rows(lake, "damage")
    assert row["start"] <= place < row["end"]
    assert rows(lake, "files")[-1]["records"] == 12
    (src / "b.sealed").write_bytes(sound)
    assert (ingest(src, lake).records, ingest(src, lake).exit_status) == (0, 0)
    assert values(lake) == Counter(each.value for each in written)


@pytest.mark.parametrize("trailer", [True, False])
def test_a_sealed_file_that_was_ingested_while_it_was_copied_goes_on(tmp_path: Path, trailer: bool) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()
    written = write_segment(tmp_path / "a.active", 20)
    seal(tmp_path / "whole", written, trailer)
    content = (tmp_path / "whole").read_bytes()
    for part in range(1, 12):
        (src / "a.sealed").write_bytes(content[: len(content) * part // 11])
        assert ingest(src, lake, format="sealed").statuses["replaced"] == 0
    assert values(lake) == Counter(each.value for each in written)
    assert {row["kind"] for row in rows(lake, "damage")} <= {"torn_tail", "corrupt"}
    assert ingest(src, lake, format="sealed").records == 0


@pytest.mark.parametrize("is_damaged", [True, False])
def test_damage_of_a_segment_that_was_sealed_after_its_tail_was_final_is_told(tmp_path: Path, is_damaged: bool) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(src / "a.active", 8)
    content = (src / "a.active").read_bytes()
    # A record of which much was written, and that was taken back.
    torn = content[written[3].start :][:16] + b"\x01t" + (20_000).to_bytes(4, "big") + bytes(b"x" * 10_000)
    (src / "a.active").write_bytes(content[: written[2].end] + torn)
    assert ingest(src, lake, final=True).records == 3
    (src / "a.active").unlink()
    seal(src / "a.sealed", written, trailer=True)
    if is_damaged:
        flip(src / "a.sealed", (src / "a.sealed").read_bytes().index(written[5].value))
    assert ingest(src, lake).records == 5 - is_damaged
    found = [(Path(row["path"]).name, row["kind"]) for row in rows(lake, "damage")]
    assert found == [("a.active", "torn_tail"), ("a.sealed", "corrupt")][: 1 + is_damaged]
    assert rows(lake, "files")[-1]["status"] == ("damaged" if is_damaged else "sound")


def copies(src: Path) -> Counter[bytes]:
    """Files that begin with the same record: parts of one, and one that goes on in another way from the tenth on."""
    src.mkdir(parents=True)
    content = begin(src / "m", 15)
    (src / "b").write_bytes(content)
    (src / "q").write_bytes(content)
    shutil.copy(src / "m", src / "z")
    begin(src / "a", 4)
    write_segment(src / "other/whole", 20, value_bytes=30)
    other = (src / "other/whole").read_bytes()
    shutil.rmtree(src / "other")
    (src / "fork").write_bytes(content[: len(content) // 2] + other[len(other) // 2 :])
    expected = Counter(record.value for record in seglake.open(src / "b", format="active"))
    return expected + Counter(record.value for record in seglake.open(src / "fork", format="active"))


@pytest.mark.parametrize("is_torn", [False, True])
def test_a_file_that_had_no_record_and_its_copy_are_one_segment(tmp_path: Path, is_torn: bool) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()
    content = begin(src / "a.active", 6)
    one = len(content) // 20
    (src / "a.active").write_bytes(content[: one // 2 * is_torn])
    ingest(src, lake, final=is_torn, format="active")
    # Its first record comes at the same time as a copy of it.
    for path in (src / "a.active", src / "b.active"):
        path.write_bytes(content[: 3 * one])
    assert ingest(src, lake).statuses["copy"] == 1
    (src / "a.active").rename(src / "c.active")
    (src / "c.active").write_bytes(content[: 6 * one])
    ingest(src, lake)
    assert values(lake).total() == len(values(lake)) == 6
    assert len(names(lake)) == 1
    assert len(rows(lake, "damage")) == is_torn


@pytest.mark.parametrize("is_torn", [False, True])
def test_a_file_that_had_no_record_may_become_a_copy_of_another(tmp_path: Path, is_torn: bool) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()
    content = begin(src / "a.active", 6)
    one = len(content) // 20
    (src / "a.active").write_bytes(content[: one // 2])
    ingest(src, lake, final=is_torn, format="active")
    (src / "b.active").write_bytes(content[: 3 * one])
    ingest(src, lake)
    for count in (1, 2, 6):  # it is shorter, and longer in the end
        (src / "a.active").write_bytes(content[: count * one])
        assert ingest(src, lake).statuses == statuses(sound=1, copy=1)
    assert values(lake).total() == len(values(lake)) == 6
    assert len(names(lake)) == 1
    assert len(rows(lake, "damage")) == is_torn


def test_the_sealed_file_that_has_all_records_takes_the_place_of_an_active_one(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(src / "a.active", 15)
    assert ingest(src, lake).records == 15
    (src / "a.active").unlink()
    seal(src / "b.sealed", written, trailer=False)
    seal(src / "c.sealed", written[:14], trailer=True)
    assert (src / "b.sealed").stat().st_size < (src / "c.sealed").stat().st_size
    for _ in range(2):
        assert ingest(src, lake).statuses == statuses(sound=1, copy=1)
    assert values(lake) == Counter(each.value for each in written)
    assert segments(lake).popitem()[1] == ("b.sealed", "sound", 15)


def test_a_file_and_its_copy_may_change_places(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()
    content = begin(src / "a.active", 5)
    shutil.copy(src / "a.active", src / "b.active")
    assert ingest(src, lake).statuses == statuses(sound=1, copy=1)
    begin(src / "a.active", 8)
    ingest(src, lake)
    # As when a file is kept under another name, and an older copy of it is restored.
    (src / "a.active").rename(src / "c")
    (src / "b.active").rename(src / "a.active")
    (src / "c").rename(src / "b.active")
    for count in (9, 11):
        (src / "b.active").write_bytes(content[: len(content) // 20 * count])
        assert ingest(src, lake).statuses == statuses(sound=1, copy=1)
    assert values(lake).total() == len(values(lake)) == 11
    assert len(names(lake)) == 1


@pytest.mark.parametrize("is_damaged", [False, True])
def test_an_active_file_that_goes_on_after_it_was_sealed_is_one_segment(tmp_path: Path, is_damaged: bool) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(src / "a.active", 9)
    content = (src / "a.active").read_bytes()
    (src / "a.active").write_bytes(content[: written[3].end])
    ingest(src, lake)
    seglake.seal(src / "a.active", src / "b.sealed")
    assert ingest(src, lake).statuses["copy"] == 1
    if is_damaged:
        content = bytearray(content)
        content[written[4].end - 9] ^= 1
    for begun, end in ((3, 6), (6, 8)):
        (src / "a.active").write_bytes(content[: written[end].end])
        result = ingest(src, lake)
        row = rows(lake, "files")[-1 if end == 8 else -2]
        assert (row["start"], row["end"]) == (written[begun].end, written[end].end)
        assert (result.statuses["sound"] + result.statuses["damaged"], result.statuses["replaced"]) == (1, 0)
    assert values(lake) == Counter(each.value for each in written if not (is_damaged and each is written[4]))
    assert len(rows(lake, "damage")) == is_damaged
    assert {row["segment"] for row in rows(lake, "records")} == {rows(lake, "files")[0]["segment"]}
    # All of it is sealed anew.
    if not is_damaged:
        seglake.seal(src / "a.active", src / "c.sealed")
        assert ingest(src, lake).records == 0
        assert len(rows(lake, "records")) == 9


def test_of_copies_in_one_run_each_record_comes_once(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    expected = copies(src)
    result = ingest(src, lake)
    assert (result.statuses, result.exit_status, result.records) == (statuses(sound=2, copy=4), 0, 40)
    assert values(lake) == expected
    assert sorted(number for number in names(lake).values()) == [20, 20]
    first, second = sorted(names(lake), key=len)
    assert second == first + "#2"
    for _ in range(2):
        assert ingest(src, lake).records == 0
    assert values(lake) == expected


def test_a_copy_with_more_of_an_unfinished_record_is_one_segment(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()
    content = begin(src / "a.active", 14)
    end = len(content) // 20 * 14
    assert ingest(src, lake).records == 14
    (src / "c.active").write_bytes(content[: end + 30])
    assert ingest(src, lake).records == 0
    (src / "c.active").write_bytes(content)
    assert ingest(src, lake).records == 6
    assert set(values(lake).values()) == {1}


def test_a_file_that_was_cut_off_since_proves_no_copy(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()
    content = begin(src / "a.active", 14)
    record = len(content) // 20
    assert ingest(src, lake).records == 14
    (src / "a.active").write_bytes(content[:record])
    write_segment(src / "b.active", 14)
    (src / "b.active").write_bytes(content[:record] + (src / "b.active").read_bytes()[record:])
    ingest(src, lake)
    assert sum(value.startswith(b"b-") for value in values(lake)) == 13


def test_of_copies_in_many_runs_each_record_comes_once(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    expected = copies(tmp_path / "all")
    src.mkdir()
    for name in ("m", "a", "fork", "z", "b", "q"):
        shutil.copy(tmp_path / "all" / name, src / name)
        assert ingest(src, lake).exit_status == 0, name
    assert values(lake) == expected
    assert sorted(segments(lake).values()) == [("b", "sound", 20), ("fork", "sound", 20)]
    # Each is known again where it is moved to.
    (tmp_path / "src").rename(tmp_path / "moved")
    assert ingest(tmp_path / "moved", lake).exit_status == 0
    assert values(lake) == expected


def test_a_copy_without_the_damage_is_not_lost(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(src / "a", 20)
    shutil.copy(src / "a", tmp_path / "sound")
    flip(src / "a", written[9].end - 9)
    assert ingest(src, lake).records == 19
    shutil.copy(tmp_path / "sound", src / "sound")
    assert ingest(src, lake).statuses["sound"] == 1
    assert set(values(lake)) == {each.value for each in written}
    assert sorted(names(lake).values()) == [20]


@pytest.mark.filterwarnings("error")
def test_damage_after_a_tail_that_was_final_is_told(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    written = write_segment(src / "b", 20)
    content = (src / "b").read_bytes()
    # In a preallocated file the last of 10 records is damaged. The other one goes on, and is damaged after it.
    cut = bytearray(content[: written[9].end])
    cut[-9] ^= 1
    (src / "a").write_bytes(cut + bytes(len(content)))
    flip(src / "b", written[12].end - 9)
    assert ingest(src, lake, final=True).records == 19
    # That of the first one is listed for the segment, and for the copy that it is in the end.
    found = sorted({(Path(row["path"]).name, row["start"], row["end"]) for row in rows(lake, "damage")})
    assert found == [("a", written[9].start, written[9].end), ("b", written[12].start, written[12].end)]
    # Nor does junk after the last record hide what another file has there.
    junk, other = tmp_path / "junk", tmp_path / "other"
    junk.mkdir()
    (junk / "a").write_bytes(content[: written[9].end] + b"x" * 2 * len(content))
    shutil.copy(src / "b", junk / "b")
    assert ingest(junk, other, final=True).records == 19
    found = sorted({(Path(row["path"]).name, row["start"], row["end"]) for row in rows(other, "damage")})
    assert found[-1] == ("b", written[12].start, written[12].end)
    assert [name for name, _, _ in found] == ["a", "b"]


def test_copies_in_folders_that_are_ingested_in_turn_come_once(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    content = begin(tmp_path / "one/a", 20)
    begin(tmp_path / "two/a", 15)
    for _ in range(2):
        for folder in ("one", "two"):
            assert ingest(tmp_path / folder, lake).exit_status == 0
    assert sorted(segments(lake).values()) == [("a", "sound", 20)]
    assert rows(lake, "files")[0]["path"] == str(tmp_path / "one/a")
    seglake.seal(tmp_path / "two/a", tmp_path / "two/s")
    (tmp_path / "two/a").unlink()
    assert ingest(tmp_path / "two", lake, format="sealed").statuses["copy"] == 1
    (tmp_path / "two/s").unlink()
    # It is compared, although it goes on where the other one ended.
    changed = bytearray(content)
    changed[len(content) // 2 - 9] ^= 1
    (tmp_path / "two/b").write_bytes(changed)
    assert ingest(tmp_path / "two", lake).statuses["damaged"] == 1
    assert rows(lake, "files")[-1]["segment"] == str(tmp_path / "two/b")


@pytest.mark.parametrize("damaged", [0, 2])
def test_an_oplog_that_is_final_after_its_damage_and_copies_of_it_come_once(tmp_path: Path, damaged: int) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()
    with seglake.create(tmp_path / "whole", format="oplog") as writer:
        for number in range(8):
            value = f"value {number}".encode()
            writer.write(version=1, checkpointer=1, checkpoint=None, clock=[], abi=0, batch=1, value=value)
    content = bytearray((tmp_path / "whole").read_bytes())
    one = len(content) // 8
    content[damaged * one + 3] ^= 0xFF

    def put(name: str, count: int) -> None:
        (src / name).write_bytes(content[: count * one])
        os.utime(src / name, (1_700_000_000, 1_700_000_000))

    def run() -> tuple[int, int, list[int]]:
        result = ingest(src, lake, format="oplog", dialect="draft", final=True)
        assert result.statuses["replaced"] == 0
        return result.records, result.statuses["copy"], list(names(lake).values())

    put("a", 6)
    assert run() == (5, 0, [5])
    put("b", 6)
    assert run() == (0, 1, [5])
    (src / "a").rename(src / "c")
    assert run() == (0, 0, [5])
    put("d", 8)
    assert run() == (2, 0, [7])
    assert set(values(lake).values()) == {1}
    assert len(rows(lake, "damage")) == 1


def test_what_cannot_be_compared_is_told_of(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()
    content = begin(src / "a", 15)
    ingest(src, lake)
    (src / "a").unlink()
    (src / "b").write_bytes(content[: len(content) // 2])
    result = ingest(src, lake)
    assert (result.statuses, result.exit_status) == (statuses(replaced=1), 1)
    (src / "b").write_bytes(content)
    assert ingest(src, lake).records == 5
    assert set(values(lake).values()) == {1}


def test_a_file_without_a_record_is_known_by_its_path(tmp_path: Path) -> None:
    path, lake = tmp_path / "a.active", tmp_path / "lake"
    content = begin(path, 20)
    path.write_bytes(content[:10])
    ingest(path, lake, format="active")
    assert rows(lake, "files")[-1]["segment"] == str(path)
    path.write_bytes(content)
    assert ingest(path, lake, format="active").records == 20
    assert rows(lake, "files")[-1]["segment"] == seglake.identity(path)
    assert names(lake) == {seglake.identity(path): 20}
    assert ingest(path, lake, format="active").records == 0


@pytest.mark.parametrize("runs_before", [False, True])
@pytest.mark.parametrize("runs_empty", [False, True])
def test_a_file_that_is_copied_and_begun_anew_loses_nothing(
    tmp_path: Path, runs_before: bool, runs_empty: bool
) -> None:
    source, lake = tmp_path / "source", tmp_path / "lake"
    source.mkdir()
    content: dict[str, bytes] = {}
    for days, name in enumerate(("first", "second", "other")):
        write_segment(tmp_path / name, 3, first=DAY + timedelta(days=days))
        content[name] = (tmp_path / name).read_bytes()

    def put(moment: int, **files: bytes) -> None:
        for name, own in files.items():
            (source / name).write_bytes(own)
            os.utime(source / name, (moment, moment))

    put(1_700_000_000, x=content["first"], y=content["other"], y_copy=content["other"])
    assert ingest(source, lake).records == 6
    put(1_700_000_001, x_copy=content["first"])  # what logrotate's copytruncate does
    if runs_before:
        assert ingest(source, lake).statuses == statuses(copy=1)
    if runs_empty:
        put(1_700_000_002, x=b"")
        ingest(source, lake)
    put(1_700_000_003, x=content["second"])
    assert (ingest(source, lake).records, ingest(source, lake).records) == (3, 0)
    assert sorted(names(lake).values()) == [3, 3, 3]
    # The other copy has nothing to do with it.
    assert [row["status"] for row in rows(lake, "files") if row["path"].endswith("y_copy")] == ["copy"]


def test_a_part_of_a_segment_stays_replaced_when_another_is_at_its_path(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()
    content = begin(src / "app.active", 10)
    assert ingest(src, lake).records == 10
    (src / "app.active.1").write_bytes(content[: len(content) // 20 * 8])
    (src / "app.active").unlink()
    write_segment(src / "app.active", 3, first=DAY + timedelta(days=365))
    for number, path in enumerate(sorted(src.iterdir())):
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    for more in (3, 0, 0):
        result = ingest(src, lake)
        assert (result.records, result.statuses["replaced"]) == (more, 1)
    assert set(values(lake).values()) == {1}


def test_a_sealed_file_that_was_moved_is_known_although_its_file_was_replaced_before(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    src.mkdir()
    written = write_segment(tmp_path / "a.active", 16)
    seal(src / "a.sealed", written, trailer=True)
    assert ingest(src, lake).records == 16
    seal(src / "a.sealed", written, trailer=False)
    assert ingest(src, lake).statuses == statuses(replaced=1)  # it is smaller than what was read
    (src / "a.sealed").rename(src / "b.sealed")
    seal(src / "a.sealed", written[:3], trailer=False)
    for _ in range(2):
        assert ingest(src, lake).records == 0
    assert values(lake) == Counter(each.value for each in written)
