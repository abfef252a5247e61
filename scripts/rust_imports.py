"""Which file of a Rust crate takes names from which, and the circles that this makes.

A path is followed through `mod` declarations, imports and re-exports to the file that defines the name. So a `mod` and
a `pub use` tie nothing by themselves, and an import from a `mod.rs` is a tie to it only for what it defines. Methods
are not followed: a call names no file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from rust_code import DEFINING, PAIRS, Place, RustError, Source, Token, matching

MODIFIERS: Final = ("async", "extern", "fn", "unsafe")
ROOTS: Final = ("lib.rs", "main.rs")
FRONTS: Final = (*ROOTS, "mod.rs")
"""Files whose modules lie beside them."""


class Item(NamedTuple):
    """A name, and the file that defines it."""

    path: str
    name: str


@dataclass(frozen=True)
class Import:
    """One name of a `use`."""

    segments: tuple[str, ...]
    alias: str
    """The name that it has here; `*` for all names."""
    line: int
    is_public: bool
    """With `pub` or `pub(…)`: others can take the name from here."""


@dataclass
class Module:
    """A module: a file, or `mod NAME { … }` in one."""

    source: Source
    folder: Path
    """Where the files of its own modules are."""
    parent: Module | None
    tokens: list[Token] = field(default_factory=list[Token])
    """Without those of modules inside."""
    modules: dict[str, Module] = field(default_factory=dict[str, "Module"])
    defined: set[str] = field(default_factory=set[str])
    imports: list[Import] = field(default_factory=list[Import])
    paths: list[tuple[tuple[str, ...], int]] = field(default_factory=list[tuple[tuple[str, ...], int]])
    """Paths in the code, such as `walk::open` and `crate::Error`, each with its line."""
    names: dict[str, int] = field(default_factory=dict[str, int])
    """Names in the code, each with its first line."""

    def all(self) -> Iterator[Module]:
        """Yield this module and those inside."""
        yield self
        for module in self.modules.values():
            yield from module.all()

    def resolve(self, segments: Sequence[str], seen: frozenset[tuple[int, str]] = frozenset()) -> Item | Module | None:
        """Return what a path leads to; None if it is in another crate."""
        found: Item | Module | None = self
        for at, segment in enumerate(segments):
            if segment == "crate" and at == 0:
                while found.parent is not None:
                    found = found.parent
            elif segment == "super":
                if found.parent is None:
                    return None
                found = found.parent
            elif segment != "self":
                found = found.lookup(segment, at == len(segments) - 1, at == 0, seen)
            if not isinstance(found, Module):
                return found
        return found

    def lookup(
        self, name: str, is_last: bool, is_first: bool, seen: frozenset[tuple[int, str]]
    ) -> Item | Module | None:
        """Return what a name is in this module.

        A module and a function may have one name. The last name of a path is rather the function, the others modules.
        """
        if not is_last and name in self.modules:
            return self.modules[name]
        if name in self.defined:
            return Item(self.source.path, name)
        if (id(self), name) not in seen:
            seen |= {(id(self), name)}
            for each in self.imports:
                if each.alias in (name, "*") and (found := self.resolve_import(each, name, seen)) is not None:
                    return found
        if name in self.modules:
            return self.modules[name]
        # A name that a macro defines cannot be seen. The first name of a path may be a crate.
        return None if is_first else Item(self.source.path, name)

    def resolve_import(self, given: Import, name: str, seen: frozenset[tuple[int, str]]) -> Item | Module | None:
        """Return what an import gives as a name; None if that comes from another crate."""
        if given.alias != "*":
            return self.resolve(given.segments, seen)
        found = self.resolve(given.segments, seen)
        if not isinstance(found, Module) or found is self:
            return None
        return found.lookup(name, False, True, seen)


@dataclass(frozen=True)
class Tie:
    """A file that takes names from another."""

    source: str
    target: str
    names: tuple[str, ...]
    line: int
    """The first line of `source` that takes one."""

    @property
    def is_inward(self) -> bool:
        """Whether a module takes names from a file of the modules that it contains."""
        folder, _, file = self.source.rpartition("/")
        inside = folder if file in FRONTS else self.source.removesuffix(".rs")
        return self.target.startswith(f"{inside}/")

    def __str__(self) -> str:
        return f"{Place(self.source, self.line)} -> {self.target}: {', '.join(self.names)}"


@dataclass(frozen=True)
class Crate:
    """A crate's files without tests, and the ties between them."""

    name: str
    """Its folder, from the root of the repository."""
    sources: list[Source]
    ties: list[Tie]


