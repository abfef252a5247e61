"""The rules of docs/formats/tenant.md as slow, plain code: what the library is compared with.

Written from the document alone, without regard for speed or memory, and without the search budget.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import NamedTuple, TypedDict

from ledger_reference import Coverage, Range

MAGIC = b"TSEG"
TOC = 10
MOST_TENANT_BYTES = 65_535
"""No longer tenant ID is tried where a table of contents is damaged."""


class Record(TypedDict):
    """A message that is returned."""

    position: int
    partition: int
    tenant: bytes
    index: int
    value: bytes


class TenantBlock(TypedDict):
    """A block that is kept; `messages` is their number."""

    position: int
    partition: int
    tenant: bytes
    messages: int


@dataclass
class Scan:
    """What is in a file."""

    records: list[Record]
    blocks: list[TenantBlock]
    ledger: list[Range]


class Message(NamedTuple):
    """A message: where its length field stands, and its content."""

    position: int
    value: bytes


class Block(NamedTuple):
    """One partition-tenant, decoded."""

    start: int
    end: int
    tenant: bytes
    messages: list[Message]


@dataclass(frozen=True)
class Entry1:
    """A TOC entry of version 1: one partition."""

    index: int
    partition: int
    offset: int
    length: int


class Entry2(NamedTuple):
    """A TOC entry of version 2, itself at [start, end): one block."""

    start: int
    end: int
    partition: int
    tenant: bytes
    messages: int
    offset: int
    length: int
    crc: int


@dataclass(frozen=True)
class Good1:
    """A partition that counts: the number of its entry, its range, and its blocks."""

    index: int
    start: int
    end: int
    blocks: list[Block]


class Failed1(NamedTuple):
    """An entry without a partition, why there was none at its own offset, and whether its ID is out of order."""

    entry: Entry1
    cause: str
    by_id: bool


class Cut(NamedTuple):
    """A partition that the file's end cuts: its first byte, and where its last whole tenant ends."""

    start: int
    whole_end: int


def u32(data: bytes, at: int) -> int:
    """The u32 at `at`, which must lie within the data."""
    assert at + 4 <= len(data)
    return int.from_bytes(data[at : at + 4], "big")


def u64(data: bytes, at: int) -> int:
    """The u64 at `at`, which must lie within the data."""
    assert at + 8 <= len(data)
    return int.from_bytes(data[at : at + 8], "big")


def b32(value: int) -> bytes:
    """A u32."""
    return value.to_bytes(4, "big")


def b64(value: int) -> bytes:
    """A u64."""
    return value.to_bytes(8, "big")


def decode_block(data: bytes, at: int, limit: int) -> Block | str:
    """The block at `at`, or why it does not end at `limit` or in front of it."""
    if at + 8 > limit:
        return "length_out_of_bounds"
    number, start = u32(data, at), at
    at += 8 + u32(data, at + 4)
    if at > limit:
        return "length_out_of_bounds"
    tenant = data[start + 8 : at]
    messages: list[Message] = []
    while len(messages) < number:
        if at == limit:
            return "count_mismatch"
        if at + 4 > limit or at + 4 + u32(data, at) > limit:
            return "length_out_of_bounds"
        end = at + 4 + u32(data, at)
        messages.append(Message(at, data[at + 4 : end]))
        at = end
    return Block(start, at, tenant, messages)


def group(
    records: Iterable[Record], blocks: Iterable[TenantBlock], partitions: Iterable[int]
) -> dict[int, dict[bytes, list[bytes]]]:
    """Messages by partition and tenant, both ascending; blocks and partitions name those that hold nothing."""
    found: dict[int, dict[bytes, list[bytes]]] = {partition: {} for partition in partitions}
    for block in blocks:
        found.setdefault(block["partition"], {}).setdefault(block["tenant"], [])
    for record in records:
        found.setdefault(record["partition"], {}).setdefault(record["tenant"], []).append(record["value"])
    return {partition: dict(sorted(found[partition].items())) for partition in sorted(found)}


