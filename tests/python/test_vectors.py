"""Every golden vector through Python: records, ledger, strict error, report, Arrow, and encoding."""

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seglake

CASES = sorted((Path(__file__).parents[1] / "vectors" / "active").glob("*.json"))
assert len(CASES) > 60, "the golden vectors are missing"


class Case:
    """A vector: the file, what is expected of it, and the options to read it with."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_suffix(".bin")
        self.expected: dict[str, Any] = json.loads(path.read_text())
        self.options: dict[str, Any] = {
            "format": self.expected["format"],
            "key": bytes.fromhex(self.expected["options"]["key"]),
        }

    def open(self, **options: Any) -> seglake.Reader:
        """A reader that skips damage without a word."""
        with warnings.catch_warnings():
            return seglake.open(self.path, on_damage="skip", **self.options, **options)


@pytest.fixture(params=CASES, ids=lambda path: path.stem)
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


pytestmark = pytest.mark.filterwarnings("ignore::seglake.DamageWarning")


def shown(data: bytes) -> str | dict[str, Any]:
    if len(data) > 96:
        return {"sha256": hashlib.sha256(data).hexdigest(), "length": len(data)}
    return data.hex()


def test_records(case: Case) -> None:
    records = [
        {
            "position": record.position,
            "uuid": record.uuid.hex,
            "timestamp": record.timestamp_us,
            "type": shown(record.type_bytes),
            "value": shown(record.value),
        }
        for record in case.open()
    ]
    assert records == case.expected["records"]


def test_ledger_and_report(case: Case) -> None:
    ledger = list(case.open().ledger())
    assert [list(span) for span in ledger] == case.expected["ledger"]
    report = seglake.verify(case.path, **case.options)
    assert report.damage == [span for span in ledger if span.cause]
    assert report.ok == (not report.damage)
    assert report.bytes == case.expected["size"] == sum(total["bytes"] for total in report.totals)
    assert report.records == len(case.expected["records"])
    assert report.checked == "checksum"
    timestamps = [record["timestamp"] for record in case.expected["records"]]
    assert report.first_timestamp_us == min(timestamps, default=None)
    assert report.last_timestamp_us == max(timestamps, default=None)
    assert json.loads(json.dumps(report.to_dict()))["records"] == report.records


def test_strict_error(case: Case) -> None:
    reader = seglake.open(case.path, **case.options)
    expected = case.expected["strict_error"]
    if expected is None:
        assert len(list(reader)) == len(case.expected["records"])
        return
    with pytest.raises(seglake.DamageError) as raised:
        list(reader)
    error = raised.value
    assert {"offset": error.offset, "cause": error.cause} == expected
    assert error.path == str(case.path)
    assert error.expected
    assert error.actual
    assert str(case.path) in str(error)
    assert str(error.offset) in str(error)
    with pytest.raises(seglake.DamageError):
        list(reader.batches())
    with pytest.raises(pa.ArrowInvalid, match=error.cause):
        pa.table(reader)


@pytest.mark.parametrize("limits", [{}, {"batch_rows": 1}, {"batch_bytes": 1}, {"batch_bytes": 100}])
def test_arrow(case: Case, limits: dict[str, int]) -> None:
    reader = case.open(columns=["position", "uuid", "timestamp", "type", "value"], **limits)
    table = pa.table(reader)
    records = list(reader)
    assert table["position"].to_pylist() == [record.position for record in records]
    assert table["uuid"].to_pylist() == [record.uuid.bytes for record in records]
    assert table["timestamp"].cast(pa.int64()).to_pylist() == [record.timestamp_us for record in records]
    assert table["type"].to_pylist() == [record.type for record in records]
    assert table["value"].to_pylist() == [record.value for record in records]


def test_sources_agree(case: Case) -> None:
    data = case.path.read_bytes()
    expected = [record.to_dict() for record in case.open()]
    with case.path.open("rb") as file:
        for source in (data, bytearray(data), memoryview(data), file):
            with seglake.open(source, on_damage="skip", **case.options) as reader:
                assert [record.to_dict() for record in reader] == expected
                assert [list(span) for span in reader.ledger()] == case.expected["ledger"]
    if data:
        mapped = case.open(mmap=True)
        assert [record.to_dict() for record in mapped] == expected


ENCODED = [path for path in CASES if json.loads(path.read_text())["encode"]]


@pytest.mark.parametrize("case", ENCODED, ids=lambda path: path.stem, indirect=True)
def test_encode(case: Case, tmp_path: Path) -> None:
    encode = case.expected["encode"]
    path = tmp_path / "encoded.active"
    with seglake.create(path, preallocate=encode["preallocate"], **case.options) as writer:
        for record in case.open():
            writer.write(record)
    assert path.read_bytes() == case.path.read_bytes()
    path.unlink()
    with seglake.create(path, preallocate=encode["preallocate"], **case.options) as writer:
        assert writer.write_batch(case.open()) == len(case.expected["records"])
    assert path.read_bytes() == case.path.read_bytes()
