"""The examples of the documents on Spark and on the ingest run as they stand there."""

import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from seglake.spark.ingestion.tables import DAMAGE_SCHEMA, FILES_SCHEMA
from seglake.spark.options import ReadOptions

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
EXAMPLES = [
    pytest.param(match[1], id=f"{name}-{number}")
    for name in ("spark.md", "ingest.md")
    for number, match in enumerate(re.finditer(r"^```py\n(.*?)^```$", (ROOT / "docs" / name).read_text(), re.M | re.S))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_examples_run(spark: SparkSession, tmp_path: Path, code: str, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "demo-data"
    (data / "segments").mkdir(parents=True)
    shutil.copy(ROOT / "tests/vectors/active/typical.bin", data / "segments/2013-02.active")
    assert "demo-data/segments" in code
    exec(code.replace("demo-data", str(data)), {})
    assert capfd.readouterr().out


def names_in(document: str, heading: str) -> list[str]:
    """The code in the first column of the tables behind a heading, up to the next one."""
    text = (ROOT / "docs" / document).read_text()
    section = text[text.index(f"\n{heading}\n") + len(heading) + 2 :].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", section, re.M)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_every_option_is_described() -> None:
    with pytest.raises(ValueError, match="The options are") as error:
        ReadOptions.parse({"path": "/", "zzzzzzzz": ""})
    known = str(error.value).partition("The options are ")[2].rstrip(".").split(", ")
    described = names_in("spark.md", "## Options")
    assert sorted(described) == sorted(known)


def test_every_column_is_described() -> None:
    assert names_in("ingest.md", "## Tables") == ["path", "position", *DAMAGE_SCHEMA.names, *FILES_SCHEMA.names]
