"""`make structure`: the tokens of Rust, each measurement on small trees, and what differs from a budget."""

import subprocess
from pathlib import Path

import pytest

import rust_code
import rust_imports
import structure

LONG = "fn long() {\n" + "    step();\n" * 59 + "}\n"
"""61 lines."""


def write(root: Path, files: dict[str, str], crate: str = "core") -> Path:
    """Write a crate's files, by their path in `src`."""
    folder = root / "rust" / crate
    for name, text in files.items():
        path = folder / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "Cargo.toml").write_text("[package]\n")
    return folder


def source(root: Path, text: str) -> rust_code.Source:
    """Read one file."""
    path = root / "a.rs"
    path.write_text(text, encoding="utf-8")
    return rust_code.Source.read(root, path)


def texts(text: str) -> list[str]:
    return [token.text for token in rust_code.tokenize(text, "a.rs")]


def crate(root: Path, files: dict[str, str]) -> rust_imports.Crate:
    return rust_imports.read_crate(root, write(root, files))


def ties(root: Path, files: dict[str, str]) -> set[tuple[str, str, tuple[str, ...]]]:
    """The ties of a crate, with paths in `src`."""
    found = crate(root, files).ties
    return {
        (tie.source.removeprefix("rust/core/src/"), tie.target.removeprefix("rust/core/src/"), tie.names)
        for tie in found
    }


def members(circles: list[rust_imports.Circle]) -> list[list[str]]:
    return [[member.removeprefix("rust/core/src").removeprefix("/") for member in circle.members] for circle in circles]


# Tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a // b "\nc', ["a", "c"]),
        ("a /* b /* c */ ' \" */ d", ["a", "d"]),
        ("/// doc\n//! doc\n/** doc */ a", ["a"]),
        (r'"// \" /*" b', [r'"// \" /*"', "b"]),
        ('"\\\\" b', ['"\\\\"', "b"]),
        ('r"\\" b', ['r"\\"', "b"]),
        ('r#"a " b"# c', ['r#"a " b"#', "c"]),
        ('br##"a "# b"## c"x" b"y"', ['br##"a "# b"##', 'c"x"', 'b"y"']),
        ("r#type x", ["r#type", "x"]),
        (
            "'a' b'\\'' '\\\\' '\"' '\\u{1F600}' '\\x7f' 'ä'",
            ["'a'", "b'\\''", "'\\\\'", "'\"'", "'\\u{1F600}'", "'\\x7f'", "'ä'"],
        ),
        (
            "<'a, 'b>(x: &'static str) 'c: loop",
            ["<", "'a", ",", "'b", ">", "(", "x", ":", "&", "'static", "str", ")", "'c", ":", "loop"],
        ),
        ("0..5 1.5e3 0xff_u8 x.0.1", ["0", ".", ".", "5", "1.5e3", "0xff_u8", "x", ".", "0.1"]),
        ("a::<B>() -> C => d", ["a", "::", "<", "B", ">", "(", ")", "->", "C", "=>", "d"]),
    ],
)
def test_text_in_comments_and_strings_is_not_code(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


def test_tokens_have_their_lines() -> None:
    found = rust_code.tokenize('a\n/* \n */ "b\nc" d', "a.rs")
    assert [(token.text, token.line, token.last_line) for token in found] == [
        ("a", 1, 1),
        ('"b\nc"', 3, 4),
        ("d", 4, 4),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('\n"a', r"a.rs:2: a string or a character that does not end"),
        ("\n\n/* /* */", r"a.rs:3: a comment that does not end"),
        ("{\n(", r"a.rs:2: \( is not closed"),
        ("{\n)", r"a.rs:2: \) closes nothing"),
    ],
)
def test_what_does_not_end_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(rust_code.RustError, match=message):
        source(tmp_path, text)


# Tests are left out


