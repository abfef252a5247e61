"""Handing files to the disk, and the errors of that: those of Python's own calls, whose words callers repeat."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seglake.write import durable


@pytest.mark.parametrize("call", [durable.rename, durable.rename_new])
def test_what_is_synced_and_renamed_is_there(call: Callable[[Path, Path], None], tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"content")
    durable.sync_file(first)
    call(first, second)
    durable.sync_folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["second"]
    assert second.read_bytes() == b"content"


def test_a_name_is_taken_only_if_asked(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"first")
    second.write_bytes(b"second")
    with pytest.raises(FileExistsError):
        durable.rename_new(first, second)
    assert second.read_bytes() == b"second"
    durable.rename(first, second)
    assert second.read_bytes() == b"first"


@pytest.mark.parametrize(
    "call",
    [
        durable.sync_file,
        pytest.param(durable.sync_folder, marks=pytest.mark.skipif(sys.platform == "win32", reason="does nothing")),
        lambda path: durable.rename(path, path.with_name("new")),
    ],
)
def test_an_error_says_what_python_says(call: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "absent"
    with pytest.raises(FileNotFoundError) as raised:
        call(path)
    error = raised.value
    assert (error.errno, error.strerror, error.filename) == (errno.ENOENT, os.strerror(errno.ENOENT), str(path))


# Linux refuses to sync what has no disk, so an error shows that the system was called.
@pytest.mark.skipif(sys.platform != "linux", reason="other systems sync everything")
@pytest.mark.parametrize(("call", "path"), [(durable.sync_file, "/dev/null"), (durable.sync_folder, "/proc")])
def test_a_sync_reaches_the_system(call: Callable[[str], None], path: str) -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        call(path)
