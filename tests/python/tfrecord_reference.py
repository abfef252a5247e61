"""The rules of docs/formats/tfrecord.md in plain Python, written from that text alone.

`python tests/python/tfrecord_reference.py` writes the golden files of tests/vectors/tfrecord. Those that TensorFlow,
TensorBoard or the package tfrecord wrote are not written anew.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[1] / "vectors" / "tfrecord"
# The length and its checksum, and the checksum of the data.
HEADER, TRAILER = 12, 4


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def masked(data: bytes) -> int:
    """The checksum of bytes as a file has it: CRC-32C, rotated, plus a constant."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def encode(data: bytes) -> bytes:
    """The bytes of a record."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def header(file: bytes, at: int) -> tuple[int, bool]:
    """Where the record at this offset says that it ends, and whether its length's checksum is right."""
    length, stored = struct.unpack_from("<QI", file, at)
    return at + HEADER + length + TRAILER, masked(file[at : at + 8]) == stored


def data_is_right(file: bytes, at: int, end: int) -> bool:
    """Whether the checksum of a record's data is right. False if it is not within the file."""
    return end <= len(file) and masked(file[at + HEADER : end - TRAILER]) == int.from_bytes(
        file[end - TRAILER : end], "little"
    )


def fault(file: bytes, at: int) -> str | None:
    """What is wrong with the record at this offset: the first check that fails."""
    if len(file) - at < HEADER:
        return "truncated_header"
    end, is_proven = header(file, at)
    if not is_proven:
        return "header_checksum_mismatch"
    if end > len(file):
        return "length_out_of_bounds"
    return None if data_is_right(file, at, end) else "checksum_mismatch"


def damage(file: bytes, at: int, cause: str) -> tuple[int | None, bool]:
    """Where the damage at this offset ends, `None` at the end; and whether a header was proven."""
    if cause == "checksum_mismatch":
        return header(file, at)[0], True
    if cause != "header_checksum_mismatch":
        return None, cause == "length_out_of_bounds"
    end, _ = header(file, at)
    if data_is_right(file, at, end):
        return end, False
    proven = [place for place in range(at + 1, len(file) - HEADER + 1) if header(file, place)[1]]
    return next((place for place in proven if fault(file, place) is None), None), bool(proven)


def scan(file: bytes) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """The records of a file, and its ledger."""
    records: list[dict[str, Any]] = []
    ledger: list[list[Any]] = []
    at, any_proven = 0, False
    while at < len(file):
        cause = fault(file, at)
        if cause is None:
            any_proven, end = True, header(file, at)[0]
            records.append({"position": at, "value": shown(file[at + HEADER : end - TRAILER])})
            ledger.append([at, end, "record", None])
        else:
            found, proven = damage(file, at, cause)
            any_proven |= proven
            end = found or len(file)
            # Zeros at the end are unused, except one byte if nothing else is there.
            used = end if found else max(len(file.rstrip(b"\0")), at + 1)
            is_torn = end == len(file) and (any_proven or cause in ("truncated_header", "length_out_of_bounds"))
            kind = "torn_tail" if is_torn else "corrupt"
            if ledger and ledger[-1][1:] == [at, kind, cause]:
                ledger[-1][1] = used
            else:
                ledger.append([at, used, kind, cause])
            if used < end:
                ledger.append([used, end, "unused", None])
        at = end
    return records, ledger


def shown(value: bytes) -> Any:
    """A value as the golden files have it."""
    if len(value) > 96:
        return {"sha256": hashlib.sha256(value).hexdigest(), "length": len(value)}
    return value.hex()


def golden(about: str, file: bytes, *, encodes: bool) -> dict[str, Any]:
    """What a golden file says of these bytes."""
    records, ledger = scan(file)
    first = next((span for span in ledger if span[3]), None)
    return {
        "format": "tfrecord",
        "about": about,
        "options": {},
        "size": len(file),
        "encode": {} if encodes else None,
        "strict_error": first and {"offset": first[0], "cause": first[3]},
        "ledger": ledger,
        "records": records,
    }


def typical(count: int = 10) -> list[bytes]:
    """Values of a few bytes, some of them empty."""
    draw = random.Random(7)
    return [draw.randbytes(draw.choice([0, 1, 8, 40, 120])) for _ in range(count)]


def sound() -> dict[str, tuple[str, bytes]]:
    """Files without damage."""
    files = {
        "empty": ("no records", []),
        "minimal": ("one empty record", [b""]),
        "typical": ("ten records", typical()),
        "many": ("three hundred records", typical(300)),
        "twice_the_same": ("two records of the same bytes", [b"same"] * 2),
        "large": ("a record of 70,000 bytes between two others", [b"a", b"large " * 11_667, b"b"]),
        "zeros_in_records": ("records of zeros", [bytes(40)] * 3),
        "file_in_a_record": ("a record that is a whole file", [b"a", b"".join(map(encode, typical(4))), b"b"]),
    }
    return {name: (about, b"".join(map(encode, values))) for name, (about, values) in files.items()}


