"""`seglake.scrub` and its command: every file is verified once, damage is told and repaired, and a pass is taken up."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_process import here

import seglake
from seglake import SegmentLog, scrub
from seglake._types import OpenOptions

AUTOBASE: OpenOptions = {"dialect": "autobase"}


@pytest.fixture
def folder(tmp_path: Path, vectors: Path) -> Path:
    """Files of all formats, and a log."""
    folder = tmp_path / "all"
    folder.mkdir()
    for name in ("active", "sealed", "tenant"):
        shutil.copy(vectors / name / "typical.bin", folder / f"{name}.{name}")
    shutil.copy(vectors / "autobase" / "real-plain-c.oplog", folder / "z.oplog")
    with SegmentLog(folder / "log", segment_bytes=200) as log:
        for number in range(20):
            log.write("type", f"value {number}")
    for sealed in (folder / "log").glob("*.sealed"):
        seglake.protect(sealed)
    return folder


def flip(path: Path, at: int = 200) -> bytes:
    sound = path.read_bytes()
    path.write_bytes(sound[:at] + bytes([sound[at] ^ 4]) + sound[at + 1 :])
    return sound


def names(found: list[seglake.parity.Scrubbed]) -> list[str]:
    return [Path(each.path).name for each in found]


def test_each_file_is_verified_once_in_order(folder: Path) -> None:
    found = list(scrub(folder, options=AUTOBASE))
    assert all(each.ok for each in found)
    assert [each.path for each in found] == sorted(each.path for each in found)
    segments = [path for path in (folder / "log").iterdir() if path.suffix in (".active", ".sealed")]
    assert set(names(found)) == {
        "active.active", "sealed.sealed", "tenant.tenant", "z.oplog", *(path.name for path in segments)
    }  # fmt: skip


def test_damage_is_told_and_repaired_only_if_asked(folder: Path) -> None:
    for name in ("active.active", "tenant.tenant"):
        seglake.protect(folder / name)
    sound = {name: flip(folder / name) for name in ("active.active", "tenant.tenant", "sealed.sealed")}
    sealed = sorted((folder / "log").glob("*.sealed"))[0]
    whole = flip(sealed, 60)

    def damaged(repair: bool) -> dict[str, seglake.parity.Scrubbed]:
        found = scrub(folder, options=AUTOBASE, repair=repair)
        return {Path(each.path).name: each for each in found if not each.ok}

    for _ in range(2):
        assert set(damaged(repair=False)) == {*sound, sealed.name}
    found = damaged(repair=True)
    assert set(found) == {*sound, sealed.name}
    assert [name for name, each in found.items() if not each.is_mended] == ["sealed.sealed"]
    assert found["sealed.sealed"].repaired is None  # it has no sidecar
    for name in ("active.active", "tenant.tenant"):
        assert (folder / name).read_bytes() == sound[name]
    assert sealed.read_bytes() == whole
    assert set(damaged(repair=True)) == {"sealed.sealed"}
    (folder / "active.active.damaged").rename(folder / "active.active")
    assert set(damaged(repair=False)) == {"active.active", "sealed.sealed"}


def test_what_cannot_be_repaired_is_said_and_left(folder: Path) -> None:
    path = folder / "active.active"
    seglake.protect(path)
    content = path.read_bytes()
    path.write_bytes(bytes(len(content) - 500) + content[-500:])
    [found] = [each for each in scrub(folder, options=AUTOBASE, repair=True) if not each.ok]
    assert not found.is_mended
    assert found.repaired is not None
    assert found.repaired.outcome == "lost"
    assert path.read_bytes() == bytes(len(content) - 500) + content[-500:]


def test_a_damaged_sidecar_is_repaired(folder: Path) -> None:
    sidecar = next((folder / "log").glob("*.sealed.par"))
    whole = flip(sidecar, 300)
    [found] = [each for each in scrub(folder / "log", repair=True) if not each.ok]
    assert found.report is not None and found.report.ok and found.is_mended
    assert sidecar.read_bytes() == whole


def test_what_is_no_sidecar_is_damage_and_left_alone(folder: Path) -> None:
    sidecar = folder / "active.active.par"
    sidecar.write_bytes(b"no sidecar")
    [found] = [each for each in scrub(folder, options=AUTOBASE, repair=True) if not each.ok]
    assert found.report is not None and found.report.parity is not None
    assert (found.report.ok, found.report.parity.refused, found.repaired) == (True, "no_frame", None)
    assert sidecar.read_bytes() == b"no sidecar"


def test_what_cannot_be_read_stops_no_other(folder: Path) -> None:
    (folder / "broken.sealed").write_bytes(b"")
    (folder / "named.tenant").write_bytes(b"no segment of any kind, but text")
    found = list(scrub(folder, options=AUTOBASE))
    # Of a file whose name tells its format, nothing is skipped.
    assert {Path(each.path).name for each in found if not each.ok} == {"broken.sealed", "named.tenant"}
    assert names(found)[-1] == "z.oplog"


def test_a_file_that_is_no_segment_is_skipped_and_named(folder: Path) -> None:
    (folder / "key").write_bytes(bytes(range(32)))
    (folder / "notes.txt").write_text("no segment of any kind, but text")
    found = list(scrub(folder, options=AUTOBASE))
    assert all(each.ok for each in found)
    skipped = [each for each in found if each.skipped is not None]
    assert [(Path(each.path).name, each.report, each.parity) for each in skipped] == [
        ("key", None, None), ("notes.txt", None, None)
    ]  # fmt: skip
    done = here("scrub", "--dialect", "autobase", folder)
    assert (done.status, done.err) == (0, "")
    assert f"skipped  {folder / 'key'}  it is not a segment, and has no sidecar" in done.out
    assert "; 2 files skipped" in done.out
    line = next(line for line in map(json.loads, here("scrub", "--json", folder).out.splitlines()) if line["skipped"])
    assert (line["ok"], line["report"], line["parity"], line["error"]) == (True, None, None, None)
    assert here("scrub", folder / "key").out.endswith("no files: nothing was verified; 1 file skipped\n")
    # Damage elsewhere is not hidden by it.
    flip(folder / "active.active")
    assert here("scrub", "--dialect", "autobase", folder).status == 1


@pytest.mark.parametrize("command", [("scrub",), ("verify",), ("protect",), ("protect", "--format", "raw")])
def test_a_sidecar_that_is_named_with_its_file_is_read_with_it(
    command: tuple[str, ...], tmp_path: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `*` names both."""
    monkeypatch.chdir(tmp_path)
    Path("a.active").write_bytes((vectors / "active" / "typical.bin").read_bytes())
    seglake.protect("a.active")
    done = here(*command, "a.active", "a.active.par")
    assert (done.status, done.err) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.active", "a.active.par"]


