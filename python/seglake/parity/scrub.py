"""`scrub`: all files of folders verified at a bounded rate, pass after pass, and repaired where that is asked for."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from seglake._errors import DamageError, FormatError, SeglakeError
from seglake._native import Report, repair, verify
from seglake._results import Repaired
from seglake._types import ParityReport
from seglake._values import size
from seglake.stores import FileFilter, SegmentFile, Stores, find_files
from seglake.stores.patterns import owner_of, without_kept
from seglake.write.new_file import new_file

from .by_sidecar import RAW, NotASegmentError, is_sound, verified

if TYPE_CHECKING:
    from seglake._types import OpenOptions

__all__ = ["Scrubbed", "scrub"]

# What a sidecar begins with. ../../docs/formats/parity.md, "Layout".
_MAGIC: Final = b"SLKPRTY1"
# How much of its reading a pass may lose where it is killed.
_NOTE_SECONDS: Final = 1.0
# So long a thread sleeps before a signal may end it; and how far a slow disk may be caught up with.
_NAP_SECONDS: Final = 0.1


class Scrubbed(NamedTuple):
    """What a scrub found in a file.

    Attributes:
        path: the file: relative if it was named so.
        report: what `verify` found, before anything was repaired. None if the file is not a segment, or was not read.
        repaired: what `repair` did. None if there was nothing to repair, or no sidecar to do it from.
        error: why the file, or a folder, was not read, or not repaired.
        parity: what the sidecar says, before anything was repaired. None if there is none.
        skipped: why there was nothing to verify: the file is not a segment and has no sidecar, or it is not a file.

    Example:
        >>> import seglake
        >>> [found.path for found in seglake.scrub("orders.active") if not found.ok]
        []
    """

    path: str
    report: Report | None
    repaired: Repaired | None = None
    error: Exception | None = None
    parity: ParityReport | None = None
    skipped: str | None = None

    @property
    def ok(self) -> bool:
        """Whether file and sidecar were found sound, or there was nothing to verify."""
        if self.error is not None:
            return False
        if self.report is not None:
            return is_sound(self.report)
        return self.parity is None or self.parity.outcome == "sound"

    @property
    def is_mended(self) -> bool:
        """Whether damage was found, and all of it is repaired."""
        return not self.ok and self.repaired is not None and self.repaired.outcome != "lost"


def scrub(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    repair: bool = False,
    rate: int | str | None = None,
    subset: tuple[int, int] | None = None,
    state: str | PathLike[str] | None = None,
    glob: str | Sequence[str] | None = None,
    key: Any = None,
    options: OpenOptions | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> Generator[Scrubbed]:
    """Verifies all files of folders, one after the other in the order of their paths, each with its parity sidecar.

    It is meant to be run by a timer, so that damage is found while it can be repaired. A folder that is a log is read
    as one. What one file has does not stop the others. A file that is not a segment is verified by its sidecar alone,
    and is skipped without one.

    Args:
        paths: folders of this machine, with all below them, and files.
        repair: repair damaged files and sidecars, as `repair` does, where the sidecar allows it. What is damaged is
            then `FILE.damaged`.
        rate: at most so many bytes a second are verified: a number, or text such as "20MiB". Repairing is not held up.
        subset: `(k, n)`, from (1, n) to (n, n): only about the n-th part of the files, by a hash of their paths, so
            that n passes read all. A file stays in its part.
        state: a file that notes how far the pass has come. If the pass is ended early, the next one with the same
            file, folders and subset goes on there, after the last file that was done. Without it each pass begins anew.
        glob: only files whose name matches, such as `*.sealed`; or any of several patterns.
        key: the key of the checksums, as in `verify`.
        options: as in `verify`.
        progress: called now and then with the path, how many bytes of the file are done, and its size.

    Returns:
        What was found in each file, as they are read.

    Raises:
        ValueError: an argument is out of its range, or `state` is of other folders or another subset.
        FileNotFoundError: a path does not exist.
        OSError: `state` cannot be written.

    Example:
        >>> import seglake
        >>> [(found.path, found.ok) for found in seglake.scrub("orders.active")]
        [('orders.active', True)]
    """
    named = [os.fspath(path) for path in ([paths] if isinstance(paths, (str, PathLike)) else paths)]
    folders = without_kept(named)
    if isinstance(rate, str):
        rate = size(rate, 1)
    if not isinstance(cast("Any", rate), int | None):
        raise TypeError(f"rate must be an int or text such as 20MiB, in bytes a second, not {type(rate).__name__}")
    if rate is not None and rate < 1:
        raise ValueError(f"rate is {rate}: it is at least 1, in bytes a second")
    match subset:
        case None:
            pass
        case (int(k), int(n)) if 1 <= k <= n:
            pass
        case _:
            raise ValueError(f"subset is {subset}: it is (k, n), with k from 1 to n")
    # Opened by absolute paths, as the working folder may change meanwhile, and shown as they were named.
    here, absolute = os.path.join(os.getcwd(), ""), tuple(filter(os.path.isabs, named))  # noqa: PTH109, PTH118

    def shown(path: str) -> str:
        return path if path.startswith(absolute) else path.removeprefix(here)

    for path in named:
        os.stat(path)  # noqa: PTH116 - the path is shown as it was given
    noted = None if state is None else _State.load(os.fspath(state), folders, subset)
    if noted is not None:
        noted.write()  # a pass of hours is not to end with that it cannot be
    given = {"key": key, "options": options}
    chosen = FileFilter(recursive=True, name_pattern=glob, goes_on=True)
    return _Scrub(folders, chosen, subset, noted, _Pace(rate), {**given, "repair": repair}, progress, shown).run()


@dataclass
class _State:
    """How far a pass has come, in a file."""

    path: str
    folders: list[str]
    subset: list[int] | None
    after: str | None
    noted: float = field(default_factory=time.monotonic)

    @classmethod
    def load(cls, path: str, folders: list[str], subset: tuple[int, int] | None) -> _State:
        own = cls(
            path, [str(Path(folder).absolute()) for folder in folders], None if subset is None else [*subset], None
        )
        try:
            # Opening a pipe would wait for who writes into it.
            content: Any = json.loads(Path(path).read_bytes()) if stat.S_ISREG(os.stat(path).st_mode) else None  # noqa: PTH116
        except FileNotFoundError:
            return own
        except (ValueError, RecursionError):
            content = None
        found = cls._from_json(path, content)
        if found is None:
            raise ValueError(f"{path}: expected how far a scrub has come, found another file. Name another one")
        if (found.folders, found.subset) != (own.folders, own.subset) and found.after is not None:
            raise ValueError(
                f"{path}: expected how far a pass over {_named(own.folders, own.subset)} has come, found one over "
                f"{_named(found.folders, found.subset)} that is not finished. Finish that, name another file, or "
                "delete this one"
            )
        own.after = found.after
        return own

    @classmethod
    def _from_json(cls, path: str, content: Any) -> _State | None:
        """Reads what `write` wrote; None if it did not."""
        match content:
            case {"version": 1, "folders": [*folders], "subset": None | [int(), int()] as subset, "after": after}:
                texts: list[Any] = [*folders, "" if after is None else after]
                if not all(isinstance(text, str) and _is_path(text) for text in texts):
                    return None
                return cls(path, texts[:-1], None if subset is None else list(subset), after)
            case _:
                return None

    def note(self, after: str | None, *, now: bool) -> None:
        """Notes that all files up to this one are done; None if the pass is finished."""
        self.after = after
        if now or time.monotonic() - self.noted >= _NOTE_SECONDS:
            self.write()

    def write(self) -> None:
        self.noted = time.monotonic()
        content = {"version": 1, "folders": self.folders, "subset": self.subset, "after": self.after}
        with new_file(self.path, replace=True) as file:
            file.write(json.dumps(content).encode() + b"\n")


def _is_sidecar(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return owner_of(path) is not None and file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _is_sealed(path: str | None) -> bool:
    """Whether an active segment is there as a sealed one by now."""
    stem, _, extension = (path or "").rpartition(".")
    return extension == "active" and os.path.lexists(f"{stem}.sealed")


def _alone(path: str) -> FormatError:
    """A sidecar is listed only where what it restores is not: that was deleted or renamed. Or it is named alone."""
    if os.path.lexists(owner_of(path) or ""):
        return FormatError("it is a parity sidecar: name the file that it is for", path=path)
    return FormatError(
        f"expected {owner_of(path)}, which this sidecar is of, found no such file",
        path=path,
        next="restore it from a copy, or rename or remove the sidecar as that was",
    )


def _is_path(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def _named(folders: list[str], subset: list[int] | None) -> str:
    part = "" if subset is None else f" (part {subset[0]} of {subset[1]})"
    return f"{', '.join(folders)}{part}"


class _Pace:
    """Sleeps where more bytes were read than a rate allows."""

    def __init__(self, rate: int | None) -> None:
        self._rate = rate
        self._due = time.monotonic()

    def keep(self, nbytes: int) -> None:
        """Says that so many bytes more were read."""
        if self._rate is None:
            return
        # A pause before these is no reason to read faster than allowed now.
        self._due = max(self._due, time.monotonic() - _NAP_SECONDS) + nbytes / self._rate
        while (left := self._due - time.monotonic()) > 0:
            time.sleep(min(left, _NAP_SECONDS))


@dataclass
class _Scrub:
    folders: list[str]
    chosen: FileFilter
    subset: tuple[int, int] | None
    state: _State | None
    pace: _Pace
    how: dict[str, Any]
    progress: Callable[[str, int, int], object] | None
    shown: Callable[[str], str]

    def run(self) -> Generator[Scrubbed]:
        try:
            for each in self._all():
                yield each._replace(path=self.shown(each.path))
        finally:
            if self.state is not None:
                self.state.write()

    def _all(self) -> Generator[Scrubbed]:
        listing = find_files(self.folders, self.chosen, Stores(), key=self.how["key"])
        for error in listing.not_listed:
            name = getattr(error, "filename", None) or getattr(error, "path", None) or self.folders[0]
            yield Scrubbed(os.fsdecode(name), None, error=error)
        for path, reason in listing.skipped:
            yield Scrubbed(path, None, skipped=reason)
        for unread in listing.unread:
            yield Scrubbed(unread.path, None, error=FormatError(unread.reason, path=unread.path))
        for file in sorted(listing.files, key=lambda file: os.fsencode(file.path)):
            if not self._is_due(file):
                continue
            yield self._scrubbed(file)
            if self.state is not None:
                self.state.note(file.path, now=False)
        if self.state is not None:
            self.state.note(None, now=True)

    def _is_due(self, file: SegmentFile) -> bool:
        if self.state is not None and Path(file.path).absolute() == Path(self.state.path).absolute():
            return False
        if self.subset is not None:
            k, n = self.subset
            digest = blake2b(os.fsencode(file.path), digest_size=8).digest()
            if int.from_bytes(digest, "little") % n != k - 1:
                return False
        after = None if self.state is None else self.state.after
        return after is None or os.fsencode(file.path) > os.fsencode(after)

    def _scrubbed(self, file: SegmentFile) -> Scrubbed:
        before = 0

        def advance(done: int, total: int) -> None:
            nonlocal before
            if self.progress is not None:
                self.progress(self.shown(file.path), done, total)
            self.pace.keep(max(done - before, 0))
            before = done

        arguments = {name: self.how[name] for name in ("key", "options")}
        try:
            found = self._verified(file, arguments, advance)
        except NotASegmentError:
            if not _is_sidecar(file.path):
                return Scrubbed(file.path, None, skipped="it is not a segment, and has no sidecar")
            if _is_sealed(owner_of(file.path)):
                return Scrubbed(file.path, None, skipped="it is left of a segment that was sealed")
            return Scrubbed(file.path, None, error=_alone(file.path))
        except (SeglakeError, OSError) as error:
            # As a log does with the sidecar of its active segment, when that is sealed.
            if owner_of(file.path) is not None and not os.path.lexists(file.path):
                return Scrubbed(file.path, None, skipped="it was removed since its folder was listed")
            return Scrubbed(file.path, None, error=error)
        said = found.parity
        if found.ok or not self.how["repair"] or said is None or said.outcome in ("sound", "refused"):
            return found
        is_raw: dict[str, Any] = {"format": RAW} if found.report is None else {}
        try:
            return found._replace(repaired=repair(file.path, **arguments, **is_raw))
        except (DamageError, SeglakeError, ValueError, OSError) as error:
            return found._replace(error=error)

    def _verified(self, file: SegmentFile, arguments: dict[str, Any], advance: Callable[[int, int], None]) -> Scrubbed:
        """Verifies a file by its format, or one that is not a segment by its sidecar alone.

        Raises:
            NotASegmentError: there is nothing to verify it by.
            SeglakeError, OSError: it cannot be read.
        """
        if file.segment is None:
            found = verified(lambda: file.path, explain=0, threads=1, progress=advance, **arguments)
        else:
            found = verify(file.segment, explain=0, threads=1, progress=advance, **arguments)
        if isinstance(found, Report):
            return Scrubbed(file.path, found, parity=found.parity)
        return Scrubbed(file.path, None, parity=found)
