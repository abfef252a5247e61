"""Counts what the hot paths cost in instructions, and holds that to benches/guard/budget.json.

    make bench-guard
    make bench-guard GUARD_ARGS="sealed Arrow"    # paths with this in their names
    make bench-guard GUARD_ARGS=--update          # writes the budget anew: for the change that has a reason

Times on shared machines prove nothing, instructions repeat. Each path is run under valgrind in one round and in three:
what they differ by, divided by the work of two rounds, is what a record costs. zstd's own are left out, since another
compiler makes others of it. What ran is kept in target/guard for cg_annotate.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

ROOT: Final = Path(__file__).resolve().parents[1]
BUDGET: Final = ROOT / "benches" / "guard" / "budget.json"
WORK: Final = ROOT / "target" / "guard"
BINARY: Final = WORK / "release" / "seglake-guard"

ABOVE: Final = 0.02
"""What is so much more than budgeted fails."""
BELOW: Final = 0.05
"""What is so much less is told, so that the budget is lowered before the gain is lost again."""
ROUNDS: Final = (1, 3)
ZSTD: Final = re.compile(r"(ZSTD|HUF|FSE|XXH|HIST|ERR|POOL)v?\d*_")
# The C library copies and fills by what the processor is called and how large its caches are: the same everywhere here.
TUNABLES: Final = ":".join(
    f"glibc.cpu.x86_{name}_threshold=0x40000000" for name in ("rep_movsb", "rep_stosb", "non_temporal")
)


class GuardError(Exception):
    """Nothing can be counted here. The message says what to do."""


@dataclass(frozen=True)
class HotPath:
    """A hot path with one hash kernel."""

    path: str
    kernel: str
    unit: str

    @property
    def name(self) -> str:
        """As the budget and the table call it."""
        return f"{self.path} ({self.kernel})"


@dataclass(frozen=True)
class Cost:
    """What one unit of a path costs, in instructions."""

    instructions: float
    functions: list[tuple[str, float]]
    """Those that most of it is spent in."""


def check_machine() -> None:
    """Raises where there is no valgrind, or a processor that lacks what it is to count.

    Raises:
        GuardError: with what to do.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise GuardError("instructions are budgeted for Linux on x86-64: on other systems see `make bench`")
    if not shutil.which("valgrind"):
        raise GuardError("valgrind is not there: install it (Debian, Ubuntu: apt-get install valgrind)")
    if " avx2 " not in Path("/proc/cpuinfo").read_text():
        raise GuardError("this processor has no AVX2, so the kernels that are budgeted cannot be counted")


def build() -> None:
    """Builds the binary.

    Raises:
        GuardError: it does not compile.
    """
    command = [os.environ.get("CARGO", "cargo"), "build", "--release", "--locked", "--target-dir", str(WORK)]
    manifest = ["--manifest-path", str(ROOT / "benches" / "guard" / "Cargo.toml")]
    if subprocess.run(command + manifest, check=False).returncode:
        raise GuardError("benches/guard was not built: see above")


def rustc() -> str:
    """The version of the compiler, on which the counts depend."""
    told = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout
    return told.split()[1]


def paths() -> list[HotPath]:
    """All paths that the binary has, each with all kernels that it is to be counted with."""
    told = json.loads(subprocess.run([BINARY], check=True, capture_output=True, text=True).stdout)
    return [HotPath(path["name"], kernel, path["unit"]) for path in told for kernel in path["kernels"]]


