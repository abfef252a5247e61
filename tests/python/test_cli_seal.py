"""`seglake seal` and `seglake index`."""

import json
from pathlib import Path

import pytest
from cli_process import here, seglake
from cli_samples import RECORDS, damage, sample

import seglake as library
from seglake.cli.render import exact_size
from seglake.cli.vocabulary import REASONS


def test_a_sealed_file_has_the_messages_of_the_active_one(tmp_path: Path) -> None:
    path, sealed = sample(tmp_path, "active"), tmp_path / "sample.sealed"
    done = here("seal", path, sealed)
    assert (done.status, done.err) == (0, "")
    assert done.out == f"{sealed}: {RECORDS} records, {exact_size(sealed.stat().st_size)}\n"
    with library.open(path) as before, library.open(sealed) as after:
        assert [r.to_dict() | {"position": 0} for r in after] == [r.to_dict() | {"position": 0} for r in before]
    assert library.verify(sealed).checked == "checksum"


def test_the_trailer_is_left_out_if_asked(tmp_path: Path) -> None:
    path, sealed = sample(tmp_path, "active"), tmp_path / "sample.sealed"
    assert here("seal", "--no-trailer", path, sealed).status == 0
    assert library.verify(sealed).checked == "structure"
    assert "structure only" in here("verify", sealed, sealed).out
    assert "by structure only" in here("info", sealed).out


def test_a_sidecar_is_written_if_asked(tmp_path: Path) -> None:
    path, sealed = sample(tmp_path, "active"), tmp_path / "sample.sealed"
    done = here("seal", "--protect", path, sealed)
    sidecar = Path(f"{sealed}.par")
    assert (done.status, done.err) == (0, "")
    assert done.out.endswith(f"{sidecar}: {exact_size(sidecar.stat().st_size)}, a parity sidecar of profile 128+8\n")
    content = sealed.read_bytes()
    sealed.write_bytes(content[:100] + b"?" + content[101:])
    assert here("repair", sealed).status == 0
    assert sealed.read_bytes() == content
    # That of another file is not replaced unless asked, and then nothing is written at all.
    sealed.unlink()
    sidecar.write_bytes(b"of another file")
    done = here("seal", "--protect", path, sealed)
    assert (done.status, sealed.exists()) == (2, False)
    assert "--overwrite" in done.err
    done = here("seal", "--protect", "--profile", "128+4", "--overwrite", "--json", path, sealed)
    assert done.status == 0
    assert json.loads(done.out)["protected"]["profile"] == "128+4"
    assert library.protect(sealed).change == "unchanged"
    assert here("seal", "--profile", "128+4", path, tmp_path / "x.sealed").status == 2


def test_an_existing_file_stays_unless_asked(tmp_path: Path) -> None:
    path, sealed = sample(tmp_path, "active"), tmp_path / "sample.sealed"
    sealed.write_bytes(b"precious")
    done = here("seal", path, sealed)
    assert (done.status, done.out) == (2, "")
    assert "--overwrite" in done.err
    assert sealed.read_bytes() == b"precious"
    assert here("seal", "--overwrite", path, sealed).status == 0
    assert library.open(sealed).format == "sealed"


def test_a_damaged_file_is_refused_or_sealed_without_the_damage(tmp_path: Path) -> None:
    path, sealed = sample(tmp_path, "active"), tmp_path / "sample.sealed"
    damage(path, 3)
    done = here("seal", path, sealed)
    assert (done.status, done.out) == (1, "")
    assert "checksum_mismatch" in done.err
    assert list(tmp_path.iterdir()) == [path]
    done = here("seal", "--json", "--on-damage", "skip", path, sealed)
    assert done.status == 1
    assert "skipped 1 damaged range" in done.err
    assert done.json_lines()[0]["source"]["records"] == RECORDS - 1
    assert len(list(library.open(sealed))) == RECORDS - 1


def test_a_key_is_carried_over_and_a_wrong_one_refused(vectors: Path, tmp_path: Path) -> None:
    segment, key, sealed = vectors / "active" / "custom_key.bin", tmp_path / "key", tmp_path / "new.sealed"
    done = here("seal", segment, sealed)
    assert (done.status, done.out) == (2, "")
    assert "wrong key" in done.err
    assert not sealed.exists()
    key.write_bytes(library_key(segment))
    assert here("seal", "--key-file", key, segment, sealed).status == 0
    assert here("verify", "--key-file", key, sealed).status == 0
    assert here("verify", sealed).status == 2


