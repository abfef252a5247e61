"""The page of `--html`: what is in it, how large it is, and that nothing in a file gets out of its place."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from cli_process import here
from cli_samples import damage, sample
from hypothesis import given, settings
from hypothesis import strategies as st

import seglake
from seglake.cli.html.content import Alike, alike, cells_of, look, sectors_of
from seglake.cli.html.markup import data, data_bytes, element, script_json, visible

SECRET = "customer's secret"
VOID = {"meta", "br", "input"}


class Tree(HTMLParser):
    """A page as its tags with their attributes, and its text by the tag that it is in."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == [], "a tag is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)

    @property
    def text(self) -> str:
        return " ".join(text for tag, all in self.texts.items() if tag not in ("script", "style") for text in all)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def damaged(
    path: Path, *, at: int = 5, count: int = 20, value: bytes = b"", type: str | bytes = "order.created"
) -> Path:
    """A segment with a flipped bit in the value of one record."""
    starts: list[int] = []
    with seglake.create(path) as segment:
        for number in range(count):
            segment.write(type, value or b'{"order": %d, "note": "leave at the door"}' % number)
    starts = [record.position for record in seglake.open(path)]
    content = bytearray(path.read_bytes())
    if path.suffix == ".active":
        content[starts[at] + 50] ^= 0x04
    else:
        content[starts[at] + 30] ^= 0x04
    path.write_bytes(content)
    return path


@pytest.fixture
def report(tmp_path: Path) -> Callable[..., tuple[Tree, str]]:
    """Verifies files with a report, and returns it parsed and as it is."""

    def make(*arguments: str | Path, command: tuple[str, ...] = ("verify",), status: int = 1) -> tuple[Tree, str]:
        path = tmp_path / "report.html"
        done = here(*command, "--html", path, *arguments)
        assert done.status == status, done.err
        text = path.read_text(encoding="utf-8")
        return Tree(text), text

    return make


def test_the_first_screen_says_what_happened_and_what_to_do(report, tmp_path: Path) -> None:
    tree, text = report(damaged(tmp_path / "orders.active"))
    first = text[text.index("<main") : text.index("<h2>Map")]
    assert "do-not" not in first or first.index("do-not") > first.index("command")
    places = [first.index(word) for word in ("damaged", "headline", "<dt>lost", "<dt>not lost", 'class="command"')]
    assert places == sorted(places)
    assert "Values of records are in this page" in tree.text


def test_terms_are_explained_once_and_the_footer_says_what_was_spent(report, tmp_path: Path) -> None:
    path = damaged(tmp_path / "orders.active")
    path.write_bytes(path.read_bytes()[:-20])
    other = tmp_path / "other.active"
    other.write_bytes(path.read_bytes())
    _, text = report(path, other)
    assert text.count("<dt>torn tail</dt><dd>damage with nothing sound after it</dd>") == 1
    assert text.index("<dt>torn tail</dt>") < text.index("<h2>Map")
    assert "<dt>quarantine" not in text
    spent = re.search(r"Of files ([\d,]+) bytes are in this page, of 524,288 at most; (.*?)\.<", text)
    assert spent is not None and int(spent[1].replace(",", "")) > 0
    assert spent[2] == "causes were looked for of 4 of 4 damaged ranges"


def test_a_flipped_bit_is_shown_bit_by_bit_with_the_text(report, tmp_path: Path) -> None:
    tree, text = report(damaged(tmp_path / "orders.active"))
    assert re.search(r'class="bits">[01]*<mark class="corrupt">[01]</mark>[01]*<', text)
    assert "in the file" in tree.text
    assert "flipped back" in tree.text


def test_five_records_before_and_after_and_the_gap(report, tmp_path: Path) -> None:
    tree, _ = report(damaged(tmp_path / "orders.active", at=8))
    rows = [own for own in tree.all("tr") if own.get("class") == "gap"]
    assert len(rows) == 1
    for number in (*range(3, 8), *range(9, 14)):
        assert f'{{"order": {number}, ' in tree.text
    assert "seconds from the one before to the one after" in tree.text


def test_fields_are_shown_up_to_the_one_that_does_not_fit(report, tmp_path: Path) -> None:
    path = damaged(tmp_path / "orders.active")
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    tree, text = report(path)
    assert '<tr class="wrong"' in text
    assert "beyond the end of the file" in tree.text
    assert "len_value" in tree.text


