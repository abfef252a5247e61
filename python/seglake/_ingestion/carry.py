"""What a later run needs to go on with a segment: the column `carry` of `files`."""

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, NamedTuple, Self

import seglake

from .digest import RecordDigest

__all__ = ["BYTE_COLUMNS", "Carry", "Damaged", "DamagedRange", "Looked", "Sums", "Tail"]

_VERSION: Final = 2
# What `to_json` begins with.
_HEAD: Final = f'{{"version": {_VERSION}, "position": {{'

BYTE_COLUMNS: Final = {
    "record": "record_bytes",
    "chunk": "record_bytes",
    "block": "record_bytes",
    "header": "header_bytes",
    "trailer": "header_bytes",
    "padding": "padding_bytes",
    "unused": "unused_bytes",
    "unproven": "unused_bytes",
    "pending": "unused_bytes",
    "torn_tail": "torn_bytes",
    "corrupt": "corrupt_bytes",
    "repaired": "corrupt_bytes",
}
"""The kinds of the ledger, and the columns of `files` that their bytes count for."""


@dataclass(frozen=True)
class Sums:
    """What was read of a segment: the records, the damaged ranges, and what its bytes are.

    The timestamps are microseconds since 1970, of the first and the last moment that a record has.
    """

    records: int = 0
    ranges: int = 0
    record_bytes: int = 0
    header_bytes: int = 0
    padding_bytes: int = 0
    unused_bytes: int = 0
    torn_bytes: int = 0
    corrupt_bytes: int = 0
    first_timestamp: int | None = None
    last_timestamp: int | None = None

    @property
    def nbytes(self) -> int:
        """How many bytes these are."""
        return sum(getattr(self, name) for name in set(BYTE_COLUMNS.values()))

    @classmethod
    def of(cls, report: seglake.Report, ranges: int) -> Self:
        """Returns those of one pass, which found as many damaged ranges."""
        sizes = dict.fromkeys(BYTE_COLUMNS.values(), 0)
        for total in report.totals:
            sizes[BYTE_COLUMNS[total.kind]] += total.nbytes
        first, last = report.first_timestamp_us, report.last_timestamp_us
        return cls(report.records, ranges, first_timestamp=first, last_timestamp=last, **sizes)

    def plus(self, more: "Sums") -> "Sums":
        """Returns the sums of both."""
        known = [each for each in (self, more) if each.first_timestamp is not None]
        counted = [each.name for each in fields(self) if not each.name.endswith("_timestamp")]
        return Sums(
            **{name: getattr(self, name) + getattr(more, name) for name in counted},
            first_timestamp=min((each.first_timestamp for each in known), default=None),  # pyright: ignore
            last_timestamp=max((each.last_timestamp for each in known), default=None),  # pyright: ignore
        )


@dataclass(frozen=True)
class Tail:
    """What a run that was told that the file is final has taken from after the position.

    The position stays before it, as it is certain only if the file really grows no more.

    Attributes:
        end: up to where the damage is in `damage`, in bytes.
        size: the size of the file.
        ranges: how many damaged ranges it has.
        records: how many records it has: only an oplog has any after its first damage.
        digest: a hash of the places of these records.
    """

    end: int
    size: int = 0
    ranges: int = 0
    records: int = 0
    digest: str = ""


class DamagedRange(NamedTuple):
    """A damaged range that is in `damage`.

    Attributes:
        start: its first byte.
        end: the byte after its last.
        hides_records: whether the records that begin in it were not ingested. They were if a sidecar restored them.
        digest: a hash of its bytes.
        sound: if its records were ingested from another file, a hash of the bytes that this one has there; else None.
    """

    start: int
    end: int
    hides_records: bool
    digest: str
    sound: str | None = None


