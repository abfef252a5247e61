"""Whatever files and their names hold comes out as text that looks like what it is, and nowhere else."""

from __future__ import annotations

import json
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import hostile
import pytest
from cli_process import here, on_terminal
from hostile import TEXTS, unsafe

import seglake
from seglake.cli.application import program

FORMATS = tuple(hostile.EXTENSIONS)
# A file's name is bytes on the systems where it can be hostile.
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")


def test_what_is_unsafe_is_found() -> None:
    for text in ("a\x1b[5;45mb", "a\rb", "\u202e", "\x9b", "\udcff", "\u2028", "\x1b]0;t\x07"):
        assert unsafe(text, styled=True) == [text]
    assert unsafe("\x1b[1;31mred\x1b[0m\nnext\n", styled=True) == []
    assert unsafe("\x1b[2K\x1b[1Aab\r", styled=True, progress=True) == []


@pytest.fixture(scope="module", params=FORMATS)
def segment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A segment of hostile records, for each format."""
    return hostile.write(tmp_path_factory.mktemp("hostile") / f"s.{hostile.EXTENSIONS[request.param]}", request.param)


def named(folder: Path, segment: Path) -> Iterator[Path]:
    """Copies of a segment, sound and damaged by turns, under all names."""
    for number, name in enumerate(hostile.file_names()):
        path = folder / os.fsdecode(name + os.fsencode(segment.suffix))
        if number % 2:
            hostile.damage(segment, path)
        else:
            path.write_bytes(segment.read_bytes())
        yield path


def inside(tmp_path: Path) -> Path:
    """A folder, so deep that what is written outside of it is seen."""
    folder = tmp_path / "a" / "b" / "inside"
    folder.mkdir(parents=True)
    return folder


def outside(tmp_path: Path) -> list[Path]:
    """All files that are not in the folder."""
    return [path for path in tmp_path.rglob("*") if path.is_file() and path.parent.name != "inside"]


# How each command is called on a file, given as `FILE`, and with what it writes, `NEW`.
FOR_PEOPLE: dict[str, list[list[str]]] = {
    "info": [["FILE"], ["--count", "FILE"]],
    "cat": [
        ["--on-damage", "skip", "FILE"],
        ["FILE"],
        ["--columns", "path,position,cause,value", "--on-damage", "skip", "FILE"],
        ["--value", "hex", "FILE"],
        ["--get", "\x1b[5;45m/\n/0", "FILE"],
    ],
    "verify": [["FILE"], ["FILE", "MISSING"], ["--html", "NEW", "FILE"]],
    "explain": [["FILE"]],
    "protect": [["FILE"], ["--as-it-is", "FILE", "MISSING"]],
    "repair": [["FILE"], ["FILE", "NEW"], ["MISSING"]],
    "scrub": [["FILE"], ["--repair", "--state", "NEW", "FILE"], ["MISSING"], ["--subset", "\x1b[5;45m/\n", "FILE"]],
    "recover": [
        ["FILE", "NEW"],
        ["--force", "FILE", "NEW", "--quarantine", "QUARANTINE"],
        ["--undo", "FILE", "NEW"],
        ["MISSING", "NEW"],
    ],
    "extract": [["--range", "0:99", "--hex", "FILE"], ["--range", "0:99", "FILE", "NEW"]],
    "convert": [
        ["FILE", "NEW"],
        ["--on-damage", "skip", "FILE", "NEW"],
        ["--to", "tenant", "FILE", "NEW"],
        ["--to", "\x1b[5;45m", "FILE", "NEW"],
        ["--set", "\x1b[5;45m=\n", "FILE", "NEW"],
    ],
    "seal": [["FILE", "NEW"], ["--on-damage", "skip", "FILE", "NEW"]],
    "index": [["FILE", "NEW"], ["MISSING"]],
    "export": [
        ["--on-damage", "skip", "FILE", "-"],
        ["--include-file-paths", "file", "FILE", "NEW.csv"],
        ["--on-damage", "skip", "--damage", "NEW.csv", "FILE", "NEW.jsonl"],
        ["--columns", "\x1b[5;45m", "FILE", "NEW.csv"],
        ["MISSING", "NEW.csv"],
    ],
    # Its folders are not written by others: test_cli_log.py has hostile records.
    "log": [["info", "FILE"], ["tail", "MISSING"], ["verify", "FILE"]],
    # What it does has a test of its own, with Spark.
    "ingest": [["MISSING", "NEW"]],
    "completion": [["FILE"]],
}
FOR_PROGRAMS: dict[str, list[list[str]]] = {
    "info": [["--json", "--count", "FILE"]],
    "cat": [
        ["--json", "--on-damage", "skip", "FILE"],
        ["--json", "--value", "text", "--columns", "path,cause,value", "FILE"],
    ],
    "verify": [["--json", "FILE", "MISSING"]],
    "protect": [["--json", "--as-it-is", "FILE", "MISSING"]],
    "repair": [["--json", "FILE"]],
    "scrub": [["--json", "FILE"]],
    "recover": [["--json", "FILE", "NEW"], ["--json", "FILE", "NEW", "--quarantine", "QUARANTINE"]],
    "convert": [["--json", "--on-damage", "skip", "FILE", "NEW"]],
    "seal": [["--json", "FILE", "NEW"]],
    "index": [["--json", "FILE", "NEW"]],
    "export": [["--json", "--on-damage", "skip", "FILE", "NEW.csv"]],
}


def test_all_commands_are_tried() -> None:
    assert set(FOR_PEOPLE) == set(program.list_commands(click.Context(program)))


def calls(segment: Path, tmp_path: Path, arguments: list[str]) -> Iterator[list[str]]:
    """A command's arguments with each of the files in turn."""
    folder = inside(tmp_path)
    for path in named(folder, segment):
        new = path.with_name(f"new-{path.name}")
        places = {
            "FILE": str(path),
            "NEW": str(new),
            "NEW.csv": f"{new}.csv",
            "NEW.jsonl": f"{new}.jsonl",
            "QUARANTINE": str(path.with_name(f"quarantine-{path.name}")),
            "MISSING": f"{path}-missing",
        }
        yield [places.get(argument, argument) for argument in arguments]
        for written in (new, Path(f"{new}.csv"), Path(f"{new}.jsonl")):
            written.unlink(missing_ok=True)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("command", "arguments"),
    [(command, arguments) for command, ways in FOR_PEOPLE.items() for arguments in ways],
    ids=str,
)
def test_people_are_shown_text(command: str, arguments: list[str], segment: Path, tmp_path: Path) -> None:
    statuses: set[int] = set()
    for words in calls(segment, tmp_path, arguments):
        done = here(command, *words)
        statuses.add(done.status)
        assert unsafe(done.out) == []
        assert unsafe(done.err) == []
        assert "unexpected" not in done.err
        assert "Traceback" not in done.err
    assert statuses <= {0, 1, 2}
    assert outside(tmp_path) == []


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("command", "arguments"),
    [(command, arguments) for command, ways in FOR_PROGRAMS.items() for arguments in ways],
    ids=str,
)
def test_programs_are_given_json(command: str, arguments: list[str], segment: Path, tmp_path: Path) -> None:
    for words in calls(segment, tmp_path, arguments):
        done = here(command, *words)
        assert done.out.isascii()
        for line in done.out.splitlines():
            assert line.isprintable()
            shown = json.loads(line)
            assert shown.get("path") in (*words, None)
            assert "Traceback" not in line
        assert unsafe(done.err) == []
    assert outside(tmp_path) == []


