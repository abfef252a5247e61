"""Tests that are left out while their inputs are unchanged: whatever is not known to be unchanged is run."""

from __future__ import annotations

import json
from pathlib import Path

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
    """A module of tests that passed, and what it depends on."""
    files = {
        "tests/test_it.py": MODULE,
        "tests/rules.py": "import deeper",
        "tests/deeper.py": "",
        "tests/other.py": "",
        "pack/__init__.py": "",
        "pack/inner.py": "from . import beside",
        "pack/beside.py": "",
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
        "vectors/a.bin",
        "vectors/another.bin",
        "pins",
    ],
)
def test_a_change_of_any_input_is_one(name: str, module: Path) -> None:
    path = oracles.ROOT / name
    with path.open("a") as file:
        file.write("# more\n")
    assert not oracles.is_unchanged(module)


def test_what_is_not_imported_is_no_input(module: Path) -> None:
    (module.parent / "other.py").write_text("# more\n")
    assert oracles.is_unchanged(module)


@pytest.mark.parametrize("record", [None, "", "[]", "{}", '{"tests/test_it.py": "0"}', '{"tests/test_it.py": null}'])
def test_a_record_that_says_nothing_of_a_module_leaves_nothing_out(record: str | None, module: Path) -> None:
    oracles.RECORD.unlink()
    if record is not None:
        oracles.RECORD.write_text(record)
    assert not oracles.is_unchanged(module)


def test_inputs_that_are_missing_leave_nothing_out(module: Path) -> None:
    (oracles.ROOT / "vectors" / "a.bin").unlink()
    assert not oracles.is_unchanged(module)


def test_the_modules_of_the_record_exist() -> None:
    record = oracles.recorded()
    assert record
    assert [name for name in record if not (oracles.ROOT / name).is_file()] == []
