"""`seglake extract`: bytes out of any file."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from cli_process import here, on_terminal, seglake

CONTENT = bytes(range(256)) * 5


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(CONTENT)
    return path


@pytest.mark.parametrize(
    ("given", "start", "end"),
    [
        ("0:0", 0, 0),
        ("16:300", 16, 300),
        ("0x10:0x12C", 16, 300),
        ("1000:", 1000, 1280),
        (":17", 0, 17),
        (":", 0, 1280),
        ("1280:1280", 1280, 1280),
    ],
)
def test_bytes_are_copied_as_they_are(given: str, start: int, end: int, source: Path, tmp_path: Path) -> None:
    output = tmp_path / "part"
    done = here("extract", source, "--range", given, output)
    assert (done.status, done.out) == (0, "")
    assert output.read_bytes() == CONTENT[start:end]
    assert f"from offset {start:,}" in done.err
    assert list(tmp_path.glob(".part*")) == []


def test_ranges_follow_each_other_as_given(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "parts"
    done = here("extract", source, "--range", "1000:", "--range", ":16", output)
    assert output.read_bytes() == CONTENT[1000:] + CONTENT[:16]
    assert "280 bytes from offset 1,000, 16 bytes from offset 0" in done.err
    assert here("extract", source, "--range", "0:1", "--range", "0:1281", output, "--overwrite").status == 2
    assert output.read_bytes() == CONTENT[1000:] + CONTENT[:16]
    dump = here("extract", source, "--range", "1000:", "--range", ":16", "--hex").out
    assert [int(line[:8], 16) for line in dump.splitlines()] == [*range(1000, 1280, 16), 0]


def test_more_than_one_block_is_copied(tmp_path: Path) -> None:
    source, output = tmp_path / "source", tmp_path / "part"
    content = bytes(range(251)) * 10_000
    source.write_bytes(content)
    assert here("extract", source, "--range", "3:", output).status == 0
    assert output.read_bytes() == content[3:]
    dump = here("extract", source, "--range", "3:", "--hex").out.splitlines()
    assert bytes.fromhex("".join(line[10:58] for line in dump)) == content[3:]
    assert [int(line[:8], 16) for line in dump] == list(range(3, len(content), 16))


def test_a_pipe_gets_the_bytes_and_nothing_else(vectors: Path) -> None:
    source = vectors / "active" / "empty.bin"
    done = here("extract", source, "--range", ":")
    assert (done.status, done.out, done.err) == (0, "", "")
    ascii_only = seglake("extract", "-", "--range", "2:5", stdin=b"abcdefgh")
    assert (ascii_only.status, ascii_only.out, ascii_only.err) == (0, "cde", "")


def test_a_hexdump_has_the_offsets_of_the_source(source: Path) -> None:
    done = here("extract", source, "--range", "60:93", "--hex")
    assert done.out.splitlines() == [
        "0000003c  3c 3d 3e 3f 40 41 42 43  44 45 46 47 48 49 4a 4b  |<=>?@ABCDEFGHIJK|",
        "0000004c  4c 4d 4e 4f 50 51 52 53  54 55 56 57 58 59 5a 5b  |LMNOPQRSTUVWXYZ[|",
        "0000005c  5c                                                |\\|",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_a_terminal_never_gets_raw_bytes(source: Path) -> None:
    seen, done = on_terminal("extract", source, "--range", "0:64")
    assert done.status == 0
    assert seen == here("extract", source, "--range", "0:64", "--hex").out
    assert seen.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--range"),
        (["--range", "5"], "START:END"),
        (["--range", "a:b"], "expected an offset"),
        (["--range", "-1:5"], "expected an offset"),
        (["--range", "9:5"], "ends before it starts"),
        (["--range", "+x"], "expected an offset"),
        (["--range", "+5", "--hex"], "zeros have no offset to show"),
        (["--range", "0:1281"], "expected a range within its 1,280 bytes, found 0 to 1,281"),
        (["--range", "1281:"], "1,280 bytes"),
        (["--range", "0:1", "."], "is a folder"),
        (["--range", "0:1", "absent/part"], "No such file"),
        (["--range", "0:1", "s3://bucket/part"], "only files on this machine"),
        (["--range", "0:1", "-"], "a file of this name is ./-"),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str], said: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = here("extract", source, *arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert "Traceback" not in done.err


def test_nothing_is_overwritten_unless_asked(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "part"
    output.write_bytes(b"precious")
    done = here("extract", source, "--range", "0:4", output)
    assert done.status == 2
    assert "--overwrite" in done.err
    assert str(output) in done.err
    assert output.read_bytes() == b"precious"
    assert here("extract", source, "--range", "0:4", output, "--overwrite").status == 0
    assert output.read_bytes() == CONTENT[:4]


def test_the_source_is_not_overwritten_even_if_asked(source: Path, tmp_path: Path) -> None:
    other_name = tmp_path / "link"
    other_name.symlink_to(source)
    for output in (source, other_name):
        done = here("extract", source, "--range", "0:4", output, "--overwrite")
        assert done.status == 2
        assert "is the file that is being read" in done.err
    assert source.read_bytes() == CONTENT


def test_damage_that_verify_names_is_what_comes_out(vectors: Path) -> None:
    segment = vectors / "active" / "flip_message.bin"
    [damage] = here("verify", "--json", segment).json_lines()[0]["damage"]
    done = here("extract", segment, "--range", f"{damage['start']}:{damage['end']}", "--hex")
    dumped = bytes.fromhex("".join(line[10:58] for line in done.out.splitlines()))
    assert dumped == segment.read_bytes()[damage["start"] : damage["end"]]


def test_a_link_that_leads_nowhere_is_in_the_way(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "part"
    output.symlink_to("nowhere")
    done = here("extract", source, "--range", "0:4", output)
    assert (done.status, done.err.splitlines()[0]) == (2, f"seglake: {output}: exists already: nothing was written")
    assert output.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part", "source"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a named pipe")
@pytest.mark.parametrize("command", ["extract", "convert"])
def test_no_device_or_pipe_is_replaced(command: str, vectors: Path, tmp_path: Path) -> None:
    pipe, segment = tmp_path / "pipe", vectors / "active" / "typical.bin"
    os.mkfifo(pipe)
    arguments = ["--range", ":"] if command == "extract" else ["--to", "oplog"]
    for more in ([], ["--overwrite"]):
        done = here(command, segment, *arguments, pipe, *more)
        assert done.status == 2
        assert f"{pipe}: is a device or a pipe: name the file to write" in done.err
        assert pipe.is_fifo()


def failing(number: int, *expected: str) -> Callable[..., NoReturn]:
    """What a call of the system raises: an error that names the files of the call, or none."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(number, os.strerror(number), *expected)

    return fail


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("seglake.write.new_file._staged", "No space left on device"),
        ("seglake.write.durable.sync_file", "No space left on device"),
        ("seglake.write.durable.rename", "No space left on device"),
        (
            "seglake.write.durable.sync_folder",
            "the new file is complete and in its place, but a loss of power may undo that: its folder cannot be "
            "synced: No space left on device",
        ),
    ],
)
def test_errors_name_the_file_that_was_to_be(
    broken: str, said: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "part"
    with monkeypatch.context() as patched:
        patched.setattr(broken, failing(errno.ENOSPC, *([] if "sync" in broken else [str(tmp_path / ".part.x")])))
        done = here("extract", source, "--range", "0:4", output, "--overwrite")
    assert (done.status, done.err) == (2, f"seglake: {output}: {said}\n")
    assert output.exists() == ("in its place" in said)
    assert len(list(tmp_path.iterdir())) == 1 + output.exists()


def test_a_full_disk_leaves_nothing_and_is_said_of_the_file(small_disk: Path, tmp_path: Path) -> None:
    large, output = tmp_path / "large", small_disk / "part"
    large.write_bytes(bytes(4 << 20))
    done = here("extract", large, "--range", ":", output)
    assert (done.status, done.err) == (2, f"seglake: {output}: No space left on device\n")
    assert list(small_disk.iterdir()) == []


def test_zeros_are_put_between_ranges(tmp_path: Path) -> None:
    source, output = tmp_path / "source", tmp_path / "output"
    source.write_bytes(b"abcdefgh")
    done = here("extract", source, "--range", ":3", "--range", "+5", "--range", "3:", output)
    assert (done.status, output.read_bytes()) == (0, b"abc\0\0\0\0\0defgh")
    assert "3 bytes from offset 0, 5 zeros, 5 bytes from offset 3" in done.err
