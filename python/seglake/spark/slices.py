"""Splits large files, so that several tasks read one."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import seglake
from seglake._files import SegmentFile

__all__ = ["Slice", "slices"]

_THREADS: Final = 16


class Slice(NamedTuple):
    """What is read of a file: the file, about how many bytes that is, and the part; None is the whole file."""

    file: SegmentFile
    size: int
    part: seglake.Part | None = None


def slices(
    files: Iterable[SegmentFile], limit_bytes: int, open_file: Callable[[SegmentFile], seglake.Reader]
) -> Iterator[Slice]:
    """Yields what tasks of at most about `limit_bytes` read of the files, in their order. Opens larger files only.

    A file that cannot be opened, or whose index cannot be read, is not split: who reads it says what is wrong.
    """

    def split(file: SegmentFile) -> list[Slice]:
        if file.size <= limit_bytes:
            return [Slice(file, file.size)]
        try:
            with open_file(file) as reader:
                parts = reader.split(limit_bytes)
        except (seglake.SeglakeError, OSError, ValueError):
            parts = []
        if len(parts) < 2:
            return [Slice(file, file.size)]
        return [Slice(file, part.nbytes, part) for part in parts]

    files = list(files)
    if all(file.size <= limit_bytes for file in files):
        yield from (Slice(file, file.size) for file in files)
        return
    with ThreadPoolExecutor(_THREADS) as threads:
        for own in threads.map(split, files):
            yield from own
