"""Where the rows of the input files of a task go."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from .log import DataFile
from .options import IngestOptions
from .parquet import DAMAGE_SCHEMA, DateWriter, Target, records_schema

__all__ = ["FileOutput", "Output"]

_HELD_BYTES: Final = 32 << 20


class Output:
    """Output files: of all formats, and of damage."""

    def __init__(self, target: Target, options: IngestOptions) -> None:
        self._target = target
        self._options = options
        self._tables: dict[str, DateWriter] = {}

    def another(self) -> Output:
        """Returns an empty one like it."""
        return Output(self._target, self._options)

    def add(self, table: str, rows: pa.RecordBatch) -> None:
        """Adds rows of a table: the records of a format, or `damage`."""
        writer = self._tables.get(table)
        if writer is None:
            schema = DAMAGE_SCHEMA if table == "damage" else records_schema(table, self._options)
            writer = self._tables[table] = DateWriter(self._target, table, schema)
        writer.append(rows)

    def finish(self) -> dict[str, list[DataFile]]:
        """Closes all files; returns them by their tables."""
        found = {table: writer.finish() for table, writer in self._tables.items()}
        return {table: files for table, files in found.items() if files}

    def discard(self) -> None:
        """Forgets everything, and removes what was written."""
        for writer in self._tables.values():
            writer.discard()


class FileOutput:
    """The rows of one input file. Until its end nothing of it is mixed with those of others.

    Those of a small one are held back. A large one has output files of its own.
    """

    def __init__(self, shared: Output) -> None:
        self._shared = shared
        self._own: Output | None = None
        self._held: list[tuple[str, pa.RecordBatch]] = []
        self._bytes = 0

    def add(self, table: str, rows: pa.RecordBatch) -> None:
        """Adds rows of a table: the records of a format, or `damage`."""
        if self._own is not None:
            self._own.add(table, rows)
            return
        self._held.append((table, rows))
        self._bytes += rows.nbytes
        if self._bytes > _HELD_BYTES:
            self._own = self._shared.another()
            self._pass_on(self._own)

    def finish(self) -> dict[str, list[DataFile]]:
        """Ends the file; returns the output files that are its own."""
        if self._own is not None:
            return self._own.finish()
        self._pass_on(self._shared)
        return {}

    def discard(self) -> None:
        """Forgets all rows of the file."""
        self._held.clear()
        if self._own is not None:
            self._own.discard()

    def _pass_on(self, output: Output) -> None:
        for table, rows in self._held:
            output.add(table, rows)
        self._held.clear()
