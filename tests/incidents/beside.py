"""What is not of the file itself: its key, its index, its log."""

from __future__ import annotations

from collections.abc import Iterator

from .case import Case, Step
from .samples import KEY, LAST_MONTH, chunked, log, sealed
from .stage import staged


def keys() -> Iterator[Case]:
    """Files that are read with another key than they were written with."""
    whole = sealed(1500, key=KEY)
    yield staged(
        "key-sealed",
        "wrong key",
        "written under a secret key, read with the default one",
        whole,
        whole.data,
        "wrong_key",
        Step.KEY,
        sound=False,
        file="payments.sealed",
        key=KEY,
    )


def indexes() -> Iterator[Case]:
    """Indexes that do not fit their log."""
    whole, older = chunked(4000), chunked(3000, day=LAST_MONTH, seed=4)
    assert older.index is not None
    yield staged(
        "index-of-another",
        "index",
        "the index of an older log",
        whole,
        whole.data,
        "stale_index",
        Step.INDEX,
        sound=False,
        file="events.chunks",
        beside={"events.index": older.index},
    )


def logs() -> Iterator[Case]:
    """Logs with files of different hours."""
    older, newer = log((0, 500), (500, 900))
    [segment] = [name for name in newer if name.endswith(".active")]
    yield in_log(
        "log-older-segment",
        "the active segment is its backup of an hour before: it ends before the mark",
        newer | {segment: older[segment]},
        ("short_segment", "truncated"),
        (Step.RESTORE, Step.RECOVER),
    )
    yield in_log(
        "log-older-mark",
        "the mark is its backup of an hour before",
        newer | {"_mark": older["_mark"]},
        "older_mark",
        Step.LOG_WRITE,
    )


def in_log(
    name: str, how: str, files: dict[str, bytes], reasons: str | tuple[str, ...], steps: Step | tuple[Step, ...]
) -> Case:
    """The case of a log."""
    right = frozenset([reasons] if isinstance(reasons, str) else reasons)
    return Case(name, "log", how, "", files, right, frozenset([steps] if isinstance(steps, Step) else steps))


KINDS = (keys, indexes, logs)
