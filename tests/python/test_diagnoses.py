"""What damage probably comes from: as objects, as JSON, as Arrow, and as text."""

import json
import re
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from cli_process import here, on_terminal, pasted

import seglake as library
from seglake.cli.vocabulary import REASONS

FIELDS = {
    "start": int,
    "end": int,
    "kind": str,
    "cause": (str, type(None)),
    "reason": str,
    "certainty": (str, type(None)),
    "evidence": str,
    "against": str,
    "regained": int,
    "is_sound": bool,
    "missing_bytes": (int, type(None)),
    "missing_records": (int, type(None)),
    "before": (dict, type(None)),
    "after": (dict, type(None)),
    "repairs": list,
    "ranges": list,
    "edits": list,
    "place": list,
    "headline": str,
    "comes_back": (str, type(None)),
    "unreadable_until": (str, type(None)),
    "lost": str,
    "advice": (str, type(None)),
    "command": (str, type(None)),
    "do_not": (str, type(None)),
}
NEIGHBOUR = ["position", "timestamp_us", "id"]
REPAIR = ["byte_offset", "bit", "old", "new", "checks", "start", "end"]


@pytest.fixture
def flipped(vectors: Path) -> Path:
    """Ten records, one bit of the fifth flipped."""
    return vectors / "active" / "flip_message.bin"


def advised(out: str) -> str:
    """The command that `verify` says to be next."""
    [command] = [line.removeprefix("  next      ") for line in out.splitlines() if line.startswith("  next ")]
    return command


def do(command: str, folder: Path) -> None:
    pasted(command, folder).check_returncode()


def log(folder: Path, records: int = 40) -> bytearray:
    """An active segment of records that are told apart by their bytes."""
    path = folder / "sound.active"
    with library.create(path, format="active") as writer:
        for number in range(records):
            value = bytes((number * 37 + place * 11) % 256 for place in range(97))
            # One that the time makes may look like something else once its bytes are swapped.
            writer.write(uuid=UUID(f"1eebfcba-d310-6000-8000-{number:012x}"), type="note", value=value)
    return bytearray(path.read_bytes())


def test_damage_is_explained_unless_that_is_not_wanted(flipped: Path) -> None:
    assert library.verify(flipped).diagnoses == library.verify(flipped, explain=True).diagnoses
    for nothing in (False, 0, None):
        assert library.verify(flipped, explain=nothing).diagnoses == []
    assert len(library.verify(flipped, explain=True).diagnoses) == 1
    assert library.verify(flipped.with_name("typical.bin"), explain=True).diagnoses == []


@pytest.mark.parametrize("wrong", [-1, "all", 1.5])
def test_what_is_no_number_of_ranges(flipped: Path, wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="explain"):
        library.verify(flipped, explain=wrong)


def test_a_flipped_bit(flipped: Path, tmp_path: Path) -> None:
    before = flipped.read_bytes()
    report = library.verify(flipped, explain=True)
    [own] = report.diagnoses
    assert isinstance(own, library.types.Diagnosis)
    assert [tuple(own[:4])] == [tuple(span) for span in report.damage]
    assert (own.reason, own.certainty) == ("flipped_bit", "proven")
    [repair] = own.repairs
    assert repair.old ^ repair.new == 1 << repair.bit
    assert (repair.start, repair.end, repair.checks) == (own.start, own.end, "record")
    with pytest.warns(library.exceptions.DamageWarning):
        records = {record.position: record for record in library.open(flipped, on_damage="skip")}
    for neighbour in (own.before, own.after):
        assert isinstance(neighbour, library.types.Neighbour)
        record = records[neighbour.position]
        assert (neighbour.id, neighbour.timestamp_us) == ({"uuid": record.uuid}, record.timestamp_us)
        assert isinstance(neighbour.id["uuid"], UUID)
    assert flipped.read_bytes() == before
    # The proposal as the text has it, in a copy.
    copy = tmp_path / "copy.active"
    copy.write_bytes(before)
    do(advised(here("verify", copy).out), tmp_path)
    assert copy.read_bytes() == before
    mended = tmp_path / "copy-sound.active"
    assert library.verify(mended).ok
    assert len(mended.read_bytes()) == len(before)


