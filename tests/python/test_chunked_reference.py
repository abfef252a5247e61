"""The library against the rules as plain code, on chunked logs that are damaged in every way at once."""

from __future__ import annotations

import hashlib
import json
import struct
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from active_reference import Range
from damaged_files import cases, damaged, draw_example, examples, random_bytes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loops import looped

import seglake

# zstandard has no wheel for free-threaded Python.
pytest.importorskip("zstandard")
import chunked_reference as reference

# Nothing of the library is tested: run when these files, the rules or the test itself changed, and nightly.
oracle = pytest.mark.oracle("tests/vectors/chunked/*")

VECTORS = sorted((Path(__file__).parents[1] / "vectors" / "chunked").glob("*.json"))
assert len(VECTORS) > 60, "the golden vectors are missing"

RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large]


def shown(data: bytes) -> str | dict[str, Any]:
    """A value as the golden files give it."""
    if len(data) > 96:
        return {"sha256": hashlib.sha256(data).hexdigest(), "length": len(data)}
    return data.hex()


def first_damage(ledger: list[Range]) -> dict[str, Any] | None:
    """What strict reading raises."""
    return next(({"offset": span.start, "cause": span.cause} for span in ledger if span.cause), None)


@oracle
@looped("vector", VECTORS, id=lambda path: path.stem)
def test_the_rules_read_the_golden_vectors(vector: Path) -> None:
    expected = json.loads(vector.read_text())
    log = vector.with_suffix(".bin").read_bytes()
    scan = reference.read(log)
    assert [list(span) for span in scan.ledger] == expected["ledger"]
    assert [{**record, "value": shown(record["value"])} for record in scan.records] == expected["records"]
    assert first_damage(scan.ledger) == expected["strict_error"]
    assert len(log) == expected["size"]
    if name := expected["options"].get("index"):
        index = vector.with_name(name).read_bytes()
        items, ledger = reference.read_index(log, index)
        assert [list(span) for span in ledger] == expected["index"]["ledger"]
        assert items == expected["index"]["items"]
        assert len(index) == expected["index"]["size"]
        assert reference.rebuild_index(log).hex() == expected["index"]["rebuilt"]


@oracle
@looped("vector", VECTORS, id=lambda path: path.stem)
def test_the_rules_write_the_chunks_of_the_golden_vectors(vector: Path) -> None:
    log = vector.with_suffix(".bin").read_bytes()
    expected = json.loads(vector.read_text())
    for start, end, kind, _ in expected["ledger"]:
        if kind == "chunk":
            payload = log[start + 21 : end]
            records = [record for record in expected["records"] if record["position"] == start]
            (offset,) = struct.unpack_from(">q", log, start + 5)
            assert reference.encode(offset, len(records), payload)[: end - start] == log[start:end]
            content = reference.content_of(payload)
            assert content is not None
            assert reference.encode_records(reference.records_of(content) or []) == content


# Payloads: of the kind that the format asks for, and of every other.


def stored(
    content: bytes,
    *,
    window: int | None = None,
    dictionary: int | None = None,
    size: int | None = None,
    reserved: bool = False,
) -> bytes:
    """A frame of one uncompressed block, so that the content stands in it as it is.

    It states the content's size, or `size`, unless a window descriptor is given; and a dictionary's number if there is
    one.
    """
    descriptor = 0b0000_0100 | (reserved << 3) | (dictionary is not None)
    dictionary_id = b"" if dictionary is None else bytes([dictionary])
    if window is None:
        stated = bytes([descriptor | 0b1010_0000]) + dictionary_id
        stated += struct.pack("<I", len(content) if size is None else size)
    else:
        stated = bytes([descriptor, window]) + dictionary_id
    block = (1 | len(content) << 3).to_bytes(3, "little") + content
    return reference.MAGIC + stated + block + reference.frame(content)[-4:]


SKIPPABLE = b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"any"
WINDOW_OF_128_MIB = 17 << 3

