"""The rules for parity sidecars as plain code: on the golden files, and what they promise for any damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from loops import looped
from parity_layout import Head, Set, encode_frame, factors, shape
from parity_reference import as_golden, extend, protect

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