def test_the_map_has_two_lanes_and_says_what_it_shows(report, tmp_path: Path) -> None:
    tree, text = report(damaged(tmp_path / "orders.active"))
    assert "By the ledger" in tree.text
    assert "By their content" in tree.text
    assert all(own["role"] == "img" and own["aria-label"] for own in tree.all("svg") if own.get("class") == "map")
    assert 'class="class-t"' in text


def policy(tree: Tree) -> str:
    [own] = [own["content"] for own in tree.all("meta") if own.get("http-equiv") == "Content-Security-Policy"]
    assert own is not None
    return own


def test_nothing_is_fetched_and_nothing_else_may_run(report, tmp_path: Path) -> None:
    tree, text = report(damaged(tmp_path / "orders.active"))
    allowed = policy(tree)
    assert allowed.startswith("default-src 'none';")
    for tag in ("style", "script"):
        [own] = [own for own in re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)]
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in allowed
    for _, attributes in tree.tags:
        assert not any(name.startswith("on") or name == "style" or name == "src" for name in attributes)
        link = attributes.get("href")
        assert link is None or link.startswith(("#", "data:application/json;base64,", "data:application/gzip;base64,"))
    assert "http" not in re.sub(r"base64,[^\"]*|http-equiv", "", text)
    assert "innerHTML" not in text
    assert "eval(" not in text


def test_the_same_file_gives_the_same_page(report, tmp_path: Path) -> None:
    path = damaged(tmp_path / "orders.active")
    assert report(path)[1] == report(path)[1]


