"""Files that commands and functions write whole: like other new files, made anew, and never through a link."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from cli_process import here
from cli_samples import sample

import seglake
from seglake.write.new_file import new_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions and links are of another kind there")

EXISTS: dict[bool, Any] = {False: "error", True: "overwrite"}
# Each writes `new` from what is in `folder`.
WRITERS: dict[str, Callable[[Path, Path, bool], object]] = {
    "convert": lambda folder, new, overwrite: seglake.convert(
        folder / "sample.active", new, to="sealed", if_exists=EXISTS[overwrite]
    ),
    "convert to chunked": lambda folder, new, overwrite: seglake.convert(
        folder / "sample.active", new, to="chunked", drop=["uuid", "type"], if_exists=EXISTS[overwrite]
    ),
    "convert to tenant": lambda folder, new, overwrite: seglake.convert(
        folder / "sample.tenant", new, to="tenant", if_exists=EXISTS[overwrite]
    ),
    "recover": lambda folder, new, overwrite: seglake.recover(folder / "damaged", new, if_exists=EXISTS[overwrite]),
    "seal": lambda folder, new, overwrite: seglake.seal(folder / "sample.active", new, if_exists=EXISTS[overwrite]),
    "index": lambda folder, new, overwrite: seglake.index(folder / "sample.chunks", new, if_exists=EXISTS[overwrite]),
    "create sealed": lambda folder, new, overwrite: seglake.create(
        new, format="sealed", if_exists=EXISTS[overwrite]
    ).close(),
    "create tenant": lambda folder, new, overwrite: seglake.create(
        new, format="tenant", if_exists=EXISTS[overwrite]
    ).close(),
}
# How the names of what is written along with `new` end.
BESIDE = {"convert to chunked": ".index", "recover": ".quarantine.manifest.jsonl"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for format in ("active", "tenant", "chunked"):
        sample(tmp_path, format)
    content = (tmp_path / "sample.active").read_bytes()
    (tmp_path / "damaged").write_bytes(content[:-1])
    return tmp_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def extract(folder: Path, new: Path, *more: str) -> int:
    return here("extract", folder / "sample.active", "--range", "0:9", new, *more).status


@pytest.fixture(params=[0o027, 0o077], ids=oct)
def expected(request: pytest.FixtureRequest) -> Iterator[int]:
    """The permissions that new files have."""
    before = os.umask(request.param)
    try:
        yield 0o666 & ~request.param
    finally:
        os.umask(before)


@pytest.mark.parametrize("writer", WRITERS)
def test_their_permissions_are_those_of_other_new_files(writer: str, folder: Path, expected: int) -> None:
    before = set(folder.iterdir())
    WRITERS[writer](folder, folder / "new", False)
    new = sorted(set(folder.iterdir()) - before)
    assert folder / "new" in new
    assert [mode(path) for path in new] == [expected] * len(new)
    assert [path for path in folder.iterdir() if path.name.startswith(".")] == []


def test_so_are_those_of_a_log(tmp_path: Path, expected: int) -> None:
    path = tmp_path / "log"
    with seglake.SegmentLog(path) as log:
        log.write(type="a", value=b"1")
        log.roll()
        log.write(type="a", value=b"2")
        log.wait_sealed()
    [newest] = path.glob("*.active")
    mark = (path / "_mark").read_bytes()
    with seglake.SegmentLog(path) as log:
        for _ in range(3):
            log.write(type="a", value=b"3")
    (path / "_mark").write_bytes(mark)
    synced = seglake.SegmentLog(path, readonly=True).synced
    assert synced is not None
    with newest.open("r+b") as file:  # damage before sound records: the segment is frozen
        file.seek(synced.byte_offset + 30)
        file.write(b"\xff")
    with seglake.SegmentLog(path) as log:
        log.write(type="a", value=b"4")
    [torn] = [file for file in path.glob("*.active") if file != newest]
    end = seglake.SegmentLog(path, readonly=True).synced
    assert end is not None
    content = torn.read_bytes()[: end.byte_offset]
    torn.write_bytes(content + uuid.UUID("ffffffff-ffff-6fff-bfff-ffffffffffff").bytes)
    with seglake.SegmentLog(path) as log:
        assert [step.kind for step in log.recovered][:1] == ["torn_tail"]
    assert {".active", ".sealed", ".frozen", ".quarantine"} <= {file.suffix for file in path.iterdir()}
    assert [file for file in path.iterdir() if mode(file) != expected] == []
    seglake.SegmentLog(path, readonly=True).snapshot(tmp_path / "taken")
    assert {mode(file) for file in (tmp_path / "taken").iterdir()} == {expected}
    (tmp_path / "plain").mkdir()
    assert len({mode(tmp_path / name) for name in ("log", "taken", "plain")}) == 1


def test_and_those_of_tables(folder: Path, tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        seglake.ingest(folder / "sample.active", tmp_path / "lake")
    finally:
        os.umask(before)
    found = [tmp_path / "lake", *(tmp_path / "lake").rglob("*")]
    assert {mode(path) for path in found if path.is_file()} == {0o664}
    assert {mode(path) for path in found if path.is_dir()} == {0o775}


def test_and_those_of_exported_and_extracted_files(folder: Path, expected: int) -> None:
    seglake.export(seglake.scan(folder / "sample.active"), folder / "new.parquet")
    assert extract(folder, folder / "new") == 0
    assert [mode(folder / name) for name in ("new", "new.parquet")] == [expected] * 2


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o644], ids=oct)
def test_those_of_a_sidecar_and_of_what_is_kept_are_those_of_the_file(permissions: int, folder: Path) -> None:
    before = os.umask(0o022)
    try:
        file, copy = folder / "sample.active", folder / "copy"
        file.chmod(permissions)
        seglake.protect(file)
        sidecar = Path(f"{file}.par")
        content, covering = file.read_bytes(), sidecar.read_bytes()
        assert mode(sidecar) == permissions

        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        seglake.repair(file, destination=copy)
        assert {mode(path) for path in (copy, Path(f"{copy}.par"))} == {permissions}
        sidecar.write_bytes(b"?" * 9 + covering)  # to be written anew
        seglake.repair(file)
        kept = [Path(f"{path}.damaged") for path in (file, sidecar)]
        assert [mode(path) for path in (file, sidecar, *kept)] == [permissions] * 4

        file.write_bytes(content)
        seglake.protect(file, as_it_is=True)
        assert mode(sidecar) == permissions
        assert [path for path in folder.iterdir() if path.name.startswith(".")] == []
    finally:
        os.umask(before)


def test_a_log_gives_a_sidecar_those_of_its_segment(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with seglake.SegmentLog(path) as log:
        log.write(type="a", value=b"1")
        log.roll()
    [sealed] = path.glob("*.sealed")
    sealed.chmod(0o600)
    seglake.SegmentLog(path, protect="128+8").close()
    assert mode(Path(f"{sealed}.par")) == 0o600


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root gives files away")
def test_a_sidecar_that_root_makes_belongs_to_who_has_the_file(folder: Path) -> None:
    file = folder / "sample.active"
    os.chown(file, 12345, 54321)
    file.chmod(0o640)
    found = Path(seglake.protect(file).sidecar).stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12345, 54321, 0o640)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize(("permissions", "expected"), [(0o640, 0o600), (0o644, 0o644), (0o604, 0o600), (0o600, 0o600)])
def test_a_sidecar_of_another_group_may_be_read_by_no_more(permissions: int, expected: int) -> None:
    with TemporaryDirectory() as own:
        Path(own).chmod(0o777)
        file = sample(Path(own), "active")
        os.chown(file, 65534, 54321)
        file.chmod(permissions)
        os.seteuid(65534)
        try:
            sidecar = Path(seglake.protect(file).sidecar)
        finally:
            os.seteuid(0)
        assert sidecar.stat().st_gid != 54321
        assert mode(sidecar) == expected


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_in_their_place_is_not_followed(writer: str, dangling: bool, folder: Path) -> None:
    victim = folder / "victim"
    if not dangling:
        victim.write_bytes(b"of somebody else")
    new = folder / "new"
    new.symlink_to(victim)
    with pytest.raises(FileExistsError):
        WRITERS[writer](folder, new, False)
    assert new.is_symlink()
    # Asked to replace what is there, it replaces the link.
    WRITERS[writer](folder, new, True)
    assert not new.is_symlink()
    assert new.is_file()
    assert victim.exists() != dangling
    assert dangling or victim.read_bytes() == b"of somebody else"


@pytest.mark.parametrize("writer", WRITERS)
def test_their_names_may_be_as_long_as_names_are(writer: str, folder: Path) -> None:
    new = folder / ("n" * (255 - len(BESIDE.get(writer, ""))))
    WRITERS[writer](folder, new, False)
    assert new.is_file()
    assert [path for path in folder.iterdir() if path.name.startswith(".")] == []


def test_what_belongs_to_a_long_name_is_refused_before_anything_is_written(folder: Path) -> None:
    """A sidecar, a damaged file or a quarantine whose name would be too long."""
    long, shorter = (folder / ("n" * length) for length in (255, 250))
    for path in (long, shorter):
        shutil.copy(folder / "sample.active", path)
    seglake.protect(shorter)
    content = bytearray(shorter.read_bytes())
    content[len(content) // 2] ^= 1
    shorter.write_bytes(content)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for work in (
        lambda: seglake.protect(long, format="active"),
        lambda: seglake.repair(shorter, format="active"),
        lambda: seglake.recover(folder / "damaged", folder / ("m" * 250)),
    ):
        with pytest.raises(OSError, match="File name too long"):
            work()
        assert {path: path.read_bytes() for path in folder.iterdir()} == before
    seglake.repair(shorter, destination=folder / ("m" * 240), format="active")
    assert (folder / ("m" * 240)).read_bytes() == (folder / "sample.active").read_bytes()


def test_the_name_of_a_snapshot_may_be_as_long_as_names_are(tmp_path: Path) -> None:
    with seglake.SegmentLog(tmp_path / "log") as log:
        log.write("t", b"")
        log.snapshot(tmp_path / ("n" * 255))
    assert seglake.scan(tmp_path / ("n" * 255)).count_rows() == 1


@pytest.mark.parametrize("writer", sorted(set(WRITERS) - {"index"}))
def test_that_a_file_exists_is_said_with_what_replaces_it(writer: str, folder: Path) -> None:
    (folder / "new").write_bytes(b"old")
    said = 'if_exists="overwrite" replaces it'
    with pytest.raises(FileExistsError, match=said):
        WRITERS[writer](folder, folder / "new", False)


def test_an_interruption_leaves_nothing_however_early_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the moment in which the file was made, and before anybody was told."""
    created = os.open

    def interrupted(path: Any, flags: int, *mode: int, **more: Any) -> int:
        descriptor = created(path, flags, *mode, **more)
        if not flags & os.O_EXCL:
            return descriptor
        os.close(descriptor)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt), new_file(str(tmp_path / "new"), replace=False):
        pass
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_taken_stays_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["0", "1"])
    monkeypatch.setattr(secrets, "token_hex", lambda _: next(names))
    (tmp_path / ".new.0.tmp").write_bytes(b"of another")
    with new_file(str(tmp_path / "new"), replace=False) as file:
        file.write(b"x")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {".new.0.tmp": b"of another", "new": b"x"}


