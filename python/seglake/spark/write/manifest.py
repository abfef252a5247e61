"""What a commit is about to do, written down first, so that the next write can put in order what a dead one left.

A commit renames files and then removes those that they replace. While it does, it holds a lock that the operating
system drops when the process ends, however it ends. So a manifest whose lock is free is that of a commit that died. If
all files have their names, what they replace is removed; otherwise those that have are removed. Whatever happens,
either what was there before is complete, or what was written is.
"""

import contextlib
import json
import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglake._publish.store import LOCAL
from seglake._text import printable, printable_path

__all__ = ["Manifest", "locked"]

_MANIFEST: Final = "manifest.json"
_LOCK: Final = "lock"


@dataclass(frozen=True)
class Manifest:
    """What a commit does to a folder.

    Attributes:
        job: the write.
        place: renames: from which name in the job's staging folder, to which in the folder.
        remove: the names of the files that are replaced.
    """

    job: str
    place: Sequence[tuple[str, str]]
    remove: Sequence[str]

    def carry_out(self, folder: Path, staging: Path) -> None:
        """Does it. Only for the holder of the lock.

        Raises:
            OSError: a file is not there, or could not be renamed, and nothing of the write is visible; or one that is
                replaced could not be removed, and all of the write is. The message says which.
        """
        for staged, _ in self.place:
            if not (staging / staged).is_file():
                raise FileNotFoundError(
                    f"{printable_path(staging / staged)}: expected the file that a task of this write has put there, "
                    "there is none. Nothing was changed; write again, where all machines see the same folder"
                )
        content = {"job": self.job, "place": self.place, "remove": self.remove}
        # Sync the names of the staged files before the manifest exists: recovery takes a missing one as placed already.
        LOCAL.sync_names(folder, [staging / _MANIFEST])
        LOCAL.write_durably(folder, staging / _MANIFEST, json.dumps(content).encode())
        try:
            for staged, final in self.place:
                LOCAL.place(staging / staged, folder / final)
            self._sync(folder)
        except BaseException as error:
            with contextlib.suppress(OSError):
                self._move_back(folder, staging)
            if isinstance(error, OSError):
                state = "Nothing of it is visible"
                if self._is_visible(folder):
                    state = "The next write into the folder puts it in order"
                raise _failed(folder, error, "giving the files their names failed", state) from error
            raise
        self._remove_replaced(folder)

    def settle(self, folder: Path, staging: Path) -> None:
        """Finishes what a commit that died had begun, or undoes it. Only for the holder of the lock.

        Raises:
            OSError: a file could not be removed.
        """
        is_waiting = any((staging / staged).exists() for staged, _ in self.place)
        # Nothing is removed for files that are neither here nor there.
        if is_waiting or (self.place and not self._is_visible(folder)):
            # What was moved back stays so, whatever becomes of the folder that it is in.
            LOCAL.sync_names(folder, [staging / _MANIFEST])
            self._take_back(folder)
        else:
            self._remove_replaced(folder)

    @classmethod
    def read(cls, staging: Path) -> "Manifest | None":
        """Reads the manifest of a job; None where its commit has not begun.

        Raises:
            ValueError: there is one that no commit has written. The message says what to do.
        """
        path = staging / _MANIFEST
        try:
            content = LOCAL.read_json(path)
        except ValueError as error:
            raise _foreign(path, str(error)) from None
        if content is None:
            return None
        try:
            job = str(content["job"])
            place = [(str(staged), str(final)) for staged, final in content["place"]]
            remove = [str(name) for name in content["remove"]]
        except (LookupError, TypeError, ValueError):
            raise _foreign(path, "it does not name a write and its files") from None
        # Files are going to be removed by it, so that it has to be about nothing but this folder.
        for name in (*(name for move in place for name in move), *remove):
            if not name or Path(name).name != name:
                raise _foreign(path, f"{printable_path(name)} is no name of a file in a folder")
        for _, final in place:
            if job not in final:
                raise _foreign(path, f"{printable_path(final)} is no file of write {printable(job)}")
        if job != staging.name:
            raise _foreign(path, f"it is of write {printable(job)}")
        return cls(job, place, remove)

    def _is_visible(self, folder: Path) -> bool:
        """Whether any of the files has its name."""
        return any((folder / final).exists() for _, final in self.place)

    def _move_back(self, folder: Path, staging: Path) -> None:
        # Not removed: if the process dies after that, files that are nowhere would look like files that were placed.
        for staged, final in reversed(self.place):
            with contextlib.suppress(FileNotFoundError):
                (folder / final).rename(staging / staged)
        LOCAL.sync_names(folder, [staging / _MANIFEST])

    def _take_back(self, folder: Path) -> None:
        # An index goes before its log, and stands behind it in the list: alone it would look like a file of its own.
        for _, final in reversed(self.place):
            (folder / final).unlink(missing_ok=True)
        self._sync(folder)

    def _remove_replaced(self, folder: Path) -> None:
        if not self.remove:
            return
        try:
            for name in self.remove:
                LOCAL.remove(folder / name)
            self._sync(folder)
        except OSError as error:
            raise _failed(
                folder,
                error,
                "removing what is overwritten failed",
                "All of the new is visible, beside what is left of the old; the next write into the folder tries again",
            ) from error

    def _sync(self, folder: Path) -> None:
        LOCAL.sync_names(folder, [folder / final for final in (*(final for _, final in self.place), *self.remove)])


@contextlib.contextmanager
def locked(staging: Path) -> Generator[bool]:
    """Holds the lock of a job's commit, and says whether it could be had: it may be somebody else's.

    Raises:
        OSError: the staging folder is gone.
    """
    import fcntl  # not on Windows, where this module is imported to read

    descriptor = os.open(staging / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def _failed(folder: Path, error: OSError, what: str, state: str) -> OSError:
    return OSError(error.errno, f"{printable_path(folder)}: {what}: {error}. {state}")


def _foreign(path: Path, reason: str) -> ValueError:
    return ValueError(
        f"{printable_path(path)}: expected what a commit that died was about to do, {reason}. Nothing was changed; "
        f"look at what is there and remove {printable_path(path.parent)}"
    )
