"""What damage comes from and what to do about it, in words: the table of reasons filled with the facts of a report."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Sequence
from itertools import chain, groupby
from pathlib import PurePath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglake._values import instant_us, is_uri

from .options import typed_key
from .render import count, exact_size, printable
from .vocabulary import REASONS, Reason, meaning

if TYPE_CHECKING:
    from seglake import Report
    from seglake._types import LogUnread
    from seglake.types import Diagnosis, Neighbour

_PACKERS: Final = {
    "gzip": "gunzip -c",
    "zstd": "zstd -dc",
    "xz": "xz -dc",
    "bzip2": "bzip2 -dc",
    "lz4": "lz4 -dc",
    "zip": "unzip -p",
}
_DIALECTS: Final = ("draft", "draft-1.1", "autobase")
_PACKED: Final = (".gz", ".zst", ".xz", ".bz2", ".lz4", ".zip", ".b64")
# What a command line holds.
_MOST_EDITS = 8
_LOOK_BYTES = 64
_MAKES: Final = re.compile(r" > |\bseglake (recover|repair) ")


class Advice(NamedTuple):
    """What is said of a cause of damage.

    Attributes:
        headline: what happened, and how sure that is.
        back: what comes back with the command; None for nothing.
        until: until what something cannot be read, and what that is; None where nothing has to be given.
        lost: what is not in the file any more.
        kept: what of the file can be read; None where that is nothing, or is not known.
        advice: what to do as well, or instead of the command.
        command: a command to paste that undoes it, saves the rest, or looks. It changes no file.
        do_not: what would make it worse, after "do not".
        evidence: what speaks for it.
        against: what speaks against it, and what was not tried; may be empty.
        question: what decides, where it is not proven.
    """

    headline: str
    back: str | None
    until: str | None
    lost: str
    kept: str | None
    advice: str | None
    command: str | None
    do_not: str | None
    evidence: str
    against: str
    question: str | None


def advise(report: Report, own: Diagnosis, path: str | None, reading: Sequence[str] = ()) -> Advice:
    """What is to be said of a cause of damage, as text that is fit for a terminal.

    Args:
        report: the report that it is in.
        own: the cause.
        path: the file, for the command; None if it has no name.
        reading: the options that the file is read with, for the command.
    """
    said = _advised(report, own, _facts(report, own, path or "FILE", reading))
    return said if path is not None else said._replace(command=None)


def _advised(report: Report, own: Diagnosis, facts: dict[str, str]) -> Advice:
    """The same, with the facts that its texts are filled with."""
    reason = REASONS[own.reason]
    command = filled(reason.commands, facts)
    lost = filled(reason.lost or (), facts)
    is_back = _brings_back(own, command, facts)
    return Advice(
        headline=f"{titled(own)}: {filled(reason.happened, facts)}",
        back=_back(report, own, facts) if is_back else None,
        until=reason.until,
        lost=(_left(own) if is_back or own.is_sound else None) or lost or _missing(report, own),
        kept=kept(report),
        advice=_advice(own, command, facts, is_back=is_back),
        command=command,
        do_not=reason.do_not,
        evidence=printable(own.evidence),
        against=printable(own.against),
        question=None if own.certainty == "proven" else reason.question,
    )


def _brings_back(own: Diagnosis, command: str | None, facts: dict[str, str]) -> bool:
    """Whether the command undoes a cause: else it saves what can be read anyway, or only looks."""
    if command is None or command in map(facts.get, ("recover", "look", "look_there")):
        return False
    return bool(own.is_sound or own.regained or own.repairs or REASONS[own.reason].back)


def _back(report: Report, own: Diagnosis, facts: dict[str, str]) -> str | None:
    """What comes back with a cause undone; None where all could be read before."""
    if own.regained:
        # Of a file that is transformed as a whole, only its beginning may have been tried.
        is_exact = own.is_sound or own.edits or own.repairs
        return ("" if is_exact else "at least ") + count(own.regained, "record") + _where(own)
    if own.repairs and not own.is_sound:
        return _missing(report, own)
    return filled(REASONS[own.reason].back or (), facts)


def _left(own: Diagnosis) -> str | None:
    """What is lost though a cause is undone; None where its edits do not tell."""
    if own.is_sound or _is_mended(own):
        return "nothing" if own.certainty in ("proven", None) else "nothing, if so"
    zeros = [edit for edit in own.edits if edit.nbytes and edit.source is None]
    if zeros:
        return f"{count(sum(edit.nbytes for edit in zeros), 'byte')} at {zeros[0].start:,}"
    if own.edits:
        return f"what is around {own.edits[0].start:,}"
    return "what stays damaged with that undone" if own.regained else None


def _is_mended(own: Diagnosis) -> bool:
    """Whether the bits that are proposed leave nothing of the range damaged."""
    return bool(own.repairs) and "stays damaged" not in own.evidence


def _advice(own: Diagnosis, command: str | None, facts: dict[str, str], *, is_back: bool) -> str | None:
    """What to do beside the command, or instead of it."""
    reason = REASONS[own.reason]
    advice = reason.advice
    if is_back and (own.is_sound or _is_mended(own)):
        advice = None if reason.back else "mend a copy"
    elif is_back:
        advice = advice and f"{advice}, or undo it"
    elif advice and command is not None and command == facts.get("recover"):
        advice = f"{advice}, or save the rest"
    return "; ".join(text for text in (advice, reason.then) if text) or None


def filled(texts: str | Sequence[str], facts: dict[str, str]) -> str | None:
    """The first text of which all facts are known, with these in it."""
    for text in (texts,) if isinstance(texts, str) else texts:
        try:
            return text.format_map(facts)
        except KeyError:
            continue
    return None


def example(name: str) -> Advice:
    """What is said of damage to a made-up file that has a reason."""
    from seglake import Span
    from seglake.types import Edit

    start, end = 290_816, 294_912
    # Each command that makes another file undoes something.
    undoes = any(word in " ".join(REASONS[name].commands) for word in ("{plain}", "{undone}", "{undo}"))
    own: Any = SimpleNamespace(
        start=start,
        end=end,
        cause="checksum_mismatch",
        reason=name,
        certainty=None,
        before=SimpleNamespace(id={"offset": 1_000}, timestamp_us=1_706_702_400_000_000),
        after=SimpleNamespace(id={"offset": 1_016}, timestamp_us=1_706_702_442_000_000),
        repairs=[SimpleNamespace(byte_offset=300_075, bit=2, new=0o156)] if name == "flipped_bit" else [],
        edits=[Edit(start, end, 0, None)] if name in ("repeated_block", "inserted_bytes") else [],
        ranges=[Span(start, end, "corrupt", "checksum_mismatch")],
        place=(start, end),
        missing_bytes=304_875,
        missing_records=15,
        regained=15 if undoes else 0,
        is_sound=undoes,
        evidence="gzip, active, draft-1.1, 4",
        against="",
    )
    report: Any = SimpleNamespace(
        format="sealed",
        nbytes=1 << 20,
        records=1_985,
        first_timestamp_us=None,
        last_timestamp_us=None,
        wrong_key=False,
        diagnoses=(),
        parity=None,
        totals=[SimpleNamespace(nbytes=4_096, kind="repaired")],
    )
    told = {"sequence": "3", "unread": "400 records", "records": "400 records are"}
    facts = {"log": "DIR", "key": "", "copy": "COPY", "saved": "SAVED", **told}
    return _advised(report, own, _facts(report, own, "FILE", ()) | facts)._replace(kept=None)


def in_lines(headline: str, said: Advice | Reason, command: str | None) -> str:
    """What happened, in a line, and below it the command, what not to do, and what else to do."""
    lines = [("next", command), ("do not", said.do_not), ("advice", said.advice)]
    return "\n".join([headline, *(f"  {name:<9} {text}" for name, text in lines if text)])


def in_full(said: Advice) -> str:
    """All that is said of a cause, in lines of text."""
    return in_lines(f"{said.headline}. {outcome(said)}", said, said.command)


def beside(name: str, facts: dict[str, str]) -> Advice:
    """What is said of a reason that is of no damaged range."""
    reason = REASONS[name]
    return Advice(
        headline=f"{reason.title}: {filled(reason.happened, facts)}",
        back=filled(reason.back or (), facts),
        until=reason.until,
        lost=reason.lost or "nothing",
        kept=None,
        advice=reason.advice,
        command=filled(reason.commands, facts),
        do_not=reason.do_not,
        evidence="",
        against="",
        question=reason.question,
    )


def _key() -> str:
    """The key that was named, as an option that follows a command's name; nothing where none was, or several."""
    key = typed_key.get()
    return "" if key is None else f" --key-file {shell_word(key)}"


