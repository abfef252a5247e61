"""Writing: what is accepted, what is refused, and that nothing refused leaves a trace."""

import gc
import gzip
import json
import re
import subprocess
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_samples import fields, sample

import seglake


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "written.active"


def contents(path: Path) -> list[tuple[bytes, bytes]]:
    return [(record.type_bytes, record.value) for record in seglake.open(path)]


def test_fields_mappings_and_records(path: Path, tmp_path: Path) -> None:
    with seglake.create(path, format="active") as writer:
        first = writer.write(type="text", value="grün")
        writer.write(type=b"\xff\\", value=bytearray(b"\x00\x01"))
        writer.write({"type": "mapping", "value": memoryview(b"view")})
        assert first < writer.last
    expected = [(b"text", "grün".encode()), (b"\xff\\", b"\x00\x01"), (b"mapping", b"view")]
    assert contents(path) == expected
    copy = tmp_path / "copy.active"
    with seglake.create(copy, format="active") as writer:
        for record in seglake.open(path):
            writer.write(record)
    assert copy.read_bytes() == path.read_bytes()
    copy.unlink()
    with seglake.create(copy, format="active") as writer:
        for record in seglake.open(path):
            writer.write(record.to_dict())
    assert copy.read_bytes() == path.read_bytes()


def test_types_as_text_are_taken_as_they_are_shown(path: Path) -> None:
    with seglake.create(path, format="active") as writer:
        writer.write(type=r"a\xffb\x5c", value="")
        with pytest.raises(ValueError, match="backslash"):
            writer.write(type="C:\\temp", value="")
    assert contents(path) == [(b"a\xffb\\", b"")]
    assert next(iter(seglake.open(path))).type == r"a\xffb\x5c"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"type": "t"}, ValueError),
        ({"value": "v"}, ValueError),
        ({"type": 5, "value": "v"}, TypeError),
        ({"type": "t", "value": 5}, TypeError),
        ({"type": "t", "value": "v", "uuid": "1ee"}, ValueError),
        ({"type": "t", "value": "v", "uuid": uuid.uuid4()}, ValueError),
        ({"type": "t", "value": "v", "uuid": seglake.uuid6(datetime(2000, 1, 1, tzinfo=UTC))}, ValueError),
        ({"type": "t" * 256, "value": "v"}, ValueError),
    ],
)
def test_what_is_refused_leaves_no_trace(path: Path, fields: dict[str, Any], error: type[Exception]) -> None:
    with seglake.create(path, format="active") as writer:
        writer.write(type="t", value="before")
        position = writer.position
        with pytest.raises(error):
            writer.write(**fields)
        assert writer.position == position
        writer.write(type="t", value="behind")
    assert [value for _, value in contents(path)] == [b"before", b"behind"]


@pytest.mark.parametrize("kind", ["pyarrow", "batch", "polars", "large", "view", "text uuids", "no uuids"])
def test_arrow(path: Path, kind: str) -> None:
    uuids = [seglake.uuid6() for _ in range(3)]
    table = pa.table(
        {
            "uuid": pa.array([value.bytes for value in uuids], pa.binary(16)),
            "type": ["a", "b", r"\xff"],
            "value": [b"1", b"2", b"3"],
        }
    )
    data: Any = table
    if kind == "batch":
        data = table.to_batches()[0]
    elif kind == "polars":
        data = pytest.importorskip("polars").DataFrame(table)
    elif kind in {"large", "view"}:
        types = {"large": ("large_binary", "large_string"), "view": ("binary_view", "string_view")}[kind]
        binary, string = (getattr(pa, name)() for name in types)
        data = table.cast(pa.schema({"uuid": pa.binary(16), "type": string, "value": binary}))
    elif kind == "text uuids":
        data = table.set_column(0, "uuid", pa.array([str(value) for value in uuids]))
    elif kind == "no uuids":
        data = table.drop_columns(["uuid"])
    with seglake.create(path, format="active") as writer:
        assert writer.write_batch(data) == 3
    assert contents(path) == [(b"a", b"1"), (b"b", b"2"), (b"\xff", b"3")]
    if kind != "no uuids":
        assert [record.uuid for record in seglake.open(path)] == uuids


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"type": ["a"], "value": [b""], "extra": [1]}, "extra"),
        ({"type": ["a"]}, "value is missing"),
        ({"type": ["a", None], "value": [b"", b""]}, "type is missing"),
        ({"type": ["a"], "value": [5]}, "cast it"),
        ({"type": ["a"], "value": [b""], "uuid": [b"short"]}, "uuid has 5 bytes"),
        ({"type": ["a"], "value": [b""], "timestamp": [datetime(1000, 1, 1, tzinfo=UTC)]}, "gives no UUID"),
    ],
)
def test_arrow_that_is_refused(path: Path, columns: dict[str, list[Any]], said: str) -> None:
    with seglake.create(path, format="active") as writer, pytest.raises(ValueError, match=said):
        writer.write_batch(pa.table(columns))


