"""What a terminal shows while an ingest runs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.measure import Measurement
from rich.progress import ProgressColumn
from rich.spinner import Spinner
from rich.text import Text

from .render import count, size
from .terminal import progress_display

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.progress import Task

    from seglake.types import IngestProgress

__all__ = ["ingest_progress"]


@contextmanager
def ingest_progress(stream: TextIO, beginning: str) -> Generator[Callable[[IngestProgress], None]]:
    """A display of the progress on a terminal while the block runs.

    Args:
        stream: the terminal.
        beginning: what is done before files are read.
    """
    with progress_display(stream, _Line()) as display:
        task = display.add_task("", total=None, parts=beginning.split(), separator=" ")

        def advance(now: IngestProgress) -> None:
            found = [
                f"{now.files_done:,} of {count(now.files_total, 'file')}",
                count(now.records, "record"),
                *([count(now.damage, "damaged range")] if now.damage else []),
            ]
            display.update(task, completed=now.bytes_done, total=now.bytes_total, parts=found, separator=", ")

        yield advance


class _Line(ProgressColumn):
    """All that is known, in as many lines as it takes."""

    def __init__(self) -> None:
        super().__init__()
        self._spinner = Spinner("dots")

    def render(self, task: Task) -> _Flowing:
        """Returns what is shown."""
        spinner = self._spinner.render(task.get_time())
        parts = [*_speed(task), *task.fields["parts"]]
        return _Flowing(spinner if isinstance(spinner, Text) else Text(), parts, task.fields["separator"])


def _speed(task: Task) -> list[str]:
    """How many bytes are done, how fast they are read, and how long the rest takes, as far as that is known."""
    if not task.total:
        return []
    parts = [f"{size(int(task.completed))} of {size(int(task.total))}"]
    speed, left = task.finished_speed or task.speed, task.time_remaining
    if speed:
        parts.append(f"{size(int(speed))}/s")
    if left:
        minutes, seconds = divmod(int(left), 60)
        hours, minutes = divmod(minutes, 60)
        parts.append(f"{hours}:{minutes:02}:{seconds:02} left")
    return parts


class _Flowing:
    """Parts that are never broken, in lines that fit."""

    def __init__(self, spinner: Text, parts: Sequence[str], separator: str) -> None:
        self._spinner = spinner
        self._parts = parts
        self._separator = separator

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Generator[Text]:
        line = Text.assemble(self._spinner, " ", no_wrap=True, overflow="ellipsis")
        is_empty = True
        for number, part in enumerate(self._parts):
            is_last = number == len(self._parts) - 1
            whole = part if is_last else part + self._separator
            if not is_empty and line.cell_len + len(whole.rstrip()) > options.max_width:
                yield line
                line = Text("  ", no_wrap=True, overflow="ellipsis")
            line.append(whole)
            is_empty = False
        yield line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(options.max_width, options.max_width)
