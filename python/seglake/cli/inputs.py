"""From the names on the command line to something the library reads, and to files that commands write."""

from __future__ import annotations

import os
import select
import stat
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from seglake._values import is_uri

from .failure import Trouble, is_about_one_file, report_status, say, tell, telling_of_existing
from .render import count, exact_size, json_text, printable
from .report import skipped
from .terminal import Advance, byte_progress

if TYPE_CHECKING:
    from seglake import Report
    from seglake._native import ListedSegment
    from seglake.parity import Protected
    from seglake.stores import RemoteFile

STANDARD_INPUT = "-"
_COPY_BYTES = 1 << 20
# How long a signal may go unseen while a pipe is silent.
_SIGNAL_MS = 250


def log_facts(segment: ListedSegment | None) -> dict[str, Any] | None:
    """Which segment of which log it was when the log was listed, ready for JSON."""
    if segment is None:
        return None
    kind = "sealed" if segment.is_sealed else "active"
    unread = segment.unread and segment.unread._asdict()
    facts = {"path": segment.log, "sequence": segment.sequence, "kind": kind, "is_frozen": segment.is_frozen}
    return {**facts, "unread": unread}


@dataclass(frozen=True)
class Input:
    """One file to read. `label` is its name as it was given: escape it before showing it.

    Of a segment of a log `segment` is what is to be read, as it was when the log was listed.
    """

    source: str | BinaryIO
    label: str
    segment: ListedSegment | None = None

    @property
    def path(self) -> str | None:
        """The path or URI, or None where the bytes came from standard input or a pipe."""
        return self.source if isinstance(self.source, str) else None

    @property
    def size(self) -> int:
        """The file's size in bytes now, or how many bytes of a segment of a log are to be read."""
        return self.held_bytes if self.segment is None else self.segment.nbytes

    @property
    def held_bytes(self) -> int:
        """The file's size in bytes now: a segment may have fewer than its log says."""
        if not isinstance(self.source, str):
            return self.source.seek(0, os.SEEK_END)
        if is_uri(self.source):
            return _open_uri(self.source).size
        return os.stat(self.source).st_size  # noqa: PTH116 - no path is made for each of many

    def from_start(self) -> str | BinaryIO | ListedSegment:
        """What to hand to the library, a stream wound back to its beginning."""
        if self.segment is not None:
            return self.segment
        if not isinstance(self.source, str):
            self.source.seek(0)
        return self.source

    @contextmanager
    def bytes(self) -> Generator[Callable[[int, int], bytes]]:
        """What reads the file's bytes by offset and number, for what looks at no format; fewer at the end of a file."""
        if isinstance(self.source, str) and is_uri(self.source):
            yield _open_uri(self.source).read_at
            return
        with Path(self.source).open("rb") if isinstance(self.source, str) else nullcontext(self.source) as content:

            def read_at(offset: int, size: int) -> bytes:
                content.seek(offset)
                return content.read(size)

            yield read_at

    def is_same_file(self, path: str) -> bool:
        """Whether a path on this machine leads to this very file."""
        if not isinstance(self.source, str):
            here = os.fstat(self.source.fileno())
        elif is_uri(self.source):
            return False
        else:
            here = Path(self.source).stat()
        try:
            return os.path.samestat(here, Path(path).stat())
        except OSError:
            return False


@contextmanager
def opened_to_rewrite(
    name: str, *destinations: str | None, spool_limit: int
) -> Generator[tuple[Input, Advance | None]]:
    """A file to read for a command that writes others, and what moves the progress bar.

    Raises:
        Trouble: as `opened` and `check_destination`, and where a file exists that is not to be replaced.
    """
    with (
        opened(name, spool_limit=spool_limit) as file,
        telling_of_existing(),
        byte_progress(PurePath(file.label).name) as advance,
    ):
        for path in destinations:
            if path is not None:
                check_destination(file, path)
        yield file, advance


def check_destination(source: Input, path: str) -> None:
    """Refuse what cannot be written to.

    Raises:
        Trouble: standard output, a URI, a folder, a device, a pipe, or the file that is being read.
    """
    shown = printable(path)
    if path == STANDARD_INPUT:
        raise Trouble("-: expected the path of a file to write, found standard output: a file of this name is ./-")
    if is_uri(path):
        raise Trouble(f"{shown}: only files on this machine are written: name a path, then copy the file there")
    if Path(path).is_dir():
        raise Trouble(f"{shown}: is a folder: name the file to write")
    if Path(path).exists() and not Path(path).is_file():
        raise Trouble(f"{shown}: is a device or a pipe: name the file to write, which would replace it")
    if source.is_same_file(path):
        raise Trouble(f"{shown}: is the file that is being read: name another one")


