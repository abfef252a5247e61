"""The package `small-mcap`: the same format, another implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from small_mcap import McapWriter, read_message

from ..messages import Message
from . import Peer, Row, payload


def write(path: Path, messages: Sequence[Message]) -> None:
    """As the package does it by default: chunks of a MiB, compressed by zstd, with CRCs."""
    with path.open("wb") as file:
        writer = McapWriter(file)
        writer.start()
        writer.add_schema(1, "message", "", b"")
        writer.add_channel(1, "messages", "", 1)
        for message in messages:
            moment = message.timestamp_us * 1000
            writer.add_message(1, moment, payload(message), moment, message.number)
        writer.finish()


def _reading(*, validate: bool) -> Callable[[Path], Iterator[Row]]:
    def read(path: Path) -> Iterator[Row]:
        with path.open("rb") as file:
            for _, _, message in read_message(file, validate_crc=validate):
                yield message.sequence, bytes(message.data)

    return read


PEERS = {
    "small-mcap": Peer("small-mcap", write, _reading(validate=False)),
    "small-mcap-crc": Peer("small-mcap", write, _reading(validate=True)),
}
