"""The package `mcap`, the format's own, and `mcap recover` of its command line where that is on the PATH."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mcap.reader import make_reader
from mcap.writer import Writer

from ..messages import Message
from . import Peer, Row, payload


def write(path: Path, messages: Sequence[Message], chunk_size: int = 1 << 20) -> None:
    """As the package does it by default: chunks of a MiB, compressed by zstd, with CRCs."""
    writer = Writer(str(path), chunk_size=chunk_size)
    writer.start()
    schema = writer.register_schema(name="message", encoding="", data=b"")
    channel = writer.register_channel(topic="messages", message_encoding="", schema_id=schema)
    for message in messages:
        moment = message.timestamp_us * 1000
        writer.add_message(
            channel, log_time=moment, data=payload(message), publish_time=moment, sequence=message.number
        )
    writer.finish()


def write_small_chunks(path: Path, messages: Sequence[Message]) -> None:
    """With chunks of about 20 messages."""
    write(path, messages, chunk_size=2048)


def _reading(*, validate: bool) -> Callable[[Path], Iterator[Row]]:
    def read(path: Path) -> Iterator[Row]:
        with path.open("rb") as file:
            for _, _, message in make_reader(file, validate_crcs=validate).iter_messages():
                yield message.sequence, message.data

    return read


def recover(path: Path) -> Iterator[Row]:
    """All that `mcap recover` saves; if it says that it lost something, the error is raised at the end."""
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "saved.mcap"
        command = ["mcap", "recover", str(path), "--output", str(saved)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode in (0, 3):
            yield from _reading(validate=True)(saved)
        if done.returncode:
            raise RuntimeError(f"mcap recover ends with {done.returncode}: {done.stderr.strip()}")


PEERS = {
    "mcap": Peer("mcap", write, _reading(validate=False)),
    "mcap-crc": Peer("mcap", write, _reading(validate=True)),
    "mcap-crc-small-chunks": Peer("mcap", write_small_chunks, _reading(validate=True)),
}
if shutil.which("mcap") is not None:
    PEERS |= {
        "mcap-recover": Peer("mcap", write, recover),
        "mcap-recover-small-chunks": Peer("mcap", write_small_chunks, recover),
    }
