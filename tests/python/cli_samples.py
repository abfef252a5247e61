"""Small files of every format for the tests of the command line's verbs."""

from pathlib import Path
from typing import Any

import seglake

EXTENSIONS = {
    "active": "active",
    "sealed": "sealed",
    "tenant": "tenant",
    "chunked": "chunks",
    "oplog": "oplog",
    "tfrecord": "tfrecord",
}
RECORDS = 20
START_US = 1_700_000_000_000_000


def fields(format: str, number: int) -> dict[str, Any]:
    """What a record of a sample holds beside its value."""
    return {
        "active": {"type": f"t{number % 3}"},
        "sealed": {"type": f"t{number % 3}"},
        "tenant": {"partition": number // 10, "tenant": "ab"[number % 10 // 5]},
        "chunked": {"timestamp": START_US + number},
        "oplog": {"version": 1, "checkpointer": 1, "clock": [], "abi": 0, "batch": 1},
        "tfrecord": {},
    }[format]


def sample(folder: Path, format: str, **options: Any) -> Path:
    """Writes a file of 20 records whose values are their numbers, in order."""
    path = folder / f"sample.{EXTENSIONS[format]}"
    how: dict[str, Any] = {
        "format": format,
        **({"options": {"chunk_records": 4}} if format == "chunked" else {}),
        **options,
    }
    with seglake.create(path, **how) as writer:
        for number in range(RECORDS):
            writer.write(value=b"%d" % number, **fields(format, number))
    return path


def damage(path: Path, number: int) -> None:
    """Flips a bit in the value of a record of a sample whose values stand in it as they are."""
    with seglake.open(path) as reader:
        record = list(reader)[number]
    content = bytearray(path.read_bytes())
    at = content.index(record.value, record.position + (12 if path.suffix == ".tfrecord" else 16))
    content[at] ^= 1
    path.write_bytes(content)
