"""Files that are read by their parity sidecars: `sidecar=` and `--sidecar`."""

import json
import os
import pickle
import re
import struct
import warnings
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from cli_process import here
from cli_samples import EXTENSIONS, RECORDS, sample
from highway_hash import checksum

import seglake
from seglake import Span
from seglake.cli.advice import advise


def flip(path: Path, *places: int) -> None:
    """Changes a byte at each of these places."""
    content = bytearray(path.read_bytes())
    for place in places:
        content[place] ^= 0x55
    path.write_bytes(content)


def in_a_record(path: Path) -> int:
    """The offset of a byte within a record in the middle of a file."""
    with seglake.open(path) as reader:
        positions = [record.position for record in reader]
    return positions[len(positions) // 2] + 2


def protected(tmp_path: Path, format: str) -> Path:
    path = sample(tmp_path, format)
    seglake.protect(path)
    return path


def test_a_file_whose_end_tells_its_format_is_read_if_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "one.sealed"
    with seglake.create(path, format="sealed", options={"trailer": False}) as writer:
        writer.write(type="greeting", value=bytes(3000))
    seglake.protect(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert seglake.detect(path.read_bytes()).format != "sealed"  # else this shows nothing
    report = seglake.verify(path)
    assert (report.format, report.repaired_records) == ("sealed", 1)
    with (
        seglake.open(path, on_damage="repair") as reader,
        pytest.warns(seglake.exceptions.DamageWarning, match="parity sidecar"),
    ):
        assert [record.value for record in reader] == [bytes(3000)]


@pytest.mark.parametrize("format", EXTENSIONS)
def test_each_byte_that_differs_is_told_in_every_format(tmp_path: Path, format: str) -> None:
    path = protected(tmp_path, format)
    sound = seglake.verify(path)
    assert sound.ok
    assert sound.checked == ("parity" if format == "oplog" else "checksum")
    assert (sound.records, sound.repaired_records) == (RECORDS, 0)
    at = in_a_record(path)
    flip(path, at, at + 2)
    report = seglake.verify(path, explain=True)
    assert not report.ok
    assert [span[:3] for span in report.damage] == [
        (at, at + 1, "repaired"),
        (at + 2, at + 3, "repaired"),
    ]
    assert report.repaired_records >= 1
    assert report.records + report.repaired_records == RECORDS
    assert {found.reason for found in report.diagnoses} == {"restorable"}
    assert "seglake repair" in (advise(report, report.diagnoses[0], str(path)).command or "")
    parity = report.parity
    assert parity is not None
    assert (parity.sidecar, parity.outcome, parity.refused) == (f"{path}.par", "repaired", None)
    assert parity.worst is not None
    assert parity.damage[0].kind == "repaired"
    assert parity.sidecar_damage == []
    assert json.loads(json.dumps(report.to_dict()))["parity"]["worst"] == parity.worst
    without = seglake.verify(path, sidecar=None)
    assert without.parity is None
    assert without.ok == (format == "oplog")
    elsewhere = path.with_name("elsewhere")
    Path(f"{path}.par").rename(elsewhere)
    assert seglake.verify(path).parity is None
    assert seglake.verify(path, sidecar=elsewhere).damage == report.damage
    assert seglake.verify(path.read_bytes(), sidecar=elsewhere.read_bytes(), format=format).damage == report.damage


def test_a_sidecar_that_is_wrong_is_told(tmp_path: Path) -> None:
    path = protected(tmp_path, "active")
    with pytest.raises(FileNotFoundError, match=r"cannot open|No such file"):
        seglake.verify(path, sidecar=tmp_path / "none")
    with pytest.raises(seglake.FormatError, match="expected a frame"):
        seglake.verify(path, sidecar=path)
    sidecar = Path(f"{path}.par")
    sidecar.write_bytes(b"no sidecar")
    report = seglake.verify(path)
    assert report.ok
    assert report.parity is not None
    assert (report.parity.outcome, report.parity.refused) == ("refused", "no_frame")
    found = here("verify", str(path))
    assert found.status == 1
    assert "refused: it is not one" in found.out


def test_the_command_tells_what_differs_and_what_to_do(tmp_path: Path) -> None:
    path = protected(tmp_path, "oplog")
    sound = here("verify", str(path))
    assert (sound.status, sound.err) == (0, "")
    assert "checked by parity" in sound.out
    assert f"{path}.par: sound." in sound.out.replace("\n", " ").replace("  ", " ")
    flip(path, 50)
    found = here("verify", str(path))
    assert found.status == 1
    for text in (
        "repaired",
        "checksum_mismatch",
        "next      seglake repair ",
        "damaged, and comes back from the parity sidecar",
    ):
        assert text in found.out
    without = here("verify", "--sidecar", "none", str(path))
    assert without.status == 0
    assert "structure checked only" in without.out
    other = tmp_path / "other.par"
    Path(f"{path}.par").rename(other)
    facts = json.loads(here("verify", "--json", "--sidecar", str(other), str(path)).out)
    assert facts["damage"] == [Span(50, 51, "repaired", "checksum_mismatch")._asdict()]
    assert facts["parity"]["sidecar"] == str(other)
    assert f" --sidecar {other} " in facts["diagnoses"][0]["command"]
    again = here("verify", "--sidecar", str(other), str(path), str(path))
    assert again.status == 2
    assert "--sidecar is the sidecar of one file" in again.err


def test_a_damaged_sidecar_of_a_sound_file_is_told(tmp_path: Path) -> None:
    path = protected(tmp_path, "active")
    flip(Path(f"{path}.par"), 100)
    report = seglake.verify(path)
    assert report.ok
    assert report.parity is not None
    assert report.parity.outcome == "repaired"
    assert report.parity.sidecar_damage != []
    found = here("verify", "--quiet", str(tmp_path))
    assert found.status == 1
    assert "can restore all damage" in found.out
    assert "1 sidecar of a sound file" in found.out


def test_what_was_appended_is_not_covered(tmp_path: Path) -> None:
    path = protected(tmp_path, "active")
    before = path.stat().st_size
    with seglake.create(path, format="active", if_exists="append") as writer:
        writer.write(type="new", value=bytes(100))
    report = seglake.verify(path)
    assert report.parity is not None
    assert (report.ok, report.parity.uncovered_bytes) == (True, path.stat().st_size - before)
    found = here("verify", str(path))
    assert found.status == 0
    assert "of the file are not covered" in found.out.replace("\n", " ")


def records_of(path: Path, **how: Any) -> list[Any]:
    with seglake.open(path, **how) as reader, warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
        return [(record.position, record.value) for record in reader]


@pytest.mark.parametrize("format", EXTENSIONS)
def test_reading_restores_records_on_request_alone(tmp_path: Path, format: str) -> None:
    path = protected(tmp_path, format)
    whole = records_of(path)
    at = in_a_record(path)
    flip(path, at)
    damaged = path.read_bytes()
    with pytest.raises(seglake.DamageError, match="parity sidecar") as raised:
        records_of(path)
    assert raised.value.byte_offset == at
    assert "seglake repair" in str(raised.value)
    left = records_of(path, on_damage="skip")
    assert len(left) < len(whole)
    assert set(left) < set(whole)
    assert records_of(path, on_damage="repair") == whole
    with (
        seglake.open(path, on_damage="repair") as reader,
        pytest.warns(seglake.exceptions.DamageWarning, match="parity sidecar"),
    ):
        table = pa.table(cast("Any", reader))
        assert table.num_rows == len(whole)
        report = reader.report
        assert (report.records, report.repaired_records) == (len(whole), len(whole) - len(left))
        assert [span.kind for span in report.damage] == ["repaired"]
        assert list(reader.ledger(damaged_only=True)) == reader.damage == report.damage
    warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
    with pickle.loads(pickle.dumps(seglake.open(path, on_damage="repair"))) as again:
        assert again.count_rows() == len(whole)
    with seglake.open(path, on_damage="repair", threads=2) as reader:
        assert sum(batch.num_rows for batch in reader.batches(2, warn=False)) == len(whole)
    assert path.read_bytes() == damaged
    scanned = [seglake.scan(path, on_damage=how).count_rows() for how in ("skip", "repair")]
    assert scanned == [len(left), len(whole)]
    with pytest.raises(seglake.DamageError, match="parity sidecar"):
        seglake.scan(path).count_rows()
    if format == "oplog":
        assert len(records_of(path, sidecar=None)) == len(whole)


def test_what_on_damage_may_be(tmp_path: Path) -> None:
    path = protected(tmp_path, "active")
    with pytest.raises(ValueError, match="expected one of raise, skip, repair"):
        seglake.open(path, on_damage=cast("Any", "mend"))


def test_cat_prints_restored_records_on_request(tmp_path: Path) -> None:
    path = protected(tmp_path, "active")
    whole = here("cat", "--json", str(path)).out
    flip(path, 100)
    stopped = here("cat", "--json", str(path))
    assert stopped.status == 1
    assert "parity sidecar" in stopped.err
    skipping = here("cat", "--json", "--on-damage", "skip", str(path))
    assert (skipping.status, len(skipping.out.splitlines())) == (1, RECORDS - 1)
    restored = here("cat", "--json", "--on-damage", "repair", str(path))
    assert (restored.status, restored.out) == (1, whole)
    assert "the parity sidecar differs in 1 byte in 1 range, of 1 record" in restored.err
    [line] = here("cat", "--json", "--on-damage", "repair", "--limit", "1", str(path)).out.splitlines()
    assert line == whole.splitlines()[0]


def test_a_sidecar_that_is_missing_is_named(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    for more in ([], [str(tmp_path / "new")]):
        found = here("repair", str(path), *more)
        assert found.status == 2
        assert f"{path}.par: expected the parity sidecar of {path}" in found.err
        assert "name it with --sidecar" in found.err
    gone = here("repair", str(tmp_path / "gone"))
    assert gone.status == 2
    assert "gone: " in gone.err
    assert "parity sidecar" not in gone.err


@pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")
def test_sealed_segments_of_a_log_are_read_by_their_sidecars(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with seglake.SegmentLog(path, segment_bytes=300, protect="128+8") as log:
        for number in range(20):
            log.write("type", f"value {number}")
    sealed = sorted(path.glob("*.sealed"))[1]
    content = bytearray(sealed.read_bytes())
    content[content.index(b"value ")] ^= 1
    sealed.write_bytes(content)
    with pytest.raises(seglake.DamageError):
        seglake.scan(path).count_rows()
    assert seglake.scan(path, on_damage="skip").count_rows() == 19
    assert seglake.scan(path, on_damage="repair").count_rows() == 20
    done = here("verify", "--json", path)
    [report] = [found for line in done.out.splitlines() if not (found := json.loads(line))["ok"]]
    assert (report["path"], report["repaired_records"]) == (str(sealed), 1)
    assert report["parity"]["outcome"] == "repaired"
    # Without the sidecar it is plain damage.
    Path(f"{sealed}.par").unlink()
    assert seglake.scan(path, on_damage="skip").count_rows() == 19


@pytest.mark.parametrize("format", ["active", "chunked", "sealed"])
@pytest.mark.parametrize("bits", [24, 40, 61])
def test_what_a_sidecar_claims_does_not_make_reading_slow(tmp_path: Path, format: str, bits: int) -> None:
    path = protected(tmp_path, format)
    sidecar = Path(f"{path}.par")
    content = bytearray(sidecar.read_bytes())
    for head in re.finditer(b"SLKPRTY1", bytes(content)):
        at = head.start()
        content[at + 40 : at + 48] = struct.pack(">Q", 1 << bits)  # how much of the file is covered
        content[at + 48 : at + 56] = checksum(bytes(content[at : at + 48]))
    sidecar.write_bytes(content)
    size = path.stat().st_size
    report = seglake.verify(path)
    assert report.parity is not None
    assert (report.ok, report.parity.outcome) == (False, "lost")
    assert report.parity.damage[-1].end == 1 << bits
    # The missing bytes are damage, but not more of them are gone through than both files have by far.
    assert size < report.nbytes <= 256 * (size + len(content))
    with pytest.raises(seglake.DamageError):
        seglake.open(path).count_rows()
    # In a sealed file the last message ends where the trailer begins, which is not found from the end then.
    with pytest.warns(seglake.exceptions.DamageWarning, match="skipped"):
        assert seglake.open(path, on_damage="skip").count_rows() >= RECORDS - (format == "sealed")


def test_a_burst_is_shown_as_one_range_though_some_of_its_bytes_are_right(tmp_path: Path) -> None:
    path = tmp_path / "burst.active"
    with seglake.create(path, format="active") as writer:
        for number in range(100):
            writer.write(type="t", value=bytes([number]) * 100)
    seglake.protect(path)
    content = bytearray(path.read_bytes())
    for at in range(4000, 6000):
        content[at] ^= 0 if at % 250 == 0 or at == 4100 else 0x55
    content[9000] ^= 1
    path.write_bytes(content)
    report = seglake.verify(path)
    assert len(report.damage) == 10
    done = here("verify", str(path))
    rows = [line.split() for line in done.out.splitlines() if " repaired " in line and line.strip()[0].isdigit()]
    assert [row[:4] for row in rows] == [
        ["4,001", "6,000", "1,991", "repaired"],
        ["9,000", "9,001", "1", "repaired"],
    ]
    assert "  ranges    10, see --json" in done.out
    assert "more range" not in done.out
    assert len(json.loads(here("verify", "--json", str(path)).out)["damage"]) == 10


def test_recover_says_that_a_sidecar_restores_what_it_would_leave_out(tmp_path: Path) -> None:
    path = protected(tmp_path, "oplog")
    assert here("recover", str(path), str(tmp_path / "sound.oplog")).err == ""
    flip(path, in_a_record(path))
    # By itself the file is sound: it has no checksums.
    done = here("recover", str(path), str(tmp_path / "new.oplog"))
    assert done.status == 1
    assert "its parity sidecar covers, which restores all of it" in done.err
    assert f"seglake repair {path}" in done.err
    Path(f"{path}.par").unlink()
    done = here("recover", str(path), str(tmp_path / "without.oplog"))
    assert (done.status, done.err) == (0, "")


def test_changed_bytes_are_not_converted(tmp_path: Path) -> None:
    path = protected(tmp_path, "oplog")
    assert seglake.convert(path, tmp_path / "sound.oplog").records == RECORDS
    flip(path, in_a_record(path))
    with pytest.raises(seglake.DamageError, match="parity sidecar"):
        seglake.convert(path, tmp_path / "new.oplog")
    report = seglake.convert(seglake.open(path, on_damage="skip"), tmp_path / "skipped.oplog", drop=["seq"])
    assert (report.ok, report.records) == (False, RECORDS - 1)
    restored = seglake.convert(seglake.open(path, on_damage="repair"), tmp_path / "restored.oplog")
    assert (restored.ok, restored.records, restored.repaired_records) == (False, RECORDS, 1)
    assert seglake.convert(seglake.open(path, sidecar=None), tmp_path / "blind.oplog").records == RECORDS
    assert here("convert", str(path), str(tmp_path / "a.oplog")).status == 1
    assert here("convert", "--sidecar", "none", str(path), str(tmp_path / "b.oplog")).status == 0


@pytest.mark.parametrize("format", ["active", "oplog"])
def test_what_is_no_file_in_the_place_of_a_sidecar_is_told(tmp_path: Path, format: str) -> None:
    path = sample(tmp_path, format)
    sidecar = Path(f"{path}.par")
    sidecar.mkdir()
    for read in (
        seglake.verify,
        seglake.open,
        seglake.parity.coverage,
        seglake.incremental.identity,
        seglake.parity.verify,
    ):
        with pytest.raises(OSError, match=r"cannot open the parity sidecar: expected a file, found a folder. Move it"):
            read(path)
    found = here("verify", str(path))
    assert found.status == 2
    assert f"{sidecar}" in found.err
    assert here("verify", "--sidecar", "none", str(path)).status == 0
    sidecar.rmdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(sidecar)
        with pytest.raises(OSError, match="found something that is not a regular file"):
            seglake.verify(path)
        sidecar.unlink()
    assert seglake.verify(path).ok


def test_cat_tells_of_a_sidecar_that_counts_for_nothing(tmp_path: Path) -> None:
    path = protected(tmp_path, "active")
    sound = here("cat", str(path))
    assert (sound.status, sound.err) == (0, "")
    other = tmp_path / "other"
    other.write_bytes(b"another" * 500)
    seglake.protect(other, format="raw")
    found = here("cat", "--sidecar", f"{other}.par", str(path))
    assert (found.status, found.out) == (1, sound.out)
    assert re.search(r"other\.par: refused: no block of the file is as it was covered", found.err)
    Path(f"{other}.par").replace(f"{path}.par")
    beside = here("cat", str(path))
    assert (beside.status, beside.out) == (1, sound.out)
    assert "the sidecar of" in beside.err
    with seglake.open(path) as reader:
        assert (reader.count_rows(), reader.parity_refused) == (RECORDS, "another_file")
    seglake.protect(path, as_it_is=True)
    content = path.read_bytes()
    rewritten = tmp_path / "rewritten"
    with seglake.create(rewritten, format="active") as writer:
        for number in range(RECORDS):
            writer.write(value=b"%d" % number, type=f"t{number % 3}")
    # The same beginning, and then records that prove themselves.
    half = in_a_record(path) - 2
    path.write_bytes(content[:half] + rewritten.read_bytes()[half:])
    found = here("cat", str(path))
    assert found.status == 1
    assert "if the file is right as it is, `seglake protect --as-it-is` begins a new sidecar" in found.err
    found = here("verify", str(path))
    assert found.status == 1
    assert "it has other bytes for records that their own checksums prove" in found.out + found.err
