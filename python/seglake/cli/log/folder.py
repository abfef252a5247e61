"""The folder of a log: how it is named and opened, and what opening it put in order."""

from __future__ import annotations

import warnings
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from seglake import _values as values

from .. import options
from ..failure import Trouble, say
from ..render import exact_size, printable

if TYPE_CHECKING:
    from seglake import SegmentLog

__all__ = ["DURATION", "ahead_in_words", "changing", "folder", "opened", "reading", "tell_recovered"]

DURATION = options.Typed(values.duration)
"""A duration such as `90s`."""


folder: options.Option = click.argument("path", metavar="DIR", type=click.Path(exists=True, file_okay=False))
"""`DIR`: the folder of a log that is there."""


def opened(path: str, key: str | None, **how: Any) -> SegmentLog:
    """Open a log to write, or as `how` says."""
    import seglake

    options.check_key(key)
    with warnings.catch_warnings():
        # What commands say in their own words.
        warnings.simplefilter("ignore", seglake.exceptions.ClockAheadWarning)
        return seglake.SegmentLog(path, key=key, **how)


def reading(path: str, key: str | None, *, on_damage: Literal["raise", "skip"] = "raise") -> SegmentLog:
    """Open a log to read.

    Raises:
        Trouble: there is none in the folder.
    """
    from seglake.stores import log_names

    log = opened(path, key, readonly=True, on_damage=on_damage)
    if not log_names(Path(path)):
        raise Trouble(
            f"{printable(path)}: expected a log, found a folder without segments\n"
            "  next      name the folder of a log; `seglake log write DIR` makes one"
        )
    return log


def changing(path: str, key: str | None, **how: Any) -> SegmentLog:
    """Open a log to write that is there: in another folder nothing is made.

    Raises:
        Trouble: there is none in the folder.
    """
    reading(path, key).close()
    return opened(path, key, **how)


def ahead_in_words(ahead: timedelta) -> str:
    """What it means that the last record of a log is ahead of the clock."""
    return f"the last record's time is {ahead} ahead of the clock: records of the present time get times after it"


def tell_recovered(log: SegmentLog, path: str) -> None:
    """Say what opening the log put in order, and whether its times are ahead of the clock."""
    if (ahead := log.clock_ahead) is not None:
        say(f"{printable(path)}: {ahead_in_words(ahead)}")
    for step in log.recovered:
        where = f"{printable(path)}: segment {step.sequence}"
        if step.kind == "torn_tail":
            size = exact_size(step.nbytes or 0)
            say(f"{where}: moved a torn tail of {size} at offset {step.byte_offset} into a file beside it")
        elif step.kind == "frozen":
            say(f"{where}: is damaged and kept as it is, writing goes on in a new one: {printable(step.reason or '')}")