def path_facts(path: str) -> dict[str, str]:
    """What commands about a file are made of."""
    file = shell_word(path)
    return {"file": file} if is_uri(path) else {"file": file, "listing": f"ls -l {file}; df -h {file}"}


def of_log_error(error: BaseException) -> Advice | None:
    """What is wrong with the files of a log, and what to do; None for another error."""
    from seglake._native import is_log_name
    from seglake.exceptions import FormatError

    if not isinstance(error, FormatError) or error.cause not in REASONS or error.path is None:
        return None
    path = PurePath(error.path)
    log = os.fspath(path.parent if is_log_name(path.name) else path)
    names = {"file": error.path, "log": log, "copy": new_name(log, "copy"), "saved": new_name(f"{log}.jsonl", "sound")}
    facts = {name: shell_word(own) for name, own in names.items()}
    said = beside(error.cause, {**facts, "key": _key(), "found": printable(error.reason)})
    return said._replace(headline=f"{printable(error.path)}: {said.headline}")


def of_unread(unread: LogUnread) -> Advice:
    """What readers leave out of a log, and how to have it."""
    path = unread.path
    if not unread.records:
        nbytes = exact_size(unread.nbytes)
        start = f"{unread.byte_offset:,} of segment {unread.sequence}, {nbytes} after the mark,"
        said = beside("interrupted_write", {"start": start})
        lost, do_not = "nothing, if the mark is the newest", REASONS["older_mark"].do_not
        return said._replace(headline=f"{printable(path)}: {said.headline}", lost=lost, do_not=do_not)
    facts = {
        "unread": count(unread.records, "record"),
        "records": f"{count(unread.records, 'record')} {'is' if unread.records == 1 else 'are'}",
        "nbytes": exact_size(unread.nbytes),
        "sequence": str(unread.sequence),
        "start": f"{unread.byte_offset:,}",
        "log": shell_word(path),
        "copy": shell_word(new_name(path, "copy")),
        "key": _key(),
    }
    said = beside("older_mark", facts)
    return said._replace(headline=f"{printable(path)}: {said.headline}")


