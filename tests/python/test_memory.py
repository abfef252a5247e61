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
