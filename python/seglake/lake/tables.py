"""The tables of a lake, of whichever kind: one of records for each format, `damage`, `files` and `runs`."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import seglake
from seglake.tracking.place import LocalPlace, Place, check_path
from seglake.write import durable

from .log import DataFile, LakeLog, LakeState, RunEntry
from .parquet import STAGING, staged_name
from .result import IngestError, TableFormat, can_pass

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from .table import LakeTable

__all__ = ["Tables", "commit", "tables_of"]

_KEPT_S: Final = 24 * 60 * 60
_MOST_SYNCED: Final = 16
_OWN: Final = ("damage", "files", "runs")
"""The tables that are not of records, in the order in which they become visible after these."""


class Tables(ABC):
    """The tables of a lake."""

    @abstractmethod
    def sync(self, entry: RunEntry) -> None:
        """Has the names of an entry's data files be durable, before it is put."""

    @abstractmethod
    def apply(self, number: int, entry: RunEntry, schemas: Mapping[str, Any], gone: Container[str] = ()) -> None:
        """Makes visible what an entry of the log adds, as far as it is not.

        Args:
            number: that of the entry.
            entry: the entry.
            schemas: the schemas of its tables.
            gone: the data files that later entries remove.

        Raises:
            OSError, TableChangedError: that failed. The next run does it.
        """

    @abstractmethod
    def files_with(self, table: str, source: str, state: LakeState) -> list[str]:
        """Returns the paths or URIs of the data files of a table of records that may have rows of a source."""

    @abstractmethod
    def other(self) -> str | None:
        """Returns a table that is there, by its path or URI: without a log it is of another lake. None if none is."""

    def remove_dead(self) -> None:
        """Removes what runs have staged that died a day ago."""
        return

    def remove(self, run: str) -> None:
        """Removes what is left of a run in the staging folder."""
        return


def _in_order(data: Mapping[str, list[DataFile]]) -> dict[str, list[DataFile]]:
    """Returns tables in the order in which they become visible: who reads `files` finds what it lists in the others."""
    return dict(sorted(data.items(), key=lambda item: (_OWN.index(item[0]) if item[0] in _OWN else -1, item[0])))


class _ParquetTables(Tables):
    """Plain Parquet: what is in a folder is in the table. So files get their names once the run is certain."""

    def __init__(self, place: LocalPlace) -> None:
        self._place = place

    def sync(self, entry: RunEntry) -> None:
        self._place.sync(staged_name(entry.run, file.path) for files in entry.data.values() for file in files)

    def apply(self, number: int, entry: RunEntry, schemas: Mapping[str, Any], gone: Container[str] = ()) -> None:
        for files in _in_order(entry.data).values():
            names = [file.path for file in files]
            names = [name for name in names if self._place_file(entry.run, name, gone)]
            self._place.sync(names)
        for names in entry.removed.values():
            self._place.remove(names)
        self.remove(entry.run)

    def _place_file(self, run: str, name: str, gone: Container[str]) -> bool:
        """Gives a file its final name; returns whether it has it."""
        staged, final = self._place.folder / staged_name(run, name), self._place.folder / name
        final.parent.mkdir(parents=True, exist_ok=True)
        try:
            durable.rename(staged, final)
        except FileNotFoundError:
            if final.exists():  # another run may do the same at this moment
                return True
            if name in gone:
                return False
            raise OSError(
                2, f"a run that died was to put it there, and it is gone: {staged}. Restore it", str(final)
            ) from None
        return True

    def files_with(self, table: str, source: str, state: LakeState) -> list[str]:
        return [
            self._place.uri(file.path)
            for file in state.data.get(table, [])
            if file.least.get("source", "") <= source <= file.most.get("source", source)
        ]

    def other(self) -> str | None:
        return self._place.uri("files") if self._place.names("files") else None

    def remove_dead(self) -> None:
        for run in self._place.names(STAGING):
            with contextlib.suppress(OSError):
                if time.time() - (self._place.folder / STAGING / run).stat().st_mtime > _KEPT_S:
                    self.remove(run)

    def remove(self, run: str) -> None:
        # The folder of all runs stays: another may be beginning in it.
        shutil.rmtree(self._place.folder / STAGING / run, ignore_errors=True)


