"""A table to which the runs of an ingest append files, whatever keeps track of them."""

from __future__ import annotations

import errno
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

    from .log import DataFile

__all__ = ["LakeTable", "TableChangedError", "lake_schema"]

_ATTEMPTS: Final = 10
_COLOUR: Final = re.compile("\x1b\\[[0-9;]*m")


class TableChangedError(Exception):
    """Others changed the table each time that a run was to be appended. The table does not have the run."""


_Table = TypeVar("_Table")


class LakeTable(ABC, Generic[_Table]):
    """A table of an ingest. Several ingests may append to it at a time, and others read it and rewrite its files.

    Args:
        name: what errors call it.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def committed(self) -> int:
        """Returns the number of the last run that the table has; 0 where it has none, or is not there."""
        table = self._open()
        return 0 if table is None else self._last_run(table)

    def append(self, run: int, schema: pa.Schema, files: Sequence[DataFile]) -> None:
        """Appends the files of a run, all at once and only once; makes the table where it is missing.

        The files are in their places. It may be called again for the same run: after an error that does not say what
        became of it, or after the end of a process that had begun it.

        Args:
            run: the run's number, greater than those of the runs before.
            schema: the schema of the rows, without the columns that are in paths alone.
            files: the files; there may be none.

        Raises:
            TableChangedError: others changed the table each time that it was tried.
            OSError: the table cannot be read or written.
        """
        for _ in range(_ATTEMPTS):
            # Asked and committed with one handle, on top of the state that it was asked about. With another handle the
            # run could be added twice.
            table = self._open() or self._create(schema)
            if self._last_run(table) >= run:
                return
            try:
                if self._commit(table, run, files):
                    return
            except OSError:
                raise
            except Exception as error:
                # It may have been committed all the same.
                if self.committed() >= run:
                    return
                raise self._failed("cannot be written", error) from error
        raise TableChangedError(
            f"{self._name}: others changed the table each of {_ATTEMPTS} times that the run was to be appended. Ingest "
            "again when they are done: the run goes on"
        )

    @abstractmethod
    def files_with(self, source: str) -> list[str]:
        """Returns the paths or URIs of the data files that may have rows of a source, as the table is now."""

    @abstractmethod
    def _open(self) -> _Table | None:
        """Opens the table as it is now; None where there is none."""

    @abstractmethod
    def _create(self, schema: pa.Schema) -> _Table:
        """Makes the table, or opens the one that was made meanwhile."""

    @abstractmethod
    def _last_run(self, table: _Table) -> int:
        """Returns the number of the last run that an open table has; 0 where it has none."""

    @abstractmethod
    def _commit(self, table: _Table, run: int, files: Sequence[DataFile]) -> bool:
        """Commits a run on top of the state that was opened, without retries; returns False if others changed it."""

    def _failed(self, what: str, error: Exception) -> OSError:
        # Some write in colours, and over several lines.
        words = _COLOUR.sub("", str(error)).split()
        return OSError(errno.EIO, f"the table {what}: {' '.join(words)}", self._name)


def lake_schema(schema: pa.Schema) -> pa.Schema:
    """Returns the schema with `decimal(20, 0)` for unsigned integers of 64 bits, which Delta Lake and Iceberg lack."""
    import pyarrow as pa

    fields: Any = schema  # typed in part only
    return pa.schema([each.with_type(_lake_type(each.type)) for each in fields])


def _lake_type(type: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_uint64(type):
        return pa.decimal128(20, 0)
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(_lake_type(type.value_type)))
    if pa.types.is_struct(type):
        return pa.struct([each.with_type(_lake_type(each.type)) for each in list[Any](type)])
    return type
