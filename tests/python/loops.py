"""Tests that loop over many items: one test with a subtest for each item, so that one that fails hides no other."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest

Item = TypeVar("Item")
Test = Callable[..., None]


def looped(
    argument: str,
    items: Iterable[Item],
    *,
    id: Callable[[Item], str],
    by: Callable[[Item], str] | None = None,
) -> Callable[[Test], Test]:
    """Calls a test with each item as `argument`, as a subtest of the item's name.

    There is one test for all items, or one for each value of `by`. `tmp_path` is a folder of the item's own.
    """
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(by(item) if by else "all", []).append(item)
    assert groups, "there is nothing to loop over"

    def decorate(test: Test) -> Test:
        def run(loop: str, subtests: pytest.Subtests, **fixtures: Any) -> None:
            folder: Path | None = fixtures.get("tmp_path")
            for number, item in enumerate(groups[loop]):
                with subtests.test(id(item)):
                    if folder is not None:
                        fixtures["tmp_path"] = folder / str(number)
                        fixtures["tmp_path"].mkdir()
                    test(**{argument: item}, **fixtures)

        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        own = [parameter for parameter in inspect.signature(test).parameters.values() if parameter.name != argument]
        loop, subtests, _ = inspect.signature(run).parameters.values()
        # pytest gives a test the fixtures that its signature names.
        run.__signature__ = inspect.Signature([loop, subtests, *own])  # type: ignore[attr-defined]
        run.pytestmark = getattr(test, "pytestmark", [])  # type: ignore[attr-defined]
        return pytest.mark.parametrize("loop", groups)(run)

    return decorate
