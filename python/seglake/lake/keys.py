"""Which records of one source the lake has: sorted keys and hashes, in files if there are many."""

import binascii
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["SourceKeys"]

_Words = NDArray[np.uint64]
_Flags = NDArray[np.bool_]
_Places = NDArray[np.intp]

_KINDS: Final = ("string", "int64", "uint64")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_UUID_CHARACTERS: Final = 36
_DASHES: Final = (8, 13, 18, 23)
_HEX: Final = ((0, 8), (9, 13), (14, 18), (19, 23), (24, 36))


class _Run(NamedTuple):
    """Rows in the order of their columns: one or two of the key, then the hash.

    Attributes:
        first: the first column of the first row.
        last: the first column of the last row.
        rows: how many there are.
        columns: the columns, of rows in memory.
        files: the files of the key and of the hash, of rows on disk.
    """

    first: np.uint64
    last: np.uint64
    rows: int
    columns: tuple[_Words, ...] = ()
    files: tuple[Path, Path] | None = None

    def read(self) -> tuple[_Words, ...]:
        """Returns the columns. Those on disk are mapped only as long as they are used."""
        if self.files is None:
            return self.columns
        return tuple(
            column
            for path in self.files
            for column in np.memmap(path, np.uint64, "r").view(np.ndarray).reshape(-1, self.rows)
        )


class SourceKeys:
    """Which records of one source the lake has, by their keys, and by a hash of their content.

    The latest rows are in memory, 24 bytes each. Others are in files, in sorted runs. It is for one thread.

    Args:
        folder: a temporary folder. The files are in a folder of their own in it.
        run_rows: how many rows a run has.
    """

    def __init__(self, folder: Path, *, run_rows: int = 1 << 20) -> None:
        self._parent = folder
        self._folder: Path | None = None
        self._run_rows = run_rows
        self._kind: str | None = None
        self._is_closed = False
        self._on_disk: list[_Run] = []
        self._sorted: list[_Run] = []  # in memory, each longer than the next
        self._unsorted: list[tuple[_Words, ...]] = []
        self._in_memory = 0

    def add(self, keys: Any, hashes: Any) -> None:
        """Adds records.

        Args:
            keys: an Arrow array of UUIDs as text of 36 characters, of int64 or of uint64: of one kind in each call.
            hashes: an Arrow array of uint64, one for each key.

        Raises:
            OSError: the rows cannot be written to the disk. Only `close` is of use then.
            TypeError: the arrays have other types.
            ValueError: they have nulls, text that is not a UUID, or different lengths, or this is closed.
        """
        columns = self._columns(keys, hashes)
        start, rows = 0, len(columns[0])
        while start < rows:
            end = min(rows, start + self._run_rows - self._in_memory)
            self._unsorted.append(tuple(column[start:end] for column in columns))
            self._in_memory += end - start
            start = end
            if self._in_memory >= self._run_rows:
                self._spill()

    def look(self, keys: Any, hashes: Any) -> tuple[_Flags, _Flags]:
        """Returns for each record whether its key is there, and whether it is there only with other hashes.

        Args:
            keys: as in `add`.
            hashes: likewise.

        Raises:
            OSError: the files cannot be read.
            TypeError, ValueError: as in `add`.
        """
        unordered = self._columns(keys, hashes)
        self._sort()
        order = np.argsort(unordered[0], kind="stable")
        asked = [column[order] for column in unordered]
        found: _Flags = np.zeros((2, len(order)), np.bool_)
        for run in (*self._sorted, *self._on_disk):
            start = np.searchsorted(asked[0], run.first)
            end = np.searchsorted(asked[0], run.last, "right")
            if start < end:
                found[:, start:end] |= _find(run.read(), [column[start:end] for column in asked])
        result = np.empty_like(found)
        result[:, order] = found
        is_there, is_same = result
        return is_there, is_there & ~is_same

    def close(self) -> None:
        """Removes the files. It can be called again.

        Raises:
            OSError: they cannot be removed.
        """
        self._is_closed = True
        self._on_disk, self._sorted, self._unsorted = [], [], []
        if self._folder is not None:
            shutil.rmtree(self._folder)
            self._folder = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _columns(self, keys: Any, hashes: Any) -> tuple[_Words, ...]:
        """Returns the columns of a run, in the rows' own order; nothing of Arrow's memory is in them."""
        if self._is_closed:
            raise ValueError("the keys are closed")
        if hashes.type != pa.uint64():
            raise TypeError(f"expected hashes of type uint64, found {hashes.type}")
        if len(keys) != len(hashes) or keys.null_count or hashes.null_count:
            raise ValueError(
                f"expected a key and a hash in each row, found {len(keys)} keys ({keys.null_count} of them null) and "
                f"{len(hashes)} hashes ({hashes.null_count} of them null)"
            )
        kind = str(keys.type)
        if kind not in _KINDS:
            raise TypeError(f"expected keys of type {', '.join(_KINDS)}, found {kind}")
        if self._kind not in (None, kind):
            raise TypeError(f"expected keys of type {self._kind}, as before, found {kind}")
        if kind == "string":
            whole = _uuid_bytes(keys).view(">u8").astype(np.uint64)
            columns = (np.ascontiguousarray(whole[0::2]), np.ascontiguousarray(whole[1::2]))
        else:
            columns = (np.array(keys.to_numpy()).view(np.uint64),)  # negative ones are in another order, which is fine
        self._kind = kind
        return (*columns, np.array(hashes.to_numpy()))

    def _sort(self) -> None:
        """Sorts what was added since the last time, together with shorter runs: few are left, and few rows moved."""
        if not self._unsorted:
            return
        parts = self._unsorted
        rows = sum(len(columns[0]) for columns in parts)
        kept = list(self._sorted)
        while kept and kept[-1].rows <= rows:
            run = kept.pop()
            parts = [run.columns, *parts]
            rows += run.rows
        columns = tuple(np.concatenate(column) for column in zip(*parts, strict=True))
        if not (columns[0][1:] > columns[0][:-1]).all():
            order = np.lexsort(columns[::-1])
            columns = tuple(column[order] for column in columns)
        self._sorted = [*kept, _Run(columns[0][0], columns[0][-1], rows, columns)]
        self._unsorted = []

    def _spill(self) -> None:
        """Writes the rows in memory as a run."""
        self._unsorted = [*(run.columns for run in self._sorted), *self._unsorted]
        self._sorted = []
        self._sort()
        (run,) = self._sorted
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="keys-", dir=self._parent))
        number = len(self._on_disk)
        files = (self._folder / f"{number}.key", self._folder / f"{number}.hash")
        for path, columns in zip(files, (run.columns[:-1], run.columns[-1:]), strict=True):
            with path.open("wb") as file:
                for column in columns:
                    file.write(column.data)
        self._on_disk.append(run._replace(columns=(), files=files))
        self._sorted, self._in_memory = [], 0


