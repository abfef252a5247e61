"""Rust source as tokens, and what can be counted in them: lines, functions, silent defaults and bool fields.

Items under `#[cfg(test)]` and `#[cfg(shuttle)]` (tests/shuttle) are left out. Text in comments and strings is not code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

DEFAULT_KINDS: Final = ("unwrap_or", "unwrap_or_default", "unwrap_or_else", "map_or", "map_or_else", "ok")
"""The kinds of silent defaults: calls that replace a missing value or an error.

`map_or` and `map_or_else` count if their default is a constant. `ok` is `.ok()?`, which drops an error.
"""
CONVERSIONS: Final = ("as_slice", "into", "to_owned", "to_string")
"""Methods of a constant that give a constant."""

TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+|//[^\n]*)
    | (?P<comment>/\*)
    | (?P<string>[bc]?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:\\.|[^"\\])*")
    | (?P<char>b?'(?:\\u\{[^}]*\}|\\x[0-9a-fA-F]{2}|\\.|[^'\\\n])')
    | (?P<lifetime>'[^\W\d]\w*)
    | (?P<number>\d\w*(?:\.\d\w*)?)
    | (?P<name>(?:r\#)?[^\W\d]\w*)
    | (?P<sign>::|->|=>|[^\w\s"'])
    """,
    re.VERBOSE | re.DOTALL,
)
COMMENT_EDGE: Final = re.compile(r"/\*|\*/")
PAIRS: Final = {"{": "}", "(": ")", "[": "]"}
DEFINING: Final = frozenset({"const", "enum", "fn", "macro_rules", "mod", "static", "struct", "trait", "type", "union"})
"""Keywords that define the name after them."""
ITEM_KEYWORDS: Final = DEFINING | {"async", "extern", "impl", "let", "unsafe", "use"}


class RustError(Exception):
    """A source cannot be read as Rust. The message begins with the file and the line."""


class Token(NamedTuple):
    """A token: no space and no comment."""

    kind: str
    """`name` (keywords too), `number`, `string`, `char`, `lifetime` or `sign`."""
    text: str
    line: int
    """The line that it begins in, from 1."""
    last_line: int


@dataclass(frozen=True)
class Place:
    """Something found in a file."""

    path: str
    """The file's path from the root of the repository, with slashes."""
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Default:
    """A silent default, of one of `DEFAULT_KINDS`."""

    kind: str
    place: Place


@dataclass(frozen=True)
class Function:
    """A function with a body."""

    name: str
    place: Place
    lines: int
    """From `fn` to the closing brace."""


@dataclass(frozen=True)
class Struct:
    """A struct with bool fields."""

    name: str
    place: Place
    bools: int