def as_json(report: Report, path: str | None, reading: Sequence[str] = ()) -> dict[str, Any]:
    """A report ready for JSON, each diagnosis with what is said of it."""
    told = report.to_dict()
    for own, fields in zip(report.diagnoses, told["diagnoses"], strict=True):
        said = advise(report, own, path, reading)
        fields |= {
            "headline": said.headline,
            "comes_back": said.back,
            "unreadable_until": said.until,
            "lost": said.lost,
            "advice": said.advice,
            "command": said.command,
            "do_not": said.do_not,
        }
    return {**told, "path": path}


class Block(NamedTuple):
    """Causes of damage one after the other that have the same reason and certainty, and ranges that they explain."""

    causes: Sequence[Diagnosis]
    consequences: Sequence[Diagnosis]

    @property
    def cause(self) -> Diagnosis:
        """The causes as one."""
        return _merged(self.causes)


def blocks(diagnoses: Sequence[Diagnosis]) -> list[Block]:
    """What people are shown of damage: a range that follows from a cause is in the block of that.

    What only a sidecar has comes first, then what else can be undone: what is left shows in the file that the command
    makes.
    """
    causes = [own for own in diagnoses if own.reason != "consequence"]
    if not causes:
        return [Block(diagnoses, ())] if diagnoses else []
    groups = [list(group) for _, group in groupby(causes, lambda own: (own.reason, own.certainty))]
    explained = [{span.start for cause in group for span in cause.ranges} for group in groups]
    consequences: list[list[Diagnosis]] = [[] for _ in groups]
    for own in diagnoses:
        if own.reason == "consequence":
            place = next((place for place, starts in enumerate(explained) if own.start in starts), -1)
            consequences[place].append(own)
    found = [Block(*pair) for pair in zip(groups, consequences, strict=True)]
    return sorted(found, key=lambda own: _turn(own.cause))


def _turn(own: Diagnosis) -> int:
    # A copy has no sidecar: what only that has comes before all else.
    return 0 if own.reason == "restorable" else 1 if own.repairs or own.regained else 2


