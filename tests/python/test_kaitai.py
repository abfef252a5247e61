"""The layouts of docs/formats/*.ksy against the golden files, through parsers that the Kaitai Struct compiler makes.

Every sound file is what its layout says, field by field, and no damaged one is. So the layouts cannot drift from the
golden files, nor, since the library is held to those too, from the library.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import kaitai_formats
import kaitai_rules
import pytest
from documents import blocks, links
from kaitai_formats import LAYOUTS, ROOT, Found, Json, Parsers, compile_layouts, compile_parsers, merged
from loops import Test, looped

pytestmark = [
    pytest.mark.kaitai,
    pytest.mark.oracle("docs/formats/*.ksy", "docs/formats/README.md", "tests/vectors/*/*"),
]

VECTORS = ROOT / "tests" / "vectors"
CASES = [
    path for name in ("active", "sealed", "tenant", "chunked", "oplog") for path in (VECTORS / name).glob("*.json")
]
README = ROOT / "docs" / "formats" / "README.md"
REAL = sorted((VECTORS / "autobase").glob("real-*.oplog"))
SYNTHETIC: list[Json] = json.loads((VECTORS / "autobase" / "synthetic-messages.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def parsers(tmp_path_factory: pytest.TempPathFactory) -> Parsers:
    return compile_parsers(tmp_path_factory.mktemp("kaitai"))


@dataclass(frozen=True)
class Case:
    """A golden file and what is expected of it."""

    path: Path

    @cached_property
    def expected(self) -> Json:
        return json.loads(self.path.read_text(encoding="utf-8"))

    @cached_property
    def data(self) -> bytes:
        return self.path.with_suffix(".bin").read_bytes()

    @property
    def layout(self) -> str:
        return self.path.parent.name

    @property
    def is_sound(self) -> bool:
        return all(cause is None for *_, cause in self.expected["ledger"])

    @property
    def has_index(self) -> bool:
        return "index" in self.expected["options"]

    @property
    def has_sound_index(self) -> bool:
        return self.has_index and all(cause is None for *_, cause in self.expected["index"]["ledger"])

    def parse(self, parsers: Parsers) -> Any:
        """The parse tree: the layout alone."""
        if self.layout != "oplog":
            return parsers.parse(self.layout, self.data)
        dialect = {"draft": "draft", "draft-1.1": "draft_1_1"}[self.expected["options"]["dialect"]]
        return parsers.parse("oplog", self.data, parsers.module("oplog").Oplog.Dialect[dialect])

    def found(self, tree: Any, parsers: Parsers) -> Found:
        """Records and ranges."""
        if self.layout == "chunked":
            return kaitai_formats.chunked(tree, parsers)
        find: Callable[[Any], Found] = getattr(kaitai_formats, self.layout)
        return find(tree)

    def read(self, parsers: Parsers) -> tuple[Any, Found]:
        """What a strict reader gives: raises unless the layout fits, the rules hold, and no byte is left out."""
        tree = self.parse(parsers)
        found = self.found(tree, parsers)
        assert kaitai_rules.covers(found, len(self.data))
        match self.layout:
            case "active" | "sealed":
                key = bytes.fromhex(self.expected["options"]["key"])
                getattr(kaitai_rules, self.layout)(tree, self.data, key)
            case "oplog":
                kaitai_rules.oplog(found.records)
            case _:
                getattr(kaitai_rules, self.layout)(tree, self.data)
        return tree, found

    def read_index(self, parsers: Parsers) -> list[Json]:
        """The items of the index, as strictly."""
        data = self.path.with_suffix(".index").read_bytes()
        tree = parsers.parse("chunked_index", data)
        kaitai_rules.chunked_index(tree, data, self.parse(parsers))
        return [{"offset": item.start_offset, "file_offset": item.ofs_chunk} for item in tree.items]


def cases(chosen: Callable[[Case], bool]) -> Callable[[Test], Test]:
    """Calls a test with each of these files, as subtests."""
    those = filter(chosen, map(Case, sorted(CASES)))
    return looped("case", those, id=lambda case: f"{case.layout}/{case.path.stem}", by=lambda case: case.layout)


@pytest.fixture(scope="session")
def refusals(parsers: Parsers) -> tuple[type[Exception], ...]:
    """How a parser, or a rule, says that a file is not sound.

    `OverflowError` is how Python's own streams refuse an offset above 2^63 - 1.
    """
    struct_error: type[Exception] = parsers.module("active").kaitaistruct.KaitaiStructError
    return (struct_error, OverflowError, AssertionError)


def test_no_golden_file_is_left_out() -> None:
    sound, damaged = ({case.layout: 0 for case in map(Case, CASES)} for _ in range(2))
    for case in map(Case, CASES):
        (sound if case.is_sound else damaged)[case.layout] += 1
    assert {name: count >= 9 for name, count in sound.items()} == dict.fromkeys(sound, True)
    assert {name: count >= 30 for name, count in damaged.items()} == dict.fromkeys(damaged, True)
    assert sorted(sound) == ["active", "chunked", "oplog", "sealed", "tenant"]
    assert {path.stem for path in LAYOUTS} == {*sound, "chunked_index", "autobase", "compact_uint", "uuid6"}
    assert {path.stem.split("-")[1] for path in REAL} == {"plain", "optimistic", "v0", "v1"}
    assert {message["fields"]["version"] for message in SYNTHETIC} == {0, 1, 2}


@cases(lambda case: case.is_sound)
def test_a_sound_file_is_what_its_layout_says(case: Case, parsers: Parsers) -> None:
    tree, found = case.read(parsers)
    assert found.records == case.expected["records"]
    assert merged(found.ranges) == case.expected["ledger"]
    if case.layout == "sealed":
        assert case.expected["checked"] == ("checksum" if tree.has_trailer else "structure")
    if case.layout == "tenant" and tree.version == 2:
        assert kaitai_formats.tenant_blocks(tree) == case.expected["blocks"]


@cases(lambda case: not case.is_sound)
def test_a_damaged_file_is_not(case: Case, parsers: Parsers, refusals: tuple[type[Exception], ...]) -> None:
    with pytest.raises(refusals):
        case.read(parsers)


@cases(lambda case: case.expected["strict_error"] is not None and case.layout == "oplog")
def test_an_oplog_layout_alone_refuses_all_but_dangling_references(
    case: Case, parsers: Parsers, refusals: tuple[type[Exception], ...]
) -> None:
    if case.expected["strict_error"]["cause"] == "dangling_reference":
        assert case.found(case.parse(parsers), parsers).records == case.expected["records"]
    else:
        with pytest.raises(refusals):
            case.parse(parsers)


@cases(lambda case: case.has_sound_index)
def test_a_sound_index_is_what_its_layout_says(case: Case, parsers: Parsers) -> None:
    items = case.read_index(parsers)
    assert items == case.expected["index"]["items"]
    assert len(items) == len(case.expected["index"]["ledger"])


@cases(lambda case: case.has_index and not case.has_sound_index)
def test_a_damaged_index_is_not(case: Case, parsers: Parsers, refusals: tuple[type[Exception], ...]) -> None:
    with pytest.raises(refusals):
        case.read_index(parsers)


@looped("path", REAL, id=lambda path: path.stem)
def test_messages_that_autobase_wrote(path: Path, parsers: Parsers) -> None:
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    tree = parsers.parse("oplog", path.read_bytes(), parsers.module("oplog").Oplog.Dialect.autobase)
    assert expected
    assert [kaitai_formats.autobase(buffer.message) for buffer in tree.buffers] == expected


@looped("message", SYNTHETIC, id=lambda message: message["name"])
def test_single_autobase_messages(message: Json, parsers: Parsers) -> None:
    tree = parsers.parse("autobase", bytes.fromhex(message["bytes"]))
    assert kaitai_formats.autobase(tree) == message["fields"]
    if message["fields"]["version"] == 2:
        assert tree.body.extra == b""


@pytest.mark.parametrize("behind", [b"\x00", b"later"])
def test_bytes_behind_an_autobase_message_are_kept_in_version_2_and_damage_before(
    behind: bytes, parsers: Parsers, refusals: tuple[type[Exception], ...]
) -> None:
    versions: set[int] = set()
    for message in SYNTHETIC:
        version = message["fields"]["version"]
        if version == 0 and message["fields"]["maxSupportedVersion"] == 0:
            continue  # one byte behind it may be the number of the highest version that is supported
        data = bytes.fromhex(message["bytes"]) + behind
        if version == 2:
            tree = parsers.parse("autobase", data)
            assert tree.body.extra == behind
            assert kaitai_formats.autobase(tree) == message["fields"]
        else:
            with pytest.raises(refusals):
                parsers.parse("autobase", data)
        versions.add(version)
    assert versions == {0, 1, 2}


def test_a_dangling_reference_has_no_key(parsers: Parsers) -> None:
    path = VECTORS / "autobase" / "dangling.oplog"
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["messages"]
    tree = parsers.parse("oplog", path.read_bytes(), parsers.module("oplog").Oplog.Dialect.draft_1_1)
    records = kaitai_formats.oplog(tree).records
    assert [record["clock"] for record in records] == [message["clock"] for message in expected]
    assert [record["keys"] for record in records] == [message["keys"] for message in expected]
    assert [entry["key"] for record in records for entry in record["clock"]].count(None) == 1


@pytest.mark.parametrize("dialect", ["draft", "draft_1_1"])
def test_the_system_part_can_be_read_alone(dialect: str, parsers: Parsers) -> None:
    module = parsers.module("oplog")
    name = "typical" if dialect == "draft" else "typical_11"
    path = VECTORS / "oplog" / f"{name}.bin"
    tree = parsers.parse("oplog", path.read_bytes(), module.Oplog.Dialect[dialect])
    assert len(tree.buffers) == 24
    for buffer in tree.buffers:
        end = buffer.message._debug["system"]["end"]
        stream = module.KaitaiStream(module.BytesIO(buffer._raw_message[:end] + b"encrypted"))
        system = module.Oplog.System(stream)
        assert (stream.pos(), system.version.value) == (end, buffer.message.system.version.value)
        assert system.checkpointer.value == buffer.message.system.checkpointer.value


@pytest.mark.parametrize("target", ["java", "javascript", "cpp_stl"])
def test_the_layouts_compile_for_other_languages(target: str, tmp_path: Path) -> None:
    assert compile_layouts(LAYOUTS, target, tmp_path) == ""
    assert len({path.stem for path in tmp_path.rglob("*.*")}) >= len(LAYOUTS)


def test_every_layout_is_documented() -> None:
    linked = set(links(README))
    for path in LAYOUTS:
        text = path.read_text(encoding="utf-8")
        for line in ("license: Apache-2.0", "title: ", "endian: ", "\ndoc: |\n", "\ndoc-ref: "):
            assert line in text, f"{path.name} has no {line.strip()!r}"
        assert path.name in linked


def test_the_documented_programs_run(tmp_path: Path) -> None:
    compile_layouts(LAYOUTS, "python", tmp_path)
    active, oplog = (Case(VECTORS / name / "typical.json") for name in ("active", "oplog"))
    (tmp_path / "orders.active").write_bytes(active.data)
    (tmp_path / "writer.oplog").write_bytes(oplog.data)
    printed = [
        subprocess.check_output([sys.executable, "-c", block.text], cwd=tmp_path, encoding="utf-8").splitlines()
        for block in blocks(README, "py")
    ]
    assert [len(lines) for lines in printed] == [len(case.expected["records"]) for case in (active, oplog)]
    assert all(line.startswith("6 b") for line in printed[0])
    values = [record["value"] for record in oplog.expected["records"]]
    assert [kaitai_formats.shown(ast.literal_eval(line.partition(" ")[2])) for line in printed[1]] == values
