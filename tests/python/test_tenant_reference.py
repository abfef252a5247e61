"""The library against the rules as plain code, on tenant segments that are damaged in every way at once."""

import hashlib
import json
import warnings
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from damaged_files import cases, damaged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loops import looped
from tenant_reference import MAGIC, TOC, Record, TenantBlock, Version2, b32, b64, encode, read

import seglake

# Nothing of the library is tested: run when these files, the rules or the test itself changed, and nightly.
oracle = pytest.mark.oracle("tests/vectors/tenant/*")

VECTORS = sorted((Path(__file__).parents[1] / "vectors" / "tenant").glob("*.json"))
assert len(VECTORS) > 70, "the golden vectors are missing"
ENCODABLE = [path for path in VECTORS if json.loads(path.read_text())["encode"] is not None]

many = settings(
    max_examples=cases(1500),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def shown(value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    if len(value) > 96:
        return {"sha256": hashlib.sha256(value).hexdigest(), "length": len(value)}
    return value.hex()


def shown_all(rows: list[Record] | list[TenantBlock]) -> list[dict[str, Any]]:
    return [{name: shown(value) for name, value in row.items()} for row in rows]


@oracle
@looped("vector", VECTORS, id=lambda path: path.stem)
def test_the_rules_read_the_golden_vectors(vector: Path) -> None:
    expected = json.loads(vector.read_text())
    scan = read(vector.with_suffix(".bin").read_bytes())
    assert shown_all(scan.records) == expected["records"]
    assert shown_all(scan.blocks) == expected["blocks"]
    assert [list(span) for span in scan.ledger] == expected["ledger"]
    damage = next(({"offset": span.start, "cause": span.cause} for span in scan.ledger if span.cause), None)
    assert damage == expected["strict_error"]


@oracle
@looped("vector", ENCODABLE, id=lambda path: path.stem)
def test_the_rules_write_the_golden_vectors(vector: Path) -> None:
    expected = json.loads(vector.read_text())
    data = vector.with_suffix(".bin").read_bytes()
    scan = read(data)
    assert encode(scan.records, scan.blocks, **expected["encode"]) == data


@dataclass
class Entry:
    """A TOC entry of either version, before it is written."""

    partition: int
    offset: int
    length: int
    tenant: bytes = b""
    messages: int = 0
    crc: int = 0

    def encode(self, version: int) -> bytes:
        if version == 1:
            return b32(self.partition) + b64(self.offset) + b64(self.length)
        name = b32(self.partition) + b32(len(self.tenant)) + self.tenant
        return name + b32(self.messages) + b64(self.offset) + b64(self.length) + b32(self.crc)

    def size(self, version: int) -> int:
        return len(self.encode(version))


@dataclass
class Tenant:
    """A block to lay out, with the zeros in front of it. `more` is how many messages too many it says it has."""

    name: bytes
    contents: list[bytes]
    gap: int = 0
    more: int = 0

    def encode(self) -> bytes:
        head = b32(max(0, len(self.contents) + self.more)) + b32(len(self.name)) + self.name
        return head + b"".join(b32(len(one)) + one for one in self.contents)


@dataclass
class Partition:
    """A partition to lay out. `number` is how many tenants it says it has, if not as many as there are."""

    id: int
    tenants: list[Tenant] = field(default_factory=list[Tenant])
    number: int | None = None
    gap: int = 0


values = st.binary(max_size=12)
names = st.sampled_from([b"", b"a", b"b", b"bb", b"c", b"d"])
ids = st.sampled_from([0, 1, 2, 3, 9, 2**32 - 1])


@st.composite
def embedded(draw: st.DrawFn) -> bytes:
    """A block, a partition or a whole segment, as a message's content."""
    block = Tenant(draw(names), draw(st.lists(values, max_size=2))).encode()
    record: Record = {"position": 0, "partition": draw(ids), "tenant": draw(names), "index": 0, "value": draw(values)}
    return draw(st.sampled_from([block, b32(1) + block, encode([record]), encode([record], version=1)]))


@st.composite
def partitions_of(draw: st.DrawFn, version: int) -> list[Partition]:
    """Ascending partitions of ascending tenants, then, now and then, some of them moved, repeated or set apart."""
    fewest = 0 if version == 1 else 1
    contents = st.lists(st.one_of(values, values, values, embedded()), max_size=3)
    partitions = [
        Partition(
            id, [Tenant(name, draw(contents)) for name in sorted(draw(st.sets(names, min_size=fewest, max_size=3)))]
        )
        for id in sorted(draw(st.sets(ids, max_size=4)))
    ]
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        if not partitions:
            break
        at, other = draw(st.integers(0, len(partitions) - 1)), draw(st.integers(0, len(partitions) - 1))
        partition = partitions[at]
        match draw(
            st.sampled_from(["swap", "repeat", "number", "gap", "tenant_gap", "messages", "tenants", "tenant_twice"])
        ):
            case "swap":
                partitions[at], partitions[other] = partitions[other], partitions[at]
            case "repeat":
                partitions.insert(other, Partition(partition.id, list(partition.tenants)))
            case "number":
                partition.number = max(0, len(partition.tenants) + draw(st.sampled_from([-1, 1, 2**31])))
            case "gap":
                partition.gap = draw(st.integers(1, 6))
            case "tenant_gap":
                for tenant in partition.tenants:
                    tenant.gap = draw(st.integers(0, 6))
            case "messages":
                for tenant in partition.tenants:
                    tenant.more = draw(st.sampled_from([-1, 0, 0, 1, 2**31]))
            case "tenants":
                partition.tenants = draw(st.permutations(partition.tenants))
            case _:
                partition.tenants = partition.tenants[:1] + partition.tenants
    return partitions


def edit(draw: st.DrawFn, entries: list[Entry], size: int) -> None:
    """Changes some entries to what they might plausibly be."""
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3]))):
        if not entries:
            break
        at, other = draw(st.integers(0, len(entries) - 1)), draw(st.integers(0, len(entries) - 1))
        entry, like = entries[at], entries[other]
        near = st.sampled_from([-8, -4, -2, -1, 1, 2, 4, 8])
        match draw(
            st.sampled_from(
                [
                    "offset",
                    "shift",
                    "far",
                    "length",
                    "longer",
                    "id",
                    "tenant",
                    "messages",
                    "crc",
                    "swap",
                    "repeat",
                    "add",
                ]
            )
        ):
            case "offset":
                entry.offset = like.offset
            case "shift":
                entry.offset = min(max(0, entry.offset + draw(near)), 2**64 - 1)
            case "far":
                entry.offset = draw(st.sampled_from([0, 10, 14, 18, size - 4, size - 1, size, size + 1, 2**64 - 1]))
            case "length":
                entry.length = like.length
            case "longer":
                longer = draw(st.sampled_from([0, entry.length + draw(near), size, 2**64 - 1]))
                entry.length = min(max(0, longer), 2**64 - 1)
            case "id":
                entry.partition = draw(st.one_of(ids, st.just(like.partition)))
            case "tenant":
                entry.tenant = draw(names)
            case "messages":
                entry.messages = max(0, entry.messages + draw(st.sampled_from([-1, 1])))
            case "crc":
                entry.crc ^= 1
            case "swap":
                entries[at], entries[other] = like, entry
            case "repeat":
                entries[at] = Entry(**vars(like))
            case _:
                entries.insert(other, Entry(**vars(entry)))


