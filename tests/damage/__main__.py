"""`python -m tests.damage`: runs the trials and prints what came of them, or does one again."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Console

from . import campaign, report, surfaces
from .kinds import KINDS
from .layouts import LAYOUTS
from .peers.trial import PEER_NAMES, installed
from .trial import TARGET, Trial
from .worker import Worker, perform

PARTS = ("kinds", "flip", "spark")
"""Every kind of damage to small files, a flipped bit in large ones, and a sample of the small ones through Spark."""


def main() -> int:
    """Run; the exit status is 1 where the library did less than it must, 2 for wrong use."""
    options = _parser().parse_args()
    console = Console(width=None if sys.stdout.isatty() else 200)
    if options.replay:
        return max(replay(console, name, save=options.save) for name in options.replay)
    parts = options.part or PARTS
    missing = [name for name in PEER_NAMES if name not in installed()]
    if missing and options.peers and "flip" in parts:
        console.print(
            f"Not installed, and left out: {', '.join(missing)}. `make damage` installs packages, no programs.",
            soft_wrap=True,
        )
    with Worker() as worker, console.status("") as status:

        def progress(trial: Trial, number: int) -> None:
            status.update(f"{number:,} trials, now {trial}")

        small = _every_kind(options, worker, progress) if "kinds" in parts else {}
        large = _one_flip(options, worker, progress) if "flip" in parts else {}
    in_spark = _in_spark(options.only or LAYOUTS) if "spark" in parts else None
    found = report.tables(small.values(), large.values())
    report.show(console, found, [*small.values(), *large.values(), *([in_spark] if in_spark else [])])
    if in_spark:
        console.print(f"Spark: {in_spark.trials} of the small files, {in_spark.faults} of them read otherwise.")
    if options.json:
        numbers = {"every_kind": report.as_json(small.values()), "one_flip": report.as_json(large.values())}
        _write(options.json, json.dumps(numbers, indent=1) + "\n")
    if options.markdown:
        _write(options.markdown, "\n".join(rows.as_markdown() for rows in found))
    failures = [line for tally in small.values() for line in tally.failures()]
    failures += [line for tally in large.values() for line in tally.failures(target=TARGET)]
    failures += in_spark.failures() if in_spark else []
    for line in failures:
        console.print(f"[red]failed:[/red] {line}", highlight=False, soft_wrap=True)
    return 1 if failures else 0


Progress = Callable[[Trial, int], None]


def _every_kind(options: argparse.Namespace, worker: Worker, progress: Progress) -> dict[str, campaign.Tally]:
    names = [name for name in options.only or campaign.small_names() if name not in PEER_NAMES]
    trials = campaign.every_kind(names, options.kind or KINDS, _seeds(options))
    return campaign.run(trials, worker, seconds=_seconds(options), progress=progress)


def _one_flip(options: argparse.Namespace, worker: Worker, progress: Progress) -> dict[str, campaign.Tally]:
    names = [name for name in (*campaign.large_names(), *installed()) if name in (options.only or (name,))]
    if not options.peers:
        names = [name for name in names if name not in PEER_NAMES]
    return campaign.run(campaign.one_flip(names, _seeds(options)), worker, seconds=_seconds(options), progress=progress)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _seeds(options: argparse.Namespace) -> Iterable[int]:
    return campaign.seeds(options.first_seed, options.rounds)


def _seconds(options: argparse.Namespace) -> float | None:
    """How long each of the two long parts may take."""
    return None if options.rounds else options.seconds / 2


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
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; can be repeated")
    parser.add_argument("--json", type=Path, help="write the numbers to this file, too")
    parser.add_argument("--markdown", type=Path, help="write the tables as they are in docs/damage.md")
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
        value = len(value) if isinstance(value, set) else value
        console.print(f"  {field}: {value}", markup=False, highlight=False, soft_wrap=True)
    return 0 if verdict.ok or trial.layout in PEER_NAMES else 1


def _in_spark(names: Iterable[str]) -> campaign.Tally:
    """One file of each kind for each layout, through Spark."""
    from seglake.spark.session import session

    from . import spark

    tally = campaign.Tally("spark")
    with session("local[2]", {"spark.log.level": "OFF"}) as running:
        for name in filter(LAYOUTS.__contains__, names):
            with tempfile.TemporaryDirectory() as folder:
                trials = [Trial(name, kind, 0) for kind in KINDS]
                for trial, verdict in spark.run(running, Path(folder), trials):
                    tally.add(trial, verdict)
    return tally


if __name__ == "__main__":
    sys.exit(main())
