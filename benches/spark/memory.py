"""The memory of a Python worker and of the JVM while Spark reads: small and large files, one and many.

SEGLAKE_SPARK_GIB (2) is the size of the large file.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from _interleaved import Suite
from _logs import EXTENSIONS, FORMATS, write
from _processes import Peak, peaks, reset_peaks
from _session import session
from planning import make

GIB: Final = float(os.environ.get("SEGLAKE_SPARK_GIB", "2"))
VALUE_BYTES: Final = 4096
SMALL: Final = (64 << 20) // VALUE_BYTES
LARGE: Final = int(GIB * (1 << 30)) // VALUE_BYTES
MANY: Final = 10_000
FLAT: Final = 0.9
"""The least ratio of small to large that is flat."""


def peak(spark: SparkSession, folder: Path, format: str) -> Peak:
    """Reads a folder's files in one task, and returns the peak memory."""
    load = spark.read.format("seglake").options(segmentFormat=format, recursiveFileLookup="true")
    frame = load.options(maxPartitionBytes="1t", minPartitionNum="1").load(str(folder))
    frame.write.format("noop").mode("overwrite").save()  # which starts the worker
    reset_peaks()
    frame.write.format("noop").mode("overwrite").save()
    return peaks()


def main() -> int:
    """Measures the formats that are named, or all."""
    suite = Suite("spark_memory")
    with session() as spark, tempfile.TemporaryDirectory() as name:
        for format in sys.argv[1:] or FORMATS:
            found: list[Peak] = []
            for records in (SMALL, LARGE):
                folder = Path(name, format)
                folder.mkdir()
                write(folder / f"0.{EXTENSIONS[format]}", format, records, VALUE_BYTES)
                found.append(peak(spark, folder, format))
                shutil.rmtree(folder)
            small, large = found
            told = f"spark/memory/{format}, {GIB:g} GiB"
            suite.add(
                f"{told}, worker", "64 MiB", [(large.worker / 2**20, small.worker / 2**20)], FLAT, "MiB", "itself"
            )
            suite.add(f"{told}, JVM", "64 MiB", [(large.jvm / 2**20, small.jvm / 2**20)], unit="MiB", kind="itself")
        folder = Path(name, "many")
        folder.mkdir()
        make(folder, 1)
        one = peak(spark, folder, "active")
        shutil.rmtree(folder / "0000")
        make(folder, MANY)
        many = peak(spark, folder, "active")
        told = f"spark/memory/{MANY:,} small files in a task, worker"
        suite.add(told, "one small file", [(many.worker / 2**20, one.worker / 2**20)], FLAT, "MiB", "itself")
    suite.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
