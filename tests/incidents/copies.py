"""What copies, uploads, downloads and conversions do."""

from __future__ import annotations

import gzip
import sqlite3
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from .case import Case, Step
from .harm import PAGE, STRIPE, repeated, reversed_words
from .samples import DAY, Sample, active, chunked, events, sealed, tenant
from .stage import KEPT, staged

UNDONE = (Step.EXTRACT, Step.RESTORE)
"""What is too much is left out of a copy, or the file is copied again."""


def truncated() -> Iterator[Case]:
    """Copies that were cut off."""
    whole = sealed(4000)
    end = STRIPE * 10
    yield staged(
        "truncated-sealed",
        "truncated copy",
        "only the first 640 KiB arrived",
        whole,
        whole.data[:end],
        "truncated",
        KEPT,
        damage=[(end, len(whole))],
    )
    whole = chunked(4000)
    yield staged(
        "truncated-chunked",
        "truncated copy",
        "only the first 180,000 bytes arrived; the index is complete",
        whole,
        whole.data[:180_000],
        "truncated",
        KEPT,
        damage=[(180_000, len(whole))],
        file="events.chunks",
    )


def text_mode() -> Iterator[Case]:
    """Line ends that were converted."""
    for make in (active, tenant):
        whole = make(1200, pretty=True)
        yield staged(
            f"crlf-{whole.format}",
            "text mode",
            "each LF became CR LF",
            whole,
            whole.data.replace(b"\n", b"\r\n"),
            "text_conversion",
            (Step.LINES, Step.RESTORE),
        )


def concatenated() -> Iterator[Case]:
    """Two files in one."""
    first, second = active(900, seed=2), active(900, day=DAY - timedelta(days=1), seed=3)
    yield joined("concatenated-active", "today's and yesterday's", first, second)
    first, second = sealed(900, seed=2), sealed(900, day=DAY + timedelta(days=1), seed=3)
    yield joined("concatenated-sealed", "two days'", first, second)


def joined(name: str, what: str, first: Sample, second: Sample) -> Case:
    """The case of two files, one after the other."""
    return staged(
        name,
        "concatenated",
        f"{what}, one after the other",
        first,
        first.data + second.data,
        "concatenated",
        Step.EXTRACT,
        damage=[(len(first), len(first) + len(second))],
        sound=False,
    )


def duplicated() -> Iterator[Case]:
    """Parts of an upload that were sent twice."""
    whole, at = tenant(3000), STRIPE * 5
    yield staged(
        "repeated-tenant-64k",
        "duplicated block",
        "64 KiB come twice",
        whole,
        repeated(whole.data, at, STRIPE),
        "repeated_block",
        UNDONE,
        damage=[(at + STRIPE, at + 2 * STRIPE)],
    )
    whole, at = active(2000), PAGE * 70
    yield staged(
        "repeated-active-4k",
        "duplicated block",
        "4 KiB come twice",
        whole,
        repeated(whole.data, at, PAGE),
        "repeated_block",
        UNDONE,
        damage=[(at + PAGE, at + 2 * PAGE)],
    )


def reencoded() -> Iterator[Case]:
    """Bytes that were taken for something else."""
    whole = active(1200)
    yield staged(
        "latin1-active",
        "re-encoded",
        "taken for Latin-1 and written as UTF-8",
        whole,
        whole.data.decode("latin-1").encode(),
        "reencoded",
        (Step.RECODE, Step.RESTORE),
    )
    yield staged(
        "words-active",
        "re-encoded",
        "the bytes of each 32-bit word in the other order",
        whole,
        reversed_words(whole.data, 4),
        "byte_order",
        (Step.OTHER, Step.RESTORE),
    )


def compressed() -> Iterator[Case]:
    """Sound files, packed."""
    whole = sealed(1500)
    yield staged(
        "gzip-sealed",
        "compressed",
        "gzip of a sound file",
        whole,
        gzip.compress(whole.data, mtime=0),
        "compressed",
        Step.DECOMPRESS,
    )


def other_content() -> Iterator[Case]:
    """What is no segment at all."""
    yield other("sqlite", "events.chunks", "a SQLite database", _database())
    page = (
        b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>"
        b"<body><h1>502 Bad Gateway</h1></body></html>\n"
    )
    yield other("html", "orders.active", "a proxy's error page", page)


def other(name: str, file: str, how: str, data: bytes) -> Case:
    """The case of a file that never was a segment."""
    own = Sample("", data)
    steps = (Step.RESTORE, Step.OTHER)
    return staged(name, "another tool's", how, own, data, "other_content", steps, sound=False, file=file)


def _database() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "orders.db"
        connection = sqlite3.connect(path)
        connection.execute("create table orders(id integer primary key, body text)")
        connection.executemany("insert into orders values(?, ?)", ((e.number, e.value.decode()) for e in events(1000)))
        connection.commit()
        connection.close()
        return path.read_bytes()


def empty() -> Iterator[Case]:
    """Files without content."""
    for suffix in ("active", "sealed", "tenant", "chunks"):
        own = Sample("", b"")
        how = "0 bytes, as after a failed copy"
        yield staged(
            f"empty-{suffix}", "empty", how, own, b"", "empty", Step.RESTORE, sound=False, file=f"orders.{suffix}"
        )
    zeros = bytes(1 << 20)
    own = Sample("", zeros)
    yield staged(
        "zeros-sealed",
        "empty",
        "1 MiB of zeros",
        own,
        zeros,
        "only_zeros",
        Step.RESTORE,
        sound=False,
        file="orders.sealed",
    )


KINDS = (truncated, text_mode, concatenated, duplicated, reencoded, compressed, other_content, empty)
