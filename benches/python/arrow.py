"""From a file to Arrow batches in Python, each message checked, beside what other packages take to give the same messages.

Peers give one object a message: none of them gives Arrow. Each reads with its checks on, where it has any, from the page cache.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final

import fastavro
import pyarrow as pa
from _interleaved import Suite
from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter
from mcap.reader import make_reader
from mcap.writer import Writer
from small_mcap import McapWriter, read_message

import seglake

MESSAGES: Final = 400_000
SLOW_MESSAGES: Final = 20_000
"""How many of them are in files of peers that take their time."""
MESSAGE_BYTES: Final = 115
TYPE: Final = "order.created"
START_US: Final = 1_700_000_000_000_000


def values() -> list[bytes]:
    """Messages, the same in every run."""
    random = Random(42)
    return [random.randbytes(MESSAGE_BYTES) for _ in range(MESSAGES)]


def write_active(path: Path, messages: Sequence[bytes]) -> None:
    with seglake.create(path, format="active") as writer:
        for value in messages:
            writer.write(type=TYPE, value=value)


def write_sealed(path: Path, messages: Sequence[bytes]) -> None:
    with seglake.create(path, format="sealed") as writer:
        for value in messages:
            writer.write(type=TYPE, value=value)


def read_batches(path: Path, messages: int, **options: bool) -> None:
    rows = sum(pa.record_batch(batch).num_rows for batch in seglake.open(path, **options).batches())  # pyright: ignore[reportArgumentType]
    if rows != messages:
        raise ValueError(f"{rows} messages of {messages} came back")


def write_array_record(path: Path, messages: Sequence[bytes]) -> None:
    writer = ArrayRecordWriter(str(path), "group_size:256")
    for value in messages:
        writer.write(value)
    writer.close()


def read_array_record(path: Path) -> list[bytes]:
    reader = ArrayRecordReader(str(path), "readahead_buffer_size:0,max_parallelism:0")
    found = reader.read_all()
    reader.close()
    return found


def write_mcap(path: Path, messages: Sequence[bytes]) -> None:
    writer = Writer(str(path))
    writer.start()
    schema = writer.register_schema(name="message", encoding="", data=b"")
    channel = writer.register_channel(topic=TYPE, message_encoding="", schema_id=schema)
    for number, value in enumerate(messages):
        moment = (START_US + number) * 1000
        writer.add_message(channel, log_time=moment, data=value, publish_time=moment, sequence=number)
    writer.finish()


def read_mcap(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for _, _, message in make_reader(file, validate_crcs=True).iter_messages():
            yield message.data


def write_small_mcap(path: Path, messages: Sequence[bytes]) -> None:
    with path.open("wb") as file:
        writer = McapWriter(file)
        writer.start()
        writer.add_schema(1, "message", "", b"")
        writer.add_channel(1, TYPE, "", 1)
        for number, value in enumerate(messages):
            moment = (START_US + number) * 1000
            writer.add_message(1, moment, value, moment, number)
        writer.finish()


def read_small_mcap(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for _, _, message in read_message(file, validate_crc=True):
            yield bytes(message.data)


def write_fastavro(path: Path, messages: Sequence[bytes]) -> None:
    schema = fastavro.parse_schema(
        {"type": "record", "name": "message", "fields": [{"name": "value", "type": "bytes"}]}
    )
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{"value": value} for value in messages], codec="null")


def read_fastavro(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for record in fastavro.reader(file):
            yield record["value"]


# Its name, how it is written and read, how many messages that is measured with, and the ratio to reach.
PEERS: Final = (
    ("array-record, groups of 256", write_array_record, read_array_record, MESSAGES, 10.0),
    ("mcap", write_mcap, read_mcap, SLOW_MESSAGES, 100.0),
    ("small-mcap", write_small_mcap, read_small_mcap, SLOW_MESSAGES, None),
    ("fastavro, no checksums", write_fastavro, read_fastavro, SLOW_MESSAGES, None),
)


def main() -> int:
    """Measures and prints."""
    suite = Suite("python_arrow")
    messages = values()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        active, sealed = folder / "messages.active", folder / "messages.sealed"
        write_active(active, messages)
        write_sealed(sealed, messages)
        for peer, write, read, count, target in PEERS:
            path = folder / "peer"
            write(path, messages[:count])
            if list(read(path)) != messages[:count]:
                raise ValueError(f"{peer} does not give back what was written")

            def theirs(path: Path = path, read: object = read) -> None:
                for _ in read(path):  # pyright: ignore[reportCallIssue, reportUnknownVariableType]
                    pass

            def ours() -> None:
                read_batches(active, MESSAGES)

            suite.compare("Arrow from Python, active", peer, (ours, MESSAGES), (theirs, count), target)
            path.unlink()

        def views() -> None:
            read_batches(active, MESSAGES, mmap=True, views=True)

        def from_sealed() -> None:
            read_batches(sealed, MESSAGES)

        def copies() -> None:
            read_batches(active, MESSAGES)

        suite.compare("Arrow from Python, active, views", "copies", (views, MESSAGES), (copies, MESSAGES))
        suite.compare("Arrow from Python, sealed", "active", (from_sealed, MESSAGES), (copies, MESSAGES))
    suite.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
