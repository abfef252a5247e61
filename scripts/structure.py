"""Measures the structure of the Rust code, and compares it with rust/structure.toml.

    make lint                                          # compares, and fails on any difference
    make structure                                     # shows all measurements
    make structure STRUCTURE_ARGS="--list unwrap_or"   # lists the places of silent defaults
    make structure STRUCTURE_ARGS=--update             # lowers the budgets to what was measured

Budgets may only fall. A commit that improves a number lowers its budget, so that the next one cannot lose it again.
A commit with a good reason to raise one uses `--update --raise`, and says why.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from rust_code import DEFAULT_KINDS, Default, Function, Place, RustError, Source, Struct
from rust_imports import Circle, Crate, file_circles, folder_circles, folder_of, read_crate

ROOT: Final = Path(__file__).resolve().parents[1]
BUDGET: Final = "rust/structure.toml"
LONG_LINES: Final = 60
"""A function with more lines is long."""
FEW_BOOLS: Final = 3
"""A struct with more bool fields needs a budget of its own."""
LAYERED: Final = "rust/core"
"""The crate that has layers."""
COUNTED_CRATES: Final = ("rust/core", "rust/highway-batch", "rust/parity-code")
"""Crates whose code lines have a budget."""
SHOWN_PLACES: Final = 20
HEADER: Final = """\
# Budgets of the Rust code's structure. `make lint` fails if a measurement is above or below its budget.
# `make structure STRUCTURE_ARGS=--update` writes this file. Only [layers] is written by hand: files and folders of the
# core, from the lowest layer to the highest. A layer takes names from itself and from those before it.
"""
LOWER: Final = "make structure STRUCTURE_ARGS=--update"
RAISE: Final = 'make structure STRUCTURE_ARGS="--update --raise"'

Numbers = dict[str, dict[str, int]]


class StructureError(Exception):
    """The budget cannot be used. The message says what to do."""


class Spot(NamedTuple):
    """Lines of a file that make up a number."""

    place: Place
    last_line: int
    text: str


class Problem(NamedTuple):
    """A measurement that differs from its budget."""

    is_above: bool
    text: str
    """What differs, and what to do next."""
    details: list[str]


@dataclass(frozen=True)
class Budget:
    """What rust/structure.toml allows."""

    numbers: Numbers
    layers: dict[str, list[str]]
    """Files and folders of the core by the layer's name, the lowest first."""

    @classmethod
    def read(cls, file: Path) -> Budget:
        """Read the file; without one nothing is allowed.

        Raises:
            StructureError: it is malformed.
        """
        try:
            found: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
            layers = {str(name): [str(room) for room in rooms] for name, rooms in found.pop("layers", {}).items()}
            numbers = {section: {str(key): int(most) for key, most in keys.items()} for section, keys in found.items()}
        except FileNotFoundError:
            return cls({}, {})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StructureError(f"{BUDGET} cannot be read: {error}: restore it, or remove it and {RAISE}") from None
        return cls(numbers, layers)

    def toml(self) -> str:
        """Return what the file has to say."""
        lines = [HEADER]
        for section, numbers in self.numbers.items():
            lines += [f"[{section}]", *(f"{key_toml(key)} = {number}" for key, number in numbers.items()), ""]
        lines += ["[layers]"]
        for name, rooms in self.layers.items():
            lines += [f"{key_toml(name)} = [", *(f"    {json.dumps(room)}," for room in rooms), "]"]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Measured:
    """What the crates are like."""

    crates: list[Crate]

    @cached_property
    def sources(self) -> list[Source]:
        """All files without tests."""
        return [source for crate in self.crates for source in crate.sources]

    @cached_property
    def defaults(self) -> list[Default]:
        """All silent defaults."""
        return [default for source in self.sources for default in source.defaults()]

    @cached_property
    def long_functions(self) -> list[Function]:
        """Functions of more than `LONG_LINES` lines, the longest first."""
        functions = (function for source in self.sources for function in source.functions())
        return sorted((each for each in functions if each.lines > LONG_LINES), key=lambda each: -each.lines)

    @cached_property
    def structs(self) -> list[Struct]:
        """Structs with bool fields, those with the most first."""
        return sorted((struct for source in self.sources for struct in source.structs()), key=lambda each: -each.bools)

    @cached_property
    def file_circles(self) -> list[Circle]:
        """Circles between files."""
        return [circle for crate in self.crates for circle in file_circles(crate)]

    @cached_property
    def folder_circles(self) -> list[Circle]:
        """Circles between folders."""
        return [circle for crate in self.crates for circle in folder_circles(crate)]

    @cached_property
    def numbers(self) -> Numbers:
        """All numbers that have a budget, by the section and the key in the file."""
        kinds = Counter(default.kind for default in self.defaults)
        bools = {f"{each.place.path}: {each.name}": each.bools for each in self.structs if each.bools > FEW_BOOLS}
        return {
            "code_lines": {
                crate.name: sum(len(source.code_lines) for source in crate.sources)
                for crate in self.crates
                if crate.name in COUNTED_CRATES
            },
            "silent_defaults": {kind: kinds[kind] for kind in DEFAULT_KINDS},
            "functions": {f"over_{LONG_LINES}_lines": len(self.long_functions)},
            "bools": dict(sorted(bools.items())),
        }

    def spots(self, section: str, key: str, changed: Mapping[str, set[int]]) -> list[Spot]:
        """Return what makes up a number."""
        if section == "silent_defaults":
            return [Spot(each.place, each.place.line, key) for each in self.defaults if each.kind == key]
        if section == "functions":
            return [
                Spot(each.place, each.place.line + each.lines - 1, f"{each.name} has {each.lines} lines")
                for each in self.long_functions
            ]
        if section == "bools":
            return [
                Spot(each.place, each.place.line, f"{each.name} has {each.bools} bool fields")
                for each in self.structs
                if key == f"{each.place.path}: {each.name}"
            ]
        new = ((source, source.code_lines & changed.get(source.path, set())) for source in self.sources)
        return [
            Spot(Place(source.path, min(lines)), min(lines), f"{len(lines)} code lines of this file")
            for source, lines in new
            if lines and source.path.startswith(f"{key}/")
        ]

    def budget(self, old: Budget) -> Budget:
        """Return the budget that allows what was measured. Layers are kept."""
        return Budget(self.numbers, old.layers)


