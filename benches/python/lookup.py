"""Looking up messages of a sealed segment by UUID from Python, in random order and warm, compared with LMDB.

The same keys and values are in both. LMDB is asked in one read transaction: for one key by `get`, for many by
`getmulti`. Each side has other keys in each round, and gives the same: bytes objects, or an Arrow array.
"""

from __future__ import annotations

import itertools
import os
import random
import tempfile
from pathlib import Path

import lmdb
import pyarrow as pa
from _interleaved import Suite

import seglake

MESSAGES = int(os.environ.get("SEGLAKE_RATIOS_MESSAGES", "2000000"))
VALUE_BYTES = 120
KEYS = 1000
"""How many keys one run looks up."""
RUNS_OF_A_ROUND = 128
"""How many runs' keys are drawn for each round. A round uses fewer."""
SEED = 7


def uuids() -> list[bytes]:
    """Ascending UUIDs of version 6, their times as of independent arrivals, as bytes."""
    pick = random.Random(SEED)
    tick, keys = 0x01EE_0000_0000_0000, list[bytes]()
    for _ in range(MESSAGES):
        tick += pick.randrange(1, 100_001)
        head = tick >> 12 << 16 | 0x6000 | tick & 0xFFF
        keys.append((head << 64 | 0x8007_0102_0304_0506).to_bytes(16))
    return keys


def make(folder: Path, keys: list[bytes]) -> tuple[seglake.Reader, lmdb.Transaction]:
    """The same messages in a sealed segment, mapped, and in LMDB, both of them in memory."""
    pick, path = random.Random(SEED), folder / "messages.sealed"
    environment = lmdb.open(str(folder / "lmdb"), map_size=MESSAGES * 512 + (64 << 20), sync=False)
    with seglake.create(path, format="sealed") as writer, environment.begin(write=True) as write:
        for start in range(0, MESSAGES, 10_000):
            some = keys[start : start + 10_000]
            values = [pick.randbytes(VALUE_BYTES) for _ in some]
            writer.write_batch(
                pa.table(
                    {"uuid": pa.array(some, pa.binary(16)), "type": ["order.created"] * len(some), "value": values}
                )
            )
            for key, value in zip(some, values, strict=True):
                write.put(key, value, append=True)
    reader = seglake.open(path, memory_map=True)
    for batch in reader.batches():  # which maps every page
        del batch
    read = environment.begin()
    for _ in read.cursor():
        pass
    return reader, read


def array(keys: list[bytes]) -> pa.FixedSizeBinaryArray:
    """The keys as an Arrow array."""
    return pa.array(keys, pa.binary(16))


class Keys:
    """Keys in random order, a thousand at a time, as bytes and as Arrow arrays."""

    def __init__(self, keys: list[bytes], seed: int) -> None:
        self._keys = keys
        self._random = random.Random(seed)
        self.draw()

    def draw(self) -> None:
        """Draws the keys of the next round."""
        drawn = [self._random.choices(self._keys, k=KEYS) for _ in range(RUNS_OF_A_ROUND)]
        self._some = itertools.cycle([(some, array(some)) for some in drawn])

    def as_bytes(self) -> list[bytes]:
        """The next ones."""
        return next(self._some)[0]

    def as_arrow(self) -> pa.FixedSizeBinaryArray:
        """The next ones."""
        return next(self._some)[1]


def run(suite: Suite) -> None:
    """All comparisons."""
    keys = uuids()
    own, other = Keys(keys, SEED), Keys(keys, SEED + 1)
    with tempfile.TemporaryDirectory() as folder:
        reader, read = make(Path(folder), keys)
        cursor = read.cursor()

        def get() -> None:
            for key in own.as_bytes():
                record = reader.get(key)
                assert record is not None
                assert len(record.value) == VALUE_BYTES

        def lmdb_get() -> None:
            for key in other.as_bytes():
                value = read.get(key)
                assert value is not None
                assert len(value) == VALUE_BYTES

        def get_many() -> None:
            values = [record.value for record in reader.get_many(own.as_bytes()) if record is not None]
            assert len(values) == KEYS

        def lmdb_get_many() -> None:
            values = [value for _, value in cursor.getmulti(other.as_bytes())]
            assert len(values) == KEYS

        def get_many_arrow() -> None:
            assert pa.record_batch(reader.get_many(own.as_arrow())).num_rows == KEYS

        def lmdb_get_many_arrow() -> None:
            values = [value for _, value in cursor.getmulti(other.as_arrow().to_pylist())]
            assert len(pa.array(values, pa.binary())) == KEYS

        def prepare() -> None:
            own.draw()
            other.draw()

        for name, beside, ours, theirs in (
            ("get from Python, a value", "LMDB get", get, lmdb_get),
            (f"get_many of {KEYS} from Python, values", "LMDB getmulti", get_many, lmdb_get_many),
            (
                f"get_many of {KEYS} from Python, Arrow",
                "LMDB getmulti, from and to Arrow",
                get_many_arrow,
                lmdb_get_many_arrow,
            ),
        ):
            suite.compare(name, beside, (ours, KEYS), (theirs, KEYS), 1.0, prepare=prepare)
        cursor.close()
        read.abort()
        reader.close()


def main() -> None:
    """Measures, and writes the results."""
    suite = Suite("python_lookup")
    run(suite)
    suite.finish()


if __name__ == "__main__":
    main()
