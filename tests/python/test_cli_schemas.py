"""What commands print with --json is what docs/schemas says, of sound and of damaged files."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema  # pyright: ignore[reportMissingTypeStubs]
import pytest
from cli_process import Argument, Finished, here
from cli_samples import EXTENSIONS, damage, sample
from referencing import Registry, Resource

import seglake
from seglake._native import report_words
from seglake.cli.application import program
from seglake.cli.vocabulary import REASONS

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
LOADED: dict[str, Any] = {path.name: json.loads(path.read_text()) for path in SCHEMAS.glob("*.json")}
REGISTRY: Any = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in LOADED.items())  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def check(name: str, lines: Sequence[Any]) -> None:
    """Compare lines with a schema."""
    validator: Any = jsonschema.Draft202012Validator(LOADED[f"{name}.json"], registry=REGISTRY)
    assert lines
    for line in lines:
        wrong = [error.message for error in validator.iter_errors(line)]
        wrong += [
            f"{inner.json_path}: {inner.message}" for error in validator.iter_errors(line) for inner in error.context
        ]
        assert not wrong, f"{name}: {wrong}"


def told(*words: Argument, schema: str | None = None, status: int = 0) -> Finished:
    """Run a command with --json, and compare all lines that it prints."""
    done = here(*words, "--json")
    assert done.status == status, done.err
    check(schema or str(words[0]), done.json_lines())
    return done


@pytest.fixture(params=EXTENSIONS)
def sound(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return sample(tmp_path, request.param)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    (tmp_path / "broken").mkdir()
    path = sample(tmp_path / "broken", "active")
    damage(path, 3)
    return path


@pytest.mark.parametrize("name", LOADED)
def test_schemas_are_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(LOADED[name])


def test_each_command_with_json_has_a_schema() -> None:
    import click

    context = click.Context(program)
    commands = {name: program.get_command(context, name) for name in program.list_commands(context)}
    names = {
        name
        for name, command in commands.items()
        if command is not None and any("--json" in parameter.opts for parameter in command.params)
    }
    assert {f"{name}.json" for name in names} | {"common.json", "log-info.json"} == set(LOADED)


def test_words_are_those_of_reports() -> None:
    kinds, causes, reasons = report_words()
    words = LOADED["common.json"]["$defs"]
    assert set(words["kind"]["enum"]) == kinds
    assert set(words["cause"]["enum"]) == {*causes, None}
    assert set(reasons) <= set(words["reason"]["enum"]) <= set(REASONS)


def test_what_is_in_no_schema_is_refused() -> None:
    with pytest.raises(AssertionError, match="more"):
        check("index", [{"path": None, "nbytes": 0, "ok": True, "items": 0, "beyond": None, "damage": [], "more": 1}])


@pytest.mark.parametrize("folder", ["active", "sealed", "tenant", "chunked", "oplog", "tfrecord", "parity"])
def test_info_cat_and_verify_of_every_golden_file(folder: str, vectors: Path) -> None:
    files = sorted((vectors / folder).glob("*.bin"))
    given = () if folder == "parity" else ("--format", folder)
    check("verify", here("verify", "--json", *given, *files).json_lines())
    check("info", here("info", "--json", "--count", *given, *files).json_lines())
    check("cat", here("cat", "--json", "--on-damage", "skip", *given, *files).json_lines())


def test_of_a_sound_file(sound: Path, tmp_path: Path) -> None:
    told("info", sound)
    told("info", "--count", sound)
    for form in ("base64", "hex", "text", "json"):
        told("cat", "--value", form, sound)
    told("cat", "--columns", "path,position,cause,value", sound)
    told("verify", sound, tmp_path / "missing", status=2)
    told("convert", sound, tmp_path / f"converted{sound.suffix}")
    told("recover", sound, tmp_path / f"recovered{sound.suffix}")
    told("export", sound, tmp_path / "all.jsonl")
    told("protect", sound, tmp_path / "missing", status=2)
    told("verify", sound)
    told("info", sound)
    told("repair", sound)
    told("scrub", tmp_path)
    if sound.suffix == ".chunks":
        told("index", "--overwrite", sound)


def test_of_a_damaged_file(broken: Path, tmp_path: Path) -> None:
    told("info", "--count", broken, status=1)
    told("verify", broken, status=1)
    told("cat", "--on-damage", "skip", "--columns", "position,cause", broken, status=1)
    told("protect", broken, status=1)
    told("convert", "--on-damage", "skip", broken, tmp_path / "c.sealed", status=1)
    told("seal", "--on-damage", "skip", "--protect", broken, tmp_path / "s.sealed", status=1)
    told("recover", broken, tmp_path / "r.active", status=1)
    told("recover", "--undo", tmp_path / "r.active", tmp_path / "again.active")
    told("export", "--on-damage", "skip", broken, tmp_path / "e.jsonl", status=1)
    told("scrub", tmp_path, status=1)


def test_what_sidecars_say(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    seglake.protect(path)
    other = tmp_path / "notes.txt"
    other.write_text("notes " * 1000)
    seglake.protect(other, format="raw")
    for each in (path, other):
        content, times = bytearray(each.read_bytes()), each.stat()
        content[len(content) // 2] ^= 1
        each.write_bytes(content)
        os.utime(each, ns=(times.st_atime_ns, times.st_mtime_ns))
    told("verify", path, other, status=1)
    told("info", "--count", path, other, status=1)
    told("scrub", tmp_path, status=1)
    told("scrub", "--repair", tmp_path, status=1)
    shutil.copy(tmp_path / "notes.txt.par", f"{path}.par")
    told("verify", path, status=1)
    other.write_bytes(other.read_bytes()[:1100])
    told("verify", other, status=1)
    told("repair", other, status=1)


def test_logs(tmp_path: Path, vectors: Path) -> None:
    path = tmp_path / "log"
    with seglake.SegmentLog(path) as log:
        for number in range(5):
            log.write("order.paid", b"%d" % number)
            log.roll()
        log.wait_sealed()
        told("log", "info", path, schema="log-info")
    for log in (path, vectors / "log"):
        done = here("log", "info", log, "--json")
        check("log-info", done.json_lines())
        check("verify", here("log", "verify", log, "--json").json_lines())
        check("info", here("info", log, "--json").json_lines())
        check("cat", here("log", "tail", "--from", "start", "--no-follow", log, "--json").json_lines())


def test_ingest(tmp_path: Path, broken: Path) -> None:
    sample(tmp_path / "broken", "chunked")
    lake = tmp_path / "lake"
    (tmp_path / "broken" / "notes.txt").write_text("notes " * 100)
    told("ingest", "--engine", "local", broken.parent, lake, status=1)
    told("ingest", "--engine", "local", broken.parent, lake)
    told("ingest", "--compact", lake)