good_frames: list[Callable[[bytes], bytes]] = [
    reference.frame,
    lambda content: reference.frame(content, state_size=False),
    lambda content: reference.frame(content, level=19),
    stored,
    lambda content: stored(content, window=7 << 3),
    lambda content: stored(content, window=WINDOW_OF_128_MIB),
    lambda content: stored(content, dictionary=0),
]
bad_frames: list[Callable[[bytes], bytes]] = [
    lambda content: content,
    lambda content: b"",
    lambda content: reference.frame(content, checksum=False),
    lambda content: reference.frame(content) + reference.frame(b""),
    lambda content: reference.frame(b"") + reference.frame(content),
    lambda content: SKIPPABLE + reference.frame(content),
    lambda content: reference.frame(content) + SKIPPABLE,
    lambda content: reference.frame(content) + b"\0",
    lambda content: reference.frame(content)[:-1],
    lambda content: reference.frame(content)[:-4] + b"sum!",
    lambda content: stored(content, window=WINDOW_OF_128_MIB | 1),
    lambda content: stored(content, dictionary=7),
    lambda content: stored(content, size=len(content) + 1),
    lambda content: stored(content, reserved=True),
]
timestamps = st.integers(-(1 << 63), (1 << 63) - 1)
records = st.lists(st.tuples(timestamps, st.binary(max_size=20) | random_bytes(300)), max_size=4)
header_fields = st.sampled_from(["none"] * 12 + ["flags", "start", "top", "count", "length", "repeat"])


@st.composite
def chunks(draw: st.DrawFn, start: int, *, nested: bool = True) -> tuple[bytes, int]:
    """A chunk, sound in most cases, and the offset behind its last record."""
    held = draw(records)
    content = reference.encode_records(held)
    if nested and draw(st.integers(0, 9)) == 0:
        inner, _ = draw(chunks(start + draw(st.integers(-2, 8)), nested=False))
        # The payload, the frame's header and block header, and the record's own: the body begins at 45.
        held = [(0, bytes(0x80 - 45) + inner)]
        payload = stored(reference.encode_records(held))
    else:
        if draw(st.integers(0, 14)) == 0:
            content = draw(st.sampled_from([content + b"\0", content[:-1], content + bytes(11) + b"\x01"]))
        frames = bad_frames if draw(st.integers(0, 9)) == 0 else good_frames
        payload = draw(st.sampled_from(frames))(content)
    flags, length, stated, count = 0, len(payload), start, len(held)
    match draw(header_fields):
        case "flags":
            flags = 1 << draw(st.integers(0, 7))
        case "start":
            stated = draw(st.sampled_from([-1, -(1 << 63), 0, start - 1, start + 1]))
        case "top":
            stated = (1 << 63) - draw(st.integers(1, 3))
        case "count":
            count = draw(st.sampled_from([max(0, count - 1), count + 1, (1 << 32) - 1]))
        case "length":
            length = draw(st.sampled_from([0, max(0, length - 1), length + 1, length + 0x80, (1 << 32) - 1]))
        case _:
            pass
    header = struct.pack(">BIqI", flags, length, min(stated, (1 << 63) - 1), count)
    chunk = header + struct.pack(">I", zlib.crc32(header)) + payload
    padding = bytearray(-len(chunk) % 0x80)
    if padding and draw(st.integers(0, 19)) == 0:
        padding[draw(st.integers(0, len(padding) - 1))] = 1
    return chunk + bytes(padding), start + len(held)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """A log of mostly ascending chunks, with damage to their headers and then to anything."""
    parts: list[bytes] = []
    offset = draw(st.sampled_from([0, 0, 1000, (1 << 63) - 12]))
    for _ in range(draw(st.integers(0, 5))):
        chunk, offset = draw(chunks(offset))
        offset += draw(st.sampled_from([0, 0, 0, 5]))
        if draw(st.integers(0, 5)) == 0:
            at = draw(st.integers(0, 20))
            chunk = chunk[:at] + bytes([chunk[at] ^ 1 << draw(st.integers(0, 7))]) + chunk[at + 1 :]
        parts.append(chunk)
        if draw(st.integers(0, 14)) == 0:
            parts.append(draw(random_bytes(0x80, 0x80)))
    places = [sum(map(len, parts[:at])) for at in range(len(parts))]
    return draw(damaged(b"".join(parts), [0x80], places))


LOGS = logs()


