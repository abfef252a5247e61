"""The ingest on Spark, as callers see it. Importing this needs neither Spark nor Arrow, as what is missing is named."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Unpack

from seglake.lake import check_names, require, run
from seglake.lake.result import IngestArguments, IngestProgress, IngestResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ingest"]


def ingest(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    destination: str | os.PathLike[str],
    *,
    spark: SparkSession | Callable[[], SparkSession] | None = None,
    progress: Callable[[IngestProgress], object] | None = None,
    **options: Unpack[IngestArguments],
) -> IngestResult:
    """Reads segments with Spark, checks every record and writes tables below `destination`, a lake.

    It writes the same rows as `seglake.ingest`, which says what the tables are.

    Args:
        sources: files, folders and patterns, as in `seglake.ingest`.
        destination: the folder of the lake, as in `seglake.ingest`.
        spark: the session to use, or a function that gives it, which is called once there is something to read. By
            default the one that is active, or else a new one on this machine that is stopped in the end. A cluster has
            to see the sources, `destination` and the key's file under the same paths, and to have this package.
        progress: called now and then, in the calling thread, with how far the ingest is. That shows when the tasks are
            done, as executors report nothing before.
        options: the arguments `format` to `storage_options` of `seglake.ingest`. The executors read the files of
            `key`, or else their own variable `SEGLAKE_KEY`, and Spark sends them `storage_options`. The driver commits
            to the tables of `table`, without a jar.

    Returns:
        What was read, written and found damaged.

    Raises:
        IngestError: it could not start, or had to stop; nothing of it is visible then, unless the message says so.
            Among the reasons: a source is missing, `destination` is below a source, its tables have other columns, an
            argument does not concern `format`, the key is wrong for every segment, Java cannot be started, or the job
            failed.
        ValueError, TypeError: an argument cannot have this value.
        OSError: `destination` cannot be written to.
    """
    check_names(options, "spark", "progress")
    require(("pyspark", "pyarrow", "pandas", "msgspec", "numpy"), "'seglake[spark]'")
    from .ingest_job import spark_engine

    return run(lambda: spark_engine(spark), sources, destination, options, progress)
