"""One damage in full: what it comes from, the records around it, its fields and its bytes."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..advice import Advice, shell_word, titled
from ..render import count, exact_size, printable
from ..vocabulary import meaning
from .content import Alike
from .fields import Parsed
from .gather import DAMAGED, MOST_RANGES, Damage, Near, Seen
from .hexdump import dump
from .markup import Html, data, data_bytes, element, join
from .minimap import Map, boundary, figure
from .parts import cell, command, facts, number, table, time
from .states import within, worst

if TYPE_CHECKING:
    from seglake import Span
    from seglake.types import Repair

__all__ = ["advised", "candidate", "entry", "script_data", "steps", "summary"]

_LEAST_HASHED_BYTES: Final = 32
_MOST_NAMED: Final = 5
_MOST_SAID: Final = 80


def summary(own: Damage) -> str:
    """A damage in one line."""
    where = f"{own.start:,} to {own.end:,}"
    if len(own.spans) > 1:
        where += f" ({len(own.spans):,} ranges)"
    if own.diagnosis is None:
        return f"{where}: {own.spans[0].kind}, {own.spans[0].cause}"
    return f"{where}: {titled(own.diagnosis)}"


def advised(advice: Advice) -> Html:
    """What happened, what is lost and what is not, one command, what not to do, and advice: in this order."""
    return join(
        element("p", advice.headline, class_="headline"),
        facts(
            [
                ("comes back", advice.back and f"{advice.back}, with this command"),
                ("unreadable until", advice.until),
                ("lost", advice.lost),
                ("not lost", advice.kept),
            ]
        ),
        steps(advice),
    )


def steps(advice: Advice) -> Html:
    """One command, what not to do, and what else to do."""
    return join(
        command(advice.command) if advice.command else None,
        element("p", element("strong", "Do not"), " ", advice.do_not, class_="do-not") if advice.do_not else None,
        element("p", element("strong", "Advice"), " ", advice.advice) if advice.advice else None,
    )


def candidate(advice: Advice) -> Html:
    """What speaks for a cause and against it, and what decides."""
    rows = {"for it": advice.evidence, "against it": advice.against, "what decides": advice.question}
    return facts(rows.items())


def entry(
    seen: Seen, own: Damage, identifier: str, advice: Advice | None, *, values: bool, is_first: bool, is_candidate: bool
) -> Html:
    """A damage with all that is known of it, folded below its one line.

    Args:
        seen: the file.
        own: the damage.
        identifier: that of the entry in the page.
        advice: what to do about it; None if nobody looked for its cause.
        values: whether values and types of records may be shown.
        is_first: whether it is the one that the first screen is about.
        is_candidate: whether the page says above what speaks for it.
    """
    known = [
        ("ranges", _ranges(own.spans) if len(own.spans) > 1 else None),
        ("size", exact_size(sum(span.nbytes for span in own.spans))),
        ("by the ledger", ", ".join(f"{word} ({meaning(word)})" for word in own.spans[0][2:] if word)),
        *(
            (f"{name} at a boundary", _boundary(offset))
            for name, offset in zip(("begins", "ends"), own.place, strict=True)
        ),
        *(("also in the file", _alike(link)) for link in own.alike),
        *(("to undo it", text) for text in _undoing(seen, own)),
        ("says", _says(own) if values else None),
    ]
    parts = [
        facts(known),
        None if advice is None or is_first else advised(advice),
        None if advice is None or is_candidate else candidate(advice),
        _consequences(own),
        *(
            _bit(own, repair, values=values)
            for repair in (own.diagnosis.repairs[:MOST_RANGES] if own.diagnosis else ())
        ),
        _zoom(seen, own, identifier),
        element("h4", "Records around it"),
        element("p", f"not read: {seen.unread}") if seen.unread else _records(own, values=values),
        *_units(own, values=values),
        *_bytes(seen, own, identifier, values=values),
    ]
    return element(
        "details",
        element(
            "summary",
            element("h3", element("span", worst(seen.runs, own.start, own.end), class_="letter"), summary(own)),
        ),
        *parts,
        id=identifier,
        open=is_first,
        class_="damage",
        **{"data-start": own.start, "data-end": own.end, "data-reason": own.diagnosis.reason if own.diagnosis else ""},
    )


def _ranges(spans: Sequence[Span]) -> str:
    first = ", ".join(f"{span.start:,} to {span.end:,}" for span in spans[:_MOST_NAMED])
    more = f" and {len(spans) - _MOST_NAMED:,} more" if len(spans) > _MOST_NAMED else ""
    return f"{len(spans):,} with the same cause: {first}{more}"


def _boundary(offset: int) -> str | None:
    of = boundary(offset)
    return None if of is None else f"exactly at {of} ({offset:,})"


def _says(own: Damage) -> str | None:
    """The first line of another program's text that is more than markup: `502 Bad Gateway`."""
    if own.diagnosis is None or own.diagnosis.reason != "other_content":
        return None
    at, block = next(((at, block) for at, block in own.windows if at <= own.start < at + len(block)), (0, b""))
    text = block[own.start - at :].decode("utf-8", "replace")
    if "\0" in text:
        return None
    lines = (line.strip() for line in re.sub(r"<[^>]*>", "\n", text).split("\n"))
    return next((printable(line[:_MOST_SAID]) for line in lines if line.isprintable() and line), None)


