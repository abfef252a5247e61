"""Skips oracle tests as long as their inputs are unchanged since they passed.

An oracle test runs no code of seglake. It tests what seglake is compared with: the formats' rules as plain Python, or
the Kaitai layouts. It has the mark `oracle`, with the files that it reads. Its inputs are these files, its module, the
modules of this repository that it imports, the `conftest.py` files above it, which say how cases are drawn, and the
pinned packages.

`tests/oracles.json` is the record: for each module with oracle tests the SHA-256 of the inputs with which they passed.

    --oracles all        run all of them (the default)
    --oracles changed    skip those of modules whose inputs have the recorded SHA-256 (`make test`)
    --oracles write      run all of them and write the record (`make oracles`)

If a SHA-256 is missing or differs, or a file cannot be read, the module's tests run.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[1]
RECORD: Final = ROOT / "tests" / "oracles.json"
MARK: Final = "oracle"
# Folders of modules that count as inputs, from `pythonpath` in pyproject.toml. The library is not among them: no oracle
# test depends on it.
FOLDERS: Final = (ROOT, ROOT / "examples", ROOT / "scripts", ROOT / "tests" / "python")
PINNED: Final = ("requirements/dev.txt", "requirements/kaitai.sha256")


def digest(module: Path) -> str:
    """Return the SHA-256 of the inputs of a module's oracle tests."""
    tree = ast.parse(module.read_bytes())
    inputs = {ROOT / name for name in PINNED} | _imported(module) | _conftests(module)
    for pattern in _patterns(tree):
        found = sorted(path for path in ROOT.glob(pattern) if path.is_file())
        if not found:
            raise ValueError(f"{module}: no file matches {pattern}")
        inputs.update(found)
    whole = hashlib.sha256()
    for path in sorted(inputs):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(ROOT).as_posix()} {content}\n".encode())
    return whole.hexdigest()


def _patterns(tree: ast.Module) -> Iterator[str]:
    """Yield the file patterns of the marks: those of `pytest.mark.oracle("tests/vectors/active/*")`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"pytest.mark.{MARK}":
            for argument in node.args:
                yield ast.literal_eval(argument)


def _imported(module: Path) -> set[Path]:
    """Return the module and all modules in FOLDERS that it imports, directly or not."""
    found: set[Path] = set()
    left = [module.resolve()]
    while left:
        path = left.pop()
        if path in found:
            continue
        found.add(path)
        for name in _names(ast.parse(path.read_bytes()), path):
            parts = name.split(".")
            for folder in FOLDERS:
                for depth in range(1, len(parts) + 1):
                    stem = folder.joinpath(*parts[:depth])
                    left += [each for each in (stem.with_suffix(".py"), stem / "__init__.py") if each.is_file()]
    return found


def _conftests(module: Path) -> set[Path]:
    """What pytest reads before a module: from its folder up."""
    above = (folder / "conftest.py" for folder in module.resolve().parents if folder.is_relative_to(ROOT))
    return {path for path in above if path.is_file()}


def _names(tree: ast.Module, path: Path) -> Iterator[str]:
    """Yield the names that a module imports: for `from a import b` both `a` and `a.b`, which may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.parents[node.level - 1].relative_to(ROOT).parts if node.level else ()
            base = ".".join([*package, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def recorded() -> dict[str, str]:
    """Return the recorded SHA-256 of each module; nothing if the record is missing or malformed."""
    try:
        found = json.loads(RECORD.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def is_unchanged(module: Path) -> bool:
    """Return whether the inputs of a module's oracle tests are those with which they passed."""
    try:
        return recorded().get(_name(module)) == digest(module)
    except (OSError, ValueError, SyntaxError):
        return False


def _name(module: Path) -> str:
    return module.resolve().relative_to(ROOT).as_posix()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--oracles`."""
    parser.addoption(
        "--oracles",
        choices=("all", "changed", "write"),
        default="all",
        help="which oracle tests to run: all, those whose inputs changed, or all and record that they passed",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and the writer of the record if it is asked for."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(*patterns): runs no code of seglake and reads these files; skipped while its inputs are unchanged",
    )
    if config.getoption("oracles") == "write":
        if config.getoption("numprocesses", None):
            raise pytest.UsageError("--oracles write takes a single process: without --numprocesses")
        if any("::" in argument for argument in config.args) or config.getoption("lf", False):
            raise pytest.UsageError("--oracles write takes whole files: without ::, and without --last-failed")
        config.pluginmanager.register(_Writer(), "oracles-writer")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect oracle tests whose inputs are unchanged, with `--oracles changed`."""
    if config.getoption("oracles") != "changed":
        return
    marked = {item.path for item in items if item.get_closest_marker(MARK)}
    unchanged = {path for path in marked if is_unchanged(path)}
    left_out = [item for item in items if item.path in unchanged and item.get_closest_marker(MARK)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not (item.path in unchanged and item.get_closest_marker(MARK))]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print which modules were skipped: with several processes pytest itself does not say it."""
    if config.getoption("oracles") != "changed":
        return
    unchanged = [name for name in sorted(recorded()) if is_unchanged(ROOT / name)]
    if unchanged:
        terminalreporter.write_line(
            f"skipped the oracle tests of {len(unchanged)} modules: inputs unchanged (make oracles runs them): "
            + ", ".join(Path(name).stem for name in unchanged)
        )


class _Writer:
    """Records each module whose oracle tests were all run and passed."""

    def __init__(self) -> None:
        self._marked: dict[str, set[str]] = {}
        self._digests: dict[str, str] = {}
        self._passed: set[str] = set()
        self._others: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if item.get_closest_marker(MARK):
                self._marked.setdefault(_name(item.path), set()).add(item.nodeid)
        # Of what the tests have read: somebody may be editing it meanwhile.
        self._digests = {name: digest(ROOT / name) for name in self._marked}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._others.add(report.nodeid)
        elif report.when == "call":
            self._passed.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        record = {name: value for name, value in recorded().items() if (ROOT / name).is_file()}
        for name, tests in self._marked.items():
            record.pop(name, None)
            if tests <= self._passed - self._others:
                record[name] = self._digests[name]
        RECORD.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Return 0 if the inputs of all named modules are unchanged, else 1: `python -m tests.oracles MODULE...`."""
    return 0 if all(is_unchanged(Path(name)) for name in arguments) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
