"""One trial of a peer: the same messages, the same damage, and what it gives back."""

from __future__ import annotations

import contextlib
import importlib
import tempfile
from functools import cache
from pathlib import Path
from random import Random

from ..image import Image
from ..judge import Verdict
from ..kinds import KINDS, Surroundings
from ..messages import messages
from . import Peer, Row, row

_MODULES = {
    "mcap_files": ("mcap", "mcap-crc", "mcap-crc-small-chunks", "mcap-recover", "mcap-recover-small-chunks"),
    "small_mcap_files": ("small-mcap", "small-mcap-crc"),
    "array_record_files": ("array-record", "array-record-each"),
    "fastavro_files": ("fastavro", "fastavro-deflate"),
}
PEER_NAMES = tuple(name for names in _MODULES.values() for name in names)


@cache
def _module(name: str) -> dict[str, Peer]:
    return importlib.import_module(f".{name}", __package__).PEERS


def _peer(name: str) -> Peer:
    return next(_module(module)[name] for module, names in _MODULES.items() if name in names)


def installed() -> list[str]:
    """The peers whose packages and programs are there."""
    found: list[str] = []
    for module, names in _MODULES.items():
        with contextlib.suppress(ImportError):
            found += [name for name in names if name in _module(module)]
    return found


@cache
def _written(name: str, count: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        _peer(name).write(path, messages(count))
        return path.read_bytes()


@cache
def _rows(count: int) -> list[Row]:
    return [row(message) for message in messages(count)]


def run(name: str, kind: str, seed: int, count: int) -> Verdict:
    """Damage the peer's file, read it, and judge: every message right and in order, or an error.

    Whatever is raised counts as an error said; a message that was never written, or in the wrong place, or one that is
    missing without an error, is a silent one.
    """
    sound = _written(name, count)
    image = KINDS[kind](Image.of(sound), Random(f"{name}/{kind}/{seed}"), Surroundings())
    expected = _rows(count)
    verdict = Verdict(records=count, good=count, damaged=image.data != sound)
    at = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(image.data)
        try:
            for read in _peer(name).read(path):
                while at < count and expected[at] != read and expected[at][0] < read[0]:
                    at += 1
                if at < count and expected[at] == read:
                    verdict.right += 1
                    at += 1
                elif not verdict.silent:
                    verdict.silent.append(f"message {read[0]} was never written so, or is out of order")
        except Exception as error:
            verdict.error = f"{type(error).__module__}.{type(error).__name__}: {error}"[:200]
    verdict.kept = verdict.right
    if verdict.right < count and verdict.error is None and not verdict.silent:
        verdict.silent.append(f"{count - verdict.right} messages are missing, and no error says so")
    return verdict
