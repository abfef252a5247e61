"""The golden segments through Spark: records and damage as the vectors have them."""

import hashlib
import json
import re
import uuid
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VECTORS = Path(__file__).parents[1] / "vectors" / "active"
SCHEMA = """
    position bigint, uuid string, timestamp timestamp, type string, value binary, path string,
    _corrupt_record struct<path: string, start: bigint, end: bigint, kind: string, cause: string>
"""
CASES: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_bytes()) for path in sorted(VECTORS.glob("*.json"))}
KEYS = sorted({case["options"]["key"] for case in CASES.values()})


def shown(raw: str) -> str:
    r"""Bytes as the column shows them: what is no UTF-8 as \xNN, and so a backslash."""
    return bytes.fromhex(raw).replace(b"\\", b"\\x5c").decode("utf-8", "backslashreplace")


def unescaped(text: str) -> bytes:
    """The bytes that a text of the column stands for."""
    return re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), text.encode())


def body(value: bytes) -> object:
    """A value as the vectors have it."""
    if len(value) > 96:
        return {"sha256": hashlib.sha256(value).hexdigest(), "length": len(value)}
    return value.hex()


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key[:8])
def test_records_and_damage(spark: SparkSession, key: str, tmp_path: Path) -> None:
    cases = {name: case for name, case in CASES.items() if case["options"]["key"] == key}
    for name in cases:
        (tmp_path / f"{name}.bin").symlink_to(VECTORS / f"{name}.bin")
    frame = spark.read.format("seglake").options(segmentFormat="active", checksumSecret=key).schema(SCHEMA)
    rows = frame.load(str(tmp_path)).selectExpr("*", "unix_micros(timestamp) AS micros").drop("timestamp").collect()
    records: dict[str, list[dict[str, object]]] = defaultdict(list)
    damage: dict[str, list[list[object]]] = defaultdict(list)
    for row in rows:
        if row._corrupt_record is not None:
            span = row._corrupt_record
            damage[Path(span.path).stem].append([span.start, span.end, span.kind, span.cause])
        else:
            records[Path(row.path).stem].append(
                {
                    "position": row.position,
                    "uuid": uuid.UUID(row.uuid).hex,
                    "timestamp": row.micros,
                    "type": row.type,
                    "value": body(bytes(row.value)),
                }
            )
    for name, case in cases.items():
        for found, expected in zip(records[name], case["records"], strict=True):
            if isinstance(expected["type"], str):
                expected["type"] = shown(expected["type"])
            else:  # a long one, of which the vectors have the hash
                found["type"] = body(unescaped(str(found["type"])))
            assert found == expected, name
        assert damage[name] == [span for span in case["ledger"] if span[3] is not None], name
