"""The golden folder of a log, against its page as plain Python."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from uuid import UUID

import highway_hash
import pytest

import seglake

FOLDER = Path(__file__).parents[1] / "vectors" / "log"
SLOTS = (0, 4096)
RECORDS = [
    ("1eeaf8df-7728-668c-b9f1-1b8e6a30ade3", b"order.created", b"1"),
    ("1eeaf8df-80b1-6d0c-b9f1-1b8e6a30ade3", b"order.paid", b"2"),
    ("1eeaf8df-8a3b-638c-b9f1-1b8e6a30ade3", b"", b""),
    ("1eeaf8df-93c4-6a0c-b9f1-1b8e6a30ade3", b"order.created", b"3"),
    ("1eeaf8df-9d4e-608c-b9f1-1b8e6a30ade3", b"order.paid", "é".encode()),
    ("1eeaf8df-a6d7-670c-b9f1-1b8e6a30ade3", b"order.shipped", b"1"),
]
SEGMENTS = (RECORDS[:3], RECORDS[3:5], RECORDS[5:])
"""The first is sealed, the second is complete, and the third is being written."""


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
    stems = [f"{number:020}-{records[0][0]}" for number, records in enumerate(SEGMENTS, 1)]
    _, second, third = map(active, SEGMENTS)
    mark = bytearray(8192)
    mark[0:64] = slot(5, 2, len(second), SEGMENTS[1][-1][0])
    mark[4096:4160] = slot(6, 3, len(third), SEGMENTS[2][-1][0])
    names = {
        "_mark": bytes(mark),
        f"_{stems[1]}.end": slot(5, 2, len(second), SEGMENTS[1][-1][0]),
        f"{stems[2]}.active": third,
        f"{stems[1]}.active": second,
        f"{stems[0]}.sealed": None,
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
        assert counter == 6
        assert tuple(rest) == tuple(log.synced)
        assert [segment.kind for segment in log.segments()] == ["sealed", "active", "active"]


def test_each_segment_is_a_file_of_its_own() -> None:
    records = [record for path in sorted(FOLDER.glob("0*")) for record in seglake.open(path)]
    assert [str(record.uuid) for record in records] == [own[0] for own in RECORDS]


def test_a_cut_of_the_complete_segment_is_an_error(tmp_path: Path) -> None:
    copy = shutil.copytree(FOLDER, tmp_path / "log")
    [path] = copy.glob("*2-*.active")
    path.write_bytes(active(SEGMENTS[1][:1]))
    found: list[bytes] = []
    with seglake.SegmentLog(copy, readonly=True) as log, pytest.raises(seglake.DamageError, match=r"\.end file"):
        found.extend(record.value for record in log)
    assert found == [own[2] for own in RECORDS[:4]]
