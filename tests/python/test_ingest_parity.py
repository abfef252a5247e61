"""The ingest of files that have parity sidecars."""

import shutil
from pathlib import Path

import pytest
from segments import flip, write_segment
from test_ingest_again import Folder

import seglake
from seglake.exceptions import IngestError


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def damaged(folder: Folder, *, protect: bool = True) -> Path:
    """Writes a segment of 60 records, and damages one after it was protected."""
    path = folder.logs / "a.active"
    written = write_segment(path, 60)
    if protect:
        seglake.protect(path)
    flip(path, written[7].end - 9)
    return path


def test_what_a_sidecar_restores_is_ingested_and_its_damage_listed(folder: Folder) -> None:
    damaged(folder)
    result = folder.run()
    assert (result.records, result.repaired_records, result.statuses["damaged"]) == (60, 1, 1)
    assert {row["kind"] for row in folder.rows("damage")} == {"repaired"}
    assert folder.run().records == 0


def test_it_may_be_left_out(folder: Folder) -> None:
    damaged(folder)
    result = folder.run(on_damage="skip")
    assert (result.records, result.repaired_records) == (59, 0)
    result = folder.run(sidecar=None)
    assert result.records == 0


def test_a_sidecar_that_comes_later_brings_what_was_missing(folder: Folder) -> None:
    path = damaged(folder)
    sidecar = path.with_name("a.active.par")
    sidecar.rename(folder.logs.parent / "kept")
    assert folder.run().records == 59
    (folder.logs.parent / "kept").rename(sidecar)
    assert (folder.run().records, folder.damage_now()) == (1, 1)


def test_a_repaired_file_is_sound_and_adds_nothing(folder: Folder) -> None:
    path = damaged(folder)
    assert folder.run().records == 60
    seglake.repair(path)
    path.with_name("a.active.damaged").unlink()
    result = folder.run()
    assert (result.records, folder.damage_now(), folder.now()) == (0, 0, {"a.active": "sound"})


def test_a_file_that_grows_behind_its_sidecar(folder: Folder, tmp_path: Path) -> None:
    path = folder.logs / "a.active"
    write_segment(tmp_path / "whole.active", 90)
    content = (tmp_path / "whole.active").read_bytes()
    with seglake.open(tmp_path / "whole.active") as reader:
        ends = [record.position for record in reader]
    path.write_bytes(content[: ends[60]])
    seglake.protect(path)
    assert folder.run().records == 60
    path.write_bytes(content)
    assert folder.run().records == 30


def test_a_sidecar_elsewhere_is_named_for_one_file(folder: Folder, tmp_path: Path) -> None:
    path = damaged(folder)
    shutil.move(path.with_name("a.active.par"), tmp_path / "else.par")
    assert folder.run(sidecar=tmp_path / "else.par").records == 60
    write_segment(folder.logs / "b.active", 3)
    with pytest.raises(IngestError, match=r"else\.par: expected one file .* found 2 in the sources"):
        folder.run(sidecar=tmp_path / "else.par")
    (tmp_path / "empty.par").write_bytes(bytes(100))
    with pytest.raises(IngestError, match=r"empty\.par: expected the parity sidecar of .*, found a file without any"):
        seglake.ingest(path, folder.lake, sidecar=tmp_path / "empty.par")


def test_a_sidecar_of_another_file_is_said_to_be_ignored(folder: Folder) -> None:
    path = damaged(folder)
    other = folder.logs / "other"
    write_segment(other, 5)
    seglake.protect(other, format="active")
    shutil.move(folder.logs / "other.par", path.with_name("a.active.par"))
    other.unlink()
    result = folder.run()
    assert [Path(name).name for name, _ in result.refused_sidecars] == ["a.active"]
    assert (result.records, result.ok) == (59, False)
