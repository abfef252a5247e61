"""Files elsewhere: the options that begin with `fs.`, and the stores that they reach."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

from seglake import _values as values
from seglake._text import printable_path
from seglake.stores import RemoteFile, SegmentFile, Store, connect, has_password, library_of, scheme_of

from .option_table import STORE_PREFIX as PREFIX

if TYPE_CHECKING:
    from seglake._native import ListedSegment

__all__ = ["Stores", "is_elsewhere"]

# Spark hides the values of options with this word in their names wherever it shows them; not that of `fs.access_key`.
_HIDDEN: Final = "secret."
# Arguments of `fsspec` with such names hold secrets, also where their values are short, or numbers.
_SECRET_NAME: Final = re.compile(r"pass|pwd|secret|token|key|cred|auth|sign", re.IGNORECASE)
# Executors and driver may see a modification time through different requests, some of which round it to a second.
_CLOCK_SECONDS: Final = 1.0
_Parser = Callable[[str], Any]


def _seconds(value: str) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", value) or float(value) == 0:
        raise values.WrongValueError(value, "seconds, such as 10 or 0.5")
    return float(value)


def _duration(value: str) -> timedelta:
    return timedelta(seconds=_seconds(value))


def _count(value: str) -> int:
    return values.whole_number(value, 1, 10**9 - 1)


def _protocol(value: str) -> str:
    return values.one_of(value, ("http", "https"))


def _settings(value: str) -> dict[str, str]:
    try:
        parsed: Any = json.loads(value)
    except ValueError:
        parsed = None
    texts = isinstance(parsed, dict) and all(isinstance(each, str) for each in cast("dict[str, Any]", parsed).values())
    if not texts:
        raise values.WrongValueError(value, 'a JSON object of texts, such as {"dfs.replication": "2"}')
    return cast("dict[str, str]", parsed)


def _secret(value: str) -> str:
    # The message must not show it, not even where it is wrong.
    if not value.strip():
        raise ValueError("is empty")
    return value


def _any(value: str) -> Any:
    """Parses JSON, and takes for a text what is none: `true`, `5`, `{"endpoint_url": "http://…"}`, `somebody`."""
    try:
        return json.loads(value)
    except ValueError:
        return value


# The arguments of each file system's constructor that options may give.
_ARGUMENTS: Final[Mapping[str, Mapping[str, _Parser]]] = {
    "s3": {
        "access_key": _secret,
        "secret_key": _secret,
        "session_token": _secret,
        "anonymous": values.flag,
        "region": values.not_empty,
        "endpoint_override": values.not_empty,
        "scheme": _protocol,
        "request_timeout": _seconds,
        "connect_timeout": _seconds,
        "retry_max_attempts": _count,
        "role_arn": values.not_empty,
        "session_name": values.not_empty,
        "external_id": _secret,
        "load_frequency": _count,
        "proxy_options": _secret,
        "force_virtual_addressing": values.flag,
        "tls_ca_file_path": values.not_empty,
    },
    "gcs": {
        "anonymous": values.flag,
        "access_token": _secret,
        "credential_token_expiration": values.time,
        "target_service_account": values.not_empty,
        "endpoint_override": values.not_empty,
        "scheme": _protocol,
        "retry_time_limit": _duration,
        "project_id": values.not_empty,
    },
    "abfs": {
        "account_name": values.not_empty,
        "account_key": _secret,
        "sas_token": _secret,
        "tenant_id": values.not_empty,
        "client_id": values.not_empty,
        "client_secret": _secret,
        "blob_storage_authority": values.not_empty,
        "blob_storage_scheme": _protocol,
        "dfs_storage_authority": values.not_empty,
        "dfs_storage_scheme": _protocol,
    },
    "hdfs": {
        "user": values.not_empty,
        "kerb_ticket": values.not_empty,
        "buffer_size": values.size,
        "extra_conf": _settings,
    },
}


class Stores:
    """Opens files elsewhere, with the credentials and settings that the options give, or else those of the machine.

    It travels to the executors within their tasks; no `repr`, log line or error message shows what is in it.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = dict(given)
        self._stores: dict[tuple[str, str], Store] = {}

    @classmethod
    def parse(cls, given: Mapping[str, str], paths: Sequence[str]) -> "Stores":
        """Takes the options of lower-case names that begin with `fs.`, and checks them against the paths they are for.

        Raises:
            ValueError: one is unknown, its value is wrong, or no path is elsewhere. The message names it, and shows no
                value that could be secret.
        """
        arguments: dict[str, str] = {}
        for option, value in given.items():
            if not option.startswith(PREFIX):
                continue
            name = option.removeprefix(PREFIX).removeprefix(_HIDDEN)
            if name in arguments:
                raise ValueError(f"options {PREFIX}{name} and {PREFIX}{_HIDDEN}{name} are both given: give one of them")
            arguments[name] = value
        stores = cls(arguments)
        elsewhere = [path for path in paths if is_elsewhere(path)]
        for path in elsewhere:
            if has_password(path):
                raise ValueError(
                    f"a path of {scheme_of(path)}:// has a password in it, which plans and errors would show: give it "
                    f"with options that begin with {PREFIX}, or let the environment of the executors give it"
                )
            stores._arguments(path)
        if stores._given and not elsewhere:
            raise ValueError(
                f"option {PREFIX}{next(iter(stores._given))} concerns no path: all are of mounted file systems"
            )
        return stores

    def __repr__(self) -> str:
        return f"Stores({', '.join(sorted(self._given))})"

    def __getstate__(self) -> object:
        return {"_given": self._given, "_stores": {}}

    def connect(self, uri: str) -> tuple[Store, str]:
        """Returns the store of a URI, and the path within it.

        Raises:
            ValueError: an option does not fit the store.
            ImportError: reaching it takes a package that is not installed.
            OSError: it cannot be reached.
        """
        rest = uri.partition("://")[2]
        of = (uri[: len(uri) - len(rest)], rest.partition("/")[0])
        if of not in self._stores:
            arguments = self._arguments(uri)
            self._stores[of] = connect(f"{''.join(of)}/", arguments, _secrets(library_of(uri), self._given))
        store = self._stores[of]
        return store, store.path_of(uri)

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

    def _arguments(self, uri: str) -> dict[str, Any]:
        library = library_of(uri)
        known = _ARGUMENTS.get(library)
        arguments: dict[str, Any] = {}
        for name, value in self._given.items():
            if known is not None and name not in known:
                raise ValueError(
                    f"unknown option {PREFIX + name!r} for {scheme_of(uri)}:// paths. "
                    f"They are {', '.join(PREFIX + each for each in known)}"
                )
            try:
                arguments[name] = (known[name] if known is not None else _any)(value)
            except values.WrongValueError as error:
                raise ValueError(f"option {PREFIX}{name} is {value!r}: expected {error.expected}") from None
            except ValueError as error:
                raise ValueError(f"option {PREFIX}{name} {error}") from None
        return arguments


