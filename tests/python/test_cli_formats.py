"""The command line on every golden file of every format: what it prints is what the golden files say."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cli_process import here
from golden import Case, cases, every

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXTS = ("type", "tenant")


def how(case: Case, tmp_path: Path) -> list[str | Path]:
    """The arguments that a golden file is read with."""
    arguments: list[str | Path] = ["--format", case.format]
    if "key" in case.options:
        key = tmp_path / "key"
        key.write_bytes(case.options["key"])
        arguments += ["--key-file", key]
    if case.dialect is not None:
        arguments += ["--dialect", case.dialect]
    if case.format == "chunked":
        arguments += ["--index", case.index or "none"]
    return arguments


def truth_of(value: bytes) -> str | dict[str, Any]:
    """Bytes as a golden file shows them."""
    return value.hex() if len(value) <= 96 else {"sha256": hashlib.sha256(value).hexdigest(), "length": len(value)}


def as_truth(name: str, value: Any) -> Any:
    """A field of a line of JSON as a golden file shows it."""
    if isinstance(value, list):
        return [as_truth(name, item) for item in value]
    if isinstance(value, dict):
        return {inner: as_truth(inner, item) for inner, item in value.items()}
    if not isinstance(value, str):
        return value
    if name == "uuid":
        return value.replace("-", "")
    if name == "timestamp":
        return (datetime.fromisoformat(value) - EPOCH) // timedelta(microseconds=1)
    if name in TEXTS:
        parts = re.split(r"\\x([0-9a-f]{2})", value)
        return truth_of(b"".join(bytes.fromhex(p) if at % 2 else p.encode() for at, p in enumerate(parts)))
    return truth_of(base64.b64decode(value, validate=True))


def line_as_truth(line: dict[str, Any]) -> dict[str, Any]:
    return {name.removesuffix("_us"): as_truth(name, value) for name, value in line.items()}


@every()
def test_every_record_is_a_line_of_json(case: Case, tmp_path: Path) -> None:
    done = here("cat", "--json", "--on-damage", "skip", *how(case, tmp_path), case.path)
    assert [line_as_truth(line) for line in done.json_lines()] == case.records()
    assert done.status == case.status
    assert ("probably the wrong key" in done.err) is (done.status == 2)
    if done.status == 1:
        skipped = [span for span in case.expected["ledger"] if span[3] and span[2] != "record"]
        kept = [span for span in case.expected["ledger"] if span[3] and span[2] == "record"]
        assert ("skipped" in done.err) is bool(skipped)
        assert ("with something missing" in done.err) is bool(kept)


@every()
def test_strict_reading_ends_at_the_first_damage(case: Case, tmp_path: Path) -> None:
    done = here("cat", "--json", *how(case, tmp_path), case.path)
    error = case.expected["strict_error"]
    assert done.status == case.status
    assert ("probably the wrong key" in done.err) is (done.status == 2)
    if error is None:
        assert len(done.json_lines()) == len(case.records())
    else:
        fields = dict(line.split(maxsplit=1) for line in done.err.splitlines()[1:])
        assert int(fields["offset"].replace(",", "")) == error["offset"]
        assert fields["cause"].startswith(f"{error['cause']}: ")
        assert "expected" in fields
        assert "actual" in fields


@every()
def test_people_see_each_record_on_a_line(case: Case, tmp_path: Path) -> None:
    done = here("cat", "--on-damage", "skip", *how(case, tmp_path), case.path)
    lines = done.out.splitlines()
    assert [int(line.split()[0]) for line in lines] == [record["position"] for record in case.records()]
    assert all(line.isprintable() for line in lines)


@every()
def test_verify_tells_the_ledger_and_the_index(case: Case, tmp_path: Path) -> None:
    [report] = here("verify", "--json", *how(case, tmp_path), case.path).json_lines()
    damage = [span for span in case.expected["ledger"] if span[3] is not None]
    assert [[span["start"], span["end"], span["kind"], span["cause"]] for span in report["damage"]] == damage
    assert report["nbytes"] == case.expected["size"] == sum(total["nbytes"] for total in report["totals"])
    assert report["records"] == len(case.records())
    assert report["checked"] in ("checksum", "structure")
    if case.format == "sealed":
        assert report["checked"] == case.expected["checked"]
    if case.index is None:
        assert report["index"] is None
    else:
        index = case.expected["index"]
        bad = [span for span in index["ledger"] if span[3] is not None]
        assert [list(span.values()) for span in report["index"]["damage"]] == bad
        assert (report["index"]["nbytes"], report["index"]["items"]) == (index["size"], len(index["items"]))
        assert report["index"]["path"] == str(case.index)


@every()
def test_the_full_verdict_has_every_kind_and_what_to_do(case: Case, tmp_path: Path) -> None:
    done = here("verify", *how(case, tmp_path), case.path)
    damage = [span for span in case.expected["ledger"] if span[3] is not None]
    assert done.status == case.status
    assert ("probably the wrong key" in " ".join(done.out.split())) is (done.status == 2)
    if done.status == 2:
        return
    rows = [line.split() for line in done.out.splitlines()]
    for kind in {span[2] for span in case.expected["ledger"]}:
        assert damage or any(row[:1] == [kind] for row in rows), f"{kind} is in no total"
    for (kind, cause), group in itertools.groupby(damage, lambda span: (span[2], span[3])):
        spans = [(start, end) for start, end, *_ in group]
        for run in [spans] if len(spans) > 2 else [[span] for span in spans]:
            nbytes = sum(end - start for start, end in run)
            assert [f"{run[0][0]:,}", f"{run[-1][1]:,}", f"{nbytes:,}", kind, cause] in [row[:5] for row in rows]
    # Whoever reads it knows what happened first, and what to do second.
    # What is wrong with the index of a sound log is said after that.
    first = " ".join(done.out.partition("\n\n")[0].split()).partition(" also: ")[0]
    verdict = ": not read with the right dialect: " if "another dialect (" in first else ": damaged: "
    assert (verdict in first, "Lost: " in first) == (bool(damage), bool(damage))


@every()
def test_info_reads_every_file(case: Case, tmp_path: Path) -> None:
    done = here("info", "--json", *how(case, tmp_path), case.path)
    [facts] = done.json_lines()
    assert (facts["format"], facts["confidence"], facts["nbytes"]) == (case.format, "given", case.expected["size"])
    assert facts["dialect"] == case.dialect
    if case.format == "tenant" and case.expected["strict_error"] is None:
        blocks = case.expected["blocks"]
        # A partition may have no tenants in version 1, and then no block.
        bare = int(case.path.stem == "partition_without_tenants_v1")
        assert facts["partitions"] == len({block["partition"] for block in blocks}) + bare
        assert facts["tenants"] == len({str(block["tenant"]) for block in blocks})
    if facts["first_record"] is not None:
        assert facts["first_record"]["position"] == case.records()[0]["position"]
    people = here("info", "--count", *how(case, tmp_path), case.path)
    assert people.out.splitlines()[0] == str(case.path)
    assert all(line.isprintable() for line in people.out.splitlines())
    assert people.status == case.status
    assert facts["wrong_key"] is (case.status == 2)


def test_a_dangling_reference_is_named_beside_its_record(vectors: Path) -> None:
    path = next((vectors / "oplog").glob("reference_far_11.bin"))
    how = ["--format", "oplog", "--dialect", "draft-1.1", "--on-damage", "skip"]
    done = here("cat", "--json", "--columns", "position,cause,clock", *how, path)
    truth = next(case for case in cases() if case.path == path).expected
    caused = {span[0]: span[3] for span in truth["ledger"] if span[2] == "record" and span[3]}
    assert caused
    assert done.status == 1
    assert {line["position"]: line["cause"] for line in done.json_lines() if line["cause"]} == caused
    for line in done.json_lines():
        assert any(entry["key"] is None for entry in line["clock"]) is (line["position"] in caused)
    assert "dangling_reference: a reference points nowhere" in done.err
    strict = here("cat", *how[:-2], path)
    assert (strict.status, "dangling_reference" in strict.err) == (1, True)
