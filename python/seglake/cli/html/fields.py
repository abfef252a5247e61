"""The fields of a unit by the names of docs/formats/*.ksy, as far as they can be parsed, and which one is wrong."""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Callable
from typing import Final, Literal, NamedTuple
from uuid import UUID

__all__ = ["LAYOUTS", "Field", "Parsed", "leading_to", "unit_at"]

ReadAt = Callable[[int, int], bytes]

_MOST_READ_BYTES: Final = 1 << 20
_MOST_SHOWN_ITEMS: Final = 3
_MOST_ENTRIES: Final = 10_000
_MOST_SUMMED_BYTES: Final = 16 << 20


class Field(NamedTuple):
    """A field of a layout.

    Attributes:
        name: as in the layout's `seq`.
        size: its bytes; the name of the field before it that says how many; or `compact`, of a compact_uint.
        form: how it is shown: `uint`, `int`, `uuid`, `bytes`, `hex` (of what only its checksum proves).
        equal: what it has to be, if there is only one thing.
    """

    name: str
    size: int | str
    form: str
    equal: bytes | None = None


_LEN_TYPE: Final = (Field("len_type", 1, "uint"), Field("type", "len_type", "bytes"))
_LEN_VALUE: Final = (Field("len_value", 4, "uint"), Field("value", "len_value", "bytes"))

LAYOUTS: Final[dict[str, tuple[Field, ...]]] = {
    "active.message": (Field("uuid", 16, "uuid"), *_LEN_TYPE, *_LEN_VALUE, Field("checksum", 8, "hex")),
    "sealed.index_entry": (Field("uuid", 16, "uuid"), Field("ofs_message", 8, "uint")),
    "sealed.message": (*_LEN_TYPE, *_LEN_VALUE),
    # After the checksums of the messages.
    "sealed.trailer": (
        Field("key_check", 8, "hex"),
        Field("count", 8, "uint"),
        Field("index_hash", 8, "hex"),
        Field("magic", 8, "bytes", b"SLKSEAL1"),
    ),
    "tenant": (Field("magic", 4, "bytes", b"TSEG"), Field("version", 2, "uint")),
    "tenant.toc_of_blocks": (Field("num_entries", 4, "uint"),),
    "tenant.block_entry": (
        Field("partition_id", 4, "uint"),
        Field("len_tenant_id", 4, "uint"),
        Field("tenant_id", "len_tenant_id", "bytes"),
        Field("num_messages", 4, "uint"),
        Field("ofs_block", 8, "uint"),
        Field("len_block", 8, "uint"),
        Field("block_crc", 4, "hex"),
    ),
    "tenant.toc_of_partitions": (Field("num_entries", 4, "uint"),),
    "tenant.partition_entry": (
        Field("partition_id", 4, "uint"),
        Field("ofs_partition", 8, "uint"),
        Field("len_partition", 8, "uint"),
    ),
    "tenant.block": (
        Field("num_messages", 4, "uint"),
        Field("len_tenant_id", 4, "uint"),
        Field("tenant_id", "len_tenant_id", "bytes"),
    ),
    "tenant.message": (Field("len_content", 4, "uint"), Field("content", "len_content", "bytes")),
    "chunked.header": (
        Field("flags", 1, "uint", b"\0"),
        Field("len_payload", 4, "uint"),
        Field("start_offset", 8, "int"),
        Field("num_records", 4, "uint"),
        Field("head_crc", 4, "hex"),
    ),
    "oplog.buffer": (Field("len_message", "compact", "uint"),),
    "oplog.system": (Field("version", "compact", "uint"), Field("checkpointer", "compact", "uint")),
    "tfrecord.record": (
        Field("length", 8, "uint"),
        Field("masked crc of length", 4, "hex"),
        Field("data", "length", "bytes"),
        Field("masked crc of data", 4, "hex"),
    ),
}
"""By format and type. What follows one after the other in a file is put together below."""


class Parsed(NamedTuple):
    """A field of a file, or bytes of which nothing is known (`raw`).

    Attributes:
        name: which field it is.
        start: where it begins.
        end: where it ends, or where what there is of it ends.
        value: what it says: bytes where somebody else chose them.
        verdict: `right`, `wrong`, `read` (nothing proves it by itself) or `raw`.
        why: what it was held against.
    """

    name: str
    start: int
    end: int
    value: str | bytes
    verdict: str
    why: str = ""


