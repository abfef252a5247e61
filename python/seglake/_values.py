"""Values that people type, read from text and written as text: for the command line and for Spark alike."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import time as midnight
from typing import Any, Final, NoReturn, TypeVar, cast

from ._text import unescape
from ._types import FormatOption

__all__ = [
    "WrongValueError",
    "argument_text",
    "assignments",
    "bound",
    "byte_offset",
    "column_value",
    "comma_list",
    "duration",
    "flag",
    "instant",
    "instant_us",
    "is_uri",
    "moment",
    "names",
    "not_empty",
    "numbers",
    "one_of",
    "option_value",
    "size",
    "time",
    "whole_number",
]

_Name = TypeVar("_Name", bound=str)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SIZE: Final = re.compile(r"([0-9]{1,18})\s*(?:([KMGTP])I?)?B?", re.IGNORECASE)
_POWERS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_MOST_BYTES: Final = (1 << 63) - 1
_DECIMAL: Final = re.compile(r"[0-9]{1,20}")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16}")
_DURATION: Final = re.compile(r"([0-9]{1,8})\s*(ms|s|m|h|d|w)")
_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_DAYS: Final = {"today": 0, "yesterday": 1}
_FINER: Final = re.compile(r"[.,][0-9]{7}")


class WrongValueError(ValueError):
    """A text that is not what it has to be.

    Attributes:
        text: the text.
        expected: what it has to be.
    """

    def __init__(self, text: str, expected: str) -> None:
        super().__init__(f"{text!r}: expected {expected}")
        self.text = text
        self.expected = expected


def size(text: str, least: int = 0) -> int:
    """Reads a number of bytes: `4096`, `64KiB`, `128m`; K, M, G, T and P are powers of 1024.

    Raises:
        WrongValueError: it is something else, or less than `least`, which is 0 or 1.
    """
    match = _SIZE.fullmatch(text.strip())
    number = int(match[1]) * 1024 ** _POWERS[(match[2] or "").upper()] if match else _MOST_BYTES + 1
    if number > _MOST_BYTES:
        raise WrongValueError(text, "a number of bytes such as 4096 or 64MiB")
    if number < least:
        raise WrongValueError(text, "at least one byte")
    return number


def byte_offset(text: str) -> int:
    """Reads an offset in a file in bytes: decimal, or hexadecimal with `0x`.

    Raises:
        WrongValueError: it is something else.
    """
    if not _INTEGER.fullmatch(text) or text[0] in "+-":
        raise WrongValueError(text, "an offset in bytes such as 225 or 0xe1")
    return _integer(text)


def whole_number(text: str, least: int, most: int) -> int:
    """Reads a decimal number without a sign.

    Raises:
        WrongValueError: it is something else, or not within the bounds.
    """
    if not (_DECIMAL.fullmatch(text) and least <= int(text) <= most):
        raise WrongValueError(text, f"a whole number from {least} to {most}")
    return int(text)


def flag(text: str) -> bool:
    """Reads `true` or `false`.

    Raises:
        WrongValueError: it is something else.
    """
    return one_of(text, ("true", "false")) == "true"


def one_of(text: str, known: Sequence[_Name]) -> _Name:
    """Reads a name, whose case does not matter.

    Raises:
        WrongValueError: it is none of those that are known.
    """
    for name in known:
        if name.lower() == text.lower():
            return name
    *others, last = known
    raise WrongValueError(text, f"{', '.join(others)} or {last}" if others else last)


def not_empty(text: str) -> str:
    """Reads any text but the empty one.

    Raises:
        WrongValueError: it is empty.
    """
    if not text:
        raise WrongValueError(text, "something")
    return text


def time(text: str, zone: tzinfo | None = None) -> datetime:
    """Reads a time in ISO 8601, to the microsecond.

    Args:
        text: the time.
        zone: where a time without an offset from UTC is; None is UTC.

    Raises:
        WrongValueError: it is something else.
    """
    if _FINER.search(text):  # or its last digits would be dropped
        raise WrongValueError(text, "a time in whole microseconds: at most six digits after the seconds")
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise WrongValueError(text, "a time such as 2024-06-15T05:00:00Z") from None
    return parsed.replace(tzinfo=zone or UTC) if parsed.tzinfo is None else parsed


def duration(text: str) -> timedelta:
    """Reads how long something takes: `90s`, `15m`, `12h`, `7d`, `2w`, `100ms`.

    Raises:
        WrongValueError: it is something else.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise WrongValueError(text, "a duration such as 90s, 15m, 12h, 7d or 2w")
    return int(match[1]) * _UNITS[match[2]]


