"""A scan as a polars LazyFrame.

`polars.io.plugins.register_io_source` and the JSON of expressions may change with any version of polars: what an
expression is not recognised as is left to polars, which applies all conditions itself in any case.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from polars.io.plugins import register_io_source

from ._native import Schema, arrow_stream, formats

if TYPE_CHECKING:
    from ._filters import Condition
    from ._native import Batch
    from ._scan import Scan

__all__ = ["lazy_frame"]

_OPERATORS: Final = {"Eq": "==", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_TURNED: Final = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def lazy_frame(scan: Scan) -> pl.LazyFrame:
    """Returns a frame that reads the scan when it is collected."""
    schema = _frame(scan.schema, ()).schema
    kinds = {column.name: column.kind for column in formats(dialect=scan.arguments["dialect"])[scan.format].columns}

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        asked = scan
        if predicate is not None:
            needed = predicate.meta.root_names()
            asked = _filtered(asked, conditions(predicate, kinds))
            if columns is not None:
                asked = asked.select([*columns, *(name for name in needed if name not in columns)])
        elif columns is not None:
            asked = asked.select(columns)
        left = rows
        for _, batch in asked.batches():
            frame = _frame(asked.schema, [batch])
            if predicate is not None:
                frame = frame.filter(predicate)
            if columns is not None:
                frame = frame.select(columns)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            yield frame
            if left == 0:
                break

    return register_io_source(read, schema=schema)


def _filtered(scan: Scan, found: list[Condition]) -> Scan:
    if not found:
        return scan
    try:
        return scan.filter(found)
    except ValueError:  # such as a text that no bytes are shown as
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
        operation = _operation(pending.pop())
        if operation is None:
            continue
        operator, left, right = operation
        if operator in ("And", "LogicalAnd"):
            pending += [left, right]
        elif operator in _OPERATORS:
            found += _condition(left, _OPERATORS[operator], right, kinds)
            found += _condition(right, _TURNED[_OPERATORS[operator]], left, kinds)
    return found


def _operation(tree: Any) -> tuple[str, Any, Any] | None:
    match tree:
        case {"BinaryExpr": {"left": left, "op": str(operator), "right": right}}:
            return operator, left, right
        case _:
            return None


def _condition(column: Any, operator: str, literal: Any, kinds: dict[str, str]) -> Iterable[Condition]:
    """Yields what a comparison says, unless its meaning is not certain to be the same here."""
    match column, literal:
        case {"Column": str(name)}, {"Literal": {"Scalar": value} | {"Dyn": value}}:
            pass
        case _:
            return
    match kinds.get(name), value:
        case "text", {"String": str(text)} if operator == "==":
            yield name, operator, text
        case "timestamp", {"Datetime": [int(moment), "Microseconds", {"inner": "UTC"}]}:
            yield name, operator, moment
        case "int64" | "uint64", {"Int64": int(number)} | {"UInt64": int(number)} | {"Int": int(number)}:
            yield name, operator, number
        case _:
            return


class _Stream:
    def __init__(self, schema: Schema, batches: Iterable[Batch]) -> None:
        self._schema = schema
        self._batches = batches

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        del requested_schema
        return arrow_stream(self._schema, iter(self._batches))


def _frame(schema: Schema, batches: Iterable[Batch]) -> pl.DataFrame:
    return pl.DataFrame(_Stream(schema, batches))
