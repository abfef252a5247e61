"""What reports and indexes say, in words: causes, likely reasons, advice, what was skipped."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from seglake._values import is_uri

from .advice import (
    Advice,
    Block,
    advise,
    blocks,
    filled,
    in_turn,
    kept,
    misread,
    new_name,
    outcome,
    path_facts,
    shell_word,
)
from .advice import beside as beside_in_words
from .render import count, exact_size, printable, size
from .vocabulary import KEY_NEXT, REASONS, WRONG_KEY, meaning

if TYPE_CHECKING:
    from rich.text import Text

    from seglake import Reader, Report, Span
    from seglake.parity import ParityReport, Repaired
    from seglake.types import Diagnosis, Index, Total

_Item = TypeVar("_Item")


def bytes_of(report: Report, kind: str) -> int:
    """How many bytes of a file are of a kind."""
    return sum(total.nbytes for total in report.totals if total.kind == kind)


# What a person can take in; --json has them all.
_MOST_SHOWN = 5
_FEWEST_ALIKE = 3
_LABEL_CELLS = 10


def explained(
    report: Report, label: str, path: str | None, reading: Sequence[str], width: int, running: str = ""
) -> Iterator[Text]:
    """The verdict on a damaged file: a block for each of the first causes of its damage, and a line on the others.

    Without diagnoses it is what the ledger says.

    Args:
        report: the report, not that of a sound file.
        label: the file, for people.
        path: the file, for commands; None if it has no name.
        reading: the options that it is read with, for commands.
        width: where lines are broken, in cells.
        running: the command that is running, which is not proposed.
    """
    from rich.text import Text

    found = blocks(report.diagnoses)
    if not found:
        read = kept(report)
        where = f"{printable(label)}: {verdict_of(report)}: {damage_in_short(report)}."
        yield Text(_wrapped(where + ("" if read is None else f" Not lost: {read}."), width), "bold")
    shown = found[:_MOST_SHOWN]
    advice = in_turn([without(running, advise(report, block.cause, path, reading)) for block in shown])
    for number, (block, said) in enumerate(zip(shown, advice, strict=True)):
        text = _block(report, block, said, "" if number else label, width)
        if block.consequences and len(found) > 1:
            text.append("\n" + labelled("follows", count(len(block.consequences), "range"), width))
        yield text
    if others := [own for block in found[_MOST_SHOWN:] for own in (*block.causes, *block.consequences)]:
        yield _others(others)


def without(running: str, said: Advice) -> Advice:
    """What is said of a cause, without the command that is running."""
    is_running = running and said.command is not None and said.command.startswith(f"seglake {running} ")
    return said._replace(command=None) if is_running else said


def verdict_of(report: Report) -> str:
    """What a file is, in a few words."""
    wrong = misread(report)
    if wrong is not None:
        return f"not read with the right {wrong}"
    return "sound" if report.ok else "damaged"


def misnamed(report: Report, label: str) -> str | None:
    """That a file is of another format than its name says."""
    from seglake import formats

    suffix = PurePath(label).suffix.removeprefix(".")
    named = next((format.name for format in formats() if format.extension == suffix), report.format)
    return None if named == report.format else f"its name says {named}: it is {report.format}"


def damage_in_short(report: Report) -> str:
    """Each kind of damage with its cause and how much there is: `corrupt (checksum_mismatch): 103 bytes`."""
    damaged = [total for total in report.totals if total.cause is not None]
    return ", ".join(f"{total.kind} ({total.cause}): {size(total.nbytes)}" for total in damaged)


def joined(spans: Sequence[Span]) -> list[list[Span]]:
    """Damaged ranges as people are shown them: a burst is one, though some bytes in it are right by chance.

    So are three or more one after the other that have the same kind and cause.
    """
    bursts = _grouped(spans, lambda last, next: last.cause == next.cause and _is_one_burst(last, next))
    alike = _grouped(bursts, lambda last, next: last[0][2:] == next[0][2:] and last[0].kind != "repaired")
    return [
        group
        for run in alike
        for group in (run if len(run) < _FEWEST_ALIKE else [[span for burst in run for span in burst]])
    ]


def _grouped(items: Sequence[_Item], is_one: Callable[[_Item, _Item], bool]) -> list[list[_Item]]:
    """The items in their order, each with the one before it where they are one."""
    groups: list[list[_Item]] = []
    for item in items:
        if groups and is_one(groups[-1][-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _is_one_burst(last: Span, next: Span) -> bool:
    return last.kind == next.kind == "repaired" and next.start - last.end <= _BURST_GAP_BYTES


def _others(diagnoses: list[Diagnosis]) -> Text:
    from rich.text import Text

    counted = Counter(REASONS[own.reason].title for own in diagnoses)
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in counted.most_common())
    return Text(f"... and {count(len(diagnoses), 'more range')} explained by --json: {reasons}")


def _block(report: Report, block: Block, said: Advice, label: str, width: int) -> Text:
    """A cause: what happened, the command, what not to do, advice, and what shows it. Only the first has a label."""
    from rich.text import Text

    verdict = f"{printable(label)}: {verdict_of(report)}: " if label else "also: "
    told = outcome(said if label else said._replace(kept=None))
    text = Text(_wrapped(f"{verdict}{said.headline}. {told}", width), "bold")
    lines = [
        ("do not", said.do_not),
        ("advice", said.advice),
        ("shown by", said.evidence),
        ("against", said.against),
        ("decide", said.question),
    ]
    if len(block.causes) > 1:
        listed = "" if len(block.causes) <= _MOST_SHOWN else ", see --json"
        lines.append(("ranges", f"{len(block.causes):,}{listed}"))
    if said.command is not None:
        # On one line, whatever its length: to be copied.
        text.append(f"\n  {'next':<{_LABEL_CELLS}}{said.command}")
    for name, content in lines:
        if content:
            text.append("\n" + labelled(name, content, width))
    return text


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


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


def skipped(report: Report, label: str) -> str:
    """What was skipped of a file, and what was kept though something of it is missing."""
    where = printable(label)
    if report.wrong_key:
        return f"{where}: {WRONG_KEY}\n  next      {KEY_NEXT}"
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
        "lost": "not all damage of file and sidecar can be restored",
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
        return "unverified", f"{WRONG_KEY}; {KEY_NEXT}"
    volume = sum(total.nbytes for total in report.totals if total.cause is not None)
    return (
        "damaged",
        f"{exact_size(volume)} by the file's own format, not covered or covered so: `seglake verify` lists them",
    )


def how_to_undo(repaired: Repaired) -> str | None:
    """The command line that puts the damaged files back in their places; None if nothing was replaced."""
    kept = [path for path in (repaired.damaged, repaired.damaged_sidecar) if path is not None]
    return " && ".join(f"mv {shell_word(path)} {shell_word(path.removesuffix('.damaged'))}" for path in kept) or None


def index_of(reader: Reader) -> Index | None:
    """The index that a reader uses; None where it has none, as files of most formats."""
    return reader.index() if reads_with(reader.format, "index") else None


@cache
def reads_with(format_name: str, option: str) -> bool:
    """Whether an option, such as `index` or `dialect`, concerns how files of a format are read. Asked for each file."""
    from seglake import formats

    return option in formats()[format_name].open_options


def beside(report: Report, index: dict[str, Any] | None) -> str | None:
    """The reason for what is suspicious about a file without damage, or about its index; None where nothing is."""
    if not report.ok:
        return None
    if not report.nbytes:
        return "empty"
    if not report.records and all(total.kind == "unused" for total in report.totals):
        return "only_zeros"
    if not reads_with(report.format, "index"):
        return None
    if index is None:
        return "lost_index"
    return "stale_index" if not index["ok"] or (report.records and not index["items"]) else None


def about_index(report: Report, index: dict[str, Any] | None, log: str | None, named: str | None) -> Advice | None:
    """What is wrong with the index of a log without damage, and what to do; None where nothing is.

    Nothing can be done about the index of a pipe.

    Args:
        report: what was found in the log.
        index: what there is to say of its index; None if it has none.
        log: the log's path or URI, None for a pipe.
        named: the index that was named for it, if one was; else it is the one beside the log.
    """
    reason = beside(report, index)
    if log is None or reason not in ("stale_index", "lost_index"):
        return None
    said = beside_in_words(reason, path_facts(log))
    if index is not None and index["beyond"] is not None:
        return said._replace(
            lost="what the log had after its end, if the index is its own",
            advice="copy the log again from its source",
            command=None,
            do_not="replace the index: it alone lists what is missing",
        )
    rebuilding = index_rebuilding(index, log, named, log_ok=report.records > 0)
    return said if rebuilding is None else said._replace(command=rebuilding)


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


def index_in_words(index: dict[str, Any], *, log_ok: bool | None = None) -> str:
    """The same in words. `log_ok` is whether the log is sound, None where that is not known."""
    what = f"{count(index['items'], 'item')}, {exact_size(index['nbytes'])}"
    if log_ok and index["ok"] and not index["items"]:
        return "empty"
    if index["ok"]:
        return "sound" if log_ok is False else f"sound: {what}"
    if index["beyond"] is not None:
        offset, position = index["beyond"]["offset"], index["beyond"]["position"]
        return f"knows more than the log: a chunk at {position:,}, message offset {offset:,}. Do not replace it"
    if log_ok is False:
        return "damaged or stale: do not replace it"
    causes = dict.fromkeys(span["cause"] for span in index["damage"])
    reasons = "; ".join(f"{cause}: {meaning(cause)}" for cause in causes)
    more = "" if log_ok else ". `seglake verify` tells what to do"
    return f"damaged or stale ({reasons}); {what}{more}"


def index_rebuilding(
    facts: dict[str, Any] | None, log: str | None, index: str | None, *, log_ok: bool | None
) -> str | None:
    """The command that builds an index anew; None where it is sound, or may know what the log has not.

    Args:
        facts: what there is to say of the index; None if there is none.
        log: the log's path or URI, None for a pipe.
        index: the index that was named for it, if one was; else it is the one beside the log.
        log_ok: whether the log is sound, None where that is not known.
    """
    if log is None or not log_ok:
        return None
    # The log has records.
    if facts is not None and ((facts["ok"] and facts["items"]) or facts["beyond"] is not None):
        return None
    reason = REASONS["lost_index" if facts is None else "stale_index"]
    command = filled(reason.commands, {"file": shell_word(log)}) or ""
    if index is None and not is_uri(log):
        return command
    if index is None or is_uri(index):
        index = os.fspath(PurePath(new_name(log, "sound")).with_suffix(".index"))
    return f"{command} {shell_word(index)}"
