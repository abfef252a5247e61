"""Damage of every kind to a file's bytes, for the tests that compare the library with the plain readers."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

SECTORS = (4, 8, 20, 24, 32, 64, 512)
KINDS = ("flip", "overwrite", "zero", "swap", "cut", "cut", "insert", "repeat", "remove", "copy")


@st.composite
def damaged(draw: st.DrawFn, sound: bytes, most: int = 3, ends: Sequence[int] = ()) -> bytes:
    """A file with up to `most` damages, now and then none; a cut is more likely at one of `ends`."""
    data = bytearray(sound)
    for _ in range(draw(st.integers(0, most))):
        if not data:
            break
        _damage(draw, data, draw(st.sampled_from(KINDS)), ends)
    return bytes(data)


def _damage(draw: st.DrawFn, data: bytearray, kind: str, ends: Sequence[int]) -> None:
    size = len(data)
    at = draw(st.integers(0, size - 1))
    match kind:
        case "flip":
            data[at] ^= 1 << draw(st.integers(0, 7))
        case "overwrite":
            run = draw(
                st.one_of(st.binary(min_size=1, max_size=12), st.integers(1, 30).map(lambda size: b"\xff" * size))
            )
            data[at : at + len(run)] = run[: size - at]
        case "zero":
            sector = draw(st.sampled_from(SECTORS))
            at -= at % sector
            end = min(size, at + sector)
            data[at:end] = bytes(end - at)
        case "swap":
            sector = draw(st.sampled_from(SECTORS))
            at, other = at - at % sector, draw(st.integers(0, size // sector)) * sector
            if at + sector <= size and other + sector <= size:
                data[at : at + sector], data[other : other + sector] = (
                    data[other : other + sector],
                    data[at : at + sector],
                )
        case "cut":
            del data[draw(st.sampled_from([at, *(end for end in ends if end <= size)])) :]
        case "insert":
            data[at:at] = draw(st.one_of(st.binary(min_size=1, max_size=20), st.integers(1, 40).map(bytes)))
        case "repeat":
            end = at + draw(st.integers(1, 60))
            data[at:at] = data[at:end]
        case "remove":
            del data[at : at + draw(st.integers(1, 30))]
        case _:
            run = data[at : at + draw(st.integers(1, 60))]
            target = draw(st.integers(0, size - 1))
            data[target : target + len(run)] = run[: size - target]
