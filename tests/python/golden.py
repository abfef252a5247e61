"""The golden files, and how records are shown in them."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

from loops import Test, looped

import seglake

VECTORS = Path(__file__).parents[1] / "vectors"
FORMATS = ("active", "sealed", "tenant", "chunked", "oplog", "tfrecord")
# Files that look as if they were read with a wrong key, by docs/formats: no record is verified, and the structure is
# sound or there is only one record. The golden files have no field for that.
WRONG_KEY = (
    "active/wrong_key",
    "active/flip_only_record",
    "sealed/wrong_key",
    "sealed/append_newline_wrong_key",
    "sealed/cut_8_wrong_key",
    "sealed/flip_magic_wrong_key",
)


class Case:
    """A golden file: where it is, what is expected of it, and the options to read it with."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_suffix(".bin")
        self.expected: dict[str, Any] = json.loads(path.read_text())
        self.format: str = self.expected["format"]
        self.id = f"{self.format}/{path.stem}"
        given = self.expected["options"]
        self.options: dict[str, Any] = {"format": self.format}
        if "key" in given:
            self.options["key"] = bytes.fromhex(given["key"])
        if "dialect" in given:
            self.options["options"] = {"dialect": given["dialect"]}
        self.dialect: str | None = given.get("dialect")
        self.index = path.with_name(given["index"]) if given.get("index") else None

    @property
    def status(self) -> int:
        """The exit status of a command that reads the file strictly, or verifies all of it."""
        if self.expected["strict_error"] is None:
            return 0
        return 2 if self.id in WRONG_KEY else 1

    def open(self, source: Any = None, **options: Any) -> seglake.Reader:
        """A reader that skips damage."""
        how = {"index": self.index or False} if self.format == "chunked" else {}
        how |= {**self.options.get("options", {}), **options.get("options", {})}
        source = self.path if source is None else source
        return seglake.open(source, **{"on_damage": "skip", **self.options, **options, "options": how})

    def records(self) -> list[dict[str, Any]]:
        """The records that are expected."""
        return self.expected["records"]


@cache
def cases() -> tuple[Case, ...]:
    """All golden files of all formats, read once."""
    found = [Case(path) for format in FORMATS for path in sorted((VECTORS / format).glob("*.json"))]
    assert len(found) > 300, "golden files are missing"
    return tuple(found)


def every(chosen: Callable[[Case], bool] = lambda _: True) -> Callable[[Test], Test]:
    """Calls a test with each golden file as `case`: one test for each format, one subtest for each file."""
    return looped("case", filter(chosen, cases()), id=lambda case: case.id, by=lambda case: case.format)


def shown(value: Any) -> Any:
    """A field as the golden files show it: bytes as hex, or as their hash where there are many."""
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, bytes):
        if len(value) > 96:
            return {"sha256": hashlib.sha256(value).hexdigest(), "length": len(value)}
        return value.hex()
    if isinstance(value, list):
        return [shown(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: shown(item) for name, item in cast("dict[str, Any]", value).items()}
    return value


def record_shown(record: seglake.Record) -> dict[str, Any]:
    """A record as the golden files show it."""
    fields = record.to_dict()
    for name in list(fields):
        if name.endswith("_us"):
            fields[name.removesuffix("_us")] = fields.pop(name)
        elif name.endswith("_bytes"):
            fields[name.removesuffix("_bytes")] = fields.pop(name)
    return shown(fields)
