"""`seglake explain`: what the words of a report mean."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

import click

from . import completing, options
from .advice import example
from .help_groups import Command
from .report import PARITY_REFUSED, labelled
from .vocabulary import CAUSES, KINDS, REASONS

_EXAMPLES = """
\b
Examples:
  seglake explain                    all words
  seglake explain torn_tail
  seglake explain single flipped bit
"""
_WIDTH = 88
_DIAGNOSED = "`seglake verify FILE` tells what it comes from and what to do"
WORDS = (*KINDS, *CAUSES, *REASONS, *PARITY_REFUSED)
"""All that are explained."""


@click.command(cls=Command, epilog=_EXAMPLES, short_help="Tell what a word of a report means, and what to do.")
@click.argument("words", metavar="[WORD]", nargs=-1, shell_complete=completing.words_of_reports)
@options.debug
def command(words: tuple[str, ...]) -> int:
    """Tell what a word of a report means, what is lost, and what to do.

    WORD is the kind of a range (torn_tail), a cause of damage (checksum_mismatch), what damage probably comes from
    (flipped_bit, or "single flipped bit" as `seglake verify` shows it), or why a parity sidecar is refused (no_frame).
    Without WORD, all of them are listed.

    Exit status: 0 told, 2 there is no such word.
    """
    click.echo("\n\n".join(_explained(" ".join(words)) if words else _listed()))
    return 0


def _listed() -> Iterator[str]:
    """All words, a paragraph for each sort of them."""
    sorts = {
        "Kinds of ranges": {name: own.meaning for name, own in KINDS.items()},
        "Causes of damage": {name: own.meaning for name, own in CAUSES.items()},
        "What damage comes from": {name: own.title for name, own in REASONS.items()},
        "Why a sidecar is refused": {name: text.partition(":")[0] for name, text in PARITY_REFUSED.items()},
    }
    width = max(len(name) + 2 for words in sorts.values() for name in words)
    for sort, words in sorts.items():
        yield "\n".join([f"{sort}:", *(labelled(name, text, _width(), width) for name, text in words.items())])


def _explained(word: str) -> Sequence[str]:
    """What a word means, a paragraph for each of its meanings.

    Raises:
        click.UsageError: there is no such word.
    """
    by_title = {own.title: name for name, own in REASONS.items()}
    name = by_title.get(word, word.replace(" ", "_"))
    found: list[str] = []
    for sort, table in (("the kind of a range", KINDS), ("a cause of damage", CAUSES)):
        if own := table.get(name):
            next = own.next or ("" if own.lost.startswith("Nothing") else _DIAGNOSED)
            lines = [("meaning", own.meaning), ("lost", own.lost), ("next", next), ("example", own.example)]
            found.append(_paragraph(f"{name}: {sort}", lines))
    if reason := REASONS.get(name):
        said = example(name)
        lines = [
            ("meaning", said.headline),
            ("comes back", said.back),
            ("unreadable until", said.until),
            ("lost", said.lost),
            ("next", said.command),
            ("do not", said.do_not),
            ("advice", said.advice),
            ("decide", said.question),
            ("shown by", reason.shown_by),
            ("example", reason.example),
        ]
        found.append(_paragraph(f"{name}: what damage probably comes from", lines))
    if name in PARITY_REFUSED:
        found.append(_paragraph(f"{name}: why a parity sidecar is refused", [("meaning", PARITY_REFUSED[name])]))
    if not found:
        near = get_close_matches(name, WORDS, n=1)
        hint = f"did you mean {near[0]}?" if near else "`seglake explain` lists all"
        raise click.UsageError(f"no report has the word {word!r}: {hint}")
    return found


def _paragraph(headline: str, lines: Sequence[tuple[str, str | None]]) -> str:
    said = [(label, text) for label, text in lines if text]
    cells = max(9, *(len(label) for label, _ in said)) + 1
    return "\n".join([headline, *(labelled(label, text, _width(), cells) for label, text in said)])


def _width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDTH)
