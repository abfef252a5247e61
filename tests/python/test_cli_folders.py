"""Folders on the command line: `verify`, `info` and `cat` of all that is below them."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli_process import command, here, seglake, wait_until_read

from seglake import scan

FILES = ("a.active", "below/b.sealed", "below/deeper/c.chunks", "d.active")


@pytest.fixture(autouse=True)
def small_files_by_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seglake.cli.folders.SMALL_BYTES", 0)


@pytest.fixture
def logs(vectors: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    (folder / "below" / "deeper").mkdir(parents=True)
    shutil.copy(vectors / "active" / "minimal.bin", folder / "a.active")
    shutil.copy(vectors / "sealed" / "typical.bin", folder / "below" / "b.sealed")
    shutil.copy(vectors / "chunked" / "typical.bin", folder / "below" / "deeper" / "c.chunks")
    shutil.copy(vectors / "active" / "flip_message.bin", folder / "d.active")
    (folder / "_temporary.active").write_bytes(b"half")
    (folder / ".hidden").write_bytes(b"half")
    return folder


def test_verify_has_a_line_for_each_file_and_a_total(logs: Path) -> None:
    done = here("verify", logs)
    assert (done.status, done.err) == (1, "")
    lines = done.out.splitlines()
    assert [Path(line.split("  ")[1]) for line in lines[:4]] == [logs / name for name in FILES]
    assert [line.split("  ")[0] for line in lines[:4]] == ["ok", "ok", "ok", "damaged"]
    assert lines[3].endswith("9 records, 873 bytes; single flipped bit (proven)")
    assert lines[4].startswith("4 files: 3 sound, 1 damaged; ")
    assert lines[5] == "`seglake verify FILE` shows where a file is damaged, why, and what to do"
    quiet = here("verify", "--quiet", logs)
    assert quiet.out.splitlines()[0].startswith("damaged  ")
    assert here("verify", "--quiet", "--glob", "a.*", "--glob", "*.sealed", logs).out == ""


def test_verify_as_json_has_what_single_files_have(logs: Path) -> None:
    done = here("verify", "--json", logs)
    alone = [here("verify", "--json", logs / name).json_lines()[0] for name in FILES]
    assert done.json_lines() == alone


@pytest.mark.parametrize("threads", [1, 3])
def test_names_are_as_they_were_given(logs: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.chdir(logs.parent)
    done = here("verify", "--json", "--threads", str(threads), "logs")
    assert [line["path"] for line in done.json_lines()] == [f"logs/{name}" for name in FILES]
    monkeypatch.chdir(logs)
    assert [line["path"] for line in here("verify", "--json", ".").json_lines()] == [f"./{name}" for name in FILES]


def test_what_is_no_segment_is_trouble_and_said(logs: Path) -> None:
    (logs / "README.txt").write_text("words")
    (logs / "link").symlink_to(logs / "below")
    os.mkfifo(logs / "pipe")
    done = here("verify", logs)
    assert done.status == 2
    assert f"{logs / 'README.txt'}: cannot tell the format" in done.err
    assert f"{logs / 'link'}: passed over: a linked folder" in done.err
    assert f"{logs / 'pipe'}: passed over: a named pipe" in done.err
    assert "5 files: 3 sound, 1 damaged, 1 unreadable" in done.out
    assert here("verify", "--glob", "*.{active,sealed,chunks}", logs).status == 1
    nothing = here("verify", "--glob", "*.zip", logs)
    assert nothing.status == 2
    assert "no files to read in this folder: 5 files there do not match --glob" in nothing.err


def test_a_folder_that_cannot_be_listed_does_not_hide_the_others(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = os.scandir

    def refused(folder: Path) -> Any:
        if folder == logs / "below":
            raise PermissionError(13, os.strerror(13), str(folder))
        return listed(folder)

    monkeypatch.setattr(os, "scandir", refused)
    for name in ("verify", "info"):
        done = here(name, logs)
        assert done.status == 2
        assert done.err == f"seglake: {logs / 'below'}: Permission denied\n"
        assert f"{logs / 'a.active'}  " in done.out
        assert ("1 sound, 1 damaged, 1 unreadable" if name == "verify" else "2 files: 2 active") in done.out
    assert here("verify", logs / "below").status == 2
    with pytest.raises(PermissionError, match="below"):
        scan(logs)


def test_each_pattern_by_itself(logs: Path) -> None:
    (logs / "a.active").rename(logs / "a,1.active")
    done = here("verify", "--glob", "a,*", "--glob", "*.sealed", logs)
    assert "2 files: 2 sound" in done.out
    assert "2 files: 2 sound" in here("verify", "--glob", "{a,b}*", "--glob", "x", logs).out


def test_info_has_a_line_for_each_file_and_a_total(logs: Path) -> None:
    done = here("info", logs)
    lines = done.out.splitlines()
    assert done.status == 0
    assert lines[3] == f"{logs / 'd.active'}  active, 873 bytes, from 2024-01-10T16:37:53.194315Z"
    assert lines[4].startswith("4 files: 2 active (")
    counted = here("info", "--count", logs)
    assert counted.status == 1
    assert counted.out.splitlines()[3].endswith("9 records, from 2024-01-10T16:37:53.194315Z, damaged")
    assert here("info", "--json", logs).json_lines() == [
        here("info", "--json", logs / name).json_lines()[0] for name in FILES
    ]


def test_cat_reads_one_after_another(logs: Path) -> None:
    done = here("cat", "--json", "--columns", "path,value", "--glob", "*.{active,chunks}", "--on-damage", "skip", logs)
    paths = [json.loads(line)["path"] for line in done.out.splitlines()]
    assert list(dict.fromkeys(paths)) == [str(logs / FILES[number]) for number in (0, 2, 3)]
    assert here("cat", "--at", "0", logs).status == 2


def test_many_files_in_a_process_of_its_own(vectors: Path, tmp_path: Path) -> None:
    content = (vectors / "active" / "minimal.bin").read_bytes()
    for number in range(2000):
        (tmp_path / f"{number:04}.active").write_bytes(content)
    done = seglake("verify", "--quiet", tmp_path)
    assert (done.status, done.out, done.err) == (0, "", "")
    assert here("verify", tmp_path).out.splitlines()[-1].startswith("2,000 files: 2,000 sound; ")


@pytest.mark.skipif(os.name == "nt", reason="which sends no signals")
@pytest.mark.parametrize("words", [["verify"], ["info", "--count"]])
def test_an_interruption_does_not_wait_for_large_files(tmp_path: Path, words: list[str]) -> None:
    with (tmp_path / "0.active").open("wb") as file:
        file.write(b"\x01")  # damage, and then hours of looking for a record
        file.truncate(1 << 42)
    process = subprocess.Popen(command(*words, tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        wait_until_read(process, 1 << 26)  # many times of what its start reads
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert (out, err.strip()) == ("", "seglake: interrupted")
