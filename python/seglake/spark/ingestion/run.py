"""The ingest as callers see it. Importing this needs neither Spark nor Arrow, so that what is missing can be named."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from .result import IngestError, IngestProgress, IngestResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ingest"]

_TARGET_FILE_BYTES: Final = 128 << 20


def ingest(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    dst: str | os.PathLike[str],
    *,
    spark: SparkSession | None = None,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    format: str | None = None,
    key_file: str | os.PathLike[str] | None = None,
    target_file_bytes: int = _TARGET_FILE_BYTES,
    progress: Callable[[IngestProgress], object] | None = None,
) -> IngestResult:
    """Reads segments with Spark, checks every record and writes Parquet tables below `dst`.

    `<format>/records` has the records, partitioned by date; `<format>/damage` each damaged range with its bytes;
    `<format>/files` a row for each input file. All three come from one pass over each file. `files` becomes visible
    last: what it lists is complete in the other two. Runs can follow each other into the same `dst`.

    Args:
        sources: files, folders (with all below them) and patterns such as `/logs/*.active`.
        dst: the folder of the tables; made where it is missing.
        spark: the session to use. By default the one that is active, or else a new one that is stopped in the end.
        master: Spark's master URL for a new session, or a Spark Connect URL. A cluster has to see the sources, `dst`
            and `key_file` under the same paths, and to have this package.
        conf: settings for a new session.
        format: the format of all files; by default found for each file.
        key_file: the file with the key, 64 hexadecimal digits or 32 bytes, read on the executors. By default the key is
            that of their environment variable `SEGLAKE_KEY`, or else the public default key.
        target_file_bytes: the size, in bytes, from which on an output file is not added to.
        progress: called now and then, in the calling thread, with how far the ingest is.

    Returns:
        What was read, written and found damaged.

    Raises:
        IngestError: it could not start, or had to stop; nothing of it is visible then, unless the message says so.
            Among the reasons: a source is missing or has been ingested before, `dst` is below a source or is being
            written to by another run, the key is wrong, the job failed.
        seglake.spark.java.JavaNotFoundError: there is no Java that Spark can use.
        ValueError: `target_file_bytes` is not positive.
        OSError: `dst` cannot be written to.
    """
    if target_file_bytes < 1:
        raise ValueError(f"target_file_bytes is {target_file_bytes}: expected at least 1")
    _require_packages()
    from .driver import IngestDriver

    driver = IngestDriver(
        sources=[os.fspath(each) for each in ([sources] if isinstance(sources, (str, os.PathLike)) else sources)],
        destination=dst,
        format=format,
        key_file=None if key_file is None else os.fspath(key_file),
        target_file_bytes=target_file_bytes,
        progress=progress,
    )
    return driver.run(spark, master, conf or {})


def _require_packages() -> None:
    missing = [name for name in ("pyspark", "pyarrow", "pandas") if importlib.util.find_spec(name) is None]
    if missing:
        raise IngestError(f"the ingest needs {' and '.join(missing)}: pip install 'seglake[spark]'")
    if importlib.util.find_spec("fcntl") is None:
        raise IngestError("the ingest needs Linux or macOS: this system lacks the file locks that it works with")
