"""The fields that a report of `--html` shows are those of docs/formats, and cover the units of golden files exactly."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import seglake
from seglake.cli.html.fields import LAYOUTS, Field, leading_to, unit_at

ROOT = Path(__file__).parents[2]
FORMATS = ROOT / "docs" / "formats"
VECTORS = ROOT / "tests" / "vectors"
SIZES = {"u1": 1, "u2": 2, "u4": 4, "u8": 8, "s4": 4, "s8": 8, "compact_uint": "compact", "uuid6": 16}
# Where a layout begins in the `seq` that it is a part of: what is before it is repeated.
FIRST = {"sealed.trailer": "key_check"}


def sequence(name: str) -> list[dict[str, Any]]:
    """The `seq` of a type in the layouts of docs/formats."""
    file, _, kind = name.partition(".")
    layout = YAML(typ="safe").load((FORMATS / f"{file}.ksy").read_text(encoding="utf-8"))
    found = layout["types"][kind]["seq"] if kind else layout["seq"]
    names = [own["id"] for own in found]
    return found[names.index(FIRST[name]) :] if name in FIRST else found


def size_of(own: dict[str, Any]) -> int | str:
    if "contents" in own:
        return len(own["contents"])
    size = own.get("size", SIZES.get(own.get("type", "")))
    return size if isinstance(size, int) else str(size)


@pytest.mark.parametrize("name", [name for name in LAYOUTS if not name.startswith("tfrecord")])
def test_a_layout_has_the_fields_of_its_description(name: str) -> None:
    # Of a layout that goes on with items or with what differs, only the beginning.
    described = sequence(name)[: len(LAYOUTS[name])]
    assert [(own.name, own.size) for own in LAYOUTS[name]] == [(own["id"], size_of(own)) for own in described]
    for own, known in zip(LAYOUTS[name], described, strict=True):
        if "contents" in known:
            assert own.equal == known["contents"].encode()
        if isinstance(known.get("valid"), int):
            assert own.equal == bytes([known["valid"]])


def test_the_layout_of_tfrecord_is_that_of_its_page() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (\d+|`length`) \|", (FORMATS / "tfrecord.md").read_text(), re.MULTILINE)
    described = [(name, int(size) if size.isdigit() else size.strip("`")) for name, size in rows]
    fields: tuple[Field, ...] = LAYOUTS["tfrecord.record"]
    assert [(own.name, own.size) for own in fields] == described[: len(fields)]


SOUND = [
    path
    for name in ("active", "sealed", "tenant", "chunked", "tfrecord")
    for path in sorted((VECTORS / name).glob("*.bin"))
    if seglake.verify(path, format=name, explain=0).ok
]


@pytest.mark.parametrize("path", SOUND, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_fields_of_a_sound_unit_cover_it_and_none_is_wrong(path: Path) -> None:
    content, format = path.read_bytes(), path.parent.name

    def read_at(offset: int, size: int) -> bytes:
        return content[offset : offset + size]

    reader = seglake.open(path, format=format)
    for span in reader.ledger():
        if span.kind not in ("record", "chunk", "block"):
            continue
        found = unit_at(format, read_at, span.start, len(content), None)
        assert found[0].start == span.start
        assert all(last.end == next.start for last, next in pairwise(found))
        assert found[-1].end == span.end
        assert [own for own in found if own.verdict in ("wrong", "raw")] == []
    if format in ("sealed", "tenant") and (version := read_at(4, 2)) != b"\0\1":
        for span in reader.ledger():
            if span.kind in ("record", "block"):
                entry = leading_to(format, read_at, span.start, len(content))
                assert entry, (version, span)
                assert [own for own in entry if own.verdict == "wrong"] == []


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*/*.bin")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_any_bytes_have_fields_that_do_not_overlap(path: Path) -> None:
    content = path.read_bytes()

    def read_at(offset: int, size: int) -> bytes:
        return content[offset : offset + size]

    for format in ("active", "sealed", "tenant", "chunked", "oplog", "tfrecord"):
        for start in {0, len(content) // 3, max(len(content) - 5, 0)}:
            found = unit_at(format, read_at, start, len(content), "checksum_mismatch")
            assert all(own.start <= own.end <= len(content) for own in found)
            assert all(last.end <= next.start for last, next in pairwise(found))
            leading_to(format, read_at, start, len(content))


def test_the_entry_of_a_unit_is_not_looked_for_after_the_end_of_the_file() -> None:
    content = b"\x28\xb5\x2f\xfd" + b"\x7f" * 5_000

    def read_at(offset: int, size: int) -> bytes:
        assert offset < len(content)
        return content[offset : offset + size]

    assert leading_to("sealed", read_at, 0, len(content)) == []
