"""Small plain types shared by the extension and the Python parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias
from uuid import UUID

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


class Neighbour(NamedTuple):
    """A good record beside a damaged range: which one it is.

    `position` is the offset at which it begins (in a chunked log, its chunk), `timestamp_us` its time in microseconds
    since 1970-01-01 UTC, None where its format has none. `id` has what it is found by, by the names of the columns:
    `uuid` (active, sealed), `offset` (chunked), `seq` (oplog), or `partition`, `tenant` and `index` (tenant). As a dict
    of a report, the UUID is text.
    """

    position: int
    timestamp_us: int | None
    id: dict[str, UUID | int | str]


class Repair(NamedTuple):
    """A single bit that, flipped back, makes something check: a proposal, which nothing applies.

    `offset` is the byte's offset in the file, `bit` the bit's number in it (0 the least significant), `old` the byte as
    it is, `new` the byte with the bit flipped. What then checks (`checks`, such as `record`) is from `start` to `end`.
    """

    offset: int
    bit: int
    old: int
    new: int
    checks: str
    start: int
    end: int


class Diagnosis(NamedTuple):
    """What one damaged range probably comes from.

    `start`, `end`, `kind` and `cause` are those of the range's `Span`. `reason` is a word of a closed list, or
    `unknown`; `certainty` says whether a checksum shows it (`proven`), it would be a rare coincidence otherwise
    (`likely`), or other reasons fit as well (`possible`), and is None where the reason is unknown. `evidence` is what
    shows it, `next` what to do, both in words. `before` and `after` are the good records around the range, `repairs`
    the single bits that would mend it.
    """

    start: int
    end: int
    kind: str
    cause: str | None
    reason: str
    certainty: Literal["proven", "likely", "possible"] | None
    evidence: str
    next: str
    before: Neighbour | None
    after: Neighbour | None
    repairs: list[Repair]
