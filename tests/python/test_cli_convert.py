"""`seglake convert`."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_process import Argument, here, on_terminal, seglake
from cli_samples import EXTENSIONS, RECORDS, damage, sample

import seglake as library
from seglake.cli.render import exact_size

# What it takes beside what the source has.
NEEDED = {
    "active": ["uuid=now", "type=t"],
    "sealed": ["uuid=now", "type=t"],
    "tenant": ["partition=1", "tenant=x"],
    "chunked": ["timestamp=now"],
    "oplog": ["version=1", "checkpointer=1", "clock=[]", "abi=0", "batch=1"],
    "tfrecord": [],
}


def between(source: str, to: str) -> tuple[list[str], list[str]]:
    """The names that are lost from one format to another, and the settings that are missing."""
    has, kept = (library.open(b"", format=name, on_damage="skip").schema.names for name in (source, to))
    lost = [name for name in has if name not in kept and not (name == "timestamp" and "uuid" in kept)]
    missing = [setting for setting in NEEDED[to] if setting.partition("=")[0] not in has]
    if "timestamp" in has and "uuid=now" in missing:
        missing.remove("uuid=now")
    return lost, missing


def repeated(option: str, values: list[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


@pytest.mark.parametrize("source", EXTENSIONS)
@pytest.mark.parametrize("to", EXTENSIONS)
def test_any_format_becomes_any_other(source: str, to: str, tmp_path: Path) -> None:
    path, new = sample(tmp_path, source), tmp_path / f"new.{EXTENSIONS[to]}"
    lost, missing = between(source, to)
    how: list[Argument] = [*repeated("--drop", lost), *repeated("--set", missing)]
    done = here("convert", path, new, *how)
    assert (done.status, done.err) == (0, "")
    assert done.out == f"{new}: {RECORDS} records, {exact_size(new.stat().st_size)}\n"
    with library.open(path) as before, library.open(new) as after:
        assert after.format == to
        assert [record.value for record in after] == [record.value for record in before]
    # Each name that is not given up, and each that is not set, is said with the option to give.
    for without, name in [(lost, name) for name in lost] + [(missing, name) for name in missing]:
        rest_lost = [other for other in lost if not (without is lost and other == name)]
        rest_set = [other for other in missing if not (without is missing and other == name)]
        other = tmp_path / f"other.{EXTENSIONS[to]}"
        refused = here("convert", path, other, *repeated("--drop", rest_lost), *repeated("--set", rest_set))
        assert (refused.status, refused.out) == (2, "")
        assert name.partition("=")[0] in refused.err.splitlines()[0]
        assert "--drop NAME" in refused.err
        assert "--set NAME=VALUE" in refused.err
        assert not other.exists()
        break
    assert not list(tmp_path.glob(".*"))


def test_names_of_dropped_columns_may_stand_together(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    settings = repeated("--set", NEEDED["tenant"])
    done = here("convert", path, tmp_path / "new.tenant", "--drop", "uuid, timestamp,type", *settings)
    assert (done.status, done.err) == (0, "")


def test_json_has_the_new_file_and_the_report(tmp_path: Path) -> None:
    path, new = sample(tmp_path, "active"), tmp_path / "new.sealed"
    [line] = here("convert", "--json", path, new).json_lines()
    assert line["written"] == {"path": str(new), "nbytes": new.stat().st_size}
    assert line["source"]["path"] == str(path)
    assert line["source"]["records"] == RECORDS


def test_settings_are_values_of_the_column(tmp_path: Path) -> None:
    path, new = sample(tmp_path, "chunked"), tmp_path / "new.oplog"
    clock = '[{"key": {"hex": "' + "ab" * 32 + '"}, "length": 18446744073709551615}]'
    settings = ["version=1", "checkpointer=1", f"clock={clock}", "abi=0x10", "batch=18446744073709551615"]
    done = here("convert", path, new, "--drop", "offset,timestamp", *repeated("--set", settings))
    assert (done.status, done.err) == (0, "")
    records = list(library.open(new))
    assert len(records) == RECORDS
    for record in records:
        assert record.clock == [{"key": b"\xab" * 32, "length": 2**64 - 1}]
        assert (record.abi, record.batch) == (16, 2**64 - 1)


def test_the_format_is_named_or_told_by_the_extension(tmp_path: Path) -> None:
    path, new = sample(tmp_path, "active"), tmp_path / "new.bin"
    done = here("convert", path, new)
    assert (done.status, done.out) == (2, "")
    assert "--to" in done.err
    assert here("convert", path, new, "--to", "sealed").status == 0
    assert library.open(new).format == "sealed"
    assert "parchment" in here("convert", path, tmp_path / "other", "--to", "parchment").err


@pytest.mark.parametrize(
    ("source", "to", "options", "column"),
    [
        ("tenant", "tenant", ["--option", "version=1"], "structure"),
        ("tenant", "tenant", ["--option", "version=2"], "checksum"),
        ("active", "sealed", ["--option", "trailer=false"], "structure"),
        ("active", "sealed", [], "checksum"),
    ],
)
def test_options_of_the_new_file(source: str, to: str, options: list[str], column: str, tmp_path: Path) -> None:
    new = tmp_path / f"new.{EXTENSIONS[to]}"
    assert here("convert", sample(tmp_path, source), new, *options).status == 0
    assert library.verify(new).checked == column


def test_chunks_are_cut_as_asked(tmp_path: Path) -> None:
    path, new = sample(tmp_path, "chunked"), tmp_path / "new.chunks"
    how: list[Argument] = ["--option", "chunk_records=7", "--option", "level=19", "--option", "chunk_bytes=1MiB"]
    assert here("convert", path, new, *how).status == 0
    assert [total.ranges for total in library.verify(new).totals if total.kind == "chunk"] == [3]
    assert new.with_suffix(".index").exists()
    assert here("convert", path, tmp_path / "bare.chunks", "--option", "index=false").status == 0
    assert not (tmp_path / "bare.index").exists()


def test_a_dialect_becomes_another(tmp_path: Path) -> None:
    path, packed, plain = sample(tmp_path, "oplog"), tmp_path / "packed.oplog", tmp_path / "plain.oplog"
    assert here("convert", path, packed, "--option", "dialect=draft-1.1").status == 0
    how: list[Argument] = ["--dialect", "draft-1.1", packed, plain]
    refused = here("convert", *how)
    assert refused.status == 2
    assert "clock.seq" in refused.err
    done = here("convert", *how, "--drop", "clock.seq,clock.offset,keys")
    assert (done.status, done.err) == (0, "")
    assert plain.read_bytes() == path.read_bytes()


def test_an_option_of_another_format_is_refused(tmp_path: Path) -> None:
    done = here("convert", sample(tmp_path, "active"), tmp_path / "new.sealed", "--option", "version=2")
    assert (done.status, done.out) == (2, "")
    assert "version" in done.err
    assert "sealed" in done.err
    assert not (tmp_path / "new.sealed").exists()


def test_parts_are_chosen(tmp_path: Path) -> None:
    tenant, chunked = sample(tmp_path, "tenant"), sample(tmp_path, "chunked")
    new = tmp_path / "new.tenant"
    assert here("convert", tenant, new, "--partition", "1", "--tenant", "b").status == 0
    assert [record.value for record in library.open(new)] == [b"%d" % number for number in range(15, 20)]
    new = tmp_path / "new.chunks"
    assert here("convert", chunked, new, "--start-offset", "3", "--end-offset", "6").status == 0
    assert [record.offset for record in library.open(new)] == [3, 4, 5]


def test_nothing_is_converted_of_a_damaged_file_unless_asked(tmp_path: Path) -> None:
    path, new = sample(tmp_path, "active"), tmp_path / "new.sealed"
    damage(path, 11)
    done = here("convert", path, new)
    assert (done.status, done.out) == (1, "")
    assert "checksum_mismatch" in done.err
    assert list(tmp_path.iterdir()) == [path]
    done = here("convert", path, new, "--on-damage", "skip")
    assert done.status == 1
    assert "skipped 1 damaged range" in done.err
    assert [record.value for record in library.open(new)] == [b"%d" % n for n in range(RECORDS) if n != 11]


def test_nothing_is_converted_under_a_wrong_key(vectors: Path, tmp_path: Path) -> None:
    for mode in ("raise", "skip"):
        done = here("convert", vectors / "active" / "custom_key.bin", tmp_path / "new.sealed", "--on-damage", mode)
        assert (done.status, done.out) == (2, "")
        assert "probably the wrong key" in done.err
    assert not list(tmp_path.iterdir())


def test_an_existing_file_stays_unless_asked(tmp_path: Path) -> None:
    path, new = sample(tmp_path, "active"), tmp_path / "new.sealed"
    new.write_bytes(b"precious")
    done = here("convert", path, new)
    assert (done.status, done.out) == (2, "")
    assert "--overwrite" in done.err
    assert str(new) in done.err
    assert new.read_bytes() == b"precious"
    assert here("convert", path, new, "--overwrite").status == 0
    assert library.open(new).format == "sealed"


@pytest.mark.parametrize(
    ("destination", "said"),
    [
        (".", "is a folder"),
        ("sample.active", "is the file that is being read"),
        ("absent/new.sealed", "No such file"),
        ("s3://bucket/new.sealed", "only files on this machine"),
    ],
)
def test_what_cannot_be_written_to_is_said(
    destination: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sample(tmp_path, "active")
    monkeypatch.chdir(tmp_path)
    before = path.read_bytes()
    done = here("convert", path, destination, "--to", "active", "--overwrite")
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "type"], "NAME=VALUE"),
        (["--set", "colour=red"], "colour"),
        (["--drop", "colour"], "colour"),
        (["--set", "type=t"], "type"),
        (["--option", "level=3"], "sealed files have no option level: there are trailer"),
        (["--option", "key=abc"], "sealed files have no option key: there are trailer"),
        (["--option", "if_exists=append"], "sealed files have no option if_exists"),
        (["--option", "trailer=5"], "trailer=5: expected true or false"),
        (["--option", "trailer"], "NAME=VALUE"),
        (["--to", "chunked", "--option", "level=high"], "level=high: expected a whole number from -131072 to 22"),
        (["--to", "chunked", "--option", "level=23"], "level=23: expected a whole number from -131072 to 22"),
        (["--to", "chunked", "--option", "chunk_bytes=many"], "chunk_bytes=many: expected a number of bytes"),
        (["--to", "chunked", "--option", "chunk_bytes=2GiB"], "expected 1 to 134217728 bytes"),
        (["--limits", "colour=5"], "there is no option "),
        (["--limits", "chunk_bytes"], "NAME=SIZE"),
        (["--tenant", "x"], "tenant"),
    ],
)
def test_what_is_wrong_with_an_argument_is_said(arguments: list[str], said: str, tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    done = here("convert", path, tmp_path / "new.sealed", *arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == [path]


def test_a_setting_that_its_column_cannot_hold_is_named(tmp_path: Path) -> None:
    path = sample(tmp_path, "chunked")
    done = here("convert", path, tmp_path / "new.tenant", "--set", "partition=first", "--set", "tenant=x")
    assert done.status == 2
    assert "partition=first: expected a whole number" in done.err


@pytest.mark.parametrize("form", ["pipe", "uri"])
def test_standard_input_and_uris_are_read_like_files(form: str, tmp_path: Path) -> None:
    path, new, truth = sample(tmp_path, "active"), tmp_path / "new.sealed", tmp_path / "truth.sealed"
    assert here("convert", path, truth).status == 0
    if form == "pipe":
        done = seglake("convert", "-", new, stdin=path.read_bytes())
    else:
        done = here("convert", path.as_uri(), new)
    assert (done.status, done.err) == (0, "")
    assert new.read_bytes() == truth.read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_progress_is_for_terminals(tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    seen, done = on_terminal("convert", path, tmp_path / "new.sealed", only="error")
    assert path.name in seen
    assert done.status == 0


def test_sealing_is_converting_with_the_checksums_carried_over(tmp_path: Path) -> None:
    path, sealed, converted = sample(tmp_path, "active"), tmp_path / "a.sealed", tmp_path / "b.sealed"
    assert here("seal", path, sealed).status == 0
    assert here("convert", path, converted).status == 0
    assert sealed.read_bytes() == converted.read_bytes()


def facts(path: Path, *arguments: str) -> dict[str, Any]:
    [line] = here("info", "--json", *arguments, path).json_lines()
    return line


def test_info_tells_what_was_written(tmp_path: Path) -> None:
    found = facts(sample(tmp_path, "tenant"))
    assert (found["partitions"], found["tenants"], found["checked"]) == (2, 2, "checksum")
    found = facts(sample(tmp_path, "chunked"))
    assert (found["index"]["ok"], found["index"]["items"]) == (True, 5)
    assert facts(sample(tmp_path, "oplog"))["dialect"] == "draft"
    named = facts(tmp_path / "sample.oplog", "--format", "oplog", "--dialect", "draft-1.1")
    assert (named["dialect"], named["confidence"]) == ("draft-1.1", "given")


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    path, new = sample(tmp_path, "active"), tmp_path / "new.chunks"
    drop = ["--drop", "uuid,type"]
    done = here("convert", "--dry-run", path, new, *drop)
    assert (done.status, done.err) == (0, "")
    assert done.out == f"{path}: {RECORDS} records can be converted, nothing was written\n"
    told = here("convert", "--dry-run", "--json", path, new, *drop)
    assert told.status == 0
    assert json.loads(told.out)["written"] is None
    # A file that is there is refused without --overwrite, and stays with it.
    assert here("convert", path, new, *drop).status == 0
    before = new.read_bytes()
    assert here("convert", "--dry-run", path, new, *drop).status == 2
    assert here("convert", "--dry-run", "--overwrite", path, new, *drop).status == 0
    assert here("convert", "--dry-run", "--overwrite", path, new).status == 2
    assert new.read_bytes() == before
    assert {own.name for own in tmp_path.iterdir()} <= {path.name, new.name, "new.index"}
