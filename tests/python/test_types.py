"""The types of the API, as those who install the package see them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import seglake

PYRIGHT = shutil.which("pyright", path=str(Path(sys.executable).parent)) or shutil.which("pyright")


@pytest.mark.more
@pytest.mark.skipif(PYRIGHT is None, reason="pyright is not installed")
def test_all_public_types_are_known(tmp_path: Path) -> None:
    # Elsewhere than in the project, whose own sources are no installed package.
    command = [
        str(PYRIGHT),
        "--pythonpath",
        sys.executable,
        "--verifytypes",
        "seglake",
        "--ignoreexternal",
        "--outputjson",
    ]
    # pyright does not take the path of an editable installation for one of installed packages. Where those are, it asks
    # the first Python of the path.
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(Path(seglake.__file__).parents[1]),
    }
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=300)
    found = json.loads(done.stdout)["typeCompleteness"]
    named = [symbol for symbol in found["symbols"] if symbol["isExported"]]
    assert len(named) > 500
    unclear = {one["name"]: [each["message"] for each in one["diagnostics"]] for one in named if not one["isTypeKnown"]}
    assert unclear == {}
    assert found["completenessScore"] == 1