def encode(
    records: Iterable[Record],
    blocks: Iterable[TenantBlock] = (),
    *,
    version: int = 2,
    partitions: Iterable[int] = (),
) -> bytes:
    """A segment. Messages of a tenant stay in the order given."""
    groups = group(records, blocks, partitions)
    encoded = {
        partition: {
            tenant: b32(len(values)) + b32(len(tenant)) + tenant + b"".join(b32(len(one)) + one for one in values)
            for tenant, values in tenants.items()
        }
        for partition, tenants in groups.items()
    }
    head = MAGIC + version.to_bytes(2, "big")
    body = b32(len(groups)) + b"".join(b32(len(tenants)) + b"".join(tenants.values()) for tenants in encoded.values())
    if version == 1:
        toc_end = TOC + 20 * len(groups)
        toc, offset = b32(len(groups)), toc_end + 4
        for partition, tenants in encoded.items():
            length = 4 + sum(map(len, tenants.values()))
            toc += b32(partition) + b64(offset) + b64(length)
            offset += length
        return head + toc + body
    assert all(groups.values()), "version 2 cannot name a partition without tenants"
    toc_end = TOC + sum(32 + len(tenant) for tenants in groups.values() for tenant in tenants) + 4
    toc, offset = b32(sum(map(len, groups.values()))), toc_end + 4
    for partition, tenants in encoded.items():
        offset += 4
        for tenant, block in tenants.items():
            messages = len(groups[partition][tenant])
            crc = zlib.crc32(b32(partition) + block)
            toc += b32(partition) + b32(len(tenant)) + tenant + b32(messages)
            toc += b64(offset) + b64(len(block)) + b32(crc)
            offset += len(block)
    return head + toc + b32(zlib.crc32(head + toc)) + body


@dataclass
class Returned:
    """The kept blocks and their messages, in file order."""

    records: list[Record] = field(default_factory=list[Record])
    blocks: list[TenantBlock] = field(default_factory=list[TenantBlock])

    def add(self, partition: int, block: Block) -> None:
        """Keeps a block."""
        self.blocks.append(
            {
                "position": block.start,
                "partition": partition,
                "tenant": block.tenant,
                "messages": len(block.messages),
            }
        )
        for index, message in enumerate(block.messages):
            self.records.append(
                {
                    "position": message.position,
                    "partition": partition,
                    "tenant": block.tenant,
                    "index": index,
                    "value": message.value,
                }
            )


