"""The damage engine: that its damage is what it says, that its judge catches lies, and a short run of all of it."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

# The plain-Python rules import zstandard, which has no wheel for free-threaded Python.
pytest.importorskip("zstandard")
from tests.damage import campaign, recovery, sidecars, surfaces
from tests.damage.image import Image
from tests.damage.judge import Reading, Verdict, judge
from tests.damage.kinds import KINDS, SINGLE, Surroundings
from tests.damage.layouts import LAYOUTS
from tests.damage.messages import Message, messages
from tests.damage.peers import Peer, Row, row
from tests.damage.peers import trial as peer_trial
from tests.damage.specimens import specimen
from tests.damage.trial import TARGET, Trial
from tests.damage.worker import Worker

import seglake

ROOT = Path(__file__).parents[2]
CHECKED = ["active", "sealed", "tenant", "chunked"]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.lists(st.sampled_from(SINGLE), max_size=4), st.integers(0, 1 << 32))
def test_an_image_knows_where_its_bytes_are_from(data: bytes, kinds: list[Callable[..., Image]], seed: int) -> None:
    random, image = Random(seed), Image.of(data)
    around = Surroundings(sectors=(8, 32), earlier=bytes(300), longest=64)
    for kind in kinds:
        image = kind(image, random, around)
    for start, end, origin in image.placed():
        assert end > start
        assert origin is None or image.data[start:end] == data[origin : origin + end - start]
    for start in range(0, len(data), 37):
        end = min(len(data), start + 20)
        places = image.places_of(start, end)
        assert all(image.data[at : at + end - start] == data[start:end] for at in places)
        left = image.left_of(start, end)
        assert all((at, at + end - start) in left for at in places)
        assert image != Image.of(data) or places == [start]


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_the_same_each_time(kind: str) -> None:
    images = [Trial("active", kind, seed).damaged() for seed in range(8)]
    assert images == [Trial("active", kind, seed).damaged() for seed in range(8)]
    assert sum(image.data != specimen("active").data for image in images) >= 4


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_file_can_be_damaged_too(kind: str) -> None:
    image = KINDS[kind](Image.of(b""), Random(0), Surroundings())
    assert not image.data or kind in ("insert", "insert-zeros", "append", "several")


def test_trials_have_names() -> None:
    for trial in (Trial("oplog-draft-1.1", "swap-sectors", 7), Trial("active", "flip", 3, 20_000)):
        assert Trial.named(str(trial)) == trial
    with pytest.raises(ValueError, match="no kind of damage"):
        Trial.named("active/burn/1")


# A judge that never finds anything would let every trial pass: so it is lied to.


def sound(name: str = "active") -> tuple[Image, Reading]:
    data = specimen(name).data
    return Image.of(data), surfaces.read(data, specimen(name).layout)


def flipped() -> tuple[Image, Reading]:
    """The active file with a bit flipped in the value of the record at 50, and what is rightly read of it."""
    image, reading = sound()
    at = reading.records[51][0] - 20
    image = image.overwritten(at, bytes([image.data[at] ^ 1]))
    return image, surfaces.read(image.data, specimen("active").layout)


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_judge_has_nothing_to_say_of_a_sound_file(name: str) -> None:
    verdict = judge(specimen(name), *sound(name))
    assert verdict == Verdict(records=400, good=400, kept=400, right=400, damaged=False)


def test_the_judge_counts_what_a_flipped_bit_costs() -> None:
    verdict = judge(specimen("active"), *flipped())
    assert verdict == Verdict(records=400, good=399, kept=399, right=399, damaged=True)


def changed(reading: Reading, number: int) -> Reading:
    records = list(reading.records)
    records[number] = (records[number][0], {**records[number][1], "value": b"another"})
    return dataclasses.replace(reading, records=records)


def without(reading: Reading, number: int) -> Reading:
    return dataclasses.replace(reading, records=[*reading.records[:number], *reading.records[number + 1 :]])


def exchanged(reading: Reading, number: int) -> Reading:
    records = list(reading.records)
    records[number : number + 2] = reversed(records[number : number + 2])
    return dataclasses.replace(reading, records=records)


def twice(reading: Reading, number: int) -> Reading:
    return dataclasses.replace(reading, records=[*reading.records[: number + 1], *reading.records[number:]])


def moved(reading: Reading, number: int) -> Reading:
    records = list(reading.records)
    records[number] = (records[number + 3][0], records[number][1])
    return dataclasses.replace(reading, records=records)


@pytest.mark.parametrize("lie", [changed, without, exchanged, twice, moved])
@pytest.mark.parametrize("case", [sound, flipped])
def test_the_judge_finds_a_lie_about_records(
    case: Callable[[], tuple[Image, Reading]], lie: Callable[[Reading, int], Reading]
) -> None:
    image, reading = case()
    verdict = judge(specimen("active"), image, lie(reading, 100))
    assert verdict.silent
    assert not verdict.ok


def test_the_judge_finds_damage_that_is_not_named() -> None:
    image, reading = flipped()
    honest = [(start, end, "record" if cause else kind, None) for start, end, kind, cause in reading.ledger]
    verdict = judge(specimen("active"), image, dataclasses.replace(reading, ledger=honest))
    assert verdict.silent


def test_the_judge_finds_a_good_record_given_up() -> None:
    image, reading = sound()
    start, end = specimen("active").needs[next(iter(specimen("active").records))][0]
    given_up = [(start, end, "corrupt", "checksum_mismatch"), *reading.ledger[1:]]
    verdict = judge(specimen("active"), image, dataclasses.replace(without(reading, 0), ledger=given_up))
    assert (len(verdict.lost), verdict.kept, verdict.good) == (1, 399, 400)
    assert not verdict.ok


@pytest.mark.parametrize("part", [slice(1, None), slice(0, -1)])
def test_the_judge_finds_a_ledger_that_leaves_bytes_out(part: slice) -> None:
    image, reading = sound()
    verdict = judge(specimen("active"), image, dataclasses.replace(reading, ledger=reading.ledger[part]))
    assert any("ledger" in fault for fault in verdict.faults)


def test_ways_of_reading_that_disagree_are_found() -> None:
    image, reading = flipped()
    assert not surfaces.disagreements(specimen("active"), image.data, reading, 2)
    assert len(surfaces.disagreements(specimen("active"), image.data, without(reading, 399 - 1), 2)) >= 5


def test_damage_that_is_explained_otherwise_is_found() -> None:
    image, reading = flipped()
    found = surfaces.disagreements(specimen("active"), image.data, dataclasses.replace(reading, ledger=[]), 1)
    assert "verify explains other damage than the ledger names" in found


def test_what_is_recovered_otherwise_is_found() -> None:
    image, reading = flipped()
    layout = LAYOUTS["active"]
    assert recovery.faults(layout, image.data, reading) == []
    assert len(recovery.faults(layout, image.data, without(reading, 100))) == 1
    assert len(recovery.faults(layout, image.data, changed(reading, 100))) == 1
    assert len(recovery.faults(layout, image.data, dataclasses.replace(reading, ledger=[]))) >= 2
    assert len(recovery.faults(layout, image.data, dataclasses.replace(reading, checked=False))) == 1


@pytest.mark.parametrize("name", ["oplog", "oplog-draft-1.1", "oplog-autobase"])
def test_messages_of_an_oplog_are_renumbered(name: str) -> None:
    """A trial in which messages are left out, and others stand behind them."""
    trial = next(trial for seed in range(100) if _drops_messages(trial := Trial(name, "scramble", seed)))
    assert trial.run().ok


def _drops_messages(trial: Trial) -> bool:
    spans = surfaces.read(trial.damaged().data, trial.specimen.layout).ledger
    return any(kind == "corrupt" and end < len(trial.damaged()) for _, end, kind, _ in spans)


def test_what_no_checksum_tells_is_not_hidden() -> None:
    trials = [Trial("oplog", "scramble", seed).run() for seed in range(20)]
    assert any(verdict.undetectable for verdict in trials)
    assert not any(verdict.silent for verdict in trials)


# The processes that trials run in.


def killed(name: str) -> Verdict:
    os.kill(os.getpid(), signal.SIGTERM)
    return Verdict()


def hanging(name: str) -> Verdict:
    time.sleep(600)
    return Verdict()


def raising(name: str) -> Verdict:
    raise SystemError(name)


@pytest.mark.parametrize(
    ("run", "said"), [(killed, "ended the process"), (hanging, "took more"), (raising, "SystemError: active/flip/0")]
)
def test_a_trial_that_does_not_end_well_is_a_finding(run: Callable[[str], Verdict], said: str) -> None:
    with Worker(run, timeout_s=0.5 if run is hanging else 60) as worker:
        for _ in range(2):
            verdict = worker.perform("active/flip/0")
            assert said in (verdict.crash or "")
            assert not verdict.ok


def test_a_campaign_fails_for_what_is_ours() -> None:
    trial = Trial("active", "flip", 0)
    bad = [
        Verdict(silent=["x"]),
        Verdict(crash="x"),
        Verdict(faults=["x"]),
        Verdict(lost=["x"]),
        Verdict(records=1000, good=1000, kept=998, right=998),
    ]
    for verdict in bad:
        ours, peer = campaign.Tally("active"), campaign.Tally("mcap")
        ours.add(trial, verdict)
        peer.add(trial, verdict)
        assert len(ours.failures(target=TARGET)) == 1
        assert peer.failures(target=TARGET) == []
    fine = campaign.Tally("active")
    fine.add(trial, Verdict(records=1000, good=1000, kept=999, right=999))
    fine.add(trial, Verdict(records=1000, good=1000, kept=100, right=100, barred=900))
    assert fine.failures(target=TARGET) == []


def of_rows(rows: Sequence[Row], error: Exception | None = None) -> Peer:
    def read(path: Path) -> Iterator[Row]:
        yield from rows
        if error is not None:
            raise error

    def write(path: Path, written: Sequence[Message]) -> None:
        path.write_bytes(b"x" * len(written))

    return Peer("none", write, read)


def test_peers_are_judged_by_what_they_give_back(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(message) for message in messages(10)]

    def verdict(peer: Peer) -> tuple[bool, int, bool]:
        monkeypatch.setattr(peer_trial, "_peer", lambda name: peer)
        found = peer_trial.run("none", "flip", 0, 10)
        return bool(found.silent), found.right, found.error is not None

    assert verdict(of_rows(rows)) == (False, 10, False)
    assert verdict(of_rows(rows[:4])) == (True, 4, False)
    assert verdict(of_rows(rows[:4], ValueError("damaged"))) == (False, 4, True)
    assert verdict(of_rows([*rows[:4], *rows[5:]])) == (True, 9, False)
    assert verdict(of_rows([*rows[:4], (4, b"other"), *rows[5:]])) == (True, 9, False)
    assert verdict(of_rows([*rows[:4], (4, b"other"), *rows[5:]], ValueError("damaged"))) == (True, 9, True)
    assert verdict(of_rows([*rows, rows[3]])) == (True, 10, False)


# The short run.


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as one:
        yield one


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", campaign.small_names())
def test_every_kind_of_damage(name: str, worker: Worker) -> None:
    tallies = campaign.run(campaign.every_kind([name], KINDS, [0]), worker)
    assert tallies[name].trials == len(KINDS)
    assert tallies[name].failures() + tallies[name].examples == []


@pytest.mark.parametrize("name", CHECKED)
def test_one_flipped_bit_in_many_messages(name: str, worker: Worker) -> None:
    tallies = campaign.run(campaign.one_flip([name], [4]), worker)
    assert tallies[name].failures(target=TARGET) == []
    assert tallies[name].undetectable == 0
    assert tallies[name].good.worst >= TARGET
    assert tallies[name].all.worst >= TARGET


def test_the_page_names_all_that_is_tried() -> None:
    page = (ROOT / "docs" / "damage.md").read_text()
    tried, flipped_bit = page.split("## One flipped bit")
    for name in KINDS:
        assert f"`{name}`" in tried, name
        assert f"| `{name}` |" in tried.split("Good records returned")[1], name
    for name in campaign.small_names():
        assert f"| `{name}` |" in tried, name
    for name in (*campaign.large_names(), *peer_trial.PEER_NAMES):
        assert f"| `{name}` |" in flipped_bit, name


def test_the_command(tmp_path: Path) -> None:
    found = tmp_path / "folder" / "damage.json"
    # Not the first seed, which reads files in every way there is: that is tried above.
    options = ["--rounds", "1", "--first-seed", "1", "--only", "active", "--kind", "flip"]
    options += ["--part", "kinds", "--part", "flip", "--json", str(found)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.damage", *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "One bit flipped in 20,000 messages" in done.stdout
    numbers = json.loads(found.read_text())
    assert [(one["name"], one["trials"], one["silent"]) for one in numbers["every_kind"]] == [("active", 1, 0)]
    assert numbers["one_flip"][0]["all"]["mean"] == 0.99995
    saved = tmp_path / "damaged"
    done = subprocess.run(
        [sys.executable, "-m", "tests.damage", "--replay", "active/zero/3", "--save", str(saved)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "foreign" in done.stdout
    assert saved.read_bytes() == Trial("active", "zero", 3).damaged().data


# What a sidecar restores is judged by tests/damage/sidecars.py alone: so it is lied to as well.


def test_a_trial_tells_what_a_sidecar_restores() -> None:
    found = Trial("oplog", "flip", 0).run()
    assert found.restored == sidecars.Restored(right=400, whole=True)
    lost = sidecars.restored(specimen("active"), specimen("active").data[:10_000])
    assert (lost.whole, lost.faults) == (False, [])
    assert 0 < lost.right < 400


@pytest.mark.parametrize("name", ["active", "oplog"])
def test_a_wrong_repair_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = specimen(name)
    data = Trial(name, "flip", 0).damaged().data
    assert sidecars.restored(sound, data).faults == []
    repair = seglake.repair

    def lies(path: Path, **options: Any) -> Any:
        result = repair(path, **options)
        path.write_bytes(data)
        return result

    monkeypatch.setattr(seglake, "repair", lies)
    (fault,) = sidecars.restored(sound, data).faults
    assert "repair says repaired" in fault


def test_a_record_that_was_never_written_is_found_behind_a_sidecar(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = specimen("active")
    fields_of = sidecars.fields_of
    changed = next(iter(sound.records.values()))

    def lies(record: seglake.Record) -> tuple[int, dict[str, Any]]:
        position, fields = fields_of(record)
        return position, {**fields, "value": b"never"} if fields == changed else fields

    monkeypatch.setattr(sidecars, "fields_of", lies)
    faults = sidecars.restored(sound, sound.data).faults
    assert "was never written" in faults[0]
    assert "1 records are gone, and nothing says so" in faults[1]
