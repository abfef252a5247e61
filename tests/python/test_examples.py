"""The examples that take neither Spark nor Node.js do what they say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.skipif(sys.platform == "win32", reason="a script for a POSIX shell")
def test_a_struck_file_is_repaired(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", EXAMPLES / "repair.sh", tmp_path],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[-1] == "orders.sealed is as it was"
    assert any(line.startswith("orders.sealed: damaged") for line in lines)
    assert "20000 records are read" in [" ".join(line.split()) for line in lines]
    assert any(line.startswith("orders.sealed: repaired, as it was protected") for line in lines)
    assert (tmp_path / "orders.sealed").read_bytes() == (tmp_path / "as-it-was").read_bytes()