def test_manifests_are_json_and_lead_back(segment: Path, tmp_path: Path) -> None:
    for path in named(inside(tmp_path), segment):
        new, back = (path.with_name(f"{what}-{path.name}") for what in ("new", "back"))
        if here("recover", path, new).status != 1:
            continue
        for manifest in path.parent.glob("*.manifest.jsonl"):
            lines = manifest.read_text("ascii").removesuffix("\n").split("\n")
            assert [line for line in lines if not line.isprintable()] == []
            assert all(isinstance(json.loads(line), (dict, list)) for line in lines)
            assert not any("inside" in line for line in lines)
        assert here("recover", "--undo", new, back).status == 0
        assert back.read_bytes() == path.read_bytes()
    assert outside(tmp_path) == []


def test_a_record_is_one_line(segment: Path) -> None:
    for arguments in (["--columns", "value"], [], ["--json"]):
        assert here("cat", *arguments, segment).out.count("\n") == len(TEXTS)


def test_json_loses_nothing(segment: Path) -> None:
    lines = here("cat", "--json", "--value", "hex", segment).json_lines()
    assert {bytes.fromhex(line["value"]) for line in lines} == {text + b"\r\n" + text for text in TEXTS}
    for line, record in zip(lines, seglake.open(segment), strict=True):
        for name in {"type", "tenant"} & line.keys():
            assert line[name] == getattr(record, name)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("arguments", [["cat"], ["info", "--count"], ["verify"]], ids=str)
def test_terminals_are_given_text(arguments: list[str], segment: Path, tmp_path: Path) -> None:
    for number, path in enumerate(tmp_path / f"\x1b[5;45m\x1b]0;t\x07\n\u202e{end}{segment.suffix}" for end in "ab"):
        if number:
            hostile.damage(segment, path)
        else:
            path.write_bytes(segment.read_bytes())
        seen, _ = on_terminal(*arguments, path, only="output")
        assert unsafe(seen, styled=True) == []
        assert number or "5;45" in seen
        seen, _ = on_terminal(*arguments, path, only="error")
        assert unsafe(seen, styled=True, progress=True) == []


