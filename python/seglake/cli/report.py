"""What reports and indexes say, in words: causes, likely reasons, advice, what was skipped."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from seglake._values import instant_us, is_uri

from . import vocabulary
from .option_names import with_options
from .render import count, exact_size, printable
from .vocabulary import KEY_NEXT, meaning, title

if TYPE_CHECKING:
    from rich.text import Text

    from seglake import Reader, Report, Span
    from seglake.parity import ParityReport, Repaired
    from seglake.types import Diagnosis, Index, Neighbour, Repair, Total

_Item = TypeVar("_Item")


def bytes_of(report: Report, kind: str) -> int:
    """How many bytes of a file are of a kind."""
    return sum(total.nbytes for total in report.totals if total.kind == kind)


# What the torn tail of a file that is written whole comes from.
_COPY_REASONS = {"interrupted_write", "truncated", "consequence", "unknown"}


def advice(report: Report) -> list[str]:
    """What to do about the damage in a report, a sentence or two for each sort of it; nothing for a sound file.

    For a file that is probably read with the wrong key the only advice is the key: cutting or repairing it would
    destroy sound data.
    """
    if report.wrong_key:
        return [vocabulary.WRONG_KEY]
    from seglake import formats

    kinds = {span.kind for span in report.totals if span.cause is not None}
    causes = {span.cause for span in report.totals if span.cause is not None}
    found: list[str] = []
    if "torn_tail" in kinds:
        torn = {own.reason for own in report.diagnoses if own.kind == "torn_tail"}
        if "append" in formats()[report.format].create_options["if_exists"].choices:
            found.append(vocabulary.TORN_LOG if torn == {"interrupted_write"} else vocabulary.TORN_OTHERWISE)
        else:
            found.append(vocabulary.TORN_OTHERWISE if torn - _COPY_REASONS else vocabulary.TORN_COPY)
    if "repaired" in kinds:
        found.append(vocabulary.REPAIRED)
    if "corrupt" in kinds:
        found.append(vocabulary.CORRUPT)
    return found + [
        text for text in vocabulary.TEXTS_OF_CAUSES if any(text in vocabulary.CAUSES[own].next for own in causes)
    ]


# What a person can take in; --json has them all.
_MOST_SHOWN = 5
_LABEL_CELLS = 10


def explained(report: Report, width: int) -> Iterator[Text]:
    """The likely reasons of the first damaged ranges, a block each, and a line on the others.

    Ranges one after the other that share reason and evidence are one block.

    Args:
        report: a report whose diagnoses are wanted.
        width: where lines are broken, in cells.
    """
    blocks = _blocks(report.diagnoses)
    said: set[str] = set()
    for block in blocks[:_MOST_SHOWN]:
        yield _block(block, width, next_too=block[0].next not in said)
        said.add(block[0].next)
    if blocks[_MOST_SHOWN:]:
        yield _others([own for block in blocks[_MOST_SHOWN:] for own in block])


def joined(spans: Sequence[Span]) -> list[list[Span]]:
    """Damaged ranges as people are shown them: a burst is one, though some bytes in it are right by chance."""
    return _grouped(spans, lambda last, next: last.cause == next.cause and _is_one_burst(last, next))


def _blocks(diagnoses: Sequence[Diagnosis]) -> list[list[Diagnosis]]:
    def is_one(last: Diagnosis, next: Diagnosis) -> bool:
        return last.reason == next.reason and (last.evidence == next.evidence or _is_one_burst(last, next))

    return _grouped(diagnoses, is_one)


def _grouped(items: Sequence[_Item], is_one: Callable[[_Item, _Item], bool]) -> list[list[_Item]]:
    """The items in their order, each with the one before it where they are one."""
    groups: list[list[_Item]] = []
    for item in items:
        if groups and is_one(groups[-1][-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _is_one_burst(last: Span | Diagnosis, next: Span | Diagnosis) -> bool:
    return last.kind == next.kind == "repaired" and next.start - last.end <= _BURST_GAP_BYTES


def _others(diagnoses: list[Diagnosis]) -> Text:
    from rich.text import Text

    counted = Counter(title(own.reason) for own in diagnoses)
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in counted.most_common())
    return Text(f"... and {count(len(diagnoses), 'more range')} explained by --json: {reasons}")


def _block(block: list[Diagnosis], width: int, *, next_too: bool) -> Text:
    from rich.text import Text

    first, last = block[0], block[-1]
    where = f"{first.start:,} to {last.end:,}"
    if len(block) > 1:
        apart = any(own.end < following.start for own, following in pairwise(block))
        where += f" ({len(block):,} ranges{', other bytes between them' if apart else ''})"
    text = Text.assemble((where, "bold"), ": ", (title(first.reason), "" if first.certainty is None else "bold"))
    text.append("" if first.certainty is None else f" ({first.certainty})")
    is_one = all(own.evidence == first.evidence for own in block)
    lines = [("shown by", first.evidence if is_one else _BURST)]
    lines += [("before", _neighbour(first.before)), ("after", _neighbour(last.after))]
    lines += [("proposal", _proposal(repair)) for own in block for repair in own.repairs]
    if next_too:
        lines.append(("next", with_options(first.next)))
    for label, content in lines:
        text.append("\n" + labelled(label, content, width))
    return text


def labelled(label: str, content: str, width: int, label_cells: int = _LABEL_CELLS) -> str:
    """A text after its label, broken into lines of at most so many cells."""
    head = f"  {label:<{label_cells}}"
    return textwrap.fill(
        content,
        max(width, len(head) + 20),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _neighbour(own: Neighbour | None) -> str:
    if own is None:
        return "no sound record"
    parts = [_identifier(own.id)]
    if own.timestamp_us is not None:
        parts.append(instant_us(own.timestamp_us))
    return f"{', '.join(parts)}, at {own.position:,}"


def _identifier(columns: dict[str, Any]) -> str:
    match list(columns.items()):
        case [(name, int(number))]:
            return f"{name} {number:,}"
        case several:
            return "/".join(printable(str(value)) for _, value in several)


def _proposal(own: Repair) -> str:
    # Octal is what every printf knows.
    return f"in a copy: printf '\\{own.new:03o}' | dd of=COPY bs=1 seek={own.byte_offset} conv=notrunc"


def skipped(report: Report, label: str) -> str:
    """What was skipped of a file, and what was kept though something of it is missing."""
    where = printable(label)
    if report.wrong_key:
        return f"{where}: nothing checks, but the structure is sound: probably the wrong key\n  next      {KEY_NEXT}"
    damaged = [total for total in report.totals if total.cause is not None]
    left_out = [total for total in damaged if total.kind not in ("record", "repaired")]
    said: list[str] = []
    repaired = [total for total in damaged if total.kind == "repaired"]
    if repaired:
        ranges, volume = _summed(repaired, "range")
        records = count(report.repaired_records, "record")
        said.append(
            f"{where}: the parity sidecar differs in {volume} in {ranges}, of {records}: "
            "`--on-damage repair` reads what it restores, `seglake repair` restores the file"
        )
    if left_out:
        ranges, volume = _summed(left_out, "damaged range")
        said.append(f"{where}: skipped {ranges}, {volume}: `seglake verify` shows where")
    said.extend(
        f"{where}: {count(total.ranges, 'record')} with something missing: {total.cause}: "
        f"{meaning(total.cause or '')}: `seglake cat --columns position,cause` marks them"
        for total in damaged
        if total.kind == "record"
    )
    return "\n".join(said)


def _summed(totals: Sequence[Total], noun: str) -> tuple[str, str]:
    """How many ranges and bytes there are in all."""
    return count(sum(total.ranges for total in totals), noun), exact_size(sum(total.nbytes for total in totals))


# Of a run of random bytes one in 256 is the right one: such ranges are shown as one.
_BURST_GAP_BYTES = 64
_BURST = "the parity sidecar has other bytes, by their hash the right ones"

# What a person can take in; --json lists them all.
_MOST_PARITY_RANGES = 40
# The same in a sentence.
_MOST_LOST_RANGES = 3

PARITY_REFUSED = {
    "no_frame": "it is not one, or nothing of it is left: `seglake protect --as-it-is` begins a new one",
    "another_file": "no block of the file is as it was covered: it is probably that of another file. If the file "
    "is small or mostly gone, `seglake repair --force FILE COPY` restores what it can; verify COPY then",
    "earlier_state": "it has other bytes for records that their own checksums prove: it is probably of an earlier "
    "state of the file, or of another one. If the file is right, `seglake protect --as-it-is` begins a new one",
}
"""What `ParityReport.refused` means."""


def parity_in_words(parity: ParityReport | None, label: str) -> str:
    """What a file's parity sidecar says of both; nothing for a file that was read without one."""
    if parity is None:
        return ""
    where = printable(parity.sidecar or f"the sidecar of {label}")
    if parity.outcome == "refused":
        return f"{where}: refused: {PARITY_REFUSED[parity.refused or 'no_frame']}."
    said = {
        "sound": "sound",
        "repaired": "`seglake repair` can restore all damage of the file and of the sidecar",
        "lost": "not all damage of the file and of the sidecar can be restored",
    }[parity.outcome]
    if parity.covers_nothing:
        return f"{where}: it is empty and covers nothing of the file: `seglake protect` begins a new one."
    lost = parity.lost_ranges
    if lost:
        said += "; lost: " + ", ".join(
            f"bytes {own['start']:,} to {own['end']:,}{_needs(own['worst'])}" for own in lost[:_MOST_LOST_RANGES]
        )
        said += f" and {count(len(lost) - _MOST_LOST_RANGES, 'other range')}" if len(lost) > _MOST_LOST_RANGES else ""
    elif parity.worst is not None:
        said += f"; the worst group needs {count(parity.worst['needs'], 'block')} of {parity.worst['of']}"
    if parity.unverified_bytes:
        said += f"; {exact_size(parity.unverified_bytes)} were covered, and nothing can verify them now"
    if parity.uncovered_bytes:
        said += f"; {exact_size(parity.uncovered_bytes)} of the file are not covered"
    return f"{where}: {said}."


