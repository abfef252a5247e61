"""Losses of power at every step of a write, without Spark: only what was synced is sure to stay."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from power_loss import Disk, State, lay_out
from samples import SAMPLES
from test_spark_write_task import Write, records

import seglake
from seglake.spark.option_table import camel_case
from seglake.spark.write.existing import PartFile
from seglake.spark.write.job import Job
from seglake.write import durable

OLD = ["old-1.chunks", "old-1.index", "old-2.active"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "disk"
    root.mkdir()
    return root


def below(state: State, folder: str) -> dict[str, bytes]:
    """The files of a state that lie in a folder and are not hidden: no part of their path is."""
    files: dict[str, bytes] = {}
    for path, content in state.items():
        inside = path.removeprefix(f"{folder}/")
        if inside != path and content is not None and not any(part[0] in "_." for part in inside.split("/")):
            files[inside] = content
    return files


def content_of(root: Path) -> State:
    paths = root.rglob("*")
    return {str(path.relative_to(root)): None if path.is_dir() else path.read_bytes() for path in paths}


class Settled:
    """Runs the recovery of a folder on states of a disk, once for each; gives the files that are visible then."""

    def __init__(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, recover: Callable[[Path], object]
    ) -> None:
        self._tmp_path = tmp_path
        self._monkeypatch = monkeypatch
        self._number = itertools.count()
        self._folder = folder
        self._recover = recover
        self._known: dict[frozenset[tuple[str, bytes | None]], dict[str, bytes]] = {}

    def visible(self, state: State) -> dict[str, bytes]:
        key = frozenset(state.items())
        if key not in self._known:
            root = self._lay_out(state)
            with self._monkeypatch.context() as patched:
                for name in ("sync_file", "sync_folder"):
                    patched.setattr(durable, name, lambda _: None)
                self._recover(root / self._folder)
            self._known[key] = below(content_of(root), self._folder)
        return self._known[key]

    def run(self, state: State) -> Disk:
        """Sets a state right; gives the disk, which has watched."""
        root = self._lay_out(state)
        disk = Disk(root)
        with self._monkeypatch.context() as patched:
            disk.watch(patched)
            self._recover(root / self._folder)
        disk.look()
        return disk

    def _lay_out(self, state: State) -> Path:
        root = self._tmp_path / f"state-{next(self._number)}"
        lay_out(state, root)
        return root


# Writes


def staged(job: Job) -> list[PartFile]:
    """What two tasks have put aside, one of them with an index; it is on the disk."""
    files: list[PartFile] = []
    for task, extension in enumerate(("active", "chunks")):
        part = Path(f"part-{task:05d}-{job.id}-{task}-c000.{extension}")
        names = [part, part.with_suffix(".index")] if extension == "chunks" else [part]
        for name in names:
            (job.staging / name).write_text(str(name))
            durable.sync_file(job.staging / name)
        files.append(PartFile(tuple(map(str, names)), 1))
    return files


def next_write(folder: Path) -> None:
    Job.begin(folder, overwrites=False, success_file=True).abort()


@pytest.mark.parametrize("made", [False, True], ids=["there", "made"])
@pytest.mark.parametrize("overwrites", [False, True], ids=["append", "overwrite"])
def test_a_write_is_all_or_nothing(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool, overwrites: bool
) -> None:
    folder = root / "out"
    old = {} if made else {name: name.encode() for name in OLD}
    if not made:
        lay_out(old, folder)
    disk = Disk(root)
    with monkeypatch.context() as patched:
        disk.watch(patched)
        job = Job.begin(folder, overwrites=overwrites, success_file=True)
        files = staged(job)
        begun = disk.moment()
        job.commit(files)
        done = disk.moment()
    new = {name: name.encode() for file in files for name in file.names}
    whole = new if overwrites else old | new
    settled = Settled(tmp_path, monkeypatch, "out", next_write)
    outcomes: set[bool] = set()
    for moment, state in disk.states():
        shown = below(state, "out")
        # Whatever is lost, no file is visible with a part of its content, and either all old or all new ones are there.
        assert shown.items() <= (old | new).items()
        assert shown.items() >= old.items() or shown.items() >= new.items()
        if "out/_SUCCESS" in state:
            assert shown == whole
        after = settled.visible(state)
        assert after in (old, whole)
        outcomes.add(after == whole)
        if moment < begun:
            assert shown == old
        if moment == done:
            assert shown == whole
            assert state["out/_SUCCESS"] == b""
    assert outcomes == {False, True}


def check_setting_right(
    disk: Disk, begun: int, settled: Settled, old: dict[str, bytes], new: dict[str, bytes], whole: dict[str, bytes]
) -> None:
    """The process died, and nothing was lost by that; the power fails while that is set right."""
    for state in disk.states_kept(begun):
        for _, later in settled.run(state).states():
            shown = below(later, "out")
            assert shown.items() >= old.items() or shown.items() >= new.items()
            assert settled.visible(later) in (old, whole)


@pytest.mark.parametrize("overwrites", [False, True], ids=["append", "overwrite"])
def test_setting_a_write_right_may_lose_power_too(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrites: bool
) -> None:
    old = {name: name.encode() for name in OLD}
    lay_out(old, root / "out")
    disk = Disk(root)
    with monkeypatch.context() as patched:
        disk.watch(patched)
        job = Job.begin(root / "out", overwrites=overwrites, success_file=False)
        files = staged(job)
        begun = disk.moment()
        job.commit(files)
    new = {name: name.encode() for file in files for name in file.names}
    whole = new if overwrites else old | new
    settled = Settled(tmp_path, monkeypatch, "out", next_write)
    check_setting_right(disk, begun, settled, old, new, whole)


@pytest.mark.parametrize("failures", [1, 2])
def test_taking_a_write_back_may_lose_power_too(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    old = {name: name.encode() for name in OLD}
    lay_out(old, root / "out")
    disk = Disk(root)
    with monkeypatch.context() as patched:
        disk.watch(patched)
        job = Job.begin(root / "out", overwrites=True, success_file=False)
        files = staged(job)
        begun = disk.moment()
        sync, calls = durable.sync_folder, itertools.count()

        def failing(folder: Path) -> None:
            # The manifest takes two of them. The third is for the names, the fourth for moving back.
            if folder == root / "out" and 2 <= next(calls) < 2 + failures:
                raise OSError(5, "Input/output error")
            sync(folder)

        patched.setattr(durable, "sync_folder", failing)
        with pytest.raises(OSError, match="Nothing of it is visible"):
            job.commit(files)
        failed = disk.moment()
        job.abort()
        aborted = disk.moment()
    new = {name: name.encode() for file in files for name in file.names}
    settled = Settled(tmp_path, monkeypatch, "out", next_write)
    for moment, state in disk.states(begun):
        shown = below(state, "out")
        assert shown.items() >= old.items()
        assert settled.visible(state) in ((old,) if moment >= (failed if failures == 1 else aborted) else (old, new))
        if moment >= aborted:
            assert shown == old
    check_setting_right(disk, begun, settled, old, new, new)


class SyncedWriter:
    """A writer that notes its syncs: those of Rust's are no calls of `os`."""

    def __init__(self, writer: seglake.Writer, disk: Disk) -> None:
        self._writer = writer
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    def sync(self) -> None:
        self._writer.sync()
        for path in (Path(self._writer.path), Path(self._writer.path).with_suffix(".index")):
            if path.exists():
                self._disk.sync(path)

    def close(self) -> None:
        is_there = Path(self._writer.path).exists()
        self._writer.close()
        if not is_there:  # a file that is written whole is synced before it gets its name
            self._disk.sync(Path(self._writer.path))