def test_arrow_of_something_else(path: Path) -> None:
    with seglake.create(path, format="active") as writer:
        with pytest.raises(seglake.exceptions.RowError, match="row 0: a record is a Record, a mapping, or a tuple"):
            writer.write_batch([1, 2])  # pyright: ignore[reportArgumentType]
        with pytest.raises(TypeError):
            writer.write_batch(5)  # pyright: ignore[reportArgumentType]
        with pytest.raises((TypeError, ValueError)):
            writer.write_batch(pa.array([1, 2]))


def test_appending_and_torn_tails(path: Path) -> None:
    with seglake.create(path, format="active") as writer:
        writer.write(type="t", value="1")
    with pytest.raises(FileExistsError):
        seglake.create(path, format="active")
    with seglake.create(path, format="active", if_exists="append") as writer:
        assert writer.found is not None
        assert writer.found.records == 1
        writer.write(type="t", value="2")
    path.write_bytes(path.read_bytes()[:-3])
    torn = path.read_bytes()
    with pytest.raises(seglake.DamageError) as raised:
        seglake.create(path, format="active", if_exists="append")
    assert raised.value.cause == "length_out_of_bounds"
    assert path.read_bytes() == torn
    with pytest.warns(seglake.exceptions.DamageWarning, match="quarantine"):
        writer = seglake.create(path, format="active", if_exists="append", zero_torn_tail=True)
    with writer:
        assert writer.found is not None
        assert [span.kind for span in writer.found.damage] == ["torn_tail"]
        writer.write(type="t", value="3")
    assert [value for _, value in contents(path)] == [b"1", b"3"]


def other_content(folder: Path) -> dict[str, bytes]:
    """Files that are no segment to append to, or whose end is not one record that was being written."""
    own = folder / "own.active"
    with seglake.create(own, format="active") as writer:
        for number in range(50):
            # No byte of it is a line feed.
            writer.write(type="a", value=b"line\nline\n", uuid=f"1eeaf6a1-0694-6093-9b76-4fee9ae81f{number + 32:02x}")
    active = own.read_bytes()
    with seglake.create(folder / "own.chunks", format="chunked", options={"chunk_records": 20}) as writer:
        for number in range(400):
            writer.write(timestamp=number, value=b"%d " % number * 20)
    chunked = (folder / "own.chunks").read_bytes()
    one = seglake.create(folder / "one.chunks", format="chunked")
    with one:
        for number in range(400):
            one.write(timestamp=number, value=b"%d " % number * 20)
    flipped = bytearray((folder / "one.chunks").read_bytes())
    flipped[60] ^= 4
    with seglake.create(folder / "own.tenant", format="tenant") as writer:
        writer.write(partition=1, tenant="a", value=b"v" * 100)
    pq.write_table(pa.table({"a": range(1000)}), folder / "own.parquet")
    return {
        "text": b"my only copy\n" * 100,
        "PNG": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 4,
        "Parquet": (folder / "own.parquet").read_bytes(),
        "gzip": gzip.compress(active, mtime=0),
        "tenant": (folder / "own.tenant").read_bytes(),
        "byte-swapped": b"".join(active[at : at + 4][::-1] for at in range(0, len(active), 4)),
        "CR LF": active.replace(b"\n", b"\r\n"),
        "shifted chunks": chunked[:1000] + chunked[1003:],
        "a flipped bit": bytes(flipped),
        "a line after it": active + b"hello\n",
        "UTF-16": "some text".encode("utf-16") * 50,
    }