class Looked(NamedTuple):
    """What a run saw in a damaged file that it read again as a whole, when records that are ingested were damaged.

    A record that is missing can only come back where something was damaged: these places tell whether it did.

    Attributes:
        size: the size of the file.
        places: each range that was damaged then, or had been before: its start, its end, and a hash of its bytes.
    """

    size: int
    places: tuple[tuple[int, int, str], ...]


class Damaged(NamedTuple):
    """What was damaged in a file, so that a later run notices that it was repaired.

    Attributes:
        ranges: its damaged ranges.
        changed: when the file was changed before it was read, in nanoseconds since 1970, as no repair can set it; None
            if that cannot be told.
        rest: of a complete file, a hash of all its bytes but those in these ranges.
        looked: what the last run saw that read the whole file to find out; None if none did, or if it cannot help.
    """

    ranges: tuple[DamagedRange, ...]
    changed: int | None
    rest: str | None = None
    looked: Looked | None = None


@dataclass(frozen=True)
class Carry:
    """What a later run needs to go on with a segment.

    Attributes:
        position: up to where it was read.
        sums: what was read up to there.
        tail: what is in the tables of the bytes after that; None if that is nothing.
        damage: what was damaged; None if that is nothing, or too much to look at it again.
        digest: a hash of the records up to the position; None if that cannot be told.
    """

    position: seglake.Position
    sums: Sums = Sums()
    tail: Tail | None = None
    damage: Damaged | None = None
    digest: RecordDigest | None = None

    def to_json(self) -> str:
        """Returns it as the column `carry` has it."""
        own: dict[str, Any] = {"version": _VERSION, "position": json.loads(self.position.to_json())}
        more = {name: found for name, found in (("damage", self.damage), ("digest", self.digest)) if found is not None}
        return json.dumps({**own, "sums": asdict(self.sums), "tail": self.tail and asdict(self.tail), **more})

    @staticmethod
    def check(text: str) -> None:
        """Checks that a text is what `to_json` wrote, as far as its beginning tells: reading all texts takes long.

        Raises:
            ValueError: it is something else.
        """
        if not text.startswith(_HEAD):
            Carry.from_json(text)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what `to_json` wrote.

        Raises:
            ValueError: it is not that.
        """
        try:
            content = json.loads(text)
            if content.get("version") != _VERSION:
                raise ValueError(f"its version is {content.get('version', 1)}, expected {_VERSION}")
            position = seglake.Position.from_json(json.dumps(content["position"]))
            tail = content["tail"]
            damage = None
            if "damage" in content:
                ranges, changed, rest, *more = content["damage"]
                looked = None
                if more and more[0] is not None:
                    size, places = more[0]
                    looked = Looked(size, tuple((start, end, digest) for start, end, digest in places))
                damage = Damaged(tuple(DamagedRange(*each) for each in ranges), changed, rest, looked)
            digest = RecordDigest.from_json(content["digest"]) if "digest" in content else None
            return cls(position, Sums(**content["sums"]), None if tail is None else Tail(**tail), damage, digest)
        except (TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"it is not the state of a segment: {error!r}") from None

    def is_final(self, size: int) -> bool:
        """Tells whether a file of this size is to be read as final, because an earlier run was told that it is.

        What that run has taken after the position would be pending otherwise.
        """
        return self.tail is not None and (self.tail.records > 0 or size <= self.tail.size)

    def without_tail(self) -> Self:
        """Returns it without what a run that was told that the file is final has noted of its tail."""
        if self.tail is None:
            return self
        damage, end = self.damage, self.position.byte_offset
        if damage is not None:
            ranges = tuple(each for each in damage.ranges if each.start < end)
            damage = damage._replace(ranges=ranges) if ranges else None
        return replace(self, tail=None, damage=damage)

    def at(self, position: seglake.Position, more: Sums) -> Self:
        """Returns that of a later position, up to which there is so much more."""
        tail = self.tail
        if tail is None or position.byte_offset >= tail.end or position.format != self.position.format:
            tail = None
        return replace(self, position=position, sums=self.sums.plus(more), tail=tail)