def measure(root: Path) -> Measured:
    """Measure all crates in the folder `rust`.

    Raises:
        RustError: a file cannot be read.
        StructureError: there is no crate.
    """
    folders = sorted(manifest.parent for manifest in (root / "rust").glob("*/Cargo.toml"))
    if not folders:
        raise StructureError(f"there is no crate in {root / 'rust'}: run it from the repository")
    return Measured([read_crate(root, folder) for folder in folders])


def compare(measured: Measured, budget: Budget, changed: Mapping[str, set[int]]) -> list[Problem]:
    """Return where measurements differ from their budgets.

    Args:
        measured: what the code is like
        budget: what it may be like
        changed: lines that changed since the budget did, by file: places there are named first
    """
    problems: list[Problem] = []
    for section in [*measured.numbers, *(each for each in budget.numbers if each not in measured.numbers)]:
        found, allowed = measured.numbers.get(section, {}), budget.numbers.get(section, {})
        for key in [*found, *(each for each in allowed if each not in found)]:
            number, most = found.get(key, 0), allowed.get(key, 0)
            text = f"{BUDGET}: [{section}] {key}: budget {most}, found {number}"
            if number > most:
                details = describe(measured.spots(section, key, changed), changed, section, key)
                problems.append(Problem(True, f"{text}: remove {number - most}", details))
            elif number < most:
                problems.append(Problem(False, f"{text}: lower the budget", []))
    problems += circle_problems("folders", measured.folder_circles)
    problems += circle_problems("files", measured.file_circles)
    problems += layer_problems(measured.crates, budget.layers)
    return problems


