"""Commands that can be copied from a page and pasted into a shell, whatever a file is called."""

from __future__ import annotations

import os
import shlex

from .markup import visible

__all__ = ["path_word", "shell"]


def shell(*words: str) -> str:
    r"""A command line. What is not printable in a word is spelled out in quotes, as shells read it: `$'\n'`."""
    return " ".join(map(_word, words))


def path_word(path: str) -> str:
    """A path as an argument that is not taken for an option."""
    return f"./{path}" if path.startswith("-") else path


def _word(word: str) -> str:
    if visible(word) == word:
        return shlex.quote(word)
    bytes_ = os.fsencode(word).decode("utf-8", "surrogateescape")
    return "$'" + "".join(map(_spelled, bytes_)) + "'"


def _spelled(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if visible(character) == character:
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
