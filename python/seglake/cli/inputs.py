"""From the names on the command line to something the library reads."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .escape import printable
from .failure import Trouble, is_about_one_file, tell
from .terminal import byte_progress

STANDARD_INPUT = "-"
_COPY_BYTES = 1 << 20


@dataclass(frozen=True)
class Input:
    """One file to read. `label` is its name as it was given: escape it before showing it."""

    source: str | BinaryIO
    label: str

    @property
    def path(self) -> str | None:
        """The path, or None where the bytes came from standard input or a pipe."""
        return self.source if isinstance(self.source, str) else None

    @property
    def size(self) -> int:
        """The file's size in bytes now."""
        if isinstance(self.source, str):
            return Path(self.source).stat().st_size
        return self.source.seek(0, os.SEEK_END)

    def from_start(self) -> str | BinaryIO:
        """What to hand to the library, a stream wound back to its beginning."""
        if not isinstance(self.source, str):
            self.source.seek(0)
        return self.source


@contextmanager
def opened(name: str, *, spool_limit: int) -> Generator[Input]:
    """What a name stands for: a regular file as it is, standard input (`-`) or a pipe as a temporary copy.

    Segments are read back and forth, which a pipe cannot do, so its bytes are first written to an unnamed temporary
    file of at most `spool_limit` bytes that goes away at the end of the block.

    Raises:
        Trouble: a folder, standard input that is a terminal or closed, a pipe of more than `spool_limit` bytes.
        OSError: the file is not there or cannot be read.
    """
    if name == STANDARD_INPUT:
        with _standard_input(spool_limit) as source:
            yield Input(source, "standard input")
        return
    path = Path(name)
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise Trouble(printable(f"{name}: is a folder: name the files in it, or use a glob such as {path / '*'}"))
    if stat.S_ISREG(mode):
        yield Input(name, name)
        return
    with path.open("rb") as pipe, _spooled(pipe, name, spool_limit) as copy:
        yield Input(copy, name)


def each(
    names: Iterable[str],
    *,
    spool_limit: int,
    action: Callable[[Input], int],
    failed: Callable[[str, Exception], None] | None = None,
) -> int:
    """Run `action` on each file, go on with the next where one cannot be read, and return the worst exit status.

    Args:
        names: files, pipes, or `-`.
        spool_limit: as for `opened`.
        action: what to do with a file; returns the exit status that it deserves.
        failed: called with the name and the error of a file that cannot be read, before it is told.
    """
    worst = 0
    for name in names:
        try:
            with opened(name, spool_limit=spool_limit) as file:
                status = action(file)
        except Exception as error:
            if not is_about_one_file(error):
                raise
            if failed is not None:
                failed(name, error)
            status = tell(error, label="standard input" if name == STANDARD_INPUT else name)
        worst = max(worst, status)
    return worst


@contextmanager
def _standard_input(spool_limit: int) -> Generator[BinaryIO]:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise Trouble("standard input is closed")
    if sys.stdin.isatty():
        raise Trouble("standard input is a terminal: send a file into it, as in `seglake verify - < FILE`")
    stream = sys.stdin.buffer
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) and stream.tell() == 0:
        yield stream
        return
    with _spooled(stream, "standard input", spool_limit) as copy:
        yield copy


@contextmanager
def _spooled(stream: BinaryIO, label: str, limit: int) -> Generator[BinaryIO]:
    with tempfile.TemporaryFile(prefix="seglake-") as copy:
        with byte_progress(f"copying {label}") as advance:
            done = 0
            # One byte more than allowed is enough to tell.
            while block := stream.read(min(_COPY_BYTES, limit - done + 1)):
                done += len(block)
                if done > limit:
                    raise Trouble(
                        f"{printable(label)}: more than {limit:,} bytes, the most that is copied to a temporary file: "
                        "raise it with --spool-limit, or save the bytes to a file and name that"
                    )
                try:
                    copy.write(block)
                except OSError as error:
                    raise Trouble(
                        f"{printable(label)}: no temporary copy in {tempfile.gettempdir()}: {error.strerror}: "
                        "let TMPDIR name a folder with more room, or save the bytes to a file and name that"
                    ) from error
                if advance is not None:
                    advance(done)
        copy.seek(0)
        yield copy
