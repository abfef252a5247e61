"""What a report shows of a damaged file, read from it once more: its look, and of each damage what is around it."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglake._text import error_text

from .. import options
from ..advice import Advice, blocks, misread
from ..inputs import Input
from . import content
from .content import Alike, Cells
from .fields import Parsed, leading_to, unit_at
from .states import UNREACHED, Run, runs_of

if TYPE_CHECKING:
    from seglake import Record, Report, Span
    from seglake.types import Diagnosis

__all__ = ["Budget", "Damage", "Near", "Seen", "see"]

MOST_SHOWN_BYTES: Final = 512 << 10
"""Of files in a report."""
MOST_RANGES: Final = 100
DAMAGED: Final = "the damaged unit"
ENTRY: Final = "the entry that leads to it"
_MOST_NEAR: Final = 5
_HEAD_BYTES: Final = 320
_AROUND_BYTES: Final = 256
_MOST_AROUND_BYTES: Final = 2048
_WINDOW_BYTES: Final = 64 << 10
_MOST_ALIKE: Final = 3
_MOST_LOOKED_AT: Final = 4
_ZOOM_CELLS: Final = 256
_ZOOM_BYTES: Final = 1 << 20

ReadAt = Callable[[int, int], bytes]


@dataclass
class Budget:
    """How many bytes of files may still go into a report."""

    left: int = MOST_SHOWN_BYTES

    @property
    def spent(self) -> int:
        """How many are in it."""
        return MOST_SHOWN_BYTES - self.left

    def take(self, wanted: int) -> int:
        """Take so many bytes, or none if there are not so many left, and return how many."""
        taken = wanted if wanted <= self.left else 0
        self.left -= taken
        return taken


class Near(NamedTuple):
    """A sound record near a damage: what it is known by, and the beginning of its value."""

    position: int
    timestamp_us: int | None
    id: tuple[tuple[str, Any], ...]
    type: str | None
    head: bytes
    nbytes: int


@dataclass
class Damage:
    """One entry of a report: ranges that one cause explains, and what is around them.

    Attributes:
        spans: the ranges, the first first.
        diagnosis: what they probably come from; None if nobody asked for it.
        consequences: what follows from it.
        before: the last sound records before it, the nearest last.
        after: the first sound records after it.
        units: the fields of the unit before it, of the damaged one, and of the one after.
        windows: offsets and bytes of what is around it.
        alike: its sectors that are elsewhere in the file, too.
        zoom: the content of the bytes around it, and where they begin; None if the map shows all of it.
    """

    spans: list[Span]
    diagnosis: Diagnosis | None
    consequences: Sequence[Diagnosis] = ()
    before: deque[Near] = field(default_factory=lambda: deque[Near](maxlen=_MOST_NEAR))
    after: list[Near] = field(default_factory=list[Near])
    units: list[tuple[str, list[Parsed]]] = field(default_factory=list[tuple[str, list[Parsed]]])
    windows: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    alike: list[Alike] = field(default_factory=list[Alike])
    zoom: tuple[int, Cells] | None = None

    @property
    def first(self) -> Span:
        """The range that the cause was found in."""
        own = self.diagnosis
        return next((span for span in self.spans if own and span.start == own.start), self.spans[0])

    @property
    def start(self) -> int:
        """Where the first range begins."""
        return self._reached[0].start

    @property
    def end(self) -> int:
        """Where the last range ends."""
        return self._reached[-1].end

    @property
    def _reached(self) -> list[Span]:
        """The ranges, without those that only lead nowhere, as entries of an index do, if the first does not."""
        return [span for span in self.spans if span.cause not in UNREACHED or span.cause == self.first.cause]

    @property
    def place(self) -> tuple[int, int]:
        """Where it happened."""
        return self.diagnosis.place if self.diagnosis else (self.start, self.end)

    @property
    def links(self) -> list[Alike]:
        """What arrows are drawn for: its bytes elsewhere in the file, and the entry that leads to it."""
        entry = next((parsed for name, parsed in self.units if name == ENTRY and parsed), None)
        return [*self.alike[:1], *([Alike(self.start, entry[0].start, self.end - self.start)] if entry else [])]

    @property
    def edges(self) -> list[int]:
        """Offsets that are worth a look at their bytes, in their order."""
        repairs = self.diagnosis.repairs[:_MOST_LOOKED_AT] if self.diagnosis else []
        return sorted({self.start, self.end, *self.place, *(own.byte_offset for own in repairs)})


@dataclass
class Seen:
    """A file of a report with all that is shown of it."""

    label: str
    path: str | None
    nbytes: int
    """How many bytes the file has: fewer than the report is about where a segment is shorter than its log says."""
    report: Report
    cells: Cells
    runs: list[Run]
    damages: list[Damage]
    more_ranges: int
    unread: str
    """Why records could not be read, if they could not be."""
    reading: list[str]
    """The options that it is read with, as they are typed."""
    remarks: list[str]
    """What else there is to say of it."""
    beside: Advice | None = None
    """What is suspicious about it without damage."""

    @property
    def cause(self) -> Diagnosis | None:
        """What the first screen is about."""
        if misread(self.report):
            return next(iter(self.report.diagnoses), None)
        return self.damages[0].diagnosis if self.damages else None


def see(file: Input, report: Report, how: dict[str, Any], budget: Budget, remarks: list[str], *, values: bool) -> Seen:
    """Read what a report shows of a file.

    Args:
        file: the file.
        report: what was found in it.
        how: the options of reading.
        budget: how many bytes of it may go into the page.
        remarks: what else there is to say of it.
        values: whether what records hold may be shown.

    Raises:
        OSError, SeglakeError: the file cannot be read any more.
    """
    damages = [] if misread(report) else _damages(report)
    if not values:
        for own in damages:
            own.diagnosis = own.diagnosis and _without_tenants(own.diagnosis)
    nbytes = min(report.nbytes, file.held_bytes)
    ranges = sum(total.ranges for total in report.totals if total.cause is not None)
    shown = len({span.start for own in damages for span in (*own.spans, *own.consequences)})
    with file.bytes() as unbounded:

        def read_at(offset: int, size: int) -> bytes:
            return unbounded(offset, max(min(size, nbytes - offset), 0))

        sectors = [content.sectors_of(read_at, own.start, own.end) for own in damages]
        cell_bytes = content.cells_of(nbytes)
        every = {sector for its in sectors for sector, _ in its}
        cells, places = content.look(read_at, 0, nbytes, cell_bytes, every)
        unread = _read_records(file, report, how, damages)
        for own, its in zip(damages, sectors, strict=True):
            own.alike = content.alike(its, places)[:_MOST_ALIKE]
            own.zoom = _zoom(read_at, own, nbytes)
            own.windows = list(_windows(read_at, own, nbytes, budget))
            own.units = _units(read_at, own, report, nbytes)
    return Seen(
        file.label,
        file.path,
        nbytes,
        report,
        cells,
        runs_of(report, nbytes),
        damages,
        0 if misread(report) else max(ranges - shown, 0),
        unread,
        options.as_typed(how),
        remarks,
    )


def _without_tenants(own: Diagnosis) -> Diagnosis:
    """A diagnosis without the names of tenants, which are what records hold."""
    before, after = (
        each and each._replace(id={name: "…" if name == "tenant" else value for name, value in each.id.items()})
        for each in (own.before, own.after)
    )
    return own._replace(before=before, after=after)


def _damages(report: Report) -> list[Damage]:
    """The entries: what one cause explains is one, and what follows from another is below that."""
    if not report.diagnoses:
        return [Damage([span], None) for span in report.damage[:MOST_RANGES]]
    return [Damage(own.cause.ranges, own.cause, own.consequences) for own in blocks(report.diagnoses)[:MOST_RANGES]]


def _read_records(file: Input, report: Report, how: dict[str, Any], damages: Sequence[Damage]) -> str:
    """Find the sound records around each damage in one pass. Returns why there are none, if they cannot be read."""
    import seglake

    if not damages:
        return ""
    names = seglake.formats()[report.format].identifier
    recent: deque[Record] = deque(maxlen=_MOST_NEAR)
    waiting = sorted(damages, key=lambda own: own.start)
    filling: list[Damage] = []
    try:
        with (
            warnings.catch_warnings(),
            seglake.open(file.from_start(), on_damage="skip", sidecar=None, **options.given(how)) as reader,
        ):
            warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
            for record in reader:
                while waiting and record.position >= waiting[0].start:
                    own = waiting.pop(0)
                    own.before.extend(_near(each, names) for each in recent)
                    filling.append(own)
                for own in filling:
                    if record.position >= own.end:
                        own.after.append(_near(record, names))
                filling = [own for own in filling if len(own.after) < _MOST_NEAR] if filling else filling
                if not waiting and not filling:
                    break
                recent.append(record)
    except (seglake.SeglakeError, OSError, ValueError) as error:
        return error_text(error)
    for own in waiting:
        own.before.extend(_near(each, names) for each in recent)
    return ""


def _near(record: Record, names: Iterable[str]) -> Near:
    value = record.value or b""
    kind: str | None = getattr(record, "type", None)
    when: int | None = getattr(record, "timestamp_us", None)
    known = tuple((name, getattr(record, name)) for name in names)
    return Near(record.position, when, known, kind, value[:_HEAD_BYTES], len(value))


def _windows(read_at: ReadAt, own: Damage, nbytes: int, budget: Budget) -> Iterable[tuple[int, bytes]]:
    """The bytes around a damage in whole rows of a hexdump: all of them, or what is around its edges."""
    around = own.start - _MOST_AROUND_BYTES, own.end + _MOST_AROUND_BYTES
    near = [each.position for each in (*own.before, *own.after) if around[0] <= each.position <= around[1]]
    first, last = min([own.start, *near]) - _AROUND_BYTES, max([own.end, *near]) + _AROUND_BYTES
    pieces = [(first, last)]
    if last - first > _WINDOW_BYTES:
        room = _WINDOW_BYTES // 2 // len(own.edges)
        pieces = [(edge - room, edge + room) for edge in own.edges]
    at = 0
    for start, end in pieces:
        start, end = max(start // 16 * 16, at), min(-(-end // 16) * 16, nbytes)
        if start < end and budget.take(end - start) and (block := read_at(start, end - start)):
            yield start, block
            at = end


def _zoom(read_at: ReadAt, own: Damage, nbytes: int) -> tuple[int, Cells] | None:
    """The look of what is around a damage, in cells of a power of two; None where the map has as small ones."""
    room = max(2 * (own.end - own.start), 4096)
    cell_bytes = 16
    while cell_bytes * _ZOOM_CELLS < room:
        cell_bytes *= 2
    whole = cell_bytes * _ZOOM_CELLS
    if whole > _ZOOM_BYTES or cell_bytes >= content.cells_of(nbytes):
        return None
    first = max((own.start + own.end - whole) // 2, 0) // cell_bytes * cell_bytes
    return first, content.look(read_at, first, min(first + whole, nbytes), cell_bytes)[0]


def _units(read_at: ReadAt, own: Damage, report: Report, nbytes: int) -> list[tuple[str, list[Parsed]]]:
    """The fields of the damaged unit, and of the sound ones beside it."""
    at = {DAMAGED: own.start}
    if report.format != "tenant":
        # A record of a tenant file is a part of its unit, whose beginning it does not tell.
        at = {"the sound one before": own.before[-1].position, **at} if own.before else at
        at |= {"the sound one after": own.after[0].position} if own.after else {}
    causes = {DAMAGED: own.spans[0].cause}
    found = [(name, unit_at(report.format, read_at, start, nbytes, causes.get(name))) for name, start in at.items()]
    return [(ENTRY, leading_to(report.format, read_at, own.start, nbytes)), *found]
