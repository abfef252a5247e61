"""What may go wrong around a stream of files: listings, states and checkpoints that are not as they should be."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import seglake

pytest.importorskip("seglake.spark.stream.reader", reason="streams need PySpark 4.2")

from stream_query import Query
from stream_segment import Segment


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


def stream(folder: Path, pattern: str = "", **options: str) -> Query:
    own = {"stateLocation": str(folder.parent / "states"), "segmentFormat": "active", **options}
    return Query(f"{folder}{pattern}", **own)


@pytest.mark.parametrize("pattern", ["", "/", "/*/", "/*/*.active"])
def test_a_listing_that_fails_half_way_is_an_error(folder: Path, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its files would be forgotten, and read once more when they are there again."""
    listed = os.scandir

    def scandir(path: Any = ".") -> Any:
        if not isinstance(path, int) and Path(path) == folder / "b":
            raise OSError(errno.EIO, "Input/output error", path)
        return listed(path)

    for name in "ab":
        (folder / name).mkdir()
    segments = [Segment(folder / name / f"{name}.active") for name in "ab"]
    query = stream(
        folder, pattern, minStatesToRetain="2", **({} if "*.a" in pattern else {"recursiveFileLookup": "true"})
    )
    rows = [*segments[0].grow(1), *segments[1].grow(1)]
    assert sorted(query.batch()) == rows
    for _ in range(4):
        with monkeypatch.context() as patch:
            patch.setattr(os, "scandir", scandir)
            row = segments[0].grow(1)
            with pytest.raises(OSError, match="Input/output error"):
                query.batch()
        assert query.batch() == row


def test_a_folder_that_goes_while_it_is_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = os.scandir

    def scandir(path: Any = ".") -> Any:
        if not isinstance(path, int) and Path(path) == folder / "b":
            shutil.rmtree(path, ignore_errors=True)
        return listed(path)

    for name in "ab":
        (folder / name).mkdir()
    rows = Segment(folder / "a" / "a.active").grow(2)
    Segment(folder / "b" / "b.active").grow(2)
    query = stream(folder, recursiveFileLookup="true")
    monkeypatch.setattr(os, "scandir", scandir)
    assert query.batch() == rows


def test_a_full_disk_of_states(folder: Path, small_disk: Path) -> None:
    segments = [Segment(folder / f"{number}.active") for number in range(20)]
    query = stream(folder, stateLocation=str(small_disk / "states"))
    segments[0].grow(1)
    query.batch()
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(100))
    rows = sorted(row for segment in segments for row in segment.grow(3))
    before = sorted(small_disk.rglob("*"))
    for _ in range(2):
        with pytest.raises(OSError, match=r"No space left on device.*/_log/0+2\.json"):
            query.batch()
        assert sorted(small_disk.rglob("*")) == before
    filler.unlink()
    assert sorted(query.batch()) == rows
    assert query.batch() == []


def test_a_copy_of_states_and_checkpoint_goes_its_own_way(folder: Path, tmp_path: Path) -> None:
    a = Segment(folder / "a.active")
    rows = a.grow(2)
    query = stream(folder, minStatesToRetain="2")
    query.batch()
    shutil.copytree(tmp_path / "states", tmp_path / "copy")
    copy = stream(folder, stateLocation=str(tmp_path / "copy"), minStatesToRetain="2")
    copy.offsets, copy.rows = [*query.offsets], [*query.rows]
    for step in range(8):
        rows += a.grow(1)
        query.batch()
        if step % 3 == 2:
            copy.batch()
            copy.restart()
    copy.batch()
    assert query.rows == copy.rows == rows


def test_an_older_checkpoint_is_gone_on_from(folder: Path) -> None:
    """The batches that were planned after it come once more, as they were."""
    segments = [Segment(folder / f"{name}.active") for name in "ab"]
    query = stream(folder, minStatesToRetain="6")
    rows: list[str] = []
    kept: list[tuple[list[str], list[str]]] = []
    for step in range(20):
        kept.append(([*query.offsets], [*query.rows]))
        rows += segments[step % 2].grow(1)
        query.batch()
        if step % 3 == 2:
            offsets, read = kept[-3]
            query.offsets, query.rows = [*offsets], [*read]
            query.restart()
            while query.batch():
                pass
            kept = kept[:-2]
        assert sorted(query.rows) == sorted(rows)


def test_files_that_are_not_finished_keep_no_other_waiting(folder: Path) -> None:
    count = 300
    for number in range(count):
        path = folder / f"{number:03}.active"
        Segment(path).grow(1)
        with path.open("ab") as file:
            file.write(b"\0\0")
    query = stream(folder, maxFilesPerTrigger="100")
    assert [len(query.batch()) for _ in range(4)] == [100, 100, 100, 0]
    segments = [Segment(folder / f"later-{number}.active") for number in range(3)]
    for _ in range(3):
        for number in range(count):
            os.utime(folder / f"{number:03}.active")
        rows = sorted(row for segment in segments for row in segment.grow(1))
        assert sorted(query.batch()) == rows


@pytest.mark.parametrize("name", [b"\xff.active", b"a\nb.active", b"\xed\xa0\x80.active", "\u2028.active".encode()])
def test_names_that_are_no_text(folder: Path, name: bytes) -> None:
    a = Segment(Path(os.fsdecode(os.fsencode(folder) + b"/" + name)), "a")
    rows = a.grow(2)
    query = stream(folder)
    assert query.batch() == rows
    query.restart()
    rows = a.grow(1)
    assert query.plan()
    query.restart()
    assert query.read() == rows
    a.path = a.path.rename(a.path.with_name(f"n{a.path.name}"))
    assert query.batch() == []
    a.grow(1)
    assert query.plan()
    a.path.unlink()
    with pytest.raises(FileNotFoundError) as gone:
        query.read()
    Segment(a.path, "b").grow(9)
    with pytest.raises(seglake.exceptions.ReplacedError) as replaced:
        query.read()
    for error in (gone, replaced):
        str(error.value).encode()  # Spark sends it so


@pytest.mark.parametrize("options", [{}, {"until": "2200-01-01T00:00:00Z"}, {"until": "2000-01-01T00:00:00Z"}])
def test_a_file_that_is_replaced_between_two_looks_of_a_task(
    folder: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task proves that a file has what was planned, and opens it again to read it."""
    a = Segment(folder / "a.active")
    a.grow(3)
    query = stream(folder, **options)
    assert query.plan()
    Segment(folder.parent / "b.active", "b").grow(9)
    resume = seglake.incremental.resume

    def replace(source: Any, position: Any, **more: Any) -> Any:
        if position is None and (folder.parent / "b.active").exists():
            (folder.parent / "b.active").replace(a.path)
        return resume(source, position, **more)

    monkeypatch.setattr(seglake.incremental, "resume", replace)
    with pytest.raises(seglake.exceptions.ReplacedError, match=r"a\.active"):
        query.read()
