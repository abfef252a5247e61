"""`seglake cat`."""

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cli_process import TIMEOUT_S, command, environment, here
from golden import WRONG_KEY
from loops import looped

import seglake as library

VECTORS = sorted((Path(__file__).parents[1] / "vectors" / "active").glob("*.bin"))


def expected(segment: Path) -> dict[str, Any]:
    return json.loads(segment.with_suffix(".json").read_text())


def is_same(value: bytes, truth: str | dict[str, Any]) -> bool:
    """Whether bytes are those that a vector tells of: hex, or a hash where they are long."""
    if isinstance(truth, str):
        return value.hex() == truth
    return (len(value), sha256(value).hexdigest()) == (truth["length"], truth["sha256"])


@looped("segment", VECTORS, id=lambda path: path.stem)
def test_json_is_every_record_of_every_golden_segment(segment: Path, tmp_path: Path) -> None:
    truth = expected(segment)
    key = tmp_path / "key"
    key.write_text(truth["options"]["key"])
    done = here("cat", "--json", "--format", "active", "--on-damage", "skip", "--key-file", key, segment)
    lines = done.json_lines()
    assert [line["position"] for line in lines] == [record["position"] for record in truth["records"]]
    for line, record in zip(lines, truth["records"], strict=True):
        assert list(line) == ["position", "uuid", "timestamp", "type", "value"]
        assert line["uuid"].replace("-", "") == record["uuid"]
        assert is_same(base64.b64decode(line["value"]), record["value"])
    if truth["strict_error"] is None:
        assert (done.status, done.err) == (0, "")
    elif f"active/{segment.stem}" in WRONG_KEY:
        assert (done.status, done.out) == (2, "")
        assert "probably the wrong key" in done.err
    else:
        assert done.status == 1
        assert "skipped" in done.err


@looped("segment", VECTORS, id=lambda path: path.stem)
def test_strict_reading_prints_what_is_in_front_of_the_damage_and_names_it(segment: Path, tmp_path: Path) -> None:
    truth = expected(segment)
    key = tmp_path / "key"
    key.write_text(truth["options"]["key"])
    done = here("cat", "--json", "--format", "active", "--key-file", key, segment)
    error = truth["strict_error"]
    end = truth["size"] if error is None else error["offset"]
    assert [line["position"] for line in done.json_lines()] == [
        record["position"] for record in truth["records"] if record["position"] < end
    ]
    if error is None:
        assert (done.status, done.err) == (0, "")
        return
    assert done.status == (2 if f"active/{segment.stem}" in WRONG_KEY else 1)
    assert ("probably the wrong key" in done.err) is (done.status == 2)
    fields = dict(line.split(maxsplit=1) for line in done.err.splitlines()[1:])
    assert str(segment) in done.err.splitlines()[0]
    assert fields["offset"].replace(",", "") == str(error["offset"])
    assert fields["cause"].startswith(f"{error['cause']}: ")
    assert fields["expected"]
    assert fields["actual"]
    assert ("--on-damage skip" if done.status == 1 else "--key-file") in fields["next"]


