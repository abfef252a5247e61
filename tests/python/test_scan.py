"""`seglake.scan`: many files as one."""

import gc
import random
import shutil
import threading
import time
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem  # pyright: ignore[reportMissingTypeStubs]
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

import seglake
from seglake.read.in_order import in_order
from seglake.read.polars import conditions

ROWS = 200
FILES = 6
START = datetime(2024, 1, 10, tzinfo=UTC)


def write(path: Path, first: int, rows: int = ROWS) -> None:
    with seglake.create(path, format="chunked", options={"chunk_records": 50}) as writer:
        for number in range(first, first + rows):
            writer.write(offset=number, timestamp=START + timedelta(seconds=number), value=b"%d" % number)


@pytest.fixture(autouse=True)
def small_files_by_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seglake.read.scan.SMALL_BYTES", 0)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    (folder / "below").mkdir(parents=True)
    for number in range(FILES):
        write(folder / ("below" if number % 2 else ".") / f"{number}.chunks", number * ROWS)
    return folder


def damage(path: Path) -> seglake.Span:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    [span] = seglake.verify(path).damage
    return span


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_records_in_the_order_of_paths(logs: Path, threads: int) -> None:
    scan = seglake.scan(logs, threads=threads)
    paths = sorted([*logs.glob("*.chunks"), *logs.glob("below/*.chunks")])
    alone = pa.concat_tables([seglake.open(path).to_table() for path in paths])
    assert [Path(file.path) for file in scan.files()] == paths
    assert [file.nbytes for file in scan.files()] == [path.stat().st_size for path in paths]
    assert scan.to_table() == alone
    assert pa.table(scan) == alone
    assert pa.table(scan) == alone  # again and again
    assert scan.count_rows() == FILES * ROWS
    assert scan.head(ROWS + 7) == alone.slice(0, ROWS + 7)
    assert scan.head(0).num_rows == 0
    total = duckdb.sql('SELECT count(*), sum("offset") FROM scan').fetchall()
    assert total == [(FILES * ROWS, sum(range(FILES * ROWS)))]
    assert pl.DataFrame(scan).height == FILES * ROWS
    nbytes = sum(path.stat().st_size for path in paths)
    assert repr(scan) == f"Scan({scan.files()[0].path!r} and 5 more, format='chunked', nbytes={nbytes})"


def test_what_is_read_of_folders(logs: Path) -> None:
    assert len(seglake.scan(logs / "*.chunks").files()) == 3
    assert len(seglake.scan(logs, glob="{0,1,5}.*").files()) == 3
    assert len(seglake.scan(logs / "*" / "[13].chunks").files()) == 2
    assert len(seglake.scan([logs / "0.chunks", logs, logs / "0.chunks"]).files()) == FILES
    (logs / "_temporary.chunks").write_bytes(b"half")
    (logs / ".hidden.chunks").write_bytes(b"half")
    assert seglake.scan(logs).count_rows() == FILES * ROWS


def test_columns_filters_and_paths(logs: Path) -> None:
    scan = seglake.scan(logs, columns=["offset"], filters=[("offset", ">=", 3 * ROWS - 1)], include_file_paths="file")
    table = scan.to_table()
    assert table.column_names == scan.schema.names == ["offset", "file"]
    assert sorted(table["offset"].to_pylist()) == list(range(3 * ROWS - 1, FILES * ROWS))
    assert {Path(path).name for path in table["file"].to_pylist()} == {f"{n}.chunks" for n in range(2, FILES)}
    assert pa.table(scan) == table
    assert scan.count_rows() == table.num_rows
    assert seglake.scan(logs, filters=[("offset", "<", 5)], prune=True).count_rows() == 5
    assert scan.select(["file"]).head(1).column_names == ["file"]
    assert scan.filter([("offset", "<", 3 * ROWS)]).count_rows() == 1
    with pytest.raises(ValueError, match='no column "path"'):
        scan.select(["path"])


