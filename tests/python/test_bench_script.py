"""`make bench`: which suites there are and how each is run, what its tables say, and the history of ratios."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import bench
import bench_history

ROOT = Path(__file__).resolve().parents[2]
RATIOS = ROOT / "benches" / "ratios" / "src"
NOT_SUITES = {"compare", "logs", "main", "messages", "segments"}
"""The modules of benches/ratios that are not suites."""
PYTHON_SUITES = ["python_arrow", "python_log", "python_lookup", "python_many", "python_parity"]


def row(name: str = "verify", ratio: float = 1.5, target: float | None = None, **changed: Any) -> bench.Row:
    """A row of a suite."""
    made: bench.Row = {
        "name": name,
        "beside": "a peer",
        "kind": "peer",
        "unit": "GB/s",
        "ours": 1234.5,
        "reference": 0.12345,
        "ratio": ratio,
        "low": ratio - 0.25,
        "high": ratio + 0.25,
        "rounds": 8,
        "target": target,
        "holds": None if target is None else ratio >= target,
    }
    made.update(changed)  # type: ignore[typeddict-item]
    return made


def interleaved() -> ModuleType:
    """The module of benches/python, whose other modules must not be on the path: their names are common."""
    path = ROOT / "benches" / "python" / "_interleaved.py"
    spec = importlib.util.spec_from_file_location("bench_interleaved", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, list[bench.Row]]:
    """The rows that each suite gives, instead of building and running any. A suite without rows fails."""
    rows: dict[str, list[bench.Row]] = {}

    def run(suite: str) -> list[bench.Row]:
        if not rows[suite]:
            raise bench.BenchError(f"the suite {suite} failed: see above")
        return rows[suite]

    monkeypatch.setattr(bench, "suites", lambda: list(rows))
    monkeypatch.setattr(bench, "run", run)
    monkeypatch.setattr(bench, "machine", lambda: "a machine")
    monkeypatch.setattr(bench, "commit", lambda: "abc123")
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "bench-results.json")
    monkeypatch.setattr(bench, "FOUND", tmp_path / "found")
    return rows


def main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Runs the script."""
    monkeypatch.setattr(sys, "argv", ["bench.py", *arguments])
    return bench.main()


# Which suites there are


def test_suites_of_one_name_are_run_differently() -> None:
    assert bench.command("arrow") == [str(bench.BINARY), "arrow"]
    assert bench.command("python_arrow") == [sys.executable, str(ROOT / "benches" / "python" / "arrow.py")]
    assert bench.command("spark") == [sys.executable, str(ROOT / "benches" / "spark" / "reading.py")]


def test_each_module_in_rust_is_a_suite_of_its_name() -> None:
    listed = dict(re.findall(r'\("(\w+)", (\w+)::run\)', (RATIOS / "main.rs").read_text()))
    assert listed == {name: name for name in listed}
    files = [*RATIOS.glob("*.rs"), *(path.parent for path in RATIOS.glob("*/mod.rs"))]
    assert set(listed) == {path.stem for path in files} - NOT_SUITES


@pytest.mark.parametrize("suite", [*PYTHON_SUITES, *bench.SPARK_SUITES])
def test_each_script_writes_the_rows_that_are_read(suite: str) -> None:
    source = Path(bench.command(suite)[1]).read_text()
    assert re.findall(r'Suite\("(\w+)"', source) == [suite]


@pytest.fixture
def binary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """In the place of the suites in Rust: lists two, writes down its environment, and fails for one."""
    path = tmp_path / "ratios"
    path.write_text(
        f"""#!{sys.executable}
import json, os, sys
from pathlib import Path
if sys.argv[1] == "--list":
    print("append")
    print("threads")
elif sys.argv[1] == "append":
    sys.exit(3)
else:
    rows = [dict(name=sys.argv[1], tunables=os.environ["GLIBC_TUNABLES"])]
    Path(os.environ["SEGLAKE_RATIOS"], sys.argv[1] + ".json").write_text(json.dumps(rows))
"""
    )
    path.chmod(0o700)
    built: list[tuple[str, ...]] = []
    monkeypatch.setattr(bench, "BINARY", path)
    monkeypatch.setattr(bench, "FOUND", tmp_path)
    monkeypatch.setattr(bench, "cargo", lambda *arguments: built.append(arguments))
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="runs a script by its first line")
@pytest.mark.usefixtures("binary")
def test_suites_are_those_of_the_binary_the_scripts_and_hostile() -> None:
    assert bench.suites() == ["append", "threads", *PYTHON_SUITES, "hostile"]


@pytest.mark.skipif(sys.platform == "win32", reason="runs a script by its first line")
@pytest.mark.usefixtures("binary")
def test_a_suite_runs_with_large_pages_and_one_that_fails_is_an_error() -> None:
    assert bench.run("scan") == [{"name": "scan", "tunables": bench.HUGE_PAGES}]
    assert bench.run("threads") == [{"name": "threads", "tunables": f"{bench.HUGE_PAGES}:{bench.KEPT_MEMORY}"}]
    with pytest.raises(bench.BenchError, match="append failed"):
        bench.run("append")


