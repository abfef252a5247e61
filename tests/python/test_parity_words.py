"""What the commands say of lost ranges, and of a sidecar of which nothing is left."""

import json
import os
from pathlib import Path

import pytest
from cli_process import here
from cli_samples import sample

import seglake


@pytest.fixture
def struck(tmp_path: Path) -> Path:
    """A file of which a range is lost: ten blocks of one group are damaged, and the other groups are sound."""
    path = tmp_path / "file.other"
    content = bytearray(os.urandom(300_000))
    path.write_bytes(content)
    seglake.protect(path, format="raw")
    # 74 blocks are one group.
    for block in range(0, 40, 4):
        content[block * 4096] ^= 1
    path.write_bytes(content)
    return path


def test_each_lost_range_has_its_worst_group(struck: Path) -> None:
    repaired = seglake.repair(struck, format="raw", force=True)
    worst = {"band": 0, "group": 0, "needs": 10, "of": 8}
    assert repaired.worst == worst
    starts = [block * 4096 for block in range(0, 40, 4)]
    assert repaired.lost_ranges == [{"start": at, "end": at + 4096, "worst": worst} for at in starts]
    assert repaired.to_dict()["lost_ranges"] == repaired.lost_ranges
    needs = "(needs 10 blocks of 8 in group 0 of band 0)"
    for arguments in (("repair", "--format", "raw", "--force", struck), ("verify", struck)):
        said = here(*arguments)
        assert said.status == 1
        assert said.out.count(needs) >= 3, said.out
        assert f"bytes 16,384 to 20,480 (4,096 bytes (4.0 KiB)): checksum_mismatch {needs}" in said.out
    assert needs in here("scrub", struck.parent).out


def test_reports_of_segments_have_lost_ranges(tmp_path: Path) -> None:
    path = tmp_path / "log.active"
    with seglake.create(path, format="active") as writer:
        for number in range(300):
            writer.write(type="type", value=os.urandom(1000) + b"%d" % number)
    seglake.protect(path)
    content = path.read_bytes()
    path.write_bytes(bytes(100_000) + content[100_000:])
    parity = seglake.verify(path).parity
    assert parity is not None and parity.outcome == "lost"
    lost = [(span.start, span.end) for span in parity.damage if span.kind == "lost"]
    assert [(own["start"], own["end"]) for own in parity.lost_ranges] == lost != []
    assert parity.to_dict()["lost_ranges"][0]["worst"] == parity.worst
    assert parity.covered_bytes == path.stat().st_size
    said = here("verify", path).out
    assert f"needs {parity.worst['needs']} blocks of 8" in " ".join(said.split())
    assert "needs" in here("scrub", "--repair", tmp_path).out


def test_an_empty_sidecar_is_told(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    sidecar = Path(seglake.protect(path).sidecar)
    parity = seglake.verify(path).parity
    assert parity is not None and not parity.covers_nothing
    sidecar.write_bytes(b"")
    parity = seglake.verify(path).parity
    assert parity is not None and parity.covers_nothing
    assert (parity.outcome, parity.covered_bytes) == ("sound", 0)
    other = tmp_path / "other"
    other.mkdir()
    for arguments in (("verify", path), ("verify", path, sample(other, "active")), ("scrub", tmp_path)):
        said = here(*arguments)
        assert said.status == 0, said.out
        words = " ".join(said.out.split())
        assert "it is empty and covers nothing of the file: `seglake protect` begins a new one" in words
    # Of an empty file there is nothing to cover.
    path.write_bytes(b"")
    assert not parity._replace(uncovered_bytes=0).covers_nothing
    seglake.protect(path, format="raw")
    assert "covers nothing" not in here("verify", "--format", "active", path).out


def test_a_file_that_only_an_empty_sidecar_is_of_is_not_called_checked(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"no segment" * 100)
    sidecar = Path(seglake.protect(path, format="raw").sidecar)
    for content, words, checked in ((sidecar.read_bytes(), "checked by parity", "parity"), (b"", "not checked", None)):
        sidecar.write_bytes(content)
        assert f"not a segment, {words}" in here("verify", path).out
        assert f"ok  {path}  not a segment, {words}" in here("verify", path, path).out
        assert json.loads(here("verify", "--json", path).out)["checked"] == checked
