"""Writers that run on a disk that loses power, in a process of their own, and tell what they were promised.

    python -m tests.losing_disk.writers NAME FOLDER SEED

Each has a check of what a loss of power may leave: docs/durability.md, "After a loss of power".
"""

from __future__ import annotations

import os
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

import seglake
from seglake import SegmentLog
from seglake.cli import main as command
from seglake.lake import log as lake
from seglake.lake.ingest import apply
from seglake.lake.log import lake_log
from seglake.lake.tables import tables_of
from seglake.tracking.place import LocalPlace
from tests.log_kills import ACKNOWLEDGED, VALUE, Oracle, append

from .journal import TOLD, State

Tell = Callable[[bytes], None]


class Scenario(NamedTuple):
    """What is there at the beginning, what is done, and what has to be right of a folder after a loss of power.

    `check` gets the folder, what was told, and what all files had in the end.
    """

    prepare: Callable[[Path], None]
    write: Callable[[Path, random.Random], None]
    check: Callable[[Path, bytes, State], None]
    after: str | None = None
    """The scenario that lost power before this one begins."""


def nothing(_: Path) -> None:
    """Prepare nothing."""


@contextmanager
def telling(folder: Path) -> Iterator[int]:
    """A descriptor to tell by what was promised."""
    told = os.open(folder / TOLD, os.O_WRONLY | os.O_APPEND)
    try:
        yield told
    finally:
        os.close(told)


_THREADS = 3


def write_log(folder: Path, choice: random.Random, round: int = 0) -> None:
    """Several threads write to a log whose segments are sealed."""
    log = SegmentLog(folder / "log", segment_bytes=choice.choice([300, 1000, 5000]), seal=choice.random() < 0.8)

    def run(thread: int, size: int) -> None:
        number, batch = 0, 1 + thread % 2
        for _ in range(8):
            number = append(log, (round, thread, number), batch, size, told)

    with telling(folder) as told:
        own = range(round * _THREADS, (round + 1) * _THREADS)
        threads = [threading.Thread(target=run, args=(thread, choice.choice([0, 40, 300]))) for thread in own]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        log.close()


def numbers(log: SegmentLog) -> dict[tuple[int, int], list[int]]:
    """The numbers that a log has of each round and thread, which ascend as UUIDs do."""
    found: dict[tuple[int, int], list[int]] = {}
    last = None
    for each in log:
        round, thread, number = VALUE.unpack_from(each.value)
        own = found.setdefault((round, thread), [])
        assert last is None or last < each.uuid, f"{each.uuid} does not ascend"
        assert not own or own[-1] < number, f"round {round}, thread {thread}: {number} after {own[-1]}"
        own.append(number)
        last = each.uuid
    return found


