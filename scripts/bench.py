"""Measures each hot path beside its peer or limit, and prints what was found as one table.

    make bench
    make bench BENCH_ARGS="scan python_lookup"    # some suites only
    make bench BENCH_ARGS="--check hash"          # exit status 1 where a target is missed
    make bench BENCH_ARGS="--markdown hash"       # the table as it is in docs/performance.md
    make bench BENCH_ARGS="--history FILE"        # adds the ratios to FILE, and compares them with earlier ones
    make bench-spark                              # with Spark
    make bench-spark BENCH_ARGS=spark_planning    # one of its suites

The suites of benches/ratios are in Rust, those of benches/python in Python (python_NAME), `hostile` is benches/hostile,
`spark` and spark_NAME are benches/spark.
Each runs in a process of its own. Their rows are also written to bench-results.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, TypedDict

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import bench_history

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "bench-results.json"
TARGET: Final = ROOT / "target"
# With pages of 4 KiB, virtual machines measure how fast they translate addresses. glibc asks for larger ones, for both
# sides.
HUGE_PAGES: Final = "glibc.malloc.hugetlb=1"
# By default glibc gives each large buffer back to the system, which stops all threads. The Python package's allocator
# keeps them, and so does glibc where it is told to.
KEPT_MEMORY: Final = "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=1073741824"
RATIOS: Final = TARGET / "ratios"
"""Where benches/ratios is built: its peers are built for nothing else."""
FOUND: Final = RATIOS / "found"
BINARY: Final = RATIOS / "release" / "seglake-ratios"
PYTHON_SUITES: Final = ROOT / "benches" / "python"
# Not of `make bench`, whose suites all measure one process: they start Spark.
SPARK_SUITES: Final = {
    "spark": ROOT / "benches" / "spark" / "reading.py",
    "spark_planning": ROOT / "benches" / "spark" / "planning.py",
    "spark_streaming": ROOT / "benches" / "spark" / "streaming.py",
    "spark_memory": ROOT / "benches" / "spark" / "memory.py",
}
HOSTILE: Final = TARGET / "hostile.json"
# In how many times the time of a sound file, its records hashed one by one, a hostile one is to be scanned.
MOST_TIMES: Final = 4.0


class Row(TypedDict):
    """One line of the table."""

    name: str
    beside: str
    """What seglake is compared with."""
    kind: Literal["limit", "peer", "itself", "goal"]
    """What `beside` is: the least work of any program, another program, seglake itself with another setting, or a fixed
    number."""
    unit: str
    ours: float
    reference: float
    ratio: float
    """How many times as good seglake is: the median of all rounds."""
    low: float
    """The lower quartile of the rounds' ratios."""
    high: float
    """The upper quartile."""
    rounds: int
    target: float | None
    holds: bool | None


class BenchError(Exception):
    """Something cannot be built or run. The message says what to do."""


def cargo(*arguments: str) -> None:
    """Runs cargo in the repository's root.

    Raises:
        BenchError: it fails.
    """
    if subprocess.run([os.environ.get("CARGO", "cargo"), *arguments], cwd=ROOT, check=False).returncode:
        raise BenchError(f"cargo {arguments[0]} failed: see above")


def suites() -> list[str]:
    """Builds benches/ratios, and gives the names of all suites."""
    manifest = str(ROOT / "benches" / "ratios" / "Cargo.toml")
    cargo("build", "--release", "--locked", "--manifest-path", manifest, "--target-dir", str(RATIOS))
    told = subprocess.run([BINARY, "--list"], check=True, capture_output=True, text=True).stdout
    return [*told.split(), *sorted(f"python_{path.stem}" for path in PYTHON_SUITES.glob("[!_]*.py")), "hostile"]


def run(suite: str) -> list[Row]:
    """Runs one suite and gives its rows.

    Raises:
        BenchError: it fails.
    """
    if suite == "hostile":
        cargo("bench", "--locked", "--package", "seglake-benches", "--bench", "hostile")
        return hostile_rows()
    tunables = {"GLIBC_TUNABLES": f"{HUGE_PAGES}:{KEPT_MEMORY}" if suite == "threads" else HUGE_PAGES}
    environment = tunables | os.environ | {"SEGLAKE_RATIOS": str(FOUND)}
    if subprocess.run(command(suite), check=False, env=environment).returncode:
        raise BenchError(f"the suite {suite} failed: see above")
    return json.loads((FOUND / f"{suite}.json").read_text())


def command(suite: str) -> list[str]:
    """What runs a suite: a script of its own, or the binary of those in Rust, whose names may be those of scripts."""
    if suite.startswith("python_"):
        return [sys.executable, str(PYTHON_SUITES / f"{suite.removeprefix('python_')}.py")]
    if suite in SPARK_SUITES:
        return [sys.executable, str(SPARK_SUITES[suite])]
    return [str(BINARY), suite]


def hostile_rows() -> list[Row]:
    """A row for each hostile file. Those that are not listed have no target: they show how costly a file can be."""
    found = json.loads(HOSTILE.read_text())
    gigabytes = found["mib"] * (1 << 20) / 1e9
    rows: list[Row] = []
    for row in found["results"]:
        rounds: list[tuple[float, float]] = row["rounds"]
        ratios = [hashed / own for own, hashed in rounds]
        ratio, target = statistics.median(ratios), 1 / MOST_TIMES if row["listed"] else None
        low, high = quartiles(ratios)
        rows.append(
            {
                "name": f"hostile {row['family']} ({row['way']}): {row['file']}",
                "beside": "a sound file, hashed one by one",
                "kind": "peer",
                "unit": "GB/s",
                "ours": gigabytes / statistics.median(own for own, _ in rounds),
                "reference": gigabytes / statistics.median(hashed for _, hashed in rounds),
                "ratio": ratio,
                "low": low,
                "high": high,
                "rounds": len(rounds),
                "target": target,
                "holds": None if target is None else ratio >= target,
            }
        )
    return rows


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """The lower and the upper quartile, interpolated between two values."""
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, method="inclusive")
    return low, high