def describe(spots: Sequence[Spot], changed: Mapping[str, set[int]], section: str, key: str) -> list[str]:
    """Return the places of a number, only those in changed lines if there are any."""
    new = [
        spot for spot in spots if changed.get(spot.place.path, set()) & set(range(spot.place.line, spot.last_line + 1))
    ]
    lines = [f"{spot.place}: {spot.text}" + (" (in changed lines)" if new else "") for spot in new or spots]
    if len(lines) > SHOWN_PLACES:
        more = f'make structure STRUCTURE_ARGS="--list {key}"' if section == "silent_defaults" else "make structure"
        lines[SHOWN_PLACES:] = [f"and {len(lines) - SHOWN_PLACES} more: {more} lists all"]
    return lines


def circle_problems(kind: str, found: Sequence[Circle]) -> Iterator[Problem]:
    """Yield the circles, none of which is allowed."""
    for circle in found:
        text = f"{len(circle.members)} {kind} are a circle: {', '.join(circle.members)}: remove one of these imports"
        yield Problem(True, text, shortened([str(tie) for tie in circle.ties]))


def layer_problems(crates: Sequence[Crate], layers: Mapping[str, list[str]]) -> Iterator[Problem]:
    """Yield the files that are in no layer, and the imports from a higher layer."""
    heights = {f"{LAYERED}/src/{room}": height for height, rooms in enumerate(layers.values()) for room in rooms}

    def height(path: str) -> int | None:
        parts = path.split("/")
        places = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
        return next((heights[place] for place in places if place in heights), None)

    names = list(layers)
    for crate in crates:
        if crate.name != LAYERED or not layers:
            continue
        for source in crate.sources:
            if height(source.path) is None:
                yield Problem(True, f"{source.path} is in no layer: add it to [layers] in {BUDGET}", [])
        upward: dict[tuple[int, int], list[str]] = defaultdict(list)
        for tie in crate.ties:
            low, high = height(tie.source), height(tie.target)
            if low is not None and high is not None and low < high:
                upward[low, high].append(str(tie))
        for (low, high), ties in sorted(upward.items()):
            text = f"the layer {names[low]} takes names from {names[high]}, which is above it: remove these imports"
            yield Problem(True, text, shortened(ties))


def shortened(ties: list[str]) -> list[str]:
    """Return as many imports as are shown."""
    if len(ties) > SHOWN_PLACES:
        ties[SHOWN_PLACES:] = [f"and {len(ties) - SHOWN_PLACES} more: make structure lists all"]
    return ties


def changed_lines(root: Path) -> dict[str, set[int]]:
    """Return the lines of Rust files that changed since the budget did, by file; nothing where git cannot say."""
    changed: dict[str, set[int]] = defaultdict(set)
    base = git(root, "log", "-1", "--format=%H", "--", BUDGET).strip()
    if not base:
        return changed
    path = ""
    for line in git(root, "diff", "--unified=0", "--no-ext-diff", "--relative", base, "--", "rust").splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ b/")
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            start, count = int(found[1]), int(found[2] or 1)
            changed[path].update(range(start, start + count))
    for path in git(root, "ls-files", "--others", "--exclude-standard", "--", "rust").splitlines():
        if path.endswith(".rs"):
            changed[path].update(range(1, len((root / path).read_text(encoding="utf-8").splitlines()) + 1))
    return changed


