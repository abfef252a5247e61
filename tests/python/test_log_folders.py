"""The folder of a log read as one: by `scan`, `export` and the command line, also beside its writer."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from cli_process import here as run

import seglake
from seglake import SegmentLog

KEY = bytes(range(32))


def values(scan: seglake.Scan) -> list[int]:
    return [int(value) for value in scan.to_table()["value"].to_pylist()]


def write(log: SegmentLog, first: int, end: int) -> None:
    log.write_batch([("order.paid" if number % 2 else "order.created", str(number)) for number in range(first, end)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log of two sealed segments and an active one."""
    path = tmp_path / "log"
    with SegmentLog(path) as log:
        for first in (0, 10, 20):
            write(log, first, first + 10)
            if first < 20:
                log.roll()
        log.wait_sealed()
    return path


def segments(path: Path, extension: str = "*") -> list[Path]:
    return sorted(path.glob(f"0*.{extension}"))


def unsynced(path: Path, count: int = 5) -> Path:
    """Adds sound records to the newest segment, after the synced mark, as a writer does that dies before it says so."""
    [newest] = segments(path, "active")
    mark = (path / "_mark").read_bytes()
    with SegmentLog(path) as log:
        write(log, 1000, 1000 + count)
    (path / "_mark").write_bytes(mark)
    return newest


def test_a_folder_of_a_log_is_its_records_each_once(path: Path) -> None:
    scan = seglake.scan(path)
    assert values(scan) == list(range(30))
    assert scan.count_rows() == 30
    assert scan.head(25)["value"].to_pylist() == [str(number).encode() for number in range(25)]
    assert [Path(file.path) for file in scan.files()] == segments(path)
    assert [Path(file.path).suffix for file in scan.files()] == [".sealed", ".sealed", ".active"]
    paid = seglake.scan(path, filters=[("type", "==", "order.paid")], include_file_paths="file")
    assert paid.count_rows() == 15
    assert set(paid.to_table()["file"].to_pylist()) == set(map(str, segments(path)))
    assert list(scan.find_damage()) == []
    pl = pytest.importorskip("polars")
    assert scan.to_polars().filter(pl.col("type") == "order.paid").select("value").collect().height == 15


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("prune", [False, True])
def test_threads_and_pruning_change_nothing(path: Path, threads: int, prune: bool) -> None:
    last = seglake.scan(path).to_table()["uuid"][19].as_py()
    scan = seglake.scan(path, threads=threads, prune=prune, filters=[("uuid", "<=", last)])
    assert values(scan) == list(range(20))


@pytest.mark.filterwarnings("ignore::seglake.exceptions.UnreadWarning")
def test_what_is_not_synced_yet_is_not_read_and_is_no_damage(path: Path) -> None:
    newest = unsynced(path)
    *_, last = seglake.open(newest)
    with newest.open("r+b") as file:  # and a torn tail after that
        file.truncate(last.position + 20)
    scan = seglake.scan(path)
    assert values(scan) == list(range(30))
    assert list(scan.find_damage()) == []
    assert values(seglake.scan(path, on_damage="skip")) == list(range(30))
    done = run("verify", path)
    assert (done.status, "damaged" in done.out) == (1, False)  # as no writer has it open
    assert "a log of 3 segments, synced up to offset" in done.out
    assert run("verify", newest).status == 1


def test_of_a_damaged_log_the_causes_are_shown_and_the_sound_are_named(path: Path) -> None:
    first, *sound = segments(path)
    content = bytearray(first.read_bytes())
    content[content.index(b"order.paid") + 3] ^= 4
    first.write_bytes(content)
    done = run("verify", path)
    assert done.status == 1
    assert "single flipped bit (proven)" in done.out and "  next      cat " in done.out
    assert [line for line in done.out.splitlines() if line.startswith("ok")] == [f"ok  {own}" for own in sound]
    assert "checksum_mismatch" not in done.out  # the table of ranges, as of the segment by itself
    assert "checksum_mismatch" in run("verify", first).out