def test_people_get_one_line_a_record(vectors: Path) -> None:
    segment = vectors / "active" / "typical.bin"
    records = expected(segment)["records"]
    lines = here("cat", segment).out.splitlines()
    assert len(lines) == len(records)
    assert [int(line.split()[0]) for line in lines] == [record["position"] for record in records]
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("form", [None, "base64", "hex", "text", "json"])
def test_every_form_of_a_value_loses_nothing(form: str | None, values: Callable[..., Path]) -> None:
    contents = [
        b"",
        b"plain",
        "größe \x1b[31m\u202e".encode(),
        b"\xff\xfe",
        b'{"a": 1}',
        b" [1, 2]\r\n",
        b'{"a": 1.10000000000000000000001, "a": 1e400}',
        b'"' + b"9" * 5000 + b'"',
        b"9" * 5000,
        b"NaN",
        b"[" * 100_000,
        b'"\\ud800"',
        '{"k": "\u2028\x7f"}'.encode(),
        b"null",
    ]
    arguments = () if form is None else ("--value", form)
    lines = here("cat", "--json", *arguments, values(*contents)).out.splitlines()
    assert len(lines) == len(contents)
    for line, content in zip(lines, contents, strict=True):
        assert line.isascii()
        assert line.isprintable()
        fields = json.loads(line, parse_float=str, parse_int=str)
        if "value_base64" in fields:
            assert form in ("text", "json")
            assert "value" not in fields
            assert base64.b64decode(fields["value_base64"]) == content
        elif form == "json":
            assert fields["value"] == json.loads(content, parse_float=str, parse_int=str)
            # Not read and written again: every digit and every repeated name is still there.
            assert content.decode().strip().encode("ascii", "ignore") in line.encode() or not content.isascii()
        elif form == "text":
            assert fields["value"].encode() == content
        else:
            assert (bytes.fromhex if form == "hex" else base64.b64decode)(fields["value"]) == content


@pytest.mark.parametrize(("content", "is_json"), [(b"NaN", False), (b"", False), (b"null", True), (b"\xff", False)])
def test_a_value_that_is_no_json_is_told_by_its_key(content: bytes, is_json: bool, values: Callable[..., Path]) -> None:
    [line] = here("cat", "--json", "--value", "json", values(content)).json_lines()
    assert ("value" in line, "value_base64" in line) == (is_json, not is_json)


def test_hostile_types_and_values_reach_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "hostile.active"
    hostile = "\x1b]0;owned\x07\x1b[2J\r\n[red]x[/red]\u202e\u2028\x9b31m".encode()
    with library.create(path, format="active") as writer:
        writer.write(uuid=library.uuid6(), type=hostile, value=hostile)
        writer.write(uuid=library.uuid6(), type=b"\xff\x00\x7f", value=b"\xff\x00\x7f")
    for arguments in (
        ["cat"],
        ["cat", "--json"],
        ["cat", "--json", "--value", "text"],
        ["info", "--count"],
        ["verify"],
    ):
        done = here(*arguments, path)
        assert done.status == 0
        assert all(line.isprintable() for line in (done.out + done.err).split("\n"))
    people = here("cat", path).out
    assert len(people.splitlines()) == 2
    assert people.count("[red]x[/red]") == 2
    first = here("cat", "--json", "--value", "text", path).json_lines()[0]
    assert first["value"].encode() == hostile


@pytest.mark.skipif(sys.platform == "win32", reason="Windows allows no such names")
def test_a_file_name_is_hostile_too(tmp_path: Path) -> None:
    path = tmp_path / "\x1b[31mred\nline\udcff"
    for name in ("info", "cat", "verify"):
        done = here(name, path)
        assert done.status == 2
        assert done.err.count("\n") == 1
        assert "\\x1b[31mred\\nline\\xff" in done.err
        assert done.err.rstrip("\n").isprintable()


def test_at_starts_with_the_record_there(vectors: Path) -> None:
    segment = vectors / "active" / "typical.bin"
    positions = [record["position"] for record in expected(segment)["records"]]
    for at in (str(positions[4]), hex(positions[4])):
        done = here("cat", "--json", "--at", at, segment)
        assert [line["position"] for line in done.json_lines()] == positions[4:]


def test_at_where_no_record_begins_is_an_error(vectors: Path) -> None:
    segment = vectors / "active" / "typical.bin"
    done = here("cat", "--at", "1", segment)
    assert (done.status, done.out) == (1, "")
    assert "no record begins at --at" in done.err
    nbytes = segment.stat().st_size
    assert here("cat", "--at", str(nbytes), segment).status == 0
    past = here("cat", "--at", str(nbytes + 1), segment)
    assert past.status == 2
    assert (
        past.err == f"seglake: {segment}: --at is {nbytes + 1:,}: expected at most the file's size, {nbytes:,} bytes\n"
    )
    damaged = here("cat", "--at", "0", vectors / "active" / "flip_last_record.bin")
    assert damaged.status == 1
    assert "--at" not in damaged.err