def in_turn(said: Sequence[Advice]) -> list[Advice]:
    """What is said of several causes, of which one keeps its command that makes a file: the others are left in it."""
    making = [place for place, own in enumerate(said) if own.command is not None and _MAKES.search(own.command)]
    return [own if place not in making[1:] else _after(said[making[0]], own) for place, own in enumerate(said)]


def _after(first: Advice, own: Advice) -> Advice:
    rest = () if own.command == first.command else ("go on with what the command above makes",)
    return own._replace(command=None, advice="; ".join(filter(None, (own.advice, *rest))) or None)


def _merged(causes: Sequence[Diagnosis]) -> Diagnosis:
    first, last = causes[0], causes[-1]
    repairs = [repair for each in causes for repair in each.repairs]
    spans = sorted({span for each in causes for span in each.ranges})
    # Between two sound records are the same lost ones, whichever cause is asked.
    lost = {tuple(beside and beside.position for beside in (own.before, own.after)): _lost(own) for own in causes}
    numbers = list(lost.values())
    return first._replace(
        end=last.end,
        before=first.before if len(lost) == 1 else None,
        after=last.after if len(lost) == 1 else None,
        missing_records=None if None in numbers else sum(filter(None, numbers)),
        repairs=repairs,
        ranges=spans,
        edits=sorted((edit for each in causes for edit in each.edits), key=lambda edit: edit.start),
        regained=sum(each.regained for each in causes),
        is_sound=any(each.is_sound for each in causes),
    )


def titled(own: Diagnosis) -> str:
    """A reason in a few words, and how certain it is."""
    return REASONS[own.reason].title + (f" ({own.certainty})" if own.certainty is not None else "")


def kept(report: Report) -> str | None:
    """What of a file can be read; None where that is nothing, or is not known."""
    # What another dialect makes of the bytes are not records.
    if not report.records or misread(report) is not None:
        return None
    first, last = report.first_timestamp_us, report.last_timestamp_us
    when = "" if first is None or last is None else f", {_interval(first, last)}"
    return count(report.records, "record") + when


def misread(report: Report) -> str | None:
    """The option that a file is not read with rightly, which therefore is not damaged: its key, dialect or format."""
    if report.wrong_key:
        return "key"
    return next(filter(None, (REASONS[own.reason].other for own in report.diagnoses)), None)


def outcome(said: Advice) -> str:
    """What comes back, what cannot be read until when, what is lost and what is not, in sentences."""
    parts = [
        ("Comes back: ", said.back),
        ("Unreadable until ", said.until),
        ("Lost: ", said.lost),
        ("Not lost: ", said.kept),
    ]
    return " ".join(f"{name}{text}." for name, text in parts if text)


def _missing(report: Report, own: Diagnosis) -> str:
    """What cannot be read because of a cause, as far as it is known."""
    before, after = own.before, own.after
    if not report.records and before is None and after is None:
        return "all of it"
    number = _lost(own)
    if number == 0:
        return "no record"
    if number is None:
        nbytes = sum(span.nbytes for span in own.ranges) + (own.missing_bytes or 0)
        return f"records in {count(nbytes, 'byte')}" + _where(own)
    is_all = len(blocks(report.diagnoses)) == 1
    of_all = f" of {count(report.records + number, 'record')}"
    return (f"{number:,}{of_all}" if is_all else count(number, "record")) + _where(own)


def _lost(own: Diagnosis) -> int | None:
    """How many records cannot be read because of a cause; None where that is not known."""
    return own.missing_records if own.missing_records is not None else _between(own.before, own.after)


def _where(own: Diagnosis) -> str:
    """Between which records something is, after a comma."""
    before, after = own.before, own.after
    if len(own.ranges) > 1 and after is not None:
        return ""
    if before is None or after is None:
        beside = before or after
        side = "after" if after is None else "before"
        return f", {side} {_place(beside)}" if beside is not None else ""
    if before.timestamp_us is not None and after.timestamp_us is not None:
        return f", {_interval(before.timestamp_us, after.timestamp_us)}"
    return f", {_identifier(before.id)} to {_identifier(after.id)}"