def _clock(seconds: float | None) -> str:
    return "an unknown time" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def is_elsewhere(path: str) -> bool:
    """Tells whether a path is a URI of something that is no mounted file system."""
    return scheme_of(path) not in (None, "file")


def _secrets(library: str, given: Mapping[str, str]) -> tuple[str, ...]:
    """Returns what no message shows.

    Of arguments of `fsspec`, whose meaning is not known, that is all of those that are named like a secret, and of the
    others every text but addresses without a password.
    """
    known = _ARGUMENTS.get(library)
    if known is not None:
        return tuple(value for name, value in given.items() if known[name] is _secret)
    texts: list[str] = []
    # Whether it, or something that it is part of, is named like a secret.
    pending: list[tuple[bool, Any]] = []
    for name, value in given.items():
        is_named_so = _SECRET_NAME.search(name) is not None
        if is_named_so:
            texts.append(value)
        pending.append((is_named_so, _any(value)))
    while pending:
        is_named_so, value = pending.pop()
        if isinstance(value, dict):
            for name, each in cast("dict[str, Any]", value).items():
                pending.append((is_named_so or _SECRET_NAME.search(name) is not None, each))
        elif isinstance(value, list):
            pending.extend((is_named_so, each) for each in cast("list[Any]", value))
        elif isinstance(value, str):
            is_address = "://" in value and not has_password(value)
            if is_named_so or (len(value) > 3 and not is_address):
                texts.append(value)
        elif is_named_so and isinstance(value, int | float) and not isinstance(value, bool):
            texts.append(str(value))
    return tuple(texts)
