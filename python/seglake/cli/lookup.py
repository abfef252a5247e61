"""`--get ID`: looking records up by what they are found by, written as text."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from seglake import DamageError

from .columns import kinds
from .escape import printable
from .reading import shown_bytes

if TYPE_CHECKING:
    from seglake import Format, Reader, Record

_WRITTEN: dict[tuple[str, ...], str] = {
    ("uuid",): "UUID, such as 1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3",
    ("partition", "tenant", "index"): "PARTITION/TENANT/INDEX, such as 3/acme/0",
}
# How the values of identifiers are written. Texts may have slashes.
_PATTERNS = {"uuid": "([^/]*)", "text": "(.*)", "int64": "([0-9]{1,20})", "uint64": "([0-9]{1,20})"}
_PARSERS: dict[str, Callable[[str], Any]] = {"uuid": uuid.UUID, "text": shown_bytes, "int64": int, "uint64": int}


def identifier(format: Format, text: str) -> tuple[Any, ...]:
    """What to hand to `Reader.get` for an ID as it stands on the command line.

    Raises:
        click.UsageError: records of this format are not found by anything of the kind.
    """
    by_name = kinds(format)
    own = [by_name[name] for name in format.identifier]
    match = re.fullmatch("/".join(_PATTERNS[kind] for kind in own), text, re.DOTALL)
    if match:
        try:
            return tuple(_PARSERS[kind](part) for kind, part in zip(own, match.groups(), strict=True))
        except ValueError:
            pass
    names = format.identifier
    written = "/".join(names).upper() if len(names) > 1 else f"{', '.join(names)}: a number"
    raise click.UsageError(
        f"--get {text!r}: records of this {format.name} file are found by {_WRITTEN.get(names, written)}"
    )


class Wanted:
    """The IDs that are looked for in one file after the other, and which of them were in none."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.missing: list[str] = list(dict.fromkeys(ids))
        """What was found in no file so far, in the order of the command line."""
        self._ids = ids
        self._unproven: set[str] = set()

    def found_in(self, reader: Reader, identifiers: Sequence[tuple[Any, ...]]) -> Iterator[Record]:
        """The records of a file that are wanted, in the order of the command line."""
        for text, identifier in zip(self._ids, identifiers, strict=True):
            try:
                record = reader.get(*identifier)
            except DamageError:
                self._unproven.add("damage")
                raise
            if record is not None:
                if text in self.missing:
                    self.missing.remove(text)
                yield record
        if reader.unproven:
            self._unproven.add(reader.unproven)

    def missing_said(self) -> list[str]:
        """A line for each ID that was not found."""
        remark = ""
        if "unchecked" in self._unproven:
            remark = ", as far as a file without checksums can tell"
        if "damage" in self._unproven:
            remark = ", unless it is where a file is damaged"
        return [f"{printable(text)}: no such record{remark}" for text in self.missing]
