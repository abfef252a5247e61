"""The library against the rules as plain code, on oplogs of every dialect that are damaged in every way at once."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from active_reference import Range
from autobase_reference import encode_autobase
from compact_reference import Cursor, Fields, Undecodable, array, buffer, uint
from damaged_files import cases, damaged, draw_example, examples, random_bytes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loops import looped
from oplog_reference import Writer, decode_message, decode_system, encode, encode_system, read

import seglake

# Nothing of the library is tested: run when these files, the rules or the test itself changed, and nightly.
oracle = pytest.mark.oracle("tests/vectors/oplog/*", "tests/vectors/autobase/*")

ROOT = Path(__file__).parents[1] / "vectors"
VECTORS = sorted((ROOT / "oplog").glob("*.json"))
REAL = sorted((ROOT / "autobase").glob("real-*.json"))
SYNTHETIC: list[dict[str, Any]] = json.loads((ROOT / "autobase" / "synthetic-messages.json").read_text())
assert len(VECTORS) > 40, "the golden vectors are missing"
assert len(REAL) >= 4, "the golden vectors are missing"
assert len(SYNTHETIC) > 40, "the golden vectors are missing"

DIALECTS = ["draft", "draft-1.1", "autobase"]
RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large]


def shown(value: Any, longest: int | None = 96) -> Any:
    """A field as the golden files give it."""
    if isinstance(value, bytes):
        if longest is not None and len(value) > longest:
            return {"sha256": hashlib.sha256(value).hexdigest(), "length": len(value)}
        return value.hex()
    if isinstance(value, dict):
        return {name: shown(item, longest) for name, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [shown(item, longest) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def first_damage(ledger: list[Range]) -> dict[str, Any] | None:
    """What strict reading raises."""
    return next(({"offset": span.start, "cause": span.cause} for span in ledger if span.cause), None)


@oracle
@looped("vector", VECTORS, id=lambda path: path.stem)
def test_the_rules_read_and_write_the_golden_vectors(vector: Path) -> None:
    expected = json.loads(vector.read_text())
    data, dialect = vector.with_suffix(".bin").read_bytes(), expected["options"]["dialect"]
    scan = read(data, dialect)
    assert [list(span) for span in scan.ledger] == expected["ledger"]
    assert shown(scan.records) == expected["records"]
    assert first_damage(scan.ledger) == expected["strict_error"]
    assert len(data) == expected["size"]
    if expected["encode"] is not None:
        assert encode(scan.records, dialect) == data


def as_the_package_has_it(fields: Fields) -> Fields:
    """The message in the names and the shape of the package's own decoder."""

    def checkpointer(found: Fields | None) -> Fields | None:
        if found is None:
            return None
        signed = {"signature": found["signature"], "length": found["length"]}
        return {
            "checkpointer": found["checkpointer"],
            "checkpoint": None if found["signature"] is None else signed,
        }

    checkpoint = fields["checkpoint"]
    if checkpoint is not None:
        user = checkpoint["user"]
        checkpoint = {
            "system": checkpointer(checkpoint["system"]),
            "encryption": checkpointer(checkpoint["encryption"]),
            "user": None if user is None else [checkpointer(item) for item in user],
        }
    return shown(
        {
            "version": fields["version"],
            "maxSupportedVersion": fields["max_supported_version"],
            "node": {"heads": fields["clock"], "batch": fields["batch"], "value": fields["value"]},
            "checkpoint": checkpoint,
            "digest": fields["digest"],
            "optimistic": fields["optimistic"],
            "trace": fields["trace"],
        },
        longest=None,
    )


# What versions lack, the package's decoder leaves out.
LACKING: Fields = {"maxSupportedVersion": None, "trace": None}


@oracle
@looped("message", SYNTHETIC, id=lambda message: message["name"])
def test_the_rules_read_and_write_single_messages_of_autobase(message: dict[str, Any]) -> None:
    data = bytes.fromhex(message["bytes"])
    fields = decode_message(data, "autobase")
    assert as_the_package_has_it(fields) == LACKING | message["fields"]
    if message["reencodes"]:
        assert encode_autobase(fields) == data
    else:
        with pytest.raises(ValueError, match="version 2 is written"):
            encode_autobase(fields)


@oracle
@looped("path", REAL, id=lambda path: path.stem)
def test_the_rules_read_and_write_what_autobase_wrote(path: Path) -> None:
    data = path.with_suffix(".oplog").read_bytes()
    scan = read(data, "autobase")
    assert {span[2:] for span in scan.ledger} == {("record", None)}
    assert [as_the_package_has_it(fields) for fields in scan.records] == [
        LACKING | message for message in json.loads(path.read_text())
    ]
    if {fields["version"] for fields in scan.records} == {2}:
        assert encode(scan.records, "autobase") == data


