"""What an interrupt does while the command line starts: it ends the program as the system does, without a traceback.

The package is imported before the command line can say anything, which takes a third of a second. Programs that import
the library get KeyboardInterrupt as they always do.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import PurePath

_quiet = False


def _is_command_line() -> bool:
    """Tells whether this process is `seglake` or `python -m seglake`."""
    if sys.argv[:1] == ["-m"]:
        # As it is while Python looks for the module that it is to run.
        return ("-m", "seglake") in zip(sys.orig_argv, sys.orig_argv[1:], strict=False)
    return bool(sys.argv) and PurePath(sys.argv[0]).stem == "seglake"


def begin() -> None:
    """Let an interrupt end the process from here on, if it is the command line."""
    global _quiet
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and _is_command_line() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _quiet = True


def end() -> None:
    """Let an interrupt raise KeyboardInterrupt again."""
    global _quiet
    if _quiet:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _quiet = False


begin()
