"""Prints the ratios of the newest benchmark run: each path beside the peer or limit that it was measured with.

Reads what criterion left in target/criterion, after `cargo bench`; there a ratio above 1 means that ours is faster.
Prints too what hostile files cost, from target/hostile.json: how many times what a sound file of their size does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

TARGET = Path(__file__).parent.parent / "target"
RESULTS = TARGET / "criterion"
HOSTILE = TARGET / "hostile.json"
OURS = "seglake"
# In how many times the time of a sound file, its records hashed one by one, a hostile one is to be scanned.
MOST_TIMES = 4.0


def median_seconds(folder: Path) -> float:
    """The median time of one iteration."""
    estimates = json.loads((folder / "new" / "estimates.json").read_text())
    return estimates["median"]["point_estimate"] / 1e9


def throughput_bytes(folder: Path) -> int:
    """How many bytes one iteration works on."""
    return json.loads((folder / "new" / "benchmark.json").read_text())["throughput"]["Bytes"]


def hostile_table() -> Table:
    """What each hostile file took. The target is for those that are listed; the others show what more can be made."""
    run = json.loads(HOSTILE.read_text())
    title = f"hostile files of {run['mib']} MiB, beside a sound one whose records are hashed one by one"
    table = Table("format", "read", "file", "seconds", "sound", "times", "target", title=title)
    for row in run["results"]:
        times = row["seconds"] / row["hashed_seconds"]
        target = ("" if times <= MOST_TIMES else "missed: ") + f"{MOST_TIMES:g}" if row["listed"] else ""
        seconds, sound = (f"{row[name]:.2f}" for name in ("seconds", "hashed_seconds"))
        table.add_row(row["family"], row["way"], row["file"], seconds, sound, f"{times:.2f}", target)
    return table


def main() -> int:
    """Prints the tables. Gives 1 where there are no results."""
    groups = sorted(path.parent for path in RESULTS.glob(f"*/{OURS}") if (path / "new").is_dir())
    if HOSTILE.exists():
        Console().print(hostile_table())
    if not groups:
        print(f"no results in {RESULTS}: run make bench", file=sys.stderr)
        return 1
    table = Table("what", "ours", "beside", "theirs", "ratio", title="medians of one run, in GB/s")
    for group in groups:
        ours = group / OURS
        gigabytes = throughput_bytes(ours) / 1e9
        for other in sorted(path.parent for path in group.glob("*/new") if path.parent not in {ours, group / "report"}):
            fast, slow = gigabytes / median_seconds(ours), gigabytes / median_seconds(other)
            table.add_row(group.name, f"{fast:.2f}", other.name, f"{slow:.2f}", f"{fast / slow:.2f}")
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
