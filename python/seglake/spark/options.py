"""The options of the Spark data source: parsed and checked once, on the driver, before any job."""

import difflib
import fnmatch
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, TypeVar, cast, get_args
from zoneinfo import ZoneInfo

import seglake

from .files import FileFilter

__all__ = ["Mode", "ReadOptions", "Secret", "UuidType"]

Mode = Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"]
UuidType = Literal["string", "binary"]
_T = TypeVar("_T")

_KEY_BYTES: Final = 32

_OPTIONS: Final = (
    "segmentFormat",
    "mode",
    "columnNameOfCorruptRecord",
    "uuidType",
    "pathGlobFilter",
    "recursiveFileLookup",
    "modifiedAfter",
    "modifiedBefore",
    "timeZone",
    "ignoreMissingFiles",
    "checksumSecretFile",
    "checksumSecret",
    "maxPartitionBytes",
    "openCostInBytes",
    "minPartitionNum",
)
# What Spark adds to the user's own options, the longer list where a table of the catalog is read.
_FROM_SPARK: Final = frozenset(
    {"path", "paths", "owner", "provider", "location", "comment", "external", "is_managed_location"}
)
# The catalog passes each option of a table a second time, under this prefix.
_TABLE_PREFIX: Final = "option."

_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Secret:
    """A key that no `repr`, log line or error message shows."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "Secret(...)"

    def reveal(self) -> bytes:
        """Returns the key itself."""
        return self._value


@dataclass(frozen=True)
class ReadOptions:
    """What one load was asked for.

    Attributes:
        paths: files, folders and patterns, as the user wrote them.
        segment_format: the format of all files; None finds it for each of them.
        mode: what becomes of damage.
        corrupt_column: the name of the column that reports damage.
        uuid_type: how UUIDs come; None leaves it to the schema, and is `string` where that is inferred too.
        filter: which of the files found are read.
        ignore_missing_files: leave out files that are gone when they are to be read.
        key_file: the path of the key's file, opened on the executors only.
        key: the key itself.
        max_partition_bytes: the most bytes that one task reads, unless a single file is larger.
        open_cost_bytes: what opening a file counts for when files are packed into tasks, in bytes.
        min_partitions: make at least about this many tasks if the files allow it.
    """

    paths: tuple[str, ...]
    segment_format: str | None
    mode: Mode
    corrupt_column: str
    uuid_type: UuidType | None
    filter: FileFilter
    ignore_missing_files: bool
    key_file: str | None
    key: Secret | None
    max_partition_bytes: int
    open_cost_bytes: int
    min_partitions: int

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "ReadOptions":
        """Parses what Spark hands over; names count regardless of their case.

        Raises:
            ValueError: an option is unknown, or its value is wrong. The message names it; it never shows a secret.
        """
        given = {name.lower(): value for name, value in options.items()}
        _refuse_unknown(given)
        read = _Values(given)
        zone = read.get("timeZone", _zone, None)
        key_file = read.get("checksumSecretFile", _not_empty, None)
        key = read.get("checksumSecret", _secret, None)
        if key_file is not None and key is not None:
            raise ValueError("options checksumSecretFile and checksumSecret are both given: give one of them")
        return cls(
            paths=_paths(given),
            segment_format=read.get("segmentFormat", _format, None),
            mode=read.get("mode", _mode, "PERMISSIVE"),
            corrupt_column=read.get("columnNameOfCorruptRecord", _not_empty, "_corrupt_record"),
            uuid_type=read.get("uuidType", _uuid_type, None),
            filter=FileFilter(
                recursive=read.get("recursiveFileLookup", _boolean, False),
                name_pattern=read.get("pathGlobFilter", _glob, None),
                modified_after=read.get("modifiedAfter", lambda value: _instant(value, zone), None),
                modified_before=read.get("modifiedBefore", lambda value: _instant(value, zone), None),
            ),
            ignore_missing_files=read.get("ignoreMissingFiles", _boolean, False),
            key_file=key_file,
            key=key,
            max_partition_bytes=read.get("maxPartitionBytes", _positive_bytes, 128 << 20),
            open_cost_bytes=read.get("openCostInBytes", _bytes, 4 << 20),
            min_partitions=read.get("minPartitionNum", _positive_int, os.cpu_count() or 1),
        )


@dataclass(frozen=True)
class _Values:
    """The options that were given, by lower-case name."""

    given: Mapping[str, str]

    def get(self, name: str, parse: Callable[[str], _T], default: _T) -> _T:
        value = self.given.get(name.lower())
        if value is None:
            return default
        try:
            return parse(value)
        except _WrongValueError as error:
            raise ValueError(f"option {name} {error}") from None


class _WrongValueError(Exception):
    """A value that an option cannot take. The text goes on after the option's name."""

    def __init__(self, value: str, expected: str) -> None:
        super().__init__(f"is {value!r}: expected {expected}")


