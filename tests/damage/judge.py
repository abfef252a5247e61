"""What came back from a damaged file, held against what the undamaged one held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .image import Image
from .layouts import Fields, Identity
from .rules import Ledger, read_by_the_rules
from .sidecars import Restored
from .specimens import Range, Specimen

SOUND = ("record", "chunk", "block")


@dataclass(frozen=True)
class Reading:
    """What was read from a file: positions and fields of its records in the order they came, and its ledger.

    `checked` is whether the reader says that it held the records against checksums.
    """

    records: Sequence[tuple[int, Fields]]
    ledger: Ledger
    checked: bool

    @property
    def damage(self) -> Ledger:
        """The ranges in which something is wrong."""
        return [span for span in self.ledger if span[3] is not None]


@dataclass
class Verdict:
    """What is to be said of one damaged file.

    Lists name what is wrong, for people. `good` is the number of records of which the damage left every byte that they
    need, `kept` how many of those were returned, `right` how many of all.
    """

    records: int = 0
    good: int = 0
    kept: int = 0
    right: int = 0
    damaged: bool = False
    """Whether the damage changed the file at all."""
    silent: list[str] = field(default_factory=list[str])
    """Wrong records given out, and good ones left out, without a word, though the format could have told."""
    undetectable: list[str] = field(default_factory=list[str])
    """The same where the format cannot tell."""
    lost: list[str] = field(default_factory=list[str])
    """Good records not returned, though the rules return them."""
    barred: int = 0
    """Good records that the rules themselves do not return."""
    strangers: int = 0
    """Whole, sound records of elsewhere, given out as the file's own."""
    named: set[Identity] = field(default_factory=set[Identity], compare=False, repr=False)
    """Records that are not returned, and of which some bytes are left within what the ledger calls damage."""
    faults: list[str] = field(default_factory=list[str])
    """Anything else that must not be: a ledger that leaves bytes out, ways of reading that disagree."""
    restored: Restored | None = None
    """What came of the file with a parity sidecar, where that was tried."""
    error: str | None = None
    """What a reader raised that reads no further than to the first damage."""
    crash: str | None = None
    """How the trial ended, if not by a verdict: a panic, a signal, an exception that tells nothing."""

    @property
    def ok(self) -> bool:
        """Whether the library did all that the format lets it do."""
        return not (self.silent or self.lost or self.faults or self.crash)


def judge(specimen: Specimen, image: Image, reading: Reading, *, rules: bool = True) -> Verdict:
    """Say what became of each record.

    With `rules`, what is missing or strange must be what the rules as plain code make of the file; without, which is
    for files that are too large for plain code, it is taken for what the format cannot tell if it has no checksum.
    """
    verdict = Verdict(records=len(specimen.records), damaged=image.data != specimen.data)
    verdict.faults += faults_of_ledger(reading, len(image))
    wrong = _Judgement(specimen, image, reading, verdict)
    wrong.hold_returned()
    wrong.hold_missing()
    if wrong.doubts and rules:
        _ask_the_rules(wrong)
    elif wrong.doubts:
        unsaid = [*wrong.invented, *wrong.unnoticed.values()]
        told = specimen.layout.checked and reading.checked
        (verdict.silent if told else verdict.undetectable).extend(unsaid)
        verdict.barred += len(wrong.left_out)
    return verdict


