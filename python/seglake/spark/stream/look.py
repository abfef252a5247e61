"""What a file of a stream grew by, and in which file it is by now."""

from __future__ import annotations

import errno
import json
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import seglake
from seglake.incremental import Position
from seglake.parity.by_sidecar import listed_size
from seglake.read.formats import FormatOptions, column_names, grows
from seglake.stores import SegmentFile, find_files
from seglake.tracking.tasks import Growth

if TYPE_CHECKING:
    from ..options import ReadOptions

__all__ = ["Grown", "Look", "NoRoomError", "alike", "check_read", "open_growth", "replaced_while_read"]

_CHUNK: Final = 1 << 20
# How often files are listed to find one that was renamed.
_LISTINGS: Final = 3


class NoRoomError(Exception):
    """A complete file is larger than a batch has room for."""


class Grown(NamedTuple):
    """What a file grew by.

    Attributes:
        position: where to go on.
        nbytes: about how many bytes were read.
        found: whether there were records or damage.
        is_all: whether that is all that the file has.
        pending_bytes: how many bytes the file has after that which are not finished, where that is all.
    """

    position: Position
    nbytes: int
    found: bool
    is_all: bool
    pending_bytes: int = 0


@dataclass(frozen=True)
class Look:
    """Looks at files on the driver: how far each can be read.

    Attributes:
        options: what the stream was asked for.
        format: a format that has the columns of the stream.
    """

    options: ReadOptions
    format: str

    def identity(self, file: SegmentFile) -> str | None:
        """Returns what identifies a file; None as long as it has no sound record.

        Raises:
            FileNotFoundError: it is gone since it was listed.
            seglake.FormatError: its format cannot be told.
        """
        try:
            now, size = self.options.stores.now(file.path), self._size(file)
            return seglake.incremental.identity(now, size=size, sidecar=self.options.sidecar, **self._arguments())
        except seglake.FormatError:
            if self._may_begin_later(file):
                return None
            raise

    def grown(
        self, file: SegmentFile, position: Position | None, most_bytes: int | None = None, *, is_first: bool = True
    ) -> Grown | None:
        """Finds out what a file grew by since a position. None if it has not begun.

        A file that may grow is read for that, as only verified records tell where it ends: of a chunked file the
        headers and the last chunk. A complete file is not.

        Args:
            file: the file, as it was listed: no more of it is read.
            position: where to go on.
            most_bytes: the most bytes to read, unless one record has more. A complete file is read whole or not at all.
            is_first: whether it is read in any case, the batch having nothing yet.

        Raises:
            NoRoomError: it is a complete file that is not to be read in any case, and has more bytes.
            FileNotFoundError: it is gone since it was listed.
            seglake.exceptions.ReplacedError: it is not the file of the position.
            seglake.FormatError: its format cannot be told, or has other columns than the stream.
            seglake.WrongKeyError: the key is probably not that of the file.
        """
        file = file._replace(size=self._size(file))
        try:
            reader = self._resumed(file.path, position, file.size)
        except seglake.FormatError:
            if position is None and self._may_begin_later(file):
                return None
            raise
        self._check_format(reader)
        start = position.byte_offset if position is not None and position.format == reader.format else 0
        most = file.size
        if most_bytes is not None:
            if grows(reader.format):
                most = min(most, start + most_bytes)
            elif not is_first and file.size > most_bytes:
                raise NoRoomError
        if position is None and reader.parity_refused is None:
            # The tasks verify a complete file. Its first record is sound, so the key is right.
            end = reader.position_after_all()
            if end is not None:
                reader.close()
                return Grown(end, file.size, found=True, is_all=True)
        is_opened = most == file.size
        while True:
            if not is_opened:
                reader.close()
                reader = self._resumed(file.path, position, most)
            grown = self._passed(file, reader, start, is_all=most >= file.size)
            if grown.is_all or grown.found:
                return grown
            most = min(file.size, start + 2 * (most - start))
            is_opened = False

    def contains(self, file: SegmentFile, other: SegmentFile) -> bool:
        """Tells whether all that a file has is in another one, too: it is a copy, or less was written to it."""
        end = self._passed(file, self._resumed(file.path, None, file.size), 0, is_all=True).position
        try:
            self._resumed(other.path, end, other.size)
        except (seglake.exceptions.ReplacedError, FileNotFoundError):
            return False
        return True

    def waiting_damage(self, file: SegmentFile, position: Position) -> seglake.DamageError | None:
        """Returns the damage at a position if records follow it. Only of an oplog, without checksums, none is read."""
        with self._resumed(file.path, position, file.size, final=True) as reader:
            batches = reader.batches(warn=False)
            records = sum(batch.num_rows for batch in batches)
            if not records or not batches.report.damage:
                return None
            first = batches.report.damage[0]
        return seglake.DamageError(
            path=file.path,
            byte_offset=first.start,
            cause=first.cause or "corrupt",
            expected="a message, or the end of the file",
            actual=f"{first.end - first.start} damaged bytes, and messages after them",
            next="The stream waits there, as without checksums nobody knows what these messages are. Restore the file. "
            "Or load it in mode PERMISSIVE, which gives them, and move it elsewhere",
        )

    def _size(self, file: SegmentFile) -> int:
        """Returns up to where a file is read: what was cut off of one that a sidecar restores counts as listed."""
        now = self.options.stores.now(file.path)
        return listed_size(now, file.size, self.options.sidecar) if isinstance(now, str) else file.size

    def _resumed(self, path: str, position: Position | None, size: int, *, final: bool = False) -> seglake.Reader:
        columns: Any = {"columns": ["position"], "on_damage": "skip", "sidecar": self.options.sidecar}
        source = self.options.stores.now(path)
        own = self._arguments()
        reader = seglake.incremental.resume(
            source, position, size=size, final=final, only_end=not final, **columns, **own
        )
        is_sealed_now = position is not None and grows(position.format) and not grows(reader.format)
        if position is not None and is_sealed_now and not self._has(source, reader.format, position):
            # It goes on by the UUID, which says nothing of a file that has less.
            reader.close()
            raise _no_record(path, position)
        return reader

    def has_record(self, file: SegmentFile, position: Position) -> bool:
        """Tells whether a file has the last record that was read up to a position, wherever that is in it."""
        source = self.options.stores.now(file.path)
        return self._has(source, self.options.segment_format, position)

    def _has(self, source: Any, format: str | None, position: Position) -> bool:
        return _has_record(
            source, position, {"key": self.options.read_key, "format": format, "sidecar": self.options.sidecar}
        )

    def _passed(self, file: SegmentFile, reader: seglake.Reader, start: int, *, is_all: bool) -> Grown:
        with reader:
            # The tasks that read it report the damage.
            records = sum(batch.num_rows for batch in reader.batches(warn=False))
            report, position = reader.report, reader.position
            pending_bytes = (reader.pending_bytes or 0) if is_all else 0
        if report.wrong_key:
            raise seglake.WrongKeyError(
                path=file.path,
                byte_offset=start,
                cause="checksum_mismatch",
                expected="checksums made with the key given",
                actual="no checksum that agrees with it",
                next="Give the right key with option keyFile or secretKey",
            )
        assert position is not None
        nbytes = position.byte_offset - start if grows(reader.format) else file.size
        return Grown(position, nbytes, bool(records or report.damage), is_all, pending_bytes)

    def _check_format(self, reader: seglake.Reader) -> None:
        if reader.format not in alike(self.format, self.options.format_options):
            raise seglake.FormatError(
                f"this is a {reader.format} file, and the stream has the columns of {self.format} files",
                path=reader.path,
                next="Stream one format at a time, with option pathGlobFilter to choose the files",
            )

    def _may_begin_later(self, file: SegmentFile) -> bool:
        """Tells whether a file whose format cannot be told may get its first record yet: it is empty, young, zeros."""
        if file.size == 0 or file.settled_ns(time.time_ns()) is None:
            return True
        source = self.options.stores.now(file.path)
        if not isinstance(source, str):
            pieces = (source.read_at(at, min(_CHUNK, source.size - at)) for at in range(0, source.size, _CHUNK))
            return not any(any(piece) for piece in pieces)
        with Path(source).open("rb") as content:  # one that was preallocated
            return not any(any(chunk) for chunk in iter(lambda: content.read(_CHUNK), b""))

    def _arguments(self) -> dict[str, Any]:
        return {**arguments(self.options, self.format), "format": self.options.segment_format}


