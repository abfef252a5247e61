"""The package `array-record`, Riegeli underneath."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter

from ..messages import Message
from . import Peer, Row, payload


def write(path: Path, messages: Sequence[Message]) -> None:
    """As the package does it by default: each record compressed by itself, with hashes."""
    writer = ArrayRecordWriter(str(path), "")
    for message in messages:
        writer.write(message.number.to_bytes(4, "big") + payload(message))
    writer.close()


def read(path: Path) -> Iterator[Row]:
    """One record after the other."""
    reader = ArrayRecordReader(str(path))
    for _ in range(reader.num_records()):
        yield _row(reader.read())
    reader.close()


def read_each(path: Path) -> Iterator[Row]:
    """Each record by its number, what cannot be had being left out; the first error is raised at the end."""
    reader = ArrayRecordReader(str(path), "readahead_buffer_size:0,max_parallelism:0")
    first: Exception | None = None
    for number in range(reader.num_records()):
        try:
            yield _row(reader.read([number])[0])
        except Exception as error:
            first = first or error
    reader.close()
    if first is not None:
        raise first


def _row(record: bytes) -> Row:
    return int.from_bytes(record[:4], "big"), record[4:]


PEERS = {
    "array-record": Peer("array-record", write, read),
    "array-record-each": Peer("array-record", write, read_each),
}
