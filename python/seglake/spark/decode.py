"""What runs on the executors: files in, Arrow batches in the schema of the load out."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

import pyarrow as pa

import seglake

from .files import path_text
from .options import ReadOptions
from .schema import ReadSchema, arrow_field, arrow_schema

__all__ = ["Decoder"]

_DAMAGE_ROWS: Final = 8192
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decoder:
    """Decodes files of one format into the batches that Spark expects; picklable, it holds nothing open."""

    format: str
    options: ReadOptions
    read_schema: ReadSchema

    def decode(self, paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields the records of the files, and a row for each damaged range where the load asks for them.

        Raises:
            seglake.DamageError: the mode is FAILFAST, or the schema has no column that reports damage.
            seglake.WrongKeyError: as above; in mode DROPMALFORMED too, where nothing at all would be left of a file.
            FileNotFoundError: a file is gone since the read was planned.
            OSError: a file cannot be read.
        """
        schema = arrow_schema(self.read_schema.schema)
        # Damage that comes in rows of its own is not worth a warning for each file; damage that is left out is.
        permissive = self.options.mode == "PERMISSIVE"
        warnings.simplefilter("ignore" if permissive else "always", seglake.DamageWarning)
        for path in paths:
            try:
                reader = self._open(path)
            except FileNotFoundError:
                if Path(path).exists():
                    raise  # what is missing is the key's file
                if self.options.ignore_missing_files:
                    continue
                raise FileNotFoundError(
                    f"{path}: was there when the read was planned and is gone now; "
                    "option ignoreMissingFiles leaves such files out"
                ) from None
            with reader:
                try:
                    yield from self._decode(path, reader, schema)
                except seglake.DamageError as error:
                    raise self._explained(error) from None

    @property
    def _skips(self) -> bool:
        """Whether damage is passed by, being reported in rows or left out on request."""
        if self.options.mode == "PERMISSIVE":
            return self.read_schema.corrupt_column is not None
        return self.options.mode == "DROPMALFORMED"

    def _open(self, path: str) -> seglake.Reader:
        key = self.options.key
        return seglake.open(
            path,
            format=cast("FormatName", self.format),
            key=key.reveal() if key is not None else None,
            key_file=self.options.key_file,
            on_damage="skip" if self._skips else "raise",
            columns=self.read_schema.columns,
            uuid_type=self.read_schema.uuid_type,
        )

    def _decode(self, path: str, reader: seglake.Reader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        batches = reader.batches()
        for batch in batches:
            if batch.num_rows:
                yield _record_rows(path, batch, schema)
            if self.options.mode == "PERMISSIVE":
                for first in range(0, len(batch.damage), _DAMAGE_ROWS):
                    yield self._damage_rows(path, batch.damage[first : first + _DAMAGE_ROWS], schema)
        if not batches.report.wrong_key:
            return
        found = (
            f"{path}: no record checks although the structure is sound; the key is probably not the one "
            "that the file was written with"
        )
        if self.options.mode == "PERMISSIVE":
            _LOG.warning("%s. All of it is reported as damage", found)
        else:
            raise seglake.WrongKeyError(
                f"{found}. Mode DROPMALFORMED would leave out the whole file: give the right key with option "
                "checksumSecretFile, or see in mode PERMISSIVE what is there",
                path=path,
                offset=0,
                cause="checksum_mismatch",
                expected="checksums made with the key given",
                actual="no checksum that agrees with it",
            )

    def _damage_rows(self, path: str, spans: Sequence[seglake.Span], schema: pa.Schema) -> pa.RecordBatch:
        name = self.options.corrupt_column
        reports = [
            {"path": path_text(path), "start": span.start, "end": span.end, "kind": span.kind, "cause": span.cause}
            for span in spans
        ]
        # The other columns are null.
        return pa.RecordBatch.from_pylist([{name: report} for report in reports], schema)

    def _explained(self, error: seglake.DamageError) -> seglake.DamageError:
        """Says why damage is an error here, where the mode alone does not."""
        if self.options.mode != "PERMISSIVE":
            return error
        name = self.options.corrupt_column
        return type(error)(
            f"{error}. The schema given has no column to report damage in: add {name} "
            "struct<path: string, start: bigint, end: bigint, kind: string, cause: string> to it, "
            "or set mode to DROPMALFORMED to leave damage out",
            path=error.path,
            offset=error.offset,
            cause=error.cause,
            expected=error.expected,
            actual=error.actual,
        )


def _record_rows(path: str, batch: seglake.Batch, schema: pa.Schema) -> pa.RecordBatch:
    rows: pa.RecordBatch = pa.record_batch(cast("Any", batch))
    for name in schema.names:
        # What is in the schema and not in the batch is the path, or else the column that reports damage.
        if name not in rows.schema.names:
            field = arrow_field(schema, name)
            value = cast("Any", pa).scalar(path_text(path) if name == "path" else None, field.type)
            rows = cast("Any", rows).append_column(field, pa.repeat(value, rows.num_rows))
    return rows.select(schema.names).cast(schema)
