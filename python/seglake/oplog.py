"""Single messages of oplogs, as a database or a queue holds them: decoded into records, and encoded from fields.

Example:
    >>> from seglake import oplog
    >>> fields = {"version": 1, "checkpointer": 1, "clock": [], "abi": 0, "batch": 1, "value": b"v"}
    >>> oplog.decode(oplog.encode(fields)).value
    b'v'
"""

from ._native import decode_message as decode
from ._native import decode_system
from ._native import encode_message as encode
from ._types import System

__all__ = ["System", "decode", "decode_system", "encode"]

# Shown, and pickled, under the name by which it is imported.
System.__module__ = __name__
