"""Read, write and verify binary log segments: every record checked, every damaged byte accounted for."""

from ._errors import DamageError, DamageWarning, FormatError, LimitError, SeglakeError, WrongKeyError
from ._native import (
    Batch,
    Batches,
    Detection,
    Index,
    Ledger,
    Reader,
    Record,
    Records,
    Recovered,
    Report,
    Schema,
    Writer,
    __version__,
    convert,
    create,
    decode_message,
    decode_system,
    detect,
    encode_message,
    index,
    open,
    recover,
    seal,
    undo_recover,
    uuid6,
    verify,
)
from ._types import Span

__all__ = [
    "Batch",
    "Batches",
    "DamageError",
    "DamageWarning",
    "Detection",
    "FormatError",
    "Index",
    "Ledger",
    "LimitError",
    "Reader",
    "Record",
    "Records",
    "Recovered",
    "Report",
    "Schema",
    "SeglakeError",
    "Span",
    "Writer",
    "WrongKeyError",
    "__version__",
    "convert",
    "create",
    "decode_message",
    "decode_system",
    "detect",
    "encode_message",
    "index",
    "open",
    "recover",
    "seal",
    "undo_recover",
    "uuid6",
    "verify",
]

# Shown, and pickled, under the name by which they are imported.
for _public in (DamageError, DamageWarning, FormatError, LimitError, SeglakeError, Span, WrongKeyError):
    _public.__module__ = __name__
del _public