@pytest.mark.filterwarnings("ignore::seglake.exceptions.UnreadWarning")
def test_a_segment_that_is_sealed_after_the_listing_gives_what_was_listed(path: Path) -> None:
    unsynced(path)
    scan = seglake.scan(path)
    again = [pickle.loads(pickle.dumps(file)) for file in scan._files.found]  # pyright: ignore
    assert [file.segment for file in again] == [file.segment for file in scan._files.found]  # pyright: ignore
    with SegmentLog(path) as log:
        write(log, 30, 40)
        log.roll()
        log.wait_sealed()
    assert not segments(path, "active")
    assert values(scan) == list(range(30))
    assert scan.count_rows() == 30
    assert values(seglake.scan(path)) == [*range(30), *range(1000, 1005), *range(30, 40)]
    # Also by the index, with more conditions, and counted.
    assert scan.filter([("type", "==", "order.paid")]).count_rows() == 15
    with SegmentLog(path) as log:
        log.retain(bytes=0)
        write(log, 50, 51)
        log.roll()
        log.wait_sealed()
        log.retain(bytes=0)
    with pytest.raises(seglake.exceptions.SegmentGoneError, match="segment 1 was removed"):
        scan.count_rows()


def test_of_two_files_of_one_segment_one_is_read(path: Path) -> None:
    sealed = segments(path, "sealed")[1]
    with seglake.open(sealed) as reader, seglake.create(sealed.with_suffix(".active"), format="active") as twin:
        for record in reader:
            twin.write(record)
    assert values(seglake.scan(path)) == list(range(30))
    assert len(seglake.scan(path).files()) == 3
    assert "4 segments" not in run("verify", path).out
    # Of the newest it is the active file: the sealed one may lack records.
    newest = segments(path, "active")[-1]
    with seglake.open(newest) as reader, seglake.create(newest.with_suffix(".sealed"), format="sealed") as twin:
        for record in list(reader)[:4]:
            twin.write(record)
    assert values(seglake.scan(path)) == list(range(30))


def damaged(path: Path, at: int, what: bytes) -> Path:
    [newest] = segments(path, "active")
    with newest.open("r+b") as file:
        file.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
        file.write(what)
    return newest


def test_damage_in_front_of_the_mark_is_damage(path: Path) -> None:
    damaged(path, 30, b"\xff")
    with pytest.raises(seglake.DamageError):
        seglake.scan(path).count_rows()
    skipped = seglake.scan(path, on_damage="skip")
    with pytest.warns(seglake.exceptions.DamageWarning):
        assert values(skipped) == [*range(20), *range(21, 30)]
    assert len(list(skipped.find_damage())) == 1
    assert run("verify", path).status == 1


@pytest.mark.parametrize("how", ["cut", "zeros", "cut between records", "gone to zero"])
def test_what_the_mark_says_and_the_file_lacks_is_damage(path: Path, how: str) -> None:
    [newest] = segments(path, "active")
    synced = SegmentLog(path, readonly=True).synced
    assert synced is not None
    size = synced.byte_offset
    record = next(iter(seglake.open(newest)))
    lengths = [one.position for one in seglake.open(newest)]
    assert record is not None
    with newest.open("r+b") as file:
        if how == "cut":
            file.truncate(lengths[-2] + 5)
        elif how == "cut between records":
            file.truncate(lengths[-2])
        elif how == "zeros":
            file.seek(lengths[-2] + 5)
            file.write(bytes(size - lengths[-2] - 5))
        else:
            file.truncate(0)
    with pytest.raises(seglake.DamageError) as raised:
        seglake.scan(path).count_rows()
    with pytest.raises(seglake.DamageError) as read:
        list(SegmentLog(path, readonly=True))
    assert str(raised.value) == str(read.value)
    # A record that is there and wrong keeps its own cause.
    cause = "checksum_mismatch" if how == "zeros" else "length_out_of_bounds"
    assert raised.value.cause == cause
    if how != "zeros":
        assert raised.value.expected == f"records up to offset {size}, as the synced mark says"
        assert raised.value.actual == f"the end of the file at offset {newest.stat().st_size}"
    skipped = seglake.scan(path, on_damage="skip")
    with pytest.warns(seglake.exceptions.DamageWarning):
        kept = values(skipped)
    assert kept == list(range(20 if how == "gone to zero" else 28))
    [lost] = skipped.find_damage()
    assert (lost.start, lost.end, lost.kind) == (raised.value.byte_offset, size, "corrupt")
    assert lost.cause == cause
    done = run("verify", "--json", path)
    assert done.status == 1
    report = [json.loads(line) for line in done.out.splitlines()][-1]
    assert (report["nbytes"], report["ok"], report["damage"][0]["end"]) == (size, False, size)
    assert report["damage"][0]["cause"] == cause
    assert sum(total["nbytes"] for total in report["totals"]) == size
    alike(path, 1)
    if how != "zeros":
        said = f"the file ends at {newest.stat().st_size:,}, and its log says that it was on the disk up to {size:,}"
        assert said.replace(",", "") in " ".join(run("verify", path).out.replace(",", "").split())


