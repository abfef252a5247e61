"""`repair`, `scrub` and `verify` say the same of a file and its sidecar, whatever happened to either of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cli_process import here
from golden import Case, every

import seglake
from seglake import Report
from seglake.parity.by_sidecar import is_sound, verified

_EXTENSIONS = {"chunked": "chunks"}


def _flipped(data: bytes, quarter: int = 2) -> bytes:
    """A file with one bit flipped: in its first byte, after one to three quarters of it, or in its last byte."""
    at = (len(data) - 1) * quarter // 4
    return data[:at] + bytes(byte ^ 0x10 for byte in data[at : at + 1]) + data[at + 1 :]


_DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda data: data,
    "bytes after its end": lambda data: data + b"nobody's bytes",
    "zeros after its end": lambda data: data + bytes(20),
    "cut": lambda data: data[:-7],
    **{f"flipped after {quarter} quarters": partial(_flipped, quarter=quarter) for quarter in range(5)},
}


@pytest.mark.sampled(3)
@every()
def test_the_same_is_said_of_the_same_file(case: Case, tmp_path: Path) -> None:
    how = {name: given for name, given in case.options.items() if name != "format"}
    path = tmp_path / f"file.{_EXTENSIONS.get(case.format, case.format)}"
    path.write_bytes(case.path.read_bytes())
    # What is damaged is protected as it is.
    seglake.protect(path, as_it_is=True, format=case.format, **how)
    sound = {each: each.read_bytes() for each in (path, Path(f"{path}.par"))}
    for damaged in sound:
        for name, damage in _DAMAGE.items():
            for each, data in sound.items():
                each.write_bytes(damage(data) if each is damaged else data)
            _compare(path, how, f"{damaged.name}: {name}")
            for left in tmp_path.glob("*.damaged"):
                left.unlink()


def _compare(path: Path, how: dict[str, Any], what: str) -> None:
    before = _verify(path, how)
    [scrubbed] = seglake.scrub(path, **how)
    assert scrubbed.ok == before[0], (what, scrubbed)
    try:
        repaired = seglake.repair(path, **how)
    except (ValueError, seglake.FormatError) as error:  # refused: the sidecar is of another file, or none
        assert not before[0], (what, error)
        return
    is_sound, is_wrong_key = _verify(path, how)
    assert is_wrong_key or is_sound == (repaired.outcome != "lost"), (what, repaired)
    assert before[1] or before[0] == (repaired.outcome == "sound"), (what, repaired)


def _verify(path: Path, how: dict[str, Any]) -> tuple[bool, bool]:
    """Tells whether a file and its sidecar are sound, and whether the key is probably wrong, which is no damage."""
    found = verified(lambda: path, **how)
    if isinstance(found, Report):
        return is_sound(found), found.wrong_key
    return found.outcome == "sound", False


@pytest.fixture
def torn(tmp_path: Path, vectors: Path) -> Path:
    """A protected file with a flipped bit, and bytes after what is covered, which no sidecar restores."""
    path = tmp_path / "torn.active"
    path.write_bytes((vectors / "active" / "typical.bin").read_bytes())
    seglake.protect(path)
    path.write_bytes(_flipped(path.read_bytes()) + b"nobody's bytes")
    return path


def test_repair_names_what_no_sidecar_restores(torn: Path) -> None:
    done = here("repair", str(torn))
    assert done.status == 1
    assert "not all of it could be repaired; 1 byte changed" in done.out
    assert "damaged     14 bytes by the file's own format" in done.out
    again = seglake.repair(torn)
    assert (again.outcome, again.lost, again.changed_bytes, again.lost_ranges) == ("lost", True, 0, [])
    assert again.report is not None
    assert again.report.damage == seglake.verify(torn).damage
    assert again.to_dict()["report"] == again.report.to_dict()


def test_scrub_does_not_count_it_as_repaired(torn: Path) -> None:
    done = here("scrub", "--repair", str(torn))
    assert done.status == 1
    assert "damaged: 14 bytes by the file's own format" in done.out
    assert "1 file repaired" not in done.out


def test_a_wrong_key_is_said_and_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "keyed.active"
    with seglake.create(path, format="active", key=bytes(range(1, 33))) as segment:
        for number in range(9):
            segment.write(type="a", value=b"%d" % number)
    seglake.protect(path, key=bytes(range(1, 33)))
    done = here("repair", str(path))
    assert done.status == here("verify", str(path)).status == 2
    assert "sound; 0 bytes changed" in done.out
    assert "probably the wrong key" in done.out
