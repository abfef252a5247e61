"""The options of the command line that messages name in place of the library's arguments."""

from __future__ import annotations

from typing import Final

from seglake._argument_names import renamed

# What a message names, and what to type instead.
_OPTIONS: Final = {
    "as_it_is": "--as-it-is",
    "catalog": "--catalog",
    "dialect": "--dialect",
    "drop": "--drop",
    "force": "--force",
    "format": "--format",
    "glob": "--glob",
    "key": "--key-file",
    "max_clock_ahead": "--max-clock-ahead",
    "readonly": "seglake cat",
    "renumber": "--renumber",
    "sidecar": "--sidecar",
    "sidecar=None": "--sidecar none",
    "to": "--to",
    "table": "--table",
    "value": "--value",
}


def with_options(text: str) -> str:
    """Return what the library says, with the options of the command line for the arguments of functions."""
    return renamed(text.replace("the format `raw`", "--format raw"), _OPTIONS)
