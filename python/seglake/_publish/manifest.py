"""What a publisher is about to do, written down first, so that the next one can put in order what a dead one left.

A publisher stages files in a folder of its own, gives them their names, and then removes those that they replace.
Before the first of these steps its manifest is on the disk. If it dies, the next publisher finds the manifest and
finishes what it lists, or takes it back. Whatever happens, what was there before is complete, or what is published is.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglake._text import printable, printable_path

from .store import LOCAL, LockTakenError, Store

__all__ = ["MANIFEST", "Manifest", "Move", "left_over"]

MANIFEST: Final = "manifest.json"

Move = tuple[str, str]
"""A rename: from where in the publisher's staging folder, to where below the destination."""


@dataclass(frozen=True)
class Manifest:
    """What a publisher does to a destination.

    Attributes:
        publisher: a name that no other has. The name of its staging folder, and part of the names of all its files.
        place: the files, in the order in which they get their names. All is committed once all of them have these.
        remove: the names of the files in the destination that are replaced, which are removed in the end.
    """

    publisher: str
    place: Sequence[Move]
    remove: Sequence[str] = ()

    def carry_out(self, destination: Path, staging: Path, *, kind: str, store: Store = LOCAL) -> None:
        """Does it. The staging folder stays. Only for the holder of the publisher's lock.

        Args:
            destination: the folder in which files get their names.
            staging: the folder in which they are staged.
            kind: what the publisher is, for errors: "write" or "ingest".
            store: where both are.

        Raises:
            OSError: a file is not there, or could not be placed, or one that is replaced could not be removed. The
                message says what is visible.
        """
        try:
            missing = self.write_down(destination, staging, store)
        except OSError as error:
            raise _failed(
                destination, error, "writing its manifest failed", f"Nothing of it is visible: {kind} again", store
            ) from error
        if missing is not None:
            raise FileNotFoundError(
                f"{_shown(missing, store)}: expected the file that a task of this {kind} has put there, "
                f"there is none. Nothing was changed; {kind} again, where all machines see the same folder"
            )
        try:
            self._place(destination, staging, store)
        except LockTakenError as error:
            state = f"All of it becomes visible, or nothing: look before you {kind} again"
            raise _failed(destination, error, "this process was held for dead", state, store) from error
        except BaseException as error:
            state = self._after_failure(destination, staging, kind, store)
            if isinstance(error, OSError):
                raise _failed(destination, error, "giving the files their names failed", state, store) from error
            raise
        self._remove_replaced(destination, kind, store)

    def settle(self, destination: Path, staging: Path, *, kind: str, store: Store = LOCAL) -> None:
        """Finishes what a publisher that died had begun, or takes it back. Only for the holder of its lock.

        Raises:
            OSError: a file could not be placed or removed.
        """
        if self._is_committed(destination, staging, store):
            self._remove_replaced(destination, kind, store)
        else:
            # What was moved back stays so, whatever becomes of the folder that it is in.
            store.sync_names(destination, [staging / staged for staged, _ in self.place])
            self._take_back(destination, store)

    @classmethod
    def read(cls, staging: Path, *, kind: str, store: Store = LOCAL) -> Manifest | None:
        """Reads the manifest in a staging folder; None where its publisher had not come to it.

        Raises:
            ValueError: there is one that no publisher has written. The message says what to do.
        """
        path = staging / MANIFEST
        try:
            content = store.read_json(path)
        except ValueError as error:
            raise _foreign(path, kind, str(error), store) from None
        if content is None:
            return None
        try:
            publisher = str(content["publisher"])
            place = [(str(staged), str(final)) for staged, final in content["place"]]
            remove = [str(name) for name in content["remove"]]
        except (LookupError, TypeError, ValueError):
            raise _foreign(path, kind, f"it does not name {_a(kind)} and its files", store) from None
        # Files are going to be removed by it, so that it has to be about nothing but this destination.
        for name in (*(name for move in place for name in move), *remove):
            if not name or Path(name).is_absolute() or ".." in Path(name).parts:
                raise _foreign(path, kind, f"{printable_path(name)} is no path below a folder", store)
        for name in remove:
            if Path(name).name != name:
                raise _foreign(path, kind, f"{printable_path(name)} is no name of a file in a folder", store)
        for _, final in place:
            if publisher not in Path(final).name:
                raise _foreign(
                    path, kind, f"{printable_path(final)} is no file of {kind} {printable(publisher)}", store
                )
        if publisher != staging.name:
            raise _foreign(path, kind, f"it is of {kind} {printable(publisher)}", store)
        return cls(publisher, place, remove)

    def write_down(self, destination: Path, staging: Path, store: Store = LOCAL) -> Path | None:
        """Writes the manifest, unless a staged file is missing: returns that.

        Raises:
            OSError: that failed.
        """
        for staged, _ in self.place:
            if not store.exists(staging / staged):
                return staging / staged
        content = {
            "publisher": self.publisher,
            "place": self.place,
            "remove": self.remove,
        }
        # Make the staged names durable before the manifest exists: settling takes a missing one as placed already.
        store.sync_names(destination, [staging / staged for staged, _ in self.place])
        store.write_durably(destination, staging / MANIFEST, json.dumps(content).encode(), is_new=True)
        return None

    def _is_committed(self, destination: Path, staging: Path, store: Store) -> bool:
        if any(store.exists(staging / staged) for staged, _ in self.place):
            return False
        # Nothing is removed for files that are neither here nor there.
        return not self.place or self._is_visible(destination, store)

    def _is_visible(self, destination: Path, store: Store) -> bool:
        """Whether any of the files has its name."""
        return any(store.exists(destination / final) for _, final in self.place)

    def _place(self, destination: Path, staging: Path, store: Store) -> None:
        if self.place:
            for staged, final in self.place:
                store.place(staging / staged, destination / final)
            store.sync_names(destination, [destination / final for _, final in self.place])
            # Whoever takes the lock looks at what is staged after that. So one of the two knows of the other.
            store.confirm()

    def _after_failure(self, destination: Path, staging: Path, kind: str, store: Store) -> str:
        """Puts in order at once what can be, and says what is visible."""
        with contextlib.suppress(OSError):  # what cannot be asked now is not known
            with contextlib.suppress(OSError):
                self._move_back(destination, staging, store)
            if not self._is_visible(destination, store):
                return "Nothing of it is visible"
        return f"A part of it may be visible: the next {kind} into the folder puts it in order"

    def _move_back(self, destination: Path, staging: Path, store: Store) -> None:
        # Not removed: if the process dies after that, files that are nowhere would look like files that were placed.
        for staged, final in reversed(self.place):
            store.move_back(destination / final, staging / staged)
        store.sync_names(destination, [staging / staged for staged, _ in self.place])

    def _take_back(self, destination: Path, store: Store) -> None:
        finals = [destination / final for _, final in self.place]
        # An index goes before its log, and stands after it in the list: alone it would look like a file of its own.
        for final in reversed(finals):
            store.remove(final)
        # Their folders as well, where nothing of others is in them.
        for folder in sorted({folder for final in finals for folder in final.parents}, reverse=True):
            if folder.is_relative_to(destination) and folder != destination:
                store.remove_empty(folder)
        store.sync_names(destination, finals)

    def _remove_replaced(self, destination: Path, kind: str, store: Store) -> None:
        if not self.remove:
            return
        try:
            for name in self.remove:
                store.remove(destination / name)
            changed = (*(final for _, final in self.place), *self.remove)
            store.sync_names(destination, [destination / name for name in changed])
        except OSError as error:
            raise _failed(
                destination,
                error,
                "removing what is overwritten failed",
                "All of the new is visible, beside what is left of the old; "
                f"the next {kind} into the folder tries again",
                store,
            ) from error


def left_over(root: Path, *, kind: str, store: Store = LOCAL) -> list[Path]:
    """Returns the staging folders that are in the folder of them all, of publishers at work and of dead ones.

    Raises:
        NotADirectoryError: a link is in its place.
    """
    if store.is_link(root):
        raise NotADirectoryError(
            f"{_shown(root, store)}: expected a folder of {kind}s on their way, in which they remove what is left "
            "over; this is a link. Remove it"
        )
    return store.children(root)


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _shown(path: Path, store: Store) -> str:
    return printable_path(store.name(path))


def _failed(destination: Path, error: OSError, what: str, state: str, store: Store) -> OSError:
    return OSError(error.errno, f"{_shown(destination, store)}: {what}: {error}. {state}")


def _foreign(path: Path, kind: str, reason: str, store: Store) -> ValueError:
    return ValueError(
        f"{_shown(path, store)}: expected the manifest of {_a(kind)} that died, {reason}. Nothing was changed; "
        f"look at what is there and remove {_shown(path.parent, store)}"
    )
