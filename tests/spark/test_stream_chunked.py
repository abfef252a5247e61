"""A stream of chunked files, without Spark: their ends are found by headers, and tasks verify what is before them."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seglake

pytest.importorskip("seglake.spark.stream.reader", reason="streams need PySpark 4.2")

from stream_query import Query

HEADER_BYTES = 21
ROOM = 300

Damage = list[tuple[int, int]]


def chunked(path: Path, name: str, chosen: random.Random) -> bytes:
    """The bytes of a chunked file of small chunks, each record of which says whose it is."""
    with seglake.create(path, format="chunked", options={"chunk_bytes": 150, "index": False}) as writer:
        for number in range(chosen.randint(1, 60)):
            filling = chosen.randbytes(chosen.randint(0, 30)).hex()
            writer.write(timestamp=number, value=f"{name}-{number} {filling}".encode())
    content = path.read_bytes()
    path.unlink()
    return content


def headers(content: bytes) -> list[int]:
    """Where the chunks of a sound file begin."""
    return sorted({record.position for record in seglake.open(io.BytesIO(content), format="chunked")})


def damaged(content: bytes, chosen: random.Random) -> bytes:
    """The same with a few flipped bits, most of them in headers."""
    struck = bytearray(content)
    for _ in range(chosen.choice([0, 0, 1, 2, 4])):
        at = chosen.randrange(len(struck))
        if chosen.random() < 0.6:
            at = chosen.choice(headers(content)) + chosen.randrange(HEADER_BYTES)
        struck[at] ^= 1 << chosen.randrange(8)
    return bytes(struck)


def joined(damage: Damage) -> Damage:
    """Touching ranges as one: damage is settled at the end of each batch."""
    ranges: Damage = []
    for start, end in sorted(damage):
        if ranges and ranges[-1][1] == start:
            start = ranges.pop()[0]
        ranges.append((start, end))
    return ranges


def one_reading(content: bytes) -> tuple[list[str], Damage]:
    """The records of a file and its damage, without what is unfinished at its end."""
    reader = seglake.incremental.resume(io.BytesIO(content), None, format="chunked", on_damage="skip")
    batches = reader.batches(warn=False)
    damage: Damage = []
    rows: list[str] = []
    for batch in batches:
        damage += [(span.start, span.end) for span in batch.damage]
        rows += [value.decode() for value in pa.record_batch(batch).column("value").to_pylist()]
    return rows, joined(damage)


class File:
    """A file that gets its bytes piece by piece."""

    def __init__(self, path: Path, name: str, content: bytes, chosen: random.Random) -> None:
        self.path, self.name, self.content, self.chosen = path, name, content, chosen
        self.preallocated = chosen.random() < 0.5
        self.written = 0
        self.grow()

    def grow(self) -> None:
        left = len(self.content) - self.written
        self.written += left if self.chosen.random() < 0.2 else self.chosen.randint(0, left)
        self.write(self.written)

    def finish(self) -> None:
        self.written = len(self.content)
        self.write(self.written)

    def now(self, written: int) -> bytes:
        content = self.content[:written]
        return content.ljust(len(self.content) + ROOM, b"\0") if self.preallocated else content

    def write(self, written: int) -> None:
        self.path.write_bytes(self.now(written))


class Life:
    """A stream of such files, and what it gave of each."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chosen = random.Random(seed)
        self.folder = folder / "files"
        self.folder.mkdir()
        limits = self.chosen.choice([{}, {}, {"maxBytesPerTrigger": "700"}, {"maxFilesPerTrigger": "2"}])
        own = {"stateLocation": str(folder / "states"), "segmentFormat": "chunked", **limits}
        self.query = Query(self.folder, **own)
        self.files: list[File] = []
        self.count = 0
        self.rows: list[str] = []
        self.damage: dict[str, Damage] = {}
        # What came of the last batch, as long as its files are there.
        self.last: tuple[list[str], dict[str, Damage]] | None = None

    def content(self) -> tuple[str, bytes]:
        self.count += 1
        name = f"f{self.count}"
        content = chunked(self.folder.parent / "made", name, self.chosen)
        return name, damaged(content, self.chosen)

    def create(self) -> None:
        name, content = self.content()
        self.files.append(File(self.folder / f"{name}.chunks", name, content, self.chosen))

    def grow(self) -> None:
        if self.files:
            self.chosen.choice(self.files).grow()

    def rename(self) -> None:
        if self.files:
            file = self.chosen.choice(self.files)
            file.path = file.path.rename(self.folder / f"{self.chosen.randint(0, 999)}-{file.name}.chunks")

    def replace(self) -> None:
        """Another file comes into the place of one of which all was read."""
        if not self.files:
            return
        self.drain()
        file = self.files.pop(self.chosen.randrange(len(self.files)))
        self.check(file)
        name, content = self.content()
        self.last = None
        path = file.path.rename(self.folder / f"{name}.chunks")
        self.files.append(File(path, name, content, self.chosen))

    def cut(self) -> None:
        """A file is cut for the time of a batch. It is skipped if more of it was read than is left."""
        if self.files:
            file = self.chosen.choice(self.files)
            file.write(self.chosen.randint(0, file.written))
            self.batch()
            file.write(file.written)

    def read(self) -> tuple[list[str], dict[str, Damage]]:
        rows: list[str] = []
        damage: dict[str, Damage] = {}
        query = self.query
        for task in query.reader.partitions(query.previous, query.start()):
            for batch in query.reader.read(task):
                rows += [value.decode() for value in batch.column("value").to_pylist() if value is not None]
                for report in batch.column("_corrupt_record").to_pylist():
                    if report is not None and report["kind"] != "file":
                        name = Path(report["path"]).stem.rpartition("-")[2]
                        damage.setdefault(name, []).append((report["start"], report["end"]))
        return rows, damage

    def batch(self) -> bool:
        if not self.query.plan():
            return False
        rows, damage = self.last = self.read()
        self.rows += rows
        for name, own in damage.items():
            self.damage.setdefault(name, []).extend(own)
        return True

    def again(self) -> None:
        if self.last is not None:
            rows, damage = self.read()
            assert sorted(rows) == sorted(self.last[0])
            assert damage == self.last[1]

    def drain(self) -> None:
        while self.batch():
            pass

    def check(self, file: File) -> None:
        """Compares what came of a file with one reading of it."""
        rows, damage = one_reading(file.now(file.written))
        own = [row for row in self.rows if row.startswith(f"{file.name}-")]
        assert own == rows, file.name
        assert joined(self.damage.get(file.name, [])) == damage, file.name