def alike(path: Path, status: int) -> list[dict[str, Any]]:
    """What `verify --json` says of a log, which is what `log verify` says."""
    done, of_log = run("verify", "--json", path), run("log", "verify", "--json", path)
    assert (done.status, done.out) == (of_log.status, of_log.out)
    assert done.status == status
    assert run("log", "verify", path).out == run("verify", path).out
    return [json.loads(line) for line in done.out.splitlines()]


def test_a_segment_says_which_it_is(path: Path) -> None:
    reports = alike(path, 0)
    infos = [json.loads(line) for line in run("info", "--json", path).out.splitlines()]
    expected = [
        {"path": str(path), "sequence": sequence, "kind": kind, "is_frozen": False, "unread": None}
        for sequence, kind in ((1, "sealed"), (2, "sealed"), (3, "active"))
    ]
    assert [line["log"] for line in reports] == [line["log"] for line in infos] == expected
    [newest] = segments(path, "active")
    assert json.loads(run("verify", "--json", newest).out)["log"] == expected[2]
    assert json.loads(run("info", "--json", newest).out)["log"] is None


def test_an_empty_log_is_sound(tmp_path: Path) -> None:
    path = tmp_path / "log"
    SegmentLog(path).close()
    assert alike(path, 0) == []
    assert "a log without segments" in run("verify", path).out


def frozen(path: Path) -> None:
    """Records after the mark with damage between them, then opened for writing: the segment is frozen."""
    newest = unsynced(path)
    positions = [record.position for record in seglake.open(newest)]
    damaged(path, positions[-3] + 30, b"\xff\xff")
    with SegmentLog(path) as log:
        assert [step.kind for step in log.recovered] == ["frozen"]
        write(log, 50, 52)


def test_a_frozen_segment_gives_what_is_valid_and_is_read_up_to_where_it_was_synced(path: Path) -> None:
    frozen(path)
    scan = seglake.scan(path)
    expected = [*range(30), 1000, 1001, 1003, 1004, 50, 51]
    assert values(scan) == expected == [int(record.value) for record in SegmentLog(path, readonly=True)]
    assert list(scan.find_damage()) == []
    # What is damaged after that is told, but is no damage.
    report = alike(path, 0)[-2]
    assert report["log"]["is_frozen"]
    [unproven] = [total for total in report["totals"] if total["kind"] == "unproven"]
    [newest, _] = segments(path, "active")
    with pytest.warns(seglake.exceptions.DamageWarning, match="skipped"):
        positions = [record.position for record in seglake.open(newest, on_damage="skip")]
    assert (unproven["cause"], unproven["ranges"]) == (None, 1)
    assert unproven["nbytes"] == positions[-2] - positions[-3] - (positions[-1] - positions[-2])
    assert f"{unproven['nbytes']} bytes that no reader was promised" in run("verify", path).out
    # In front of that it is damage.
    with segments(path, "active")[0].open("r+b") as file:
        file.seek(30)
        file.write(b"\xff")
    with pytest.raises(seglake.DamageError):
        scan.count_rows()
    assert len(list(scan.find_damage())) == 1
    alike(path, 1)


