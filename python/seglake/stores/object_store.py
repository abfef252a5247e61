"""Stores that `obstore` reaches: S3, Google Cloud Storage, Azure, servers of HTTP, and `file://`."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote

from .store import Entry, RemoteFile, Store, without_secrets

__all__ = ["SCHEMES", "ObjectStore"]

SCHEMES: Final = {
    **{name: name for name in ("s3", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https", "file")},
    **{"s3a": "s3", "s3n": "s3", "gcs": "gs"},
}
"""The schemes of URIs, by the names that users have for them, and what `obstore` calls them."""
# Which options are those of the client, and not of the store. `obstore` takes them apart from each other.
_CLIENT: Final = frozenset(
    {
        *("allow_http", "allow_invalid_certificates", "root_certificate", "default_content_type", "default_headers"),
        *("timeout", "connect_timeout", "read_timeout", "pool_idle_timeout", "pool_max_idle_per_host"),
        *("http1_only", "http2_only", "http2_keep_alive_interval", "http2_keep_alive_timeout"),
        *("http2_keep_alive_while_idle", "http2_max_frame_size", "randomize_addresses", "user_agent"),
        *("proxy_url", "proxy_ca_certificate", "proxy_excludes"),
    }
)
_PREFIXES: Final = ("aws_", "azure_", "google_")
_RETRIES: Final = frozenset({"max_retries", "retry_timeout"})
_LISTED_AT_A_TIME: Final = 1000
# A file of up to so many bytes is sent in one request, out of memory, where that has a condition.
_MOST_IN_ONE_REQUEST: Final = 8 << 20
# The values of options with such names are shown in no message.
_SECRET: Final = re.compile(r"key|secret|token|pass|cred|sas|auth|proxy|header")
# The process whose threads answer for `obstore`; in a fork of it nobody does, and each call would wait for ever.
_process: int | None = None


class ObjectStore(Store):
    """A store of `obstore`: a bucket, a container or a server. It is reached when it is first asked for something.

    Args:
        place: what stands before the paths in URIs, as in `s3://bucket`.
        options: settings by the keys of `object_store`; what is not given comes from the environment.

    Raises:
        ImportError: `obstore` is not installed.
        ValueError: an option is unknown or wrong, or one is missing.
    """

    def __init__(self, place: str, options: Mapping[str, Any] | None = None) -> None:
        options = {name.lower(): value for name, value in (options or {}).items()}
        scheme, _, authority = place.partition("://")
        self.scheme: str = SCHEMES[scheme.lower()]
        self.place: str = f"{self.scheme}://{authority}"
        bucket = "" if self.scheme in ("file", "http", "https") else ", or no such bucket"
        super().__init__(_secrets(options), f"No such file or directory{bucket}")
        self._client = self._connected(options)

    def path_of(self, source: str) -> str:
        """Returns the key of a URI; of `file://` the path, in which `%20` is a blank as `Path.as_uri` writes it."""
        path = source.partition("://")[2].partition("/")[2].strip("/")
        return unquote(path) if self.scheme == "file" else path

    def holds(self, source: str) -> bool:
        """Tells whether a URI names something in this store."""
        scheme, _, rest = source.partition("://")
        return f"{SCHEMES.get(scheme.lower(), '')}://{rest.partition('/')[0]}" == self.place

    def call(self, function: str, *arguments: Any, **options: Any) -> Any:
        """Calls a function of `obstore` with the store."""
        global _process
        import obstore

        _process = _process or os.getpid()
        if _process != os.getpid():
            raise OSError(
                errno.ENOTCONN,
                "stores cannot be reached in a fork of a process that has reached one: start processes by spawn or "
                "forkserver, as in multiprocessing.set_start_method",
            )
        return getattr(obstore, function)(self._client, *arguments, **options)

    def read(self, path: str, name: str) -> bytes | None:
        """Returns all bytes of a small object, with one request; None where there is none."""
        with suppress(FileNotFoundError), self.errors(name):
            return bytes(self.call("get", path).bytes())
        return None

    def put(self, content: bytes | Path, path: str, name: str, *, create: bool = False) -> None:
        """Stores bytes or a local file. It shows when it is complete, and not at all if that fails.

        Args:
            content: the bytes, or the path of the file.
            path: the key.
            name: what errors call it.
            create: refuse to replace an object. The store refuses that for bytes, and for a local file of up to 8 MiB.
                A larger one is sent in parts, and looked for only before.

        Raises:
            FileExistsError: there is an object, and `create` is set.
            OSError: the store cannot be reached, or refuses.
        """
        from obstore.exceptions import AlreadyExistsError

        exists = FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        in_one_step = create and (isinstance(content, bytes) or content.stat().st_size <= _MOST_IN_ONE_REQUEST)
        if create and not in_one_step and self.find(path, name) is not None:
            raise exists
        with self.errors(name):
            try:
                self.call("put", path, content, mode="create" if in_one_step else "overwrite")
            except (AlreadyExistsError, FileExistsError):
                # The client may have repeated a request whose answer was lost: then what is there is ours.
                sent = content if isinstance(content, bytes) else content.read_bytes()
                if self.read(path, name) != sent:
                    raise exists from None

    def remove(self, path: str, name: str) -> None:
        """Removes an object, if it is there. An error after which it is gone is none."""
        try:
            with self.errors(name), suppress(FileNotFoundError):
                self.call("delete", path)
        except OSError:
            if self.find(path, name) is not None:
                raise

    def _opened(self, path: str, name: str) -> RemoteFile:
        return _ObjectFile(self, path, name)

    def _found(self, path: str) -> Entry | None:
        if path and (found := self._head(path)) is not None:
            return _entry(found)
        # Servers of HTTP have no lists.
        if self.scheme in ("http", "https"):
            return None
        is_folder = not path or next(iter(self.call("list", path, chunk_size=1)), None)
        return Entry(path, False, 0, None) if is_folder else None

    def _listed(self, folder: str, *, recursive: bool) -> Iterator[Entry]:
        """Below a folder there are objects alone, and directly in it folders, too."""
        folders: Sequence[str] = ()
        if recursive:
            chunks = self.call("list", folder or None, chunk_size=_LISTED_AT_A_TIME)
        else:
            found = self.call("list_with_delimiter", folder or None)
            folders, chunks = found["common_prefixes"], [found["objects"]]
        is_there = not folder or bool(folders)
        yield from (Entry(path, False, 0, None) for path in folders)
        for each in chain.from_iterable(chunks):
            is_there = True
            # Others put an empty object `folder/` for a folder, which comes under the name of that.
            if each["size"] or (each["path"] != folder and self._head(each["path"]) is not None):
                yield _entry(each)
        if not is_there:
            raise FileNotFoundError(folder)

    def _head(self, path: str) -> dict[str, Any] | None:
        try:
            return self.call("head", path)
        except FileNotFoundError:
            return None

    def _connected(self, options: Mapping[str, Any]) -> Any:
        from obstore import store as stores

        # Those of the client may have the store's name before their own, as in `aws_allow_http`.
        bare = {name: name.partition("_")[2] if name.startswith(_PREFIXES) else name for name in options}
        config = {name: value for name, value in options.items() if bare[name] not in _CLIENT | _RETRIES}
        others = {bare[name]: value for name, value in options.items() if name not in config}
        client = {name: value for name, value in others.items() if name in _CLIENT}
        try:
            arguments: dict[str, Any] = {"retry_config": _retries(others)}
            if client:  # else those of the environment count
                arguments["client_options"] = client
            if self.scheme == "file":
                return stores.LocalStore()
            if self.scheme in ("http", "https"):
                # Also the hosts of S3 and Azure, whose URLs have buckets in their paths.
                if config:
                    raise ValueError(f"a server of HTTP takes no option {next(iter(config))}")
                arguments["client_options"] = {"allow_http": True, **client}
                return stores.HTTPStore.from_url(self.place, **arguments)
            return cast("Any", stores).from_url(self.place, config=config, **arguments)
        except Exception as error:
            text = without_secrets(str(error).partition("\n\nDebug source:")[0], self._secrets)
            raise ValueError(f"{self.place}: {text}") from None


class _ObjectFile(RemoteFile):
    """An object. Nothing is held open: each read is a request of its own."""

    def __init__(self, store: ObjectStore, path: str, name: str) -> None:
        self._call = store.call
        found = store.call("head", path)
        self._identity = _identity(found)
        super().__init__(store, path, name, found["size"], found["last_modified"].timestamp())

    def _read(self, offset: int, size: int) -> bytes:
        return bytes(self._call("get_range", self.path, start=offset, length=size)) if size else b""

    def _is_unchanged(self) -> bool:
        return _identity(self._call("head", self.path)) == self._identity


def _identity(found: Mapping[str, Any]) -> list[object]:
    return [found[name] for name in ("e_tag", "version", "last_modified", "size")]


def _entry(found: Mapping[str, Any]) -> Entry:
    return Entry(found["path"], True, found["size"], found["last_modified"].timestamp())


def _retries(options: Mapping[str, Any]) -> dict[str, Any]:
    """Takes the options on retries, which come as texts as well as numbers.

    Raises:
        ValueError: one is no number.
    """
    retries: dict[str, Any] = {}
    for name in _RETRIES & set(options):
        text = str(options[name]).strip()
        if not re.fullmatch(r"\d{1,6}" if name == "max_retries" else r"\d{1,6}(\.\d{1,6})?s?", text):
            expected = "a whole number" if name == "max_retries" else "seconds, such as 10 or 10s"
            raise ValueError(f"{name} is {text!r}: expected {expected}")
        retries[name] = int(text) if name == "max_retries" else timedelta(seconds=float(text.rstrip("s")))
    return retries


def _secrets(options: Mapping[str, Any]) -> tuple[str, ...]:
    values: list[Any] = []
    for name, value in options.items():
        if _SECRET.search(name):
            values += [value, *(cast("dict[str, Any]", value).values() if isinstance(value, dict) else ())]
    return tuple(map(str, values))
