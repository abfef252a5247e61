"""Fixtures that tests of all parts share. None is used without being asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from object_store import ObjectStore


MEMORY: Final = Path("/dev/shm")
"""A file system in memory, where to sync costs nothing."""
ROOM_BYTES: Final = 4 << 30


def pytest_configure() -> None:
    """Has pytest make its temporary folders in memory, where that has room and runs programs."""
    if MEMORY.is_dir():
        found = os.statvfs(MEMORY)
        if found.f_bavail * found.f_frsize >= ROOM_BYTES and not found.f_flag & os.ST_NOEXEC:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks `more` what the mark `sampled` leaves out."""
    cases = Counter[str]()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is not None:
            test = item.nodeid.partition("[")[0]
            if cases[test] % sampled.args[0]:
                item.add_marker("more")
            cases[test] += 1


@pytest.fixture(params=[10, pytest.param(1, marks=pytest.mark.more)], ids=["some", "all"])
def stride(request: pytest.FixtureRequest) -> int:
    """How far the steps are apart at which something is to fail: `make test` tries a tenth of them."""
    return request.param


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB, where this machine lets one be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system takes rights that are not given here")
    yield folder
    # Nobody has a file open there any more, but for who is just ending.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="module")
def running_store() -> Iterator[ObjectStore]:
    """An object store for all tests of a file: starting one takes a second."""
    from object_store import object_store

    with object_store() as store:
        yield store


@pytest.fixture
def store(running_store: ObjectStore) -> Iterator[ObjectStore]:
    """The object store, which does with requests what the test tells it to, and what others told it no more."""
    running_store.fault = None
    yield running_store
    running_store.fault = None