def _find(columns: Sequence[_Words], asked: Sequence[_Words]) -> _Flags:
    """Returns whether a sorted run has the key of each row, and whether it has it with the row's hash.

    Args:
        columns: those of the run.
        asked: those of the rows, which ascend in the first column.
    """
    found: _Flags = np.zeros((2, len(asked[0])), np.bool_)
    left = np.searchsorted(columns[0], asked[0])
    rows = np.flatnonzero(columns[0][np.minimum(left, len(columns[0]) - 1)] == asked[0])
    left, right = left[rows], np.searchsorted(columns[0], asked[0][rows], "right")
    for column, words in zip(columns[1:-1], asked[1:-1], strict=True):
        left, right = _narrow(column, words[rows], left, right)
    found[0, rows] = left < right
    left, right = _narrow(columns[-1], asked[-1][rows], left, right)
    found[1, rows] = left < right
    return found


def _narrow(column: _Words, words: _Words, left: _Places, right: _Places) -> tuple[_Places, _Places]:
    """Returns the part of each range, sorted in this column, that has a word; all are searched at once."""
    return _bound(column, words, left, right, np.less), _bound(column, words, left, right, np.less_equal)


def _bound(column: _Words, words: _Words, left: _Places, right: _Places, goes_on: np.ufunc) -> _Places:
    """Returns the first place in each range whose value does not go on before the word; its end if there is none."""
    left, right = left.copy(), right.copy()
    while (rows := np.flatnonzero(left < right)).size:
        middle = (left[rows] + right[rows]) >> 1
        is_before = goes_on(column[middle], words[rows])
        left[rows[is_before]] = middle[is_before] + 1
        right[rows[~is_before]] = middle[~is_before]
    return left


def _uuid_bytes(keys: Any) -> NDArray[np.uint8]:
    """Returns the bytes of UUIDs that are text, 16 each."""
    if len(keys) == 0:
        return np.empty(0, np.uint8)
    _, offsets, content = keys.buffers()
    bounds = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    if not (np.diff(bounds) == _UUID_CHARACTERS).all():
        raise _not_a_uuid(keys)
    text = np.frombuffer(content, np.uint8)[bounds[0] : bounds[-1]].reshape(-1, _UUID_CHARACTERS)
    try:
        if not (text[:, _DASHES] == ord("-")).all():
            raise _not_a_uuid(keys)
        digits = np.concatenate([text[:, start:end] for start, end in _HEX], axis=1)
        return np.frombuffer(binascii.unhexlify(digits.data), np.uint8)
    except binascii.Error:
        raise _not_a_uuid(keys) from None


def _not_a_uuid(keys: Any) -> ValueError:
    """Returns the error for the first value that is not a UUID."""
    row, key = next((row, key) for row, key in enumerate(keys.to_pylist()) if not _UUID.fullmatch(key))
    return ValueError(f"row {row}: expected a UUID as 36 characters, found {key!r}")
