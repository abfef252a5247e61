"""Files by URI: as good as by path, and clear where they cannot be had."""

import os
import re
from pathlib import Path

import pytest
from cli_process import here, seglake

VERBS = [["info"], ["cat"], ["verify"], ["extract", "--range", "0:40"]]


@pytest.mark.parametrize("verb", [["info", "--json", "--count"], ["cat", "--json"], ["verify", "--json"]])
def test_a_uri_is_read_like_a_path(verb: list[str], vectors: Path) -> None:
    segment = vectors / "active" / "flip_message.bin"
    by_path, by_uri = here(*verb, segment), here(*verb, segment.as_uri())
    assert by_path.status == by_uri.status == 1
    outputs = [re.sub('"command": .*?, "do_not"', "", done.out) for done in (by_path, by_uri)]  # it names another copy
    assert outputs[1].replace(segment.as_uri(), str(segment)) == outputs[0]
    assert by_uri.err.replace(segment.as_uri(), str(segment)) == by_path.err
    if verb[0] != "cat":
        assert by_uri.out.count(segment.as_uri()) >= 1


def test_bytes_are_extracted_by_uri(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"0123456789")
    done = here("extract", source.as_uri(), "--range", "3:7")
    assert (done.status, done.out, done.err) == (0, "3456", "")


def test_a_look_up_works_by_uri(vectors: Path) -> None:
    segment = vectors / "active" / "typical.bin"
    third = here("cat", "--json", segment).json_lines()[2]
    done = here("cat", "--json", "--get", third["uuid"], segment.as_uri())
    assert (done.status, done.json_lines()) == (0, [third])


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
@pytest.mark.parametrize(
    ("uri", "said"), [("file:///absent/segment", "No such file"), ("parchment://shelf/1", "parchment")]
)
def test_a_uri_that_cannot_be_opened_is_said(verb: list[str], uri: str, said: str, vectors: Path) -> None:
    others = [] if verb[0] == "extract" else [vectors / "active" / "minimal.bin"]
    done = here(*verb, uri, *others)
    assert done.status == 2
    assert uri in done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert done.err.count(uri) <= 2
    # The other files are read all the same.
    assert bool(done.out) is bool(others)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_what_a_uri_takes_is_said_where_it_is_missing(verb: list[str], vectors: Path, tmp_path: Path) -> None:
    missing = tmp_path / "obstore"
    missing.mkdir()
    (missing / "__init__.py").write_text("raise ImportError('No module named obstore')")
    uri = (vectors / "active" / "minimal.bin").as_uri()
    search = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = seglake(*verb, uri, env={"PYTHONPATH": search})
    assert (done.status, done.out) == (2, "")
    assert f"reading {uri} takes obstore: pip install obstore" in done.err
    assert "unexpected" not in done.err
