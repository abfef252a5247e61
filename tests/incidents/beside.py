"""What is not of the file itself: its key, its dialect, its index, its writer, its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from .case import NOT_SEEN, Case, Step
from .harm import flipped
from .samples import KEY, LAST_MONTH, active, chunked, ledger, log, of_random_uuids, oplog, sealed
from .stage import AGAIN, KEPT, several, staged


def keys() -> Iterator[Case]:
    """Files that are read with another key than they were written with."""
    own = partial(
        staged,
        incident="wrong key",
        how="written under a secret key, read with the default one",
        reasons="wrong_key",
        steps=Step.KEY,
        sound=False,
        key=KEY,
    )
    for name, whole in (
        ("sealed", sealed(1500, key=KEY)),
        ("active", active(1500, key=KEY)),
        ("active-short", active(30, key=KEY)),
        ("active-preallocated", active(200, key=KEY, preallocate=1 << 20)),
    ):
        yield own(f"key-{name}", sample=whole, data=whole.data, file=f"payments.{whole.extension}")


def writers() -> Iterator[Case]:
    """Files that are as they were written."""
    whole = oplog(800, dialect="draft-1.1")
    yield staged(
        "dialect-oplog",
        "as written",
        "an oplog of another dialect than the default one",
        whole,
        whole.data,
        "other_dialect",
        Step.DIALECT,
        sound=False,
    )
    whole = of_random_uuids(40)
    yield staged(
        "uuids-active",
        "as written",
        "UUIDs of version 4: checksums are right",
        whole,
        whole.data,
        "as_written",
        (*AGAIN, Step.RECOVER),
        sound=False,
    )
    whole = oplog(600, dialect="draft-1.1", clocks=True)
    at = ledger(whole, options={"dialect": "draft-1.1"})[250][0]
    yield staged(
        "references-oplog",
        "part missing",
        "the beginning is missing, which later messages refer to",
        whole,
        whole.data[at:],
        ("lost_reference", "missing_bytes", "other_dialect"),
        (Step.RESTORE, Step.DIALECT, Step.RECOVER, Step.OTHER),
    )


def indexes() -> Iterator[Case]:
    """Indexes that do not fit their log."""
    own = partial(staged, incident="index", steps=Step.INDEX, sound=False, file="events.chunks")
    whole, older, newer = chunked(4000), chunked(3000, day=LAST_MONTH, seed=4), chunked(6000)
    assert whole.index is not None and older.index is not None and newer.index is not None
    size = len(whole.index)
    for name, how, index in (
        ("of-another", "the index of an older log", older.index),
        ("cut", "the index is cut off", whole.index[: size // 2 + 7]),
        ("zeroed", "half of the index is zeros", whole.index[: size // 2] + bytes(size - size // 2)),
        ("flipped", "a bit of the index is flipped", flipped(whole.index, size // 3, 2)),
        ("empty", "the index is empty", b""),
    ):
        how = f"{how}; the log is sound"
        yield own(
            f"index-{name}",
            how=how,
            sample=whole,
            data=whole.data,
            reasons="stale_index",
            beside={"events.index": index},
        )
    yield own(
        "index-lost",
        how="there is no index beside the log",
        sample=whole,
        data=whole.data,
        reasons="lost_index",
        beside={},
    )
    yield own(
        "index-of-newer",
        how="the log is its backup of an hour before",
        sample=whole,
        data=whole.data,
        reasons="stale_index",
        steps=KEPT,
        beside={"events.index": newer.index},
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
        KEPT,
    )
    yield in_log(
        "log-older-mark",
        "the mark is its backup of an hour before",
        newer | {"_mark": older["_mark"]},
        "older_mark",
        Step.LOG_WRITE,
    )
    yield in_log("log-sound", "a sound log", newer, NOT_SEEN, Step.RESTORE)
    [many] = log((0, 1200), segment_bytes=65_536)
    first, second, third, *_, last = [name for name in many if name[0] != "_"]
    lost = "missing_segment"
    without = {name: data for name, data in many.items() if name != third}
    yield in_log("log-missing-segment", "a segment in the middle is missing", without, lost, KEPT)
    without = {name: data for name, data in many.items() if name != last}
    yield in_log("log-missing-last", "the last segment is missing", without, lost, KEPT)
    [other] = log((300, 800))
    [strange] = [data for name, data in other.items() if name.endswith(".active")]
    yield in_log(
        "log-other-segment",
        "the active segment is another log's",
        newer | {segment: strange},
        "other_segment",
        (Step.RESTORE, Step.OTHER),
    )
    yield in_log(
        "log-other-sealed",
        "a sealed segment holds another one's bytes",
        many | {second: many[third]},
        "other_segment",
        (Step.RESTORE, Step.OTHER),
    )
    yield in_log(
        "log-cut-sealed",
        "a sealed segment was cut off by a copy",
        many | {second: many[second][:32_768]},
        ("truncated", "short_segment"),
        KEPT,
    )
    at = many[first].find(b'"total"', 30_000) + 3
    yield in_log(
        "log-flipped-bit",
        "a bit of a sealed segment",
        many | {first: flipped(many[first], at, 1)},
        "flipped_bit",
        Step.PATCH,
    )


def in_log(
    name: str, how: str, files: dict[str, bytes], reasons: str | Iterable[str], steps: Step | Iterable[Step]
) -> Case:
    """The case of a log."""
    return Case(name, "log", how, "", files, several(reasons), several(steps))


KINDS = (keys, writers, indexes, logs)