@pytest.mark.parametrize(
    "item",
    [
        "#[cfg(test)]\nmod tests {\n    fn b() { '{'; }\n}\n",
        "#[allow(dead_code)]\n#[cfg(test)]\npub(crate) const fn b<A, B>() {\n}\n",
        "#[cfg(test)]\n#[allow(dead_code)]\nfn b() {}\n",
        "#[cfg(all(unix, test))]\nuse b::{c, d};\n",
        "#[cfg(shuttle)]\nuse b::{c, d};\n",
        "#[cfg(test)]\nmod tests;\n",
        "#[cfg(shuttle)]\nmod tests;\n",
        "#[cfg(test)]\nconst B: [C; 2] = [C { d: 1 }, C { d: 2 }];\n",
        "#[cfg(test)]\nimpl B { fn c() {} }\n",
    ],
)
def test_items_of_tests_are_left_out(tmp_path: Path, item: str) -> None:
    read = source(tmp_path, f"fn a() {{}}\n{item}struct Z;\n")
    assert [token.text for token in read.tokens] == ["fn", "a", "(", ")", "{", "}", "struct", "Z", ";"]
    assert len(read.code_lines) == 2


def test_fields_and_variants_of_tests_are_left_out(tmp_path: Path) -> None:
    read = source(tmp_path, "struct A { #[cfg(test)] pub a: B<C>, b: bool, #[cfg(test)] c: bool }\n")
    assert "".join(token.text for token in read.tokens) == "structA{b:bool,}"


@pytest.mark.parametrize("attribute", ["cfg(not(test))", "cfg(any(test, unix))", 'cfg(feature = "test")', "test"])
def test_items_that_others_build_too_stay(tmp_path: Path, attribute: str) -> None:
    assert len(source(tmp_path, f"#[{attribute}]\nfn a() {{}}\n").code_lines) == 2


def test_blank_lines_and_comments_are_no_code_lines(tmp_path: Path) -> None:
    text = '//! doc\n\nfn a() {\n    // why\n    b("\n\n");\n    /* c\n\n */\n}\n'
    assert source(tmp_path, text).code_lines == {3, 5, 6, 7, 11}


# Silent defaults


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (
            "a.unwrap_or(b); a.unwrap_or_default(); a.unwrap_or_else(b)",
            ["unwrap_or", "unwrap_or_default", "unwrap_or_else"],
        ),
        ("a.map(Option::unwrap_or_default)", ["unwrap_or_default"]),
        ("a\n    .ok()\n    ?.b", ["ok"]),
        ("a.ok()??", ["ok"]),
        ("a.ok(); a.ok().flatten(); self.ok(b)?", []),
        ("a.map_or(0, |b| b); a.map_or(-1.5, b); a.map_or(true, b); a.map_or(&[][..], b)", ["map_or"] * 4),
        ("a.map_or(Value::Null, b); a.map_or(u64::MAX as usize, b); a.map_or(LIMIT, b)", ["map_or"] * 3),
        ("a.map_or(Ok(Value::Null), b); a.map_or((0, None), b); a.map_or(String::new(), b)", ["map_or"] * 3),
        ("a.map_or(b, c); a.map_or(b.len(), c); a.map_or(Ok(b), c); a.map_or(b == C, d)", []),
        (
            'a.map_or_else(String::new, b); a.map_or_else(|| 0, b); a.map_or_else(|_| "x".to_owned(), b)',
            ["map_or_else"] * 3,
        ),
        ("a.map_or_else(|| b(c), d); a.map_or_else(b, c)", []),
        ('fn unwrap_or(a: B) {} /* a.unwrap_or(b) */ "a.unwrap_or(b)"', []),
        ("a.unwrap_or_abort(b); a.ok_or(b)?", []),
    ],
)
def test_silent_defaults(tmp_path: Path, text: str, kinds: list[str]) -> None:
    assert [default.kind for default in source(tmp_path, f"fn f() {{ {text}; }}").defaults()] == kinds


def test_a_silent_default_has_a_place(tmp_path: Path) -> None:
    (default,) = source(tmp_path, "fn f() {\n    a\n        .unwrap_or(b)\n}\n").defaults()
    assert str(default.place) == "a.rs:3"


