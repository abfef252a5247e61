"""A scan as a polars LazyFrame.

`polars.io.plugins.register_io_source` and the JSON of expressions may change with any version of polars. What is not
recognised is left to polars, and every condition is applied to the rows in any case. The translation was tried with
polars 2.1; 1.30 writes some expressions in another way, so that fewer are translated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import polars as pl
from polars.io.plugins import register_io_source

from seglake._native import Schema, formats

from .frames import ScanBatches

if TYPE_CHECKING:
    from seglake._native import Batch

    from .filters import Condition
    from .scan import Scan

__all__ = ["lazy_frame"]

_OPERATORS: Final = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_TURNED: Final = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_BETWEEN: Final = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}
_UUID_BYTES: Final = 16


def lazy_frame(scan: Scan) -> pl.LazyFrame:
    """Returns a frame that reads the scan when it is collected."""
    schema = _frame(scan.schema, ()).schema
    kinds = {column.name: column.kind for column in formats(options=scan.arguments["options"])[scan.format].columns}
    # A column of paths may have the name of one that is not read.
    kinds.pop(scan.include_file_paths or "", None)

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        asked = scan
        if columns is not None:
            needed = predicate.meta.root_names() if predicate is not None else []
            asked = asked.select(list(dict.fromkeys([*columns, *needed])))
        # Where there are both, the limit comes before the condition: it counts rows that do not meet it.
        if predicate is not None and rows is None:
            asked = _filtered(asked, conditions(predicate, kinds))
        left = rows
        for batch in asked.batches():
            frame = _frame(asked.schema, [batch])
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            if predicate is not None:
                frame = frame.filter(predicate)
            if columns is not None:
                frame = frame.select(columns)
            yield frame
            if left == 0:
                break

    return register_io_source(read, schema=schema)


def _filtered(scan: Scan, found: list[Condition]) -> Scan:
    if not found:
        return scan
    try:
        return scan.filter(found)
    except (ValueError, TypeError):  # such as a text that no bytes are shown as, or a number that is out of range
        return scan


def conditions(predicate: pl.Expr, kinds: dict[str, str]) -> list[Condition]:
    """Returns conditions, as `open` takes them, that all rows meet for which a predicate is true.

    Args:
        predicate: what polars asks for.
        kinds: the kinds of the format's columns, by their names.
    """
    try:
        tree: Any = json.loads(predicate.meta.serialize(format="json"))
    except Exception:  # whatever this version of polars says of an expression that is not for JSON
        return []
    found: list[Condition] = []
    pending = [tree]
    while pending:
        match pending.pop():
            case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
                pending += [left, right]
            case {"BinaryExpr": {"left": left, "op": str(operator), "right": right}} if operator in _OPERATORS:
                found += _condition(left, _OPERATORS[operator], right, kinds)
                found += _condition(right, _TURNED[_OPERATORS[operator]], left, kinds)
            case {"Function": {"input": [column, *values], "function": {"Boolean": {**asked}}}}:
                found += _boolean(column, asked, values, kinds)
            case _:
                pass
    return found


def _condition(column: Any, operator: str, literal: Any, kinds: dict[str, str]) -> Iterable[Condition]:
    """Yields what a comparison says, unless its meaning is not certain to be the same here."""
    match column, literal:
        case {"Column": str(name)}, {"Literal": {"Scalar": value} | {"Dyn": value}}:
            pass
        case _:
            return
    match kinds.get(name), value:
        case "text", {"String": str(text)} if operator in ("==", "!="):
            yield name, operator, text
        case "timestamp", {"Datetime": [int(moment), "Microseconds", {"inner": "UTC"}]}:
            yield name, operator, moment
        case "int64" | "uint64", {"Int64": int(number)} | {"UInt64": int(number)} | {"Int": int(number)}:
            yield name, operator, number
        case "uuid", {"String": str(text)}:
            own = _uuid(text)
            if own is not None:
                yield name, operator, own
        case "uuid", {"Binary": [*numbers]} if len(numbers) == _UUID_BYTES:
            yield name, operator, UUID(bytes=bytes(numbers))
        case _:
            return


def _boolean(column: Any, asked: dict[str, Any], values: list[Any], kinds: dict[str, str]) -> Iterable[Condition]:
    """Yields what `is_between` and `is_in` say."""
    match asked, values:
        case {"IsBetween": {"closed": str(closed)}}, [low, high] if closed in _BETWEEN:
            above, below = _BETWEEN[closed]
            yield from _condition(column, above, low, kinds)
            yield from _condition(column, below, high, kinds)
        case {"IsIn": _}, [among]:
            yield from _is_in(column, among, kinds)
        case _:
            return


def _is_in(column: Any, among: Any, kinds: dict[str, str]) -> Iterable[Condition]:
    """Yields what `is_in` says of texts and numbers."""
    match column, among:
        case {"Column": str(name)}, {"Literal": {"Scalar": {"List": [*numbers]}}}:
            pass
        case _:
            return
    try:
        values = pl.read_ipc_stream(bytes(numbers)).to_series()
    except Exception:  # another version of polars may write lists in another way
        return
    kind = kinds.get(name)
    is_known = (kind == "text" and values.dtype == pl.String) or (
        kind in ("int64", "uint64") and values.dtype.is_integer()
    )
    if is_known and not values.has_nulls():
        yield name, "in", values.to_list()


def _uuid(text: str) -> UUID | None:
    """Returns the UUID of a text that is written as those of the column are; only such texts compare as UUIDs do."""
    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text else None


def _frame(schema: Schema, batches: Iterable[Batch]) -> pl.DataFrame:
    return pl.DataFrame(ScanBatches(schema, (batch for batch in batches)))