@st.composite
def nearly_sound(draw: st.DrawFn) -> bytes:
    """A segment as it is written, then cut anywhere, or damaged once."""
    rows = draw(st.lists(st.tuples(ids, names, values), max_size=8))
    records: list[Record] = [
        {"position": 0, "partition": id, "tenant": name, "index": 0, "value": value} for id, name, value in rows
    ]
    segment = encode(records, version=draw(st.sampled_from([1, 2])))
    if draw(st.booleans()):
        return segment[: draw(st.integers(0, len(segment)))]
    return draw(damaged(segment, most=1))


@st.composite
def lying(draw: st.DrawFn) -> bytes:
    """A segment whose TOC and counts may lie, knowingly or not, and whose bytes were then damaged."""
    version = draw(st.sampled_from([1, 2]))
    partitions = draw(partitions_of(version))
    body, entries = b32(max(0, len(partitions) + draw(st.sampled_from([0] * 9 + [-1, 1])))), list[Entry]()
    ends = list[int]()
    for partition in partitions:
        body += bytes(partition.gap)
        start = len(body)
        body += b32(len(partition.tenants) if partition.number is None else partition.number)
        for tenant in partition.tenants:
            body += bytes(tenant.gap)
            block = tenant.encode()
            ends += [len(body), len(body) + len(block)]
            if version == 2:
                crc = zlib.crc32(b32(partition.id) + block)
                entries.append(Entry(partition.id, len(body), len(block), tenant.name, len(tenant.contents), crc))
            body += block
        if version == 1:
            entries.append(Entry(partition.id, start, len(body) - start))
    toc_end = TOC + sum(entry.size(version) for entry in entries) + (4 if version == 2 else 0)
    for entry in entries:
        entry.offset += toc_end
    sound = b"".join(entry.encode(version) for entry in entries)
    edit(draw, entries, toc_end + len(body))
    if version == 2 and draw(st.sampled_from([False, False, True])):
        # CRCs that are right over whatever the entries now say is a block.
        for entry in entries:
            start = entry.offset - toc_end
            end = start + entry.length
            if 0 <= start < end <= len(body):
                entry.crc = zlib.crc32(b32(entry.partition) + body[start:end])
    head = draw(st.sampled_from([MAGIC] * 15 + [b"TSEh"])) + version.to_bytes(2, "big")
    toc = b32(max(0, len(entries) + draw(st.sampled_from([0] * 12 + [-1, 1]))))
    toc += b"".join(entry.encode(version) for entry in entries)
    if version == 2:
        # The CRC of the TOC as it stands or as it was.
        hashed = draw(st.sampled_from([head + toc, head + toc, head + b32(len(entries)) + sound]))
        toc += b32(zlib.crc32(hashed))
    ends = [toc_end, toc_end + 4, *(toc_end + end for end in ends)]
    return draw(damaged(head + toc + body, places=ends))


