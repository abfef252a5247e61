"""Looking up messages of a sealed segment by UUID from Python, in random order and warm, beside LMDB.

The same keys and values are in both. LMDB is asked for one key after the other, in one read transaction, by keys as
bytes.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import pyarrow as pa

import seglake

MESSAGES = int(os.environ.get("SEGLAKE_RATIOS_MESSAGES", "2000000"))
VALUE_BYTES = 120
KEYS = 1000
"""How many keys one run looks up."""
ROUNDS = 15
RUNS = 20
"""So many in a row are one measurement."""
SEED = 7

Row = dict[str, Any]


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


def seconds(run: Callable[[Any], None], keys: Any) -> float:
    """The time that this thread takes on a processor for it."""
    begun = time.thread_time()
    run(keys)
    return time.thread_time() - begun


def compare(
    name: str,
    beside: str,
    target: float | None,
    ours: Callable[[Any], None],
    theirs: Callable[[list[bytes]], None],
    keys: list[bytes],
    convert: Callable[[list[bytes]], Any] = list,
) -> Row:
    """Measures both in turns, each time with other keys, which ours gets converted, and gives the medians."""
    pick = random.Random(SEED)
    own, other = list[float](), list[float]()
    for measured in [False, *[True] * ROUNDS]:
        mine = peer = 0.0
        for _ in range(RUNS):
            mine += seconds(ours, convert(pick.choices(keys, k=KEYS)))
            peer += seconds(theirs, pick.choices(keys, k=KEYS))
        if measured:
            own.append(mine)
            other.append(peer)
    ratio = statistics.median(peer / mine for mine, peer in zip(own, other, strict=True))
    million = RUNS * KEYS / 1e6
    row: Row = {
        "name": name,
        "beside": beside,
        "unit": "M/s",
        "ours": million / statistics.median(own),
        "reference": million / statistics.median(other),
        "ratio": ratio,
        "target": target,
        "holds": None if target is None else ratio >= target,
    }
    told = "" if target is None else f"  target {target:.2f}" + ("" if row["holds"] else "  MISSED")
    print(
        f"{name:<44} {row['ours']:>9.3f} M/s   {beside:<34} {row['reference']:>9.3f}  ratio {ratio:>7.2f}{told}",
        flush=True,
    )
    return row


def array(keys: list[bytes]) -> pa.FixedSizeBinaryArray:
    """The keys as an Arrow array."""
    return pa.array(keys, pa.binary(16))


def run() -> list[Row]:
    """All comparisons."""
    keys = uuids()
    with tempfile.TemporaryDirectory() as folder:
        reader, read = make(Path(folder), keys)

        def gets(keys: list[bytes]) -> None:
            get = reader.get
            for key in keys:
                assert get(key) is not None

        def lmdb_gets(keys: list[bytes]) -> None:
            get = read.get
            for key in keys:
                assert get(key) is not None

        def many_to_arrow(keys: Any) -> None:
            assert reader.get_many(keys).num_rows == KEYS

        def many_made_arrow(keys: list[bytes]) -> None:
            many_to_arrow(array(keys))

        def many_to_records(keys: list[bytes]) -> None:
            assert None not in reader.get_many(keys)

        many, loop = f"get_many of {KEYS:,}", "LMDB, a loop"
        rows = [
            compare("get by bytes", "LMDB get", 1.0, gets, lmdb_gets, keys),
            compare(f"{many}: an Arrow array", loop, 20.0, many_to_arrow, lmdb_gets, keys, array),
            compare(f"{many}: bytes, made an Arrow array", loop, None, many_made_arrow, lmdb_gets, keys),
            compare(f"{many}: bytes, to Records", loop, None, many_to_records, lmdb_gets, keys),
        ]
        read.abort()
        reader.close()
    return rows


def main() -> None:
    """Prints what was found, and writes it to the folder in SEGLAKE_RATIOS."""
    rows = run()
    if folder := os.environ.get("SEGLAKE_RATIOS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "python_lookup.json").write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
