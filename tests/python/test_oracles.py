"""Oracle tests are skipped only if their inputs are known to be unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests import oracles

MODULE = """
import pytest
import rules
from pack.inner import thing

@pytest.mark.oracle("vectors/*")
def test(): pass
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a module whose oracle tests passed, with its inputs."""
    files = {
        "tests/test_it.py": MODULE,
        "tests/rules.py": "import deeper",
        "tests/deeper.py": "",
        "tests/other.py": "",
        "pack/__init__.py": "",
        "pack/inner.py": "from . import beside",
        "pack/beside.py": "",
        "conftest.py": "",
        "tests/conftest.py": "",
        "vectors/a.bin": "a",
        "pins": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(oracles, "ROOT", tmp_path)
    monkeypatch.setattr(oracles, "FOLDERS", (tmp_path, tmp_path / "tests"))
    monkeypatch.setattr(oracles, "PINNED", ("pins",))
    monkeypatch.setattr(oracles, "RECORD", tmp_path / "oracles.json")
    module = tmp_path / "tests" / "test_it.py"
    oracles.RECORD.write_text(json.dumps({"tests/test_it.py": oracles.digest(module)}))
    assert oracles.is_unchanged(module)
    return module


@pytest.mark.parametrize(
    "name",
    [
        "tests/test_it.py",
        "tests/rules.py",
        "tests/deeper.py",
        "pack/__init__.py",
        "pack/inner.py",
        "pack/beside.py",
        "conftest.py",
        "tests/conftest.py",
        "vectors/a.bin",
        "vectors/another.bin",
        "pins",
    ],
)
def test_a_change_of_any_input_runs_the_tests(name: str, module: Path) -> None:
    path = oracles.ROOT / name
    with path.open("a") as file:
        file.write("# more\n")
    assert not oracles.is_unchanged(module)


def test_a_module_that_is_not_imported_is_not_an_input(module: Path) -> None:
    (module.parent / "other.py").write_text("# more\n")
    assert oracles.is_unchanged(module)


@pytest.mark.parametrize("record", [None, "", "[]", "{}", '{"tests/test_it.py": "0"}', '{"tests/test_it.py": null}'])
def test_tests_run_if_the_record_does_not_name_their_module(record: str | None, module: Path) -> None:
    oracles.RECORD.unlink()
    if record is not None:
        oracles.RECORD.write_text(record)
    assert not oracles.is_unchanged(module)


def test_tests_run_if_an_input_is_missing(module: Path) -> None:
    (oracles.ROOT / "vectors" / "a.bin").unlink()
    assert not oracles.is_unchanged(module)


class Configured:
    """What pytest knows when it starts."""

    def __init__(self, *args: str, **options: object) -> None:
        self.args = args
        self.options = {"oracles": "write", **options}
        self.registered: list[object] = []
        self.pluginmanager = self

    def getoption(self, name: str, default: object = None) -> object:
        return self.options.get(name, default)

    def addinivalue_line(self, *_: str) -> None: ...

    def register(self, plugin: object, _: str) -> None:
        self.registered.append(plugin)


@pytest.mark.parametrize(
    "chosen",
    [
        Configured("tests::test"),
        Configured("a.py", "tests/a.py::test[x]"),
        Configured(lf=True),
        Configured(numprocesses=2),
    ],
    ids=["test", "among others", "last failed", "processes"],
)
def test_a_part_of_a_module_is_not_recorded(chosen: Configured) -> None:
    with pytest.raises(pytest.UsageError, match="--oracles write takes"):
        oracles.pytest_configure(cast("Any", chosen))
    assert chosen.registered == []


@pytest.mark.parametrize("is_edited", [False, True])
def test_what_is_recorded_is_what_the_tests_have_read(module: Path, is_edited: bool) -> None:
    oracles.RECORD.unlink()
    configured = Configured("tests")
    oracles.pytest_configure(cast("Any", configured))
    writer: Any = configured.registered[0]
    item = SimpleNamespace(path=module, nodeid="test_it.py::test", get_closest_marker=lambda _: True)
    writer.pytest_collection_modifyitems([item])
    if is_edited:
        (module.parent / "deeper.py").write_text("# more\n")
    writer.pytest_runtest_logreport(SimpleNamespace(passed=True, when="call", nodeid=item.nodeid))
    writer.pytest_sessionfinish()
    assert set(oracles.recorded()) == {"tests/test_it.py"}
    assert oracles.is_unchanged(module) != is_edited


def test_the_modules_of_the_record_exist() -> None:
    record = oracles.recorded()
    assert record
    assert [name for name in record if not (oracles.ROOT / name).is_file()] == []
