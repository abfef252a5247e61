"""From a URI, or a path within a file system, to an open file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any, cast

from seglake._text import printable_path

from .arrow_store import ArrowStore
from .fsspec_store import FsspecStore, is_fsspec
from .object_store import SCHEMES, ObjectStore
from .store import RemoteFile, Store

__all__ = ["Stores", "check_writable", "has_password", "open_remote", "scheme_of", "within"]

_HADOOP = frozenset({"hdfs", "viewfs"})
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(?:::[^/]*)?://")
# Keys of stores have slashes in them that nobody escapes: so what follows a colon and is no port may reach on to an @.
_PASSWORD = re.compile(r"://(?:[^/?#]*:[^/?#]*|[^/?#\[]*:(?![0-9]*(?:[/?#]|$))[^?#]*)@")


def scheme_of(uri: str) -> str | None:
    """Returns the scheme of a URI in lower case; None where it is none."""
    match = _SCHEME.match(uri)
    return match[1].lower() if match else None


def has_password(uri: str) -> bool:
    """Tells whether a URI has a password in it, which every message that names the file would show."""
    return _PASSWORD.search(uri) is not None


def check_writable(uri: str) -> None:
    """Refuses URIs of stores that are only read from.

    Raises:
        ValueError: it is one.
    """
    if scheme_of(uri) not in SCHEMES:
        # Not all of the URI: there may be a password in it.
        scheme = printable_path(uri.partition(":")[0])
        raise ValueError(
            f"{scheme}://: expected a path, or the URI of an object store (s3://, gs://, abfs://, az://): "
            "others are only read from. Write to a path where that file system is mounted, or copy the result there"
        )


def open_remote(source: object, filesystem: object = None) -> RemoteFile:
    """Opens a file for reading at any offset, by its URI, or by its path or URI within a file system.

    Args:
        source: the URI or path.
        filesystem: as in `Stores`; or `Stores` that have what they need.

    Raises:
        ImportError, ValueError, TypeError: as `Stores`.
        OSError: the file cannot be opened.
    """
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"filesystem= needs a path or URI, not {type(source).__qualname__}")
    name = os.fspath(cast("str | os.PathLike[str]", source))
    stores = filesystem if isinstance(filesystem, Stores) else Stores(filesystem)
    store, path = stores.connect(name)
    return store.open(path, name)


class Stores:
    """The stores of URIs, or one file system that all paths are within. They can be pickled, with all their settings.

    Args:
        filesystem: a `pyarrow.fs.FileSystem` or an `fsspec` file system; None takes the URIs' own.
        storage_options: settings of the URIs' stores by the keys of `object_store`, as delta-rs and polars take them;
            what is not given comes from the environment. No message shows secrets among them.

    Raises:
        TypeError: `filesystem` is of neither library.
        ValueError: both are given, or a file system of Google Cloud Storage.
    """

    def __init__(self, filesystem: object = None, storage_options: Mapping[str, Any] | None = None) -> None:
        if filesystem is not None and storage_options:
            raise ValueError("storage_options= are for URIs: a file system of its own has its settings already")
        self._given = None if filesystem is None else _adapted(filesystem)
        self._options = dict(storage_options or {})
        # Those that were reached, by the scheme and authority of their URIs.
        self._reached: dict[str, Store] = {}

    def __getstate__(self) -> dict[str, Any]:
        filesystem = cast("ArrowStore | FsspecStore | None", self._given)
        return {"filesystem": filesystem and filesystem.filesystem, "options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Stores.__init__(self, state["filesystem"], state["options"])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(sorted(self._options))})"

    @property
    def storage_options(self) -> dict[str, Any]:
        """The settings of URIs' stores. They may be secret."""
        return dict(self._options)

    @property
    def hold_all(self) -> bool:
        """Whether every path is within the one file system that was given."""
        return self._given is not None

    def connect(self, uri: str) -> tuple[Store, str]:
        """Returns the store of a URI, or the one that was given, and the path within it.

        Raises:
            ImportError: it takes a package that is not installed.
            ValueError: the URI is of no store, or has a password in it; or an option is wrong.
            OSError: the store cannot be reached.
        """
        if has_password(uri):
            raise ValueError(
                "a URI with a password in it, which errors and reports would show: let the environment give the "
                "credentials, or give them by storage_options= or filesystem="
            )
        if self._given is not None:
            return self._given, self._given.path_of(uri)
        place = "".join(uri.partition("://")[:2]) + uri.partition("://")[2].partition("/")[0]
        if place not in self._reached:
            self._reached[place] = self._made(uri, place)
        store = self._reached[place]
        return store, store.path_of(uri)

    def writable(self, uri: str) -> tuple[ObjectStore, str]:
        """Returns the object store of a URI, and the key in it, to write to.

        Raises:
            ImportError, ValueError, OSError: as `connect`; also for a store that is only read from.
        """
        check_writable(uri)
        store, path = self.connect(uri)
        if not isinstance(store, ObjectStore):
            raise ValueError(f"{uri}: a file system that is given as filesystem= is only read from")
        return store, path

    def _made(self, uri: str, place: str) -> Store:
        scheme = scheme_of(uri)
        if scheme in SCHEMES and "::" not in place:
            try:
                return ObjectStore(place, self._options)
            except ImportError as error:
                raise ImportError(f"reading {uri} takes obstore: pip install obstore") from error
        if scheme in _HADOOP:
            return ArrowStore(_hadoop(place, self._options))
        known = ", ".join(f"{name}://" for name in ("s3", "gs", "abfs", "hdfs", "https"))
        raise ValueError(
            f"{uri}: expected a path, or a URI with // of {known} and their kin, as in s3://bucket/lake; what else "
            "pyarrow.fs or fsspec reaches can be given as filesystem="
        )


def within(source: object, filesystem: object, storage_options: Mapping[str, Any]) -> object:
    """Returns what a file is within: the store of its URI with these settings, or the file system that is given."""
    if isinstance(source, str) and scheme_of(source) is not None:
        return Stores(filesystem, storage_options)
    return filesystem


def _adapted(filesystem: object) -> Store:
    arrow = sys.modules.get("pyarrow.fs")  # not imported for this
    if arrow is not None and isinstance(filesystem, arrow.FileSystem):
        return ArrowStore(filesystem)
    if is_fsspec(filesystem):
        return FsspecStore(filesystem)
    kind = type(filesystem).__qualname__
    raise TypeError(f"filesystem must be a pyarrow.fs.FileSystem or an fsspec file system, not {kind}")


def _hadoop(place: str, options: Mapping[str, Any]) -> Any:
    if options:
        raise ValueError(f"{place}: takes no storage_options: HDFS has its settings in the files of HADOOP_CONF_DIR")
    try:
        from pyarrow.fs import FileSystem
    except ImportError as error:
        raise ImportError(f"reading {place} takes pyarrow: pip install pyarrow") from error
    try:
        return FileSystem.from_uri(f"{place}/")[0]
    except OSError as error:
        raise OSError(
            error.errno, f"{error}; check that Hadoop's libraries can be loaded, and its address", place
        ) from error