def library_key(segment: Path) -> bytes:
    import json

    return bytes.fromhex(json.loads(segment.with_suffix(".json").read_text())["options"]["key"])


def test_only_an_active_segment_is_sealed(tmp_path: Path) -> None:
    path = sample(tmp_path, "chunked")
    done = here("seal", path, tmp_path / "new.sealed")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"seglake: {path}: expected an active segment to seal, found chunked")
    assert not (tmp_path / "new.sealed").exists()


def test_a_pipe_is_sealed(tmp_path: Path) -> None:
    path, sealed = sample(tmp_path, "active"), tmp_path / "sample.sealed"
    done = seglake("seal", "-", sealed, stdin=path.read_bytes())
    assert (done.status, done.err) == (0, "")
    assert len(list(library.open(sealed))) == RECORDS


@pytest.mark.parametrize("state", ["sound", "missing", "damaged", "empty", "stale"])
def test_an_index_is_built_as_it_was_written(state: str, tmp_path: Path) -> None:
    path = sample(tmp_path, "chunked")
    index = path.with_suffix(".index")
    written = index.read_bytes()
    content = bytearray(written)
    if state == "missing":
        index.unlink()
    elif state == "damaged":
        content[25] ^= 1
        index.write_bytes(content)
    elif state == "empty":
        index.write_bytes(b"")
    elif state == "stale":
        index.write_bytes(written[:20])
    if state != "missing":
        refused = here("index", path)
        assert (refused.status, refused.out) == (2, "")
        assert "--overwrite replaces it" in refused.err
    done = here("index", "--overwrite", path)
    assert (done.status, done.err) == (0, "")
    assert done.out == f"{index}: sound: 5 items, 100 bytes\n"
    assert index.read_bytes() == written


def test_a_damaged_index_is_no_damage_of_the_log_but_is_said(tmp_path: Path) -> None:
    path = sample(tmp_path, "chunked")
    index = path.with_suffix(".index")
    content = bytearray(index.read_bytes())
    content[25] ^= 1
    index.write_bytes(content)
    command = f"seglake index --overwrite {path}"
    for arguments in ([path], ["--quiet", path], [path, path]):
        done = here("verify", *arguments)
        assert done.status == 0
        assert f"next      {command}" in [line.strip() for line in done.out.splitlines()]
        assert REASONS["stale_index"].happened in " ".join(done.out.split())
        assert "checksum_mismatch" in done.out
    [report] = here("verify", "--json", path).json_lines()
    assert (report["ok"], report["index"]["ok"], report["index"]["path"]) == (True, False, str(index))
    assert command not in here("info", path).out  # nothing tells whether the log is sound
    assert command in here("info", "--count", path).out
    # The command that is said is the one that mends it, wherever log and index are.
    elsewhere = tmp_path / "else where"
    index.rename(elsewhere)
    assert f"{command} '{elsewhere}'" in here("verify", "--index", elsewhere, path).out
    by_uri = here("verify", "--index", elsewhere.as_uri(), path.as_uri()).out
    assert f"seglake index --overwrite {path.as_uri()} sample-sound.index" in by_uri
    # An index may know what damage has taken from the log.
    damaged = bytearray(path.read_bytes())
    damaged[60] ^= 1
    sound = path.read_bytes()
    path.write_bytes(damaged)
    assert "seglake index" not in here("verify", "--index", elsewhere, path).out
    path.write_bytes(sound)
    elsewhere.rename(index)
    # And records are found all the same.
    done = here("cat", "--get", "13", "--columns", "offset,value", path)
    assert (done.status, done.out.split()) == (0, ["13", "13"])
    assert here("verify", "--json", "--index", "none", path).json_lines()[0]["index"] is None
    assert here("index", "--overwrite", path).status == 0
    assert command not in here("verify", path).out
    assert "Index sound: 5 items" in here("verify", path).out


