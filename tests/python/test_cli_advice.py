"""What is said of damage: commands that can be pasted, and lose nothing."""

from __future__ import annotations

import os
import re
import subprocess
from array import array
from datetime import timedelta
from pathlib import Path

import pytest
from cli_process import here, pasted
from hypothesis import given
from hypothesis import strategies as st
from segments import DAY, flip, uuid6, write_segment

import seglake
from seglake.cli.advice import advise, as_json, example, in_turn, new_name, shell_word
from seglake.cli.vocabulary import REASONS, WRONG_KEY

NAMES = [
    "a b.active",
    'it\'s "$HOME".active',
    "-rf.active",
    "line\nbreak.active",
    "\u202egnp.active",
    "caf\udce9.active",
    "\\1%s.active",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_command_can_be_pasted_whatever_the_name(name: str, vectors: Path, tmp_path: Path) -> None:
    content = (vectors / "active" / "flip_message.bin").read_bytes()
    path = tmp_path / name
    path.write_bytes(content)
    report = seglake.verify(path)
    [own] = report.diagnoses
    said = advise(report, own, name)
    assert said.command is not None and said.command.isprintable()
    done = pasted(said.command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"sound" in done.stdout
    assert path.read_bytes() == content
    [new] = set(tmp_path.iterdir()) - {path}
    assert seglake.verify(new, format="active").ok
    # What is there already is not written over.
    again = advise(report, own, os.fspath(path)).command
    assert again is not None and pasted(again, tmp_path).returncode == 0
    assert len(list(tmp_path.iterdir())) == 3


def test_of_several_causes_what_can_be_undone_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = write_segment(tmp_path / "a.active", 500)
    content = bytearray((tmp_path / "a.active").read_bytes())
    content[4096:8192] = bytes(4096)
    (tmp_path / "a.active").write_bytes(content)
    flip(tmp_path / "a.active", written[400].end - 9)
    text = here("verify", "a.active").out
    assert text.index("single flipped bit") < text.index("also: zeroed sector")
    [first] = re.findall(r"  next +(.*)", text)
    assert "go on with what the command above makes" in " ".join(text.split())
    done = pasted(first, tmp_path)
    [then] = re.findall(r"  next +(.*)", done.stdout.decode())
    assert pasted(then, tmp_path).returncode == 1
    sound = seglake.verify(tmp_path / "a-sound-sound.active")
    assert (sound.ok, sound.records) == (True, seglake.verify(tmp_path / "a.active").records + 1)


def test_what_can_be_undone_next_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = write_segment(tmp_path / "a.active", 1200)
    content = bytearray((tmp_path / "a.active").read_bytes())
    content[20480:20992], content[40960:41472] = content[40960:41472], content[20480:20992]
    (tmp_path / "a.active").write_bytes(content)
    flip(tmp_path / "a.active", written[1000].end - 9)
    name = "a.active"
    for _ in range(2):
        [command] = re.findall(r"  next +(.*)", here("verify", name).out)
        assert pasted(command, tmp_path).returncode in (0, 1)
        [name] = [
            own.name for own in tmp_path.iterdir() if own.name.startswith(f"{Path(name).stem}-") and own.name != name
        ]
    assert seglake.verify(name).records == 1200


def test_equal_advice_keeps_one_command() -> None:
    said = example("restorable")._replace(command="seglake repair FILE COPY")
    assert [own.command for own in in_turn([said, said])] == [said.command, None]


@pytest.mark.parametrize("name", NAMES)
def test_what_undoes_recovering_can_be_pasted(
    name: str, vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content = (vectors / "active" / "flip_message.bin").read_bytes()
    (tmp_path / "own.active").write_bytes(content)
    [line] = [own for own in here("recover", "own.active", f"./{name}").out.splitlines() if "--undo" in own]
    assert line.isprintable()
    assert pasted(line.partition("to undo")[2], tmp_path).returncode == 0
    assert (tmp_path / "ORIGINAL").read_bytes() == content


@pytest.mark.parametrize("name", ["touch other|", ">other", "-e1", "plain.active"])
def test_what_turns_line_ends_back_takes_a_name_for_a_file(name: str, tmp_path: Path) -> None:
    path, other = tmp_path / name, tmp_path / "other"
    with seglake.create(path, format="active") as writer:
        for _ in range(20):
            writer.write(type="note", value=b"one\ntwo\n")
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b"\n", b"\r\n"))
    report = seglake.verify(path, format="active")
    command = advise(report, report.diagnoses[0], name).command
    assert command is not None and "perl" in command
    assert pasted(command, tmp_path).returncode == 0
    assert not other.exists()
    assert sound in [own.read_bytes() for own in tmp_path.iterdir()]


@given(st.text(st.characters(exclude_characters="\0/", exclude_categories=()), min_size=1, max_size=20))
def test_a_word_of_the_shell_is_the_path(name: str) -> None:
    try:
        raw = os.fsencode(name)
    except UnicodeEncodeError:
        return  # no path
    word = shell_word(name)
    assert word.isprintable()
    shown = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True).stdout
    assert shown.removeprefix(b"./" if name.startswith("-") else b"") == raw


