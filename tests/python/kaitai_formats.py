"""What the parsers made from docs/formats/*.ksy find in a file, in the golden files' own words.

Whatever is asserted here is what a strict reader of the format would refuse, and no parser made from a layout can see.
Nothing of the library is used: the layouts are held against the golden files alone.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

from kaitai import compile_layouts

ROOT = Path(__file__).parents[2]
LAYOUTS = sorted((ROOT / "docs" / "formats").glob("*.ksy"))

Json = dict[str, Any]
Range = tuple[int, int, str]


@dataclass(frozen=True)
class Found:
    """What a parser found: records as in the golden files, and the ranges that they and the rest take."""

    records: list[Json]
    ranges: list[Range]


@dataclass(frozen=True)
class Parsers:
    """The generated modules, imported."""

    package: str

    def module(self, name: str) -> ModuleType:
        """The module of one layout: its class, and within it those of its types."""
        return importlib.import_module(f"{self.package}.{name}")

    def parse(self, name: str, data: bytes, *parameters: Any) -> Any:
        """The parse tree of some bytes."""
        module = self.module(name)
        generated = getattr(module, name.title().replace("_", ""))
        return generated(*parameters, module.KaitaiStream(BytesIO(data)))


def compile_parsers(folder: Path) -> Parsers:
    """Compiles all layouts to a package in the folder, which is put on the path."""
    package = "compiled_layouts"
    # Positions are remembered, so that they can be compared too.
    options = ("--read-pos", "--python-package", ".")
    warnings = compile_layouts(LAYOUTS, "python", folder / package, options)
    assert warnings == ""
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    return Parsers(package)


def shown(data: bytes) -> str | Json:
    """Bytes as the golden files give them."""
    if len(data) > 96:
        return {"sha256": hashlib.sha256(data).hexdigest(), "length": len(data)}
    return data.hex()


def merged(ranges: Iterable[Range]) -> list[list[Any]]:
    """The ledger of these ranges: empty ones left out, and touching ones of the same kind made one, as it has to be."""
    ledger: list[list[Any]] = []
    for start, end, kind in ranges:
        if ledger and ledger[-1][1:3] == [start, kind] and kind not in {"record", "chunk", "block"}:
            ledger[-1][1] = end
        elif end > start:
            ledger.append([start, end, kind, None])
    return ledger


def span(tree: Any, field: str, kind: str) -> Range:
    """Where a field is in its stream."""
    where = tree._debug[field]
    return where["start"], where["end"], kind


def spans(tree: Any, field: str) -> Iterator[tuple[Any, int, int]]:
    """The items of a repeated field, and where they are in their stream."""
    for item, where in zip(getattr(tree, field), tree._debug[field]["arr"], strict=True):
        yield item, where["start"], where["end"]


def present(tree: Any, field: str) -> Any:
    """A field that may be absent, else None."""
    return getattr(tree, field, None)


def timestamp_us(uuid: Any) -> int:
    """The time of a UUID, as `uuid6.ksy` says how to compute it."""
    ticks = (uuid.time_high << 28) + (uuid.time_mid << 12) + uuid.time_low
    return (ticks - 0x01B21DD213814000) // 10


def active(tree: Any) -> Found:
    records: list[Json] = []
    ranges: list[Range] = []
    for part in tree.parts:
        if part.is_unused:
            ranges.append(span(part, "unused", "unused"))
            continue
        message = part.message
        ranges.append(span(part, "message", "record"))
        records.append(
            {
                "position": ranges[-1][0],
                "uuid": message._raw_uuid.hex(),
                "timestamp": timestamp_us(message.uuid),
                "type": shown(message.type),
                "value": shown(message.value),
            }
        )
    return Found(records, ranges)


def sealed(tree: Any) -> Found:
    records: list[Json] = []
    ranges: list[Range] = [span(tree, "index", "header")]
    for entry in tree.index[:-1]:
        message = entry.message
        ranges.append((entry.ofs_message, span(message, "value", "")[1], "record"))
        records.append(
            {
                "position": entry.ofs_message,
                "uuid": entry._raw_uuid.hex(),
                "timestamp": timestamp_us(entry.uuid),
                "type": shown(message.type),
                "value": shown(message.value),
            }
        )
    if tree.has_trailer:
        ranges.append((tree.ofs_trailer, tree.ofs_trailer + tree.len_trailer, "trailer"))
    return Found(records, ranges)


def tenant(tree: Any) -> Found:
    if tree.version == 1:
        partition_ids = [entry.partition_id for entry in tree.toc.entries]
    else:
        partition_ids = sorted({entry.partition_id for entry in tree.toc.entries})
    assert len(partition_ids) == tree.num_partitions
    records: list[Json] = []
    ranges: list[Range] = [(0, span(tree, "num_partitions", "")[1], "header")]
    for partition_id, partition in zip(partition_ids, tree.partitions, strict=True):
        ranges.append(span(partition, "num_tenants", "header"))
        for block, start, end in spans(partition, "tenants"):
            ranges.append((start, end, "block"))
            for index, (message, position, _) in enumerate(spans(block, "messages")):
                where = {"position": position, "partition": partition_id, "tenant": shown(block.tenant_id)}
                records.append({**where, "index": index, "value": shown(message.content)})
    return Found(records, ranges)


def tenant_blocks(tree: Any) -> list[Json]:
    """The `blocks` of a golden tenant file, from version 2's TOC alone."""
    return [
        {
            "position": entry.ofs_block,
            "partition": entry.partition_id,
            "tenant": shown(entry.tenant_id),
            "messages": entry.num_messages,
        }
        for entry in tree.toc.entries
    ]


