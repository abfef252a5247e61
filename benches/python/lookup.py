"""Looking up messages of a sealed segment by UUID from Python, in random order and warm, beside LMDB.

The same keys and values are in both. LMDB is asked for one key after the other, in one read transaction, by keys as
bytes.
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
    reader = seglake.open(path, mmap=True)
    for batch in reader.batches():  # which maps every page
        del batch
    read = environment.begin()
    for _ in read.cursor():
        pass
    return reader, read


def array(keys: list[bytes]) -> pa.FixedSizeBinaryArray:
    """The keys as an Arrow array."""
    return pa.array(keys, pa.binary(16))


def run(suite: Suite) -> None:
    """All comparisons."""
    keys, pick = uuids(), random.Random(SEED)
    asked = [pick.choices(keys, k=KEYS) for _ in range(200)]
    given = itertools.cycle([(some, array(some)) for some in asked])
    with tempfile.TemporaryDirectory() as folder:
        reader, read = make(Path(folder), keys)

        def gets() -> None:
            for key in next(given)[0]:
                assert reader.get(key) is not None

        def lmdb_gets() -> None:
            for key in next(given)[0]:
                assert read.get(key) is not None

        def many_to_arrow() -> None:
            assert reader.get_many(next(given)[1]).num_rows == KEYS

        def many_made_arrow() -> None:
            assert reader.get_many(array(next(given)[0])).num_rows == KEYS

        def many_to_records() -> None:
            assert None not in reader.get_many(next(given)[0])

        many, loop, theirs = f"get_many of {KEYS:,}", "LMDB, a loop", (lmdb_gets, KEYS)
        suite.compare("get by bytes", "LMDB get", (gets, KEYS), theirs, 1.0)
        suite.compare(f"{many}: an Arrow array", loop, (many_to_arrow, KEYS), theirs, 20.0)
        suite.compare(f"{many}: bytes, made an Arrow array", loop, (many_made_arrow, KEYS), theirs)
        suite.compare(f"{many}: bytes, to Records", loop, (many_to_records, KEYS), theirs)
        read.abort()
        reader.close()


def main() -> None:
    """Measures, and writes what was found."""
    suite = Suite("python_lookup")
    run(suite)
    suite.finish()


if __name__ == "__main__":
    main()