@pytest.mark.parametrize("name", REASONS)
def test_no_command_changes_a_file_that_is_there(name: str) -> None:
    command = example(name).command or ""
    assert "> FILE " not in command + " " and "of=FILE " not in command
    assert not any(word in command for word in ("zero_torn_tail", "mv ", "rm ", "--force", "truncate"))
    if name != "stale_index":  # an index holds nothing of its own
        assert "--overwrite" not in command


def test_a_new_name_is_of_no_file_and_outside_of_a_log(tmp_path: Path) -> None:
    assert new_name("orders.sealed.gz", "plain") == "orders.sealed"
    assert new_name("s3://bucket/a/orders.sealed", "sound") == "orders-sound.sealed"
    (tmp_path / "a-sound.active").touch()
    assert new_name(str(tmp_path / "a.active"), "sound") == str(tmp_path / "a-sound2.active")
    with seglake.SegmentLog(tmp_path / "log") as log:
        log.write(type="t", value=b"v")
    segment = next((tmp_path / "log").glob("*.active"))
    assert new_name(str(segment), "sound") == str(tmp_path / "log-00000000000000000001-sound.active")


def test_options_of_reading_are_in_the_command(vectors: Path, tmp_path: Path) -> None:
    path, key = tmp_path / "no extension", tmp_path / "key"
    path.write_bytes((vectors / "active" / "flip_message.bin").read_bytes())
    key.write_text("00" * 32)
    [line] = here("verify", "--json", "--format", "active", "--key-file", key, path).json_lines()
    [own] = line["diagnoses"]
    assert f"seglake verify --format active --key-file {key} " in own["command"]
    assert own["headline"].startswith("single flipped bit (proven): bit ")
    assert as_json(seglake.verify(path, format="active"), None)["diagnoses"][0]["command"] is None


def test_an_option_of_the_command_is_not_given_twice(vectors: Path, tmp_path: Path) -> None:
    key, path = tmp_path / "key", vectors / "active" / "typical.bin"
    key.write_text("01" * 32)
    [line] = here("verify", "--json", "--key-file", key, path).json_lines()
    assert line["diagnoses"][0]["command"] == f"seglake verify --key-file KEY {path}"
    path = vectors / "oplog" / "reference_forward_11.bin"
    [line] = here("verify", "--json", "--format", "oplog", "--dialect", "draft", path).json_lines()
    assert line["diagnoses"][0]["command"] == f"seglake verify --format oplog --dialect draft-1.1 {path}"
    path = vectors / "active" / "typical.bin"
    [line] = here("verify", "--json", "--format", "sealed", path).json_lines()
    assert line["diagnoses"][0]["command"] == f"seglake verify --format active {path}"


def test_only_where_it_is_known_bytes_inserted_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "own.active"
    with seglake.create(path, format="active") as writer:
        for number in range(40):
            writer.write(type="t", value=bytes([number]) * 100)
    content = path.read_bytes()
    starts = [record.position for record in seglake.open(path)]
    path.write_bytes(content[: starts[20] + 50] + b"!" + content[starts[20] + 50 :])
    [own, *_] = seglake.verify(path).diagnoses
    assert own.reason == "inserted_bytes"
    assert advise(seglake.verify(path), own, None).headline == f"bytes inserted (proven): 1 byte at {starts[20] + 50:,}"
    vague = own._replace(edits=[], place=(own.start, own.end))
    assert advise(seglake.verify(path), vague, None).headline.endswith(f": within {own.start:,} to {own.end:,}")


def test_what_is_lost_is_between_the_sound_records(tmp_path: Path) -> None:
    path = tmp_path / "a.chunks"
    with seglake.create(path, format="chunked", options={"chunk_bytes": 512}) as writer:
        for number in range(100):
            writer.write(offset=number, timestamp=number * 1_000_000, value=os.urandom(40))
    content = bytearray(path.read_bytes())
    content[1300:1310] = bytes(10)
    path.write_bytes(content)
    report = seglake.verify(path)
    [own] = [own for own in report.diagnoses if own.reason != "consequence"]
    assert own.before is not None and own.after is not None
    number = own.after.id["offset"] - own.before.id["offset"] - 1
    said = advise(report, own, None)
    assert said.lost.startswith(f"{number} of 100 records, 1970-01-01 00:00:")
    assert said.kept.startswith(f"{100 - number} records, 1970-01-01 00:00:00 to 00:01:39")


