"""The examples of the documents on Spark and on the ingest run as they stand there."""

import inspect
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from documents import table
from pyspark.sql import SparkSession
from segments import DAY, flip, write_segment

import seglake
import seglake.spark
from seglake.lake.parquet import DAMAGE_SCHEMA, FILES_SCHEMA, RUNS_SCHEMA
from seglake.lake.result import IngestArguments
from seglake.lake.views import VIEWS
from seglake.read.formats import LOCATION_COLUMNS
from seglake.spark.functions import from_oplog
from seglake.spark.option_table import Purpose, options_of

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


@pytest.fixture
def data(tmp_path: Path) -> Path:
    data = tmp_path / "demo-data"
    for vector, name in FILES.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tests/vectors" / vector, data / name)
    return data


def test_sql_runs(spark: SparkSession, data: Path) -> None:
    code = re.search(r"^```sql\n(.*?);\n(.*?);\n```$", (ROOT / "docs" / "spark.md").read_text(), re.M | re.S)
    assert code is not None
    spark.sql(code[1].replace("demo-data", str(data)))
    try:
        assert spark.sql(code[2]).collect()
    finally:
        spark.catalog.dropTempView("flights")


@pytest.mark.parametrize("code", EXAMPLES)
def test_examples_run(spark: SparkSession, data: Path, code: str, capfd: pytest.CaptureFixture[str]) -> None:
    if "readStream" in code:
        pytest.importorskip("pyspark.sql.streaming.datasource", reason="streams need PySpark 4.2")
    assert '"demo-data/' in code
    exec(code.replace("demo-data", str(data)), {})
    assert capfd.readouterr().out


def test_the_views_show_what_is_there_now(tmp_path: Path) -> None:
    src, lake = tmp_path / "src", tmp_path / "lake"
    at = write_segment(src / "a.active", 10)[3]
    sound = (src / "a.active").read_bytes()
    flip(src / "a.active", at.end - 9)
    write_segment(src / "c.active", 5, first=DAY.replace(month=3))
    seglake.ingest(src, lake)
    (src / "c.active").rename(src / "d.active")
    seglake.ingest(src, lake)
    with duckdb.connect() as connection:
        connection.execute((lake / VIEWS).read_text())
        now = connection.sql("SELECT path, status FROM files_now ORDER BY path").fetchall()
        assert now == [(str(src / "a.active"), "damaged"), (str(src / "d.active"), "sound")]
        damage = connection.sql('SELECT path, start, "end" FROM damage_now').fetchall()
        assert damage == [(str(src / "a.active"), at.start, at.end)]
        assert len(connection.sql("SELECT * FROM runs").fetchall()) == 2
        (src / "a.active").write_bytes(sound)
        seglake.ingest(src, lake)
        assert connection.sql("SELECT * FROM damage_now").fetchall() == []
        assert {status for _, status in connection.sql("SELECT path, status FROM files_now").fetchall()} == {"sound"}


def names_in(document: str, heading: str) -> list[str]:
    """The code in the first column of the tables behind a heading, up to the next one."""
    text = (ROOT / "docs" / document).read_text()
    section = re.split(r"\n##+ ", text[text.index(f"\n{heading}\n") + len(heading) + 2 :])[0]
    cells = re.findall(r"^\| (`[^|]*) \|", section, re.M)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def rows_in(document: str, heading: str) -> list[list[str]]:
    """The rows of the first table behind a heading, without the one of titles."""
    text = (ROOT / "docs" / document).read_text()
    table = re.search(r"(?:^\|.*\n)+", text[text.index(f"\n{heading}\n") :], re.M)
    assert table is not None
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in table[0].splitlines()[2:]]


@pytest.mark.parametrize(
    ("heading", "purpose"), [("## Options", "reading"), ("### Files", "writing"), ("## Streams", "streaming")]
)
def test_every_option_is_described_as_the_table_of_options_has_it(heading: str, purpose: Purpose) -> None:
    described = [
        (name, kind, default, about)
        for names, kind, default, _example, about in rows_in("spark.md", heading)
        for name in re.findall(r"`([^`]+)`", names)
    ]
    table = [(option.name, option.kind, option.shown_default, option.about) for option in options_of(purpose)]
    if purpose == "streaming":  # those of reading are described there
        reading = options_of("reading")
        table = [row for row in table if row[0] not in {option.name for option in reading}]
    assert sorted(described) == sorted(table)


def test_every_column_is_described() -> None:
    assert names_in("spark.md", "### Where a record is") == list(LOCATION_COLUMNS)
    assert names_in("ingest.md", "## Tables") == [
        "source",
        "path",
        "position",
        *DAMAGE_SCHEMA.names,
        *FILES_SCHEMA.names,
        *RUNS_SCHEMA.names,
    ]


@pytest.mark.parametrize(
    ("document", "heading", "functions", "positional"),
    [
        ("ingest.md", "## Arguments", [seglake.ingest, seglake.spark.ingest], ["sources", "destination"]),
        ("spark.md", "## Messages in a column", [from_oplog], []),
    ],
)
def test_every_argument_is_described(
    document: str, heading: str, functions: list[Callable[..., object]], positional: list[str]
) -> None:
    described = [*positional, *names_in(document, heading)]
    parameters = [each for function in functions for each in inspect.signature(function).parameters.values()]
    arguments = {each.name for each in parameters if each.kind != each.VAR_KEYWORD}
    if any(each.kind == each.VAR_KEYWORD for each in parameters):
        arguments |= IngestArguments.__annotations__.keys()
    assert sorted(described) == sorted(arguments)


def test_versions_are_those_that_are_pinned() -> None:
    tested = table(ROOT / "docs" / "spark.md", "## Versions of PySpark")[-1]
    assert tested.pop("") == "tested with"
    pinned: dict[str, str] = {}
    for path in (ROOT / "requirements" / "spark").glob("*.txt"):
        pins = dict(re.findall(r"^(pyspark|pyarrow)==(\S+)$", path.read_text(), re.M))
        pinned[path.stem] = f"{pins['pyspark']}, pyarrow {pins['pyarrow'].rpartition('.')[0]}"
    assert tested == pinned
