"""What is looked up and not found is proven not to be there, or said not to be."""

from __future__ import annotations

import subprocess
import sys
import uuid
import warnings
from datetime import UTC, datetime
from pathlib import Path

import pytest

import seglake

ABSENT = uuid.UUID("1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3")


@pytest.fixture
def segment(tmp_path: Path) -> tuple[Path, list[uuid.UUID]]:
    path = tmp_path / "a.active"
    with seglake.create(path, format="active") as writer:
        ids = [writer.write(type="t", value=b"value %d" % number) for number in range(10)]
    return path, ids


def test_a_sound_file_proves_what_it_does_not_have(segment: tuple[Path, list[uuid.UUID]]) -> None:
    path, ids = segment
    with warnings.catch_warnings(), seglake.open(path, on_damage="skip") as reader:
        warnings.simplefilter("error")
        assert reader.unproven is None
        assert reader.get(ids[3]) is not None
        assert reader.get(ABSENT) is None
        assert reader.unproven is None


def test_damage_that_may_hide_a_record_is_warned_of_once(segment: tuple[Path, list[uuid.UUID]]) -> None:
    path, ids = segment
    content = bytearray(path.read_bytes())
    content[content.index(b"value 5")] ^= 1
    path.write_bytes(content)
    with seglake.open(path, on_damage="skip") as reader:
        with pytest.warns(seglake.exceptions.DamageWarning, match="not found may be where the file is damaged"):
            assert reader.get(ids[5]) is None
        assert reader.unproven == "damage"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert reader.get_many(ids[4:7])[1] is None
    with seglake.open(path) as reader, pytest.raises(seglake.DamageError):
        reader.get(ids[5])
    for mode, said in ("skip", "unless it is where a file is damaged"), ("raise", "checksum_mismatch"):
        command = [sys.executable, "-m", "seglake", "cat", "--on-damage", mode, "--get", str(ids[5]), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert said in done.stderr
        assert "no such record, unless it is where a file is damaged" in done.stderr


def test_a_file_without_checksums_proves_nothing(tmp_path: Path, segment: tuple[Path, list[uuid.UUID]]) -> None:
    path = tmp_path / "a.sealed"
    seglake.seal(segment[0], path, trailer=False)
    for mode in ("raise", "skip"):
        with warnings.catch_warnings(), seglake.open(path, on_damage=mode) as reader:
            warnings.simplefilter("error")
            assert reader.get(segment[1][0]) is not None
            assert reader.unproven is None
            assert reader.get(ABSENT) is None
            assert reader.unproven == "unchecked"


def test_times_do_not_matter(segment: tuple[Path, list[uuid.UUID]]) -> None:
    """A reader of some records looks up all of them."""
    path, ids = segment
    with seglake.open(path, filters=[("timestamp", "<", datetime(2000, 1, 1, tzinfo=UTC))]) as reader:
        assert reader.get(ids[2]) is not None