class Version2:
    """Reads a segment of version 2, whatever its version is said to be."""

    def __init__(self, data: bytes) -> None:
        self.version = int.from_bytes(data[4:6], "big")
        data = data[:4] + b"\0\2" + data[6:]
        self.data = data
        self.size = len(data)
        self.count = u32(data, 6)
        self.entries: list[Entry2] = []
        self.toc_end = self.read_entries()
        self.is_sound = (
            self.toc_end is not None
            and data[:4] == MAGIC
            and zlib.crc32(data[: self.toc_end - 4]) == u32(data, self.toc_end - 4)
        )
        self.first_offset = self.toc_end + 8 if self.is_sound and self.toc_end else TOC
        self.good: list[tuple[Entry2, Block]] = []
        self.failed: list[tuple[Entry2, str]] = []
        self.limit = self.size if self.toc_end is None else self.toc_end - 4

    def entry_at(self, at: int, limit: int, tenant_length: int | None = None) -> Entry2 | None:
        """The entry at `at`, with the tenant ID length that it states or another, if it ends at `limit` or before."""
        if at + 8 > limit:
            return None
        fields_at = at + 8 + (u32(self.data, at + 4) if tenant_length is None else tenant_length)
        if fields_at + 24 > limit:
            return None
        return Entry2(
            start=at,
            end=fields_at + 24,
            partition=u32(self.data, at),
            tenant=self.data[at + 8 : fields_at],
            messages=u32(self.data, fields_at),
            offset=u64(self.data, fields_at + 4),
            length=u64(self.data, fields_at + 12),
            crc=u32(self.data, fields_at + 20),
        )

    def read_entries(self) -> int | None:
        """Reads the entries that fit. Where the TOC ends, or none if it does not fit."""
        at = TOC
        for _ in range(self.count):
            entry = self.entry_at(at, self.size)
            if entry is None:
                return None
            self.entries.append(entry)
            at = entry.end
        return at + 4 if at + 4 <= self.size else None

    def last_end(self) -> int | None:
        """Where the last good block ends; before the first, where the number of partitions does, if that is known."""
        if self.good:
            return self.good[-1][1].end
        return None if self.toc_end is None else self.toc_end + 4

    def attempt(self, entry: Entry2, at: int, length: int) -> Block | str:
        """The block of an entry at one place, if it counts there, or the first check that fails."""
        if not self.first_offset <= at < self.size:
            return "offset_out_of_bounds"
        if self.good and at < self.good[-1][1].end:
            return "out_of_order"
        end = at + length
        if end > self.size:
            return "length_out_of_bounds"
        if zlib.crc32(b32(entry.partition) + self.data[at:end]) != entry.crc:
            return "checksum_mismatch"
        block = decode_block(self.data, at, end)
        if isinstance(block, str):
            return block
        if block.end != end:
            return "count_mismatch"
        if not self.is_sound and len(block.tenant) != len(entry.tenant):
            return "index_disagrees"
        if self.good:
            last_entry, last_block = self.good[-1]
            if (entry.partition, block.tenant) <= (last_entry.partition, last_block.tenant):
                return "out_of_order"
        return block

    def attempts(self, entry: Entry2, behind: Sequence[int]) -> Iterator[Block | str]:
        """What each place and length that is tried gives: those that the entry names, then those in `behind`."""
        yield self.attempt(entry, entry.offset, entry.length)
        for at in (entry.offset, *behind):
            if at < self.size:
                decoded = decode_block(self.data, at, self.size)
                if isinstance(decoded, Block):
                    yield self.attempt(entry, at, decoded.end - at)

    def block_of(self, entry: Entry2, *, behind: bool) -> Block | str:
        """The block of an entry, or why there is none where the entry says; `behind`: also behind the last good one."""
        last_end = self.last_end() if behind else None
        found = list(self.attempts(entry, () if last_end is None else (last_end, last_end + 4)))
        return next((one for one in found if isinstance(one, Block)), found[0])

    def walk(self) -> None:
        """Finds the block of each entry, in the order of the TOC."""
        for entry in self.entries:
            block = self.block_of(entry, behind=True)
            if isinstance(block, Block):
                self.good.append((entry, block))
            else:
                self.failed.append((entry, block))

    def names_itself(self, entry: Entry2) -> bool:
        """Whether a block with the entry's very tenant ID stands where it says."""
        name = b32(len(entry.tenant)) + entry.tenant
        return self.data[entry.offset + 4 : entry.offset + 4 + len(name)] == name and self.in_bounds(entry.offset)

    def in_bounds(self, offset: int) -> bool:
        """Whether a block may begin at an offset."""
        return self.first_offset <= offset < self.size

    def proven_at(self, at: int, limit: int) -> tuple[Entry2, Block] | None:
        """The entry at this place of a TOC that is not sound, as it stands or with another length, with its block."""
        stated = self.entry_at(at, limit)
        if stated:
            block = self.block_of(stated, behind=True)
            if isinstance(block, Block):
                return stated, block
            if self.names_itself(stated):
                return None
        for length in range(MOST_TENANT_BYTES + 1):
            entry = self.entry_at(at, limit, length)
            if entry is None:
                return None
            block = self.block_of(entry, behind=False)
            if isinstance(block, Block):
                return entry, block
        return None

    def proven_behind(self, at: int) -> tuple[Entry2, Block] | None:
        """The first entry behind this place that names a block of its very tenant ID, with that block."""
        if self.toc_end is None and not self.good:
            return None
        for place in range(at + 1, self.limit):
            entry = self.entry_at(place, self.limit)
            if entry and len(entry.tenant) <= MOST_TENANT_BYTES and self.names_itself(entry):
                block = self.block_of(entry, behind=False)
                if isinstance(block, Block):
                    return entry, block
        return None

    def search(self) -> None:
        """Finds what proves itself of a TOC that is not sound."""
        at = TOC
        while True:
            # The first one is tried whatever the TOC says.
            limit = self.size if at == TOC else self.limit
            found = self.proven_at(at, limit) or self.proven_behind(at)
            if found:
                self.good.append(found)
                self.limit = self.good[0][1].start
                at = found[0].end
                continue
            stated = self.entry_at(at, self.limit)
            if stated is None:
                return
            if self.toc_end is None and not self.good and stated.offset >= stated.end:
                self.limit = min(self.limit, stated.offset)
            at = stated.end

    def take_number(self, coverage: Coverage, at: int, expected: int) -> None:
        """Lays a number of partitions or tenants over the file."""
        if at + 4 > self.size:
            coverage.damage(at, at + 4, "truncated_header")
        elif u32(self.data, at) != expected:
            coverage.damage(at, at + 4, "count_mismatch")
        else:
            coverage.take(at, at + 4, "header")

    def ledger_by_toc(self, toc_end: int) -> list[Range]:
        """The ledger under a sound TOC."""
        coverage = Coverage(self.size)
        if self.version != 2:
            coverage.damage(4, 6, "unsupported_version")
        for entry, block in self.good:
            coverage.take(block.start, block.end, "block")
            stated = (entry.offset, entry.length, entry.tenant, entry.messages)
            if stated != (block.start, block.end - block.start, block.tenant, len(block.messages)):
                coverage.damage(entry.start, entry.end, "index_disagrees")
        found = {entry.start: block.start for entry, block in self.good}
        partitions = [list(entries) for _, entries in groupby(self.entries, lambda entry: entry.partition)]
        self.take_number(coverage, toc_end, len(partitions))
        for entries in partitions:
            at = found.get(entries[0].start, entries[0].offset) - 4
            if at >= toc_end + 4:
                self.take_number(coverage, at, len(entries))
        for entry, cause in self.failed:
            if not self.in_bounds(entry.offset) or not coverage.damage(
                entry.offset, entry.offset + entry.length, cause
            ):
                coverage.damage(entry.start, entry.end, cause)
        if self.count == 0 and toc_end == self.size:
            coverage.damage(6, TOC, "count_mismatch")
        coverage.take(0, toc_end, "header")
        coverage.damage(toc_end, self.size, "unreferenced")
        return coverage.ledger()

    def ledger_by_blocks(self) -> list[Range]:
        """The ledger without a sound TOC."""
        coverage = Coverage(self.size)
        if self.data[:4] != MAGIC:
            cause = "bad_magic"
        else:
            cause = "header_checksum_mismatch" if self.toc_end else "length_out_of_bounds"
        coverage.damage(0, self.good[0][1].start if self.good else self.size, cause)
        for _, block in self.good:
            coverage.take(block.start, block.end, "block")
        for (entry, block), (next_entry, next_block) in pairwise(self.good):
            if next_block.start - block.end == 4 and next_entry.partition != entry.partition:
                coverage.take(block.end, next_block.start, "header")
        coverage.damage(0, self.size, "unreferenced")
        return coverage.ledger()

    def scan(self) -> Scan:
        """Reads to the end."""
        if self.is_sound:
            self.walk()
        else:
            self.search()
        returned = Returned()
        for entry, block in self.good:
            returned.add(entry.partition, block)
        ledger = self.ledger_by_toc(self.toc_end) if self.is_sound and self.toc_end else self.ledger_by_blocks()
        return Scan(returned.records, returned.blocks, ledger)


