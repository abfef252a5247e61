"""`seglake info`."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_process import here
from cli_samples import sample

import seglake as library


def expected(segment: Path) -> dict[str, Any]:
    return json.loads(segment.with_suffix(".json").read_text())


def test_json_has_the_facts(vectors: Path) -> None:
    segment = vectors / "active" / "typical.bin"
    truth = expected(segment)
    [facts] = here("info", "--json", segment).json_lines()
    first = truth["records"][0]
    assert (facts["path"], facts["nbytes"], facts["format"]) == (str(segment), truth["size"], "active")
    assert facts["confidence"] == "certain"
    assert facts["reason"]
    assert [column["name"] for column in facts["columns"]] == ["uuid", "timestamp", "type", "value"]
    assert facts["first_record"]["position"] == 0
    assert facts["first_record"]["uuid"].replace("-", "") == first["uuid"]
    assert facts["first_record"]["value_bytes"] == first["value"]["length"]
    assert facts["report"] is None
    assert facts["damage"] is None


def test_count_adds_the_report(vectors: Path) -> None:
    segment = vectors / "active" / "flip_message.bin"
    done = here("info", "--json", "--count", segment)
    [facts] = done.json_lines()
    [report] = here("verify", "--json", segment).json_lines()
    assert report.pop("diagnoses")
    assert report.pop("reason") is None
    assert {**facts["report"], "index": facts["index"], "log": facts["log"]} == report
    assert done.status == 1


def test_people_see_the_same_facts(vectors: Path) -> None:
    segment = vectors / "active" / "typical.bin"
    records = expected(segment)["records"]
    assert "not counted" in here("info", segment).out
    out = here("info", "--count", segment).out
    assert out.splitlines()[0] == str(segment)
    facts = {line[:15].strip(): line[16:] for line in out.splitlines()[1:]}
    assert facts["format"].startswith("active (certain: ")
    assert facts["records"] == str(len(records))
    assert facts["damage"] == "none"
    last = list(library.open(segment))[-1].timestamp
    assert last is not None
    assert facts["last record"] == last.isoformat().replace("+00:00", "Z")


def test_the_file_is_not_read_whole_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "late-damage.active"
    with library.create(path, format="active") as writer:
        for _ in range(40_000):
            writer.write(uuid=library.uuid6(), type="t", value=b"x" * 1000)
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    done = here("info", "--json", path)
    assert (done.status, done.json_lines()[0]["damage"]) == (0, None)
    assert here("info", "--count", path).status == 1


def test_damage_at_the_beginning_is_said(vectors: Path) -> None:
    done = here("info", "--json", "--format", "active", vectors / "active" / "flip_first_record.bin")
    [facts] = done.json_lines()
    assert done.status == 1
    assert facts["first_record"] is None
    error = expected(vectors / "active" / "flip_first_record.bin")["strict_error"]
    assert facts["damage"] == {"byte_offset": error["offset"], "cause": error["cause"]}
    assert "damaged at offset 0" in here("info", "--format", "active", vectors / "active" / "flip_first_record.bin").out


@pytest.mark.parametrize("arguments", [[], ["--count"]])
def test_a_wrong_key_is_no_damage(arguments: list[str], vectors: Path) -> None:
    segment = vectors / "active" / "custom_key.bin"
    done = here("info", "--json", *arguments, segment)
    [facts] = done.json_lines()
    assert (done.status, facts["wrong_key"], facts["damage"]) == (2, True, None)
    out = here("info", *arguments, segment).out
    assert "probably the wrong key" in out
    assert "damage " not in out


def test_an_unknown_format_is_trouble_with_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "noise"
    path.write_bytes(bytes(range(256)) * 4)
    done = here("info", "--json", path)
    [facts] = done.json_lines()
    assert (done.status, facts["format"], facts["confidence"]) == (2, None, "unknown")
    assert f"format        unknown: {facts['reason']}\n" in here("info", path).out
    assert facts["reason"].endswith("; --format NAME reads it as one")


@pytest.mark.parametrize(("variable", "said"), [(None, "the public default key"), ("00" * 32, "from SEGLAKE_KEY")])
def test_which_key_is_used_is_said_and_the_key_is_not(variable: str | None, said: str, vectors: Path) -> None:
    env = {} if variable is None else {"SEGLAKE_KEY": variable}
    out = here("info", vectors / "active" / "typical.bin", env=env).out
    assert said in out
    assert "00" * 32 not in out


def test_every_file_has_its_own_paragraph(vectors: Path) -> None:
    files = [vectors / "active" / "minimal.bin", vectors / "active" / "typical.bin"]
    out = here("info", *files).out
    assert [paragraph.splitlines()[0] for paragraph in out.split("\n\n")] == [str(file) for file in files]
    assert len(here("info", "--json", *files).json_lines()) == 2


def test_the_sidecar_of_a_file_is_told(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    size = path.stat().st_size
    assert library.parity.coverage(path) is None
    assert here("info", "--json", path).json_lines()[0]["sidecar"] is None
    assert ".par" not in here("info", path).out
    made = library.protect(path, profile="128+4")
    coverage = library.parity.coverage(path)
    assert coverage is not None
    assert coverage.to_dict() == {
        "sidecar": f"{path}.par",
        "sidecar_bytes": made.sidecar_bytes,
        "profile": "128+4",
        "covered_bytes": size,
        "nbytes": size,
        "state": "covered",
    }
    done = here("info", "--json", path)
    assert (done.status, done.json_lines()[0]["sidecar"]) == (0, coverage.to_dict())
    assert f"{path}.par (128+4, {made.sidecar_bytes:,} bytes" in here("info", path).out
    assert ") covers all of it" in here("info", path).out
    assert "sidecar 128+4" in here("info", tmp_path).out
    # It is verified neither here nor there: that is what `verify` does.
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"?")
    assert here("info", path).status == 0
    path.write_bytes(content + b"\0")
    done = here("info", path)
    assert (done.status, "`seglake protect` covers what was appended" in done.out) == (0, True)
    assert "sidecar 128+4 of less" in here("info", tmp_path).out
    path.write_bytes(content[:-1])
    done = here("info", path)
    assert (done.status, "the end of the file is missing" in done.out) == (1, True)
    folder = here("info", tmp_path)
    assert (folder.status, "damaged" in folder.out) == (1, True)
    path.write_bytes(content)
    elsewhere = tmp_path.parent / f"{tmp_path.name}.elsewhere"
    Path(f"{path}.par").rename(elsewhere)
    assert here("info", "--json", path).json_lines()[0]["sidecar"] is None
    facts = here("info", "--json", "--sidecar", elsewhere, path).json_lines()[0]["sidecar"]
    assert (facts["sidecar"], facts["state"]) == (str(elsewhere), "covered")
    assert library.parity.coverage(path.read_bytes(), sidecar=elsewhere.read_bytes()) == (None, *coverage[1:])
    elsewhere.write_bytes(b"no sidecar")
    elsewhere.rename(f"{path}.par")
    done = here("info", path)
    assert (done.status, "is not a parity sidecar" in done.out) == (1, True)
    assert here("info", "--sidecar", "none", path).status == 0
    assert here("info", "--sidecar", f"{path}.par", path, path).status == 2
    # An empty one says nothing, to `verify` either.
    Path(f"{path}.par").write_bytes(b"")
    done = here("info", path)
    assert (done.status, "is empty and covers nothing" in done.out) == (0, True)
    assert here("verify", path).status == 0


def test_a_format_is_told_by_the_sidecar_where_the_beginning_is_damaged(tmp_path: Path) -> None:
    path = sample(tmp_path, "active").rename(tmp_path / "unnamed")
    library.protect(path)
    content = path.read_bytes()
    path.write_bytes(bytes(40) + content[40:])
    assert library.detect(path).format is None
    facts = here("info", "--json", path).json_lines()[0]
    assert (facts["format"], facts["confidence"]) == ("active", "certain")
    assert here("info", "--sidecar", "none", path).status == 2


def test_what_is_no_segment_in_spite_of_its_name(tmp_path: Path) -> None:
    for name, content in (("a.sealed", gzip.compress(b"a" * 500)), ("b.active", b"<!DOCTYPE html><html>\n")):
        path = tmp_path / name
        path.write_bytes(content)
        [facts] = here("info", "--json", path).json_lines()
        assert (facts["format"], facts["confidence"], facts["columns"]) == (None, "unknown", None)
        assert facts["reason"].startswith(f"by its name {name[2:]}, by its content ")
        assert here("info", path).status == 2


@pytest.mark.parametrize(
    ("format", "change", "title"),
    [
        ("sealed", lambda data: b"", "empty file"),
        ("tenant", lambda data: b"", "empty file"),
        ("sealed", lambda data: bytes(1 << 10), "only zeros"),
        ("sealed", lambda data: bytes(1 << 17), "only zeros"),
        ("active", lambda data: b"".join(data[at : at + 4][::-1] for at in range(0, len(data), 4)), "bytes in reverse"),
    ],
    ids=["empty sealed", "empty tenant", "zeros", "many zeros", "byte order"],
)
def test_what_is_said_of_a_file_is_of_what_was_read(
    format: str, change: Callable[[bytes], bytes], title: str, tmp_path: Path
) -> None:
    path = sample(tmp_path, format)
    path.write_bytes(change(path.read_bytes() + b"\0\0\0"))
    [facts] = here("info", "--json", path).json_lines()
    said = facts["reason"].partition(":")[0]
    assert (facts["format"], title in said) == (None, True), facts["reason"]
    is_whole = path.stat().st_size <= 1 << 16
    assert ("by its content" in said, "by its first 65,536 bytes" in said) == (is_whole, not is_whole)
    assert is_whole or "proven" not in said
