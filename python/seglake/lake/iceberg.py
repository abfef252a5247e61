"""Tables of Apache Iceberg, by the package `pyiceberg`."""

import contextlib
import logging
from collections.abc import Generator, Sequence
from typing import Final

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import Table, TableProperties
from sqlalchemy.exc import IntegrityError

from seglake._text import printable_path

from .log import DataFile
from .result import IngestError
from .table import LakeTable

__all__ = ["IcebergLakeTable"]

_RUN: Final = "seglake.run"
_RETRIES: Final = TableProperties.COMMIT_NUM_RETRIES
# Where the table's files are. A catalog may have another opinion of the table's own location.
_FOLDER: Final = "seglake.folder"
# Each run adds a manifest. So many are merged to one: all are read to list the table's files.
_MERGED_MANIFESTS: Final = 32


class IcebergLakeTable(LakeTable[Table]):
    """A table of Apache Iceberg, without partitions: its files keep to one date each, which their statistics show.

    The number of the last run is the table's property `seglake.run`, set in the commit that adds the run's files. The
    snapshot has it too, but snapshots expire.

    Args:
        catalog: the catalog.
        identifier: the table's name in it, with its namespace.
        location: the URI of the table's folder.
    """

    def __init__(self, catalog: Catalog, identifier: tuple[str, ...], location: str) -> None:
        super().__init__(".".join(identifier))
        self._catalog = catalog
        self._identifier = identifier
        self._location = location.rstrip("/")

    def files_with(self, source: str) -> list[str]:
        """Returns the URIs of the data files that may have rows of a source, as the table is now."""
        table = self._open()
        if table is None:
            return []
        return [task.file.file_path for task in table.scan(f"source = '{_quoted(source)}'").plan_files()]

    def _open(self) -> Table | None:
        try:
            table = self._catalog.load_table(self._identifier)
        except NoSuchTableError:
            return None
        except OSError:
            raise
        except Exception as error:
            raise self._failed("cannot be read", error) from error
        self._refuse_other_folder(table)
        return table

    def _refuse_other_folder(self, table: Table) -> None:
        """Sees to it that two destinations do not share a table: each has its own log and its own runs.

        Raises:
            IngestError: the catalog has a table of this name whose files are elsewhere.
        """
        folder = table.properties.get(_FOLDER, table.location()).rstrip("/")
        if folder != self._location:
            raise IngestError(
                f"{printable_path(self._location)}: expected its table {self._name} in the catalog, found one of this "
                f"name with its files in {printable_path(folder)}. Give each destination a catalog of its own, or a "
                "namespace (catalog)"
            )

    def _create(self, schema: pa.Schema) -> Table:
        namespace = self._identifier[:-1]
        try:
            for depth in range(1, len(namespace) + 1):
                # An SQL catalog raises its own error if another run made the namespace meanwhile.
                with contextlib.suppress(NamespaceAlreadyExistsError, IntegrityError):
                    self._catalog.create_namespace(namespace[:depth])
            return self._catalog.create_table(
                self._identifier,
                schema,
                location=self._location,
                properties=_settings() | {_FOLDER: self._location},
            )
        except (TableAlreadyExistsError, CommitFailedException):
            # Made by others meanwhile, or by us without an answer.
            table = self._catalog.load_table(self._identifier)
            self._refuse_other_folder(table)
            return table

    def _last_run(self, table: Table) -> int:
        return int(table.properties.get(_RUN, "0"))

    def _commit(self, table: Table, run: int, files: Sequence[DataFile]) -> bool:
        others = {name: value for name, value in _settings().items() if table.properties.get(name) != value}
        chosen = others.keys() & table.properties.keys() - {_RETRIES}
        if others.keys() - chosen:
            with table.transaction() as settings:
                settings.set_properties({name: others[name] for name in others.keys() - chosen})
            return False
        try:
            with _expected_files(), table.transaction() as transaction:
                transaction.set_properties({_RUN: str(run)})
                if files:
                    paths = [f"{self._location}/{file.path.partition('/')[2]}" for file in files]
                    # Their names are those of the run, so that looking for them in all manifests is for nothing.
                    transaction.add_files(paths, {_RUN: str(run)}, check_duplicate_files=False)
        except CommitFailedException:
            return False
        return True


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _settings() -> dict[str, str]:
    """Returns the properties that a table is to have; others may choose how manifests are merged."""
    return {
        # A retry of the package adds the files to whatever the table is by then, also to a table that has them.
        _RETRIES: "0",
        TableProperties.MANIFEST_MERGE_ENABLED: "true",
        TableProperties.MANIFEST_MIN_MERGE_COUNT: str(_MERGED_MANIFESTS),
    }


@contextlib.contextmanager
def _expected_files() -> Generator[None]:
    """Has `pyiceberg` not warn of columns without statistics: those of times that no calendar has, on purpose."""
    logger = logging.getLogger("pyiceberg.io.pyarrow")

    def is_news(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("PyArrow statistics missing")

    logger.addFilter(is_news)
    try:
        yield
    finally:
        logger.removeFilter(is_news)