def test_a_command_to_be_copied_is_one_command(tmp_path: Path) -> None:
    for name in hostile.file_names():
        path = tmp_path / os.fsdecode(name + b".chunks")
        hostile.write(path, "chunked")
        index = path.with_suffix(".index")
        index.write_bytes(b"x" * 20)
        out = here("verify", path).out
        [line] = [line for line in out.splitlines() if line.startswith("  next      seglake index")]
        words = shlex.split(line)[1:]
        assert (words[:3], len(words)) == (["seglake", "index", "--overwrite"], 4)
        if str(path).isprintable():
            assert words[3] == str(path)


# In Python.


def raised(call: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


def test_what_things_look_like_is_printable(segment: Path, tmp_path: Path) -> None:
    folder = inside(tmp_path)
    seen: list[str] = []
    for path in named(folder, segment):
        with seglake.open(path, on_damage="skip") as reader, warnings.catch_warnings():
            warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
            things = [reader, reader.schema, reader.ledger(), reader.batches(), seglake.detect(path)]
            report = seglake.verify(path, explain=True)
            things += [*reader, *reader.batches(), reader.report, report, *report.diagnoses]
            seen += [text for thing in things for text in (repr(thing), str(thing))]
            assert not any(hasattr(thing, "_repr_html_") for thing in things)
        with seglake.create(path.with_name(f"new-{path.name}"), format="active") as writer:
            seen += [repr(writer), str(writer)]
    assert len(seen) > 100
    assert [text for text in seen if not text.isprintable()] == []


def mistakes(path: Path) -> Iterator[Callable[[], object]]:
    """Calls that fail, on a file and with its name."""
    missing = path.with_name(f"missing-{path.name}")
    yield lambda: seglake.open(missing)
    yield lambda: seglake.open(path.parent)
    yield lambda: seglake.open(path, key=missing)
    yield lambda: seglake.open(path, key=path)
    yield lambda: seglake.open(path, format=path.name)
    yield lambda: seglake.open(path, columns=[path.name])
    yield lambda: seglake.create(path, format="active")
    yield lambda: seglake.create(path, format="sealed", if_exists="error")
    yield lambda: seglake.convert(path, path.with_suffix(".none"))
    yield lambda: seglake.convert(path, missing, to="oplog", drop=[path.name])
    yield lambda: seglake.convert(path, missing, to="oplog", set={path.name: 1})
    yield lambda: seglake.convert(path, missing, to="oplog", options={path.name: 1})
    yield lambda: seglake.oplog.encode({path.name: 1})
    closed = seglake.create(missing.with_suffix(".sealed"), format="sealed")
    closed.close()
    yield lambda: closed.write(type="a", value=b"b")
    yield lambda: closed.write({path.name: 1})


def test_errors_and_warnings_are_printable(segment: Path, tmp_path: Path) -> None:
    seen: list[str] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for path in named(inside(tmp_path), segment):
            seen += [line for call in mistakes(path) for line in shown(raised(call))]
            try:
                list(seglake.open(path))
            except seglake.DamageError as error:
                seen += [*shown(error), error.expected, error.actual, error.cause]
            list(seglake.open(path, on_damage="skip"))
            seglake.create(path.with_suffix(".unclosed"), format="active")
    seen += [str(warning.message) for warning in warned]
    assert any("unclosed writer" in text for text in seen)
    assert [text for text in seen if not text.isprintable()] == []
    assert outside(tmp_path) == []


def shown(error: Exception) -> list[str]:
    """What a traceback says of an error."""
    return [str(error), *"".join(traceback.format_exception_only(error)).removesuffix("\n").split("\n")]


def test_tables_in_a_notebook_hold_no_markup(segment: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    table = pyarrow.table(seglake.open(segment))
    pages = [table.to_pandas()._repr_html_(), polars.DataFrame(table)._repr_html_()]
    for page in pages:
        assert "<table" in page
        assert "<script" not in page
        assert "<img" not in page


def test_what_is_asked_for_is_a_value_and_no_sql(segment: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    reader = seglake.open(segment)
    column = next((name for name in ("type", "tenant") if name in reader.schema.names), "value")
    for record in seglake.open(segment):
        text = getattr(record, column)
        found = duckdb.sql(f"SELECT value FROM reader WHERE {column} = $text", params={"text": text})
        assert found.fetchall() == [(record.value,)]
        if column == "tenant":
            assert [each.value for each in reader.range([("tenant", "==", text)])] == [record.value]
