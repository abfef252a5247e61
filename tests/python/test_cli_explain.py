"""`seglake explain`: every word of a report has its text, and the documents have the same."""

from pathlib import Path

import pytest
from cli_process import here

from seglake._native import report_words
from seglake.cli.advice import example
from seglake.cli.report import PARITY_REFUSED
from seglake.cli.vocabulary import CAUSES, KINDS, REASONS

PAGE = Path(__file__).parents[2] / "docs" / "verify.md"
WORDS = [*KINDS, *CAUSES, *REASONS, *PARITY_REFUSED]


def test_every_word_that_a_report_can_have_is_explained() -> None:
    kinds, causes, reasons = report_words()
    assert (set(KINDS), set(CAUSES)) == (kinds, causes)
    assert set(reasons) <= set(REASONS)


@pytest.mark.parametrize("word", sorted({*WORDS}))
def test_a_word_is_explained_with_all_its_meanings(word: str) -> None:
    done = here("explain", word)
    assert (done.status, done.err) == (0, "")
    assert sum(line.startswith(f"{word}: ") for line in done.out.splitlines()) == WORDS.count(word)
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize("name", REASONS)
def test_a_reason_is_found_as_verify_shows_it(name: str) -> None:
    assert here("explain", *REASONS[name].title.split()).out == here("explain", name).out
    assert here("explain", REASONS[name].title).out == here("explain", name).out


def test_all_words_are_listed() -> None:
    done = here("explain")
    assert (done.status, done.err) == (0, "")
    assert [line.split()[0] for line in done.out.splitlines() if line.startswith("  ") and line[2] != " "] == WORDS
    assert max(map(len, done.out.splitlines())) <= 80


def test_an_unknown_word_suggests_the_nearest() -> None:
    done = here("explain", "torn")
    assert (done.status, done.out) == (2, "")
    assert "no report has the word 'torn': did you mean torn_tail?" in done.err
    assert "`seglake explain` lists all" in here("explain", "\x1b[31m").err


def test_the_page_has_the_same_texts() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    for name, own in (*KINDS.items(), *CAUSES.items()):
        assert f"| `{name}` | {own.meaning} | {own.lost} |" in rows
    for name, own in REASONS.items():
        [row] = [row for row in rows if row.startswith(f"| `{name}` | {own.shown_by} |")]
        assert row.count("|") == 4


@pytest.mark.parametrize("name", REASONS)
def test_a_reason_has_its_facts_filled_in(name: str) -> None:
    said = example(name)
    texts = [text for text in said if text]
    assert said.headline and said.lost
    assert not any(word in text for text in texts for word in ("{", "}", "None"))
    assert said.do_not is None or said.do_not[0].islower()
