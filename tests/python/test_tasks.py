"""What tests/tasks.md asks of a newcomer, as it is meant, by the tasks' numbers.

Tests of stores have 21, those of `--follow` 52, those of Spark 55 to 60.
"""

import shutil
import warnings
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from uuid import UUID

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from cli_process import seglake as run

import seglake

TYPES = ("order.paid", "order.created", "error", "login")
RECORDS = 400
KEY = bytes(range(32))


def fill(path: Path, records: int, start: datetime, step: timedelta) -> None:
    with seglake.create(path) as segment:
        for number in range(records):
            segment.write(TYPES[number % 4], b'{"number": %d}' % number, timestamp=start + number * step)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "segments").mkdir()
    for day in (10, 11, 12):
        fill(folder / f"segments/{day}.active", 200, datetime(2024, 1, day, tzinfo=UTC), timedelta(minutes=5))
    seglake.seal(folder / "segments/12.active", folder / "january.sealed")
    shutil.copy(folder / "january.sealed", folder / "segments/12.sealed")
    (folder / "segments/12.active").unlink()
    with seglake.SegmentLog(folder / "log") as log:
        log.write_batch([("t", b"%d" % number) for number in range(20)])
    (folder / "secret.key").write_bytes(KEY)
    with seglake.create(folder / "secret.active", key=folder / "secret.key") as segment:
        segment.write("t", b"hidden")
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of `made`, and one whose last records are minutes old at each test, however long all of them take."""
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=RECORDS / 4)
    fill(folder / "events.active", RECORDS, start, timedelta(minutes=15))
    content = bytearray((folder / "events.active").read_bytes())
    content[5000] ^= 4
    (folder / "broken.active").write_bytes(content)
    monkeypatch.chdir(folder)
    return folder


pytestmark = pytest.mark.usefixtures("here")


def test_reading() -> None:
    everything = seglake.open("events.active").to_pandas()  # 1
    assert (len(everything), list(everything)) == (RECORDS, ["uuid", "timestamp", "type", "value"])
    table = seglake.open("events.active", columns=["timestamp", "type"]).to_table()  # 2
    assert (table.num_rows, table.column_names) == (RECORDS, ["timestamp", "type"])
    errors = [("timestamp", ">=", timedelta(hours=1)), ("type", "==", "error")]
    assert set(seglake.open("events.active", filters=errors).to_pandas()["type"]) == {"error"}  # 3
    assert seglake.scan("segments").to_polars().head(10).collect().height == 10  # 4
    with seglake.SegmentLog("log", readonly=True) as log:
        counts = seglake.open("events.active"), seglake.scan("segments"), log
        assert [each.count_rows() for each in counts] == [RECORDS, 600, 20]  # 5
        assert [each.head(5).num_rows for each in counts] == [5, 5, 5]  # 17
    first = next(iter(seglake.open("events.active")))
    assert (first.timestamp, first.type, first.value) == (everything["timestamp"][0], TYPES[0], b'{"number": 0}')  # 6
    reader = seglake.open("events.active")
    assert first.uuid is not None
    assert reader.get(first.uuid) == first  # 7
    assert reader.get(UUID(int=0)) is None
    assert len(reader.get_many([first.uuid] * 1000)) == 1000  # 8
    with pytest.warns(seglake.exceptions.DamageWarning):
        damaged = seglake.open("broken.active", on_damage="skip")
        assert damaged.count_rows() == RECORDS - 1  # 9
    assert [span.cause for span in damaged.damage] == ["checksum_mismatch"]
    assert sum(batch.num_rows for batch in seglake.open("events.active").batches(batch_size=100)) == RECORDS  # 11
    hour = [("timestamp", ">=", "2024-01-12T15:00"), ("timestamp", "<", "2024-01-12T16:00")]
    assert seglake.open("january.sealed", filters=hour).count_rows() == 12  # 12
    days = [("timestamp", ">=", date(2024, 1, 12)), ("timestamp", "<", date(2024, 1, 13))]
    assert seglake.open("january.sealed", filters=days).count_rows() == 200  # 13
    assert seglake.open("events.active", filters=pc.field("type") == "error").count_rows() == RECORDS / 4  # 14
    assert seglake.open("events.active", filters=[("type", "in", TYPES[:3])]).count_rows() == RECORDS * 3 / 4  # 15
    assert seglake.open("events.active", filters=[("type", "like", "order.%")]).count_rows() == RECORDS / 2
    named = seglake.scan("segments", include_file_paths="path").to_table()  # 16
    assert len(set(named["path"].to_pylist())) == 3
    segments = seglake.scan("segments")
    assert duckdb.sql("SELECT count(*) FROM segments").fetchall() == [(600,)]  # 18
    assert segments.count_rows() == 600
    assert {format.name: format.columns[0].name for format in seglake.formats()}["active"] == "uuid"  # 19
    assert seglake.formats()["active"].columns[0].name == "uuid"
    shutil.copy("january.sealed", "what")
    assert seglake.detect("what").format == "sealed"  # 20
    assert [record.value for record in seglake.open("secret.active", key="secret.key")] == [b"hidden"]  # 22


@pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")
def test_tables_of_everything() -> None:
    with seglake.SegmentLog("log", readonly=True) as log:
        for each, rows in ((seglake.open("events.active"), RECORDS), (seglake.scan("segments"), 600), (log, 20)):
            assert pa.table(each).num_rows == pl.DataFrame(each).height == len(each.to_pandas()) == rows  # 23
            with pytest.raises(TypeError, match="to_pandas"):
                pd.DataFrame(each)  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_checking_and_repairing() -> None:
    assert seglake.verify("events.active").ok  # 24
    report = seglake.verify("broken.active")
    assert not report
    [diagnosis] = report.diagnoses
    assert (diagnosis.start <= 5000 < diagnosis.end, diagnosis.certainty) == (True, "proven")  # 25
    shutil.copy("events.active", "own.active")
    seglake.protect("own.active")  # 26
    with Path("own.active").open("r+b") as file:
        file.seek(7000)
        file.write(b"????")
    with seglake.open("own.active", on_damage="repair") as reader, warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
        assert reader.count_rows() == RECORDS  # 10
    [found] = seglake.scrub("own.active", rate="20MiB", repair=True)  # 28
    assert found.is_mended
    assert seglake.repair("own.active").outcome == "sound"
    recovered = seglake.recover("broken.active", "sound.active")  # 27
    assert recovered.records == RECORDS - 1
    seglake.undo_recover("sound.active", "again.active")
    assert Path("again.active").read_bytes() == Path("broken.active").read_bytes()
    Path("note.txt").write_text("a note")
    errors = {
        "broken.active": seglake.DamageError,
        "note.txt": seglake.FormatError,
        "secret.active": seglake.WrongKeyError,
    }
    for path, error in errors.items():
        with pytest.raises(error):
            seglake.open(path).count_rows()  # 29


def test_writing() -> None:
    week_ago = datetime.now(UTC).replace(microsecond=0) - timedelta(days=7)
    with seglake.create("new.active") as segment:
        segment.write("t", b"v", timestamp=week_ago)  # 30, 31
        assert segment.write_batch([("t", b"%d" % number) for number in range(1000)]) == 1000  # 32
        assert segment.write_batch([{"type": "t", "value": b"v"}]) == 1
    assert next(iter(seglake.open("new.active"))).timestamp == week_ago
    with seglake.create("new.active", if_exists="append") as segment:
        segment.write_batch(pa.table({"type": ["t"], "value": [b"v"]}))  # 33, 34
    seglake.seal("new.active", "new.sealed")  # 35
    with seglake.create("new.sealed", if_exists="overwrite") as segment:
        segment.write("t", b"v")  # 34
    assert seglake.open("new.sealed").count_rows() == 1
    assert seglake.convert("january.sealed", "january.chunks", drop=["uuid", "type"]).records == 200  # 36
    assert seglake.export("segments", "all.parquet").records == 600  # 37
    assert seglake.export("segments", "all.csv", value="text").records == 600
    with seglake.SegmentLog("own", durability="fsync") as log:  # 38
        log.write("t", b"1")
        tail = log.tail(start="start")  # 39
        found = tail.poll(timeout=10)
        assert found is not None
        assert found.value == b"1"
        assert log.retain(age="7d") == []  # 40


def test_the_ingest() -> None:
    pytest.importorskip("deltalake")
    done = seglake.ingest(["events.active", "broken.active", "segments"], "lake", table="delta")  # 41
    assert done.damaged == 1


@pytest.mark.parametrize(
    ("words", "is_right"),
    [
        ("cat --last 10 events.active", lambda out: len(out.splitlines()) == 10),  # 42
        ("cat --since 1h events.active", lambda out: len(out.splitlines()) == 3),  # 43
        ("cat --since yesterday --until today events.active", lambda out: len(out.splitlines()) == 96),
        (["cat", "--where", "type = 'order.paid'", "events.active"], lambda out: len(out.splitlines()) == RECORDS / 4),
        ("cat --json --value text --limit 1 events.active", lambda out: '"value":"{' in out.replace('": "', '":"')),
        ("verify --quiet segments", lambda out: "ok" not in out),  # 46
        ("explain torn_tail", lambda out: "torn_tail" in out),  # 47
        ("log tail --from start --no-follow log", lambda out: len(out.splitlines()) == 20),  # 49
        ("export segments out.parquet", lambda out: True),  # 50
        ("convert january.sealed january.active", lambda out: True),  # 51
        ("completion bash", lambda out: "complete" in out),  # 53
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_the_command_line(words: str | list[str], is_right: Callable[[str], bool]) -> None:
    done = run(*(words.split() if isinstance(words, str) else words))
    assert (done.status, is_right(done.out)) == (0, True), done.out + done.err


def test_damage_on_the_command_line() -> None:
    assert run("export", "segments", "x.csv").status == 0
    assert run("export", "segments", "x.csv", "--overwrite").status == 0  # 50
    shutil.copy("events.active", "own.active")
    assert run("protect", "own.active").status == 0
    with Path("own.active").open("r+b") as file:
        file.seek(7000)
        file.write(b"????")
    assert run("repair", "own.active").status == 0  # 48
    # Of two names the second could be another damaged file, or other sources.
    assert run("repair", "own.active", "events.active").status == 2
    before = sorted(Path("segments").iterdir())
    assert run("ingest", "log", "segments").status == 2
    assert sorted(Path("segments").iterdir()) == before
    assert run("recover", "broken.active", "sound.active").status == 1
    done = run("cat", "--on-damage", "skip", "broken.active")  # 54
    assert (done.status, len(done.out.splitlines())) == (1, RECORDS - 1)
