"""The docstrings of the stub: made of the extension's, so that editors show what `help()` does."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import seglake._native as native

SCRIPT = Path(__file__).parents[2] / "scripts" / "stub_docs.py"
sys.path.insert(0, str(SCRIPT.parent))

import stub_docs  # noqa: E402

STUB = stub_docs.STUB.read_text(encoding="utf-8")


def words(text: str | None) -> list[str]:
    return inspect.cleandoc(text or "").split()


def test_the_stub_says_what_the_extension_says() -> None:
    checked = 0
    for node, own in stub_docs.definitions(ast.parse(STUB)):
        if not node.name.startswith("__"):
            assert words(ast.get_docstring(node)) == words(own.__doc__) != [], node.name
            checked += 1
    assert checked > 120


def test_every_argument_is_told_of() -> None:
    """What `open` does not describe is described where it says."""
    for node, _ in stub_docs.definitions(ast.parse(STUB)):
        if node.name in ("open", "create"):
            text = ast.get_docstring(node) or ""
            for argument in node.args.kwonlyargs:
                assert f"\n{argument.arg}: " in text, (node.name, argument.arg)


def test_writing_again_changes_nothing() -> None:
    assert stub_docs.documented(STUB) == STUB
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('    """The part as JSON, which is opaque', '    """The part as text, which is opaque'),
        ('"""Whether it is the whole file.', '"""Whether it is all of the file.'),
        (">>> part.is_whole\n", ">>> part.is_part\n"),
        ("    zero_torn_tail: bool = False,\n", "    zero_torn_tail: int = 0,\n"),
    ],
)
def test_what_differs_is_written_anew(old: str, new: str) -> None:
    assert STUB.count(old) == 1
    assert stub_docs.documented(STUB.replace(old, new)) == STUB


def test_texts_are_filled() -> None:
    text = "It is\na sentence: this.\n\none: the first\n    thing.\ntwo, three: others."
    assert stub_docs.wrapped(text, 80) == "It is a sentence: this.\n\none: the first thing.\ntwo, three: others."
    assert stub_docs.wrapped("a b\n\nxyz: c d", 6).split("\n") == ["a b", "", "xyz: c", "    d"]
    assert stub_docs.docstring('"a"', "  ") == ['  """ "a""""']
    assert stub_docs.docstring("a\\b", "") == ['r"""a\\b"""']


def test_the_extension_has_what_the_stub_has() -> None:
    assert {node.name for node, _ in stub_docs.definitions(ast.parse(STUB))} >= set(native.__all__) - {"__version__"}