@pytest.mark.parametrize("format", list(SAMPLES))
def test_what_a_task_has_told_of_is_on_the_disk(root: Path, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    sample = SAMPLES[format]
    own = sample.write_options
    given_ = {**own, **own.get("options", {})}
    options = {camel_case(name): str(value) for name, value in given_.items() if name != "options"}
    rows = [{name: value for name, value in row.items() if name != "timestamp_us"} for row in records(format, 20)]
    write = Write(root / "out", sample.format, rows, maxRecordsPerFile="10", **options)
    disk = Disk(root)
    create = seglake.create
    monkeypatch.setattr(seglake, "create", lambda *given, **named: SyncedWriter(create(*given, **named), disk))
    with monkeypatch.context() as patched:
        disk.watch(patched)
        message = write.run()
        told = disk.moment()
        write.commit(message)
    contents = {path.name: path.read_bytes() for path in write.job.folder.iterdir() if path.is_file()}
    assert len(contents) >= len(message.files) > 0
    for _, state in disk.states(told):
        for name, content in below(state, "out").items():
            assert content == contents[name]


def test_a_folder_that_is_there_is_made_no_second_time(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    durable.make_folder(root / "a" / "b" / "c")
    disk = Disk(root)
    with monkeypatch.context() as patched:
        disk.watch(patched)
        durable.make_folder(root / "a" / "b" / "c")
        durable.make_folder(root / "a" / "d" / "e")
    states = [set(state) for _, state in disk.states(disk.moment())]
    assert states == [{"a", "a/b", "a/b/c", "a/d", "a/d/e"}]
