"""From a URI, or a path within a file system, to an open file."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from .arrow_store import ArrowStore
from .fsspec_store import FsspecStore, is_fsspec
from .store import RemoteFile, Store, with_advice, without_secrets

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

__all__ = ["Stores", "connect", "has_password", "library_of", "open_remote", "scheme_of"]

# What pyarrow.fs opens; S3 by the names that Hadoop has for it, too.
_LIBRARIES = {
    "s3": frozenset({"s3", "s3a", "s3n"}),
    "gcs": frozenset({"gs", "gcs"}),
    "abfs": frozenset({"abfs", "abfss"}),
    "hdfs": frozenset({"hdfs", "viewfs"}),
    "file": frozenset({"file"}),
}
# Where the AWS client is told where to go, so that nobody needs to ask in which region a bucket is.
_S3_PLACES = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION")
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


def open_remote(source: object, filesystem: object = None) -> RemoteFile:
    """Opens a file for reading at any offset, by its URI, or by its path or URI within a file system.

    Raises:
        ImportError: it takes a package that is not installed.
        ValueError: the URI is none that pyarrow.fs or fsspec knows, or has a password in it.
        TypeError: `filesystem` is of neither library.
        OSError: the file cannot be opened.
    """
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"filesystem= needs a path or URI, not {type(source).__qualname__}")
    name = os.fspath(cast("str | os.PathLike[str]", source))
    store, path = Stores(filesystem).connect(name)
    return store.open(path, name)


class Stores:
    """The stores of URIs, reached with what the environment gives; or one file system that all paths are within.

    Args:
        filesystem: a `pyarrow.fs.FileSystem` or an `fsspec` file system; None takes the URIs' own.

    Raises:
        TypeError: `filesystem` is of neither library.
    """

    def __init__(self, filesystem: object = None) -> None:
        self._given: Store | None = None
        # Those that were reached, by the scheme and authority of their URIs.
        self._reached: dict[str, Store] = {}
        if is_arrow(filesystem):
            self._given = ArrowStore(cast("FileSystem", filesystem))
        elif is_fsspec(filesystem):
            self._given = FsspecStore(filesystem)
        elif filesystem is not None:
            kind = type(filesystem).__qualname__
            raise TypeError(f"filesystem must be a pyarrow.fs.FileSystem or an fsspec file system, not {kind}")

    @property
    def hold_all(self) -> bool:
        """Whether every path is within the one file system that was given."""
        return self._given is not None

    def connect(self, uri: str) -> tuple[Store, str]:
        """Returns the store of a URI, or the one that was given, and the path within it.

        Raises:
            ImportError, ValueError, OSError: as `open_remote`.
        """
        if has_password(uri):
            raise ValueError(
                "a URI with a password in it, which errors and reports would show: let the environment give the "
                "credentials, or give filesystem= a file system that has them"
            )
        if self._given is not None:
            return self._given, self._given.path_of(uri)
        if scheme_of(uri) is None:
            raise ValueError(f"{uri}: expected a path, or a URI with //, as in s3://bucket/lake")
        scheme, _, rest = uri.partition("://")
        place = f"{scheme}://{rest.partition('/')[0]}"
        if place not in self._reached:
            store, path = _by_uri(uri)
            self._reached[place] = store
            return store, path
        store = self._reached[place]
        return store, store.path_of(uri)


def is_arrow(filesystem: object) -> bool:
    """Tells whether something is a file system of `pyarrow.fs`, without importing that."""
    module = sys.modules.get("pyarrow.fs")
    return module is not None and isinstance(filesystem, module.FileSystem)


def library_of(uri: str) -> str:
    """Returns what opens a URI: `s3`, `gcs`, `abfs`, `hdfs`, `file`, or `fsspec` for what pyarrow does not know."""
    scheme = scheme_of(uri) or ""
    return next((library for library, schemes in _LIBRARIES.items() if scheme in schemes), "fsspec")


def connect(uri: str, settings: Mapping[str, Any], secrets: tuple[str, ...]) -> Store:
    """Returns the store of a URI, of which only what stands before the path counts.

    Args:
        uri: a file or folder in the store.
        settings: arguments of the file system's constructor; for S3 also `retry_max_attempts`.
        secrets: what no message shows.

    Raises:
        ImportError, ValueError: as `open_remote`.
        OSError: the store cannot be reached.
    """
    library = library_of(uri)
    if library != "fsspec":
        _import_arrow(uri)
        filesystem = _arrow(library, uri, dict(settings), secrets)
        if filesystem is not None:
            return ArrowStore(filesystem, secrets)
    return FsspecStore(_fsspec(uri, settings, secrets)[0], secrets)


def _arrow(library: str, uri: str, settings: dict[str, Any], secrets: tuple[str, ...]) -> FileSystem | None:
    """Makes a file system of `pyarrow.fs`; None where this pyarrow has none of the kind."""
    import pyarrow.fs as arrow

    scheme, _, rest = uri.partition("://")
    authority = rest.partition("/")[0]
    try:
        if library == "s3":
            attempts = settings.pop("retry_max_attempts", None)
            if attempts is not None:
                settings["retry_strategy"] = arrow.AwsStandardS3RetryStrategy(max_attempts=attempts)
            if "region" not in settings and "endpoint_override" not in settings:
                settings |= _region(authority)
            return arrow.S3FileSystem(**settings)
        if library == "gcs":
            return arrow.GcsFileSystem(**settings)
        if library == "abfs" and settings:
            host = authority.rpartition("@")[2]
            settings.setdefault("account_name", host.partition(".")[0])
            return arrow.AzureFileSystem(**settings)
        if library == "hdfs" and settings:
            split = urlsplit(uri)
            return arrow.HadoopFileSystem(split.hostname or "default", split.port or 0, **settings)
        return arrow.FileSystem.from_uri(f"{scheme}://{authority}/")[0]
    except (ImportError, NotImplementedError):
        return None
    except Exception as error:
        raise _not_made(uri, error, secrets) from None


def _not_made(uri: str, error: Exception, secrets: tuple[str, ...]) -> OSError | ValueError:
    """Makes the error of a file system that cannot be made, without secrets. The client's own may show all settings."""
    text = without_secrets(str(error), secrets)
    if isinstance(error, TypeError | ValueError):
        more = "; name a path, or a URI as in s3://bucket/lake" if text.startswith("Protocol not known") else ""
        return ValueError(f"{uri}: {text}{more}")
    number = getattr(error, "errno", None)
    return OSError(number if isinstance(number, int) else errno.EIO, with_advice(text or type(error).__name__), uri)


