"""Conditions that choose records, as people write them: for `filters=`, the command line and Spark alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Final, cast
from uuid import UUID

from seglake import _values as values

__all__ = ["FILTER_OPTIONS", "MOST_OFFSET", "MOST_PARTITION", "Condition", "conditions", "plain"]

Condition = tuple[str, str, Any]
"""A column, an operator and a value, as `seglake.open` takes them in `filters`."""

_CONDITIONS: Final = {
    "since": ("timestamp", ">="),
    "until": ("timestamp", "<"),
    "start_offset": ("offset", ">="),
    "end_offset": ("offset", "<"),
    "partitions": ("partition", "in"),
    "tenants": ("tenant", "in"),
    "types": ("type", "in"),
}

MOST_OFFSET: Final = (1 << 63) - 1
"""The greatest offset of a message."""
MOST_PARTITION: Final = (1 << 32) - 1
"""The greatest number of a partition."""

FILTER_OPTIONS: Final = tuple(_CONDITIONS)
"""The names of the options that choose records."""

NO_OR: Final = (
    "conditions that are joined by AND. For several values of one column there is IN; for any other OR, filter what is "
    "read by polars or DuckDB"
)
_FORMS: Final = (
    'filters takes conditions such as ("type", "==", "order.paid"), a list of them, text such as '
    "\"type = 'order.paid' AND timestamp >= 2024-01-10\", or a pyarrow expression"
)
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<quote>['"])(?P<quoted>(?:(?!(?P=quote)).|(?P=quote){2})*)(?P=quote)"""
    r"""|(?P<sign>==|=|!=|<>|<=|>=|<|>|[(),])|(?P<word>[^\s'"()<>=!,]+))""",
    re.DOTALL,
)
_SIGNS: Final = {"=": "==", "<>": "!="}
_COMPARED: Final = ("==", "=", "!=", "<>", "<", "<=", ">", ">=")
_SHOWN: Final = (
    "COLUMN OP VALUE, such as offset >= 500, type = 'order.paid', type LIKE 'order.%' or tenant IN ('a', 'b')"
)


def conditions(options: Mapping[str, Any]) -> dict[str, Condition]:
    """Returns the conditions of the options that are given, by the options' names.

    Times (`since`, `until`) may be UUIDs instead, which are compared with the records' UUIDs. Other options are passed
    over.
    """
    found: dict[str, Condition] = {}
    for name, (column, operator) in _CONDITIONS.items():
        value = options.get(name)
        if value is not None:
            found[name] = ("uuid" if isinstance(value, UUID) else column, operator, value)
    return found


def plain(filters: Any, zone: tzinfo | None = None) -> list[Condition]:
    """Returns conditions as tuples of a column, an operator and a value. Times are settled: "1h" is an hour before now.

    Args:
        filters: a condition as a tuple, a list of conditions, text as `--where` takes it, or a pyarrow expression. A
            list may have any of these, and is joined by AND.
        zone: where dates and times without an offset are; None is UTC.

    Raises:
        ValueError: text is no condition, a time is none, or conditions are joined by OR.
        TypeError: it is something else.
    """
    return [settled for each in _each(filters) for settled in _settled(each, zone)]


def _each(filters: object) -> Iterator[Condition]:
    if isinstance(filters, str):
        yield from _Text(filters).conditions()
    elif isinstance(filters, tuple):
        yield _condition(cast("tuple[Any, ...]", filters))
    elif type(filters).__module__.startswith("pyarrow.") and type(filters).__name__ == "Expression":
        from .expressions import translated

        yield from translated(filters)
    elif isinstance(filters, Iterable) and not isinstance(filters, bytes | Mapping):
        among = list(cast("Iterable[Any]", filters))
        if len(among) > 1 and all(isinstance(one, list) for one in among):
            raise ValueError(f"filters has {len(among)} lists, which OR joins: expected {NO_OR}")
        for one in among:
            yield from _each(one)
    else:
        given = cast("object", filters)
        is_polars = type(given).__module__.startswith("polars")
        more = ". Filter the LazyFrame of `Scan.to_polars` by it" if is_polars else ""
        raise TypeError(f"{_FORMS}, not {type(given).__qualname__}: {_shown(given)}{more}")


def _condition(given: tuple[Any, ...]) -> Condition:
    """Returns a condition with its operator in small letters; the value of `is null` may be left out."""
    match given:
        case (str(column), str(operator), *left) if len(left) < 2:
            operator = " ".join(operator.lower().split())
            is_about_null = operator in ("is null", "is not null")
            if is_about_null and left in ([], [None]):
                return column, operator, None
            if left and not is_about_null:
                return column, operator, left[0]
        case _:
            pass
    raise TypeError(f"{_FORMS}, not {_shown(given)}")


