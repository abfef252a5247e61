r"""Decodes oplog messages in Kafka's binary columns, and joins each message with those that it had seen.

    python examples/kafka_oplog.py                                   # rows that it makes up
    python examples/kafka_oplog.py --table /lake/kafka/oplogs        # Parquet, with the columns that Kafka's source has
    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0 \
        examples/kafka_oplog.py --servers broker:9092 --topic oplogs

Each row's `key` is the public key of a writer, its `value` a message of that writer's oplog, and `offset` counts them.
A message's clock has, for each other writer, how many of its messages had been seen when this one was written: the last
of those is the one to join with.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, explode, hex, substring

import seglake
from seglake.spark.functions import from_oplog

KAFKA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"
WRITERS = ("ada", "ben", "cyd")
MESSAGES = 12
SHOWN = 20
BROKEN = ("cyd", 3)
"""The message of the rows made up that is cut off."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints three tables; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--table", help="a Parquet table with Kafka's columns")
    source.add_argument("--servers", help="the servers of Kafka, read from the first message to the last")
    parser.add_argument("--topic", help="the topic to read")
    parser.add_argument("--dialect", default="draft", choices=["draft", "draft-1.1", "autobase"])
    given = parser.parse_args(arguments)
    if bool(given.servers) != bool(given.topic):
        parser.error("--servers and --topic go together")

    spark = SparkSession.builder.appName("oplogs in Kafka").getOrCreate()
    if given.servers:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", given.servers)
        rows = reader.option("subscribe", given.topic).load()
    elif given.table:
        rows = spark.read.parquet(given.table)
    else:
        rows = spark.createDataFrame(list(made_up()), KAFKA)
    messages = decode(rows, given.dialect)

    print("Messages of each writer, and how many of them cannot be read:")
    of_writers = messages.groupBy(writer(col("key")).alias("writer"))
    of_writers.agg(count("*").alias("messages"), count("op._error").alias("broken")).orderBy("writer").show()
    print("What is wrong with them:")
    wrong = col("op._error")
    broken = messages.where(wrong.isNotNull())
    place = wrong.byte_offset.alias("at byte")
    broken.select("partition", "offset", wrong.cause, place, wrong.message).show(truncate=False)
    print("Each message with the last ones of others that it had seen:")
    seen(messages).orderBy("partition", "offset", "seen writer").show(SHOWN, truncate=False)
    return 0


def decode(rows: DataFrame, dialect: Any) -> DataFrame:
    """Adds the decoded message to Kafka's columns; `seq`, its number in the oplog, is Kafka's offset."""
    return rows.withColumn("op", from_oplog("value", dialect, seq="offset"))


def seen(messages: DataFrame) -> DataFrame:
    """Joins each message's clock with the messages that it names."""
    clocks = messages.select("partition", "offset", "key", explode("op.clock").alias("clock"))
    others = messages.select(
        col("key").alias("seen_key"), col("offset").alias("seen_offset"), col("op.value").alias("seen_value")
    )
    # A length counts messages: the last one of them has the number before it.
    is_last_seen = (col("clock.key") == col("seen_key")) & (col("clock.length") - 1 == col("seen_offset"))
    return clocks.join(others, is_last_seen).select(
        "partition",
        "offset",
        writer(col("key")).alias("writer"),
        writer(col("seen_key")).alias("seen writer"),
        col("seen_offset").alias("seen offset"),
        col("seen_value").cast("string").alias("what was seen"),
    )


def writer(key: Any) -> Any:
    """The first digits of a key, by which to tell writers apart."""
    return substring(hex(key), 1, 8)


def public_key(name: str) -> bytes:
    """A key of 32 bytes, as a writer would have."""
    return hashlib.sha256(name.encode()).digest()


def made_up() -> Iterator[tuple[bytes, bytes, str, int, int, datetime]]:
    """Rows as Kafka's source gives them: three writers take turns, each having seen all that came before."""
    lengths = dict.fromkeys(WRITERS, 0)
    for number in range(MESSAGES):
        name = WRITERS[number % len(WRITERS)]
        offset = lengths[name]
        clock = [
            {"key": public_key(other), "length": length}
            for other, length in lengths.items()
            if other != name and length
        ]
        fields = {
            "version": 1,
            "checkpointer": offset,
            "checkpoint": None if offset else {"tree_hash": bytes(32), "length": 0},
            "clock": clock,
            "abi": 0,
            "batch": 1,
            "value": f"{name} says {offset}".encode(),
        }
        message = seglake.oplog.encode(fields, dialect="draft")
        if (name, offset) == BROKEN:
            message = message[:-2]
        moment = datetime(2024, 6, 15, tzinfo=UTC) + timedelta(seconds=number)
        yield public_key(name), message, "oplogs", WRITERS.index(name), offset, moment
        lengths[name] += 1


if __name__ == "__main__":
    sys.exit(main())
