"""The ingest by parity sidecars: whatever becomes of a file between two runs, each record comes in once."""

import json
import random
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from cli_process import here
from samples import SAMPLES, Sample
from segments import flip, write_segment
from test_ingest_again import GROWING, latest, plain, rows
from test_protect import another_user

import seglake
from seglake import IngestError, SegmentLog, ingest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the ingest runs on Linux and macOS")

WITHOUT_CHECKSUMS = ("draft", "autobase", "sealed 0", "tenant 1")
PLACES = ("identity", "first", "offset", "uuid")
FILES = {
    **{name: (SAMPLES[name], {}) for name in (*GROWING, "sealed", "tenant")},
    "sealed 0": (SAMPLES["sealed"], {"trailer": False}),
    "tenant 1": (SAMPLES["tenant"], {"version": 1}),
}


def written(path: Path, sample: Sample, own: dict[str, Any], records: int = 60) -> bytes:
    options = {**sample.write_options.get("options", {}), **own}
    arguments = {**sample.write_options, **({"options": options} if options else {})}
    Sample(sample.format, sample.extension, sample.make, arguments, sample.read_options).write(path, records)
    return path.read_bytes()


class Life:
    """A file in the middle of its life, beside its sidecar."""

    def __init__(self, folder: Path, name: str, chance: random.Random) -> None:
        self.sample, own = FILES[name]
        folder.mkdir()
        self.whole = written(folder / "whole", self.sample, own)
        (folder / "whole").unlink()
        self.path = folder / f"file.{self.sample.extension}"
        self.sidecar = Path(f"{self.path}.par")
        self.chance = chance
        self.end = chance.randrange(800, len(self.whole)) if name in GROWING else len(self.whole)
        self.struck: set[int] = set()
        self.is_cut = False
        self.path.write_bytes(self.whole[: self.end])

    @property
    def is_damaged(self) -> bool:
        return bool(self.struck) or self.is_cut

    def step(self) -> None:
        steps = [self.grow, self.grow, self.protect, self.protect, self.strike, self.strike, self.cut, self.repair]
        self.chance.choice([*steps, self.remove])()

    def grow(self) -> None:
        if self.is_cut:
            return
        before, self.end = self.end, self.chance.randint(self.end, len(self.whole))
        with self.path.open("ab") as file:
            file.write(self.whole[before : self.end])

    def protect(self) -> None:
        if not self.is_damaged:
            seglake.protect(self.path, dialect=self.sample.read_options.get("dialect"))  # pyright: ignore

    def covered(self) -> int:
        if self.is_damaged or not self.sidecar.exists():
            return 0
        found = seglake.coverage(self.path)
        return 0 if found is None or found.covered_bytes is None else found.covered_bytes

    def strike(self) -> None:
        covered = self.covered()
        if covered:
            self.struck = {self.chance.randrange(most) for most in (60, covered, covered)}
            for at in self.struck:
                flip(self.path, at)

    def cut(self) -> None:
        if self.covered() == self.end:
            self.is_cut = True
            self.path.write_bytes(self.whole[: self.end - self.chance.randint(1, 60)])

    def repair(self) -> None:
        if self.is_damaged:
            own = {name: self.sample.read_options[name] for name in ("dialect",) if name in self.sample.read_options}
            repaired = seglake.repair(self.path, force=True, **own)
            for damaged in self.path.parent.glob("*.damaged"):
                damaged.unlink()
            # What is after the covered bytes may not be finished.
            is_sound = seglake.verify(self.path, format=self.sample.format, **self.sample.read_options).ok
            assert repaired.outcome == ("repaired" if is_sound else "lost")
            self.struck, self.is_cut = set(), False
            assert self.path.read_bytes() == self.whole[: self.end]

    def remove(self) -> None:
        self.repair()
        self.sidecar.unlink(missing_ok=True)

    def ingest(self, lake: Path) -> seglake.IngestResult:
        arguments: dict[str, Any] = dict(self.sample.read_options)
        return ingest(self.path, lake, format=self.sample.format, **arguments)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", FILES)
