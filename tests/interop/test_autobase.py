"""Oplogs that the npm package `autobase` writes on this machine: every field compared with what its own decoder says.

`make interop` installs the package in the versions that package.json pins, and runs this with newly written oplogs.
"""

import hashlib
import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import seglake

HERE = Path(__file__).parent
DIALECT = "autobase"

# Each version's flags of a message, by the field that is there, or is true, if the flag is set.
FLAGS = {
    0: {"checkpoint": 1},
    1: {"checkpoint": 1, "optimistic": 2},
    2: {"checkpoint": 1, "digest": 2, "optimistic": 4, "trace": 8},
}

# Columns that only the other dialects fill.
OF_OTHER_DIALECTS = ("checkpointer", "abi", "keys")

# The package counts in doubles, and refuses what they cannot hold.
LARGEST_OF_THE_PACKAGE = 2**53 - 1

if not (shutil.which("node") and shutil.which("npm")):
    pytest.skip("needs Node.js 20 or newer, with npm, which is not on this machine", allow_module_level=True)

# Half a minute, in which the writers write. Each change is tested with what they wrote once, in tests/vectors/autobase.
pytestmark = [pytest.mark.slow, pytest.mark.more]


def node(script: str, *arguments: Path | str) -> str:
    """Runs one of the scripts beside this file; returns what it prints."""
    if not (HERE / "node_modules").is_dir():
        pytest.fail("the package autobase is not installed below tests/interop: run `make interop`", pytrace=False)
    command = ["node", str(HERE / script), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=600, check=False)
    if result.returncode:
        pytest.fail(f"{' '.join(command)} ended with {result.returncode}:\n{result.stderr}", pytrace=False)
    return result.stdout


