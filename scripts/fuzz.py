"""Runs the fuzz targets, and keeps the inputs that are worth it.

    .venv/bin/python scripts/fuzz.py run --seconds 60
    .venv/bin/python scripts/fuzz.py run --seconds 600 walk_active lookup_chunked
    .venv/bin/python scripts/fuzz.py reduce
    .venv/bin/python scripts/fuzz.py minimise

A run keeps the inputs that it finds in fuzz/target/corpus, and the next run starts with them. `reduce` removes
redundant inputs from that folder: those that reach no code that others do not. `minimise` updates fuzz/corpus, which is
committed: it copies the smallest inputs that together reach all code that was reached.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
FUZZ: Final = ROOT / "fuzz"
WORK: Final = FUZZ / "target"
VECTORS: Final = ROOT / "tests" / "vectors"

_MAX_INPUT_BYTES: Final = 4096
_MAX_KEPT_BYTES: Final = 2048
_MAX_MEMORY_MIB: Final = 1024
"""Far above what reading takes: a fuzzer keeps its corpus in memory, and allocators keep what was freed."""
_INPUT_TIMEOUT_S: Final = 20
_GRACE_S: Final = 120
_FOUND: Final = re.compile(r"[0-9a-f]{40}")
"""The names that libFuzzer gives; other inputs were put there by hand, and stay."""
_STATISTIC: Final = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_COVERAGE: Final = re.compile(r" cov: (\d+) ")
_INPUT: Final = re.compile(r"Test unit written to (\S+)")
_REASON: Final = re.compile(r"(?:panicked at|ERROR: ).*(?:\n(?!stack backtrace|note: |=).*){0,3}")


class FuzzError(Exception):
    """A target cannot be built or run. The message says what to do."""


def targets() -> list[str]:
    """Returns the names of all targets: a property and a format each."""
    return (FUZZ / "targets.txt").read_text(encoding="utf-8").split()


def corpus_of(target: str) -> str:
    """Returns the name of the folder of a target's inputs: those of one format are shared by its targets."""
    name, form = target.split("_")
    return f"{form}_index" if name == "index" else form


def build(sanitizer: str) -> Path:
    """Builds all targets and returns the folder that they are in.

    Raises:
        FuzzError: they do not compile, or cargo-fuzz is not there.
    """
    environment = os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    if sanitizer != "none":
        environment["RUSTC_BOOTSTRAP"] = "1"  # sanitizers are not stable yet
    command = ["cargo", "fuzz", "build", "--sanitizer", sanitizer]
    if subprocess.run(command, cwd=FUZZ, env=environment, check=False).returncode:
        raise FuzzError("the fuzz targets were not built: see above. `make fuzz` installs cargo-fuzz into .venv")
    host = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    triple = re.search(r"^host: (\S+)$", host, re.MULTILINE)
    if triple is None:
        raise FuzzError(f"rustc does not say what it builds for:\n{host}")
    release = WORK / triple[1] / "release"
    # One program is all targets. Which one it is, it tells by its name.
    for name in targets():
        program = release / name
        program.unlink(missing_ok=True)
        program.hardlink_to(release / "fuzz")
    return release


def seeds(corpus: str) -> Path:
    """Makes a folder of the golden files that are inputs of a corpus, without what describes them."""
    form, _, extension = corpus.partition("_")
    folder = WORK / "seeds" / corpus
    folder.mkdir(parents=True, exist_ok=True)
    golden = list((VECTORS / form).glob(f"*.{extension or 'bin'}"))
    if corpus == "oplog":
        golden += (VECTORS / "autobase").glob("*.oplog")
    for path in golden:
        shutil.copyfile(path, folder / path.name)
    return folder


def _environment(scratch: str) -> dict[str, str]:
    """Returns an environment in which temporary files are kept in memory, where there is such a folder."""
    return os.environ | {"TMPDIR": scratch, "RUST_BACKTRACE": "0"}


def _scratch() -> tempfile.TemporaryDirectory[str]:
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(prefix="seglake-fuzz-", dir=memory if os.access(memory, os.W_OK) else None)


