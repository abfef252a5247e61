"""`python -m tests.damage`: runs the trials and prints what came of them, or does one again."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from . import campaign, report, surfaces
from .kinds import KINDS
from .layouts import LAYOUTS
from .peers.trial import PEER_NAMES
from .trial import Trial
from .worker import Worker, perform


def main() -> int:
    """Run; the exit status is 1 where the library did less than it must, 2 for wrong use."""
    options = _parser().parse_args()
    console = Console(width=None if sys.stdout.isatty() else 200)
    if options.replay:
        return max(replay(console, name, save=options.save) for name in options.replay)
    small_names = options.only or campaign.small_names()
    large_names = options.only or campaign.large_names(peers=options.peers)
    part = None if options.rounds else options.seconds / 2
    seeds = campaign.seeds(options.first_seed, options.rounds)
    with Worker() as worker:
        trials = campaign.every_kind(
            (name for name in small_names if name not in PEER_NAMES), options.kind or KINDS, seeds
        )
        small = campaign.run(trials, worker, seconds=part)
        large = campaign.run(campaign.one_flip(large_names, seeds), worker, seconds=part)
    in_spark = _in_spark(small) if options.spark else None
    report.show(console, small.values(), large.values(), in_spark)
    if options.json:
        found = {"every_kind": report.as_json(small.values()), "one_flip": report.as_json(large.values())}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    failures = [line for tally in small.values() for line in tally.failures()]
    failures += [line for tally in large.values() for line in tally.failures(target=campaign.TARGET)]
    failures += in_spark.failures() if in_spark else []
    for line in failures:
        console.print(f"[red]failed:[/red] {line}", highlight=False, soft_wrap=True)
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.damage", description=__doc__)
    parser.add_argument(
        "--seconds",
        type=float,
        default=float(os.environ.get("DAMAGE_SECONDS", "300")),
        help="how long to try; every file and kind has its turn once in any case (default: DAMAGE_SECONDS, or 300)",
    )
    parser.add_argument("--rounds", type=int, help="so many seeds of everything, however long it takes")
    parser.add_argument("--first-seed", type=int, default=0, help="begin with this seed (default: 0)")
    parser.add_argument(
        "--only", action="append", choices=[*campaign.small_names(), *PEER_NAMES], help="only these; can be repeated"
    )
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this damage; can be repeated")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="leave out the peers")
    parser.add_argument("--no-spark", dest="spark", action="store_false", help="leave out Spark")
    parser.add_argument("--json", type=Path, help="write the numbers to this file, too")
    parser.add_argument(
        "--replay", metavar="TRIAL", action="append", help="do a trial again and show it, such as active/flip/17"
    )
    parser.add_argument("--save", type=Path, help="with --replay: write the damaged file here")
    return parser


def replay(console: Console, name: str, *, save: Path | None) -> int:
    """Do one trial again, and show what was damaged, what was read, and the verdict."""
    trial = Trial.named(name)
    console.print(f"[bold]{trial}[/bold]")
    if trial.layout in LAYOUTS:
        image = trial.damaged()
        for start, end, origin in image.placed():
            console.print(f"  [{start}, {end}) {'foreign' if origin is None else f'from {origin}'}", markup=False)
        if save is not None:
            save.write_bytes(image.data)
        for span in surfaces.read(image.data, trial.specimen.layout).ledger:
            if span[3] is not None:
                console.print(f"  [{span[0]}, {span[1]}) {span[2]} {span[3]}", markup=False, style="yellow")
    verdict = perform(name)
    for field, value in vars(verdict).items():
        console.print(f"  {field}: {value}", markup=False, highlight=False, soft_wrap=True)
    return 0 if verdict.ok or trial.layout in PEER_NAMES else 1


def _in_spark(tried: dict[str, campaign.Tally]) -> campaign.Tally:
    """One file of each kind for each layout that was tried, through Spark."""
    from pyspark.sql import SparkSession

    from seglake.spark.java import ensure_java

    from . import spark

    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    tally = campaign.Tally("spark")
    try:
        for name in filter(LAYOUTS.__contains__, tried):
            with tempfile.TemporaryDirectory() as folder:
                trials = [Trial(name, kind, 0) for kind in KINDS]
                for trial, verdict in spark.run(session, Path(folder), trials):
                    tally.add(trial, verdict)
    finally:
        session.stop()
    return tally


if __name__ == "__main__":
    sys.exit(main())
