"""What a store of files elsewhere provides, whatever library reaches it."""

from __future__ import annotations

import errno
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote, quote_plus

__all__ = ["Entry", "RemoteFile", "Store", "without_secrets"]

# What the stores' own words for "you may not" have in common. A name may have 403 in it, as a hash or a date.
_REFUSED = re.compile(
    "access_denied|access denied|permission denied|invalid_access_key|signature_does_not_match|forbidden|"
    "401 unauthorized|(?<![0-9a-z])403(?![0-9a-z])"
)
# What is to be done about what stores say in their words.
_ADVICE = {
    ("could not connect", "could not resolve", "connection refused", "error sending request"): (
        "check that the store runs, and its address (AWS_ENDPOINT_URL or the option endpoint)"
    ),
    ("redirect",): "name the region of the bucket (AWS_REGION or the option region)",
    ("builder error",): "addresses that begin with http:// take the option allow_http=true, or AWS_ALLOW_HTTP=true",
    ("empty path segment",): "rename that object: its name has // in it, or begins or ends so",
}
_RETRIED = "the store's client tried again as often as it may: try later, or give it more attempts or a longer timeout"


class Entry(NamedTuple):
    """What a store has at a path: a file of `size` bytes, `modified` in seconds since 1970, or a folder."""

    path: str
    is_file: bool
    size: int
    modified: float | None


class Store(ABC):
    """Files elsewhere, by their paths within the store. Every error is an OSError that names the file.

    Attributes:
        place: what tells it from other stores that URIs name, as `s3://bucket`; "" of a file system that was given.

    Args:
        secrets: what no message shows.
        missing: what to say where nothing is.
    """

    place: str = ""

    def __init__(self, secrets: tuple[str, ...] = (), missing: str = "No such file or directory") -> None:
        self._secrets = secrets
        self._missing = missing

    @abstractmethod
    def path_of(self, source: str) -> str:
        """Returns the path within the store of a path or URI, taken as it stands: `%` and blanks are good names."""

    def holds(self, source: str) -> bool:
        """Tells whether a path or URI may name something in this store."""
        return True

    @abstractmethod
    def _opened(self, path: str, name: str) -> RemoteFile: ...

    @abstractmethod
    def _found(self, path: str) -> Entry | None: ...

    @abstractmethod
    def _listed(self, folder: str, *, recursive: bool) -> Iterator[Entry]: ...

    def open(self, path: str, name: str) -> RemoteFile:
        """Opens a file for reading; errors call it `name`. Costs one request in most stores."""
        with self.errors(name):
            return self._opened(path, name)

    def find(self, path: str, name: str) -> Entry | None:
        """Tells what is at a path; None where nothing is."""
        with suppress(FileNotFoundError), self.errors(name):
            return self._found(path)
        return None

    def entries(self, folder: str, name: str, *, recursive: bool) -> Iterator[Entry]:
        """Lists a folder, and those below it if asked to; with sizes and times, without a request for each file."""
        with self.errors(name):
            yield from self._listed(folder, recursive=recursive)

    @contextmanager
    def errors(self, name: str) -> Generator[None]:
        """Has what the store's client raises in the block be an OSError that names the file, without secrets."""
        try:
            yield
        except Exception as error:
            raise self.failure(name, error) from None

    def failure(self, name: str, error: Exception, *, advice: str = "") -> OSError:
        """Makes that OSError."""
        if isinstance(error, OSError) and error.filename == name:
            return error
        # Errors of obstore go on with how they look in Rust.
        said = str(error).partition("\n\nDebug source:")[0].rstrip()
        text = without_secrets(said, self._secrets)
        number = getattr(error, "errno", None)
        if isinstance(error, FileNotFoundError) or "status code: 404 Not Found" in said:
            return FileNotFoundError(errno.ENOENT, self._missing, name)
        if isinstance(error, PermissionError) or _REFUSED.search(said.lower()):
            text += "; check the credentials, and what they allow"
            return PermissionError(errno.EACCES, text, name)
        known = (known for words, known in _ADVICE.items() if any(word in said.lower() for word in words))
        if advice := advice or next(known, ""):
            text += f"; {advice}"
        return OSError(number if isinstance(number, int) else errno.EIO, text, name)


class RemoteFile(ABC):
    """An open file elsewhere, of a length that is settled when it is opened. Any thread may read from it.

    Attributes:
        name: what errors and reports call it, a URI or path.
        path: its path within the store.
        size: its length in bytes.
        modified: when it was modified, in seconds since 1970; None where the store does not say.
    """

    def __init__(self, store: Store, path: str, name: str, size: int, modified: float | None) -> None:
        self.store = store
        self.path = path
        self.name = name
        self.size = size
        self.modified = modified

    @abstractmethod
    def _read(self, offset: int, size: int) -> bytes: ...

    @abstractmethod
    def _is_unchanged(self) -> bool: ...

    def read_at(self, offset: int, size: int) -> bytes:
        """Reads exactly `size` bytes at `offset`.

        Raises:
            OSError: they cannot be had, also where fewer come: that never counts as the end of the file.
        """
        try:
            content = self._read(offset, size)
        except Exception as error:
            raise self.store.failure(self.name, error, advice=_RETRIED) from None
        if len(content) != size:
            raise OSError(
                errno.EIO,
                f"{len(content)} bytes came instead of {size}, though the file had {self.size} when it was opened: the "
                "answer was cut off, ranges are not heeded, or the file is another by now; read it again",
                self.name,
            )
        return content

    def confirm(self) -> None:
        """Makes sure that it is still the file that was opened.

        Raises:
            OSError: it is another by now, or is gone, or that cannot be told.
        """
        try:
            unchanged = self._is_unchanged()
        except FileNotFoundError:
            unchanged = False
        except Exception as error:
            raise self.store.failure(self.name, error, advice=_RETRIED) from None
        if not unchanged:
            raise OSError(
                errno.ESTALE,
                "the file was replaced or deleted while it was read: what was read may be of two files; read it again",
                self.name,
            )

    def beside(self, extension: str) -> RemoteFile | None:
        """Opens the file of the same name but for its extension; None where there is none. Costs one request.

        Stores that do not tell whether a file is there from whether one may know of it say None in both cases.
        """
        path, name = _with_extension(self.path, extension), _with_extension(self.name, extension)
        if path is None or name is None:
            return None
        try:
            return self.store.open(path, name)
        except (FileNotFoundError, PermissionError):
            return None


def without_secrets(text: str, secrets: tuple[str, ...]) -> str:
    """Returns a text with "(hidden)" for each secret, also where it is written as in Python, JSON or a URL."""
    forms = {form for secret in secrets for form in _written(secret) if form}
    if any(len(form) < 4 and form in text for form in forms):
        return "(hidden, because it may contain the key)"  # gaps in words would show which letters it has
    # The longest first, since one may begin with another.
    pattern = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    return re.sub(pattern, "(hidden)", text) if pattern else text


def _written(secret: str) -> Iterator[str]:
    yield secret
    yield repr(secret)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret)
    yield quote(secret, safe="")
    yield quote_plus(secret)


def _with_extension(path: str, extension: str) -> str | None:
    """Returns the path of the file beside another; None where that is the same, or the path has more than a path."""
    folder, slash, file = path.rpartition("/")
    if not file or any(mark in file for mark in "?#"):
        return None
    other = PurePosixPath(file).with_suffix(f".{extension}").name
    return None if other == file else f"{folder}{slash}{other}"
