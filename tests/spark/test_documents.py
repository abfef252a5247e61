"""The examples of the documents on Spark and on the ingest run as they stand there."""

import inspect
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import seglake.spark
from seglake.spark.functions import from_oplog
from seglake.spark.ingestion.tables import DAMAGE_SCHEMA, FILES_SCHEMA
from seglake.spark.option_names import Purpose, options_of

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
# What the demo's files are stood in for by.
FILES = {
    "active/typical.bin": "segments/active/2013-02.active",
    "tenant/typical.bin": "segments/tenant/2013-02.tenant",
    "autobase/real-plain-c.oplog": "segments/oplog/JFK.oplog",
}
EXAMPLES = [
    pytest.param(match[1], id=f"{name}-{number}")
    for name in ("spark.md", "ingest.md")
    for number, match in enumerate(re.finditer(r"^```py\n(.*?)^```$", (ROOT / "docs" / name).read_text(), re.M | re.S))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_examples_run(spark: SparkSession, tmp_path: Path, code: str, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "demo-data"
    for vector, name in FILES.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tests/vectors" / vector, data / name)
    assert "demo-data/segments" in code
    exec(code.replace("demo-data", str(data)), {})
    assert capfd.readouterr().out


def names_in(document: str, heading: str) -> list[str]:
    """The code in the first column of the tables behind a heading, up to the next one."""
    text = (ROOT / "docs" / document).read_text()
    section = re.split(r"\n##+ ", text[text.index(f"\n{heading}\n") + len(heading) + 2 :])[0]
    cells = re.findall(r"^\| (`[^|]*) \|", section, re.M)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize(("heading", "purpose"), [("## Options", "reading"), ("### Files", "writing")])
def test_every_option_is_described(heading: str, purpose: Purpose) -> None:
    assert sorted(names_in("spark.md", heading)) == sorted(options_of(purpose))


def test_every_column_is_described() -> None:
    assert names_in("ingest.md", "## Tables") == ["path", "position", *DAMAGE_SCHEMA.names, *FILES_SCHEMA.names]


@pytest.mark.parametrize(
    ("document", "heading", "function", "positional"),
    [
        ("ingest.md", "## Arguments", seglake.spark.ingest, ["sources", "dst"]),
        ("spark.md", "## Messages in a column", from_oplog, []),
    ],
)
def test_every_argument_is_described(
    document: str, heading: str, function: Callable[..., object], positional: list[str]
) -> None:
    described = [*positional, *names_in(document, heading)]
    assert sorted(described) == sorted(inspect.signature(function).parameters)
