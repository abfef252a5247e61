"""`python -m tests.parity`: checks the rules, prints cases, or compares another implementation with the rules.

Another implementation is a command that reads a line of JSON for each case from its standard input:

    {"seed": 17, "file": "<hex>", "sidecar": "<hex>", "force": false}

and writes a line of JSON for each, in the same order: `outcome`, `strict_error`, `ledger`, `frames`, `sidecar_ledger`,
`repaired` and `extended`, as the golden files in tests/vectors/parity have them. What it leaves out is a difference,
unless `--fields` leaves it out, too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from threading import Thread
from typing import Any

TESTS = Path(__file__).parents[1] / "python"
sys.path.insert(0, str(TESTS))

from parity_reference import as_golden  # noqa: E402

from .claims import check  # noqa: E402
from .patterns import Pattern, pattern  # noqa: E402

FIELDS = ("outcome", "strict_error", "ledger", "frames", "sidecar_ledger", "repaired", "extended")
CHUNK = 500
SHOWN = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit status is 1 where something differs or a promise is broken."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--") if "--" in given else len(given)
    command = given[end + 1 :]
    options = _parser().parse_args(given[:end])
    seeds = range(options.first, options.first + options.count)
    if options.do == "cases":
        for seed in seeds:
            found = pattern(seed)
            print(json.dumps(_case(found) | {"about": found.about, "expected": _expected(found)}))
        return 0
    if options.do == "compare" and not command:
        _parser().error("compare needs a command: python -m tests.parity compare -- COMMAND")
    work = partial(_compared, command, options.fields) if options.do == "compare" else _checked
    began, counts, failures = time.monotonic(), Counter[str](), list[str]()
    with Pool(options.processes) as pool:
        for counted, failed in pool.imap(work, _chunks(seeds)):
            counts.update(counted)
            failures += failed
            for line in failed[: max(0, SHOWN - len(failures) + len(failed))]:
                print(line, flush=True)
    seconds = time.monotonic() - began
    for name, number in counts.most_common():
        print(f"{number:>9,} {name}")
    print(f"{len(seeds):,} patterns, {len(failures):,} failures, {len(seeds) / seconds:,.0f} patterns/s")
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.parity",
        usage="%(prog)s [OPTIONS] {check,cases,compare} [-- COMMAND ARGUMENT...]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "do",
        choices=("check", "cases", "compare"),
        help="check what the rules promise; print cases as JSON lines; compare a command with the rules",
    )
    parser.add_argument("--count", type=int, default=10_000, help="so many patterns (default: 10000)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one (default: 0)")
    parser.add_argument("--processes", type=int, default=2, help="run so many processes (default: 2)")
    parser.add_argument("--fields", nargs="+", choices=FIELDS, default=FIELDS, help="compare only these fields")
    return parser


def _chunks(seeds: range) -> Iterator[range]:
    return (seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK))


Done = tuple[Counter[str], list[str]]


def _checked(seeds: Iterable[int]) -> Done:
    counts, failed = Counter[str](), list[str]()
    for seed in seeds:
        found = pattern(seed)
        try:
            counts.update(check(found))
        except Exception as error:  # any other error of the rules is a failure, too
            failed.append(f"{seed}: {type(error).__name__} {error} ({'; '.join(found.about)})")
    return counts, failed


def _compared(command: Sequence[str], fields: Sequence[str], seeds: Iterable[int]) -> Done:
    counts, failed = Counter[str](), list[str]()
    patterns = [pattern(seed) for seed in seeds]
    lines = [json.dumps(_case(found)) + "\n" for found in patterns]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdin and running.stdout
        # In a thread of its own: the command may write answers before it has read all cases.
        writer = Thread(target=_write, args=(running.stdin, lines), daemon=True)
        writer.start()
        for found in patterns:
            answer = running.stdout.readline()
            if not answer:
                failed.append(f"{found.seed}: the command ended without an answer ({'; '.join(found.about)})")
                break
            own, other = _expected(found), json.loads(answer)
            counts[own["outcome"]] += 1
            for name in fields:
                if name not in other or other[name] != own[name]:
                    failed.append(
                        f"{found.seed}: {name}: expected {json.dumps(own[name])}, "
                        f"found {json.dumps(other.get(name, 'nothing'))} ({'; '.join(found.about)})"
                    )
        writer.join()
    return counts, failed


def _write(target: Any, lines: Iterable[str]) -> None:
    try:
        target.writelines(lines)
        target.close()
    except BrokenPipeError:
        return  # the reader of its answers says that it ended


def _case(found: Pattern) -> dict[str, Any]:
    return {"seed": found.seed, "file": found.file.hex(), "sidecar": found.sidecar.hex(), "force": found.force}


def _expected(found: Pattern) -> dict[str, Any]:
    return as_golden(found.file, found.sidecar, force=found.force)


if __name__ == "__main__":
    sys.exit(main())