def _alike(link: Alike) -> str:
    apart = f"{abs(link.other - link.at):,} {'after' if link.other > link.at else 'before'}"
    return f"{link.nbytes:,} bytes at {link.at:,} are the same as those at {link.other:,}, {apart}"


def _undoing(seen: Seen, own: Damage) -> Iterable[str]:
    """What changes undo it, and what is verified then."""
    if own.diagnosis is None:
        return
    if bits := len(own.diagnosis.repairs):
        yield f"{count(bits, 'bit')} flipped back"
    for edit in own.diagnosis.edits:
        shift = edit.end - edit.start - edit.nbytes
        way = "after" if shift > 0 else "before"
        moved = (
            f"; what follows is {abs(shift):,} bytes {way} its place" if shift and edit.end < seen.report.nbytes else ""
        )
        give = f"give way to {count(edit.nbytes, 'other byte')}" if edit.nbytes else "are taken out"
        yield f"bytes {edit.start:,} to {edit.end:,} {give}{moved}"
    if regained := own.diagnosis.regained:
        yield f"then {count(regained, 'record')} more can be read"
    if own.diagnosis.is_sound:
        yield "then the whole file is sound"


def _consequences(own: Damage) -> Html | None:
    if not own.consequences:
        return None
    lines = [
        element("li", f"{each.start:,} to {each.end:,}: {each.kind}, {each.evidence}") for each in own.consequences
    ]
    said = f"{count(len(own.consequences), 'range')} that {'follows' if len(lines) == 1 else 'follow'} from it"
    return element("details", element("summary", said), element("ul", *lines))


def _bit(own: Damage, repair: Repair, *, values: bool) -> Html:
    """The byte as it is and as it would be, bit by bit, and the text around it."""
    rows: list[Html] = []
    for name, byte in (("in the file", repair.old), ("flipped back", repair.new)):
        digits, at = f"{byte:08b}", 7 - repair.bit
        bits = join(digits[:at], element("mark", digits[at], class_="corrupt"), digits[at + 1 :])
        text = _text_around(own, repair, byte) if values else None
        cells = cell(f"0x{byte:02x}"), cell(bits, class_="bits"), cell(text)
        rows.append(element("tr", element("th", name, scope="row"), *cells))
    verified = f"the {repair.checks} at {repair.start:,} is verified"
    label = f"Byte {repair.byte_offset:,}: with bit {repair.bit} flipped back, {verified}"
    return table(label, ("", "byte", "bits", "text"), rows)


def _text_around(own: Damage, repair: Repair, byte: int) -> Html | None:
    for at, block in own.windows:
        place = repair.byte_offset - at
        if 0 <= place < len(block):
            around = block[max(place - 12, 0) : place] + bytes([byte]) + block[place + 1 : place + 13]
            return data_bytes(around)
    return None


def _zoom(seen: Seen, own: Damage, identifier: str) -> Html | None:
    if own.zoom is None:
        return None
    start, cells = own.zoom
    picture = Map(start, cells, seen.runs, targets=[(own.start, own.end, summary(own))], links=own.alike)
    return figure(picture, f"{identifier}-zoom", f"The bytes around {own.start:,} to {own.end:,}")


def _records(own: Damage, *, values: bool) -> Html:
    """The records before and after a damage in one table, and between them what is missing."""
    near = [*own.before, *own.after]
    if not near:
        return element("p", "No sound record before or after it.")
    types = ["type"] if any(each.type is not None for each in near) else []
    times = ["time"] if any(each.timestamp_us is not None for each in near) else []
    head = ["offset", *(name for name, _ in near[0].id), *times, *types, "bytes", "value"]
    rows = [_record(each, (*times, *types), values=values) for each in near]
    rows.insert(len(own.before), element("tr", cell(_gap(own), colspan=len(head)), class_="gap"))
    return table("Sound records before and after it", head, rows)


