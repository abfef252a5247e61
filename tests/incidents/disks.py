"""What crashes, memory and disks do."""

from __future__ import annotations

from collections.abc import Iterator

from .case import NOT_SEEN, Case, Step
from .harm import PAGE, SECTOR, STRIPE, flipped, moved, overwritten, zeroed
from .samples import LAST_MONTH, active, oplog, sealed, tenant
from .stage import KEPT, staged


def torn_writes() -> Iterator[Case]:
    """Writers that were ended in the middle of an append."""
    whole = active(1800)
    end = len(whole) - 140
    yield staged(
        "torn-active",
        "torn write",
        "the last append is cut off 140 bytes before its end",
        whole,
        whole.data[:end],
        "interrupted_write",
        Step.RECOVER,
        damage=[(end, len(whole))],
        file="orders-2026-11-27.active",
    )


def torn_preallocated() -> Iterator[Case]:
    """The same where the space was filled with zeros in advance."""
    whole = active(1800, preallocate=4 << 20, attached=20_000)
    used = len(whole.data.rstrip(b"\0"))
    cut = (used - 9000) // PAGE * PAGE
    yield staged(
        "torn-preallocated",
        "torn, preallocated",
        "of the last append, of 20 kB, the last pages are missing; zeros follow to 4 MiB",
        whole,
        zeroed(whole.data, cut),
        "interrupted_write",
        Step.RECOVER,
        damage=[(cut, used)],
    )


def flipped_bits() -> Iterator[Case]:
    """One bit, in memory or on the disk."""
    whole = sealed(2000)
    at = whole.data.find(b'"note"', 300_000) + 1
    yield staged(
        "flip-sealed-value",
        "flipped bit",
        "a bit of a value",
        whole,
        flipped(whole.data, at, 2),
        "flipped_bit",
        Step.PATCH,
        damage=[(at, at + 1)],
        file="orders-2026-11-27.sealed",
    )
    whole = tenant(2000)
    at = whole.data.find(b'"customer"', 200_000) + 3
    yield staged(
        "flip-tenant-value",
        "flipped bit",
        "a bit of a message, in a block of some 24 kB",
        whole,
        flipped(whole.data, at, 5),
        "flipped_bit",
        Step.PATCH,
        damage=[(at, at + 1)],
    )
    whole = oplog(1500)
    at = whole.data.find(b'"total"', 200_000) + 10
    yield staged(
        "flip-oplog-value",
        "flipped bit",
        "a bit of a value of an oplog, which has no checksums: nobody can see it",
        whole,
        flipped(whole.data, at),
        NOT_SEEN,
        Step.RESTORE,
        damage=[(at, at + 1)],
    )


def misdirected() -> Iterator[Case]:
    """Sectors that were written to another place."""
    whole = active(2000)
    to, source = SECTOR * 700, SECTOR * 1100
    yield staged(
        "misdirected-active",
        "misdirected sector",
        "512 bytes from later in the file, at another place",
        whole,
        moved(whole.data, to, source, SECTOR),
        "moved_sector",
        KEPT,
        damage=[(to, to + SECTOR)],
    )


def stale() -> Iterator[Case]:
    """Writes that never reached the disk, where an earlier file was."""
    whole, earlier = active(2000), active(2000, day=LAST_MONTH, seed=4)
    to = PAGE * 60
    yield staged(
        "stale-active",
        "stale block",
        "4 KiB of a segment of a month before",
        whole,
        overwritten(whole.data, to, earlier.data[to : to + PAGE]),
        "stale_data",
        KEPT,
        damage=[(to, to + PAGE)],
    )


def zeroed_ranges() -> Iterator[Case]:
    """Zeros, as after a loss of power."""
    whole = active(2000)
    at = STRIPE * 4
    yield staged(
        "zeroed-active-64k",
        "zeroed",
        "64 KiB in the middle",
        whole,
        zeroed(whole.data, at, at + STRIPE),
        "zeroed_sector",
        KEPT,
        damage=[(at, at + STRIPE)],
    )
    at = (len(whole) - STRIPE) // STRIPE * STRIPE
    yield staged(
        "zeroed-active-tail",
        "zeroed",
        "all from a multiple of 64 KiB to the end",
        whole,
        zeroed(whole.data, at),
        "zeroed_tail",
        KEPT,
        damage=[(at, len(whole))],
    )


KINDS = (torn_writes, torn_preallocated, flipped_bits, misdirected, stale, zeroed_ranges)