def test_what_extract_writes_is_no_different(folder: Path) -> None:
    assert extract(folder, folder / "new") == 0
    assert extract(folder, folder / ("n" * 255)) == 0
    victim, link = folder / "victim", folder / "link"
    link.symlink_to(victim)
    assert extract(folder, link) == 2
    assert not victim.exists()
    assert extract(folder, link, "--overwrite") == 0
    assert not link.is_symlink()
    assert not victim.exists()
    assert [path for path in folder.iterdir() if path.name.startswith(".")] == []


def test_nor_is_a_quarantine(folder: Path) -> None:
    recovered = seglake.recover(folder / "damaged", folder / "new")
    assert recovered.quarantine is not None
    assert recovered.manifest is not None
    places = [Path(recovered.quarantine), Path(recovered.manifest)]
    for place in places:
        place.unlink()
        place.symlink_to(folder / "victim")
        with pytest.raises(FileExistsError):
            seglake.recover(folder / "damaged", folder / "another", quarantine=recovered.quarantine)
        seglake.recover(folder / "damaged", folder / "another", quarantine=recovered.quarantine, if_exists="overwrite")
        assert not place.is_symlink()
        assert not (folder / "victim").exists()
        (folder / "another").unlink()


def test_a_log_that_is_begun_does_not_follow_a_link(folder: Path) -> None:
    link = folder / "new.active"
    link.symlink_to(folder / "victim")
    with pytest.raises(FileExistsError):
        seglake.create(link, format="active")
    assert not (folder / "victim").exists()