@pytest.fixture(scope="session")
def written(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of oplogs, `v<version>-<scenario>-<writer>.oplog`, each with the package's view of it as `.json`.

    pytest's cache keeps them. They are written again with `--cache-clear`, and when the scripts, the package or Node.js
    change.
    """
    folder = tmp_path_factory.mktemp("autobase") / "written"
    cache: pytest.Cache | None = getattr(pytestconfig, "cache", None)
    if cache is None:
        node("write.js", folder, "--old")
        return folder
    kept = cache.mkdir("autobase") / writers()
    if not kept.exists():
        node("write.js", folder, "--old")
        shutil.rmtree(kept.parent)
        kept.parent.mkdir()
        # Renamed when it is complete, so that an interrupted copy is not used.
        shutil.copytree(folder, kept.with_suffix(".part"))
        kept.with_suffix(".part").rename(kept)
    return kept


def writers() -> str:
    """Returns a hash of the scripts, the lock file, which pins the package, and the version of Node.js."""
    files = [*sorted(HERE.glob("*.js")), HERE / "package-lock.json"]
    version = subprocess.run(["node", "--version"], capture_output=True, check=True).stdout
    return hashlib.sha256(b"\0".join([version, *(path.read_bytes() for path in files)])).hexdigest()


def oplogs(folder: Path, version: int) -> list[Path]:
    paths = sorted(folder.glob(f"v{version}-*.oplog"))
    assert len(paths) >= 6, f"version {version}: the writers of at least two scenarios, found {paths}"
    return paths


def package_view(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def uint(number: int) -> bytes:
    """A compact-encoding uint."""
    for prefix, size in ((b"\xfd", 2), (b"\xfe", 4), (b"\xff", 8)):
        if number <= 0xFC:
            return bytes([number])
        if number < 1 << 8 * size:
            return prefix + number.to_bytes(size, "little")
    raise OverflowError(number)


def framed(messages: list[bytes]) -> bytes:
    """A `.oplog` file."""
    return b"".join(uint(len(message)) + message for message in messages)


def unframed(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The position and the bytes of each message of a `.oplog` file."""
    position = 0
    while position < len(data):
        size = {0xFD: 2, 0xFE: 4, 0xFF: 8}.get(data[position], 0)
        start = position + 1 + size
        length = int.from_bytes(data[position + 1 : start], "little") if size else data[position]
        yield position, data[start : start + length]
        position = start + length


def binary(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def columns(message: dict[str, Any]) -> dict[str, Any]:
    """The columns that a message has, by what the package decodes from it. Names and nesting differ, nothing else."""
    heads, checkpoint, digest = message["node"]["heads"], message["checkpoint"], message["digest"]
    return {
        "version": message["version"],
        "max_supported_version": message.get("maxSupportedVersion"),
        "optimistic": message["optimistic"],
        "clock": [{"key": binary(head["key"]), "length": head["length"]} for head in heads],
        "batch": message["node"]["batch"],
        "value": binary(message["node"]["value"]),
        "checkpoint": checkpoint
        and {
            "system": checkpointer(checkpoint["system"]),
            "encryption": checkpointer(checkpoint["encryption"]),
            "user": None if checkpoint["user"] is None else [checkpointer(view) for view in checkpoint["user"]],
        },
        "digest": digest and {"pointer": digest["pointer"], "key": binary(digest["key"])},
        "trace": message.get("trace"),
    }


def checkpointer(found: dict[str, Any] | None) -> dict[str, Any] | None:
    if found is None:
        return None
    signed = found["checkpoint"] or {"signature": None, "length": None}
    return {
        "checkpointer": found["checkpointer"],
        "signature": binary(signed["signature"]),
        "length": signed["length"],
    }


def implied_flags(fields: dict[str, Any]) -> int:
    return sum(flag for name, flag in FLAGS[fields["version"]].items() if fields[name])


def shown(record: seglake.Record) -> dict[str, Any]:
    """The columns of a record that a decoder of the package knows of; the others are checked here."""
    found = record.to_dict()
    assert [name for name in OF_OTHER_DIALECTS if found.pop(name, None) is not None] == []
    assert found.pop("extra") is None
    assert found.pop("flags") == implied_flags(found)
    return found


def assert_read_alike(path: Path, decoded: list[dict[str, Any]]) -> None:
    positions = [position for position, _ in unframed(path.read_bytes())]
    expected = [
        {"seq": seq, "position": position, **columns(message)}
        for seq, (position, message) in enumerate(zip(positions, decoded, strict=True))
    ]
    with seglake.open(path, format="oplog", options={"dialect": DIALECT}) as reader:
        for record, fields in zip(reader, expected, strict=True):
            assert shown(record) == fields, path.name


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_field_is_what_the_package_decodes(written: Path, version: int) -> None:
    for path in oplogs(written, version):
        assert_read_alike(path, package_view(path))


@pytest.mark.parametrize("airport", ["EWR", "JFK", "LGA"])
def test_every_field_of_the_committed_oplogs_is_too(airport: str) -> None:
    path = HERE.parents[1] / "examples" / "autobase" / f"{airport}.oplog"
    assert_read_alike(path, json.loads(node("decode.js", path)))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_single_message_decodes_like_one_of_a_file(written: Path, version: int) -> None:
    for path in oplogs(written, version):
        for (_, message), decoded in zip(unframed(path.read_bytes()), package_view(path), strict=True):
            fields = shown(seglake.oplog.decode(message, dialect=DIALECT))
            assert fields | columns(decoded) == fields, path.name


def test_encoding_gives_the_bytes_of_the_package(written: Path) -> None:
    for path in oplogs(written, 2):
        for (_, message), decoded in zip(unframed(path.read_bytes()), package_view(path), strict=True):
            record = seglake.oplog.decode(message, dialect=DIALECT)
            assert seglake.oplog.encode(record, dialect=DIALECT) == message, path.name
            fields = columns(decoded)
            assert seglake.oplog.encode(fields, dialect=DIALECT) == message, path.name
            assert seglake.oplog.encode(dialect=DIALECT, **fields) == message, path.name


def some_fields(source: random.Random) -> dict[str, Any]:
    """The fields of a version-2 message, any of which may be absent, empty, small or as large as the package takes."""

    def number() -> int:
        at = source.choice([0, 0xFC, 0xFF, 0xFFFF, 0xFFFF_FFFF, LARGEST_OF_THE_PACKAGE])
        return min(at + source.randrange(3), LARGEST_OF_THE_PACKAGE)

    def several(make: Any) -> list[Any]:
        return [make() for _ in range(source.choice([0, 1, 2, 5]))]

    def maybe(make: Any) -> Any:
        return make() if source.randrange(4) else None

    def signed() -> dict[str, Any]:
        # The package tells an absent pointer from one that is 0 as little as seglake does: it flags neither.
        signature = maybe(lambda: source.randbytes(64))
        return {
            "checkpointer": number(),
            "signature": signature,
            "length": None if signature is None else number(),
        }

    return {
        "version": 2,
        "clock": several(lambda: {"key": source.randbytes(32), "length": number()}),
        "batch": number(),
        "value": maybe(lambda: source.randbytes(source.choice([1, 0xFC, 0xFD, 0x10000]))),
        "optimistic": bool(source.randrange(2)),
        "checkpoint": maybe(
            lambda: {"system": maybe(signed), "encryption": maybe(signed), "user": maybe(lambda: several(signed))}
        ),
        "digest": maybe(lambda: {"pointer": number(), "key": maybe(lambda: source.randbytes(32))}),
        "trace": maybe(
            lambda: {
                "system": several(number),
                "encryption": several(number),
                "user": several(lambda: {"view": number(), "blocks": several(number)}),
            }
        ),
    }


def test_the_package_reads_what_seglake_encodes(tmp_path: Path) -> None:
    source = random.Random(20)
    fields = [some_fields(source) for _ in range(500)]
    messages = [seglake.oplog.encode(each, dialect=DIALECT) for each in fields]
    path = tmp_path / "seglake.oplog"
    path.write_bytes(framed(messages))

    for found, expected in zip(json.loads(node("decode.js", path)), fields, strict=True):
        assert columns(found) == {"max_supported_version": None, **expected}
    again = tmp_path / "autobase.oplog"
    node("reencode.js", path, again)
    assert [message for _, message in unframed(again.read_bytes())] == messages


def test_the_package_passes_over_what_a_later_revision_may_add(tmp_path: Path) -> None:
    source = random.Random(7)
    fields = [some_fields(source) for _ in range(50)]
    later = [
        seglake.oplog.encode({**each, "flags": implied_flags(each) | 0x130, "extra": b"\x01\xff"}, dialect=DIALECT)
        for each in fields
    ]
    path = tmp_path / "later.oplog"
    path.write_bytes(framed(later))

    for found, expected in zip(json.loads(node("decode.js", path)), fields, strict=True):
        assert columns(found) == {"max_supported_version": None, **expected}
    for message, each in zip(later, fields, strict=True):
        record = seglake.oplog.decode(message, dialect=DIALECT).to_dict()
        assert record["flags"] == implied_flags(each) | 0x130
        assert record["extra"] == b"\x01\xff"


def test_what_was_written_has_everything(written: Path) -> None:
    """The comparison is worth what the scenarios hold: without this it might pass on next to nothing."""
    messages = [
        columns(message) for version in range(3) for path in oplogs(written, version) for message in package_view(path)
    ]
    old = [message for message in messages if message["version"] < 2]
    new = [message for message in messages if message["version"] == 2]
    for found in (old, new):
        assert {len(message["clock"]) for message in found} >= {0, 1, 2, 3}
        assert {len(message["value"] or b"") for message in found} >= {0, 1, 0xFC, 0xFD, 0xFFFF, 0x10000, 300_000}
        assert {message["batch"] for message in found} >= {1, 2, 0xFC, 0xFD, 300}
        assert {message["optimistic"] for message in found} >= {False, True}
        assert {bool(message["digest"] and message["digest"]["key"]) for message in found} == {False, True}
        systems = [message["checkpoint"]["system"] for message in found if message["checkpoint"]]
        assert {system["signature"] is None for system in systems} == {False, True}
        assert max(system["checkpointer"] for system in systems) > 0xFC
    assert {message["max_supported_version"] for message in messages} == {0, 1, None}
    assert {message["optimistic"] for message in messages} == {False, True, None}
    views = [message["checkpoint"]["user"] for message in new if message["checkpoint"]]
    assert {None if user is None else len(user) for user in views} >= {None, 1, 2}
    traces = [message["trace"] for message in new if message["trace"]]
    assert any(trace["system"] for trace in traces)
    assert {len(trace["user"]) for trace in traces} >= {0, 1, 2}
    assert {entry["view"] for trace in traces for entry in trace["user"]} == {0, 1}


def test_batches_and_pointers_count_down_and_up(written: Path) -> None:
    """What the fields mean, so that two of the same type cannot be mistaken for each other."""
    for path in oplogs(written, 2):
        with seglake.open(path, format="oplog", options={"dialect": DIALECT}) as reader:
            records = [record.to_dict() for record in reader]
        for record, following in pairwise(records):
            if record["batch"] > 1:
                assert following["batch"] == record["batch"] - 1, path.name
            if following["digest"]["pointer"]:
                assert following["digest"]["pointer"] == record["digest"]["pointer"] + 1, path.name
