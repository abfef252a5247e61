"""What depends on whether a stream is a terminal: colour, width, progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol, TextIO

from seglake._text import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

# Whether bars are shown: two displays at a time would write over one another.
_displaying = False

# Wide enough that nothing is ever cut or wrapped where no person looks at it.
_PIPE_COLUMNS = 100_000


class Advance(Protocol):
    """Moves a progress bar: `done` bytes of `total`, where that is known."""

    def __call__(self, done: int, total: int | None = None) -> None:
        """Move the bar."""
        ...


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at the stream, on something that understands cursor movements."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def is_coloured(stream: TextIO | None) -> bool:
    """Whether to colour what is written to the stream: a terminal, and `NO_COLOR` is not set."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def is_unicode(stream: TextIO) -> bool:
    """Whether the stream can carry characters outside ASCII."""
    return (stream.encoding or "").lower().replace("-", "").startswith("utf")


def console(stream: TextIO) -> Console:
    """A console that interprets no markup, highlights nothing and cuts nothing in a pipe."""
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            # rich's own would end the process with status 1; `failure` has the one answer to this.
            raise BrokenPipeError

    return _Console(
        file=stream,
        color_system="auto" if is_coloured(stream) else None,
        width=None if is_terminal(stream) else _PIPE_COLUMNS,
        markup=False,
        emoji=False,
        highlight=False,
    )


@contextmanager
def progress_display(stream: TextIO, *columns: ProgressColumn) -> Generator[Progress]:
    """Bars on a terminal while the block runs. However it ends, they are gone and the cursor is back."""
    from rich.progress import Progress

    global _displaying
    display = Progress(*columns, console=console(stream), transient=True, redirect_stdout=False, redirect_stderr=False)
    _displaying = True
    try:
        with display:
            yield display
    except KeyboardInterrupt:
        # One that comes before `with` is entered: the cursor may be hidden already, and something be missing of what
        # `stop` takes down.
        display.console.show_cursor()
        with suppress(IndexError):
            display.stop()
        raise
    finally:
        _displaying = False


@contextmanager
def file_progress(total: int) -> Generator[Callable[[], None] | None]:
    """A progress bar in files on standard error while the block runs; None where that is not a terminal."""
    if not is_terminal(sys.stderr):
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with progress_display(sys.stderr, *columns) as progress:
        task = progress.add_task("files", total=total)
        yield lambda: progress.advance(task)


@contextmanager
def byte_progress(label: str) -> Generator[Advance | None]:
    """A progress bar in bytes on standard error while the block runs; None where that is not a terminal, or has one."""
    if _displaying or not is_terminal(sys.stderr):
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    with progress_display(
        sys.stderr,
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    ) as progress:
        task = progress.add_task(printable(label), total=None)

        def advance(done: int, total: int | None = None) -> None:
            progress.update(task, completed=done, total=total)

        yield advance