def check_log(folder: Path, told: bytes, _: State) -> None:
    """Open the log, which puts it in order, and write on. Of what was not acknowledged any record may be there."""
    with SegmentLog(folder / "log") as log:
        found = numbers(log)
        for thread, number in ACKNOWLEDGED.iter_unpack(told):
            own = found.get((thread // _THREADS, thread), [])
            assert own[: number + 1] == [*range(number + 1)], f"thread {thread}: {number} was acknowledged, found {own}"
        log.write("t", VALUE.pack(2, 0, 0))
    with SegmentLog(folder / "log", readonly=True) as log:
        assert numbers(log) == found | {(2, 0): [0]}, "other records are there after the next writer"


def write_again(folder: Path, choice: random.Random) -> None:
    """Put a log in order that lost power, and write on."""
    write_log(folder, choice, 1)


def write_retained(folder: Path, choice: random.Random) -> None:
    """One thread writes to a log whose old segments are removed."""
    log = SegmentLog(folder / "log", segment_bytes=300, retention={"bytes": 1000})
    with telling(folder) as told:
        number = 0
        for _ in range(30):
            number = append(log, (0, 0, number), 1, choice.choice([0, 40]), told)
        log.close()


def check_retained(folder: Path, told: bytes, _: State) -> None:
    """The end is there without a gap."""
    oracle = Oracle(has_retention=True)
    with SegmentLog(folder / "log") as log:
        oracle.look(log)
    last = max((number for _, number in ACKNOWLEDGED.iter_unpack(told)), default=-1)
    found = oracle.counts.get((0, 0), 0)
    assert found > last, f"{last} was acknowledged, those up to {found - 1} are there"


_RECORDS = 24
_APPENDED = {"active": "t.active", "chunked": "t.chunks", "oplog": "t.oplog"}
_WHOLE = {"sealed": "t.sealed", "tenant": "t.tenant"}


def record(form: str, number: int) -> dict[str, Any]:
    """A record of any format."""
    value = b"%d " % number * 20
    match form:
        case "oplog":
            return {"version": 1, "checkpointer": 1, "clock": [], "abi": 0, "batch": 1, "value": value}
        case "tenant":
            return {"partition": 0, "tenant": "a", "value": value}
        case "chunked":
            return {"value": value}
        case _:
            return {"type": "t", "value": value}


def values(path: Path, **how: Any) -> list[bytes]:
    """The values of a file."""
    with warnings.catch_warnings(action="ignore"), seglake.open(path, **how) as reader:
        return [bytes(each.value) for each in reader]


def write_formats(folder: Path, _: random.Random) -> None:
    """Files of all formats, synced now and then, or closed."""
    with telling(folder) as told:
        for form, name in _APPENDED.items():
            writer = seglake.create(folder / name, format=form)
            for number in range(_RECORDS):
                writer.write(**record(form, number))
                if number % 8 == 7:
                    writer.sync()
                    os.write(told, f"{form} {number + 1}\n".encode())
            writer.close()
        for form, name in _WHOLE.items():
            with seglake.create(folder / name, format=form) as writer:
                for number in range(_RECORDS):
                    writer.write(**record(form, number))
            os.write(told, f"{form} {_RECORDS}\n".encode())


def check_formats(folder: Path, told: bytes, _: State) -> None:
    """What was synced is there, and nothing else than was written; files that are written whole are there whole."""
    counts = {form: int(count) for form, count in (line.split() for line in told.decode().splitlines())}
    for form, name in (_APPENDED | _WHOLE).items():
        written = [record(form, number)["value"] for number in range(_RECORDS)]
        count = counts.get(form, 0)
        if not (folder / name).exists():
            assert count == 0, f"{name} is lost"
        elif form in _WHOLE:
            assert values(folder / name) == written, f"{name} is not whole"
        elif count:
            found = values(folder / name, on_damage="skip", format=form)
            assert found[:count] == written[:count], f"{name}: {len(found)} records, {count} were synced"
            assert set(found) <= set(written), f"{name} has what nobody wrote"
    if counts.get("chunked"):
        with seglake.open(folder / "t.chunks", on_damage="skip") as reader:
            index = reader.index()
        assert index is not None, "the index is lost"
        assert len(index) >= counts["chunked"] // 8, f"{len(index)} chunks are in the index"


_COMMANDS: Mapping[str, list[str]] = {
    "seal": ["seal", "a.active", "s.sealed"],
    "replace": ["seal", "--overwrite", "a.active", "old.sealed"],
    "convert": ["convert", "b.chunks", "--to", "chunked", "c.chunks"],
    "recover": ["recover", "damaged.active", "r.active"],
    "index": ["index", "b.chunks"],
    "export": ["export", "a.active", "e.parquet"],
    "extract": ["extract", "a.active", "--range", "0:50", "x.bin"],
}


def prepare_files(folder: Path) -> None:
    """Segments, of which one is damaged."""
    for name, form in (("a.active", "active"), ("b.chunks", "chunked")):
        with seglake.create(folder / name, format=form) as writer:
            for number in range(_RECORDS):
                writer.write(**record(form, number))
    (folder / "b.index").unlink()
    content = bytearray((folder / "a.active").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "damaged.active").write_bytes(content)
    (folder / "old.sealed").write_bytes(b"old")


def names(folder: Path) -> set[str]:
    """The names of the files that are shown in a folder."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def run_commands(folder: Path, choice: random.Random) -> None:
    """Commands that make files, in any order. Told are the name of each and the files that are there then."""
    os.chdir(folder)
    before = names(folder)
    with telling(folder) as told:
        for name in choice.sample(sorted(_COMMANDS), len(_COMMANDS)):
            said = StringIO()
            with redirect_stdout(said), redirect_stderr(said):
                status = command(_COMMANDS[name])
            assert status in (0, 1), f"{name}: {said.getvalue()}"
            made = {"old.sealed"} if name == "replace" else names(folder) - before
            assert made, f"{name} made nothing: {said.getvalue()}"
            before |= made
            os.write(told, ("\n".join(sorted(made)) + "\n").encode())


def check_commands(folder: Path, told: bytes, last: State) -> None:
    """Each file is there whole, or not at all, and those of commands that ended are."""
    shown = names(folder)
    old = {"a.active", "b.chunks", "damaged.active", "old.sealed"}
    promised = set(told.decode().split())
    assert promised | old <= shown, f"lost: {promised | old - shown}"
    for name in shown:
        found = (folder / name).read_bytes()
        is_old = name == "old.sealed" and name not in promised and found == b"old"
        assert is_old or found == last[name], f"{name} is not whole"
    for main, companion in _with_companions(set(last)):
        assert main not in shown or companion in shown, f"{main} is there without {companion}"


def _with_companions(names: set[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        if name.startswith("r.active") and name != "r.active":
            yield "r.active", name
        if name == "c.index":
            yield "c.chunks", name


def prepare_sources(folder: Path) -> None:
    """Two segments to ingest."""
    for name in ("a", "b"):
        with seglake.create(folder / f"{name}.active", format="active") as writer:
            for number in range(5):
                writer.write(type="t", value=f"{name}{number}")


def ingest(folder: Path, _: random.Random) -> None:
    """Two ingests into one lake, of which the second writes a checkpoint of the first."""
    lake._CHECKPOINT_EVERY = 1  # pyright: ignore
    with telling(folder) as told:
        for name in ("a", "b"):
            seglake.ingest(folder / f"{name}.active", folder / "lake")
            os.write(told, name.encode())


def check_ingest(folder: Path, told: bytes, _: State) -> None:
    """After the next run has put it in order, each ingest is there as a whole or not at all."""
    lake = folder / "lake"
    found: list[str] = []
    if lake.exists():
        place = LocalPlace(lake)
        state = lake_log(place).load()
        apply(place, lake_log(place), tables_of("parquet", place), state)
        (lake / "_log/_last_checkpoint").unlink(missing_ok=True)
        assert lake_log(place).load() == state, "the checkpoint is wrong"
        tables = {path: pq.read_table(path, partitioning=None) for path in lake.rglob("*.parquet")}
        records = [each for path, each in tables.items() if "active" in path.parts]
        found = sorted(bytes(value.as_py()).decode() for each in records for value in each["value"])
        files = sum(len(each) for path, each in tables.items() if "files" in path.parts)
        assert files == len(found) // 5, f"{files} files with {len(found)} records"
        assert not files or any("damage" in path.parts for path in tables), "the table of damage is lost"
    runs = [[f"{name}{number}" for number in range(5)] for name in ("a", "b")]
    allowed = [[], runs[0], runs[0] + runs[1]]
    assert found in allowed[len(told) :], f"{len(told)} ingests ended, there is {found}"


SCENARIOS: Mapping[str, Scenario] = {
    "log": Scenario(nothing, write_log, check_log),
    "log again": Scenario(nothing, write_again, check_log, after="log"),
    "retained log": Scenario(nothing, write_retained, check_retained),
    "formats": Scenario(nothing, write_formats, check_formats),
    "commands": Scenario(prepare_files, run_commands, check_commands),
    "ingest": Scenario(prepare_sources, ingest, check_ingest),
}


def main() -> None:
    """Run as a program."""
    _, name, folder, seed = sys.argv
    SCENARIOS[name].write(Path(folder), random.Random(int(seed)))


if __name__ == "__main__":
    main()
