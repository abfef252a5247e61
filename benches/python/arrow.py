"""Reads files from Python with all checks: one object a message, and Arrow batches, compared with other packages.

The same lines of a log are in all files: uncompressed on both sides, or compressed with zstd on both. All are read
from the page cache, in the order of the file, with the checks that the format has. No peer gives Arrow: for rows of
Arrow batches, its messages are made an Arrow array.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import fastavro
import mcap.writer
import pyarrow as pa
import small_mcap
from _interleaved import Suite
from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter
from mcap.reader import make_reader

import seglake

MESSAGES: Final = 100_000
TYPE: Final = "order.created"
START_US: Final = 1_700_000_000_000_000

Values = Callable[[Path], Sequence[Any]]
"""Returns the messages of a file, one object for each."""
Run = tuple[Callable[[], object], int]


def lines() -> list[bytes]:
    """Lines of a log, of 115 to 130 bytes, the same in every run. zstd makes them a quarter as long."""
    random = Random(42)
    found = list[bytes]()
    for number in range(MESSAGES):
        level, service = random.choice(("INFO", "DEBUG", "WARN")), random.choice(("checkout", "cart", "search"))
        path = f"/api/v1/{random.choice(('orders', 'items', 'users'))}/{random.randrange(100_000)}"
        text = f"{START_US + number * 250} {level} {service} trace={random.randrange(1 << 28):07x} GET {path}"
        took = f"bytes={random.randrange(20_000)} took={random.randrange(900)}ms"
        found.append(f"{text} status={random.choice((200, 201, 404))} {took}".encode())
    return found


def write_seglake(path: Path, messages: Sequence[bytes]) -> None:
    """Writes an active or a chunked segment, by the path's extension."""
    if path.suffix == ".active":
        with seglake.create(path, format="active") as writer:
            for value in messages:
                writer.write(type=TYPE, value=value)
        return
    with seglake.create(path, format="chunked") as writer:
        for number, value in enumerate(messages):
            writer.write(timestamp=START_US + number, value=value)


def read_seglake(path: Path) -> list[bytes]:
    """The value of each Record."""
    return [record.value for record in seglake.open(path)]


def batches(path: Path) -> int:
    """Reads all columns as record batches of pyarrow, and counts the rows."""
    return sum(pa.record_batch(batch).num_rows for batch in seglake.open(path, threads=1).batches())


def write_array_record(path: Path, messages: Sequence[bytes], *, compress: bool) -> None:
    """Writes groups of 256, with hashes."""
    writer = ArrayRecordWriter(str(path), f"group_size:256,{'zstd:1' if compress else 'uncompressed'}")
    for value in messages:
        writer.write(value)
    writer.close()


def read_array_record(path: Path) -> list[bytes]:
    """All at once and in this thread, which is the package's fastest way."""
    reader = ArrayRecordReader(str(path), "readahead_buffer_size:0,max_parallelism:0")
    found = reader.to_table()
    reader.close()
    return found


def write_mcap(path: Path, messages: Sequence[bytes], *, compress: bool) -> None:
    """Writes chunks of a MiB, with CRCs."""
    kind = mcap.writer.CompressionType
    writer = mcap.writer.Writer(str(path), compression=kind.ZSTD if compress else kind.NONE)
    writer.start()
    schema = writer.register_schema(name="message", encoding="", data=b"")
    channel = writer.register_channel(topic=TYPE, message_encoding="", schema_id=schema)
    for number, value in enumerate(messages):
        moment = (START_US + number) * 1000
        writer.add_message(channel, log_time=moment, data=value, publish_time=moment, sequence=number)
    writer.finish()


def read_mcap(path: Path) -> list[bytes]:
    """In the order of the file, with CRCs checked."""
    with path.open("rb") as file:
        found = make_reader(file, validate_crcs=True).iter_messages(log_time_order=False)
        return [message.data for _, _, message in found]


