"""Expressions of pyarrow as conditions.

pyarrow has no public way to look into an expression. Pickling gives an Arrow file, whose metadata lists what it is made
of, and whose columns are its literals. What is not recognised is refused, so that another version of pyarrow may refuse
more, but cannot change what is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from .filters import NO_OR

if TYPE_CHECKING:
    from .filters import Condition

__all__ = ["translated"]

_OPERATORS: Final = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_TURNED: Final = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NOT: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"} | {
    "like": "not like",
    "not like": "like",
    "is null": "is not null",
    "is not null": "is null",
}
_AROUND: Final = {"starts_with": ("", "%"), "ends_with": ("%", ""), "match_substring": ("%", "%")}
_ENTRY: Final = re.compile(r"(\w+): '(.*)'")


def translated(expression: Any) -> list[Condition]:
    """Returns the conditions that a `pyarrow.compute.Expression` joins by AND.

    Raises:
        ValueError: it has something that no condition has; the message names it.
    """
    import pyarrow as pa

    try:
        literals = pa.ipc.open_file(expression.__reduce__()[1][0]).read_all()
        shown = literals.schema.to_string(truncate_metadata=False)
        lines = shown.partition("-- schema metadata --\n")[2].splitlines()
        tree = _tree(iter([(match[1], match[2]) for match in map(_ENTRY.fullmatch, lines) if match]), literals)
    except (AttributeError, IndexError, KeyError, StopIteration, pa.ArrowException) as error:
        raise ValueError(
            f"filters cannot look into {expression} of pyarrow {pa.__version__}: give conditions as tuples"
        ) from error
    return list(_conditions(tree, expression))


def _tree(entries: Iterator[tuple[str, str]], literals: Any) -> tuple[str, Any]:
    """Returns what comes next: a column, a literal, options, or a call with its arguments."""
    kind, text = next(entries)
    if kind == "field_ref":
        return "column", text
    if kind in ("literal", "options"):
        return kind, literals.column(int(text))[0]
    if kind != "call":
        return kind, text
    arguments: list[tuple[str, Any]] = []
    while (argument := _tree(entries, literals)) != ("end", text):
        arguments.append(argument)
    return text, arguments


def _conditions(tree: tuple[str, Any], whole: Any) -> Iterator[Condition]:
    match tree:
        case "and_kleene" | "and", [one, other]:
            yield from _conditions(one, whole)
            yield from _conditions(other, whole)
        case "or_kleene" | "or", _:
            raise ValueError(f"filters cannot apply {whole}: expected {NO_OR}")
        case "invert", [inner]:
            found = list(_conditions(inner, whole))
            if [operator for _, operator, _ in found] == ["in"]:
                raise ValueError(
                    f"filters cannot apply {whole}: ~isin is true for null, too. Give (column, 'not in', values)"
                )
            if len(found) != 1:
                raise ValueError(f"filters cannot apply {whole}: NOT of several conditions is an OR of others")
            for column, operator, value in found:
                yield column, _NOT[operator], value
        case str(name), [("column", str(column)), ("literal", value)] if name in _OPERATORS:
            yield column, _OPERATORS[name], _value(value)
        case str(name), [("literal", value), ("column", str(column))] if name in _OPERATORS:
            yield column, _TURNED[_OPERATORS[name]], _value(value)
        case "is_valid", [("column", str(column)), *_]:
            yield column, "is not null", None
        case "is_null", [("column", str(column)), *_]:
            yield column, "is null", None
        case "is_in", [("column", str(column)), ("options", options)]:
            values = [_value(value) for value in options["value_set"].values]
            if None in values:
                raise ValueError(f"filters cannot apply {whole}: nothing equals null. Leave it out of isin")
            yield column, "in", values
        case "match_like" | "starts_with" | "ends_with" | "match_substring" as name, [
            ("column", str(column)),
            ("options", options),
        ] if not options["ignore_case"].as_py():
            pattern: str = options["pattern"].as_py()
            if "\\" in (pattern.replace(r"\%", "").replace(r"\_", "") if name == "match_like" else pattern):
                raise ValueError(
                    f"filters cannot apply {whole}: a backslash is \\x5c in text that records show. "
                    "Give (column, 'like', pattern)"
                )
            if name != "match_like":
                before, after = _AROUND[name]
                pattern = before + re.sub("([%_])", r"\\\1", pattern) + after
            yield column, "like", pattern
        case "column", str(column):
            yield column, "==", True
        case "literal", value:
            if value.as_py() is not True:
                raise ValueError(f"filters cannot apply {whole}: it is {value}, whatever a record has")
        case name, arguments:
            own = [each for each, _ in arguments if each not in ("column", "literal", "options")]
            raise ValueError(
                f"filters cannot apply {whole}: {', '.join(own) or name} is not among what they have: comparisons of a "
                "column with a value, isin, is_null, is_valid, starts_with, ends_with, match_substring, match_like, "
                "joined by &"
            )


def _value(scalar: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_timestamp(scalar.type):
        found = scalar.cast(pa.timestamp("us", scalar.type.tz)).as_py()
        return found if found is None or found.tzinfo is None else found.astimezone(UTC)
    return scalar.as_py()