@pytest.mark.parametrize("format", ["active", "chunked", "oplog"])
@pytest.mark.parametrize("link", ["none", "symbolic", "hard"])
def test_nothing_is_cleared_that_is_not_one_unfinished_record(format: str, link: str, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for number, (what, content) in enumerate(other_content(own).items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        file, path = folder / "file", folder / "path"
        file.write_bytes(content)
        if link == "none":
            path = file
        elif link == "symbolic":
            path.symlink_to(file)
        else:
            path.hardlink_to(file)
        with pytest.raises((seglake.DamageError, seglake.FormatError)) as raised:
            seglake.create(path, format=format, if_exists="append", zero_torn_tail=True)
        assert file.read_bytes() == content, what
        assert {path, file} == set(folder.iterdir()), what
        if what in ("text", "PNG", "Parquet", "gzip", "tenant"):
            assert what in str(raised.value), what


@pytest.mark.parametrize("format", ["active", "chunked", "oplog"])
def test_what_is_cleared_is_kept(format: str, tmp_path: Path) -> None:
    path = sample(tmp_path, format)
    whole = path.read_bytes()
    with seglake.open(path) as reader:
        start = list(reader)[-1].position
    cut = start + 5
    path.write_bytes(whole[:cut])
    kept = tmp_path / f"{path.name}.{start}.quarantine"
    warned = pytest.warns(seglake.exceptions.DamageWarning, match="quarantine")
    with warned, seglake.create(path, format=format, if_exists="append", zero_torn_tail=True) as writer:
        writer.write(value=b"more", **fields(format, 0))
    torn = whole[start:cut]
    if format == "active":  # zeros at the end are unused space there, and one in 256 checksums has one
        torn = torn.rstrip(b"\0")
    assert kept.read_bytes() == torn
    assert seglake.verify(path).ok


def test_what_is_taken_from_an_index_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.chunks"
    with seglake.create(path, format="chunked", options={"chunk_records": 1}) as writer:
        places = [writer.position for _ in range(3) if writer.write(timestamp=0, value=b"v" * 200) is not None]
    index = path.with_suffix(".index")
    items = index.read_bytes()
    path.write_bytes(path.read_bytes()[: places[0]])
    kept = tmp_path / "log.index.20.quarantine"
    with pytest.warns(seglake.exceptions.DamageWarning, match=re.escape(str(kept))):
        seglake.create(path, format="chunked", if_exists="append").close()
    assert (index.read_bytes(), kept.read_bytes()) == (items[:20], items[20:])
    with seglake.create(path, format="chunked", if_exists="append"):
        pass  # once


def test_preallocating(path: Path) -> None:
    with seglake.create(path, format="active", options={"preallocate": 10_000}) as writer:
        writer.write(type="t", value="v")
    assert path.stat().st_size == 10_000
    assert seglake.verify(path).ok


def test_an_exception_leaves_a_valid_prefix(path: Path) -> None:
    with pytest.raises(RuntimeError), seglake.create(path, format="active") as writer:
        writer.write(type="t", value="v")
        raise RuntimeError
    assert writer.closed
    assert len(contents(path)) == 1
    with pytest.raises(ValueError, match="closed"):
        writer.write(type="t", value="v")
    writer.close()


def test_a_writer_that_is_dropped_warns_and_loses_nothing(path: Path) -> None:
    writer = seglake.create(path, format="active")
    writer.write(type="t", value="v")
    with pytest.warns(ResourceWarning, match="unclosed"):
        del writer
        gc.collect()
    assert len(contents(path)) == 1


# A program with an open writer, or one that is freed before the end, on a disk that takes no more than 1,000 bytes.
ON_A_FULL_DISK = """
import resource, sys, seglake
path, of_log, is_freed = sys.argv[1], sys.argv[2] == "True", sys.argv[3] == "True"
log = seglake.SegmentLog(path, durability="none") if of_log else None
writer = log or seglake.create(path, format="active")
for _ in range(300):
    log.write("t", bytes(1000)) if log else writer.write(type="t", value=bytes(1000))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
if is_freed:
    del writer, log
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of the size of files")
@pytest.mark.parametrize("is_freed", [False, True])
@pytest.mark.parametrize("of_log", [False, True])
def test_what_an_unclosed_writer_loses_is_said_and_is_the_status(path: Path, of_log: bool, is_freed: bool) -> None:
    words = [sys.executable, "-c", ON_A_FULL_DISK, str(path), str(of_log), str(is_freed)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    said = f"unclosed {'log' if of_log else 'writer of'} {path}: not all that was written to it is kept"
    assert done.returncode == 120
    assert said in done.stderr
    assert "File too large" in done.stderr


# What is called at the end after everything of seglake, and one that writes nothing that is kept.
AT_THE_END = """
import atexit, sys
late = []
atexit.register(lambda: [writer.write(type="t", value="late") for writer in late])
import seglake
late.append(seglake.create(sys.argv[1], format=sys.argv[2]))
late[0].write(type="t", value="early")
"""


def test_what_is_called_at_the_end_may_write(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END, path, "active"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, len(contents(path))) == (0, 2), done.stderr
    whole = path.with_name("whole.sealed")
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END, whole, "sealed"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, whole.exists()) == (120, False)
    assert f"unclosed writer of {whole}: not all that was written to it is kept" in done.stderr


# Children that do not close what they write. A fork has a writer of its parent, too. One has a full disk, and one
# writes in a thread that outlives its main one.
IN_CHILDREN = """
import multiprocessing, sys, threading
from concurrent.futures import ProcessPoolExecutor
import seglake
kept = []
def write(path, most=None):
    kept.append(seglake.create(path, format="active"))
    kept[-1].write(type="t", value=bytes(1000))
    if most:
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
def write_late(path):
    write(path)
    main = threading.main_thread()
    late = lambda: (main.join(0.2), kept[-1].write(type="t", value=b""))
    threading.Thread(target=late).start()
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    write("parent")
    with ProcessPoolExecutor(1, context) as pool:
        pool.submit(write, "pool").result()
    children = [context.Process(target=write, args=args) for args in (("sound",), ("full", 100))]
    children.append(context.Process(target=write_late, args=("late",)))
    for child in children:
        child.start()
        child.join()
    print([child.exitcode for child in children])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of the size of files")
@pytest.mark.parametrize("start", ["fork", "forkserver", "spawn"])
def test_children_write_what_they_do_not_close(tmp_path: Path, start: str) -> None:
    (tmp_path / "main.py").write_text(IN_CHILDREN, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "main.py", start], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "[0, 120, 0]\n"), done.stderr
    assert done.stderr.count("not all that was written to it is kept") == 1
    assert "unclosed writer of full: not all" in done.stderr
    for name in ("parent", "pool", "sound"):
        assert len(contents(tmp_path / name)) == 1, name
    assert len(contents(tmp_path / "late")) == 2


def test_flush_and_sync_make_records_visible(path: Path) -> None:
    with seglake.create(path, format="active") as writer:
        writer.write(type="t", value="1")
        assert path.stat().st_size == 0
        writer.flush()
        assert len(contents(path)) == 1
        writer.write(type="t", value="2")
        writer.sync()
        assert len(contents(path)) == 2


def test_values_out_of_range_are_told_from_values_of_another_type(tmp_path: Path) -> None:
    with seglake.create(tmp_path / "a.active", format="active") as writer:
        for fields in ({"type": "\udcff", "value": b""}, {"type": "t", "value": "\udcff"}):
            with pytest.raises(ValueError, match="is text with half of a surrogate pair, which UTF-8 does not have"):
                writer.write(**fields)
    with seglake.create(tmp_path / "a.chunks", format="chunked") as writer:
        with pytest.raises(ValueError, match=r"timestamp is out of range: 10+ microseconds since 1970"):
            writer.write(timestamp=10**30, value=b"")
        for wrong in (1.5, True, "2024-01-01"):
            with pytest.raises(TypeError, match="timestamp must be an aware datetime or an int of microseconds"):
                writer.write(timestamp=wrong, value=b"")
    with pytest.raises(ValueError, match="timestamp is out of range"):
        seglake.uuid6(10**30)  # pyright: ignore[reportArgumentType]


def test_uuid6() -> None:
    uuids = [seglake.uuid6() for _ in range(1000)]
    assert uuids == sorted(set(uuids))
    assert {(value.version, value.variant) for value in uuids} == {(6, uuid.RFC_4122)}
    time = datetime(1969, 7, 20, 20, 17, 40, 123456, UTC)
    of_time = [seglake.uuid6(time) for _ in range(100)]
    assert of_time == sorted(set(of_time))
    for refused in (datetime(2024, 1, 1), datetime(1500, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)):
        with pytest.raises(ValueError):
            seglake.uuid6(refused)


def test_times_survive(path: Path) -> None:
    times = [datetime(1969, 7, 20, 20, 17, 40, 123456, UTC), datetime(2024, 2, 29, 23, 59, 59, 999999, UTC)]
    with seglake.create(path, format="active") as writer:
        for time in times:
            writer.write(uuid=seglake.uuid6(time), type="t", value=json.dumps(time.isoformat()))
    assert [record.timestamp for record in seglake.open(path)] == times


@pytest.mark.parametrize(
    ("format", "extension", "required"),
    [
        ("active", "active", ["uuid", "type", "value"]),
        ("sealed", "sealed", ["uuid", "type", "value"]),
        ("tenant", "tenant", ["partition", "tenant", "value"]),
        ("chunked", "chunks", ["timestamp", "value"]),
        ("oplog", "oplog", ["version", "checkpointer", "clock", "abi", "batch", "value"]),
    ],
)
def test_a_writer_tells_of_its_format(tmp_path: Path, format: Any, extension: str, required: list[str]) -> None:
    with seglake.create(tmp_path / "new", format=format) as writer:
        assert (writer.extension, writer.required) == (extension, required)


def test_a_refused_row_is_named(path: Path) -> None:
    batches = [pa.record_batch({"type": ["a", "b"], "value": ["", ""]}) for _ in range(2)]
    batches.append(pa.record_batch({"type": ["c", None], "value": ["", ""]}))
    with (
        seglake.create(path, format="active") as writer,
        pytest.raises(seglake.exceptions.RowError, match="row 5: type is missing") as refused,
    ):
        writer.write_batch(pa.Table.from_batches(batches))
    assert refused.value.row == 5
    assert type(refused.value.__cause__) is ValueError
