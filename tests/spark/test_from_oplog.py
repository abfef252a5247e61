"""`from_oplog`: messages in a column become structs. Over Spark Connect: test_clusters.py."""

import re
from pathlib import Path
from typing import Any

import pytest
from golden_files import VECTORS, plain
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from samples import autobase, draft, includes

import seglake
from seglake.spark.functions import from_oplog

pytestmark = pytest.mark.spark

DIALECTS = {"draft": draft, "draft-1.1": draft, "autobase": autobase}
ERROR = "struct<cause:string,byte_offset:bigint,message:string>"


def encode(dialect: str, fields: dict[str, Any], seq: int) -> bytes:
    if dialect == "draft-1.1":
        fields = {**fields, "seq": seq}
    return seglake.oplog.encode(fields, dialect=dialect)  # pyright: ignore


def frame_of(spark: SparkSession, messages: list[bytes | None]) -> DataFrame:
    return spark.createDataFrame([(n, message) for n, message in enumerate(messages)], "n bigint, message binary")


def structs(frame: DataFrame) -> list[Any]:
    return [plain(row[0].asDict(recursive=True)) if row[0] is not None else None for row in frame.collect()]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_messages_become_structs(spark: SparkSession, dialect: Any) -> None:
    made = [DIALECTS[dialect](number) for number in range(30)]
    messages = [encode(dialect, fields, number) for number, fields in enumerate(made)]
    frame = frame_of(spark, [*messages, None]).orderBy("n").select(from_oplog("message", dialect, seq="n"))
    *found, absent = structs(frame)
    assert absent is None
    assert {str(each.pop("_error")) for each in found} == {"None"}
    assert includes(found, made)
    decoded = [seglake.oplog.decode(message, dialect=dialect, seq=n) for n, message in enumerate(messages)]
    for each, record in zip(found, decoded, strict=True):
        expected = record.to_dict()
        assert each == {name: expected[name] for name in expected if name not in ("seq", "position")}


def test_the_type_is_that_of_the_dialect(spark: SparkSession) -> None:
    frame = frame_of(spark, [])
    checked = {
        "draft": "clock:array<struct<key:binary,length:bigint>>",
        "draft-1.1": "clock:array<struct<key:binary,length:bigint,seq:bigint,offset:bigint>>",
        "autobase": "digest:struct<pointer:bigint,key:binary>",
    }
    for dialect, part in checked.items():
        shown = frame.select(from_oplog("message", dialect)).schema[0].dataType.simpleString()  # pyright: ignore
        assert shown.startswith("struct<version:bigint,checkpointer:bigint,checkpoint:struct<")
        assert part in shown
        assert shown.endswith(f",_error:{ERROR}>")
    strict = frame.select(from_oplog("message", mode="FAILFAST")).schema[0].dataType.simpleString()
    assert "_error" not in strict
    wide = frame.select(from_oplog("message", uint64_type="decimal", error_field="why")).schema[0].dataType
    assert wide.simpleString().startswith("struct<version:decimal(20,0),")
    assert wide.simpleString().endswith(f",why:{ERROR}>")


def test_a_bad_message_has_no_fields_but_an_error(spark: SparkSession) -> None:
    sound = encode("draft", draft(1), 0)
    bad = {"cut": sound[:-2], "longer": sound + b"x", "empty": b""}
    causes = {"cut": "length_out_of_bounds", "longer": "trailing_bytes"}
    frame = frame_of(spark, [sound, *bad.values(), sound]).orderBy("n")
    first, *rows, last = structs(frame.select(from_oplog(frame.message)))
    assert first == last
    assert first["_error"] is None
    for name, row in zip(bad, rows, strict=True):
        error = row.pop("_error")
        assert set(row.values()) == {None}
        with pytest.raises(seglake.DamageError) as damage:
            seglake.oplog.decode(bad[name])
        assert (error["cause"], error["byte_offset"]) == (damage.value.cause, damage.value.byte_offset)
        assert error["cause"] == causes.get(name, error["cause"])
        assert error["message"] == f"expected {damage.value.expected}, found {damage.value.actual}"