def test_identifiers_are_unique_and_links_lead_to_them(report, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("a.active", "b.active", "c.sealed"):
        damaged(folder / name)
    tree, _ = report(folder)
    identifiers = [own["id"] for _, own in tree.tags if own.get("id")]
    assert len(set(identifiers)) == len(identifiers)
    targets = {own["href"] for own in tree.all("a") if (own["href"] or "").startswith("#")}
    assert {str(own)[1:] for own in targets} <= set(identifiers)


def test_the_report_as_json_is_in_it(report, tmp_path: Path) -> None:
    path = damaged(tmp_path / "orders.active")
    tree, _ = report(path)
    [link] = [own for own in tree.all("a") if own.get("download")]
    printed = here("verify", "--json", path)
    kept = json.loads(base64.b64decode(str(link["href"]).partition("base64,")[2]))
    assert kept == printed.json_lines()[0]


def test_no_values_leaves_none_of_them_in_the_page(report, tmp_path: Path) -> None:
    path = damaged(tmp_path / "orders.active", value=SECRET.encode() * 3, type=SECRET)
    for arguments, shown in ((("--no-values", path), False), ((path,), True)):
        tree, text = report(*arguments)
        whole = text + "".join(
            gzip.decompress(raw).decode() if raw[:2] == b"\x1f\x8b" else raw.decode("latin-1")
            for raw in map(base64.b64decode, re.findall(r"base64,([^\"]*)\"", text))
        )
        whole += "".join(map(str, map(base64.b64decode, re.findall(r'\[\d+,"([^"]*)"\]', text))))
        assert ("secret" in whole) is shown
        assert ("No values of records are in this page" in tree.text) is not shown


def test_no_values_leaves_no_tenant_in_the_page(report, tmp_path: Path) -> None:
    path = tmp_path / "shops.tenant"
    with seglake.create(path) as segment:
        for number in range(30):
            segment.write(partition=0, tenant=f"secret-{number // 10}", value=b"some value")
    content = bytearray(path.read_bytes())
    content[[record.position for record in seglake.open(path)][15] + 6] ^= 1
    path.write_bytes(content)
    tree, text = report("--no-values", path)
    [link] = [own for own in tree.all("a") if own.get("download")]
    assert "secret" not in text + base64.b64decode(str(link["href"]).partition("base64,")[2]).decode()


def test_no_key_is_ever_in_the_page(report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = random.Random(1).randbytes(32)
    path, file = tmp_path / "orders.active", tmp_path / "key"
    file.write_text(key.hex())
    with seglake.create(path, key=key) as segment:
        segment.write("a", b"b")
    for arguments, status in ((("--key-file", file, path), 0), ((path,), 2)):
        tree, text = report(*arguments, status=status)
        assert key.hex() not in text
        assert base64.b64encode(key).decode() not in text
    assert "probably the wrong key" in tree.text
    assert "<details" not in text


def test_a_page_is_small_whatever_the_file_is(report, tmp_path: Path) -> None:
    path = tmp_path / "orders.active"
    with seglake.create(path) as segment:
        for number in range(30_000):
            segment.write("order.created", b'{"order": %d, "note": "leave at the door"}' % number)
    content = bytearray(path.read_bytes())
    own = random.Random(1)
    for at in range(200, len(content), 900):
        content[at] ^= 1 << own.randrange(8)
    path.write_bytes(content)
    tree, text = report(path)
    assert len(text.encode()) <= 2_000_000
    assert "more ranges" in tree.text


def test_a_typical_page_is_below_300_kb(report, tmp_path: Path) -> None:
    assert len(report(damaged(tmp_path / "orders.active", count=5000))[1].encode()) < 300_000


def test_an_empty_file_and_one_of_random_bytes_are_shown(report, tmp_path: Path) -> None:
    empty, noise = tmp_path / "empty.active", tmp_path / "noise.active"
    empty.write_bytes(b"")
    noise.write_bytes(random.Random(2).randbytes(70_000))
    assert "empty" in report(empty, status=0)[0].text
    assert "random" in report(noise)[0].text


def test_another_programs_file_is_named_and_what_it_says(report, tmp_path: Path) -> None:
    page, database = tmp_path / "a.active", tmp_path / "b.chunks"
    page.write_bytes(b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head></html>\n")
    database.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 4)
    tree, text = report(page)
    assert "the file begins like a file of HTML" in tree.text
    assert "<dt>says</dt><dd>502 Bad Gateway</dd>" in text
    assert "502 Bad Gateway" not in report(page, "--no-values")[0].text
    tree, text = report(database)
    assert "the file begins like a file of SQLite" in tree.text
    assert "<dt>says</dt>" not in text


def test_what_nothing_leads_to_is_not_called_intact(report, tmp_path: Path) -> None:
    path = tmp_path / "zeros.sealed"
    path.write_bytes(bytes(1 << 16))
    tree, _ = report(path)
    assert "not reached: nothing intact leads to it" in tree.text
    assert "cells intact" not in tree.text
    path = sample(tmp_path, "active")
    path.write_bytes(path.read_bytes() * 2)
    assert "intact" in report(path)[0].text


def test_what_a_sound_file_lacks_is_said_with_what_to_do(report, tmp_path: Path) -> None:
    path = sample(tmp_path, "chunked")
    path.with_suffix(".index").unlink()
    tree, _ = report(path, status=0)
    assert "no index: the log has no index" in tree.text
    assert "nothing, the log is whole without it" in tree.text
    assert f"seglake index {path}" in tree.text


def test_places_with_one_cause_are_one_damage_as_on_a_terminal(report, tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    content = bytearray(path.read_bytes())
    starts = [record.position for record in seglake.open(path)]
    for number in (3, 8, 13):
        content[starts[number] + 10 : starts[number] + 20] = b"\xee" * 10
    path.write_bytes(content)
    tree, _ = report(path)
    [lost] = re.findall(r"Lost: (.*?)\. Not", " ".join(here("verify", path).out.split()))
    assert lost in tree.text
    assert len([own for own in tree.all("details") if own.get("class") == "damage"]) == 1


def test_a_damage_begins_where_its_cause_is(report, tmp_path: Path) -> None:
    path = tmp_path / "own.sealed"
    with seglake.create(path, format="sealed") as writer:
        for number in range(2_000):
            writer.write(timestamp=number, type="order.paid", value=bytes([number % 256]) * 100)
    content = bytearray(path.read_bytes())
    content[12_288:16_384] = bytes(4_096)
    path.write_bytes(content)
    [own] = [own for own in seglake.verify(path).diagnoses if own.reason != "consequence"]
    assert (own.reason, own.start, own.ranges[0].cause) == ("zeroed_sector", 12_288, "offset_out_of_bounds")
    assert re.search(r"12,288 to [\d,]+ \(\d ranges\): zeroed sector", report(path)[0].text)


def test_a_file_that_cannot_be_read_is_in_the_page_with_its_error(report, tmp_path: Path) -> None:
    tree, _ = report(tmp_path / "none.active", status=2)
    assert "none.active" in tree.text
    assert "No such file" in tree.text
    assert "Values of records" not in tree.text


def test_a_folder_has_an_overview_with_details_of_the_damaged_ones(report, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(24):
        damaged(folder / f"{number:02}.active")
    with seglake.create(folder / "sound.active") as segment:
        segment.write("a", b"b")
    tree, _ = report(folder)
    assert "25 files" in tree.text
    assert len([own for own in tree.all("section") if own.get("class") == "file"]) == 20


def test_a_log_has_the_mark_of_its_segments(report, tmp_path: Path) -> None:
    with seglake.SegmentLog(tmp_path / "log", segment_bytes=4096) as log:
        for number in range(100):
            log.write("a", b"%d" % number * 20)
    tree, _ = report(tmp_path / "log", command=("log", "verify"), status=0)
    assert "synced up to" in tree.text
    assert "Report of seglake log verify." in tree.text
    assert len(tree.all("h1")) == 1


def test_a_segment_that_is_shorter_than_its_log_says_is_shown(report, tmp_path: Path) -> None:
    with seglake.SegmentLog(tmp_path / "log") as log:
        for number in range(100):
            log.write("a", b"%d" % number * 20)
    [path] = (tmp_path / "log").glob("*.active")
    path.write_bytes(path.read_bytes()[:900])
    tree, _ = report(tmp_path / "log", command=("log", "verify"))
    assert "damaged" in tree.text
    # What the log says and the file has not is drawn beyond its end.
    assert "active, 900 bytes, " in tree.text
    assert "Bytes 0 to 900 in cells of 16 bytes" in tree.text
    assert "cells missing beyond the end" in tree.text
    for arguments in (["verify", tmp_path / "log"], ["verify", path]):
        out = here(*arguments).out
        assert "900 bytes" in out, out


@pytest.mark.parametrize("explain", ["0", "100"])
def test_standard_input_and_no_diagnoses_are_shown(explain: str, tmp_path: Path) -> None:
    content = damaged(tmp_path / "orders.active").read_bytes()
    done = here("verify", "--explain", explain, "--html", tmp_path / "report.html", "-", stdin=content)
    assert done.status == 1
    assert "standard input" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_recover_and_scrub_write_one_too(report, tmp_path: Path) -> None:
    path = damaged(tmp_path / "orders.active")
    tree, _ = report(path, tmp_path / "sound.active", command=("recover",))
    assert "single flipped bit" in tree.text
    assert (tmp_path / "sound.active").exists()
    assert "single flipped bit" in report(path, command=("scrub",))[0].text


@pytest.mark.parametrize("command", ["recover", "scrub", "verify"])
def test_a_file_is_read_with_the_dialect_that_is_given(command: str, report, vectors: Path, tmp_path: Path) -> None:
    path = tmp_path / "own.oplog"
    path.write_bytes((vectors / "oplog" / "reference_forward_11.bin").read_bytes())
    written = [tmp_path / "new.oplog"] if command == "recover" else []
    tree, _ = report("--dialect", "draft-1.1", path, *written, command=(command,))
    assert "reference to what is not there" in tree.text
    assert "another dialect" not in tree.text


def test_recover_reads_within_the_limits_also_for_the_page(tmp_path: Path) -> None:
    path, page = sample(tmp_path, "chunked"), tmp_path / "report.html"
    done = here("recover", "--limits", "chunk_bytes=8", "--html", page, path, tmp_path / "new.chunks")
    assert (done.status, done.out, page.exists()) == (2, "", False)
    assert "chunk_bytes = 8" in done.err


def test_recover_goes_by_the_file_alone_also_in_the_page(report, tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    assert here("protect", path).status == 0
    damage(path, 3)
    assert "not as it was protected" in report(path)[0].text
    tree, _ = report(path, tmp_path / "new.active", command=("recover",))
    assert "single flipped bit" in tree.text
    assert "not as it was protected" not in tree.text


def test_recover_is_not_proposed_by_its_own_page(report, tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    content = bytearray(path.read_bytes())
    content[500:520] = b"\xee\x01" * 10
    path.write_bytes(content)
    assert "seglake recover" in report(path)[1]
    _, text = report(path, tmp_path / "new.active", command=("recover",))
    assert "<dt>lost" in text
    shown = text[text.index("<main") : text.index("<footer")].replace("seglake recover --undo", "")
    assert "seglake recover " not in shown


def test_the_page_of_recover_says_where_all_bytes_are(report, tmp_path: Path) -> None:
    path, new = damaged(tmp_path / "bad.active"), tmp_path / "new.active"
    tree, _ = report(path, new, command=("recover",))
    for said in (
        f"Written: {new}: ",
        f"{new}.quarantine: ",
        f"{new}.quarantine.manifest.jsonl: where each byte is now",
    ):
        assert said in tree.text
    assert f"to undo seglake recover --undo {new} ORIGINAL" in tree.text
    # The page comes first: where it cannot be, nothing is recovered, and it never takes the place of what was.
    again = tmp_path / "again.active"
    for page in (again, tmp_path / "no folder" / "page.html"):
        done = here("recover", "--html", page, path, again)
        assert (done.status, (tmp_path / "again.active.quarantine").exists()) == (2, False)


@pytest.mark.parametrize("cause", ["wrong key", "gzip"])
def test_of_a_file_that_is_all_inside_nothing_is_said_to_be_read_or_lost(
    cause: str, report, vectors: Path, tmp_path: Path
) -> None:
    path = tmp_path / "own.active"
    name = "wrong_key.bin" if cause == "wrong key" else "typical.bin"
    content = (vectors / "active" / name).read_bytes()
    path.write_bytes(content if cause == "wrong key" else gzip.compress(content))
    _, text = report(path, status=2 if cause == "wrong key" else 1)
    assert "<dt>not lost" not in text
    [what] = re.findall(r'class="what">(.*?)<', text)
    assert what.endswith("0 records" if cause == "gzip" else " bytes")
    said = " ".join(here("verify", path).out.split())
    assert "Not lost" not in said and ("probably nothing" in said or "if what is inside is sound" in said)


def test_of_several_files_no_sound_one_is_read_for_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seglake.cli.html import gather, writer

    seen: list[str] = []
    see = gather.see
    monkeypatch.setattr(writer, "see", lambda file, *rest, **how: seen.append(file.label) or see(file, *rest, **how))
    sound, bad = sample(tmp_path, "active"), damaged(tmp_path / "bad.active")
    for files, read in (([sound, bad, sound], [str(bad)]), ([sound], [str(sound)])):
        here("verify", "--html", tmp_path / "report.html", *files)
        assert seen == read
        seen.clear()


def test_what_draws_pages_is_imported_for_a_page_only(vectors: Path, tmp_path: Path) -> None:
    code = "import sys; from seglake.cli import main; main(sys.argv[1:]); print('seglake.cli.html.page' in sys.modules)"
    path = vectors / "active" / "typical.bin"
    for arguments, said in ((["verify"], "False"), (["verify", "--html", tmp_path / "report.html"], "True")):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments, path], capture_output=True, check=True, text=True
        )
        assert done.stdout.splitlines()[-1] == said


def test_a_file_that_is_no_report_is_never_replaced(tmp_path: Path) -> None:
    path = damaged(tmp_path / "orders.active")
    before = path.read_bytes()
    done = here("verify", "--html", path, path)
    assert (done.status, path.read_bytes()) == (2, before)
    assert "not a report" in done.err
    assert here("verify", "--html", tmp_path, path).status == 2
    assert here("verify", "--html", "-", path).status == 2
    assert here("verify", "--no-values", path).status == 2


HOSTILE = [
    "</script><script>alert(1)</script>",
    "--><img src=x onerror=alert(1)>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "\u202egnp.exe\u2066\u200b\u2028\x1b[31m",
    "&lt;b&gt;<!--",
    os.fsdecode(b"\xff\xfe.\xed\xa0\x80"),
    "a" * 100 + "\u0301" * 20,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_a_file_and_its_name_is_only_text(text: str, report, tmp_path: Path) -> None:
    name = text.replace("/", "%") if sys.platform == "linux" else "orders"
    path = damaged(
        tmp_path / f"{name}.active",
        type=text.encode("utf-8", "surrogateescape"),
        value=(text * 3).encode("utf-8", "surrogateescape"),
    )
    tree, page = report(path)
    assert {own for own, _ in tree.tags} <= ALLOWED
    assert not any(name.startswith("on") for _, attributes in tree.tags for name in attributes)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\u2028\x00-\x09\x0b-\x1f]", page)


ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "section", "footer", "script", "a", "p"),
    *("h1", "h2", "h3", "h4", "strong", "i", "bdi", "abbr", "span", "dl", "dt", "dd", "div", "figure", "details"),
    *("svg", "defs", "pattern", "rect", "path", "text", "desc", "g", "marker", "summary", "pre", "code", "mark"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "nav", "ol", "ul", "li"),
}


@settings(max_examples=200)
@given(st.text(max_size=60) | st.sampled_from(HOSTILE))
def test_text_is_never_markup(text: str) -> None:
    made = Tree(element("p", text, data(text), title=text))
    assert [tag for tag, _ in made.tags] in (["p", "bdi"], ["p"])
    assert made.tags[0][1]["title"] == visible(text)
    assert visible(text).isprintable()
    kept = re.search(r">(.*)</script>\Z", script_json("own", {"text": text}))
    assert kept is not None
    assert "<" not in kept[1] and json.loads(kept[1]) == {"text": text}


@given(st.binary(max_size=400))
def test_bytes_are_shown_as_text_that_can_be_seen(content: bytes) -> None:
    made = Tree(element("p", data_bytes(content)))
    assert made.text.isprintable()
    assert len(made.text) < 1200


def test_cells_tell_what_bytes_look_like() -> None:
    content = bytes(512) + b"\xff" * 512 + b"some text, " * 50 + random.Random(3).randbytes(4096)

    def read_at(offset: int, size: int) -> bytes:
        return content[offset : offset + size]

    cells, _ = look(read_at, 0, len(content), 512)
    assert cells.classes.startswith("0ft")
    assert cells.classes.endswith("rrrrrrr" + cells.classes[-1])
    for nbytes in (0, 1, 65536, 65537, 1 << 21, (1 << 21) + 1, 1 << 40):
        assert nbytes <= cells_of(nbytes) * 4096


def test_sectors_that_are_elsewhere_too_are_found() -> None:
    own = random.Random(4)
    content = own.randbytes(8192)
    content = content[:4096] + content[1024:3072] + content[4096:]

    def read_at(offset: int, size: int) -> bytes:
        return content[offset : offset + size]

    sectors = sectors_of(read_at, 4100, 6000)
    _, places = look(read_at, 0, len(content), 512, {sector for sector, _ in sectors})
    assert alike(sectors, places) == [Alike(4096, 1024, 2048)]


def test_large_values_do_not_make_a_page_large(report, tmp_path: Path) -> None:
    path = damaged(tmp_path / "orders.active", value=os.urandom(1 << 20), count=3, at=1)
    _, text = report(path)
    assert len(text) < 300_000


def test_pages_of_several_files_of_logs_and_of_empty_files_have_one_command(report, tmp_path: Path) -> None:
    first, other = damaged(tmp_path / "a.active"), damaged(tmp_path / "b.active")
    _, text = report(first, other)
    overview = text[text.index("<main") : text.index('id="f1"')]
    assert overview.count('class="command"') == 1 and str(first) in overview
    empty = tmp_path / "empty.active"
    empty.write_bytes(b"")
    _, text = report(empty, status=0)
    assert f"ls -l {empty}; df -h {empty}" in text
    folder = tmp_path / "log"
    with seglake.SegmentLog(folder, seal=False) as log:
        for _ in range(3):
            log.write(type="t", value=b"v")
            log.roll()
    sorted(folder.glob("0*.active"))[1].unlink()
    for command in (("verify",), ("log", "verify")):
        tree, text = report(folder, command=command, status=2)
        assert text.count('class="command"') == 1
        assert "segment missing: expected segment 2" in tree.text and "seglake log tail" in tree.text


def test_what_is_not_read_rightly_is_not_called_damaged(report, vectors: Path) -> None:
    tree, text = report("--format", "oplog", "--dialect", "draft", vectors / "oplog" / "reference_forward_11.bin")
    assert "not read with the right dialect" in tree.text and 'class="verdict-kept"' in text
    assert "damaged" not in text[text.index("<main") : text.index("<footer")] and "unreadable until" in tree.text
