"""What the values of options stand for: each parser takes the text of one, and refuses what it cannot be."""

import fnmatch
import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeVar, cast, get_args
from zoneinfo import ZoneInfo

from seglake import _values as values
from seglake._text import unescape
from seglake._types import DialectName, FormatOption

from .formats import LOCATION_COLUMNS, UuidType, column_names
from .uint64 import Uint64Type

__all__ = ["Mode", "OptionValues", "Secret"]

Mode = Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"]
_T = TypeVar("_T")

_KEY_BYTES: Final = 32
_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_FINER: Final = re.compile(r"[.,]\d{7}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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


class WrongValueError(Exception):
    """A value that an option cannot take. The text goes on after the option's name."""

    def __init__(self, value: str, expected: str) -> None:
        super().__init__(f"is {value!r}: expected {expected}")


@dataclass(frozen=True)
class OptionValues:
    """The options that were given, by lower-case name."""

    given: Mapping[str, str]

    def get(self, name: str, parse: Callable[[str], _T], default: _T) -> _T:
        """Returns an option's value, the default where it is not given.

        Raises:
            ValueError: it cannot be what is given. The message names the option; it never shows a secret.
        """
        value = self.given.get(name.lower())
        if value is None:
            return default
        try:
            return parse(value)
        except WrongValueError as error:
            raise ValueError(f"option {name} {error}") from None

    def key(self) -> tuple[str | None, "Secret | None"]:
        """Returns the path of the key's file and the key itself, of which at most one is given.

        Raises:
            ValueError: both are, or the key is none. The message never shows it.
        """
        file = self.get("checksumSecretFile", not_empty, None)
        key = self.get("checksumSecret", secret, None)
        if file is not None and key is not None:
            raise ValueError("options checksumSecretFile and checksumSecret are both given: give one of them")
        return file, key


def segment_format(value: str) -> str:
    """Parses the name of a format."""
    try:
        column_names(value.lower())
    except ValueError as error:
        raise WrongValueError(value, f"the name of a format: {error}") from None
    return value.lower()


def mode(value: str) -> Mode:
    """Parses what becomes of damage."""
    return _one_of(cast("tuple[Mode, ...]", get_args(Mode)), value.upper(), value)


def uuid_type(value: str) -> UuidType:
    """Parses how UUIDs come."""
    return _one_of(cast("tuple[UuidType, ...]", get_args(UuidType)), value.lower(), value)


def uint64_type(value: str) -> Uint64Type:
    """Parses how unsigned integers of 64 bits come."""
    return _one_of(cast("tuple[Uint64Type, ...]", get_args(Uint64Type)), value.lower(), value)


def dialect(value: str) -> DialectName:
    """Parses how an oplog's messages are laid out."""
    return _one_of(cast("tuple[DialectName, ...]", get_args(DialectName)), value.lower(), value)


def metadata_columns(value: str) -> tuple[str, ...]:
    """Parses which of the columns that say where a record is are wanted: a list with commas."""
    names = tuple(name.strip() for name in value.lower().split(","))
    if not set(names) <= set(LOCATION_COLUMNS) or len(set(names)) < len(names):
        raise WrongValueError(value, f"{' or '.join(LOCATION_COLUMNS)}, or both with a comma between them")
    return names


def index(value: str) -> bool:
    """Parses which index is used: the one beside the file, or none."""
    return _one_of(("beside", "none"), value.lower(), value) == "beside"


def boolean(value: str) -> bool:
    """Parses a truth value."""
    return _one_of(("true", "false"), value.lower(), value) == "true"


def size(value: str) -> int:
    """Parses a number of bytes, with a unit or without."""
    match = re.fullmatch(r"\s*(\d{1,18})\s*([kmgt]?)(?:i?b)?\s*", value.lower())
    number = int(match[1]) * _UNITS[match[2]] if match is not None else 1 << 63
    if number >= 1 << 63:
        raise WrongValueError(value, "a number of bytes such as 134217728 or 128m")
    return number


def positive_size(value: str) -> int:
    """Parses a number of bytes that is not 0."""
    number = size(value)
    if number == 0:
        raise WrongValueError(value, "at least one byte")
    return number


def positive_int(value: str, digits: int = 9) -> int:
    """Parses a number from 1 on, of at most so many digits."""
    if not re.fullmatch(rf"0*[1-9]\d{{0,{digits - 1}}}", value):
        raise WrongValueError(value, f"a whole number from 1 to {'9' * digits}")
    return int(value)


def record_count(value: str) -> int:
    """Parses how many records there may be."""
    return positive_int(value, digits=18)


def declared(option: FormatOption, value: str) -> bool | int | str:
    """Parses the value of an option that a format declares."""
    try:
        return values.option_value(option, value)
    except values.WrongValueError as error:
        raise WrongValueError(value, error.expected) from None


def message_offset(value: str) -> int:
    """Parses the offset of a message in a log."""
    if not re.fullmatch(r"\d{1,19}", value) or int(value) >= 1 << 63:
        raise WrongValueError(value, "a whole number from 0 to 9223372036854775807")
    return int(value)


def partitions(value: str) -> tuple[int, ...]:
    """Parses the numbers of partitions: a list with commas."""
    numbers = [number.strip() for number in value.split(",")]
    if not all(re.fullmatch(r"\d{1,10}", number) and int(number) < 1 << 32 for number in numbers):
        raise WrongValueError(value, "whole numbers from 0 to 4294967295 with commas between them, such as 0,7")
    return tuple(int(number) for number in numbers)


def tenants(value: str) -> tuple[bytes, ...]:
    """Parses the IDs of tenants, as `shown` has them."""
    return shown(value, 'tenant IDs with commas between them, such as AA,UA, or a JSON list: ["AA", "UA"]')


def types(value: str) -> tuple[bytes, ...]:
    """Parses types of records, as `shown` has them."""
    return shown(value, 'types with commas between them, such as order,sale, or a JSON list: ["order", "sale"]')


def shown(value: str, expected: str) -> tuple[bytes, ...]:
    """Parses names as columns show them: a JSON list of texts, or a list with commas and perhaps blanks around each."""
    if value.lstrip().startswith("["):
        try:
            listed: Any = json.loads(value)
        except ValueError:
            listed = None
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in cast("list[Any]", listed)):
            raise WrongValueError(value, expected)
        names = cast("list[str]", listed)
    else:
        names = [name.strip() for name in value.split(",")]
        if not all(names):
            raise WrongValueError(value, expected)
    parsed = [name for name in map(unescape, names) if name is not None]
    if len(parsed) < len(names):
        raise WrongValueError(value, r"\xNN behind each backslash, and \x5c for a backslash itself")
    return tuple(parsed)


