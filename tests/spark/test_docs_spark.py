"""The Spark code in the documents runs, and does what they say."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from documents import DOCUMENTS, ROOT, Block, blocks
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WITH_SPARK = [block for document in DOCUMENTS for block in blocks(document, "python") if "spark" in block.text]


def test_the_readme_shows_spark() -> None:
    assert ROOT / "README.md" in [block.document for block in WITH_SPARK]


@pytest.mark.parametrize("block", WITH_SPARK, ids=str)
def test_spark_code_runs(block: Block, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Which session there is, the tests say; behind Connect the code would ask for its address.
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda _: spark)
    # The demo's segments are stood in for by a golden one; the JVM has a working directory of its own.
    segments = tmp_path / "segments"
    for folder in (segments, segments / "active"):
        folder.mkdir()
        shutil.copyfile(ROOT / "tests" / "vectors" / "active" / "flip_message.bin", folder / "2013-01.active")
    is_readme = block.document.name == "README.md"
    assert ('"tests/vectors/' if is_readme else '"demo-data/segments') in block.text
    names: dict[str, Any] = {}
    code = block.text.replace("demo-data/segments", segments.as_posix()).replace(
        '"tests/', f'"{ROOT.as_posix()}/tests/'
    )
    exec(code, names)
    assert names["records" if is_readme else "flights"].where("uuid IS NOT NULL").count() == 9
    (damaged,) = names["damage"].collect()
    assert (damaged["start"], damaged["end"], damaged["kind"]) == (308, 411, "corrupt")
    assert damaged["cause"] == "checksum_mismatch"
