"""Records that options choose in Spark: that results are those of reading everything, and how much is read."""

from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession
from samples import SAMPLES

import seglake

pytestmark = pytest.mark.spark

ON = "spark.sql.python.filterPushdown.enabled"
FORMATS = ("active", "sealed", "tenant", "chunked")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("filters")
    for name in FORMATS:
        sample = SAMPLES[name]
        sample.write(root / f"{name}.{sample.extension}", 60)
    return root


def file_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.{SAMPLES[name].extension}"


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each format, of a sound file and two damaged ones."""
    root = tmp_path_factory.mktemp("damaged")
    random = Random(7)
    for name, sample in SAMPLES.items():
        if sample.read_options:
            continue
        for number in range(3):
            path = root / name / f"{number}.{sample.extension}"
            sample.write(path, 60)
            content = bytearray(path.read_bytes())
            if sample.format == "oplog":  # which has no checksum to notice bits by
                del content[len(content) - number * 5 :]
                number = 0
            for _ in range(number):
                content[random.randrange(len(content))] ^= 1 << random.randrange(8)
            path.write_bytes(content)
    return root


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[Callable[[bool], None]]:
    """Switches pushing down on and off."""
    yield lambda on: spark.conf.set(ON, str(on).lower())
    spark.conf.unset(ON)


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("seglake").options(**options).load(str(path))


def collected(frame: DataFrame) -> list[str]:
    return sorted(str(row) for row in frame.collect())


@pytest.mark.parametrize(
    ("name", "options", "predicate"),
    [
        ("active", {"types": "t/1,t/2"}, "type IN ('t/1', 't/2')"),
        ("sealed", {"where": "type = 't/0' AND timestamp >= 2024-01-31"}, "type = 't/0'"),
        ("active", {"where": "type LIKE 't/%'"}, "type LIKE 't/%'"),
        ("sealed", {"types": '["t/0"]', "since": "2024-01-31T00:20:00Z"}, "type = 't/0' AND minute(timestamp) >= 20"),
        ("active", {"types": ' ["t/0"] '}, "type = 't/0'"),
        ("tenant", {"tenants": "carrier 1", "partitions": "2,3"}, "tenant = 'carrier 1' AND partition IN (2, 3)"),
        ("chunked", {"startOffset": "120", "endOffset": "150"}, "offset >= 120 AND offset < 150"),
    ],
)
def test_options_choose_as_filters_do(
    spark: SparkSession, damaged: Path, name: str, options: dict[str, str], predicate: str
) -> None:
    expected = collected(load(spark, damaged / name).where(predicate))
    assert expected
    assert collected(load(spark, damaged / name, **options).where("value IS NOT NULL")) == expected


def test_damage_is_met_where_it_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """A job that fails at damage does not fail at what options leave unread, and only then."""
    path = tmp_path / "file.tenant"
    SAMPLES["tenant"].write(path, 60)
    with seglake.open(path) as reader:
        position = next(record.position for record in reader if record.partition == 4)
    content = bytearray(path.read_bytes())
    content[position + 6] ^= 1
    path.write_bytes(content)
    assert load(spark, path, mode="FAILFAST", partitions="1").count() == 10
    with pytest.raises(Exception, match="checksum_mismatch"):
        load(spark, path, mode="FAILFAST", partitions="4").collect()
    with pytest.raises(Exception, match="checksum_mismatch"):
        load(spark, path, mode="FAILFAST").where("partition = 1").collect()


@pytest.mark.parametrize("on", [False, True])
def test_a_frame_may_be_used_with_several_filters(
    spark: SparkSession, damaged: Path, pushing: Callable[[bool], None], on: bool
) -> None:
    """PySpark uses the reader of a frame's last query with filters again, where queries have others or none.

    So a reader that takes filters would leave out rows of later queries of the frame.
    """
    pushing(on)
    frame = load(spark, damaged / "active")
    rows = frame.count()
    broken, sound = frame.where("_corrupt_record IS NOT NULL"), frame.where("_corrupt_record IS NULL")
    kinds = [frame.where(f"type = 't/{number}'") for number in range(3)]
    counts = [each.count() for each in (broken, sound, *kinds)]
    assert counts[0] > 0
    assert counts[0] + counts[1] == rows == counts[0] + sum(counts[2:])
    assert frame.count() == rows
    together = reduce(lambda one, other: one.union(other), [each.groupBy().count() for each in (broken, sound, *kinds)])
    assert [row[0] for row in together.collect()] == counts
    assert broken.union(sound).count() == rows


def test_a_wrong_name_is_refused_on_the_driver(spark: SparkSession, folder: Path) -> None:
    for name, options, message in (
        ("active", {"types": "a\\b"}, r"option types is .*expected \\xNN after each backslash"),
        ("active", {"types": "[1]"}, "option types is .*expected types with commas"),
        ("tenant", {"types": "a"}, "option types does not concern format tenant: its records have no column type"),
    ):
        with pytest.raises(Exception, match=message):
            load(spark, file_of(folder, name), **options).schema  # noqa: B018 - behind Connect, loading asks nothing
