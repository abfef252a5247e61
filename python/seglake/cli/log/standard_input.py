"""What `seglake log write` does: it writes the lines of standard input, and says how many whatever happens."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from ..failure import Status, Trouble, describe, say
from ..render import count, exact_size, printable

if TYPE_CHECKING:
    from seglake import SegmentLog

# How much is written at once, and how long it may take to come: lines that come together share a sync.
_BLOCK_BYTES = 8 << 20
_READ_BYTES = 1 << 20
_GATHER_S = 0.05
INPUT = "standard input"

WriteLines = Callable[["SegmentLog", bytes], tuple[int, UUID | None]]
"""Writes whole lines, and returns how many there are and the UUID of the last one."""


class RefusedError(ValueError):
    """A line is not written. Those before it are."""


class LongLineError(RefusedError):
    """A line is longer than allowed."""

    def __init__(self, line_bytes: int) -> None:
        """Say what is allowed."""
        super().__init__(f"expected a line of at most {exact_size(line_bytes)}, found a longer one")


class _Signals:
    """Notes the first SIGINT, SIGTERM or SIGHUP instead of ending. A second one does what it always does.

    `received` is its number, 0 before. `descriptor` can be read from then on, to wait for it: the interpreter writes to
    it when the signal comes, which may be after its last look at signals and before a wait.
    """

    def __init__(self) -> None:
        self.received = 0
        self.descriptor: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Windows cannot wait for a pipe and a signal at once, and other threads get no signals.
        if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
            return self
        self.descriptor, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._wake_before = signal.set_wakeup_fd(self._wake)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # One that is ignored stays so: nohup, and what a shell runs in the background.
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()
        if self.descriptor is not None:
            signal.set_wakeup_fd(self._wake_before)
            os.close(self.descriptor)
            os.close(self._wake)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._restore()
        self.received = number

    def _restore(self) -> None:
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, handler)


class _Lines:
    """Whole lines of standard input as they come, in blocks.

    After a signal these are the lines that are in the pipe by then; `unfinished` is how many bytes of a line without an
    end are left.
    """

    def __init__(self, signals: _Signals, line_bytes: int) -> None:
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise Trouble(f"{INPUT} is closed")
        self.unfinished = 0
        self._descriptor = sys.stdin.fileno()
        self._signals = signals
        self._line_bytes = line_bytes
        self._is_over = False

    def blocks(self) -> Iterator[bytes]:
        """Yield blocks of lines, the last of which may have no line break.

        Raises:
            LongLineError: of a line that is longer there is too much to go on.
        """
        begun: list[bytes] = []
        while not self._is_over:
            data = self._gather()
            end = data.rfind(b"\n") + 1
            if end:
                yield b"".join((*begun, data[:end]))
                begun, self.unfinished = [], 0
            begun.append(data[end:])
            self.unfinished += len(data) - end
            if self.unfinished > self._line_bytes:
                raise LongLineError(self._line_bytes)
        if self.unfinished and not self._signals.received:
            self.unfinished = 0
            yield b"".join(begun)

    def _gather(self) -> bytes:
        """Return what is there, waiting for at least one byte of it, a signal or the end."""
        self._is_ready(None)
        pieces: list[bytes] = []
        size, deadline = 0, time.monotonic() + _GATHER_S
        while size < _BLOCK_BYTES and self._is_ready(0):
            piece = os.read(self._descriptor, _READ_BYTES)
            if not piece:
                self._is_over = True
                break
            pieces.append(piece)
            size += len(piece)
            if self._signals.descriptor is None or time.monotonic() > deadline:
                break
        self._is_over = self._is_over or self._signals.received != 0
        return b"".join(pieces)

    def _is_ready(self, timeout: float | None) -> bool:
        """Whether there is something to read, after waiting for that or a signal at most so long."""
        if self._signals.descriptor is None:
            return True  # reading waits
        ready, _, _ = select.select([self._descriptor, self._signals.descriptor], [], [], timeout)
        return self._descriptor in ready


class _Tally:
    """How many records of this run are in the log."""

    def __init__(self, log: SegmentLog, durability: str) -> None:
        self.written = 0
        self._last = log.synced.last if log.synced is not None else None
        # Up to this record so many are on the disk.
        self._sure = (self._last, 0)
        self._is_sure = durability == "fsync"

    def add(self, written: int, last: UUID | None) -> None:
        """Count records whose write returned."""
        self.written += written
        if self._is_sure and last is not None:
            self._sure = (last, self.written)

    def durable(self, path: str, key: str | None) -> int:
        """Count those that are on the disk in the folder, once the log is closed.

        Opening it again puts in order what the failure left, so that no other record of this run can appear later.

        Raises:
            OSError: the log cannot be opened again.
            seglake.SeglakeError: it is damaged.
        """
        import seglake

        seglake.SegmentLog(path, key=key).close()
        last, sure = self._sure
        with seglake.SegmentLog(path, key=key, readonly=True) as log:
            if log.synced is None:
                return sure
            return sure + sum(1 for _ in log.range(None if last is None else [("uuid", ">", last)]))


def write_input(log: SegmentLog, write: WriteLines, *, key: str | None, durability: str, line_bytes: int) -> int:
    """Write the lines of standard input, close the log, say how many records are in it, and return the exit status.

    Raises:
        Trouble: not all were written. The message says up to which line.
    """
    path = log.path
    tally, error = _Tally(log, durability), None
    with _Signals() as signals:
        lines = _Lines(signals, line_bytes)
        try:
            for block in lines.blocks():
                tally.add(*write(log, block))
        except (Exception, KeyboardInterrupt) as raised:
            error = raised
        try:
            log.close()
        except Exception as raised:
            error = error or raised
    if error is not None:
        raise _failed(error, path, tally, key) from error
    where = f"{printable(path)}: {count(tally.written, 'record')} written"
    if not signals.received:
        say(where)
        return Status.SOUND
    left = f"; {exact_size(lines.unfinished)} of a line without an end left out" if lines.unfinished else ""
    say(f"{signal.Signals(signals.received).name}: {where}{left}")
    return 128 + signals.received


def _failed(error: BaseException, path: str, tally: _Tally, key: str | None) -> BaseException:
    """Say what is in the log after an error, and where to go on."""
    from seglake import SeglakeError

    if not isinstance(error, (SeglakeError, OSError, ValueError, TypeError, KeyboardInterrupt)):
        return error
    what = "interrupted" if isinstance(error, KeyboardInterrupt) else describe(error).split("\n  next ")[0]
    try:
        written = tally.durable(path, key)
    except (SeglakeError, OSError) as unread:
        told = describe(unread).split("\n")[0]
        return Trouble(
            f"{what}\n  written   unknown, since the log cannot be opened again: {told}\n"
            f"  next      put that right, and write what comes after its last record: seglake log tail --from start"
        )
    line = f"{written + 1:,}"
    told = f"  written   {count(written, 'record')}, which are on the disk"
    if isinstance(error, LongLineError):
        what, next = f"{INPUT}: line {line}: {what}", f"raise --line-bytes, and write from line {line} on"
    elif isinstance(error, RefusedError):
        what, next = f"{INPUT}: line {line}: {what}", f"correct line {line}, and write from there on"
    elif isinstance(error, KeyboardInterrupt):
        next = f"write from line {line} of {INPUT} on"
    else:
        next = f"put that right, and write from line {line} of {INPUT} on"
    return Trouble(f"{what}\n{told}\n  next      {next}")