def test_what_hides_records_is_replaced_by_zeros_and_what_is_lost_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "orders.active"
    with seglake.create(path, format="active") as writer:
        for number in range(2_000):
            writer.write(uuid=uuid6(DAY + timedelta(seconds=number), number), type="order", value=os.urandom(200))
    content = bytearray(path.read_bytes())
    # Newer records, which hide those after them.
    content[40_960:45_056] = content[204_800:208_896]
    path.write_bytes(content)
    report = seglake.verify(path)
    [own] = [own for own in report.diagnoses if own.regained]
    said = advise(report, own, os.fspath(path))
    assert said.back is not None and said.back.startswith(f"{own.regained:,} records")
    assert said.lost == "4,096 bytes at 40,960"
    assert said.command is not None
    assert pasted(said.command, tmp_path).returncode == 1  # bytes are lost
    assert seglake.verify(tmp_path / "orders-sound.active").records == report.records + own.regained


@pytest.mark.parametrize("name", REASONS)
def test_what_not_to_do_does_not_speak_against_what_to_do(name: str) -> None:
    said = example(name)
    assert "first" not in (said.do_not or "")
    if said.command and "seglake recover" in said.command:
        assert "recover" not in (said.do_not or "")
    if said.advice and said.advice.startswith(("copy", "restore")):
        assert "copy it" not in (said.do_not or "") and "restore it" not in (said.do_not or "")


def test_a_file_that_is_transformed_has_one_cause(vectors: Path, tmp_path: Path) -> None:
    with seglake.create(tmp_path / "a.tenant", format="tenant") as writer:
        for number in range(600):
            writer.write(partition=number % 4, tenant=f"t{number % 3}", value=b"\n%d" % number * 9)
    content = (tmp_path / "a.tenant").read_bytes()
    path = tmp_path / "b.tenant"
    path.write_bytes(content.replace(b"\n", b"\r\n"))
    report = seglake.verify(path)
    assert [own.reason for own in report.diagnoses].count("text_conversion") == 1 < len(report.diagnoses)
    assert "Comes back: 600 records. Lost: nothing." in " ".join(here("verify", path).out.split())


def test_what_is_transformed_but_for_its_last_bytes_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.active"
    write_segment(path, 500)
    content = path.read_bytes()
    # So that it is of words and a half.
    content = content[: len(content) // 4 * 4 - 2]
    words = array("I", content[:-2])
    words.byteswap()
    path.write_bytes(words.tobytes() + content[-2:])
    said = " ".join(here("verify", path).out.split())
    assert "bytes in reverse order (likely)" in said
    assert "Comes back: at least 499 records. Lost: what stays damaged with that undone." in said


def test_what_is_lost_at_two_places_is_counted_at_each(tmp_path: Path) -> None:
    path = tmp_path / "a.chunks"
    with seglake.create(path, format="chunked", options={"chunk_bytes": 4096}) as writer:
        for number in range(2000):
            writer.write(offset=number, timestamp=number * 1_000_000, value=os.urandom(40))
    content = bytearray(path.read_bytes())
    for start in (20_480, 61_440):
        content[start : start + 4096] = bytes(4096)
    path.write_bytes(content)
    sound = seglake.verify(path).records
    said = " ".join(here("verify", path).out.split())
    assert f"Lost: {2000 - sound:,} of 2,000 records" in said
    # The other cause has its own.
    content[80_000] ^= 1
    path.write_bytes(content)
    assert f"Lost: {2000 - sound:,} records" in " ".join(here("verify", path).out.split())


@pytest.mark.parametrize("name", ["a.active", "a.sealed"])
def test_what_happened_to_a_long_file_is_seen_in_all_of_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with seglake.create(path) as writer:
        for _ in range(130):
            writer.write(type="t", value=os.urandom(1 << 17))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"\n", b"\r\n"))
    said = " ".join(here("verify", path).out.split())
    assert "copied as text (proven)" in said and "Comes back: 130 records. Lost: nothing." in said and "perl" in said
    if name == "a.active":
        path.write_bytes(bytes(16 << 20) + content[16 << 20 :])
        report = seglake.verify(path)
        assert [own.reason for own in report.diagnoses] == ["zeroed_sector"] and report.records


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify"],
        ["info"],
        ["cat"],
        ["cat", "--on-damage", "skip"],
        ["export", "{file}", "all.csv", "--on-damage", "skip"],
    ],
    ids=" ".join,
)
def test_a_wrong_key_has_the_same_words_everywhere(
    arguments: list[str], vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = str(vectors / "active" / "wrong_key.bin")
    words = [word.replace("{file}", file) for word in arguments]
    done = here(*words, *(() if file in words else (file,)))
    said = " ".join((done.out + done.err).replace(" (likely)", "").split())
    assert (done.status, WRONG_KEY in said) == (2, True), said
    assert said.count("probably the wrong key") == 1


@pytest.mark.parametrize(
    "arguments", [["verify", "zeros.sealed"], ["recover", "zeros.sealed", "new.sealed"], ["explain", "only_zeros"]]
)
def test_the_command_is_first_then_what_not_to_do_then_advice(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("zeros.sealed").write_bytes(bytes(4096))
    done = here(*arguments)
    assert re.findall(r"^  (next|do not|advice) ", done.out + done.err, re.MULTILINE) == ["next", "do not", "advice"]
