"""The index beside a log: whether it is there and sound. It makes looking up faster; damage to it harms no data."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from . import reading
from .advice import meaning
from .escape import printable
from .quantity import count, exact_size

if TYPE_CHECKING:
    from seglake import Index, Reader


def index_of(reader: Reader) -> Index | None:
    """The index that a reader uses; None where it has none, as files of most formats."""
    if not reading.concerns(reader.format, index=False):
        return None
    return reader.index()


def facts(index: Index) -> dict[str, Any]:
    """What there is to say of an index, ready for JSON."""
    return {
        "path": index.path,
        "bytes": index.size,
        "ok": index.ok,
        "items": len(index.items),
        "damage": [span._asdict() for span in index.ledger if span.cause is not None],
    }


def for_people(index: dict[str, Any], label: str) -> str:
    """The same in words, with what to do about damage; `label` is the log's name."""
    what = f"{count(index['items'], 'item')}, {exact_size(index['bytes'])}"
    if index["ok"]:
        return f"sound: {what}"
    causes = dict.fromkeys(span["cause"] for span in index["damage"])
    reasons = "; ".join(f"{cause}: {meaning(cause)}" for cause in causes)
    return (
        f"damaged or stale ({reasons}); {what}. The log is whole without it, only looking up takes longer: "
        f"`seglake index {printable(shlex.quote(label))}` rebuilds it"
    )
