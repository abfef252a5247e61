"""Files damaged in the ways that disks, networks and people do, for hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st
from tests.damage.image import Image
from tests.damage.kinds import SINGLE, Surroundings


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
    swapped or torn as one.
    """
    image, around = Image.of(data), Surroundings(places, sectors, longest=2 * max(sectors))
    for _ in range(draw(st.integers(0, most))):
        image = draw(st.sampled_from(SINGLE))(image, draw(st.randoms(use_true_random=False)), around)
    return image.data
