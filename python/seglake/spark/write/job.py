"""One write into a mounted folder: what its tasks have put aside becomes visible together, or is removed.

Below the folder stands `_temporary/<job>/`, which readers do not see. There each attempt at a task has names of its
own. Which of these files are moved into the folder itself only the driver decides, by the messages that Spark accepted.
"""

import contextlib
import uuid
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglake._text import printable_path
from seglake.write import durable

from . import folders
from .existing import SUCCESS, Existing, PartFile, shown_files
from .manifest import Manifest

__all__ = ["Job"]

_STAGING: Final = "_temporary"
_LOCK: Final = "lock"


@dataclass(frozen=True)
class Job:
    """A write that has begun. It holds nothing open: tasks and the commit are other processes.

    Attributes:
        folder: where the files go.
        id: a name that no other write has.
        overwrites: whether the files that are there are replaced.
        success_file: whether an empty file `_SUCCESS` says in the end that all is there.
        made_folder: whether this write has made the folder.
    """

    folder: Path
    id: str
    overwrites: bool
    success_file: bool
    made_folder: bool

    @classmethod
    def begin(cls, folder: Path, *, overwrites: bool, success_file: bool) -> "Job":
        """Makes the folders, and puts in order what writes that died have left half done.

        Raises:
            ValueError: there is something in the folder that must not be overwritten.
            OSError: it is no folder, or cannot be written to.
        """
        made_folder = not folder.exists()
        if not made_folder and not folder.is_dir():
            raise NotADirectoryError(
                f"{printable_path(folder)}: expected a folder to write files into, or nothing; this is a file"
            )
        for staging in _left_over(folder / _STAGING):
            if folders.is_put_away(staging):
                folders.remove_tree(staging)  # its write had ended, and died removing it
            else:
                _settle(folder, staging)
        if overwrites and not made_folder:
            Existing.of_folder(folder).refuse_others(str(folder))
        if made_folder:
            durable.make_folder(folder)
        job = cls(folder, str(uuid.uuid4()), overwrites, success_file, made_folder)
        folders.make_staging(job.staging)
        return job

    @property
    def staging(self) -> Path:
        """The folder in which tasks put files aside."""
        return self.folder / _STAGING / self.id

    @contextlib.contextmanager
    def writing(self) -> Generator[Path]:
        """Gives the folder in which a task writes its files.

        Raises:
            FileNotFoundError: it is not there.
        """
        if not self.staging.is_dir():
            raise FileNotFoundError(
                f"{printable_path(self.staging)}: the folder that the driver has made for this write is not there. All "
                "machines have to see the destination under the same path; or the write has ended meanwhile"
            )
        yield self.staging

    def put(self, file: Path) -> None:
        """Lets those read and write a complete file who may do so with its folder. Some writers make theirs private."""
        file.chmod(file.parent.stat().st_mode & 0o666)

    def discard(self, names: Sequence[str]) -> None:
        """Removes files of a task that failed, as far as that goes."""
        with contextlib.suppress(OSError):
            for name in names:
                folders.remove(self.staging / name)

    def commit(self, files: Sequence[PartFile]) -> None:
        """Makes these files visible, and removes those that they replace and all that was put aside.

        Raises:
            OSError: that failed. The message says what is visible.
        """
        with contextlib.ExitStack() as held:
            with _not_begun(self.folder):
                if not held.enter_context(folders.lock(self.staging / _LOCK)):
                    raise BlockingIOError(
                        f"{printable_path(self.staging)}: expected to be alone in committing this write"
                    )
                remove = Existing.of_folder(self.folder).segments if self.overwrites else []
            Manifest(shown_files(files), remove).carry_out(self.folder, self.staging)
            try:
                if self.overwrites:
                    folders.remove(self.folder / SUCCESS)  # it was about what is no more
                if self.success_file:
                    folders.write_durably(self.folder, self.folder / SUCCESS, b"")
                folders.put_away(self.staging)
            except OSError as error:
                raise OSError(
                    error.errno,
                    f"{printable_path(self.folder)}: clearing up after the write failed: {error}. All of the write is "
                    "visible: do not repeat it",
                ) from error

    def abort(self) -> None:
        """Removes all that was put aside.

        Raises:
            OSError: a commit had begun, and what it left cannot be put in order.
        """
        _settle(self.folder, self.staging)
        if self.staging.is_dir():
            folders.put_away(self.staging)
        if self.made_folder:
            folders.remove_empty(self.folder)


def _left_over(root: Path) -> list[Path]:
    """Returns the staging folders in the folder of them all, of writes that go on and of dead ones.

    Raises:
        NotADirectoryError: a link is in its place.
    """
    if root.is_symlink():
        raise NotADirectoryError(
            f"{printable_path(root)}: expected a folder of writes on their way, in which they remove what is left "
            "over; this is a link. Remove it"
        )
    try:
        return sorted(root.iterdir())
    except FileNotFoundError:
        return []


def _settle(folder: Path, staging: Path) -> None:
    """Puts in order what a commit has left, if it died. A job that has not come to its commit is left alone."""
    manifest = Manifest.read(staging)
    if manifest is None:
        return
    with contextlib.suppress(FileNotFoundError), folders.lock(staging / _LOCK) as is_ours:  # gone: it has ended since
        if is_ours and Manifest.read(staging) is not None:
            manifest.settle(folder, staging)
            folders.put_away(staging)


@contextlib.contextmanager
def _not_begun(folder: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(
            error.errno,
            f"{printable_path(folder)}: the commit could not begin: {error}. Nothing of it is visible: write again",
        ) from error