def _shown(given: object) -> str:
    """Returns how Python shows it, or its type where it cannot be shown."""
    try:
        return repr(given)[:100]
    except Exception:  # of somebody else's class
        return str(type(given))


def _settled(condition: Condition, zone: tzinfo | None) -> Iterator[Condition]:
    """Yields a condition with times that do not depend on when they are read; two of `between`."""
    column, operator, value = condition
    if operator == "between":
        if not isinstance(value, tuple | list) or len(cast("list[Any]", value)) != 2:
            raise ValueError(
                f"filters on {column}: between takes two values, such as (1, 9), not {_shown(condition[2])}"
            )
        low, high = cast("list[Any]", value)
        yield from _settled((column, ">=", low), zone)
        yield from _settled((column, "<=", high), zone)
        return
    if column == "timestamp":
        if operator in ("in", "not in") and isinstance(value, Iterable) and not isinstance(value, str | bytes):
            value = [_moment(each, zone) for each in cast("Iterable[Any]", value)]
        elif operator not in ("in", "not in"):
            value = _moment(value, zone)
    yield column, operator, value


def _moment(given: object, zone: tzinfo | None) -> Any:
    """Returns what a time stands for; what is no time is left for the library to refuse."""
    if isinstance(given, str):
        return values.moment(given, zone)
    if isinstance(given, timedelta):
        return datetime.now(UTC) - given
    if isinstance(given, date) and not isinstance(given, datetime):
        return datetime.combine(given, time(), zone or UTC)
    value: Any = given
    if getattr(value, "nanosecond", 0):  # of pandas
        raise ValueError(f"filters on timestamp: {value} is finer than microseconds, which records have")
    if (type(given).__module__, type(given).__name__) == ("numpy", "datetime64"):
        micros = value.astype("datetime64[us]")
        if micros.astype(value.dtype) != value:  # finer, out of range, or NaT, which equals nothing
            raise ValueError(f"filters on timestamp: {value} is not a time in whole microseconds")
        return int(micros.astype("int64"))
    return value


class _Text:
    """Conditions in text: tokens, and where reading them stands."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        self._at = 0
        end = len(text.rstrip())
        while self._at < end:
            match = _TOKEN.match(text, self._at)
            if match is None:
                raise values.WrongValueError(text, f"{_SHOWN}: a quote is not closed, or a sign is out of place")
            self._at = match.end()
            quote = match["quote"]
            if quote is not None:
                self._tokens.append(("quoted", match["quoted"].replace(quote * 2, quote)))
            else:
                self._tokens.append(("sign", match["sign"]) if match["sign"] else ("word", match["word"]))
        self._at = 0

    def conditions(self) -> Iterator[Condition]:
        """Yields the conditions, which are joined by AND.

        Raises:
            WrongValueError: the text is something else.
        """
        while True:
            yield self._condition()
            if self._at == len(self._tokens):
                return
            if self._is("or"):
                raise values.WrongValueError(self._text, NO_OR)
            if not self._is("and"):
                raise self._wrong()

    def _condition(self) -> Condition:
        kind, column = self._next()
        if kind == "sign":
            raise self._wrong()
        if self._is("is"):
            operator = "is not null" if self._is("not") else "is null"
            if not self._is("null"):
                raise self._wrong()
            return column, operator, None
        negated = "not " if self._is("not") else ""
        if self._is("in"):
            return column, f"{negated}in", self._list()
        if self._is("like"):
            return column, f"{negated}like", self._value()
        if negated:
            raise self._wrong()
        if self._is("between"):
            low = self._value()
            if not self._is("and"):
                raise self._wrong()
            return column, "between", (low, self._value())
        kind, sign = self._next()
        if kind != "sign" or sign not in _COMPARED:
            raise self._wrong()
        return column, _SIGNS.get(sign, sign), self._value()

    def _list(self) -> list[str | bytes]:
        if self._next() != ("sign", "("):
            raise self._wrong()
        found = [self._value()]
        while (after := self._next()) == ("sign", ","):
            found.append(self._value())
        if after != ("sign", ")"):
            raise self._wrong()
        return found

    def _value(self) -> str | bytes:
        kind, text = self._next()
        if kind == "sign":
            raise self._wrong()
        if kind == "word" and text.lower() == "null":
            raise values.WrongValueError(self._text, "IS NULL or IS NOT NULL: nothing equals NULL")
        return values.argument_text(text)

    def _next(self) -> tuple[str, str]:
        if self._at == len(self._tokens):
            raise self._wrong()
        self._at += 1
        return self._tokens[self._at - 1]

    def _is(self, keyword: str) -> bool:
        """Takes a keyword if it comes next."""
        kind, word = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        is_next = kind == "word" and word.lower() == keyword
        self._at += is_next
        return is_next

    def _wrong(self) -> values.WrongValueError:
        return values.WrongValueError(self._text, f"{_SHOWN}. Put quotes around a value of several words")
