"""The rules of docs/formats/chunked.md as slow, plain code: what the library is compared with.

Written from the document alone, without regard for speed or memory, and without the search budget.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

import zstandard
from active_reference import Range

ALIGNMENT = 0x80
HEADER_BYTES = 21
ITEM_BYTES = 20
MAX_WINDOW_BYTES = 128 << 20
MAGIC = b"\x28\xb5\x2f\xfd"

# What checks and is refused: damage that is no unfinished write, wherever it stands.
REFUSED = {"unsupported_flags", "offset_out_of_bounds", "out_of_order", "index_disagrees"}
# What an unfinished write leaves even in a file in which nothing checks.
CUT_SHORT = {"truncated_header", "length_out_of_bounds"}


class Record(TypedDict):
    """A record, and where the chunk it stands in begins."""

    position: int
    offset: int
    timestamp: int
    value: bytes


class Item(TypedDict):
    """An item of the index: a chunk's start offset, and where in the file the chunk begins."""

    offset: int
    file_offset: int


@dataclass
class Scan:
    """What is in a file."""

    records: list[Record]
    ledger: list[Range]


def encode_records(records: Iterable[tuple[int, bytes]]) -> bytes:
    """What a payload holds, uncompressed: records of a timestamp and a body."""
    return b"".join(struct.pack(">qI", timestamp, len(body)) + body for timestamp, body in records)


def frame(content: bytes, *, checksum: bool = True, state_size: bool = True, level: int = 3) -> bytes:
    """One zstd frame."""
    compressor = zstandard.ZstdCompressor(level=level, write_checksum=checksum, write_content_size=state_size)
    return compressor.compress(content)


def encode(start: int, count: int, payload: bytes, flags: int = 0) -> bytes:
    """One chunk around a payload, from its header, whose CRC is right whatever it states, to the end of its padding."""
    header = struct.pack(">BIqI", flags, len(payload), start, count)
    chunk = header + struct.pack(">I", zlib.crc32(header)) + payload
    return chunk + bytes(-len(chunk) % ALIGNMENT)


def encode_item(offset: int, file_offset: int) -> bytes:
    """One item of the index."""
    item = struct.pack(">qq", offset, file_offset)
    return item + struct.pack(">I", zlib.crc32(item))


def content_of(payload: bytes) -> bytes | None:
    """What a payload decompresses to, if it is exactly one frame of the kind that the format asks for."""
    if payload[:4] != MAGIC:
        return None
    try:
        stated = zstandard.get_frame_parameters(payload)
        if not stated.has_checksum or stated.dict_id or stated.window_size > MAX_WINDOW_BYTES:
            return None
        decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj()
        content = decompressor.decompress(payload)
    except zstandard.ZstdError:
        return None
    return content if decompressor.eof and not decompressor.unused_data else None


def records_of(content: bytes) -> list[tuple[int, bytes]] | None:
    """Timestamps and bodies, if the content is records from its first byte to its last."""
    records: list[tuple[int, bytes]] = []
    at = 0
    while at < len(content):
        if at + 12 > len(content):
            return None
        timestamp, length = struct.unpack_from(">qI", content, at)
        at += 12 + length
        if at > len(content):
            return None
        records.append((timestamp, content[at - length : at]))
    return records


def align(at: int) -> int:
    """The next multiple of 0x80, or `at` if it is one."""
    return at + -at % ALIGNMENT


class Header:
    """The fields of a chunk's header. There are 21 bytes at `at`."""

    def __init__(self, data: bytes, at: int) -> None:
        self.flags, self.length, self.start, self.count, crc = struct.unpack_from(">BIqII", data, at)
        self.checks = zlib.crc32(data[at : at + 17]) == crc
        self.zero = not any(data[at : at + HEADER_BYTES])
        self.payload_end = at + HEADER_BYTES + self.length
        self.within = self.payload_end <= len(data)


class Walk:
    """Ranges found so far, damage among them whose kind is not known before the end."""

    def __init__(self, sound: str) -> None:
        self.sound = sound
        self.ranges: list[Range] = []
        self.at = 0
        self.checked = False

    def cover(self, end: int, kind: str, cause: str | None = None) -> None:
        """Adds what stands from the present offset to `end`."""
        if end > self.at:
            self.ranges.append(Range(self.at, end, kind, cause))
        self.at = end

    def ledger(self) -> list[Range]:
        """The ranges, with damage called what it is, and like ones that touch joined."""
        last = max((at for at, span in enumerate(self.ranges) if span.kind == self.sound), default=-1)
        joined: list[Range] = []
        for index, span in enumerate(self.ranges):
            if span.cause:
                nothing_checks = not self.checked and span.cause not in CUT_SHORT
                corrupt = index < last or span.cause in REFUSED or nothing_checks
                span = span._replace(kind="corrupt" if corrupt else "torn_tail")
            if joined and span.kind != self.sound and joined[-1][2:] == span[2:]:
                joined[-1] = joined[-1]._replace(end=span.end)
            else:
                joined.append(span)
        return joined