@oracle
@settings(max_examples=500, deadline=None, suppress_health_check=RELAXED, print_blob=True)
@given(LOGS)
def test_the_ledger_of_the_rules_covers_the_file(data: bytes) -> None:
    scan = reference.read(data)
    at = 0
    for span in scan.ledger:
        assert span.start == at < span.end
        assert (span.cause is None) == (span.kind in {"chunk", "padding", "unused"})
        at = span.end
    assert at == len(data)
    starts = {span.start for span in scan.ledger if span.kind == "chunk"}
    assert {record["position"] for record in scan.records} <= starts
    offsets = [record["offset"] for record in scan.records]
    assert offsets == sorted(set(offsets))


@oracle
@settings(max_examples=300, deadline=None, suppress_health_check=RELAXED, print_blob=True)
@given(LOGS, st.data())
def test_the_rules_rebuild_an_index_and_read_a_damaged_one(log: bytes, data: st.DataObject) -> None:
    rebuilt = reference.rebuild_index(log)
    items, ledger = reference.read_index(log, rebuilt)
    assert [span.kind for span in ledger] == ["record"] * len(items)
    scan = reference.read(log)
    assert [item["file_offset"] for item in items] == sorted({record["position"] for record in scan.records})
    index = data.draw(damaged(rebuilt, [20], range(0, len(rebuilt), 20)))
    held, ledger = reference.read_index(log, index)
    assert b"".join(index[slice(*span[:2])] for span in ledger) == index
    assert all(item in items or item["file_offset"] in _headers(log) for item in held)


def _headers(log: bytes) -> set[int]:
    """Where headers stand whose CRC is right."""
    return {at for at in range(0, len(log) - 20, 0x80) if reference.Header(log, at).checks}


EVERY_DAMAGE = [
    ("corrupt", "header_checksum_mismatch"),
    ("torn_tail", "header_checksum_mismatch"),
    ("corrupt", "nonzero_unused"),
    ("torn_tail", "nonzero_unused"),
    ("torn_tail", "truncated_header"),
    ("corrupt", "unsupported_flags"),
    ("corrupt", "offset_out_of_bounds"),
    ("torn_tail", "length_out_of_bounds"),
    ("corrupt", "payload_invalid"),
    ("torn_tail", "payload_invalid"),
    ("corrupt", "out_of_order"),
    ("corrupt", "nonzero_padding"),
    ("torn_tail", "nonzero_padding"),
]


def has(data: bytes, damage: tuple[str, str]) -> bool:
    """Whether the rules find the damage in a file."""
    return damage in {span[2:] for span in reference.read(data).ledger}


@oracle
@pytest.mark.parametrize("damage", EVERY_DAMAGE, ids=" ".join)
def test_every_damage_is_drawn(damage: tuple[str, str], request: pytest.FixtureRequest) -> None:
    keep = request.config.getoption("oracles") == "write"
    draw_example(" ".join(["chunked", *damage]), LOGS, lambda data: has(data, damage), keep=keep)


def compare(data: bytes) -> None:
    """Fails where the library reads `data` otherwise than the rules."""
    expected = reference.read(data)
    options: dict[str, Any] = {"format": "chunked"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
        reader = seglake.open(data, on_damage="skip", **options)
        records: list[Any] = list(reader)
    assert [
        {"position": record.position, "offset": record.offset, "timestamp": record.timestamp_us, "value": record.value}
        for record in records
    ] == expected.records
    assert [tuple(span) for span in reader.ledger()] == [tuple(span) for span in expected.ledger]
    first = first_damage(expected.ledger)
    if first is None:
        assert len(list(seglake.open(data, **options))) == len(expected.records)
        return
    with pytest.raises(seglake.DamageError) as raised:
        list(seglake.open(data, **options))
    assert {"offset": raised.value.byte_offset, "cause": raised.value.cause} == first


@pytest.mark.parametrize("damage", EVERY_DAMAGE, ids=" ".join)
def test_every_damage_is_read_by_the_rules(damage: tuple[str, str]) -> None:
    data = examples()[" ".join(["chunked", *damage])]
    assert has(data, damage), "make oracles draws another one"
    compare(data)


@settings(max_examples=cases(1500), deadline=None, suppress_health_check=RELAXED, print_blob=True)
@given(LOGS)
def test_damaged_logs_are_read_by_the_rules(data: bytes) -> None:
    compare(data)