def _between(before: Neighbour | None, after: Neighbour | None) -> int | None:
    """How many records are between two, by their numbers."""
    if before is None or after is None:
        return None
    match list(before.id.items()), list(after.id.items()):
        case [(name, int(first))], [(other, int(last))] if name == other and name != "position":
            return max(0, last - first - 1)
        case _:
            return None


def _place(own: Neighbour) -> str:
    return _identifier(own.id) if own.timestamp_us is None else _moment(own.timestamp_us)


def _moment(microseconds: int) -> str:
    """A time to the second, in UTC."""
    return instant_us(microseconds).partition(".")[0].removesuffix("Z").replace("T", " ")


def _interval(first: int, last: int) -> str:
    begin, end = _moment(first), _moment(last)
    day, _, time = end.partition(" ")
    return begin if begin == end else f"{begin} to {time if begin.startswith(day) else end}"


def _identifier(columns: dict[str, Any]) -> str:
    match list(columns.items()):
        case [(name, int(number))]:
            return f"{name} {number:,}"
        case several:
            return "/".join(printable(str(value)) for _, value in several)


def _facts(report: Report, own: Diagnosis, path: str | None, reading: Sequence[str]) -> dict[str, str]:
    """What is known of a cause, by the names that the texts use."""
    begin, end = own.place
    facts = {
        "start": f"{own.start:,}",
        "range": f"{own.ranges[0].start:,} to {own.ranges[-1].end:,}",
        "nbytes": count(sum(span.nbytes for span in own.ranges), "byte"),
        "place": f"{begin:,} to {end:,}",
        "place_start": f"{begin:,}",
        "place_nbytes": count(end - begin, "byte"),
        "size": count(report.nbytes, "byte"),
        "bits": count(len(own.repairs), "bit"),
        "meaning": meaning(own.cause or ""),
    }
    if own.reason == "restorable":
        facts["nbytes"] = count(sum(total.nbytes for total in report.totals if total.kind == "repaired"), "byte")
    if own.before is not None:
        facts["before"] = _place(own.before)
    if own.missing_bytes:
        facts["missing_bytes"] = count(own.missing_bytes, "byte")
    # Else it is the whole range, as nothing says where in it.
    if own.edits or (begin, end) != own.ranges[0][:2]:
        facts["inserted"] = count(end - begin, "byte")
    if not report.records:
        facts["whole"] = report.format
    if len(own.repairs) == 1:
        [repair] = own.repairs
        facts |= {"bit": str(repair.bit), "byte_offset": f"{repair.byte_offset:,}"}
    facts |= _named(own, report.format)
    return facts if path is None else facts | _commands(report, own, (begin, end), path, reading)


def _named(own: Diagnosis, format: str) -> dict[str, str]:
    """What the evidence names."""
    from seglake import formats

    words = re.findall(r"[\w.-]+", own.evidence)

    def first(known: Collection[str]) -> str | None:
        return next((word for word in words if word in known), None)

    packer = first(_PACKERS)
    begins = re.search(r"the file (begins .*)", own.evidence)
    found = {
        "begins": begins and printable(begins[1]),
        "packer": packer,
        "unpack": _PACKERS.get(packer or ""),
        "other": first([name for name in formats().names if name != format]),
        "dialect": first(_DIALECTS),
        "width": first(("2", "4", "8")),
        "charset": "UTF-16" if "UTF-16" in own.evidence else "UTF-8",
        "lines": r"s/\n/\r\n/" if "were turned into LF" in own.evidence else r"s/\r\n/\n/",
    }
    return {name: text for name, text in found.items() if text is not None}