def run_target(binaries: Path, target: str, seconds: int) -> str | None:
    """Runs one target and prints what it did. Returns why it failed, if it did."""
    corpus = corpus_of(target)
    found, crashes = WORK / "corpus" / corpus, WORK / "artifacts" / target
    for folder in (found, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    committed = FUZZ / "corpus" / corpus
    command = [
        str(binaries / target),
        f"-max_total_time={seconds}",
        f"-max_len={_MAX_INPUT_BYTES}",
        f"-rss_limit_mb={_MAX_MEMORY_MIB}",
        f"-timeout={_INPUT_TIMEOUT_S}",
        f"-artifact_prefix={crashes}{os.sep}",
        "-print_final_stats=1",
        *(str(folder) for folder in (found, committed, seeds(corpus)) if folder.exists()),
    ]
    with _scratch() as scratch:
        try:
            finished = subprocess.run(
                command,
                cwd=FUZZ,
                env=_environment(scratch),
                check=False,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=seconds + _GRACE_S,
            )
        except subprocess.TimeoutExpired:
            return f"it did not end {_GRACE_S} s after its time"
    output = finished.stdout.decode(errors="replace")
    executed, coverage = _STATISTIC.search(output), _COVERAGE.findall(output)
    summary = f"{executed[1] if executed else '?':>9} inputs  {coverage[-1] if coverage else '?':>5} edges"
    print(f"{target:<16} {summary}  {'failed' if finished.returncode else 'ok'}", flush=True)
    if not finished.returncode:
        return None
    reason, written = _REASON.search(output), _INPUT.search(output)
    if written is None:
        return output[-2000:]
    crash = FUZZ / written[1]
    return "\n".join(
        [
            reason[0] if reason else output[-2000:],
            f"  again:     {binaries / target} {crash}",
            f"  smaller:   {binaries / target} -minimize_crash=1 -max_total_time=60 {crash}",
            f"  as a test: cp {crash} {committed.relative_to(ROOT)}/ && cargo test --test integration corpus::",
        ]
    )


def run(names: Sequence[str], seconds: int, jobs: int, sanitizer: str) -> int:
    """Runs these targets, several at a time. Returns 1 if any failed."""
    binaries = build(sanitizer)
    print(f"{len(names)} targets of {seconds} s each, {jobs} at a time", flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        failures = dict(zip(names, pool.map(lambda name: run_target(binaries, name, seconds), names), strict=True))
    failed = {name: failure for name, failure in failures.items() if failure}
    for name, failure in failed.items():
        print(f"\n{name}: {failure}")
    if not failed:
        print("no failures")
    return 1 if failed else 0


def by_corpus() -> dict[str, list[str]]:
    """Returns the targets of each corpus."""
    own: dict[str, list[str]] = {}
    for target in targets():
        own.setdefault(corpus_of(target), []).append(target)
    return own


def merge(binaries: Path, names: Sequence[str], into: Path, given: Sequence[Path]) -> None:
    """Copies the given inputs that reach more code than the inputs in a folder into that folder.

    Raises:
        FuzzError: a target fails on one of them.
    """
    with _scratch() as scratch:
        for target in names:
            command = [str(binaries / target), "-merge=1", "-use_counters=0", f"-max_len={_MAX_KEPT_BYTES}"]
            merged = subprocess.run(
                [*command, str(into), *(str(path) for path in given if path.exists())],
                env=_environment(scratch),
                check=False,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            if merged.returncode:
                raise FuzzError(f"{target}: {merged.stdout.decode(errors='replace')[-2000:]}")


def reduce() -> None:
    """Removes the inputs in fuzz/target/corpus that reach no more code than fuzz/corpus, the seeds and each other.

    Raises:
        FuzzError: a target fails on an input.
    """
    binaries = build("none")
    for corpus, own in by_corpus().items():
        found, committed = WORK / "corpus" / corpus, FUZZ / "corpus" / corpus
        if not found.exists():
            continue
        before = len(list(found.iterdir()))
        with tempfile.TemporaryDirectory() as folder:
            kept = Path(folder)
            known = [*seeds(corpus).iterdir(), *committed.iterdir()]
            for path in known:
                shutil.copyfile(path, kept / path.name)
            merge(binaries, own, kept, [found])
            for path in known:
                (kept / path.name).unlink()
            shutil.rmtree(found)
            shutil.copytree(kept, found)
        print(f"{corpus}: kept {len(list(found.iterdir()))} of {before} inputs")


def minimise() -> None:
    """Replaces fuzz/corpus by the least that reaches what it, the seeds and what was found reach, without the seeds.

    Raises:
        FuzzError: a target fails on one of them.
    """
    binaries = build("none")
    for corpus, own in by_corpus().items():
        with tempfile.TemporaryDirectory() as folder:
            # The golden files are in it from the start, so nothing is kept that they reach already.
            kept, golden = Path(folder), seeds(corpus)
            shutil.copytree(golden, kept, dirs_exist_ok=True)
            merge(binaries, own, kept, [FUZZ / "corpus" / corpus, WORK / "corpus" / corpus])
            for path in golden.iterdir():
                (kept / path.name).unlink()
            committed = FUZZ / "corpus" / corpus
            for path in filter(Path.is_file, committed.glob("*")):
                if _FOUND.fullmatch(path.name):
                    path.unlink()
            shutil.copytree(kept, committed, dirs_exist_ok=True)
        inputs = list(committed.iterdir())
        print(f"{corpus}: {len(inputs)} inputs, {sum(path.stat().st_size for path in inputs):,} bytes")


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Runs the fuzz targets, and keeps the inputs that are worth it.")
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run targets for a while each")
    running.add_argument("--seconds", type=int, default=60, help="how long each target runs (60)")
    running.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="how many run at a time (all processors)"
    )
    running.add_argument("--sanitizer", default="none", choices=["none", "address"], help="what watches memory (none)")
    running.add_argument("targets", nargs="*", metavar="TARGET", help="names as in fuzz/targets.txt (all)")
    commands.add_parser("reduce", help="remove redundant inputs from fuzz/target/corpus")
    commands.add_parser("minimise", help="take over what was found into fuzz/corpus")
    arguments = parser.parse_args()
    try:
        if arguments.command == "minimise":
            minimise()
            return 0
        if arguments.command == "reduce":
            reduce()
            return 0
        unknown = set(arguments.targets) - set(targets())
        if unknown:
            raise FuzzError(f"there is no target {', '.join(sorted(unknown))}: it is one of {', '.join(targets())}")
        return run(arguments.targets or targets(), arguments.seconds, arguments.jobs, arguments.sanitizer)
    except FuzzError as error:
        print(f"fuzz.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
