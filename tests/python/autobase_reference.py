"""The messages of the oplog's dialect `autobase`, versions 0, 1 and 2, as slow, plain code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compact_reference import Cursor, Fields, Undecodable, array, buffer, clock_entry, encode_clock_entry, fixed, uint

CHECKPOINT, DIGEST, OPTIMISTIC, TRACE = 1, 2, 4, 8
KNOWN_FLAGS = CHECKPOINT | DIGEST | OPTIMISTIC | TRACE


def decode_autobase(data: bytes) -> Fields:
    """One message. Fields that its version lacks are None."""
    cursor = Cursor(data)
    version = cursor.uint()
    if version > 2:
        raise Undecodable("unsupported_version")
    nothing = dict.fromkeys(("max_supported_version", "optimistic", "checkpoint", "digest", "trace", "flags", "extra"))
    return {"version": version, **nothing, **(_version_0, _version_1, _version_2)[version](cursor)}


def _node(cursor: Cursor) -> Fields:
    return {"clock": cursor.array(clock_entry), "batch": cursor.uint(), "value": cursor.buffer() or None}


def _signed(cursor: Cursor, checkpointer: int) -> Fields:
    """A checkpointer with an index checkpoint."""
    return {"checkpointer": checkpointer, "signature": cursor.fixed(64), "length": cursor.uint()}


def _unsigned(checkpointer: int) -> Fields:
    return {"checkpointer": checkpointer, "signature": None, "length": None}


# Version 2


def _version_2(cursor: Cursor) -> Fields:
    fields = _node(cursor)
    flags = fields["flags"] = cursor.uint()
    if flags & CHECKPOINT:
        fields["checkpoint"] = _checkpoint(Cursor(cursor.buffer()))
    if flags & DIGEST:
        fields["digest"] = _digest(Cursor(cursor.buffer()))
    fields["optimistic"] = bool(flags & OPTIMISTIC)
    if flags & TRACE:
        fields["trace"] = _trace(Cursor(cursor.buffer()))
    fields["extra"] = cursor.fixed(cursor.left) or None
    return fields


def _checkpoint(frame: Cursor) -> Fields:
    flags = frame.uint()
    return {
        "system": _checkpointer(frame) if flags & 1 else None,
        "encryption": _checkpointer(frame) if flags & 2 else None,
        "user": frame.array(_checkpointer) if flags & 4 else None,
    }


def _checkpointer(frame: Cursor) -> Fields:
    flags = frame.fixed(1)[0]
    checkpointer = frame.uint() if flags & 1 else 0
    return _signed(frame, checkpointer) if flags & 2 else _unsigned(checkpointer)


def _digest(frame: Cursor) -> Fields:
    flags = frame.uint()
    return {"pointer": frame.uint() if flags & 1 else 0, "key": frame.fixed(32) if flags & 2 else None}


def _trace(frame: Cursor) -> Fields:
    return {
        "system": frame.array(Cursor.uint),
        "encryption": frame.array(Cursor.uint),
        "user": frame.array(lambda frame: {"view": frame.uint(), "blocks": frame.array(Cursor.uint)}),
    }


# Versions 1 and 0


def _old_checkpointer(cursor: Cursor) -> Fields:
    checkpointer = cursor.uint()
    return _unsigned(checkpointer) if checkpointer else _signed(cursor, 0)


def _old_checkpoint(cursor: Cursor) -> Fields:
    system, *user = cursor.array(_old_checkpointer) or [None]
    return {"system": system, "encryption": None, "user": user}


def _version_1(cursor: Cursor) -> Fields:
    fields: Fields = {"max_supported_version": cursor.uint()}
    flags = fields["flags"] = cursor.uint()
    if flags & 1:
        fields["checkpoint"] = _old_checkpoint(cursor)
        pointer = cursor.uint()
        fields["digest"] = {"pointer": pointer, "key": None if pointer else cursor.fixed(32)}
    fields["optimistic"] = bool(flags & 2)
    fields |= _node(cursor)
    cursor.end()
    return fields


def _version_0(cursor: Cursor) -> Fields:
    fields: Fields = {"flags": cursor.uint()}
    if fields["flags"] & 1:
        if cursor.uint() == 0:
            cursor.array(lambda cursor: (cursor.uint(), cursor.fixed(32), cursor.fixed(32)))
        fields["checkpoint"] = _old_checkpoint(cursor)
    fields |= _node(cursor)
    if cursor.uint() == 0:
        additional = cursor.uint()
        if additional & 1:
            cursor.fixed(32)
        if additional & 2:
            cursor.uint()
    fields["max_supported_version"] = cursor.uint() if cursor.left else 0
    cursor.end()
    return fields


# Writing


def _optional(flag: int, value: Any, encoder: Callable[[Any], bytes]) -> tuple[int, bytes]:
    """The flag and the bytes of a field, or neither if it is null."""
    return (0, b"") if value is None else (flag, encoder(value))


def encode_autobase(fields: Fields) -> bytes:
    """A message of version 2. What is null, or zero where null and zero read alike, is left out."""
    if fields["version"] != 2:
        raise ValueError(f"version 2 is written, not {fields['version']}")
    checkpoint, checkpoint_bytes = _optional(CHECKPOINT, fields["checkpoint"], _encode_checkpoint)
    digest, digest_bytes = _optional(DIGEST, fields["digest"], _encode_digest)
    trace, trace_bytes = _optional(TRACE, fields["trace"], _encode_trace)
    optimistic = OPTIMISTIC if fields["optimistic"] else 0
    unknown = (fields["flags"] or 0) & ~KNOWN_FLAGS
    node = array(map(encode_clock_entry, fields["clock"])) + uint(fields["batch"]) + buffer(fields["value"] or b"")
    flags = uint(unknown | checkpoint | digest | optimistic | trace)
    return uint(2) + node + flags + checkpoint_bytes + digest_bytes + trace_bytes + (fields["extra"] or b"")


def _encode_checkpoint(checkpoint: Fields) -> bytes:
    system, system_bytes = _optional(1, checkpoint["system"], _encode_checkpointer)
    encryption, encryption_bytes = _optional(2, checkpoint["encryption"], _encode_checkpointer)
    user, user_bytes = _optional(4, checkpoint["user"], _encode_user_checkpointers)
    return buffer(uint(system | encryption | user) + system_bytes + encryption_bytes + user_bytes)


def _encode_user_checkpointers(user: list[Fields]) -> bytes:
    return array(map(_encode_checkpointer, user))


def _encode_checkpointer(checkpointer: Fields) -> bytes:
    number, number_bytes = _optional(1, checkpointer["checkpointer"] or None, uint)
    signed = b""
    if checkpointer["signature"] is not None:
        signed = fixed(checkpointer["signature"], 64) + uint(checkpointer["length"])
    return bytes([number | (2 if signed else 0)]) + number_bytes + signed


def _encode_digest(digest: Fields) -> bytes:
    pointer, pointer_bytes = _optional(1, digest["pointer"] or None, uint)
    key = b"" if digest["key"] is None else fixed(digest["key"], 32)
    return buffer(uint(pointer | (2 if key else 0)) + pointer_bytes + key)


def _encode_trace(trace: Fields) -> bytes:
    user = array(uint(view["view"]) + array(map(uint, view["blocks"])) for view in trace["user"])
    return buffer(array(map(uint, trace["system"])) + array(map(uint, trace["encryption"])) + user)