def damaged() -> dict[str, tuple[str, bytes]]:
    """Files with damage, made of the typical one."""
    values = [value or b"value" for value in typical()]
    parts = [encode(value) for value in values]
    starts = [sum(map(len, parts[:number])) for number in range(len(parts) + 1)]
    whole = b"".join(parts)

    def flip(file: bytes, at: int, bit: int = 0) -> bytes:
        return file[:at] + bytes([file[at] ^ 1 << bit]) + file[at + 1 :]

    files: dict[str, tuple[str, bytes]] = {}
    for place, name in ((0, "first"), (5, "middle"), (9, "last")):
        last = starts[place + 1] - 1
        fields = {"length_low": starts[place], "length_high": starts[place] + 7, "length_crc": starts[place] + 9}
        for field, at in (fields | {"data": starts[place] + 12, "data_crc": last}).items():
            about = f"a flipped bit in the {field.replace('_', ' ')} of the {name} record"
            files[f"flip_{field}_{name}"] = (about, flip(whole, at))
    for left in (1, 11, 12, 15):
        files[f"cut_{left}"] = (f"only {left} bytes of the last record are left", whole[: starts[9] + left])
    files["cut_one"] = ("the last byte is missing", whole[:-1])
    files["cut_first"] = ("only a part of the first record is left", whole[:14])
    files["cut_first_header"] = ("only a part of the first header is left", whole[:5])
    zero_end = whole[: starts[9]] + encode(b"end" + bytes(60))[:40]
    files["cut_in_zeros"] = ("a record that is cut off in zeros of its data", zero_end)
    middle = starts[4]
    files["bytes_missing"] = ("three bytes of a record are missing", whole[: middle + 13] + whole[middle + 16 :])
    files["bytes_more"] = ("seven bytes more in a record", whole[: middle + 13] + b"another" + whole[middle + 13 :])
    noise = random.Random(1).randbytes(200)
    files["noise_between"] = ("noise between two records", whole[:middle] + noise + whole[middle:])
    files["noise_before"] = ("noise before the first record", b"noise of a kind" + whole)
    files["noise_behind"] = ("noise after the last record", whole + b"noise of a kind")
    files["noise_behind_short"] = ("noise after the last record, shorter than a header", whole + b"noise")
    files["zeros_behind"] = ("zeros after the last record", whole + bytes(500))
    files["zeros_behind_short"] = ("zeros after the last record, fewer than a header has", whole + bytes(5))
    files["zeros_behind_damage"] = ("a damaged record, and zeros after it", flip(whole, starts[9] + 12) + bytes(300))
    files["zeroed"] = (
        "two records overwritten with zeros",
        whole[: starts[3]] + bytes(starts[5] - starts[3]) + whole[starts[5] :],
    )
    files["zeroed_end"] = ("the last records overwritten with zeros", whole[: starts[7] + 3] + bytes(90))
    files["two_damaged"] = ("two damaged records, one after the other", flip(flip(whole, starts[3] + 12), middle + 12))
    files["noise"] = ("nothing but noise", random.Random(2).randbytes(600))
    files["text"] = ("lines of text", b"2023-01-10 16:37:53 a line of a log\n" * 20)
    files["only_zeros"] = ("nothing but zeros", bytes(300))
    files["only_damage"] = ("one record, with another checksum of its length", flip(encode(b"value"), 9))
    files["damage_before_damage"] = (
        "a header that is not proven before one that is, and no sound record",
        flip(encode(b"first"), 0) + flip(encode(b"second"), 14),
    )
    huge = struct.pack("<Q", 2**63)
    huge += struct.pack("<I", masked(huge))
    files["length_huge"] = ("a proven length of 2^63", whole[:middle] + huge + whole[middle:])
    most = b"\xff" * 8
    most += struct.pack("<I", masked(most))
    files["length_greatest"] = ("a proven length of 2^64-1", whole[:middle] + most + whole[middle:])
    inner = encode(b"inner") * 2
    outer = encode(b"before" + inner + b"after")
    for name, at, about in (("data", 14, "data"), ("length_crc", 9, "checksum of the length"), ("length", 0, "length")):
        wrong = flip(outer, at)
        files[f"file_in_a_record_{name}"] = (
            f"a record that holds records, with a damaged {about}",
            whole[:middle] + wrong + whole[middle:],
        )
        files[f"file_in_a_record_{name}_last"] = (
            f"a last record that holds records, with a damaged {about}",
            whole + wrong,
        )
    files["file_in_a_record_cut"] = ("a last record that holds records, cut off", whole + outer[:-6])
    files["missing_and_appended"] = ("a record that was cut off before more were appended", whole[:-20] + whole)
    return files


FOREIGN = {
    "tensorflow": "written by TensorFlow 2.21: records of any bytes",
    "examples": "written by TensorFlow 2.21: records of tf.train.Example",
    "one": "written by the package tfrecord 1.14.6: one record",
    "events": "written by TensorBoard 2.21: events",
}
"""Files of other writers. Their .json has what these rules make of them: the records that TensorFlow's reader gives."""


def vectors() -> dict[str, tuple[bytes, dict[str, Any]]]:
    """All golden files: their bytes, and what is said of them."""
    files = {name: (file, golden(about, file, encodes=True)) for name, (about, file) in sound().items()}
    files |= {name: (file, golden(about, file, encodes=False)) for name, (about, file) in damaged().items()}
    for name, about in FOREIGN.items():
        file = (VECTORS / f"{name}.bin").read_bytes()
        files[name] = (file, golden(about, file, encodes=True))
    return files


def main() -> None:
    """Write the golden files."""
    for name, (file, expected) in vectors().items():
        if name not in FOREIGN:
            (VECTORS / f"{name}.bin").write_bytes(file)
            (VECTORS / f"{name}.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
