"""The page of `--html` in a browser: what can be clicked and pressed, without a network, and without its script."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from chromium import PROGRAM, Page, chromium
from cli_process import here

import seglake

AXE = Path(__file__).parents[2] / "build" / "html" / "node_modules" / "axe-core" / "axe.min.js"
SCHEMES = ("light", "dark")

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium on the path: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Generator[Page]:
    with chromium(tmp_path_factory.mktemp("chromium")) as own:
        yield own


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report of one file with three damages, and one of a folder of files."""
    folder = tmp_path_factory.mktemp("reports")
    for name in ("a", "b"):
        path = folder / "files" / f"{name}.active"
        path.parent.mkdir(exist_ok=True)
        with seglake.create(path) as segment:
            for number in range(2000):
                segment.write("order.created", b'{"order": %d, "note": "leave at the door"}' % number)
        starts = [record.position for record in seglake.open(path)]
        content = bytearray(path.read_bytes())
        content[starts[5] + 50] ^= 4
        content[starts[900] : starts[900] + 4096] = random.Random(1).randbytes(4096)
        content[starts[1500] + 3] ^= 1
        path.write_bytes(content)
    found = {"one": folder / "one.html", "many": folder / "many.html"}
    assert here("verify", "--html", found["one"], folder / "files" / "a.active").status == 1
    assert here("verify", "--html", found["many"], folder / "files").status == 1
    return found


@pytest.fixture
def opened(page: Page, reports: dict[str, Path]) -> Callable[..., Page]:
    """Opens a report in the browser."""

    def open_it(name: str = "one", fragment: str = "", **how: object) -> Page:
        page.open(reports[name], fragment, **how)  # type: ignore[arg-type]
        return page

    return open_it


def chosen(page: Page) -> str:
    return page.run("document.getElementById('status').textContent")


def test_nothing_but_the_file_is_asked_for(opened: Callable[..., Page]) -> None:
    for name in ("one", "many"):
        own = opened(name)
        own.run("new Promise((done) => setTimeout(done, 200))")
        assert [url.partition("://")[0] for url in own.requests] == ["file"]
        assert own.errors == []


def test_the_policy_lets_no_other_script_run(opened: Callable[..., Page]) -> None:
    own = opened()
    own.run("window.made = document.createElement('script'); made.textContent = 'window.ran = 1'")
    own.run("document.body.append(made)")
    image = '<img src="https://example.org/x.png" onerror="window.ran = 1">'
    own.run(f"document.body.insertAdjacentHTML('beforeend', {json.dumps(image)})")
    own.run("new Promise((done) => setTimeout(done, 200))")
    assert own.run("window.ran") is None
    assert not any(url.startswith("http") for url in own.requests)


def test_keys_go_from_damage_to_damage_and_back(opened: Callable[..., Page]) -> None:
    own = opened()
    seen = []
    for key in ("n", "n", "p"):
        own.press(key)
        seen.append(own.run("location.hash"))
    assert seen == ["#f1-1", "#f1-2", "#f1-1"]
    assert own.run("document.activeElement.tagName") == "SUMMARY"
    assert chosen(own).startswith("bytes ")


def test_a_fragment_opens_its_damage(opened: Callable[..., Page]) -> None:
    own = opened(fragment="#f1-3")
    assert own.run("document.getElementById('f1-3').open") is True
    assert own.run("document.querySelectorAll('#f1-3 .grid .on').length") > 0


def test_a_row_chooses_its_bytes_in_the_map_and_in_the_dump(opened: Callable[..., Page]) -> None:
    own = opened()
    own.click("#f1-1 tr[data-start] th")
    start = own.run("document.querySelector('#f1-1 tr.on').dataset.start")
    assert chosen(own).startswith(f"bytes {int(start):,} ")
    assert own.run("document.querySelector('svg.map .chosen').getAttribute('d')") != ""
    assert own.run("document.querySelectorAll('#f1-1 .grid .on').length") > 0


def test_a_cell_of_the_map_chooses_its_bytes(opened: Callable[..., Page]) -> None:
    own = opened()
    own.click("svg.map .frame")
    assert chosen(own).startswith("bytes ")
    assert own.run("document.querySelectorAll('tr.on, .grid .on').length") > 0


def test_arrows_go_through_bytes_and_escape_leaves_them(opened: Callable[..., Page]) -> None:
    own = opened()
    own.click("#f1-1 .grid td[data-at]")
    first = int(own.run("document.querySelector('#f1-1 .grid td.on').dataset.at"))
    own.press("ArrowRight", "ArrowDown")
    assert int(own.run("document.activeElement.dataset.at")) == first + 17
    assert chosen(own).startswith(f"bytes {first + 17:,} ")
    own.press("Escape")
    assert own.run("document.activeElement.tagName") == "SUMMARY"


def test_bytes_begin_at_the_damage_and_paper_has_the_dump_in_light_colours(opened: Callable[..., Page]) -> None:
    page = opened(scheme="dark")
    cell = "own.querySelector(`td[data-at=\"${Number(own.closest('details').dataset.start)}\"]`)"
    assert page.run(f"[...document.querySelectorAll('table.grid')].every((own) => {cell})")
    page("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    for query, display in ((".on-screen", "none"), (".on-paper", "block"), ("button", "none")):
        assert page.run(f"getComputedStyle(document.querySelector('{query}')).display") == display
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page("Emulation.setEmulatedMedia", media="")


def test_without_its_script_all_is_there_but_choosing(opened: Callable[..., Page]) -> None:
    own = opened(script=False)
    text = own("DOM.getOuterHTML", nodeId=own("DOM.getDocument")["root"]["nodeId"])["outerHTML"]
    for part in ('class="command"', "<summary>", 'class="hex"', 'class="gap"', 'class="map"', 'href="#f1-2"'):
        assert part in text
    assert 'class="grid"' not in text
    assert "<button" not in text


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_is_never_wider_than_the_window(width: int, opened: Callable[..., Page]) -> None:
    for name in ("one", "many"):
        own = opened(name, width=width)
        own.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert own.run("document.documentElement.scrollWidth") <= width


@pytest.mark.skipif(not AXE.exists(), reason="`make html-check` installs axe-core")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["one", "many"])
def test_axe_finds_nothing_serious(name: str, scheme: str, opened: Callable[..., Page]) -> None:
    own = opened(name, scheme=scheme)
    own.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    own.run(AXE.read_text(encoding="utf-8") + "; true")
    found = own.run("axe.run().then((done) => JSON.stringify(done.violations))")
    serious = [
        (each["id"], each["impact"], each["help"], [node["html"][:200] for node in each["nodes"][:3]])
        for each in json.loads(found)
    ]
    assert [each for each in serious if each[1] in ("serious", "critical")] == []