def tell_written(
    report: Report, source: Input, path: str | None, protected: Protected | None = None, *, as_json: bool
) -> int:
    """Say what was written where, if anything was, and what of the source was skipped; return the exit status."""
    size = 0 if path is None else Path(path).stat().st_size
    if as_json:
        written = None if path is None else {"path": path, "nbytes": size}
        said = {"written": written, "source": {**report.to_dict(), "path": source.path}}
        click.echo(json_text(said if protected is None else {**said, "protected": protected.to_dict()}))
    elif path is None:
        fits = f"{count(report.records, 'record')} can be converted, nothing was written"
        click.echo(f"{printable(source.label)}: {fits}")
    else:
        click.echo(f"{printable(path)}: {count(report.records, 'record')}, {exact_size(size)}")
        if protected is not None:
            sidecar = f"{printable(protected.sidecar)}: {exact_size(protected.sidecar_bytes)}"
            click.echo(f"{sidecar}, a parity sidecar of profile {protected.profile}")
    if not report.ok:
        say(skipped(report, source.label))
    return report_status(report)


def _open_uri(uri: str) -> RemoteFile:
    """Open a file by its URI.

    Raises:
        Trouble: it cannot be opened, by what the library that opens it says.
    """
    from seglake.stores import open_remote

    try:
        return open_remote(uri)
    except ImportError as error:
        raise Trouble(printable(str(error))) from error
    except (ValueError, OSError) as error:
        said = printable((error.strerror if isinstance(error, OSError) else None) or str(error))
        shown = printable(uri)
        raise Trouble(said if said.startswith(shown) else f"{shown}: {said}") from error


@contextmanager
def opened(name: str, *, spool_limit: int, segments: Mapping[str, ListedSegment] | None = None) -> Generator[Input]:
    """What a name stands for: a file or URI as it is, standard input (`-`) or a pipe as a temporary copy.

    Segments are read back and forth, which a pipe cannot do, so its bytes are first written to an unnamed temporary
    file of at most `spool_limit` bytes that goes away at the end of the block. Names among `segments` are these.

    Raises:
        Trouble: a folder, standard input that is a terminal or closed, a pipe of more than `spool_limit` bytes, a URI
            that cannot be opened.
        OSError: the file is not there or cannot be read.
    """
    if segments and name in segments:
        yield Input(name, name, segments[name])
        return
    if is_uri(name):
        # What is wrong with it is said here, once, whatever the library does with it afterwards.
        _open_uri(name)
        yield Input(name, name)
        return
    if name == STANDARD_INPUT:
        with _standard_input(spool_limit) as source:
            yield Input(source, "standard input")
        return
    mode = os.stat(name).st_mode  # noqa: PTH116 - no path is made for each of many
    if stat.S_ISREG(mode):
        yield Input(name, name)
        return
    path = Path(name)
    if stat.S_ISDIR(mode):
        raise Trouble(printable(f"{name}: is a folder: name the files in it, or use a glob such as {path / '*'}"))
    with path.open("rb") as pipe, _spooled(pipe, name, spool_limit) as copy:
        yield Input(copy, name)


def each(
    names: Iterable[str],
    *,
    spool_limit: int,
    action: Callable[[Input], int],
    failed: Callable[[str, Exception], None] | None = None,
    segments: Mapping[str, ListedSegment] | None = None,
) -> int:
    """Run `action` on each file, go on with the next where one cannot be read, and return the worst exit status.

    Args:
        names: files, pipes, or `-`.
        spool_limit: as for `opened`.
        action: what to do with a file; returns the exit status that it deserves.
        failed: called with the name and the error of a file that cannot be read, before it is told.
        segments: as for `opened`.
    """
    worst = 0
    for name in names:
        try:
            with opened(name, spool_limit=spool_limit, segments=segments) as file:
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
            while block := _read_some(stream.fileno(), min(_COPY_BYTES, limit - done + 1)):
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


def _read_some(descriptor: int, size: int) -> bytes:
    """Wait for bytes and return up to `size` of them; none only at the end.

    Python sees to a signal between two calls of the system. One that arrives just before `read` begins would wait as
    long as the pipe is silent, so what waits here returns now and then.
    """
    if sys.platform == "win32":
        # Which polls nothing but sockets.
        return os.read(descriptor, size)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while True:
        while not poll.poll(_SIGNAL_MS):
            pass
        try:
            return os.read(descriptor, size)
        except BlockingIOError:
            # Somebody else who reads this pipe was faster, and has set it not to block.
            continue
