"""What all commands share: help, errors, standard input, exit status, start-up."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import TIMEOUT_S, command, environment, here, seglake

import seglake as library

COMMANDS = (
    "info",
    "cat",
    "verify",
    "explain",
    "protect",
    "repair",
    "scrub",
    "recover",
    "extract",
    "convert",
    "seal",
    "index",
    "export",
    "log",
    "ingest",
    "completion",
)
READERS = ("info", "cat", "verify")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples_that_parse(name: str) -> None:
    done = here(name, "--help")
    assert (done.status, done.err) == (0, "")
    _, examples = done.out.split("Examples:")
    lines = [line for line in examples.splitlines() if line.strip()]
    assert len(lines) >= 3
    for line in lines:
        assert f"seglake {name} " in line
        # The options of an example exist.
        for word in line.split():
            if word.startswith("--"):
                assert f"{word.rstrip(')')} " in done.out.replace(examples, "")


def test_help_lists_the_commands() -> None:
    done = here("--help")
    assert done.status == 0
    for name in COMMANDS:
        assert f"\n  {name} " in done.out
    assert "`seglake verify FILE`" in done.out


@pytest.mark.parametrize("arguments", [(), ("log",)])
def test_no_line_about_a_command_is_cut_off(arguments: tuple[str, ...]) -> None:
    listed = here(*arguments, "--help").out.split("Commands:\n")[1].split("\n\n")[0]
    assert len(listed.splitlines()) > 5
    assert "..." not in listed


@pytest.mark.parametrize("words", [(), ("log",)])
def test_no_command_is_trouble_and_shows_the_help(words: tuple[str, ...]) -> None:
    done = here(*words)
    assert (done.status, done.out) == (2, "")
    assert done.err == here(*words, "--help").out


def test_version() -> None:
    done = here("--version")
    assert (done.status, done.out) == (0, f"seglake {library.__version__}\n")


def test_an_unknown_command_suggests_the_nearest() -> None:
    done = here("verfy", "file")
    assert (done.status, done.out) == (2, "")
    assert "verfy" in done.err
    assert "did you mean verify?" in done.err
    assert ", ".join(COMMANDS) in here("parchment").err


@pytest.mark.parametrize(("name", "meant"), [("tail", "`seglake log tail`?"), ("undo", "`seglake recover --undo`? To")])
def test_what_is_a_part_of_another_command_is_suggested(name: str, meant: str) -> None:
    done = here(name, "file")
    assert (done.status, done.out) == (2, "")
    assert f"no such command: {name}; did you mean {meant}" in done.err


def test_a_file_in_place_of_a_command_is_told_how_to_look_at_it(tmp_path: Path) -> None:
    done = here(tmp_path)
    assert (done.status, done.out) == (2, "")
    assert "`seglake verify FILE` tells whether it is sound" in done.err


def test_an_unknown_option_suggests_the_nearest() -> None:
    done = here("cat", "--colums", "type", "file")
    assert done.status == 2
    assert "--columns" in done.err


def imported_modules(*arguments: str | Path) -> set[str]:
    """The modules that a run of the command line imports, told by the interpreter itself."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "seglake", *arguments],
        capture_output=True,
        env=environment(),
        timeout=TIMEOUT_S,
        check=True,
        text=True,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("cat", "--help"), ("ingest", "--help")])
def test_help_imports_nothing_that_takes_long(arguments: tuple[str, ...]) -> None:
    modules = imported_modules(*arguments)
    assert "click" in modules
    packages = {name.partition(".")[0] for name in modules}
    slow = {"rich", "pyspark", "pyarrow", "pandas", "numpy", "asyncio", "multiprocessing", "importlib.metadata"}
    assert not packages & slow
    assert not {name for name in modules if name.startswith("seglake.spark")}


