"""The golden folder of a log, against its page as plain Python."""

from __future__ import annotations

import struct
from pathlib import Path
from uuid import UUID

import highway_hash

import seglake

FOLDER = Path(__file__).parents[1] / "vectors" / "log"
SLOTS = (0, 4096)
RECORDS = [
    ("1eeaf8df-7728-668c-b9f1-1b8e6a30ade3", b"order.created", b"1"),
    ("1eeaf8df-80b1-6d0c-b9f1-1b8e6a30ade3", b"order.paid", b"2"),
    ("1eeaf8df-8a3b-638c-b9f1-1b8e6a30ade3", b"", b""),
    ("1eeaf8df-93c4-6a0c-b9f1-1b8e6a30ade3", b"order.created", b"3"),
    ("1eeaf8df-9d4e-608c-b9f1-1b8e6a30ade3", b"order.paid", "é".encode()),
]
ENDED = 3
"""How many records the first segment has."""


def slot(counter: int, sequence: int, offset: int, last: str) -> bytes:
    fields = struct.pack(">8sIIQQQ16s", b"SEGLMARK", 1, 0, counter, sequence, offset, UUID(last).bytes)
    return fields + highway_hash.checksum(fields)


def active(records: list[tuple[str, bytes, bytes]]) -> bytes:
    data = b""
    for uuid, type_, value in records:
        body = UUID(uuid).bytes + bytes([len(type_)]) + type_ + struct.pack(">I", len(value)) + value
        data += body + highway_hash.checksum(body)
    return data


def later_mark(data: bytes) -> tuple[int, int, int, UUID]:
    """Counter, sequence, offset and last UUID of the later valid slot."""
    found = [(0, 0, 0, UUID(int=0))]
    for start in SLOTS:
        own = data[start : start + 64]
        magic, version, zero, counter, sequence, offset, last = struct.unpack(">8sIIQQQ16s", own[:56])
        if (magic, version, zero) == (b"SEGLMARK", 1, 0) and own[56:] == highway_hash.checksum(own[:56]):
            found.append((counter, sequence, offset, UUID(bytes=last)))
    return max(found)


def test_the_folder_is_what_its_page_says() -> None:
    first, second = active(RECORDS[:ENDED]), active(RECORDS[ENDED:])
    mark = bytearray(8192)
    mark[0:64] = slot(3, 1, len(first), RECORDS[ENDED - 1][0])
    mark[4096:4160] = slot(4, 2, len(second), RECORDS[-1][0])
    names = {
        "_mark": bytes(mark),
        f"00000000000000000002-{RECORDS[ENDED][0]}.active": second,
        f"00000000000000000001-{RECORDS[0][0]}.sealed": None,
    }
    assert {path.name for path in FOLDER.iterdir()} == set(names)
    for name, content in names.items():
        if content is not None:
            assert (FOLDER / name).read_bytes() == content


def test_it_is_read_as_one() -> None:
    with seglake.SegmentLog(FOLDER, readonly=True) as log:
        found = [(str(record.uuid), record.type.encode(), record.value) for record in log]
        assert found == RECORDS
        assert [record.uuid for record in iter(log.tail("start").poll, None)] == [UUID(own[0]) for own in RECORDS]
        assert log.synced is not None
        counter, *rest = later_mark((FOLDER / "_mark").read_bytes())
        assert counter == 4
        assert tuple(rest) == tuple(log.synced)
        assert [segment.kind for segment in log.segments()] == ["sealed", "active"]


def test_each_segment_is_a_file_of_its_own() -> None:
    records = [record for path in sorted(FOLDER.glob("0*")) for record in seglake.open(path)]
    assert [str(record.uuid) for record in records] == [own[0] for own in RECORDS]
