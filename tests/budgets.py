"""`--budgets` prints how long the Python tests and each file of them took, beside `tests/budgets.toml`."""

from __future__ import annotations

import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

BUDGETS: Final = Path(__file__).with_name("budgets.toml")
# Files that take less than this are not listed, unless they are over their budget.
LISTED_S: Final = 5.0

Row = tuple[str, float, float]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option `--budgets`."""
    parser.addoption("--budgets", action="store_true", help="print durations beside their budgets")


def pytest_configure(config: pytest.Config) -> None:
    """Measures where a person sees it: not in the processes that pytest-xdist starts."""
    if config.getoption("budgets") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Measured(), "budgets-measured")


class _Measured:
    """What tests took, by file."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._files: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # What a subtest takes is in what its test takes.
        if not isinstance(report, pytest.SubtestReport):
            self._files[report.nodeid.partition("::")[0]] += report.duration

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        budgets = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))
        terminalreporter.section("seconds and budgets on two cores")
        for name, seconds, budget in self._rows(budgets):
            said = "" if seconds <= budget else "  OVER"
            terminalreporter.write_line(f"{name:<44} {seconds:7.1f} {budget:6.0f}{said}")

    def _rows(self, budgets: dict[str, dict[str, float]]) -> Iterator[Row]:
        yield "pytest", time.monotonic() - self._start, budgets["suites"]["pytest"]
        for folder, budget in budgets["folders"].items():
            yield folder, sum(each for name, each in self._files.items() if name.startswith(f"{folder}/")), budget
        for name, seconds in sorted(self._files.items(), key=lambda item: -item[1]):
            budget = budgets["files"].get(name, budgets["files"]["default"])
            if seconds >= LISTED_S or seconds > budget:
                yield name, seconds, budget
