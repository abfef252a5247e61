"""Files damaged in the ways that disks, networks and people do, for hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st

KINDS = (
    "flip",
    "overwrite",
    "ones",
    "zero",
    "zero sector",
    "swap sectors",
    "truncate",
    "truncate",
    "delete",
    "insert",
    "insert zeros",
    "duplicate",
    "copy",
    "append",
    "append zeros",
)


@st.composite
def random_bytes(draw: st.DrawFn, most: int, least: int = 0) -> bytes:
    """Bytes that do not compress, and that hypothesis need not draw one by one."""
    size, seed = draw(st.integers(least, most)), draw(st.integers(0, (1 << 32) - 1))
    return Random(seed).randbytes(size)


@st.composite
def damaged(
    draw: st.DrawFn, data: bytes, sectors: Sequence[int] = (4, 8, 24, 64), places: Sequence[int] = (), most: int = 3
) -> bytes:
    """The file, damaged up to `most` times, now and then not at all.

    Half of the damage begins at one of `places`, or close to it. `sectors` are the sizes in bytes of what is zeroed,
    swapped or overwritten as one.
    """
    for _ in range(draw(st.integers(0, most))):
        data = _damage(draw, data, draw(st.sampled_from(sectors)), places)
    return data


def _damage(draw: st.DrawFn, data: bytes, sector: int, places: Sequence[int]) -> bytes:
    at = draw(st.integers(0, len(data)))
    if places and draw(st.booleans()):
        at = min(len(data), draw(st.sampled_from(places)) + draw(st.sampled_from([0, 0, 1, 3, sector - 1])))
    end = min(len(data), at + draw(st.sampled_from([1, 2, 7, 20, sector, 2 * sector])))
    parts = [data[start : start + sector] for start in range(0, len(data), sector)]
    match draw(st.sampled_from(KINDS)):
        case "flip" if at < len(data):
            return data[:at] + bytes([data[at] ^ 1 << draw(st.integers(0, 7))]) + data[at + 1 :]
        case "overwrite":
            return data[:at] + draw(random_bytes(end - at, end - at)) + data[end:]
        case "ones":
            return data[:at] + b"\xff" * (end - at) + data[end:]
        case "zero":
            return data[:at] + bytes(end - at) + data[end:]
        case "zero sector" if parts:
            parts[at // sector % len(parts)] = bytes(sector)
            return b"".join(parts)
        case "swap sectors" if parts:
            one, other = at // sector % len(parts), draw(st.integers(0, len(parts) - 1))
            parts[one], parts[other] = parts[other], parts[one]
            return b"".join(parts)
        case "truncate":
            return data[:at]
        case "delete":
            return data[:at] + data[end:]
        case "insert":
            return data[:at] + draw(random_bytes(sector, 1)) + data[at:]
        case "insert zeros":
            return data[:at] + bytes(end - at) + data[at:]
        case "duplicate":
            return data[:end] + data[at:]
        case "copy":
            target = draw(st.integers(0, len(data)))
            run = data[at:end][: len(data) - target]
            return data[:target] + run + data[target + len(run) :]
        case "append":
            return data + draw(random_bytes(2 * sector, 1))
        case "append zeros":
            return data + bytes(draw(st.sampled_from([1, 5, 20, 21, sector, 5 * sector + 3])))
        case _:
            return data
