"""A few kills of a stream's processes while its source is written to. `python -m tests.stream_kills` makes many."""

import sys
from pathlib import Path

import pytest
from tests.stream_kills import SOURCES, kill_and_compare

pytest.importorskip("seglake.spark.stream.reader", reason="streams need PySpark 4.2")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@pytest.mark.parametrize("source", SOURCES)
def test_each_number_is_in_the_table_once(source: str, tmp_path: Path) -> None:
    found = kill_and_compare(source, 2, 1, tmp_path)
    assert sum(found["killed"].values()) == 2
