"""Reads files that begin with the same record: a segment that was renamed or sealed, its copies, or several.

The files are compared one after the other with the segments that are known by then (`same` compares two of them). A
file that is a copy of a segment gets a row as a copy. One that has more goes on with the segment: its row is the
segment's, and the file that had the segment before is a copy. One that is no segment's begins another one.
docs/ingest.md, "One segment or several", has the rules as users see them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import seglake
from seglake._text import path_text, printable_path

from .known import KnownRecords
from .outcome import FileOutcome, RefusedError, refused
from .plan import PlannedFile
from .same import UNKNOWN, Damage, Related
from .state import Ingested

__all__ = ["Reading", "read_kin"]


class Reading(Protocol):
    """Reads one file."""

    def ingest(self, file: PlannedFile, *, found: Related | None = None) -> FileOutcome:
        """Ingests what is new of it.

        Args:
            file: the file.
            found: how it is related to its segment, if it was compared with that.

        Raises:
            RefusedError: nothing of it is to be ingested.
        """
        ...

    def format_of(self, file: PlannedFile) -> str:
        """Returns its format."""
        ...

    def goes_on(self, file: PlannedFile, before: Ingested) -> bool:
        """Tells whether it begins and goes on as a segment did."""
        ...

    def relation(self, file: PlannedFile, known: str, before: Ingested) -> Related:
        """Compares it with the file of a segment."""
        ...

    def is_as_listed(self, file: PlannedFile, before: Ingested) -> bool:
        """Tells whether a damaged copy is as it was when an earlier run compared it and listed its damage."""
        ...

    def other_tail(self, file: PlannedFile, known: str, before: Ingested) -> int:
        """Returns how many bytes its unfinished tail has, if they differ from what another has there; else 0."""
        ...

    def list_damage(self, file: PlannedFile, damage: Damage, reason: str) -> FileOutcome:
        """Lists the damage of a copy, without its records.

        Args:
            file: the copy.
            damage: what is damaged in it.
            reason: the text for the column `error`: it names the file that has the records.

        Raises:
            RefusedError: it cannot be read.
        """
        ...

    def as_active(self, file: PlannedFile, before: Ingested) -> Ingested:
        """Returns a segment that was ingested from a sealed file as if from an active one, which has its records."""
        ...


@dataclass
class _Segment:
    """A segment of this identity. `file` and `outcome` are what this run has read of it; None if that is nothing."""

    name: str
    before: Ingested
    path: str | None
    file: PlannedFile | None = None
    outcome: FileOutcome | None = None


def read_kin(files: Sequence[PlannedFile], reading: Reading) -> list[FileOutcome]:
    """Reads files of one identity, or a single one; returns their rows in the same order.

    Each record of theirs is ingested once, as far as the files are one segment or copies of it.
    """
    return _Kin(files, reading).read()


def _has_records(before: Ingested) -> bool:
    tail = before.carry.tail
    return before.records > 0 or (tail is not None and tail.records > 0)


class _Kin:
    def __init__(self, files: Sequence[PlannedFile], reading: Reading) -> None:
        self._files = files
        self._reading = reading
        self._segments = [_Segment(*known) for known in files[0].known]
        self._outcomes: dict[str, FileOutcome] = {}

    def read(self) -> list[FileOutcome]:
        self._find_moved()
        for file in self._in_order():
            try:
                self._outcomes[file.path] = self._read(file)
            except RefusedError as error:
                self._outcomes[file.path] = refused(file, error)
            except (OSError, seglake.SeglakeError) as error:
                self._outcomes[file.path] = refused(file, RefusedError.by(error, None, wrote=False))
        return [self._outcomes[file.path] for file in self._files]

    def _find_moved(self) -> None:
        """Gives a segment whose file is gone, or is another one now, the longest other file that goes on as it did."""
        here = {file.path: file for file in self._files}
        free = {file.path: file for file in sorted(self._files, key=lambda file: -file.size)}
        for segment in self._segments:
            free.pop(str(segment.path), None)
        for segment in self._segments:
            own = here.get(str(segment.path))
            if segment.path is None or (own and free and not self._reading.goes_on(own, segment.before)):
                goes_on = (path for path, file in free.items() if self._reading.goes_on(file, segment.before))
                segment.path = next(goes_on, segment.path)
                free.pop(str(segment.path), None)

    def _in_order(self) -> Sequence[PlannedFile]:
        """The files that are where they were, then what is sealed, then the largest: the others are mostly copies."""
        if len(self._files) == 1:
            return self._files
        own = {segment.path for segment in self._segments}

        def rank(file: PlannedFile) -> tuple[bool, bool, int]:
            try:
                is_sealed = self._reading.format_of(file) == "sealed"
            except (OSError, seglake.SeglakeError):
                is_sealed = False
            return file.path not in own, not is_sealed, -file.size

        return sorted(self._files, key=rank)

    def _read(self, file: PlannedFile) -> FileOutcome:
        if file.identity is None or file.before is not None:
            return self._reading.ingest(file)
        own = next((each for each in self._segments if each.path == file.path and each.file is None), None)
        # What had no record so far may be a copy of what another file has.
        if own is not None and (_has_records(own.before) or len(self._segments) == 1):
            return self._go_on(own, file)
        gone: RefusedError | None = None
        for segment in self._segments:
            if segment is own:
                continue
            found = None
            try:
                if segment.path is not None:
                    found = self._reading.relation(file, segment.path, segment.before)
                    if found.relation == "copy":
                        return self._copy(file, segment, found.damage)
                    if found.relation == "other":
                        continue
                    if found.relation == "anew":
                        # The segment's tail, which a run with `final` has taken, is not in this file.
                        segment.before = segment.before.with_carry(segment.before.carry.without_tail())
                    if found.known is None and self._is_active_after_sealed(file, segment):
                        segment.before = self._reading.as_active(file, segment.before)
                return self._go_on(segment, file, found)
            except RefusedError as error:
                if error.status != "replaced":
                    raise
                gone = error if segment.path is None else gone
        if gone is not None:
            if file.copy is not None and self._reading.is_as_listed(file, file.copy):
                return self._copy(file, self._segments[0], UNKNOWN)
            raise gone
        return self._begin(file) if own is None else self._go_on(own, file)

    def _is_active_after_sealed(self, file: PlannedFile, segment: _Segment) -> bool:
        """Tells whether an active file went on after it had been sealed to another."""
        return segment.before.carry.position.format == "sealed" and self._reading.format_of(file) == "active"

    def _go_on(self, segment: _Segment, file: PlannedFile, found: Related | None = None) -> FileOutcome:
        carry, own = segment.before.carry, segment.outcome
        has_found = own is not None and own.damage and own.format == self._reading.format_of(file)
        if has_found and found is not None and found.known is None and carry.tail is None:
            # This run has listed damage of another file, which is a copy now: it is listed for this one, too.
            found = found._replace(known=KnownRecords(carry))
        outcome = self._reading.ingest(file._replace(before=segment.before, name=segment.name), found=found)
        earlier, segment.before, segment.path = segment.outcome, Ingested.of(outcome), file.path
        if earlier is not None and segment.file is not None:
            # The row of the segment is that of the file that has most of it.
            outcome.added += earlier.added
            outcome.is_news = outcome.is_news or earlier.is_news
            if earlier.format == outcome.format and earlier.start is not None and outcome.start is not None:
                outcome.start = min(earlier.start, outcome.start)
            outcome.repaired_records += earlier.repaired_records
            outcome.refused_sidecar = outcome.refused_sidecar or earlier.refused_sidecar
            copy = self._earlier(segment.file, segment, earlier)
            self._outcomes[segment.file.path] = copy
            if copy.status == "copy":
                for cause, (ranges, nbytes) in earlier.damage.items():
                    more = outcome.damage.get(cause, (0, 0))
                    outcome.damage[cause] = (more[0] + ranges, more[1] + nbytes)
        segment.file, segment.outcome = file, outcome
        return outcome

    def _earlier(self, file: PlannedFile, segment: _Segment, outcome: FileOutcome) -> FileOutcome:
        """Makes the row of a file that this run has read, with this outcome, and that is a copy by now."""
        damage = Damage() if outcome.status == "sound" else UNKNOWN
        try:
            tail = self._reading.other_tail(file, str(segment.path), Ingested.of(outcome))
            if tail and outcome.format == "oplog":
                return self._begin(file)  # records of another file may be in it
            return self._copy(file, segment, damage._replace(tail=tail))
        except RefusedError as error:
            return refused(file, error)
        except (OSError, seglake.SeglakeError) as error:
            return refused(file, RefusedError.by(error, None, wrote=False))

    def _begin(self, file: PlannedFile) -> FileOutcome:
        names = {segment.name for segment in self._segments}
        name, number = file.segment_name, 1
        while name in names:
            number += 1
            name = f"{file.segment_name}#{number}"
        outcome = self._reading.ingest(file._replace(name=name))
        self._segments.append(_Segment(name, Ingested.of(outcome), file.path, file, outcome))
        return outcome

    def _copy(self, file: PlannedFile, segment: _Segment, damage: Damage) -> FileOutcome:
        """Makes the row of a copy; `damage` is what is damaged in it."""
        path = path_text(file.path)
        reason = f"{path}: its records are those of {printable_path(segment.path or segment.before.path)}"
        if not damage.is_none:
            outcome = self._reading.list_damage(file, damage, reason)
            if outcome.status == "damaged":
                return outcome
        format = self._reading.format_of(file)
        row = FileOutcome(path, path, "copy", format, size=file.size, modified=file.modified, error=reason)
        row.pending_bytes = damage.tail or None
        return row
