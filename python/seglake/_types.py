"""Small plain types shared by the extension and the Python parts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from os import PathLike
from typing import Any, Literal, NamedTuple, SupportsIndex, TypeAlias, TypedDict, cast, overload
from uuid import UUID

from ._text import printable_path

DialectName: TypeAlias = Literal["draft", "draft-1.1", "autobase"]
"""How the messages of an oplog are laid out."""

ProfileName: TypeAlias = Literal["128+8", "128+4", "128+16", "128+8-long"]
"""How many data and parity blocks a group of a parity sidecar has."""


class OpenOptions(TypedDict, total=False):
    """How files are read: what concerns some formats only, and limits in bytes.

    Attributes:
        dialect: how an oplog's messages are laid out. "draft" by default.
        index: where a chunked file's index is: a path, URI, file object or buffer, or False for none. It is looked for
            beside the file by default.
        chunk_bytes: a chunk with more content is an error. 256 MiB by default. Chunked files.
        lookup_table_bytes: the most memory for a table that makes looking up by UUID faster. 16 MiB by default, 0 for
            none. Sealed files.
        record_bytes: a larger record is an error when it is to be returned. 2^31-1 by default. `open` and `convert`.
        batch_bytes: an Arrow batch ends before its values have more bytes, but has at least one row. 8 MiB by default.
            `open`.
    """

    dialect: DialectName | None
    index: Any
    chunk_bytes: int
    lookup_table_bytes: int
    record_bytes: int
    batch_bytes: int


class ActiveOptions(TypedDict, total=False):
    """How an active file is written.

    Attributes:
        preallocate: the length in bytes to which a new file is filled with zeros. 0 by default.
    """

    preallocate: int


class OplogOptions(TypedDict, total=False):
    """How an oplog is written.

    Attributes:
        dialect: how its messages are laid out. "draft" by default.
    """

    dialect: DialectName


class SealedOptions(TypedDict, total=False):
    """How a sealed file is written.

    Attributes:
        trailer: whether checksums are written after the data. True by default.
    """

    trailer: bool


class TenantOptions(TypedDict, total=False):
    """How a tenant file is written.

    Attributes:
        version: the version of the layout, 1 or 2. 2 by default.
        memory_bytes: how many bytes of messages are kept in memory before they are spilled to temporary files.
            64 MiB by default.
    """

    version: int
    memory_bytes: int


class ChunkedOptions(TypedDict, total=False):
    """How a chunked file is written. A chunk that is damaged is lost as a whole.

    Attributes:
        chunk_bytes: a chunk is closed when its records have this many bytes before compression. 256 KiB by default.
        chunk_records: a chunk is closed when it has this many records. 65,536 by default.
        level: the zstd compression level. 1 by default.
        index: whether the index is written beside the file. True by default.
    """

    chunk_bytes: int
    chunk_records: int
    level: int
    index: bool


class NewFileOptions(ActiveOptions, OplogOptions, SealedOptions, TenantOptions, ChunkedOptions, total=False):
    """How `convert` writes the new file: the options of its format, and its key.

    Attributes:
        key: the key of the new file's checksums: 32 bytes, or the path of a file that holds it.
    """

    key: bytes | str | PathLike[str]


class Column(NamedTuple):
    """One column of a format's records.

    `kind` is one of `uuid` (16 bytes in network byte order), `timestamp` (microseconds since 1970-01-01 UTC), `text`,
    `binary`, `int64`, `uint64`, `boolean`, `list` and `struct`. Records can be written without one that is `optional`:
    it follows from the others, or may be missing. `order` says how values follow one another in a file: `any`,
    `ascending` (each is greater than the one before) or `counting` (from 0, each greater by 1, among the records with
    the same values of the other columns in `Format.identifier`).

    Example:
        >>> import seglake
        >>> seglake.formats()["chunked"].columns[0]
        Column(name='offset', kind='int64', optional=True, order='ascending')
    """

    name: str
    kind: str
    optional: bool
    order: str


class FormatOption(NamedTuple):
    """An option for reading or writing files of a format, as the format declares it.

    Attributes:
        name: the name that callers use.
        kind: which values it takes: `flag` (a bool), `number` (an int), `bytes` (an int, a number of bytes), `name`
            (one of `choices`), `key` (the keys of checksums) or `index` (where an index is).
        about: what it does.
        default: what it is unless it is given; None for keys and indexes.
        minimum: the least number that it may be, None where it is not a number.
        maximum: the greatest number that it may be, None likewise.
        choices: the names that it may be, empty where it is not a name.

    Example:
        >>> import seglake
        >>> seglake.formats()["chunked"].create_options["level"].default
        1
    """

    name: str
    kind: str
    about: str
    default: bool | int | str | None = None
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()


class Format(NamedTuple):
    """What a format is, as `formats` has it.

    Attributes:
        name: the name that callers use.
        extension: the usual extension of its files, without the dot.
        index_extension: the extension of the index that a file may have beside it, without the dot; None where there is
            none.
        columns: what its records have, in the order in which they are shown.
        identifier: the names of the columns that one record is found by.
        open_options: the options for reading that concern only some formats, and this one among them, by their names:
            the argument `key`, and what `options` of `open` take.
        create_options: the options for writing that concern this format, by their names: arguments of `create`, and
            what its `options` take.
        splittable: whether `Reader.split` may give several parts of one file.
        checked: how records are checked at best: `checksum` or `structure`.
        marks_damage: whether records may be given out although something about them is damaged, which the column
            `cause` then says.

    Example:
        >>> import seglake
        >>> seglake.formats()["tenant"].extension
        'tenant'
    """

    name: str
    extension: str
    index_extension: str | None
    columns: tuple[Column, ...]
    identifier: tuple[str, ...]
    open_options: dict[str, FormatOption]
    create_options: dict[str, FormatOption]
    splittable: bool
    checked: str
    marks_damage: bool


class Formats(tuple[Format, ...]):
    """The formats, in an order: a tuple in which one is also found by its name.

    Example:
        >>> import seglake
        >>> formats = seglake.formats()
        >>> formats[0].name, formats["chunked"].extension, "parquet" in formats
        ('active', 'chunks', False)
    """

    __slots__ = ()

    @property
    def names(self) -> list[str]:
        """The names that callers use."""
        return [format.name for format in self]

    @overload
    def __getitem__(self, key: str | SupportsIndex, /) -> Format: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[Format, ...]: ...
    def __getitem__(self, key: str | SupportsIndex | slice, /) -> Format | tuple[Format, ...]:
        """Returns the format of a name or number. Raises KeyError for a name that none has."""
        if not isinstance(key, str):
            return super().__getitem__(key)
        for format in self:
            if format.name == key:
                return format
        raise KeyError(key)

    def __contains__(self, key: object, /) -> bool:
        """Tells whether there is this format, or one of this name."""
        return key in self.names if isinstance(key, str) else super().__contains__(key)


def as_plain(own: object, names: Iterable[str]) -> dict[str, Any]:
    """The attributes of these names as a dict, fit for JSON."""
    return {name: _plain(getattr(own, name)) for name in names}


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "_asdict"):
        return value._asdict()
    return [_plain(each) for each in cast("list[Any]", value)] if isinstance(value, list | tuple) else value


class Span(NamedTuple):
    """One range of a ledger: bytes `start` to `end` (half-open, absolute file offsets) of one kind.

    `kind` is one of `header`, `record`, `chunk`, `block`, `padding`, `unused`, `trailer`, `corrupt`,
    `torn_tail`, `repaired`, `unproven`, `pending`. `cause` is None where nothing is wrong; a span with a cause is
    damage.

    Example:
        >>> import seglake
        >>> next(seglake.open("orders.active").ledger())
        Span(start=0, end=54, kind='record', cause=None)
    """

    start: int
    end: int
    kind: str
    cause: str | None

    @property
    def nbytes(self) -> int:
        """The number of bytes in the range."""
        return self.end - self.start


class ParityReport(NamedTuple):
    """What a parity sidecar says of a file and of itself.

    Attributes:
        sidecar: the sidecar's path; None for one without a name.
        outcome: "sound"; "repaired", if `repair` can restore all damage of both; "lost", if it cannot; "refused".
        refused: why nothing of it counted: "no_frame" (it is not a sidecar), "another_file" (no block of the file is
            as it was covered), "earlier_state" (it has other bytes for records that their own checksums prove). None
            otherwise. Of a file without checksums, "another_file" counts as damage.
        damage: the ranges of the file that are not as they were covered: "repaired", "lost", or "unverified" (they
            were covered, and nothing can verify them now). They are whole blocks.
        sidecar_damage: the same of the sidecar.
        worst: the group of blocks with the most damage: `band`, `group`, how many parity blocks it `needs`, and how
            many it has (`of`). None if there is no damage.
        unverified_bytes: how many bytes of the file were covered, and nothing can verify them now.
        uncovered_bytes: how many bytes of the file were never covered, such as what was appended since.
        lost_ranges: the ranges that are "lost": a dict of `start`, `end`, and the `worst` of the groups that its blocks
            are in, as above. That is None if the sidecar has lost all blocks of the range.
        covered_bytes: how many bytes of the file are, or were, covered.

    Example:
        >>> import seglake
        >>> seglake.protect("orders.active").covered_bytes
        159
        >>> parity = seglake.verify("orders.active").parity
        >>> parity.outcome, parity.uncovered_bytes
        ('sound', 0)
    """

    sidecar: str | None
    outcome: Literal["sound", "repaired", "lost", "refused"]
    refused: Literal["no_frame", "another_file", "earlier_state"] | None
    damage: list[Span]
    sidecar_damage: list[Span]
    worst: dict[str, int] | None
    unverified_bytes: int
    uncovered_bytes: int
    lost_ranges: list[dict[str, Any]]
    covered_bytes: int

    @property
    def covers_nothing(self) -> bool:
        """Whether the sidecar is empty although the file is not: it protects nothing, and may have been cut off."""
        return self.outcome == "sound" and self.covered_bytes == 0 and self.uncovered_bytes > 0

    def to_dict(self) -> dict[str, Any]:
        """All attributes as a dict of the same names, fit for JSON: each range is a dict of its fields."""
        return as_plain(self, self._fields)


class Coverage(NamedTuple):
    """What a parity sidecar covers of a file, by what the sidecar says of itself: `coverage` verifies neither.

    Attributes:
        sidecar: the sidecar's path; None for one without a name.
        sidecar_bytes: its length.
        profile: how many data and parity blocks a group has, as in `protect`. None if it has no frame.
        covered_bytes: how many bytes of the file are covered, from its beginning. None if it has no frame.
        nbytes: the length of the file.

    Example:
        >>> import seglake
        >>> seglake.protect("orders.active").change
        'created'
        >>> seglake.parity.coverage("orders.active").profile
        '128+8'
    """

    sidecar: str | None
    sidecar_bytes: int
    profile: str | None
    covered_bytes: int | None
    nbytes: int

    @property
    def state(self) -> Literal["covered", "grown", "truncated", "no_frame"]:
        """How the sidecar and the length of the file agree.

        "covered" if all of the file is covered; "grown" if bytes at its end are not, such as what was appended since;
        "truncated" if the file is shorter than what was covered; "no_frame" if it is not a sidecar. An empty one covers
        nothing.
        """
        covered = self.covered_bytes
        if covered is None:
            if self.sidecar_bytes:
                return "no_frame"
            covered = 0
        if covered == self.nbytes:
            return "covered"
        return "grown" if covered < self.nbytes else "truncated"

    def to_dict(self) -> dict[str, Any]:
        """All attributes, and `state`, as a dict of the same names, fit for JSON."""
        return {**self._asdict(), "state": self.state}


class Total(NamedTuple):
    """How much of a file is of one kind, and has one cause.

    Attributes:
        kind: as in `Span`.
        cause: as in `Span`.
        nbytes: the number of bytes.
        ranges: the number of ranges.

    Example:
        >>> import seglake
        >>> seglake.verify("orders.active").totals
        [Total(kind='record', cause=None, nbytes=159, ranges=3)]
    """

    kind: str
    cause: str | None
    nbytes: int
    ranges: int


class Block(NamedTuple):
    """A block of a tenant file: the messages of one tenant in one partition.

    Attributes:
        position: the offset in the file, in bytes, at which the block begins.
        partition: the partition's ID.
        tenant: the tenant's ID as text, shown like `Record.tenant`.
        tenant_bytes: the tenant's ID as it is in the file.
        messages: the number of messages.

    Example:
        >>> import seglake
        >>> [block.messages for block in seglake.open("orders.tenant").blocks()]
        [2, 1]
    """

    position: int
    partition: int
    tenant: str
    tenant_bytes: bytes
    messages: int


class IndexItem(NamedTuple):
    """An item of a chunked file's index: it points at one chunk.

    Attributes:
        offset: the message offset of the chunk's first record.
        position: the offset in the file, in bytes, at which the chunk begins.

    Example:
        >>> import seglake
        >>> seglake.open("orders.chunks").index().items[0]
        IndexItem(offset=0, position=0)
    """

    offset: int
    position: int


class System(NamedTuple):
    """The part of an oplog message that is never encrypted, and the rest as bytes.

    Attributes:
        version: the version of the message's layout.
        checkpointer: how many messages ago the last checkpoint was.
        checkpoint: a dict of `tree_hash` and `length`, None where the message has no checkpoint.
        node: the rest of the message, which may be encrypted.

    Example:
        >>> import seglake
        >>> seglake.oplog.decode_system(bytes.fromhex("01010000010176")).checkpointer
        1
    """

    version: int
    checkpointer: int
    checkpoint: dict[str, Any] | None
    node: bytes


class Neighbour(NamedTuple):
    """A sound record beside a damaged range: which one it is.

    `position` is the offset at which it begins (in a chunked log, its chunk), `timestamp_us` its time in microseconds
    since 1970-01-01 UTC, None where its format has none. `id` has what it is found by, by the names of the columns:
    `uuid` (active, sealed), `offset` (chunked), `seq` (oplog), `position` (tfrecord), or `partition`, `tenant`
    and `index` (tenant). As a dict of a report, the UUID is text.

    Example:
        >>> import seglake
        >>> [diagnosis] = seglake.verify("damaged.active").diagnoses
        >>> diagnosis.before.position
        0
    """

    position: int
    timestamp_us: int | None
    id: dict[str, UUID | int | str]

    def to_dict(self) -> dict[str, Any]:
        """All attributes as a dict of the same names, fit for JSON: a UUID is text."""
        return {
            **self._asdict(),
            "id": {name: str(value) if isinstance(value, UUID) else value for name, value in self.id.items()},
        }


class Repair(NamedTuple):
    """A single bit that, flipped back, makes something check: a proposal, which nothing applies.

    `byte_offset` is the byte's offset in the file, `bit` the bit's number in it (0 the least significant), `old` the
    byte as it is, `new` the byte with the bit flipped. What then checks (`checks`, such as `record`) is from `start` to
    `end`.

    Example:
        >>> import seglake
        >>> [diagnosis] = seglake.verify("damaged.active").diagnoses
        >>> [type(repair).__name__ for repair in diagnosis.repairs]
        []
    """

    byte_offset: int
    bit: int
    old: int
    new: int
    checks: str
    start: int
    end: int


class Edit(NamedTuple):
    """Bytes of a file, from `start` up to `end`, that give way to `nbytes` others; to none if they are taken out.

    The others are those of the file as it is from offset `source` on, or zeros where that is None.

    Example:
        >>> import seglake
        >>> [diagnosis] = seglake.verify("damaged.active").diagnoses
        >>> diagnosis.edits
        []
    """

    start: int
    end: int
    nbytes: int
    source: int | None


class Diagnosis(NamedTuple):
    """What one damaged range probably comes from.

    `start`, `end`, `kind` and `cause` are those of the range's `Span`. `reason` is a word of a closed list, or
    `unknown`; `certainty` says whether a checksum shows it (`proven`), it would be a rare coincidence otherwise
    (`likely`), or other reasons fit as well (`possible`), and is None where the reason is unknown. `evidence` is what
    shows it, `against` what speaks against it or was not tried, in words. `before` and `after` are the sound records
    around the range, `repairs` the single bits that would mend it. `seglake explain REASON` says what to do.

    `place` is where it happened, as two offsets, and `edits` are the changes that undo it: with them `regained` more
    records are verified, and `is_sound` says whether the whole file is. `ranges` are all damaged ranges that it
    explains; the others have the reason `consequence`. `missing_bytes` and `missing_records` are what the file has lost
    at its end, as far as its own index says so.

    Example:
        >>> import seglake
        >>> [diagnosis] = seglake.verify("damaged.active").diagnoses
        >>> diagnosis.start, diagnosis.end
        (54, 105)
    """

    start: int
    end: int
    kind: str
    cause: str | None
    reason: str
    certainty: Literal["proven", "likely", "possible"] | None
    evidence: str
    against: str
    regained: int
    is_sound: bool
    missing_bytes: int | None
    missing_records: int | None
    before: Neighbour | None
    after: Neighbour | None
    repairs: list[Repair]
    ranges: list[Span]
    edits: list[Edit]
    place: tuple[int, int]

    def to_dict(self) -> dict[str, Any]:
        """All attributes as a dict of the same names, fit for JSON."""
        return as_plain(self, self._fields)


class Retention(TypedDict, total=False):
    """Which sealed and frozen segments of a log are removed. The newest segment always stays.

    Attributes:
        age: those whose records are all older than so many seconds, a timedelta, or text such as "7d".
        bytes: the oldest ones, while all of them together have more bytes than this.
    """

    age: float | timedelta | str
    bytes: int


class LogSegment(NamedTuple):
    """A segment of a log.

    Attributes:
        sequence: its place in the log, counted from 1.
        first: the UUID of its first record, which is its identity.
        kind: "active" or "sealed".
        path: its file.
        is_frozen: it was found damaged and is kept as it is.

    Example:
        >>> import seglake
        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.segments()[1].kind
        'active'
    """

    sequence: int
    first: UUID
    kind: Literal["active", "sealed"]
    path: str
    is_frozen: bool


class LogMark(NamedTuple):
    """How far a log is known to be on the disk.

    Attributes:
        sequence: the place in the log of a segment.
        byte_offset: the offset in that segment.
        last: the UUID of the last record up to there.

    Example:
        >>> import seglake
        >>> log = seglake.SegmentLog("log", readonly=True)
        >>> log.synced.last == log.tail("start").poll().uuid
        False
    """

    sequence: int
    byte_offset: int
    last: UUID


class LogRecovery(NamedTuple):
    """What was put in order when a log was opened that its last writer had not closed.

    Attributes:
        kind: "rewritten": records after the synced mark were sound, and were written once more and synced. "torn_tail":
            what was left of an interrupted write was moved to a file of its own. "frozen": the newest segment is
            damaged, so it is kept as it is, and writing goes on in a new one.
        sequence: the segment's place in the log.
        byte_offset: where the torn tail began.
        nbytes: how many bytes were rewritten or removed.
        reason: why the segment is frozen.

    Example:
        >>> import seglake
        >>> with seglake.SegmentLog("new") as log:
        ...     [step.kind for step in log.recovered]
        []
    """

    kind: Literal["rewritten", "torn_tail", "frozen"]
    sequence: int
    byte_offset: int | None
    nbytes: int | None
    reason: str | None


class LogUnread(NamedTuple):
    """What readers of a log leave out: it is after the synced mark, and no writer has the log open.

    Attributes:
        path: the log's folder.
        sequence: the place in the log of the segment that it is in, the newest one.
        byte_offset: up to where that segment is read.
        nbytes: how many bytes after that are not read, without zeros at the end.
        records: how many sound records these have.
        reason: all of that in words, with what to do. `str` has the path before it, as warnings and messages do.

    Example:
        >>> import seglake
        >>> seglake.SegmentLog("log", readonly=True).unread is None
        True
    """

    path: str
    sequence: int
    byte_offset: int
    nbytes: int
    records: int
    reason: str

    def __str__(self) -> str:
        return f"{printable_path(self.path)}: {self.reason}"
