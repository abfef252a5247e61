"""Values of options that formats declare, read from text: for the command line and for Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ._types import FormatOption

__all__ = ["option_value"]

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")


def option_value(option: FormatOption, text: str, *, size: Callable[[str], int]) -> bool | int | str:
    """Returns the value that a text stands for. Numbers are held against the option's bounds.

    Args:
        option: the option.
        text: the text.
        size: reads a number of bytes, with a unit or without.

    Raises:
        ValueError: the text is not a value of the option; the message says what it takes. Also what `size` raises.
    """
    if option.kind == "flag":
        if text.lower() not in ("true", "false"):
            raise ValueError("expected true or false")
        return text.lower() == "true"
    if option.kind not in ("number", "bytes"):
        if text.lower() not in option.choices:
            raise ValueError(f"expected one of {', '.join(option.choices)}")
        return text.lower()
    if option.kind == "number" and not _INTEGER.fullmatch(text):
        raise ValueError(f"expected a whole number from {option.minimum} to {option.maximum}")
    number = int(text) if _INTEGER.fullmatch(text) else size(text)
    least, most = option.minimum or 0, option.maximum or 0
    if not least <= number <= most:
        raise ValueError(f"expected {least} to {most}{' bytes' if option.kind == 'bytes' else ''}")
    return number
