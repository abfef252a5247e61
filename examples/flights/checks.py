"""What must hold for a format after the ingest. Each function returns one `Check`; the demo fails if any does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from .formats import Segment
from .lake import Lake

BYTE_COLUMNS = ("record_bytes", "header_bytes", "padding_bytes", "unused_bytes", "torn_bytes", "corrupt_bytes")


@dataclass(frozen=True)
class Check:
    """A claim about one format, whether it holds, and the number it was checked on (or what contradicts it)."""

    claim: str
    holds: bool
    detail: str


def all_checks(segments: Sequence[Segment], lake: Lake) -> list[Check]:
    """Hold a format's tables against its files, and against what is known of how they were made and broken."""
    segments = sorted(segments, key=lambda segment: segment.path)
    return [
        every_undamaged_message_arrived(segments, lake.records),
        every_file_is_listed(segments, lake.files),
        every_byte_is_counted(lake.files),
        damage_is_named_exactly(segments, lake.damage),
        damaged_bytes_are_kept(lake.damage),
    ]


def every_undamaged_message_arrived(segments: Sequence[Segment], records: pa.Table) -> Check:
    """The ingested records are those written, without those that are lost; no others, none twice, in their order."""
    expected = pa.concat_tables([segment.records.select(segment.columns) for segment in segments])
    arrived = records.select(expected.column_names).cast(expected.schema)
    by_file = {Path(str(path)).name: count for path, count in Counter(records["path"].to_pylist()).items()}
    holds = bool(arrived.equals(expected)) and by_file == {s.path.name: s.records.num_rows for s in segments}
    detail = f"{records.num_rows:,}" if holds else f"{expected.num_rows:,} expected, {records.num_rows:,} arrived"
    return Check("every undamaged message arrived, unchanged, once", holds, detail)


def every_file_is_listed(segments: Sequence[Segment], files: pa.Table) -> Check:
    """`files` has one row for each file, without an error, and calls exactly the broken ones damaged."""
    found = [(Path(row["path"]).name, row["status"], row["error"]) for row in files.to_pylist()]
    expected = [(segment.path.name, "sound" if segment.damage is None else "damaged", None) for segment in segments]
    detail = f"{len(found)}" if found == expected else f"expected {expected}, got {found}"
    return Check("every file is listed, and the damaged ones are known", found == expected, detail)


def every_byte_is_counted(files: pa.Table) -> Check:
    """For each file: bytes in records, headers and padding, unused and damaged ones add up to its size on disk."""
    wrong: list[str] = []
    total = 0
    for row in files.to_pylist():
        size = Path(row["path"]).stat().st_size
        counted = sum(row[column] for column in BYTE_COLUMNS)
        total += counted
        if not size == counted == row["nbytes"]:
            wrong.append(f"{row['path']}: {size} on disk, {row['nbytes']} reported, {counted} counted")
    return Check("every byte of every file is counted", not wrong, "; ".join(wrong) or f"{total:,}")


def damage_is_named_exactly(segments: Sequence[Segment], damage: pa.Table) -> Check:
    """`damage` lists the ranges that were broken, each with its kind and cause, and no others."""
    found = [(Path(path).name, *rest) for (path, *rest), _ in _ranges(damage)]
    expected = [
        (segment.path.name, part.start, part.end, part.kind, part.cause)
        for segment in segments
        if segment.damage
        for part in segment.damage.ranges
    ]
    detail = f"{len(found)}" if found == expected else f"expected {expected}, got {found}"
    return Check("the damage found is the damage done, byte for byte", found == expected, detail)


def damaged_bytes_are_kept(damage: pa.Table) -> Check:
    """The raw bytes in `damage` are those that stand in the file."""
    wrong: list[str] = []
    total = 0
    for (path, start, end, *_), parts in _ranges(damage):
        raw = b"".join(part["raw"] for part in parts)
        total += len(raw)
        with Path(path).open("rb") as file:
            file.seek(start)
            if file.read(end - start) != raw:
                wrong.append(f"{path}: bytes {start} to {end} differ from those kept")
    return Check("every damaged byte is kept as it stands in its file", not wrong, "; ".join(wrong) or f"{total:,}")


def _ranges(damage: pa.Table) -> list[tuple[tuple[Any, ...], list[dict[str, Any]]]]:
    """The rows of each damaged range together, in the order of their parts."""
    by_range = groupby(
        damage.to_pylist(), key=lambda row: (row["path"], row["start"], row["end"], row["kind"], row["cause"])
    )
    return [(key, list(parts)) for key, parts in by_range]
