"""Segments into tables, each record once: the ingest.

Importing this needs neither Spark nor Arrow, so that what is missing can be named.
"""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Unpack

from seglake._errors import UnreadWarning
from seglake._threads import thread_count

from .result import IngestArguments, IngestError, IngestProgress, IngestResult

if TYPE_CHECKING:
    from .engine import StartEngine

__all__ = ["check_names", "ingest", "require", "run"]


def ingest(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    destination: str | os.PathLike[str],
    *,
    threads: int | None = None,
    progress: Callable[[IngestProgress], object] | None = None,
    **options: Unpack[IngestArguments],
) -> IngestResult:
    """Reads segments, checks every record and writes tables below `destination`, a lake.

    `<format>` has the records of a format, partitioned by date where they have a timestamp; `damage` each damaged
    range with its bytes; `files` a row for each input file and run; `runs` a row for each run. All come from one pass
    over each file. Runs can follow each other into the same lake, also at the same time: each record comes in once.

    Needs `pip install "seglake[lake]"`. `seglake.spark.ingest` takes a session or a cluster.

    Options, by keyword: `threads`, `progress`, `format`, `key`, `options`, `target_file_size`, `final`,
    `sidecar`, `on_damage`, `table`, `catalog`, `storage_options`.

    Args:
        sources: files, folders (with all below them) and patterns such as `/logs/*.active`.
        destination: the folder of the lake; made where it is missing. A path, or with Delta Lake and Iceberg the URI of
            a store: `s3://bucket/lake`.
        threads: how many files are read at a time; by default one for each core, 8 at most. Each holds at most 128 MiB
            of rows back, beside the batch that it is reading.
        progress: called now and then, in the calling thread, with how far the ingest is.
        format: the format of all files; by default found for each file.
        key: the path of the file with the key, 64 hexadecimal digits or 32 bytes; or a list of such paths, to be tried
            in order for each file. By default the key is that of the environment variable `SEGLAKE_KEY`, or else the
            public default key.
        options: what concerns some formats only, and limits in bytes, as in `seglake.open`. `dialect`: how the messages
            of oplogs are laid out; all oplogs below one `destination` are of one dialect, unless their columns are the
            same.
            `record_bytes` (2^31-1): a file with a larger record has the status `limit`. `chunk_bytes` (256 MiB): so has
            one with a chunk of more content.
        target_file_size: the size, in bytes, from which on an output file is not added to; by default 128 MiB.
        final: whether no file grows any more, by default False. Of a file to which records may still be appended, an
            unfinished tail is `pending_bytes`, and the next run reads it again. With `final` it is damage.
        sidecar: the parity sidecars that files are checked by: "auto" (the default) stands for those beside files, None
            for none. A path is that of the only file.
        on_damage: what becomes of records that a sidecar restores. `repair` (the default): they are ingested, and
            `damage` has their damaged bytes. `skip`: they are left out, also after the file is repaired.
        table: what keeps track of the tables' files. `parquet` (the default): their folders alone. `delta`: Delta
            Lake, which needs deltalake. `iceberg`: Apache Iceberg, which needs pyiceberg.
        catalog: the catalog of Iceberg tables: the URI of an SQL database, or properties as `pyiceberg` takes them,
            with `namespace` for a namespace above those of the formats. By default the file `_catalog.db` in
            `destination`.
        storage_options: how stores of sources and of `destination` are reached, as `obstore` and `deltalake` take it.
            By default that comes from the environment.

    Returns:
        What was read, written and found damaged.

    Raises:
        IngestError: it could not start, or had to stop; nothing of it is visible then, unless the message says so.
            Among the reasons: a source is missing, `destination` is below a source, its tables have other columns, an
            argument does not concern `format`, the key is wrong for every segment, a task failed, or the disk is full.
        ValueError, TypeError: an argument cannot have this value.
        OSError: `destination` cannot be written to.

    Example:
        >>> import seglake
        >>> result = seglake.ingest("logs", "lake")
        >>> result.formats, result.files, result.records
        (('active',), 2, 6)
    """
    check_names(options, "threads", "progress")
    count = thread_count(threads)
    require(("pyarrow", "msgspec", "numpy"), "'seglake[lake]'")
    from .engine import thread_engine

    return run(lambda: thread_engine(count), sources, destination, options, progress)


def run(
    start: StartEngine,
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    destination: str | os.PathLike[str],
    arguments: IngestArguments,
    progress: Callable[[IngestProgress], object] | None,
) -> IngestResult:
    """Checks the arguments that all engines have, and ingests."""
    from .ingest import Ingest
    from .options import IngestOptions

    options = IngestOptions.of(**arguments)
    if options.table != "parquet":
        package, install = {
            "delta": ("deltalake", "'seglake[delta]'"),
            "iceberg": ("pyiceberg", "'seglake[iceberg]'"),
        }[options.table]
        require((package,), install)
    several = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    result = Ingest.of([os.fspath(each) for each in several], destination, options, progress).run(start)
    for unread in result.unread:
        warnings.warn(str(unread), UnreadWarning, stacklevel=3)
    return result


def check_names(arguments: IngestArguments, *own: str) -> None:
    """Checks that there are arguments of these names, in IngestArguments or the engine's own.

    Raises:
        TypeError: there are not. It names those that were probably meant, or else all.
    """
    known = (*own, *IngestArguments.__annotations__)
    for name in arguments.keys() - set(known):
        # Two, and less alike than usual: `table_format` is nearer to `format` than to `table`.
        near = get_close_matches(name, known, n=2, cutoff=0.55)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
        raise TypeError(f"ingest() got an unexpected keyword argument {name!r}: {hint}")


def require(packages: Sequence[str], extra: str) -> None:
    """Checks that packages are there.

    Raises:
        IngestError: they are not.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise IngestError(f"the ingest needs {' and '.join(missing)}: pip install {extra}")
