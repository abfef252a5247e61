"""Errors that name the options of the data source in place of the library's arguments."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import seglake
from seglake._argument_names import renamed

from .option_table import camel_case

__all__ = ["in_options", "naming_options"]

# What a message names, and what a user of Spark types instead.
_OPTIONS: Final = {
    "dialect": "option dialect",
    "format": "option segmentFormat",
    "glob": "option pathGlobFilter",
    "key": "option keyFile",
    "sidecar": "option sidecar",
    "sidecar=None": "option sidecar=none",
}
_DECIMAL: Final = "option uint64Type=decimal reads such numbers as decimal(20,0)"


@contextmanager
def naming_options() -> Generator[None]:
    """Raise the errors of the block with the names of options in place of those of arguments.

    Errors that name options already stay as they are, so blocks can be within each other.
    """
    try:
        yield
    except seglake.exceptions.LimitError as error:
        name = camel_case(error.option)
        raise seglake.exceptions.LimitError(
            error.reason.replace(error.option, name),
            option=name,
            path=error.path,
            next=_DECIMAL if name == "uint64Type" else f"raise option {name} and read again",
        ) from None
    except Exception as error:
        _rename(error)
        raise


def in_options(text: str) -> str:
    """Returns a message with the names of options in the place of those of arguments."""
    return renamed(text, _OPTIONS)


def _rename(error: Exception) -> None:
    error.args = tuple(in_options(each) if isinstance(each, str) else each for each in error.args)
    if isinstance(error, seglake.SeglakeError):
        error.reason = in_options(error.reason)
        error.next = error.next and in_options(error.next)
    if isinstance(error, OSError) and error.strerror is not None:
        error.strerror = in_options(error.strerror)
