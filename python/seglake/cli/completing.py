"""What a shell completes: names that click does not know by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias, get_args

import click
from click.shell_completion import CompletionItem

from seglake._types import DialectName

Completing: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
"""What gives the completions of a word that is typed."""

EVERYWHERE = ("path", "position", "cause")
"""What every file's records can be shown with beside their own columns."""


def _matching(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """The names that begin as what is typed."""
    return [CompletionItem(name) for name in dict.fromkeys(names) if name.startswith(incomplete)]


def format_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of formats."""
    from seglake import formats

    return _matching(formats().names, incomplete)


def dialect_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of dialects."""
    return _matching(get_args(DialectName), incomplete)


def path_or_none(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, and `none`."""
    return [CompletionItem(incomplete, type="file"), *_matching(["none"], incomplete)]


def column_names(*more: str) -> Completing:
    """What completes names of columns with commas between: of the format of the file that is named before, else of all.

    Args:
        more: names besides those of columns.
    """

    def completing(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from seglake import formats

        given, comma, _last = incomplete.rpartition(",")
        of = formats(options={"dialect": context.params.get("dialect")})
        before = _format_before(context)
        own = [format for format in of if format.name == before] or of
        names = [column.name for format in own for column in format.columns]
        taken = given.split(",")
        return _matching([f"{given}{comma}{name}" for name in (*names, *more) if name not in taken], incomplete)

    return completing


def words_of_reports(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The words that `seglake explain` explains."""
    from .explain import WORDS

    return _matching(WORDS, incomplete)


def _format_before(context: click.Context) -> str | None:
    """The format that is given, or that of the first file that is named; None if that is not to be told."""
    import seglake

    if context.params.get("format"):
        return context.params["format"]
    # Those of a command line that ends in an option without its value are in `args`.
    for path in context.args:
        with suppress(Exception):  # A shell has no place for an error: without the file all columns are completed.
            if Path(path).is_file():
                return seglake.detect(path).format
    return None
