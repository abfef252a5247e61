"""`seglake ingest`, through real processes: what it prints and how it ends. What it writes has tests of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from clusters import of_no_session

pty = pytest.importorskip("pty")
pytestmark = pytest.mark.spark

VECTORS = Path(__file__).parents[1] / "vectors" / "active"
TIMEOUT_S = 300


def command(*arguments: str | Path) -> list[str]:
    words = [str(word) for word in arguments]
    return [sys.executable, "-m", "seglake", "ingest", *words, "--master", "local[1]"]


def environment(folder: Path, **changes: str) -> dict[str, str]:
    inherited = {
        name: value for name, value in of_no_session(os.environ).items() if name not in ("SEGLAKE_DEBUG", "NO_COLOR")
    }
    return {**inherited, "TMPDIR": str(folder), "PYTHONIOENCODING": "utf-8", **changes}


def run(folder: Path, *arguments: str | Path, **changes: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(*arguments),
        env=environment(folder, **changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )


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
    assert (done.returncode, done.stderr) == (1, "")
    result = json.loads(done.stdout)
    truths = [truth(stem) for stem in stems]
    assert done.stdout.count("\n") == 1
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
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(VECTORS / "typical.bin", "--to", tmp_path / "lake"),
        env=environment(temporary, TERM="xterm-256color", COLUMNS="120"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            block = os.read(ours, 4096)
        except OSError:  # Linux: the last process that had the terminal open has ended
            break
        if not block:
            break
        seen += block
    os.close(ours)
    assert process.stdout is not None
    with process.stdout:
        out = process.stdout.read().decode()
    assert process.wait(TIMEOUT_S) == 0
    assert "starting Spark" in seen.decode()
    assert "of 1 file," in seen.decode()
    assert "WARN" not in seen.decode()
    rows = dict(line.rsplit(maxsplit=1) for line in out.splitlines() if re.search(r"\S +[\d,.]+$", line))
    assert rows["files"] == "1"
    assert rows["records"] == str(len(truth("typical")["records"]))
    assert rows["bytes"] == f"{truth('typical')['size']:,}"
    assert out.splitlines()[-1] == f"{tmp_path / 'lake'}/active/{{records,damage,files}}/"


def test_a_wrong_key_is_trouble_and_is_not_shown(temporary: Path, tmp_path: Path) -> None:
    key = "5e" * 32
    done = run(temporary, VECTORS / "typical.bin", "--to", tmp_path / "lake", SEGLAKE_KEY=key)
    assert (done.returncode, done.stdout) == (2, "")
    assert str(VECTORS / "typical.bin") in done.stderr
    assert "key" in done.stderr
    assert key not in done.stderr
    assert list(tmp_path.glob("lake/active/**/*.parquet")) == []


def test_what_spark_has_to_say_of_its_own_failure_is_kept_in_a_file(temporary: Path, tmp_path: Path) -> None:
    done = run(
        temporary, VECTORS / "typical.bin", "--to", tmp_path / "lake", "--conf", "spark.python.worker.reuse=maybe"
    )
    assert (done.returncode, done.stdout) == (2, "")
    [log] = logs(temporary)
    assert str(log) in done.stderr
    assert "spark.python.worker.reuse" in done.stderr
    assert "\tat " not in done.stderr
    assert "spark.python.worker.reuse" in log.read_text()
