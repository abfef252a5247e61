"""`python -m tests.incidents`: stages the cases, asks `verify` about each, and prints what is right."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .cases import cases
from .judge import Judged, judge
from .strays import Stray, faults
from .table import TARGET, lines, shares


def main() -> int:
    """Run; the exit status is 1 where too many causes or steps are wrong, or there are other faults."""
    parser = argparse.ArgumentParser(prog="python -m tests.incidents", description=__doc__)
    parser.add_argument("--only", action="append", metavar="CASE", help="only this, shown in full; can be repeated")
    parser.add_argument("--stage", type=Path, metavar="DIR", help="write the files of each case to a new folder there")
    parser.add_argument(
        "--random", type=int, default=0, metavar="N", help="also damage N small files at random: what is called proven"
    )
    options = parser.parse_args()
    found: list[Judged] = []
    for case in cases():
        if options.only and case.name not in options.only:
            continue
        with tempfile.TemporaryDirectory() as parent:
            folder = (options.stage or Path(parent)) / case.name
            folder.mkdir(parents=True)
            found.append(judge(case, folder, follow=not options.stage))
        if options.only:
            print(f"{case.name}: {case.how}\n\n{found[-1].answer.text}\n$ {found[-1].answer.command}\n")
    print("\n".join(lines(found)))
    wrong = [fault for number in range(options.random) for fault in faults(Stray(number))]
    if options.random:
        print("\n".join(["", *wrong, f"{len(wrong)} wrong proofs of {options.random:,} files"]))
    is_right = min(shares(found)) >= TARGET and not any(own.faults for own in found)
    return 0 if is_right and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