@pytest.mark.filterwarnings("ignore::seglake.exceptions.UnreadWarning")
def test_a_lost_mark_proves_nothing_of_the_newest_segment(path: Path) -> None:
    (path / "_mark").unlink()
    assert values(seglake.scan(path)) == list(range(20))
    assert [file.nbytes for file in seglake.scan(path).files()][-1] == 0
    for file in segments(path, "sealed"):
        file.unlink()
    assert seglake.scan(path).to_table().num_rows == 0
    # Recovery removes a file without a record: nothing of it was listed.
    scan = seglake.scan(path)
    segments(path)[0].unlink()
    assert scan.count_rows() == 0


def test_missing_segments_are_named(path: Path) -> None:
    segments(path)[1].unlink()
    with pytest.raises(seglake.FormatError, match="expected segment 2"):
        seglake.scan(path)
    done = run("verify", path)
    assert (done.status, "expected segment 2" in done.err) == (2, True)
    assert run("log", "verify", path).status == 2
    # The files by themselves are read as before.
    assert values(seglake.scan(str(path / "*.sealed"))) == list(range(10))


def test_a_missing_newest_segment_is_named(path: Path) -> None:
    segments(path)[2].unlink()
    with pytest.raises(seglake.FormatError, match="the newest segments are missing"):
        seglake.scan(path)


def test_the_key_is_that_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with SegmentLog(path, key=KEY) as log:
        write(log, 0, 10)
        log.roll()
        log.wait_sealed()
        write(log, 10, 20)
    assert values(seglake.scan(path, key=KEY)) == list(range(20))
    assert values(seglake.scan(path, key=[bytes(32), KEY])) == list(range(20))
    for wrong in (None, bytes(32), [bytes(32), bytes(range(1, 33))]):
        with pytest.raises(seglake.WrongKeyError):
            seglake.scan(path, key=wrong)
    key = tmp_path / "key"
    key.write_text(KEY.hex())
    assert run("verify", "--key-file", key, path).status == 0
    assert run("verify", path).status == 2
    assert run("info", "--key-file", key, path).status == 0


@pytest.mark.filterwarnings("ignore::seglake.exceptions.UnreadWarning")
def test_glob_and_format_choose_among_the_segments(path: Path) -> None:
    unsynced(path)
    assert values(seglake.scan(path, glob="*.sealed")) == list(range(20))
    assert values(seglake.scan(path, glob="*.active")) == list(range(20, 30))
    assert values(seglake.scan(path, glob="*.sealed", format="sealed")) == list(range(20))
    with pytest.raises(seglake.FormatError, match="is active by now, not sealed"):
        seglake.scan(path, format="sealed").count_rows()


