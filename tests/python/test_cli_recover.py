"""`seglake recover`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_process import here, on_terminal, seglake
from cli_samples import EXTENSIONS, RECORDS, damage, sample

import seglake as library
from seglake.cli.advice import titled
from seglake.cli.render import exact_size

HOSTILE = "\x1b[31mred\u202e"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def values(path: Path) -> list[bytes | None]:
    with library.open(path) as reader:
        return [record.value for record in reader]


def test_the_summary_says_what_was_kept_and_lost_and_where_it_is(tmp_path: Path) -> None:
    path, new = sample(tmp_path, "active"), tmp_path / "new.active"
    damage(path, 3)
    old = path.read_bytes()
    done = here("recover", path, new)
    assert (done.status, done.err) == (1, "")
    cause, _, summary = done.out.partition("\n\n")
    # What happened and what undoes it comes first, as `verify` says it.
    assert cause == here("verify", path).out.partition("\n\n")[0]
    assert "damaged: single flipped bit (proven)" in cause and "  next " in cause
    lines = summary.splitlines()
    size = new.stat().st_size
    lost = len(old) - size
    assert lines == [
        f"{new}: 19 records, {exact_size(size)}, recovered from {path}",
        f"  kept        19 records, {size:,} of {exact_size(len(old))}",
        f"  lost        {lost} bytes in 1 range: corrupt, checksum_mismatch: the bytes do not match their checksum",
        f"  quarantine  {new}.quarantine: {lost} bytes",
        f"  manifest    {new}.quarantine.manifest.jsonl: where each byte is now",
        f"  to undo     seglake recover --undo {new} ORIGINAL",
    ]
    assert path.read_bytes() == old
    assert values(new) == [b"%d" % number for number in range(RECORDS) if number != 3]
    undone = here("recover", "--undo", new, tmp_path / "undone")
    assert (undone.status, undone.err) == (0, "")
    assert undone.out == f"{tmp_path / 'undone'}: {exact_size(len(old))}, as it was before {new} was made\n"
    assert (tmp_path / "undone").read_bytes() == old


@pytest.mark.parametrize("format", EXTENSIONS)
def test_a_sound_file_of_any_format_is_copied(format: str, tmp_path: Path) -> None:
    path = sample(tmp_path, format)
    new = tmp_path / f"new{path.suffix}"
    done = here("recover", path, new)
    assert (done.status, done.err) == (0, "")
    copied = f"{new}: 20 records, {exact_size(path.stat().st_size)}, a copy of {path}, which is sound\n"
    index = f"  index       {new.with_suffix('.index')}\n" if format == "chunked" else ""
    assert done.out == copied + index
    assert new.read_bytes() == path.read_bytes()
    if index:
        assert new.with_suffix(".index").read_bytes() == path.with_suffix(".index").read_bytes()
    assert not list(tmp_path.glob("*quarantine*"))


def test_json_has_it_all(tmp_path: Path) -> None:
    path, new, quarantine = sample(tmp_path, "sealed"), tmp_path / "new.sealed", tmp_path / "aside"
    damage(path, 5)
    done = here("recover", "--json", "--quarantine", quarantine, path, new)
    assert done.status == 1
    (line,) = done.json_lines()
    assert line["path"] == str(new)
    assert (line["lost"], line["records"], line["index"]) == (True, 19, None)
    assert line["carried_bytes"] + line["quarantined_bytes"] == path.stat().st_size
    assert line["quarantine"] == str(quarantine)
    assert line["manifest"] == f"{quarantine}.manifest.jsonl"
    assert line["report"]["path"] == str(path)
    assert line["report"]["damage"][0]["cause"] == "checksum_mismatch"
    [cause] = line["report"]["diagnoses"]
    assert (cause["reason"], cause["command"] is not None) == ("flipped_bit", True)
    undone = here("recover", "--undo", "--json", "--quarantine", quarantine, new, tmp_path / "undone")
    assert undone.json_lines() == [{"written": {"path": str(tmp_path / "undone"), "nbytes": path.stat().st_size}}]
    assert (tmp_path / "undone").read_bytes() == path.read_bytes()


def test_what_is_written_anew_and_incomplete_is_said(vectors: Path, tmp_path: Path) -> None:
    done = here("recover", vectors / "sealed" / "flip_message.bin", tmp_path / "new.sealed")
    assert done.status == 1
    assert "  replaced    344 bytes of index, counts or numbers, which are written anew\n" in done.out
    dangling = vectors / "oplog" / "reference_forward_11.bin"
    how = ("--format", "oplog", "--dialect", "draft-1.1")
    done = here("recover", *how, dangling, tmp_path / "new.oplog")
    assert done.status == 1
    assert "  incomplete  1 record of those: dangling_reference: a reference points nowhere\n" in done.out
    assert (tmp_path / "new.oplog").read_bytes() == dangling.read_bytes()
    assert not (tmp_path / "new.oplog.quarantine").exists()


def test_messages_are_renumbered_only_if_asked(vectors: Path, tmp_path: Path) -> None:
    path, new = vectors / "oplog" / "checkpointer_changed.bin", tmp_path / "new.oplog"
    done = here("recover", "--format", "oplog", path, new)
    assert (done.status, done.out) == (2, "")
    assert "message 5 at offset 297" in done.err
    assert "--renumber" in done.err
    assert names(tmp_path) == []
    assert here("recover", "--format", "oplog", "--renumber", path, new).status == 1
    with library.open(new) as reader:
        checkpointers = [record.checkpointer for record in reader]
    assert checkpointers == [0, 1, 2, 3, 0, 1, 2, 0, 1]


def test_a_wrong_key_is_refused_unless_forced(vectors: Path, tmp_path: Path) -> None:
    path, new = vectors / "active" / "wrong_key.bin", tmp_path / "new.active"
    done = here("recover", path, new)
    assert (done.status, done.out) == (2, "")
    assert "nothing was written: probably the wrong key (likely)" in done.err
    assert done.err.index("--key-file") < done.err.index("--force")
    assert "  do not    change or recover the file\n" in done.err
    assert done.err.endswith("  --force   recovers no record: it puts all of the file into the quarantine\n")
    assert names(tmp_path) == []
    assert here("recover", "--force", path, new).status == 1
    assert (new.stat().st_size, (tmp_path / "new.active.quarantine").read_bytes()) == (0, path.read_bytes())


@pytest.mark.parametrize(
    ("format", "change"),
    [
        ("sealed", gzip.compress),
        ("sealed", lambda data: bytes(4096)),
        ("sealed", lambda data: b""),
        ("active", lambda data: data.replace(b"\n", b"\r\n")),
        ("active", lambda data: b"".join(data[at : at + 4][::-1] for at in range(0, len(data), 4))),
        ("tenant", lambda data: b"<!DOCTYPE html>" + bytes(80)),
    ],
    ids=["gzip", "zeros", "empty", "CR LF", "byte order", "another format"],
)
def test_the_cause_is_what_verify_names(
    format: str, change: Callable[[bytes], bytes], vectors: Path, tmp_path: Path
) -> None:
    path = tmp_path / "old"
    with library.create(path, format="active") as segment:
        segment.write(type="order", value=b"first line\nsecond line\n")
    active = path.read_bytes()
    path.write_bytes(change(active if format == "active" else (vectors / format / "typical.bin").read_bytes()))
    done = here("recover", "--format", format, path, tmp_path / "new")
    assert (done.status, names(tmp_path)) == (2, [path.name])
    [cause, *_] = library.verify(path, format=format, explain=True).diagnoses
    assert f"nothing was written: {titled(cause)}: " in done.err
    assert f"  shown by  {cause.evidence}\n" in done.err
    assert "wrong key" not in done.err


def test_what_was_put_aside_is_no_file_of_its_folder(vectors: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.active"
    assert here("recover", vectors / "active" / "flip_message.bin", new).status == 1
    assert len(names(tmp_path)) == 3
    assert [line["path"] for line in here("verify", "--json", tmp_path).json_lines()] == [str(new)]
    assert [file.path for file in library.scan(tmp_path).files()] == [str(new)]
    for kept in ("260.quarantine", "260-1.quarantine"):
        (tmp_path / f"new.active.{kept}").write_bytes(b"a torn tail")  # a writer put it aside
    assert [file.path for file in library.scan(tmp_path).files()] == [str(new)]
    new.unlink()  # without the file that it belongs to, it is named
    assert here("verify", tmp_path).status == 2


def test_existing_files_stay_unless_asked(tmp_path: Path) -> None:
    path, new = sample(tmp_path, "active"), tmp_path / "new.active"
    damage(path, 3)
    for name in ("new.active", "new.active.quarantine", "new.active.quarantine.manifest.jsonl"):
        (tmp_path / name).write_bytes(b"precious")
        done = here("recover", path, new)
        assert (done.status, done.out) == (2, "")
        assert f"{tmp_path / name}: exists already" in done.err
        assert "--overwrite" in done.err
        assert names(tmp_path) == [name, "sample.active"]
        (tmp_path / name).unlink()
    new.write_bytes(b"precious")
    assert here("recover", "--overwrite", path, new).status == 1
    assert library.verify(new).ok
    done = here("recover", "--undo", new, path)
    assert done.status == 2
    assert f"{path}: exists already" in done.err


def test_no_file_is_written_over_another(tmp_path: Path) -> None:
    path, new = sample(tmp_path, "active"), tmp_path / "new.active"
    damage(path, 3)
    before = path.read_bytes()
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "hard").hardlink_to(path)
    (tmp_path / "folder").mkdir()
    files = names(tmp_path)
    for arguments in (
        (path, path),
        (path, tmp_path / "link"),
        (path, tmp_path / "hard"),
        (path, tmp_path / "folder"),
        (path, new, "--quarantine", new),
        (path, new, "--quarantine", tmp_path / "hard"),
        (path, tmp_path / "q.manifest.jsonl", "--quarantine", tmp_path / "q"),
        (path, "s3://bucket/key"),
    ):
        done = here("recover", "--overwrite", *arguments)
        assert (done.status, done.out) == (2, ""), arguments
    assert names(tmp_path) == files
    assert path.read_bytes() == before


def test_wrong_use_is_said_before_anything_is_read(tmp_path: Path) -> None:
    for option in (("--force",), ("--renumber",), ("--dialect", "draft"), ("--limits", "chunk_bytes=1")):
        done = here("recover", "--undo", *option, "none", "nowhere")
        assert done.status == 2
        assert f"{option[0]} does not concern --undo" in done.err
    done = here("recover", tmp_path / "none", tmp_path / "new")
    assert (done.status, "none" in done.err) == (2, True)
    done = here("recover", "only one")
    assert (done.status, "DST" in done.err) == (2, True)


def test_a_pipe_is_recovered(tmp_path: Path) -> None:
    path, new = sample(tmp_path, "active"), tmp_path / "new.active"
    damage(path, 3)
    done = seglake("recover", "-", new, stdin=path.read_bytes())
    assert done.status == 1
    assert f"{new}: 19 records, {exact_size(new.stat().st_size)}, recovered from standard input" in done.out
    assert here("recover", "--undo", new, tmp_path / "undone").status == 0
    assert (tmp_path / "undone").read_bytes() == path.read_bytes()


def test_hostile_names_reach_no_terminal(tmp_path: Path) -> None:
    path = sample(tmp_path, "active").rename(tmp_path / f"{HOSTILE}.active")
    damage(path, 3)
    new = tmp_path / f"new{HOSTILE}.active"
    seen, done = on_terminal("recover", path, new, "--quarantine", tmp_path / f"q{HOSTILE}")
    assert done.status == 1
    assert "\\x1b[31mred\\u202e" in seen
    assert "\x1b[31mred" not in seen
    assert "\u202e" not in seen
    manifest = Path(f"{tmp_path / f'q{HOSTILE}'}.manifest.jsonl").read_text()
    assert "\x1b" not in manifest
    assert "\u202e" not in manifest
    assert json.loads(manifest.splitlines()[0])["original"]["name"] == "\\x1b[31mred\\u202e.active"
    done = here("recover", path, new)
    assert done.status == 2
    assert "\x1b" not in done.err