@pytest.mark.parametrize("seed", range(25))
def test_each_record_and_each_damage_once_whatever_becomes_of_chunked_files(tmp_path: Path, seed: int) -> None:
    life = Life(tmp_path, seed)
    steps = [life.create, life.grow, life.grow, life.grow, life.rename, life.cut, life.replace, life.again]
    steps += [life.batch, life.batch, life.batch, life.query.restart]
    for _ in range(50):
        life.chosen.choice(steps)()
    life.drain()
    for file in life.files:
        file.finish()
    life.drain()
    for file in life.files:
        life.check(file)
    assert len(life.rows) == len(set(life.rows))


def test_the_driver_reads_no_chunk_but_the_first_and_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would take as long as the tasks take."""
    counts: list[int] = []
    resume = seglake.incremental.resume

    def resumed(*given: Any, **more: Any) -> Any:
        reader = resume(*given, **more)
        if more.get("only_end"):
            counts.append(reader.count_rows())
        return reader

    monkeypatch.setattr(seglake.incremental, "resume", resumed)
    folder = tmp_path / "files"
    folder.mkdir()
    with seglake.create(folder / "a.chunks", format="chunked", options={"chunk_records": 10}) as writer:
        for number in range(1000):
            writer.write(timestamp=number, value=b"%d" % number)
    query = Query(folder, stateLocation=str(tmp_path / "states"), segmentFormat="chunked")
    assert len(query.batch()) == 1000
    assert counts == [10]
