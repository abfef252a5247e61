"""The lives of a folder: random steps between ingests, after each of which the tables must be what is promised."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIVES = int(os.environ.get("LIVES", "0"))


@pytest.mark.parametrize(("table", "lives"), [("parquet", 60), ("delta", 12), ("iceberg", 6)])
def test_lives(table: str, lives: int) -> None:
    script = [
        sys.executable,
        str(Path(__file__).with_name("lives.py")),
        "--table",
        table,
        "--lives",
        str(LIVES or lives),
    ]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