@dataclass(frozen=True)
class Source:
    """A file without its tests."""

    path: str
    """From the root of the repository, with slashes."""
    tokens: list[Token]
    test_modules: list[str]
    """Modules that `#[cfg(test)] mod NAME;` declares: files of tests."""

    @classmethod
    def read(cls, root: Path, file: Path) -> Source:
        """Read a file.

        Raises:
            RustError: a string, a comment or a bracket in it has no end.
        """
        path = file.relative_to(root).as_posix()
        everything = tokenize(file.read_text(encoding="utf-8"), path)
        matching(everything, path)
        tokens, tests = split_tests(everything)
        declared = [at + 1 for at, token in enumerate(tests) if token.text == "mod" and tests[at + 2].text == ";"]
        return cls(path, tokens, [tests[at].text for at in declared])

    @cached_property
    def code_lines(self) -> set[int]:
        """Lines that are not blank, comments or tests."""
        return {line for token in self.tokens for line in range(token.line, token.last_line + 1)}

    @cached_property
    def ends(self) -> dict[int, int]:
        """For each opening bracket the index of the closing one."""
        return matching(self.tokens, self.path)

    def defaults(self) -> Iterator[Default]:
        """Yield the silent defaults."""
        texts = [token.text for token in self.tokens]
        for at, token in enumerate(self.tokens):
            if token.kind != "name" or at == 0 or texts[at - 1] not in (".", "::"):
                continue
            name = token.text
            if name.startswith("unwrap_or") and name in DEFAULT_KINDS:
                yield Default(name, Place(self.path, token.line))
            elif name in ("map_or", "map_or_else") and texts[at + 1 : at + 2] == ["("]:
                (first, *_) = parts(self.tokens[at + 2 : self.ends[at + 1]])
                if is_constant(first if name == "map_or" else closure_body(first)):
                    yield Default(name, Place(self.path, token.line))
            elif name == "ok" and texts[at + 1 : at + 4] == ["(", ")", "?"]:
                yield Default(name, Place(self.path, token.line))

    def functions(self) -> Iterator[Function]:
        """Yield the functions, nested ones too."""
        for at, token in enumerate(self.tokens[:-1]):
            name = self.tokens[at + 1]
            if token.text != "fn" or name.kind != "name":
                continue
            body = at + 2
            while body < len(self.tokens) and self.tokens[body].text not in ("{", ";"):
                body = self.ends.get(body, body) + 1
            if body < len(self.tokens) and self.tokens[body].text == "{":
                lines = self.tokens[self.ends[body]].line - token.line + 1
                yield Function(name.text, Place(self.path, token.line), lines)

    def structs(self) -> Iterator[Struct]:
        """Yield the structs that have fields of the type `bool`."""
        for at, token in enumerate(self.tokens[:-2]):
            name = self.tokens[at + 1]
            if token.text != "struct" or name.kind != "name":
                continue
            fields = after_generics(self.tokens, at + 2)
            is_tuple = self.tokens[fields].text == "("
            while not is_tuple and self.tokens[fields].text not in ("{", ";"):
                fields = self.ends.get(fields, fields) + 1
            bools = 0
            for field in parts(self.tokens[fields + 1 : self.ends.get(fields, fields)]):
                *before, last = ["", *(each.text for each in field)]
                # `name: bool`, or in a tuple `bool` after attributes and visibility.
                bools += last == "bool" and before[-1] in (("", "]", ")", "pub") if is_tuple else (":",))
            if bools:
                yield Struct(name.text, Place(self.path, token.line), bools)


def tokenize(text: str, path: str) -> list[Token]:
    """Split source code into tokens.

    Raises:
        RustError: a string or a comment has no end.
    """
    tokens: list[Token] = []
    at, line = 0, 1
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise RustError(f"{path}:{line}: a string or a character that does not end: {text[at : at + 20]!r}")
        kind = found.lastgroup
        end = comment_end(text, at, path, line) if kind == "comment" else found.end()
        last_line = line + text.count("\n", at, end)
        if kind not in ("space", "comment"):
            # The group `hashes` lies in `string`, so `lastgroup` is the outer one.
            tokens.append(Token(kind, text[at:end], line, last_line))
        at, line = end, last_line
    return tokens


def comment_end(text: str, at: int, path: str, line: int) -> int:
    """Return where a block comment ends that begins at an offset. Block comments nest."""
    depth = 0
    for edge in COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise RustError(f"{path}:{line}: a comment that does not end")


def matching(tokens: Sequence[Token], path: str) -> dict[int, int]:
    """Return for each opening bracket the index of the closing one.

    Raises:
        RustError: a bracket has no partner.
    """
    ends: dict[int, int] = {}
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.kind != "sign":
            continue
        if token.text in PAIRS:
            opened.append(at)
        elif token.text in PAIRS.values():
            if not opened or PAIRS[tokens[opened[-1]].text] != token.text:
                raise RustError(f"{path}:{token.line}: {token.text} closes nothing")
            ends[opened.pop()] = at
    if opened:
        raise RustError(f"{path}:{tokens[opened[-1]].line}: {tokens[opened[-1]].text} is not closed")
    return ends


def split_tests(tokens: Sequence[Token]) -> tuple[list[Token], list[Token]]:
    """Return the tokens outside of items under `#[cfg(test)]`, and those in them, with the items' attributes."""
    ends = matching(tokens, "")
    kept: list[Token] = []
    tests: list[Token] = []
    at = 0
    while at < len(tokens):
        item, is_test = at, False
        while item + 1 < len(tokens) and tokens[item].text == "#" and tokens[item + 1].text == "[":
            end = ends[item + 1]
            is_test |= is_cfg_test([token.text for token in tokens[item + 2 : end]])
            item = end + 1
        if is_test:
            end = item_end(tokens, ends, item)
            tests += tokens[at:end]
        else:
            end = max(item, at + 1)
            kept += tokens[at:end]
        at = end
    return kept, tests


