"""The ingest run again: only new files and new records come in, whatever was killed in between."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from cli_process import here
from dying import deadly, in_a_process
from samples import SAMPLES
from segments import DAY, OTHER_KEY, flip, write_segment

import seglake
from seglake import IngestError, IngestResult, SegmentLog, ingest
from seglake._ingestion.layout import new_run_id
from seglake._ingestion.result import no_files
from seglake._publish.store import LOCAL

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the ingest runs on Linux and macOS")

GROWING = ("active", "chunked", "draft", "autobase")


def rows(lake: Path, table: str) -> list[dict[str, Any]]:
    """The rows of all formats, in the order of their runs, and of one run by format."""
    found: list[dict[str, Any]] = []
    for path in sorted(lake.glob(f"*/{table}/**/*.parquet"), key=lambda path: (path.name, path)):
        content = ds.dataset(str(path)).to_table()
        found.extend({"table": path.relative_to(lake).parts[0], **row} for row in content.to_pylist())
    return found


def plain(lake: Path, table: str, *without: str) -> Counter[str]:
    """The rows as texts, without the columns that depend on when a run was."""
    gone = {"run", "modified", *without}
    return Counter(str({name: row[name] for name in row if name not in gone}) for row in rows(lake, table))


def latest(lake: Path) -> dict[str, dict[str, Any]]:
    """The state of each segment: its last row. A file that is listed by its path may have become a segment since."""
    found = {row["segment"]: row for row in rows(lake, "files")}
    at = {row["path"]: row["run"] for row in rows(lake, "files")}
    return {name: row for name, row in found.items() if name != row["path"] or row["run"] == at[name]}


def of(lake: Path, path: Path) -> dict[str, Any]:
    """The last row of a file."""
    return [row for row in rows(lake, "files") if row["path"] == str(path)][-1]


def told(result: IngestResult) -> tuple[int, int, int, int]:
    return (result.files, result.unchanged, result.records, result.pending_bytes)


def age(folder: Path) -> None:
    """Makes files old enough for their times to tell."""
    for path in folder.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))


def test_only_new_files_are_read(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    for name in "ab":
        write_segment(src / f"{name}.active", 5)
    age(src)
    assert told(ingest(src, lake)) == (2, 0, 10, 0)
    before = {path: path.read_bytes() for path in lake.rglob("*.parquet")}
    again = ingest(src, lake)
    assert (told(again), again.run_id, again.exit_status) == ((0, 2, 0, 0), None, 0)
    assert {path: path.read_bytes() for path in lake.rglob("*.parquet")} == before
    write_segment(src / "c.active", 7)
    assert told(ingest(src, lake)) == (1, 2, 7, 0)
    assert len(rows(lake, "records")) == 17


def test_a_file_that_changed_just_now_is_looked_at_again(tmp_path: Path) -> None:
    write_segment(tmp_path / "src/a.active", 5)
    assert told(ingest(tmp_path / "src", tmp_path / "lake")) == (1, 0, 5, 0)
    # It has no row for that: there is nothing to say.
    assert told(ingest(tmp_path / "src", tmp_path / "lake")) == (1, 0, 0, 0)
    assert len(rows(tmp_path / "lake", "files")) == 1
    age(tmp_path / "src")
    # Now its time is known, and it is left alone.
    assert told(ingest(tmp_path / "src", tmp_path / "lake")) == (1, 0, 0, 0)
    assert told(ingest(tmp_path / "src", tmp_path / "lake")) == (0, 1, 0, 0)
    assert len(rows(tmp_path / "lake", "records")) == 5


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", GROWING)
def test_a_file_that_grows_by_pieces_gives_each_record_once(tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    options = dict(sample.read_options)
    whole = tmp_path / f"whole.{sample.extension}"
    sample.write(whole)
    content = whole.read_bytes()
    growing, lake = tmp_path / f"growing.{sample.extension}", tmp_path / "lake"
    steps = [len(content) * part // 17 for part in range(1, 18)]
    for end in steps:
        growing.write_bytes(content[:end])
        result = ingest(growing, lake, format=sample.format, **options)  # pyright: ignore
        (row,) = latest(lake).values()
        # Zeros at the end look like space that is not used yet.
        assert (row["status"], row["end"] + row["pending_bytes"] + row["unused_bytes"]) == ("sound", end)
        assert result.pending_bytes == row["pending_bytes"]
    assert rows(lake, "damage") == []
    (tmp_path / "other").mkdir()
    shutil.copy(whole, tmp_path / "other" / growing.name)
    ingest(tmp_path / "other", tmp_path / "once", format=sample.format, **options)  # pyright: ignore
    assert plain(lake, "records", "segment", "path") == plain(tmp_path / "once", "records", "segment", "path")
    (last,), (once,) = latest(lake).values(), latest(tmp_path / "once").values()
    assert [last[name] for name in ("records", "nbytes", "end")] == [
        once[name] for name in ("records", "nbytes", "end")
    ]
    carried, carry = json.loads(last["carry"]), json.loads(once["carry"])
    assert carried["sums"] == carry["sums"]
    for name in ("identity", "first", "offset", "uuid"):
        assert carried["position"][name] == carry["position"][name]


def test_a_run_says_how_many_of_the_files_that_it_leaves_out_are_damaged(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    for name in "abc":
        written = write_segment(src / f"{name}.active", 5 + ord(name))
        if name != "a":
            flip(src / f"{name}.active", written[2].end - 9)
    age(src)
    first = ingest(src, lake)
    assert (first.statuses["damaged"], first.unchanged_damaged, first.exit_status) == (2, 0, 1)
    again = ingest(src, lake)
    assert (again.unchanged, again.unchanged_damaged, again.exit_status) == (3, 2, 0)
    assert again.to_dict()["unchanged_damaged"] == 2
    done = here("ingest", src, "--to", lake)
    assert done.status == 0
    assert "    known damaged    2\n" in done.out
    assert "2 unchanged files are damaged, as earlier runs found: `seglake verify`" in done.out
    # Also if something else is read, and of fewer files.
    write_segment(src / "d.active", 3)
    (src / "c.active").unlink()
    more = ingest(src, lake)
    assert (more.files, more.unchanged, more.unchanged_damaged) == (1, 2, 1)
    # A damaged copy is one.
    shutil.copy(src / "b.active", src / "e.active")
    age(src)
    assert ingest(src, lake).statuses["damaged"] > 0
    again = ingest(src, lake)
    assert (again.run_id, again.unchanged_damaged + again.statuses["damaged"]) == (None, 2)


def test_damage_in_the_middle_of_a_growing_file_comes_once(tmp_path: Path) -> None:
    path, lake = tmp_path / "a.active", tmp_path / "lake"
    written = write_segment(path, 20)
    for number in (3, 4, 11, 19):
        flip(path, written[number].end - 9)
    content = path.read_bytes()
    for end in range(0, len(content) + 1, 50):
        path.write_bytes(content[:end])
        ingest(path, lake)
    path.write_bytes(content)
    result = ingest(path, lake)
    # The last is not certain before the file ends.
    assert result.pending_bytes == written[19].end - written[19].start
    assert [(row["start"], row["end"]) for row in rows(lake, "damage")] == [
        (written[3].start, written[4].end),
        (written[11].start, written[11].end),
    ]
    assert sorted(row["position"] for row in rows(lake, "records")) == [
        each.start for number, each in enumerate(written) if number not in (3, 4, 11, 19)
    ]
    (row,) = latest(lake).values()
    assert (row["status"], row["records"], row["pending_bytes"]) == ("damaged", 16, 83)
    age(tmp_path)
    ended = ingest(path, lake, final=True)
    assert {cause: total.ranges for cause, total in ended.damage.items()} == {"checksum_mismatch": 1}
    assert len(rows(lake, "damage")) == 3
    assert told(ingest(path, lake, final=True))[2:] == (0, 0)


def test_a_tail_that_was_final_comes_once(tmp_path: Path) -> None:
    path, lake = tmp_path / "a.active", tmp_path / "lake"
    written = write_segment(path, 8)
    content, torn = path.read_bytes(), written[5].start + 50
    path.write_bytes(content[:torn])
    ingest(path, lake, final=True)
    tail = [(written[5].start, torn, "torn_tail")]
    assert [(row["start"], row["end"], row["kind"]) for row in rows(lake, "damage")] == tail
    (row,) = latest(lake).values()
    assert (row["status"], row["records"], row["torn_bytes"], row["nbytes"]) == ("damaged", 5, 50, torn)
    # Touched, and read with and without the word that it is final: it is as it was.
    for final in (True, False):
        age(tmp_path)
        os.utime(path)
        assert told(ingest(path, lake, final=final)) == (1, 0, 0, 0)
    assert len(rows(lake, "damage")) == 1
    # It grew all the same, and is torn elsewhere: of the tail only what is new comes.
    path.write_bytes(content[: torn + 10])
    ingest(path, lake, final=True)
    tail.append((torn, torn + 10, "torn_tail"))
    assert [(row["start"], row["end"], row["kind"]) for row in rows(lake, "damage")] == tail
    # And the record is finished.
    path.write_bytes(content)
    assert ingest(path, lake).records == 3
    (row,) = latest(lake).values()
    assert (row["status"], row["records"], row["torn_bytes"], row["nbytes"]) == ("sound", 8, 0, len(content))
    assert [row["position"] for row in rows(lake, "records")] == [each.start for each in written]
    assert len(rows(lake, "damage")) == 2


def test_records_of_an_oplog_after_its_damage_come_once(tmp_path: Path) -> None:
    sample, path, lake = SAMPLES["draft"], tmp_path / "a.oplog", tmp_path / "lake"
    sample.write(path, 40)
    starts = [record.position for record in seglake.open(path, format="oplog")]
    content = bytearray(path.read_bytes())
    content[starts[9] + 2] ^= 0xFF
    end = starts[30]

    def add(size: int, final: bool) -> IngestResult:
        path.write_bytes(content[:size])
        return ingest(path, lake, format="oplog", final=final)

    def positions() -> list[int]:
        return sorted(row["position"] for row in rows(lake, "records"))

    # All but the first ones is pending. Where records follow, that is said to be damage.
    for size, status in ((starts[9] + 5, "sound"), (end, "damaged")):
        add(size, final=False)
        (row,) = latest(lake).values()
        assert (row["records"], row["pending_bytes"], row["status"]) == (9, size - starts[9], status)
    add(end, final=True)
    reader = seglake.open(path, format="oplog", on_damage="skip")
    with reader, pytest.warns(seglake.DamageWarning, match="skipped"):
        whole = [record.position for record in reader]
    assert len(whole) == 29
    assert positions() == whole
    damage = len(rows(lake, "damage"))
    assert damage
    for final in (True, False):  # what has been told of is told of no more
        assert add(end, final=final).records == 0
        assert (positions(), len(rows(lake, "damage"))) == (whole, damage)
    assert add(starts[35], final=False).records == 5
    assert positions() == [*whole, *starts[30:35]]
    (row,) = latest(lake).values()
    assert (row["records"], row["nbytes"], row["pending_bytes"]) == (len(whole) + 5, starts[35], 0)
    content[starts[20] + 2] ^= 0xFF
    replaced = add(len(content), final=True)
    assert (replaced.statuses["replaced"], replaced.records) == (1, 0)
    assert "records when it was final, and has others now" in replaced.errors[0].error


def test_a_state_of_another_version_is_refused(tmp_path: Path) -> None:
    path, lake = tmp_path / "a.active", tmp_path / "lake"
    write_segment(path, 5)
    ingest(path, lake)
    (table,) = lake.glob("active/files/*.parquet")
    content = pq.read_table(table)
    for carry in ('{"ranges": 0, "edges": "00", "last": null}', "{", "[]", '{"version": 2}', None):
        column = content.schema.get_field_index("carry")
        own = pa.array([carry], pa.string())
        pq.write_table(content.set_column(column, content.field(column), own), table)
        with pytest.raises(
            IngestError, match=r"expected in its column carry what the ingest goes on with in .*a.active"
        ):
            ingest(path, lake)
    assert len(rows(lake, "records")) == 5


def test_a_preallocated_file_grows_without_getting_longer(tmp_path: Path) -> None:
    path, lake = tmp_path / "a.active", tmp_path / "lake"
    written = write_segment(path, 20)
    content = path.read_bytes()
    for number in (5, 5, 12, 20):
        end = written[number - 1].end
        path.write_bytes(content[:end] + bytes(10_000 - end))
        ingest(path, lake)
        (row,) = latest(lake).values()
        assert (row["records"], row["end"], row["unused_bytes"]) == (number, end, 10_000 - end)
    assert len(rows(lake, "records")) == 20


def cut(path: Path, content: bytes) -> None:
    path.write_bytes(content[:-200])


def begin_differently(path: Path, content: bytes) -> None:
    path.write_bytes(b"x" + content[1:])


def replace(path: Path, content: bytes) -> None:
    path.unlink()
    write_segment(path, 1200, value_bytes=80, first=DAY.replace(year=2025))


def lose_a_record(path: Path, content: bytes) -> None:
    flip(path, 60_000)


def lose_a_record_and_grow(path: Path, content: bytes) -> None:
    path.unlink()
    write_segment(path, 1010, value_bytes=80)
    assert path.read_bytes().startswith(content)
    flip(path, 60_000)


def have_other_values(path: Path, content: bytes) -> None:
    write_segment(path.with_name("z.active"), 1000, value_bytes=80)
    path.with_name("z.active").rename(path)


@pytest.mark.parametrize("change", [cut, replace, have_other_values])
def test_a_file_that_is_another_now_is_told_of(tmp_path: Path, change: Callable[[Path, bytes], None]) -> None:
    path, lake = tmp_path / "src/a.active", tmp_path / "lake"
    write_segment(path, 1000, value_bytes=80)
    write_segment(tmp_path / "src/b.active", 5)
    ingest(tmp_path / "src", lake)
    before = plain(lake, "records")
    change(path, path.read_bytes())
    write_segment(tmp_path / "src/c.active", 5)
    result = ingest(tmp_path / "src", lake)
    assert (result.records, result.exit_status, result.damage) == (5, 1, {})
    assert [(Path(error.path).name, error.status) for error in result.errors] == [("a.active", "replaced")]
    assert "expected" in result.errors[0].error
    assert "Its rows of earlier runs stay. Give the new file another name" in result.errors[0].error
    assert before < plain(lake, "records")
    assert of(lake, path)["status"] == "replaced"
    # Each run tells of it; the table once.
    assert ingest(tmp_path / "src", lake).statuses["replaced"] == 1
    assert [row["status"] for row in rows(lake, "files")].count("replaced") == 1


@pytest.mark.parametrize(("change", "new"), [(begin_differently, 0), (lose_a_record, 0), (lose_a_record_and_grow, 10)])
def test_what_was_ingested_is_not_read_again(tmp_path: Path, change: Callable[[Path, bytes], None], new: int) -> None:
    path, lake = tmp_path / "src/a.active", tmp_path / "lake"
    write_segment(path, 1000, value_bytes=80)
    ingest(path, lake)
    # The record that is damaged now is in the lake as it was, and nothing tells of the damage: it was not read.
    change(path, path.read_bytes())
    assert not seglake.verify(path).ok
    result = ingest(path, lake)
    assert (result.records, result.exit_status, result.damage) == (new, 0, {})
    (row,) = latest(lake).values()
    assert (row["status"], row["records"], row["corrupt_bytes"]) == ("sound", 1000 + new, 0)
    assert row["nbytes"] == row["size"] == path.stat().st_size


def test_what_was_refused_is_tried_again_and_listed_once(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    write_segment(src / "a.active", 5)
    write_segment(src / "k.active", 5, key=OTHER_KEY)
    (src / "notes.txt").write_text("no segment, but text that is long enough to be taken for something\n")
    for _ in range(2):
        assert ingest(src, lake).statuses == no_files() | {"sound": 1, "wrong_key": 1, "not_a_segment": 1}
    assert len(rows(lake, "files")) == 3
    age(src)
    ingest(src, lake)
    # Beside what is in the tables, a wrong key of all that is left stops nothing.
    assert ingest(src, lake).statuses == no_files() | {"wrong_key": 1, "not_a_segment": 1}
    (tmp_path / "key").write_text(OTHER_KEY.hex())
    assert ingest(src, lake, key=tmp_path / "key").records == 5
    assert of(lake, src / "k.active")["status"] == "sound"
    assert told(ingest(src, lake)) == (1, 2, 0, 0)


def test_a_log_that_is_written_rolled_and_sealed_gives_each_record_once(tmp_path: Path) -> None:
    lake, written = tmp_path / "lake", 0
    with SegmentLog(tmp_path / "log") as log:
        for step in range(12):
            for _ in range(7):
                log.write("t", str(written))
                written += 1
            log.sync()
            if step % 3 == 2:
                log.roll()
            if step % 4 == 3:
                log.wait_sealed()
            assert ingest(tmp_path / "log", lake).errors == ()
            assert sorted(int(row["value"]) for row in rows(lake, "records")) == list(range(written))
    assert ingest(tmp_path / "log", lake).records == 0
    found = rows(lake, "records")
    assert {row["table"] for row in found} == {"active", "sealed"}
    # A segment is one, wherever its records are.
    assert {row["segment"] for row in found} == set(latest(lake))
    assert len(latest(lake)) == 4
    assert sum(row["records"] for row in latest(lake).values()) == written


def test_of_a_segment_of_a_log_only_what_is_new_is_read(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with SegmentLog(tmp_path / "log") as log:
        for number in range(300):
            log.write("t", b"%06d" % number)
        log.sync()
        assert ingest(tmp_path / "log", lake).records == 300
        for number in range(300, 310):
            log.write("t", b"%06d" % number)
        log.sync()
        log.roll()
        log.wait_sealed()
    (sealed,) = (tmp_path / "log").glob("*.sealed")
    flip(sealed, sealed.read_bytes().index(b"000150"))
    assert not seglake.verify(sealed).ok
    result = ingest(tmp_path / "log", lake)
    assert (result.records, result.damage, result.exit_status) == (10, {}, 0)
    assert sorted(int(row["value"]) for row in rows(lake, "records")) == list(range(310))


def test_runs_are_in_the_order_of_their_names_whatever_the_clock_says() -> None:
    first = new_run_id()
    assert first < new_run_id(first)
    assert new_run_id("29991231T235959Z-0000beef")[:16] == "30000101T000000Z"


# What changes something on the disk. The fifth call of `sync_file` is that of a Parquet file, for example.
STEPS = ("make_folder", "open_output", "sync_file", "sync_names", "write_durably", "place", "remove_tree")


def sources(src: Path) -> None:
    written = write_segment(src / "a.active", 40)
    flip(src / "a.active", written[3].end - 9)
    write_segment(src / "k.active", 5, key=OTHER_KEY)
    for name in ("sealed", "draft"):
        SAMPLES[name].write(src / f"{name}.{SAMPLES[name].extension}")
    age(src)


def more(src: Path) -> None:
    """What has come by the second run: a new file, and records of one that grew."""
    write_segment(src / "b.active", 10)
    content = (src / "a.active").read_bytes()
    (src / "a.active").unlink()
    write_segment(src / "a.active", 60)
    grown = (src / "a.active").read_bytes()
    (src / "a.active").write_bytes(content + grown[len(content) :])
    age(src)


def test_killed_in_front_of_each_step_the_next_run_gives_the_same_tables(tmp_path: Path, stride: int) -> None:
    src, expected = tmp_path / "src", tmp_path / "expected"
    sources(src)
    ingest(src, expected, threads=1)
    shutil.copytree(expected, tmp_path / "first")
    more(src)
    ingest(src, expected, threads=1)
    tables = {table: plain(expected, table) for table in ("records", "damage", "files")}
    assert [sum(rows.values()) for rows in tables.values()] == [109, 1, 6]
    outcomes: set[bool] = set()
    for fatal in range(1, 200, stride):
        lake = tmp_path / f"lake-{fatal}"
        shutil.copytree(tmp_path / "first", lake)

        def work(lake: Path = lake, fatal: int = fatal) -> None:
            deadly(LOCAL, STEPS, fatal)
            ingest(src, lake, threads=1)

        status = in_a_process(work)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        listed = {row["segment"] for row in rows(lake, "files")}
        assert plain(lake, "records") <= tables["records"]
        assert {row["segment"] for row in rows(lake, "damage")} <= listed
        again = ingest(src, lake, threads=1)
        outcomes.add(again.records == 0)
        assert {table: plain(lake, table) for table in tables} == tables, fatal
        shutil.rmtree(lake)
    else:
        raise AssertionError("it has more steps than that")
    assert fatal > 15
    assert outcomes == {False, True}  # what it had no manifest of was read again, the rest was completed


def test_follow_goes_on_until_it_is_interrupted(tmp_path: Path) -> None:
    write_segment(tmp_path / "src/a.active", 5)
    command = [sys.executable, "-m", "seglake", "ingest", tmp_path / "src", "--to", tmp_path / "lake"]
    with subprocess.Popen([*command, "--follow", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["records"] == 5
        write_segment(tmp_path / "new.active", 7)
        (tmp_path / "new.active").rename(tmp_path / "src/b.active")
        second = json.loads(process.stdout.readline())
        assert (second["records"], second["statuses"]["sound"] + second["unchanged"]) == (7, 2)
        process.send_signal(signal.SIGINT)
        assert (process.wait(), process.stdout.read()) == (130, b"")
        assert process.stderr.read() == b"\nseglake: interrupted\n"
    assert len(rows(tmp_path / "lake", "records")) == 12
    assert list((tmp_path / "lake/_staging").iterdir()) == []


def test_the_view_of_the_documents_has_the_latest_of_each_segment(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    sources(src)
    ingest(src, lake)
    more(src)
    ingest(src, lake)
    document = (Path(__file__).parents[2] / "docs" / "ingest.md").read_text()
    _, _, rest = document.partition("```sql\n")
    view = rest.partition("```")[0].replace("/data/lake", str(lake))
    with duckdb.connect() as connection:
        connection.execute(view)
        found = connection.execute("SELECT segment, run, status, records FROM segments").fetchall()
    assert {row[0]: row[1:] for row in found} == {
        name: (row["run"], row["status"], row["records"]) for name, row in latest(lake).items()
    }
    assert len(found) == 5
