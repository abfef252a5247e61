"""Files that commands and functions write whole: private to their owner, made anew, and never through a link."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_process import here
from cli_samples import sample

import seglake

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions and links are of another kind there")

EXISTS: dict[bool, Any] = {False: "error", True: "overwrite"}
# Each writes `new` from what is in `folder`.
WRITERS: dict[str, Callable[[Path, Path, bool], object]] = {
    "convert": lambda folder, new, overwrite: seglake.convert(
        folder / "sample.active", new, to="sealed", overwrite=overwrite
    ),
    "convert to chunked": lambda folder, new, overwrite: seglake.convert(
        folder / "sample.active", new, to="chunked", drop=["uuid", "type"], overwrite=overwrite
    ),
    "convert to tenant": lambda folder, new, overwrite: seglake.convert(
        folder / "sample.tenant", new, to="tenant", overwrite=overwrite
    ),
    "recover": lambda folder, new, overwrite: seglake.recover(folder / "damaged", new, overwrite=overwrite),
    "seal": lambda folder, new, overwrite: seglake.seal(folder / "sample.active", new, overwrite=overwrite),
    "index": lambda folder, new, overwrite: seglake.index(folder / "sample.chunks", new, overwrite=overwrite),
    "create sealed": lambda folder, new, overwrite: seglake.create(
        new, format="sealed", if_exists=EXISTS[overwrite]
    ).close(),
    "create tenant": lambda folder, new, overwrite: seglake.create(
        new, format="tenant", if_exists=EXISTS[overwrite]
    ).close(),
}
# How the names of what is written along with `new` end. A log and its index are made in a private folder, which keeps
# them from others until they are complete; then they are like any file.
BESIDE = {"convert to chunked": ".index", "recover": ".quarantine.manifest.jsonl"}
IN_A_FOLDER = {"convert to chunked"}


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
    return here("extract", folder / "sample.active", "--range", "0:9", "--output", new, *more).status


@pytest.mark.parametrize("writer", WRITERS)
def test_they_are_private(writer: str, folder: Path) -> None:
    before = os.umask(0)
    try:
        WRITERS[writer](folder, folder / "new", False)
    finally:
        os.umask(before)
    if writer not in IN_A_FOLDER:
        assert mode(folder / "new") == 0o600
    assert [path for path in folder.iterdir() if path.name.startswith(".")] == []


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


def test_what_extract_writes_is_no_different(folder: Path) -> None:
    assert extract(folder, folder / "new") == 0
    assert mode(folder / "new") == 0o600
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
    assert [mode(path) for path in places] == [0o600, 0o600]
    for place in places:
        place.unlink()
        place.symlink_to(folder / "victim")
        with pytest.raises(FileExistsError):
            seglake.recover(folder / "damaged", folder / "another", quarantine=recovered.quarantine)
        seglake.recover(folder / "damaged", folder / "another", quarantine=recovered.quarantine, overwrite=True)
        assert not place.is_symlink()
        assert not (folder / "victim").exists()
        (folder / "another").unlink()


def test_a_log_that_is_begun_does_not_follow_a_link(folder: Path) -> None:
    link = folder / "new.active"
    link.symlink_to(folder / "victim")
    with pytest.raises(FileExistsError):
        seglake.create(link, format="active")
    assert not (folder / "victim").exists()