@oracle
def test_the_rules_read_a_dangling_reference() -> None:
    scan = read((ROOT / "autobase" / "dangling.oplog").read_bytes(), "draft-1.1")
    expected = json.loads((ROOT / "autobase" / "dangling.json").read_text())["messages"]
    for fields, message in zip(scan.records, expected, strict=True):
        if checkpoint := message["checkpoint"]:
            checkpoint["tree_hash"] = checkpoint.pop("treeHash")
        assert shown({name: fields[name] for name in message}) == message
    assert [span for span in scan.ledger if span.cause] == [(209, 225, "record", "dangling_reference")]


# Messages of every dialect.

uints = st.one_of(
    st.integers(0, 3),
    st.sampled_from([252, 253, (1 << 16) - 1, 1 << 16, (1 << 32) - 1, 1 << 32, (1 << 64) - 1]),
    st.integers(0, (1 << 64) - 1),
)
keys = st.sampled_from([bytes([number]) * 32 for number in range(1, 6)])
clocks = st.lists(st.fixed_dictionaries({"key": keys, "length": uints}), max_size=3)
values = st.binary(max_size=12) | random_bytes(300)
signatures = random_bytes(64, 64)


@st.composite
def draft_messages(draw: st.DrawFn) -> Fields:
    """The fields of a message of `draft` or `draft-1.1`."""
    checkpointer = draw(st.just(0) | uints)
    return {
        "version": draw(uints),
        "checkpointer": checkpointer,
        "checkpoint": None if checkpointer else {"tree_hash": draw(random_bytes(32, 32)), "length": draw(uints)},
        "clock": draw(clocks),
        "abi": draw(uints),
        "batch": draw(uints),
        "value": draw(values),
        "keys": draw(st.lists(keys, max_size=2)),
    }


checkpointers = st.one_of(
    st.fixed_dictionaries({"checkpointer": uints, "signature": signatures, "length": uints}),
    st.fixed_dictionaries({"checkpointer": uints, "signature": st.none(), "length": st.none()}),
)
autobase_messages = st.fixed_dictionaries(
    {
        "version": st.just(2),
        "max_supported_version": st.none(),
        "clock": clocks,
        "batch": uints,
        "value": st.none() | values.filter(bool),
        "optimistic": st.booleans(),
        "checkpoint": st.none()
        | st.fixed_dictionaries(
            {
                "system": st.none() | checkpointers,
                "encryption": st.none() | checkpointers,
                "user": st.none() | st.lists(checkpointers, max_size=2),
            }
        ),
        "digest": st.none() | st.fixed_dictionaries({"pointer": uints, "key": st.none() | keys}),
        "trace": st.none()
        | st.fixed_dictionaries(
            {
                "system": st.lists(uints, max_size=2),
                "encryption": st.lists(uints, max_size=2),
                "user": st.lists(
                    st.fixed_dictionaries({"view": uints, "blocks": st.lists(uints, max_size=2)}), max_size=2
                ),
            }
        ),
        # Bits that no version knows yet, and what a later one may put behind the message.
        "flags": st.sampled_from([0, 0, 0, 16, 1 << 40]),
        "extra": st.none() | st.binary(min_size=1, max_size=4),
    }
)
known_messages = st.sampled_from([bytes.fromhex(message["bytes"]) for message in SYNTHETIC])


@st.composite
def later_revisions(draw: st.DrawFn) -> bytes:
    """A message of version 2 with one frame, sound, empty, cut off or longer than is known."""
    flag, frame = draw(st.sampled_from([(1, b"\0"), (1, b"\x01\x01\x05"), (2, b"\x01\x07"), (8, b"\0\0\x01\x02\0")]))
    frame = draw(st.sampled_from([frame, frame + b"later", frame[:-1], b""]))
    return b"\x02\0\x01\0" + uint(flag) + buffer(frame) + draw(st.sampled_from([b"", b"\0"]))


def files(dialect: str) -> st.SearchStrategy[list[bytes]]:
    """The messages of a file, before they are damaged."""
    if dialect == "autobase":
        others = st.sampled_from([b"\x03\0\x01\0\0", b"\xfd\x02\0\0\x01\0\0"])
        return st.lists(
            known_messages | autobase_messages.map(encode_autobase) | later_revisions() | others, max_size=6
        )

    def written(messages: list[Fields]) -> list[bytes]:
        writer = Writer(dialect)
        return [writer.message(fields) for fields in messages]

    return st.lists(draft_messages(), max_size=6).map(written)


