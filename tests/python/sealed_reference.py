"""The rules of docs/formats/sealed.md as slow, plain code: what the library is compared with.

Written from the document alone, without regard for speed or memory, and without the search budget.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from highway_hash import checksum
from ledger_reference import Coverage, Range

ENTRY = 24
TERMINATOR = bytes(ENTRY)
MAGIC = b"SLKSEAL1"
MAGIC_SEARCH = 1 << 20
TRAILER_FIELDS = 32
DEFAULT_KEY = bytes(32)
TICKS_TO_1970 = 0x01B21DD213814000


class Record(TypedDict):
    """A message that is returned."""

    position: int
    uuid: bytes
    timestamp: int
    type: bytes
    value: bytes


@dataclass
class Scan:
    """What is in a file."""

    records: list[Record]
    ledger: list[Range]
    checked: str


@dataclass(frozen=True)
class Entry:
    """An index entry."""

    index: int
    uuid: bytes
    offset: int


@dataclass(frozen=True)
class Good:
    """A message that counts: the number of its entry, and its range."""

    index: int
    start: int
    end: int


class Failed(NamedTuple):
    """An entry without a message, and why there was none at its own offset."""

    entry: Entry
    cause: str


@dataclass(frozen=True)
class Trailer:
    """Where the trailer begins, and of each field whether it is right; none where the end of the file cuts it."""

    start: int
    key_check: bool | None
    count: bool | None
    index_hash: bool | None
    magic: bool | None

    def cause(self) -> str | None:
        """The cause of the trailer's range."""
        if self.magic is None:
            return "truncated_trailer"
        if not self.magic:
            return "bad_magic"
        if not self.count:
            return "count_mismatch"
        return None if self.key_check and self.index_hash else "header_checksum_mismatch"


def is_version_6(uuid: bytes) -> bool:
    """Version 6 and variant 10."""
    return uuid[6] >> 4 == 6 and uuid[8] >> 6 == 2


def timestamp(uuid: bytes) -> int:
    """Microseconds since 1970."""
    high = int.from_bytes(uuid[:8], "big")
    return ((high >> 16 << 12 | high & 0xFFF) - TICKS_TO_1970) // 10


def integer(data: bytes, at: int, size: int) -> int | None:
    """The integer at `at`, or none where it does not lie within the data."""
    return int.from_bytes(data[at : at + size], "big") if at + size <= len(data) else None


