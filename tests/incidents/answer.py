"""What `seglake verify` says of a file, and what it advises."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli_process import here

from .case import NOT_SEEN

Diagnosis = dict[str, Any]

FAILED = "error"
"""Where a reason would be: there is no report."""

_GENERIC = ("Corrupt:", "Torn tail:")
_FOLLOWS = "consequence"


@dataclass(frozen=True)
class Answer:
    """What was said: the reason and its certainty, other reasons beside it, the command, and the text for people.

    `status` is the exit status of the text.
    """

    reason: str
    certainty: str | None
    others: tuple[str, ...]
    command: str | None
    diagnoses: tuple[Diagnosis, ...]
    text: str
    status: int

    @property
    def words(self) -> int:
        """How long the text is."""
        return len(self.text.split())

    @property
    def generic(self) -> str | None:
        """The paragraph about damage of any sort that follows a finding; None where there is none."""
        if self.reason in ("unknown", NOT_SEEN):
            return None
        return next((line for line in self.text.splitlines() if line.startswith(_GENERIC)), None)


def ask(path: Path) -> Answer:
    """Ask `verify` about a file, or about the folder of a log."""
    # A name may begin like an option.
    shown = here("verify", "--", path)
    report = _weightiest(here("verify", "--json", "--", path).json_lines())
    diagnoses = tuple(report.get("diagnoses", ()))
    causes = [own for own in diagnoses if own["reason"] != _FOLLOWS]
    others = tuple(dict.fromkeys(own["reason"] for own in causes))[1:]
    text = shown.out + shown.err
    if causes:
        reason, certainty, command = (causes[0][name] for name in ("reason", "certainty", "command"))
    else:
        reason, certainty, command = _beside(report), None, _advised(text)
    return Answer(reason, certainty, others, command, diagnoses, text, shown.status)


def _weightiest(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the segments of a log the one that something is wrong with."""
    for report in reports:
        if not report["ok"] or (report["log"] and report["log"].get("unread")):
            return report
    return reports[0] if reports else {}


def _beside(report: dict[str, Any]) -> str:
    """What is wrong beside a file that has no damage of its own."""
    if report.get("error") or not report:
        return report.get("reason") or FAILED
    if report["log"] and report["log"]["unread"]:
        return "older_mark"
    return report["reason"] or NOT_SEEN


def _advised(text: str) -> str | None:
    """The command that is advised first on what is beside the file; None for none."""
    command = r"^ *(?:next +)?(.*seglake (index|info|log write|log tail) .*)$|`(seglake log write)`"
    found = re.search(command, text, re.MULTILINE)
    return None if found is None else found[1] or found[3]
