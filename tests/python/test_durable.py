"""Handing files to the disk, on systems whose drives keep what they are given in a cache of their own too."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from seglake._publish.durable import sync

if sys.platform == "win32":
    pytest.skip("there are no such calls there", allow_module_level=True)

import fcntl

FULL_SYNC = 51


@pytest.mark.parametrize("system", ["darwin", "linux"])
def test_the_cache_of_a_drive_is_emptied_too(system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(os, "fsync", lambda descriptor: done.append(descriptor))
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", FULL_SYNC, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda descriptor, call: done.append((descriptor, call)))
    sync(5)
    assert done == [5, *([(5, FULL_SYNC)] if system == "darwin" else [])]


@pytest.mark.parametrize(
    ("number", "is_told"), [(errno.EIO, True), (errno.ENOTSUP, False), (errno.EINVAL, False), (errno.ENOTTY, False)]
)
def test_what_a_file_system_does_not_know_is_no_error(
    number: int, is_told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", FULL_SYNC, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    with (tmp_path / "file").open("wb") as file:
        if is_told:
            with pytest.raises(OSError, match="Input/output error"):
                sync(file.fileno())
        else:
            sync(file.fileno())