@pytest.mark.parametrize("within", [True, False])
def test_an_index_that_knows_more_than_the_log_is_kept_and_said(within: bool, tmp_path: Path) -> None:
    """The log was cut off, within a chunk or between two."""
    path = sample(tmp_path, "chunked")
    index = path.with_suffix(".index")
    items = index.read_bytes()
    last = library.open(path).index()
    assert last is not None
    position = last.items[2].position + (20 if within else 0)
    path.write_bytes(path.read_bytes()[:position])
    [beyond] = {own["index"]["beyond"]["position"] for own in here("verify", "--json", path).json_lines()}
    assert beyond == last.items[-1].position
    for arguments in (["verify", path], ["verify", path, path], ["info", path]):
        said = " ".join(here(*arguments).out.split())
        assert f"knows more than the log: a chunk at {beyond}" in said
        assert "message offset 16" in said
        assert within or arguments[0] == "info" or "if the index is its own" in said
        for wrong in ("whole without it", "seglake index", "zero_torn_tail", "clear the tail"):
            assert wrong not in said
    # Nor does a page advise to replace it, nor is it called stale.
    page = tmp_path / "page.html"
    [report] = here("verify", "--json", "--html", page, path).json_lines()
    assert report["reason"] == (None if within else "stale_index")
    assert "seglake index" not in page.read_text()
    for arguments in ([], ["--overwrite"]):
        done = here("index", *arguments, path)
        assert (done.status, done.out) == (2, "")
        assert "only list" in done.err or "alone lists what is missing" in done.err
    for exists in ("error", "overwrite"):
        with pytest.raises(ValueError, match="move the index away"):
            library.index(path, if_exists=exists)
    assert index.read_bytes() == items
    # A writer goes on only if what the index has is kept.
    with pytest.warns(library.exceptions.DamageWarning, match="quarantine"):
        library.create(path, format="chunked", if_exists="append", zero_torn_tail=True).close()
    kept = b"".join(file.read_bytes() for file in sorted(tmp_path.glob("*.index.*.quarantine")))
    assert index.read_bytes() + kept == items


def test_an_index_is_not_appended_to_by_name(tmp_path: Path) -> None:
    path = sample(tmp_path, "chunked")
    with pytest.raises(FileExistsError):
        library.index(path)
    for wrong in ("append", "replace"):
        with pytest.raises(ValueError, match=wrong):
            library.index(path, if_exists=wrong)  # type: ignore[arg-type]
    assert len(library.index(path, if_exists="overwrite").items) == 5


def test_an_index_goes_where_it_is_asked_to(tmp_path: Path) -> None:
    path, index = sample(tmp_path, "chunked"), tmp_path / "elsewhere"
    done = here("index", "--json", path, index)
    assert done.status == 0
    assert done.json_lines() == [
        {"path": str(index), "nbytes": 100, "ok": True, "items": 5, "beyond": None, "damage": []}
    ]
    assert index.read_bytes() == path.with_suffix(".index").read_bytes()
    path.with_suffix(".index").unlink()
    [report] = here("verify", "--json", "--index", index, path).json_lines()
    assert report["index"]["path"] == str(index)
    assert here("index", "-", "--overwrite", index, stdin=path.read_bytes()).status == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["-"], "as DST"), (["absent.chunks"], "No such file"), (["sample.active"], "active")],
)
def test_what_cannot_be_indexed_is_said(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sample(tmp_path, "active")
    monkeypatch.chdir(tmp_path)
    done = here("index", *arguments, stdin=b"x")
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert list(tmp_path.iterdir()) == [path]


def test_the_log_is_not_written_over_by_its_index(tmp_path: Path) -> None:
    path = sample(tmp_path, "chunked")
    before = path.read_bytes()
    done = here("index", path, path)
    assert done.status == 2
    assert "is the file that is being read" in done.err
    assert path.read_bytes() == before


def test_one_index_is_of_one_file(tmp_path: Path) -> None:
    path = sample(tmp_path, "chunked")
    for verb in ("info", "cat", "verify"):
        done = here(verb, "--index", path.with_suffix(".index"), path, path)
        assert done.status == 2
        assert "--index" in done.err
        assert here(verb, "--index", "none", path, path).status == 0
