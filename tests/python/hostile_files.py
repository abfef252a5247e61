"""Hostile files for the memory tests: many entries that fail each for another reason than its neighbours."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import zstandard

MIB = 1 << 20


def uuid(tick: int) -> bytes:
    """A version-6 UUID of this tick of the year 2024."""
    tick += 0x01EE_0000_0000_0000
    return (((tick >> 12) << 16) | 0x6000 | (tick & 0xFFF)).to_bytes(8, "big") + b"\x80" * 8


def sealed(length: int) -> bytes:
    """Without a trailer: every other entry out of bounds, every other one not confirmed."""
    count = length // 29
    start = 24 * (count + 1)
    entries = (
        uuid(number) + (1 << 62 if number % 2 else start + 5 * number).to_bytes(8, "big") for number in range(count)
    )
    return b"".join(entries) + bytes(24) + b"\0\0\0\0\1" * count


def tenant_1(length: int) -> bytes:
    """Every other entry out of bounds, every other partition one that does not decode."""
    count = length // 40
    start = 10 + 20 * count + 4
    entries = (
        struct.pack(">IQQ", number, 1 << 62 if number % 2 else start + 20 * number, 20) for number in range(count)
    )
    head = b"TSEG" + struct.pack(">HI", 1, count)
    return head + b"".join(entries) + struct.pack(">I", count) + b"\xff" * (20 * count)


def tenant_2(length: int) -> bytes:
    """Every other block checks and does not decode, every other does not check; no two of them touch."""
    count = length // 48
    start = 10 + 32 * count + 4 + 8
    body = b"\xff" * 8
    crcs = [zlib.crc32(body, zlib.crc32(struct.pack(">I", number))) ^ (number % 2) for number in range(count)]
    entries = (struct.pack(">IIIQQI", number, 0, 0, start + 16 * number, 8, crc) for number, crc in enumerate(crcs))
    toc = b"TSEG" + struct.pack(">HI", 2, count) + b"".join(entries)
    return toc + struct.pack(">II", zlib.crc32(toc), count) + b"\xff" * (16 * count + 4)


def tenant_2_names(length: int) -> bytes:
    """Sound, and most of it tenant IDs of 60 KiB, each of one empty message."""
    count = length // (2 * (60 << 10))
    names = [struct.pack(">I", number) + b"x" * (60 << 10) for number in range(count)]
    blocks = [struct.pack(">II", 1, len(name)) + name + bytes(4) for name in names]
    at = 10 + sum(32 + len(name) for name in names) + 4 + 8
    entries: list[bytes] = []
    for name, block in zip(names, blocks, strict=True):
        crc = zlib.crc32(block, zlib.crc32(bytes(4)))
        entries.append(struct.pack(">II", 0, len(name)) + name + struct.pack(">IQQI", 1, at, len(block), crc))
        at += len(block)
    toc = b"TSEG" + struct.pack(">HI", 2, count) + b"".join(entries)
    return toc + struct.pack(">III", zlib.crc32(toc), 1, count) + b"".join(blocks)


def chunk(payload: bytes, records: int, *, start: int = 0, length: int | None = None) -> bytes:
    """A chunk and its padding, its header's CRC right."""
    header = struct.pack(">BIqI", 0, len(payload) if length is None else length, start, records)
    whole = header + struct.pack(">I", zlib.crc32(header)) + payload
    return whole + bytes(-len(whole) % 0x80)


def bomb(content_bytes: int) -> bytes:
    """One chunk of records of 1 MiB of zeros each, which takes a few kilobytes."""
    record = struct.pack(">qI", 0, MIB) + bytes(MIB)
    compressor = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compressobj()
    count = content_bytes // MIB
    payload = b"".join(compressor.compress(record) for _ in range(count)) + compressor.flush()
    return chunk(payload, count)


def oplog(length: int) -> bytes:
    """Of `draft`: clocks as long as they can be, which take twice as much in columns."""
    count = min(0x10_0000, length // 70)
    body = b"\1\1\xfe" + struct.pack("<I", count) + (b"k" * 32 + b"\1") * count + b"\1\1\0"
    message = b"\xfe" + struct.pack("<I", len(body)) + body
    return message * max(1, length // len(message))


def active(length: int) -> bytes:
    """Headers that claim what follows them, and more headers."""
    header = 16 + 1 + 4
    count = length // header
    parts = (uuid(number) + b"\0" + (header * (count - number - 2)).to_bytes(4, "big") for number in range(count - 2))
    return b"".join(parts) + b"\1" * 64


def liars() -> dict[str, bytes]:
    """Files of about 1 KB, by name, each of which claims 4 GiB, or 2^32 of something, in one of its fields."""
    most = 0xFFFF_FFFF
    rest = b"\1" * 900
    frame = b"\x28\xb5\x2f\xfd"
    # Single segment with checksum, and so a window as large as the content: 4 GiB less 1.
    single = frame + b"\xa4" + b"\xff" * 4 + rest
    # A window of 128 MiB, the largest that is accepted, and a content of 4 GiB.
    windowed = frame + b"\x84\x88" + b"\xff" * 4 + rest
    toc = b"TSEG" + struct.pack(">H", 2)
    uints = b"\xff" + struct.pack("<Q", most)
    files = {
        "active-value.active": uuid(1) + b"\0" + most.to_bytes(4, "big") + rest,
        "sealed-offset.sealed": uuid(1) + (24 * (most // 24)).to_bytes(8, "big") + bytes(24) + rest,
        "sealed-value.sealed": uuid(1) + (48).to_bytes(8, "big") + bytes(24) + b"\0" + most.to_bytes(4, "big") + rest,
        "sealed-count.sealed": uuid(1) + rest + bytes(8) + struct.pack(">QQ", most, 0) + b"SLKSEAL1",
        "tenant1-partitions.tenant": b"TSEG" + struct.pack(">HI", 1, most) + rest,
        "tenant1-tenants.tenant": b"TSEG" + struct.pack(">HIIQQII", 1, 1, 0, 34, 900, 1, most) + rest,
        "tenant1-id.tenant": b"TSEG" + struct.pack(">HIIQQIIII", 1, 1, 0, 34, 900, 1, 1, 1, most) + rest,
        "tenant2-blocks.tenant": toc + struct.pack(">I", most) + rest,
        "tenant2-id.tenant": toc + struct.pack(">III", 1, 0, most) + rest,
        "chunked-length.chunks": chunk(rest, 1, length=most),
        "chunked-records.chunks": chunk(zstandard.ZstdCompressor(write_checksum=True).compress(bytes(12)), most),
        "chunked-content.chunks": chunk(single, 1),
        "chunked-window.chunks": chunk(windowed, 1),
        "oplog-length.oplog": uints + rest,
        "oplog-clock.oplog": b"\xfd\x84\x03" + b"\1\1" + uints + rest[: 900 - 11],
        "oplog-value.oplog": b"\xfd\x84\x03" + b"\1\1\0\1\1" + uints + rest[: 900 - 14],
    }
    body = b"\0\0\0\1\0\0\0\0" + most.to_bytes(4, "big") + rest
    entry = struct.pack(">IIIQQI", 0, 0, most, 10 + 32 + 4 + 8, len(body), zlib.crc32(body, zlib.crc32(bytes(4))))
    head = toc + struct.pack(">I", 1) + entry
    files["tenant2-message.tenant"] = head + struct.pack(">III", zlib.crc32(head), 1, 1) + body
    return files


def write(folder: Path, name: str, content: bytes) -> Path:
    """The path of a new file."""
    path = folder / name
    path.write_bytes(content)
    return path