class _MisfitError(Exception):
    """A field does not fit, so that no place of a later one is known."""


class _Cursor:
    """Goes through a unit field by field. What was parsed stays when one does not fit."""

    def __init__(self, read_at: ReadAt, at: int, end: int, order: Literal["little", "big"]) -> None:
        self.found: list[Parsed] = []
        self.numbers: dict[str, int] = {}
        self.at = at
        self.end = end
        self.read_at = read_at
        self.order: Literal["little", "big"] = order

    def layout(self, name: str, prefix: str = "") -> None:
        """Parse the fields of a layout.

        Raises:
            _MisfitError: one of them does not fit.
        """
        for own in LAYOUTS[name]:
            self._field(own, prefix + own.name)

    def items(self, layout: str, name: str, number: int) -> None:
        """Parse items. The first few are kept, and what could be parsed of the last.

        Raises:
            _MisfitError: a field of one of them does not fit.
        """
        for item in range(number):
            before = len(self.found)
            self.layout(layout, f"{name} {item:,} ")
            if item >= _MOST_SHOWN_ITEMS:
                start = self.found[before].start
                del self.found[before:]
                if self.found[-1].name.startswith("…"):
                    start = self.found.pop().start
                self.found.append(Parsed(f"… to {name} {item:,}", start, self.at, "", "read", "their lengths fit"))

    def _field(self, own: Field, name: str) -> None:
        size = self._size(own)
        content = self.read_at(self.at, min(size, _MOST_READ_BYTES))
        if self.at + size > self.end or len(content) < min(size, _MOST_READ_BYTES):
            why = f"{size:,} bytes from here reach beyond the end of the file"
            self.add(name, self.end, "", "wrong", why)
            raise _MisfitError
        end, why, verdict = self.at + size, "", "read"
        value: str | bytes = content
        if own.equal is not None:
            verdict = "right" if content == own.equal else "wrong"
            why = f"has to be {own.equal.decode() if own.form == 'bytes' else own.equal.hex()}"
        elif own.form == "uuid":
            value = str(UUID(bytes=content))
            verdict = "right" if value[14] == "6" and value[19] in "89ab" else "wrong"
            why = "" if verdict == "right" else "not a UUID of version 6"
        if own.form in ("uint", "int"):
            number = _compact(content) if own.size == "compact" else self._number(content, own.form)
            self.numbers[own.name] = number
            value = f"{number:,}"
        elif own.form == "hex":
            value = f"0x{self._number(content, 'uint'):0{2 * size}x}"
        self.add(name, end, value, verdict, why)

    def _number(self, content: bytes, form: str) -> int:
        return int.from_bytes(content, self.order, signed=form == "int")

    def _size(self, own: Field) -> int:
        if own.size == "compact":
            return 1 + {b"\xfd": 2, b"\xfe": 4, b"\xff": 8}.get(self.read_at(self.at, 1), 0)
        return self.numbers[own.size] if isinstance(own.size, str) else own.size

    def add(self, name: str, end: int, value: str | bytes, verdict: str, why: str = "") -> None:
        """Note a field from where the last one ended."""
        self.found.append(Parsed(name, self.at, end, value, verdict, why))
        self.at = end

    def judge(self, name: str, verdict: str, why: str) -> None:
        """Say of a field, if there is one of this name, whether it is right, and why."""
        self.found = [own._replace(verdict=verdict, why=why) if own.name == name else own for own in self.found]

    def crc(self, name: str, covered: bytes) -> None:
        """Hold a field against the CRC-32 of bytes."""
        computed = f"0x{zlib.crc32(covered):08x}"
        stored = next(own.value for own in self.found if own.name == name)
        self.judge(name, "right" if stored == computed else "wrong", f"the CRC-32 of the bytes is {computed}")


def _compact(content: bytes) -> int:
    return content[0] if len(content) == 1 else int.from_bytes(content[1:], "little")


