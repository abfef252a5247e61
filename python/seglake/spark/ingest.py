"""The ingest on Spark, as callers see it. Importing this needs neither Spark nor Arrow, as what is missing is named."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from seglake.lake import require, run
from seglake.lake.result import IngestError, IngestProgress, IngestResult, OnDamage, OnWrongKey, TableFormat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from seglake._types import DialectName

__all__ = ["ingest"]


def ingest(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    dst: str | os.PathLike[str],
    *,
    spark: SparkSession | Callable[[], SparkSession] | None = None,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    format: str | None = None,
    dialect: DialectName | None = None,
    key: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    limits: Mapping[str, int] | None = None,
    target_file_bytes: int = 128 << 20,
    on_wrong_key: OnWrongKey = "record",
    final: bool = False,
    parity: str | os.PathLike[str] | None = "auto",
    on_damage: OnDamage = "repair",
    table: TableFormat = "parquet",
    catalog: str | Mapping[str, str] | None = None,
    progress: Callable[[IngestProgress], object] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> IngestResult:
    """Reads segments with Spark, checks every record and writes tables below `dst`, a lake.

    `<format>` has the records of a format, partitioned by date where they have a timestamp; `damage` each damaged
    range with its bytes; `files` a row for each input file and run; `runs` a row for each run. All come from one pass
    over each file. Runs can follow each other into the same lake, also at the same time: each record comes in once.

    Args:
        sources: files, folders (with all below them) and patterns such as `/logs/*.active`.
        dst: the folder of the lake; made where it is missing. A path, or with Delta Lake and Iceberg the URI of a
            store: `s3://bucket/lake`.
        spark: the session to use, or a function that gives it, which is called once there is something to read. By
            default the one that is active, or else a new one that is stopped in the end.
        master: Spark's master URL for a new session, or a Spark Connect URL. A cluster has to see the sources, `dst`
            and the key's file under the same paths, and to have this package.
        conf: settings for a new session.
        format: the format of all files; by default found for each file.
        dialect: how the messages of oplogs are laid out: `draft` (the default), `draft-1.1` or `autobase`. All oplogs
            below one `dst` are of one dialect, unless their columns are the same.
        key: the path of the file with the key, 64 hexadecimal digits or 32 bytes, read on the executors; or a list of
            such paths, to be tried in order for each file. By default the key is that of their environment variable
            `SEGLAKE_KEY`, or else the public default key.
        limits: limits in bytes, as in `seglake.open`. `record_bytes` (2^31-1): a file with a larger record has the
            status `limit`. `chunk_bytes` (256 MiB): so has one with a chunk of more content.
        target_file_bytes: the size, in bytes, from which on an output file is not added to.
        on_wrong_key: what is done about a file for which the key seems to be wrong, as no record checks although the
            structure is sound. `record`: nothing of it is ingested, `files` says so, and the other files are. `stop`:
            the run stops, and nothing is ingested. If every segment is such a file, the run stops in any case.
        final: whether no file grows any more. Of a file to which records may still be appended, an unfinished tail is
            `pending_bytes`, and the next run reads it again. With `final` it is damage.
        parity: the parity sidecars that files are checked by: "auto" stands for those beside files, None for none. A
            path is that of the only file.
        on_damage: what becomes of records that a sidecar restores. `repair`: they are ingested, and `damage` has their
            damaged bytes. `skip`: they are left out, also after the file is repaired.
        table: what keeps track of the tables' files. `parquet`: their folders alone. `delta`: Delta Lake, which needs
            deltalake. `iceberg`: Apache Iceberg, which needs pyiceberg. The driver commits, without a jar.
        catalog: the catalog of Iceberg tables: the URI of an SQL database, or properties as `pyiceberg` takes them,
            with `namespace` for a namespace above those of the formats. By default the file `_catalog.db` in `dst`.
        progress: called now and then, in the calling thread, with how far the ingest is. That shows when the tasks are
            done, as executors report nothing before.
        storage_options: how the store of `dst` is reached, as `obstore` and `deltalake` take it. By default that comes
            from the environment. Spark sends it to the executors.

    Returns:
        What was read, written and found damaged.

    Raises:
        IngestError: it could not start, or had to stop; nothing of it is visible then, unless the message says so.
            Among the reasons: a source is missing, `dst` is below a source, its tables have other columns, an argument
            does not concern `format`, the key is wrong for every segment, Java cannot be started, the job failed.
        ValueError: a number of bytes is not positive.
        OSError: `dst` cannot be written to.
    """
    require(("pyspark", "pyarrow", "pandas", "msgspec", "numpy"), "'seglake[spark]'")
    from .ingest_job import spark_engine

    settings = conf or {}
    _check_conf(settings)
    return run(
        lambda: spark_engine(spark, master, settings),
        sources,
        dst,
        {
            "format": format,
            "dialect": dialect,
            "key": key,
            "limits": limits,
            "target_file_bytes": target_file_bytes,
            "on_wrong_key": on_wrong_key,
            "final": final,
            "parity": parity,
            "on_damage": on_damage,
            "table": table,
            "catalog": catalog,
            "storage_options": storage_options,
        },
        progress,
    )


def _check_conf(conf: Mapping[str, str]) -> None:
    """Refuses settings that hold a key: Spark hands them on as arguments of processes and writes them into its logs."""
    for name in conf:
        # A reference to a secret of the cluster's (`spark.kubernetes.executor.secretKeyRef.*`) holds none.
        if name.endswith(".SEGLAKE_KEY") and ".secretKeyRef." not in name:
            raise IngestError(
                f"the setting {name} would show the key in process lists and in Spark's logs: give its file, or set "
                "the variable itself where the executors are started"
            )