def _commands(
    report: Report, own: Diagnosis, place: tuple[int, int], path: str, reading: Sequence[str]
) -> dict[str, str]:
    """Names of files and parts of commands. None of them changes a file that is there."""
    # What the reason's own commands give is not given twice.
    given = " ".join(REASONS[own.reason].commands)
    changed = [name for name in ("--format", "--dialect", "--key-file") if name in given]
    pairs = zip(reading[::2], reading[1::2], strict=True)
    reading = [word for name, value in pairs if name not in changed for word in (name, value)]
    file = shell_word(path)
    extract = f"seglake extract {file} --range"
    # A tool that knows no URIs reads it from another process.
    content = f"<({extract} 0:)" if is_uri(path) else file
    verify = shell_line("seglake", "verify", *reading)
    plain, sound = (shell_word(new_name(path, word)) for word in ("plain", "sound"))
    facts = {**path_facts(path), "content": content, "plain": plain, "new": sound, "verify": verify}
    # What turns all of the file back must not cost records that are sound as they are.
    if own.is_sound or own.regained or (own.certainty == "proven" and not report.records):
        facts["undone"] = plain
    if report.nbytes:
        facts["look"] = f"{extract} 0:{min(report.nbytes, _LOOK_BYTES)} --hex"
        facts["look_there"] = f"{extract} {own.start}:{min(own.end, own.start + 4 * _LOOK_BYTES)} --hex"
    if report.records and not report.wrong_key:
        facts["recover"] = f"{shell_line('seglake', 'recover', *reading)} {file} {sound}"
    if 0 < place[0] < report.nbytes:
        parts = [shell_word(new_name(path, word)) for word in ("first", "second")]
        halves = [f"{extract} :{place[0]} > {parts[0]}", f"{extract} {place[0]}: > {parts[1]}"]
        facts["split"] = f"{' && '.join(halves)} && {verify} {' '.join(parts)}"
    repairing = reading
    if report.parity is not None and report.parity.sidecar not in (None, f"{path}.par"):
        repairing = [*reading, "--sidecar", report.parity.sidecar]
    facts["repair"] = shell_line("seglake", "repair", *repairing)
    # What is damaged then is left out, unless it has a cause of its own, which may be undone next.
    is_all = own.is_sound or _is_mended(own)
    has_others = len(blocks(report.diagnoses)) > 1
    copy = sound if is_all else shell_word(new_name(path, "undone"))
    if undo := _undo(own, extract, content, copy):
        recover = shell_line("seglake", "recover", *reading)
        facts["undo"] = f"{undo} && " + (f"{verify} {copy}" if is_all or has_others else f"{recover} {copy} {sound}")
    return facts


def _undo(own: Diagnosis, extract: str, content: str, copy: str) -> str | None:
    """What makes a copy with a cause undone, where its bytes are known, or zeros may take their place."""
    if 0 < len(own.repairs) <= _MOST_EDITS:
        # Octal is what every printf knows.
        flips = [
            f"printf '\\{repair.new:03o}' | dd of={copy} bs=1 seek={repair.byte_offset} conv=notrunc"
            for repair in own.repairs
        ]
        return " && ".join([f"cat {content} > {copy}", *flips])
    if not 0 < len(own.edits) <= _MOST_EDITS:
        return None
    ranges: list[str] = []
    at = 0
    for edit in own.edits:
        if edit.start < at:
            return None  # one explanation gives way to another
        ranges += [f"{at or ''}:{edit.start}"] if edit.start > at else []
        if edit.source is not None:
            ranges.append(f"{edit.source}:{edit.source + edit.nbytes}")
        elif edit.nbytes:
            ranges.append(f"+{edit.nbytes}")
        at = edit.end
    return f"{extract} {' --range '.join([*ranges, f'{at}:'])} > {copy}"


def new_name(path: str, word: str) -> str:
    """A name for a new file beside another, which no file has; beside the folder of a log where that is in one."""
    from seglake._native import is_log_name

    whole = PurePath(path.partition("?")[0].rpartition("/")[2] if is_uri(path) else path)
    folder, stem, suffix = whole.parent, whole.stem, whole.suffix
    if is_log_name(whole.name):
        log = PurePath(os.path.abspath(path)).parent  # noqa: PTH100
        folder, stem = log.parent, f"{log.name}-{stem.partition('-')[0]}"
    names = (f"{stem}-{word}{number}{suffix}" for number in ("", *range(2, 1000)))
    if word == "plain" and suffix in _PACKED:
        names = chain([stem], names)
    return str(next(folder / name for name in names if not os.path.lexists(folder / name)))


def shell_word(path: str) -> str:
    """A path as a word of a shell's command line, whatever is in it, in characters that a terminal shows."""
    return shell_line(f"./{path}" if path.startswith("-") else path)


def shell_line(*words: str) -> str:
    """A shell's command line, whatever is in its words, in characters that a terminal shows."""
    return " ".join(shlex.quote(word) if word.isprintable() else _in_octal(word) for word in words)


def _in_octal(word: str) -> str:
    plain = (chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\" else f"\\{byte:03o}" for byte in os.fsencode(word))
    return f"$'{''.join(plain)}'"
