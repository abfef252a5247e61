"""The state as of a run in one file, so that a later run need not read what each run before it has added to `files`.

The tables `files` are authoritative. A checkpoint has a hash of the names and sizes of those of their files that it was
made of. It is used only if just these files are there, up to its run. One that is missing, damaged, or made of other
files is ignored, and a new one is written as soon as it would save enough files.

No run writes a file twice, but other programs may. If one of them rewrites a file without some rows, their segments are
ingested again, as if the file were removed. What it says is not hashed, as the files would have to be read for that.

A checkpoint is `_state/<run>.checkpoint`: a line of JSON with its version, its run, a hash of the names and sizes of
the files, and a hash of all that and the rows, which follow as Parquet.
"""

import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from .destination import Destination
from .layout import STATE

__all__ = ["ROWS", "Rows", "read_checkpoint", "write_checkpoint"]

_VERSION: Final = 3
_SUFFIX: Final = ".checkpoint"

ROWS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("segment", "path", "status", "format")),
        *((name, pa.int64()) for name in ("end", "pending_bytes", "records", "size", "modified")),
        *((name, pa.string()) for name in ("carry", "error")),
        ("is_here", pa.bool_()),
    ]
)
"""A row for each segment, each file of which nothing was ingested, and each copy once more.

`is_here` tells whether the segment is the one at its path. A file of which nothing was ingested has its path as
segment. The second row of a copy has no segment; of one that is
damaged it has the carry.
"""

Rows = Iterator[tuple[Any, ...]]


def read_checkpoint(destination: Destination, files: Mapping[str, int]) -> tuple[str, Rows] | None:
    """Returns the run of the latest checkpoint that can be used, and its rows; None where there is none.

    Args:
        destination: the folder of the tables.
        files: the paths of all files of the tables `files` below it, and their sizes in bytes.
    """
    for path in reversed(_checkpoints(destination)):
        # It only saves time: whatever is wrong with it, the tables say the same.
        with suppress(OSError, ValueError, LookupError, TypeError, pa.ArrowException):
            return path.stem, _read(destination, path, files)
    return None


def write_checkpoint(
    destination: Destination, run: str, files: Mapping[str, int], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Writes a checkpoint, and removes everything beside it. The caller has the lock, and the run is complete.

    Args:
        destination: the folder of the tables.
        run: the latest run that it has, of all that `files` have.
        files: the paths of all files of the tables `files` below it, and their sizes in bytes.
        rows: its rows.

    Raises:
        OSError: it cannot be written, or others not removed.
    """
    columns: Any = list(zip(*rows, strict=True)) or [()] * len(ROWS)
    table = pa.table([pa.array(column, type) for column, type in zip(columns, ROWS.types, strict=True)], schema=ROWS)
    sink = io.BytesIO()
    cast("Any", pq).write_table(table, sink, compression="zstd")
    content = sink.getvalue()
    covered = _digest(_covered(files, run))
    head = {"version": _VERSION, "run": run, "files": covered, "rows": _rows_digest(run, covered, content)}
    path = destination.folder / STATE / f"{run}{_SUFFIX}"
    destination.store.make_folder(path.parent)
    old = [path.parent / name for name in destination.store.sizes_in(path.parent) if name != path.name]
    destination.store.write_durably(destination.folder, path, json.dumps(head).encode() + b"\n" + content)
    for each in old:
        destination.store.remove(each)


def _read(destination: Destination, path: Path, files: Mapping[str, int]) -> Rows:
    """Reads a checkpoint.

    Raises:
        OSError: it cannot be read.
        ValueError: it cannot be used.
    """
    content = destination.read(path)
    line, _, rows = content.partition(b"\n")
    head = json.loads(line)
    run, covered = head["run"], head["files"]
    is_sound = head["version"] == _VERSION and head["rows"] == _rows_digest(run, covered, rows)
    if not is_sound or run != path.stem or covered != _digest(_covered(files, run)):
        raise ValueError("it is damaged, or was made of other files")
    table: Any = cast("Any", pq).read_table(io.BytesIO(rows))
    if not table.schema.equals(ROWS):
        raise ValueError("it has other columns")
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _checkpoints(destination: Destination) -> list[Path]:
    with suppress(OSError):
        folder = destination.folder / STATE
        return [folder / name for name in sorted(destination.store.sizes_in(folder)) if name.endswith(_SUFFIX)]
    return []


def _covered(files: Mapping[str, int], run: str) -> list[str]:
    """Returns the files of all runs up to one, each with its size."""
    return sorted(f"{path}\n{size}" for path, size in files.items() if Path(path).stem <= run)


def _rows_digest(run: str, covered: str, rows: bytes) -> str:
    return hashlib.blake2b(f"{_VERSION}\n{run}\n{covered}\n".encode() + rows, digest_size=32).hexdigest()


def _digest(files: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(files).encode(errors="surrogateescape"), digest_size=32).hexdigest()
