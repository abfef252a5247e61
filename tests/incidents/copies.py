"""What copies, uploads, downloads and conversions do."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from .case import NOT_SEEN, Case, Step
from .harm import PAGE, SECTOR, STRIPE, inserted, repeated, reversed_words, without, zeroed
from .samples import DAY, Sample, active, chunked, events, oplog, protected, sealed, tenant, tfrecord
from .stage import AGAIN, HIDDEN, KEPT, staged

UNDONE = (Step.EXTRACT, Step.RESTORE)
"""What is too much is left out of a copy, or the file is copied again."""


def truncated() -> Iterator[Case]:
    """Copies that were cut off."""
    own = partial(staged, incident="truncated copy", steps=KEPT)
    s, t, c, a = sealed(4000), tenant(2500), chunked(4000), active(4500)
    # A file that grows may end anywhere, also where its last write was cut off.
    either = ("truncated", "interrupted_write")
    for name, sample, end, reasons in (
        ("sealed-640k", s, STRIPE * 10, "truncated"),
        ("sealed-4k", s, PAGE * 77, "truncated"),
        ("sealed-in-trailer", s, len(s) - 9000, "truncated"),
        ("sealed-in-index", s, 20_000, "truncated"),
        ("sealed-last-byte", s, len(s) - 1, "truncated"),
        ("tenant-64k", t, STRIPE * 8, "truncated"),
        ("tenant-anywhere", t, 300_001, "truncated"),
        ("tenant-in-contents", t, 400, "truncated"),
        ("active-1m", a, 1 << 20, "truncated"),
        ("active-64k", a, STRIPE * 5, "truncated"),
        ("active-anywhere", a, 777_777, either),
        ("chunked-180k", c, 180_000, "truncated"),
        ("chunked-last-byte", c, c.data.rstrip(b"\0").__len__() - 1, either),
        ("tfrecord-64k", tfrecord(2000), STRIPE * 4, "truncated"),
        ("oplog-64k", oplog(2000), STRIPE * 4, "truncated"),
    ):
        how = f"only the first {end:,} bytes arrived"
        data = sample.data[:end]
        # Of an index alone nothing is sound.
        steps = AGAIN if name.endswith(("in-index", "in-contents")) else KEPT
        yield own(f"truncated-{name}", how=how, sample=sample, data=data, reasons=reasons, steps=steps)
    for name, sample, end in (
        ("sealed", s, STRIPE * 7),
        ("tenant", t, STRIPE * 4),
        ("chunked", c, STRIPE * 2),
        ("active", a, (1 << 20) + STRIPE),
    ):
        yield own(
            f"truncated-zeros-{name}",
            how=f"only the first {end:,} bytes arrived, in space that was allocated in advance",
            sample=sample,
            data=zeroed(sample.data, end),
            reasons="zeroed_tail",
        )
    yield own(
        "truncated-protected",
        how="a backup lies in the place of the file, beside the file's sidecar",
        sample=a,
        data=a.data[:777_777],
        reasons="truncated",
        beside={"orders.active.par": protected(a)},
    )
    gone = partial(staged, incident="part missing", reasons="missing_bytes", steps=HIDDEN)
    for name, sample, start, size in (
        ("active-4k", a, PAGE * 71, PAGE),
        ("active-7", a, 400_007, 7),
        ("active-head", a, 0, PAGE),
        ("sealed-512", s, SECTOR * 800, SECTOR),
        ("tenant-64k", t, STRIPE * 3, STRIPE),
        ("chunked-3", c, 100_003, 3),
        ("chunked-4k", c, PAGE * 25, PAGE),
    ):
        yield gone(
            f"missing-{name}",
            how=f"{size} bytes at {start:,} are missing, and all after them is nearer",
            sample=sample,
            data=without(sample.data, start, start + size),
        )


def text_mode() -> Iterator[Case]:
    """Line ends that were converted."""
    own = partial(staged, incident="text mode", reasons="text_conversion", steps=(Step.LINES, Step.RESTORE))
    for make in (active, tenant, sealed, chunked):
        whole = make(1200, pretty=True)
        data = whole.data.replace(b"\n", b"\r\n")
        yield own(f"crlf-{whole.format}", how="each LF became CR LF", sample=whole, data=data)
    for make in (active, sealed, chunked):
        whole = make(4000 if make is chunked else 1100, pretty=True, seed=4, line_end="\r\n")
        data = whole.data.replace(b"\r\n", b"\n")
        # Compressed, there are too few line ends to tell.
        reasons = ("text_conversion", "missing_bytes") if make is chunked else "text_conversion"
        yield own(f"lf-{whole.format}", how="each CR LF became LF", sample=whole, data=data, reasons=reasons)


def concatenated() -> Iterator[Case]:
    """Two files in one."""
    own = partial(joined, reasons="concatenated")
    yield own("concatenated-active", active(900, seed=2), active(900, day=DAY - timedelta(days=1), seed=3))
    yield own("concatenated-sealed", sealed(900, seed=2), sealed(900, day=DAY + timedelta(days=1), seed=3))
    yield own("concatenated-sealed-thrice", sealed(300, seed=2), sealed(400, seed=3), sealed(350, seed=4))
    yield own("concatenated-tenant", tenant(900, seed=2), tenant(1100, seed=3))
    yield own("concatenated-chunked", chunked(1500, seed=2), chunked(1500, day=DAY + timedelta(days=1), seed=3))
    yield own("concatenated-sealed-active", sealed(700, seed=5), active(500, day=DAY + timedelta(days=1), seed=6))
    again = ("concatenated", "duplicated_records", "repeated_block")
    yield joined("concatenated-twice-active", active(700), active(700), reasons=again)
    yield joined("concatenated-twice-sealed", sealed(700), sealed(700), reasons=again)
    # These are sound files of their formats.
    later = active(900, day=DAY + timedelta(days=1), seed=3)
    yield joined("appended-active", active(900, seed=2), later, reasons=NOT_SEEN)
    yield joined("appended-tfrecord", tfrecord(500), tfrecord(500, seed=2), reasons=NOT_SEEN)


def joined(name: str, *parts: Sample, reasons: str | Iterable[str]) -> Case:
    """The case of files one after the other."""
    data = b"".join(part.data for part in parts)
    return staged(
        name,
        "concatenated",
        f"{len(parts)} files, one after the other",
        parts[0],
        data,
        reasons,
        Step.RESTORE if reasons == NOT_SEEN else Step.EXTRACT,
        sound=False,
    )


def duplicated() -> Iterator[Case]:
    """Parts of an upload that were sent twice, and bytes that came from elsewhere."""
    own = partial(staged, incident="duplicated block", reasons="repeated_block", steps=UNDONE)
    a, s, t, c = active(2000), sealed(2000, seed=3), tenant(3000), chunked(6000)
    for name, sample, at, size in (
        ("active-512", a, SECTOR * 640, SECTOR),
        ("active-4k", a, PAGE * 70, PAGE),
        ("active-64k", a, STRIPE * 2, STRIPE),
        ("sealed-4k", s, PAGE * 80, PAGE),
        ("sealed-64k", s, STRIPE * 3, STRIPE),
        ("tenant-64k", t, STRIPE * 5, STRIPE),
        ("chunked-4k", c, PAGE * 40, PAGE),
        ("chunked-64k", c, STRIPE, STRIPE),
    ):
        yield own(
            f"repeated-{name}",
            how=f"{size} bytes come twice",
            sample=sample,
            data=repeated(sample.data, at, size),
        )
    end = len(active(1980))
    yield own(
        "repeated-active-records",
        how="the last append was written twice",
        sample=a,
        data=a.data + a.data[end:],
        reasons=("duplicated_records", "repeated_block"),
        steps=(*UNDONE, Step.RECOVER),
    )
    extra = partial(staged, incident="bytes inserted", reasons="inserted_bytes", steps=UNDONE)
    noise, mark = Random(2).randbytes(PAGE), b"\xef\xbb\xbf"
    head = b"--------------------------d74496d66958873e\r\nContent-Type: application/octet-stream\r\n\r\n"
    either = ("inserted_bytes", "other_content")
    for name, sample, at, what, reasons in (
        ("active-1", a, 300_001, b"\0", "inserted_bytes"),
        ("active-4k", a, 200_002, noise, "inserted_bytes"),
        ("sealed-17", s, 250_000, noise[:17], "inserted_bytes"),
        ("tenant-100", t, 444_444, noise[:100], "inserted_bytes"),
        ("chunked-5", c, 155_555, noise[:5], "inserted_bytes"),
        ("active-mark", a, 0, mark, "inserted_bytes"),
        ("sealed-mark", s, 0, mark, "inserted_bytes"),
        ("active-http", a, 0, head, either),
        ("tenant-http", t, 0, head, either),
        ("sealed-line-end", s, len(s), b"\n", ("inserted_bytes", "concatenated")),
    ):
        yield extra(
            f"inserted-{name}",
            how=f"{len(what)} bytes at {at:,} that are not of the file",
            sample=sample,
            data=inserted(sample.data, at, what),
            reasons=reasons,
        )


def reencoded() -> Iterator[Case]:
    """Bytes that were taken for something else."""
    own = partial(staged, incident="re-encoded", reasons="reencoded")
    for whole in (active(1200), sealed(1300, seed=2), tenant(1000), chunked(2000)):
        yield own(
            f"latin1-{whole.format}",
            how="taken for Latin-1 and written as UTF-8",
            sample=whole,
            data=whole.data.decode("latin-1").encode(),
            steps=(Step.RECODE, Step.RESTORE),
        )
    for name, charset, steps in (("utf16", "latin-1", (Step.RECODE, Step.RESTORE)), ("powershell", "cp437", AGAIN)):
        whole = active(1200)
        yield own(
            f"{name}-active",
            how=f"taken for {charset} and written as UTF-16",
            sample=whole,
            data=whole.data.decode(charset).encode("utf-16"),
            steps=steps,
        )
    for whole in (active(1200), sealed(900), chunked(1500)):
        yield own(
            f"replaced-{whole.format}",
            how="taken for UTF-8: what is none became U+FFFD",
            sample=whole,
            data=whole.data.decode(errors="replace").encode(),
            reasons=("reencoded", "text_conversion"),
            steps=AGAIN,
        )
    for whole, size in ((active(1200), 4), (active(1000, seed=2), 2), (sealed(1200), 4), (tenant(900), 4)):
        yield own(
            f"swapped-{whole.format}-{size * 8}",
            how=f"the bytes of each word of {size * 8} bits in the other order",
            sample=whole,
            data=reversed_words(whole.data, size),
            reasons="byte_order",
            steps=(Step.SWAP, Step.RESTORE),
        )


def compressed() -> Iterator[Case]:
    """Sound files, packed."""
    own = partial(staged, incident="compressed", reasons="compressed", steps=Step.DECOMPRESS)
    s, a, c = sealed(1500), active(800), chunked(900)
    yield own("gzip-sealed", how="gzip", sample=s, data=gzip.compress(s.data, mtime=0))
    yield own("gzip-active", how="gzip", sample=a, data=gzip.compress(a.data, mtime=0))
    yield own("gzip-chunked", how="gzip", sample=c, data=gzip.compress(c.data, mtime=0), file="my orders'26.chunks")
    packed = gzip.compress(tenant(900).data, mtime=0)
    yield own(
        "gzip-tenant-cut",
        how="gzip, of which only the first half arrived",
        sample=tenant(900),
        data=packed[: len(packed) // 2],
        steps=(Step.DECOMPRESS, Step.RESTORE),
    )
    yield own("xz-sealed", how="xz", sample=s, data=lzma.compress(s.data))
    yield own("bzip2-active", how="bzip2", sample=a, data=bz2.compress(a.data))
    zstd = pa.compress(s.data, codec="zstd", asbytes=True)
    yield own("zstd-sealed", how="zstd", sample=s, data=zstd)
    yield own("lz4-active", how="lz4", sample=a, data=pa.compress(a.data, codec="lz4", asbytes=True))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packing:
        packing.writestr(zipfile.ZipInfo("orders.sealed", (2026, 11, 27, 0, 0, 0)), s.data)
    yield own("zip-sealed", how="zip", sample=s, data=archive.getvalue())
    plain = partial(staged, incident="compressed", reasons="base64", steps=Step.BASE64)
    yield plain("base64-active", how="base64 in lines", sample=a, data=base64.encodebytes(a.data))
    yield plain("base64-sealed", how="base64 in one line", sample=s, data=base64.b64encode(s.data))


def other_content() -> Iterator[Case]:
    """What is no segment at all."""
    rows = [{"order": own.number, "body": own.value.decode()} for own in events(400)]
    table = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), table)
    page = (
        b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>"
        b"<body><h1>502 Bad Gateway</h1></body></html>\n"
    )
    denied = (
        b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message>'
        b"<RequestId>4442587FB7D0A2F9</RequestId></Error>"
    )
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 592349\n" % (b"4d7a2146" * 8)
    for name, file, how, data in (
        ("sqlite", "events.chunks", "a SQLite database", _database()),
        ("parquet", "orders.sealed", "a Parquet file", table.getvalue()),
        ("html", "orders.active", "a proxy's error page", page),
        ("xml", "orders.sealed", "a store's error", denied),
        ("lfs", "orders.tenant", "a pointer of Git LFS", pointer),
        ("json", "orders.active", "a file of JSON lines", b"".join(json.dumps(row).encode() + b"\n" for row in rows)),
        ("pdf", "orders.sealed", "a PDF", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + Random(3).randbytes(20_000)),
        ("log", "orders.chunks", "a program's log", b"2026-11-27 00:00:01 INFO started\n" * 300),
    ):
        yield other(name, file, how, data)
    noise = Random(4).randbytes(100_000)
    reasons = ("unknown", "foreign_sector", "other_content")
    yield other("noise", "orders.active", "random bytes", noise, reasons=reasons)
    # Each is a sound file of another format than its name says.
    for sample, file in (
        (active(300), "orders.sealed"),
        (tenant(300), "orders.chunks"),
        (sealed(300), "orders.active"),
    ):
        how = f"a sound file of the format {sample.format}"
        yield other(
            f"named-{file}",
            file,
            how,
            sample.data,
            reasons=(NOT_SEEN, "other_format"),
            steps=(Step.RESTORE, Step.FORMAT),
        )


def other(
    name: str,
    file: str,
    how: str,
    data: bytes,
    *,
    reasons: str | Iterable[str] = "other_content",
    steps: Iterable[Step] = (*AGAIN, Step.OTHER),
) -> Case:
    """The case of a file that never was a segment, or is one of another format."""
    return staged(name, "another tool's", how, Sample("", data), data, reasons, steps, sound=False, file=file)


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
    own = partial(staged, incident="empty", steps=(*AGAIN, Step.OTHER), sound=False)
    for suffix in ("active", "sealed", "tenant", "chunks", "oplog", "tfrecord"):
        how, nothing = "0 bytes, as after a failed copy", Sample("", b"")
        yield own(f"empty-{suffix}", how=how, sample=nothing, data=b"", reasons="empty", file=f"orders.{suffix}")
    for suffix, size in (("sealed", 1 << 20), ("tenant", 300_000), ("chunks", 65_536), ("active", 1 << 20)):
        zeros = Sample("", bytes(size))
        # Space that was filled with zeros in advance is a sound active segment without records.
        reasons = ("only_zeros", NOT_SEEN) if suffix == "active" else "only_zeros"
        how = f"{size:,} bytes of zeros"
        yield own(f"zeros-{suffix}", how=how, sample=zeros, data=zeros.data, reasons=reasons, file=f"orders.{suffix}")


KINDS = (truncated, text_mode, concatenated, duplicated, reencoded, compressed, other_content, empty)
