"""Runs a command, and adds how long it took to a file, as a line of JSON. `make test` runs its parts with it.

    .venv/bin/python scripts/stage.py --log build/stages.jsonl lint -- make lint

The exit status is the command's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description="Run a command and note how long it took.")
    parser.add_argument("--log", type=Path, required=True, help="the file that a line is added to")
    parser.add_argument("name", help="what is measured")
    parser.add_argument("command", nargs="+", help="the command, after --")
    chosen = parser.parse_args(arguments)
    start = time.monotonic()
    status = subprocess.run(chosen.command, check=False).returncode
    seconds = round(time.monotonic() - start, 1)
    chosen.log.parent.mkdir(parents=True, exist_ok=True)
    with chosen.log.open("a", encoding="utf-8") as log:
        log.write(json.dumps({"suite": chosen.name, "seconds": seconds}) + "\n")
    # If a signal ended the command, the exit status is the one that a shell gives.
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