def test_damage_is_raised_in_its_place_or_skipped_and_told(logs: Path) -> None:
    path = logs / "2.chunks"
    span = damage(path)
    scan = seglake.scan(logs, threads=3)
    rows = 0
    with pytest.raises(seglake.DamageError) as raised:
        for batch in scan.batches():
            rows += batch.num_rows
    assert raised.value.path == str(path)
    # Those of the files before it, and of the chunks before the damage.
    assert rows == ROWS + 100
    with pytest.raises(seglake.DamageError):
        scan.count_rows()
    with pytest.raises(pa.ArrowInvalid, match=r"2\.chunks"):
        pa.table(scan)
    with pytest.warns(seglake.exceptions.DamageWarning, match=r"2\.chunks"):
        assert seglake.scan(logs, on_damage="skip", threads=3).count_rows() == FILES * ROWS - 50
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [damaged] = scan.find_damage()
    assert damaged == (str(path), *span)
    assert damaged == seglake.types.Damaged(str(path), span.start, span.end, span.kind, span.cause)
    assert list(seglake.open(path).ledger(damaged_only=True)) == [span]


def test_files_that_do_not_belong(logs: Path) -> None:
    other = logs / "7.active"
    with seglake.create(other, format="active") as writer:
        writer.write(type="a", value=b"1")
    with pytest.raises(seglake.FormatError, match=r"7\.active: is active, while .*0\.chunks is\s+chunked.*`glob`"):
        seglake.scan(logs).count_rows()
    assert seglake.scan(logs, glob="*.chunks").count_rows() == FILES * ROWS
    (logs / "README.txt").write_text("not a segment")
    with pytest.raises(seglake.FormatError, match=r"README\.txt"):
        seglake.scan(logs, glob="*.{chunks,txt}").count_rows()


def test_a_file_that_goes_away_is_an_error(logs: Path) -> None:
    scan = seglake.scan(logs)
    (logs / "4.chunks").unlink()
    with pytest.raises(FileNotFoundError, match=r"4\.chunks"):
        scan.to_table()


