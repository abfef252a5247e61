"""The listing of the Rust crate's public API: how items and types are shown, and what a difference does."""

from pathlib import Path
from typing import Any

import pytest

import public_api

Json = dict[str, Any]
NONE: Json = {"params": [], "where_predicates": []}


def item(name: str, inner: Json, attrs: tuple[str, ...] = (), crate: int = 0) -> Json:
    """Return an item as rustdoc describes it."""
    return {"name": name, "crate_id": crate, "attrs": list(attrs), "inner": inner}


def function(inputs: list[tuple[str, Json]], output: Json | None) -> Json:
    """Return a function's description."""
    header = {"is_const": False, "is_async": False, "is_unsafe": False}
    return {
        "function": {"sig": {"inputs": inputs, "output": output}, "generics": NONE, "header": header, "has_body": True}
    }


def use(name: str, ident: int) -> Json:
    """Return a re-export."""
    return item(name, {"use": {"source": f"inner::{name}", "name": name, "id": ident, "is_glob": False}})


def described() -> Json:
    """Return a crate with an enum under two paths, a function, and a trait that is sealed."""
    kind: Json = {"resolved_path": {"path": "Kind", "id": 2, "args": None}}
    borrowed: Json = {"borrowed_ref": {"lifetime": "'a", "is_mutable": False, "type": {"slice": {"primitive": "u8"}}}}
    sealed: Json = {"trait_bound": {"trait": {"path": "Own", "id": 9, "args": None}, "modifier": "none"}}
    enum: Json = {"generics": NONE, "variants": [5], "impls": []}
    trait: Json = {"generics": NONE, "bounds": [sealed], "items": [7]}
    index = {
        0: item("seglake", {"module": {"items": [1, 3, 4, 6, 8]}}),
        1: item("deep", {"module": {"items": [2]}}),
        2: item("Kind", {"enum": enum}, ("non_exhaustive",)),
        3: use("Kind", 2),
        4: item("told", function([("bytes", borrowed)], kind)),
        5: item("One", {"variant": {"kind": "plain"}}),
        6: item("Writer", {"trait": trait}),
        7: item("close", function([("self", {"generic": "Self"})], None)),
        8: use("other", 10),
    }
    paths = {"9": {"crate_id": 0, "path": ["seglake", "own", "Own"]}}
    return {
        "root": 0,
        "format_version": public_api.KNOWN_FORM,
        "index": {str(key): own for key, own in index.items()},
        "paths": paths,
    }


LISTED = [
    "seglake: mod",
    "seglake::Kind: enum #[non_exhaustive]",
    "seglake::Kind::One: variant",
    "seglake::Writer: trait: sealed",
    "seglake::Writer::close: fn(self) (default)",
    "seglake::deep: mod",
    "seglake::deep::Kind = seglake::Kind",
    "seglake::other = inner::other",
    "seglake::told: fn(bytes: &'a [u8]) -> seglake::Kind",
]


@pytest.fixture(name="root")
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rust/core").mkdir(parents=True)
    monkeypatch.setattr(public_api, "rustdoc", lambda _: described())
    return tmp_path


def test_an_item_is_listed_by_its_shortest_path() -> None:
    assert public_api.Api(described()).lines() == LISTED


@pytest.mark.parametrize(
    ("described", "shown"),
    [
        ({"tuple": []}, "()"),
        ({"array": {"type": {"primitive": "u8"}, "len": "16"}}, "[u8; 16]"),
        ({"raw_pointer": {"is_mutable": True, "type": {"primitive": "u8"}}}, "*mut u8"),
        ({"qualified_path": {"self_type": {"generic": "T"}, "trait": None, "name": "Item"}}, "<T>::Item"),
    ],
)
def test_a_type_is_shown_as_rust_writes_it(described: Json, shown: str) -> None:
    assert public_api.Api({"root": 0, "index": {}, "paths": {}}).type(described) == shown


def test_a_difference_fails_until_it_is_written(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert public_api.main([], root) == 1
    assert "+seglake::told: fn" in capsys.readouterr().err
    assert public_api.main(["--update"], root) == 0
    listing = root / public_api.LISTING
    assert listing.read_text().splitlines() == LISTED
    assert public_api.main([], root) == 0

    listing.write_text("seglake::gone: mod\n" + listing.read_text())
    capsys.readouterr()
    assert public_api.main([], root) == 1
    assert "-seglake::gone: mod" in capsys.readouterr().err


def test_an_unknown_form_is_not_compared(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_api, "KNOWN_FORM", public_api.KNOWN_FORM + 1)
    monkeypatch.setattr(public_api, "rustdoc", lambda _: described() | {"format_version": 1})
    assert public_api.main([], root) == 0
    assert public_api.main(["--update"], root) == 2
    assert not (root / public_api.LISTING).exists()
