"""The rules of the example format in plain Python: docs/adding-a-format.md, written from that text alone.

`python tests/python/sharded_reference.py` writes the golden files of tests/vectors/sharded.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

VECTORS = Path(__file__).parents[1] / "vectors" / "sharded"
HEADER = struct.Struct(">IqHQBI")
HASHED = struct.Struct(">IqHQB")


# The most that a length of 32 bits says.
MAX_BODY_BYTES = 2**32 - 1


class Record(NamedTuple):
    """One record."""

    time: int
    shard: int
    sequence: int
    level: int
    body: bytes


def encode(record: Record) -> bytes:
    """The bytes of a record."""
    fields = HASHED.pack(len(record.body), record.time, record.shard, record.sequence, record.level)
    return fields + struct.pack(">I", zlib.crc32(fields + record.body)) + record.body


def fault(file: bytes, at: int, body_bytes: int = MAX_BODY_BYTES) -> str | None:
    """What is wrong with the record at this offset: the first rule that it breaks."""
    if len(file) - at < HEADER.size:
        return "truncated_header"
    length, *_, checksum = HEADER.unpack_from(file, at)
    if length > body_bytes or length > len(file) - at - HEADER.size:
        return "length_out_of_bounds"
    body = file[at + HEADER.size : at + HEADER.size + length]
    if zlib.crc32(file[at : at + HASHED.size] + body) != checksum:
        return "checksum_mismatch"
    return None


def end_of(file: bytes, at: int) -> int:
    """Where the record at this offset says that it ends."""
    return at + HEADER.size + int(struct.unpack_from(">I", file, at)[0])


def resync(file: bytes, at: int, body_bytes: int = MAX_BODY_BYTES) -> int | None:
    """Where the damage at this offset ends: before a record, or `None` at the end of the file."""
    if fault(file, at, body_bytes) == "checksum_mismatch":
        end = end_of(file, at)
        if end == len(file):
            return None
        if fault(file, end, body_bytes) is None:
            return end
    return next((place for place in range(at + 1, len(file)) if fault(file, place, body_bytes) is None), None)


def scan(file: bytes, body_bytes: int = MAX_BODY_BYTES) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """The records of a file, and its ledger. Bodies have at most `body_bytes` bytes."""
    records: list[dict[str, Any]] = []
    ledger: list[list[Any]] = []
    at = 0
    while at < len(file):
        cause = fault(file, at, body_bytes)
        if cause is None:
            _, time, shard, sequence, level, _ = HEADER.unpack_from(file, at)
            end = end_of(file, at)
            fields = {"timestamp": time, "shard": shard, "sequence": sequence, "level": level}
            records.append({"position": at, **fields, "value": shown(file[at + HEADER.size : end])})
            ledger.append([at, end, "record", None])
        else:
            found = resync(file, at, body_bytes)
            end = len(file) if found is None else found
            # What is larger than allowed may be whole.
            is_large = len(file) - at >= HEADER.size and HEADER.unpack_from(file, at)[0] > body_bytes
            is_torn = found is None and not is_large and (bool(records) or cause != "checksum_mismatch")
            ledger.append([at, end, "torn_tail" if is_torn else "corrupt", cause])
        at = end
    return records, ledger


def shown(body: bytes) -> Any:
    """A body as the golden files have it."""
    if len(body) > 96:
        return {"sha256": hashlib.sha256(body).hexdigest(), "length": len(body)}
    return body.hex()


def golden(about: str, file: bytes, *, encodes: bool) -> dict[str, Any]:
    """What a golden file says of these bytes."""
    records, ledger = scan(file)
    damage = next((span for span in ledger if span[3]), None)
    return {
        "format": "sharded",
        "about": about,
        "options": {},
        "size": len(file),
        "encode": {} if encodes else None,
        "strict_error": damage and {"offset": damage[0], "cause": damage[3]},
        "ledger": ledger,
        "records": records,
    }


def typical(count: int = 10) -> list[Record]:
    """Records of three shards."""
    draw = random.Random(7)
    return [
        Record(
            1_700_000_000_000_000 + 1_000 * number,
            number % 3,
            number // 3,
            draw.randrange(8),
            draw.randbytes(draw.randrange(60)),
        )
        for number in range(count)
    ]


def sound() -> dict[str, tuple[str, bytes]]:
    """Files without damage."""
    files = {
        "empty": ("no records", []),
        "minimal": ("one record with an empty body", [Record(0, 0, 0, 0, b"")]),
        "typical": ("ten records of three shards", typical()),
        "many": ("three hundred records", typical(300)),
        "extremes": (
            "the least and the greatest number of each field",
            [
                Record(-(2**63), 0, 0, 0, b"\0"),
                Record(2**63 - 1, 2**16 - 1, 2**64 - 1, 255, b"\xff" * 300),
                Record(0, 1, 2**63, 128, b""),
            ],
        ),
        "same_identifier": ("two records of one shard and sequence", [typical()[4]] * 2),
        "large": (
            "a body of 70,000 bytes between two others",
            [*typical(1), Record(5, 6, 7, 8, b"large " * 11_667), *typical(1)],
        ),
        "zeros": ("bodies of zeros", [Record(number, 0, number, 0, bytes(40)) for number in range(4)]),
        "record_in_a_body": (
            "a body that is a whole record",
            [*typical(2), Record(1, 2, 3, 4, encode(typical()[5])), *typical(2)],
        ),
    }
    return {name: (about, b"".join(map(encode, records))) for name, (about, records) in files.items()}


def damaged() -> dict[str, tuple[str, bytes]]:
    """Files with damage, made of the typical one."""
    records = typical()
    starts = [sum(len(encode(record)) for record in records[:number]) for number in range(len(records) + 1)]
    whole = b"".join(map(encode, records))

    def flip(at: int, bit: int = 0) -> bytes:
        return whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]

    files: dict[str, tuple[str, bytes]] = {}
    fields = {
        "length_high": 0,
        "length_low": 3,
        "time": 8,
        "shard": 13,
        "sequence": 20,
        "level": 22,
        "checksum": 25,
        "body": 28,
    }
    for place, name in ((0, "first"), (5, "middle"), (9, "last")):
        for field, offset in fields.items():
            if starts[place] + offset < starts[place + 1]:
                about = f"a flipped bit in the {field.replace('_', ' ')} of the {name} record"
                files[f"flip_{field}_{name}"] = (about, flip(starts[place] + offset))
    for left in (1, 4, 26, 27):
        files[f"cut_{left}"] = (f"only {left} bytes of the last record are left", whole[: starts[9] + left])
    files["cut_one"] = ("the last byte is missing", whole[:-1])
    files["cut_first"] = ("only a part of the first record is left", whole[:30])
    middle = starts[4]
    files["bytes_missing"] = ("seven bytes of a record are missing", whole[: middle + 10] + whole[middle + 17 :])
    files["bytes_more"] = (
        "seven bytes are inserted into a record",
        whole[: middle + 10] + b"another" + whole[middle + 10 :],
    )
    files["noise_between"] = (
        "noise between two records",
        whole[:middle] + random.Random(1).randbytes(200) + whole[middle:],
    )
    files["noise_before"] = ("noise before the first record", b"noise" + whole)
    files["noise_behind"] = ("noise after the last record", whole + b"noise")
    files["zeros_behind"] = ("zeros after the last record", whole + bytes(500))
    files["zeroed"] = (
        "two records overwritten with zeros",
        whole[: starts[3]] + bytes(starts[5] - starts[3]) + whole[starts[5] :],
    )
    files["swapped"] = (
        "two records in each other's place",
        whole[: starts[2]] + whole[starts[3] : starts[4]] + whole[starts[2] : starts[3]] + whole[starts[4] :],
    )
    files["twice"] = (
        "damage in two places",
        bytes(a ^ (1 if at in (starts[2] + 9, starts[7] + 3) else 0) for at, a in enumerate(whole)),
    )
    files["noise"] = ("nothing but noise", random.Random(2).randbytes(600))
    files["text"] = ("lines of text", b"2023-01-10 16:37:53 a line of another log\n" * 20)
    files["only_zeros"] = ("nothing but zeros", bytes(300))
    inner = encode(records[5])
    outer = encode(Record(1, 2, 3, 4, b"before" + inner + b"after"))
    wrong = outer[:-1] + b"R"
    files["flip_around_a_record"] = (
        "a damaged record whose body holds a whole one",
        whole[:middle] + wrong + whole[middle:],
    )
    files["flip_around_a_record_last"] = ("the same at the end of the file", whole + wrong)
    files["length_around_a_record"] = (
        "a damaged length of a record whose body holds a whole one",
        whole[:middle] + b"\xff" + outer[1:] + whole[middle:],
    )
    return files


def vectors() -> dict[str, tuple[bytes, dict[str, Any]]]:
    """All golden files: their bytes, and what is said of them."""
    files = {name: (file, golden(about, file, encodes=True)) for name, (about, file) in sound().items()}
    return files | {name: (file, golden(about, file, encodes=False)) for name, (about, file) in damaged().items()}


def main() -> None:
    """Write the golden files."""
    VECTORS.mkdir(exist_ok=True)
    for name, (file, expected) in vectors().items():
        (VECTORS / f"{name}.bin").write_bytes(file)
        (VECTORS / f"{name}.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
