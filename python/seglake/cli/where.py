"""`--where`: conditions on columns, whose values are read as the columns of a file's format demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from . import reading
from .render import column_kinds
from .settings import typed_value

if TYPE_CHECKING:
    from seglake._filters import Condition

    from .inputs import Input

__all__ = ["given_for", "typed_conditions"]


def given_for(file: Input, options: dict[str, Any]) -> dict[str, Any]:
    """The options that are on the command line, as the library's arguments for one file.

    Raises:
        click.BadParameter: a value of `--where` is not of its column's kind, or there is no such column.
        seglake.FormatError: the file's format is needed to know that, and cannot be told.
    """
    arguments = reading.given({name: value for name, value in options.items() if name != "where"})
    if not options["where"]:
        return arguments
    import seglake

    how = reading.only(options, "format", "dialect", "key")
    with seglake.open(file.from_start(), on_damage="skip", **how) as reader:
        name = reader.format
    filters = arguments.setdefault("filters", [])
    filters += typed_conditions(options["where"], name, options["dialect"])
    return arguments


def typed_conditions(given: Sequence[tuple[str, str, str]], format: str, dialect: Any) -> list[Condition]:
    """The conditions of `--where` with values of their columns' kinds.

    Raises:
        click.BadParameter: as `given_for`.
    """
    import seglake

    kinds = column_kinds(seglake.formats(dialect=dialect)[format])
    found: list[Condition] = []
    for column, operator, text in given:
        if column not in kinds:
            raise click.BadParameter(
                f"{format} records have no column {column}: there are {', '.join(kinds)}", param_hint="--where"
            )
        found.append((column, operator, typed_value(column, text, kinds[column], hint="--where")))
    return found
