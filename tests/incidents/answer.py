"""What `seglake verify` says of a file, and what it advises."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seglake.cli import main

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
    status, out, complaints = run("verify", "--", path)
    report = _weightiest([json.loads(line) for line in run("verify", "--json", "--", path)[1].splitlines()])
    diagnoses = tuple(report.get("diagnoses", ()))
    causes = list(dict.fromkeys(own["reason"] for own in diagnoses if own["reason"] != _FOLLOWS))
    first = next((own for own in diagnoses if own["reason"] != _FOLLOWS), None)
    reason, certainty = (first["reason"], first["certainty"]) if first else (_beside(report), None)
    text = out + complaints
    return Answer(reason, certainty, tuple(causes[1:]), advised(report, text), diagnoses, text, status)


def run(*arguments: str | Path) -> tuple[int, str, str]:
    """Run `seglake` in this process; returns the exit status, what it prints, and its complaints."""
    printed, complained = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(printed), redirect_stderr(complained):
        status = main([str(word) for word in arguments])
    return status, _written(printed), _written(complained)


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def _weightiest(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the segments of a log the one that something is wrong with."""
    for report in reports:
        if not report["ok"] or (report["log"] and report["log"].get("unread")):
            return report
    return reports[0] if reports else {}


def _beside(report: dict[str, Any]) -> str:
    """What is wrong beside a file that has no damage of its own."""
    if report.get("error") or not report:
        return report.get("reason", FAILED)
    if report["log"] and report["log"]["unread"]:
        return "older_mark"
    return report["reason"] or NOT_SEEN


def advised(report: dict[str, Any], text: str) -> str | None:
    """The command that is advised first: of a cause of damage, or else of what is beside the file; None for none."""
    first = next((own for own in report.get("diagnoses", ()) if own["reason"] != _FOLLOWS), None)
    if first is not None:
        return first["command"]
    found = re.search(r"^ *(.*seglake (index|log write) .*)$|`(seglake log write)`", text, re.MULTILINE)
    return None if found is None else found[1] or found[3]