# Functions and structs


def test_functions_have_their_lines(tmp_path: Path) -> None:
    text = """\
trait A { fn without_body(&self) -> [u8; 3]; }
impl A {
    pub(crate) const fn outer<F: Fn([u8; 2]) -> B>(
        f: fn(u8) -> u8,
    ) -> [u8; 3]
    where
        F: C,
    {
        fn inner() {}
    }
}
macro_rules! m { ($name:ident) => { fn $name() {} } }
"""
    found = [(function.name, function.lines, str(function.place)) for function in source(tmp_path, text).functions()]
    assert found == [("outer", 8, "a.rs:3"), ("inner", 1, "a.rs:9")]


@pytest.mark.parametrize(
    ("text", "bools"),
    [
        ("struct A { a: bool, pub b: bool, #[c] d: bool }", 3),
        ("struct A<F: Fn(bool, bool) -> bool>(pub bool, #[c] bool, pub(crate) bool, bool);", 4),
        ("struct A<F> where F: Fn(B) -> bool { a: bool, f: F }", 1),
        ("struct A { a: Option<bool>, b: Map<u8, bool>, c: fn(bool) -> bool, d: [bool; 2], e: &'static bool }", 0),
        ("struct A(Map<bool, bool, bool>, fn() -> bool); struct B;", 0),
        ("enum A { B { c: bool } } fn f(a: bool) {}", 0),
    ],
)
def test_bool_fields(tmp_path: Path, text: str, bools: int) -> None:
    assert sum(struct.bools for struct in source(tmp_path, text).structs()) == bools


# Ties


@pytest.mark.parametrize(
    "code",
    [
        "use crate::b::B;",
        "use super::b::B;",
        "use crate::{b::{B as C}};",
        "use crate::b::{self}; fn f() -> b::B {}",
        "use ::b::X; use crate::b; fn f() -> b::B {}",
        "use crate::b as other; fn f() { other::B::new() }",
        "fn f() -> crate::b::B { }",
        "fn f() { super::b::B {} }",
        "fn f() { use crate::b::B; }",
        "use crate::b::*; fn f(b: B) {}",
        "use super::Handed;",
        "fn f() { crate::Handed::new() }",
        "mod inner { use super::super::b::B; }",
    ],
)
def test_a_name_ties_a_file_to_the_one_that_defines_it(tmp_path: Path, code: str) -> None:
    front = "mod a;\nmod b;\npub use b::B as Handed;\n"
    found = ties(tmp_path, {"lib.rs": front, "a.rs": code, "b.rs": "pub(crate) struct B;"})
    assert found == {("a.rs", "b.rs", ("B",))}


@pytest.mark.parametrize(
    "code",
    [
        "",
        "use crate::b;",
        "use std::b::B; use b::B; fn f() { std::b::B }",
        "pub(in crate::b) struct A;",
        "fn f() -> impl Sized + use<> { x.b::<B>() }",
        "#[cfg(test)]\nmod tests { use crate::b::B; }",
        '// crate::b::B\nconst A: &str = "crate::b::B";',
    ],
)
def test_what_takes_no_name_is_no_tie(tmp_path: Path, code: str) -> None:
    assert ties(tmp_path, {"lib.rs": "mod a;\nmod b;\n", "a.rs": code, "b.rs": "pub(crate) struct B;"}) == set()


def test_re_exports_are_followed_over_several_files(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\n",
        "a.rs": "use crate::b::{C, D, E, made};",
        "b/mod.rs": "mod c;\nmod d;\npub use c::{C, D};\npub(crate) struct E;\nmake! { made }\n",
        "b/c.rs": "pub use super::d::*;\npub struct C;",
        "b/d.rs": "pub struct D;",
    }
    # A name that nothing defines is a macro's: of the module that it is taken from.
    assert ties(tmp_path, files) == {
        ("a.rs", "b/c.rs", ("C",)),
        ("a.rs", "b/d.rs", ("D",)),
        ("a.rs", "b/mod.rs", ("E", "made")),
    }