def _refuse_unknown(given: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in _OPTIONS}
    for name in given:
        if name in known or name in _FROM_SPARK or name.startswith(_TABLE_PREFIX):
            continue
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {known[near[0]]}?" if near else f"The options are {', '.join(_OPTIONS)}."
        raise ValueError(f"unknown option {name!r}. {hint}")


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    paths: list[str] = []
    if "paths" in given:
        paths.extend(cast("list[str]", json.loads(given["paths"])))
    if "path" in given:
        paths.append(given["path"])
    elif not paths and "location" in given:
        paths.append(given["location"])
    if not paths or not all(paths):
        raise ValueError('no path is given: name files, folders or patterns, as in .load("/logs/2024")')
    return tuple(paths)


def _format(value: str) -> str:
    try:
        with seglake.open(b"", format=cast("FormatName", value.lower()), on_damage="skip"):
            return value.lower()
    except ValueError as error:
        wrong = _WrongValueError(value, "the name of a format")
        wrong.args = (f"{wrong}: {error}",)
        raise wrong from None


def _mode(value: str) -> Mode:
    for mode in cast("tuple[Mode, ...]", get_args(Mode)):
        if mode == value.upper():
            return mode
    raise _WrongValueError(value, "PERMISSIVE, DROPMALFORMED or FAILFAST")


def _uuid_type(value: str) -> UuidType:
    for kind in cast("tuple[UuidType, ...]", get_args(UuidType)):
        if kind == value.lower():
            return kind
    raise _WrongValueError(value, "string or binary")


def _boolean(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise _WrongValueError(value, "true or false")
    return value.lower() == "true"


def _bytes(value: str) -> int:
    match = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)(?:i?b)?\s*", value.lower())
    if match is None:
        raise _WrongValueError(value, "a number of bytes such as 134217728 or 128m")
    return int(match[1]) * _UNITS[match[2]]


def _positive_bytes(value: str) -> int:
    number = _bytes(value)
    if number == 0:
        raise _WrongValueError(value, "at least one byte")
    return number


def _positive_int(value: str) -> int:
    if not re.fullmatch(r"0*[1-9]\d{0,8}", value):
        raise _WrongValueError(value, "a whole number from 1 on")
    return int(value)


def _not_empty(value: str) -> str:
    if not value:
        raise _WrongValueError(value, "something")
    return value


def _glob(value: str) -> str:
    try:
        re.compile(fnmatch.translate(_not_empty(value)))
    except re.error as error:
        raise _WrongValueError(value, f"a pattern of file names such as *.active ({error})") from None
    return value


def _zone(value: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise _WrongValueError(value, "the name of a time zone such as Europe/Berlin or UTC") from None


def _instant(value: str, zone: ZoneInfo | None) -> float:
    """Seconds since 1970, as the modification times of files are."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise _WrongValueError(value, "a time such as 2024-06-15T05:00:00Z") from None
    if moment.tzinfo is None and zone is not None:
        moment = moment.replace(tzinfo=zone)
    if moment.tzinfo is None:
        raise _WrongValueError(value, f"a time with its offset from UTC, such as {value}Z, or the option timeZone")
    return (moment - _EPOCH) / timedelta(seconds=1)


_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00Z")


def _secret(value: str) -> Secret:
    # The message must not show the value, not even a wrong one: it may be the key with a character too many.
    if not re.fullmatch(rf"[0-9a-fA-F]{{{2 * _KEY_BYTES}}}", value):
        raise ValueError(
            f"option checksumSecret is not {2 * _KEY_BYTES} hexadecimal digits: it has {len(value)} characters"
        )
    return Secret(bytes.fromhex(value))