def test_each_record_comes_once_whatever_becomes_of_its_file(tmp_path: Path, name: str, seed: int) -> None:
    life, lake = Life(tmp_path / "src", name, random.Random(f"{name} {seed}")), tmp_path / "lake"
    told: set[tuple[int, int]] = set()
    for _ in range(12):
        life.step()
        if life.chance.random() < 0.4:
            continue  # the first look may be at a damaged file
        result = life.ingest(lake)
        assert not result.errors
        for row in rows(lake, "damage"):
            place = (row["start"], row["end"])
            if place in told:
                continue
            told.add(place)
            assert row["kind"] == "repaired"
            # Byte for byte as it is in the file; what was cut off is not there.
            assert row["raw"] == life.path.read_bytes()[row["start"] : row["end"]]
            assert life.is_cut or {at for at in life.struck if row["start"] <= at < row["end"]}
    life.repair()
    life.end = len(life.whole)
    life.path.write_bytes(life.whole)
    life.ingest(lake)
    life.remove()
    whole = tmp_path / "whole lake"
    life.ingest(whole)
    assert plain(lake, "records") == plain(whole, "records")
    assert len(rows(lake, "records")) == sum(row["records"] for row in latest(lake).values())
    now, then = latest(lake), latest(whole)
    assert now.keys() == then.keys()
    for segment, row in then.items():
        one, other = (json.loads(each["carry"])["position"] for each in (now[segment], row))
        assert [one[part] for part in PLACES] == [other[part] for part in PLACES]


def test_damage_in_a_file_without_checksums_is_noticed(tmp_path: Path) -> None:
    """Without the sidecar the changed value would be in the table, and nobody would know."""
    for name in WITHOUT_CHECKSUMS:
        life = Life(tmp_path / name, name, random.Random(name))
        life.end = len(life.whole)
        life.path.write_bytes(life.whole)
        life.protect()
        at = life.whole.index(b"value 000031") + 3
        life.struck = {at}
        flip(life.path, at)
        for on_damage, records in (("repair", 60), ("skip", 59)):
            lake = tmp_path / f"lake {name} {on_damage}"
            arguments: dict[str, Any] = {**life.sample.read_options, "on_damage": on_damage}
            result = ingest(life.path, lake, format=life.sample.format, **arguments)
            assert result.exit_status == 1
            (row,) = rows(lake, "damage")
            assert (row["start"], row["end"], row["kind"], row["cause"]) == (
                at,
                at + 1,
                "repaired",
                "checksum_mismatch",
            )
            assert row["raw"] == bytes([life.path.read_bytes()[at]])
            (file,) = latest(lake).values()
            assert (file["status"], file["checked"], file["corrupt_bytes"]) == ("damaged", "parity", 1)
            found = {row["value"] for row in rows(lake, "records")}
            if name != "tenant 1":  # whose records are in blocks that are checked together
                assert len(rows(lake, "records")) == file["records"] == records
            assert (b"value 000031" in found) == (on_damage == "repair")


def test_what_a_foreign_sidecar_speaks_against_waits(tmp_path: Path) -> None:
    for name in WITHOUT_CHECKSUMS:
        life, lake = Life(tmp_path / name, name, random.Random(name)), tmp_path / f"lake {name}"
        life.path.write_bytes(life.whole)
        other = tmp_path / f"other {name}"
        other.write_bytes(b"another file" * 500)
        seglake.protect(other, format="raw")
        shutil.move(f"{other}.par", life.sidecar)
        sound = tmp_path / f"sound {name}.chunks"
        SAMPLES["chunked"].write(sound)
        arguments: dict[str, Any] = {"dialect": life.sample.read_options.get("dialect")}
        result = ingest([life.path, sound], lake, **arguments)
        assert (result.statuses["sound"], result.statuses["unreadable"]) == (1, 1)
        assert "does not prove it" in result.errors[0].error
        life.sidecar.unlink()
        result = ingest([life.path, sound], lake, **arguments)
        assert not result.errors
        number = sum(row["path"] == str(life.path) for row in rows(lake, "records"))
        with seglake.open(life.path, **arguments) as reader:
            assert number == reader.count() > 0


def test_lost_blocks_of_an_oplog_wait_until_it_is_restored(tmp_path: Path) -> None:
    life, lake = Life(tmp_path / "src", "autobase", random.Random(1)), tmp_path / "lake"
    sample = life.sample
    # Of a file that is smaller each block but one may be lost.
    large = replace(sample, make=lambda number: {**sample.make(number), "value": b"%d" % number * 3000})
    life.whole = written(tmp_path / "whole", large, {})
    half = len(life.whole) // 2
    life.path.write_bytes(life.whole[:half])
    life.ingest(lake)
    before = len(rows(lake, "records"))
    life.path.write_bytes(life.whole)
    life.protect()
    life.path.write_bytes(life.whole[:half] + bytes(len(life.whole) - half))
    result = life.ingest(lake)
    assert (result.statuses["unreadable"], result.records) == (1, 0)
    life.path.write_bytes(life.whole)
    assert life.ingest(lake).records == 60 - before
    assert rows(lake, "damage") == []