def with_other_references(draw: st.DrawFn, message: bytes) -> bytes:
    """A message of `draft-1.1` whose clock refers to anything."""
    fields = decode_message(message, "draft-1.1")
    few = st.integers(0, 6)
    references = draw(st.lists(st.tuples(few | uints, few | uints, uints), max_size=3))
    clock = array(uint(seq) + uint(offset) + uint(length) for seq, offset, length in references)
    node = uint(fields["abi"]) + uint(fields["batch"]) + buffer(fields["value"])
    return encode_system(fields) + clock + node + array(fields["keys"])


def wide(number: int, width: int) -> bytes:
    """A uint of 1, 3, 5 or 9 bytes, at least as wide as it need be."""
    power = max(width, 0 if number <= 0xFC else 1 if number < 1 << 16 else 2 if number < 1 << 32 else 3)
    return bytes([0xFC + power]) + number.to_bytes(1 << power, "little") if power else uint(number)


def framed(draw: st.DrawFn, message: bytes) -> bytes:
    """A message with its length in front, or one that is too short, too long, wide, or huge."""
    length = len(message)
    match draw(st.sampled_from(["right"] * 12 + ["wide", "other", "cut", "behind", "inside"])):
        case "wide":
            return wide(length, draw(st.integers(1, 3))) + message
        case "other":
            other = draw(st.sampled_from([0, max(0, length - 1), length + 1, length + 40, 1 << 33, (1 << 64) - 1]))
            return uint(other) + message
        case "cut":
            return buffer(message[: draw(st.integers(0, length))])
        case "behind":
            return buffer(message + draw(st.binary(min_size=1, max_size=3)))
        case "inside" if length:
            at = draw(st.integers(0, length - 1))
            huge = draw(st.sampled_from([b"\xff" * 9, uint(0x100001), b"\xfe\xff\xff\xff\xff", b"\xfd", b"\0"]))
            return buffer(message[:at] + huge + message[at + 1 :])
        case _:
            return buffer(message)


@st.composite
def oplogs(draw: st.DrawFn, dialect: str) -> bytes:
    """A file of messages in almost the right order, with damage to some of them and then to anything."""
    messages = draw(files(dialect))
    if dialect == "draft-1.1":
        messages = [
            with_other_references(draw, message) if draw(st.integers(0, 5)) == 0 else message for message in messages
        ]
    if messages and draw(st.integers(0, 4)) == 0:
        moved = messages.pop(draw(st.integers(0, len(messages) - 1)))
        for _ in range(draw(st.integers(0, 2))):
            messages.insert(draw(st.integers(0, len(messages))), moved)
    parts = [framed(draw, message) for message in messages]
    if draw(st.integers(0, 9)) == 0:
        parts.append(draw(st.sampled_from([b"\xfd", b"\xfd\x01", b"\xfe\x01\0\0", b"\xff" + bytes(7)])))
    places = [sum(map(len, parts[:at])) for at in range(len(parts))]
    data = b"".join(parts)
    return draw(damaged(data, [32], places)) if draw(st.booleans()) else data


OPLOGS = {dialect: oplogs(dialect) for dialect in DIALECTS}


@oracle
@settings(max_examples=300, deadline=None, suppress_health_check=RELAXED, print_blob=True)
@given(st.lists(draft_messages(), max_size=6), st.lists(autobase_messages, max_size=4))
def test_what_the_rules_write_they_read(drafts: list[Fields], autobase: list[Fields]) -> None:
    for dialect, messages in (("draft", drafts), ("draft-1.1", drafts), ("autobase", autobase)):
        data = encode(messages, dialect)
        scan = read(data, dialect)
        assert [span[2:] for span in scan.ledger] == [("record", None)] * len(messages)
        assert encode(scan.records, dialect) == data
        for fields, message in zip(scan.records, messages, strict=True):
            clock = [{"key": entry["key"], "length": entry["length"]} for entry in fields["clock"]]
            assert clock == message["clock"]
            same = set(message) - {"clock", "keys", "flags"}
            assert {name: fields[name] for name in same} == {name: message[name] for name in same}
            if dialect == "autobase":
                assert fields["flags"] & ~15 == message["flags"]


