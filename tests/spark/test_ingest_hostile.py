"""Hostile names and content, through the ingest and the data source: they are values in tables, and nothing else."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hostile
import pyarrow.dataset as ds
import pytest
from hostile import TEXTS, unsafe
from pyspark.sql import SparkSession

import seglake
from seglake._text import path_text
from seglake.cli.ingest import show
from seglake.cli.render import json_text
from seglake.spark import IngestResult, ingest

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning"),
    pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names"),
]

# All that a table's file may be called, whatever the input is.
RUN = r"\d{8}T\d{6}Z-[0-9a-f]{8}"
NAME = rf"{RUN}-(\d{{5}}-[0-9a-f]{{8}}|run)-\d{{5}}\.parquet"
PLACE = re.compile(
    rf"(active|sealed|tenant|chunked|oplog)/(date=(\d{{4}}-\d\d-\d\d|__HIVE_DEFAULT_PARTITION__)/)?{NAME}"
    rf"|(damage|files|runs)/{NAME}|_log/(\d{{20}}\.json|_applied)|_views\.sql"
)


@dataclass(frozen=True)
class Lake:
    """What was ingested, by the real path, and where it is."""

    root: Path
    segments: dict[str, str]
    result: IngestResult

    @property
    def destination(self) -> Path:
        return self.root / "a" / "b" / "lake"

    def rows(self, table: str) -> list[dict[str, Any]]:
        files = [str(path) for path in (self.destination / table).rglob("*.parquet")]
        return ds.dataset(files, format="parquet").to_table().to_pylist()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Lake:
    root = tmp_path_factory.mktemp("hostile")
    sources = root / "a" / "b" / "sources"
    sources.mkdir(parents=True)
    outside = root / "outside"
    outside.mkdir()
    for format, extension in hostile.EXTENSIONS.items():
        hostile.write(root / f"s.{extension}", format)
    segments: dict[str, str] = {}
    for number, name in enumerate(hostile.file_names()):
        if name.startswith((b"_", b".")):
            name = b"x" + name
        format = tuple(hostile.EXTENSIONS)[number % len(hostile.EXTENSIONS)]
        # Folders have such names as well as files.
        folder = sources / os.fsdecode(name) if number % 2 else sources
        folder.mkdir(exist_ok=True)
        path = folder / os.fsdecode(name + b"." + hostile.EXTENSIONS[format].encode())
        hostile.write(path, format, b"%d" % number)
        if number % 3 == 0:
            hostile.damage(path, path)
        segments[str(path)] = format
    hostile.write(outside / "elsewhere.active", "active")
    (sources / "linked").symlink_to(outside)
    (sources / "nowhere.active").symlink_to(root / "none")
    os.mkfifo(sources / "pipe\x1b[5;45m.active")
    (sources / "no segment \x1b[5;45m\n").write_bytes(b"neither a segment nor anything else")
    result = ingest(str(sources), root / "a" / "b" / "lake", spark=spark, final=True)
    return Lake(root, segments, result)


def test_all_was_read(lake: Lake) -> None:
    assert lake.result.files == len(lake.segments) + 1
    [(path, status, reason)] = lake.result.errors
    assert "no segment" in path
    assert status == "not_a_segment"
    assert reason.isprintable()
    listed = [row["path"] for row in lake.rows("files") if not row["error"]]
    assert sorted(listed) == sorted(map(path_text, lake.segments))
    assert len(lake.result.skipped) == 3


def test_no_name_or_content_becomes_a_path(lake: Lake) -> None:
    places = [path.relative_to(lake.destination).as_posix() for path in lake.destination.rglob("*") if path.is_file()]
    assert [place for place in places if not PLACE.fullmatch(place)] == []
    assert {path.name for path in lake.destination.iterdir()} <= {
        "_staging",
        *hostile.EXTENSIONS,
        "damage",
        "files",
        "runs",
        "_log",
        "_views.sql",
    }
    assert {path.name for path in lake.root.iterdir()} == {
        *(f"s.{extension}" for extension in hostile.EXTENSIONS.values()),
        "s.index",
        "a",
        "outside",
    }
    assert {path.name for path in (lake.root / "a" / "b").iterdir()} == {"sources", "lake"}
    assert [path.name for path in (lake.root / "outside").iterdir()] == ["elsewhere.active"]


def test_what_was_written_is_what_is_read(lake: Lake) -> None:
    for format in hostile.EXTENSIONS:
        rows = lake.rows(format)
        for path in (path for path, its in lake.segments.items() if its == format):
            found = [row for row in rows if row["path"] == path_text(path)]
            expected = list(seglake.open(path, on_damage="skip"))
            assert [row["value"] for row in found] == [record.value for record in expected]
            for name in {"type", "tenant"} & set(rows[0]):
                assert [row[name] for row in found] == [getattr(record, name) for record in expected]


def test_damage_is_kept_as_it_is(lake: Lake) -> None:
    damaged = [path for path in lake.segments if not seglake.verify(path).ok]
    assert damaged
    for path in damaged:
        content = Path(path).read_bytes()
        for row in lake.rows("damage"):
            if row["path"] == path_text(path):
                assert row["raw"] == content[row["start"] : row["end"]]


def test_the_data_source_reads_them_too(lake: Lake, spark: SparkSession) -> None:
    active = [path for path, format in lake.segments.items() if format == "active"]
    readable = [path for path in active if path.isprintable() and not re.search(r"[\ud800-\udfff]", path)]
    assert readable
    for path in readable[:2]:
        rows = spark.read.format("seglake").option("mode", "DROPMALFORMED").load(path).collect()
        assert [row.type for row in rows] == [record.type for record in seglake.open(path, on_damage="skip")]


def test_tenants_are_values_and_no_sql(spark: SparkSession, lake: Lake) -> None:
    segment = str(lake.root / "s.tenant")
    tenants = [record.tenant for record in seglake.open(segment)]
    for tenant in ("'; DROP TABLE records; -- \" OR 1=1", "../../outside", "%s %n"):
        [asked] = [each for each in tenants if each.startswith(tenant)]
        load = spark.read.format("seglake").option("tenants", json.dumps([asked])).load(segment)
        assert [row.tenant for row in load.collect()] == [asked]


def test_what_the_command_shows_of_it_is_text(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    show(lake.result, sys.stdout)
    out = capsys.readouterr().out
    assert "5;45" in out
    assert unsafe(out) == []
    line = json_text(lake.result.to_dict())
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["files"] == lake.result.files


def test_the_texts_are_hostile() -> None:
    assert any(b"../" in text for text in TEXTS)
    assert sum(not text.decode("utf-8", "replace").isprintable() for text in TEXTS) > 5
