"""Whether what `verify` says of a case is right, and what comes of following it."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import seglake

from .answer import Answer, ask
from .case import Case, Step, form_of

MOST_WORDS = 120
"""Of the text on one cause."""

# Commands that this machine need not have, and those that wait for what only a person knows.
_NOT_RUN = frozenset({Step.KEY, Step.OTHER})
_FOLLOWED_S = 60


@dataclass(frozen=True)
class Judged:
    """A case and what was said of it. `faults` are what is wrong beside a wrong cause or step."""

    case: Case
    answer: Answer
    faults: tuple[str, ...]

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
        return self.step in self.case.steps


def judge(case: Case, folder: Path, *, follow: bool = True) -> Judged:
    """Stage a case in an empty folder, ask, and do what is advised there."""
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    path = folder / case.file
    answer = ask(path)
    faults = [*_overstated(case, answer), *_wordy(answer)]
    if follow:
        faults += _followed(case, folder, answer)
    return Judged(case, answer, tuple(faults))


def _overstated(case: Case, answer: Answer) -> list[str]:
    """Causes that are called proven and are not the truth, while what is proposed makes nothing sound."""
    found: list[str] = []
    for own in answer.diagnoses:
        is_other = own["reason"] not in {*case.reasons, "consequence"}
        if own["certainty"] == "proven" and is_other and not _mends(case.data, own["repairs"]):
            found.append(f"{own['reason']} is called proven at {own['start']}")
    return found


def _mends(data: bytes, repairs: list[dict[str, int]]) -> bool:
    """Whether a file is sound with the proposed bytes in it."""
    mended = bytearray(data)
    for own in repairs:
        mended[own["byte_offset"]] = own["new"]
    return bool(repairs) and seglake.verify(mended).ok


def _wordy(answer: Answer) -> list[str]:
    found = [] if answer.others or answer.words <= MOST_WORDS else [f"{answer.words} words"]
    return found if answer.generic is None else [*found, f"after the cause comes {answer.generic[:40]!r}"]


def _followed(case: Case, folder: Path, answer: Answer) -> list[str]:
    """What is lost by doing what is advised."""
    if answer.command is None or form_of(answer.command) in _NOT_RUN or not case.file:
        return []
    path = folder / case.file
    shown = f"`{answer.command.replace(f'{folder}/', '')}`"
    before = records(path)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", answer.command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_FOLLOWED_S,
        check=False,
    )
    # 1 is that of damage, which `recover` met, or `verify` after it.
    if done.returncode not in (0, 1):
        return [f"{shown} fails: {done.stderr.decode().replace(f'{folder}/', '').strip()[:200]}"]
    lost = before - records(path)
    return [f"{shown} loses {len(lost)} records"] if lost else []


def records(path: Path) -> set[tuple[object, ...]]:
    """The records of a file that can be read, whatever is wrong with the rest."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with seglake.open(path, on_damage="skip") as reader:
                return {tuple(repr(own) for own in record.to_dict().values()) for record in reader}
    except seglake.SeglakeError:
        return set()
