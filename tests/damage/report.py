"""What a campaign came to: as tables for a terminal or a document, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .campaign import MANY, Share, Tally
from .specimens import SMALL


@dataclass(frozen=True)
class Rows:
    """A table: what stands first in a row is its name."""

    title: str
    columns: list[str]
    rows: list[list[str]]

    def as_table(self) -> Table:
        """For a terminal."""
        table = Table(title=self.title, title_justify="left", title_style="bold")
        table.add_column("")
        for column in self.columns:
            table.add_column(column.replace("-", " "), justify="right")
        for row in self.rows:
            table.add_row(*row)
        return table

    def as_markdown(self) -> str:
        """For a document."""
        head = ["| |", *(f" {column} |" for column in self.columns)]
        lines = ["".join(head), "|---|" + "---:|" * len(self.columns)]
        lines += [f"| `{name}` | " + " | ".join(cells) + " |" for name, *cells in self.rows]
        return f"{self.title}:\n\n" + "\n".join(lines) + "\n"


def tables(small: Iterable[Tally], large: Iterable[Tally]) -> list[Rows]:
    """The tables of a campaign; none of a part that was left out."""
    small, large = list(small), list(large)
    by_kind = [_every_kind(small), _by_kind(small), _restored_by_kind(small)] if small else []
    return [*by_kind, *([_one_flip(large)] if large else [])]


def show(console: Console, found: Iterable[Rows], tallies: Iterable[Tally]) -> None:
    """Print the tables, and which trials went wrong."""
    for rows in found:
        console.print(rows.as_table())
    for tally in tallies:
        for example in tally.examples if tally.is_ours else ():
            console.print(f"[red]{tally.name}[/red] {escape(example)}", highlight=False, soft_wrap=True)


def _every_kind(tallies: list[Tally]) -> Rows:
    columns = ["trials", "silent", "panics", "faults", "lost", "untold", "strangers", "barred", "mean", "worst"]
    columns += ["all records", "with a sidecar", "restored"]
    rows = [
        [
            tally.name,
            *map(str, (tally.trials, tally.silent, tally.crashes, tally.faults, tally.lost)),
            *map(str, (tally.undetectable, tally.strangers, tally.barred)),
            *_shares(tally.good),
            _share_shown(tally.all),
            *_by_sidecar(tally),
        ]
        for tally in tallies
    ]
    return Rows(f"Every kind of damage, files of {SMALL} messages", columns, rows)


def _by_kind(tallies: list[Tally]) -> Rows:
    rows = [
        [kind, *(_whole(tally.by_kind.get(kind, Share())) for tally in tallies)]
        for kind in dict.fromkeys(kind for tally in tallies for kind in tally.by_kind)
    ]
    title = "Good records returned, mean of all trials of a kind, in percent"
    return Rows(title, [tally.name for tally in tallies], rows)


def _restored_by_kind(tallies: list[Tally]) -> Rows:
    tallies = [tally for tally in tallies if tally.restored.trials]
    rows = [
        [kind, *(_whole(tally.restored_by_kind.get(kind, Share())) for tally in tallies)]
        for kind in dict.fromkeys(kind for tally in tallies for kind in tally.restored_by_kind)
    ]
    title = "With a sidecar: files restored bit for bit, in percent of the trials of a kind"
    return Rows(title, [tally.name for tally in tallies], rows)


def _one_flip(tallies: list[Tally]) -> Rows:
    columns = ["trials", "silent", "errors", "panics", "lost, mean", "lost, worst", "with a sidecar"]
    rows = [
        [
            tally.name,
            # A format without checksums says nothing of a changed message: for its user that is as silent as any.
            *map(str, (tally.trials, tally.silent + tally.undetectable, tally.errors, tally.crashes)),
            f"{MANY * (1 - tally.all.mean):,.1f}",
            f"{MANY * (1 - tally.all.worst):,.0f}",
            f"{MANY * (1 - tally.with_sidecar.mean):,.1f}" if tally.with_sidecar.trials else "",
        ]
        for tally in tallies
    ]
    return Rows(f"One bit flipped in {MANY:,} messages", columns, rows)


def _whole(share: Share) -> str:
    return f"{100 * share.mean:.0f}" if share.trials else ""


def _share_shown(share: Share) -> str:
    return f"{100 * share.mean:.1f} %" if share.trials else ""


def _by_sidecar(tally: Tally) -> tuple[str, str]:
    return _share_shown(tally.with_sidecar), _share_shown(tally.restored)


def _shares(share: Share) -> tuple[str, str]:
    return f"{100 * share.mean:.1f} %", f"{100 * share.worst:.1f} %"


def as_json(tallies: Iterable[Tally]) -> list[dict[str, Any]]:
    """The same with every number."""
    return [
        {
            "name": tally.name,
            "trials": tally.trials,
            "silent": tally.silent,
            "crashes": tally.crashes,
            "faults": tally.faults,
            "lost": tally.lost,
            "undetectable": tally.undetectable,
            "strangers": tally.strangers,
            "barred": tally.barred,
            "errors": tally.errors,
            "good": _share(tally.good),
            "reachable": _share(tally.reachable),
            "all": _share(tally.all),
            "by_kind": {kind: _share(share) for kind, share in tally.by_kind.items()},
            "with_sidecar": _share(tally.with_sidecar),
            "restored": _share(tally.restored),
            "restored_by_kind": {kind: _share(share) for kind, share in tally.restored_by_kind.items()},
            "examples": tally.examples,
        }
        for tally in tallies
    ]


def _share(share: Share) -> dict[str, Any]:
    return {
        "trials": share.trials,
        "mean": round(share.mean, 6),
        "worst": round(share.worst, 6),
        "worst_trial": share.worst_trial,
    }
