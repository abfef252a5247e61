"""Large files are split, and files and their parts are packed into tasks."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, Protocol, TypeVar

import seglake
from seglake.read.formats import grows
from seglake.stores import SegmentFile

__all__ = ["After", "Growth", "Slice", "pack", "split", "task_bytes"]


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


_File = TypeVar("_File", bound=_Sized)


def pack(files: Sequence[_File], limit_bytes: int, open_cost_bytes: int) -> list[list[_File]]:
    """Packs files, or slices of them, into tasks of at most `limit_bytes`, each counting for `open_cost_bytes` more.

    Files stay in order, so that what is close in name, and so mostly in time, comes into the same task.
    """
    tasks: list[list[_File]] = []
    room = 0
    for file in files:
        cost = file.size + open_cost_bytes
        if not tasks or cost > room:
            tasks.append([])
            room = limit_bytes
        tasks[-1].append(file)
        room -= cost
    return tasks


def task_bytes(files: Sequence[_Sized], *, most: int, open_cost_bytes: int, parallelism: int) -> int:
    """Returns the limit for `pack` by the rule of Spark's own file sources: an even share, within bounds.

    Args:
        files: all files.
        most: the upper bound in bytes.
        open_cost_bytes: the lower bound, and what each file counts for beside its size.
        parallelism: how many tasks run at a time.
    """
    total = sum(file.size + open_cost_bytes for file in files)
    return min(most, max(open_cost_bytes, -(-total // parallelism)))


_THREADS: Final = 16


class After(NamedTuple):
    """A place in a segment of a log: the offset in its active file, and the UUID of the last record before it."""

    byte: int
    last: uuid.UUID


class Growth(NamedTuple):
    """What a file has between two positions.

    Attributes:
        path: the file, as it was called when the second position was found.
        start: the JSON of the `seglake.incremental.Position` after which it begins; None is the beginning of the file.
        end: the JSON of the one at which it ends.
        nbytes: about how many bytes that is.
    """

    path: str
    start: str | None
    end: str
    nbytes: int


class Slice(NamedTuple):
    """What is read of a file.

    Attributes:
        file: the file.
        size: about how many bytes that is.
        part: the part of the file; None is the whole file.
        after: of a segment of a log, only what comes after this.
        growth: of a stream of files, only this, and in the file that has it by now.
        bad: why nothing of the file can be read: `wrong_key`, `not_a_segment`, `conflict` or `unreadable`; None if it
            is to be read.
        format: the file's format; None is that of the load.
    """

    file: SegmentFile
    size: int
    part: seglake.incremental.Part | None = None
    after: After | None = None
    growth: Growth | None = None
    bad: str | None = None
    format: str | None = None


def split(slices: Sequence[Slice], limit_bytes: int, open_slice: Callable[[Slice], seglake.Reader]) -> Iterator[Slice]:
    """Yields the slices of files, in their order, the larger ones split to about `limit_bytes`. Opens these only.

    A file that cannot be opened, or whose index cannot be read, is not split: who reads it says what is wrong. Nor is
    one that is not read from its beginning, or that may grow while it is read.
    """

    def parts_of(slice: Slice) -> list[Slice]:
        if slice.size <= limit_bytes or slice.after is not None or not _is_whole(slice.growth):
            return [slice]
        try:
            with open_slice(slice) as reader:
                parts = reader.split(limit_bytes)
        except (seglake.SeglakeError, OSError, ValueError):
            parts = []
        return [slice] if len(parts) < 2 else [slice._replace(size=part.nbytes, part=part) for part in parts]

    if all(slice.size <= limit_bytes for slice in slices):
        yield from slices
        return
    with ThreadPoolExecutor(_THREADS) as threads:
        for own in threads.map(parts_of, slices):
            yield from own


def _is_whole(growth: Growth | None) -> bool:
    """Tells whether a growth, if it is one, is all of a complete file."""
    return growth is None or (
        growth.start is None and not grows(seglake.incremental.Position.from_json(growth.end).format)
    )
