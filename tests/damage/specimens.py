"""The undamaged files, with what they hold and which of their bytes each record needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

import seglake

from .kinds import Surroundings
from .layouts import LAYOUTS, Fields, Identity, Layout
from .messages import START, messages

Range = tuple[int, int]

SMALL = 400
"""Messages of a file that is damaged in every way, and read by the rules as plain code where there is doubt."""


@dataclass(frozen=True)
class Specimen:
    """An undamaged file and what it holds.

    `records` are in the order of the file, their `positions` apart. `needs` are the ranges that must be whole for a
    record to be proven good, in front its own (or its block's, or chunk's), then those that name it elsewhere.
    `strangers` are whole records that may show up without being of this file: those of the file that lay on the same
    sectors before, and those within messages.
    """

    name: str
    layout: Layout
    data: bytes
    records: dict[Identity, Fields]
    positions: dict[Identity, int]
    needs: dict[Identity, tuple[Range, ...]]
    strangers: dict[Identity, Fields]
    surroundings: Surroundings
    index: bytes | None


@cache
def specimen(name: str, count: int = SMALL) -> Specimen:
    """The file of the layout of that name, of so many messages. It is the same in every process."""
    layout = LAYOUTS[name]
    made = list(map(layout.make, messages(count)))
    before = messages(count, start=START - timedelta(days=30), seed=1)
    earlier, _ = layout.encode(map(layout.make, before))
    data, index = layout.encode(made)
    at, records = layout.read(data)
    positions = dict(zip(records, at, strict=True))
    _confirm(name, made, list(records.values()))
    with seglake.open(data, **layout.options) as reader:
        spans = list(reader.ledger())
        blocks = reader.blocks() if layout.format == "tenant" else []
    edges = sorted({edge for span in spans for edge in (span.start, span.end)})
    needs = _needs(layout, len(data), positions, spans, blocks)
    strangers = layout.read(earlier)[1]
    if layout.nested:
        hosts = [*records.values(), *strangers.values()]
        strangers |= {inner: fields for host in hosts for inner, fields in _held_by(layout, host).items()}
    surroundings = Surroundings(
        places=[*edges, *sorted({place for ranges in needs.values() for edges in ranges[1:] for place in edges})],
        earlier=earlier,
        appends=[edge for edge in edges if edge > len(data) // 2] if layout.appended else [0],
    )
    return Specimen(name, layout, data, records, positions, needs, strangers, surroundings, index)


def _confirm(name: str, made: Sequence[Fields], read: Sequence[Fields]) -> None:
    """What is read from the undamaged file must be what was written, or nothing that follows means anything."""
    if len(made) != len(read):
        raise AssertionError(f"{name}: {len(made)} messages written, {len(read)} read")
    for written, found in zip(made, read, strict=True):
        if not _includes(found, written):
            raise AssertionError(f"{name}: written {written}, read {found}")


def _includes(found: Any, written: Any) -> bool:
    """Whether what was read has all that was written; a reader may know more."""
    if isinstance(written, dict):
        return all(_includes(found[name], part) for name, part in written.items())  # pyright: ignore
    if isinstance(written, list):
        return len(found) == len(written) and all(map(_includes, found, written))  # pyright: ignore
    return bool(found == written)


def _held_by(layout: Layout, fields: Fields) -> dict[Identity, Fields]:
    """The records within a message."""
    if seglake.detect(fields["value"]).format != "active":
        return {}
    return layout.read(fields["value"])[1]


def _needs(
    layout: Layout,
    size: int,
    positions: dict[Identity, int],
    spans: Sequence[seglake.Span],
    blocks: Sequence[seglake.types.Block],
) -> dict[Identity, tuple[Range, ...]]:
    match layout.format:
        case "sealed":
            ends = {span.start: span.end for span in spans}
            return {
                identity: ((at, ends[at]), *_of_index(number, size - 32 - 8 * len(positions), checked=layout.checked))
                for number, (identity, at) in enumerate(positions.items())
            }
        case "tenant":
            return _needs_of_tenants(positions, spans, blocks, checked=layout.checked)
        case _:
            ends = {span.start: span.end for span in spans}
            return {identity: ((at, ends[at]),) for identity, at in positions.items()}


def _of_index(number: int, checksums: int, *, checked: bool) -> list[Range]:
    """A message's entry in the index of a sealed segment and its checksum in the trailer, which begins there."""
    entry = (24 * number, 24 * number + 24)
    return [entry, (checksums + 8 * number, checksums + 8 * number + 8)] if checked else [entry]


def _needs_of_tenants(
    positions: dict[Identity, int],
    spans: Sequence[seglake.Span],
    blocks: Sequence[seglake.types.Block],
    *,
    checked: bool,
) -> dict[Identity, tuple[Range, ...]]:
    """A message's block and the block's entry; in version 1, which has neither, its partition's."""
    ends = {span.start: span.end for span in spans if span.kind == "block"}
    entries: dict[Any, tuple[Range, ...]] = {}
    at = 10
    for block in blocks:
        partition, tenant = block.partition, block.tenant_bytes
        begin, end = block.position, ends[block.position]
        if checked:
            entries[partition, tenant] = (begin, end), (at, at + 32 + len(tenant))
            at += 32 + len(tenant)
        elif partition in entries:
            (first, _), entry = entries[partition]
            entries[partition] = (first, end), entry
        else:
            # The number of tenants, four bytes, stands in front of the first block.
            entries[partition] = (begin - 4, end), (at, at + 20)
            at += 20
    return {identity: entries[identity[:2] if checked else identity[0]] for identity in positions}