@dataclass
class _Judgement:
    """Of one file: what stands out, before it is known whose fault it is."""

    specimen: Specimen
    image: Image
    reading: Reading
    verdict: Verdict
    returned: set[Identity] = field(default_factory=set[Identity])
    flagged: set[Identity] = field(default_factory=set[Identity])
    invented: list[str] = field(default_factory=list[str])
    unnoticed: dict[Identity, str] = field(default_factory=dict[Identity, str])
    left_out: dict[Identity, list[int]] = field(default_factory=dict[Identity, list[int]])
    whole: dict[tuple[Range, ...], list[int]] = field(default_factory=dict[tuple[Range, ...], list[int]])

    @property
    def doubts(self) -> bool:
        """Whether anything has to be explained."""
        return bool(self.invented or self.unnoticed or self.left_out or self.verdict.strangers)

    def hold_returned(self) -> None:
        """Every record that is returned must be one that was written, at its place and in the order."""
        layout, last = self.specimen.layout, None
        flagged = {start for start, _, kind, _ in self.reading.damage if kind == "record"}
        for position, fields in self.reading.records:
            identity = layout.identity_of(fields)
            if last is not None and identity <= last:
                self.invented.append(f"{_shown(identity)} at {position} comes behind {_shown(last)}")
            last = identity
            if position in flagged:
                # The rest of the record is right, or not: that it is incomplete was said.
                self.flagged.add(identity)
            elif self.specimen.records.get(identity) == fields:
                self.returned.add(identity)
                if not self.stands_at(position, identity):
                    self.invented.append(f"{_shown(identity)} is said to stand at {position}")
            elif self.specimen.strangers.get(identity) == fields:
                self.verdict.strangers += 1
            else:
                self.invented.append(f"{_shown(identity)} at {position} was never written: {_shown(fields)}")
        self.verdict.right = len(self.returned)

    def hold_missing(self) -> None:
        """Every record that is not returned must be in the ledger, with a cause."""
        damage = [(start, end) for start, end, _, _ in self.reading.damage]
        for identity, ranges in self.specimen.needs.items():
            whole = self.whole_places_of(ranges)
            self.verdict.good += bool(whole)
            if identity in self.returned:
                self.verdict.kept += bool(whole)
                continue
            if identity in self.flagged:
                self.verdict.barred += bool(whole)
                continue
            start, end = ranges[0]
            if any(low < edge and at < high for at, edge in self.image.left_of(start, end) for low, high in damage):
                self.verdict.named.add(identity)
            if whole:
                within = self.specimen.positions[identity] - start
                self.left_out[identity] = [at + within for at in whole]
                noticed = all(any(low < at + end - start and at < high for low, high in damage) for at in whole)
            else:
                areas = [area for needed in ranges for area in self.image.area_of(*needed)]
                noticed = any(low <= area[1] and area[0] <= high for area in areas for low, high in damage)
            if not noticed:
                self.unnoticed[identity] = f"{_shown(identity)} is gone, and no range of the ledger says so"

    def whole_places_of(self, ranges: tuple[Range, ...]) -> list[int]:
        """Where a record's own range stands, if nothing that it needs was touched."""
        if ranges not in self.whole:
            places = [self.image.places_of(*needed) for needed in ranges]
            self.whole[ranges] = places[0] if all(places) else []
        return self.whole[ranges]

    def stands_at(self, position: int, identity: Identity) -> bool:
        """Whether a record's own bytes, or its block's or chunk's, or what is left of them, are where it says."""
        start, end = self.specimen.needs[identity][0]
        at = position - (self.specimen.positions[identity] - start)
        if self.image.data[max(0, at) : at + end - start] == self.specimen.data[start:end]:
            return True
        return any(low <= position <= high for low, high in self.image.area_of(start, end))

    def is_gone_without_a_trace(self, identity: Identity) -> bool:
        """Whether no byte is left of a record but zeros, and what is part of sound records now."""
        sound = [(start, end) for start, end, kind, _ in self.reading.ledger if kind in SOUND]
        return not any(
            byte and not any(start <= at < end for start, end in sound)
            for low, high in self.image.left_of(*self.specimen.needs[identity][0])
            for at, byte in enumerate(self.image.data[low:high], low)
        )


def _ask_the_rules(found: _Judgement) -> None:
    """Divide what stands out into what the rules do too, and what they do not."""
    verdict, layout, reading = found.verdict, found.specimen.layout, found.reading
    checked = layout.checked and reading.checked
    records, ledger = read_by_the_rules(layout, found.image.data)
    same = records == [(at, layout.identity_of(fields), fields["value"]) for at, fields in reading.records]
    agreed = same and ledger == reading.ledger
    if not agreed:
        verdict.faults.append(f"the rules read it otherwise: {_difference(ledger, reading.ledger)}")
    by_the_rules = {(at, identity) for at, identity, _ in records}
    for identity, places in found.left_out.items():
        if any((at, identity) in by_the_rules for at in places):
            verdict.lost.append(f"{_shown(identity)} is whole at {places}, and not returned")
        else:
            verdict.barred += 1
    (verdict.silent if checked or not agreed else verdict.undetectable).extend(found.invented)
    for identity, notice in found.unnoticed.items():
        # A checksum proves what is there, and not what is not: a record of which nothing is left, between sound ones,
        # behind the last one or under a stranger, is missed only where the format says how many there were.
        told = checked and not found.is_gone_without_a_trace(identity)
        (verdict.silent if told or not agreed else verdict.undetectable).append(notice)


def faults_of_ledger(reading: Reading, size: int) -> list[str]:
    """A ledger must cover the file exactly, each range once, none empty, and each record must lie in a sound range."""
    faults: list[str] = []
    at = 0
    for start, end, kind, cause in reading.ledger:
        empty_file = (start, end, kind, cause, size) == (0, 0, "torn_tail", "truncated_header", 0)
        if start != at or (end <= start and not empty_file):
            faults.append(f"the ledger has [{start}, {end}) {kind} where a range from {at} on is due")
        if (cause is not None) != (kind in ("corrupt", "torn_tail")) and cause != "dangling_reference":
            faults.append(f"[{start}, {end}) {kind} has the cause {cause}")
        at = end
    if at != size:
        faults.append(f"the ledger ends at {at}, the file at {size}")
    sound = {start: end for start, end, kind, _ in reading.ledger if kind in SOUND}
    starts = sorted(sound)
    faults += [f"the record at {at} is in no sound range" for at in _outside(reading.records, sound, starts)]
    return faults


def _outside(records: Iterable[tuple[int, Fields]], sound: dict[int, int], starts: list[int]) -> list[int]:
    outside: list[int] = []
    number = -1
    for position in sorted(position for position, _ in records):
        while number + 1 < len(starts) and starts[number + 1] <= position:
            number += 1
        if number < 0 or sound[starts[number]] <= position:
            outside.append(position)
    return outside


def _difference(expected: Ledger, found: Ledger) -> str:
    for one, other in zip(expected, found, strict=False):
        if one != other:
            return f"{one} by the rules, {other} by the library"
    return f"{len(expected)} ranges by the rules, {len(found)} by the library"


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) < 200 else text[:200] + "…"
