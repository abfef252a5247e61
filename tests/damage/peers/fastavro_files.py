"""The package `fastavro`: Avro's container files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import fastavro

from ..messages import Message
from . import Peer, Row, payload

_SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "message",
        "fields": [{"name": "number", "type": "long"}, {"name": "payload", "type": "bytes"}],
    }
)


def _writing(codec: str) -> Callable[[Path, Sequence[Message]], None]:
    def write(path: Path, messages: Sequence[Message]) -> None:
        records = [{"number": message.number, "payload": payload(message)} for message in messages]
        with path.open("wb") as file:
            # The marker between blocks is random by default; a trial must be the same each time.
            fastavro.writer(file, _SCHEMA, records, codec=codec, sync_marker=bytes(range(16)))

    return write


def read(path: Path) -> Iterator[Row]:
    """One record after the other."""
    with path.open("rb") as file:
        for record in fastavro.reader(file):
            yield record["number"], record["payload"]


PEERS = {
    "fastavro": Peer("fastavro", _writing("null"), read),
    "fastavro-deflate": Peer("fastavro", _writing("deflate"), read),
}
