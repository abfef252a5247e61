"""How cases are put together from samples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from .case import Case, Step
from .samples import Sample

AGAIN = (Step.RESTORE, Step.LOOK)
"""Where nothing in the file helps: it is copied again, or looked at."""
KEPT = (Step.RECOVER, Step.RESTORE)
"""Where bytes are lost: what is sound is written to a new file, or the file is taken from a copy."""

HIDDEN = (*KEPT, Step.EXTRACT)
"""Where more is sound with zeros in place of what is lost: it is recovered from a copy with these."""

_Word = TypeVar("_Word", bound=str)


def several(own: _Word | Iterable[_Word]) -> frozenset[_Word]:
    """What is right, of one or more."""
    return frozenset([own] if isinstance(own, str) else own)


def staged(
    name: str,
    incident: str,
    how: str,
    sample: Sample,
    data: bytes,
    reasons: str | Iterable[str],
    steps: Step | Iterable[Step],
    *,
    sound: bool = True,
    file: str = "",
    beside: dict[str, bytes] | None = None,
    key: bytes | None = None,
) -> Case:
    """A case of one broken file.

    `sample` is the sound file; its index lies beside the broken one, unless `beside` says what does. With `sound` false
    there is no file that was broken. `file` is its name, by default one that fits the format.
    """
    assert not sound or data != sample.data, f"{name}: nothing is broken"
    own = file or f"orders.{sample.extension}"
    index = {own.rpartition(".")[0] + ".index": sample.index} if sample.index is not None else {}
    return Case(
        name,
        incident,
        how,
        own,
        {own: data, **(index if beside is None else beside)},
        several(reasons),
        several(steps),
        sample.data if sound else None,
        key,
    )
