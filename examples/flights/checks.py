"""What must hold after the ingest. Each function returns one `Check`; the demo fails if any of them does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa

from .damage import Damage, intact
from .lake import Lake
from .layout import Segment

BYTE_COLUMNS = ("record_bytes", "header_bytes", "padding_bytes", "unused_bytes", "torn_bytes", "corrupt_bytes")


@dataclass(frozen=True)
class Check:
    """A claim, whether it holds, and the numbers it was checked on (or what contradicts it)."""

    claim: str
    holds: bool
    detail: str


def all_checks(folder: Path, segments: list[Segment], damages: Mapping[str, Damage], lake: Lake) -> list[Check]:
    """Hold the ingested tables against the files in `folder` and what is known of how they were made and broken."""
    return [
        every_undamaged_message_arrived(segments, damages, lake.records),
        every_file_is_listed(segments, damages, lake.files),
        every_byte_is_counted(folder, lake.files),
        damage_is_named_exactly(segments, damages, lake.damage),
        damaged_bytes_are_kept(folder, lake.damage),
    ]


def every_undamaged_message_arrived(segments: list[Segment], damages: Mapping[str, Damage], records: pa.Table) -> Check:
    """The ingested records are those written, without those of which a byte was changed; no others, and none twice."""
    written = sum(segment.messages.num_rows for segment in segments)
    lost = sum(len(damages[segment.month].lost) for segment in segments if segment.month in damages)
    expected = expected_records(segments, damages)
    holds = bool(records.select(expected.column_names).cast(expected.schema).equals(expected))
    detail = f"{written:,} written - {lost:,} damaged = {expected.num_rows:,} expected, {records.num_rows:,} arrived"
    return Check("every undamaged flight arrived, unchanged, once", holds, detail)


def every_file_is_listed(segments: list[Segment], damages: Mapping[str, Damage], files: pa.Table) -> Check:
    """`files` has one row for each segment, without an error, and calls exactly the broken ones not ok."""
    found = sorted((Path(row["path"]).name, row["ok"], row["error"]) for row in files.to_pylist())
    expected = sorted((segment.file_name, segment.month not in damages, None) for segment in segments)
    broken = sum(not ok for _, ok, _ in found)
    detail = (
        f"{len(found)} files, {broken} of them damaged" if found == expected else f"expected {expected}, got {found}"
    )
    return Check("every file is listed, and the damaged ones are known", found == expected, detail)


def every_byte_is_counted(folder: Path, files: pa.Table) -> Check:
    """For each file: bytes in records, unused and damaged add up to its size on disk."""
    wrong: list[str] = []
    total = 0
    for row in files.to_pylist():
        size = (folder / Path(row["path"]).name).stat().st_size
        counted = sum(row[column] for column in BYTE_COLUMNS)
        total += counted
        if not size == counted == row["bytes"]:
            wrong.append(f"{row['path']}: {size} on disk, {row['bytes']} reported, {counted} counted")
    return Check("every byte of every file is counted", not wrong, "; ".join(wrong) or f"{total:,} bytes")


def damage_is_named_exactly(segments: list[Segment], damages: Mapping[str, Damage], damage: pa.Table) -> Check:
    """`damage` lists the ranges that were broken, each with its kind and cause, and no others."""
    found = sorted((Path(key[0]).name, *key[1:]) for key, _ in _ranges(damage))
    expected = sorted(
        (segment.file_name, part.start, part.end, part.kind, part.cause)
        for segment in segments
        if segment.month in damages
        for part in damages[segment.month].ranges
    )
    detail = f"{len(found)} ranges" if found == expected else f"expected {expected}, got {found}"
    return Check("the damage found is the damage done, byte for byte", found == expected, detail)


def damaged_bytes_are_kept(folder: Path, damage: pa.Table) -> Check:
    """The raw bytes in `damage` are those that stand in the file."""
    wrong: list[str] = []
    total = 0
    for (path, start, end, *_), parts in _ranges(damage):
        raw = b"".join(part["raw"] for part in parts)
        total += len(raw)
        with (folder / Path(path).name).open("rb") as file:
            file.seek(start)
            if file.read(end - start) != raw:
                wrong.append(f"{path}: bytes {start} to {end} differ from those kept")
    return Check(
        "every damaged byte is kept as it stands in its file", not wrong, "; ".join(wrong) or f"{total:,} bytes"
    )


def expected_records(segments: list[Segment], damages: Mapping[str, Damage]) -> pa.Table:
    """All messages of which no byte was changed, with `uuid` as text, ordered by it."""
    written = pa.concat_tables([segment.messages for segment in segments])
    table = written.filter(pa.array(intact(segments, damages))).combine_chunks()
    text = pa.array([str(UUID(bytes=uuid)) for uuid in table["uuid"].to_pylist()], pa.string())
    return table.set_column(0, "uuid", text).sort_by("uuid")


def _ranges(damage: pa.Table) -> list[tuple[tuple[Any, ...], list[dict[str, Any]]]]:
    """The rows of each damaged range together, in the order of their parts."""
    rows = damage.to_pylist()
    rows.sort(key=lambda row: (row["path"], row["start"], row["part"]))
    by_range = groupby(rows, key=lambda row: (row["path"], row["start"], row["end"], row["kind"], row["cause"]))
    return [(key, list(parts)) for key, parts in by_range]
