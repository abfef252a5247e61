"""A format that only the core knows works in Python, on the command line and in Spark."""

# The stub has what is shipped.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import json
import random
import subprocess
import sys
import warnings
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import seglake
from seglake.spark.java import ensure_java
from tests.python import sharded_reference as reference

START = datetime(2024, 1, 10, 16, tzinfo=UTC)
COUNT = 1000


def fields(number: int) -> dict[str, Any]:
    return {
        "timestamp": START + timedelta(seconds=number),
        "shard": number % 3,
        "sequence": number // 3,
        "level": number % 8,
        "value": b"value %d" % number,
    }


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / "a.sharded"
    with seglake.create(path, format="sharded") as writer:
        for number in range(COUNT):
            assert writer.write(**fields(number)) == (number % 3, number // 3)
    return path


@pytest.fixture
def damaged(segment: Path) -> Path:
    """A bit of one record is flipped."""
    content = bytearray(segment.read_bytes())
    content[content.index(b"value 500")] ^= 4
    segment.write_bytes(content)
    return segment


def run(*arguments: object, status: int = 0) -> str:
    command = [sys.executable, "-m", "seglake", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_files_are_what_the_rules_say(segment: Path) -> None:
    records, ledger = reference.scan(segment.read_bytes())
    with seglake.open(segment) as reader:
        assert [(own.shard, own.sequence, own.level, own.value.hex()) for own in reader] == [
            (own["shard"], own["sequence"], own["level"], own["value"]) for own in records
        ]
        spans = [[own.start, own.end, own.kind, own.cause] for own in reader.ledger()]
        assert spans == ledger


def test_random_damage_is_what_the_rules_say() -> None:
    draw = random.Random(5)
    sound = b"".join(map(reference.encode, reference.typical(12)))
    for _ in range(3_000):
        content = bytearray(sound)
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(len(content))
            match draw.randrange(4):
                case 0:
                    content[at] ^= 1 << draw.randrange(8)
                case 1:
                    del content[at : at + draw.randrange(1, 60)]
                case 2:
                    content[at:at] = draw.randbytes(draw.randrange(1, 60))
                case _:
                    content[at : at + 20] = bytes(len(content[at : at + 20]))
        body_bytes = draw.choice([0, 3, 10, 40, reference.MAX_BODY_BYTES])
        records, ledger = reference.scan(bytes(content), body_bytes)
        limits = {"body_bytes": body_bytes}
        with seglake.open(bytes(content), format="sharded", on_damage="skip", limits=limits) as reader:
            found = [list(own) for own in reader.ledger()]
            assert found == ledger
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", seglake.DamageWarning)
                assert [own.position for own in reader] == [own["position"] for own in records]


def test_a_record_is_found_by_shard_and_sequence(segment: Path) -> None:
    with seglake.open(segment) as reader:
        record = reader.get(2, 100)
        assert record is not None
        assert (record.timestamp, record.level) == (START + timedelta(seconds=302), 302 % 8)
        assert reader.get(shard=0, sequence=COUNT) is None
        many = reader.get_many([(0, 0), (9, 9), (1, 5)])
        assert [own and own.value for own in many] == [b"value 0", None, b"value 16"]
        with pytest.raises(TypeError, match="found by shard, sequence"):
            reader.get(5)


def test_arrow_and_filters(segment: Path) -> None:
    since, until = START + timedelta(seconds=10), START + timedelta(seconds=13)
    filters: list[Any] = [("timestamp", ">=", since), ("timestamp", "<", until)]
    with seglake.open(segment, filters=filters) as reader:
        table = pa.table(reader)
    assert table.column_names == ["timestamp", "shard", "sequence", "level", "value"]
    assert table["value"].to_pylist() == [b"value 10", b"value 11", b"value 12"]
    with seglake.open(segment, filters=[("shard", "==", 2), ("level", "in", [1, 3]), ("sequence", "<", 20)]) as reader:
        found = [int(own.value.split()[1]) for own in reader]
    assert found == [number for number in range(60) if number % 3 == 2 and number % 8 in (1, 3)]
    with pytest.raises(ValueError, match="cannot filter sharded records by type"):
        seglake.open(segment, filters=[("type", "in", ["a"])])


def test_an_option_of_its_own(segment: Path, tmp_path: Path) -> None:
    own = seglake.formats()["sharded"]
    option = own.open_options["body_bytes"]
    assert (option.kind, option.default, option.minimum, option.maximum) == ("bytes", 2**32 - 1, 0, 2**32 - 1)
    assert own.create_options["body_bytes"] == option
    # Values have 7 to 9 bytes.
    report = seglake.verify(segment, limits={"body_bytes": 8})
    assert report.records == 100
    (span,) = report.damage
    assert (span.kind, span.cause, span.end) == ("corrupt", "length_out_of_bounds", segment.stat().st_size)
    with pytest.raises(seglake.DamageError, match="length_out_of_bounds"):
        list(seglake.open(segment, limits={"body_bytes": 8}))
    with pytest.raises(ValueError, match="body_bytes is 4294967296: expected 0 to 4294967295"):
        seglake.open(segment, limits={"body_bytes": 1 << 32})
    with pytest.raises(ValueError, match="body_bytes does not concern active files"):
        seglake.open(b"", format="active", limits={"body_bytes": 8})
    with (
        seglake.create(tmp_path / "b.sharded", format="sharded", options={"body_bytes": 8}) as writer,
        pytest.raises(ValueError, match="value has 9 bytes: body_bytes allows 8"),
    ):
        for number in range(COUNT):
            writer.write(**fields(number))
    assert seglake.verify(tmp_path / "b.sharded").records == 100
    with pytest.raises(ValueError, match="body_bytes does not concern active files"):
        seglake.create(tmp_path / "b.active", format="active", options={"body_bytes": 8})


def test_damage_is_told_explained_and_recovered(damaged: Path, tmp_path: Path) -> None:
    with pytest.raises(seglake.DamageError) as raised, seglake.open(damaged) as reader:
        list(reader)
    assert raised.value.cause == "checksum_mismatch"
    report = seglake.verify(damaged, explain=True)
    assert report.records == COUNT - 1
    (diagnosis,) = report.diagnoses
    assert diagnosis.reason == "flipped_bit"
    assert diagnosis.before is not None
    assert diagnosis.before.id == {"shard": 499 % 3, "sequence": 499 // 3}
    recovered = tmp_path / "b.sharded"
    seglake.recover(damaged, recovered)
    assert seglake.verify(recovered).ok
    undone = tmp_path / "c.sharded"
    seglake.undo_recover(recovered, undone)
    assert undone.read_bytes() == damaged.read_bytes()


def test_appending_and_torn_tails(segment: Path) -> None:
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-3])
    with pytest.raises(seglake.DamageError, match="length_out_of_bounds"):
        seglake.create(segment, format="sharded", if_exists="append")
    with seglake.create(segment, format="sharded", if_exists="append", zero_torn_tail=True) as writer:
        assert writer.last == ((COUNT - 2) % 3, (COUNT - 2) // 3)
        writer.write(**fields(COUNT - 1))
    assert segment.read_bytes() == whole
    for wrong in ({"level": 256}, {"shard": -1}, {"shard": 65536}):
        with (
            seglake.create(segment, format="sharded", if_exists="append") as writer,
            pytest.raises(ValueError, match="a record holds 0 to"),
        ):
            writer.write(**{**fields(0), **wrong})
    assert segment.read_bytes() == whole


def test_a_torn_tail_that_holds_records_is_not_cut_off(segment: Path) -> None:
    """A damaged length that leads to the end of the file hides the records before that."""
    whole = segment.read_bytes()
    starts = [own["position"] for own in reference.scan(whole)[0]]
    at = starts[-5]
    length = len(whole) - at - reference.HEADER.size
    segment.write_bytes(whole[:at] + length.to_bytes(4, "big") + whole[at + 4 :])
    kept = segment.read_bytes()
    assert reference.scan(kept)[1][-1][2] == "torn_tail"
    with pytest.raises(seglake.DamageError, match="checksum_mismatch"):
        seglake.create(segment, format="sharded", if_exists="append", zero_torn_tail=True)
    assert segment.read_bytes() == kept


def test_converting_there_and_back(segment: Path, tmp_path: Path) -> None:
    with pytest.raises(seglake.ColumnsError, match="cannot store shard, sequence, level"):
        seglake.convert(segment, tmp_path / "a.chunks", to="chunked")
    seglake.convert(segment, tmp_path / "a.chunks", to="chunked", drop=["shard", "sequence", "level"])
    values = {"shard": 1, "sequence": 2, "level": 3}
    seglake.convert(tmp_path / "a.chunks", tmp_path / "b.sharded", to="sharded", drop=["offset"], set=values)
    with seglake.open(tmp_path / "b.sharded") as reader:
        assert [(own.shard, own.level, own.value) for own in reader] == [
            (1, 3, b"value %d" % own) for own in range(COUNT)
        ]


def test_the_command_line(damaged: Path) -> None:
    lines = run("cat", "--json", "--on-damage", "skip", "--limit", "2", damaged).splitlines()
    assert json.loads(lines[1])["sequence"] == 0
    assert run("cat", "--get", "2/100", "--columns", "level,value", damaged).split() == ["6", "value", "302"]
    assert "SHARD/SEQUENCE" in run("cat", "--get", "x", damaged, status=2)
    assert "flipped bit" in run("verify", damaged, status=1)
    assert "shard" in run("info", damaged)
    where = ("--where", "shard == 1", "--where", "sequence<3", "--on-damage", "skip")
    chosen = run("cat", *where, "--columns", "sequence,value", damaged, status=1)
    found = [line.split() for line in chosen.splitlines() if "value" in line]
    assert found == [["0", "value", "1"], ["1", "value", "4"], ["2", "value", "7"]]
    assert "length_out_of_bounds" in run("verify", "--limits", "body_bytes=8", damaged, status=1)
    assert run("cat", "--limits", "body_bytes=8", "--on-damage", "skip", damaged, status=1).count("value ") == 100


def test_converting_on_the_command_line(segment: Path) -> None:
    new = segment.with_name("new.sharded")
    assert "body_bytes allows 8" in run("convert", segment, new, "--option", "body_bytes=8", status=2)
    assert not new.exists()
    run("convert", segment, new, "--option", "body_bytes=9", "--limits", "body_bytes=1KiB")
    assert new.read_bytes() == segment.read_bytes()
    assert "expected 0 to 4294967295 bytes" in " ".join(
        run("convert", segment, new, "--option", "body_bytes=4GiB", status=2).split()
    )


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    ensure_java()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    yield session
    session.stop()


def test_spark_reads_filters_and_writes(damaged: Path, tmp_path: Path, spark: SparkSession) -> None:
    frame = spark.read.format("seglake").option("mode", "DROPMALFORMED").load(str(damaged))
    assert frame.count() == COUNT - 1
    assert frame.where("level = 3 and shard = 1").count() == len(
        [number for number in range(COUNT) if number % 8 == 3 and number % 3 == 1 and number != 500]
    )
    late = frame.where(F.col("timestamp") >= F.lit(START + timedelta(seconds=990)))
    assert late.count() == 10
    out = tmp_path / "out"
    late.drop("_corrupt_record").write.format("seglake").option("segmentFormat", "sharded").mode("append").save(
        str(out)
    )
    written = sorted(out.glob("*.sharded"))
    bodies = [record["value"] for path in written for record in reference.scan(path.read_bytes())[0]]
    assert sorted(map(bytes.fromhex, bodies)) == [b"value %d" % number for number in range(990, COUNT)]


def test_spark_has_its_option(segment: Path, tmp_path: Path, spark: SparkSession) -> None:
    loaded = spark.read.format("seglake").option("mode", "DROPMALFORMED").option("bodyBytes", "8")
    assert loaded.load(str(segment)).count() == 100
    frame = spark.read.format("seglake").load(str(segment)).drop("_corrupt_record")
    writer = frame.write.format("seglake").option("segmentFormat", "sharded").mode("append")
    with pytest.raises(Exception, match="body_bytes allows 8"):
        writer.option("bodyBytes", "8").save(str(tmp_path / "out"))
    writer.option("bodyBytes", "1k").save(str(tmp_path / "out"))
    assert spark.read.format("seglake").load(str(tmp_path / "out")).count() == COUNT
    with pytest.raises(Exception, match="option bodyBytes does not concern format active"):
        active = frame.write.format("seglake").option("segmentFormat", "active").mode("append")
        active.option("bodyBytes", "8").save(str(tmp_path))


def test_the_checksum_is_that_of_zlib() -> None:
    record = reference.encode(reference.Record(1, 2, 3, 4, b"body"))
    assert record[23:27] == zlib.crc32(record[:23] + b"body").to_bytes(4, "big")