def trailer_of(index: bytes, checksums: bytes, key: bytes) -> bytes:
    """The trailer behind an index section, terminator included, and messages of these checksums."""
    count = (len(index) // ENTRY - 1).to_bytes(8, "big")
    return checksums + checksum(b"", key) + count + checksum(index + checksums, key) + MAGIC


def encode_message(type_: bytes, value: bytes) -> bytes:
    """A message as it stands in the data section, and behind the UUID in what is hashed."""
    return bytes([len(type_)]) + type_ + len(value).to_bytes(4, "big") + value


def encode(records: Iterable[tuple[bytes, bytes, bytes]], key: bytes = DEFAULT_KEY, *, trailer: bool = True) -> bytes:
    """A segment of records, each UUID, type and value, in the order given."""
    messages = [(uuid, encode_message(type_, value)) for uuid, type_, value in records]
    index, offset = b"", ENTRY * (len(messages) + 1)
    for uuid, message in messages:
        index += uuid + offset.to_bytes(8, "big")
        offset += len(message)
    index += TERMINATOR
    body = index + b"".join(message for _, message in messages)
    if not trailer:
        return body
    return body + trailer_of(index, b"".join(checksum(uuid + message, key) for uuid, message in messages), key)


def end_of_last_magic(data: bytes) -> int | None:
    """Where the last magic ends that lies wholly in the last 1 MiB of the file."""
    at = data.rfind(MAGIC, max(0, len(data) - MAGIC_SEARCH))
    return None if at == -1 else at + len(MAGIC)


def number_by_count(data: bytes, first_offset: int) -> int | None:
    """The count in front of the last magic, where the terminator or entry 0 agrees with it."""
    end = end_of_last_magic(data)
    if end is None or end < TRAILER_FIELDS + ENTRY:
        return None
    count = int.from_bytes(data[end - 24 : end - 16], "big")
    if 37 * count + 56 > end:
        return None
    by_terminator = data[ENTRY * count : ENTRY * (count + 1)] == TERMINATOR
    return count if by_terminator or (count and first_offset == ENTRY * (count + 1)) else None


def number_of_entries(data: bytes) -> int | None:
    """How many entries the index has, or none where nothing tells."""
    size = len(data)
    first_offset = int.from_bytes(data[16:24], "big")
    by_offset = first_offset % ENTRY == 0 and 2 * ENTRY <= first_offset <= size
    entries_end = first_offset - ENTRY
    if by_offset and data[entries_end:first_offset] == TERMINATOR:
        return entries_end // ENTRY
    if (count := number_by_count(data, first_offset)) is not None:
        return count
    if data[:ENTRY] == TERMINATOR:
        return 0
    if by_offset and all(is_version_6(data[at : at + 16]) for at in range(0, entries_end, ENTRY)):
        return entries_end // ENTRY
    for at in range(0, size - ENTRY + 1, ENTRY):
        if data[at : at + ENTRY] == TERMINATOR:
            return at // ENTRY
    return None


class Reader:
    """Reads one segment whose number of entries is known."""

    def __init__(self, data: bytes, key: bytes, number: int) -> None:
        self.data = data
        self.key = key
        self.data_start = ENTRY * (number + 1)
        self.entries = [
            Entry(at // ENTRY, data[at : at + 16], int.from_bytes(data[at + 16 : at + ENTRY], "big"))
            for at in range(0, ENTRY * number, ENTRY)
        ]
        self.trailer = self.find_trailer()
        self.data_end = self.trailer.start if self.trailer else len(data)
        self.last_uuid = b""
        self.last_end = self.data_start
        self.tried: set[int] = set()
        self.good: list[Good] = []
        self.failed: list[Failed] = []

    def find_trailer(self) -> Trailer | None:
        """The trailer, where something proves that it is there."""
        places = [place for place in self.places() if place is not None]
        for place in places:
            trailer = self.trailer_at(place)
            count = trailer.count and len(self.entries) > 0
            if trailer.key_check or count or trailer.index_hash or trailer.magic or self.has_a_checksum_at(place):
                return trailer
        end = end_of_last_magic(self.data) or len(self.data)
        start = end - 8 * len(self.entries) - TRAILER_FIELDS
        if start < self.data_start:
            return None
        trailer = self.trailer_at(start)
        by_count = trailer.count and (trailer.key_check or trailer.magic) and len(self.data) not in places
        return trailer if trailer.index_hash or by_count else None

    def places(self) -> list[int | None]:
        """Where the trailer is sought: where the last message ends by its own offset, and by the entry before."""
        if not self.entries:
            return [self.data_start]
        end = self.end_in_file(self.entries[-2].offset) if len(self.entries) > 1 else self.data_start
        return [self.end_in_file(self.entries[-1].offset), None if end is None else self.end_in_file(end)]

    def end_in_file(self, at: int) -> int | None:
        """Where the message at `at` ends, if it begins behind the terminator and ends within the file."""
        end = self.message_end(at, len(self.data)) if at >= self.data_start else None
        return end if isinstance(end, int) else None

    def trailer_at(self, start: int) -> Trailer:
        """What a trailer that begins at `start` is like."""
        fields = start + 8 * len(self.entries)

        def is_right(at: int, expected: bytes) -> bool | None:
            field = self.data[at : at + 8]
            return field == expected if len(field) == 8 else None

        hashed = self.data[: self.data_start] + self.data[start:fields]
        return Trailer(
            start,
            key_check=is_right(fields, checksum(b"", self.key)),
            count=is_right(fields + 8, len(self.entries).to_bytes(8, "big")),
            index_hash=is_right(fields + 16, checksum(hashed, self.key)),
            magic=is_right(fields + 24, MAGIC),
        )

    def has_a_checksum_at(self, start: int) -> bool:
        """Whether a trailer at `start` has the right checksum of a message in front of it, or the beginning of one."""
        for entry in self.entries:
            stored = self.data[start + 8 * entry.index :][:8]
            end = self.end_in_file(entry.offset)
            if stored and end is not None and end <= start and self.checksum_is(stored, entry, entry.offset, end):
                return True
        return False

    def checksum_is(self, stored: bytes, entry: Entry, at: int, end: int) -> bool:
        """Whether what is stored of a checksum is right for an entry and the message from `at` to `end`."""
        return checksum(entry.uuid + self.data[at:end], self.key).startswith(stored)

    def stored_checksum(self, entry: Entry) -> bytes:
        """What the trailer has of an entry's checksum; nothing without one."""
        return self.data[self.trailer.start + 8 * entry.index :][:8] if self.trailer else b""

    def is_judged_by_checksum(self, entry: Entry) -> bool:
        """Whether the entry's whole checksum is in the trailer."""
        return len(self.stored_checksum(entry)) == 8

    def message_end(self, at: int, data_end: int) -> int | str:
        """Where the message at `at` ends by its own lengths, or how it leaves the data."""
        data = self.data[:data_end]
        type_length = integer(data, at, 1)
        if type_length is None:
            return "truncated_header"
        value_length = integer(data, at + 1 + type_length, 4)
        if value_length is None:
            return "truncated_header"
        end = at + 5 + type_length + value_length
        return end if end <= data_end else "length_out_of_bounds"

    def in_bounds(self, offset: int) -> bool:
        """Whether a message may begin at an offset."""
        return self.data_start <= offset < self.data_end

    def cause(self, entry: Entry, at: int) -> str | None:
        """Why no message of this entry counts at `at`; none if one does."""
        by_checksum = self.is_judged_by_checksum(entry)
        return self.cause_by_checksum(entry, at) if by_checksum else self.cause_by_structure(entry, at)

    def cause_by_checksum(self, entry: Entry, at: int) -> str | None:
        """The first check that fails with a checksum."""
        if not self.in_bounds(at):
            return "offset_out_of_bounds"
        if at < self.last_end:
            return "out_of_order"
        end = self.message_end(at, self.data_end)
        if isinstance(end, str):
            return end
        if not self.checksum_is(self.stored_checksum(entry), entry, at, end):
            return "checksum_mismatch"
        if not is_version_6(entry.uuid):
            return "bad_uuid"
        return None if entry.uuid > self.last_uuid else "out_of_order"

    def cause_by_structure(self, entry: Entry, at: int) -> str | None:
        """The first check that fails without a checksum, or with a part of one."""
        if not self.in_bounds(at):
            return "offset_out_of_bounds"
        if not is_version_6(entry.uuid):
            return "bad_uuid"
        if self.is_out_of_order(entry) or at < self.last_end:
            return "out_of_order"
        end = self.message_end(at, self.data_end)
        if isinstance(end, str):
            return end
        if not self.checksum_is(self.stored_checksum(entry), entry, at, end):
            return "checksum_mismatch"
        return None if self.is_confirmed(entry, end) else "index_disagrees"

    def is_out_of_order(self, entry: Entry) -> bool:
        """Whether an entry's UUID does not ascend, or jumps ahead of the next entry that is evidence."""
        if entry.uuid <= self.last_uuid:
            return True
        for later in self.entries[entry.index + 1 :]:
            if self.in_bounds(later.offset) and is_version_6(later.uuid):
                return self.last_uuid < later.uuid < entry.uuid
        return False

    def begin_of(self, index: int) -> int:
        """Where the message of an entry begins by its offset; behind the last entry, where the data ends."""
        return self.entries[index].offset if index < len(self.entries) else self.data_end

    def is_confirmed(self, entry: Entry, end: int) -> bool:
        """Whether the entries behind this one agree that its message ends at `end`."""
        if end == self.begin_of(entry.index + 1):
            return True
        if entry.index + 1 == len(self.entries):
            return False
        return self.message_end(end, self.data_end) == self.begin_of(entry.index + 2)

    def may_be_tried_after(self, entry: Entry) -> bool:
        """Whether an entry that failed at its own offset is tried behind the last good message."""
        if entry.offset == self.last_end:
            return False
        if not self.trailer or not self.is_judged_by_checksum(entry):
            return True
        ascends = is_version_6(entry.uuid) and entry.uuid > self.last_uuid
        if self.trailer.key_check is False or not ascends or self.last_end in self.tried:
            return False
        self.tried.add(self.last_end)
        return True

    def walk(self) -> None:
        """Finds the message of each entry, in the order of the index."""
        for entry in self.entries:
            at = entry.offset
            cause = self.cause(entry, at)
            if cause is not None:
                at = self.last_end
                if not self.may_be_tried_after(entry) or self.cause(entry, at) is not None:
                    self.failed.append(Failed(entry, cause))
                    continue
            end = self.message_end(at, self.data_end)
            assert isinstance(end, int)
            self.good.append(Good(entry.index, at, end))
            self.last_uuid, self.last_end = entry.uuid, end

    def record(self, good: Good) -> Record:
        """What is returned for a message."""
        uuid, message = self.entries[good.index].uuid, self.data[good.start : good.end]
        type_end = 1 + message[0]
        return {
            "position": good.start,
            "uuid": uuid,
            "timestamp": timestamp(uuid),
            "type": message[1:type_end],
            "value": message[type_end + 4 :],
        }

    def is_marked(self, failed: Failed, gap_start: int, gap_end: int) -> bool:
        """Whether a failed entry is damage itself."""
        if not self.is_judged_by_checksum(failed.entry) and failed.cause in {"bad_uuid", "out_of_order"}:
            return True
        return not gap_start <= failed.entry.offset < gap_end

    def ledger(self) -> list[Range]:
        """The ledger of a file that was walked."""
        coverage = Coverage(len(self.data))
        for good in self.good:
            coverage.take(good.start, good.end, "record")
            if self.entries[good.index].offset != good.start:
                coverage.damage(good.index * ENTRY, good.index * ENTRY + ENTRY, "index_disagrees")
        front = Good(-1, 0, self.data_start)
        back = Good(len(self.entries), self.data_end, len(self.data))
        for before, after in zip([front, *self.good], [*self.good, back], strict=True):
            failed = [one for one in self.failed if before.index < one.entry.index < after.index]
            coverage.damage(before.end, after.start, failed[0].cause if failed else "unreferenced")
            for one in failed:
                if self.is_marked(one, before.end, after.start):
                    coverage.damage(one.entry.index * ENTRY, one.entry.index * ENTRY + ENTRY, one.cause)
        if self.data[self.data_start - ENTRY : self.data_start] != TERMINATOR:
            coverage.damage(self.data_start - ENTRY, self.data_start, "bad_terminator")
        coverage.take(0, self.data_start, "header")
        if self.trailer:
            end = min(self.trailer.start + 8 * len(self.entries) + TRAILER_FIELDS, len(self.data))
            cause = self.trailer.cause()
            if cause:
                coverage.damage(self.trailer.start, end, cause)
            else:
                coverage.take(self.trailer.start, end, "trailer")
            coverage.damage(end, len(self.data), "unreferenced")
        return coverage.ledger()

    def is_read_with_the_wrong_key(self) -> bool:
        """Whether nothing that the key proves is right, and the key check is wrong."""
        trailer = self.trailer
        return trailer is not None and trailer.key_check is False and not trailer.index_hash and not self.good

    def checked(self) -> str:
        """What messages were judged by."""
        if self.trailer and self.trailer.start + 8 * len(self.entries) <= len(self.data):
            return "checksum"
        return "structure"


def read(data: bytes, key: bytes = DEFAULT_KEY) -> Scan:
    """Reads a segment to its end."""
    size = len(data)
    if size < ENTRY:
        return Scan([], [Range(0, size, "torn_tail", "truncated_header")], "structure")
    number = number_of_entries(data)
    if number is None:
        return Scan([], [Range(0, size, "corrupt", "bad_terminator")], "structure")
    reader = Reader(data, key, number)
    reader.walk()
    if reader.is_read_with_the_wrong_key():
        return Scan([], [Range(0, size, "corrupt", "wrong_key")], reader.checked())
    return Scan([reader.record(good) for good in reader.good], reader.ledger(), reader.checked())