@st.composite
def with_a_damaged_table(draw: st.DrawFn) -> bytes:
    """A segment with several entries whose table of contents alone is damaged, its lengths most of all."""
    rows = draw(st.lists(st.tuples(ids, names, st.one_of(values, embedded())), min_size=1, max_size=8))
    records: list[Record] = [
        {"position": 0, "partition": id, "tenant": name, "index": 0, "value": value} for id, name, value in rows
    ]
    segment = encode(records)
    table = Version2(segment)
    assert table.toc_end is not None
    damage = bytearray(segment[: table.toc_end])
    for _ in range(draw(st.integers(1, 3))):
        entry = draw(st.sampled_from(table.entries))
        match draw(st.sampled_from(["length", "length", "any", "count", "zeroed"])):
            case "length":
                damage[entry.start + 4 : entry.start + 8] = b32(
                    draw(st.sampled_from([0, 1, 2, 3, 40, 2**16, 2**32 - 1]))
                )
            case "any":
                damage[draw(st.integers(TOC, table.toc_end - 1))] ^= 1 << draw(st.integers(0, 7))
            case "count":
                damage[6:TOC] = b32(draw(st.sampled_from([0, 1, len(table.entries) + 1, 2**32 - 1])))
            case _:
                damage[entry.start : entry.end] = bytes(entry.end - entry.start)
    return bytes(damage) + segment[table.toc_end :]


segments = st.one_of(nearly_sound(), lying(), with_a_damaged_table())


@oracle
@many
@given(segments)
def test_the_rules_leave_no_byte_out(data: bytes) -> None:
    scan = read(data)
    ends = [span.end for span in scan.ledger]
    assert [span.start for span in scan.ledger] == [0, *ends[:-1]]
    assert ends[-1] == len(data)
    kept = [span.start for span in scan.ledger if span.kind == "block"]
    assert kept == [block["position"] for block in scan.blocks]
    order = [(block["partition"], block["tenant"]) for block in scan.blocks]
    assert order == sorted(set(order))
    assert len(scan.records) == sum(block["messages"] for block in scan.blocks)


def compare(data: bytes) -> None:
    """Fails where the library reads `data` otherwise than the rules."""
    expected = read(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
        reader = seglake.open(data, format="tenant", on_damage="skip")
        records = [
            {
                "position": record.position,
                "partition": record.partition,
                "tenant": record.tenant_bytes,
                "index": record.index,
                "value": record.value,
            }
            for record in reader
        ]
        blocks = [{**block._asdict(), "tenant": block.tenant_bytes} for block in reader.blocks()]
        for block in blocks:
            del block["tenant_bytes"]
    assert records == expected.records
    assert blocks == expected.blocks
    assert [tuple(span) for span in reader.ledger()] == [tuple(span) for span in expected.ledger]
    first = next((span for span in expected.ledger if span.cause), None)
    if first is None:
        assert len(list(seglake.open(data, format="tenant"))) == len(expected.records)
        return
    with pytest.raises(seglake.DamageError) as raised:
        list(seglake.open(data, format="tenant"))
    assert (raised.value.byte_offset, raised.value.cause) == (first.start, first.cause)


@many
@given(segments)
def test_damaged_segments_are_read_by_the_rules(data: bytes) -> None:
    compare(data)


def of_one_partition(names: list[bytes], version: int) -> bytearray:
    """A partition of tenants, each with a message of its name, in the order given."""
    blocks = [Tenant(name, [name]).encode() for name in sorted(names)]
    sound = bytearray(
        encode(
            [{"position": 0, "partition": 0, "tenant": name, "index": 0, "value": name} for name in names],
            version=version,
        )
    )
    begin = len(sound) - sum(map(len, blocks))
    sound[begin:] = b"".join(Tenant(name, [name]).encode() for name in names)
    return sound


READINGS = {
    "a cut partition whose tenants do not ascend": bytes(of_one_partition([b"a", b"c", b"b", b"d"], 1)[:-1]),
    "a partition whose tenants do not ascend": bytes(of_one_partition([b"a", b"c", b"b", b"d"], 1)),
    "a wrong magic and a TOC that does not fit": b"TSEh\0\1" + b32(9) + bytes(20),
    "a first offset that would leave no TOC": MAGIC + b"\0\1" + b32(1) + b32(0) + b64(14) + b64(4) + b32(7) + b32(0),
}


@pytest.mark.parametrize("data", READINGS.values(), ids=READINGS)
def test_readings(data: bytes) -> None:
    compare(data)


@pytest.mark.parametrize("version", [1, 2])
def test_every_bit_and_every_length(version: int) -> None:
    records: list[Record] = [
        {"position": 0, "partition": partition, "tenant": tenant, "index": 0, "value": tenant * partition}
        for partition in (0, 3, 4)
        for tenant in (b"acme", b"initech")
    ]
    sound = encode(records, version=version)
    for end in range(len(sound)):
        compare(sound[:end])
    for bit in range(8 * len(sound)):
        flipped = bytearray(sound)
        flipped[bit // 8] ^= 1 << bit % 8
        compare(bytes(flipped))
