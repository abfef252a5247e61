"""Writes what the extension module says into its stub, where editors look for it: docstrings and keyword arguments.

    make lint                             # compares, and fails on any difference
    python scripts/stub_docs.py --update  # writes them

Both are written once, in Rust. What has no text of its own there (`__iter__` and its like) has none here. A function
that a table of `with_keywords!` declares has the table's types here: `TYPES` says what they are in Python.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import seglake._native as native

ROOT: Final = Path(__file__).resolve().parents[1]
STUB: Final = ROOT / "python/seglake/_native.pyi"
RUST: Final = ROOT / "rust/py/src"
UPDATE: Final = ".venv/bin/python scripts/stub_docs.py --update"
WIDTH: Final = 120
_ITEM: Final = re.compile(r"(`?[a-z_]+`?(, `?[a-z_]+`?)*: )")

_TABLE: Final = re.compile(
    r"^with_keywords! \{.*?^fn (\w+)\((.*?); \w+(?:<'a>)?(?: \[keywords\])? \{\n(.*?)\n\}\) -> (.+?);$",
    re.DOTALL | re.MULTILINE,
)
_ARGUMENT: Final = re.compile(r"(?:r#)?(\w+): ((?:[^,<]|<.*?>)+?)(?: = .+?)?(?:,|$)", re.MULTILINE)

# What the types of the tables are in Python. An `Option` of one may be None, too.
TYPES: Final = {
    "&'a str": "str",
    "&Bound<'_, PyAny>": "_Source",
    "Bound<'_, Position>": "Position",
    "Destination": "str | PathLike[str]",
    "Existing": 'Literal["error", "overwrite"]',
    "Explained": "bool | int",
    "FileCoverage": "Coverage",
    "Filesystem": "_FileSystem",
    "Filters": "_Filters",
    "KeyArgument": "_Key",
    "Named": "OpenOptions",
    "PathBuf": "str | PathLike[str]",
    "Progress": "Callable[[int, int], object]",
    "Py<PyDict>": "Mapping[str, Any]",
    "SidecarArgument": "_Source",
    "SidecarPath": "str | PathLike[str]",
    "StorageOptions": "Mapping[str, str]",
    "String": "str",
    "Vec<String>": "Sequence[str]",
    "bool": "bool",
    "u64": "int",
    "usize": "int",
}
_ON_DAMAGE: Final = 'Literal["raise", "skip", "repair"]'
_UUID_TYPE: Final = 'Literal["uuid", "arrow.uuid", "binary", "string"]'
# What their types do not say: which words a text is, and which options.
SPECIAL: Final = {
    ("convert", "options"): "NewFileOptions | None",
    ("convert", "source"): "_Source | Reader",
    ("create", "if_exists"): 'Literal["error", "append", "overwrite"]',
    ("create", "options"): "_CreateOptions | None",
    ("open", "on_damage"): _ON_DAMAGE,
    ("open", "uuid_type"): _UUID_TYPE,
    ("protect", "path"): "str | PathLike[str]",
    ("protect", "profile"): "ProfileName | None",
    ("repair", "path"): "str | PathLike[str]",
    ("resume", "on_damage"): _ON_DAMAGE,
    ("resume", "uuid_type"): _UUID_TYPE,
    ("seal", "on_damage"): 'Literal["raise", "skip"]',
}

Definition = ast.FunctionDef | ast.ClassDef


def tables() -> dict[str, tuple[dict[str, str], str]]:
    """Return the Rust types of the arguments of each function that a table declares, and what it returns."""
    found: dict[str, tuple[dict[str, str], str]] = {}
    for file in sorted(RUST.rglob("*.rs")):
        for name, given, keywords, result in _TABLE.findall(file.read_text(encoding="utf-8")):
            rows = "\n".join(row for row in keywords.split("\n") if not row.lstrip().startswith("#["))
            found[name] = dict(_ARGUMENT.findall(given) + _ARGUMENT.findall(rows)), result
    return found


def python_type(rust: str) -> str:
    """Return what a type of the tables is in Python."""
    optional = re.fullmatch(r"Option<(.*)>", rust)
    inner = optional[1] if optional else rust
    return TYPES.get(inner, inner) + (" | None" if optional else "")


def signature(name: str, arguments: dict[str, str], result: str) -> list[str]:
    """Return the lines of a function's signature: its names and defaults are the extension's."""
    lines: list[str] = []
    is_named = False
    for argument in inspect.signature(getattr(native, name)).parameters.values():
        if argument.kind is argument.KEYWORD_ONLY and not is_named:
            lines.append("    *,")
            is_named = True
        default = argument.default
        shown = json.dumps(default) if isinstance(default, str) else repr(default)
        kind = SPECIAL.get((name, argument.name)) or python_type(arguments[argument.name])
        lines.append(f"    {argument.name}: {kind}{'' if default is argument.empty else f' = {shown}'},")
    return [f"def {name}(", *lines, f") -> {python_type(result)}:"]


def signed(stub: str) -> str:
    """Return the stub with the signatures of the tables in the place of those that it has."""
    lines = stub.split("\n")
    own = tables()
    for node in reversed(ast.parse(stub).body):
        if isinstance(node, ast.FunctionDef) and node.name in own:
            first = node.body[0]
            is_short = first.lineno == node.end_lineno == node.lineno
            new = signature(node.name, *own[node.name])
            new[-1] += " ..." if is_short else ""
            lines[node.lineno - 1 : node.lineno if is_short else first.lineno - 1] = new
    return "\n".join(lines)


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
    """Return the stub with the signatures and docstrings of the extension, in the place of those that it has."""
    stub = signed(stub)
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
    parser.add_argument("--update", action="store_true", help="write them")
    update: bool = parser.parse_args(arguments).update
    stub = STUB.read_text(encoding="utf-8")
    new = documented(stub)
    if stub == new:
        return 0
    if update:
        STUB.write_text(new, encoding="utf-8")
        print(f"wrote {STUB.relative_to(ROOT)}")
        return 0
    print(f"{STUB.relative_to(ROOT)}: it does not say what the extension says. Run {UPDATE}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
