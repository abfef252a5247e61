"""`seglake.protect` and `repair`, and their commands."""

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cli_process import here
from cli_samples import EXTENSIONS, RECORDS, damage, fields, sample

import seglake
from seglake.parity.by_sidecar import listed_size


def flip(path: Path, *places: int) -> None:
    """Changes a byte at each of these places, and leaves the time at which the file was modified."""
    stat = path.stat()
    content = bytearray(path.read_bytes())
    for place in places:
        content[place] ^= 0x55
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("format", EXTENSIONS)
def test_a_file_of_each_format_is_repaired(tmp_path: Path, format: str) -> None:
    path = sample(tmp_path, format)
    whole, modified = path.read_bytes(), path.stat().st_mtime_ns
    protected = seglake.protect(path)
    assert (protected.path, protected.sidecar) == (str(path), f"{path}.par")
    assert (protected.change, protected.healed, protected.profile) == ("created", False, "128+8")
    assert protected.covered_bytes == protected.nbytes == len(whole)
    assert protected.sidecar_bytes == Path(protected.sidecar).stat().st_size
    assert protected.report is not None
    assert protected.report.records == RECORDS
    assert seglake.protect(path).change == "unchanged"
    flip(path, 5, len(whole) - 1)
    damaged = path.read_bytes()
    told: list[tuple[int, ...]] = []
    repaired = seglake.repair(path, progress=lambda *bytes: told.append(bytes))
    assert (repaired.outcome, repaired.lost) == ("repaired", False)
    assert told[-1] == (len(whole), len(whole))
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (whole, modified)
    assert repaired.changed_bytes >= 2
    assert {span.kind for span in repaired.damage} == {"repaired"}
    assert repaired.worst is not None
    assert repaired.worst["needs"] <= repaired.worst["of"] == 8
    kept = Path(f"{path}.damaged")
    assert (repaired.damaged, repaired.damaged_sidecar) == (str(kept), None)
    assert repaired.to_dict()["damaged"] == repaired.damaged
    assert repr(repaired).startswith(f"Repaired({str(path)!r}".replace("'", '"'))
    assert seglake.repair(path).outcome == "sound"
    assert (kept.read_bytes(), kept.stat().st_mtime_ns) == (damaged, modified)
    kept.rename(path)
    assert seglake.repair(path).damaged == str(kept)


@pytest.mark.parametrize("left", [0, 90_000, 150_000, 199_999])
def test_a_file_that_was_cut_off_is_not_protected_again(tmp_path: Path, left: int) -> None:
    path = tmp_path / "cut.active"
    with seglake.create(path, format="active") as writer:
        for _ in range(40):
            writer.write(type="t", value=bytes(4970))
    assert seglake.protect(path).covered_bytes == 200_000
    os.truncate(path, left)
    sidecar = Path(f"{path}.par").read_bytes()
    with pytest.raises(seglake.DamageError, match="at least the 200000 bytes that were covered, found"):
        seglake.protect(path)
    assert Path(f"{path}.par").read_bytes() == sidecar


