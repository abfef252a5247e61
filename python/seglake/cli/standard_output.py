"""Standard output, written whole or with an error that names it, as the errors of files name the file."""

from __future__ import annotations

import select
import sys
from collections.abc import Generator
from contextlib import contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


class OutputError(OSError):
    """Standard output cannot be written to, for example because it is a file on a full disk."""


class _Output(BufferedWriter):
    """The buffer of standard output. A closed pipe is BrokenPipeError, which is no failure.

    A full pipe is waited for, also one that does not block. It is the buffer that waits, not the file below it: what
    is interrupted in a `write` of Python counts as not written, and would be written again.
    """

    def write(self, data: Buffer, /) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest:
            try:
                with _naming_it():
                    super().write(rest)
                break
            except BlockingIOError as full:
                rest = rest[full.characters_written :]
                self._wait()
        return size

    def flush(self) -> None:
        while True:
            try:
                with _naming_it():
                    super().flush()
                break
            except BlockingIOError:
                self._wait()

    def _wait(self) -> None:
        select.select((), (self,), ())


class _Unbuffered(_Output):
    """A buffer that keeps nothing: `python -u` has none at all, so that the rest of a short write is lost."""

    def write(self, data: Buffer, /) -> int:
        written = super().write(data)
        self.flush()
        return written


@contextmanager
def _naming_it() -> Generator[None]:
    try:
        yield
    except (BrokenPipeError, BlockingIOError):
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from error


@contextmanager
def naming_standard_output() -> Generator[None]:
    """Write all of standard output while the block runs, and raise OutputError where that fails.

    Streams that are no file of the system, such as those of notebooks, remain what they are.
    """
    before = sys.stdout
    buffer: object = getattr(before, "buffer", None)
    if not isinstance(before, TextIOWrapper) or type(getattr(buffer, "raw", buffer)) is not FileIO:
        yield
        return
    before.flush()
    output = _Output if isinstance(buffer, BufferedWriter) else _Unbuffered  # `python -u` has no buffer
    sys.stdout = TextIOWrapper(
        output(FileIO(before.fileno(), "w", closefd=False)),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=before.line_buffering,
        write_through=before.write_through,
    )
    try:
        yield
    finally:
        sys.stdout = before