def _region(bucket: str) -> dict[str, str]:
    """Asks in which region a bucket is, unless the environment says where to go."""
    if any(os.environ.get(name) for name in _S3_PLACES):
        return {}
    from pyarrow.fs import resolve_s3_region

    try:
        return {"region": resolve_s3_region(bucket)}
    except OSError:
        return {}  # then asking for the file says what is wrong


def _by_uri(uri: str) -> tuple[Store, str]:
    library = library_of(uri)
    if library != "fsspec" and "::" not in uri.partition("://")[0]:
        _import_arrow(uri)
        from pyarrow import ArrowException
        from pyarrow.fs import FileSystem

        known = f"s3{uri[uri.index(':') :]}" if library == "s3" else uri
        try:
            filesystem, path = FileSystem.from_uri(known)
            return ArrowStore(filesystem), path
        except NotImplementedError:
            pass  # built without it
        except ArrowException as error:
            raise ValueError(
                f"{uri}: {error}. Choose another name, or give filesystem= and the path within it"
            ) from error
        except OSError as error:  # as when asking in which region a bucket is
            raise _not_made(uri, error, ()) from error
    filesystem, path = _fsspec(uri, {}, ())
    return FsspecStore(filesystem), path


def _import_arrow(uri: str) -> None:
    try:
        import pyarrow.fs  # pyright: ignore[reportUnusedImport]  # noqa: F401
    except ImportError as error:
        raise ImportError(f"reading {uri} takes pyarrow: pip install pyarrow") from error


def _fsspec(uri: str, settings: Mapping[str, Any], secrets: tuple[str, ...]) -> tuple[Any, str]:
    """Makes a file system of `fsspec`, and says what the URI's path within it is."""
    try:
        from fsspec.core import (  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]
            url_to_fs,  # pyright: ignore[reportUnknownVariableType]
        )
    except ImportError as error:
        raise ValueError(
            f"{uri}: pyarrow.fs knows no such URI; where fsspec does, install that: pip install fsspec"
        ) from error
    try:
        return cast("tuple[Any, str]", url_to_fs(uri, **settings))
    except ImportError as error:
        text = without_secrets(str(error), secrets)
        raise ImportError(f"reading {uri} takes another package: {text}") from None
    except Exception as error:
        raise _not_made(uri, error, secrets) from None
