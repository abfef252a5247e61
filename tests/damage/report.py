"""What a campaign came to, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from .campaign import MANY, Share, Tally


def show(console: Console, small: Iterable[Tally], large: Iterable[Tally], in_spark: Tally | None) -> None:
    """Print the tables."""
    small, large = list(small), list(large)
    if small:
        console.print(_every_kind(small))
        console.print(_by_kind(small))
    if large:
        console.print(_one_flip(large))
    if in_spark is not None:
        console.print(f"Spark: {in_spark.trials} files of these, {in_spark.faults} that it reads otherwise.")
    for tally in (*small, *large, *([in_spark] if in_spark else [])):
        for example in tally.examples if tally.is_ours else ():
            console.print(f"[red]{tally.name}[/red] {example}", highlight=False, soft_wrap=True)


def _every_kind(tallies: list[Tally]) -> Table:
    table = _table("Every kind of damage, files of 400 messages")
    for name in ("trials", "silent", "panics", "faults", "lost", "untold", "strangers", "mean", "worst"):
        table.add_column(name, justify="right")
    for tally in tallies:
        table.add_row(
            tally.name,
            *map(str, (tally.trials, tally.silent, tally.crashes, tally.faults, tally.lost)),
            *map(str, (tally.undetectable, tally.strangers)),
            *_shares(tally.good),
        )
    return table


def _by_kind(tallies: list[Tally]) -> Table:
    table = _table("Good records returned, mean of all trials of a kind, in percent")
    for tally in tallies:
        table.add_column(tally.name.replace("-", " "), justify="right")
    for kind in tallies[0].by_kind:
        shares = [tally.by_kind.get(kind, Share()) for tally in tallies]
        table.add_row(kind, *(f"{100 * share.mean:.0f}" if share.trials else "" for share in shares))
    return table


def _one_flip(tallies: list[Tally]) -> Table:
    table = _table(f"One bit flipped in {MANY:,} messages")
    for name in ("trials", "silent", "errors", "panics", "mean", "worst", "mean of all", "worst of all"):
        table.add_column(name, justify="right")
    peers = False
    for tally in tallies:
        if not tally.is_ours and not peers:
            table.add_section()
            peers = True
        # A format without checksums says nothing of a changed message: for the user that is as silent as any.
        silent = tally.silent + tally.undetectable
        table.add_row(
            tally.name,
            *map(str, (tally.trials, silent, tally.errors, tally.crashes)),
            *(_shares(tally.good) if tally.is_ours else ("", "")),
            *_shares(tally.all),
        )
    return table


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("")
    return table


def _shares(share: Share) -> tuple[str, str]:
    return f"{100 * share.mean:.3f} %", f"{100 * share.worst:.3f} %"


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
            "all": _share(tally.all),
            "by_kind": {kind: _share(share) for kind, share in tally.by_kind.items()},
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
