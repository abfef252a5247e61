"""The tables of a destination, of whichever kind."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import seglake
from seglake._publish.manifest import MANIFEST, left_over

from ..destination import Destination
from ..layout import KIND, STAGING, TABLES
from ..result import IngestError, TableKind, can_pass
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
    def __init__(self, destination: Destination, storage_options: Mapping[str, str] | None) -> None:
        self._destination = destination
        self._storage_options = storage_options
        destination.uri(destination.folder)  # raises what there is to say before anything is done

    def of(self, format: str, table: str) -> LakeTable[Any]:
        import pyarrow as pa

        from .delta import DeltaLakeTable

        dated = table == "records" and any(column.name == "timestamp" for column in seglake.formats()[format].columns)
        folder = self._destination.folder / format / table
        name = str(folder) if self._destination.is_local else self._destination.uri(folder)
        return DeltaLakeTable(name, {"date": pa.date32()} if dated else None, self._storage_options)


class _IcebergTables(LakeTables):
    def __init__(self, destination: Destination, catalog: str | Mapping[str, str] | None) -> None:
        self._destination = destination
        self._given = catalog
        destination.uri(destination.folder)
        if catalog is None and not destination.is_local:
            raise IngestError(
                f"{destination.shown()}: expected a catalog of the Iceberg tables. It cannot be a file of a store: "
                "name an SQL database by its URI (catalog)"
            )

    def of(self, format: str, table: str) -> LakeTable[Any]:
        from .iceberg import IcebergLakeTable

        location = self._destination.uri(self._destination.folder / format / table)
        return IcebergLakeTable(self._catalog, (*self._namespace, format, table), location)

    @property
    def _properties(self) -> dict[str, str]:
        if self._given is None:
            from sqlalchemy import URL

            file = str(self._destination.folder / "_catalog.db")
            return {"uri": URL.create("sqlite", database=file).render_as_string(hide_password=False)}
        return {"uri": self._given} if isinstance(self._given, str) else dict(self._given)

    @property
    def _namespace(self) -> tuple[str, ...]:
        return tuple(name for name in self._properties.get("namespace", "").split(".") if name)

    @cached_property
    def _catalog(self) -> Catalog:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import ServerError, ServiceUnavailableError
        from sqlalchemy.exc import OperationalError

        properties: dict[str, Any] = {
            "type": "sql",
            "warehouse": self._destination.uri(self._destination.folder),
            **_of_environment(),
            **self._properties,
        }
        properties.pop("namespace", None)
        name = properties.pop("name", "seglake")
        try:
            return load_catalog(name, **properties)
        except Exception as error:
            is_away = isinstance(error, (OperationalError, ServerError, ServiceUnavailableError)) or can_pass(error)
            said = str(error).partition("\n")[0]
            place = _without_secrets(properties.get("uri"))
            raise IngestError(
                f"{place}: the catalog cannot be opened: {said}{_advice(error, said)}", may_pass=is_away
            ) from error


def _without_secrets(uri: str | None) -> str:
    """Returns the URI of a catalog without its password, and without a query, which may have one."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(uri or "").set(query={}).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return "Iceberg"


def _advice(error: Exception, said: str) -> str:
    """Returns what is to be done about a catalog that does not open."""
    if "pip" in said:
        return ""
    if isinstance(error, ModuleNotFoundError):
        return ". Install this driver"
    return ". Name the URI of an SQL database that can be reached with `catalog`"


def _of_environment() -> dict[str, str]:
    """Returns where S3 is, as the environment says it: `pyiceberg` does not look there."""
    known = {
        "s3.endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        "s3.region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    }
    given = {name: next(filter(None, map(os.environ.get, variables)), None) for name, variables in known.items()}
    return {name: value for name, value in given.items() if value is not None}


def lake_tables(
    kind: TableKind,
    destination: Destination,
    catalog: str | Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> LakeTables | None:
    """Returns the tables of a destination; None where folders alone keep track of their files."""
    if kind == "delta":
        return _DeltaTables(destination, storage_options)
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
    if said is not None or destination.files_tables() or _has_manifests(destination):
        raise IngestError(
            f"{destination.shown()}: its tables are of the kind {found}, and {kind} is asked for. Ask for "
            f"{found}, or ingest into another destination"
        )
    destination.store.write_durably(destination.folder, path, json.dumps({"table": kind}).encode())


def _has_manifests(destination: Destination) -> bool:
    """Tells whether a run that died is certain to be in the tables: they are of the kind that it was for."""
    store = destination.store
    return any(store.exists(each / MANIFEST) for each in left_over(destination.folder / STAGING, store=store, kind=""))