def test_arrow_has_every_range(tmp_path: Path) -> None:
    content = log(tmp_path)
    for at in range(60, 3000, 500):
        content[at : at + 9] = b"\x5a" * 9
    content[4000] ^= 1
    report = library.verify(content, format="active", explain=3)
    table: Any = pa.table(report)
    assert table.num_rows == len(report.damage) > 3
    rows = table.to_pylist()
    assert [(row["start"], row["end"], row["kind"], row["cause"]) for row in rows] == [
        tuple(span) for span in report.damage
    ]
    explained = [row for row in rows if row["reason"] is not None]
    assert len(explained) == len(report.diagnoses) == 3
    for row, own in zip(explained, report.diagnoses, strict=True):
        assert (row["reason"], row["certainty"], row["evidence"], row["against"]) == own[4:8]
        for side in ("before", "after"):
            neighbour = getattr(own, side)
            assert (row[side] is None) == (neighbour is None)
            assert neighbour is None or row[side]["uuid"] == str(neighbour.id["uuid"])
        assert [tuple(repair.values()) for repair in row["repairs"]] == [tuple(repair) for repair in own.repairs]
    assert pa.schema(report) == table.schema
    whole: Any = pa.table(library.verify(content, format="active", explain=True))
    assert whole.column("repairs").to_pylist()[-1][0]["byte_offset"] == 4000


def test_a_sound_report_is_an_empty_table(tmp_path: Path) -> None:
    table: Any = pa.table(library.verify(bytes(log(tmp_path)), explain=True))
    assert table.num_rows == 0
    assert table.column_names[:4] == ["start", "end", "kind", "cause"]


@pytest.mark.parametrize("format", ["active", "sealed", "tenant", "chunked", "oplog", "tfrecord"])
def test_json_has_always_the_same_fields(vectors: Path, format: str) -> None:
    seen = 0
    for segment in sorted((vectors / format).glob("*.bin")):
        truth = json.loads(segment.with_suffix(".json").read_text())
        options = truth.get("options", {})
        dialect = ["--dialect", options["options"]["dialect"]] if "options" in options else []
        is_damaged = any(span[3] for span in truth["ledger"])
        if seen >= 12 or not is_damaged or options.get("key", "").strip("0"):
            continue
        [report] = here("verify", "--json", "--format", format, *dialect, segment).json_lines()
        assert len(report["diagnoses"]) == len(report["damage"])
        for own, span in zip(report["diagnoses"], report["damage"], strict=True):
            assert list(own) == list(FIELDS)
            assert all(isinstance(own[name], kind) for name, kind in FIELDS.items())
            assert {name: own[name] for name in span} == span
            assert (own["certainty"] is None) == (own["reason"] == "unknown")
            assert own["reason"] in REASONS
            for side in ("before", "after"):
                assert own[side] is None or list(own[side]) == NEIGHBOUR
            assert all(list(repair) == REPAIR for repair in own["repairs"])
        seen += 1
    assert seen


def test_neighbours_of_a_tenant_with_a_hostile_name(tmp_path: Path) -> None:
    path = tmp_path / "a.tenant"
    tenants = ["a\x1b[31m", "b\n", "c\u202e"]
    with library.create(path, format="tenant") as writer:
        for tenant in tenants:
            writer.write(partition=1, tenant=tenant, value=b"0123456789" * 5)
    content = bytearray(path.read_bytes())
    content[content.index(b"b\n", 200) + 20] ^= 6
    path.write_bytes(content)
    done = here("verify", path)
    assert done.status == 1
    assert "\x1b" not in done.out and "\u202e" not in done.out
    assert r"1/a\x1b[31m/0" in done.out and r"1/c\u202e/0" in done.out