def test_a_command_imports_only_what_it_needs(vectors: Path) -> None:
    segment = vectors / "active" / "minimal.bin"
    assert "rich" not in imported_modules("cat", segment)
    assert "rich" not in imported_modules("info", segment)
    modules = imported_modules("verify", segment)
    assert "rich" in modules
    assert not {"pyspark", "pyarrow", "seglake.cli.cat", "seglake.cli.ingest", "rich.progress"} & modules


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("way", ["pipe", "file", "named pipe", "file read from before"])
def test_standard_input_and_pipes_are_read_like_files(name: str, way: str, vectors: Path, tmp_path: Path) -> None:
    if way == "named pipe" and sys.platform == "win32":
        pytest.skip("Windows has other named pipes")
    segment = vectors / "active" / "flip_message.bin"
    options = ["--json"] if name != "cat" else ["--json", "--on-damage", "skip"]
    truth = here(name, *options, segment)
    if way == "pipe":
        done = seglake(name, *options, "-", stdin=segment.read_bytes())
        out, status = done.out, done.status
    elif way == "named pipe":
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        process = subprocess.Popen(command(name, *options, pipe), stdout=subprocess.PIPE, env=environment())
        pipe.write_bytes(segment.read_bytes())
        out, status = process.communicate(timeout=TIMEOUT_S)[0].decode(), process.returncode
    else:
        copy = tmp_path / "copy"
        skipped = b"" if way == "file" else b"a line\n"
        copy.write_bytes(skipped + segment.read_bytes())
        with copy.open("rb", buffering=0) as stdin:
            stdin.read(len(skipped))
            ran = subprocess.run(
                command(name, *options, "-"),
                stdin=stdin,
                capture_output=True,
                env=environment(),
                timeout=TIMEOUT_S,
                check=False,
            )
        out, status = ran.stdout.decode(), ran.returncode
    assert status == truth.status

    def without_path(lines: str) -> list[object]:
        told = [json.loads(line) for line in lines.splitlines()]
        for own in (diagnosis for line in told for diagnosis in line.get("diagnoses", ())):
            del own["command"]  # it has the path
        return [{key: value for key, value in line.items() if key != "path"} for line in told]

    if name == "info":
        assert [line["first_record"] for line in truth.json_lines()] == [
            json.loads(line)["first_record"] for line in out.splitlines()
        ]
    else:
        assert without_path(out) == without_path(truth.out)
        assert '"path": null' in out or name == "cat"


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_larger_than_the_limit_is_refused_with_the_option(name: str, vectors: Path) -> None:
    content = (vectors / "active" / "minimal.bin").read_bytes()
    done = here(name, "--spool-limit", str(len(content) - 1), "-", stdin=content)
    assert (done.status, done.out) == (2, "")
    assert "standard input" in done.err
    assert "--spool-limit" in done.err
    assert here(name, "--spool-limit", str(len(content)), "-", stdin=content).status == 0


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_segment_is_trouble(name: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("just some text, long enough to be looked at\n" * 10)
    done = here(name, path)
    assert done.status == 2
    assert str(path) in done.out + done.err
    assert "Traceback" not in done.err
    if name != "info":
        assert "name it with --format" in done.err
        by_pipe = here(name, "-", stdin=path.read_bytes())
        assert by_pipe.err.startswith("seglake: standard input: cannot tell the format: ")


@pytest.mark.parametrize("name", READERS)
def test_a_folder_is_told_apart(name: str, tmp_path: Path) -> None:
    done = here(name, tmp_path)
    assert (done.status, done.out) == (2, "")
    if name in ("info", "cat", "verify"):
        assert done.err == f"seglake: {tmp_path}: no files to read in this folder\n"
    else:
        assert done.err.startswith(f"seglake: {tmp_path}: is a folder: name the files in it, or use a glob such as ")


@pytest.mark.parametrize("name", READERS)
def test_the_other_files_are_read_where_one_is_missing(name: str, vectors: Path, tmp_path: Path) -> None:
    segment = vectors / "active" / "typical.bin"
    done = here(name, tmp_path / "missing", segment)
    alone = here(name, segment)
    assert done.status == 2
    assert "No such file or directory" in done.err
    assert alone.status == 0
    if name != "verify":
        assert done.out == alone.out


@pytest.mark.parametrize("name", [*READERS, "protect"])
def test_whether_a_file_may_be_read_is_found_when_it_is_read(
    name: str, vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checked with the arguments, one file that may not be read would be the end of all."""
    segment = tmp_path / "typical.active"
    segment.write_bytes((vectors / "active" / "typical.bin").read_bytes())
    monkeypatch.setattr(os, "access", lambda *_args, **_how: False)
    done = here(name, segment)
    assert (done.status, done.err) == (0, "")


_ON_A_FULL_DISK = (
    ("--help",),
    ("--version",),
    ("cat", "--help"),
    ("info", "segment.active"),
    ("info", "--json", "segment.active"),
    ("cat", "segment.active"),
    ("cat", "--json", "segment.active"),
    ("verify", "segment.active"),
    ("verify", "--json", "segment.active"),
    ("explain",),
    ("protect", "segment.active"),
    ("repair", "segment.active"),
    ("scrub", "."),
    ("recover", "segment.active", "recovered.active"),
    ("extract", "segment.active", "--range", "0:100"),
    ("convert", "segment.active", "converted.sealed"),
    ("seal", "segment.active", "segment.sealed"),
    ("index", "--overwrite", "chunks.chunks"),
    ("export", "segment.active", "-"),
    ("export", "segment.active", "segment.csv"),
    ("log", "info", "log"),
    ("log", "verify", "log"),
    ("log", "tail", "log", "--from", "start", "--no-follow"),
    ("log", "snapshot", "log", "snapshot"),
    ("ingest", "segment.active", "lake"),
    ("completion", "bash"),
)


def test_each_command_is_tried_on_a_full_disk() -> None:
    assert {words[0] for words in _ON_A_FULL_DISK} >= set(COMMANDS)


def _on_a_full_disk(words: tuple[str, ...], folder: Path, env: dict[str, str]) -> tuple[int, str]:
    with Path("/dev/full").open("wb") as stdout:
        done = subprocess.run(
            command(*words),
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=environment(env),
            cwd=folder,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("words", "unbuffered"), [(("cat", "segment.active"), "1"), *((words, "") for words in _ON_A_FULL_DISK)]
)
def test_that_standard_output_is_full_is_said(
    tmp_path: Path, vectors: Path, words: tuple[str, ...], unbuffered: str
) -> None:
    shutil.copy(vectors / "active" / "typical.bin", tmp_path / "segment.active")
    library.convert(tmp_path / "segment.active", tmp_path / "chunks.chunks", drop=["uuid", "type"])
    with library.SegmentLog(tmp_path / "log") as log:
        log.write("order.paid", b"1")
    if words[0] == "repair":
        library.protect(tmp_path / "segment.active")
    status, said = _on_a_full_disk(words, tmp_path, {"PYTHONUNBUFFERED": unbuffered})
    assert (status, said) == (2, "seglake: standard output: No space left on device\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
@pytest.mark.parametrize("options", [(), ("--on-damage", "skip")])
def test_a_message_about_damage_does_not_hide_that_output_was_lost(
    options: tuple[str, ...], tmp_path: Path, vectors: Path
) -> None:
    damaged = tmp_path / "damaged.active"
    shutil.copy(vectors / "active" / "flip_message.bin", damaged)
    status, said = _on_a_full_disk(("cat", *options, "damaged.active"), tmp_path, {"PYTHONUNBUFFERED": ""})
    assert status == 2
    assert said.startswith("seglake: damaged.active: ")
    assert said.endswith("\nseglake: standard output: No space left on device\n")


def test_tracebacks_are_for_those_who_ask(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert "Traceback" not in here("cat", missing).err
    assert "Traceback" in here("cat", "--debug", missing).err
    assert "Traceback" in here("--debug", "cat", missing).err
    assert "Traceback" in here("cat", missing, env={"SEGLAKE_DEBUG": "1"}).err


def test_an_unexpected_error_is_short_and_asks_for_a_report(tmp_path: Path, vectors: Path) -> None:
    # A module of ours that fails when it is imported, in front of the real one.
    broken = tmp_path / "rich"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise RuntimeError('out of paint\\x1b[31m')")
    done = seglake("verify", vectors / "active" / "minimal.bin", env={"PYTHONPATH": str(tmp_path)})
    assert done.status == 2
    assert "unexpected RuntimeError: out of paint\\x1b[31m" in done.err
    assert "Traceback" not in done.err
    assert "--debug" in done.err
