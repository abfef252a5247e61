"""What holds in a sound file beyond its layout, as the `doc` of each docs/formats/*.ksy says: checksums and orders.

A parser made from a layout, these rules, and a ledger that covers the file exactly are together a strict reader.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from active_reference import checksum
from kaitai_formats import Found, Json, spans


def ascend(items: Iterable[Any]) -> bool:
    """Whether each item is greater than the one before."""
    return all(first < second for first, second in pairwise(items))


def covers(found: Found, size: int) -> bool:
    """Whether the ranges lie side by side from the first byte of a file to its last."""
    edges = [0, *(edge for start, end, _ in found.ranges for edge in (start, end)), size]
    return all(end == start for end, start in zip(edges[::2], edges[1::2], strict=True))


def active(tree: Any, data: bytes, key: bytes) -> None:
    messages = [part.message for part in tree.parts if not part.is_unused]
    assert ascend(message._raw_uuid for message in messages)
    for message in messages:
        start, end = message._debug["uuid"]["start"], message._debug["checksum"]["start"]
        assert checksum(data[start:end], key) == message.checksum.to_bytes(8, "big")


def sealed(tree: Any, data: bytes, key: bytes) -> None:
    entries = tree.index[:-1]
    assert ascend(entry._raw_uuid for entry in entries)
    assert ascend(entry.ofs_message for entry in entries)
    if not tree.has_trailer:
        return
    trailer = tree.trailer
    for entry, stored in zip(entries, trailer.checksums, strict=True):
        message = data[entry.ofs_message : entry.message._debug["value"]["end"]]
        assert checksum(entry._raw_uuid + message, key) == stored.to_bytes(8, "big")
    assert checksum(b"", key) == trailer.key_check.to_bytes(8, "big")
    index = data[: tree._debug["index"]["end"]]
    checksums = b"".join(stored.to_bytes(8, "big") for stored in trailer.checksums)
    assert checksum(index + checksums, key) == trailer.index_hash.to_bytes(8, "big")


def tenant(tree: Any, data: bytes) -> None:
    if tree.version == 1:
        _toc_of_partitions(tree)
    else:
        _toc_of_blocks(tree, data)
    for partition in tree.partitions:
        assert ascend(block.tenant_id for block in partition.tenants)


def _toc_of_partitions(tree: Any) -> None:
    listed = [(entry.ofs_partition, entry.ofs_partition + entry.len_partition) for entry in tree.toc.entries]
    assert listed == [(start, end) for _, start, end in spans(tree, "partitions")]
    assert ascend(entry.partition_id for entry in tree.toc.entries)
    for entry, partition in zip(tree.toc.entries, tree.partitions, strict=True):
        assert _tenants(entry.partition) == _tenants(partition)


def _toc_of_blocks(tree: Any, data: bytes) -> None:
    toc = tree.toc
    assert zlib.crc32(data[: toc._debug["crc"]["start"]]) == toc.crc
    listed = [(entry.ofs_block, entry.ofs_block + entry.len_block, entry.tenant_id) for entry in toc.entries]
    blocks = [block for partition in tree.partitions for block in spans(partition, "tenants")]
    assert listed == [(start, end, block.tenant_id) for block, start, end in blocks]
    partition_ids = [entry.partition_id for entry in toc.entries]
    assert partition_ids == sorted(partition_ids)
    counts = [partition_ids.count(partition_id) for partition_id in sorted(set(partition_ids))]
    assert counts == [partition.num_tenants for partition in tree.partitions]
    for entry, (block, start, end) in zip(toc.entries, blocks, strict=True):
        assert entry.num_messages == block.num_messages
        assert _messages(entry.block) == _messages(block)
        assert zlib.crc32(entry.partition_id.to_bytes(4, "big") + data[start:end]) == entry.block_crc


def _tenants(partition: Any) -> list[tuple[bytes, list[bytes]]]:
    return [(block.tenant_id, _messages(block)) for block in partition.tenants]


def _messages(block: Any) -> list[bytes]:
    return [message.content for message in block.messages]


def chunked(tree: Any, data: bytes) -> None:
    last = 0
    for part in tree.parts:
        if part.is_unused:
            continue
        header = part.chunk.header
        start, end = header._debug["flags"]["start"], header._debug["head_crc"]["start"]
        assert zlib.crc32(data[start:end]) == header.head_crc & 0xFFFFFFFF
        assert header.start_offset >= last
        last = header.start_offset + header.num_records
        assert last <= 1 << 63


def chunked_index(tree: Any, data: bytes, log: Any) -> None:
    """`log` is the parse tree of the `.chunks` file beside the index."""
    for item, start, _ in spans(tree, "items"):
        assert zlib.crc32(data[start : start + 16]) == item.checksum
    assert ascend(item.start_offset for item in tree.items)
    assert ascend(item.ofs_chunk for item in tree.items)
    chunks = {part._debug["chunk"]["start"]: part.chunk.header for part in log.parts if not part.is_unused}
    for item in tree.items:
        assert item.ofs_chunk in chunks
        assert item.start_offset == chunks[item.ofs_chunk].start_offset


def oplog(records: list[Json]) -> None:
    """Every reference leads to a key."""
    assert all(entry["key"] for record in records for entry in record["clock"])
