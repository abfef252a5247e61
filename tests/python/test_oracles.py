"""Oracle tests are skipped only if their inputs are known to be unchanged."""

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
    """Make a module whose oracle tests passed, with its inputs."""
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


def test_the_modules_of_the_record_exist() -> None:
    record = oracles.recorded()
    assert record
    assert [name for name in record if not (oracles.ROOT / name).is_file()] == []