def _record(own: Near, columns: Sequence[str], *, values: bool) -> Html:
    known = (
        number(each) if isinstance(each, int) else cell(hidden(str(each), values=values or name == "uuid"))
        for name, each in own.id
    )
    cells = [
        element("th", f"{own.position:,}", scope="row", class_="number"),
        *known,
        time(own.timestamp_us) if "time" in columns else None,
        cell(hidden(own.type or "", values=values)) if "type" in columns else None,
        number(own.nbytes),
        cell(data_bytes(own.head) if values else _hashed(own), class_="value"),
    ]
    return element("tr", *cells, **_range(own.position, own.position + 1))


def hidden(text: str, *, values: bool) -> Html:
    """Somebody else's text, or how long it is."""
    return data(text) if values else element("i", count(len(text.encode("utf-8", "surrogateescape")), "byte"))


def _hashed(own: Near) -> Html:
    """The hash of the beginning of a value: nothing for one so short that it could be guessed."""
    said = f"SHA-256 {hashlib.sha256(own.head).hexdigest()[:16]}" if own.nbytes >= _LEAST_HASHED_BYTES else "not shown"
    return element("i", said)


def _gap(own: Damage) -> str:
    """How much is between the records beside a damage, in time and number."""
    if not own.before or not own.after:
        where = "before" if not own.before else "after"
        return f"the damage: no sound record {where} it"
    last, first = own.before[-1], own.after[0]
    said = [f"the damage: {exact_size(sum(span.nbytes for span in own.spans))}"]
    if last.timestamp_us is not None and first.timestamp_us is not None:
        seconds = (first.timestamp_us - last.timestamp_us) / 1_000_000
        said.append(f"{seconds:,.6f} seconds from the one before to the one after")
    (_, before), (_, after) = last.id[-1], first.id[-1]
    if (
        isinstance(before, int)
        and isinstance(after, int)
        and last.id[:-1] == first.id[:-1]
        and last.id[-1][0] != "position"
    ):
        said.append(f"{count(after - before - 1, 'number')} between them")
    return "; ".join(said)


def _range(start: int, end: int) -> dict[str, Any]:
    return {"data-start": start, "data-end": end, "tabindex": "0"}


_VERDICTS: Final = {"right": "✓ right", "wrong": "✗ wrong", "read": "· read", "raw": "? raw"}


def _units(own: Damage, *, values: bool) -> Iterable[Html]:
    for name, parsed in own.units:
        if parsed:
            said = f"Fields of {name}, at {parsed[0].start:,}"
            rows = (_field(each, values=values) for each in parsed)
            fields = table(f"Fields of {name}", ("offset", "field", "bytes", "value", "is", "why"), rows)
            yield element("details", element("summary", said), fields, open=name == DAMAGED)


def _field(own: Parsed, *, values: bool) -> Html:
    value = own.value
    if isinstance(value, bytes):
        value = data_bytes(value) if values or own.name == "magic" else element("i", count(len(value), "byte"))
    cells = [
        number(own.start),
        element("th", own.name, scope="row"),
        number(own.end - own.start),
        cell(value, class_="value"),
        cell(_VERDICTS[own.verdict], class_="verdict"),
        cell(own.why),
    ]
    return element("tr", *cells, class_=own.verdict, **_range(own.start, own.end))


def _bytes(seen: Seen, own: Damage, identifier: str, *, values: bool) -> Iterable[Html]:
    yield element("h4", "Bytes")
    if not values:
        yield element("p", "Not in this report: it was made with --no-values.")
    elif own.windows:
        yield element("div", dump(own.windows, seen.runs, own.edges), class_="bytes", id=f"{identifier}-bytes")
    held = sum(len(block) for _, block in own.windows)
    end = min(own.end, seen.nbytes)
    if end - own.start > held and seen.path is not None:
        yield element("p", "All of it:")
        yield command(extract(seen.path, own.start, end))


def extract(path: str, start: int, end: int) -> str:
    """The command that shows bytes of a file."""
    return f"seglake extract {shell_word(path)} --range {start}:{end} --hex"


def script_data(seen: Seen, own: Damage) -> dict[str, Any]:
    """What the page's script shows of a damage: bytes, and the state of each."""
    states = [
        [max(run.start, at), min(run.end, at + len(block)), run.letter]
        for at, block in own.windows
        for run in within(seen.runs, at, at + len(block))
        if run.letter != "S"
    ]
    return {"windows": [[at, base64.b64encode(block).decode()] for at, block in own.windows], "states": states}
