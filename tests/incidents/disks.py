"""What crashes, memory and disks do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from random import Random
from typing import Any

from .case import NOT_SEEN, Case, Step
from .harm import PAGE, SECTOR, STRIPE, flipped, overwritten, swapped, zeroed
from .samples import LAST_MONTH, Sample, active, chunked, ledger, oplog, protected, sealed, tenant, tfrecord
from .stage import AGAIN, HIDDEN, KEPT, staged

_KIB = 1024


def torn_writes() -> Iterator[Case]:
    """Writers that were ended in the middle of an append."""
    torn = partial(_cut, incident="torn write", reasons="interrupted_write", steps=Step.RECOVER)
    yield torn("torn-active", active(1800), missing=140, file="orders-2026-11-27.active")
    whole = active(700, seed=6)
    yield torn("torn-active-header", whole, missing=_last(whole) - 9)
    yield torn("torn-active-last-byte", active(350, seed=7), missing=1)
    yield torn("torn-active-large", active(60, attached=300_000), missing=100_000)
    whole = chunked(2500)
    assert whole.index is not None
    # The writer of a chunked log adds to the index once a chunk is written.
    yield torn("torn-chunked", whole, missing=_last(whole) - 3000, beside={"orders.index": whole.index[:-20]})
    yield torn("torn-oplog", oplog(900), missing=77)
    yield torn("torn-tfrecord", tfrecord(900), missing=100)


def torn_preallocated() -> Iterator[Case]:
    """The same where the space was filled with zeros in advance."""
    torn = partial(staged, incident="torn, preallocated", steps=Step.RECOVER)
    whole = active(1800, preallocate=4 << 20, attached=20_000)
    used = len(whole.data.rstrip(b"\0"))
    cut = (used - 9000) // PAGE * PAGE
    yield torn(
        "torn-preallocated",
        how="of the last append, of 20 kB, the last pages are missing; zeros follow to 4 MiB",
        sample=whole,
        data=zeroed(whole.data, cut),
        reasons="interrupted_write",
    )
    yield torn(
        "torn-preallocated-out-of-order",
        how="of the last append, of 20 kB, a page in the middle is missing",
        sample=whole,
        data=zeroed(whole.data, cut, cut + PAGE),
        reasons=("interrupted_write", "zeroed_sector"),
        steps=KEPT,
    )
    whole = active(1000, preallocate=1 << 20, attached=900)
    used = len(whole.data.rstrip(b"\0"))
    cut = (used - 300) // SECTOR * SECTOR
    yield torn(
        "torn-preallocated-sector",
        how="the last sector of the last append is missing; zeros follow to 1 MiB",
        sample=whole,
        data=zeroed(whole.data, cut),
        reasons="interrupted_write",
    )


def flipped_bits() -> Iterator[Case]:
    """One bit, in memory or on the disk."""
    s, t, c, f = sealed(2000), tenant(2000), chunked(3000), tfrecord(1000)
    small, large = active(1500, seed=8), active(40, attached=90_000)
    yield _flip("flip-sealed-value", "a bit of a value", s, s.data.find(b'"note"', 300_000) + 1, 2)
    yield _flip("flip-sealed-index", "a bit of an offset in the index", s, 24 * 700 + 17, 3)
    yield _flip("flip-sealed-trailer", "a bit of a checksum in the trailer", s, len(s) - 32 - 8 * 500, 6)
    yield _flip("flip-active-value", "a bit of a value", small, small.data.find(b'"total"', 90_000) + 11, 4)
    yield _flip("flip-active-first", "a bit of the first record", small, 60, 1)
    yield _flip("flip-active-length", "a bit of a value's length", small, _length_at(small, 800), 5)
    yield _flip("flip-active-time", "a bit of a UUID", small, _units(small)[900][0] + 3, 0)
    # Not all bits of it can be tried: that bytes of it changed is all that shows.
    changed: dict[str, Any] = {"reasons": ("flipped_bit", "changed_bytes"), "steps": (Step.PATCH, Step.RECOVER)}
    yield _flip("flip-active-large", "a bit of a value of 90 kB", large, len(large) - 30_000, 2, **changed)
    yield _flip("flip-tenant-value", "a bit of a block of some 24 kB", t, t.data.find(b'"customer"', 200_000) + 3, 5)
    yield _flip("flip-tenant-small-block", "a bit of a block of 300 bytes", *_in_block(tenant(600, tenants=200)))
    yield _flip("flip-tenant-contents", "a bit of the table of contents", t, 300, 2)
    yield _flip("flip-chunked-payload", "a bit of a compressed payload", c, _units(c)[9][0] + 2500, 7)
    yield _flip("flip-chunked-header", "a bit of a chunk's header", c, _units(c)[12][0] + 21, 1)
    yield _flip("flip-tfrecord-value", "a bit of a record", f, _units(f)[500][0] + 60, 3)
    yield _flip("flip-tfrecord-length", "a bit of a record's length", f, _units(f)[300][0] + 1, 2)
    p = active(400, preallocate=1 << 20)
    yield _flip("flip-active-unused", "a bit of space that was filled with zeros in advance", p, 700_001, 4)
    two = [_units(small)[n][0] + 120 for n in (300, 1100)]
    yield staged(
        "flip-active-twice",
        "flipped bit",
        "a bit in each of two records",
        small,
        flipped(flipped(small.data, two[0], 1), two[1], 6),
        "flipped_bit",
        Step.PATCH,
    )
    for name, own in (
        ("oplog", oplog(1500)),
        ("tenant-version-1", tenant(1500, version=1)),
        ("sealed-no-trailer", sealed(1500, trailer=False)),
    ):
        at = own.data.find(b'"total"', 200_000) + 10
        how = "a bit of a value, without checksums: nothing can show it"
        yield _flip(f"flip-{name}", how, own, at, 0, reasons=NOT_SEEN, steps=Step.RESTORE)
    yield staged(
        "flip-protected",
        "flipped bit",
        "a bit of a value of a file with a parity sidecar",
        small,
        flipped(small.data, 200_000, 4),
        "restorable",
        Step.REPAIR,
        beside={"orders.active.par": protected(small)},
    )


def misdirected() -> Iterator[Case]:
    """Sectors that were written to another place."""
    own = partial(
        _overwritten, incident="misdirected sector", reasons=("moved_sector", "duplicated_sector"), steps=HIDDEN
    )
    a, s, t, c = active(2000), sealed(1600, seed=5), tenant(2400, tenants=40), chunked(5000)
    for name, sample, to, source, size in (
        ("active-512", a, SECTOR * 700, SECTOR * 1100, SECTOR),
        ("active-512-back", a, SECTOR * 900, SECTOR * 899, SECTOR),
        ("active-4k", a, PAGE * 40, PAGE * 90, PAGE),
        ("active-64k", a, STRIPE * 3, STRIPE * 6, STRIPE),
        ("sealed-512", s, SECTOR * 500, SECTOR * 600, SECTOR),
        ("sealed-4k-in-index", s, PAGE * 4, PAGE * 70, PAGE),
        ("tenant-4k", t, PAGE * 100, PAGE * 30, PAGE),
        ("chunked-512", c, SECTOR * 200, SECTOR * 260, SECTOR),
        ("chunked-4k", c, PAGE * 30, PAGE * 50, PAGE),
    ):
        what = sample.data[source : source + size]
        yield own(f"misdirected-{name}", how=f"{size} bytes from {source}", sample=sample, at=to, what=what)
    yield staged(
        "misdirected-swap",
        "misdirected sector",
        "two pages in each other's place",
        a,
        swapped(a.data, PAGE * 60, PAGE * 64, PAGE),
        "moved_sector",
        HIDDEN,
    )
    noise = Random(1).randbytes(STRIPE)
    text = b"".join(b"GET /orders/%d HTTP/1.1 200 %d\n" % (n, n * 7 % 9000) for n in range(400))
    for name, sample, at, what in (
        ("active-4k", a, PAGE * 33, noise[:PAGE]),
        ("active-512", a, SECTOR * 777, noise[:SECTOR]),
        ("sealed-64k", s, STRIPE * 4, noise),
        ("tenant-4k", t, PAGE * 80, noise[:PAGE]),
        ("chunked-4k", c, PAGE * 21, noise[:PAGE]),
    ):
        how = f"{len(what)} bytes of another file, encrypted"
        yield own(f"foreign-{name}", how=how, sample=sample, at=at, what=what, reasons="foreign_sector")
    reasons = ("foreign_sector", "other_content")
    yield own("foreign-text", how="4 KiB of a text", sample=a, at=PAGE * 77, what=text[:PAGE], reasons=reasons)


def stale() -> Iterator[Case]:
    """Writes that never reached the disk, where an earlier file was."""
    own = partial(_overwritten, incident="stale block", reasons="stale_data")
    a, earlier = active(2000), active(2000, day=LAST_MONTH, seed=4)
    c, other = chunked(5000, first=90_000), chunked(5000, day=LAST_MONTH, seed=4)
    s, t = sealed(2000), tenant(2000)
    # Parts of what has its checksums elsewhere are nobody's: they are just other bytes.
    strange = ("stale_data", "foreign_sector", "changed_bytes")
    for name, sample, before, at, size, reasons in (
        ("active-512", a, earlier, SECTOR * 610, SECTOR, strange),
        ("active-4k", a, earlier, PAGE * 60, PAGE, "stale_data"),
        ("active-64k", a, earlier, STRIPE * 2, STRIPE, "stale_data"),
        ("chunked-4k", c, other, PAGE * 30, PAGE, strange),
        ("chunked-64k", c, other, STRIPE, STRIPE, "stale_data"),
        ("sealed-4k", s, sealed(2000, day=LAST_MONTH, seed=4), PAGE * 60, PAGE, strange),
        ("tenant-4k", t, tenant(2000, day=LAST_MONTH, seed=4), PAGE * 60, PAGE, strange),
    ):
        how = f"{size} bytes of a file of a month before"
        yield own(f"stale-{name}", how=how, sample=sample, at=at, what=before.data[at : at + size], reasons=reasons)
    whole = active(800)
    end = len(whole) // PAGE * PAGE
    yield staged(
        "stale-active-recycled",
        "stale block",
        "space of an older file was used again, and the last page never arrived",
        whole,
        whole.data[:end] + earlier.data[end : end + STRIPE],
        "stale_data",
        KEPT,
    )


def zeroed_ranges() -> Iterator[Case]:
    """Zeros or ones, as after a loss of power."""
    own = partial(_overwritten, incident="zeroed", reasons="zeroed_sector")
    a, s, t, c = active(2000), sealed(1800, seed=9), tenant(3000), chunked(5000)
    for name, sample, at, size in (
        ("active-512", a, SECTOR * 801, SECTOR),
        ("active-4k", a, PAGE * 99, PAGE),
        ("active-64k", a, STRIPE * 4, STRIPE),
        ("active-head", a, 0, PAGE),
        ("sealed-4k", s, PAGE * 50, PAGE),
        ("sealed-index", s, PAGE * 3, PAGE),
        ("sealed-head", s, 0, PAGE),
        ("tenant-64k", t, STRIPE * 3, STRIPE),
        ("chunked-4k", c, PAGE * 20, PAGE),
        ("chunked-64k", c, STRIPE * 2, STRIPE),
        ("tfrecord-4k", tfrecord(1500), PAGE * 44, PAGE),
        ("oplog-4k", oplog(1500), PAGE * 31, PAGE),
    ):
        yield own(f"zeroed-{name}", how=f"{size} bytes of zeros", sample=sample, at=at, what=bytes(size))
    # Without the number of partitions nothing is found.
    yield own("zeroed-tenant-head", how="512 bytes of zeros", sample=t, at=0, what=bytes(SECTOR), steps=AGAIN)
    for name, sample, at, size in (("active-4k", a, PAGE * 17, PAGE), ("sealed-64k", s, STRIPE * 5, STRIPE)):
        how = f"{size} bytes of 0xff, as in erased flash"
        yield own(f"erased-{name}", how=how, sample=sample, at=at, what=b"\xff" * size, reasons="erased_sector")
    for name, sample, unit in (
        ("active", a, STRIPE),
        ("active-4k", active(900, seed=3), PAGE),
        ("sealed", s, STRIPE),
        ("tenant", t, STRIPE),
        ("chunked", c, STRIPE),
    ):
        at = (len(sample) - 2 * unit) // unit * unit
        how = f"all zeros from a multiple of {unit // _KIB} KiB on"
        what = bytes(len(sample) - at)
        yield own(f"zeroed-tail-{name}", how=how, sample=sample, at=at, what=what, reasons="zeroed_tail")


KINDS = (torn_writes, torn_preallocated, flipped_bits, misdirected, stale, zeroed_ranges)


def _units(sample: Sample) -> list[tuple[int, int]]:
    """Where the records, chunks or blocks are."""
    return [own[:2] for own in ledger(sample) if own[2] in ("record", "chunk", "block")]


def _last(sample: Sample) -> int:
    """How long the last record or chunk is, and what follows it."""
    return len(sample) - _units(sample)[-1][0]


def _length_at(sample: Sample, number: int) -> int:
    """Where the second byte of the length of an active record's value is."""
    start, end = _units(sample)[number]
    record = sample.data[start:end]
    value = record.index(b"{")
    return start + value - 3


def _in_block(sample: Sample) -> tuple[Sample, int, int]:
    return sample, sample.data.find(b'"city"', 50_000) + 2, 3


def _flip(
    name: str,
    how: str,
    sample: Sample,
    at: int,
    bit: int,
    *,
    reasons: str | Iterable[str] = "flipped_bit",
    steps: Step | Iterable[Step] = Step.PATCH,
) -> Case:
    data = flipped(sample.data, at, bit)
    return staged(name, "flipped bit", how, sample, data, reasons, steps)


def _cut(name: str, sample: Sample, *, missing: int, **said: Any) -> Case:
    end = len(sample) - missing
    how = f"the last append is cut off {missing} bytes before its end"
    return staged(name, how=how, sample=sample, data=sample.data[:end], **said)


def _overwritten(name: str, *, incident: str, how: str, sample: Sample, at: int, what: bytes, **truth: Any) -> Case:
    return staged(name, incident, how, sample, overwritten(sample.data, at, what), **{"steps": KEPT, **truth})
