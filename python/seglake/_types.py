"""Small plain types shared by the extension and the Python parts."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias
from uuid import UUID

FormatName: TypeAlias = Literal["active", "sealed", "tenant", "chunked", "oplog"]
"""The formats."""

DialectName: TypeAlias = Literal["draft", "draft-1.1", "autobase"]
"""How the messages of an oplog are laid out."""


class Column(NamedTuple):
    """One column of a format's records.

    `kind` is one of `uuid` (16 bytes in network byte order), `timestamp` (microseconds since 1970-01-01 UTC), `text`,
    `binary`, `int64`, `uint64`, `boolean`, `list` and `struct`. Records can be written without one that is `optional`:
    it follows from the others, or may be missing.
    """

    name: str
    kind: str
    optional: bool


class Format(NamedTuple):
    """What a format is, as `formats` has it.

    Attributes:
        name: the name that callers use.
        extension: the usual extension of its files, without the dot.
        index_extension: the extension of the index that a file may have beside it, without the dot; None where there is
            none.
        columns: what its records have, in the order in which they are shown.
        identifier: the names of the columns that one record is found by.
        open_options: the arguments of `open` that concern only some formats, and this one among them.
        create_options: the arguments of `create` that concern this format.
        splittable: whether `Reader.split` may give several parts of one file.
        checked: how records are checked at best: `checksum` or `structure`.
        marks_damage: whether records may be given out although something about them is damaged, which the column
            `cause` then says.
    """

    name: str
    extension: str
    index_extension: str | None
    columns: tuple[Column, ...]
    identifier: tuple[str, ...]
    open_options: tuple[str, ...]
    create_options: tuple[str, ...]
    splittable: bool
    checked: str
    marks_damage: bool


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