class _LakeTables(Tables):
    """Tables of which something else than their folders keeps track. Each knows the number of its last entry."""

    def __init__(self, place: Place) -> None:
        self._place = place

    @abstractmethod
    def table(self, name: str) -> LakeTable[Any]:
        """Returns a table. It need not be there."""

    def sync(self, entry: RunEntry) -> None:
        if isinstance(self._place, LocalPlace):
            self._place.sync(file.path for files in entry.data.values() for file in files)

    def apply(self, number: int, entry: RunEntry, schemas: Mapping[str, Any], gone: Container[str] = ()) -> None:
        for name, files in _in_order(entry.data).items():
            before = self._own_log(name)
            self.table(name).append(number, schemas[name], [file for file in files if file.rows])
            self._sync_log(name, before)

    def files_with(self, table: str, source: str, state: LakeState) -> list[str]:
        return self.table(table).files_with(source)

    def other(self) -> str | None:
        there = (name for name in [*seglake.formats().names, *_OWN] if self.table(name).committed())
        return next((self._uri(name) for name in there), None)

    def _own_log(self, name: str) -> dict[str, float]:
        """Returns the files in which a package keeps track of a table of a mounted file system, and their times."""
        found: dict[str, float] = {}
        if isinstance(self._place, LocalPlace):
            for log in ("_delta_log", "metadata"):
                for each in self._place.names(f"{name}/{log}"):
                    with contextlib.suppress(FileNotFoundError):
                        file = f"{name}/{log}/{each}"
                        found[file] = (self._place.folder / file).stat().st_mtime
        return found

    def _sync_log(self, name: str, before: Mapping[str, float]) -> None:
        """Has what the package wrote be durable: it syncs nothing. What a run wrote that died is the youngest."""
        found = self._own_log(name)
        new = [each for each in found if each not in before] or sorted(found, key=lambda each: found[each])[
            -_MOST_SYNCED:
        ]
        if new and isinstance(self._place, LocalPlace):
            for each in new:
                # Another run removes what it had written, if its commit comes too late.
                with contextlib.suppress(FileNotFoundError):
                    if (self._place.folder / each).is_file():
                        durable.sync_file(self._place.folder / each)
            self._place.sync(new)

    def _uri(self, name: str) -> str:
        # As it stands: `pyiceberg` looks for a blank that is written as %20 under this name.
        path = self._place.uri(name)
        return f"file://{path.rstrip('/')}" if isinstance(self._place, LocalPlace) else path


class _DeltaTables(_LakeTables):
    def __init__(self, place: Place, storage_options: Mapping[str, str] | None) -> None:
        super().__init__(place)
        self._storage_options = storage_options

    def table(self, name: str) -> LakeTable[Any]:
        """Returns a table. It need not be there."""
        import pyarrow as pa

        from .delta import DeltaLakeTable

        columns = seglake.formats()[name].columns if name in seglake.formats() else ()
        dated = any(column.name == "timestamp" for column in columns)
        return DeltaLakeTable(self._place.uri(name), {"date": pa.date32()} if dated else None, self._storage_options)


class _IcebergTables(_LakeTables):
    def __init__(
        self,
        place: Place,
        catalog: str | Mapping[str, str] | None,
        storage_options: Mapping[str, str] | None,
    ) -> None:
        super().__init__(place)
        self._given = catalog
        self._storage_options = storage_options
        if catalog is None and not isinstance(place, LocalPlace):
            raise IngestError(
                f"{place.uri()}: expected a catalog of the Iceberg tables. It cannot be a file of a store: "
                "name an SQL database by its URI (catalog)"
            )

    def table(self, name: str) -> LakeTable[Any]:
        """Returns a table. It need not be there."""
        from .iceberg import IcebergLakeTable

        return IcebergLakeTable(self._catalog, (*self._namespace, name), self._uri(name))

    @property
    def _properties(self) -> dict[str, str]:
        if self._given is None:
            from sqlalchemy import URL

            file = self._place.uri("_catalog.db")
            return {"uri": URL.create("sqlite", database=file).render_as_string(hide_password=False)}
        return {"uri": self._given} if isinstance(self._given, str) else dict(self._given)

    @property
    def _namespace(self) -> tuple[str, ...]:
        return tuple(name for name in self._properties.get("namespace", "").split(".") if name) or ("seglake",)

    @cached_property
    def _catalog(self) -> Catalog:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import ServerError, ServiceUnavailableError
        from sqlalchemy.exc import OperationalError

        properties: dict[str, Any] = {
            "type": "sql",
            "warehouse": self._uri(""),
            **_of_environment(),
            **_of_options(self._storage_options or {}),
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


def _of_options(options: Mapping[str, str]) -> dict[str, str]:
    """Returns how S3 is reached as `pyiceberg` takes it. For other stores `catalog` says it."""
    known = {"endpoint_url": "endpoint", "default_region": "region"}
    bare = {name.lower().removeprefix("aws_"): value for name, value in options.items()}
    names = ("endpoint", "region", "access_key_id", "secret_access_key", "session_token")
    given = {known.get(name, name): value for name, value in bare.items()}
    return {f"s3.{name.replace('_', '-')}": given[name] for name in names if name in given}


def commit(
    log: LakeLog, tables: Tables, state: LakeState, entry: RunEntry, is_lost: Callable[[RunEntry], bool]
) -> bool:
    """Puts an entry after those that others have put meanwhile, and adds all to the state. From then on it is certain.

    Returns False, with nothing put, if it is lost by one of the others.
    """
    tables.sync(entry)
    while not log.put(state.number + 1, entry):
        if any(is_lost(other) for _, other in log.add_new(state)):
            return False
    state.add(state.number + 1, entry)
    return True


def tables_of(
    table_format: TableFormat,
    place: Place,
    catalog: str | Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Tables:
    """Returns the tables of a lake.

    Raises:
        IngestError: they cannot be there.
    """
    if table_format == "parquet":
        if not isinstance(place, LocalPlace):
            raise IngestError(
                f"{place.uri()}: plain Parquet has folders alone to tell what is in a table, which takes a mounted "
                'file system: ask for table="delta" or "iceberg"'
            )
        return _ParquetTables(place)
    if isinstance(place, LocalPlace):
        try:
            check_path(place.uri())
        except ValueError as error:
            raise IngestError(str(error)) from None
    return (
        _DeltaTables(place, storage_options)
        if table_format == "delta"
        else _IcebergTables(place, catalog, storage_options)
    )
