"""Prints the ratios of the newest benchmark run: each path beside the peer or limit that it was measured with.

Reads what criterion left in target/criterion, after `cargo bench`. A ratio above 1 means that ours is faster.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent.parent / "target" / "criterion"
OURS = "seglake"


def median_seconds(folder: Path) -> float:
    """The median time of one iteration."""
    estimates = json.loads((folder / "new" / "estimates.json").read_text())
    return estimates["median"]["point_estimate"] / 1e9


def throughput_bytes(folder: Path) -> int:
    """How many bytes one iteration works on."""
    return json.loads((folder / "new" / "benchmark.json").read_text())["throughput"]["Bytes"]


def main() -> int:
    """Prints the table. Gives 1 where there are no results."""
    groups = sorted(path.parent for path in RESULTS.glob(f"*/{OURS}") if (path / "new").is_dir())
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