@pytest.mark.parametrize("command", ["scrub", "verify", "protect", "repair"])
def test_a_sidecar_that_is_named_alone_is_told_apart(
    command: str, tmp_path: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.active").write_bytes((vectors / "active" / "typical.bin").read_bytes())
    seglake.protect("a.active")
    done = here(command, "a.active.par")
    assert done.status == 2
    assert done.err.endswith("a.active.par: it is a parity sidecar: name the file that it is for\n")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"rate": b"20MiB"}, "rate must be an int or text such as 20MiB, in bytes a second, not bytes"),
        ({"rate": 1.5}, "rate must be an int or text such as 20MiB, in bytes a second, not float"),
        ({"subset": 3}, "subset is 3: it is"),
        ({"subset": ("1", "2")}, "it is .k, n., with k from 1 to n"),
        ({"subset": (1, 2, 3)}, "it is .k, n., with k from 1 to n"),
    ],
)
def test_an_argument_of_another_type_is_named(tmp_path: Path, arguments: dict[str, Any], error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        scrub(tmp_path, **arguments)


def test_a_sidecar_without_its_file_is_an_error(folder: Path) -> None:
    path = folder / "active.active"
    seglake.protect(path)
    (folder / "other.par").write_text("not a sidecar")
    path.rename(folder / "elsewhere.active")
    found = list(scrub(folder, options=AUTOBASE))
    (alone,) = (each for each in found if not each.ok)
    assert alone.path == f"{path}.par"
    assert str(alone.error) == (
        f"{path}.par: expected {path}, which this sidecar is of, found no such file: "
        "restore it from a copy, or rename or remove the sidecar as that was"
    )
    assert [Path(each.path).name for each in found if each.skipped] == ["other.par"]
    assert here("scrub", "--dialect", "autobase", folder).status == 2


def test_a_sidecar_that_goes_while_its_segment_is_sealed_is_no_error(tmp_path: Path, vectors: Path) -> None:
    paths = [tmp_path / f"{stem}.active" for stem in "abc"]
    for path in paths:
        shutil.copy(vectors / "active" / "typical.bin", path)
        seglake.protect(path)
    # The active file of b is gone, and its sidecar is not yet. That of c goes after it was listed.
    seglake.seal(paths[1], tmp_path / "b.sealed")
    for path in paths[1:]:
        path.unlink()

    def progress(path: str, _done: int, _total: int) -> None:
        if path == str(paths[0]):
            Path(f"{paths[2]}.par").unlink(missing_ok=True)

    found = {Path(each.path).name: each for each in scrub(tmp_path, progress=progress)}
    assert {name: each.skipped for name, each in found.items()} == {
        "a.active": None,
        "b.active.par": "it is left of a segment that was sealed",
        "b.sealed": None,
        "c.active.par": "it was removed since its folder was listed",
    }
    assert all(each.error is None for each in found.values())


def test_a_file_that_is_no_segment_is_verified_and_repaired_by_its_sidecar(folder: Path) -> None:
    path = folder / "notes.txt"
    path.write_bytes(b"no segment of any kind, but text\n" * 300)
    seglake.protect(path, format="raw")
    found = next(each for each in scrub(folder, options=AUTOBASE) if each.path == str(path))
    assert found.parity is not None
    assert (found.ok, found.report, found.parity.outcome) == (True, None, "sound")
    stat = path.stat()
    sound = flip(path, 5000)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    for command in (("scrub", folder), ("verify", path), ("verify", "--format", "raw", path), ("verify", folder)):
        done = here(command[0], "--dialect", "autobase", *command[1:])
        assert done.status == 1, command
        assert f"{path}.par: `seglake repair` can restore all damage" in done.out.replace("\n", " ").replace("  ", " ")
    done = here("scrub", "--dialect", "autobase", "--repair", folder)
    assert done.status == 1
    assert "repaired: 1 byte changed" in done.out
    assert path.read_bytes() == sound
    for command in (("scrub", folder), ("verify", path), ("verify", "--format", "raw", path), ("verify", folder)):
        assert here(command[0], "--dialect", "autobase", *command[1:]).status == 0, command
    # What is left of a sidecar is no reason to skip the file.
    Path(f"{path}.par").write_bytes(b"nothing")
    found = next(each for each in scrub(folder, options=AUTOBASE) if each.path == str(path))
    assert (found.ok, found.skipped) == (False, None)


def test_a_repair_that_is_refused_stops_no_other(folder: Path) -> None:
    path = folder / "z.oplog"
    seglake.protect(path, options=AUTOBASE)
    flip(path)
    later = path.stat().st_mtime_ns + 10**10
    os.utime(path, ns=(later, later))  # as if it had been written to on purpose
    (folder / "zz.active").write_bytes((folder / "active.active").read_bytes())
    found = list(scrub(folder, options=AUTOBASE, repair=True))
    [refused] = [each for each in found if not each.ok]
    assert (Path(refused.path).name, type(refused.error)) == ("z.oplog", ValueError)
    assert names(found)[-1] == "zz.active"
    done = here("scrub", "--dialect", "autobase", "--repair", folder)
    assert (done.status, "was modified after it was protected" in done.err) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_links_that_lead_nowhere_are_passed_over_by_all(folder: Path) -> None:
    (folder / "loop.active").symlink_to("loop.active")
    (folder / "dead.active").symlink_to("missing.active")
    found = list(scrub(folder, options=AUTOBASE))
    assert all(each.ok for each in found)
    reasons = {Path(each.path).name: each.skipped for each in found if each.skipped}
    assert reasons == dict.fromkeys(("loop.active", "dead.active"), "a link that leads nowhere")
    assert names(found)[-1] == "z.oplog"
    (folder / "z.oplog").unlink()
    for named in (folder / "*.active", folder):
        scanned = seglake.scan(named, glob="*.active")
        assert {Path(each.path).name for each in scanned.passed_over()} == set(reasons)
        assert scanned.count_rows() > 0
    done = here("verify", "--glob", "*.active", folder)
    assert (done.status, done.err.count("a link that leads nowhere")) == (0, 2)
    for name in reasons:
        with pytest.raises(FileNotFoundError, match="leads nowhere"):
            seglake.scan(folder / name)


def test_a_state_that_cannot_be_written_is_told_before_anything_is_read(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        scrub(folder, state=folder / "missing" / "state")
    assert here("scrub", "--state", folder / "missing" / "state", folder).out == ""


def test_subsets_are_all_files_each_in_one(folder: Path) -> None:
    whole = names(list(scrub(folder, options=AUTOBASE)))
    parts = [names(list(scrub(folder, options=AUTOBASE, subset=(k, 3)))) for k in (1, 2, 3)]
    assert sorted(name for part in parts for name in part) == sorted(whole)
    assert max(len(part) for part in parts) < len(whole)
    assert parts[0] == names(list(scrub(folder, options=AUTOBASE, subset=(1, 3))))


def test_a_pass_is_taken_up_where_it_was_ended(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = folder / "state.json"  # is no segment, and not read
    whole = names(list(scrub(folder, options=AUTOBASE)))

    def begin(count: int) -> list[str]:
        found = scrub(folder, options=AUTOBASE, state=state)
        first = names(list(islice(found, count)))
        found.close()  # pyright: ignore[reportAttributeAccessIssue]
        return first

    # The file that was given last may not have been dealt with: it comes again.
    first = begin(3)
    assert first == whole[:3]
    second = begin(4)
    assert second == whole[2:6]
    assert names(list(scrub(folder, options=AUTOBASE, state=state))) == whole[5:]
    # It is finished: the next one begins anew.
    assert names(list(scrub(folder, options=AUTOBASE, state=state))) == whole
    begin(2)
    with pytest.raises(ValueError, match="not finished"):
        scrub(folder, subset=(1, 2), state=state)
    with pytest.raises(ValueError, match="not finished"):
        scrub(tmp_path, state=state)
    for other in (
        b"",
        b"[]",
        b"{}",
        b'{"version": 2, "folders": [], "subset": null, "after": null}',
        b'{"version": 1, "folders": [1], "subset": null, "after": null}',
        b'{"version": 1, "folders": [], "subset": ["a", 2], "after": null}',
        b'{"version": 1, "folders": [], "subset": null, "after": 1}',
        b'{"version": 1, "folders": [], "subset": null, "after": "\\ud800"}',
        b"[" * 200_000,
    ):
        state.write_bytes(other)
        with pytest.raises(ValueError, match="another file"):
            scrub(folder, state=state)
        assert state.read_bytes() == other


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
def test_a_pipe_is_no_state(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "state")
    with pytest.raises(ValueError, match="another file"):
        scrub(folder, state=tmp_path / "state")


def test_a_killed_pass_loses_no_file(folder: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    code = (
        "import sys, seglake\n"
        "from seglake.parity import scrub as _scrub\n"
        "_scrub._NOTE_SECONDS = 0\n"
        f"folder, state = {os.fspath(folder)!r}, {os.fspath(state)!r}\n"
        "for found in seglake.scrub(folder, options={'dialect': 'autobase'}, state=state, rate=2000):\n"
        "    print(found.path, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = [Path(process.stdout.readline().strip()).name for _ in range(4)]
        process.send_signal(signal.SIGKILL)
        seen += [Path(line.strip()).name for line in process.stdout]
    rest = names(list(scrub(folder, options=AUTOBASE, state=state)))
    whole = names(list(scrub(folder, options=AUTOBASE)))
    assert sorted(set(seen + rest)) == sorted(whole)
    assert len(rest) < len(whole)


def test_the_rate_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = [0.0], [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        slept[0] += seconds

    # Only of this module: other threads of the process sleep, too.
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr("seglake.parity.scrub.time", clock)
    size = sum(each.report.nbytes for each in scrub(folder, options=AUTOBASE) if each.report is not None)
    assert now[0] == 0
    list(scrub(folder, options=AUTOBASE, rate=1000))
    assert size / 1000 - 0.2 < now[0] <= size / 1000
    # Time that the caller takes between files is not caught up with.
    slept[0], count = 0.0, 0
    for _ in scrub(folder, options=AUTOBASE, rate="1000"):
        now[0] += 60
        count += 1
    assert slept[0] >= size / 1000 - 0.1 * count


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 0}, "rate is 0"),
        ({"rate": "fast"}, "'fast': expected a number of bytes"),
        ({"subset": (0, 3)}, "subset is"),
        ({"subset": (4, 3)}, "subset is"),
    ],
)
def test_arguments_are_checked_before_anything_is_read(
    folder: Path, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        scrub(folder, **arguments)  # pyright: ignore[reportArgumentType]
    with pytest.raises(FileNotFoundError):
        scrub(folder / "missing")


def test_the_command(folder: Path) -> None:
    done = here("scrub", "--dialect", "autobase", folder)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"{len(list(scrub(folder, options=AUTOBASE)))} files: ")
    path = folder / "active.active"
    seglake.protect(path)
    sound = flip(path)
    done = here("scrub", "--dialect", "autobase", folder)
    assert done.status == 1
    assert f"damaged  {path}" in done.out
    assert "seglake repair" in done.out
    done = here("scrub", "--dialect", "autobase", "--repair", "--rate", "100MiB", "--state", folder / "_state", folder)
    assert done.status == 1
    assert "repaired: 1 byte changed" in done.out
    assert "1 file repaired" in done.out
    assert path.read_bytes() == sound
    done = here("scrub", "--dialect", "autobase", "--json", folder)
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert done.status == 0
    assert all(line["ok"] and line["report"]["ok"] and line["repaired"] is None for line in lines)
    for subset in ("0/7", "8/7", "1", "a/b", "1/2/3"):
        done = here("scrub", "--subset", subset, folder)
        assert done.status == 2
        assert "such as 1/7" in done.err
    assert here("scrub", folder / "missing").status == 2
    path.chmod(0)
    expected = 0 if os.access(path, os.R_OK) else 2  # root reads everything
    assert here("scrub", "--dialect", "autobase", folder).status == expected


def test_the_hint_about_what_is_no_sidecar_names_commands_that_have_the_option(tmp_path: Path, vectors: Path) -> None:
    (tmp_path / "a.active").write_bytes((vectors / "active" / "minimal.bin").read_bytes())
    (tmp_path / "a.active.par").mkdir()
    [found] = [found for found in seglake.scrub(tmp_path) if found.path.endswith("a.active")]
    assert "found a folder. Move it, or read the file without it (`sidecar` none)" in str(found.error)
    done = here("scrub", tmp_path / "a.active")
    assert (done.status, "without it (--sidecar none)" in done.err + done.out) == (2, True)


def test_files_are_shown_as_they_were_named(tmp_path: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs").mkdir()
    for name in ("logs/a.active", "b.active"):
        (tmp_path / name).write_bytes((vectors / "active" / "minimal.bin").read_bytes() + b"torn")
    monkeypatch.chdir(tmp_path)
    assert [each.path for each in scrub(["logs", "b.active"])] == ["b.active", "logs/a.active"]
    absolute = str(tmp_path / "b.active")
    assert [each.path for each in scrub(["logs", absolute])] == [absolute, "logs/a.active"]
    assert "damaged  logs/a.active" in here("scrub", "logs").out
