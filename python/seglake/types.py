"""What functions return, and what that consists of: for annotations. Nothing here has to be made by hand."""

from ._native import Batches, Index, Ledger, Records, Schema
from ._results import Detection, Recovered, Uuids
from ._types import (
    Block,
    Column,
    Diagnosis,
    Edit,
    FormatOption,
    Formats,
    IndexItem,
    LogMark,
    LogRecovery,
    LogSegment,
    LogUnread,
    Neighbour,
    Repair,
    Total,
)
from .lake.result import DamageTotal, FileError, IngestProgress
from .read.scan import Damaged, PassedOver, ScannedFile
from .write.export import Exported

__all__ = [
    "Batches",
    "Block",
    "Column",
    "DamageTotal",
    "Damaged",
    "Detection",
    "Diagnosis",
    "Edit",
    "Exported",
    "FileError",
    "FormatOption",
    "Formats",
    "Index",
    "IndexItem",
    "IngestProgress",
    "Ledger",
    "LogMark",
    "LogRecovery",
    "LogSegment",
    "LogUnread",
    "Neighbour",
    "PassedOver",
    "Records",
    "Recovered",
    "Repair",
    "ScannedFile",
    "Schema",
    "Total",
    "Uuids",
]