def test_a_re_export_ties_nothing_until_the_name_is_used(tmp_path: Path) -> None:
    files = {"lib.rs": "mod a;\npub use a::A;\n", "a.rs": "pub struct A;"}
    assert ties(tmp_path, files) == set()
    assert ties(tmp_path, {"lib.rs": "mod a;\npub use a::A;\nfn f(a: A) {}\n"}) == {("lib.rs", "a.rs", ("A",))}


def test_a_module_and_a_function_of_one_name_are_told_apart(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod verbs;\n",
        "a.rs": "use crate::verbs::index;\nfn f() { index() }",
        "verbs/mod.rs": "mod index;\npub use index::{Indexed, index};\n",
        "verbs/index.rs": "pub struct Indexed;\npub fn index() {}",
    }
    assert ties(tmp_path, files) == {("a.rs", "verbs/index.rs", ("index",))}


def test_modules_lie_beside_mod_rs_and_below_other_files(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod inline { mod b; }\n",
        "a.rs": "mod c;",
        "a/c.rs": "use crate::inline::b::B;",
        "inline/b.rs": "pub struct B;",
    }
    assert ties(tmp_path, files) == {("a/c.rs", "inline/b.rs", ("B",))}


def test_a_tie_names_its_first_line(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\n",
        "a.rs": "//! A.\nfn f() -> crate::b::C {}\nuse crate::b::{\n    B, D,\n};",
        "b.rs": "struct B; struct C; struct D;",
    }
    assert [str(tie) for tie in crate(tmp_path, files).ties] == ["rust/core/src/a.rs:2 -> rust/core/src/b.rs: B, C, D"]
    files["a.rs"] = "use crate::b::{\n};\nuse crate::b::{\n    B,\n};\nfn f() -> crate::b::B {}"
    assert [str(tie) for tie in crate(tmp_path, files).ties] == ["rust/core/src/a.rs:4 -> rust/core/src/b.rs: B"]