def test_a_sealed_segment_goes_on_where_the_repaired_one_was(tmp_path: Path) -> None:
    life, lake = Life(tmp_path / "src", "active", random.Random(2)), tmp_path / "lake"
    life.end = len(life.whole) * 2 // 3
    life.path.write_bytes(life.whole[: life.end])
    life.protect()
    flip(life.path, 5)
    flip(life.path, life.end // 2)
    folder = life.path.parent
    assert ingest(folder, lake).exit_status == 1
    life.struck = {5}
    life.repair()
    life.end = len(life.whole)
    life.path.write_bytes(life.whole)
    seglake.seal(life.path, folder / "file.sealed")
    life.path.unlink()
    life.sidecar.unlink()
    seglake.protect(folder / "file.sealed")
    with seglake.open(folder / "file.sealed") as reader:
        first = next(iter(reader)).position
    flip(folder / "file.sealed", first + 20)
    ingest(folder, lake)
    assert sorted(row["value"] for row in rows(lake, "records")) == [b"value %06d" % number for number in range(60)]
    assert len({row["segment"] for row in rows(lake, "records")}) == 1


def test_copies_of_which_one_is_damaged_are_copies(tmp_path: Path) -> None:
    life, lake = Life(tmp_path / "src", "draft", random.Random(3)), tmp_path / "lake"
    life.path.write_bytes(life.whole)
    copy = life.path.with_name("copy.oplog")
    copy.write_bytes(life.whole)
    life.protect()
    flip(life.path, len(life.whole) // 2)
    result = ingest(life.path.parent, lake)
    assert (result.statuses["sound"], result.statuses["damaged"], len(rows(lake, "records"))) == (1, 1, 60)
    (row,) = rows(lake, "damage")
    assert (row["segment"], row["kind"]) == (str(life.path), "repaired")


def test_a_sidecar_elsewhere_is_named_for_one_file(tmp_path: Path) -> None:
    life = Life(tmp_path / "src", "draft", random.Random(4))
    life.path.write_bytes(life.whole)
    life.protect()
    elsewhere = tmp_path / "elsewhere"
    shutil.move(life.sidecar, elsewhere)
    flip(life.path, life.whole.index(b"value 000031"))
    assert here("ingest", str(life.path), "--to", str(tmp_path / "none")).status == 0
    found = here("ingest", str(life.path), "--sidecar", str(elsewhere), "--to", str(tmp_path / "lake"))
    assert found.status == 1
    assert [row["kind"] for row in rows(tmp_path / "lake", "damage")] == ["repaired"]
    shutil.move(elsewhere, life.sidecar)
    assert here("ingest", str(life.path), "--sidecar", "none", "--to", str(tmp_path / "as it is")).status == 0
    skipped = here("ingest", str(life.path), "--on-damage", "skip", "--to", str(tmp_path / "skipped"))
    assert skipped.status == 1
    assert len(rows(tmp_path / "skipped", "records")) == 59
    nowhere = tmp_path / "nowhere"
    missing = here("ingest", str(life.path), "--sidecar", str(nowhere), "--to", str(tmp_path / "no lake"))
    assert (missing.status, f"no file could be read: {nowhere}: cannot open" in missing.err) == (2, True)
    junk = tmp_path / "junk"
    junk.write_bytes(b"no sidecar at all")
    refused = here("ingest", str(life.path), "--sidecar", str(junk), "--to", str(tmp_path / "no lake"))
    assert refused.status == 2
    assert f"{junk}: expected the parity sidecar of {life.path}, found a file without any frame" in refused.err
    shutil.copy(life.path, life.path.with_name("two.oplog"))
    with pytest.raises(IngestError, match=r"the sidecar of one file; found 2 in the sources"):
        ingest(life.path.parent, tmp_path / "lake", parity=life.sidecar)
    with pytest.raises(ValueError, match="on_damage"):
        ingest(life.path, tmp_path / "lake", on_damage="raise")  # pyright: ignore


@pytest.mark.parametrize("is_named", [False, True])
def test_a_sidecar_of_another_file_is_told(tmp_path: Path, is_named: bool) -> None:
    path, other, lake = tmp_path / "src" / "file.active", tmp_path / "other.active", tmp_path / "lake"
    path.parent.mkdir()
    written(path, SAMPLES["active"], {})
    other.write_bytes(random.Random(1).randbytes(5000))
    sidecar = str(seglake.protect(other, format="raw").sidecar)
    if not is_named:
        sidecar = shutil.move(sidecar, f"{path}.par")
    how: dict[str, Any] = {"parity": sidecar} if is_named else {}
    result = ingest(path, lake, **how)
    assert (result.statuses["sound"], result.records, result.refused_sidecars) == (
        1,
        60,
        ((str(path), "another_file"),),
    )
    assert (result.ok, result.exit_status) == (False, 1)
    assert result.to_dict()["refused_sidecars"] == [{"path": str(path), "refused": "another_file"}]
    option = ["--sidecar", sidecar] if is_named else []
    done = here("ingest", path, *option, "--to", tmp_path / "again")
    assert done.status == here("cat", path, *option).status == 1
    assert "sidecars ignored:" in done.out
    assert f"{path}: no block of the file is as" in done.out
    assert ingest(path, lake, parity=None).ok


def test_a_file_whose_sidecar_cannot_be_read_is_unreadable() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        life, lake = Life(Path(folder, "src"), "draft", random.Random(4)), Path(folder, "lake")
        half = life.whole.index(b"value 000030")
        life.path.write_bytes(life.whole[:half])
        life.protect()
        flip(life.path, life.whole.index(b"value 000011"))
        other = life.path.with_name("other.active")
        written(other, SAMPLES["active"], {})
        with another_user(life.sidecar):
            result = ingest(life.path.parent, lake)
            [error] = result.errors
            assert (error.path, error.status, result.records) == (str(life.path), "unreadable", 60)
            assert f"{life.sidecar}: cannot open the parity sidecar: permission denied" in error.error
            assert here("ingest", life.path.parent, "--to", lake).status == 1
        assert {row["path"]: row["status"] for row in rows(lake, "files")}[str(life.path)] == "unreadable"


@pytest.mark.parametrize("name", FILES)
def test_the_format_is_that_of_the_restored_file(tmp_path: Path, name: str) -> None:
    life, lake = Life(tmp_path / "src", name, random.Random(5)), tmp_path / "lake"
    life.path.write_bytes(life.whole)
    life.protect()
    for at in (0, 1, 4, len(life.whole) - 1, len(life.whole) - 5):
        flip(life.path, at)
    arguments: dict[str, Any] = {"dialect": life.sample.read_options.get("dialect")}
    ingest(life.path, lake, **arguments)
    (file,) = latest(lake).values()
    assert (file["format"], file["status"], file["records"]) == (life.sample.format, "damaged", 60)


def test_the_sealed_segments_of_a_log_are_read_by_their_sidecars(tmp_path: Path) -> None:
    folder, lake = tmp_path / "log", tmp_path / "lake"
    with SegmentLog(folder, segment_bytes=1 << 12, protect="128+8") as log:
        for number in range(300):
            log.write(type="t", value=b"value %06d" % number)
        log.wait_sealed()
    sealed = min(folder.glob("*.sealed"))
    at = sealed.read_bytes().index(b"value 000003")
    flip(sealed, at)
    assert ingest(folder, lake).exit_status == 1
    assert [(row["kind"], row["start"]) for row in rows(lake, "damage")] == [("repaired", at)]
    assert sorted(row["value"] for row in rows(lake, "records")) == [b"value %06d" % number for number in range(300)]


def test_a_file_whose_cut_end_tells_its_format_is_ingested(tmp_path: Path) -> None:
    path, lake = tmp_path / "src" / "one.sealed", tmp_path / "lake"
    path.parent.mkdir()
    with seglake.create(path, format="sealed", options={"trailer": False}) as writer:
        writer.write(type="greeting", value=bytes(3000))
    seglake.protect(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert seglake.detect(path.read_bytes()).format != "sealed"  # else this shows nothing
    assert ingest(path, lake).records == 1
    path.write_bytes(whole)
    assert not ingest(path, lake).errors
    assert [row["value"] for row in rows(lake, "records")] == [bytes(3000)]


@pytest.mark.skipif(sys.platform != "linux", reason="what was read is asked of /proc")
def test_the_band_of_a_damaged_first_record_is_read_by_each_run(tmp_path: Path) -> None:
    def so_far() -> int:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))

    path, lake = tmp_path / "a.active", tmp_path / "lake"
    written = write_segment(path, 3_003, value_bytes=8000)
    content = path.read_bytes()

    def grown(records: int, *, is_damaged: bool = False) -> int:
        """Ingests the file with so many records; returns how many bytes were read."""
        path.write_bytes(content[: written[records - 1].end])
        if is_damaged:
            flip(path, 100)
        before = so_far()
        assert ingest(path, lake, threads=1).statuses["sound"] == 1
        return so_far() - before

    grown(3_000)
    path.write_bytes(content[: written[2_999].end])
    seglake.protect(path)
    sound = grown(3_001)
    more = grown(3_002, is_damaged=True) - sound
    # Once to be identified, once to be read.
    size = path.stat().st_size
    assert (16 << 20) < more < 2 * size
    assert len(rows(lake, "records")) == 3_002