def moment(text: str, zone: tzinfo | None = None) -> datetime:
    """Reads a time that people type.

    It is a time as `time` has it, a date (its first moment), `now`, `today`, `yesterday`, or a duration such as `1h`,
    which is that long ago.

    Args:
        text: the time.
        zone: where days and times without an offset are; None is UTC.

    Raises:
        WrongValueError: it is something else.
    """
    word = text.strip().lower()
    now = datetime.now(zone or UTC)
    if word == "now":
        return now
    if word in _DAYS:
        return datetime.combine(now.date() - timedelta(days=_DAYS[word]), midnight(), now.tzinfo)
    try:
        if _DURATION.fullmatch(word):
            return now - duration(word)
        return datetime.combine(date.fromisoformat(word), midnight(), now.tzinfo)
    except OverflowError:
        raise WrongValueError(text, "a time after the year 1") from None
    except ValueError:
        pass
    try:
        return time(text.strip(), zone)
    except WrongValueError as error:
        raise WrongValueError(text, f"{error.expected}, a date, now, today, yesterday, or 1h for an hour ago") from None


def bound(text: str, zone: tzinfo | None = None) -> datetime | uuid.UUID:
    """Reads where a range of records begins or ends: a time as `moment` has it, or the UUID of a record.

    Raises:
        WrongValueError: it is neither, or a UUID of another version than 6.
    """
    try:
        parsed = uuid.UUID(text)
    except ValueError:
        try:
            return moment(text, zone)
        except WrongValueError as error:
            raise type(error)(text, f"{error.expected}, or a UUID") from None
    if parsed.version != 6:
        raise WrongValueError(text, "a UUID of version 6, which those of records are")
    return parsed


def is_uri(text: str) -> bool:
    """Tells whether a path is that of a file elsewhere."""
    return "://" in text


def comma_list(text: str) -> list[str]:
    """Reads texts with commas between them and perhaps blanks around each."""
    return [part.strip() for part in text.split(",")]


def numbers(text: str, most: int) -> tuple[int, ...]:
    """Reads numbers from 0 to `most` with commas between them.

    Raises:
        WrongValueError: it is something else.
    """
    parts = comma_list(text)
    if not all(_DECIMAL.fullmatch(part) and int(part) <= most for part in parts):
        raise WrongValueError(text, f"whole numbers from 0 to {most} with commas between them, such as 0,7")
    return tuple(map(int, parts))


def texts(text: str, expected: str) -> tuple[str, ...]:
    """Reads texts: with commas between them, where none is empty, or as a JSON list.

    Raises:
        WrongValueError: it is something else; `expected` says what it has to be.
    """
    if not text.lstrip().startswith("["):
        shown = comma_list(text)
        if not all(shown):
            raise WrongValueError(text, expected)
        return tuple(shown)
    try:
        listed: Any = json.loads(text)
    except ValueError:
        listed = None
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in cast("list[Any]", listed)):
        raise WrongValueError(text, expected)
    return tuple(cast("list[str]", listed))


def names(text: str, expected: str) -> tuple[bytes, ...]:
    r"""Reads names as columns show them, `\xNN` being a byte: with commas between them, or as a JSON list of texts.

    Raises:
        WrongValueError: it is something else; `expected` says what it has to be.
    """
    shown = texts(text, expected)
    parsed = [name for name in map(unescape, shown) if name is not None]
    if len(parsed) < len(shown):
        raise WrongValueError(text, r"\xNN after each backslash, and \x5c for a backslash itself")
    return tuple(parsed)


