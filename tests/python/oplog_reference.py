"""The rules of docs/formats/oplog.md as slow, plain code: what the library is compared with.

Written from the document alone, without regard for speed or memory. The messages of the dialect `autobase` are in
`autobase_reference`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from active_reference import Range
from autobase_reference import decode_autobase, encode_autobase
from compact_reference import Cursor, Fields, Undecodable, array, buffer, clock_entry, encode_clock_entry, fixed, uint


def _reference(cursor: Cursor) -> Fields:
    """A clock entry whose key is named by the message and the place at which it was declared."""
    return {"seq": cursor.uint(), "offset": cursor.uint(), "length": cursor.uint()}


def decode_system(cursor: Cursor) -> Fields:
    """The fields in front of Node, in `draft` and `draft-1.1`."""
    version, checkpointer = cursor.uint(), cursor.uint()
    checkpoint = None
    if checkpointer == 0:
        checkpoint = {"tree_hash": cursor.fixed(32), "length": cursor.uint()}
    return {"version": version, "checkpointer": checkpointer, "checkpoint": checkpoint}


def decode_message(data: bytes, dialect: str) -> Fields:
    """One message. In `draft-1.1` the references of its clock are not resolved yet: its entries have no `key`."""
    if dialect == "autobase":
        return decode_autobase(data)
    cursor = Cursor(data)
    fields = decode_system(cursor)
    fields["clock"] = cursor.array(_reference if dialect == "draft-1.1" else clock_entry)
    fields["abi"], fields["batch"], fields["value"] = cursor.uint(), cursor.uint(), cursor.buffer()
    fields["keys"] = cursor.array(lambda cursor: cursor.fixed(32)) if dialect == "draft-1.1" else None
    cursor.end()
    return fields


@dataclass
class Scan:
    """What is in a file."""

    records: list[Fields]
    ledger: list[Range]


class Scanner:
    """Reads one oplog."""

    def __init__(self, data: bytes, dialect: str) -> None:
        self.data = data
        self.dialect = dialect
        self.keys: dict[tuple[int, int], bytes] = {}
        self.result = Scan([], [])

    def body(self, at: int) -> tuple[int, int] | str:
        """Where the body of the buffer at `at` begins and ends, or why it does not lie within the file."""
        cursor = Cursor(self.data)
        cursor.at = at
        try:
            length = cursor.uint()
        except Undecodable:
            return "truncated_header"
        return "length_out_of_bounds" if length > cursor.left else (cursor.at, cursor.at + length)

    def goes_on(self, at: int) -> bool:
        """Whether a message decodes at `at`, and the lengths from there lead exactly to the end."""
        first = True
        while at < len(self.data):
            body = self.body(at)
            if isinstance(body, str) or body[0] == body[1]:
                return False
            if first and isinstance(self.decode(body), str):
                return False
            first = False
            at = body[1]
        return not first

    def decode(self, body: tuple[int, int]) -> Fields | str:
        """The message, or why it does not decode."""
        try:
            return decode_message(self.data[slice(*body)], self.dialect)
        except Undecodable as error:
            return error.cause

    def scan(self) -> Scan:
        """Reads to the end."""
        at = seq = 0
        ledger = self.result.ledger
        while at < len(self.data):
            body = self.body(at)
            if isinstance(body, str):
                ledger.append(Range(at, len(self.data), "torn_tail", body))
                break
            start, end = body
            fields = self.decode(body)
            if isinstance(fields, str):
                end = end if start < end and self.goes_on(end) else len(self.data)
                ledger.append(Range(at, end, "corrupt", fields))
            else:
                resolved = self.resolve(seq, fields)
                ledger.append(Range(at, end, "record", None if resolved else "dangling_reference"))
                self.result.records.append({"position": at, "seq": seq, **fields})
            at = end
            seq += 1
        return self.result

    def resolve(self, seq: int, fields: Fields) -> bool:
        """Puts the keys in place of the references, and says whether all of them lead somewhere."""
        if self.dialect != "draft-1.1":
            return True
        self.keys |= {(seq, offset): key for offset, key in enumerate(fields["keys"])}
        for entry in fields["clock"]:
            entry["key"] = self.keys.get((entry["seq"], entry["offset"]))
        return all(entry["key"] is not None for entry in fields["clock"])


def read(data: bytes, dialect: str = "draft") -> Scan:
    """Reads an oplog."""
    return Scanner(data, dialect).scan()


def encode_system(fields: Fields) -> bytes:
    """The fields in front of Node, in `draft` and `draft-1.1`."""
    checkpoint = fields["checkpoint"]
    if (fields["checkpointer"] == 0) != (checkpoint is not None):
        raise ValueError("a checkpoint is written if checkpointer is 0, and only then")
    system = uint(fields["version"]) + uint(fields["checkpointer"])
    return system + (fixed(checkpoint["tree_hash"], 32) + uint(checkpoint["length"]) if checkpoint else b"")


class Writer:
    """Encodes the messages of one oplog, from its first on."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.seq = 0
        self.declared: dict[bytes, tuple[int, int]] = {}

    def message(self, fields: Fields) -> bytes:
        """The next message, without the length that a file puts in front of it."""
        if self.dialect == "autobase":
            return encode_autobase(fields)
        clock, keys = array(map(encode_clock_entry, fields["clock"])), b""
        if self.dialect == "draft-1.1":
            clock, keys = self.compressed(fields)
        self.seq += 1
        node = uint(fields["abi"]) + uint(fields["batch"]) + buffer(fields["value"])
        return encode_system(fields) + clock + node + keys

    def compressed(self, fields: Fields) -> tuple[bytes, bytes]:
        """The clock as references, and the keys that this message is the first to use."""
        new: list[bytes] = []
        for key in [entry["key"] for entry in fields["clock"]] + list(fields["keys"] or []):
            if fixed(key, 32) not in self.declared:
                self.declared[key] = (self.seq, len(new))
                new.append(key)
        references = [
            uint(seq) + uint(offset) + uint(entry["length"])
            for entry in fields["clock"]
            for seq, offset in [self.declared[entry["key"]]]
        ]
        return array(references), array(new)


def encode(records: Iterable[Fields], dialect: str = "draft") -> bytes:
    """A whole file, canonically: minimal uints, each key declared once, by the message that first uses it."""
    writer = Writer(dialect)
    return b"".join(buffer(writer.message(fields)) for fields in records)