def _needs(worst: dict[str, int] | None) -> str:
    """What the worst group of a lost range needs, in brackets."""
    if worst is None:
        return ""
    needs = f"{count(worst['needs'], 'block')} of {worst['of']}"
    return f" (needs {needs} in group {worst['group']} of band {worst['band']})"


def parity_ranges(found: ParityReport | Repaired) -> list[tuple[str, str]]:
    """The damaged ranges of a file and of its sidecar, as far as a person can take them in: the kind, and the rest."""
    lines: list[tuple[str, str]] = []
    lost = {own["start"]: _needs(own["worst"]) for own in found.lost_ranges}
    for of, spans in (("bytes", found.damage), ("sidecar, bytes", found.sidecar_damage)):
        for span in spans[:_MOST_PARITY_RANGES]:
            where = f"{span.start:,} to {span.end:,}"
            needs = lost.get(span.start, "") if of == "bytes" and span.kind == "lost" else ""
            lines.append((span.kind, f"{of} {where} ({exact_size(span.nbytes)}): {span.cause}{needs}"))
        if len(spans) > _MOST_PARITY_RANGES:
            lines.append(("", f"and {count(len(spans) - _MOST_PARITY_RANGES, 'other range')}: --json lists them all"))
    return lines


def left_by_format(repaired: Repaired) -> tuple[str, str] | None:
    """What the format of a repaired file says of it, if that is not sound: a name and the rest."""
    report = repaired.report
    if report is None or report.ok:
        return None
    if report.wrong_key:
        return "unverified", f"no checksum matches, probably the wrong key: {KEY_NEXT}"
    volume = sum(total.nbytes for total in report.totals if total.cause is not None)
    return (
        "damaged",
        f"{exact_size(volume)} by the file's own format, not covered or covered so: `seglake verify` lists them",
    )