def arguments(options: ReadOptions, format: str) -> dict[str, Any]:
    """Returns the arguments with which a file is opened, whatever is read of it."""
    return {"key": options.read_key, **options.format_options.arguments(format)}


@cache
def alike(format: str, options: FormatOptions) -> list[str]:
    """Returns the formats that have the same columns as one: a file may have all of them in turn."""
    own = column_names(format, options)
    return [name for name in seglake.formats().names if column_names(name, options) == own]


def open_growth(
    growth: Growth, options: ReadOptions, format: str, part: seglake.incremental.Part | None, **more: Any
) -> seglake.Reader:
    """Opens a growth where it was planned, or else in the file that it is in by now: renamed, rotated or sealed.

    Args:
        growth: what is read.
        options: what the stream was asked for.
        format: a format that has the columns of the stream.
        part: of a complete file, only this part.
        more: more arguments of `seglake.open`.

    Raises:
        FileNotFoundError: the file is gone.
        seglake.exceptions.ReplacedError: another file is in its place.
    """
    end = Position.from_json(growth.end)
    start = Position.from_json(growth.start) if growth.start is not None else None
    own = {**arguments(options, format), "sidecar": options.sidecar, **more}
    try:
        return _opened(options, growth.path, start, end, part, {**own, "format": end.format})
    except (FileNotFoundError, seglake.exceptions.ReplacedError) as error:
        if isinstance(error, FileNotFoundError) and error.filename != growth.path:
            raise  # the file of the key
        # A listing may miss a file that gets another name meanwhile.
        for path, found in (other for _ in range(_LISTINGS) for other in _others(growth.path, end, options, format)):
            try:
                return _opened(options, path, start, end, part, {**own, "format": found})
            except (FileNotFoundError, seglake.exceptions.ReplacedError):
                continue
        if isinstance(error, FileNotFoundError):
            raise FileNotFoundError(
                errno.ENOENT,
                "was there when the batch was planned, and no file with its records is there now. Put it back and "
                "start the query again; option ignoreMissingFiles leaves such files out",
                growth.path,
            ) from None
        raise seglake.exceptions.ReplacedError(
            path=error.path or growth.path,
            byte_offset=error.byte_offset,
            expected=error.expected,
            actual=error.actual,
            next="It was so when the batch was planned, and no file with its records is there now. Put it back and "
            "start the query again; option ignoreMissingFiles leaves out what the batch was to read of it",
        ) from None


