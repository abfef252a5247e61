"""Messages for wrong arguments: each says what was expected, what was given, and what to type instead."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_process import here

import seglake
from seglake.cli.option_names import with_options


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a segment and a text, in the current one; and a log."""
    monkeypatch.chdir(tmp_path)
    logs = tmp_path / "logs"
    logs.mkdir()
    with seglake.create(logs / "a.active", format="active") as segment:
        segment.write(type="order.paid", value=b"1")
    (logs / "notes.txt").write_text("not a segment\n" * 30)
    with seglake.SegmentLog("log") as log:
        log.write("order.paid", b"1")
    return logs


def paths(columns: Any) -> dict[str, Callable[[], Any]]:
    path = "logs/a.active"
    return {
        "open": lambda: seglake.open(path, columns=columns),
        "resume": lambda: seglake.incremental.resume(path, None, columns=columns),
        "scan": lambda: seglake.scan(path, columns=columns),
        "select": lambda: seglake.scan(path).select(columns),
        "log": lambda: seglake.SegmentLog("log", readonly=True).batches(columns=columns),
    }


@pytest.mark.parametrize("name", paths(None))
def test_one_name_is_not_a_list_of_columns(folder: Path, name: str) -> None:
    del folder
    expected = re.escape('columns must be a list of names, such as ["type"], not str')
    with pytest.raises(TypeError, match=f"^{expected}"):
        paths("type")[name]()
    paths(["type"])[name]()
    paths(("type",))[name]()


def test_other_things_are_no_columns(folder: Path) -> None:
    for wrong in (b"type", 5, [1]):
        with pytest.raises(TypeError, match=r"^columns must be a list of names, not "):
            seglake.open(folder / "a.active", columns=wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r'^drop must be a list of names, such as \["uuid"\], not str'):
        seglake.convert(folder / "a.active", "a.chunks", drop="uuid")


def test_functions_of_one_file_say_what_reads_many(folder: Path) -> None:
    for of_file in (seglake.open, seglake.verify, seglake.detect, seglake.parity.coverage):
        with pytest.raises(IsADirectoryError, match=r"found a folder: `seglake\.scan` reads its files: 'logs'"):
            of_file("logs")
        with pytest.raises(FileNotFoundError, match=r"found a pattern: `seglake\.scan` reads what matches"):
            of_file("logs/*.active")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("order-1", 'is "order-1"'),
        ("\x1b[2J", r'is "\x1b[2J"'),
        ("x" * 65, f'begins with "{"x" * 64}"'),
        (b"12345", "has 5 bytes"),
    ],
)
def test_what_is_no_uuid_is_shown(folder: Path, value: Any, said: str) -> None:
    expected = f"^uuid {re.escape(said)}: expected a UUID's text or its 16 bytes$"
    with seglake.open(folder / "a.active") as reader:
        for look_up in (reader.get, lambda value: reader.get_many([value])):
            with pytest.raises(ValueError, match=expected):
                look_up(value)
    with pytest.raises(ValueError, match=expected):
        seglake.open(folder / "a.active", filters=[("uuid", "==", value)])
    with seglake.SegmentLog("log", readonly=True) as log, pytest.raises(ValueError, match=expected):
        log.get(value)


def test_words_of_other_tools_for_files_that_exist() -> None:
    for name, meant in [("replace", "overwrite"), ("truncate", "overwrite"), ("fail", "error")]:
        with pytest.raises(
            ValueError,
            match=f'^if_exists is "{name}": expected one of error, append, overwrite; did you mean "{meant}"',
        ):
            seglake.create("a.sealed", format="sealed", if_exists=name)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"active files take one of error, append\. Remove the file first"):
        seglake.create("a.active", format="active", if_exists="overwrite")


def test_a_file_that_exists_is_said_with_what_replaces_it(folder: Path) -> None:
    seglake.seal(folder / "a.active", "a.sealed")
    with pytest.raises(FileExistsError, match='there is a file: if_exists="overwrite" replaces it'):
        seglake.seal(folder / "a.active", "a.sealed")


def test_sidecars_that_are_none(folder: Path) -> None:
    path = folder / "a.active"
    for wrong in (False, True, 3):
        with pytest.raises(TypeError, match=r'^sidecar must be "auto", None or a sidecar, not (bool|int)'):
            seglake.open(path, sidecar=wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(FileNotFoundError, match="cannot open the parity sidecar"):
        seglake.open(path, sidecar="none")


def test_a_scan_says_how_to_leave_out_what_is_not_a_segment(folder: Path) -> None:
    with pytest.raises(seglake.FormatError, match=r"notes\.txt: cannot tell the format") as raised:
        seglake.scan(folder).count_rows()
    assert raised.value.next == (
        "if it is not a segment, leave it out with `glob`; if it is one, name its format with `format`"
    )
    assert seglake.scan(folder, glob="*.active").count_rows() == 1
    done = here("export", folder, "all.csv")
    assert done.status == 2
    assert "leave it out with --glob; if it is one, name its format with --format" in done.err
    # Of one file there is nothing to leave out.
    with pytest.raises(seglake.FormatError, match="name it with `format`, or by the file's extension"):
        seglake.scan(folder / "notes.txt").count_rows()


def test_only_chunked_files_have_an_index(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"^expected a chunked file, found active: only chunked files have an index"):
        seglake.index(folder / "a.active")
    assert sorted(file.name for file in folder.iterdir()) == ["a.active", "notes.txt"]


def test_only_options_of_the_command_are_named(folder: Path) -> None:
    done = here("seal", folder / "notes.txt", "notes.sealed")
    assert done.status == 2
    assert "next      only an active segment is sealed" in done.err
    assert "--format" not in done.err
    assert "name it with --format, or" in here("convert", folder / "notes.txt", "notes.active").err
    assert "`" not in here("ingest", folder, "lake", "--catalog", "sqlite:///a.db").err


def test_commands_that_change_a_log_make_none(folder: Path) -> None:
    (folder / "a.active").unlink()
    for words in (["seal"], ["retain", "--bytes", "1"]):
        done = here("log", *words, folder)
        assert (done.status, "expected a log, found a folder without segments" in done.err) == (2, True)
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]


def test_arguments_are_options_on_the_command_line() -> None:
    assert with_options("begin with `as_it_is`, or `sidecar`") == "begin with --as-it-is, or --sidecar"
    assert with_options("with the format `raw` it is") == "with --format raw it is"
    assert with_options("`sidecar=None`, `seglake repair` and `unknown`") == (
        "--sidecar none, `seglake repair` and `unknown`"
    )


def test_the_core_has_no_words_of_python() -> None:
    core = Path(__file__).parents[2] / "rust" / "core" / "src"
    spelling = re.compile(r'\b[a-z_]+=(?:True|False|None|\\")')
    lines = [
        f"{file.name}: {line.strip()}"
        for file in core.rglob("*.rs")
        for line in file.read_text().splitlines()
        if spelling.search(line) and not line.lstrip().startswith("//")
    ]
    assert lines == []


def test_signatures_show_defaults() -> None:
    modules = (seglake, seglake.incremental, seglake.parity)
    public = [getattr(module, name) for module in modules for name in module.__all__]
    functions = [each for each in public if inspect.isroutine(each)]
    assert len(functions) > 15
    for function in functions:
        for parameter in inspect.signature(function).parameters.values():
            assert parameter.default is not Ellipsis, (function, parameter)
