"""The ingest onto a disk that fills up: an error, no half table, and the next run ends right."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from cli_process import Finished
from pyspark.sql import SparkSession
from segments import write_segment

import seglake
from seglake.spark import ingest

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_a_full_disk(
    spark: SparkSession, on_session: Callable[..., Finished], small_disk: Path, tmp_path: Path
) -> None:
    lake = small_disk / "lake"
    large = tmp_path / "large.active"
    with seglake.create(large, format="active") as writer, Path("/dev/urandom").open("rb") as noise:
        for _ in range(60):
            writer.write(type="noise", value=noise.read(100_000))
    done = on_session(large, lake)
    assert done.status == 2, done
    assert "No space left on device" in done.err, done
    assert "Traceback" not in done.err, done
    tables = [path for path in lake.rglob("*.parquet") if "_staging" not in path.parts]
    assert tables == []

    small = tmp_path / "small.active"
    write_segment(small, 20)
    assert ingest(small, lake, spark=spark).exit_status == 0
    assert ds.dataset([str(path) for path in (lake / "active").rglob("*.parquet")]).count_rows() == 20
