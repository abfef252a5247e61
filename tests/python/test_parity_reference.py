"""The rules for parity sidecars as plain code: on the golden files, and what they promise for any damage."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import looped
from parity_layout import Head, Set, encode_frame, factors, shape
from parity_reference import Refused, as_golden, choose, extend, find_frames, protect, repair, report
from tests.parity.__main__ import main
from tests.parity.claims import check
from tests.parity.patterns import Pattern, Specimen, is_within, pattern

oracle = pytest.mark.oracle("tests/vectors/parity/*")

VECTORS = sorted((Path(__file__).parents[1] / "vectors" / "parity").glob("*.json"))
assert len(VECTORS) >= 48, "the golden vectors are missing"


@oracle
@looped("vector", VECTORS, id=lambda path: path.stem)
def test_the_rules_read_and_write_the_golden_vectors(vector: Path) -> None:
    expected = json.loads(vector.read_text())
    file, sidecar = vector.with_suffix(".bin").read_bytes(), vector.with_suffix(".par").read_bytes()
    assert (len(file), len(sidecar)) == (expected.pop("size"), expected.pop("sidecar_size"))
    encode, options = expected.pop("encode"), expected.pop("options")
    del expected["format"], expected["about"]
    assert as_golden(file, sidecar, **options) == expected
    if encode is not None:
        of = Set(bytes.fromhex(encode["set_id"]), *(encode[name] for name in "BkmG"))
        first, *further = encode["ends"]
        made = protect(file, of, first)
        for end in further:
            made = extend(file, made, end)
        assert made == sidecar


@oracle
def test_the_rows_of_the_document() -> None:
    assert factors((0, 1, 2), 3) == (1, 1, 1)
    assert factors((0, 1, 2), 4) == (15, 8, 6)
    assert factors((1, 3, 4), 0) == (245, 105, 157)


@oracle
def test_the_example_of_the_document() -> None:
    of = Set(bytes(range(1, 9)), 64, 2, 1, 1)
    frame = encode_frame(Head(of, 0, 0, 5, 5), b"hello")
    table = bytes.fromhex("12afbd66af99a227 9f714807ff167fad")
    numbers = bytes.fromhex("0040 02 01 0001 0000 0000000000000000 0000000000000005 0000000000000005")
    head = b"SLKPRTY1" + bytes(range(1, 9)) + numbers + bytes.fromhex("a6a60ee950421a9f")
    second = bytearray(head)
    second[23:24], second[48:] = b"\1", bytes.fromhex("fe780ee926890d5a")
    parity = bytes.fromhex("b9adb7b0b4060708") + 7 * bytes(range(1, 9))
    assert frame == head + table + parity + second + table


@oracle
@pytest.mark.parametrize(
    ("k", "m", "nbytes", "expected"),
    [
        *((128, 8, *sizes) for sizes in ((100, 784), (10_000, 4_656), (100_000, 10_000), (1_000_000, 69_824))),
        *((128, 4, *sizes) for sizes in ((100, 464),)),
        *((128, 16, *sizes) for sizes in ((100, 1_424),)),
        (128, 8, 1 << 30, 71_572_480),
    ],
)
def test_sidecars_have_the_sizes_of_the_guide(k: int, m: int, nbytes: int, expected: int) -> None:
    of = Set(bytes(8), 4096, k, m, 32)
    whole, rest = divmod(nbytes, of.band_bytes)
    assert whole * shape(of, of.band_bytes).frame_bytes + (shape(of, rest).frame_bytes if rest else 0) == expected


# What is promised. `tests.parity.claims` has what holds of any damage.


@oracle
def test_drawn_damage_keeps_what_is_promised() -> None:
    seen = {name for seed in range(800) for name in check(pattern(seed))}
    assert {"sound", "repaired", "lost", "refused", "within", "extended", "extending refused"} <= seen


@st.composite
def sets(draw: st.DrawFn) -> Set:
    k, m, g = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    return Set(draw(st.binary(min_size=8, max_size=8)), draw(st.sampled_from([64, 128])), k, m, g)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    size, random = draw(st.integers(1, 3000)), Random(draw(st.integers(0, 1 << 32)))
    return random.randbytes(size) if draw(st.integers(0, 3)) else bytes(size)


@oracle
@settings(max_examples=100)
@given(of=sets(), file=files(), data=st.data())
def test_m_blocks_of_each_group_are_repaired(of: Set, file: bytes, data: st.DataObject) -> None:
    sidecar = protect(file, of, len(file))
    damaged, other = bytearray(file), bytearray(sidecar)
    for frame in find_frames(sidecar):
        b, n, g, parity, front, *_ = frame.shape
        for group in range(g):
            blocks = [*range(group, n, g), *range(n + group, n + parity, g)]
            for t in data.draw(st.lists(st.sampled_from(blocks), max_size=of.m, unique=True)):
                image, start = (
                    (damaged, frame.head.start + t * b) if t < n else (other, frame.start + front + (t - n) * b)
                )
                end = min(start + b, frame.head.start + frame.head.length) if t < n else start + b
                at = data.draw(st.integers(start, end - 1))
                image[at] ^= data.draw(st.integers(1, 255))
    found = Pattern(0, Specimen(of, file, len(file), False, (sidecar,)), bytes(damaged), bytes(other))
    verified = any(band.data_verified for band in report(found.file, found.sidecar).bands)
    assert is_within(found) == (verified or not any(damaged))
    # Without a block that verifies, FILE may be another one (9): it takes `force`.
    assert repair(report(found.file, found.sidecar, force=True)) == (file, sidecar)
    check(found)


@oracle
@settings(max_examples=100)
@given(of=sets(), file=files(), data=st.data())
def test_the_longest_run_is_repaired_wherever_it_begins(of: Set, file: bytes, data: st.DataObject) -> None:
    sidecar = protect(file, of, len(file))
    frame = data.draw(st.sampled_from(find_frames(sidecar)))
    nbytes = (frame.shape.parity - 1) * frame.shape.b + 1
    start = frame.head.start + data.draw(st.integers(0, frame.head.length - 1))
    end = min(start + nbytes, frame.head.start + frame.head.length)
    damaged = file[:start] + Random(start).randbytes(end - start) + file[end:]
    assert repair(report(damaged, sidecar, force=True)) == (file, sidecar)


@oracle
@settings(max_examples=100)
@given(of=sets(), file=files(), data=st.data())
def test_an_extended_sidecar_has_the_frames_of_a_new_one(of: Set, file: bytes, data: st.DataObject) -> None:
    ends = sorted(data.draw(st.sets(st.integers(1, len(file)), min_size=1, max_size=5)))
    sidecar = protect(file, of, ends[0])
    for end in ends[1:]:
        sidecar = extend(file, sidecar, end)
        new = find_frames(protect(file, of, end))
        frames = find_frames(sidecar)
        current = choose(frames, end)
        assert len(current) == len(new)
        for own, other in zip(current, new, strict=True):
            # All but C, and with it the heads' checksums.
            assert own.head._replace(covered=other.head.covered) == other.head
            assert encode_frame(other.head, file[other.head.start :][: other.head.length]) == other.data
            assert encode_frame(own.head, file[own.head.start :][: own.head.length]) == own.data
        assert sum(len(frame.data) for frame in frames) <= 2 * sum(len(frame.data) for frame in current)
        assert report(file[:end], sidecar).outcome == "sound"
        assert extend(file, sidecar, end) == sidecar
    if ends[-1] > 1:
        with pytest.raises(Refused):
            extend(file, sidecar, ends[-1] - 1)


@oracle
@settings(max_examples=200)
@given(sidecar=st.binary(max_size=300), heads=st.lists(st.integers(0, 1 << 32), max_size=3), size=st.integers(0, 200))
def test_any_bytes_are_reported(sidecar: bytes, heads: list[int], size: int) -> None:
    of = Set(bytes(8), 4096, 128, 8, 32)
    for seed in heads:
        random = Random(seed)
        band, length = random.choice((0, 1, random.randrange(1 << 37))), random.randint(1, of.band_bytes)
        covered = random.choice((band * of.band_bytes + length, (1 << 63) - 1))
        sidecar += Head(of, random.randint(0, 1), band, length, covered).encode()
    found = report(Random(size).randbytes(size), sidecar, force=True)
    assert found.ledger[-1].end == max(size, found.covered) if found.ledger else size == 0
    file, repaired = repair(found)
    assert len(file) == size
    assert len(repaired) <= len(sidecar)


def test_another_implementation_is_compared(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    answers = tmp_path / "answers.py"
    answers.write_text(
        "import json, sys\nfor line in sys.stdin:\n    print(json.dumps({'outcome': 'sound'}), flush=True)\n"
    )
    command = ["compare", "--count", "20", "--processes", "1", "--", sys.executable, str(answers)]
    assert main(command) == 1
    assert "outcome: expected" in capsys.readouterr().out
    assert main(["check", "--count", "20", "--processes", "1"]) == 0
