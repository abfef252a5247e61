"""`make bench` runs the suites that it names: those in Rust and those in Python may have the same names."""

import sys
from pathlib import Path

import bench

ROOT = Path(__file__).resolve().parents[2]


def test_suites_of_one_name_are_told_apart() -> None:
    assert bench.command("arrow") == [str(bench.BINARY), "arrow"]
    assert bench.command("python_arrow") == [sys.executable, str(ROOT / "benches" / "python" / "arrow.py")]
    assert bench.command("spark") == [sys.executable, str(ROOT / "benches" / "spark" / "reading.py")]


def test_each_suite_in_rust_is_run_by_the_binary() -> None:
    sources = {path.stem for path in (ROOT / "benches" / "ratios" / "src").glob("*.rs")}
    suites = sources - {"compare", "logs", "main", "messages"}
    assert {"arrow", "lookup", "scan", "threads"} <= suites
    for suite in suites:
        assert bench.command(suite) == [str(bench.BINARY), suite]


def test_scripts_of_suites_are_there() -> None:
    for suite in [*bench.SPARK_SUITES, *(f"python_{path.stem}" for path in bench.PYTHON_SUITES.glob("[!_]*.py"))]:
        assert Path(bench.command(suite)[1]).is_file()