def check_read(growth: Growth, reader: seglake.Reader, options: ReadOptions, format: str) -> None:
    """Refuses a file of which something else was read than was planned.

    Args:
        growth: what was planned.
        reader: what was read. Where records are chosen, reading may have ended before the end, as no later one could
            match.
        options: what the stream was asked for.
        format: a format that has the columns of the stream.

    Raises:
        seglake.exceptions.ReplacedError: what was read of it was written to, or another file came into its place.
        FileNotFoundError: nothing was read of it, and it is gone.
    """
    end, found = Position.from_json(growth.end), reader.position
    if found is None or found.format != end.format or _place(found) == _place(end):
        return
    if _has_more(reader, end) and found.identity == end.identity:
        return  # the records after the end were not read
    if options.conditions and found.byte_offset < end.byte_offset:
        if found.identity is None and reader.path is not None:
            # Not even its first record was read to the end, so it was not seen whose it is.
            _prove(options, reader.path, end, arguments(options, format))
            return
        if found.identity == end.identity:
            return
    raise seglake.exceptions.ReplacedError(
        path=growth.path,
        byte_offset=found.byte_offset,
        expected=f"records up to offset {end.byte_offset}, as when the batch was planned",
        actual="other ones" if found.byte_offset == end.byte_offset else f"records up to offset {found.byte_offset}",
    )


def replaced_while_read(growth: Growth, options: ReadOptions, format: str, error: OSError) -> Exception:
    """Returns what to raise where reading a file fails after records of it were given out.

    Args:
        growth: what is read.
        options: what the stream was asked for.
        format: a format that has the columns of the stream.
        error: why reading failed.
    """
    byte_offset, expected, actual = 0, "the file that was there when the task began", "none"
    try:
        _prove(options, growth.path, Position.from_json(growth.end), arguments(options, format))
        return error  # Spark tries the task again, which reads what is there by then
    except FileNotFoundError:
        pass
    except seglake.exceptions.ReplacedError as found:
        byte_offset, expected, actual = found.byte_offset, found.expected, found.actual
    except (OSError, seglake.SeglakeError):
        return error
    return seglake.exceptions.ReplacedError(
        path=growth.path,
        byte_offset=byte_offset,
        expected=expected,
        actual=actual,
        next="It was replaced while the batch was read. Put it back, or set option ignoreMissingFiles, and start "
        "the query again: it reads the batch anew",
    )


