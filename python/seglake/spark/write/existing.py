"""What is in a folder that is to be overwritten."""

import os
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import seglake
from seglake._files.patterns import log_of_index
from seglake._text import printable_path

__all__ = ["Existing"]

# Recognising a file needs no key; with one given, the one in the environment, for the executors, is not read.
_ANY_KEY: Final = bytes(32)


@dataclass
class Existing:
    """The names in a folder that are not hidden: those that a write replaces, and what else there is.

    Attributes:
        segments: files that are segments, an index in front of the log that it belongs to.
        others: everything else, folders included.
    """

    segments: list[str] = field(default_factory=list[str])
    others: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, folder: Path, extensions: Set[str]) -> "Existing":
        """Looks into a folder. `extensions` are those of segments; other files are looked at themselves.

        Raises:
            OSError: it cannot be listed.
        """
        existing = cls()
        with os.scandir(folder) as entries:
            found = {entry.name: entry.is_file() for entry in entries if not entry.name.startswith(("_", "."))}
        for name, is_file in sorted(found.items(), key=lambda item: (log_of_index(item[0]) is None, item[0])):
            belongs = log_of_index(name) in found
            if is_file and (belongs or name.rpartition(".")[2] in extensions or _is_segment(folder / name)):
                existing.segments.append(name)
            else:
                existing.others.append(name)
        return existing

    def refuse_others(self, folder: Path) -> None:
        """Refuses to overwrite what was written by somebody else.

        Raises:
            ValueError: there is something.
        """
        if self.others:
            more = f" and {len(self.others) - 1} more" if len(self.others) > 1 else ""
            raise ValueError(
                f"{printable_path(folder)}: expected nothing but segments in a folder that is to be overwritten, there "
                f"is {printable_path(self.others[0])}{more}. Nothing was changed: move that away, or write into a new "
                "folder"
            )


def _is_segment(path: Path) -> bool:
    try:
        return seglake.detect(path, key=_ANY_KEY).confidence == "certain"
    except OSError:
        return False
