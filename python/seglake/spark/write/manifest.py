"""What a write into a mounted folder is about to do, written down first, so that the next write can put it in order.

A write stages files in a folder of its own, moves them into the destination, and then removes those that they replace.
Before the first of these steps its manifest is on the disk. If it dies, the next write finds the manifest and
finishes what it lists, or takes it back. Whatever happens, all that was there before is there, or all that is new.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from seglake._text import printable_path

from . import folders

__all__ = ["MANIFEST", "Manifest"]

MANIFEST: Final = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """What a write does to its destination. All file names are names in a folder.

    Attributes:
        place: the staged files, in the order in which they are moved. All is committed once all of them are moved.
        remove: the files in the destination that are replaced, which are removed in the end.
    """

    place: Sequence[str]
    remove: Sequence[str] = ()

    def carry_out(self, destination: Path, staging: Path) -> None:
        """Does it. The staging folder stays. Only for the holder of its lock.

        Raises:
            OSError: a file is not there, or could not be moved, or one that is replaced could not be removed. The
                message says what is visible.
        """
        for name in self.place:
            if not (staging / name).exists():
                raise FileNotFoundError(
                    f"{printable_path(staging / name)}: expected the file that a task of this write has put there, "
                    "there is none. Nothing was changed; write again, where all machines see the same folder"
                )
        try:
            # Make the staged names durable before the manifest exists: settling takes a missing one as moved already.
            folders.sync_names(destination, [staging / name for name in self.place])
            content = json.dumps({"place": self.place, "remove": self.remove}).encode()
            folders.write_durably(destination, staging / MANIFEST, content)
        except OSError as error:
            state = "Nothing of it is visible: write again"
            raise _failed(destination, error, "writing its manifest failed", state) from error
        try:
            for name in self.place:
                folders.place(staging / name, destination / name)
            folders.sync_names(destination, [destination / name for name in self.place])
        except BaseException as error:
            state = self._after_failure(destination, staging)
            if isinstance(error, OSError):
                raise _failed(destination, error, "giving the files their names failed", state) from error
            raise
        self._remove_replaced(destination)

    def settle(self, destination: Path, staging: Path) -> None:
        """Finishes what a write that died had begun, or takes it back. Only for the holder of its lock.

        Raises:
            OSError: a file could not be moved or removed.
        """
        is_staged = any((staging / name).exists() for name in self.place)
        # Nothing is removed for files that are neither here nor there.
        if not is_staged and (not self.place or self._is_visible(destination)):
            self._remove_replaced(destination)
            return
        # What was moved back stays so, whatever becomes of the folder that it is in.
        folders.sync_names(destination, [staging / name for name in self.place])
        # An index goes before its log, and stands after it in the list: alone it would look like a file of its own.
        for name in reversed(self.place):
            folders.remove(destination / name)
        folders.sync_names(destination, [destination / name for name in self.place])

    @classmethod
    def read(cls, staging: Path) -> Manifest | None:
        """Reads the manifest in a staging folder; None if its write had not come to it.

        Raises:
            ValueError: there is one that no write has written. The message says what to do.
        """
        path = staging / MANIFEST
        try:
            read: Any = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, RecursionError) as error:
            raise _foreign(path, f"it is no JSON: {error}") from None
        if not isinstance(read, dict):
            raise _foreign(path, "it is no JSON object")
        content = cast("dict[str, Any]", read)
        place, remove = content.get("place"), content.get("remove")
        if not isinstance(place, list) or not isinstance(remove, list):
            raise _foreign(path, "it does not name the files of a write")
        # Files are going to be removed by it, so that it has to be about nothing but this destination.
        for name in cast("list[Any]", [*place, *remove]):
            if not isinstance(name, str) or name in ("", "..") or Path(name).name != name:
                raise _foreign(path, f"{printable_path(str(name))} is no name of a file in a folder")
        for name in cast("list[str]", place):
            if staging.name not in name:
                raise _foreign(path, f"{printable_path(name)} is no file of write {printable_path(staging.name)}")
        return cls(cast("list[str]", place), cast("list[str]", remove))

    def _is_visible(self, destination: Path) -> bool:
        """Tells whether any of the files is in the destination."""
        return any((destination / name).exists() for name in self.place)

    def _after_failure(self, destination: Path, staging: Path) -> str:
        """Moves back what can be moved back, and says what is visible."""
        with contextlib.suppress(OSError):  # what cannot be asked now is not known
            with contextlib.suppress(OSError):
                # Not removed: if the process dies after that, files that are nowhere would look as if they were moved.
                for name in reversed(self.place):
                    with contextlib.suppress(FileNotFoundError):
                        folders.place(destination / name, staging / name)
                folders.sync_names(destination, [staging / name for name in self.place])
            if not self._is_visible(destination):
                return "Nothing of it is visible"
        return "A part of it may be visible: the next write into the folder puts it in order"

    def _remove_replaced(self, destination: Path) -> None:
        if not self.remove:
            return
        try:
            for name in self.remove:
                folders.remove(destination / name)
            folders.sync_names(destination, [destination / name for name in (*self.place, *self.remove)])
        except OSError as error:
            state = (
                "All of the new is visible, beside what is left of the old; the next write into the folder tries again"
            )
            raise _failed(destination, error, "removing what is overwritten failed", state) from error


def _failed(destination: Path, error: OSError, what: str, state: str) -> OSError:
    return OSError(error.errno, f"{printable_path(destination)}: {what}: {error}. {state}")


def _foreign(path: Path, reason: str) -> ValueError:
    return ValueError(
        f"{printable_path(path)}: expected the manifest of a write that died, {reason}. Nothing was changed; "
        f"look at what is there and remove {printable_path(path.parent)}"
    )