def run(path: HotPath, rounds: int) -> tuple[Counter[str], int]:
    """Counts so many rounds of a path.

    Returns:
        The instructions of each function, zstd's left out, and how many units one round has.

    Raises:
        GuardError: it fails.
    """
    stem = re.sub(r"[^a-z0-9]+", "-", path.name.lower()).strip("-")
    out = WORK / f"{stem}.{rounds}.out"
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={out}", "--quiet"]
    environment = os.environ | {"HIGHWAY_BATCH_KERNEL": path.kernel, "GLIBC_TUNABLES": TUNABLES}
    done = subprocess.run(
        [*command, BINARY, path.path, str(rounds)], check=False, capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise GuardError(f"{path.name} failed under valgrind:\n{done.stderr}")
    functions: Counter[str] = Counter()
    function = ""
    with out.open() as lines:
        for line in lines:
            if line.startswith("fn="):
                function = line.removeprefix("fn=").strip()
            elif line[0].isdigit() and not ZSTD.match(function):
                functions[function] += int(line.split()[1])
    return functions, int(done.stdout)


def count(path: HotPath) -> Cost:
    """What one unit of a path costs."""
    (few, units), (many, _) = (run(path, rounds) for rounds in ROUNDS)
    work = units * (ROUNDS[1] - ROUNDS[0])
    many.subtract(few)
    return Cost(many.total() / work, [(name, own / work) for name, own in many.most_common(5)])


def main() -> int:
    """Counts, compares and tells. Gives 1 where a path costs more than its budget, 2 where nothing can be counted."""
    parser = argparse.ArgumentParser(description="Holds the hot paths to a budget of instructions.")
    parser.add_argument("names", nargs="*", help="parts of the names of the paths to count; without any, all are")
    parser.add_argument("--update", action="store_true", help="write what was counted as the budget")
    arguments = parser.parse_args()
    try:
        check_machine()
        build()
        wanted = [
            path
            for path in paths()
            if not arguments.names or any(name.lower() in path.name.lower() for name in arguments.names)
        ]
        if not wanted:
            raise GuardError(f"no path has any of these in its name: {', '.join(arguments.names)}")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            costs = dict(zip(wanted, pool.map(count, wanted), strict=True))
    except GuardError as error:
        print(error, file=sys.stderr)
        return 2
    budget = json.loads(BUDGET.read_text()) if BUDGET.exists() else {"rustc": rustc(), "instructions": {}}
    allowed: dict[str, dict[str, str | float]] = budget["instructions"]
    failed = show(costs, allowed)
    if not arguments.names:
        gone = sorted(allowed.keys() - {path.name for path in costs})
        failed |= bool(gone)
        print("".join(f"budgeted, but no path: {name}\n" for name in gone), end="")
    if arguments.update:
        kept = allowed if arguments.names else {}
        counted = {path.name: {"per": path.unit, "count": round(cost.instructions, 1)} for path, cost in costs.items()}
        BUDGET.write_text(json.dumps({"rustc": rustc(), "instructions": kept | counted}, indent=2) + "\n")
        print(f"wrote {BUDGET.relative_to(ROOT)}: say in the change why")
        return 0
    if rustc() != budget["rustc"]:
        print(f"the budget is rustc {budget['rustc']}'s, and this is {rustc()}: some of this may be the compiler's")
    return int(failed)


def show(costs: dict[HotPath, Cost], allowed: dict[str, dict[str, str | float]]) -> bool:
    """Prints the table, and which functions make up what is too much. Gives whether something is, or has no budget."""
    table = Table("path", "per", "instructions", "budget", "change", "", title="instructions by valgrind")
    dear: list[tuple[str, Cost]] = []
    for path, cost in costs.items():
        budget = allowed.get(path.name)
        most = float(budget["count"]) if budget else 0.0
        change = cost.instructions / most - 1 if most else 0.0
        if not budget:
            verdict = "not budgeted"
        elif change > ABOVE:
            verdict = "TOO MUCH"
        elif change < -BELOW:
            verdict = "less: lower the budget"
        else:
            verdict = ""
        if budget and change > ABOVE:
            dear.append((path.name, cost))
        told = (f"{most:.1f}", f"{change:+.1%}") if budget else ("", "")
        table.add_row(path.name, path.unit, f"{cost.instructions:.1f}", *told, verdict)
    # A terminal's width or more: a table that is cut says nothing in a log.
    Console(width=max(Console().width, 110)).print(table)
    for name, cost in dear:
        print(f"{name}, most of it in:")
        for function, own in cost.functions:
            print(f"  {own:10.1f} {function}")
    if dear:
        print("If it is worth that: make bench-guard GUARD_ARGS=--update, and say why in the change.")
    return bool(dear) or any(path.name not in allowed for path in costs)


if __name__ == "__main__":
    sys.exit(main())
