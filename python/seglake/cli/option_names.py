"""The names of options for the arguments that the library's messages name: who typed a command reads of options."""

from __future__ import annotations

import re
from typing import Final

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
    "on_wrong_key": "--on-wrong-key record",
    "parity": "--sidecar",
    "parity=None": "--sidecar none",
    "renumber": "--renumber",
    "sidecar": "--sidecar",
    "to": "--to",
    "table": "--table",
    "undo": "--replaced",
}
_ARGUMENT: Final = re.compile(r"`([a-z_]+(?:=None)?)`")


def with_options(text: str) -> str:
    """Return what the library says, with the options of the command line for the arguments of functions.

    In messages the library writes the names of arguments as `force` and `parity=None`, with the backticks.
    """
    text = text.replace("the format `raw`", "--format raw")
    return _ARGUMENT.sub(lambda found: _OPTIONS.get(found[1], found[0]), text)
