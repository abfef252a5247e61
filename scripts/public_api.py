"""Lists the public API of the crate seglake, and compares it with rust/core/public-api.txt.

    make lint                               # compares, and fails on any difference
    python scripts/public_api.py --update   # writes the listing

A commit that changes what others can name shows it in the listing, and says in CHANGELOG.md what it means to them.
The listing is made of rustdoc's JSON, whose form changes with the compiler: with a form that is not known nothing is
compared, and the script says so.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
LISTING: Final = "rust/core/public-api.txt"
RUSTDOC: Final = "scripts/rustdoc_json.sh"
"""Allows rustdoc its JSON. If cargo itself ran with RUSTC_BOOTSTRAP, it would compile all dependencies anew."""
KNOWN_FORM: Final = 57
"""The `format_version` that this script reads."""
STANDARD: Final = ("alloc", "core", "std")
UPDATE: Final = ".venv/bin/python scripts/public_api.py --update"

Json = dict[str, Any]


class ApiError(Exception):
    """The API cannot be listed. The message says what to do."""


@dataclass
class Api:
    """A crate as rustdoc describes it, and the paths by which others name its items."""

    rustdoc: Json
    paths: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    """All public paths of an item, by its ID."""
    others: list[str] = field(default_factory=list[str])
    """The items of other crates that this one names too."""

    def __post_init__(self) -> None:
        self._enter(self.rustdoc["root"], "seglake")
        for paths in self.paths.values():
            paths.sort(key=lambda path: (path.count("::"), path))

    def item(self, ident: int) -> Json | None:
        """Return an item of this crate that is not hidden."""
        return self.rustdoc["index"].get(str(ident))

    def _is_own(self, ident: int | None) -> bool:
        """Whether this is an item of this crate."""
        item = None if ident is None else self.item(ident)
        return item is not None and item["crate_id"] == 0

    def _enter(self, ident: int, path: str) -> None:
        """Note a path of an item, and of those in it if it is a module."""
        item = self.item(ident)
        if item is None or item["crate_id"] != 0:
            return
        self.paths.setdefault(ident, []).append(path)
        for child in item["inner"].get("module", {}).get("items", []):
            own = self.item(child)
            if own is None:
                continue
            use = own["inner"].get("use")
            if use is None:
                self._enter(child, f"{path}::{own['name']}")
            elif self._is_own(use["id"]):
                self._enter(use["id"], f"{path}::{use['name']}")
            else:
                self.others.append(f"{path}::{use['name']} = {use['source']}")

    def lines(self) -> list[str]:
        """Return the listing, sorted."""
        lines = set(self.others)
        for ident, (path, *others) in self.paths.items():
            item = self.item(ident)
            assert item is not None, "only items have paths"
            lines.update(self._of(item, path))
            lines.update(f"{other} = {path}" for other in others)
        return sorted(lines)

    def _of(self, item: Json, path: str) -> Iterator[str]:
        """Yield the lines of an item and of its members."""
        ((kind, inner),) = item["inner"].items()
        mark = " #[non_exhaustive]" if "non_exhaustive" in item["attrs"] else ""
        generics = self._generics(inner) if isinstance(inner, dict) else ""
        match kind:
            case "module":
                yield f"{path}: mod"
            case "function":
                yield f"{path}: {self._function(inner)}"
            case "struct":
                yield f"{path}: struct{generics}{self._hidden(inner)}{mark}"
                yield from self._fields(self._members(inner["kind"]), path)
                yield from self._impls(inner["impls"], path)
            case "enum":
                yield f"{path}: enum{generics}{mark}"
                for variant in map(self.item, inner["variants"]):
                    if variant is not None:
                        own = f"{path}::{variant['name']}"
                        yield f"{own}: variant"
                        yield from self._fields(self._members(variant["inner"]["variant"]["kind"]), own)
                yield from self._impls(inner["impls"], path)
            case "trait":
                yield f"{path}: trait{generics}{self._bounds(inner['bounds'], ': ')}"
                for member in map(self.item, inner["items"]):
                    if member is not None:
                        is_default = member["inner"].get("function", {}).get("has_body", False)
                        lines = self._of(member, f"{path}::{member['name']}")
                        yield from (f"{line} (default)" for line in lines) if is_default else lines
            case "static" | "constant" | "assoc_const":
                yield f"{path}: {kind.removeprefix('assoc_')} {self.type(inner['type'])}"
            case "assoc_type":
                bounds = self._bounds(inner["bounds"], ": ")
                value = f" = {self.type(inner['type'])}" if inner["type"] else ""
                yield f"{path}: type{bounds}{value}"
            case "type_alias":
                yield f"{path}: type{generics} = {self.type(inner['type'])}"
            case _:
                raise ApiError(f"{path} is a {kind}, which scripts/public_api.py does not know: teach it")

    @staticmethod
    def _members(kind: Json | str) -> list[int | None]:
        """Return the IDs of the fields of a struct or variant, in order."""
        if isinstance(kind, str):
            return []
        if "tuple" in kind:
            return kind["tuple"]
        return (kind.get("plain") or kind["struct"])["fields"]

    @staticmethod
    def _hidden(inner: Json) -> str:
        """Return a mark of fields that others cannot name."""
        kind = inner["kind"]
        if isinstance(kind, str):
            return ""
        is_hidden = None in kind["tuple"] if "tuple" in kind else kind["plain"]["has_stripped_fields"]
        return " with private fields" if is_hidden else ""

    def _fields(self, fields: Sequence[int | None], path: str) -> Iterator[str]:
        for ident in fields:
            own = None if ident is None else self.item(ident)
            if own is not None:
                yield f"{path}.{own['name']}: {self.type(own['inner']['struct_field'])}"

    def _impls(self, impls: Sequence[int], path: str) -> Iterator[str]:
        """Yield the inherent members of a type, and the traits that it implements, the derived ones on one line."""
        derived: list[str] = []
        for item in map(self.item, impls):
            if item is None:
                continue
            inner = item["inner"]["impl"]
            if inner["is_synthetic"] or inner["blanket_impl"]:
                continue
            trait = inner["trait"]
            members = [own for own in map(self.item, inner["items"]) if own is not None]
            if trait is None:
                for own in members:
                    yield from self._of(own, f"{path}::{own['name']}")
            elif self._is_named(trait["id"]) and trait["path"] != "StructuralPartialEq":
                types = [
                    f"{own['name']} = {self.type(own['inner']['assoc_type']['type'])}"
                    for own in members
                    if "assoc_type" in own["inner"]
                ]
                with_types = f" with {', '.join(types)}" if types else ""
                implemented = f"{self._path(trait)} for {self.type(inner['for'])}"
                if "automatically_derived" in item["attrs"]:
                    derived.append(trait["path"].split("::")[-1])
                    continue
                yield f"{path}: impl{self._generics(inner)} {implemented}{with_types}"
        if derived:
            yield f"{path}: derives {', '.join(sorted(derived))}"

    def _is_named(self, ident: int) -> bool:
        """Whether others can name this."""
        return ident in self.paths or self.rustdoc["paths"][str(ident)]["crate_id"] != 0

    def _function(self, inner: Json) -> str:
        header, sig = inner["header"], inner["sig"]
        words = [word for word in ("const", "async", "unsafe") if header[f"is_{word}"]]
        arguments = ", ".join(self._argument(name, own) for name, own in sig["inputs"])
        output = f" -> {self.type(sig['output'])}" if sig["output"] else ""
        return f"{' '.join([*words, 'fn'])}{self._generics(inner)}({arguments}){output}"

    def _argument(self, name: str, own: Json) -> str:
        text = self.type(own)
        return (
            text.replace("Self", "self")
            if name == "self" and text in ("Self", "&Self", "&mut Self")
            else f"{name}: {text}"
        )

    def _generics(self, inner: Json) -> str:
        generics = inner.get("generics") or {"params": [], "where_predicates": []}
        shown = [text for text in map(self._parameter, generics["params"]) if text]
        where = [text for text in map(self._predicate, generics["where_predicates"]) if text]
        return (f"<{', '.join(shown)}>" if shown else "") + (f" where {', '.join(where)}" if where else "")

    def _parameter(self, own: Json) -> str:
        kind = own["kind"]
        if "lifetime" in kind:
            outlives = " + ".join(kind["lifetime"]["outlives"])
            return own["name"] + (f": {outlives}" if outlives else "")
        if "const" in kind:
            return f"const {own['name']}: {self.type(kind['const']['type'])}"
        # `impl Trait` is shown where it stands.
        return "" if kind["type"]["is_synthetic"] else own["name"] + self._bounds(kind["type"]["bounds"], ": ")

    def _predicate(self, own: Json) -> str:
        if "bound_predicate" in own:
            bound = own["bound_predicate"]
            return self.type(bound["type"]) + self._bounds(bound["bounds"], ": ")
        return json.dumps(own, sort_keys=True)

    def _bounds(self, bounds: Sequence[Json], before: str) -> str:
        shown: list[str] = []
        for bound in bounds:
            if "trait_bound" in bound:
                modifier = {"none": "", "maybe": "?"}.get(bound["trait_bound"]["modifier"], "~")
                trait = bound["trait_bound"]["trait"]
                shown.append(modifier + (self._path(trait) if self._is_named(trait["id"]) else "sealed"))
            elif "outlives" in bound:
                shown.append(bound["outlives"])
            else:
                shown.append(json.dumps(bound, sort_keys=True))
        return before + " + ".join(shown) if shown else ""

    def _path(self, own: Json) -> str:
        """Return a type or trait by its shortest public path; of other crates by crate and name."""
        known = self.paths.get(own["id"])
        if known:
            name = known[0]
        else:
            full = self.rustdoc["paths"].get(str(own["id"]), {"path": own["path"].split("::")})["path"]
            name = full[-1] if full[0] in STANDARD else f"{full[0]}::{full[-1]}"
        return name + self._arguments(own.get("args"))

    def _arguments(self, given: Json | None) -> str:
        if not given:
            return ""
        if "parenthesized" in given:
            own = given["parenthesized"]
            output = f" -> {self.type(own['output'])}" if own["output"] else ""
            return f"({', '.join(map(self.type, own['inputs']))}){output}"
        own = given["angle_bracketed"]
        shown = [self._generic_argument(each) for each in own["args"]]
        for each in own["constraints"]:
            ((kind, value),) = each["binding"].items()
            shown.append(
                each["name"] + (f" = {self._term(value)}" if kind == "equality" else self._bounds(value, ": "))
            )
        return f"<{', '.join(shown)}>" if shown else ""

    def _term(self, own: Json) -> str:
        return self.type(own["type"]) if "type" in own else str(own["constant"]["expr"])

    def _generic_argument(self, own: Json | str) -> str:
        if isinstance(own, str):
            return "_"
        if "lifetime" in own:
            return own["lifetime"]
        return self._term({"constant": own["const"]} if "const" in own else own)

    def type(self, own: Json | str) -> str:
        """Return a type as Rust writes it."""
        if isinstance(own, str):
            return "_"
        ((kind, inner),) = own.items()
        match kind:
            case "resolved_path":
                return self._path(inner)
            case "generic" | "primitive":
                return inner
            case "borrowed_ref":
                lifetime = f"{inner['lifetime']} " if inner["lifetime"] else ""
                return f"&{lifetime}{'mut ' if inner['is_mutable'] else ''}{self.type(inner['type'])}"
            case "raw_pointer":
                return f"*{'mut' if inner['is_mutable'] else 'const'} {self.type(inner['type'])}"
            case "slice":
                return f"[{self.type(inner)}]"
            case "array":
                return f"[{self.type(inner['type'])}; {inner['len']}]"
            case "tuple":
                return f"({', '.join(map(self.type, inner))})"
            case "impl_trait":
                return f"impl {self._bounds(inner, '')}"
            case "dyn_trait":
                traits = [self._path(each["trait"]) for each in inner["traits"]]
                lifetime = [inner["lifetime"]] if inner["lifetime"] else []
                return f"dyn {' + '.join([*traits, *lifetime])}"
            case "function_pointer":
                arguments = ", ".join(self.type(each) for _, each in inner["sig"]["inputs"])
                output = f" -> {self.type(inner['sig']['output'])}" if inner["sig"]["output"] else ""
                return f"fn({arguments}){output}"
            case "qualified_path":
                trait = f" as {self._path(inner['trait'])}" if inner["trait"] and inner["trait"]["path"] else ""
                return f"<{self.type(inner['self_type'])}{trait}>::{inner['name']}"
            case _:
                raise ApiError(f"a type is a {kind}, which scripts/public_api.py does not know: teach it")


def rustdoc(root: Path) -> Json:
    """Let rustdoc describe the crate with all features.

    Raises:
        ApiError: it does not compile.
    """
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "rustdoc", "--locked", "--package", "seglake", "--lib", "--all-features"]
    command += ["--", "-Z", "unstable-options", "--output-format", "json"]
    done = subprocess.run(
        command,
        cwd=root,
        env=os.environ | {"RUSTDOC": str(root / RUSTDOC)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ApiError(f"rustdoc failed:\n{done.stderr}")
    return json.loads((root / "target/doc/seglake.json").read_text(encoding="utf-8"))


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """List and compare. Return 1 if the API differs from the listing, 2 if it cannot be listed."""
    parser = argparse.ArgumentParser(description=f"Compare the public API of the crate seglake with {LISTING}.")
    parser.add_argument("--update", action="store_true", help="write the listing")
    given = parser.parse_args(arguments)
    try:
        described = rustdoc(root)
        if described["format_version"] != KNOWN_FORM:
            form = described["format_version"]
            print(f"{LISTING} was not compared: rustdoc's JSON has form {form}, known is {KNOWN_FORM}", file=sys.stderr)
            return 2 if given.update else 0
        found = Api(described).lines()
    except ApiError as error:
        print(error, file=sys.stderr)
        return 2
    file = root / LISTING
    text = "".join(f"{line}\n" for line in found)
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    if text == before:
        print(f"the public API is as {LISTING} says")
        return 0
    if given.update:
        file.write_text(text, encoding="utf-8", newline="\n")
        print(f"wrote {LISTING}: say in CHANGELOG.md what changes for users")
        return 0
    differences = difflib.unified_diff(before.splitlines(), found, LISTING, "the crate", lineterm="", n=0)
    print(*differences, sep="\n", file=sys.stderr)
    print(f"The public API differs from {LISTING}. If that is meant: {UPDATE}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
