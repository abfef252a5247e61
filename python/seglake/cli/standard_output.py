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


class _Descriptor(FileIO):
    """Where standard output goes. A closed pipe is BrokenPipeError, which is no failure.

    A full pipe is waited for, also one that does not block.
    """

    def write(self, data: Buffer, /) -> int:
        try:
            while (written := super().write(data)) is None:
                select.select((), (self,), ())
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from error
        return written


class _Unbuffered(BufferedWriter):
    """A buffer that keeps nothing: `python -u` has none at all, so that the rest of a short write is lost."""

    def write(self, data: Buffer, /) -> int:
        written = super().write(data)
        self.flush()
        return written


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
    descriptor = _Descriptor(before.fileno(), "w", closefd=False)
    is_buffered = isinstance(buffer, BufferedWriter)  # not with `python -u`
    sys.stdout = TextIOWrapper(
        BufferedWriter(descriptor) if is_buffered else _Unbuffered(descriptor),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=before.line_buffering,
        write_through=before.write_through,
    )
    try:
        yield
    finally:
        sys.stdout = before
