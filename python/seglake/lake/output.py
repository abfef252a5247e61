"""Where the rows of the input files of a task go."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from .log import DataFile
from .options import IngestOptions
from .parquet import DAMAGE_SCHEMA, DamageWriter, DateWriter, RollingWriter, Target, records_schema

__all__ = ["FileOutput", "Output"]

_HELD_BYTES: Final = 32 << 20


class Output:
    """Output files: of all formats, and of damage."""

    def __init__(self, target: Target, options: IngestOptions) -> None:
        self._target = target
        self._options = options
        self._records: dict[str, DateWriter] = {}
        self._damage = DamageWriter(RollingWriter(target, "damage", DAMAGE_SCHEMA))

    def another(self) -> Output:
        """Returns an empty one like it."""
        return Output(self._target, self._options)

    def add_records(self, format: str, rows: pa.RecordBatch) -> None:
        """Adds rows of a format's records."""
        writer = self._records.get(format)
        if writer is None:
            writer = self._records[format] = DateWriter(self._target, format, records_schema(format, self._options))
        writer.append(rows)

    def add_damage(self, row: dict[str, Any]) -> None:
        """Adds a row of `damage`."""
        self._damage.append(row)

    def finish(self) -> dict[str, list[DataFile]]:
        """Closes all files; returns them by their tables."""
        found = {format: writer.finish() for format, writer in self._records.items()}
        found["damage"] = self._damage.finish()
        return {table: files for table, files in found.items() if files}

    def discard(self) -> None:
        """Forgets everything, and removes what was written."""
        for writer in (*self._records.values(), self._damage):
            writer.discard()


class FileOutput:
    """The rows of one input file. Until its end nothing of it is mixed with those of others.

    Those of a small one are held back. A large one has output files of its own.
    """

    def __init__(self, shared: Output) -> None:
        self._shared = shared
        self._own: Output | None = None
        self._records: list[tuple[str, pa.RecordBatch]] = []
        self._damage: list[dict[str, Any]] = []
        self._bytes = 0

    def add_records(self, format: str, rows: pa.RecordBatch) -> None:
        """Adds rows of a format's records."""
        if self._own is not None:
            self._own.add_records(format, rows)
            return
        self._records.append((format, rows))
        self._held(rows.nbytes)

    def add_damage(self, row: dict[str, Any]) -> None:
        """Adds a row of `damage`."""
        if self._own is not None:
            self._own.add_damage(row)
            return
        self._damage.append(row)
        self._held(len(row["raw"]) + 256)

    def finish(self) -> dict[str, list[DataFile]]:
        """Ends the file; returns the output files that are its own."""
        if self._own is not None:
            return self._own.finish()
        self._pass_on(self._shared)
        return {}

    def discard(self) -> None:
        """Forgets all rows of the file."""
        self._records.clear()
        self._damage.clear()
        if self._own is not None:
            self._own.discard()

    def _held(self, nbytes: int) -> None:
        self._bytes += nbytes
        if self._bytes > _HELD_BYTES:
            self._own = self._shared.another()
            self._pass_on(self._own)

    def _pass_on(self, output: Output) -> None:
        for format, rows in self._records:
            output.add_records(format, rows)
        for row in self._damage:
            output.add_damage(row)
        self._records.clear()
        self._damage.clear()