def test_files_of_tests_are_left_out(tmp_path: Path) -> None:
    files = {"lib.rs": "#[cfg(test)]\nmod tests;\n", "tests.rs": "mod more;", "tests/more.rs": "use crate::A;"}
    assert [each.path for each in crate(tmp_path, files).sources] == ["rust/core/src/lib.rs"]
    files["lib.rs"] += "mod inline {}\n"
    assert [each.path for each in crate(tmp_path, files).sources] == ["rust/core/src/lib.rs"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"lib.rs": "", "a.rs": ""}, "rust/core/src/a.rs:1: no `mod` declares this file: declare it or remove it"),
        ({"lib.rs": "\nmod a;"}, "rust/core/src/lib.rs:2: there is no file for `mod a`"),
        ({"a.rs": ""}, "rust/core/src: neither lib.rs nor main.rs is there"),
    ],
)
def test_a_file_that_is_missing_or_left_over_is_an_error(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(rust_code.RustError, match=message):
        crate(tmp_path, files)


# Circles

ROUND = {"lib.rs": "mod a;\nmod b;\nmod c;\n", "a.rs": "use crate::b::B;", "b.rs": "use crate::c::C;", "c.rs": ""}


def test_files_that_reach_each_other_are_a_circle(tmp_path: Path) -> None:
    assert members(rust_imports.file_circles(crate(tmp_path, ROUND))) == []
    (circle,) = rust_imports.file_circles(crate(tmp_path, {"c.rs": "use crate::a::A;"}))
    assert members([circle]) == [["a.rs", "b.rs", "c.rs"]]
    assert [tie.names for tie in circle.ties] == [("B",), ("C",), ("A",)]


def test_two_circles_are_two(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\nmod c;\nmod d;\n",
        "a.rs": "use crate::b::B;",
        "b.rs": "use crate::{a::A, c::C};",
        "c.rs": "use crate::d::D;",
        "d.rs": "use crate::c::C;",
    }
    assert members(rust_imports.file_circles(crate(tmp_path, files))) == [["a.rs", "b.rs"], ["c.rs", "d.rs"]]


def test_a_folder_in_another_counts_by_itself(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod format;\n",
        "format/mod.rs": "mod active;\nmod walk;\nfn table() { active::open() }\n",
        "format/active/mod.rs": "use super::walk::Walk;\npub fn open() {}\n",
        "format/walk.rs": "pub struct Walk;",
    }
    found = crate(tmp_path, files)
    assert members(rust_imports.folder_circles(found)) == [["format", "format/active"]]
    assert members(rust_imports.file_circles(found)) == []


def test_what_a_module_takes_from_its_own_parts_is_no_circle_between_files(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\n",
        "a/mod.rs": "mod c;\nuse c::C;\npub struct A;\n",
        "a/c.rs": "use super::A;",
        "b.rs": "mod d;\nuse d::D;\npub struct B;\n",
        "b/d.rs": "use crate::b::B;",
    }
    found = crate(tmp_path, files)
    assert members(rust_imports.file_circles(found)) == []
    assert members(rust_imports.folder_circles(found)) == [["", "b"]]


# Budgets

CLEAN = {
    "lib.rs": "mod a;\nmod b;\n",
    "a.rs": "use crate::b::B;\nfn f() { x.unwrap_or(y) }\n",
    "b.rs": "pub struct B;\nfn short() {}\nstruct State { a: bool, b: bool, c: bool }\n",
}
POOR = {
    "lib.rs": "mod a;\nmod b;\n",
    "a.rs": "use crate::b::B;\nfn f() { x.unwrap_or(y) }\n",
    "b.rs": "use other::A;\nstruct B { a: bool, b: bool, c: bool, d: bool }\n" + LONG,
}


def budgeted(root: Path, files: dict[str, str]) -> Path:
    """Write a crate, and its budget."""
    write(root, files)
    assert structure.main(["--update", "--raise"], root) == 0
    assert structure.main([], root) == 0
    return root


def run(root: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the script. Return its status and what it printed to the standard output and error."""
    capsys.readouterr()
    status = structure.main(arguments, root)
    return status, *capsys.readouterr()


def edit(root: Path, old: str, new: str) -> None:
    """Change the budget by hand."""
    path = root / structure.BUDGET
    assert old in path.read_text(encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lib.rs": "mod a;\nmod b;\nstruct C;"}, ["[code_lines] rust/core: budget 7, found 8: remove 1"]),
        (
            {"a.rs": "use crate::b::B;\nfn f() { x.ok()?; x.unwrap_or(y) }\n"},
            ["[silent_defaults] ok: budget 0, found 1: remove 1", "    rust/core/src/a.rs:2: ok"],
        ),
        (
            {"b.rs": CLEAN["b.rs"] + LONG},
            ["[functions] over_60_lines: budget 0, found 1: remove 1", "    rust/core/src/b.rs:4: long has 61 lines"],
        ),
        (
            {"b.rs": CLEAN["b.rs"].replace("c: bool", "c: bool, d: bool")},
            [
                "[bools] rust/core/src/b.rs: State: budget 0, found 4",
                "    rust/core/src/b.rs:3: State has 4 bool fields",
            ],
        ),
        (
            {"b.rs": CLEAN["b.rs"] + "use crate::a::A;\n"},
            [
                "2 files are a circle: rust/core/src/a.rs, rust/core/src/b.rs: remove one of these imports",
                "    rust/core/src/b.rs:4 -> rust/core/src/a.rs: A",
            ],
        ),
        (
            {"b.rs": "mod c;\npub struct B;\n", "b/c.rs": "use super::B;", "a.rs": "use crate::b::c::C;"},
            [
                "2 folders are a circle: rust/core/src, rust/core/src/b: remove one of these imports",
                "    rust/core/src/a.rs:1 -> rust/core/src/b/c.rs: C",
            ],
        ),
    ],
)
def test_what_is_above_its_budget_fails_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, str], said: list[str]
) -> None:
    write(budgeted(tmp_path, CLEAN), changed)
    status, _, told = run(tmp_path, capsys)
    assert status == 1
    for text in said:
        assert text in told
    assert structure.RAISE in told


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lib.rs": "mod a; mod b;"}, "[code_lines] rust/core: budget 67, found 66: lower the budget"),
        ({"a.rs": "use crate::b::B;\n"}, "[silent_defaults] unwrap_or: budget 1, found 0: lower the budget"),
        ({"b.rs": "use other::A;\n"}, "[functions] over_60_lines: budget 1, found 0: lower the budget"),
        ({"b.rs": "use other::A;\n"}, "[bools] rust/core/src/b.rs: B: budget 4, found 0: lower the budget"),
    ],
)
def test_what_is_below_its_budget_fails_until_it_is_lowered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, str], said: str
) -> None:
    write(budgeted(tmp_path, POOR), changed)
    status, _, told = run(tmp_path, capsys)
    assert status == 1
    assert said in told
    assert structure.LOWER in told
    assert structure.RAISE not in told
    assert run(tmp_path, capsys, "--update") == (0, "wrote rust/structure.toml\n", "")
    assert run(tmp_path, capsys)[0] == 0


def test_a_budget_is_only_raised_if_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # One number is above its budget, and another below.
    write(budgeted(tmp_path, CLEAN), {"a.rs": "use crate::b::B;\nfn f() { x.ok()? }\n"})
    before = (tmp_path / structure.BUDGET).read_text(encoding="utf-8")
    status, _, told = run(tmp_path, capsys, "--update")
    assert status == 1
    assert "[silent_defaults] ok: budget 0, found 1" in told
    assert "rust/structure.toml was not changed" in told
    assert (tmp_path / structure.BUDGET).read_text(encoding="utf-8") == before
    status, told, _ = run(tmp_path, capsys, "--update", "--raise")
    assert (status, told) == (0, "wrote rust/structure.toml: say in the commit why budgets were raised\n")
    assert run(tmp_path, capsys, "--update") == (0, "rust/structure.toml is up to date\n", "")
    with pytest.raises(SystemExit):
        structure.main(["--raise"], tmp_path)


def test_without_a_budget_nothing_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, CLEAN)
    status, _, told = run(tmp_path, capsys)
    assert status == 1
    assert "[code_lines] rust/core: budget 0, found 7" in told


def test_what_the_budget_names_and_nothing_measures_is_below(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(budgeted(tmp_path, CLEAN), "[functions]", "[other]\nname = 1\n\n[functions]")
    status, _, told = run(tmp_path, capsys)
    assert status == 1
    assert "[other] name: budget 1, found 0: lower the budget" in told


LAYERS = """
[layers]
low = ["b.rs"]
high = ["lib.rs", "a.rs"]
"""


def test_a_layer_takes_names_from_those_before_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    budgeted(tmp_path, CLEAN)
    edit(tmp_path, "[layers]\n", LAYERS)
    assert run(tmp_path, capsys)[0] == 0
    edit(tmp_path, LAYERS, LAYERS.replace('"b.rs"', '"a.rs"').replace('"lib.rs", "a.rs"', '"lib.rs", "b.rs"'))
    status, _, told = run(tmp_path, capsys)
    assert status == 1
    assert "the layer low takes names from high, which is above it: remove these imports" in told
    assert "    rust/core/src/a.rs:1 -> rust/core/src/b.rs: B" in told


def test_each_file_of_the_core_is_in_a_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    budgeted(tmp_path, CLEAN)
    edit(tmp_path, "[layers]\n", LAYERS)
    write(tmp_path, {"lib.rs": "mod a; mod b; mod c;", "c/mod.rs": ""})
    assert "rust/core/src/c/mod.rs is in no layer: add it to [layers]" in run(tmp_path, capsys)[2]
    # A folder stands for its files, and is kept when the budget is written anew.
    edit(tmp_path, '"a.rs"', '"a.rs", "c"')
    assert run(tmp_path, capsys, "--update")[0] == 0
    assert run(tmp_path, capsys)[0] == 0


@pytest.mark.parametrize("text", ["[", "a = 1", "[functions]\na = 'b'", "layers = 1"])
def test_a_malformed_budget_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    write(tmp_path, CLEAN)
    (tmp_path / structure.BUDGET).write_text(text, encoding="utf-8")
    status, _, told = run(tmp_path, capsys)
    assert status == 2
    assert "rust/structure.toml cannot be read" in told


def test_what_cannot_be_read_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, told = run(tmp_path, capsys)
    assert status == 2
    assert "there is no crate" in told
    write(tmp_path, {"lib.rs": "{"})
    assert run(tmp_path, capsys) == (2, "", "rust/core/src/lib.rs:1: { is not closed\n")


def test_places_in_changed_lines_are_named_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    old = "fn f() { x.unwrap_or(y) }\n" * 30
    budgeted(tmp_path, {"lib.rs": "mod a;\n", "a.rs": old})
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=a"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    write(tmp_path, {"lib.rs": "mod a;\nmod b;\n", "a.rs": f"// new\n{old}fn g() {{ x.unwrap_or(y) }}\n"})
    write(tmp_path, {"b.rs": "fn f() { x.unwrap_or(y) }\n"})
    status, _, told = run(tmp_path, capsys)
    assert status == 1
    named = [line.strip() for line in told.splitlines() if ": unwrap_or" in line and line.startswith(" ")]
    assert named == [
        "rust/core/src/a.rs:32: unwrap_or (in changed lines)",
        "rust/core/src/b.rs:1: unwrap_or (in changed lines)",
    ]
    assert "rust/core/src/a.rs:32: 1 code lines of this file (in changed lines)" in told


def test_many_places_are_cut_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(budgeted(tmp_path, {"lib.rs": ""}), {"lib.rs": "fn f() { x.unwrap_or(y) }\n" * 30})
    _, _, told = run(tmp_path, capsys)
    assert told.count("rust/core/src/lib.rs:") == structure.SHOWN_PLACES
    assert 'and 10 more: make structure STRUCTURE_ARGS="--list unwrap_or" lists all' in told


# What is shown


def test_silent_defaults_are_listed_by_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"lib.rs": "fn f() {\n    x.ok()?;\n    x.unwrap_or(y)\n}\n"})
    both = "rust/core/src/lib.rs:2: ok\nrust/core/src/lib.rs:3: unwrap_or\n"
    assert run(tmp_path, capsys, "--list") == (0, both, "")
    assert run(tmp_path, capsys, "--list", "ok") == (0, both.splitlines(keepends=True)[0], "")


def test_all_measurements_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {**POOR, "b.rs": POOR["b.rs"].replace("other", "crate::a")})
    write(tmp_path, {"lib.rs": "mod a;\n", "a/mod.rs": "mod b;", "a/b.rs": "struct C;\n"}, crate="py")
    status, told, _ = run(tmp_path, capsys, "--show")
    assert status == 0
    rows = {line[:40].strip(): line[40:].split() for line in told.splitlines() if line.startswith("rust/")}
    zeros = ["0"] * 6
    assert rows == {
        "rust/core/src": ["67", "1", *zeros[1:]],
        "rust/core, total": ["67", "1", *zeros[1:]],
        "rust/py/src": ["1", *zeros],
        "rust/py/src/a": ["2", *zeros],
        "rust/py, total": ["3", *zeros],
    }
    for line in (
        "    61  rust/core/src/b.rs:3: long",
        "     4  rust/core/src/b.rs:2: B",
        "0 circles between folders",
        "1 circles between files",
        "  2 files: rust/core/src/a.rs, rust/core/src/b.rs",
        "    rust/core/src/a.rs:1 -> rust/core/src/b.rs: B",
        "    rust/core/src/b.rs:1 -> rust/core/src/a.rs: A",
    ):
        assert line in told.splitlines()
