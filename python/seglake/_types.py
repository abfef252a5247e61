"""Small plain types shared by the extension and the Python parts."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

FormatName: TypeAlias = Literal["active", "sealed", "tenant", "chunked", "oplog"]
"""The formats."""

DialectName: TypeAlias = Literal["draft", "draft-1.1", "autobase"]
"""How the messages of an oplog are laid out."""


class Span(NamedTuple):
    """One range of a ledger: bytes `start` to `end` (half-open, absolute file offsets) of one kind.

    `kind` is one of `header`, `record`, `chunk`, `block`, `padding`, `unused`, `trailer`, `corrupt`,
    `torn_tail`. `cause` is None where nothing is wrong; a span with a cause is damage.
    """

    start: int
    end: int
    kind: str
    cause: str | None

    @property
    def length(self) -> int:
        """The number of bytes in the range."""
        return self.end - self.start
