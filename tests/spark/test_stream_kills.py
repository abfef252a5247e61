"""A few kills of a stream's processes while its source is written to. `python -m tests.stream_kills` makes many."""

import sys
from pathlib import Path

import pytest
from tests.stream_kills import kill_and_compare

pytest.importorskip("seglake.spark.stream.reader", reason="streams need PySpark 4.2")
pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]


def test_each_number_is_in_the_table_once(tmp_path: Path) -> None:
    # One query over a log and files takes half the time of two.
    found = kill_and_compare("both", 2, 1, tmp_path)
    assert sum(found["killed"].values()) == 2
