"""Every golden vector of every format through Python: records, ledger, strict error, report, Arrow, and encoding."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from golden import Case, cases, every, record_shown, shown

import seglake

pytestmark = pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")


def is_encoded(case: Case) -> bool:
    return case.expected["encode"] is not None


@every()
def test_records(case: Case) -> None:
    assert [record_shown(record) for record in case.open()] == case.records()


@every()
def test_ledger_and_report(case: Case) -> None:
    ledger = list(case.open().ledger())
    assert [list(span) for span in ledger] == case.expected["ledger"]
    report = seglake.verify(case.path, **case.options)
    assert report.damage == [span for span in ledger if span.cause]
    assert report.ok == (not report.damage)
    assert report.nbytes == case.expected["size"] == sum(total.nbytes for total in report.totals)
    assert report.records == len(case.records())
    unchecked = case.format == "oplog" or (case.format == "tenant" and case.path.read_bytes()[4:6] == b"\0\1")
    assert report.checked == case.expected.get("checked", "structure" if unchecked else "checksum")
    assert case.open().report.checked == report.checked, "before anything is read"
    timestamps = [record["timestamp"] for record in case.records() if "timestamp" in record]
    assert report.first_timestamp_us == min(timestamps, default=None)
    assert report.last_timestamp_us == max(timestamps, default=None)
    assert json.loads(json.dumps(report.to_dict()))["records"] == report.records


@every()
def test_strict_error(case: Case) -> None:
    reader = case.open(on_damage="raise")
    expected = case.expected["strict_error"]
    if expected is None:
        assert len(list(reader)) == len(case.records())
        return
    with pytest.raises(seglake.DamageError) as raised:
        list(reader)
    error = raised.value
    assert {"offset": error.byte_offset, "cause": error.cause} == expected
    assert error.path == str(case.path)
    assert error.expected
    assert error.actual
    assert str(case.path) in str(error)
    assert str(error.byte_offset) in str(error)
    with pytest.raises(seglake.DamageError):
        list(reader.batches())
    with pytest.raises(pa.ArrowInvalid, match=error.cause):
        pa.table(reader)


@pytest.mark.parametrize("limits", [{}, {"options": {"batch_bytes": 1}}, {"options": {"batch_bytes": 100}}])
@every()
def test_arrow(case: Case, limits: dict[str, Any]) -> None:
    names = case.open().schema.names
    reader = case.open(columns=["position", *names], **limits)
    table = pa.table(reader)
    records = list(reader)
    assert table["position"].to_pylist() == [record.position for record in records]
    for name in names:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            assert column.cast(pa.int64()).to_pylist() == [record.timestamp_us for record in records]
        elif pa.types.is_fixed_size_binary(column.type):
            assert column.to_pylist() == [getattr(record, name).bytes for record in records]
        else:
            assert column.to_pylist() == [getattr(record, name) for record in records]


@every()
def test_sources_agree(case: Case) -> None:
    data = case.path.read_bytes()
    expected = [record.to_dict() for record in case.open()]
    with case.path.open("rb") as file:
        for source in (data, bytearray(data), memoryview(data), file, case.path.as_uri()):
            with case.open(source) as reader:
                assert [record.to_dict() for record in reader] == expected
                assert [list(span) for span in reader.ledger()] == case.expected["ledger"]
    if data:
        assert [record.to_dict() for record in case.open(memory_map=True)] == expected
        assert [record.to_dict() for record in case.open(memory_map=False)] == expected


@every(is_encoded)
def test_encode(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "encoded"
    encode = dict(case.expected["encode"])
    of_format = {name: encode.pop(name) for name in ("trailer", "version", "preallocate") if name in encode}
    options: dict[str, Any] = {**case.options, **encode}
    if of_format:
        options["options"] = of_format
    # Records do not tell of tenants without messages.
    blocks = case.open().blocks() if case.format == "tenant" else []
    empty = [(block.partition, block.tenant_bytes) for block in blocks if not block.messages]
    with seglake.create(path, **options) as writer:
        for record in case.open():
            writer.write(record)
        for partition, tenant in empty:
            writer.write(partition=partition, tenant=tenant)
    assert path.read_bytes() == case.path.read_bytes()
    path.unlink()
    with seglake.create(path, **options) as writer:
        for partition, tenant in empty:
            writer.write(partition=partition, tenant=tenant)
        assert writer.write_batch(case.open()) == len(case.records())
    assert path.read_bytes() == case.path.read_bytes()


def test_most_formats_are_encoded() -> None:
    assert {case.format for case in cases() if is_encoded(case)} >= {"active", "sealed", "tenant", "oplog"}


@every(lambda case: case.format == "tenant")
def test_blocks(case: Case) -> None:
    reader = case.open()
    blocks = [{**block._asdict(), "tenant": shown(block.tenant_bytes)} for block in reader.blocks()]
    for block in blocks:
        del block["tenant_bytes"]
    assert blocks == case.expected["blocks"]


@every(lambda case: "index" in case.expected)
def test_index(case: Case, tmp_path: Path) -> None:
    expected = case.expected["index"]
    index = case.open().index()
    assert index is not None
    assert index.nbytes == expected["size"]
    assert [list(span) for span in index.ledger()] == expected["ledger"]
    assert index.ok == all(cause is None for *_, cause in expected["ledger"])
    rebuilt = tmp_path / "rebuilt.index"
    seglake.index(case.path, rebuilt)
    assert rebuilt.read_bytes().hex() == expected["rebuilt"]
    # Whatever the index says, what is looked up is what is there.
    reader = case.open()
    for record in list(reader)[:50]:
        assert reader.get(record.offset) == record
