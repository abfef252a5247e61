"""The flights as files of each format: one module a format, each with a subclass of `segment.Segment`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from .active import Active
from .chunked import Chunked
from .oplog import Oplog
from .sealed import Sealed
from .segment import Segment
from .tenant import Tenant

__all__ = ["FORMATS", "Segment", "all_segments"]

FORMATS: tuple[type[Segment], ...] = (Active, Sealed, Tenant, Chunked, Oplog)


def all_segments(folder: Path, months: Mapping[str, pa.Table]) -> list[Segment]:
    """Every file below `folder`, made of the messages of each month: format by format, in the order of `FORMATS`."""
    return [segment for each in FORMATS for segment in each.of_months(folder, months)]
