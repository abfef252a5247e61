"""The output files of a task, by format."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from seglake._formats import FormatOptions

from .tables import DAMAGE_SCHEMA, DamageWriter, DateWriter, RollingWriter, StagedFile, Uint64Type, records_schema

__all__ = ["Output"]


class Output:
    """The output files of a group of input files, by format."""

    def __init__(
        self,
        folder: Path,
        name: str,
        format_options: FormatOptions,
        target_bytes: int,
        uint64_type: Uint64Type,
        complete: Callable[[Path], object],
    ) -> None:
        self._folder = folder
        self._name = name
        self._format_options = format_options
        self._target_bytes = target_bytes
        self._uint64_type: Uint64Type = uint64_type
        self._complete = complete
        self._records: dict[str, DateWriter] = {}
        self._damage: dict[str, DamageWriter] = {}

    def add_records(self, format: str, rows: pa.RecordBatch) -> None:
        """Adds records with their `path` and `position`."""
        writer = self._records.get(format)
        if writer is None:
            schema = records_schema(format, self._format_options, self._uint64_type)
            name = f"{self._name}-{format}-records"
            writer = self._records[format] = DateWriter(self._folder, name, schema, self._target_bytes, self._complete)
        writer.append(rows)

    def add_damage(self, format: str, row: dict[str, Any]) -> None:
        """Adds a row of `damage`."""
        writer = self._damage.get(format)
        if writer is None:
            name = f"{self._name}-{format}-damage"
            rolling = RollingWriter(self._folder, name, "damage", DAMAGE_SCHEMA, self._target_bytes, self._complete)
            writer = self._damage[format] = DamageWriter(rolling)
        writer.append(row)

    def finish(self) -> list[tuple[str, StagedFile]]:
        """Closes all files; returns them with their formats."""
        writers = [*self._records.items(), *self._damage.items()]
        return [(format, file) for format, writer in writers for file in writer.finish()]

    def discard(self) -> None:
        """Closes all files and forgets them."""
        for writer in (*self._records.values(), *self._damage.values()):
            writer.discard()
