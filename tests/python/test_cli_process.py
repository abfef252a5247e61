"""Each command prints and does the same in a process of its own and in the process of the tests (`here`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import TIMEOUT_S, Argument, environment, here, seglake
from cli_samples import damage, sample

COMMANDS: dict[str, tuple[Argument, ...]] = {
    "info": ("--count", "FILE", "missing"),
    "cat": ("--on-damage", "skip", "FILE", "missing"),
    "verify": ("FILE", "missing"),
    "recover": ("FILE", "new.active"),
    "extract": ("FILE", "--range", "0:40", "--hex"),
    "convert": ("FILE", "new.sealed"),
    "seal": ("--on-damage", "skip", "FILE", "new.sealed"),
    "index": ("sample.chunks", "new.index"),
}


@pytest.mark.parametrize("source", ["file", "pipe"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_process_prints_and_writes_the_same(
    command: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = sample(tmp_path, "active")
    sample(tmp_path, "chunked")
    damage(path, 7)
    before = {file.name for file in tmp_path.iterdir()}
    file, stdin = (path.name, b"") if source == "file" else ("-", path.read_bytes())
    arguments = [command, *(file if word == "FILE" else word for word in COMMANDS[command])]
    found = []
    for run in (seglake, here):
        done = run(*arguments, stdin=stdin)
        new = {file for file in tmp_path.iterdir() if file.name not in before}
        found.append((done, {file.name: file.read_bytes() for file in new if "manifest" not in file.name}))
        for file in new:
            file.unlink()
    assert found[0] == found[1]
    done, _ = found[0]
    assert done.status == {"extract": 0, "index": 0}.get(command, 2 if "missing" in arguments else 1)
    assert done.out or done.err


def test_options_and_variables_have_the_same_effect(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    for arguments, env in (
        (("cat", "--debug", tmp_path / "missing"), {}),
        (("cat", tmp_path / "missing"), {"SEGLAKE_DEBUG": "1"}),
        (("verify", path), {"SEGLAKE_KEY": "ab" * 32}),
        (("verify", path), {"SEGLAKE_KEY": "malformed"}),
        (("cat", "--columns", "value", path), {"COLUMNS": "20"}),
        (("--help",), {"COLUMNS": "60"}),
        (("cat", "--format", "parchment", path), {}),
        ((), {}),
    ):
        there, now = seglake(*arguments, env=env), here(*arguments, env=env)
        assert there.status == now.status
        if "--debug" in arguments or "SEGLAKE_DEBUG" in env:
            assert "Traceback" in there.err and "Traceback" in now.err
        else:
            assert there == now


def test_variables_of_python_itself_are_refused() -> None:
    with pytest.raises(AssertionError, match="takes a process"):
        here("--version", env={"PYTHONPATH": "somewhere"})


# Interrupts the process that it is imported into as soon as it looks for a module.
INTERRUPTING = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


def interrupted_at(module: str, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    (folder / "sitecustomize.py").write_text(INTERRUPTING)
    paths = [str(folder), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    env = environment({"PYTHONPATH": os.pathsep.join(paths), "INTERRUPTED_AT": module})
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="no process sends itself Ctrl-C there")
@pytest.mark.parametrize("module", ["seglake._native", "seglake.write.export", "seglake.cli.application", "click"])
@pytest.mark.parametrize("start", ["module", "script"])
def test_an_interrupt_while_it_starts_ends_it_without_a_traceback(start: str, module: str, tmp_path: Path) -> None:
    script = tmp_path / "seglake"
    script.write_text("import sys\nfrom seglake.cli import main\nsys.exit(main())\n")
    words = ["-m", "seglake"] if start == "module" else [str(script)]
    done = interrupted_at(module, tmp_path, sys.executable, *words, "--version")
    assert done.returncode in (-signal.SIGINT, 130)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.skipif(sys.platform == "win32", reason="no process sends itself Ctrl-C there")
@pytest.mark.parametrize("name", ["other", "seglake"])
def test_an_interrupt_of_a_program_that_imports_the_library_is_raised(name: str, tmp_path: Path) -> None:
    script = tmp_path / name
    importing = "try:\n    import seglake._native\nexcept KeyboardInterrupt:\n    print('raised')\n"
    interrupt = "os.kill(os.getpid(), signal.SIGINT)"
    later = f"import seglake, os, signal\ntry:\n    {interrupt}\nexcept KeyboardInterrupt:\n    print('raised')\n"
    script.write_text(importing if name == "other" else later)
    done = interrupted_at("seglake._native" if name == "other" else "", tmp_path, sys.executable, str(script))
    assert (done.returncode, done.stdout, done.stderr) == (0, "raised\n", "")
