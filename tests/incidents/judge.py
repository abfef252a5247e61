"""Whether what `verify` says of a case is right, and what comes of following it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from cli_process import pasted

import seglake
from seglake.cli.failure import Status

from .answer import FAILED, Answer, Diagnosis, ask
from .case import Case, Step, form_of
from .undone import undone

MOST_WORDS = 120
"""Of the text on one cause."""

# Those that wait for what only a person knows.
_NOT_RUN = frozenset({Step.KEY, Step.OTHER})
_FOLLOWED_S = 60
# What a command writes beside the files that have the records.
_BESIDE = frozenset({".quarantine", ".jsonl", ".par", ".index"})
# Columns of a record's place, which may be another one in another file.
_PLACES = frozenset({"position", "index", "seq"})


class Kind(StrEnum):
    """What is wrong beside a wrong cause or step."""

    BESIDE = "beside"  # other causes are named beside the true one
    PROVEN = "proven"  # another cause than the true one is called proven, and what is proposed makes nothing sound
    WORDS = "words"  # more of them than anybody reads
    GENERIC = "generic"  # a paragraph on damage of any sort follows a finding
    FAILS = "fails"  # `verify`, or the advised command, does not run
    LOSES = "loses"  # the advised command loses records


class Fault(NamedTuple):
    """A fault, and where it shows."""

    kind: Kind
    detail: str


@dataclass(frozen=True)
class Judged:
    """A case and what was said of it.

    `is_undone` says that following the advice gave the file as it was before.
    """

    case: Case
    answer: Answer
    faults: tuple[Fault, ...]
    is_undone: bool

    @property
    def step(self) -> Step:
        """The form of what is advised."""
        return form_of(self.answer.command)

    @property
    def is_named(self) -> bool:
        """Whether the cause is right."""
        return self.answer.reason in self.case.reasons

    @property
    def is_advised(self) -> bool:
        """Whether the next step is right."""
        return self.step in self.case.steps and not (self.case.file and self.answer.reason == FAILED)


def judge(case: Case, folder: Path, *, follow: bool = True) -> Judged:
    """Stage a case in an empty folder, ask, and do what is advised there."""
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    # A log is named, a file is in the folder where one is.
    place, path = (folder, Path(case.file)) if case.file else (folder.parent, Path(folder.name))
    with chdir(place):
        answer = ask(path)
    faults = [*_scattered(case, answer), *_overstated(case, answer), *_wordy(answer)]
    if answer.status == Status.TROUBLE and case.file and case.key is None:
        faults.append(Fault(Kind.FAILS, f"`seglake verify`: {answer.text[-200:].strip()}"))
    if follow:
        faults += _followed(case, folder, answer, place)
    others = (path for path in folder.iterdir() if path.name not in case.files or path.name == case.file)
    return Judged(case, answer, tuple(faults), any(path.read_bytes() == case.sound for path in others))


def _scattered(case: Case, answer: Answer) -> Iterator[Fault]:
    others = {answer.reason, *answer.others} - case.reasons
    if answer.reason in case.reasons and others:
        yield Fault(Kind.BESIDE, " ".join(sorted(others)))


def _overstated(case: Case, answer: Answer) -> Iterator[Fault]:
    for own in answer.diagnoses:
        is_other = own["reason"] not in {*case.reasons, "consequence"}
        if own["certainty"] == "proven" and is_other and not _is_sound_without(case, own):
            yield Fault(Kind.PROVEN, f"{own['reason']} at {own['start']}: {own['evidence']}")


def _is_sound_without(case: Case, own: Diagnosis) -> bool:
    """Whether the file is sound with a cause undone."""
    mended = undone(case.data, own) if case.file else None
    return mended is not None and seglake.verify(mended, explain=False).ok


def _wordy(answer: Answer) -> Iterator[Fault]:
    if not answer.others and answer.words > MOST_WORDS:
        yield Fault(Kind.WORDS, str(answer.words))
    if answer.generic is not None:
        yield Fault(Kind.GENERIC, answer.generic)


def _followed(case: Case, folder: Path, answer: Answer, place: Path) -> Iterator[Fault]:
    if answer.command is None or form_of(answer.command) in _NOT_RUN:
        return
    segments = [folder / name for name in ([case.file] if case.file else case.files)]
    before = _records(segments)
    done = pasted(answer.command, place, timeout=_FOLLOWED_S)
    # 1 is that of damage if `recover` met it, or `verify` after it; 127 that there is no such program here.
    said = done.stderr.decode().strip()
    is_of_damage = done.returncode == Status.DAMAGED and (done.stdout or said.startswith("seglake"))
    # What is packed and cut off is unpacked up to there.
    is_of_part = form_of(answer.command) == Step.DECOMPRESS and Step.RESTORE in case.steps
    if done.returncode not in (0, 127) and not (is_of_damage or is_of_part):
        yield Fault(Kind.FAILS, f"`{answer.command}`: {said}")
    if lost := len(before - _records(segments)):
        yield Fault(Kind.LOSES, f"`{answer.command}`: {lost} records of the file itself")
    made = [path for path in folder.iterdir() if path.name not in case.files and path.suffix not in _BESIDE]
    if case.file and made and (lost := len(before - _records(made))):
        yield Fault(Kind.LOSES, f"`{answer.command}`: {lost} records are not in what it makes")


def _records(paths: Iterable[Path]) -> set[tuple[str, ...]]:
    """The records that can be read of files, whatever is wrong with the rest."""
    found: set[tuple[str, ...]] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in paths:
            try:
                with seglake.open(path, on_damage="skip") as reader:
                    rows = [record.to_dict().items() for record in reader]
            except seglake.SeglakeError:
                continue
            found.update(tuple(repr(own) for name, own in row if name not in _PLACES) for row in rows)
    return found
