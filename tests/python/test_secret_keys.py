"""A key shows nowhere: not in what objects look like, not in errors, not in what commands print, not in files."""

from __future__ import annotations

import base64
import contextlib
import json
import pickle
import traceback
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from cli_process import Argument, here
from secret import KEY, OTHER_KEY, forms_in, key_file, leaking_files, leaks

import seglake
from seglake.cli.application import program

FIRST = uuid.UUID("1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("raw", b"..." + KEY + b"..."),
        ("raw", KEY[3:11]),
        ("hex", KEY.hex()),
        ("hex", KEY.hex().upper()),
        ("hex", f"{KEY.hex()[:20]}..."),
        ("base64", base64.b64encode(KEY)),
        ("base64", base64.b64encode(b"before" + KEY)),
        ("base64", base64.b64encode(b"x" + KEY)),
        ("base64", base64.urlsafe_b64encode(b"xx" + KEY)),
        ("bytes literal", repr(KEY)),
        ("bytes literal", f"Key({KEY[:12]!r})"),
        ("list", str(list(KEY))),
        ("JSON text", json.dumps({"key": KEY.decode("latin-1")})),
        ("number", str(int.from_bytes(KEY, "big"))),
        ("little-endian number", str(int.from_bytes(KEY[8:16], "little"))),
        ("hex with spaces", KEY.hex(" ")),
    ],
)
def test_a_key_would_be_found(form: str, text: str | bytes) -> None:
    assert form in forms_in(text)


def test_nothing_else_is_found() -> None:
    assert forms_in(bytes(range(256)) + OTHER_KEY + OTHER_KEY.hex().encode()) == []


class Segments:
    """An active and a sealed segment under the key, one of each with a damaged record, and one under another key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.active = folder / "a.active"
        self.sealed = folder / "a.sealed"
        self.damaged = folder / "damaged.active"
        self.damaged_sealed = folder / "damaged.sealed"
        self.foreign = folder / "foreign.active"
        for path, key in ((self.active, KEY), (self.foreign, OTHER_KEY)):
            with seglake.create(path, format="active", key=key) as writer:
                writer.write(uuid=FIRST, type="a", value=b"first record")
                for _ in range(9):
                    writer.write(type="a", value=b"another record")
        seglake.seal(self.active, self.sealed, key=KEY)
        for sound, damaged in ((self.active, self.damaged), (self.sealed, self.damaged_sealed)):
            damaged.write_bytes(sound.read_bytes().replace(b"first", b"First"))


@pytest.fixture
def segments(tmp_path: Path) -> Segments:
    return Segments(tmp_path / "segments")


WAYS = ("bytes", "several", "file", "environment")


def given(way: str, segments: Segments, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments that give the key in one way."""
    monkeypatch.delenv("SEGLAKE_KEY", raising=False)
    if way == "environment":
        monkeypatch.setenv("SEGLAKE_KEY", KEY.hex())
        return {}
    return {
        "bytes": {"key": KEY},
        "several": {"key": [OTHER_KEY, KEY]},
        "file": {"key": key_file(segments.folder)},
    }[way]


def looks(thing: Any) -> Iterator[str]:
    """What a thing looks like, and all that it has to offer without being called."""
    yield repr(thing)
    yield str(thing)
    yield format(thing)
    for name in dir(thing):
        with contextlib.suppress(AttributeError, ValueError):
            value = getattr(thing, name)
            if not callable(value):
                yield f"{name}={value!r}"


def raised(call: Callable[[], object]) -> str:
    """What an error shows when it is printed, logged, or taken apart."""
    with pytest.raises((ValueError, TypeError, OSError, OverflowError, seglake.SeglakeError)) as caught:
        call()
    error = caught.value
    shown = "\n".join((*traceback.format_exception_only(error), repr(error), repr(error.args), repr(vars(error))))
    return f"{shown}\n{error.__cause__!r}\n{error.__context__!r}"