def is_cfg_test(attribute: list[str]) -> bool:
    """Return whether an attribute holds in tests alone: `cfg(test)`, `cfg(all(…, test, …))` or `cfg(shuttle)`."""
    return attribute[:3] in (["cfg", "(", "test"], ["cfg", "(", "shuttle"]) or (
        attribute[:3] == ["cfg", "(", "all"] and "test" in attribute[4:-2:2]
    )


def item_end(tokens: Sequence[Token], ends: dict[int, int], at: int) -> int:
    """Return the index after an item, a field or a variant whose attributes end before an index."""
    first = at
    if tokens[first].text == "pub":
        first += 1
        first = ends.get(first, first - 1) + 1
    keyword = tokens[first].text
    is_item = keyword in ITEM_KEYWORDS
    # Braces of these do not end them: `use a::{b, c};`.
    to_semicolon = keyword in ("use", "static", "let", "type") or (
        keyword == "const" and tokens[first + 1].text != "fn"
    )
    while at < len(tokens):
        text = tokens[at].text
        if text in PAIRS.values():
            return at
        if text == ";" or (text == "," and not is_item):
            return at + 1
        at = ends.get(at, at) + 1
        if text == "{" and is_item and not to_semicolon:
            return at
    return at


def after_generics(tokens: Sequence[Token], at: int) -> int:
    """Return the index after `<…>`, or the same index if no `<` is there."""
    depth = 0
    while tokens[at].text == "<" or depth:
        depth += {"<": 1, ">": -1}.get(tokens[at].text, 0)
        at += 1
    return at


def parts(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split what is between two brackets at its commas and semicolons, outside of inner brackets and generics."""
    found: list[list[Token]] = [[]]
    depth = 0
    for at, token in enumerate(tokens):
        text = token.text if token.kind == "sign" else ""
        # After a type or `::` a `<` opens generics; elsewhere it compares or shifts.
        is_generic = text == "<" and at > 0 and (tokens[at - 1].text[0].isupper() or tokens[at - 1].text == "::")
        if text in PAIRS or is_generic:
            depth += 1
        elif text in PAIRS.values() or (text == ">" and depth):
            depth -= 1
        elif text in (",", ";") and depth == 0:
            found.append([])
            continue
        found[-1].append(token)
    return found


def closure_body(tokens: list[Token]) -> list[Token]:
    """Return the body of a closure; what is not one comes back as it is."""
    texts = [token.text for token in tokens]
    return tokens[texts.index("|", 1) + 1 :] if texts[:1] == ["|"] and "|" in texts[1:] else tokens


def is_constant(tokens: list[Token]) -> bool:
    """Return whether an expression is a literal, a constant, a path or made of these alone.

    A single name in small letters is a variable, and not a constant.
    """
    texts = [token.text for token in tokens]
    if texts[:1] and texts[0] in ("&", "-", "mut"):
        return is_constant(tokens[1:])
    if len(texts) > 4 and texts[-4] == "." and texts[-3] in CONVERSIONS and texts[-2:] == ["(", ")"]:
        return is_constant(tokens[:-4])
    if len(tokens) == 1 and (tokens[0].kind in ("number", "string", "char") or texts[0] in ("true", "false")):
        return True
    if texts[-4:] == ["[", ".", ".", "]"]:
        return is_constant(tokens[:-4])
    if len(texts) > 2 and texts[-2] == "as":
        return is_constant(tokens[:-2])
    path = 0
    while path < len(tokens) and tokens[path].kind == "name" and texts[path] not in ("if", "match", "move", "unsafe"):
        path += 1
        if texts[path : path + 1] != ["::"]:
            break
        path += 1
    name, rest = texts[path - 1] if path else "", tokens[path:]
    if not rest:
        return path > 1 or name[:1].isupper()
    if rest[0].text not in ("(", "[") or rest[-1].text != PAIRS[rest[0].text]:
        return False
    inner = [part for part in parts(rest[1:-1]) if part]
    if path and not name[:1].isupper():
        return not inner and name in ("new", "default")
    return all(is_constant(part) for part in inner)
