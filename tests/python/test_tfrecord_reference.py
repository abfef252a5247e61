"""TFRecord: the library and its golden files against the rules in plain Python, and what only this format has."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import tfrecord_reference as reference
from cli_process import here

import seglake


def read(content: bytes) -> tuple[list[tuple[int, bytes]], list[list[Any]]]:
    """The positions and values that the library reads, and its ledger."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
        reader = seglake.open(content, format="tfrecord", on_damage="skip")
        return [(record.position, record.value) for record in reader], [list(span) for span in reader.ledger()]


def test_the_rules_make_the_golden_files() -> None:
    made = reference.vectors()
    assert {path.stem for path in reference.VECTORS.glob("*.bin")} == set(made)
    for name, (file, expected) in made.items():
        path = reference.VECTORS / name
        assert path.with_suffix(".bin").read_bytes() == file
        assert json.loads(path.with_suffix(".json").read_text()) == expected, name


def test_damaged_files_of_other_writers() -> None:
    """Each case is one edit of a file, with what an independent reader makes of the result."""
    cases = json.loads(gzip.decompress((reference.VECTORS / "cases.json.gz").read_bytes()))
    names = {"examples.tfrecord": "examples", "one.tfrecord": "one", "tensorflow.tfrecord": "tensorflow"}
    assert len(cases) == 120
    for case in cases:
        content = (reference.VECTORS / f"{names.get(case['file'], 'events')}.bin").read_bytes()
        offset, removed, inserted = case["edit"]
        content = content[:offset] + bytes.fromhex(inserted) + content[offset + removed :]
        records, ledger = read(content)
        assert (len(content), len(records), ledger) == (case["size"], case["records"], case["ledger"])
        shown = json.dumps([[position, value.hex()] for position, value in records], separators=(",", ":"))
        assert hashlib.sha256(shown.encode()).hexdigest() == case["sha256"]


def test_random_damage_is_what_the_rules_say() -> None:
    draw = random.Random(5)
    sound = b"".join(map(reference.encode, reference.typical(12)))
    for _ in range(1_000):
        content = bytearray(sound)
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(len(content))
            match draw.randrange(5):
                case 0:
                    content[at] ^= 1 << draw.randrange(8)
                case 1:
                    del content[at : at + draw.randrange(1, 60)]
                case 2:
                    content[at:at] = draw.randbytes(draw.randrange(1, 60))
                case 3:
                    content[at:] = bytes(len(content[at:]))
                case _:
                    content[at : at + 20] = bytes(len(content[at : at + 20]))
        expected, ledger = reference.scan(bytes(content))
        records, found = read(bytes(content))
        assert found == ledger
        shown = [{"position": position, "value": reference.shown(value)} for position, value in records]
        assert shown == expected


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.tfrecord"
    with seglake.create(path, format="tfrecord") as writer:
        assert [writer.write(value=b"value %d" % number) for number in range(5)] == [0, 23, 46, 69, 92]
    return path


def test_records_are_found_by_their_position(path: Path) -> None:
    assert path.read_bytes() == b"".join(reference.encode(b"value %d" % number) for number in range(5))
    with seglake.open(path) as reader:
        assert reader.format == "tfrecord"
        record = reader.get(46)
        assert record is not None
        assert (record.value, record.position) == (b"value 2", 46)
        assert reader.get(position=47) is None
        assert [own and own.value for own in reader.get_many([92, 1, 0])] == [b"value 4", None, b"value 0"]
        found = pa.table(reader.get_many(pa.array([23])))
        assert found["value"].to_pylist() == [b"value 1"]
        with pytest.raises(TypeError, match="found by position"):
            reader.get()
    assert seglake.formats()["tfrecord"].identifier == ("position",)
    assert here("cat", "--get", "46", "--columns", "value", path).out.split() == ["value", "2"]
    assert "position: a number" in here("cat", "--get", "x", path).err