def test_segments_are_looked_up_again_only_for_their_times(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seglake.stores import FileFilter, FileListing, local

    looked: list[str] = []
    modified = local._modified  # pyright: ignore[reportPrivateUsage]

    def looking(path: str) -> float:
        looked.append(path)
        return modified(path)

    monkeypatch.setattr(local, "_modified", looking)
    paths = list(map(str, segments(path)))
    for chosen, expected in ((FileFilter(), []), (FileFilter(modified_after=1.0), paths)):
        found = [file.path for file in local.find_local(str(path), chosen, FileListing())]
        assert (found, sorted(looked)) == (paths, expected)
    assert list(local.find_local(str(path), FileFilter(modified_before=1.0), FileListing())) == []


@pytest.mark.filterwarnings("ignore::seglake.exceptions.UnreadWarning")
def test_logs_and_files_below_a_folder_are_read_together(path: Path, tmp_path: Path) -> None:
    shutil.copytree(path, tmp_path / "other")
    with seglake.create(tmp_path / "plain.active", format="active") as segment:
        segment.write(type="a", value=b"77")
    scan = seglake.scan(tmp_path)
    assert values(scan) == [*range(30), *range(30), 77]
    # A segment that is named by itself is the file as it is, unless its log is read as well.
    newest = unsynced(path)
    assert values(seglake.scan(newest)) == [*range(20, 30), *range(1000, 1005)]
    assert values(seglake.scan([newest, path])) == list(range(30))
    (path / "note.txt").write_text("x")
    with pytest.raises(seglake.FormatError, match=r"note\.txt"):
        seglake.scan(path).count_rows()
    (path / "note.txt").unlink()
    assert (seglake.scan(path).format, seglake.scan(tmp_path).format) == ("sealed", "active")
    with seglake.create(tmp_path / "one.sealed", format="sealed") as segment:
        segment.write(type="a", value=b"78")
    for sources in ([tmp_path / "plain.active", tmp_path / "one.sealed"], [tmp_path]):
        assert {77, 78} <= set(values(seglake.scan(sources)))
    assert seglake.scan(sources, options={"batch_bytes": 1000}).count_rows() == seglake.scan(sources).count_rows()
    # What is sealed has the same records as its source.
    seglake.seal(tmp_path / "plain.active", tmp_path / "plain-1.active.sealed")
    with pytest.raises(seglake.FormatError, match="none begins as another one"):
        seglake.scan(tmp_path).count_rows()
    (tmp_path / "plain-1.active.sealed").unlink()
    with seglake.create(tmp_path / "one.tfrecord") as segment:
        segment.write(value=b"79")
    with pytest.raises(seglake.FormatError, match="files are read together if they are of one format"):
        seglake.scan(tmp_path).count_rows()


def test_the_command_line_takes_a_log(path: Path, tmp_path: Path) -> None:
    unsynced(path)
    done = run("cat", path)
    assert len(done.out.splitlines()) == 30
    done = run("info", "--json", path)
    assert [json.loads(line)["format"] for line in done.out.splitlines()] == ["sealed", "sealed", "active"]
    assert "synced up to offset" in run("info", path).out
    done = run("info", "--count", path)
    assert "10 records" in done.out
    out = tmp_path / "out.parquet"
    done = run("export", path, out)
    assert "5 records are not read" in done.err
    assert pq.read_table(out).num_rows == 30
    summary = run("verify", path).out
    assert "30 records" in summary
    with SegmentLog(path):
        done = run("verify", "--quiet", path)
        assert (done.status, done.out, done.err) == (0, "", "")


def test_an_empty_log_has_no_files(tmp_path: Path) -> None:
    SegmentLog(tmp_path / "log").close()
    with pytest.raises(FileNotFoundError, match="no files to read"):
        seglake.scan(tmp_path / "log")


def test_elsewhere_only_sealed_segments_are_read(path: Path) -> None:
    from pyarrow.fs import LocalFileSystem

    with pytest.raises(seglake.FormatError, match=r"\.active: is a segment of a log that may still be written"):
        seglake.scan(str(path), filesystem=LocalFileSystem())
    assert values(seglake.scan(str(path), filesystem=LocalFileSystem(), glob="*.sealed")) == list(range(20))
    seal_all(path)
    assert values(seglake.scan(str(path), filesystem=LocalFileSystem())) == list(range(30))


def seal_all(path: Path) -> None:
    with SegmentLog(path) as log:
        log.roll()
        log.wait_sealed()


_WRITER = """
import sys, time
from pathlib import Path
import seglake
path, told, most = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
log = seglake.SegmentLog(path, segment_bytes=3000, durability="flush")
number = 0
while not Path(path, "stop").exists():
    if number >= int(most.read_text()):
        time.sleep(0.001)
        continue
    size = number % 7 + 1
    log.write_batch([("t", str(n)) for n in range(number, number + size)])
    number += size
    if number % 3 == 0:
        log.sync()
        told.with_suffix(".new").write_text(str(number))
        told.with_suffix(".new").replace(told)
log.close()
"""


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[tuple[Path, Any]]:
    """A log that another process writes, rolling and sealing fast.

    And a function that says how many records are synced, and lets it write 200 more, which are some 4 segments.
    """
    path, told, most = tmp_path / "log", tmp_path / "told", tmp_path / "most"
    path.mkdir()
    most.write_text("200")
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, path, told, most])

    def synced() -> int:
        while not told.exists():
            assert writer.poll() is None
            time.sleep(0.01)
        count = int(told.read_text())
        most.with_suffix(".new").write_text(str(count + 200))
        most.with_suffix(".new").replace(most)
        return count

    try:
        synced()
        yield path, synced
        assert writer.poll() is None
    finally:
        # Not in the folder's own names.
        (path / "stop").touch()
        writer.wait(60)
    assert writer.returncode == 0


