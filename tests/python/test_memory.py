"""Memory stays flat, whatever the file's size and whatever its lengths claim: peak sizes of processes of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

import seglake

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peak sizes are told in other units there")

MIB = 1 << 20
# What reading may take beside its batch: two windows, the search's, and what Python needs to call it.
ALLOWED = 64 * MIB

READ = """
import resource, sys, warnings
import seglake

warnings.simplefilter("ignore")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{call}
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""

CALLS = {
    "verify": "seglake.verify(sys.argv[1])",
    "iterate": "for record in seglake.open(sys.argv[1], on_damage='skip'): pass",
    "batches": "for batch in seglake.open(sys.argv[1], on_damage='skip').batches(): pass",
    "ledger": "for span in seglake.open(sys.argv[1]).ledger(): pass",
}


def growth_bytes(call: str, path: Path) -> int:
    """How much the peak size of a process grows by a call."""
    command = [sys.executable, "-c", READ.format(call=CALLS[call]), str(path)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound segment of 200 MiB."""
    path = tmp_path_factory.mktemp("large") / "large.active"
    value = bytes(range(256)) * 64
    with seglake.create(path, format="active") as writer:
        while writer.position < 200 * MIB:
            writer.write(type="large", value=value)
    return path


@pytest.fixture(scope="module")
def liar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sparse: a good record, then one that claims a gigabyte that is there and is not what its checksum says."""
    path = tmp_path_factory.mktemp("liar") / "liar.active"
    with seglake.create(path, format="active") as writer:
        writer.write(type="good", value="good")
        header = seglake.uuid6().bytes + b"\0" + (1 << 30).to_bytes(4, "big")
    with path.open("ab") as file:
        file.write(header)
        file.truncate(file.tell() + (1 << 30) + 7)
        file.seek(0, 2)
        file.write(b"\1")
    return path


@pytest.mark.parametrize("call", CALLS)
def test_a_large_file(large: Path, call: str) -> None:
    assert growth_bytes(call, large) < ALLOWED


@pytest.mark.parametrize("call", CALLS)
def test_a_length_that_lies(liar: Path, call: str) -> None:
    assert growth_bytes(call, liar) < ALLOWED


MANY = {
    "batches": "for _ in scan.batches(): pass",
    # Whatever is read ahead of who takes it waits for that.
    "slowly": "for number, _ in enumerate(scan.batches()): number < 40 and time.sleep(0.02)",
    "count": "scan.count_rows()",
    "damage": "for _ in scan.find_damage(): pass",
    "arrow": "seglake.export(scan, NOWHERE, to='arrow', compression='none')",
    "polars": "scan.to_polars().select(polars.col('value').bin.size().sum()).collect()",
}
PRELUDE = """
import io, sys, time
import polars, pyarrow, pyarrow.ipc
import seglake, seglake.write.export, seglake.stores, seglake.read.polars

class Nowhere(io.RawIOBase):
    def writable(self):
        return True
    def write(self, content, /):
        return len(content)

NOWHERE = Nowhere()
scan = seglake.scan(sys.argv[1], threads=3)
scan.head(1)
"""
MANY_FILES = 200
MANY_BYTES = 4 * MIB


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of 4 MiB, 800 MiB in all. They are one file on the disk."""
    folder = tmp_path_factory.mktemp("many")
    with seglake.create(folder / "0.active", format="active") as writer:
        while writer.position < MANY_BYTES:
            writer.write(type="many", value=bytes(1000))
    for number in range(1, MANY_FILES):
        (folder / f"{number}.active").hardlink_to(folder / "0.active")
    return folder


@pytest.mark.sampled(4)
@pytest.mark.parametrize("call", MANY)
def test_many_files(many: Path, call: str) -> None:
    read = READ.replace("before =", f"{PRELUDE}\nbefore =", 1).format(call=MANY[call])
    done = subprocess.run([sys.executable, "-c", read, str(many)], check=True, capture_output=True, text=True)
    # Three threads have six files begun, of each two batches that wait and one that is made.
    assert int(done.stdout) < 6 * 3 * MANY_BYTES + ALLOWED < MANY_FILES * MANY_BYTES / 4
