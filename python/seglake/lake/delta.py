"""Tables of Delta Lake, by the package `deltalake`.

The protocol: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Transaction Identifiers".
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, cast

import pyarrow as pa
from deltalake import DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties

from .log import DataFile
from .table import LakeTable

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

    def files_with(self, source: str) -> list[str]:
        """Returns the paths or URIs of the data files that may have rows of a source, as the table is now."""
        table = self._open()
        if table is None:
            return []
        found: Any = pa.table(cast("Any", table.get_add_actions(flatten=True)))  # typed in part only
        names = {name for name in found.column_names if name in ("path", "min.source", "max.source")}
        rows = found.select(sorted(names)).to_pylist()
        return [
            f"{table.table_uri.rstrip('/')}/{row['path']}"
            for row in rows
            if (row.get("min.source") or "") <= source <= (row.get("max.source") or source)
        ]

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
        path=file.path.partition("/")[2],
        size=file.nbytes,
        partition_values=file.partition,
        modification_time=file.modified_ms,
        data_change=True,
        stats=json.dumps(
            {
                "numRecords": file.rows,
                "minValues": {name: _bound(name, value, 0) for name, value in file.least.items()},
                "maxValues": {name: _bound(name, value, 999) for name, value in file.most.items()},
            }
        ),
    )


def _bound(name: str, value: Any, rounded_us: int) -> Any:
    """Returns a bound as the protocol has it: times in milliseconds, so that the upper one is rounded up."""
    if name != "timestamp":
        return value
    moment = datetime(1970, 1, 1) + timedelta(milliseconds=(value + rounded_us) // 1000)
    return f"{moment.isoformat(timespec='milliseconds')}Z"
