"""The page: first screen, map, damages, overview of several files, and the footer; within its size."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from seglake._values import instant_us

from ..advice import Advice, advise, in_turn, kept, misread
from ..render import count, exact_size, size
from ..report import damage_in_short, verdict_of, without
from ..vocabulary import TERMS, meaning
from .damage import advised, candidate, entry, script_data, steps, summary
from .gather import MOST_SHOWN_BYTES, Budget, Damage, Seen
from .markup import Html, data, element, join, script_json
from .minimap import Map, figure, patterns
from .parts import cell, facts, number, table
from .states import STATES, runs_of, worst

if TYPE_CHECKING:
    from seglake import Report
    from seglake.types import Diagnosis

__all__ = ["MARK", "Line", "Page", "states_in_short", "verdict", "written"]

MARK: Final = '<!DOCTYPE html>\n<html lang="en" data-by="seglake">'
"""What each report begins with: a file that does not is not replaced by one."""
MOST_BYTES: Final = 2_000_000
# Damages of a file, whether their bytes are for the script, and the report as JSON.
_LESS_AND_LESS: Final = (
    (100, True, True),
    (100, False, True),
    (20, False, True),
    (5, False, False),
    (0, False, False),
)
_CHANGING: Final = ("recover", "scrub")
_PLAIN_JSON_BYTES: Final = 64 << 10
_MOST_JSON_CHARACTERS: Final = 8 << 20
_MOST_LINES: Final = 200
_BAR_CELLS: Final = 60
_BAR_WIDE: Final = 240
_MOST_CANDIDATES: Final = 3
_MOST_FRAMES: Final = 20
# What these say is missing was after the end, not within the file.
_CUT_OFF: Final = ("truncated", "short_segment")


@dataclass
class Line:
    """A file in the overview.

    Attributes:
        label: its name.
        verdict: in one word or two.
        said: what was found in it, in a line.
        nbytes: its length; None if it was not read.
        states: the letters of its states, in cells of equal size.
        mark: up to where its log says that it is synced; None if no log does.
    """

    label: str
    verdict: str
    said: str
    nbytes: int | None = None
    states: str = ""
    mark: int | None = None


@dataclass
class Page:
    """What is in a report.

    Attributes:
        command: which command wrote it.
        options: what it was called with, without the files.
        values: whether values of records may be in it.
        files: how many files there are.
        lines: those of the overview.
        seen: those that are shown in full.
        notes: what there is to say of all files together.
        reports: what `--json` prints, a line for each file; None if that is too much.
        budget: how many bytes of files may still go into it.
    """

    command: str
    options: Mapping[str, str]
    values: bool
    files: int = 0
    lines: list[Line] = field(default_factory=list[Line])
    seen: list[Seen] = field(default_factory=list[Seen])
    notes: list[str | Advice] = field(default_factory=list["str | Advice"])
    reports: list[str] | None = field(default_factory=list[str])
    budget: Budget = field(default_factory=Budget)
    _room: int = _MOST_JSON_CHARACTERS

    @property
    def has_values(self) -> bool:
        """Whether values of records are in it: none are where no file was read."""
        return self.values and bool(self.seen)

    def add(self, line: Line, report: Any = None) -> None:
        """Add a file, as far as there is room for it."""
        self.files += 1
        same = sum((own.verdict == "sound") == (line.verdict == "sound") for own in self.lines)
        if same < _MOST_LINES:
            self.lines.append(line)
        if report is not None and self.reports is not None:
            self.reports.append(json.dumps(report, sort_keys=True))
            self._room -= len(self.reports[-1])
            self.reports = self.reports if self._room > 0 else None


def written(page: Page) -> str:
    """The page as HTML, of at most 2 MB: if there is more to show, less of it is shown."""
    text = ""
    for most, bytes_too, json_too in _LESS_AND_LESS:
        text = _written(page, most, bytes_too=bytes_too, json_too=json_too)
        if len(text) <= MOST_BYTES // 4 or len(text.encode()) <= MOST_BYTES:
            return text
    return text


def _written(page: Page, most: int, *, bytes_too: bool, json_too: bool) -> str:
    style, script = _asset("style.css"), _asset("report.js")
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:"
    entries: dict[str, Any] = {}
    terms = dict(TERMS)
    notes = _explained(
        (text for note in page.notes for text in ([note] if isinstance(note, str) else note) if text), terms
    )
    sections = [
        _file(seen, f"f{number}", page, most, entries, terms, bytes_too=bytes_too)
        for number, seen in enumerate(page.seen, 1)
    ]
    title = page.lines[0].label if page.files == 1 else count(page.files, "file")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"seglake {page.command}: {title}"),
        Html(f"<style>{style}</style>"),
    )
    body = element(
        "body",
        element("a", "To the content", href="#main", class_="skip"),
        element("header", _first_line(page)),
        element(
            "main",
            _overview(page, notes) if page.files > 1 or page.notes or not page.seen else None,
            *sections,
            id="main",
        ),
        element("footer", *_footer(page, json_too=json_too)),
        element("p", "", id="status", role="status", aria_live="polite"),
        patterns(),
        script_json("bytes", entries),
        Html(f"<script>{script}</script>"),
    )
    return f"{MARK}\n{head}\n{body}\n</html>\n"


@cache
def _asset(name: str) -> str:
    return files("seglake.cli.html").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _first_line(page: Page) -> Html:
    has = "Values of records are in this page" if page.has_values else "No values of records are in this page"
    nothing = "" if page.command in _CHANGING else " Nothing was changed."
    return element("p", f"Report of seglake {page.command}. {has}; a key never is.{nothing}")


def _explained(texts: Iterable[str], terms: dict[str, str]) -> Html:
    """What the terms in texts mean, which are taken from those that are not explained yet."""
    said = " ".join(texts)
    used = [term for term in terms if re.search(rf"\b{term}s?\b", said)]
    return facts([(term, terms.pop(term)) for term in used])


def _file(
    seen: Seen, name: str, page: Page, most: int, entries: dict[str, Any], terms: dict[str, str], *, bytes_too: bool
) -> Html:
    """All of one file: the first screen, then the map, then each damage."""
    shown = seen.damages[:most]
    said = [_advice(seen, own.diagnosis, page.command) for own in shown if own.diagnosis is not None]
    advice = in_turn(said) or [None] * len(shown)
    first = advice[0] if advice else _first(seen, page.command)
    texts = [text for said in (first, *advice) if said for text in said if text]
    texts += [*seen.remarks, "ledger", *(["unit"] if shown else []), *(STATES[run.letter].name for run in seen.runs)]
    doubtful = [own for own in shown if own.diagnosis is not None and own.diagnosis.certainty != "proven"]
    candidates = doubtful[:_MOST_CANDIDATES]
    parts: list[Html] = []
    for place, (own, said) in enumerate(zip(shown, advice, strict=True), 1):
        identifier = f"{name}-{place}"
        flags = {"is_first": place == 1, "is_candidate": own in candidates, "values": page.values}
        parts.append(entry(seen, own, identifier, said, **flags))
        if page.values and bytes_too:
            entries[identifier] = script_data(seen, own)
    if left := seen.more_ranges + sum(len(own.spans) for own in seen.damages[most:]):
        parts.append(element("p", f"and {count(left, 'more range')}: the totals below count them, --json lists them"))
    return element(
        "section",
        _first_screen(seen, name, first, title="h1" if page.files == 1 and not page.notes else "h2"),
        _explained(texts, terms),
        _candidates([(own, said) for own, said in zip(shown, advice, strict=True) if said and own in candidates]),
        _picture(seen, name),
        element("section", element("h2", "Damage"), *_index(seen, name, shown), *parts) if shown else None,
        # What another option makes of the bytes is not a finding.
        None if misread(seen.report) else _totals(seen),
        id=name,
        class_="file",
        aria_label=seen.label,
    )


def verdict(report: Report) -> tuple[str, str]:
    """What a file is, and the style of that."""
    if report.ok and not report.nbytes:
        return "empty", "kept"
    style = "kept" if misread(report) else "sound" if report.ok else "corrupt"
    return verdict_of(report), style


def _first(seen: Seen, command: str) -> Advice | None:
    """What the first screen says of a file."""
    return seen.beside if seen.cause is None else _advice(seen, seen.cause, command)


def _advice(seen: Seen, own: Diagnosis, command: str) -> Advice:
    """What is said of a cause, without the command that is running."""
    return without("recover" if command == "recover" else "", advise(seen.report, own, seen.path, seen.reading))


def _first_screen(seen: Seen, name: str, advice: Advice | None, title: str) -> Html:
    """Verdict, cause, what is lost and what is not, one command, and what not to do: in this order."""
    report, (said, style) = seen.report, verdict(seen.report)
    what = f"{report.format}, {exact_size(seen.nbytes)}"
    what += "" if misread(report) else f", {count(report.records, 'record')}"
    if report.first_timestamp_us is not None and report.last_timestamp_us is not None:
        what += f", {instant_us(report.first_timestamp_us)} to {instant_us(report.last_timestamp_us)}"
    plainly = None if report.ok else facts([("damaged", damage_in_short(report)), ("not lost", kept(report))])
    others = len(seen.damages) - 1
    more = element("a", f"and {count(others, 'other damage')} below", href=f"#{name}-2") if others > 0 else None
    return element(
        "section",
        element(title, data(seen.label), ": ", element("strong", said, class_=f"verdict-{style}")),
        element("p", what, class_="what"),
        advised(advice) if advice else plainly,
        more and element("p", more),
        *(element("p", remark) for remark in seen.remarks),
    )


def _candidates(doubtful: Sequence[tuple[Damage, Advice]]) -> Html | None:
    """The causes that are not proven: what speaks for each and against it."""
    said = [element("li", element("p", summary(own)), candidate(advice)) for own, advice in doubtful]
    return element("section", element("h2", "Not proven"), element("ol", *said), class_="candidates") if said else None


def _picture(seen: Seen, name: str) -> Html | None:
    if not seen.nbytes:
        return element("p", "The file is empty.")
    targets = [(span.start, span.end, summary(own)) for own in seen.damages for span in own.spans[:_MOST_FRAMES]]
    links = [link for own in seen.damages[:_MOST_FRAMES] for link in own.links]
    cut = [own.diagnosis for own in seen.damages if own.diagnosis and own.diagnosis.reason in _CUT_OFF]
    missing = max((own.missing_bytes or 0 for own in cut), default=0) or seen.report.nbytes - seen.nbytes
    picture = Map(0, seen.cells, seen.runs, missing, targets, links)
    return element("section", element("h2", "Map"), figure(picture, f"{name}-map", f"Map of {seen.label}"))


def _index(seen: Seen, name: str, shown: Sequence[Damage]) -> Iterable[Html]:
    """Links to all damages, where there are several."""
    if len(shown) > 1:
        links = [
            element("li", element("a", summary(own), href=f"#{name}-{number}", class_="to"))
            for number, own in enumerate(shown, 1)
        ]
        yield element("nav", element("ol", *links), aria_label="Damages")


def _totals(seen: Seen) -> Html:
    rows = [
        element(
            "tr",
            element("th", own.kind, scope="row"),
            cell(own.cause),
            number(own.nbytes),
            number(own.ranges),
            cell(meaning(own.cause or own.kind)),
        )
        for own in seen.report.totals
    ]
    totals = table("Totals", ("kind", "cause", "bytes", "ranges", "meaning"), rows)
    return element("section", element("h2", "All bytes"), totals)


def _overview(page: Page, terms: Html) -> Html:
    """All files in a table, those that are not sound first, each with its states on a line."""
    lines = sorted(page.lines, key=lambda own: own.verdict == "sound")
    full = {seen.label: f"#f{number}" for number, seen in enumerate(page.seen, 1)}
    rows = (
        element(
            "tr",
            element(
                "th",
                element("a", data(own.label), href=full[own.label]) if own.label in full else data(own.label),
                scope="row",
            ),
            cell(own.verdict),
            cell(own.said),
            cell(_bar(own)),
        )
        for own in lines
    )
    more = page.files - len(lines)
    # Of a single one that is shown in full this is said there.
    is_alone = page.files == 1 and not page.seen
    title = [data(lines[0].label), ": ", lines[0].verdict] if is_alone else [count(page.files, "file")]
    return element(
        "section",
        element("h1", *title),
        *(element("p", note) if isinstance(note, str) else advised(note) for note in page.notes),
        _next(page),
        terms,
        table("Files", ("file", "verdict", "found", "where"), rows),
        element("p", f"and {count(more, 'more file')}") if more > 0 else None,
    )


def _next(page: Page) -> Html | None:
    """The next step with the first of several files that are not sound, where nothing of all of them comes first."""
    if any(not isinstance(note, str) for note in page.notes):
        return None
    for place, seen in enumerate(page.seen, 1):
        first = _first(seen, page.command)
        if first is not None and first.command is not None:
            link = element("a", data(seen.label), href=f"#f{place}")
            return join(element("p", "The first that is not sound: ", link), steps(first))
    return None


def _bar(own: Line) -> Html | None:
    """The states of a file on one line, and where its log's mark is."""
    if not own.states or not own.nbytes:
        return None
    each = _BAR_WIDE / len(own.states)
    cells: list[Html] = []
    at = 0
    for letter, group in groupby(own.states):
        number = len(list(group))
        path = f"M{at * each:.1f} 0h{number * each:.1f}v12h{-number * each:.1f}z"
        cells.append(element("path", class_=STATES[letter].style, d=path))
        at += number
    said = f"{own.label}: {', '.join(STATES[letter].name for letter in STATES if letter in own.states)}"
    if own.mark is not None:
        place = _BAR_WIDE * min(own.mark / own.nbytes, 1)
        cells.append(element("path", class_="edge", d=f"M{place:.1f} 18l-4 -6h8z"))
        said += f"; synced up to {own.mark:,}"
    shape = {"viewBox": f"0 0 {_BAR_WIDE} 18", "width": _BAR_WIDE, "height": 18}
    return element("svg", element("title", said), *cells, role="img", aria_label=said, **shape)