class Scanner:
    """Reads one log."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.walk = Walk("chunk")
        self.next_offset = 0
        self.records: list[Record] = []

    def scan(self) -> Scan:
        """Reads to the end."""
        while (at := self.walk.at) < self.size:
            header = Header(self.data, at) if at + HEADER_BYTES <= self.size else None
            if not any(self.data[at:]):
                self.walk.cover(self.size, "unused")
            elif header is None:
                self.damage_to_the_end("truncated_header")
            elif not header.checks:
                self.bad_header(header)
            else:
                self.walk.checked = True
                self.chunk(header)
        return Scan(self.records, self.walk.ledger())

    def damage_to_the_end(self, cause: str) -> None:
        """Damage as far as there is anything but zeros, and unused space behind it."""
        self.walk.cover(min(align(len(self.data.rstrip(b"\0"))), self.size), "damage", cause)
        self.walk.cover(self.size, "unused")

    def bad_header(self, header: Header) -> None:
        """Finds where the damage ends: behind a payload that proves itself, or at the next header that checks."""
        at = self.walk.at
        cause = "nonzero_unused" if header.zero else "header_checksum_mismatch"
        if header.within and content_of(self.data[at + HEADER_BYTES : header.payload_end]) is not None:
            self.walk.cover(min(align(header.payload_end), self.size), "damage", cause)
            return
        for candidate in range(at + ALIGNMENT, self.size - HEADER_BYTES + 1, ALIGNMENT):
            if Header(self.data, candidate).checks:
                self.walk.cover(candidate, "damage", cause)
                return
        self.damage_to_the_end(cause)

    def chunk(self, header: Header) -> None:
        """What stands behind a header that checks: the payload and its padding, whatever is wrong with them."""
        at = self.walk.at
        cause, records = self.check(header)
        if not header.within:
            assert cause
            self.damage_to_the_end(cause)
            return
        if cause:
            self.walk.cover(header.payload_end, "damage", cause)
        else:
            self.walk.cover(header.payload_end, "chunk")
            self.next_offset = header.start + header.count
            self.records += [
                Record(position=at, offset=header.start + index, timestamp=timestamp, value=body)
                for index, (timestamp, body) in enumerate(records)
            ]
        padding = self.data[header.payload_end : align(header.payload_end)]
        end = header.payload_end + len(padding)
        if any(padding):
            self.walk.cover(end, "damage", "nonzero_padding")
        else:
            self.walk.cover(end, "padding")

    def check(self, header: Header) -> tuple[str | None, list[tuple[int, bytes]]]:
        """The first check that fails, of those that follow the header's CRC, or the records."""
        if header.flags:
            return "unsupported_flags", []
        if header.start < 0 or header.start + header.count > 1 << 63:
            return "offset_out_of_bounds", []
        if not header.within:
            return "length_out_of_bounds", []
        content = content_of(self.data[self.walk.at + HEADER_BYTES : header.payload_end])
        records = None if content is None else records_of(content)
        if records is None or len(records) != header.count:
            return "payload_invalid", []
        if header.start < self.next_offset:
            return "out_of_order", []
        return None, records


def read(data: bytes) -> Scan:
    """Reads a log without its index."""
    return Scanner(data).scan()


def read_index(log: bytes, index: bytes) -> tuple[list[Item], list[Range]]:
    """The items that hold, each checked against the header it points at, and the ledger of the index."""
    walk = Walk("record")
    items: list[Item] = []
    while walk.at < len(index):
        if walk.at + ITEM_BYTES > len(index):
            walk.cover(len(index), "damage", "truncated_header")
            break
        offset, file_offset, crc = struct.unpack_from(">qqI", index, walk.at)
        cause = None
        if zlib.crc32(index[walk.at : walk.at + 16]) != crc:
            cause = "checksum_mismatch"
        else:
            walk.checked = True
            if not _points_at_a_chunk(log, offset, file_offset):
                cause = "index_disagrees"
            elif items and (offset <= items[-1]["offset"] or file_offset <= items[-1]["file_offset"]):
                cause = "out_of_order"
            else:
                items.append(Item(offset=offset, file_offset=file_offset))
        walk.cover(walk.at + ITEM_BYTES, "damage" if cause else "record", cause)
    return items, walk.ledger()


def _points_at_a_chunk(log: bytes, offset: int, file_offset: int) -> bool:
    """Whether a header that checks and has this start offset stands there."""
    if file_offset % ALIGNMENT or not 0 <= file_offset <= len(log) - HEADER_BYTES:
        return False
    header = Header(log, file_offset)
    return header.checks and header.start == offset


def rebuild_index(log: bytes) -> bytes:
    """An item for each good chunk that holds records."""
    headers = [(span.start, Header(log, span.start)) for span in read(log).ledger if span.kind == "chunk"]
    return b"".join(encode_item(header.start, at) for at, header in headers if header.count)