@pytest.mark.parametrize(
    ("sources", "arguments", "error", "said"),
    [
        ("nothing", {}, FileNotFoundError, "nothing: there is no such file or folder"),
        ("*.sealed", {}, FileNotFoundError, "no file or folder matches"),
        (".", {"glob": "*.sealed"}, FileNotFoundError, "6 files do not match glob='\\*.sealed'"),
        (".", {"threads": 0}, ValueError, "threads is 0"),
        (".", {"columns": ["nope"]}, ValueError, "nope"),
        (".", {"include_file_paths": "value"}, ValueError, "there is a column 'value' already"),
        (".", {"columns": ["path"], "include_file_paths": "file"}, ValueError, "there is a column 'path' already"),
        (".", {"filters": [("nope", "==", 1)]}, ValueError, "nope"),
        (".", {"on_damage": "ignore"}, ValueError, "on_damage"),
        (".", {"filesystem": 5}, TypeError, "filesystem must be"),
    ],
)
def test_wrong_arguments(
    logs: Path, sources: str, arguments: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        seglake.scan(logs / sources, **arguments)  # pyright: ignore[reportArgumentType]


def test_sources_that_are_no_paths(logs: Path) -> None:
    for source in ([b"SEGL"], b"SEGL"):
        with pytest.raises(TypeError, match="not bytes"):
            seglake.scan(source)  # pyright: ignore[reportArgumentType]
    with pytest.raises(FileNotFoundError, match="an empty list of sources"):
        seglake.scan([])
    with pytest.raises(ValueError, match="rows is -1"):
        seglake.scan(logs).head(-1)


def test_files_elsewhere(logs: Path) -> None:
    whole = seglake.scan(logs).to_table()
    assert seglake.scan(logs.as_uri()).to_table() == whole
    within = SubTreeFileSystem(str(logs.parent), LocalFileSystem())
    scan = seglake.scan("logs", filesystem=within, include_file_paths="file")
    assert scan.to_table().drop_columns("file") == whole
    assert scan.to_table()["file"][0].as_py() == "logs/0.chunks"
    memory = MemoryFileSystem()
    memory.put(str(logs), "/scan/logs", recursive=True)
    assert seglake.scan("memory://scan/logs/*", filesystem=memory).to_table() == whole
    assert seglake.scan("/scan/logs", filesystem=memory).to_table() == whole
    with pytest.raises(ValueError, match="password"):
        seglake.scan("s3://somebody:secret@bucket/logs")


def test_a_file_uri_is_read_as_path_as_uri_writes_it(logs: Path, tmp_path: Path) -> None:
    folder, lake = tmp_path / "a b%20ü", tmp_path / "the lake"
    shutil.copytree(logs, folder)
    uri = folder.as_uri()
    assert "%20b%2520%C3%BC" in uri
    scan = seglake.scan(uri)
    assert scan.files() == seglake.scan(folder).files()
    with seglake.open(Path(scan.files()[0].path).as_uri()) as reader:
        assert reader.count_rows() == seglake.scan(scan.files()[0].path).count_rows()
    result = seglake.ingest(uri, lake.as_uri())
    assert (result.destination, result.records) == (str(lake), scan.count_rows())
    seglake.export(scan, f"{uri}/all.arrow")
    assert (folder / "all.arrow").exists()


@pytest.mark.parametrize("format", ["active", "sealed", "tenant", "chunked", "oplog", "tfrecord"])
def test_every_format_as_one_by_one(vectors: Path, format: str) -> None:
    paths = sorted(path for path in (vectors / format).glob("*.bin") if path.stat().st_size)[:12]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
        alone = [seglake.open(path, format=format, on_damage="skip").to_table() for path in paths]
        scan = seglake.scan(paths, format=format, on_damage="skip", threads=4)
        assert scan.to_table() == pa.concat_tables(alone)
        assert scan.count_rows() == sum(table.num_rows for table in alone)
    damaged = [(str(path), *span) for path in paths for span in seglake.verify(path, format=format).damage]
    assert [tuple(each) for each in scan.find_damage()] == damaged


def test_large_files_are_read_by_all_threads(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seglake.read.scan._LARGE_BYTES", (logs / "0.chunks").stat().st_size - 1)
    assert seglake.scan(logs, threads=3).count_rows() == FILES * ROWS
    assert seglake.scan(logs, threads=3).to_table() == seglake.scan(logs, threads=1).to_table()


def test_small_files_are_read_by_one_thread(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []
    whole = seglake.scan(logs, threads=3).to_table()

    def counted(things: Any, results: Any, threads: int) -> Any:
        used.append(threads)
        return in_order(things, results, threads)

    monkeypatch.setattr("seglake.read.scan.in_order", counted)
    assert seglake.scan(logs, threads=3).to_table() == whole
    monkeypatch.setattr("seglake.read.scan.SMALL_BYTES", 1 << 20)
    assert seglake.scan(logs, threads=3).to_table() == whole
    filesystem = SubTreeFileSystem(str(logs.parent), LocalFileSystem())
    assert seglake.scan("logs", threads=3, filesystem=filesystem).count_rows()
    assert used == [3, 1, 3]


def test_polars(logs: Path) -> None:
    frame = seglake.scan(logs, include_file_paths="file").to_polars()
    assert isinstance(frame, pl.LazyFrame)
    assert frame.select(pl.len()).collect().item() == FILES * ROWS
    assert frame.head(3).collect()["offset"].to_list() == [0, 1, 2]
    moment = START + timedelta(seconds=150)
    found = frame.filter(pl.col("timestamp") < moment, pl.col("offset") > 140).select("value", "file").collect()
    assert found["value"].to_list() == [b"%d" % number for number in range(141, 150)]
    # What is not understood, and what is asked of a column that is not of the format, polars answers.
    odd = frame.filter((pl.col("offset") % 7 == 0) | (pl.col("offset") < 2), pl.col("file").str.ends_with("/1.chunks"))
    assert odd.select("offset").collect()["offset"].to_list() == [n for n in range(ROWS, 2 * ROWS) if n % 7 == 0]


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        (pl.col("offset") >= 5, [("offset", ">=", 5)]),
        (pl.lit(5) >= pl.col("offset"), [("offset", "<=", 5)]),
        ((pl.col("offset") == 5) & (pl.col("type") == "a"), [("type", "==", "a"), ("offset", "==", 5)]),
        (pl.col("timestamp") > START, [("timestamp", ">", int(START.timestamp()) * 1_000_000)]),
        ((pl.col("offset") > 5) & (pl.col("value").bin.size() > 3), [("offset", ">", 5)]),
        ((pl.col("offset") > 5) | (pl.col("offset") < 3), []),
        (~(pl.col("offset") > 5), []),
        (pl.col("type") < "a", []),
        (pl.col("offset") > pl.col("timestamp").dt.epoch(), []),
        (pl.col("offset").map_batches(lambda numbers: numbers > 5, return_dtype=pl.Boolean), []),
    ],
)
def test_conditions_of_polars(predicate: pl.Expr, found: list[object]) -> None:
    assert conditions(predicate, {"offset": "int64", "timestamp": "timestamp", "type": "text"}) == found


class Room:
    """A semaphore that counts the threads that wait for any of its kind and were not let go on."""

    changed = threading.Condition()
    waiting = 0

    def __init__(self, value: int) -> None:
        self.value = value
        self.let_go = 0

    def acquire(self) -> None:
        with self.changed:
            self.value -= 1
            if self.value >= 0:
                return
            Room.waiting += 1
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.let_go)
            self.let_go -= 1

    def release(self) -> None:
        with self.changed:
            self.value += 1
            if self.value <= 0:
                self.let_go += 1
                Room.waiting -= 1
                self.changed.notify_all()


