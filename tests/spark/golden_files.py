"""The golden files as Spark is to read them: what is expected of each, and rows as the golden files show records."""

import re
import uuid
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

from golden import Case, cases, shown
from pyspark.sql import Row
from pyspark.sql.types import LongType, StringType, StructField

__all__ = ["CASES", "GROUPS", "PLACE", "VECTORS", "Case", "damage_of", "link", "record_of", "spark_options"]

VECTORS = Path(__file__).parents[1] / "vectors"
CASES = cases()
EXTENSIONS = {"chunked": "chunks"}
PLACE = [StructField("path", StringType()), StructField("position", LongType())]
"""The columns that say where a record is."""


def spark_options(case: Case) -> dict[str, str]:
    """The options to read a golden file with. Its numbers reach beyond what a bigint holds."""
    options = {"segmentFormat": case.format}
    if "key" in case.options:
        options["secretKey"] = case.options["key"].hex()
    if case.format == "oplog":
        options |= {"dialect": case.dialect, "uint64Type": "decimal"}
    return options


def by_options(cases: Iterable[Case]) -> dict[str, list[Case]]:
    groups: dict[str, list[Case]] = {}
    for case in cases:
        name = "-".join([case.format, *(value[:8] for value in list(spark_options(case).values())[1:2])])
        groups.setdefault(name, []).append(case)
    return groups


GROUPS = by_options(CASES)
"""The golden files that can be read by one query."""


def link(case: Case, folder: Path) -> Path:
    """Puts a golden file into a folder, under a name as files of its format have it, its index beside it."""
    stem = case.path.stem
    path = folder / f"{stem}.{EXTENSIONS.get(case.format, case.format)}"
    path.symlink_to(case.path)
    if case.index is not None:
        (folder / f"{stem}.index").symlink_to(case.index)
    return path


def unescaped(text: str) -> bytes:
    """The bytes that a text of a column stands for."""
    return re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), text.encode())


def plain(value: Any) -> Any:
    """A value of Spark's as the library gives it."""
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def record_of(row: Row) -> dict[str, Any]:
    """A row as the golden files show a record. Its timestamp comes as the column `micros`."""
    fields = plain(row.asDict(recursive=True))
    del fields["path"], fields["_corrupt_record"]
    if "micros" in fields:
        fields["timestamp"] = fields.pop("micros")
    if "uuid" in fields:
        fields["uuid"] = uuid.UUID(fields["uuid"])
    for name in {"type", "tenant"} & set(fields):
        fields[name] = unescaped(fields[name])
    return shown(fields)


def damage_of(case: Case) -> list[list[Any]]:
    """The damaged ranges that are expected."""
    return [span for span in case.expected["ledger"] if span[3] is not None]