def test_beside_a_writer_each_result_is_a_prefix(writing: tuple[Path, Any], tmp_path: Path) -> None:
    path, synced = writing
    # In a third of them segments are sealed after they were listed. `make soak` does this for ten minutes.
    sealed_between = 0
    for rounds in range(60):
        least = synced()
        scan = seglake.scan(path, threads=1 + rounds % 2)
        files = {file.path for file in scan.files()}
        while rounds % 3 == 0 and synced() < least + 200:
            time.sleep(0.001)
        found = values(scan)
        assert found == list(range(len(found)))
        assert len(found) >= least
        assert scan.count_rows() == len(found)
        sealed_between += not all(map(os.path.exists, files))
        if rounds % 5 == 0:
            out = tmp_path / f"{rounds}.parquet"
            least = synced()
            seglake.export(seglake.scan(path), out)
            exported = [int(value) for value in pq.read_table(out)["value"].to_pylist()]
            assert exported == list(range(len(exported)))
            assert len(exported) >= least
        if rounds % 5 == 1:
            least = synced()
            done = run("verify", "--json", path)
            assert done.status == 0, done.out + done.err
            assert sum(json.loads(line)["records"] for line in done.out.splitlines()) >= least
    assert sealed_between >= 10


def test_folders_in_that_of_a_log_are_passed_over(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is in the folder of the log"):
        SegmentLog(path, readonly=True).snapshot(path / "backup")
    assert run("log", "snapshot", path, path / "backup").status == 2
    shutil.copytree(path, path / "backup")  # as other tools may
    (path / "backup" / "more").mkdir()
    scan = seglake.scan(path)
    assert scan.count_rows() == 30
    assert list(scan.passed_over()) == [(str(path / "backup"), "a folder in that of a log")]
    for command in ("verify", "cat", "info"):
        done = run(command, path)
        assert done.status == 0
        assert f"{path / 'backup'}: passed over: a folder in that of a log" in done.err
        assert "backup" not in done.out
    assert seglake.ingest(path, tmp_path / "lake").records == 30
    # Named by itself it is a log as any other.
    assert seglake.scan(path / "backup").count_rows() == 30
    filesystem = pytest.importorskip("pyarrow.fs").LocalFileSystem()
    elsewhere = seglake.scan(f"file://{path}", filesystem=filesystem, glob="*.sealed")
    assert elsewhere.count_rows() == 20
    assert [skipped.path.endswith("backup") for skipped in elsewhere.passed_over()] == [True]


def test_what_is_left_of_a_segment_that_was_removed_is_no_input(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with SegmentLog(path, segment_bytes=1000, protect="128+8") as log:
        write(log, 0, 40)
        log.roll()
        log.wait_sealed()
    first = segments(path, "sealed")[0]
    for name in (".damaged", ".par.damaged", ".quarantine", ".quarantine.manifest.jsonl"):
        Path(f"{first}{name}").write_text("kept")
    first.unlink()  # what retention does first
    left = seglake.scan(path).count_rows()
    assert 0 < left < 40
    for command in ("verify", "info", "cat", "protect", "scrub"):
        done = run(command, path)
        assert (done.status, done.err) == (0, ""), (command, done.err)
    assert run("export", path, tmp_path / "out.csv").status == 0
    assert seglake.ingest(path, tmp_path / "lake").records == left
    filesystem = pytest.importorskip("pyarrow.fs").LocalFileSystem()
    assert seglake.scan(f"file://{path}", filesystem=filesystem).count_rows() == left
