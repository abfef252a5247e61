"""`scan(prune=True)`: which files are passed over, what that saves, and that no record is lost by it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import seglake

ROWS = 4000
START = datetime(2024, 1, 10, tzinfo=UTC)
EARLIER, LATER = START - timedelta(days=1), START + timedelta(days=1)
VALUE = os.urandom(1000)
# A file is opened, its format told, its index read, and a window of 1 MiB where it is gone through.
LITTLE = 1_900_000


def records(number: int) -> list[tuple[int, datetime]]:
    return [(ROWS * number + row, START + timedelta(days=number, seconds=row)) for row in range(ROWS)]


def active(path: Path, number: int) -> None:
    with seglake.create(path, format="active") as writer:
        for _, moment in records(number):
            writer.write(uuid=seglake.uuid6(moment), type="t", value=VALUE)


def sealed(path: Path, number: int) -> None:
    active(path.with_suffix(".temporary"), number)
    seglake.seal(path.with_suffix(".temporary"), path)
    path.with_suffix(".temporary").unlink()


def chunked(path: Path, number: int) -> None:
    with seglake.create(path, format="chunked", options={"chunk_records": 500}) as writer:
        for offset, moment in records(number):
            writer.write(offset=offset, timestamp=moment, value=os.urandom(1000))


def tenant(path: Path, number: int) -> None:
    with seglake.create(path, format="tenant") as writer:
        for row in range(ROWS):
            writer.write(partition=number, tenant=f"t{row // 500}", value=VALUE)


def oplog(path: Path, number: int) -> None:
    del number  # each begins with message 0
    with seglake.create(path, format="oplog") as writer:
        for _ in range(ROWS):
            writer.write(version=1, checkpointer=1, checkpoint=None, clock=[], abi=0, batch=1, value=VALUE)


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "active": active,
    "sealed": sealed,
    "chunks": chunked,
    "tenant": tenant,
    "oplog": oplog,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pruned")
    for extension, write in WRITERS.items():
        (folder / extension).mkdir()
        for number in range(3):
            write(folder / extension / f"{number}.{extension}", number)
    return folder


def bytes_read(scan: seglake.Scan) -> tuple[int, int]:
    """How many records a scan has, and how many bytes it asked the system for."""

    def so_far() -> int:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))

    scan.count_rows()  # what is imported first
    before = so_far()
    return scan.count_rows(), so_far() - before


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="what was read is asked of /proc")


pytestmark = pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")


@needs_proc
@pytest.mark.parametrize(
    ("extension", "condition", "found", "little"),
    [
        # The first record shows it: also without prune, since such a file is not read on.
        ("active", ("timestamp", "<", EARLIER), 0, True),
        ("active", ("uuid", "<", seglake.uuid6(EARLIER)), 0, True),
        # Nothing at an active file's end proves what is before it.
        ("active", ("timestamp", ">=", LATER + timedelta(days=9)), 0, False),
        ("active", ("type", "==", "none"), 0, False),
        ("sealed", ("timestamp", "<", EARLIER), 0, True),
        ("sealed", ("timestamp", ">=", LATER + timedelta(days=9)), 0, True),
        ("sealed", ("uuid", "==", seglake.uuid6(LATER)), 1, True),
        ("sealed", ("type", "==", "none"), 0, False),
        ("chunks", ("offset", ">=", 3 * ROWS), 0, True),
        ("chunks", ("offset", "==", ROWS), 1, True),
        # Times of a chunked log are in no order.
        ("chunks", ("timestamp", "<", EARLIER), 0, False),
        ("tenant", ("partition", "in", [77]), 0, True),
        ("tenant", ("tenant", "==", "t9"), 0, True),
        ("tenant", ("index", ">=", ROWS), 0, False),
        ("oplog", ("seq", ">=", ROWS), 0, False),
        ("oplog", ("seq", "<", 1), 3, False),
    ],
)
def test_what_pruning_reads(
    folder: Path, extension: str, condition: tuple[str, str, Any], found: int, little: bool
) -> None:
    scan = seglake.scan(folder / extension, filters=[condition], prune=True, threads=1)
    whole = sum(file.nbytes for file in scan.files())
    count, nbytes = bytes_read(scan)
    assert count == found == seglake.scan(folder / extension, filters=[condition]).count_rows()
    assert (nbytes < 3 * LITTLE) is little, nbytes
    assert (nbytes < whole) is little


def test_files_are_those_that_were_found(folder: Path) -> None:
    scan = seglake.scan(folder / "sealed", filters=[("timestamp", "<", EARLIER)], prune=True)
    assert [Path(file.path).name for file in scan.files()] == ["0.sealed", "1.sealed", "2.sealed"]
    assert scan.count_rows() == 0


@pytest.mark.parametrize("extension", ["active", "sealed", "chunks", "tenant"])
def test_damage_where_nothing_is_wanted(folder: Path, tmp_path: Path, extension: str) -> None:
    conditions: dict[str, tuple[str, str, Any]] = {
        "active": ("timestamp", "<", START + timedelta(seconds=10)),
        "sealed": ("timestamp", "<", START + timedelta(seconds=10)),
        "chunks": ("offset", "<", 10),
        "tenant": ("tenant", "==", "t0"),
    }
    content = bytearray((folder / extension / f"0.{extension}").read_bytes())
    content[len(content) // 2] ^= 1
    path = tmp_path / f"0.{extension}"
    path.write_bytes(content)
    [span] = seglake.verify(path).damage
    scan = seglake.scan(tmp_path, glob=f"*.{extension}", filters=[conditions[extension]], prune=True)
    alone = seglake.scan(folder / extension / f"0.{extension}", filters=[conditions[extension]])
    assert scan.count_rows() == alone.count_rows()
    assert list(scan.find_damage()) == [(str(path), *span)]


@pytest.mark.parametrize("extension", WRITERS)
@pytest.mark.parametrize("place", [0, 5, 40, -1, -9, -30])
def test_damage_at_the_ends_loses_no_record(folder: Path, tmp_path: Path, extension: str, place: int) -> None:
    conditions: dict[str, list[tuple[str, str, Any]]] = {
        "active": [
            ("timestamp", ">=", START + timedelta(seconds=ROWS - 9)),
            ("uuid", "<", seglake.uuid6(START + timedelta(seconds=9))),
        ],
        "sealed": [("timestamp", ">=", START + timedelta(seconds=ROWS - 9)), ("timestamp", "<", START)],
        "chunks": [("offset", ">=", ROWS - 9), ("offset", "<", 9)],
        "tenant": [("tenant", "==", "t7"), ("tenant", "==", "t0")],
        "oplog": [("seq", ">=", ROWS - 9), ("seq", "<", 9)],
    }
    content = bytearray((folder / extension / f"0.{extension}").read_bytes())
    content[place] ^= 0x10
    (tmp_path / f"0.{extension}").write_bytes(content)
    for condition in conditions[extension]:
        read = {
            prune: [
                record.to_dict()
                for record in seglake.open(
                    tmp_path / f"0.{extension}", filters=[condition], on_damage="skip", prune=prune
                )
            ]
            for prune in (False, True)
        }
        scan = seglake.scan(tmp_path, filters=[condition], on_damage="skip", prune=True)
        assert read[True] == read[False]
        assert scan.count_rows() == len(read[False])
