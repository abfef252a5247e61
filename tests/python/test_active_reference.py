"""The library against the rules as plain code, on segments that are damaged in every way at once."""

import json
import warnings
from pathlib import Path

import pytest
from active_reference import Scanner, encode
from damaged_files import cases
from highway_hash import checksum
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loops import looped

import seglake

# Nothing of the library is tested: run when these files, the rules or the test itself changed, and nightly.
oracle = pytest.mark.oracle("tests/vectors/active/*")

VECTORS = sorted((Path(__file__).parents[1] / "vectors" / "active").glob("*.json"))


def uuid(tick: int, version: int = 6) -> bytes:
    """The UUID of a tick of 2024, of another version where asked."""
    tick += 0x01EE << 48
    return ((tick >> 12 << 16) | version << 12 | (tick & 0xFFF)).to_bytes(8, "big") + b"\x80" + bytes(6) + b"\x01"


def compare(data: bytes) -> None:
    """Fails where the library reads `data` otherwise than the rules."""
    expected = Scanner(data).scan()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
        reader = seglake.open(data, format="active", on_damage="skip")
        assert [record.position for record in reader] == expected.records
    assert [tuple(span) for span in reader.ledger()] == [tuple(span) for span in expected.ledger]
    first = next((span for span in expected.ledger if span.cause), None)
    if first is None:
        assert len(list(seglake.open(data, format="active"))) == len(expected.records)
        return
    with pytest.raises(seglake.DamageError) as raised:
        list(seglake.open(data, format="active"))
    assert (raised.value.byte_offset, raised.value.cause) == (first.start, first.cause)


@oracle
@looped("vector", VECTORS, id=lambda path: path.stem)
def test_the_rules_read_the_golden_vectors(vector: Path) -> None:
    expected = json.loads(vector.read_text())
    if set(expected["options"]["key"]) == {"0"}:
        scan = Scanner(vector.with_suffix(".bin").read_bytes()).scan()
        assert [list(span) for span in scan.ledger] == expected["ledger"]
        assert scan.records == [record["position"] for record in expected["records"]]


@oracle
def test_a_known_hash() -> None:
    key = bytes(range(32))
    # Of the reference implementation's known answers, those of 0, 1, 31, 32, 33 and 64 bytes.
    known = {
        0: 0x907A56DE22C26E53,
        1: 0x7EAB43AAC7CDDD78,
        31: 0x9FC7007CCF035A68,
        32: 0xA0C964D9ECD580FC,
        33: 0x2C90F73CA03181FC,
        64: 0x75542C5D4CD2A6FF,
    }
    for size, answer in known.items():
        assert int.from_bytes(checksum(bytes(range(size)), key), "big") == answer, size


# Few ticks, so that UUIDs repeat and go backwards; now and then another version.
ticks = st.integers(0, 30)
versions = st.sampled_from([6, 6, 6, 6, 6, 7])
plain = st.builds(
    lambda tick, version, type_, value: encode(uuid(tick, version), type_, value),
    ticks,
    versions,
    st.binary(max_size=5),
    st.binary(max_size=40),
)
nested = st.builds(
    lambda tick, inner, rest: encode(uuid(tick), b"nest", b"".join(inner) + rest),
    ticks,
    st.lists(plain, max_size=3),
    st.binary(max_size=6),
)
pieces = st.one_of(plain, plain, plain, nested, st.binary(max_size=30), st.integers(1, 60).map(bytes))


@st.composite
def segments(draw: st.DrawFn) -> bytes:
    """A segment of mostly ascending records, with other things in between, then cut, flipped, zeroed and padded."""
    ascending = [
        encode(uuid(100 + at * 10), b"t", draw(st.binary(max_size=30))) for at in range(draw(st.integers(0, 6)))
    ]
    parts = list(ascending)
    for piece in draw(st.lists(pieces, max_size=5)):
        parts.insert(draw(st.integers(0, len(parts))), piece)
    data = bytearray(b"".join(parts))
    for _ in range(draw(st.integers(0, 3))):
        if not data:
            break
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["flip", "zero", "cut", "remove"])):
            case "flip":
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "zero":
                end = min(len(data), at + draw(st.integers(1, 50)))
                data[at:end] = bytes(end - at)
            case "cut":
                del data[at:]
            case _:
                del data[at : at + draw(st.integers(1, 20))]
    return bytes(data) + bytes(draw(st.sampled_from([0, 0, 1, 7, 15, 16, 28, 29, 64, 300])))


@settings(
    max_examples=cases(1500), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(segments())
def test_damaged_segments_are_read_by_the_rules(data: bytes) -> None:
    compare(data)
