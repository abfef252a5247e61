"""A hash of records in their order. A later run goes on with it where an earlier one stopped."""

import zlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Self, cast

import pyarrow as pa
import pyarrow.compute as pc

import seglake

__all__ = ["COLUMNS", "RecordDigest", "record_batches", "streams"]

_compute: Final = cast("Any", pc)  # typed in part only

COLUMNS: Final = ("uuid", "type", "value")
"""The columns that are the same in an active and in a sealed file."""


def record_batches(reader: seglake.Reader) -> Iterator[Any]:
    """Yields the records of a file in batches of `pyarrow`, and warns of no damage.

    Raises:
        OSError, seglake.SeglakeError: it cannot be read.
    """
    for batch in reader.batches(warn=False):
        yield pa.record_batch(cast("Any", batch))


def streams(batch: Any, rows: int) -> Iterator[bytes | memoryview]:
    """Yields the lengths and the contents of each column of the first rows.

    They are separate, so that a hash of them does not depend on how the rows are divided into batches.
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
    """A hash of records: CRC-32 and Adler-32 of each of `streams`.

    The state of these hashes is the hash itself, so a run goes on with it without reading anything again. They do not
    detect tampering: the files have checksums with a key for that.

    Attributes:
        number: how many records these are.
        sums: CRC-32 and Adler-32 of each stream.
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
