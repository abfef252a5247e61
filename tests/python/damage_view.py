"""The view `damage_now` of the documents, in DuckDB and polars."""

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import polars as pl

DOCUMENT = Path(__file__).parents[2] / "docs" / "ingest.md"


class Damage(NamedTuple):
    """A row of the view."""

    path: str
    start: int
    end: int
    kind: str


@cache
def view() -> str:
    """The statement that makes the view."""
    found = re.findall(r"^```sql\n(.*?)^```$", DOCUMENT.read_text(), re.M | re.S)
    (own,) = [each for each in found if "VIEW damage_now" in each]
    return own


@cache
def before_query(engine: str) -> str:
    """What makes its tables, as the documents have it for an engine."""
    (code,) = re.findall(rf"^\| {engine} \| `([^`]*)` \|", DOCUMENT.read_text(), re.M)
    return code


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    """One database for all looks: making one takes longer than a look."""
    return duckdb.connect()


def damage_now(lake: Path, query: str | None = None) -> list[Damage]:
    """What the view says, the same in both engines; or a query of DuckDB on it."""
    if not list(lake.glob("*/damage/*.parquet")):
        return []
    with _duckdb().cursor() as connection:
        for name in ("files", "damage"):
            made = before_query("DuckDB").replace("/data/lake", str(lake))
            connection.execute(re.sub(r"\bfiles\b", name, made).replace("VIEW", "TEMPORARY VIEW", 1))
        connection.execute(view())
        if query is not None:
            found = connection.execute(f'SELECT path, start, "end", kind FROM ({query})').fetchall()
            return sorted(map(Damage._make, found))
        found = connection.execute('SELECT path, start, "end", kind FROM damage_now').fetchall()
    names: dict[str, Any] = {"pl": pl}
    exec(before_query("polars").replace("/data/lake", str(lake)), names)
    query = view()[view().index("WITH") :]
    other = names["tables"].execute(query, eager=True).select("path", "start", "end", "kind").rows()
    assert sorted(other) == sorted(found)
    return sorted(map(Damage._make, found))
