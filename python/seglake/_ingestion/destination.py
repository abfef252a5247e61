"""Where the tables of an ingest are, and where a run stages its files."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import seglake
from seglake._files import Stores, scheme_of, stream
from seglake._files.patterns import is_hidden, mounted_path
from seglake._publish.remote import RemoteStore
from seglake._publish.store import LOCAL, LocalStore, Store
from seglake._text import error_text, printable_path

from .exchange import Exchange, FolderExchange
from .layout import STAGING
from .result import IngestError, can_pass

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["Destination", "Staging"]

# What one library takes as it stands and another decodes, cuts off or takes for a slash, and bytes that are no text.
_READ_OTHERWISE: Final = re.compile(r"[?#\\\x00-\x1f\x7f\udc80-\udcff]|%[0-9A-Fa-f]{2}")

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Destination:
    """The folder of the tables, on a mounted file system or in a store elsewhere.

    Attributes:
        store: what the folder is in.
        folder: its path within that.
    """

    store: Store
    folder: Path

    @classmethod
    def local(cls, folder: Path) -> Self:
        """Returns a folder of a mounted file system."""
        return cls(LOCAL, folder)

    @classmethod
    def of(cls, named: str, filesystem: object = None) -> Self:
        """Returns the folder that a path or URI names; it need not be there.

        Args:
            named: a path, whose links are followed, or a URI.
            filesystem: a file system of `pyarrow.fs` or `fsspec` that `named` is within; None takes that of the URI.

        Raises:
            IngestError: something else is in its place, or the store cannot be reached.
            TypeError: `filesystem` is of neither library.
        """
        if not named:
            raise IngestError("no destination is given: name the folder that the tables are to be written to")
        stores = Stores(filesystem)
        try:
            local = None if stores.hold_all else mounted_path(named, "folder")
            if local is not None:
                found = cls.local(Path(local).resolve())
                _refuse_bytes(found.folder)
            else:
                if not named.partition("://")[2].strip("/") and "://" in named:
                    raise IngestError(f"{printable_path(named)}: names no folder: name one, as in s3://bucket/lake")
                store = RemoteStore(stores, named)
                found = cls(store, store.root)
                _refuse_other_path(named, store.root)
            is_file = found.store.is_file(found.folder)
        except (OSError, ValueError, ImportError) as error:
            raise IngestError(error_text(error), may_pass=can_pass(error)) from error
        if is_file:
            raise IngestError(
                f"{printable_path(named)}: expected a folder for the tables, or nothing yet; a file is there"
            )
        return found

    @property
    def is_local(self) -> bool:
        """Whether it is on a mounted file system."""
        return isinstance(self.store, LocalStore)

    @property
    def name(self) -> str:
        """What results call it: its path or URI."""
        return self.store.name(self.folder)

    def shown(self, path: Path | None = None) -> str:
        """Returns how messages show a file or folder of it; None is the destination itself."""
        return printable_path(self.store.name(self.folder if path is None else path))

    def uri(self, path: Path) -> str:
        """Returns the URI of a file or folder of it, for what reaches the store by itself.

        Raises:
            IngestError: the destination was named without one, or by a name that not all take for the same.
        """
        if not self.is_local and scheme_of(self.name) is None:
            raise IngestError(
                f"{self.shown()}: expected a URI, by which tables of Delta Lake and Iceberg reach their files: name "
                "the destination as in s3://bucket/lake"
            )
        found = _READ_OTHERWISE.search(self.name)
        if found is not None:
            raise IngestError(
                f"{self.shown()}: expected a folder for tables of Delta Lake and Iceberg without "
                f"{printable_path(found[0])} in its path, which their readers take for something else. Choose another"
            )
        # As it stands: `pyiceberg` looks for a blank that is written as %20 under this name.
        return f"file://{path}" if self.is_local else self.store.name(path)

    def staging(self, run_id: str) -> Path:
        """Returns the staging folder of a run."""
        return self.folder / STAGING / run_id

    def files_tables(self) -> dict[Path, int]:
        """Returns the commit records of all runs and formats, in the order of their paths, and their sizes in bytes."""
        if self.store.lists_all_below:
            formats = sorted(seglake.formats())
        else:
            formats = [name for name, is_file in self._names(self.folder) if not is_file and not is_hidden(name)]
        found: dict[Path, int] = {}
        for folder in (self.folder / format / "files" for format in formats):
            sizes = self.store.sizes_in(folder)
            found |= {folder / name: sizes[name] for name in sorted(sizes) if name.endswith(".parquet")}
        return found

    def records_files(self, format: str) -> Iterator[Path]:
        """Yields the files of a format's `records`, of all runs."""
        folders = [self.folder / format / "records"]
        while folders:
            folder = folders.pop()
            names = self._names(folder)
            folders.extend(folder / name for name, is_file in names if not is_file)
            yield from (folder / name for name, is_file in names if is_file and name.endswith(".parquet"))

    def read(self, path: Path) -> bytes:
        """Returns all bytes of a file.

        Raises:
            OSError: it is not there, or cannot be read.
        """
        source = self.store.source(path)
        if isinstance(source, str):
            return path.read_bytes()
        return source.read_at(0, source.size) if source.size else b""

    def parquet(self, path: Path) -> pq.ParquetFile:
        """Opens a Parquet file for reading.

        Raises:
            IngestError: it is damaged.
            OSError: it is not there, or cannot be read.
        """
        import pyarrow.parquet as pq

        source: Any = self.store.source(path)
        with self._sound(path):
            return pq.ParquetFile(source if isinstance(source, str) else stream(source))

    def columns(self, path: Path, names: Sequence[str]) -> pa.Table:
        """Reads those of some columns that a Parquet file has; errors are those of `parquet`."""
        file: Any = self.parquet(path)  # typed in part only
        with self._sound(path):
            return file.read(columns=[name for name in names if name in file.schema_arrow.names])

    @contextmanager
    def _sound(self, path: Path) -> Generator[None]:
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.filename is not None:
                raise  # of the store: what came is not known to be damaged
            raise IngestError(
                f"{self.shown(path)}: expected a Parquet file that a run has written, it cannot be read: {error}. "
                "Ingest again, in case that it came damaged; if it is damaged, restore it from a copy"
            ) from error

    def size_and_time(self, path: Path) -> tuple[int, int]:
        """Returns the size of a file in bytes, and when it was finished, in milliseconds since 1970."""
        source = self.store.source(path)
        if isinstance(source, str):
            status = path.stat()
            return status.st_size, status.st_mtime_ns // 1_000_000
        return source.size, int((source.modified or 0) * 1000)

    def side_by_side(self, work: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """Does something for each item, as many at a time as the store is worth asking; yields in their order."""
        if self.store.at_a_time == 1:
            yield from map(work, items)
            return
        with ThreadPoolExecutor(self.store.at_a_time) as threads:
            yield from threads.map(work, items)

    def _names(self, folder: Path) -> list[tuple[str, bool]]:
        """Returns the names in a folder, and whether each is that of a file; nothing where there is no such folder."""
        try:
            return sorted(self.store.names_in(folder).items())
        except (FileNotFoundError, NotADirectoryError):
            return []


def _refuse_bytes(folder: Path) -> None:
    """Refuses a folder whose path is not UTF-8: readers of Parquet take no other.

    Raises:
        IngestError: it is not UTF-8.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise IngestError(
            f"{printable_path(str(folder))}: expected a folder whose path is UTF-8, as readers of Parquet take no "
            "other; its bytes shown as \\xNN are not. Rename the folder, or name another"
        ) from None


def _refuse_other_path(named: str, path: Path) -> None:
    """Sees to it that a URI names the folder for all who read the tables by it.

    Raises:
        IngestError: its path is not the folder's as it stands.
    """
    scheme, separator, rest = named.partition("://")
    as_it_stands = rest.partition("/")[2].strip("/") if separator and "::" not in scheme else ""
    is_same = not as_it_stands or f"/{path.as_posix()}".endswith(f"/{as_it_stands}")
    if not is_same or ".." in path.parts:
        raise IngestError(
            f"{printable_path(named)}: expected the URI of a folder whose path is read as it stands, this is the one "
            f"of {printable_path(path.as_posix())}. Leave out escapes (%20), queries (?), fragments (#) and empty "
            "parts, or name the path, with filesystem="
        )


@dataclass(frozen=True)
class Staging:
    """The staging folder of a run. It goes to the tasks, on whatever machine.

    Attributes:
        store: what the folder is in.
        folder: its path within that.
        exchange: how the driver and the tasks tell each other things.
    """

    store: Store
    folder: Path
    exchange: Exchange

    @classmethod
    def local(cls, folder: Path) -> Self:
        """Returns a folder of a mounted file system."""
        return cls(LOCAL, folder, FolderExchange(folder))

    @property
    def is_local(self) -> bool:
        """Whether it is on a mounted file system."""
        return isinstance(self.store, LocalStore)

    @property
    def run_id(self) -> str:
        """The name of the run."""
        return self.folder.name

    def complete(self, written: Path, folder: Path) -> None:
        """Has a file that is written to its end be on the disk, or in a folder of the store."""
        if self.is_local:
            LOCAL.sync_file(written)
        else:
            self.store.stage(written, folder / written.name)
