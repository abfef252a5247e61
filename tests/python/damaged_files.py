"""Files damaged in the ways that disks, networks and people do, for hypothesis."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from tests.damage.image import Image
from tests.damage.kinds import SINGLE, Surroundings

EXAMPLES = Path(__file__).with_name("every_damage.json")


def cases(many: int) -> int:
    """How many cases to draw: all where they are new ones, and a third of them where each run draws the same."""
    return many if os.environ.get("SEGLAKE_HYPOTHESIS") == "new" else many // 3


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


def examples() -> dict[str, bytes]:
    """A file for each name, of those that were drawn."""
    return {name: bytes.fromhex(data) for name, data in json.loads(EXAMPLES.read_text()).items()}


def draw_example(name: str, files: st.SearchStrategy[bytes], is_one: Callable[[bytes], bool], *, keep: bool) -> None:
    """Fails unless such a file is drawn; keeps it under the name if asked to and if what was kept is none any more."""
    relaxed = [HealthCheck.too_slow, HealthCheck.data_too_large]
    generated = settings(max_examples=5000, phases=[Phase.generate], database=None, suppress_health_check=relaxed)
    found = find(files, is_one, settings=generated)
    if keep:
        kept = examples() if EXAMPLES.exists() else {}
        if name not in kept or not is_one(kept[name]):
            kept[name] = found
            text = json.dumps({name: kept[name].hex() for name in sorted(kept)}, indent=2)
            EXAMPLES.write_text(f"{text}\n")