def test_limit(vectors: Path) -> None:
    segment = vectors / "active" / "typical.bin"
    whole = here("cat", segment).out.splitlines()
    assert here("cat", "--limit", "3", segment).out.splitlines() == whole[:3]
    assert here("cat", "--limit", "0", segment).out == ""
    assert len(here("cat", "--limit", str(len(whole) + 3), segment, segment).out.splitlines()) == len(whole) + 3


def test_a_limit_in_front_of_the_damage_meets_none(vectors: Path) -> None:
    done = here("cat", "--limit", "1", vectors / "active" / "flip_last_record.bin")
    assert (done.status, done.err) == (0, "")


@pytest.mark.parametrize("by", ["time", "offset from UTC", "uuid"])
def test_since_and_until_are_half_open(by: str, vectors: Path) -> None:
    segment = vectors / "active" / "typical.bin"
    records = here("cat", "--json", segment).json_lines()
    name = "uuid" if by == "uuid" else "timestamp"
    since, until = records[2][name], records[5][name]
    if by == "offset from UTC":
        since, until = (bound.replace("Z", "+00:00") for bound in (since, until))
    done = here("cat", "--json", "--since", since, "--until", until, segment)
    assert done.json_lines() == records[2:5]


def test_columns_choose_fields_and_their_order(vectors: Path) -> None:
    segment = vectors / "active" / "typical.bin"
    lines = here("cat", "--json", "--columns", "type, position,path", segment).json_lines()
    assert all(list(line) == ["type", "position", "path"] for line in lines)
    assert {line["path"] for line in lines} == {str(segment)}
    people = here("cat", "--columns", "uuid", "--limit", "1", segment).out
    assert people == f"{here('cat', '--json', '--limit', '1', segment).json_lines()[0]['uuid']}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--columns", "colour"], "colour"),
        (["--format", "parchment"], "parchment"),
        (["--since", "tomorrow"], "expected a time such as"),
        (["--where", "type = a OR type = b"], "joined by AND"),
        (["--at", "-1"], "expected an offset"),
        (["--at", "0", "other.active"], "--at"),
        (["--limit", "-1"], "--limit"),
        (["--value", "xml"], "--value"),
        (["--on-damage", "ignore"], "--on-damage"),
        (["--spool-limit", "1.5"], "expected a number of bytes"),
        (["--spool-limit", "0"], "at least one byte"),
        (["--key-file", "absent"], "absent"),
        (["--key", "00" * 32], "--key"),
    ],
)
def test_what_is_wrong_with_an_argument_is_said(arguments: list[str], said: str, vectors: Path) -> None:
    done = here("cat", *arguments, vectors / "active" / "typical.bin")
    assert done.status == 2
    assert said in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


def test_a_record_over_the_limit_names_the_option(values: Callable[..., Path]) -> None:
    done = here("cat", "--limits", "record_bytes=64KiB", values(b"small", b"x" * 100_000))
    assert done.status == 2
    assert len(done.out.splitlines()) == 1
    assert "--limits record_bytes=SIZE" in done.err


@pytest.mark.parametrize("name", ["custom_key", "wrong_key"])
@pytest.mark.parametrize("mode", ["raise", "skip"])
def test_a_wrong_key_is_said_to_be_one(mode: str, name: str, vectors: Path, tmp_path: Path) -> None:
    segment = vectors / "active" / f"{name}.bin"
    key = tmp_path / "key"
    key.write_bytes(b"\x55" * 32)
    for arguments in ([], ["--key-file", key]):
        done = here("cat", "--format", "active", "--on-damage", mode, *arguments, segment)
        assert (done.status, done.out) == (2, "")
        assert "probably the wrong key" in done.err
        assert "--key-file" in done.err