def test_columns_and_filters(path: Path) -> None:
    assert pa.table(seglake.open(path)).column_names == ["value"]
    table = pa.table(seglake.open(path, columns=["position", "value", "path"]))
    assert table["position"].to_pylist() == [0, 23, 46, 69, 92]
    assert set(table["path"].to_pylist()) == {str(path)}
    with pytest.raises(ValueError, match="cannot filter tfrecord records by type"):
        seglake.open(path, filters=[("type", "in", ["a"])])
    assert "tfrecord" in here("cat", "--since", "2024-01-01T00:00:00Z", path).err


def test_damage_is_diagnosed_with_its_repair(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for at in (46 + 9, 92 + 2):
        content[at] ^= 4
    path.write_bytes(content)
    report = seglake.verify(path, explain=True)
    assert [(own.reason, own.repairs[0].byte_offset) for own in report.diagnoses] == [
        ("flipped_bit", 55),
        ("flipped_bit", 94),
    ]
    assert report.diagnoses[0].before is not None
    assert report.diagnoses[0].before.id == {"position": 23}


def test_compressed_files_are_refused(path: Path, tmp_path: Path) -> None:
    compressed = tmp_path / "b.tfrecord"
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    for verb in (seglake.verify, lambda path: list(seglake.open(path))):
        with pytest.raises(ValueError, match=r"b.tfrecord: .*GZIP.*decompress"):
            verb(compressed)
    assert "GZIP" in here("verify", compressed).err
    with pytest.raises(ValueError, match="GZIP"):
        seglake.recover(compressed, tmp_path / "c.tfrecord")
    with pytest.raises(ValueError, match="GZIP"):
        seglake.create(compressed, format="tfrecord", if_exists="append")


def test_what_is_recovered_has_no_zeros_at_the_end(path: Path, tmp_path: Path) -> None:
    sound = path.read_bytes()
    path.write_bytes(sound + bytes(600))
    assert not seglake.verify(path).ok
    seglake.recover(path, tmp_path / "new.tfrecord")
    assert (tmp_path / "new.tfrecord").read_bytes() == sound
    seglake.undo_recover(tmp_path / "new.tfrecord", tmp_path / "undone.tfrecord")
    assert (tmp_path / "undone.tfrecord").read_bytes() == sound + bytes(600)


def test_converting(path: Path, tmp_path: Path) -> None:
    seglake.convert(path, tmp_path / "b.chunks", to="chunked", set={"timestamp": 0})
    seglake.convert(tmp_path / "b.chunks", tmp_path / "c.tfrecord", drop=["offset", "timestamp"])
    assert (tmp_path / "c.tfrecord").read_bytes() == path.read_bytes()


def test_what_is_within_a_record_that_is_being_written_waits(tmp_path: Path) -> None:
    inner, path = tmp_path / "inner.tfrecord", tmp_path / "a.tfrecord"
    with seglake.create(inner, format="tfrecord") as writer:
        for number in range(3):
            writer.write(value=b"inner %d" % number)
    outer = inner.read_bytes()
    with seglake.create(path, format="tfrecord") as writer:
        for value in (b"first", b"damaged", outer, b"last"):
            writer.write(value=value)
    whole = bytearray(path.read_bytes())
    for at in (24, 34):  # the length of the second record, and its data
        whole[at] ^= 1
    begins = 21 + 23
    for cut in range(begins + 12 + 20, begins + 12 + len(outer)):
        path.write_bytes(whole[:cut])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
            early = seglake.incremental.resume(path, None, on_damage="skip")
            values = [record.value for record in early]
            path.write_bytes(whole)
            values += [record.value for record in seglake.incremental.resume(path, early.position, on_damage="skip")]
        assert values == [b"first", outer, b"last"], cut


@pytest.mark.parametrize("zeros", [1, 1000])
def test_what_directly_follows_damage_is_not_cleared(path: Path, zeros: int) -> None:
    damaged = bytearray(path.read_bytes())
    damaged[-5] ^= 1
    path.write_bytes(damaged + bytes(zeros))
    with pytest.raises(seglake.DamageError):
        seglake.create(path, format="tfrecord", if_exists="append", zero_torn_tail=True)
    assert path.read_bytes() == damaged + bytes(zeros)
