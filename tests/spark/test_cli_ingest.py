"""`seglake ingest`, through real processes: what it prints and how it ends. What it writes has tests of its own."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cli_process import Argument, Finished, on_terminal, seglake

pytestmark = pytest.mark.spark

VECTORS = Path(__file__).parents[1] / "vectors" / "active"


def run(temporary: Path, *arguments: Argument, **variables: str) -> Finished:
    return seglake("ingest", *arguments, "--master", "local[1]", env={"TMPDIR": str(temporary), **variables})


def truth(stem: str) -> dict[str, Any]:
    return json.loads((VECTORS / f"{stem}.json").read_text())


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


def logs(temporary: Path) -> list[Path]:
    return list(temporary.glob("seglake-spark-*.log"))


def test_json_is_all_that_a_pipe_gets(temporary: Path, tmp_path: Path) -> None:
    stems = ["typical", "flip_message", "torn_in_body_preallocated"]
    done = run(temporary, *(VECTORS / f"{stem}.bin" for stem in stems), "--to", tmp_path / "lake", "--json")
    assert (done.status, done.err) == (1, "")
    result = json.loads(done.out)
    truths = [truth(stem) for stem in stems]
    assert done.out.count("\n") == 1
    assert result["files"] == 3
    assert result["damaged_files"] == 2
    assert result["records"] == sum(len(each["records"]) for each in truths)
    assert result["bytes"] == sum(each["size"] for each in truths)
    damage = [span for each in truths for span in each["ledger"] if span[3] is not None]
    assert result["damage"] == {
        "checksum_mismatch": {"ranges": len(damage), "bytes": sum(end - start for start, end, _, _ in damage)}
    }
    assert logs(temporary) == []


def test_a_person_gets_progress_and_a_table(temporary: Path, tmp_path: Path) -> None:
    arguments = ("ingest", VECTORS / "typical.bin", "--to", tmp_path / "lake", "--master", "local[1]")
    variables = {"TMPDIR": str(temporary), "TERM": "xterm-256color"}
    seen, done = on_terminal(*arguments, columns=120, env=variables, only="error")
    assert done.status == 0
    assert "starting Spark" in seen
    assert "of 1 file," in seen
    assert "WARN" not in seen
    rows = dict(line.rsplit(maxsplit=1) for line in done.out.splitlines() if re.search(r"\S +[\d,.]+$", line))
    assert rows["files"] == "1"
    assert rows["records"] == str(len(truth("typical")["records"]))
    assert rows["bytes"] == f"{truth('typical')['size']:,}"
    assert done.out.splitlines()[-1] == f"{tmp_path / 'lake'}/active/{{records,damage,files}}/"


def test_a_wrong_key_is_trouble_and_is_not_shown(temporary: Path, tmp_path: Path) -> None:
    key = "5e" * 32
    done = run(temporary, VECTORS / "typical.bin", "--to", tmp_path / "lake", SEGLAKE_KEY=key)
    assert (done.status, done.out) == (2, "")
    assert str(VECTORS / "typical.bin") in done.err
    assert "key" in done.err
    assert key not in done.err
    assert list(tmp_path.glob("lake/active/**/*.parquet")) == []


def test_what_spark_has_to_say_of_its_own_failure_is_kept_in_a_file(temporary: Path, tmp_path: Path) -> None:
    done = run(
        temporary, VECTORS / "typical.bin", "--to", tmp_path / "lake", "--conf", "spark.python.worker.reuse=maybe"
    )
    assert (done.status, done.out) == (2, "")
    [log] = logs(temporary)
    assert str(log) in done.err
    assert "spark.python.worker.reuse" in done.err
    assert "\tat " not in done.err
    assert "spark.python.worker.reuse" in log.read_text()