REWRITERS: dict[str, Callable[[Path, Path], object]] = {
    "convert": lambda source, new: seglake.convert(
        seglake.open(source, on_damage="skip"), new, to="active", if_exists="overwrite"
    ),
    "seal": lambda source, new: seglake.seal(source, new, on_damage="skip", if_exists="overwrite"),
    "recover": lambda source, new: seglake.recover(source, new, if_exists="overwrite"),
    "export": lambda source, new: seglake.export(
        seglake.scan(source, on_damage="skip"), new, to="parquet", if_exists="overwrite"
    ),
}


@pytest.mark.parametrize("link", ["itself", "symbolic", "hard", "folder"])
@pytest.mark.parametrize("writer", [*REWRITERS, "index"])
def test_what_is_read_is_not_replaced(writer: str, link: str, folder: Path) -> None:
    source = folder / ("sample.chunks" if writer == "index" else "damaged")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    target = folder / "target"
    if link == "itself":
        target = source
    elif link == "symbolic":
        target.symlink_to(source)
    elif link == "hard":
        target.hardlink_to(source)
    else:
        target.symlink_to(folder)
        target /= source.name
    with pytest.raises(ValueError, match=r"name another|is among"):
        if writer == "index":
            seglake.index(source, target, if_exists="overwrite")
        else:
            REWRITERS[writer](source, target)
    assert {path: path.read_bytes() for path in before} == before
    assert set(folder.iterdir()) - set(before) <= {folder / "target"}


@pytest.mark.parametrize("format", ["active", "sealed", "tenant", "chunked", "oplog", "tfrecord"])
def test_what_is_not_a_file_is_refused_when_it_is_opened(format: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    how: Any = "overwrite" if format in ("sealed", "tenant") else "append"
    for name in ("pipe", "folder", "link"):
        with pytest.raises(OSError, match=r"not a regular file|[Ii]s a directory"):
            seglake.create(tmp_path / name, format=format, if_exists=how)
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "folder", "link"}