def decompressed(frame: bytes) -> bytes:
    """The content of exactly one zstd frame."""
    import zstandard  # here, so that the tests can be collected, and deselected, where it is not installed

    decompressor = zstandard.ZstdDecompressor().decompressobj()
    try:
        content = decompressor.decompress(frame)
    except zstandard.ZstdError as error:
        raise AssertionError("no sound zstd frame") from error
    assert decompressor.eof
    assert decompressor.unused_data == b""
    return content


def chunked(tree: Any, parsers: Parsers) -> Found:
    module = parsers.module("chunked")
    records: list[Json] = []
    ranges: list[Range] = []
    for part in tree.parts:
        if part.is_unused:
            ranges.append(span(part, "unused", "unused"))
            continue
        chunk = part.chunk
        position = span(part, "chunk", "")[0]
        ranges += [(position, span(chunk, "payload", "")[1], "chunk"), span(chunk, "padding", "padding")]
        content = module.Chunked.Content(module.KaitaiStream(BytesIO(decompressed(chunk._raw_payload))))
        assert len(content.records) == chunk.header.num_records
        for offset, record in enumerate(content.records, chunk.header.start_offset):
            fields = {"timestamp": record.timestamp, "value": shown(record.body)}
            records.append({"position": position, "offset": offset, **fields})
    return Found(records, ranges)


def oplog(tree: Any) -> Found:
    """The records of the dialects `draft` and `draft-1.1`."""
    ranges = [(start, end, "record") for _, start, end in spans(tree, "buffers")]
    messages = [buffer.message for buffer in tree.buffers]
    return Found([_oplog_record(seq, ranges[seq][0], messages) for seq in range(len(messages))], ranges)


def _oplog_record(seq: int, position: int, messages: list[Any]) -> Json:
    system, node = messages[seq].system, messages[seq].node
    checkpoint = present(system, "checkpoint")
    keys = present(node, "keys")
    return {
        "position": position,
        "seq": seq,
        "version": system.version.value,
        "checkpointer": system.checkpointer.value,
        "checkpoint": checkpoint and {"tree_hash": checkpoint.tree_hash.hex(), "length": checkpoint.length.value},
        "clock": [_clock_entry(entry, seq, messages) for entry in node.clock],
        "abi": node.rest.abi.value,
        "batch": node.rest.batch.value,
        "value": shown(node.rest.value),
        "keys": None if keys is None else [key.hex() for key in keys],
    }


def _clock_entry(entry: Any, seq: int, messages: list[Any]) -> Json:
    length = entry.length.value
    if hasattr(entry, "key"):
        return {"key": entry.key.hex(), "length": length}
    origin, offset = entry.seq.value, entry.offset.value
    keys = messages[origin].node.keys if origin <= seq else []
    key = keys[offset].hex() if offset < len(keys) else None
    return {"seq": origin, "offset": offset, "length": length, "key": key}


def autobase(tree: Any) -> Json:
    """A message of the dialect `autobase`, as the npm package's own decoder gives it."""
    version, body = tree.version.value, tree.body
    message = {"version": version, "node": _node(body.node)}
    if version == 2:
        return {**message, **_version_2(body)}
    highest = present(body, "max_supported_version")
    return {
        **message,
        "maxSupportedVersion": highest.value if highest else 0,
        "digest": _old_digest(present(body, "digest")) if version == 1 else None,
        "checkpoint": _old_checkpoint(present(body, "checkpoint")),
        "optimistic": body.is_optimistic if version == 1 else None,
    }


def _node(node: Any) -> Json:
    heads = [{"key": head.key.hex(), "length": head.length.value} for head in node.heads]
    return {"heads": heads, "batch": node.batch.value, "value": node.value.hex() or None}


def _version_2(body: Any) -> Json:
    checkpoint, digest, trace = (
        frame and getattr(frame, name)
        for name in ("checkpoint", "digest", "trace")
        for frame in [present(body, f"{name}_frame")]
    )
    user = present(checkpoint, "user")
    return {
        "checkpoint": checkpoint
        and {
            "system": _checkpointer(present(checkpoint, "system")),
            "encryption": _checkpointer(present(checkpoint, "encryption")),
            "user": None if user is None else [_checkpointer(one) for one in user],
        },
        "digest": digest
        and {
            "pointer": digest.pointer.value if hasattr(digest, "pointer") else 0,
            "key": digest.key.hex() if hasattr(digest, "key") else None,
        },
        "optimistic": body.is_optimistic,
        "trace": trace
        and {
            "system": _uints(trace.system),
            "encryption": _uints(trace.encryption),
            "user": [{"view": view.view.value, "blocks": _uints(view.blocks)} for view in trace.user],
        },
    }


def _uints(array: Any) -> list[int]:
    return [item.value for item in array.items]


def _checkpointer(tree: Any) -> Json | None:
    if tree is None:
        return None
    checkpointer, checkpoint = present(tree, "checkpointer"), present(tree, "checkpoint")
    return {
        "checkpointer": checkpointer.value if checkpointer else 0,
        "checkpoint": checkpoint and {"signature": checkpoint.signature.hex(), "length": checkpoint.length.value},
    }


def _old_checkpoint(tree: Any) -> Json | None:
    if tree is None:
        return None
    system, *user = [_checkpointer(one) for one in tree.checkpointers] or [None]
    return {"system": system, "encryption": None, "user": user}


def _old_digest(tree: Any) -> Json | None:
    if tree is None:
        return None
    return {"pointer": tree.pointer.value, "key": tree.key.hex() if hasattr(tree, "key") else None}
