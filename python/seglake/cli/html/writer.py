"""`--html`: the files of a command as they are verified, and the report of them in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click
from click.core import ParameterSource

from seglake.parity import ParityReport

from .. import options
from ..advice import Advice, beside, of_log_error, path_facts, titled
from ..failure import Trouble, describe
from ..inputs import STANDARD_INPUT, Input
from ..render import count, printable, size
from ..report import about_index, index_in_words, misnamed, parity_in_words
from .gather import see
from .page import MARK, Line, Page, states_in_short, verdict, written

if TYPE_CHECKING:
    from seglake import Report

__all__ = ["HtmlReport"]

_MOST_SEEN: Final = 20
_MOST_NOTES: Final = 5
# What says between which records something is, too.
_WITH_TENANTS: Final = ("tenant", "comes_back", "lost")
# Those that hold what nobody else is to know, or that say where the report goes.
_NOT_SHOWN: Final = ("key", "html", "files", "paths", "path", "source", "destination")


def _verified_anew(file: Input, how: dict[str, Any], sidecar: str | None = "auto") -> Report:
    """What is found in a file, with what its damage comes from; `sidecar=None` leaves out its parity sidecar."""
    import seglake

    return seglake.verify(file.from_start(), **options.only(how, "format", "key", "options"), sidecar=sidecar)


def _without_tenants(own: Any) -> Any:
    """A report as JSON without the names of tenants, which are what records hold."""
    if isinstance(own, dict):
        fields = cast("dict[str, Any]", own)
        return {name: "…" if name in _WITH_TENANTS else _without_tenants(each) for name, each in fields.items()}
    return [_without_tenants(each) for each in cast("list[Any]", own)] if isinstance(own, list) else own


def _beside(report: Report, json: dict[str, Any]) -> Advice | None:
    """What is suspicious about a file without damage, and what to do."""
    if json.get("reason") is None:
        return None
    facts = path_facts(json["path"]) if json.get("path") else {}
    return beside(json["reason"], {**facts, "size": count(report.nbytes, "byte")})


def _remarks(report: Report, json: dict[str, Any], label: str) -> list[str]:
    """What there is to say of the name of a file, of its index and of its parity sidecar."""
    index = json.get("index")
    said = "" if index is None else f"Index {index_in_words(index, log_ok=report.ok)}."
    return [remark for remark in (misnamed(report, label), said, parity_in_words(report.parity, label)) if remark]


class HtmlReport:
    """A report that is being gathered."""

    def __init__(self, path: str, *, values: bool) -> None:
        context = click.get_current_context()
        self._path = path
        shown = {
            f"--{name.replace('_', '-')}": str(own)
            for name, own in context.params.items()
            if name not in _NOT_SHOWN and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        }
        # Without the program, the names of arguments, and what a command calls another one.
        words = [word for word in context.command_path.split()[1:] if word.islower() and word != "command"]
        self._page = Page(" ".join(words), shown, values)
        self._check()

    def _check(self) -> None:
        """Refuse what cannot be written to, before anything is read.

        Raises:
            Trouble: standard output, a folder, or a file that is not a report.
        """
        shown, path = printable(self._path), Path(self._path)
        if self._path == STANDARD_INPUT:
            raise Trouble("-: expected the path of a report to write, found standard output")
        if path.is_dir():
            raise Trouble(f"{shown}: is a folder: name the report to write")
        if path.exists():
            with path.open("rb") as file:
                if file.read(len(MARK)) != MARK.encode():
                    raise Trouble(
                        f"{shown}: exists, and is not a report that --html wrote: name another file for --html"
                    )

    def add(
        self,
        report: Report,
        json: dict[str, Any],
        label: str,
        opened: Callable[[], AbstractContextManager[Input]],
        how: dict[str, Any],
        mark: int | None = None,
        held_bytes: int | None = None,
        *,
        is_only: bool,
        explain: bool = False,
    ) -> None:
        """Add a file that was read.

        Args:
            report: what was found in it.
            json: the same as `--json` prints it.
            label: its name.
            opened: opens it once more.
            how: the options of reading.
            mark: up to where its log says that it is synced.
            held_bytes: how many bytes the file has; None for as many as the report is about.
            is_only: whether there is no other file: else it is shown in full only if it is damaged.
            explain: whether what the damage comes from is yet to be found.
        """
        page = self._page
        if is_only if report.ok else len(page.seen) < _MOST_SEEN:
            with opened() as file:
                if explain and not report.ok:
                    report = _verified_anew(file, how)
                seen = see(file, report, how, page.budget, _remarks(report, json, label), values=page.values)
                about = about_index(report, json.get("index"), json.get("path"), how.get("index"))
                seen.beside = about or _beside(report, json)
                page.seen.append(seen)
        reasons = Counter(titled(own) for own in report.diagnoses if own.reason != "consequence")
        said = "; ".join(f"{reason}, {number:,} times" if number > 1 else reason for reason, number in reasons.items())
        states = states_in_short(report, report.nbytes if held_bytes is None else held_bytes)
        line = Line(label, verdict(report)[0], said or count(report.records, "record"), report.nbytes, states, mark)
        page.add(line, json if page.values else _without_tenants(json))

    def add_other(self, parity: ParityReport, json: dict[str, Any], label: str) -> None:
        """Add a file that is not a segment."""
        found = "sound" if parity.outcome == "sound" else "damaged"
        self._page.add(Line(label, found, parity_in_words(parity, label)), json)

    def add_failed(self, label: str, error: Exception, json: dict[str, Any] | None = None) -> None:
        """Add a file that could not be read, with what `--json` prints of it."""
        said = of_log_error(error)
        if said is not None and len(self._page.notes) < _MOST_NOTES:
            self.note(said)
        self._page.add(Line(label, "not read", describe(error, label=label) if said is None else said.headline), json)

    def note(self, said: str | Advice) -> None:
        """Add what there is to say of all files together."""
        self._page.notes.append(said)

    def verify(self, file: Input, how: dict[str, Any]) -> Report:
        """Verify a file without its parity sidecar, add it, and return what was found in it.

        Raises:
            OSError, SeglakeError: it cannot be read.
        """
        report = _verified_anew(file, how, sidecar=None)
        json = {**report.to_dict(), "path": file.path}
        self.add(report, json, file.label, lambda: nullcontext(file), how, is_only=True)
        return report

    def remark(self, said: str) -> None:
        """Add what there is to say of the file that was added last."""
        for seen in self._page.seen[-1:]:
            seen.remarks.append(said)

    def write(self) -> str:
        """Write the report, and return a line that says so.

        Raises:
            OSError: it cannot be written.
            Trouble: what has its name by now is not a report.
        """
        from seglake.write.new_file import new_file

        self._check()
        text = written(self._page).encode()
        with new_file(self._path, replace=True) as file:
            file.write(text)
        files, values = count(self._page.files, "file"), "with" if self._page.has_values else "without"
        return f"{printable(self._path)}: a report of {files}, {size(len(text))}, {values} values"
