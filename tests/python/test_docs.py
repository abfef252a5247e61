"""What the documents say is so: their code runs, their commands print what they show, their links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from documents import DOCUMENTS, ROOT, Block, anchors, blocks, links, table

import seglake
from seglake.read.filters import FILTER_OPTIONS, conditions

README = ROOT / "README.md"
VECTORS = ROOT / "tests" / "vectors"
ACTIVE = VECTORS / "active"

PYTHON_BLOCKS = [block for document in DOCUMENTS for block in blocks(document, "python")]
WITHOUT_SPARK = [block for block in PYTHON_BLOCKS if "spark" not in block.text]
CONSOLE_BLOCKS = [block for document in DOCUMENTS for block in blocks(document, "console")]
SHOWN_OUTPUT = [block for block in CONSOLE_BLOCKS if block.text.startswith("$ seglake ") and block.text.count("\n") > 1]
# The columns that options choose records by.
FILTERED = {name: condition[0] for name, condition in conditions(dict.fromkeys(FILTER_OPTIONS, "")).items()}
HEXDUMPS = [block for document in DOCUMENTS for block in blocks(document, "hexdump")]


def test_there_are_documents_to_check() -> None:
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} <= {path.name for path in DOCUMENTS}
    pages = {page for page in (ROOT / "docs" / "formats").glob("*.md") if page.name != "README.md"}
    assert {block.document for block in HEXDUMPS} == pages
    assert WITHOUT_SPARK
    assert SHOWN_OUTPUT


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    broken: list[str] = []
    for target in links(document):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        inside = path.is_relative_to(ROOT) and path.exists()
        if not inside or (anchor and anchor not in anchors(path)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("block", WITHOUT_SPARK, ids=str)
def test_python_runs(block: Block, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", block.text], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("block", SHOWN_OUTPUT, ids=str)
def test_commands_print_what_is_shown(block: Block, tmp_path: Path) -> None:
    # What they write goes elsewhere, where the golden files are, too.
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    environment = {**os.environ, "COLUMNS": "90", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    environment.pop("SEGLAKE_KEY", None)
    commands = re.split(r"^\$ seglake ", block.text, flags=re.MULTILINE)[1:]
    for command, _, shown in (text.partition("\n") for text in commands):
        done = subprocess.run(
            [sys.executable, "-m", "seglake", *shlex.split(command)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        assert [line.rstrip() for line in done.stdout.splitlines()] == shown.splitlines()


@pytest.mark.parametrize("block", HEXDUMPS, ids=str)
def test_hexdumps_are_those_of_the_golden_files(block: Block) -> None:
    _, name, start = block.info
    data = (VECTORS / block.document.stem / name).read_bytes()
    position = int(start)
    for line in block.text.splitlines():
        offset, _, digits = line.partition(": ")
        row = bytes.fromhex(digits)
        assert int(offset, 16) == position
        assert data[position : position + len(row)] == row
        position += len(row)


def test_tables_of_bytes_are_those_of_the_golden_files() -> None:
    compared = 0
    for document in (ROOT / "docs" / "formats").glob("*.md"):
        data = b""
        for line in document.read_text(encoding="utf-8").splitlines():
            if dump := re.match(r"```hexdump (\S+) ", line):
                data = (VECTORS / document.stem / dump[1]).read_bytes()
            if row := re.match(r"\| (\d+) \| `([0-9a-f ]+)(…[0-9a-f]+)?` \|", line):
                shown = bytes.fromhex(row[2])
                assert data[int(row[1]) :].startswith(shown), f"{document.name}: {line}"
                compared += 1
    assert compared > 30


def test_the_worked_examples_are_what_the_reader_makes_of_them() -> None:
    (record,) = seglake.open(ACTIVE / "minimal.bin")
    assert (record.timestamp_us, record.type, record.value) == (1_704_858_057_179_150, "", b"")
    flipped = [span for span in seglake.open(ACTIVE / "flip_message.bin").ledger() if span.kind != "record"]
    assert flipped == [(308, 411, "corrupt", "checksum_mismatch")]
    torn = [span for span in seglake.open(ACTIVE / "torn_in_body_preallocated.bin").ledger() if span.kind != "record"]
    assert torn == [(794, 846, "torn_tail", "checksum_mismatch"), (846, 2048, "unused", None)]


def test_the_table_of_formats_is_true() -> None:
    rows = {re.split(r"\W", row["format"])[0]: row for row in table(README, "# seglake")}
    assert list(rows) == seglake.formats().names
    for format in seglake.formats():
        name = format.name
        appends = "append" in format.create_options["if_exists"].choices
        assert rows[name]["append, follow as it grows"].startswith("yes" if appends else "no")
        assert rows[name]["in parts"] == ("yes" if format.splittable else "no")


def test_all_verbs_of_the_command_line_exist() -> None:
    named = {word for block in CONSOLE_BLOCKS for word in re.findall(r"^\$ (?:time )?seglake (\w+)", block.text, re.M)}
    done = subprocess.run(
        [sys.executable, "-m", "seglake", "--help"], capture_output=True, encoding="utf-8", check=True
    )
    assert named
    assert all(re.search(rf"^\W*{verb}\b", done.stdout, re.M) for verb in named)


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    named = {word for block in CONSOLE_BLOCKS for word in re.findall(r"^\$ make (\S+)", block.text, re.M)}
    assert {"demo", "test"} <= named <= targets


def test_examples_in_docstrings_are_run() -> None:
    import doctest

    import seglake.oplog

    assert doctest.testmod(seglake.oplog) == (0, 5)


def test_the_options_of_some_formats_are_those_of_the_command_line() -> None:
    from seglake.cli.cat import command
    from seglake.cli.render import size

    formats = seglake.formats()
    by_option = {name: parameter.name for parameter in command.params for name in parameter.opts}
    limits = {option.name: option for format in formats for option in format.open_options.values()}
    described: set[str] = set()
    described_limits: set[str] = set()
    for row in table(ROOT / "docs" / "cli.md", "| option | concerns | what it does |"):
        names, concerns, about = row.values()
        for option in re.findall(r"`(--[a-z-]+)(?: ([a-z_]+)=)?", names):
            argument = option[1] if option[0] == "--limits" else by_option[option[0]]
            described.add(option[0])
            if option[0] == "--limits":
                described_limits.add(argument)
            if argument in limits:
                assert concerns == ", ".join(each.name for each in formats if argument in each.open_options)
            if limits.get(argument) is not None and limits[argument].kind == "bytes":
                assert f"({size(int(limits[argument].default or 0)).replace('.0', '')})" in about
            column = FILTERED.get(argument)
            if column is not None and concerns != "records with a time":
                having = [each.name for each in formats if column in [own.name for own in each.columns]]
                assert concerns == ", ".join(having)
    assert described == {
        "--dialect",
        "--index",
        "--limits",
        "--where",
        *(name for name in by_option if by_option[name] in FILTERED),
    }
    assert described_limits == {"record_bytes", *(name for name, option in limits.items() if option.kind == "bytes")}
