"""The views that come with a lake, as SQL of DuckDB: what is true of each file now."""

from .result import TableFormat

__all__ = ["VIEWS", "views"]

VIEWS = "_views.sql"
"""The file below a lake that has them."""

_TABLES = {
    "parquet": "read_parquet('{lake}/{table}/*.parquet')",
    "delta": "delta_scan('{lake}/{table}')",
    "iceberg": "iceberg_scan('{lake}/{table}', allow_moved_paths => true)",
}

_SQL = """\
CREATE OR REPLACE VIEW files AS SELECT * FROM {files};
CREATE OR REPLACE VIEW damage AS SELECT * FROM {damage};
CREATE OR REPLACE VIEW runs AS SELECT * FROM {runs};

-- The latest row of each file that is there, or was when it was last looked for.
CREATE OR REPLACE VIEW files_now AS
SELECT * FROM (SELECT * FROM files QUALIFY row_number() OVER (PARTITION BY path ORDER BY run DESC) = 1)
WHERE status <> 'renamed';

-- What is damaged in these: found when the file was last read whole, or since.
CREATE OR REPLACE VIEW damage_now AS
SELECT damage.* FROM damage
JOIN (SELECT path, max(run) AS since FROM files WHERE "start" = 0 GROUP BY path) AS whole USING (path)
WHERE damage.run >= whole.since AND path IN (SELECT path FROM files_now);
"""


def views(lake: str, table_format: TableFormat) -> str:
    """Returns the views of the lake at a path or URI."""
    place = lake.replace("'", "''")
    names = {name: _TABLES[table_format].format(lake=place, table=name) for name in ("files", "damage", "runs")}
    return _SQL.format(**names)
