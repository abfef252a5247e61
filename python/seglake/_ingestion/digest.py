"""A hash of records in their order, which a later run goes on with where an earlier one stopped."""

import zlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Self, cast

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["COLUMNS", "RecordDigest", "streams"]

_compute: Final = cast("Any", pc)  # typed in part only

COLUMNS: Final = ("uuid", "type", "value")
"""What is the same of a record in an active and in a sealed file."""


def streams(batch: Any, rows: int) -> Iterator[bytes | memoryview]:
    """Yields the lengths and the contents of each column of the first rows.

    Apart, so that it does not matter how the rows are in batches.
    """
    for name in COLUMNS:
        values = batch.column(name).slice(0, rows).cast(pa.large_binary())
        whole = cast("Any", pa).concat_arrays([values])
        offsets = memoryview(whole.buffers()[1]).cast("q")[whole.offset : whole.offset + rows + 1]
        lengths = _compute.binary_length(whole).fill_null(-1)
        yield memoryview(lengths.buffers()[1])[lengths.offset * 8 : (lengths.offset + rows) * 8]
        content = whole.buffers()[2]
        yield memoryview(content)[offsets[0] : offsets[-1]] if rows and content is not None else b""


class RecordDigest(NamedTuple):
    """A hash of so many records.

    It is CRC-32 and Adler-32 of each of `streams`. They are not for tampering, as the files have checksums with a key
    for that, but their state is the hash itself. So it goes on over many runs without reading anything again.
    """

    number: int = 0
    sums: tuple[tuple[int, int], ...] = ((0, 1),) * (2 * len(COLUMNS))

    def plus(self, batch: Any) -> Self:
        """Returns that of these records and all of a batch."""
        rows = int(batch.num_rows)
        added = zip(self.sums, streams(batch, rows), strict=True)
        return type(self)(
            self.number + rows,
            tuple((zlib.crc32(data, crc), zlib.adler32(data, adler)) for (crc, adler), data in added),
        )

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Makes it of what JSON has made of it.

        Raises:
            ValueError, TypeError: it is not that.
        """
        number, sums = content
        found = tuple((int(crc), int(adler)) for crc, adler in sums)
        if len(found) != 2 * len(COLUMNS):
            raise ValueError(f"it has {len(found)} hashes of columns")
        return cls(int(number), found)
