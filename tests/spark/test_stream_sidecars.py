"""Batches of a stream of files that have parity sidecars, without Spark."""

from pathlib import Path
from typing import Any

import pytest

import seglake

pytest.importorskip("seglake.spark.stream.reader", reason="streams need PySpark 4.2")

from stream_query import Query


def oplog(path: Path, values: list[str]) -> None:
    """Appends messages. Nothing tells that one was changed but a sidecar."""
    with seglake.create(path, format="oplog", if_exists="append") as writer:
        for value in values:
            writer.write(version=1, checkpointer=1, clock=[], abi=0, batch=1, value=value.encode())


def flip(path: Path, value: str) -> None:
    """Changes the first byte of a value."""
    content = bytearray(path.read_bytes())
    content[content.index(value.encode())] ^= 1
    path.write_bytes(content)


def stream(folder: Path, **options: str) -> Query:
    own = {"stateLocation": str(folder.parent / "states"), "segmentFormat": "oplog", "mode": "DROPMALFORMED"}
    return Query(folder, **{**own, **options})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    return tmp_path / "files" / "a.oplog"


def values(first: int, last: int) -> list[str]:
    return [f"value {number:04}" for number in range(first, last)]


def test_each_record_comes_once_whatever_becomes_of_its_file(path: Path) -> None:
    query = stream(path.parent, repair="true")
    oplog(path, values(0, 20))
    seglake.protect(path)
    flip(path, "value 0000")
    flip(path, "value 0019")
    assert query.batch() == values(0, 20)
    query.restart()
    assert query.batch() == []
    Path(seglake.repair(path, force=True).damaged or "").unlink()
    oplog(path, values(20, 30))
    assert query.batch() == values(20, 30)
    flip(path, "value 0005")
    assert query.plan() is False
    oplog(path, values(30, 33))
    assert query.plan()
    assert query.read() == query.read() == values(30, 33)
    seglake.repair(path, force=True)
    assert query.read() == values(30, 33)
    Path(f"{path}.par").unlink()
    query.restart()
    assert query.batch() == []
    oplog(path, values(33, 34))
    seglake.protect(path)
    content = path.read_bytes()
    path.write_bytes(content[:-30])  # within what no batch has read
    assert query.batch() == values(33, 34)


def test_a_changed_record_is_noticed_in_every_mode(path: Path) -> None:
    oplog(path, values(0, 20))
    seglake.protect(path)
    flip(path, "value 0007")
    left = [value for value in values(0, 20) if value != "value 0007"]
    assert stream(path.parent).batch() == left
    wrong: Any = stream(path.parent, sidecar="none", stateLocation=str(path.parent.parent / "others")).batch()
    assert len(wrong) == 20
    assert wrong != values(0, 20)
    strict = {"mode": "FAILFAST", "stateLocation": str(path.parent.parent / "strict")}
    with pytest.raises(seglake.DamageError, match="parity sidecar"):
        Query(path.parent, segmentFormat="oplog", **strict).batch()


@pytest.mark.parametrize("format", ["oplog", "tenant"])
def test_a_file_with_the_sidecar_of_another_one_stops_no_others(path: Path, format: str) -> None:
    other = path.parent.parent / "other"
    other.write_bytes(b"another" * 500)
    seglake.protect(other, format="raw")
    Path(f"{other}.par").rename(f"{path}.par")
    if format == "oplog":
        oplog(path, values(0, 20))
    else:
        with seglake.create(path, format="tenant", options={"version": 1}) as writer:
            for value in values(0, 20):
                writer.write(partition=1, tenant="a", value=value.encode())
    with pytest.raises(seglake.DamageError, match="parity sidecar"):
        stream(path.parent, segmentFormat=format, mode="FAILFAST", ignoreCorruptFiles="true").batch()
    query = stream(path.parent, segmentFormat=format, mode="PERMISSIVE")
    assert query.batch() == []
    assert [row["cause"] for row in query.damage] == ["unreadable"]
    assert not query.plan()
    Path(f"{path}.par").unlink()
    assert query.batch() == values(0, 20)