@oracle
@given(draft_messages())
def test_the_fields_in_front_of_node_can_be_read_alone(message: Fields) -> None:
    for dialect in ("draft", "draft-1.1"):
        cursor = Cursor(Writer(dialect).message(message))
        system = decode_system(cursor)
        assert system == {name: message[name] for name in ("version", "checkpointer", "checkpoint")}
        with pytest.raises(Undecodable):
            decode_message(encode_system(message), dialect)


@oracle
@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=300, deadline=None, suppress_health_check=RELAXED, print_blob=True)
@given(data=st.data())
def test_the_ledger_of_the_rules_covers_the_file(dialect: str, data: st.DataObject) -> None:
    file = data.draw(OPLOGS[dialect], "file")
    scan = read(file, dialect)
    at = 0
    for span in scan.ledger:
        assert span.start == at < span.end
        at = span.end
    assert at == len(file)
    assert [span.start for span in scan.ledger if span.kind == "record"] == [one["position"] for one in scan.records]
    seqs = [fields["seq"] for fields in scan.records]
    assert seqs == sorted(set(seqs))


# Dialect, kind and cause, and how many ranges stand behind the damage at least.
EVERY_DAMAGE: list[tuple[str, str, str, int]] = [
    *[
        (dialect, kind, cause, behind)
        for dialect in DIALECTS
        for kind, cause, behind in [
            ("torn_tail", "truncated_header", 0),
            ("torn_tail", "length_out_of_bounds", 0),
            ("corrupt", "length_out_of_bounds", 0),
            ("corrupt", "length_out_of_bounds", 1),
            ("corrupt", "trailing_bytes", 0),
            ("corrupt", "trailing_bytes", 1),
        ]
    ],
    ("draft-1.1", "record", "dangling_reference", 1),
    ("autobase", "corrupt", "unsupported_version", 0),
    ("autobase", "corrupt", "unsupported_version", 1),
]


Damage = tuple[str, str, str, int]


def has(data: bytes, damage: Damage) -> bool:
    """Whether the rules find the damage in a file."""
    dialect, kind, cause, behind = damage
    ledger = read(data, dialect).ledger
    return (kind, cause) in {span[2:] for span in ledger[: len(ledger) - behind]}


def name_of(damage: Damage) -> str:
    return " ".join(map(str, damage))


@oracle
@pytest.mark.parametrize("damage", EVERY_DAMAGE, ids=name_of)
def test_every_damage_is_drawn(damage: Damage, request: pytest.FixtureRequest) -> None:
    keep = request.config.getoption("oracles") == "write"
    draw_example(name_of(damage), OPLOGS[damage[0]], lambda data: has(data, damage), keep=keep)


def compare(data: bytes, dialect: str) -> None:
    """Fails where the library reads `data` otherwise than the rules."""
    expected = read(data, dialect)
    options: dict[str, Any] = {"format": "oplog", "options": {"dialect": dialect}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
        reader = seglake.open(data, on_damage="skip", **options)
        records: list[Any] = list(reader)
    assert len(records) == len(expected.records)
    for record, fields in zip(records, expected.records, strict=True):
        assert {name: getattr(record, name) for name in fields} == fields
    assert [tuple(span) for span in reader.ledger()] == [tuple(span) for span in expected.ledger]
    first = first_damage(expected.ledger)
    if first is None:
        assert len(list(seglake.open(data, **options))) == len(expected.records)
        return
    with pytest.raises(seglake.DamageError) as raised:
        list(seglake.open(data, **options))
    assert {"offset": raised.value.byte_offset, "cause": raised.value.cause} == first


@pytest.mark.parametrize("damage", EVERY_DAMAGE, ids=name_of)
def test_every_damage_is_read_by_the_rules(damage: Damage) -> None:
    data = examples()[name_of(damage)]
    assert has(data, damage), "make oracles draws another one"
    compare(data, damage[0])


@settings(max_examples=cases(800), deadline=None, suppress_health_check=RELAXED, print_blob=True)
@given(OPLOGS["draft"])
def test_damaged_drafts_are_read_by_the_rules(data: bytes) -> None:
    compare(data, "draft")


@settings(max_examples=cases(800), deadline=None, suppress_health_check=RELAXED, print_blob=True)
@given(OPLOGS["draft-1.1"])
def test_damaged_drafts_with_compressed_keys_are_read_by_the_rules(data: bytes) -> None:
    compare(data, "draft-1.1")


@settings(max_examples=cases(800), deadline=None, suppress_health_check=RELAXED, print_blob=True)
@given(OPLOGS["autobase"])
def test_damaged_autobase_oplogs_are_read_by_the_rules(data: bytes) -> None:
    compare(data, "autobase")
