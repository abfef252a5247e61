"""The names of arguments in messages, for those who type other names.

Messages name the arguments of functions in backticks, as `force` and `sidecar=None`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_ARGUMENT: Final = re.compile(r"`([a-z_]+(?:=None)?)`")


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return a message with these names in place of those of arguments, which stand in backticks."""
    return _ARGUMENT.sub(lambda found: names.get(found[1], found[0]), text)