def git(root: Path, *arguments: str) -> str:
    """Return what a git command prints; nothing if it fails or there is no git."""
    settings = ["-c", "core.quotePath=false", "-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false"]
    try:
        done = subprocess.run(
            ["git", *settings, *arguments], cwd=root, check=False, capture_output=True, encoding="utf-8"
        )
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def key_toml(key: str) -> str:
    """Return a key as TOML."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def show(measured: Measured) -> Iterator[str]:
    """Yield the lines that show all measurements."""
    defaults: dict[str, Counter[str]] = defaultdict(Counter)
    lines: Counter[str] = Counter()
    for source in measured.sources:
        lines[folder_of(source.path)] += len(source.code_lines)
    for default in measured.defaults:
        defaults[folder_of(default.place.path)][default.kind] += 1
    head = "".join(f"{kind:>18}" for kind in DEFAULT_KINDS)
    yield f"{'folder':<40}{'code lines':>12}{head}"
    for crate in measured.crates:
        inside = [folder for folder in sorted(lines) if folder.startswith(f"{crate.name}/")]
        total = sum((defaults[folder] for folder in inside), Counter[str]())
        rows = [*((folder, lines[folder], defaults[folder]) for folder in inside)]
        rows.append((f"{crate.name}, total", sum(lines[folder] for folder in inside), total))
        for name, count, kinds in rows:
            yield f"{name:<40}{count:>12}" + "".join(f"{kinds[kind]:>18}" for kind in DEFAULT_KINDS)
    yield f"\n{len(measured.long_functions)} functions of more than {LONG_LINES} lines"
    yield from (f"  {each.lines:>4}  {each.place}: {each.name}" for each in measured.long_functions)
    yield "\nstructs with more than one bool field"
    yield from (f"  {each.bools:>4}  {each.place}: {each.name}" for each in measured.structs if each.bools > 1)
    for kind, circles in (("folders", measured.folder_circles), ("files", measured.file_circles)):
        yield f"\n{len(circles)} circles between {kind}"
        for circle in circles:
            yield f"  {len(circle.members)} {kind}: {', '.join(circle.members)}"
            yield from (f"    {tie}" for tie in circle.ties)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Measure and compare. Return 1 if a measurement differs from its budget, 2 if nothing can be measured."""
    parser = argparse.ArgumentParser(description=f"Compare the structure of the Rust code with {BUDGET}.")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--show", action="store_true", help="show all measurements")
    chosen.add_argument(
        "--list", nargs="*", choices=DEFAULT_KINDS, metavar="KIND", help="list silent defaults, all or of these kinds"
    )
    chosen.add_argument("--update", action="store_true", help="lower the budgets to what was measured")
    parser.add_argument("--raise", action="store_true", dest="may_raise", help="with --update: raise budgets too")
    given = parser.parse_args(arguments)
    if given.may_raise and not given.update:
        parser.error("--raise needs --update")
    try:
        measured = measure(root)
        if given.show:
            print(*show(measured), sep="\n")
            return 0
        if given.list is not None:
            kinds = given.list or DEFAULT_KINDS
            print(*(f"{each.place}: {each.kind}" for each in measured.defaults if each.kind in kinds), sep="\n")
            return 0
        budget = Budget.read(root / BUDGET)
        problems = compare(measured, budget, {})
        if any(problem.is_above for problem in problems):
            problems = compare(measured, budget, changed_lines(root))
    except (RustError, StructureError) as error:
        print(error, file=sys.stderr)
        return 2
    if given.update:
        return update(root / BUDGET, measured.budget(budget), problems, given.may_raise)
    report(problems)
    if not problems:
        print(f"the structure of the Rust code is as {BUDGET} says")
    return 1 if problems else 0


def update(file: Path, budget: Budget, problems: Sequence[Problem], may_raise: bool) -> int:
    """Write the budget, unless that would raise one without `--raise`. Return 1 in that case."""
    above = [problem for problem in problems if problem.is_above]
    if above and not may_raise:
        report(above)
        print(f"{BUDGET} was not changed", file=sys.stderr)
        return 1
    if problems or not file.exists():
        file.write_text(budget.toml(), encoding="utf-8", newline="\n")
        print(f"wrote {BUDGET}" + (": say in the commit why budgets were raised" if above else ""))
    else:
        print(f"{BUDGET} is up to date")
    return 0


def report(problems: Sequence[Problem]) -> None:
    """Print problems, those above their budget last, and what to do."""
    for problem in sorted(problems, key=lambda each: each.is_above):
        print(problem.text, *(f"    {detail}" for detail in problem.details), sep="\n", file=sys.stderr)
    if any(not problem.is_above for problem in problems):
        print(f"To lower budgets, in the commit that improves the code: {LOWER}", file=sys.stderr)
    if any(problem.is_above for problem in problems):
        print(f"To raise budgets, if the commit has a reason and says it: {RAISE}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
