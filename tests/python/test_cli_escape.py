"""Untrusted text is made harmless in one place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglake._json_text import json_ascii, json_text
from seglake.cli.render import printable, printable_bytes, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("order.created", "order.created"),
        ("größe 東京 🙂", "größe 東京 🙂"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\tb\r\nc\x00\x7f", "a\\tb\\r\\nc\\x00\\x7f"),
        ("\x9b31m\x85", "\\x9b31m\\x85"),
        ("\u202egpj.exe\u2069", "\\u202egpj.exe\\u2069"),
        ("\u2028\u2029\u200b\ufeff", "\\u2028\\u2029\\u200b\\ufeff"),
        ("\udcff", "\\xff"),
        ("\U000e0041", "\\U000e0041"),
        ("[red]markup[/red]", "[red]markup[/red]"),
        ("back\\slash", "back\\slash"),
    ],
)
def test_what_a_terminal_would_act_on_is_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_printable_text_is_printable_and_stays_as_it_is(text: str) -> None:
    once = printable(text)
    assert once.isprintable()
    assert printable(once) == once


@given(st.binary())
def test_any_bytes_are_printable(value: bytes) -> None:
    assert printable_bytes(value).isprintable()


def test_our_own_line_breaks_stay() -> None:
    assert printable_lines("a\x1b\nb") == "a\\x1b\nb"


@given(st.recursive(st.text(st.characters(exclude_categories=())) | st.integers() | st.none(), st.lists))
def test_json_is_plain_ascii_on_one_line_and_loses_nothing(value: object) -> None:
    line = json_text(value)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line) == value


@given(st.recursive(st.text() | st.floats(allow_nan=False), lambda inner: st.dictionaries(st.text(), inner)))
def test_any_spelling_of_a_document_becomes_plain_ascii_with_the_same_meaning(value: object) -> None:
    for document in (json.dumps(value, ensure_ascii=False, indent=2), json.dumps(value, ensure_ascii=False)):
        line = json_ascii(document.replace("\n", "\r\n\t"))
        assert line.isascii()
        assert line.isprintable()
        assert json.loads(line) == value