@pytest.mark.parametrize("command", ["cat", "info", "verify", "scrub"])
def test_files_of_several_keys_are_read_together(command: str, tmp_path: Path) -> None:
    keys = [bytes([number]) * 32 for number in (1, 2)]
    arguments: list[str | Path] = []
    for number, key in enumerate(keys):
        (tmp_path / f"{number}.key").write_bytes(key)
        arguments += ["--key-file", tmp_path / f"{number}.key"]
        with library.create(tmp_path / f"{number}.active", format="active", key=key) as writer:
            writer.write(type="t", value=b"x")
    files = sorted(tmp_path.glob("*.active"))
    done = here(command, *arguments, *files)
    assert (done.status, done.err) == (0, "")
    assert here(command, *arguments[:2], *files).status != 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell a writer that its reader is gone")
@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_a_reader_that_goes_away_ends_it_quietly(arguments: list[str], values: Callable[..., Path]) -> None:
    # Far more than any pipe holds.
    segment = values(*[b"x" * 1000] * 2000)
    process = subprocess.Popen(
        command("cat", *arguments, segment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(TIMEOUT_S) == 141


@pytest.fixture
def values(tmp_path: Path) -> Callable[..., Path]:
    """Writes a segment of the given values."""

    def write(*contents: bytes) -> Path:
        path = tmp_path / "values.active"
        with library.create(path, format="active") as writer:
            for content in contents:
                writer.write(uuid=library.uuid6(), type="t", value=content)
        return path

    return write


@pytest.mark.parametrize("quote", ["'", '"'])
def test_the_value_of_a_condition_may_have_quotes(quote: str, tmp_path: Path) -> None:
    with library.create(tmp_path / "a.active", format="active") as writer:
        for kind in ("order.paid", "other"):
            writer.write(type=kind, value=kind)
    done = here("cat", "--columns", "value", "--where", f"type == {quote}order.paid{quote}", tmp_path / "a.active")
    assert (done.status, done.out, done.err) == (0, "order.paid\n", "")


@pytest.mark.parametrize(
    "more",
    [(), ("--json",), ("--on-damage", "skip"), ("--where", "type == order.created"), ("--columns", "path,value")],
)
@pytest.mark.parametrize("number", [0, 1, 3, 1000])
def test_the_last_records_are_those_that_tail_would_leave(vectors: Path, more: tuple[str, ...], number: int) -> None:
    files = [vectors / "active" / f"{name}.bin" for name in ("typical", "flip_message", "minimal")]
    whole = here("cat", *more, *files)
    done = here("cat", "--last", str(number), *more, *files)
    assert (done.status, done.err) == (whole.status, whole.err)
    assert done.out.split() == "".join(whole.out.splitlines(keepends=True)[-number:] if number else []).split()


@pytest.mark.parametrize("other", [("--limit", "1"), ("--at", "0"), ("--get", "1")])
def test_the_last_records_are_those_of_a_whole_walk(vectors: Path, other: tuple[str, ...]) -> None:
    done = here("cat", "--last", "1", *other, vectors / "active" / "typical.bin")
    assert (done.status, done.out) == (2, "")
    assert "leave out --limit, --at and --get" in done.err


@pytest.mark.parametrize(
    "arguments", [("--type", "order.*"), ("--type", "'order.paid'"), ("--where", "type == order.*")]
)
def test_that_nothing_matched_is_said_of_what_looks_like_a_pattern(arguments: tuple[str, str], tmp_path: Path) -> None:
    with library.create(tmp_path / "a.active", format="active") as writer:
        writer.write(type="order.paid", value="")
    for name, *more in (("cat",), ("export", "-")):
        done = here(name, *arguments, tmp_path / "a.active", *more)
        assert (done.status, done.out) == (0, "")
        assert done.err.startswith("seglake: no record matched: ")
        assert "is compared as it is written" in done.err
    assert here("cat", "--type", "other", tmp_path / "a.active").err == ""