def not_empty(value: str) -> str:
    """Parses a text."""
    if not value:
        raise WrongValueError(value, "something")
    return value


def glob(value: str) -> str:
    """Parses a pattern of file names."""
    try:
        re.compile(fnmatch.translate(not_empty(value)))
    except re.error as error:
        raise WrongValueError(value, f"a pattern of file names such as *.active ({error})") from None
    return value


def zone(value: str) -> ZoneInfo | None:
    """Parses the name of a time zone."""
    try:
        return ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise WrongValueError(value, "the name of a time zone such as Europe/Berlin or UTC") from None


def moment(value: str, zone: ZoneInfo | None) -> datetime:
    """Parses a time; one without an offset from UTC is in `zone`."""
    if _FINER.search(value):  # or its last digits would be dropped
        raise WrongValueError(value, "a time in whole microseconds: at most six digits behind the seconds")
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        raise WrongValueError(value, "a time such as 2024-06-15T05:00:00Z") from None
    if parsed.tzinfo is None and zone is not None:
        parsed = parsed.replace(tzinfo=zone)
    if parsed.tzinfo is None:
        raise WrongValueError(value, f"a time with its offset from UTC, such as {value}Z, or the option timeZone")
    return parsed


def bound(value: str, zone: ZoneInfo | None) -> datetime | uuid.UUID:
    """Parses an end of a stretch of records: a time as `moment` has it, or a UUID of version 6."""
    if not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value):
        try:
            return moment(value, zone)
        except WrongValueError as error:
            error.args = (f"{error}, or a UUID",)
            raise
    parsed = uuid.UUID(value)
    if parsed.version != 6:
        raise WrongValueError(value, "a UUID of version 6, which those of records are")
    return parsed


def modification_time(value: str, zone: ZoneInfo | None) -> float:
    """Parses a time into seconds since 1970, as the modification times of files are."""
    return (moment(value, zone) - _EPOCH) / timedelta(seconds=1)


def secret(value: str) -> Secret:
    """Parses a key."""
    # The message must not show the value, not even a wrong one: it may be the key with a character too many.
    if not re.fullmatch(rf"[0-9a-fA-F]{{{2 * _KEY_BYTES}}}", value):
        raise ValueError(
            f"option checksumSecret is not {2 * _KEY_BYTES} hexadecimal digits: it has {len(value)} characters"
        )
    return Secret(bytes.fromhex(value))


def _one_of(known: tuple[_T, ...], asked: str, value: str) -> _T:
    for each in known:
        if each == asked:
            return each
    *others, last = known
    raise WrongValueError(value, f"{', '.join(str(each) for each in others)} or {last}")
