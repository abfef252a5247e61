"""Offsets of streams: how far a log or a folder of files was read, as Spark keeps it in the checkpoint."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from .state import StreamState

__all__ = ["NEW_CHECKPOINT", "LogOffset", "StateOffset"]

NEW_CHECKPOINT: Final = "To go on with what is there, give the query another checkpoint, and option startingFrom"

_VERSION: Final = 1


@dataclass(frozen=True)
class LogOffset:
    """A place in a log: what is before it was read.

    Attributes:
        sequence: the place in the log of a segment; 0 is before the first one.
        first: the UUID of that segment's first record, which is its identity.
        byte: how many bytes of the segment were read while it was an active file, 0 where that is not known; None is
            all of the segment.
        last: the UUID of the last record that was read of it, where it was not read wholly.
        since: of an offset that ends a first batch, where that begins. Spark does not keep where a stream began.
    """

    sequence: int = 0
    first: str | None = None
    byte: int | None = None
    last: str | None = None
    since: LogOffset | None = None

    def is_before(self, other: LogOffset) -> bool:
        """Tells whether it comes before another offset in the same log."""
        return self._order < other._order

    @property
    def _order(self) -> tuple[int, float]:
        return self.sequence, math.inf if self.byte is None else self.byte

    def ending_first(self, start: LogOffset) -> Self:
        """Returns this offset as the end of a first batch that begins at `start`."""
        return replace(self, since=replace(start, since=None))

    def to_json(self) -> dict[str, Any]:
        """Returns it in types that JSON has."""
        content: dict[str, Any] = {"version": _VERSION, "segment": None}
        if self.first is not None:
            content |= {"segment": f"{self.sequence:020}-{self.first}", "byte": self.byte, "last": self.last}
        return content if self.since is None else content | {"since": self.since.to_json()}

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Reads what `to_json` wrote, or what is in a checkpoint by now.

        Raises:
            ValueError: it is no offset of this source.
        """
        try:
            if content["version"] != _VERSION:
                raise _foreign(content, f"version {_VERSION}")
            since = cls.from_json(content["since"]) if content.get("since") is not None else None
            if content["segment"] is None:
                return cls(since=since)
            sequence, _, first = content["segment"].partition("-")
            byte, last = content["byte"], content["last"]
            if (byte is None) != (last is None) or (byte is not None and int(byte) < 0):
                raise _foreign(content, "a byte with the UUID of the record before it")
            return cls(
                int(sequence),
                str(uuid.UUID(first)),
                None if byte is None else int(byte),
                None if last is None else str(uuid.UUID(last)),
                since,
            )
        except (LookupError, TypeError, AttributeError) as error:
            raise _foreign(content, f"the fields of one ({error!r})") from None


@dataclass(frozen=True)
class StateOffset:
    """The number of a batch of a stream of files, and what Spark shows of it in the progress of the query.

    Attributes:
        number: how many batches there were; 0 is the beginning.
        stream: the name of the stream's own folder in the option `stateLocation`.
        shown: how many files and bytes were read, how many have not been, and which file was modified last.
    """

    number: int = 0
    stream: str | None = None
    shown: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)

    @classmethod
    def of(cls, stream: str, state: StreamState) -> Self:
        """Returns the one of a state."""
        (files, nbytes), (waiting_files, waiting_bytes) = state.read, state.waiting
        shown = {"files": files, "bytes": nbytes, "backlogFiles": waiting_files, "backlogBytes": waiting_bytes}
        return cls(state.number, stream, {**shown, "newestFile": state.newest[0]})

    def to_json(self) -> dict[str, Any]:
        """Returns it in types that JSON has."""
        return {"version": _VERSION, "state": self.number, "stream": self.stream, **self.shown}

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Reads what `to_json` wrote, or what is in a checkpoint by now.

        Raises:
            ValueError: it is no offset of a stream of files.
        """
        try:
            number, stream = content["state"], content["stream"]
            if content["version"] != _VERSION:
                raise _foreign(content, f"version {_VERSION}", _OF_FILES)
            if type(number) is int and number >= 0 and (not number or _is_hexadecimal(stream)):
                return cls(number, stream if number else None, content)
        except (LookupError, TypeError) as error:
            raise _foreign(content, f"the fields of one ({error!r})", _OF_FILES) from None
        raise _foreign(content, "a number and hexadecimal digits", _OF_FILES)


_OF_FILES: Final = "of a stream of files"


def _is_hexadecimal(text: object) -> bool:
    return isinstance(text, str) and set(text) <= set("0123456789abcdef")


def _foreign(content: object, expected: str, of: str = "in a log") -> ValueError:
    return ValueError(
        f"expected an offset {of} with {expected}, the checkpoint has {content!r}. A checkpoint is of one query "
        "over one folder: give this query one of its own"
    )
