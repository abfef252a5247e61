"""All cases."""

from __future__ import annotations

from collections.abc import Iterator

from . import beside, copies, disks
from .case import Case

KINDS = (*disks.KINDS, *copies.KINDS, *beside.KINDS)


def cases() -> Iterator[Case]:
    """Every case, those of one incident one after the other."""
    for kind in KINDS:
        yield from kind()
