"""`--where`: conditions on columns, whose values are read as the columns of a file's format demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import columns, reading
from .settings import typed_value

if TYPE_CHECKING:
    from .inputs import Input

__all__ = ["given_for"]


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
    kinds = columns.kinds(seglake.formats(dialect=options["dialect"])[name])
    filters: list[Any] = arguments.setdefault("filters", [])
    for column, operator, text in options["where"]:
        if column not in kinds:
            raise click.BadParameter(
                f"{name} records have no column {column}: there are {', '.join(kinds)}", param_hint="--where"
            )
        filters.append((column, operator, typed_value(column, text, kinds[column], hint="--where")))
    return arguments
