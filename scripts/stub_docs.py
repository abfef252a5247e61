"""Writes the docstrings of the extension module into its stub, where editors look for them.

    make lint                             # compares, and fails on any difference
    python scripts/stub_docs.py --update  # writes them

They are written once, in Rust. What has no text of its own there (`__iter__` and its like) has none here.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import seglake._native as native

ROOT: Final = Path(__file__).resolve().parents[1]
STUB: Final = ROOT / "python/seglake/_native.pyi"
UPDATE: Final = ".venv/bin/python scripts/stub_docs.py --update"
WIDTH: Final = 120
_ITEM: Final = re.compile(r"(`?[a-z_]+`?(, `?[a-z_]+`?)*: )")

Definition = ast.FunctionDef | ast.ClassDef


def definitions(tree: ast.Module) -> Iterator[tuple[Definition, Any]]:
    """Yield what the stub defines, with what the extension has under that name; of overloads the first alone."""
    for node in tree.body:
        if not isinstance(node, Definition) or not hasattr(native, node.name):
            continue
        own = getattr(native, node.name)
        yield node, own
        seen: set[str] = set()
        for member in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(member, ast.FunctionDef) and member.name not in seen:
                seen.add(member.name)
                yield member, getattr(own, member.name)


def documentation(node: Definition, own: Any) -> str | None:
    """Return the text of a definition; `None` where it is that of any object."""
    if node.name.startswith("__") or not own.__doc__:
        return None
    return inspect.cleandoc(own.__doc__)


def wrapped(text: str, width: int) -> str:
    """Fill paragraphs, and the items of lists of arguments, with lines of this width. Examples stay as they are."""
    lines: list[str] = []
    for number, paragraph in enumerate(text.split("\n\n")):
        if paragraph.startswith(">>> "):
            lines += [*paragraph.split("\n"), ""]
            continue
        items: list[str] = []
        for line in paragraph.split("\n"):
            # What comes first is a sentence.
            if items and (number == 0 or not _ITEM.match(line)):
                items[-1] += f" {line.strip()}"
            else:
                items.append(line.strip())
        for item in items:
            hanging = "    " if number and _ITEM.match(item) else ""
            lines += textwrap.wrap(
                item, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
            )
        lines.append("")
    return "\n".join(lines[:-1])


def docstring(text: str, indent: str) -> list[str]:
    """Return the lines of a docstring at this indentation."""
    lines = wrapped(text, WIDTH - len(indent) - len('""""""')).split("\n")
    raw = "r" if "\\" in text else ""
    if lines[0].startswith('"'):
        lines[0] = f" {lines[0]}"
    if len(lines) == 1:
        return [f'{indent}{raw}"""{lines[0]}"""']
    lines = [f'{raw}"""{lines[0]}', *lines[1:], '"""']
    return [indent + line if line else "" for line in lines]


def documented(stub: str) -> str:
    """Return the stub with the docstrings of the extension, in the place of those that it has."""
    lines = stub.split("\n")
    for node, own in sorted(definitions(ast.parse(stub)), key=lambda pair: -pair[0].lineno):
        text = documentation(node, own)
        body = node.body
        if ast.get_docstring(node) is not None:
            first, last = body[0].lineno - 1, body[0].end_lineno or 0
            lines[first:last] = [] if text is not None or len(body) > 1 else [" " * body[0].col_offset + "..."]
        elif isinstance(node, ast.FunctionDef) and text is not None:
            # `...` stands behind the colon.
            last = (node.end_lineno or 0) - 1
            lines[last] = lines[last].removesuffix(" ...")
            first = last + 1
        else:
            first = body[0].lineno - 1 - len(getattr(body[0], "decorator_list", ()))
        if text is not None:
            lines[first:first] = docstring(text, " " * (node.col_offset + 4))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare or write the stub; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the docstrings")
    update: bool = parser.parse_args(arguments).update
    stub = STUB.read_text(encoding="utf-8")
    new = documented(stub)
    if stub == new:
        return 0
    if update:
        STUB.write_text(new, encoding="utf-8")
        print(f"wrote {STUB.relative_to(ROOT)}")
        return 0
    print(f"{STUB.relative_to(ROOT)}: its docstrings are not those of the extension. Run {UPDATE}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
