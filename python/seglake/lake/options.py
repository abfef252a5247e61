"""What an ingest is asked for, as one value from the caller to the task."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Unpack, cast, get_args

import seglake
from seglake._types import DialectName, OpenOptions
from seglake.read.formats import FormatOptions, column_names, limit_options

from .result import IngestArguments, IngestError, OnDamage, TableFormat, can_pass

__all__ = ["TARGET_FILE_BYTES", "IngestOptions"]

TARGET_FILE_BYTES: Final = 128 << 20


@dataclass(frozen=True)
class IngestOptions:
    """The arguments of `seglake.ingest`, checked. It goes to the tasks, on whatever machine, and holds no key.

    Attributes:
        format_options: the dialect and limits.
        key_files: the files of the keys to try; None takes it from the environment of the process, or the default key.
    """

    format_options: FormatOptions
    key_files: list[str] | None
    format: str | None = None
    target_file_size: int = TARGET_FILE_BYTES
    final: bool = False
    sidecar: str | None = "auto"
    on_damage: OnDamage = "repair"
    table: TableFormat = "parquet"
    catalog: str | Mapping[str, str] | None = None
    storage_options: Mapping[str, str] | None = None

    @classmethod
    def of(cls, **arguments: Unpack[IngestArguments]) -> IngestOptions:
        """Checks them.

        Raises:
            ValueError, TypeError: one has no such value.
            IngestError: they do not fit each other, or the key cannot be read.
        """
        given: dict[str, Any] = {**arguments}
        key = given.pop("key", None)
        options: dict[str, Any] = given.pop("options", None) or {}
        own = {name: value for name, value in options.items() if value is not None}
        known = ["record_bytes", "dialect", *limit_options()]
        if unknown := [name for name in own if name not in known]:
            raise ValueError(f"there is no option {unknown[0]!r} here: there are {', '.join(known)}")
        seglake.formats(options=cast("OpenOptions", own))  # refuses values that they do not take
        dialect = own.pop("dialect", None)
        if (sidecar := given.get("sidecar")) not in (None, "auto"):
            given["sidecar"] = str(Path(sidecar).absolute())
        key_files = None if key is None else _key_files(key)
        checked = cls(FormatOptions(dialect, None, tuple(own.items())), key_files, **given)
        checked._check()
        return checked

    def _check(self) -> None:
        for name, value, values in (
            ("table", self.table, get_args(TableFormat)),
            ("on_damage", self.on_damage, get_args(OnDamage)),
        ):
            if value not in values:
                raise ValueError(f"{name} is one of {', '.join(values)}, not {value!r}")
        if self.table != "iceberg" and self.catalog is not None:
            raise ValueError(f"`catalog` is for tables of Iceberg, and `table` is {self.table}")
        if self.target_file_size < 1:
            raise ValueError(f"target_file_size is {self.target_file_size}: expected at least 1")
        _check_format(self.format, self.format_options)
        try:
            seglake.detect(b"", key=self.key_files)
        except (OSError, ValueError) as error:
            raise IngestError(f"the key cannot be used: {error}", may_pass=can_pass(error)) from error

    def with_dialect(self, dialect: DialectName) -> IngestOptions:
        """Returns them for oplogs of another dialect."""
        return replace(self, format_options=replace(self.format_options, dialect=dialect))


def _check_format(format: str | None, options: FormatOptions) -> None:
    if format is None:
        return
    try:
        column_names(format)
    except ValueError as error:
        raise IngestError(str(error)) from None
    foreign = options.foreign(format)
    if foreign:
        raise IngestError(f"{foreign[0]} does not concern {format} files")


def _key_files(key: object) -> list[str]:
    several = list(cast("Sequence[object]", key)) if isinstance(key, Sequence) and not isinstance(key, str) else [key]
    if not all(isinstance(each, (str, os.PathLike)) for each in several):
        raise TypeError("key: expected the path of the file of a key, or a list of such paths, as tasks open them")
    return [str(Path(each).absolute()) for each in cast("list[str | os.PathLike[str]]", several)]
