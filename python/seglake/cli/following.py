"""`ingest --follow`: run again and again, also after an error that may be over later."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from seglake import IngestResult

__all__ = ["LONGEST_PAUSE_S", "followed"]

_LOOK_S: Final = 2.0
_FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
"""The longest pause between two attempts, in seconds."""


def followed(
    run: Callable[[], IngestResult],
    show: Callable[[IngestResult], object],
    show_error: Callable[[Exception, float], object],
    sleep: Callable[[float], object] = time.sleep,
) -> NoReturn:
    """Runs an ingest again and again, until one ends with an error that cannot pass by itself, which is raised.

    Of results those are shown that have something new, the first one, and the first one after an error. An error that
    may pass is shown when it begins, and when it becomes another one. The pause after it grows from 1 s to 60 s.

    Args:
        run: runs the ingest once.
        show: shows a result.
        show_error: shows an error, with the seconds until the next attempt.
        sleep: waits for so many seconds.
    """
    is_first, shown, pause = True, "", _FIRST_PAUSE_S
    while True:
        try:
            result = run()
        except Exception as error:
            if not _may_pass(error, is_first=is_first):
                raise
            if _kind(error) != shown:
                show_error(error, pause)
            shown = _kind(error)
            sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
            continue
        if is_first or shown or result.run_id is not None:
            show(result)
        is_first, shown, pause = False, "", _FIRST_PAUSE_S
        sleep(_LOOK_S)


def _may_pass(error: Exception, *, is_first: bool) -> bool:
    from seglake.lake.result import can_pass

    # A source that is missing at the first run is probably named wrongly. One that is missing later may come back, as
    # when a file system is mounted again.
    was_never_there = is_first and isinstance(_cause(error), FileNotFoundError)
    return can_pass(error) and not was_never_there and not isinstance(error, BrokenPipeError)


def _cause(error: Exception) -> BaseException:
    return error.__cause__ or error


def _kind(error: Exception) -> str:
    """What makes an error another one. Not all of its text: that may name the run, or count what was tried."""
    if error.__cause__ is None and not isinstance(error, OSError):
        return f"{type(error).__name__} {re.sub(r'[0-9]+', '', str(error))}"
    cause = _cause(error)
    return f"{type(error).__name__} {type(cause).__name__} {getattr(cause, 'errno', None)}"
