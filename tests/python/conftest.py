"""What all of the Python tests share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The folder of the golden segments, one folder a format: `typical.bin` and, beside it, `typical.json`."""
    return Path(__file__).parents[1] / "vectors"
