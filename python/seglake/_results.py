"""What verbs return, as plain values, which the extension makes: they pickle, and are equal if their fields are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final, overload
from uuid import UUID

from ._json_text import json_text
from ._types import Span, as_plain

if TYPE_CHECKING:
    from ._native import Report

_UUID_BYTES = 16
# `repr` shows so many UUIDs at the beginning, and as many at the end.
_SHOWN = 3


def _shown(**values: str | int | None) -> str:
    return ", ".join(f"{name}={'None' if value is None else json_text(value)}" for name, value in values.items())


@dataclass(frozen=True)
class _Result:
    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """All attributes as a dict of the same names, fit for JSON.

        Each range is a dict of its fields, `report` is that of Report.to_dict.
        """
        return as_plain(self, [each.name for each in fields(self)])


@final
@dataclass(frozen=True, slots=True, repr=False)
class Detection:
    """What format a file seems to be of, and how sure that is.

    Attributes:
        format: the format's name; None where it cannot be told.
        confidence: "certain" where a checksum proves it, "likely", or "unknown".
        reason: why, for a person.

    Example:
        >>> import seglake
        >>> detection = seglake.detect("orders.sealed")
        >>> detection.format, detection.confidence
        ('sealed', 'certain')
    """

    format: str | None
    confidence: Literal["certain", "likely", "unknown"]
    reason: str

    def __repr__(self) -> str:
        return f"Detection({_shown(format=self.format, confidence=self.confidence, reason=self.reason)})"


@final
@dataclass(frozen=True, slots=True, repr=False)
class Protected(_Result):
    """What `protect` covered of a file, and what became of its sidecar.

    Attributes:
        path: the file.
        sidecar: its sidecar.
        change: what became of the sidecar: "created", "extended", "rewritten" (it had more superseded bytes than
            others), or "unchanged".
        healed: whether the sidecar was damaged, and repaired before that.
        profile: how many data and parity blocks a group has.
        nbytes: the length of the file in bytes.
        covered_bytes: how many bytes of the file are covered, from its beginning: all except unused space and a torn
            tail.
        sidecar_bytes: the length of the sidecar in bytes.
        verified_from: where what was verified by its own format begins: 0, or where the file was covered to if only
            what was appended had to be.
        report: what was found in the file by its own format, from `verified_from` on, or None where it was not verified
            (`format="raw"`).

    Example:
        >>> import seglake
        >>> protected = seglake.protect("orders.active")
        >>> protected.change, protected.covered_bytes == protected.nbytes
        ('created', True)
        >>> seglake.protect("orders.active").change
        'unchanged'
    """

    path: str
    sidecar: str
    change: Literal["created", "extended", "rewritten", "unchanged"]
    healed: bool
    profile: str
    nbytes: int
    covered_bytes: int
    sidecar_bytes: int
    verified_from: int
    report: Report | None

    def __repr__(self) -> str:
        shown = _shown(
            sidecar=self.sidecar, change=self.change, covered_bytes=self.covered_bytes, sidecar_bytes=self.sidecar_bytes
        )
        return f"Protected({json_text(self.path)}, {shown})"


@final
@dataclass(frozen=True, slots=True, repr=False)
class Repaired(_Result):
    """What `repair` found in a file and its sidecar, and what it changed.

    Attributes:
        path: the repaired file.
        sidecar: its sidecar.
        outcome: what was found: "sound", "repaired" (all damage was repaired) or "lost" (some could not be). If it is
            not "lost", `verify` finds the file sound.
        lost: whether bytes could not be repaired, or can no longer be verified: those that `damage` calls "lost" and
            "unverified", and those that are damaged in `report`.
        damage: the ranges of the file that were damaged, with kind "repaired", "lost" or "unverified".
        sidecar_damage: the same of the sidecar.
        worst: the group of blocks with the most damage: its `band`, its number (`group`), how many parity blocks it
            `needs` and how many it has (`of`). None where nothing was damaged.
        lost_ranges: the ranges of the file that are "lost": a dict of `start`, `end` and, as above, the `worst` of the
            groups that its blocks are in. That is None where the sidecar has lost all blocks of it.
        report: the report on the repaired file by its own format: bytes that were never covered, or were damaged when
            they were covered, may be damaged. None if the file has no format.
        changed_bytes: how many bytes of the file changed or were added.
        damaged: where the damaged file is now; None if it was not replaced.
        damaged_sidecar: where the damaged sidecar is now; None if it was not replaced.

    Example:
        >>> import seglake
        >>> seglake.protect("orders.active").change
        'created'
        >>> repaired = seglake.repair("orders.active")
        >>> repaired.outcome, repaired.changed_bytes
        ('sound', 0)
    """

    path: str
    sidecar: str
    outcome: Literal["sound", "repaired", "lost"]
    lost: bool
    damage: list[Span] = field(hash=False)
    sidecar_damage: list[Span] = field(hash=False)
    worst: dict[str, int] | None = field(hash=False)
    lost_ranges: list[dict[str, Any]] = field(hash=False)
    report: Report | None
    changed_bytes: int
    damaged: str | None
    damaged_sidecar: str | None

    def __repr__(self) -> str:
        shown = _shown(outcome=self.outcome, changed_bytes=self.changed_bytes)
        return f"Repaired({json_text(self.path)}, {shown})"


@final
@dataclass(frozen=True, slots=True, repr=False)
class Recovered(_Result):
    """What was recovered of a file, and where the rest of it is.

    Attributes:
        path: the new file.
        lost: whether anything was damaged: what that was is not in the new file, or, where it was an index, is made
            anew.
        nbytes: the length of the new file in bytes.
        records: how many records it has: all that were sound.
        carried_bytes: how many bytes of the damaged file are in the new one.
        quarantined_bytes: how many bytes of the damaged file are in the quarantine.
        quarantine: the file that those are in; None where there are none and no file was named.
        manifest: the file that says where each byte of the damaged file is now; None where there is no quarantine.
        index: the index of the new file (chunked, where the damaged file had one), or None.
        report: what was found in the damaged file.

    Example:
        >>> import seglake
        >>> recovered = seglake.recover("damaged.active", "sound.active")
        >>> recovered.lost, recovered.records, recovered.quarantine
        (True, 2, 'sound.active.quarantine')
        >>> recovered.carried_bytes + recovered.quarantined_bytes == recovered.report.nbytes
        True
    """

    path: str
    lost: bool
    nbytes: int
    records: int
    carried_bytes: int
    quarantined_bytes: int
    quarantine: str | None
    manifest: str | None
    index: str | None
    report: Report

    def __repr__(self) -> str:
        shown = _shown(
            format=self.report.format,
            nbytes=self.nbytes,
            records=self.records,
            carried_bytes=self.carried_bytes,
            quarantined_bytes=self.quarantined_bytes,
        )
        state = "something was damaged" if self.lost else "nothing was damaged"
        return f"Recovered({json_text(self.path)}, {shown}, {state})"


@final
class Uuids(Sequence[UUID]):
    """UUIDs in an order, as `SegmentLog.write_batch` returns them: a sequence that compares equal to a list of them.

    Each `uuid.UUID` is made when it is asked for, since making one takes longer than writing its record. pyarrow takes
    it as a column of UUIDs, without an object for each: `pyarrow.array(uuids)`.

    Example:
        >>> import seglake
        >>> with seglake.SegmentLog("new") as log:
        ...     uuids = log.write_batch([("order.created", b"1"), ("order.paid", b"2")])
        ...     [record.uuid for record in log] == uuids
        True
    """

    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = b""

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """UUIDs from what `to_bytes` gave. Raises ValueError where that is no multiple of 16 bytes.

        Example:
            >>> import seglake
            >>> len(seglake.types.Uuids.from_bytes(bytes(32)))
            2
        """
        if len(data) % _UUID_BYTES:
            raise ValueError(f"the UUIDs have {len(data)} bytes: expected a multiple of {_UUID_BYTES}")
        made = cls()
        made._data = bytes(data)
        return made

    def to_bytes(self) -> bytes:
        """The 16 bytes of each, in network byte order.

        Example:
            >>> import seglake
            >>> with seglake.SegmentLog("new") as log:
            ...     uuids = log.write_batch([("order.created", b"1"), ("order.paid", b"2")])
            ...     uuids.to_bytes() == uuids[0].bytes + uuids[1].bytes
            True
        """
        return self._data

    def index(self, value: object, start: int = 0, stop: int | None = None) -> int:
        """The offset of the first one that is `value`. Raises ValueError where there is none.

        Example:
            >>> import seglake
            >>> with seglake.SegmentLog("new") as log:
            ...     uuids = log.write_batch([("order.created", b"1"), ("order.paid", b"2")])
            ...     uuids.index(uuids[1])
            1
        """
        places = range(len(self))[start:stop]
        at, end = places.start * _UUID_BYTES, places.stop * _UUID_BYTES
        while isinstance(value, UUID) and (at := self._data.find(value.bytes, at, end)) >= 0:
            if at % _UUID_BYTES == 0:
                return at // _UUID_BYTES
            at += 1
        raise ValueError(f"{value} is not among the UUIDs")

    def __len__(self) -> int:
        return len(self._data) // _UUID_BYTES

    @overload
    def __getitem__(self, index: int, /) -> UUID: ...
    @overload
    def __getitem__(self, index: slice, /) -> Uuids: ...
    def __getitem__(self, index: int | slice, /) -> UUID | Uuids:
        if isinstance(index, slice):
            places = range(len(self))[index]
            if places.step == 1:
                return Uuids.from_bytes(self._data[places.start * _UUID_BYTES : places.stop * _UUID_BYTES])
            return Uuids.from_bytes(b"".join(self[place].bytes for place in places))
        place = range(len(self))[index] * _UUID_BYTES
        return UUID(bytes=self._data[place : place + _UUID_BYTES])

    def __iter__(self) -> Iterator[UUID]:
        starts = range(0, len(self._data), _UUID_BYTES)
        return (UUID(bytes=self._data[start : start + _UUID_BYTES]) for start in starts)

    def __contains__(self, value: object) -> bool:
        try:
            self.index(value)
        except ValueError:
            return False
        return True

    def __eq__(self, other: object, /) -> bool:
        if isinstance(other, Uuids):
            return self._data == other._data
        return list(self) == other if isinstance(other, list) else NotImplemented

    __hash__: ClassVar[None] = None  # pyright: ignore[reportIncompatibleMethodOverride]

    def __repr__(self) -> str:
        parts = [self] if len(self) <= 2 * _SHOWN else [self[:_SHOWN], self[-_SHOWN:]]
        return f"Uuids([{', ..., '.join(', '.join(map(repr, part)) for part in parts)}])"

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """The UUIDs as an array of `arrow.uuid`, for Arrow's PyCapsule interface, as in `pyarrow.array(uuids)`."""
        from ._native import uuid_array

        return uuid_array(self._data)
