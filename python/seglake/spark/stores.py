"""Files elsewhere: the options that begin with `fs.`, and the stores that they reach."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from seglake import stores
from seglake._text import printable_path
from seglake.stores import RemoteFile, SegmentFile, has_password, scheme_of

from .option_table import STORE_PREFIX as PREFIX

if TYPE_CHECKING:
    from seglake._native import ListedSegment

__all__ = ["SparkStores", "is_elsewhere"]

# Spark hides the values of options with this word in their names wherever it shows them; not that of
# `fs.access_key_id`.
_HIDDEN: Final = "secret."
# Executors and driver may see a modification time through different requests, some of which round it to a second.
_CLOCK_SECONDS: Final = 1.0


class SparkStores(stores.Stores):
    """Opens files elsewhere, with the credentials and settings that the options give, or else those of the machine.

    It travels to the executors within their tasks; no `repr`, log line or error message shows what is in it.
    """

    @classmethod
    def parse(cls, given: Mapping[str, str], paths: Sequence[str]) -> "SparkStores":
        """Takes the options of lower-case names that begin with `fs.`, and checks them against the paths they are for.

        Raises:
            ValueError: one is unknown, its value is wrong, or no path is elsewhere. The message names it, and shows no
                value that could be secret.
            ImportError: a store takes a package that is not installed.
        """
        options: dict[str, str] = {}
        for option, value in given.items():
            if not option.startswith(PREFIX):
                continue
            name = option.removeprefix(PREFIX).removeprefix(_HIDDEN)
            if name in options:
                raise ValueError(f"options {PREFIX}{name} and {PREFIX}{_HIDDEN}{name} are both given: give one of them")
            options[name] = value
        elsewhere = [path for path in paths if is_elsewhere(path)]
        if options and not elsewhere:
            raise ValueError(f"option {PREFIX}{next(iter(options))} concerns no path: all are of mounted file systems")
        own = cls(storage_options=options)
        for path in elsewhere:
            if has_password(path):
                raise ValueError(
                    f"a path of {scheme_of(path)}:// has a password in it, which plans and errors would show: give it "
                    f"with options that begin with {PREFIX}, or let the environment of the executors give it"
                )
            try:
                own.connect(path)
            except ValueError as error:
                raise ValueError(f"options that begin with {PREFIX}: {error}" if options else str(error)) from None
        return own

    def now(self, path: str) -> "str | RemoteFile":
        """Returns what `seglake.open` takes for what is at a path, or URI, by now.

        Raises:
            FileNotFoundError: nothing is.
            OSError: it cannot be opened.
        """
        if not is_elsewhere(path):
            return path
        store, within = self.connect(path)
        return store.open(within, path)

    def source(self, file: SegmentFile) -> "str | RemoteFile | ListedSegment":
        """Returns what `seglake.open` takes for a file that was found.

        That is its path, the open file if it is elsewhere, or the segment of a log as it was found.

        Raises:
            FileNotFoundError: it is gone.
            OSError: it is another than was found, or cannot be opened.
        """
        if file.segment is not None:
            return file.segment
        if not is_elsewhere(file.path):
            return file.path
        store, path = self.connect(file.path)
        opened = store.open(path, file.path)
        moved = opened.modified is not None and file.modified is not None
        if opened.size != file.size or (moved and abs(opened.modified - file.modified) > _CLOCK_SECONDS):  # pyright: ignore
            raise OSError(
                f"{printable_path(file.path)}: changed since the read was planned: it had {file.size} bytes of "
                f"{_clock(file.modified)} then and has {opened.size} of {_clock(opened.modified)} now; load it again"
            )
        return opened


def _clock(seconds: float | None) -> str:
    return "an unknown time" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def is_elsewhere(path: str) -> bool:
    """Tells whether a path is a URI of something that is no mounted file system."""
    return scheme_of(path) not in (None, "file")