@dataclass(frozen=True)
class Circle:
    """Files or folders that all reach each other."""

    members: tuple[str, ...]
    """Sorted."""
    ties: list[Tie]
    """What makes the circle."""


def read_crate(root: Path, folder: Path) -> Crate:
    """Read a crate from its folder.

    Raises:
        RustError: a file cannot be read as Rust, there is none for a `mod`, or no `mod` declares it.
    """
    files = {file: Source.read(root, file) for file in sorted((folder / "src").rglob("*.rs"))}
    name = folder.relative_to(root).as_posix()
    start = next((folder / "src" / each for each in ROOTS if folder / "src" / each in files), None)
    if start is None:
        raise RustError(f"{name}/src: neither {' nor '.join(ROOTS)} is there")
    front = read_module(files, start, None)
    modules = list(front.all())
    reached = {module.source.path for module in modules}
    # A module in braces has its file's source, whose tests it does not declare.
    whole = [module for module in modules if module.parent is None or module.parent.source is not module.source]
    tests = {module.source.path for module in whole for module in read_tests(files, module)}
    for source in files.values():
        if source.path not in reached | tests:
            raise RustError(f"{source.path}:1: no `mod` declares this file: declare it or remove it")
    return Crate(name, [source for source in files.values() if source.path in reached], sorted_ties(modules))


def read_tests(files: Mapping[Path, Source], module: Module) -> Iterator[Module]:
    """Yield the modules in files of their own that a module declares for tests alone."""
    for name in module.source.test_modules:
        yield from read_module(files, module_file(files, module, name, 1), module).all()


def read_module(files: Mapping[Path, Source], file: Path, parent: Module | None) -> Module:
    """Read the module of a file, and all modules that it declares."""
    folder = file.parent if file.name in FRONTS else file.with_suffix("")
    module = Module(files[file], folder, parent)
    read_items(files, module, module.source.tokens)
    return module


def module_file(files: Mapping[Path, Source], module: Module, name: str, line: int) -> Path:
    """Return the file of a module that is declared in another."""
    for file in (module.folder / f"{name}.rs", module.folder / name / "mod.rs"):
        if file in files:
            return file
    raise RustError(f"{Place(module.source.path, line)}: there is no file for `mod {name}`")


def read_items(files: Mapping[Path, Source], module: Module, tokens: list[Token]) -> None:
    """Read what a module defines, declares, imports and names."""
    ends = matching(tokens, module.source.path)
    at = 0
    while at < len(tokens):
        end = at + 1
        name_at = defined_at(tokens, at)
        if tokens[at].text in PAIRS:
            end = ends[at] + 1
        elif name_at is not None:
            name, end = tokens[name_at], name_at + 1
            if tokens[at].text != "mod":
                module.defined.add(name.text)
            elif tokens[end].text == ";":
                module.modules[name.text] = read_module(files, module_file(files, module, name.text, name.line), module)
                at = end
            else:
                inner = Module(module.source, module.folder / name.text, module)
                module.modules[name.text] = inner
                read_items(files, inner, tokens[end + 1 : ends[end]])
                at = end = ends[end] + 1
        module.tokens += tokens[at:end]
        at = end
    read_paths(module)


def defined_at(tokens: Sequence[Token], at: int) -> int | None:
    """Return the index of the name that a keyword at an index defines; None if none is there."""
    if tokens[at].kind != "name" or tokens[at].text not in DEFINING:
        return None
    at += 1
    while at < len(tokens) and tokens[at].text in ("!", "mut"):
        at += 1
    # Of `const fn f`, `fn` defines the name.
    is_name = at < len(tokens) and tokens[at].kind == "name" and tokens[at].text not in MODIFIERS
    return at if is_name else None


