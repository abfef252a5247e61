"""Names: which ones patterns stand for, and which are skipped; the same on mounted file systems and elsewhere."""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final
from urllib.parse import unquote_to_bytes

from seglake._native import formats
from seglake._text import printable_path

__all__ = ["alternatives", "is_hidden", "is_pattern", "mounted_path", "owner_of", "passes_hidden", "without_kept"]

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?=/)")
_GLOB: Final = re.compile(r"[*?\[{]")
_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_KEPT: Final = re.compile(
    r"(.+?)\.(?:par|(?:par\.)?damaged|(?:\d+(?:-\d+)?\.)?quarantine(?:\.manifest\.jsonl)?)", re.DOTALL
)
_KEPT_WORDS: Final = (".par", ".damaged", ".quarantine")
_OTHERS: Final = re.compile(r"\[\^(\]?[^\]]*\])")


def is_pattern(text: str) -> bool:
    """Tells whether a path has wildcards in it."""
    return _GLOB.search(text) is not None


def is_hidden(name: str) -> bool:
    """Tells whether a name is skipped unless it is asked for: those of files that are not for readers, or not yet."""
    return name.startswith(("_", "."))


def passes_hidden(asked: Sequence[str], found: Sequence[str]) -> bool:
    """Tells whether a wildcard stands for a name that is to be skipped.

    Args:
        asked: the names that a pattern is made of; no wildcard matches a separator.
        found: those of a path that it matches.
    """
    return any(is_hidden(name) and not is_hidden(part) for part, name in zip(asked, found, strict=True))


def mounted_path(named: str, what: str) -> str | None:
    """Returns the path on a mounted file system that a path or URI names; None for a URI of another kind.

    In a `file:` URI `%20` is a blank, as `Path.as_uri` writes it. A path stands as it is.

    Args:
        named: the path or URI, as the user wrote it.
        what: what it is to name, for the error: "file" or "folder".

    Raises:
        ValueError: it is of another machine.
    """
    scheme = _SCHEME.match(named)
    if scheme is None:
        return named
    if scheme[0].lower() != "file:":
        return None
    # file:/a and file:///a name the same; file://host/a would be of another machine.
    rest = named[scheme.end() :]
    if rest.startswith("//") and not rest.startswith("///"):
        raise ValueError(f"{printable_path(named)}: expected a {what} of this machine, as in file:///logs")
    path = rest[2:] if rest.startswith("///") else rest
    return os.fsdecode(unquote_to_bytes(os.fsencode(path)))


def owner_of(path: str) -> str | None:
    """Returns the path of the file that one belongs to if that is there; None for what has no such name.

    These belong to another file: a log's index, a parity sidecar, and what a repair, a recovery or a writer put aside.
    """
    # Most of many files have no such name, which is seen without the pattern.
    kept = _KEPT.fullmatch(path) if any(word in path for word in _KEPT_WORDS) else None
    if kept is not None:
        return kept[1]
    log, _, extension = path.rpartition(".")
    own = _logs().get(extension) if log else None
    return None if own is None else f"{log}.{own}"


def without_kept(paths: Sequence[str]) -> list[str]:
    """Returns the paths without those of files that belong to another of them: `*` names both, and one is read."""
    own = set(paths)
    return [path for path in paths if owner_of(path) not in own]


@cache
def _logs() -> dict[str, str]:
    """The extensions of logs that have an index beside them, by the extension of that."""
    return {own.index_extension: own.extension for own in formats() if own.index_extension is not None}


def alternatives(pattern: str) -> Iterator[str]:
    """Yields the patterns that one with `{a,b}` stands for, in the words of `fnmatch`: `[^a]` is `[!a]` there."""
    braces = _BRACES.search(pattern)
    if braces is None:
        yield _OTHERS.sub(r"[!\1", pattern)
        return
    for choice in braces[1].split(","):
        yield from alternatives(pattern[: braces.start()] + choice + pattern[braces.end() :])
