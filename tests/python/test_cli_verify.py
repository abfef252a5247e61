"""`seglake verify`."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_process import here, seglake
from golden import WRONG_KEY
from loops import looped

import seglake as library

VECTORS = sorted((Path(__file__).parents[1] / "vectors" / "active").glob("*.bin"))


def expected(segment: Path) -> dict[str, Any]:
    return json.loads(segment.with_suffix(".json").read_text())


def damage(truth: dict[str, Any]) -> list[list[Any]]:
    return [span for span in truth["ledger"] if span[3] is not None]


@pytest.fixture
def key_of(tmp_path: Path):
    """Writes the key that a vector was written with to a file."""

    def write(truth: dict[str, Any]) -> Path:
        path = tmp_path / "key"
        path.write_text(truth["options"]["key"] + "\n")
        return path

    return write


@looped("segment", VECTORS, id=lambda path: path.stem)
def test_json_is_the_report_of_every_golden_segment(segment: Path, key_of) -> None:
    truth = expected(segment)
    done = here("verify", "--json", "--format", "active", "--key-file", key_of(truth), segment)
    assert done.err == ""
    [report] = done.json_lines()
    assert report["path"] == str(segment)
    assert report["nbytes"] == truth["size"]
    assert report["records"] == len(truth["records"])
    assert [[span["start"], span["end"], span["kind"], span["cause"]] for span in report["damage"]] == damage(truth)
    assert sum(total["nbytes"] for total in report["totals"]) == truth["size"]
    assert report["ok"] is not bool(damage(truth))
    assert report["wrong_key"] is (f"active/{segment.stem}" in WRONG_KEY)
    assert done.status == (2 if report["wrong_key"] else 1 if damage(truth) else 0)


def test_every_damaged_range_is_in_the_table(vectors: Path) -> None:
    segment = vectors / "active" / "garbage_between.bin"
    done = here("verify", segment)
    assert done.status == 1
    rows = [line.split() for line in done.out.splitlines()]
    for start, end, kind, cause in damage(expected(segment)):
        assert any(row[:5] == [f"{start:,}", f"{end:,}", f"{end - start:,}", kind, cause] for row in rows)


def bar_of(out: str) -> str:
    """The line above the one that begins with offset 0."""
    lines = out.splitlines()
    [scale] = [number for number, line in enumerate(lines) if line.startswith("0 ")]
    return lines[scale - 1]


def test_the_bar_pictures_the_file(vectors: Path) -> None:
    segment = vectors / "active" / "torn_in_body_preallocated.bin"
    truth = expected(segment)
    bar = bar_of(here("verify", segment).out)
    for at, cell in enumerate(bar):
        start, end = at * truth["size"] / len(bar), (at + 1) * truth["size"] / len(bar)
        kinds = {kind for first, last, kind, _ in truth["ledger"] if first < end and last > start}
        want = "~" if "torn_tail" in kinds else "━" if "record" in kinds else "·"
        assert cell == want, f"cell {at} covers {kinds}"


def test_the_smallest_damage_shows_in_the_bar(vectors: Path) -> None:
    segment = vectors / "active" / "flip_uuid.bin"
    assert "X" in bar_of(here("verify", segment).out)


def test_the_bar_is_ascii_where_the_output_is(vectors: Path) -> None:
    done = seglake("verify", vectors / "active" / "torn_in_body_preallocated.bin", env={"PYTHONIOENCODING": "ascii"})
    assert done.out.isascii()
    assert set(bar_of(done.out)) == {"=", "~", "."}


def test_a_torn_tail_and_corruption_come_with_advice(vectors: Path) -> None:
    torn = here("verify", vectors / "active" / "torn_in_body.bin").out.replace("\n", " ")
    assert "interrupted write (likely)" in torn
    assert "zero_torn_tail=True" in torn
    corrupt = here("verify", vectors / "active" / "flip_message.bin").out.replace("\n", " ")
    assert "single flipped bit (proven)" in corrupt
    assert "zero_torn_tail" not in corrupt


def test_a_wrong_key_is_trouble_and_nothing_is_offered_but_the_key(vectors: Path) -> None:
    done = here("verify", vectors / "active" / "custom_key.bin")
    assert done.status == 2
    assert "probably the wrong key" in done.out.replace("\n", " ")
    assert "--key-file" in done.out
    assert "zero" not in done.out
    assert "X" not in done.out
    assert "start" not in done.out


@pytest.mark.parametrize("form", ["hex", "hex with a line break", "raw", "environment"])
def test_every_way_to_give_a_key(form: str, vectors: Path, tmp_path: Path) -> None:
    segment = vectors / "active" / "custom_key.bin"
    digits = expected(segment)["options"]["key"]
    path = tmp_path / "key"
    path.write_bytes({"raw": bytes.fromhex(digits), "hex": digits.encode()}.get(form, digits.encode() + b"\n"))
    if form == "environment":
        done = here("verify", segment, env={"SEGLAKE_KEY": digits})
    else:
        done = here("verify", segment, "--key-file", path)
    assert done.status == 0
    assert digits not in done.out + done.err


def test_the_key_file_goes_before_the_environment(vectors: Path, tmp_path: Path) -> None:
    segment = vectors / "active" / "custom_key.bin"
    path = tmp_path / "key"
    path.write_text(expected(segment)["options"]["key"])
    assert here("verify", segment, "--key-file", path, env={"SEGLAKE_KEY": "ab" * 32}).status == 0


@pytest.mark.parametrize("where", ["file", "environment"])
@pytest.mark.parametrize("secret", ["5ec2e7", "5ec2e7" * 20, "x" * 64])
def test_a_malformed_key_is_refused_and_never_shown(where: str, secret: str, vectors: Path, tmp_path: Path) -> None:
    segment = vectors / "active" / "minimal.bin"
    path = tmp_path / "key"
    path.write_text(secret)
    arguments = ("verify", "--debug", segment, *(("--key-file", path) if where == "file" else ()))
    done = here(*arguments, env={"SEGLAKE_KEY": secret} if where == "environment" else None)
    assert done.status == 2
    assert ("key" if where == "file" else "SEGLAKE_KEY") in done.err
    assert secret not in done.out + done.err


def test_a_file_in_trouble_does_not_stop_the_others(vectors: Path, tmp_path: Path) -> None:
    sound, damaged = vectors / "active" / "minimal.bin", vectors / "active" / "flip_message.bin"
    missing = tmp_path / "missing.active"
    done = here("verify", missing, sound, damaged)
    assert done.status == 2
    assert f"{missing}: No such file or directory" in done.err
    assert f"ok  {sound}" in done.out
    assert f"{damaged}: damaged" in done.out
    assert done.out.splitlines()[-1].startswith("3 files: 1 sound, 1 damaged, 1 unreadable; 10 records, ")
    with_folder = here("verify", missing, sound, damaged, tmp_path)
    assert f"{tmp_path}: no files to read in this folder" in with_folder.err
    assert "4 files: 1 sound, 1 damaged, 2 unreadable; 10 records, " in with_folder.out


def test_json_has_a_line_for_a_file_in_trouble(vectors: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.active"
    done = here("verify", "--json", missing, vectors / "active" / "minimal.bin")
    first, second = done.json_lines()
    assert (first["path"], first["ok"]) == (str(missing), False)
    assert "No such file" in first["error"]
    assert second["ok"] is True
    assert done.status == 2


@pytest.mark.parametrize(
    ("names", "status"),
    [(["minimal"], 0), (["minimal", "nested"], 0), (["minimal", "flip_type"], 1), (["flip_type", "custom_key"], 2)],
)
def test_the_worst_file_decides_the_exit_status(names: list[str], status: int, vectors: Path) -> None:
    assert here("verify", *(vectors / "active" / f"{name}.bin" for name in names)).status == status


def test_quiet_says_nothing_of_sound_files(vectors: Path) -> None:
    sound, damaged = vectors / "active" / "minimal.bin", vectors / "active" / "flip_message.bin"
    assert here("verify", "--quiet", sound, sound).out == ""
    done = here("verify", "--quiet", sound, damaged)
    assert str(sound) not in done.out
    assert str(damaged) in done.out


def test_quiet_says_it_of_a_damaged_index_of_sound_records(vectors: Path) -> None:
    sound, damaged = vectors / "chunked" / "typical", vectors / "chunked" / "index_flip"
    for path, is_quiet in ((sound, True), (damaged, False)):
        done = here("verify", "--quiet", "--format", "chunked", "--index", f"{path}.index", f"{path}.bin")
        assert (done.status, done.out == "") == (0, is_quiet)


def test_many_ranges_are_counted_where_they_are_not_listed(with_holes: Callable[[int], Path]) -> None:
    segment = with_holes(60)
    done = here("verify", segment)
    assert done.status == 1
    assert "checksum_mismatch  60 ranges\n" in done.out
    [report] = here("verify", "--json", segment).json_lines()
    assert len(report["damage"]) == 60


def test_what_lies_behind_the_last_range_listed_is_not_pictured_as_sound(with_holes: Callable[[int], Path]) -> None:
    done = here("verify", with_holes(15_000))
    assert "... and 5,000 more ranges: --json lists the first 10,000" in done.out
    assert re.fullmatch(r"X{48}\?{24}", bar_of(done.out))


@pytest.fixture
def with_holes(tmp_path: Path) -> Callable[[int], Path]:
    """Writes a segment in which a bit is flipped in the body of every other record, in so many of them."""

    def write(holes: int) -> Path:
        path = tmp_path / "holes.active"
        with library.create(path, format="active") as writer:
            for _ in range(2 * holes + 1):
                writer.write(uuid=library.uuid6(), type="t", value=b"body")
        with library.open(path) as reader:
            positions = [record.position for record in reader]
        content = bytearray(path.read_bytes())
        for position in positions[1::2]:
            # The body's first byte, behind uuid (16), type length (1), type (1) and message length (4).
            content[position + 22] ^= 1
        path.write_bytes(content)
        return path

    return write


def test_threads_change_nothing_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "large.tenant"
    with library.create(path, format="tenant") as writer:
        for number in range(300):
            writer.write(partition=number, tenant="t", value=bytes([number % 256]) * 10_000)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    said = {here("verify", *threads, path).out for threads in ([], ["--threads", "1"], ["--threads", "3"])}
    assert len(said) == 1
    assert "299" in said.pop()
    assert here("verify", "--threads", "0", path).status == 2
