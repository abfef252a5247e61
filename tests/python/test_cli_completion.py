"""What shells complete, as click's protocol asks for it, and in bash itself."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import TIMEOUT_S, environment, here, seglake
from click.shell_completion import BashComplete

from seglake import formats
from seglake.cli.application import program
from seglake.cli.explain import WORDS


def completed(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a shell offers for the last word of a line, with `file` where it offers files."""
    *words, last = line.split(" ")
    monkeypatch.setenv("COMP_WORDS", " ".join(["seglake", *words, last]))
    monkeypatch.setenv("COMP_CWORD", str(len(words) + 1))
    shell = BashComplete(program, {}, "seglake", "_SEGLAKE_COMPLETE")
    found = shell.get_completions(*shell.get_completion_args())
    return [item.type if item.type != "plain" else item.value for item in found]


def test_commands_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("v", monkeypatch) == ["verify"]
    assert completed("log s", monkeypatch) == ["seal", "snapshot"]
    assert completed("cat --val", monkeypatch) == ["--value"]
    assert completed("cat --value h", monkeypatch) == ["hex"]
    assert completed("cat x", monkeypatch) == ["file"]
    assert completed("export logs fl", monkeypatch) == ["file"]
    assert completed("completion ", monkeypatch) == ["bash", "zsh", "fish"]


def test_formats_dialects_words_and_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("cat --format ", monkeypatch) == completed("convert a b --to ", monkeypatch) == formats().names
    assert completed("verify --dialect dr", monkeypatch) == ["draft", "draft-1.1"]
    assert completed("explain ", monkeypatch) == list(dict.fromkeys(WORDS))
    assert completed("explain torn", monkeypatch) == ["torn_tail"]
    for name in ("--sidecar", "--index"):
        assert completed(f"cat {name} n", monkeypatch) == ["file", "none"]
        assert completed(f"cat {name} x", monkeypatch) == ["file"]


@pytest.mark.parametrize("command", ["cat", "export"])
def test_columns_are_those_of_the_file_if_one_is_named(
    command: str, vectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = [column.name for column in formats()["active"].columns]
    path = vectors / "active" / "typical.bin"
    assert completed(f"{command} {path} --columns ", monkeypatch) == [*own, "path", "position", "cause"]
    assert completed(f"{command} --format active --columns ", monkeypatch) == [*own, "path", "position", "cause"]
    assert completed(f"{command} {path} --columns uuid,t", monkeypatch) == ["uuid,timestamp", "uuid,type"]
    every = {column.name for format in formats() for column in format.columns}
    for named in ("", "missing ", f"{vectors} ", "s3://bucket/a.active ", "- "):
        assert set(completed(f"{command} {named}--columns ", monkeypatch)) == {*every, "path", "position", "cause"}
    assert completed(f"convert {path} new --drop u", monkeypatch) == ["uuid"]
    assert completed("convert --format chunked --drop o", monkeypatch) == ["offset"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_that_of_click(shell: str) -> None:
    done = here("completion", shell)
    assert (done.status, done.err) == (0, "")
    assert done.out == seglake(env={"_SEGLAKE_COMPLETE": f"{shell}_source"}).out
    assert "_SEGLAKE_COMPLETE" in done.out


def test_another_shell_is_refused() -> None:
    done = here("completion", "tcsh")
    assert (done.status, done.out) == (2, "")
    assert "'bash', 'zsh', 'fish'" in done.err


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tmp_path: Path, vectors: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "seglake").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m seglake "$@"\n')
    (folder / "seglake").chmod(0o755)
    script = """
        set -eu
        eval "$(seglake completion bash)"
        try() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _seglake_completion seglake
            echo "${COMPREPLY[*]}"
        }
        try seglake ver
        try seglake cat "$1" --columns type,v
        complete -p seglake
    """
    done = subprocess.run(
        ["bash", "-c", script, "bash", vectors / "active" / "typical.bin"],
        env={**environment(), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    verify, columns, complete = done.stdout.splitlines()
    assert (verify, columns) == ("verify", "type,value")
    assert "-F _seglake_completion" in complete
