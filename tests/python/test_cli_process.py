"""Each command prints and does the same in a process of its own and in the process of the tests (`here`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_process import Argument, here, seglake
from cli_samples import damage, sample

COMMANDS: dict[str, tuple[Argument, ...]] = {
    "info": ("--count", "FILE", "missing"),
    "cat": ("--on-damage", "skip", "FILE", "missing"),
    "verify": ("FILE", "missing"),
    "recover": ("FILE", "new.active"),
    "extract": ("FILE", "--range", "0:40", "--hex"),
    "convert": ("FILE", "new.sealed"),
    "seal": ("--on-damage", "skip", "FILE", "new.sealed"),
    "index": ("sample.chunks",),
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