@pytest.mark.parametrize("way", WAYS)
def test_no_object_shows_the_key(way: str, segments: Segments, monkeypatch: pytest.MonkeyPatch) -> None:
    how = given(way, segments, monkeypatch)
    once = how if way != "several" else {"key": KEY}  # for what takes no more than one
    seen: list[str] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with seglake.create(segments.folder / "new.active", format="active", **once) as writer:
            writer.write(type="a", value=b"v")
            seen += looks(writer)
        seen += looks(seglake.create(segments.folder / "new.active", format="active", if_exists="append", **once))
        seen += looks(seglake.create(segments.folder / "new.sealed", format="sealed", **once))
        for path in (segments.active, segments.sealed, segments.damaged, segments.damaged_sealed):
            with seglake.open(path, on_damage="skip", **how) as reader:
                for thing in (
                    reader,
                    reader.schema,
                    reader.ledger(),
                    iter(reader),
                    reader.batches(),
                    next(iter(reader)),
                ):
                    seen += looks(thing)
                seen += looks(list(reader)[1])
                seen += looks(next(reader.batches()))
                seen += map(repr, reader.ledger())
                seen += looks(reader.get(FIRST))
                seen += looks(reader.range([("uuid", ">=", FIRST)]))
                seen += looks(reader.report)
            report = seglake.verify(path, explain=True, **how)
            seen += [*looks(report), *map(repr, report.diagnoses), json.dumps(report.to_dict())]
            seen += looks(seglake.detect(path, **how))
            recovered = seglake.recover(path, segments.folder / f"recovered-{path.name}", **how)
            seen += [*looks(recovered), json.dumps(recovered.to_dict())]
        seen += looks(seglake.seal(segments.active, segments.folder / "b.sealed", **how))
        seen += looks(seglake.convert(seglake.open(segments.active, **how), segments.folder / "c.sealed", options=once))
        seen += looks(seglake.convert(seglake.open(segments.sealed, **how), segments.folder / "c.active", options=once))
    seen += [str(warning.message) for warning in warned]
    assert warned
    assert len(seen) > 200
    assert leaks(seen) == []
    assert leaking_files(segments.folder) == []


@pytest.mark.parametrize("way", WAYS)
def test_no_pickle_holds_the_key(way: str, segments: Segments, monkeypatch: pytest.MonkeyPatch) -> None:
    how = given(way, segments, monkeypatch)
    assert forms_in(pickle.dumps(seglake.verify(segments.damaged, explain=True, **how))) == []
    with seglake.open(segments.active, **how) as reader:
        if way in ("bytes", "several"):
            assert forms_in(raised(lambda: pickle.dumps(reader))) == []
            return
        data = pickle.dumps(reader)
    assert forms_in(data) == []
    with pickle.loads(data) as again:
        assert len(list(again)) == 10


