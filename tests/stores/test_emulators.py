"""Stores of Azure and Google in emulators, and HDFS in a small cluster: `make test-stores` installs and tests them."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest
from segments import write_segment

import seglake

from .emulators import CLIENTS, emulator, plain, reaching, root, within


@dataclass
class Emulated:
    """A running emulator, and the client that is tested with it."""

    name: str
    port: int
    log: Path

    def tested(self) -> dict[str, Any]:
        return reaching(self.name, self.port)

    def plain(self) -> pafs.FileSystem:
        return plain(self.name, self.port)

    @property
    def root(self) -> str:
        return root(self.name)

    def put(self, local: Path, path: str) -> None:
        with self.plain().open_output_stream(within(path)) as file:
            file.write(local.read_bytes())


@pytest.fixture(scope="module", params=CLIENTS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Emulated]:
    """One for all tests, as HDFS takes long to start: each has a folder of its own there."""
    folder = tmp_path_factory.mktemp("emulator")
    with emulator(request.param, folder) as port:
        yield Emulated(request.param, port, folder / "emulator.log")


@pytest.fixture
def writable(store: Emulated) -> None:
    if store.name == "gcs":
        pytest.skip("this emulator does not know the requests by which obstore writes")
    if store.name == "webhdfs":
        pytest.skip("HDFS is only read from")


def test_folders_are_found_and_read(store: Emulated, tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 12)
    for path in ("top.active", "year/month/a.active", "year/month/b.active", "year/c.active"):
        store.put(tmp_path / "a.active", f"{store.root}/src/{path}")
    given = store.tested()
    for folder, files in {"src": 4, "src/year": 3, "src/*": 4, "src/*/*.active": 1, "src/year/month": 2}.items():
        scan = seglake.scan(f"{store.root}/{folder}", **given)
        assert (folder, len(scan.files())) == (folder, files)
        assert scan.count_rows() == 12 * files
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        seglake.scan(f"{store.root}/yea", **given).files()


def test_an_object_that_is_replaced_while_it_is_read_is_an_error(store: Emulated, tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 1000, value_bytes=60_000)
    write_segment(tmp_path / "b.active", 1000, value_bytes=60_000)
    store.put(tmp_path / "a.active", f"{store.root}/a.active")
    with seglake.open(f"{store.root}/a.active", **store.tested()) as reader:
        records = iter(reader)
        next(records)
        store.put(tmp_path / "b.active", f"{store.root}/a.active")
        # Google has each state of an object under a number of its own, and then no more under that.
        with pytest.raises(OSError, match=r"was replaced or deleted|No such file"):
            list(records)


@pytest.mark.usefixtures("writable")
def test_an_export_is_one_file(store: Emulated, tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 12)
    scan, uri = seglake.scan(tmp_path / "a.active"), f"{store.root}/deep/a.csv"
    assert seglake.export(scan, uri, **store.tested()).records == 12
    with pytest.raises(FileExistsError):
        seglake.export(scan, uri, **store.tested())
    seglake.export(scan, uri, if_exists="overwrite", **store.tested())
    seglake.export(scan, tmp_path / "a.csv")
    with store.plain().open_input_file(within(uri)) as file:
        assert file.read() == (tmp_path / "a.csv").read_bytes()