def _place(position: Position) -> tuple[Any, ...]:
    """Returns what tells two positions apart, whatever filters led to them.

    How much of the last record is hashed depends on filters in an active file. Where records have UUIDs, its UUID says
    the same.
    """
    content = json.loads(position.to_json())
    return content["identity"], content["offset"], content["uuid"] or content["last"]


def _prove(options: ReadOptions, path: str, end: Position, arguments: Mapping[str, Any]) -> None:
    """Refuses a file that does not have what was read up to a position.

    Raises:
        FileNotFoundError: there is none.
        seglake.exceptions.ReplacedError: it does not.
    """
    looks: dict[str, Any] = {name: value for name, value in arguments.items() if name in ("key", "options")}
    looks |= {"format": arguments.get("format", end.format), "sidecar": options.sidecar}
    seglake.incremental.resume(options.stores.now(path), end, **looks).close()


def _opened(
    options: ReadOptions,
    path: str,
    start: Position | None,
    end: Position,
    part: seglake.incremental.Part | None,
    arguments: dict[str, Any],
) -> seglake.Reader:
    now = options.stores.now
    if grows(arguments["format"]) or not grows(end.format):
        _prove(options, path, end, arguments)
    if grows(arguments["format"]):
        return seglake.incremental.resume(now(path), start, size=end.byte_offset, **arguments)
    source = now(path)
    bound: dict[str, Any] = {"filters": [*arguments["filters"], ("uuid", "<=", end.uuid)]}
    if grows(end.format):
        # It has been sealed since.
        if not _has_record(now(path), end, {name: arguments[name] for name in ("key", "format", "sidecar")}):
            raise _no_record(path, end)
        return seglake.incremental.resume(source, start, **(arguments | bound))

    def opened(**own: Any) -> seglake.Reader:
        if start is not None:
            return seglake.incremental.resume(source, start, **own)
        reader = seglake.open(source, prune=True, **own)
        return reader if part is None else reader.part(part)

    reader = opened(**arguments)
    if not _has_more(reader, end):
        return reader
    reader.close()
    return opened(**(arguments | bound))


def _no_record(path: str, position: Position) -> seglake.exceptions.ReplacedError:
    return seglake.exceptions.ReplacedError(
        path=path, byte_offset=0, expected=f"a record with the UUID {position.uuid}", actual="none"
    )


def _has_more(reader: seglake.Reader, end: Position) -> bool:
    """Tells whether a segment has been sealed anew since it was read to its end, which is known to be in it."""
    return not grows(end.format) and end.uuid is not None and reader.nbytes != end.byte_offset


def _has_record(source: Any, end: Position, read: dict[str, Any]) -> bool:
    """Tells whether a sealed file has the last record that was planned, also one that its sidecar restores.

    Raises:
        seglake.DamageError: that cannot be told, as the file is damaged.
    """
    if end.uuid is None:
        return False
    for how in ("repair", "raise"):
        on_damage: Any = how
        with seglake.open(source, on_damage=on_damage, **read) as sealed, warnings.catch_warnings():
            warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
            if sealed.get(end.uuid) is not None:
                return True
    return False


def _others(path: str, end: Position, options: ReadOptions, format: str) -> Iterator[tuple[str, str]]:
    """Yields the files that begin as the one that was at a path, and their formats. Those with like names are first."""
    if end.identity is None:
        return
    own = arguments(options, format)
    stem = Path(path).stem
    files = find_files(options.paths, options.filter, options.stores, key=own["key"]).files
    for file in sorted(files, key=lambda file: not Path(file.path).name.startswith(stem)):
        try:
            if (
                seglake.incremental.identity(options.stores.now(file.path), sidecar=options.sidecar, **own)
                == end.identity
            ):
                found = seglake.detect(
                    options.stores.now(file.path), key=own["key"], options=options.format_options.telling()
                ).format
                yield file.path, found or end.format
        except (OSError, seglake.SeglakeError):
            continue
