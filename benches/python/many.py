"""Reading many files by `scan`, compared with opening one after another.

By the clock on the wall: several threads are to be faster. Small files are read by one thread, which is to cost no more
than a loop does.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from pathlib import Path

from _interleaved import Suite

import seglake

SIZES = {"100 files of 4 MB": (100, 4000), "2,000 files of 3 KB": (2000, 3)}
"""Files, and records of each, of 1 KB."""
VALUE_BYTES = 1000
SEED = 7


def make(folder: Path, format: str, files: int, records: int) -> None:
    """Files with the same records."""
    pick = random.Random(SEED)
    extension = seglake.formats()[format].extension
    first = folder / f"0.{extension}"
    with seglake.create(first, format=format) as writer:
        for number in range(records):
            value = pick.randbytes(VALUE_BYTES // 2) * 2
            if format == "active":
                writer.write(type="order.created", value=value)
            else:
                writer.write(offset=number, timestamp=number, value=value)
    for number in range(1, files):
        shutil.copy(first, folder / f"{number}.{extension}")
    first.with_suffix(".index").unlink(missing_ok=True)


def run(suite: Suite, format: str, name: str, files: int, records: int) -> None:
    """The comparisons of one format and size."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), format, files, records)
        pattern = f"*.{seglake.formats()[format].extension}"
        rows = files * records

        def scan() -> None:
            assert sum(batch.num_rows for batch in seglake.scan(folder, format=format).batches()) == rows

        def one_by_one() -> None:
            found = 0
            for path in sorted(Path(folder).glob(pattern)):
                with seglake.open(path, format=format) as reader:
                    found += sum(batch.num_rows for batch in reader.batches())
            assert found == rows

        def count() -> None:
            assert seglake.scan(folder, format=format).count_rows() == rows

        def count_one_by_one() -> None:
            found = 0
            for path in sorted(Path(folder).glob(pattern)):
                with seglake.open(path, format=format) as reader:
                    found += reader.count_rows()
            assert found == rows

        for task, ours, theirs in (("Arrow", scan, one_by_one), ("count", count, count_one_by_one)):
            suite.compare(
                f"scan {format}, {name}, {task}", "one after another", (ours, rows), (theirs, rows), kind="itself"
            )


def main() -> None:
    """Measures, and writes the results."""
    suite = Suite("python_many", time.perf_counter)
    for format in ("active", "chunked"):
        for name, (files, records) in SIZES.items():
            run(suite, format, name, files, records)
    suite.finish()


if __name__ == "__main__":
    main()