def assignments(texts: Sequence[str], form: str) -> dict[str, str]:
    """Reads names and values: `NAME=VALUE`.

    Args:
        texts: one of them each.
        form: what one looks like, for the error: "NAME=VALUE, such as type=order".

    Raises:
        ValueError: one is something else, or a name is there twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise WrongValueError(text, form)
        if name in found:
            raise ValueError(f"{name} is set twice")
        found[name] = value
    return found


def option_value(option: FormatOption, text: str) -> bool | int | str:
    """Reads the value of an option that a format declares. Numbers are held against its bounds.

    Raises:
        WrongValueError: it is not a value of the option.
    """
    if option.kind == "flag":
        return flag(text)
    if option.kind not in ("number", "bytes"):
        return one_of(text, option.choices)
    least, most = option.minimum or 0, option.maximum or 0
    if option.kind == "number":
        if not _INTEGER.fullmatch(text) or not least <= _integer(text) <= most:
            raise WrongValueError(text, f"a whole number from {least} to {most}")
        return _integer(text)
    number = size(text)
    if not least <= number <= most:
        raise WrongValueError(text, f"{least} to {most} bytes")
    return number


def argument_text(text: str) -> str | bytes:
    """Reads an argument of the command line as the library takes it: as bytes where it is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return os.fsencode(text)
    return text


def column_value(kind: str | None, text: str) -> Any:
    """Reads the value of a column of this kind, as the library takes it.

    Raises:
        WrongValueError: it is not a value of that kind.
    """
    return _COLUMNS.get(kind, argument_text)(text)


def _integer(text: str) -> int:
    return int(text, 16) if "x" in text.lower() else int(text)


def _whole(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise WrongValueError(text, "a whole number")
    return _integer(text)


def _uuid(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise WrongValueError(text, "a UUID") from None


def _time_or_microseconds(text: str) -> datetime | int:
    if _INTEGER.fullmatch(text):
        return _integer(text)
    try:
        return time(text)
    except WrongValueError as error:
        raise WrongValueError(text, f"{error.expected}, or microseconds since 1970") from None


def _bytes(text: str) -> bytes:
    known = argument_text(text)
    return known.encode() if isinstance(known, str) else known


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_hook=_bytes_within, parse_constant=_no_constant)
    except RecursionError:
        raise WrongValueError(text, "JSON: this is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise WrongValueError(text, f"JSON: {error}") from None


def _bytes_within(fields: dict[str, Any]) -> Any:
    """`{"hex": "..."}` and `{"base64": "..."}` as bytes: JSON has none of its own."""
    if len(fields) != 1:
        return fields
    [(name, text)] = fields.items()
    if name not in _BYTES or not isinstance(text, str):
        return fields
    try:
        return _BYTES[name](text)
    except (ValueError, binascii.Error):
        raise WrongValueError(text, f"JSON: {text!r} is not {name}") from None


def _no_constant(name: str) -> NoReturn:
    raise WrongValueError(name, f"JSON, which has no {name}")


_BYTES: dict[str, Callable[[str], bytes]] = {
    "hex": bytes.fromhex,
    "base64": lambda text: base64.b64decode(text, validate=True),
}
_COLUMNS = cast(
    "dict[str | None, Callable[[str], Any]]",
    {
        "uuid": _uuid,
        "timestamp": _time_or_microseconds,
        "text": argument_text,
        "binary": _bytes,
        "int64": _whole,
        "uint64": _whole,
        "boolean": flag,
        "list": _json,
        "struct": _json,
    },
)


def instant(moment: datetime) -> str:
    """Writes an instant in UTC to the microsecond, always of the same width: `2024-01-10T16:37:53.194315Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def instant_us(microseconds: int) -> str:
    """Writes microseconds since 1970 as `instant`; as the number where no calendar date exists (years 1 to 9999)."""
    try:
        return instant(_EPOCH + timedelta(microseconds=microseconds))
    except OverflowError:
        return f"{microseconds} µs since 1970"