def states_in_short(report: Report, held_bytes: int) -> str:
    """The states of a file in a few cells, a letter each."""
    runs, nbytes = runs_of(report, held_bytes), report.nbytes
    cells = min(_BAR_CELLS, nbytes)
    return "".join(worst(runs, at * nbytes // cells, -(-(at + 1) * nbytes // cells)) for at in range(cells))


def _footer(page: Page, *, json_too: bool) -> Iterable[Html]:
    from seglake import __version__

    given = "; ".join(f"{name} {value}" for name, value in page.options.items()) or "no options"
    yield element("p", f"seglake {__version__}, {page.command}: {given}. What is proposed was not done.")
    if json_too and page.reports is not None:
        text = "".join(f"{own}\n" for own in page.reports).encode()
        kind, name = "application/json", "report.json"
        if len(text) > _PLAIN_JSON_BYTES:
            text, kind, name = gzip.compress(text, mtime=0), "application/gzip", "report.json.gz"
        link = f"data:{kind};base64,{base64.b64encode(text).decode()}"
        yield element("p", element("a", f"The whole report as JSON ({size(len(text))})", href=link, download=name))
    else:
        yield element("p", f"The whole report is too large for this page: seglake {page.command} --json prints it.")
    ranges = sum(total.ranges for seen in page.seen for total in seen.report.totals if total.cause is not None)
    causes = sum(len(seen.report.diagnoses) for seen in page.seen)
    spent = f"Of files {page.budget.spent:,} bytes are in this page, of {MOST_SHOWN_BYTES:,} at most"
    yield element("p", f"{spent}; causes were looked for of {causes:,} of {count(ranges, 'damaged range')}.")
    keys = "Keys: n and p go to the next damage and to the one before, arrows through bytes, Escape back."
    yield element("p", keys, class_="keys")
