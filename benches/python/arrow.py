"""From a file to Arrow batches in Python, each message checked, beside what gives the same messages otherwise.

Peers give one object a message: none of them gives Arrow. Each reads with its checks on, where it has any, from the
page cache.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

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


def write_segment(path: Path, messages: Sequence[bytes]) -> None:
    """Writes an active or sealed segment, by the path's extension."""
    with seglake.create(path, format="active" if path.suffix == ".active" else "sealed") as writer:
        for value in messages:
            writer.write(type=TYPE, value=value)


def batches(path: Path, **options: Any) -> tuple[Callable[[], None], int]:
    """What reads a segment of all messages as record batches of pyarrow."""

    def read() -> None:
        rows = sum(pa.record_batch(batch).num_rows for batch in seglake.open(path, **options).batches())
        if rows != MESSAGES:
            raise ValueError(f"{rows} messages of {MESSAGES} came back")

    return read, MESSAGES


def write_array_record(path: Path, messages: Sequence[bytes]) -> None:
    """Writes groups of 256, each compressed, with hashes."""
    writer = ArrayRecordWriter(str(path), "group_size:256")
    for value in messages:
        writer.write(value)
    writer.close()


def read_array_record(path: Path) -> list[bytes]:
    """All at once, and in this thread: nothing else of the package is as fast."""
    reader = ArrayRecordReader(str(path), "readahead_buffer_size:0,max_parallelism:0")
    found = reader.read_all()
    reader.close()
    return found


def write_mcap(path: Path, messages: Sequence[bytes]) -> None:
    """As the package does it by default: compressed chunks of a MiB, with CRCs."""
    writer = Writer(str(path))
    writer.start()
    schema = writer.register_schema(name="message", encoding="", data=b"")
    channel = writer.register_channel(topic=TYPE, message_encoding="", schema_id=schema)
    for number, value in enumerate(messages):
        moment = (START_US + number) * 1000
        writer.add_message(channel, log_time=moment, data=value, publish_time=moment, sequence=number)
    writer.finish()


def read_mcap(path: Path) -> Iterator[bytes]:
    """Reads them back, CRCs checked."""
    with path.open("rb") as file:
        for _, _, message in make_reader(file, validate_crcs=True).iter_messages():
            yield message.data


def write_small_mcap(path: Path, messages: Sequence[bytes]) -> None:
    """As the package does it by default: compressed chunks of a MiB, with CRCs."""
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
    """Reads them back, CRCs checked."""
    with path.open("rb") as file:
        for _, _, message in read_message(file, validate_crc=True):
            yield bytes(message.data)


def write_fastavro(path: Path, messages: Sequence[bytes]) -> None:
    """Writes them uncompressed."""
    schema = fastavro.parse_schema(
        {"type": "record", "name": "message", "fields": [{"name": "value", "type": "bytes"}]}
    )
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{"value": value} for value in messages], codec="null")


def read_fastavro(path: Path) -> Iterator[bytes]:
    """Reads them back; there is nothing to check."""
    with path.open("rb") as file:
        for record in fastavro.reader(file):
            yield record["value"]


@dataclass(frozen=True)
class Peer:
    """Another package: how it writes messages to a file and gives them back."""

    name: str
    write: Callable[[Path, Sequence[bytes]], None]
    read: Callable[[Path], Iterable[bytes]]
    messages: int
    """How many it is measured with."""
    target: float | None

    def reading(self, path: Path) -> tuple[Callable[[], None], int]:
        """What reads the file, message by message."""

        def read() -> None:
            for _ in self.read(path):
                pass

        return read, self.messages


PEERS: Final = (
    Peer("array-record, groups of 256", write_array_record, read_array_record, MESSAGES, 10.0),
    Peer("mcap", write_mcap, read_mcap, SLOW_MESSAGES, 100.0),
    Peer("small-mcap", write_small_mcap, read_small_mcap, SLOW_MESSAGES, None),
    Peer("fastavro, no checksums", write_fastavro, read_fastavro, SLOW_MESSAGES, None),
)


def main() -> int:
    """Measures and prints."""
    suite = Suite("python_arrow")
    messages = values()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        active, sealed = folder / "messages.active", folder / "messages.sealed"
        write_segment(active, messages)
        write_segment(sealed, messages)
        copies = batches(active)
        for peer in PEERS:
            path = folder / "peer"
            peer.write(path, messages[: peer.messages])
            if list(peer.read(path)) != messages[: peer.messages]:
                raise ValueError(f"{peer.name} does not give back what was written")
            theirs = peer.reading(path)
            suite.compare("Arrow from Python, all columns", peer.name, copies, theirs, peer.target)
            if peer.name.startswith("array-record"):
                # What the peer gives, and no more.
                of_values = batches(active, mmap=True, columns=["value"])
                suite.compare("Arrow from Python, values, mapped", peer.name, of_values, theirs)
            path.unlink()
        viewed = batches(active, mmap=True, views=True)
        suite.compare("Arrow from Python, views, mapped", "copies, in windows", viewed, copies)
        suite.compare("Arrow from Python, sealed", "active", batches(sealed), copies)
    suite.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
