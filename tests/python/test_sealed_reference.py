"""The library against the rules as plain code, on sealed segments that are damaged in every way at once."""

import hashlib
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from damaged_files import cases, damaged
from highway_hash import checksum
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loops import looped
from sealed_reference import DEFAULT_KEY, ENTRY, MAGIC, TERMINATOR, encode, encode_message, read, trailer_of

import seglake

# Nothing of the library is tested: run when these files, the rules or the test itself changed, and nightly.
oracle = pytest.mark.oracle("tests/vectors/sealed/*")

VECTORS = sorted((Path(__file__).parents[1] / "vectors" / "sealed").glob("*.json"))
assert len(VECTORS) > 60, "the golden vectors are missing"
ENCODABLE = [path for path in VECTORS if json.loads(path.read_text())["encode"] is not None]
OTHER_KEY = bytes(range(32))

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


@oracle
@looped("vector", VECTORS, id=lambda path: path.stem)
def test_the_rules_read_the_golden_vectors(vector: Path) -> None:
    expected = json.loads(vector.read_text())
    scan = read(vector.with_suffix(".bin").read_bytes(), bytes.fromhex(expected["options"]["key"]))
    records = [{name: shown(value) for name, value in record.items()} for record in scan.records]
    assert records == expected["records"]
    assert [list(span) for span in scan.ledger] == expected["ledger"]
    assert scan.checked == expected["checked"]
    damage = next(({"offset": span.start, "cause": span.cause} for span in scan.ledger if span.cause), None)
    assert damage == expected["strict_error"]


@oracle
@looped("vector", ENCODABLE, id=lambda path: path.stem)
def test_the_rules_write_the_golden_vectors(vector: Path) -> None:
    expected = json.loads(vector.read_text())
    data, key = vector.with_suffix(".bin").read_bytes(), bytes.fromhex(expected["options"]["key"])
    records = [(record["uuid"], record["type"], record["value"]) for record in read(data, key).records]
    assert encode(records, key, **expected["encode"]) == data


def uuid(tick: int, version: int = 6) -> bytes:
    """The UUID of a tick of 2024, of another version where asked."""
    tick += 0x01EE << 48
    return ((tick >> 12 << 16) | version << 12 | (tick & 0xFFF)).to_bytes(8, "big") + b"\x80" + bytes(6) + b"\x01"


@dataclass
class Piece:
    """A message to lay out, with the zeros in front of it."""

    uuid: bytes
    message: bytes
    gap: int = 0


ticks = st.integers(0, 90)
values = st.binary(max_size=30)
embedded = st.lists(st.tuples(ticks, values), max_size=2).flatmap(
    lambda records: st.booleans().map(
        lambda trailer: encode([(uuid(tick), b"in", value) for tick, value in records], trailer=trailer)
    )
)
uuids = st.one_of(ticks.map(uuid), ticks.map(lambda tick: uuid(tick, version=7)), st.binary(min_size=16, max_size=16))


# What stands behind files that were copied in blocks, edited or joined.
BEHIND = [
    st.just(b"\n"),
    st.just(bytes(8)),
    st.just(bytes(100)),
    st.just(MAGIC),
    st.just(trailer_of(TERMINATOR, b"", DEFAULT_KEY)),
]


@st.composite
def pieces_of(draw: st.DrawFn) -> list[Piece]:
    """Ascending messages, then, now and then, some of them moved, repeated, renamed or set apart."""
    pieces = [
        Piece(uuid(10 * at + 5), encode_message(draw(st.binary(max_size=4)), draw(st.one_of(values, values, embedded))))
        for at in range(draw(st.integers(0, 6)))
    ]
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        if not pieces:
            break
        at, other = draw(st.integers(0, len(pieces) - 1)), draw(st.integers(0, len(pieces) - 1))
        match draw(st.sampled_from(["swap", "repeat", "rename", "gap"])):
            case "swap":
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case "repeat":
                pieces.insert(other, replace(pieces[at]))
            case "rename":
                pieces[at].uuid = draw(uuids)
            case _:
                pieces[at].gap = draw(st.integers(1, 6))
    return pieces