def how_to_undo(repaired: Repaired) -> str | None:
    """The command line that puts the damaged files back in their places; None if nothing was replaced."""
    kept = [path for path in (repaired.damaged, repaired.damaged_sidecar) if path is not None]
    commands = (shlex.join(["mv", path, path.removesuffix(".damaged")]) for path in kept)
    return printable(" && ".join(commands)) or None


def index_of(reader: Reader) -> Index | None:
    """The index that a reader uses; None where it has none, as files of most formats."""
    return reader.index() if reads_with(reader.format, "index") else None


@cache
def reads_with(format_name: str, option: str) -> bool:
    """Whether an option, such as `index` or `dialect`, concerns how files of a format are read. Asked for each file."""
    from seglake import formats

    return option in formats()[format_name].open_options


def index_facts(index: Index) -> dict[str, Any]:
    """What there is to say of an index, ready for JSON."""
    return {
        "path": index.path,
        "nbytes": index.nbytes,
        "ok": index.ok,
        "items": len(index.items),
        "beyond": None if index.beyond is None else index.beyond._asdict(),
        "damage": [span._asdict() for span in index.ledger() if span.cause is not None],
    }


def index_in_words(index: dict[str, Any]) -> str:
    """The same in words."""
    what = f"{count(index['items'], 'item')}, {exact_size(index['nbytes'])}"
    if index["ok"]:
        return f"sound: {what}"
    if index["beyond"] is not None:
        offset, position = index["beyond"]["offset"], index["beyond"]["position"]
        return (
            f"knows more than the log: the log ends before {position:,}, where the index has a chunk with message "
            f"offset {offset:,}. The log was cut off, or the index is that of another one. Copy the log again from its "
            "source. Do not replace the index before that: it is the only list of what is missing"
        )
    causes = dict.fromkeys(span["cause"] for span in index["damage"])
    reasons = "; ".join(f"{cause}: {meaning(cause)}" for cause in causes)
    return f"damaged or stale ({reasons}); {what}. The log is whole without it, only looking up takes longer"


def index_rebuilding(facts: dict[str, Any], log: str | None, index: str | None) -> str | None:
    """The command that builds an index anew; None where it is sound, or is not to be replaced.

    Args:
        facts: what there is to say of the index.
        log: the log's path or URI, None for a pipe.
        index: the index that was named for it, if one was; else it is the one beside the log.
    """
    if facts["ok"] or facts["beyond"] is not None:
        return None
    words = ["seglake", "index", "--overwrite", log or "-"]
    if index is not None and not is_uri(index):
        words.append(index)
    elif index is not None or log is None or is_uri(log):
        words.append("DST")
    return printable(shlex.join(words))
