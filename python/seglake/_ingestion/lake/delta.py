"""Tables of Delta Lake, by the package `deltalake`.

The protocol: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Transaction Identifiers".
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import pyarrow as pa
from deltalake import DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties

from .table import DataFile, LakeTable

__all__ = ["DeltaLakeTable"]

_APPLICATION: Final = "seglake"


class DeltaLakeTable(LakeTable[DeltaTable]):
    """A table of Delta Lake. A run is a transaction of the application `seglake` whose version is the run's number.

    Args:
        uri: the table's folder.
        partitions: names and types of the columns that are in the paths of files alone.
        storage_options: what `deltalake` takes to reach the folder.
    """

    def __init__(
        self,
        uri: str,
        partitions: Mapping[str, pa.DataType] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(uri)
        self._partitions = dict(partitions or {})
        self._storage_options = dict(storage_options or {})

    def schema(self) -> pa.Schema | None:
        """Returns the schema of the rows, without the partition columns; None where there is no table."""
        table = self._open()
        if table is None:
            return None
        whole: Any = pa.schema(cast("Any", table.schema().to_arrow()))  # typed in part only
        return pa.schema([each for each in whole if each.name not in self._partitions])

    def read(self, columns: Sequence[str]) -> pa.Table | None:
        """Reads columns of all rows; None where there is no table."""
        table: Any = self._open()
        try:
            return None if table is None else table.to_pyarrow_table(columns=list(columns))
        except DeltaProtocolError as error:
            advice = "Drop these features of the table (ALTER TABLE ... DROP FEATURE), or ingest into another folder"
            raise self._failed("cannot be read", error, advice) from error
        except Exception as error:
            raise self._failed("cannot be read", error) from error

    def files(self) -> list[str] | None:
        """Returns the paths of all data files, as `LakeTable` says."""
        table = self._open()
        if table is None:
            return []
        if table.protocol().min_reader_version > 1:  # deletion vectors, or other names of columns
            return None
        added: Any = pa.table(cast("Any", table.get_add_actions()))  # typed in part only
        return added.column("path").to_pylist()

    def _open(self) -> DeltaTable | None:
        try:
            return DeltaTable(self._name, storage_options=self._storage_options)
        except TableNotFoundError:
            return None
        except Exception as error:
            raise self._failed("cannot be read", error) from error

    def _create(self, schema: pa.Schema) -> DeltaTable:
        columns: Any = schema
        for name, type in self._partitions.items():
            columns = columns.append(pa.field(name, type))
        try:
            return DeltaTable.create(
                self._name,
                columns,
                mode="error",
                partition_by=list(self._partitions),
                storage_options=self._storage_options,
            )
        except DeltaError as error:
            # Made by others meanwhile, or by us without an answer.
            table = self._open()
            if table is None:
                raise self._failed("cannot be made", error) from error
            return table

    def _last_run(self, table: DeltaTable) -> int:
        return table.transaction_version(_APPLICATION) or 0

    def _commit(self, table: DeltaTable, run: int, files: Sequence[DataFile]) -> bool:
        try:
            table.create_write_transaction(
                [_added(file) for file in files],
                "append",
                table.schema(),
                list(self._partitions),
                commit_properties=CommitProperties(
                    max_commit_retries=0, app_transactions=[Transaction(_APPLICATION, run)]
                ),
            )
        except CommitFailedError:
            return False
        return True


def _added(file: DataFile) -> AddAction:
    return AddAction(
        path=file.path,
        size=file.nbytes,
        partition_values=file.partition,
        modification_time=file.modified_ms,
        data_change=True,
        stats=json.dumps({"numRecords": file.rows}),
    )