def write_small_mcap(path: Path, messages: Sequence[bytes], *, compress: bool) -> None:
    """Writes chunks of a MiB, with CRCs."""
    kind = small_mcap.CompressionType
    with path.open("wb") as file:
        writer = small_mcap.McapWriter(file, compression=kind.ZSTD if compress else kind.NONE)
        writer.start()
        writer.add_schema(1, "message", "", b"")
        writer.add_channel(1, TYPE, "", 1)
        for number, value in enumerate(messages):
            moment = (START_US + number) * 1000
            writer.add_message(1, moment, value, moment, number)
        writer.finish()


def read_small_mcap(path: Path) -> list[Any]:
    """By time, the package's only order, which is also the order of the file; with CRCs checked."""
    with path.open("rb") as file:
        return [message.data for _, _, message in small_mcap.read_message(file, validate_crc=True)]


def write_fastavro(path: Path, messages: Sequence[bytes], *, compress: bool) -> None:
    """Writes records of one field. The codec zstandard needs a package that is not installed."""
    if compress:
        raise ValueError("fastavro is measured uncompressed alone")
    schema = fastavro.parse_schema(
        {"type": "record", "name": "message", "fields": [{"name": "value", "type": "bytes"}]}
    )
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{"value": value} for value in messages], codec="null")


def read_fastavro(path: Path) -> list[bytes]:
    """Without checks: the format has no checksums."""
    with path.open("rb") as file:
        return [record["value"] for record in fastavro.reader(file)]


@dataclass(frozen=True)
class Peer:
    """Another package: how it writes messages to a file and reads them."""

    name: str
    write: Callable[..., None]
    read: Values


ARRAY_RECORD: Final = Peer("array-record", write_array_record, read_array_record)
MCAP: Final = Peer("mcap", write_mcap, read_mcap)
SMALL_MCAP: Final = Peer("small-mcap", write_small_mcap, read_small_mcap)
FASTAVRO: Final = Peer("fastavro, no checksums", write_fastavro, read_fastavro)


def objects(read: Values, path: Path) -> Run:
    """Reads one object a message."""

    def run() -> None:
        if len(read(path)) != MESSAGES:
            raise ValueError(f"{path.name}: not all messages came back")

    return run, MESSAGES


def arrow(path: Path) -> Run:
    """Reads a segment as record batches."""

    def run() -> None:
        if batches(path) != MESSAGES:
            raise ValueError(f"{path.name}: not all messages came back")

    return run, MESSAGES


def made_arrow(read: Values, path: Path) -> Run:
    """Reads one object a message, and makes an array of them."""

    def run() -> None:
        if len(pa.array(read(path), pa.binary())) != MESSAGES:
            raise ValueError(f"{path.name}: not all messages came back")

    return run, MESSAGES


def compare(suite: Suite, folder: Path, messages: Sequence[bytes], peers: Sequence[Peer], *, compress: bool) -> None:
    """Compares a segment with the files of some peers."""
    kind, own = ("zstd", folder / "own.chunks") if compress else ("uncompressed", folder / "own.active")
    write_seglake(own, messages)
    if read_seglake(own) != messages:
        raise ValueError("seglake does not give back what was written")
    for peer in peers:
        path = folder / "peer"
        peer.write(path, messages, compress=compress)
        if [bytes(value) for value in peer.read(path)] != messages:
            raise ValueError(f"{peer.name} does not give back what was written")
        theirs = f"{peer.name}, {kind}"
        suite.compare(f"values from Python, {kind}", theirs, objects(read_seglake, own), objects(peer.read, path), 1.0)
        suite.compare(
            f"Arrow from Python, {kind}",
            f"{theirs}, made Arrow",
            arrow(own),
            made_arrow(peer.read, path),
            1.0,
        )
        path.unlink()


def main() -> int:
    """Measures and prints."""
    suite = Suite("python_arrow")
    messages = lines()
    with tempfile.TemporaryDirectory() as name:
        compare(suite, Path(name), messages, (ARRAY_RECORD, MCAP, SMALL_MCAP, FASTAVRO), compress=False)
        compare(suite, Path(name), messages, (ARRAY_RECORD, MCAP, SMALL_MCAP), compress=True)
    suite.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
