"""Writers under fire, each in a process of its own: what they say is in a file is in it, and nothing is left behind."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fire_writing
import pytest
from cli_process import command, environment
from cli_samples import EXTENSIONS
from fire import run, survives
from fire_samples import FORMATS, expected, sample, values

import seglake

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals, forks and limits of resources are Unix's")

EVERYWHERE = [
    fire_writing.closed,
    fire_writing.threads,
    fire_writing.closed_by_another_thread,
    fire_writing.forks,
    fire_writing.fork_in_the_middle,
    fire_writing.fork_of_a_verb,
    fire_writing.freed_by_an_exception,
    fire_writing.interrupted,
    fire_writing.size_limit,
    fire_writing.size_limit_of_verbs,
]


@pytest.mark.parametrize("scenario", EVERYWHERE, ids=lambda scenario: scenario.__name__)
def test_writing(scenario: Callable[[str], None], tmp_path: Path) -> None:
    survives(scenario, tmp_path)


@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.more)])
def test_interrupted_while_closing(tmp_path: Path, stride: int) -> None:
    survives(fire_writing.interrupted_while_closing, tmp_path, str(stride))


@pytest.mark.parametrize("format", FORMATS)
def test_the_interpreter_ends_with_an_unclosed_writer(tmp_path: Path, format: str) -> None:
    if format in fire_writing.WHOLE:
        done = run(fire_writing.unclosed, tmp_path, format)
        assert (done.returncode, list(tmp_path.iterdir())) == (120, [])
        assert "not all that was written to it is kept" in done.stderr
        return
    survives(fire_writing.unclosed, tmp_path, format)
    names = {file.name for file in tmp_path.iterdir()}
    assert names == fire_writing.ALLOWED[format]
    path = tmp_path / f"new.{EXTENSIONS[format]}"
    assert seglake.verify(path).ok
    assert values(seglake.open(path)) == expected()[:20]


def test_a_full_disk(small_disk: Path) -> None:
    survives(fire_writing.full_disk, small_disk)


def test_commands_on_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    path = sample(tmp_path, "active")
    chunks = sample(tmp_path, "chunked")
    (small_disk / "ballast").write_bytes(bytes(3 << 20))
    commands: list[list[str | Path]] = [
        ["seal", path, small_disk / "new.sealed"],
        ["convert", path, small_disk / "new.active"],
        ["recover", path, small_disk / "new.active"],
        ["index", chunks, small_disk / "new.index"],
    ]
    for words in commands:
        done = subprocess.run(command(*words), capture_output=True, text=True, env=environment(), check=False)
        assert done.returncode == 2, done
        assert "No space left on device" in done.stderr, done
        assert str(words[-1]) in done.stderr, done
        assert "Traceback" not in done.stderr, done
        assert [file.name for file in small_disk.iterdir()] == ["ballast"]
    full = Path("/dev/full")
    if full.exists():
        with full.open("wb") as nowhere:
            done = subprocess.run(
                command("cat", path), stdout=nowhere, stderr=subprocess.PIPE, text=True, env=environment(), check=False
            )
        assert done.returncode == 2, done
        assert "No space left on device" in done.stderr, done


def test_commands_under_a_limit_of_file_sizes(tmp_path: Path) -> None:
    import resource

    path = sample(tmp_path, "active")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    for verb, name in (("seal", "new.sealed"), ("convert", "new.active"), ("recover", "new.active")):
        done = subprocess.run(
            command(verb, path, tmp_path / name),
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
            preexec_fn=limit,
        )
        assert done.returncode == 2, done
        assert "File too large" in done.stderr, done
        assert [file.name for file in tmp_path.iterdir()] == [path.name], done


# Acknowledges each flush and sync on standard output, until it is killed.
KILLED = """
import os, sys
from pathlib import Path
import seglake
from cli_samples import fields
format, path, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = {"preallocate": 1 << 20} if format == "active" and seed % 2 else {}
options |= {"chunk_records": 3 + seed} if format == "chunked" else {}
writer = seglake.create(path, format=format, if_exists="append", zero_torn_tail=True, options=options)
number = writer.found.records
while True:
    for _ in range(1 + (number * 7 + seed) % 23):
        writer.write(value=b"%d " % number * (1 + number * number % 3001), **fields(format, number))
        number += 1
    writer.sync() if number % 25 == 0 else writer.flush()
    os.write(1, b"%d\\n" % number)
"""


@pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")
@pytest.mark.parametrize("format", fire_writing.APPENDED)
def test_a_killed_writer_loses_nothing_that_was_acknowledged(tmp_path: Path, format: str) -> None:
    """Killed again and again, and opened again each time: there is a torn tail at most, and it goes on behind that."""
    path = tmp_path / f"log.{EXTENSIONS[format]}"
    here = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    kept = 0
    for seed in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, format, str(path), str(seed)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": here},
        )
        assert process.stdout is not None
        acknowledged = kept
        try:
            for _ in range(1 + seed * seed * 2):
                acknowledged = int(process.stdout.readline())
        finally:
            process.kill()
        acknowledged = max([acknowledged, *map(int, process.stdout.read().split())])
        process.stdout.close()
        process.wait()
        reader = seglake.open(path, on_damage="skip")
        spans = list(reader.ledger())
        assert {span.kind for span in spans} <= {"record", "chunk", "padding", "unused", "torn_tail"}, spans
        records = [record.value for record in seglake.open(path, on_damage="skip")]
        assert len(records) >= acknowledged
        assert records == [b"%d " % number * (1 + number * number % 3001) for number in range(len(records))]
        kept = len(records)
    assert kept > 500
    with seglake.create(path, format=format, if_exists="append", zero_torn_tail=True) as writer:
        assert writer.found is not None
        assert writer.found.records == kept
    assert seglake.verify(path).ok
    if format == "chunked":
        index = seglake.open(path).index()
        assert index is not None
        assert index.ok