def unit_at(format: str, read_at: ReadAt, start: int, nbytes: int, cause: str | None) -> list[Parsed]:
    """The fields of the unit that begins at an offset; after one that does not fit, the rest is raw.

    Args:
        format: the file's format.
        read_at: reads the file's bytes by offset and number.
        start: where the unit begins.
        nbytes: the length of the file.
        cause: what is wrong with the unit, by the ledger; None if it is sound.
    """
    cursor = _Cursor(read_at, start, nbytes, "little" if format in ("oplog", "tfrecord") else "big")
    try:
        _UNITS[format](cursor)
    except _MisfitError:
        cursor.add("the rest", nbytes, "", "raw", "where its fields begin is not known")
    if cause in ("checksum_mismatch", None):
        for name in ("checksum", "masked crc of data"):
            does = "do not match" if cause else "match"
            cursor.judge(name, "wrong" if cause else "right", f"the bytes before it {does} it")
    return [own for own in cursor.found if own.end > own.start or own.verdict == "wrong"]


def leading_to(format: str, read_at: ReadAt, start: int, nbytes: int) -> list[Parsed]:
    """The fields of the entry of an index or a table of contents that leads to a unit; none where there is none."""
    cursor = _Cursor(read_at, 0, nbytes, "big")
    try:
        if format == "sealed":
            # The offsets of the index ascend, and the first one is where it ends.
            entries = range(min(int.from_bytes(read_at(16, 8), "big"), nbytes) // 24 - 1)
            number = bisect_left(entries, start, key=lambda at: int.from_bytes(read_at(24 * at + 16, 8), "big"))
            cursor.at = 24 * number
            cursor.layout("sealed.index_entry", f"entry {number:,} ")
            return cursor.found if cursor.numbers["ofs_message"] == start else []
        if format == "tenant" and read_at(4, 2) == b"\0\2":
            cursor.at = 6
            cursor.layout("tenant.toc_of_blocks")
            for number in range(min(cursor.numbers["num_entries"], _MOST_ENTRIES)):
                cursor.found, prefix = [], f"entry {number:,} "
                at = cursor.at
                cursor.layout("tenant.block_entry", prefix)
                if cursor.numbers["ofs_block"] == start:
                    length = cursor.numbers["len_block"]
                    if length <= _MOST_SUMMED_BYTES:
                        cursor.crc(f"{prefix}block_crc", read_at(at, 4) + read_at(start, length))
                    return cursor.found
    except _MisfitError:
        pass
    return []


def _sealed(cursor: _Cursor) -> None:
    # Where the first message begins, which is where the index ends.
    first = int.from_bytes(cursor.read_at(16, 8), "big")
    if cursor.at < first and cursor.at % 24 == 0:
        for number in range(cursor.at // 24, cursor.at // 24 + _MOST_SHOWN_ITEMS):
            cursor.layout("sealed.index_entry", f"entry {number:,} ")
    elif cursor.at >= cursor.end - 32:
        cursor.at = max(cursor.end - 32, 0)
        cursor.layout("sealed.trailer")
    else:
        cursor.layout("sealed.message")


def _tenant(cursor: _Cursor) -> None:
    if cursor.at > 0:
        cursor.layout("tenant.block")
        cursor.items("tenant.message", "message", cursor.numbers["num_messages"])
        return
    cursor.layout("tenant")
    if cursor.numbers["version"] not in (1, 2):
        cursor.judge("version", "wrong", "has to be 1 or 2")
        raise _MisfitError
    of = ("partition", "block")[cursor.numbers["version"] - 1]
    cursor.layout(f"tenant.toc_of_{of}s")
    cursor.items(f"tenant.{of}_entry", "entry", cursor.numbers["num_entries"])


def _chunked(cursor: _Cursor) -> None:
    start = cursor.at
    cursor.layout("chunked.header")
    cursor.crc("head_crc", cursor.read_at(start, 17))
    end = min(cursor.at + cursor.numbers["len_payload"], cursor.end)
    is_zstd = cursor.read_at(cursor.at, 4) == b"\x28\xb5\x2f\xfd"
    cursor.add("payload", end, "", "read" if is_zstd else "wrong", "has to begin as a zstd frame: 28b52ffd")


def _oplog(cursor: _Cursor) -> None:
    cursor.layout("oplog.buffer")
    end = cursor.at + cursor.numbers["len_message"]
    cursor.layout("oplog.system")
    cursor.add("node", min(end, cursor.end), "", "read", "as the dialect lays it out")


_UNITS: Final[dict[str, Callable[[_Cursor], None]]] = {
    "active": lambda cursor: cursor.layout("active.message"),
    "sealed": _sealed,
    "tenant": _tenant,
    "chunked": _chunked,
    "oplog": _oplog,
    "tfrecord": lambda cursor: cursor.layout("tfrecord.record"),
}
