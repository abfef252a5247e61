"""What goes wrong, and warnings. The most common ones are in `seglake`, too."""

from ._errors import (
    ClockAheadWarning,
    ColumnsError,
    DamageError,
    DamageWarning,
    FormatError,
    LimitError,
    OutcomeUnknownError,
    PartialWriteError,
    ReplacedError,
    RowError,
    SeglakeError,
    SegmentGoneError,
    UnreadWarning,
    WrongKeyError,
)
from .lake.result import IngestError

__all__ = [
    "ClockAheadWarning",
    "ColumnsError",
    "DamageError",
    "DamageWarning",
    "FormatError",
    "IngestError",
    "LimitError",
    "OutcomeUnknownError",
    "PartialWriteError",
    "ReplacedError",
    "RowError",
    "SeglakeError",
    "SegmentGoneError",
    "UnreadWarning",
    "WrongKeyError",
]
