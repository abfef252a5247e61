"""Standard output whose errors name it, as the errors of files name the file."""

from __future__ import annotations

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
    """Where standard output goes. A closed pipe is BrokenPipeError, which is no failure."""

    def write(self, data: Buffer, /) -> int | None:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from error


@contextmanager
def naming_standard_output() -> Generator[None]:
    """Raise OutputError while the block runs where standard output cannot be written to.

    Streams that are no file of the system, such as those of notebooks, remain what they are.
    """
    before = sys.stdout
    buffer: object = getattr(before, "buffer", None)
    if not isinstance(before, TextIOWrapper) or type(getattr(buffer, "raw", buffer)) is not FileIO:
        yield
        return
    before.flush()
    descriptor = _Descriptor(before.fileno(), "w", closefd=False)
    sys.stdout = TextIOWrapper(
        BufferedWriter(descriptor) if isinstance(buffer, BufferedWriter) else descriptor,  # the latter with `python -u`
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=before.line_buffering,
        write_through=before.write_through,
    )
    try:
        yield
    finally:
        sys.stdout = before
