"""The files of a write, and what is in its folder beside them."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import seglake
from seglake._text import printable_path
from seglake.stores import RemoteFile
from seglake.stores.patterns import is_hidden, owner_of

from .options import extensions

__all__ = ["SUCCESS", "Existing", "PartFile", "shown_files"]

SUCCESS: Final = "_SUCCESS"
"""The name of the empty file that says that a folder is complete."""
# Recognising a file needs no key; with one given, the one in the environment, for the executors, is not read.
_ANY_KEY: Final = bytes(32)


class PartFile(NamedTuple):
    """A file that a task has written.

    Attributes:
        names: its name; after it the one of the index that belongs to it, if it has one.
        records: how many records are in it.
    """

    names: tuple[str, ...]
    records: int


def shown_files(files: Iterable[PartFile]) -> list[str]:
    """Returns the names of the files of a write that are to be visible: an empty file is for a frame without rows."""
    files = list(files)
    return [name for file in [each for each in files if each.records] or files[:1] for name in file.names]


@dataclass
class Existing:
    """The names in a folder that are not hidden: those that a write replaces, and what else there is.

    Attributes:
        segments: files that are segments, an index before the log that it belongs to.
        others: everything else, folders included.
    """

    segments: list[str] = field(default_factory=list[str])
    others: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, found: Mapping[str, bool], opened: Callable[[str], str | RemoteFile]) -> "Existing":
        """Sorts the names in a folder, each with whether it is that of a file.

        Files with the extension of a segment count as such; others are looked at, as `opened` gives them.
        """
        existing, own = cls(), extensions()
        found = {name: is_file for name, is_file in found.items() if not is_hidden(name)}
        for name, is_file in sorted(found.items(), key=lambda item: (owner_of(item[0]) is None, item[0])):
            belongs = owner_of(name) in found
            if is_file and (belongs or name.rpartition(".")[2] in own or _is_segment(name, opened)):
                existing.segments.append(name)
            else:
                existing.others.append(name)
        return existing

    @classmethod
    def of_folder(cls, folder: Path) -> "Existing":
        """Looks into a mounted folder.

        Raises:
            OSError: it cannot be listed.
        """
        with os.scandir(folder) as entries:
            found = {entry.name: entry.is_file() for entry in entries}
        return cls.of(found, lambda name: str(folder / name))

    def refuse_others(self, folder: str) -> None:
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


def _is_segment(name: str, opened: Callable[[str], str | RemoteFile]) -> bool:
    try:
        return seglake.detect(opened(name), key=_ANY_KEY).confidence == "certain"
    except OSError:
        return False