@st.composite
def edited(draw: st.DrawFn, index: list[tuple[bytes, int]], data_end: int) -> list[tuple[bytes, int]]:
    """An index with some entries changed to what they might plausibly be, the number of entries unchanged."""
    index = list(index)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3]))):
        if not index:
            break
        at, other = draw(st.integers(0, len(index) - 1)), draw(st.integers(0, len(index) - 1))
        uuid_here, offset = index[at]
        match draw(st.sampled_from(["offset", "shift", "far", "swap", "swap_offsets", "repeat", "uuid", "zero"])):
            case "offset":
                index[at] = uuid_here, index[other][1]
            case "shift":
                index[at] = uuid_here, max(0, offset + draw(st.sampled_from([-24, -5, -1, 1, 5, 24, 48])))
            case "far":
                far = [0, ENTRY * len(index), data_end - 1, data_end, data_end + 1, 2**63, 2**64 - 1]
                index[at] = uuid_here, max(0, draw(st.sampled_from(far)))
            case "swap":
                index[at], index[other] = index[other], index[at]
            case "swap_offsets":
                index[at], index[other] = (uuid_here, index[other][1]), (index[other][0], offset)
            case "repeat":
                index[at] = index[other]
            case "uuid":
                index[at] = draw(uuids), offset
            case _:
                index[at] = bytes(16), 0
    return index


def trailer_with(draw: st.DrawFn, number: int, trailer: bytes, key: bytes) -> bytes:
    """A trailer, now and then with a wrong field."""
    checksums, key_check, count, index_hash = trailer[:-32], trailer[-32:-24], trailer[-24:-16], trailer[-16:-8]
    match draw(st.sampled_from(["right"] * 8 + ["count", "key", "hash", "magic", "checksums"])):
        case "count":
            count = max(0, number + draw(st.sampled_from([-1, 1, 2**40]))).to_bytes(8, "big")
        case "key":
            key_check = checksum(b"", OTHER_KEY if key == DEFAULT_KEY else DEFAULT_KEY)
        case "hash":
            index_hash = bytes(8)
        case "magic":
            return trailer[:-8] + b"SLKSEAL2"
        case "checksums":
            checksums = checksums[8:] + checksums[:8]
        case _:
            pass
    return checksums + key_check + count + index_hash + MAGIC


@st.composite
def nearly_sound(draw: st.DrawFn) -> bytes:
    """A segment as it is written, damaged at most once, then left so, cut anywhere, or with something behind it."""
    pieces = [(uuid(10 * at), draw(st.binary(max_size=3)), draw(values)) for at in range(draw(st.integers(0, 6)))]
    sound = encode(pieces, trailer=draw(st.booleans()))
    segment = draw(damaged(sound, most=1))
    match draw(st.sampled_from(["as it is", "cut", "cut in the trailer", "behind"])):
        case "cut":
            return segment[: draw(st.integers(0, len(segment)))]
        case "cut in the trailer":
            return segment[: len(segment) - draw(st.integers(0, min(len(segment), 8 * len(pieces) + 32)))]
        case "behind":
            return segment + draw(st.one_of(*BEHIND, st.just(sound), embedded, st.binary(max_size=40)))
        case _:
            return segment


@st.composite
def lying(draw: st.DrawFn) -> bytes:
    """A segment whose index and trailer may lie, knowingly or not, and whose bytes were then damaged."""
    pieces = draw(pieces_of())
    data, sound = b"", list[tuple[bytes, int]]()
    for piece in pieces:
        data += bytes(piece.gap)
        sound.append((piece.uuid, ENTRY * (len(pieces) + 1) + len(data)))
        data += piece.message
    data_end = ENTRY * (len(pieces) + 1) + len(data)
    entries = [(name, offset % (1 << 64)) for name, offset in draw(edited(sound, data_end))]
    index = b"".join(name + offset.to_bytes(8, "big") for name, offset in entries) + TERMINATOR
    segment = index + data
    key = draw(st.sampled_from([DEFAULT_KEY] * 9 + [OTHER_KEY]))
    if draw(st.booleans()):
        # Checksums of the names in the index or of the true ones; a hash of the index as it stands or as it was.
        names = [name for name, _ in draw(st.sampled_from([entries, sound]))]
        checksums = b"".join(checksum(name + piece.message, key) for name, piece in zip(names, pieces, strict=True))
        hashed = draw(st.sampled_from([entries, sound]))
        hashed_index = b"".join(name + offset.to_bytes(8, "big") for name, offset in hashed) + TERMINATOR
        segment += trailer_with(draw, len(pieces), trailer_of(hashed_index, checksums, key), key)
    ends = [data_end, data_end + 8 * len(pieces), len(segment), *(offset for _, offset in sound)]
    return draw(damaged(segment, places=ends))


