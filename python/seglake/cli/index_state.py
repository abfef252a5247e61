"""The index beside a log: whether it is there and sound. It makes looking up faster; damage to it harms no data."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from .advice import meaning
from .inputs import is_uri
from .render import count, exact_size, printable

if TYPE_CHECKING:
    from seglake import Index, Reader


def index_of(reader: Reader) -> Index | None:
    """The index that a reader uses; None where it has none, as files of most formats."""
    return reader.index() if has_indexes(reader.format) else None


def has_indexes(format_name: str) -> bool:
    """Whether files of a format may have an index beside them."""
    from seglake import formats

    return "index" in formats()[format_name].open_options


def facts(index: Index) -> dict[str, Any]:
    """What there is to say of an index, ready for JSON."""
    return {
        "path": index.path,
        "bytes": index.size,
        "ok": index.ok,
        "items": len(index.items),
        "damage": [span._asdict() for span in index.ledger if span.cause is not None],
    }


def for_people(index: dict[str, Any]) -> str:
    """The same in words."""
    what = f"{count(index['items'], 'item')}, {exact_size(index['bytes'])}"
    if index["ok"]:
        return f"sound: {what}"
    causes = dict.fromkeys(span["cause"] for span in index["damage"])
    reasons = "; ".join(f"{cause}: {meaning(cause)}" for cause in causes)
    return f"damaged or stale ({reasons}); {what}. The log is whole without it, only looking up takes longer"


def rebuilding(log: str | None, index: str | None) -> str:
    """The command that builds an index anew.

    Args:
        log: the log's path or URI, None for a pipe.
        index: the index that was named for it, if one was; else it is the one beside the log.
    """
    words = ["seglake", "index", log or "-"]
    if index is not None and not is_uri(index):
        words += ["--output", index]
    elif index is not None or log is None or is_uri(log):
        words += ["--output", "PATH"]
    return printable(shlex.join(words))