def test_hostile_files_are_told_by_the_median_of_their_rounds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "hostile.json"
    monkeypatch.setattr(bench, "HOSTILE", path)
    base = {"family": "active", "way": "windows", "file": "random bytes"}
    slow = {**base, "rounds": [[4.0, 1.0], [5.0, 1.0], [10.0, 1.0]], "listed": True}
    other = {**base, "rounds": [[4.0, 1.0]], "listed": False}
    path.write_text(json.dumps({"mib": 1000, "results": [slow, other]}))
    first, second = bench.hostile_rows()
    assert first["name"] == "hostile active (windows): random bytes"
    assert (first["ratio"], first["rounds"], first["target"], first["holds"]) == (0.2, 3, 0.25, False)
    assert (first["low"], first["high"]) == (pytest.approx(0.15), pytest.approx(0.225))
    assert first["ours"] == pytest.approx(1.048576 / 5)
    assert (second["ratio"], second["low"], second["high"], second["target"], second["holds"]) == (
        *(0.25, 0.25, 0.25),
        None,
        None,
    )


# What is run, and what comes of it


def test_all_suites_run_unless_some_are_named(
    measured: dict[str, list[bench.Row]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measured.update(hash=[row("hash")], scan=[row("scan", target=1.0)])
    results = tmp_path / "bench-results.json"
    assert main(monkeypatch) == 0
    assert json.loads(results.read_text()) == [*measured["hash"], *measured["scan"]]
    assert main(monkeypatch, "scan") == 0
    assert json.loads(results.read_text()) == measured["scan"]


def test_a_suite_that_is_not_there_is_wrong_use(
    measured: dict[str, list[bench.Row]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured.update(hash=[row()], scan=[row()])
    assert main(monkeypatch, "hash", "sacn") == 2
    assert "there is no suite sacn: there are hash, scan" in capsys.readouterr().err


def test_a_suite_that_fails_leaves_the_rows_of_the_others(
    measured: dict[str, list[bench.Row]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured.update(hash=[], scan=[row("verify, 128 B")])
    assert main(monkeypatch) == 1
    told = capsys.readouterr()
    assert "verify, 128 B" in told.out
    assert "failed: hash" in told.err


@pytest.mark.parametrize(("ratio", "checked"), [(0.99, 1), (1.0, 0)])
def test_a_missed_target_fails_with_check_alone(
    measured: dict[str, list[bench.Row]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ratio: float,
    checked: int,
) -> None:
    measured["hash"] = [row(ratio=ratio, target=1.0), row(ratio=0.1)]
    assert main(monkeypatch) == 0
    assert f"{checked} of 1 targets missed" in capsys.readouterr().out
    assert main(monkeypatch, "--check") == checked


def test_tables_show_what_was_measured_beside_what_and_the_spread(
    measured: dict[str, list[bench.Row]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured["hash"] = [row("hash [many]", 1.5, target=2.0), row("get", 3.25, kind="limit", beside="two loads")]
    assert main(monkeypatch, "--markdown") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| what | ours | beside | its | unit | ratio | quartiles | target |"
    assert lines[1] == "| --- | --: | --- | --: | --- | --: | --: | --: |"
    expected = "| hash [many] | 1,234 | peer: a peer | 0.123 | GB/s | 1.50 | 1.25 to 1.75 | 2.00 missed |"
    assert lines[2] == expected
    assert lines[3] == "| get | 1,234 | limit: two loads | 0.123 | GB/s | 3.25 | 3.00 to 3.50 |  |"
    assert main(monkeypatch) == 0
    shown = capsys.readouterr().out
    for cell in ("hash [many]", "peer: a peer", "1.25 to 1.75", "2.00 missed", "limit: two loads"):
        assert cell in shown


# The history


def test_a_run_is_added_to_the_history_and_held_against_earlier_ones(
    measured: dict[str, list[bench.Row]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    history = tmp_path / "history.jsonl"
    for ratio in (1.0, 1.2, 1.1):
        measured["hash"] = [row("hash", ratio)]
        assert main(monkeypatch, "--history", str(history)) == 0
        assert "MOVED" not in capsys.readouterr().out
    measured["hash"] = [row("hash", 0.55), row("get", 2.0)]
    assert main(monkeypatch, "--history", str(history)) == 0
    shown = capsys.readouterr().out
    moved = next(line for line in shown.splitlines() if "MOVED" in line)
    assert re.findall(r"hash|a peer|-?\d[\d.%]*", moved) == ["hash", "a peer", "0.55", "1.10", "3", "-50%"]
    assert any("get" in line and "new" in line for line in shown.splitlines())
    runs = [json.loads(line) for line in history.read_text().splitlines()]
    assert [[own["ratio"] for own in run["rows"]] for run in runs] == [[1.0], [1.2], [1.1], [0.55, 2.0]]
    assert {(run["machine"], run["commit"]) for run in runs} == {("a machine", "abc123")}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", runs[0]["date"])
    assert runs[0]["rows"] == [{"name": "hash", "beside": "a peer", "ratio": 1.0, "low": 0.75, "high": 1.25}]


def test_a_history_that_cannot_be_read_is_known_before_anything_is_measured(
    measured: dict[str, list[bench.Row]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    measured["hash"] = [row()]
    history = tmp_path / "history.jsonl"
    assert main(monkeypatch, "--history", str(history)) == 0
    history.write_text(history.read_text() + '{"date": "2026-01-01"}\n')
    before = history.read_text()
    (tmp_path / "bench-results.json").unlink()
    assert main(monkeypatch, "--history", str(history)) == 2
    assert "line 2 is not a run" in capsys.readouterr().err
    assert history.read_text() == before
    assert not (tmp_path / "bench-results.json").exists()


def test_nothing_is_added_where_nothing_was_measured(
    measured: dict[str, list[bench.Row]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measured["hash"] = []
    assert main(monkeypatch, "--history", str(tmp_path / "history.jsonl")) == 1
    assert not (tmp_path / "history.jsonl").exists()


def ran(ratio: float, machine: str = "a machine", beside: str = "a peer") -> bench_history.Run:
    """A run of one row."""
    only: bench_history.Ratio = {"name": "hash", "beside": beside, "ratio": ratio, "low": ratio, "high": ratio}
    return {"date": "2026-01-01T00:00:00+00:00", "commit": None, "machine": machine, "rows": [only]}


@pytest.mark.parametrize(
    ("ratio", "has_moved"),
    [(1.2, False), (1.2001, True), (1.1, False), (0.9, False), (0.8, True)],
)
def test_a_ratio_has_moved_if_it_is_off_by_a_tenth_and_outside_of_what_was(ratio: float, has_moved: bool) -> None:
    runs = [ran(0.9), ran(1.0), ran(1.2)]
    (move,) = bench_history.moves(runs, ran(ratio))
    assert (move.median, move.change) == (1.0, pytest.approx(ratio - 1))
    assert move.has_moved is has_moved


def test_within_a_tenth_and_beside_too_few_runs_nothing_has_moved() -> None:
    def has_moved(ratio: float, runs: int) -> bool:
        (move,) = bench_history.moves([ran(1.0)] * runs, ran(ratio))
        return move.has_moved

    assert not has_moved(1.09, runs=3)
    assert has_moved(1.11, runs=3)
    assert not has_moved(1.11, runs=2)
    assert not has_moved(1.11, runs=0)


def test_other_machines_other_rows_and_older_runs_are_left_out() -> None:
    runs = [ran(9.0), *[ran(2.0)] * bench_history.RUNS, ran(5.0, machine="another"), ran(5.0, beside="another")]
    (move,) = bench_history.moves(runs, ran(2.0))
    assert move.earlier == (2.0,) * bench_history.RUNS


# What is measured from Python


def test_each_side_goes_first_in_half_of_the_rounds_and_both_are_prepared() -> None:
    module, calls, now = interleaved(), list[str](), [0.0]

    def side(name: str, seconds: float) -> Any:
        def run() -> None:
            calls.append(name)
            now[0] += seconds

        return run

    suite = module.Suite("any", lambda: now[0], rounds=4)
    suite.compare(
        "what", "a peer", (side("ours", 1.0), 10), (side("theirs", 4.0), 20), 2.0, prepare=lambda: calls.append("-")
    )
    warm_up, *rounds = "".join(name[0] for name in calls).lstrip("-").split("-")
    assert warm_up == "ot"
    assert rounds == ["ot", "to", "ot", "to"]
    (found,) = suite._rows
    assert (found["ours"], found["reference"]) == (pytest.approx(1e-5), pytest.approx(5e-6))
    assert (found["ratio"], found["low"], found["high"]) == (pytest.approx(2.0),) * 3
    assert (found["kind"], found["rounds"], found["holds"]) == ("peer", 4, True)


def test_spreads_are_quartiles_and_of_costs_less_is_better(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    suite = interleaved().Suite("any")
    suite.add("a rate", "a peer", [(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 1.0), (9.0, 1.0)], unit="GB/s")
    suite.add("a cost", "a peer", [(2.0, 1.0)], target=1.0, unit="MiB", kind="itself")
    monkeypatch.setenv("SEGLAKE_RATIOS", str(tmp_path))
    suite.finish()
    rate, cost = json.loads((tmp_path / "any.json").read_text())
    assert (rate["ratio"], rate["low"], rate["high"], rate["rounds"]) == (3.0, 2.0, 4.0, 5)
    assert (cost["ratio"], cost["low"], cost["high"], cost["holds"], cost["kind"]) == (0.5, 0.5, 0.5, False, "itself")