# What goes wrong with a key given as bytes: each of them given as `key`, some also as others.
MISTAKES: dict[str, Any] = {
    "too long": KEY + b"\0",
    "too short": KEY[:-1],
    "hex": KEY.hex(),
    "hex as bytes": KEY.hex().encode(),
    "another type of bytes": bytearray(KEY[:-1]),
    "memoryview": memoryview(KEY.hex().encode()),
    "list": list(KEY[1:]),
    "list of lists": [[KEY]],
    "text in a list": [KEY.hex()],
    "no bytes": [*KEY[:31], 256],
    "dict": {KEY.hex(): KEY},
    "number": int.from_bytes(KEY, "big"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_no_error_about_a_key_shows_it(mistake: str, segments: Segments) -> None:
    key = MISTAKES[mistake]
    active, new = segments.active, segments.folder / "new.sealed"
    calls: list[Callable[[], object]] = [
        lambda: seglake.open(active, key=key),
        lambda: seglake.open(active, key=[KEY, key]),
        lambda: seglake.open(active, key=[KEY, [KEY]]),
        lambda: seglake.verify(active, key=key),
        lambda: seglake.detect(active, key=key),
        lambda: seglake.create(new, format="sealed", key=key),
        lambda: seglake.create(new, format="tenant", key=KEY),
        lambda: seglake.recover(active, new, key=key),
        lambda: seglake.seal(active, new, key=key),
        lambda: seglake.convert(active, new, options={"key": key}),
    ]
    assert leaks(map(raised, calls)) == []
    assert not new.exists()


@pytest.mark.parametrize(
    "content",
    [KEY + b"\0", KEY[:-1], KEY.hex().encode() + b"0", KEY.hex().encode()[:-1] + b"g", b"key: " + KEY],
    ids=len,
)
def test_no_error_about_a_key_file_or_variable_shows_what_is_in_it(
    content: bytes, segments: Segments, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = key_file(segments.folder, content)
    of_file = raised(lambda: seglake.open(segments.active, key=file))
    monkeypatch.setenv("SEGLAKE_KEY", content.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
    of_variable = raised(lambda: seglake.open(segments.active))
    assert leaks([of_file, of_variable]) == []
    assert str(file) in of_file
    assert "SEGLAKE_KEY" in of_variable


def test_a_key_in_the_place_of_its_file_is_not_repeated(segments: Segments) -> None:
    for name in (KEY.hex(), KEY.hex().upper(), str(segments.folder / KEY.hex())):
        text = raised(lambda name=name: seglake.open(segments.active, key=name))
        assert forms_in(text) == []
        assert "text is the path of a file" in text


def test_a_file_that_is_named_like_a_key_is_one(segments: Segments) -> None:
    named = segments.folder / OTHER_KEY.hex()
    named.write_bytes(KEY)
    assert seglake.verify(segments.active, key=named).ok


# The checksum that a forged record should have is told by nobody: with it, it would be forged.


def checksum(path: Path) -> bytes:
    """The last eight bytes of an active segment: the checksum of its last record."""
    return path.read_bytes()[-8:]


def shown_of(path: Path, **how: Any) -> str:
    """All that is to be learned of what is wrong with a file."""
    verified = seglake.verify(path, explain=True, **how)
    report = json.dumps(verified.to_dict()) + repr(verified.diagnoses)
    new = path.with_name(f"new-{path.name}")
    recovered = seglake.recover(path, new, force=True, if_exists="overwrite", **how)
    written = (Path(each).read_bytes().decode("latin-1") for each in (recovered.manifest,) if each is not None)
    return "\n".join((raised(lambda: list(seglake.open(path, **how))), report, repr(recovered), *written))


@pytest.mark.parametrize("size", [9, 9 << 20], ids=["small", "in pieces"])
@pytest.mark.parametrize("keys", [[KEY], [bytes(32), KEY]], ids=["one key", "two keys"])
def test_what_a_forger_lacks_is_not_told(size: int, keys: list[bytes], tmp_path: Path) -> None:
    right: dict[str, bytes] = {}
    for amount in ("1", "9"):
        path = tmp_path / f"{amount}.active"
        with seglake.create(path, format="active", key=KEY) as writer:
            if size == 9:
                writer.write(uuid=FIRST, type="p", value=b"a sound record in front of it")
            writer.write(type="p", uuid=uuid.UUID(int=FIRST.int + 1), value=f"pay {amount} ".encode().ljust(size, b"."))
        seglake.seal(path, path.with_suffix(".sealed"), key=KEY)
        right[amount] = checksum(path)
    assert right["1"] != right["9"]
    for extension in ("active", "sealed"):
        forged = tmp_path / f"forged.{extension}"
        forged.write_bytes((tmp_path / f"1.{extension}").read_bytes().replace(b"pay 1", b"pay 9"))
        text = shown_of(forged, key=keys).lower()
        assert "checksum_mismatch" in text
        assert right["9"].hex() not in text
        assert str(int.from_bytes(right["9"], "big")) not in text


def test_nor_is_the_hash_of_an_index(segments: Segments) -> None:
    content = bytearray(segments.sealed.read_bytes())
    right = bytes(content[-16:-8])
    content[-9] ^= 1
    segments.damaged_sealed.write_bytes(content)
    text = shown_of(segments.damaged_sealed, key=KEY)
    assert "header_checksum_mismatch" in text
    assert right.hex() not in text.lower()


def test_under_the_public_key_it_is_told(tmp_path: Path) -> None:
    for amount in ("1", "9"):
        with seglake.create(tmp_path / f"{amount}.active", format="active") as writer:
            writer.write(uuid=FIRST, type="p", value=f"pay {amount}".encode())
    forged = tmp_path / "forged.active"
    forged.write_bytes((tmp_path / "1.active").read_bytes().replace(b"pay 1", b"pay 9"))
    assert checksum(tmp_path / "9.active").hex() in shown_of(forged)


# The command line.

# How each command is called on files under the key: their names, and whether it takes a key.
COMMANDS: dict[str, list[list[str]]] = {
    "info": [["a.active"], ["--count", "--json", "a.sealed"], ["damaged.active", "foreign.active"]],
    "cat": [
        ["a.active"],
        ["--json", "--value", "hex", "a.sealed"],
        ["--get", str(FIRST), "a.sealed"],
        ["--on-damage", "skip", "damaged.active", "foreign.active"],
        ["damaged.sealed"],
    ],
    "verify": [["a.active", "a.sealed", "damaged.active", "foreign.active"], ["--json", "damaged.sealed"]],
    "recover": [
        ["--json", "damaged.active", "new.active"],
        ["damaged.sealed", "new.sealed", "--quarantine", "new-quarantine.bytes"],
        ["foreign.active", "new.active"],
        ["--force", "foreign.active", "new.active"],
        ["--undo", "a.active", "new.active"],
    ],
    "extract": [["a.active", "--range", "0:20", "--hex"]],
    "convert": [
        ["a.active", "new.sealed"],
        ["--json", "a.sealed", "new.active"],
        ["foreign.active", "new-other.sealed"],
        ["--on-damage", "skip", "damaged.active", "new-kept.active"],
        ["a.active", "new.chunks"],
    ],
    "seal": [
        ["--json", "a.active", "new-sealed.sealed"],
        ["damaged.active", "new-other.sealed"],
        ["foreign.active", "new-f.sealed"],
    ],
    "index": [["a.active"]],
    "protect": [["--json", "a.active"], ["foreign.active"], ["damaged.active"]],
    "repair": [["a.active"], ["--json", "damaged.active"], ["foreign.active"]],
    "scrub": [["a.active", "foreign.active"], ["--json", "--repair", "damaged.active"]],
    "export": [
        ["a.active", "a.sealed", "new.csv"],
        ["--json", "a.sealed", "new.jsonl"],
        ["damaged.active", "new-damaged.csv"],
        ["--on-damage", "skip", "--damage", "new-ranges.csv", "damaged.active", "new-kept.csv"],
        ["foreign.active", "new-foreign.parquet"],
    ],
    # Keys of logs are tried in test_cli_log.py.
    "log": [],
    # What it does has a test of its own, with Spark.
    "ingest": [],
    "explain": [["torn_tail"]],
    "completion": [["bash"]],
}


def option_names(command: str) -> set[str]:
    found = program.get_command(click.Context(program), command)
    assert found is not None
    return {name for parameter in found.params for name in parameter.opts}


def run_all(command: str, *key: Argument, in_environment: str | None = None) -> Iterator[str]:
    """All that a command prints, in all ways in which it is called."""
    env = {} if in_environment is None else {"SEGLAKE_KEY": in_environment}
    for arguments in COMMANDS[command]:
        for debug in ([], ["--debug"]):
            done = here(*debug, command, *key, *arguments, env=env)
            assert "unexpected" not in done.err
            assert leaking_files(Path()) == []
            yield done.out + done.err
            for path in Path().glob("new*.*"):
                path.unlink()


def test_all_commands_are_tried() -> None:
    assert set(COMMANDS) == set(program.list_commands(click.Context(program)))


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_takes_a_key_as_an_argument(command: str) -> None:
    assert {name for name in option_names(command) if "key" in name or "secret" in name} <= {"--key-file"}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_shows_the_key(command: str, segments: Segments, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(segments.folder)
    seen = [*run_all(command, in_environment=KEY.hex()), here(command, "--help", env={"SEGLAKE_KEY": KEY.hex()}).out]
    for content in (KEY.hex() + "0", KEY.hex()[:-1] + "g"):
        seen += run_all(command, in_environment=content)
    if "--key-file" in option_names(command):
        for content in (KEY, KEY.hex().encode(), KEY + b"\0", KEY.hex().encode() + b"0"):
            seen += run_all(command, "--key-file", key_file(segments.folder, content))
        done = here(command, "--key-file", KEY.hex(), "a.active", "b.active", "--debug")
        assert done.status == 2
        assert "a key itself" in done.err
        seen.append(done.err)
    assert leaks(seen) == []
    assert leaking_files(segments.folder) == []
