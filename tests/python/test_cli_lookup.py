"""`seglake cat --get` and what chooses records, on every format."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cli_process import here
from cli_samples import EXTENSIONS, RECORDS, sample

import seglake as library


def ids(path: Path) -> list[str]:
    """What each record of a sample is found by, as text."""
    with library.open(path) as reader:
        match reader.format:
            case "active" | "sealed":
                return [str(record.uuid) for record in reader]
            case "tenant":
                return [f"{record.partition}/{record.tenant}/{record.index}" for record in reader]
            case "chunked":
                return [str(record.offset) for record in reader]
            case "tfrecord":
                return [str(record.position) for record in reader]
            case _:
                return [str(record.seq) for record in reader]


ABSENT = {
    "active": "1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3",
    "sealed": "1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3",
    "tenant": "7/nobody/0",
    "chunked": "9223372036854775807",
    "oplog": "123456",
    "tfrecord": "1",
}


@pytest.mark.parametrize("format", EXTENSIONS)
def test_records_are_found_in_the_order_asked_for(format: str, tmp_path: Path) -> None:
    path = sample(tmp_path, format)
    known = ids(path)
    lines = here("cat", "--json", path).json_lines()
    done = here("cat", "--json", "--get", known[13], "--get", known[4], "--get", known[13], path)
    assert (done.status, done.err) == (0, "")
    assert done.json_lines() == [lines[13], lines[4], lines[13]]
    assert here("cat", "--get", known[2], "--limit", "0", path).out == ""
    people = here("cat", "--get", known[2], "--columns", "value", path)
    assert people.out == "2\n"


@pytest.mark.parametrize("format", EXTENSIONS)
def test_an_absent_record_is_said_with_status_1(format: str, tmp_path: Path) -> None:
    path = sample(tmp_path, format)
    absent, there = ABSENT[format], ids(path)[5]
    done = here("cat", "--json", "--get", absent, "--get", there, path)
    assert done.status == 1
    assert len(done.json_lines()) == 1
    assert done.err.startswith(f"seglake: {absent}: no such record")
    assert done.err.count("\n") == 1
    assert ("without checksums" in done.err) is (format == "oplog")


def test_a_record_in_one_of_several_files_is_enough(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first, second = sample(tmp_path, "active"), sample(tmp_path / "other", "active")
    wanted = ids(second)[3]
    done = here("cat", "--get", wanted, first, second)
    assert (done.status, done.err, len(done.out.splitlines())) == (0, "", 1)


@pytest.mark.parametrize("format", EXTENSIONS)
@pytest.mark.parametrize("given", ["", "x", "-1", "1/2", "a/b/0", "1.5"])
def test_what_is_no_id_is_said_with_an_example(format: str, given: str, tmp_path: Path) -> None:
    done = here("cat", f"--get={given}", sample(tmp_path, format))
    assert (done.status, done.out) == (2, "")
    assert "are found by" in done.err


def test_a_look_up_leaves_no_room_for_other_choices(tmp_path: Path) -> None:
    path = sample(tmp_path, "chunked")
    for arguments in (["--at", "0"], ["--start-offset", "3"], ["--since", "2024-01-10T16:00:00Z"]):
        done = here("cat", "--get", "1", *arguments, path)
        assert (done.status, done.out) == (2, "")
        assert "--get" in done.err


def test_tenants_of_any_bytes_are_named_as_they_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "some.tenant"
    names = [b"a/b", b"back\\slash", b"\xff", "größe".encode(), b""]
    with library.create(path, format="tenant") as writer:
        for name in names:
            writer.write(partition=3, tenant=name, value=name)
    lines = here("cat", "--json", "--value", "hex", path).json_lines()
    assert {line["value"] for line in lines} == {name.hex() for name in names}
    for line in lines:
        tenant = line["tenant"]
        done = here("cat", "--json", "--value", "hex", "--get", f"3/{tenant}/0", path)
        assert done.json_lines() == [line]
        done = here("cat", "--json", "--value", "hex", "--tenant", tenant, path)
        assert done.json_lines() == [line]
    raw = here("cat", "--json", "--value", "hex", "--tenant", b"\xff", path)
    assert [line["value"] for line in raw.json_lines()] == ["ff"]


def test_parts_are_chosen(tmp_path: Path) -> None:
    tenant, chunked = sample(tmp_path, "tenant"), sample(tmp_path, "chunked")

    def values(*arguments: str | Path) -> list[int]:
        done = here("cat", "--json", "--value", "text", "--columns", "value", *arguments)
        assert (done.status, done.err) == (0, "")
        return [int(line["value"]) for line in done.json_lines()]

    assert values(tenant, "--partition", "1") == list(range(10, 20))
    assert values(tenant, "--tenant", "a") == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    assert values(tenant, "--tenant", "a", "--tenant", "b", "--partition", "0", "--partition", "9") == list(range(10))
    assert values(chunked, "--start-offset", "7", "--end-offset", "9") == [7, 8]
    assert values(chunked, "--start-offset", "18") == [18, 19]
    assert values(chunked, "--since", "2023-11-14T22:13:20.000004Z", "--until", "2023-11-14T22:13:20.000006Z") == [4, 5]
    assert len(values(chunked, tenant, "--limit", str(RECORDS + 3))) == RECORDS + 3


@pytest.mark.parametrize(
    ("format", "arguments", "said"),
    [
        ("active", ["--tenant", "a"], "tenant"),
        ("active", ["--start-offset", "1"], "offset"),
        ("tenant", ["--since", "2024-01-10T16:00:00Z"], "timestamp"),
        ("oplog", ["--partition", "1"], "partition"),
        ("tenant", ["--partition", "4294967296"], "--partition"),
        ("chunked", ["--start-offset", "-1"], "--start-offset"),
        ("active", ["--dialect", "draft", "--format", "active"], "dialect"),
        ("oplog", ["--dialect", "latin", "--format", "oplog"], "latin"),
        ("chunked", ["--index", "absent"], "absent"),
        ("chunked", ["--limits", "chunk_bytes=0"], "at least one byte"),
    ],
)
def test_what_a_format_does_not_have_is_said(format: str, arguments: list[str], said: str, tmp_path: Path) -> None:
    done = here("cat", *arguments, sample(tmp_path, format))
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_chunk_over_the_limit_names_the_option(tmp_path: Path) -> None:
    path = tmp_path / "large.chunks"
    with library.create(path, format="chunked") as writer:
        writer.write(timestamp=0, value=bytes(100_000))
    for verb in ("cat", "verify"):
        done = here(verb, "--limits", "chunk_bytes=64KiB", path)
        assert (done.status, done.out) == (2, "")
        assert "--limits chunk_bytes=SIZE" in done.err
        assert here(verb, "--limits", "chunk_bytes=1MiB", path).status == 0


@pytest.mark.parametrize("format", EXTENSIONS)
def test_people_see_what_tells_records_apart(format: str, tmp_path: Path) -> None:
    [line, *_] = here("cat", sample(tmp_path, format)).out.splitlines()
    expected = {
        "active": ["0", "T", "t0", "0"],
        "sealed": ["504", "T", "t0", "0"],
        "tenant": ["P", "0", "a", "0", "0"],
        "chunked": ["0", "0", "2023-11-14T22:13:20.000000Z", "0"],
        "oplog": ["0", "0", "0"],
        "tfrecord": ["0", "0"],
    }[format]
    words = line.split()
    assert len(words) == len(expected)
    for word, want in zip(words, expected, strict=True):
        assert want in (word, "T", "P"), line


def test_structures_are_compact_json_for_people_and_exact_for_programs(tmp_path: Path) -> None:
    path = tmp_path / "clock.oplog"
    clock = [{"key": bytes(range(32)), "length": 2**64 - 1}]
    checkpoint = {"tree_hash": b"\xff" * 32, "length": 2**63}
    with library.create(path, format="oplog") as writer:
        writer.write(
            version=1, checkpointer=0, checkpoint=checkpoint, clock=clock, abi=2**64 - 1, batch=0, value=b"\x01"
        )
    columns = ["--columns", "clock,checkpoint,abi,value"]
    key = bytes(range(32))
    assert f'[{{"key":"{key.hex()}","length":18446744073709551615}}]' in here("cat", *columns, path).out
    in_base64 = here("cat", *columns, "--value", "base64", path).out
    assert '"key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="' in in_base64
    [line] = here("cat", "--json", path).json_lines()
    assert line["abi"] == 2**64 - 1
    assert line["clock"] == [{"key": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "length": 2**64 - 1}]
    assert line["checkpoint"]["length"] == 2**63


def test_no_value_is_told_from_a_null_value(tmp_path: Path) -> None:
    path = tmp_path / "values.oplog"
    how: Any = {"format": "oplog", "options": {"dialect": "autobase"}}
    with library.create(path, **how) as writer:  # pyright: ignore[reportArgumentType]
        for value in (None, b"null"):
            writer.write(version=2, clock=[], batch=1, value=value)
    reading = ["--dialect", "autobase", path]
    people = here("cat", "--columns", "value", *reading).out
    assert people.splitlines() == ["-", "null"]
    first, second = here("cat", "--json", *reading).json_lines()
    assert (first["value"], second["value"]) == (None, "bnVsbA==")
    first, second = here("cat", "--json", "--value", "json", *reading).json_lines()
    assert ("value" in first, "value" in second) == (False, True)
    assert first["value_base64"] is None
    [facts] = here("info", "--json", *reading).json_lines()
    assert facts["first_record"]["value_bytes"] is None


@pytest.mark.parametrize(
    ("format", "where", "expected"),
    [
        ("chunked", ["offset >= 5", "offset<8"], [5, 6, 7]),
        ("chunked", ["offset!=3", "offset <= 0x4"], [0, 1, 2, 4]),
        ("oplog", ["seq > 17"], [18, 19]),
        ("sealed", ["value == 7"], [7]),
        ("active", ["value = 7"], [7]),
        ("active", ["value = ''"], []),
        ("active", ["value LIKE '1_' AND value > 17"], [18, 19]),
        ("sealed", ["value IN (7, '8')", "timestamp IS NOT NULL"], [7, 8]),
    ],
)
def test_conditions_on_any_column(format: str, where: list[str], expected: list[int], tmp_path: Path) -> None:
    path = sample(tmp_path, format)
    options = [argument for condition in where for argument in ("--where", condition)]
    shown = here("cat", "--json", *options, path)
    assert (shown.status, shown.err) == (0, "")
    values = [base64.b64decode(json.loads(line)["value"]) for line in shown.out.splitlines()]
    assert [int(value) for value in values] == expected
    piped = here("cat", "--json", *options, "-", stdin=path.read_bytes())
    assert (piped.status, len(piped.out.splitlines())) == (0, len(expected))
    if format != "oplog":  # whose messages refer to one another
        new = tmp_path / f"new{path.suffix}"
        assert here("convert", *options, path, new).status == 0
        assert [int(record.value) for record in library.open(new)] == expected


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("type", "COLUMN OP VALUE"),
        ("type ~ a", "COLUMN OP VALUE"),
        (
            "colour == red",
            "by colour: they have no such column, only uuid, timestamp, type, value",
        ),
        ("timestamp >= tomorrow", "--where"),
        ("uuid == 5", "expected a UUID"),
    ],
)
def test_conditions_that_are_none(where: str, said: str, tmp_path: Path) -> None:
    done = here("cat", "--where", where, sample(tmp_path, "active"))
    assert (done.status, done.out) == (2, "")
    assert said in " ".join(done.err.split())
