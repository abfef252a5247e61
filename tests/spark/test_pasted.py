"""The README's Spark code as a user pastes it: into a file, run by a Python whose environment is not activated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from clusters import of_no_session
from documents import ROOT, blocks

pytestmark = pytest.mark.spark


def test_the_readme_runs_without_its_environment_on_the_path(tmp_path: Path) -> None:
    (block,) = (block for block in blocks(ROOT / "README.md", "python") if "spark" in block.text)
    script = tmp_path / "pasted.py"
    script.write_text(block.text)
    # What Spark would take of the PATH, which has none of the packages.
    other = tmp_path / "bin"
    other.mkdir()
    (other / "python3").write_text("#!/bin/sh\necho 'the python3 of the PATH' >&2\nexit 1\n")
    (other / "python3").chmod(0o755)
    own = str(Path(sys.executable).parent)
    path = os.pathsep.join([str(other), *(each for each in os.environ["PATH"].split(os.pathsep) if each != own)])
    environment = {name: value for name, value in of_no_session(os.environ).items() if name != "PYSPARK_PYTHON"}
    done = subprocess.run(
        [sys.executable, script],
        env=environment | {"PATH": path, "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "checksum_mismatch" in done.stdout
    assert "the python3 of the PATH" not in done.stderr
