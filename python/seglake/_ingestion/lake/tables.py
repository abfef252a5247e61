"""The tables of a destination, of whichever kind."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import seglake

from ..destination import Destination
from ..layout import KIND, TABLES
from ..result import IngestError, TableKind
from .table import LakeTable

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

__all__ = ["LakeTables", "lake_tables", "settle_kind"]


class LakeTables(ABC):
    """The tables of a destination, where something else than their folders keeps track of files."""

    @abstractmethod
    def of(self, format: str, table: str) -> LakeTable[Any]:
        """Returns the table `records`, `damage` or `files` of a format. It need not be there."""

    def next_run(self) -> int:
        """Returns the number of the next run: greater than those of all runs that a table has."""
        return 1 + max(self.of(format, table).committed() for format in seglake.formats() for table in TABLES)


class _DeltaTables(LakeTables):
    def __init__(self, destination: Destination) -> None:
        self._destination = destination

    def of(self, format: str, table: str) -> LakeTable[Any]:
        import pyarrow as pa

        from .delta import DeltaLakeTable

        dated = table == "records" and any(column.name == "timestamp" for column in seglake.formats()[format].columns)
        return DeltaLakeTable(str(self._destination.folder / format / table), {"date": pa.date32()} if dated else None)


class _IcebergTables(LakeTables):
    def __init__(self, destination: Destination, catalog: str | Mapping[str, str] | None) -> None:
        self._destination = destination
        self._given = catalog

    def of(self, format: str, table: str) -> LakeTable[Any]:
        from .iceberg import IcebergLakeTable

        location = (self._destination.folder / format / table).as_uri()
        return IcebergLakeTable(self._catalog, (*self._namespace, format, table), location)

    @property
    def _properties(self) -> dict[str, str]:
        if self._given is None:
            return {"uri": f"sqlite:///{self._destination.folder / '_catalog.db'}"}
        return {"uri": self._given} if isinstance(self._given, str) else dict(self._given)

    @property
    def _namespace(self) -> tuple[str, ...]:
        return tuple(name for name in self._properties.get("namespace", "").split(".") if name)

    @cached_property
    def _catalog(self) -> Catalog:
        from pyiceberg.catalog import load_catalog

        properties: dict[str, Any] = {"type": "sql", "warehouse": self._destination.folder.as_uri(), **self._properties}
        properties.pop("namespace", None)
        name = properties.pop("name", "seglake")
        try:
            return load_catalog(name, **properties)
        except Exception as error:
            raise IngestError(f"the catalog of the Iceberg tables cannot be opened: {error}") from error


def lake_tables(
    kind: TableKind, destination: Destination, catalog: str | Mapping[str, str] | None = None
) -> LakeTables | None:
    """Returns the tables of a destination; None where folders alone keep track of their files."""
    if kind == "delta":
        return _DeltaTables(destination)
    return _IcebergTables(destination, catalog) if kind == "iceberg" else None


def settle_kind(destination: Destination, kind: TableKind) -> None:
    """Sees to it that all tables of a destination are of one kind, now and later. Only for the holder of the lock.

    Raises:
        IngestError: the tables that are there are of another kind.
    """
    path = destination.folder / KIND
    try:
        said = destination.store.read_json(path)
        found = "parquet" if said is None else str(said["table"])
    except (ValueError, KeyError) as error:
        raise IngestError(f"{destination.shown(path)}: expected what kind of tables is there: {error!r}") from None
    if found == kind:
        return
    if said is not None or destination.files_tables():
        raise IngestError(
            f"{destination.shown()}: its tables are of the kind {found}, and {kind} is asked for. Ask for "
            f"{found}, or ingest into another destination"
        )
    destination.store.write_durably(destination.folder, path, json.dumps({"table": kind}).encode())