def read_paths(module: Module) -> None:
    """Read a module's imports and the paths in its code, those in functions too."""
    tokens = module.tokens
    ends = matching(tokens, module.source.path)
    at = 0
    while at < len(tokens):
        token = tokens[at]
        following = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if token.text == "use" and token.kind == "name" and following != "<":
            before = tokens[at - 1].text if at else ""
            module.imports += read_use(tokens, at + 1, (), before == "pub" or before == ")")[0]
            while tokens[at].text != ";":
                at = ends.get(at, at) + 1
        elif token.kind == "name" and (at == 0 or tokens[at - 1].text not in (".", "::")):
            module.names.setdefault(token.text, token.line)
            segments = [token.text]
            while at + 2 < len(tokens) and tokens[at + 1].text == "::" and tokens[at + 2].kind == "name":
                at += 2
                segments.append(tokens[at].text)
            if len(segments) > 1:
                module.paths.append((tuple(segments), token.line))
        at += 1


def read_use(tokens: Sequence[Token], at: int, before: tuple[str, ...], is_public: bool) -> tuple[list[Import], int]:
    """Read one tree of a `use`: a path, or a path with a group at its end.

    Returns:
        Its imports, and the index after it.
    """
    segments = before
    line = tokens[at].line
    if tokens[at].text == "::":
        # Another crate's, whatever is here: no module has this name.
        segments, at = ("::",), at + 1
    while True:
        token = tokens[at]
        at += 1
        if token.text == "*":
            return [Import(segments, "*", line, is_public)], at
        if token.text == "{":
            found: list[Import] = []
            while tokens[at].text != "}":
                inner, at = read_use(tokens, at, segments, is_public)
                found += inner
                at += tokens[at].text == ","
            return found, at + 1
        if token.text != "self" or not segments:
            segments = (*segments, token.text)
        if tokens[at].text != "::":
            break
        at += 1
    alias = segments[-1]
    if tokens[at].text == "as":
        alias, at = tokens[at + 1].text, at + 2
    return [Import(segments, alias, line, is_public)], at


def sorted_ties(modules: Iterable[Module]) -> list[Tie]:
    """Return the ties between the files of modules."""
    names: dict[tuple[str, str], set[str]] = defaultdict(set)
    lines: dict[tuple[str, str], int] = {}
    for module in modules:
        for item, line in taken(module):
            if item.path != module.source.path:
                key = module.source.path, item.path
                names[key].add(item.name)
                lines[key] = min(line, lines.get(key, line))
    return [Tie(*key, tuple(sorted(names[key])), lines[key]) for key in sorted(names)]


def taken(module: Module) -> Iterator[tuple[Item, int]]:
    """Yield what a module takes from itself and from others, with the line where it does."""
    for each in module.imports:
        if each.alias == "*":
            for name, line in module.names.items():
                found = module.resolve_import(each, name, frozenset())
                if isinstance(found, Item):
                    yield found, line
        elif not each.is_public or each.alias in module.names:
            found = module.resolve(each.segments)
            if isinstance(found, Item):
                yield found, each.line
    for segments, line in module.paths:
        found = module.resolve(segments)
        if isinstance(found, Item):
            yield found, line


def folder_of(path: str) -> str:
    """Return the folder of a file; a folder inside another counts by itself."""
    return path.rpartition("/")[0]


def file_circles(crate: Crate) -> list[Circle]:
    """Return the circles between files.

    What a `mod.rs` takes from the modules that it contains makes none: they are its own parts.
    """
    return circles((tie.source, tie.target, tie) for tie in crate.ties if not tie.is_inward)


def folder_circles(crate: Crate) -> list[Circle]:
    """Return the circles between folders, by all ties."""
    return circles((folder_of(tie.source), folder_of(tie.target), tie) for tie in crate.ties)


def circles(arrows: Iterable[tuple[str, str, Tie]]) -> list[Circle]:
    """Return the circles that arrows from place to place make, each arrow with the tie that it stands for."""
    arrows = [arrow for arrow in arrows if arrow[0] != arrow[1]]
    after: dict[str, set[str]] = defaultdict(set)
    for source, target, _ in arrows:
        after[source].add(target)
    reached = {start: reach(after, start) for start in after}
    members = {tuple(sorted(other for other in reached[start] if start in reached.get(other, ()))) for start in reached}
    return [
        Circle(each, [tie for source, target, tie in arrows if source in each and target in each])
        for each in sorted(members)
        if each
    ]


def reach(after: Mapping[str, set[str]], start: str) -> set[str]:
    """Return all places that arrows lead to from a place."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = after.get(waiting.pop(), set[str]()) - found
        found |= new
        waiting += new
    return found