# Six things are begun at most. Of one, two results wait beside the one that is made and the one that was taken.
@pytest.mark.parametrize(("each", "most_begun", "most_made"), [(1, 6, 6), (10, 3, 3 * 3 + 1)])
def test_work_in_order_is_bounded_and_ends(
    each: int, most_begun: int, most_made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    made: list[tuple[int, int]] = []

    def results(thing: int) -> Iterator[int]:
        begun.append(thing)
        for number in range(each):
            made.append((thing, number))
            yield number

    monkeypatch.setattr(threading, "Semaphore", Room)
    monkeypatch.setattr(Room, "waiting", 0)
    work = in_order(range(100), results, 3)
    assert not begun
    assert next(work) == (0, 0)
    with Room.changed:
        assert Room.changed.wait_for(lambda: Room.waiting == 3, timeout=60)
    assert (len(begun), len(made)) == (most_begun, most_made)
    work.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "seglake"]


def test_work_in_order_of_random_lengths() -> None:
    draw = random.Random(5)
    lengths = [draw.randrange(6) for _ in range(300)]

    def results(thing: int) -> Iterator[int]:
        if draw.random() < 0.05:
            time.sleep(0.002)
        yield from range(lengths[thing])

    expected = [(thing, number) for thing, length in enumerate(lengths) for number in range(length)]
    for threads in (1, 2, 7):
        assert list(in_order(range(300), results, threads)) == expected


@pytest.mark.parametrize("threads", [1, 4])
def test_errors_of_work_in_order_are_raised_in_their_place(threads: int) -> None:
    def things() -> Iterator[int]:
        yield from range(5)
        raise KeyError("things")

    def results(thing: int) -> Iterator[int]:
        yield 0
        if thing == 3:
            raise RuntimeError("result")

    seen: list[tuple[int, int]] = []
    with pytest.raises(RuntimeError, match="result"):
        for each in in_order(range(9), results, threads):
            seen.append(each)
    assert seen == [(0, 0), (1, 0), (2, 0), (3, 0)]
    seen.clear()
    for each in (work := in_order(things(), lambda thing: [thing], threads)):
        seen.append(each)
        if len(seen) == 5:
            break
    with pytest.raises(KeyError, match="things"):
        next(work)
    assert seen == [(number, number) for number in range(5)]


def test_a_scan_that_is_dropped_ends_its_threads(logs: Path) -> None:
    batches = seglake.scan(logs, threads=4).batches(10)
    next(batches)
    del batches
    gc.collect()
    assert not [thread for thread in threading.enumerate() if thread.name == "seglake"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="which files are open is asked of /proc")
def test_no_file_stays_open(logs: Path) -> None:
    def open_files() -> list[str]:
        links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        return [str(link.readlink()) for link in links if link.is_symlink()]

    for _ in range(5):
        seglake.scan(logs, threads=3).to_table()
        list(seglake.scan(logs, threads=3).find_damage())
    assert not [path for path in open_files() if path.endswith(".chunks")]
