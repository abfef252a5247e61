"""Results go from one process to another: they pickle, are copied, and are equal afterwards."""

from __future__ import annotations

import copy
import os
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from samples import SAMPLES, Sample

import seglake

of_each_format = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)


def test_processes_verify_files(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.active" for number in range(3)]
    for path in paths:
        SAMPLES["active"].write(path)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        reports = list(pool.map(seglake.verify, paths))
    assert reports == [seglake.verify(path) for path in paths]
    assert [report.records for report in reports] == [20] * 3


def copies(thing: Any) -> list[Any]:
    return [pickle.loads(pickle.dumps(thing)), copy.copy(thing), copy.deepcopy(thing)]


def damage(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@of_each_format
def test_records(sample: Sample, tmp_path: Path) -> None:
    path = tmp_path / f"a.{sample.extension}"
    sample.write(path)
    records = list(seglake.open(path, options=sample.read_options))
    assert records
    for record in records:
        for again in copies(record):
            assert again == record
            assert repr(again) == repr(record)
            assert again.to_dict() == record.to_dict()
            assert list(again.to_dict()) == list(record.to_dict())


def test_a_time_that_no_calendar_has_and_a_type_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.chunks"
    with seglake.create(path, format="chunked") as writer:
        writer.write(offset=1, timestamp_us=2**62, value=b"")
    with seglake.create(tmp_path / "a.active", format="active") as writer:
        writer.write(type=b"\xff\\", value=b"\x00\xff")
    [late], [odd] = seglake.open(path), seglake.open(tmp_path / "a.active")
    for again in copies(late):
        assert (again.timestamp, again.timestamp_us) == (None, 2**62)
    for again in copies(odd):
        assert (again.type_bytes, again.value) == (b"\xff\\", b"\x00\xff")


@pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")
def test_the_cause_of_a_record(vectors: Path) -> None:
    records = list(
        seglake.open(vectors / "autobase" / "dangling.oplog", options={"dialect": "draft-1.1"}, on_damage="skip")
    )
    assert {record.cause for record in records} == {None, "dangling_reference"}
    for record in records:
        assert [again.cause for again in copies(record)] == [record.cause] * 3


@of_each_format
def test_reports(sample: Sample, tmp_path: Path) -> None:
    path = tmp_path / f"a.{sample.extension}"
    sample.write(path)
    sound = seglake.verify(path, options=sample.read_options)
    seglake.protect(path, options=sample.read_options)
    damage(path, path.stat().st_size // 2)
    report = seglake.verify(path, explain=True, options=sample.read_options)
    assert report.damage
    assert report.diagnoses
    assert report.parity is not None
    assert report != sound
    for one in (sound, report):
        for again in copies(one):
            assert again == one
            assert hash(again) == hash(one)
            assert repr(again) == repr(one)
            assert again.to_dict() == one.to_dict()
            assert again.diagnoses == one.diagnoses


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.active")
    SAMPLES["active"].write(path)
    for again in copies(seglake.verify(path)):
        assert again.path == str(path)


def results(folder: Path) -> list[Any]:
    path = folder / "a.active"
    SAMPLES["active"].write(path)
    protected = seglake.protect(path)
    detected = seglake.detect(path)
    damage(path, 100)
    recovered = seglake.recover(path, folder / "b.active")
    repaired = seglake.repair(path)
    assert repaired.outcome == "repaired"
    return [protected, detected, recovered, repaired, seglake.detect(b"nothing that is known")]


def test_results_of_other_calls(tmp_path: Path) -> None:
    for result in results(tmp_path):
        for again in copies(result):
            assert again == result
            assert hash(again) == hash(result)
            assert repr(again) == repr(result)
            if hasattr(result, "to_dict"):
                assert again.to_dict() == result.to_dict()


def state(thing: Any) -> tuple[Callable[..., Any], list[Any]]:
    make, arguments = thing.__reduce__()
    return make, list(arguments)


def test_what_a_pickle_holds_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.active"
    SAMPLES["active"].write(path)
    make, [json] = state(seglake.verify(path))
    for wrong in ("", "{}", json[:-1], json.replace('"active"', '"unknown"')):
        with pytest.raises(ValueError, match="these are not the values of a result"):
            make(wrong)
    make, (format, dialect, values, position, cause) = state(next(iter(seglake.open(path))))
    assert make(format, dialect, values, position, cause).position == 0
    for wrong in (
        ("unknown", dialect, values, position, cause),
        (format, "unknown", values, position, cause),
        (format, dialect, values[1:], position, cause),
        (format, dialect, (b"short", *values[1:]), position, cause),
        (format, dialect, (*values[:-1], "text"), position, cause),
        (format, dialect, values, position, "unknown"),
    ):
        with pytest.raises(ValueError, match=r"record|format|dialect"):
            make(*wrong)


def test_scans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        SAMPLES["active"].write(tmp_path / f"{number}.active")
    scan = seglake.scan(tmp_path, columns=["type"], include_file_paths="file")
    data = pickle.dumps(scan)
    SAMPLES["active"].write(tmp_path / "later.active")
    for again in (pickle.loads(data), copy.deepcopy(scan)):
        assert (again.count_rows(), again.files()) == (40, scan.files())
        assert again.schema.names == ["type", "file"]
        assert again.passed_over() == scan.passed_over()


def test_no_pickle_of_a_scan_holds_a_key(tmp_path: Path) -> None:
    key = bytes(range(32))
    path, file = tmp_path / "a.active", tmp_path / "key"
    file.write_bytes(key)
    with seglake.create(path, format="active", key=key) as writer:
        writer.write(type="a", value=b"v")
    for given in (key, [bytes(32), key], bytearray(key)):
        with pytest.raises(TypeError, match="key was given as bytes") as caught:
            pickle.dumps(seglake.scan(path, key=given))
        assert key.hex() not in str(caught.value)
    data = pickle.dumps(seglake.scan(path, key=file))
    assert key not in data
    assert pickle.loads(data).count_rows() == 1


def test_a_scan_of_a_file_system_that_was_given_does_not_pickle(tmp_path: Path) -> None:
    fs = pytest.importorskip("pyarrow.fs")
    SAMPLES["active"].write(tmp_path / "a.active")
    with pytest.raises(TypeError, match="give URIs without filesystem="):
        pickle.dumps(seglake.scan(str(tmp_path / "a.active"), filesystem=fs.LocalFileSystem()))
