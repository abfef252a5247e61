"""What hostile files claim is not allocated, and what they make a reader note does not pile up: peaks of processes."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from test_memory import ALLOWED, CALLS, growth_bytes

# zstandard has no wheel for free-threaded Python.
pytest.importorskip("zstandard")
import hostile_files as hostile

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peak sizes are told in other units there")

MIB = 1 << 20
LENGTH = 24 * MIB

FILES: dict[str, Callable[[int], bytes]] = {
    "hostile.active": hostile.active,
    "hostile.sealed": hostile.sealed,
    "first.tenant": hostile.tenant_1,
    "second.tenant": hostile.tenant_2,
    "names.tenant": hostile.tenant_2_names,
    "hostile.oplog": hostile.oplog,
}

# What a process does that may grow by no more than `spare` bytes of address space once it has begun.
CONFINED = """
import resource, sys, warnings
import seglake

warnings.simplefilter("ignore")
path, spare = sys.argv[1], int(sys.argv[2])
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + spare
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
formats = {{"active": "active", "sealed": "sealed", "tenant": "tenant", "chunks": "chunked", "oplog": "oplog"}}
how = {{"format": formats[path.rsplit(".", 1)[1]]}}
{body}
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""

READ_ALL = """
report = seglake.verify(path, **how)
assert report.records < 3, report
for mmap in (False, True):
    for _ in seglake.open(path, on_damage="skip", memory_map=mmap, **how): pass
    for _ in seglake.open(path, on_damage="skip", memory_map=mmap, **how).batches(): pass
    for _ in seglake.open(path, memory_map=mmap, **how).ledger(): pass
"""


def confined(body: str, path: Path, spare: int) -> int:
    """How much the peak size of a process grows that may not grow much."""
    command = [sys.executable, "-c", CONFINED.format(body=body), str(path), str(spare)]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all files that this module reads."""
    folder = tmp_path_factory.mktemp("hostile")
    for name, make in FILES.items():
        hostile.write(folder, name, make(LENGTH))
    for name, content in hostile.liars().items():
        hostile.write(folder, name, content)
    hostile.write(folder, "bomb.chunks", hostile.bomb(300 * MIB))
    return folder


@pytest.mark.sampled(9)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", FILES)
def test_what_is_noted_does_not_pile_up(folder: Path, name: str, call: str) -> None:
    # A row of an oplog with a million clock entries is a batch of its own, or a million Python objects.
    own = {"batches": 192 * MIB, "iterate": 1024 * MIB}.get(call, 0) if name == "hostile.oplog" else 0
    assert growth_bytes(call, folder / name) < ALLOWED + own


@pytest.mark.parametrize("name", hostile.liars())
def test_what_is_claimed_is_not_allocated(folder: Path, name: str) -> None:
    assert (folder / name).stat().st_size < 2048
    # pyarrow is not loaded: batches are what the extension makes of them.
    assert confined(READ_ALL, folder / name, 256 * MIB) < ALLOWED


def test_a_bomb_stops_at_the_limit(folder: Path) -> None:
    bomb = folder / "bomb.chunks"
    assert bomb.stat().st_size < 64 << 10
    refused = """
try:
    seglake.verify(path, options={"chunk_bytes": 8 << 20}, **how)
    raise SystemExit("it was not refused")
except seglake.exceptions.LimitError as error:
    assert error.option == "chunk_bytes", error
"""
    assert confined(refused, bomb, 256 * MIB) < ALLOWED


def test_looking_up_many_does_not_pile_up(tmp_path: Path) -> None:
    import seglake

    path = tmp_path / "many.active"
    with seglake.create(path, format="active") as writer:
        for _ in range(20_000):
            writer.write(type="t", value=b"v" * 100)
    looked_up = """
ids = [record.uuid for record in seglake.open(path, **how)][::20]
found = seglake.open(path, **how).get_many(ids)
assert [record.uuid for record in found] == ids
"""
    assert confined(looked_up, path, 256 * MIB) < ALLOWED