def test_the_list_of_reasons_is_the_documents() -> None:
    document = (Path(__file__).parents[2] / "docs" / "verify.md").read_text()
    rows = document[document.index("| `reason` |") :].splitlines()[2:]
    named = {word for row in rows if row.startswith("| ") for word in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == set(REASONS)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
@pytest.mark.parametrize("columns", [80, 120])
def test_text_keeps_to_the_terminal(tmp_path: Path, columns: int) -> None:
    content = log(tmp_path)
    content[4000] ^= 1
    content[1024:1536] = bytes(512)
    content[2500:2520] = b"!" * 20
    path = tmp_path / "damaged.active"
    path.write_bytes(content)
    out, _ = on_terminal("verify", path, columns=columns, env={"NO_COLOR": "1"})
    # The file's name and commands are whole, whatever their length.
    lines = [line for line in out.partition(f"{path}:")[2].splitlines() if not line.startswith("  next      ")]
    assert all(len(line) <= columns for line in lines)
    assert "single flipped bit (proven)" in out


def test_many_ranges_are_no_wall_of_text(tmp_path: Path) -> None:
    content = log(tmp_path, 1000)
    step = len(content) // 1000
    for number in range(0, 1000, 2):
        content[number * step + 60] ^= 2
    path = tmp_path / "damaged.active"
    path.write_bytes(content)
    out = here("verify", path).out
    assert len(out.splitlines()) < 70
    assert "  ranges    100, see --json" in out
    none = here("verify", "--explain", "0", path).out
    assert "flipped bit" not in none


def test_a_tail_that_was_not_cut_off_is_not_to_be_cleared(tmp_path: Path) -> None:
    content = log(tmp_path)
    content[-30] ^= 1
    path = tmp_path / "damaged.active"
    path.write_bytes(content)
    out = here("verify", path).out
    assert "zero_torn_tail" not in out
    assert advised(out).startswith("cat ")
    path.write_bytes(content[:-7])
    assert "zero_torn_tail" in here("verify", path).out


@pytest.mark.parametrize("what", ["nothing sound", "hello", "noise", "a chunk", "swapped"])
def test_only_a_write_that_was_cut_off_is_to_be_cleared(what: str, tmp_path: Path) -> None:
    """What is said to be cleared is what the writer clears."""
    content, format = bytes(log(tmp_path)), "active"
    noise = bytes((number * number * 7 + number) % 251 + 1 for number in range(3000))
    if what == "a chunk":
        format = "chunked"
        with library.create(tmp_path / "one.chunks", format=format) as writer:
            for number in range(2000):
                writer.write(timestamp=number, value=b"%d" % number * 9)
        damaged = bytearray((tmp_path / "one.chunks").read_bytes())
        damaged[60] ^= 4
        content = bytes(damaged)
    content = {
        "nothing sound": noise,
        "hello": content + b"hello\n",
        "noise": content + noise[:500],
        "a chunk": content,
        "swapped": b"".join(content[at : at + 4][::-1] for at in range(0, len(content), 4)),
    }[what]
    path = tmp_path / "damaged"
    path.write_bytes(content)
    out = here("verify", "--format", format, path).out
    for wrong in ("interrupted", "zero_torn_tail", "clear the tail", "cut off."):
        assert wrong not in out
    with pytest.raises((library.DamageError, library.FormatError)):
        library.create(path, format=format, if_exists="append", zero_torn_tail=True)
    assert path.read_bytes() == content


def test_progress_tells_of_both_readings(tmp_path: Path) -> None:
    content = bytes(log(tmp_path))
    told: list[tuple[int, int]] = []
    damaged = bytearray(content)
    damaged[-30] ^= 1
    library.verify(damaged, explain=True, progress=lambda done, total: told.append((done, total)))
    assert told and all(done <= total == len(damaged) for done, total in told)
    assert told[-1][0] == len(damaged)


def test_what_progress_raises_ends_the_explaining(tmp_path: Path) -> None:
    content = log(tmp_path)
    content[-30] ^= 1
    calls = 0

    def stop(done: int, total: int) -> None:
        nonlocal calls
        calls += done == total
        if calls == 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        library.verify(content, explain=True, progress=stop)