def test_a_sidecar_that_lost_the_hashes_of_a_file_does_not_say_that_it_has_changed(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    sidecar = Path(seglake.protect(path).sidecar)
    sidecar.write_bytes(sidecar.read_bytes()[:100])
    with pytest.raises(seglake.DamageError) as refused:
        seglake.protect(path)
    assert refused.value.actual == "bytes that nothing in the sidecar verifies"


@pytest.mark.parametrize("verb", [seglake.parity.coverage, seglake.parity.verify])
def test_a_file_that_is_not_there_is_an_error(tmp_path: Path, verb: Callable[[Path], object]) -> None:
    with pytest.raises(FileNotFoundError):
        verb(tmp_path / "missing.active")
    assert verb(sample(tmp_path, "active")) is None


def test_a_file_that_grew_is_covered_again(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    seglake.protect(path, profile="128+4")
    with seglake.create(path, format="active", if_exists="append") as writer:
        writer.write(type="new", value=bytes(1000))
    protected = seglake.protect(path, lazy=True)
    assert (protected.change, protected.profile) == ("extended", "128+4")
    assert protected.covered_bytes == path.stat().st_size
    with pytest.raises(ValueError, match=r"has the profile 128\+4"):
        seglake.protect(path, profile="128+8")


def test_a_repair_may_go_elsewhere(tmp_path: Path) -> None:
    path, new = sample(tmp_path, "active"), tmp_path / "new.active"
    whole = path.read_bytes()
    seglake.protect(path)
    flip(path, 100)
    damaged = path.read_bytes()
    with pytest.raises(FileNotFoundError) as error:
        seglake.repair(path.with_name("gone"), destination=new)
    assert error.value.filename == str(path.with_name("gone"))
    repaired = seglake.repair(path, destination=new)
    assert (repaired.path, repaired.sidecar, repaired.damaged) == (str(new), f"{new}.par", None)
    assert (path.read_bytes(), new.read_bytes()) == (damaged, whole)
    assert seglake.repair(new).outcome == "sound"
    with pytest.raises(FileExistsError):
        seglake.repair(path, destination=new)


def test_what_to_do_about_damage_is_what_the_command_can_do(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    flip(path, 100)
    for words, next in (
        (("protect", path), "`seglake recover` saves what is sound; --as-it-is protects the file as it is"),
        (("seal", path, tmp_path / "new"), "--on-damage skip goes on with what is sound"),
        (("cat", path), "--on-damage skip goes on with what is sound"),
    ):
        ended = here(*words)
        assert ended.status == 1
        assert ended.err.endswith(f"  next      `seglake verify` lists every damaged range; {next}\n")


@pytest.mark.parametrize("command", ["protect", "repair"])
def test_standard_input_has_no_sidecar(command: str, tmp_path: Path) -> None:
    done = here(command, "-", stdin=sample(tmp_path, "active").read_bytes())
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("seglake: standard input has no sidecar beside it: name a file")


def test_none_is_no_sidecar_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify --sidecar none` reads without one."""
    monkeypatch.chdir(tmp_path)
    path = sample(tmp_path, "active")
    for verb in "protect", "repair":
        ended = here(verb, "--sidecar", "none", str(path))
        assert (ended.status, "expected a path. A file of this name is ./none" in ended.err) == (2, True)
    assert not (tmp_path / "none").exists()
    for verb in "protect", "repair":
        assert here(verb, "--sidecar", "./none", str(path)).status == 0


def test_what_is_lost_is_named_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    content = os.urandom(300_000)
    path.write_bytes(content)
    seglake.protect(path, format="raw")
    # One group of 74 blocks.
    lost = [block * 4096 for block in range(0, 36, 4)]
    flip(path, *lost, 4097)
    repaired = seglake.repair(path, format="raw")
    assert (repaired.outcome, repaired.lost) == ("lost", True)
    assert repaired.worst is not None
    assert repaired.worst["needs"] > repaired.worst["of"]
    ranges = [(own["start"], own["end"]) for own in repaired.lost_ranges]
    assert ranges == [(span.start, span.end) for span in repaired.damage if span.kind == "lost"]
    assert repaired.lost_ranges[0]["worst"] == repaired.worst
    assert repaired.to_dict()["lost_ranges"] == repaired.lost_ranges
    named = [span for span in repaired.damage if span.kind == "lost"]
    assert named
    assert all(span.cause == "checksum_mismatch" for span in named)


def test_wrong_use_is_refused(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    with pytest.raises(FileNotFoundError):
        seglake.repair(path)
    with pytest.raises(ValueError, match="there is no profile"):
        seglake.protect(path, profile="1+1")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="only files on this machine"):
        seglake.protect("s3://bucket/key")
    damage(path, 3)
    with pytest.raises(seglake.DamageError):
        seglake.protect(path)
    report = seglake.protect(path, as_it_is=True).report
    assert report is not None
    assert not report.ok
    other = tmp_path / "other"
    other.write_bytes(b"text")
    with pytest.raises(seglake.FormatError, match="with the format `raw`"):
        seglake.protect(other)
    other.with_suffix(".par").write_bytes(b"no sidecar")
    with pytest.raises(seglake.FormatError, match="found none"):
        seglake.repair(other, format="raw")


def test_a_file_without_checksums_that_was_changed_on_purpose_is_not_changed_back(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_bytes(bytes(range(256)) * 40)
    seglake.protect(path, format="raw")
    content = bytearray(path.read_bytes())
    content[7] = 0
    modify(path, content)
    with pytest.raises(ValueError, match="modified after it was protected"):
        seglake.repair(path, format="raw")
    assert path.read_bytes() == content
    assert seglake.repair(path, format="raw", force=True).outcome == "repaired"


def modify(path: Path, content: bytes) -> None:
    """Writes a file, later than its sidecar by a second."""
    path.write_bytes(content)
    os.utime(path, ns=(0, Path(f"{path}.par").stat().st_mtime_ns + 1_000_000_000))


@pytest.mark.parametrize(("left_out", "checked"), [(1, "checksum"), (60, "structure")])
def test_a_file_whose_checksums_were_cut_off_is_repaired_whenever_it_was_modified(
    tmp_path: Path, left_out: int, checked: str
) -> None:
    path = sample(tmp_path, "sealed")
    whole = path.read_bytes()
    seglake.protect(path)
    modify(path, whole[:-left_out])  # the trailer is not whole
    assert seglake.verify(path, sidecar=None).checked == checked
    assert seglake.repair(path).outcome == "repaired"
    assert path.read_bytes() == whole


@pytest.mark.parametrize("format", ["active", "sealed", "tenant", "chunked"])
def test_a_file_whose_only_record_is_damaged_is_repaired_whenever_it_was_modified(tmp_path: Path, format: str) -> None:
    path = tmp_path / "one"
    with seglake.create(path, format=format) as writer:
        writer.write(value=b"greeting" * 40, **fields(format, 0))
    whole = path.read_bytes()
    with seglake.open(path) as reader:
        [record] = reader
    seglake.protect(path)
    content = bytearray(whole)
    content[record.position + 45] ^= 1
    modify(path, content)
    assert seglake.repair(path).outcome == "repaired"
    assert path.read_bytes() == whole


def test_a_file_under_another_key_is_not_changed_back(tmp_path: Path) -> None:
    path = tmp_path / "secret.active"
    with seglake.create(path, format="active", key=bytes(range(32))) as writer:
        writer.write(type="greeting", value=bytes(300))
    seglake.protect(path, key=bytes(range(32)))
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    modify(path, content)
    # Without the key it cannot be known which of the two is right.
    with pytest.raises(ValueError, match="modified after it was protected"):
        seglake.repair(path)
    assert path.read_bytes() == content
    assert seglake.repair(path, key=bytes(range(32))).outcome == "repaired"


def sealed(path: Path, last: bytes, *, trailer: bool) -> bytes:
    """Writes a sealed segment of three records, each larger than a block; returns its bytes."""
    with seglake.create(path, format="sealed", options={"trailer": trailer}, if_exists="overwrite") as writer:
        for value in (bytes(30_000), bytes(30_000), bytes(30_000) + last):
            writer.write(type="greeting", value=value)
    return path.read_bytes()


def test_a_sealed_file_that_was_written_anew_without_checksums_is_not_changed_back(tmp_path: Path) -> None:
    path = tmp_path / "anew.sealed"
    sealed(path, b"earlier", trailer=True)
    seglake.protect(path)
    content = sealed(path, b"present", trailer=False)
    modify(path, content)
    with pytest.raises(ValueError, match="modified after it was protected"):
        seglake.repair(path)
    assert path.read_bytes() == content


def test_a_record_that_its_checksum_proves_is_not_changed_back(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    first = path.read_bytes()
    again = tmp_path / "again"
    again.mkdir()
    seglake.protect(path)
    other = sample(again, "active").read_bytes()
    assert len(other) == len(first)
    with seglake.open(path) as reader:
        end = list(reader)[1].position
    # The first record is another, which is as good.
    path.write_bytes(other[:end] + first[end:])
    assert seglake.verify(path).records >= 1
    before = path.read_bytes()
    with pytest.raises(ValueError, match="its own checksum proves"):
        seglake.repair(path)
    assert path.read_bytes() == before
    seglake.repair(path, force=True)
    assert path.read_bytes() == first


def test_the_commands(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    whole = path.read_bytes()
    done = here("protect", path)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"{path}: protected: ")
    assert f"{path}.par: " in done.out
    assert here("protect", "--json", path).json_lines()[0]["change"] == "unchanged"
    flip(path, 100)
    done = here("protect", path)
    assert (done.status, done.out) == (1, "")
    assert "checksum_mismatch" in done.err
    done = here("repair", path)
    assert (done.status, done.err) == (0, "")
    assert "repaired, as it was protected" in done.out
    shown = f"  kept        {path}.damaged: the file as it was\n  to undo     mv {path}.damaged {path}\n"
    assert done.out.endswith(shown)
    assert path.read_bytes() == whole
    flip(path, 200)
    sidecar = Path(f"{path}.par")
    flip(sidecar, 100)
    damaged = path.read_bytes()
    done = here("repair", path)
    assert (done.status, done.out, path.read_bytes()) == (2, "", damaged)
    assert f"{path}.damaged: the damaged file would get this name" in done.err
    assert "Move it elsewhere, or remove it, and repair again" in done.err
    Path(f"{path}.damaged").rename(path)
    done = here("repair", "--json", path).json_lines()[0]
    assert (done["outcome"], done["damaged"]) == ("repaired", f"{path}.damaged")
    assert done["damaged_sidecar"] == f"{sidecar}.damaged"


def test_a_folder_is_protected_and_read_without_its_sidecars(tmp_path: Path) -> None:
    for format in ("active", "sealed"):
        sample(tmp_path, format)
    done = here("protect", "--json", tmp_path)
    assert (done.status, len(done.json_lines())) == (0, 2)
    flip(tmp_path / "sample.active", 100)
    assert here("repair", tmp_path / "sample.active").status == 0
    (tmp_path / "sample.active.par.damaged").write_bytes(b"kept")
    assert len(sorted(tmp_path.iterdir())) == 6
    # Neither the sidecars nor what the repair kept are files to read.
    assert len(here("protect", "--json", tmp_path).json_lines()) == 2
    assert len(here("verify", "--json", tmp_path).json_lines()) == 2
    assert here("protect", "--sidecar", tmp_path / "one", tmp_path).status == 2
    (tmp_path / "notes").write_bytes(b"text")
    done = here("protect", "--json", tmp_path)
    assert (done.status, len(done.json_lines())) == (2, 3)
    assert "--format raw" in done.err


def test_the_sidecar_of_a_link_is_the_one_beside_it_or_else_beside_its_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "links").mkdir()
    path = sample(tmp_path / "data", "oplog")
    content = path.read_bytes()
    link = tmp_path / "links" / "current.oplog"
    link.symlink_to(Path("..") / "data" / path.name)
    # What is covered lies where the link leads to, and so does its new sidecar.
    made = seglake.protect(link)
    sidecar = Path(f"{path}.par")
    assert (made.sidecar, made.change) == (str(sidecar.resolve()), "created")
    assert seglake.protect(path).change == "unchanged"
    flip(path, 50)
    for name in (path, link):
        report = seglake.verify(name)
        assert report.parity is not None
        assert report.parity.outcome == "repaired"
        with seglake.open(name) as reader, pytest.raises(seglake.DamageError):
            list(reader)
        with pytest.raises(seglake.DamageError):
            seglake.scan(name).to_table()
        (found,) = seglake.scrub(name)
        assert not found.ok
        assert here("verify", str(name)).status == 1
    # What a repair keeps is beside the file.
    kept = Path(f"{path}.damaged")
    repaired = seglake.repair(link)
    assert (repaired.damaged, path.read_bytes()) == (str(kept.resolve()), content)
    kept.rename(path)
    assert not seglake.verify(link).ok
    assert list(link.parent.iterdir()) == [link]
    # One beside the link counts before that: so do folders of links, each to a file of a store.
    sidecar.rename(f"{link}.par")
    assert seglake.verify(path).parity is None
    assert seglake.repair(link).sidecar == f"{link}.par"
    assert path.read_bytes() == content
    assert seglake.protect(link).sidecar == f"{link}.par"


def test_a_sidecar_that_is_named_as_a_file_is_told_to_be_one(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    sidecar = seglake.protect(path).sidecar
    assert "it is a parity sidecar" in seglake.detect(sidecar).reason
    for verb in ("verify", "protect", "cat"):
        done = here(verb, sidecar)
        assert done.status == 2
        assert "it is a parity sidecar: name the file that it is for" in done.err


UNREADABLE = r"cannot open the parity sidecar: permission denied\. Run this as its owner, or read the file without it"


@contextmanager
def another_user(path: Path) -> Generator[None]:
    """Who may read the folder, and not this file or folder."""
    path.chmod(0o600 if os.geteuid() == 0 else 0)
    if is_root := os.geteuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        path.chmod(0o700)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_a_sidecar_that_may_not_be_read_is_not_told_to_be_none() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        active, raw = sample(Path(folder), "active"), Path(folder, "notes")
        raw.write_bytes(b"notes")
        seglake.protect(active)
        seglake.protect(raw, format="raw")
        active.chmod(0o644)
        raw.chmod(0o644)
        for path in (active, raw):
            sidecar = Path(f"{path}.par")
            with another_user(sidecar):
                for verb in (
                    seglake.parity.verify,
                    seglake.parity.coverage,
                    seglake.verify,
                    seglake.open,
                    seglake.incremental.identity,
                ):
                    with pytest.raises(PermissionError, match=UNREADABLE) as raised:
                        verb(path)
                    assert raised.value.filename == str(sidecar)
                [found] = seglake.scrub(path)
                assert isinstance(found.error, PermissionError)
                for verb in ("verify", "info", "cat", "protect", "repair"):
                    done = here(verb, path)
                    assert done.status == 2
                    assert UNREADABLE.replace("\\", "") in done.err
        with another_user(Path(f"{active}.par")):
            assert seglake.verify(active, sidecar=None).ok
            assert here("cat", "--sidecar", "none", active).status == 0
            for read in (
                lambda: listed_size(str(active), 10),
                lambda: seglake.repair(active, destination=Path(folder, "new")),
                lambda: list(seglake.scan(active).batches()),
                lambda: seglake.incremental.resume(active, None),
            ):
                with pytest.raises(PermissionError, match=UNREADABLE):
                    read()
        hidden = Path(folder, "hidden")
        hidden.mkdir()
        Path(f"{raw}.par").rename(hidden / "par")
        Path(f"{raw}.par").symlink_to(hidden / "par")
        with another_user(hidden), pytest.raises(PermissionError, match=UNREADABLE):
            seglake.parity.verify(raw)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_what_is_where_a_sidecar_would_be_has_one_text(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    sidecar = Path(f"{path}.par")
    sidecar.mkdir()
    for verb in ("verify", "cat", "protect", "repair"):
        done = here(verb, path)
        assert done.status == 2
        assert (
            f"{sidecar}: cannot open the parity sidecar: expected a file, found a folder. Move it, or read" in done.err
        )
