"""Read, write and verify binary log segments: every record checked, every damaged byte accounted for."""

import sys

from . import _starting, oplog
from . import _unclosed as _unclosed
from ._errors import DamageError, FormatError, SeglakeError, WrongKeyError
from ._native import (
    Batch,
    Reader,
    Record,
    Report,
    SegmentLog,
    Tail,
    Writer,
    __version__,
    convert,
    create,
    detect,
    formats,
    index,
    open,
    protect,
    recover,
    repair,
    seal,
    undo_recover,
    uuid6,
    verify,
)
from ._types import Format, Span
from .lake import ingest
from .lake.result import IngestResult
from .parity.scrub import scrub
from .read.scan import Scan, scan
from .write.export import export

from . import exceptions, incremental, parity, types  # isort: skip: they gather what the others define

__all__ = [
    "Batch",
    "DamageError",
    "Format",
    "FormatError",
    "IngestResult",
    "Reader",
    "Record",
    "Report",
    "Scan",
    "SeglakeError",
    "SegmentLog",
    "Span",
    "Tail",
    "Writer",
    "WrongKeyError",
    "__version__",
    "convert",
    "create",
    "detect",
    "exceptions",
    "export",
    "formats",
    "incremental",
    "index",
    "ingest",
    "open",
    "oplog",
    "parity",
    "protect",
    "recover",
    "repair",
    "scan",
    "scrub",
    "seal",
    "types",
    "undo_recover",
    "uuid6",
    "verify",
]


def _name_classes() -> None:
    """Has classes shown, and pickled, under the name by which they are imported."""
    for module in (exceptions, incremental, parity, types, sys.modules[__name__]):
        for name in module.__all__:
            public = getattr(module, name)
            if isinstance(public, type) and public.__module__ != module.__name__:
                public.__module__ = module.__name__


_name_classes()
_starting.end()
