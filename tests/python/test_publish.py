"""What writes into mounted folders have in common: a lock, and small files that several write at once."""

import os
from pathlib import Path

import pytest

from seglake.spark.write import folders
from seglake.write import durable

pytestmark = pytest.mark.skipif(os.name == "nt", reason="writes of Spark need the locks of Unix")


def test_one_process_holds_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with folders.lock(path) as is_ours, folders.lock(path) as is_others:
        assert (is_ours, is_others) == (True, False)
    with folders.lock(path) as is_ours:
        assert is_ours
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError), folders.lock(path):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_small_file_may_be_written_by_several_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rename = tmp_path / "_SUCCESS", durable.rename

    def other_first(new: Path, final: Path) -> None:
        monkeypatch.setattr(durable, "rename", rename)
        folders.write_durably(tmp_path, path, b"other")
        rename(new, final)

    monkeypatch.setattr(durable, "rename", other_first)
    folders.write_durably(tmp_path, path, b"own")
    assert path.read_bytes() == b"own"
    monkeypatch.setattr(durable, "sync_file", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        folders.write_durably(tmp_path, path, b"more")
    assert list(tmp_path.iterdir()) == [path]