segments = st.one_of(nearly_sound(), lying())


@oracle
@many
@given(segments)
def test_the_rules_leave_no_byte_out(data: bytes) -> None:
    scan = read(data)
    ends = [span.end for span in scan.ledger]
    assert [span.start for span in scan.ledger] == [0, *ends[:-1]]
    assert ends[-1] == len(data)
    returned = [span.start for span in scan.ledger if span.kind == "record"]
    assert returned == [record["position"] for record in scan.records]
    names = [record["uuid"] for record in scan.records]
    assert names == sorted(set(names))


def compare(data: bytes, key: bytes) -> None:
    """Fails where the library reads `data` otherwise than the rules."""
    expected = read(data, key)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
        reader = seglake.open(data, format="sealed", key=key, on_damage="skip")
        records = [
            {
                "position": record.position,
                "uuid": record.uuid.bytes,
                "timestamp": record.timestamp_us,
                "type": record.type_bytes,
                "value": record.value,
            }
            for record in reader
        ]
    assert records == expected.records
    assert [tuple(span) for span in reader.ledger()] == [tuple(span) for span in expected.ledger]
    assert seglake.verify(data, format="sealed", key=key).checked == expected.checked
    first = next((span for span in expected.ledger if span.cause), None)
    if first is None:
        assert len(list(seglake.open(data, format="sealed", key=key))) == len(expected.records)
        return
    with pytest.raises(seglake.DamageError) as raised:
        list(seglake.open(data, format="sealed", key=key))
    assert (raised.value.byte_offset, raised.value.cause) == (first.start, first.cause)


@many
@given(segments, st.sampled_from([DEFAULT_KEY] * 9 + [OTHER_KEY]))
def test_damaged_segments_are_read_by_the_rules(data: bytes, key: bytes) -> None:
    compare(data, key)


THREE = [(uuid(10 * at), b"type", bytes([at]) * 9) for at in range(3)]
WITHOUT_TERMINATOR = bytearray(encode(THREE))
WITHOUT_TERMINATOR[3 * ENTRY] = 1
NO_ENTRY = bytearray(encode([]))
NO_ENTRY[ENTRY - 1] = ENTRY

READINGS = {
    "a message that no entry names behind the last": encode(THREE, trailer=False) + encode_message(b"", b"x"),
    "a damaged terminator and the last byte missing": bytes(WITHOUT_TERMINATOR[:-1]),
    "no entries, and a terminator that reads as an offset": bytes(NO_ENTRY),
    "no entries, and the beginning of a trailer": encode([])[:-1],
}


@pytest.mark.parametrize("data", READINGS.values(), ids=READINGS)
def test_readings(data: bytes) -> None:
    compare(data, DEFAULT_KEY)


def flips(data: bytes) -> Iterator[bytes]:
    """The file with each of its bits flipped."""
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bytes(flipped)


def segment_of(number: int, *, trailer: bool = True) -> bytes:
    return encode([(uuid(10 * at), b"type", bytes([at]) * (3 + at)) for at in range(number)], trailer=trailer)


@pytest.mark.parametrize("trailer", [True, False])
def test_every_bit_and_every_length(trailer: bool) -> None:
    sound = segment_of(4, trailer=trailer)
    for end in range(len(sound)):
        compare(sound[:end], DEFAULT_KEY)
    for flipped in flips(sound):
        compare(flipped, DEFAULT_KEY)


@pytest.mark.parametrize("trailer", [True, False])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_every_byte_of_a_file_that_is_cut_or_has_something_behind_it(number: int, trailer: bool) -> None:
    sound = segment_of(number, trailer=trailer)
    tails = [b"\n", bytes(16), sound, segment_of(2), segment_of(number, trailer=False)]
    for flipped in list(flips(sound))[::9]:
        for tail in tails:
            compare(flipped + tail, DEFAULT_KEY)
        for missing in [1, 9, 17, 25, 33]:
            compare(flipped[:-missing], DEFAULT_KEY)
