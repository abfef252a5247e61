"""A loss of power while a command writes a file leaves the whole file or none; afterwards the file stays."""

import sys
from pathlib import Path

import pytest

from seglake.cli import main
from seglake.write import durable

if sys.platform == "win32":
    pytest.skip("folders are not synced there", allow_module_level=True)

from power_loss import Disk

CONTENT = bytes(range(200))


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    (tmp_path / "source").write_bytes(CONTENT)
    return Disk(tmp_path)


def extract(folder: Path, *more: str) -> int:
    return main(["extract", str(folder / "source"), "--range", "0:150", str(folder / "new"), *more])


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_a_new_file(tmp_path: Path, disk: Disk, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    with monkeypatch.context() as patched:
        disk.watch(patched)
        if not links:
            patched.setattr(durable, "rename_new", refuse)
        assert extract(tmp_path) == 0
        done = disk.moment()
    found = set()
    for moment, state in disk.states():
        content = state.get("new")
        found.add(content)
        if moment == done:
            assert content == CONTENT[:150]
    # On a file system that can only replace an empty file takes the name first.
    assert found == {None, CONTENT[:150]} | (set() if links else {b""})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "source"]


def test_a_file_that_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source").write_bytes(CONTENT)
    (tmp_path / "new").write_bytes(b"old")
    disk = Disk(tmp_path)
    with monkeypatch.context() as patched:
        disk.watch(patched)
        assert extract(tmp_path, "--overwrite") == 0
        done = disk.moment()
    assert {state.get("new") for _, state in disk.states()} == {b"old", CONTENT[:150]}
    assert {state.get("new") for _, state in disk.states(done)} == {CONTENT[:150]}


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_a_file_that_appears_meanwhile_stays(tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source").write_bytes(CONTENT)
    sync_file, rename_new = durable.sync_file, durable.rename_new

    def appear(path: Path) -> None:
        sync_file(path)
        (tmp_path / "new").write_bytes(b"of somebody else")

    def refuse(*given: Path) -> None:
        if not links:
            raise OSError(95, "Operation not supported")
        rename_new(*given)

    monkeypatch.setattr(durable, "sync_file", appear)
    monkeypatch.setattr(durable, "rename_new", refuse)
    assert extract(tmp_path) == 2
    assert (tmp_path / "new").read_bytes() == b"of somebody else"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "source"]
