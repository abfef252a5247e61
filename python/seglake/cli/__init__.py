"""The command line, one module a command: `application` lists them.

Nothing here knows a format's fields: columns come from a reader's schema, formats from the extension. What takes long
to import (rich, pyspark) is imported by the command that needs it, where it needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["main"]

_INTERRUPTED: Final = 130  # as `failure.Status`, which may not be there yet


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; never raises.

    Args:
        arguments: the words after the program's name; `sys.argv[1:]` where None.

    Returns:
        0 all sound, 1 damage was met, 2 error, 130 interrupted, 141 the reader of the output went away.
    """
    try:
        from .application import run
    except KeyboardInterrupt:
        return _INTERRUPTED
    return run(arguments)
