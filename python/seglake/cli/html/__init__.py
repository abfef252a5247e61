"""The report that `--html` writes: one file for a browser, that shows where the damage is and what is around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .. import options
from ..options import Option, together

if TYPE_CHECKING:
    from .writer import HtmlReport

__all__ = ["html", "opened_report"]

html: Option = together(
    click.option("--html", metavar="REPORT", type=options.PATH, help="Also write a page for a browser."),
    click.option(
        "--no-values", is_flag=True, help="With --html: no values of records in the page, only lengths and hashes."
    ),
)
"""Where the report goes, and whether it has values."""


def opened_report(path: str | None, *, no_values: bool) -> HtmlReport | None:
    """The report of the command that runs; None if none is asked for.

    Raises:
        Trouble: there is a file of this name that is not such a report.
        click.UsageError: `--no-values` without a report.
    """
    if path is None:
        if no_values:
            raise click.UsageError("--no-values is for a report: name one with --html")
        return None
    from .writer import HtmlReport  # with all that draws pages

    return HtmlReport(path, values=not no_values)