def is_ascending(blocks: Sequence[Block]) -> bool:
    """Whether tenants ascend."""
    return all(before.tenant < behind.tenant for before, behind in pairwise(blocks))


class Version1:
    """Reads a segment of version 1 whose number of TOC entries is known."""

    def __init__(self, data: bytes, number: int) -> None:
        self.data = data
        self.size = len(data)
        self.toc_end = TOC + 20 * number
        self.data_start = self.toc_end + 4
        self.entries = [
            Entry1(at // 20, u32(data, at), u64(data, at + 4), u64(data, at + 12))
            for at in range(TOC, self.toc_end, 20)
        ]
        self.last_id = -1
        self.last_end = self.data_start
        self.good: list[Good1] = []
        self.failed: list[Failed1] = []
        self.cut: Cut | None = None

    def in_bounds(self, offset: int) -> bool:
        """Whether a partition may begin at an offset."""
        return self.data_start <= offset < self.size

    def whole_tenants(self, at: int) -> list[Block]:
        """The tenants of the partition at `at` up to the first that does not decode within the file."""
        blocks: list[Block] = []
        number, at = u32(self.data, at), at + 4
        while len(blocks) < number:
            block = decode_block(self.data, at, self.size)
            if isinstance(block, str):
                break
            blocks.append(block)
            at = block.end
        return blocks

    def is_id_out_of_order(self, entry: Entry1) -> bool:
        """Whether an entry's ID does not ascend, or jumps ahead of the next entry that is evidence."""
        if entry.partition <= self.last_id:
            return True
        for later in self.entries[entry.index + 1 :]:
            if self.in_bounds(later.offset):
                return self.last_id < later.partition < entry.partition
        return False

    def attempt(self, entry: Entry1, at: int) -> Good1 | str:
        """The partition of an entry at one place, if it counts there, or the first check that fails."""
        if not self.in_bounds(at):
            return "offset_out_of_bounds"
        if self.is_id_out_of_order(entry) or at < self.last_end:
            return "out_of_order"
        if at + 4 > self.size:
            return "truncated_header"
        blocks = self.whole_tenants(at)
        if len(blocks) < u32(self.data, at):
            return "length_out_of_bounds"
        if not is_ascending(blocks):
            return "out_of_order"
        end = blocks[-1].end if blocks else at + 4
        is_last = entry.index + 1 == len(self.entries)
        next_offset = self.size if is_last else self.entries[entry.index + 1].offset
        is_confirmed = end == at + entry.length or (at == entry.offset and end == next_offset)
        return Good1(entry.index, at, end, blocks) if is_confirmed else "index_disagrees"

    def is_cut(self, entry: Entry1, cause: str) -> bool:
        """Whether the file ends inside the partition of an entry, the last that begins in it."""
        leads_beyond = entry.offset + entry.length > self.size
        later = self.entries[entry.index + 1 :]
        return cause == "length_out_of_bounds" and leads_beyond and all(one.offset >= self.size for one in later)

    def keep_whole_tenants(self, entry: Entry1) -> None:
        """Keeps what is whole of a partition that the file's end cuts."""
        blocks = self.whole_tenants(entry.offset)
        while not is_ascending(blocks):
            blocks.pop()
        self.cut = Cut(entry.offset, blocks[-1].end if blocks else entry.offset + 4)
        self.keep(Good1(entry.index, entry.offset, self.size, blocks))

    def keep(self, good: Good1) -> None:
        """Keeps a partition."""
        self.good.append(good)
        self.last_id, self.last_end = self.entries[good.index].partition, good.end

    def walk(self) -> None:
        """Finds the partition of each entry, in the order of the TOC."""
        for entry in self.entries:
            found = self.attempt(entry, entry.offset)
            cause = found if isinstance(found, str) else ""
            if cause and entry.offset != self.last_end:
                found = self.attempt(entry, self.last_end)
            if isinstance(found, Good1):
                self.keep(found)
            elif self.is_cut(entry, cause):
                self.keep_whole_tenants(entry)
            else:
                by_id = cause == "out_of_order" and self.is_id_out_of_order(entry)
                self.failed.append(Failed1(entry, cause, by_id))

    def mark(self, coverage: Coverage, entry: Entry1, cause: str) -> None:
        """Lays a damaged entry over the file."""
        coverage.damage(TOC + 20 * entry.index, TOC + 20 * entry.index + 20, cause)

    def cover_partition(self, coverage: Coverage, good: Good1) -> None:
        """Lays a partition over the file, and its entry where the two disagree."""
        entry = self.entries[good.index]
        for block in good.blocks:
            coverage.take(block.start, block.end, "block")
        if self.cut and self.cut.start == good.start:
            if self.cut.whole_end == self.size:
                coverage.damage(good.start, good.start + 4, "count_mismatch")
            coverage.damage(self.cut.whole_end, self.size, "length_out_of_bounds")
        elif (entry.offset, entry.length) != (good.start, good.end - good.start):
            self.mark(coverage, entry, "index_disagrees")
        coverage.take(good.start, good.start + 4, "header")

    def cover_gaps(self, coverage: Coverage) -> None:
        """Lays what no partition takes over the file, and the entries that failed."""
        front = Good1(-1, 0, self.data_start, [])
        back = Good1(len(self.entries), self.size, self.size, [])
        for before, behind in zip([front, *self.good], [*self.good, back], strict=True):
            failed = [one for one in self.failed if before.index < one.entry.index < behind.index]
            coverage.damage(before.end, behind.start, failed[0].cause if failed else "unreferenced")
            for one in failed:
                if one.by_id or not before.end <= one.entry.offset < behind.start:
                    self.mark(coverage, one.entry, one.cause)

    def ledger(self) -> list[Range]:
        """The ledger of a file that was walked."""
        coverage = Coverage(self.size)
        if self.data[:4] != MAGIC:
            coverage.damage(0, 4, "bad_magic")
        number = len(self.entries)
        if u32(self.data, 6) != number or (number == 0 and self.size == self.toc_end):
            coverage.damage(6, TOC, "count_mismatch")
        if self.data_start > self.size:
            coverage.damage(self.toc_end, self.size, "truncated_header")
        elif u32(self.data, self.toc_end) != number:
            coverage.damage(self.toc_end, self.data_start, "count_mismatch")
        for good in self.good:
            self.cover_partition(coverage, good)
        self.cover_gaps(coverage)
        coverage.take(0, self.data_start, "header")
        return coverage.ledger()

    def scan(self) -> Scan:
        """Reads to the end."""
        self.walk()
        returned = Returned()
        for good in self.good:
            for block in good.blocks:
                returned.add(self.entries[good.index].partition, block)
        return Scan(returned.records, returned.blocks, self.ledger())


def number_of_entries_1(data: bytes) -> int | None:
    """How many entries a TOC of version 1 has, or none where it does not fit."""
    size = len(data)
    stated = u32(data, 6)
    by_first_offset: int | None = None
    if size >= 22 and u64(data, 14) >= TOC + 4 and (u64(data, 14) - TOC - 4) % 20 == 0:
        by_first_offset = (u64(data, 14) - TOC - 4) // 20

    def stands_behind(number: int) -> bool:
        at = TOC + 20 * number
        return at + 4 <= size and u32(data, at) == number

    fits = TOC + 20 * stated <= size
    if fits and (stands_behind(stated) or by_first_offset == stated):
        return stated
    if by_first_offset and stands_behind(by_first_offset):
        return by_first_offset
    return stated if fits else None


def read(data: bytes) -> Scan:
    """Reads a segment to its end."""
    size = len(data)
    if size < TOC:
        return Scan([], [], [Range(0, size, "torn_tail", "truncated_header")])
    match int.from_bytes(data[4:6], "big"):
        case 1:
            number = number_of_entries_1(data)
            if number is None:
                return Scan([], [], [Range(0, size, "torn_tail", "length_out_of_bounds")])
            return Version1(data, number).scan()
        case 2:
            return Version2(data).scan()
        case _ if data[:4] == MAGIC and Version2(data).is_sound:
            return Version2(data).scan()
        case _:
            cause = "unsupported_version" if data[:4] == MAGIC else "bad_magic"
            return Scan([], [], [Range(0, size, "corrupt", cause)])