def test_failfast_fails(spark: SparkSession) -> None:
    sound = encode("draft", draft(1), 0)
    assert structs(frame_of(spark, [sound]).select(from_oplog("message", mode="FAILFAST")))[0]["version"] == 1
    with pytest.raises(PySparkException, match=r"DamageError: .*This is no message of dialect draft\. Mode PERMISSIVE"):
        frame_of(spark, [sound, sound[:-2]]).select(from_oplog("message", mode="FAILFAST")).collect()


def test_a_number_too_large_for_bigint(spark: SparkSession) -> None:
    fields = draft(4)
    large = {**fields, "clock": [{"key": bytes(32), "length": 2**63}]}
    frame = frame_of(spark, [encode("draft", each, 0) for each in (fields, large, fields)]).orderBy("n")
    first, second, third = structs(frame.select(from_oplog("message")))
    assert first == third
    error = second.pop("_error")
    assert set(second.values()) == {None}
    assert (error["cause"], error["byte_offset"]) == (None, None)
    assert re.match(r'field clock\.length: 9223372036854775808 is above .*uint64_type="decimal"', error["message"])
    with pytest.raises(PySparkException, match=r"LimitError: field clock\.length"):
        frame.select(from_oplog("message", mode="FAILFAST")).collect()
    decimals = structs(frame.select(from_oplog("message", mode="FAILFAST", uint64_type="decimal")))
    assert includes(decimals, [fields, large, fields])


def test_references_to_what_is_not_there_leave_the_key_out(spark: SparkSession) -> None:
    """The second message refers to a key of the first and to one of its own."""
    data = (VECTORS / "oplog" / "reference_forward_11.bin").read_bytes()
    messages = [data[1:50], data[51:145]]
    known = seglake.open(data, format="oplog", options={"dialect": "draft-1.1"}, on_damage="skip").get(1)
    assert known is not None
    keys = [entry["key"] for entry in known.clock]
    frame = frame_of(spark, [None, *messages]).withColumn("seq", frame_seq()).orderBy("n")
    with_seq = structs(frame.select(from_oplog("message", "draft-1.1", seq="seq")))[2]
    without = structs(frame.select(from_oplog("message", "draft-1.1")))[2]
    assert [entry["key"] for entry in with_seq["clock"]] == [None, keys[1]]
    assert [(entry["key"], entry["seq"]) for entry in without["clock"]] == [(None, 0), (None, 1)]
    assert with_seq["_error"] is without["_error"] is None


def frame_seq() -> Any:
    from pyspark.sql import functions

    return functions.greatest(functions.col("n") - 1, functions.lit(0))


def test_the_values_of_another_segment(spark: SparkSession, tmp_path: Path) -> None:
    made = [autobase(number) for number in range(20)]
    with seglake.create(tmp_path / "a.active", format="active") as writer:
        for fields in made:
            writer.write(type="op", value=encode("autobase", fields, 0))
    frame = spark.read.format("seglake").load(str(tmp_path))
    ops = frame.select(from_oplog("value", "autobase").alias("op")).select("op.*")
    assert ops.where("_error IS NULL").count() == 20
    assert sorted(row.checkpoint is not None for row in ops.collect()).count(True) == 5


def test_a_message_is_decoded_once_however_many_fields_are_used(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = frame_of(spark, [encode("draft", draft(1), 0)])
    fields = frame.select(from_oplog("message").alias("op")).select("op.version", "op.abi", "op._error")
    fields.explain()
    assert capsys.readouterr().out.count("from_oplog(message") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dialect": "draft-2"}, "dialect is 'draft-2': expected one of draft, draft-1.1, autobase"),
        ({"mode": "DROPMALFORMED"}, "mode is 'DROPMALFORMED': expected one of PERMISSIVE, FAILFAST"),
        ({"uint64_type": "int"}, "uint64_type is 'int': expected one of bigint, decimal"),
        ({"error_field": "abi"}, "error_field is 'abi': messages have a field of that name"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_oplog("value", **arguments)


def test_a_column_of_something_else_is_refused(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="TypeError: from_oplog takes a binary column, this is of type string"):
        spark.sql("SELECT 'text' AS value").select(from_oplog("value")).collect()