def machine() -> str:
    """What was measured on: the processor as it calls itself, its number of cores, and the compiler."""
    told = Path("/proc/cpuinfo").read_text() if sys.platform == "linux" else ""
    models = [line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name")]
    rustc = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    cores = os.cpu_count()
    return f"{models[0] if models else platform.processor()}, {cores} cores, {platform.system()}, rustc {rustc}"


def number(value: float) -> str:
    """Three digits that matter, and no exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


COLUMNS: Final = {
    "what": "left",
    "ours": "right",
    "beside": "left",
    "its": "right",
    "unit": "left",
    "ratio": "right",
    "quartiles": "right",
    "target": "right",
}


def cells(row: Row) -> list[str]:
    """A row as text, in the order of the columns."""
    target = "" if row["target"] is None else f"{row['target']:.2f}"
    if row["holds"] is False:
        target += " missed"
    beside = f"{row['kind']}: {row['beside']}"
    spread = f"{row['low']:.2f} to {row['high']:.2f}"
    measured = [number(row["ours"]), beside, number(row["reference"]), row["unit"]]
    return [row["name"], *measured, f"{row['ratio']:.2f}", spread, target]


def table(rows: Sequence[Row]) -> Table:
    """All rows, one below the other."""
    shown = Table(title=escape(f"{machine()}: medians of interleaved rounds"))
    for name, justify in COLUMNS.items():
        shown.add_column(name, justify="right" if justify == "right" else "left")
    for row in rows:
        shown.add_row(*map(escape, cells(row)))
    return shown


def markdown(rows: Sequence[Row]) -> str:
    """The same table as Markdown."""
    rules = ["--:" if justify == "right" else "---" for justify in COLUMNS.values()]
    lines = [list(COLUMNS), rules, *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def commit() -> str | None:
    """The commit that is measured; None where there is no repository."""
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=False, capture_output=True, text=True)
    return found.stdout.strip() or None


def run_now(rows: Sequence[Row]) -> bench_history.Run:
    """These rows as a run of the history."""
    ratios: list[bench_history.Ratio] = [
        {"name": row["name"], "beside": row["beside"], "ratio": row["ratio"], "low": row["low"], "high": row["high"]}
        for row in rows
    ]
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return {"date": date, "commit": commit(), "machine": machine(), "rows": ratios}


def moved(moves: Sequence[bench_history.Move]) -> Table:
    """The ratios beside those of earlier runs."""
    shown = Table(title=f"beside the median of up to {bench_history.RUNS} earlier runs on this machine")
    shown.add_column("what")
    shown.add_column("beside")
    shown.add_column("ratio", justify="right")
    shown.add_column("median", justify="right")
    shown.add_column("runs", justify="right")
    shown.add_column("change", justify="right")
    shown.add_column("moved")
    for move in moves:
        ratios = (f"{move.ratio:.2f}", "" if move.median is None else f"{move.median:.2f}", str(len(move.earlier)))
        change = "new" if move.change is None else f"{move.change:+.0%}"
        shown.add_row(escape(move.name), escape(move.beside), *ratios, change, "MOVED" if move.has_moved else "")
    return shown


def main() -> int:
    """Measures and prints. Gives 1 where a suite failed, or, with --check, a target is missed; 2 for wrong use."""
    parser = argparse.ArgumentParser(description="Measures each hot path beside its peer or limit.")
    parser.add_argument("suites", nargs="*", help="the suites to run; without any, all are")
    parser.add_argument("--check", action="store_true", help="fail where a target is missed")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument(
        "--history",
        type=Path,
        metavar="FILE",
        help="add the ratios to FILE as one line of JSON, and compare them with earlier ones",
    )
    parser.add_argument("--spark", action="store_true", help="run the suites that start Spark instead")
    arguments = parser.parse_args()
    try:
        # Read before measuring, so that a broken history is reported at once.
        earlier = bench_history.read(arguments.history) if arguments.history else []
    except bench_history.HistoryError as error:
        print(error, file=sys.stderr)
        return 2
    shutil.rmtree(FOUND, ignore_errors=True)
    FOUND.mkdir(parents=True)
    try:
        known = list(SPARK_SUITES) if arguments.spark else suites()
    except BenchError as error:
        print(error, file=sys.stderr)
        return 1
    unknown = [name for name in arguments.suites if name not in known]
    if unknown:
        print(f"there is no suite {', '.join(unknown)}: there are {', '.join(known)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    failed: list[str] = []
    for suite in arguments.suites or known:
        begun = time.monotonic()
        try:
            rows += run(suite)
        except BenchError as error:
            # What else there is to measure is worth having.
            print(error, file=sys.stderr)
            failed.append(suite)
        print(f"{suite}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n")
    # A terminal's width or more: a table that is cut says nothing in a log.
    console = Console(width=max(Console().width, 170))
    if arguments.markdown:
        print(markdown(rows))
    else:
        console.print(table(rows))
    if arguments.history and rows:
        now = run_now(rows)
        console.print(moved(list(bench_history.moves(earlier, now))))
        bench_history.append(arguments.history, now)
    missed = sum(row["holds"] is False for row in rows)
    print(
        f"{missed} of {sum(row['target'] is not None for row in rows)} targets missed; all rows are in {RESULTS.name}"
    )
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed) or (arguments.check and missed > 0))


if __name__ == "__main__":
    sys.exit(main())
