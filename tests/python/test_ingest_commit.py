"""The commit of an ingest: killed at every step, and completed by the next run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import pytest
from dying import deadly, in_a_process
from seglake._ingestion import driver
from seglake._ingestion.commit import commit, end_run, locked, settle_dead_runs
from seglake._ingestion.destination import Destination
from seglake._ingestion.driver import IngestDriver
from seglake._ingestion.layout import LOCK, STAGING
from seglake._ingestion.outcome import TaskOutcome
from seglake._ingestion.result import IngestError
from seglake._ingestion.state import State

import seglake
from seglake._formats import FormatOptions
from seglake._publish.manifest import Manifest
from seglake._publish.store import LOCAL

RUN = "20240131T000000Z-0000beef"
DATA = [
    ("t/0.inprogress", f"active/records/date=2024-01-31/{RUN}-00000-00000.parquet"),
    ("t/1.inprogress", f"active/records/date=2024-02-01/{RUN}-00000-00000.parquet"),
    ("t/2.inprogress", f"other/damage/{RUN}-00000-00000.parquet"),
]
FILES = [("f0.inprogress", f"active/files/{RUN}.parquet"), ("f1.inprogress", f"other/files/{RUN}.parquet")]
EARLIER = "active/records/date=2024-01-31/earlier-00000-00000.parquet"

# Commits, and dies by itself at the given call of any function that changes something on the disk.
SCRIPT = """
import os, signal, sys
from pathlib import Path
from seglake._publish.store import LOCAL
from seglake._publish.manifest import Manifest
from seglake._ingestion.commit import commit
from seglake._ingestion.destination import Destination
destination, run, fatal = Destination.local(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
data, files = eval(sys.argv[4])
calls = 0
def deadly(function):
    def call(*arguments, **named):
        global calls
        calls += 1
        if calls == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)
    return call
for name in ("write_durably", "place", "sync_names"):
    setattr(LOCAL, name, deadly(getattr(LOCAL, name)))
commit(destination, Manifest(run, [*data, *files]))
print(calls)
"""


@pytest.fixture
def destination(tmp_path: Path) -> Path:
    """A destination with a file of an earlier run, and a run that is ready to be committed."""
    root = tmp_path / "lake"
    staging = root / STAGING / RUN
    for staged, _ in (*DATA, *FILES):
        (staging / staged).parent.mkdir(parents=True, exist_ok=True)
        (staging / staged).write_text(staged)
    (root / EARLIER).parent.mkdir(parents=True)
    (root / EARLIER).write_text("earlier")
    return root


def visible(destination: Path) -> dict[str, str]:
    return {
        str(path.relative_to(destination)): path.read_text()
        for path in destination.rglob("*")
        if path.is_file() and STAGING not in path.parts
    }


def written(publisher: str = RUN, **content: Any) -> str:
    return json.dumps({"publisher": publisher, "place": [], "remove": [], **content})


NOTHING = {EARLIER: "earlier"}
ALL = NOTHING | {final: staged for staged, final in (*DATA, *FILES)}
# The staged names, the manifest and its name; then the files of each table, and their names.
STEPS = 3 + (2 + 1) + (1 + 1) + (2 + 1)
FIRST_AFTER_MANIFEST = 3


def test_a_commit_makes_everything_visible(destination: Path) -> None:
    commit(Destination.local(destination), Manifest(RUN, [*DATA, *FILES]))
    assert visible(destination) == ALL
    settle_dead_runs(Destination.local(destination))
    assert visible(destination) == ALL
    assert list((destination / STAGING).iterdir()) == []


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_killed_at_any_step_it_is_all_or_nothing(destination: Path, step: int) -> None:
    arguments = [str(destination), RUN, str(step), repr((DATA, FILES))]
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    listed = [name for name in visible(destination) if "/files/" in name]
    if listed:  # what is listed is complete
        assert visible(destination).items() >= {final: staged for staged, final in DATA}.items()
    settle_dead_runs(Destination.local(destination))
    assert visible(destination) == (ALL if step >= FIRST_AFTER_MANIFEST else NOTHING)
    if step >= FIRST_AFTER_MANIFEST:
        assert list((destination / STAGING).iterdir()) == []


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_what_is_killed_while_it_is_completed_is_completed_by_the_next(destination: Path, step: int) -> None:
    staging = destination / STAGING / RUN
    (staging / "manifest.json").write_text(json.dumps(asdict(Manifest(RUN, [*DATA, *FILES]))))

    def settle() -> None:
        deadly(LOCAL, ("place", "sync_names"), step)
        settle_dead_runs(Destination.local(destination))

    status = in_a_process(settle)
    assert status == (-signal.SIGKILL if step <= STEPS - 3 else 0)
    settle_dead_runs(Destination.local(destination))
    assert visible(destination) == ALL
    assert list((destination / STAGING).iterdir()) == []


def test_tables_become_visible_in_their_order(destination: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    place, sync_names = LOCAL.place, LOCAL.sync_names
    placed: list[str] = []

    def place_(staged: Path, final: Path) -> None:
        placed.append(final.relative_to(destination).parts[1])
        place(staged, final)

    def sync_(root: Path, files: Iterable[Path]) -> None:
        calls.extend(placed)
        placed.clear()
        calls.append("sync")
        sync_names(root, files)

    monkeypatch.setattr(LOCAL, "place", place_)
    monkeypatch.setattr(LOCAL, "sync_names", sync_)
    # In whatever order the manifest has them.
    commit(Destination.local(destination), Manifest(RUN, [*FILES, *reversed(DATA)]))
    assert calls[2:] == ["records", "records", "sync", "damage", "sync", "files", "files", "sync"]


def test_what_no_manifest_names_stays_for_a_day(destination: Path) -> None:
    staging = destination / STAGING / RUN
    for hours, is_there in ((0, True), (23, True), (25, False)):
        then = time.time() - hours * 3600
        for path in (*staging.iterdir(), staging):
            os.utime(path, (then, then))
        settle_dead_runs(Destination.local(destination))
        assert staging.exists() == is_there
    assert visible(destination) == NOTHING


def test_a_task_that_still_writes_keeps_what_is_staged(destination: Path) -> None:
    staging = destination / STAGING / RUN
    then = time.time() - 25 * 3600
    os.utime(staging, (then, then))
    settle_dead_runs(Destination.local(destination))
    assert staging.exists()


def test_a_file_that_is_gone_is_told_of(destination: Path) -> None:
    staging = destination / STAGING / RUN
    (staging / "manifest.json").write_text(json.dumps(asdict(Manifest(RUN, [*DATA, *FILES]))))
    (staging / "t/1.inprogress").unlink()
    with pytest.raises(IngestError, match=r"date=2024-02-01.*it is gone\. Nothing was changed\. Remove .*_staging"):
        settle_dead_runs(Destination.local(destination))
    assert visible(destination) == NOTHING
    assert staging.exists()


def test_a_manifest_that_cannot_be_written_leaves_nothing(destination: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LOCAL, "write_durably", full)
    with pytest.raises(IngestError, match=r"writing the manifest of the run failed: .*No space left.* Nothing was"):
        commit(Destination.local(destination), Manifest(RUN, [*DATA, *FILES]))
    assert visible(destination) == NOTHING
    assert list((destination / STAGING).iterdir()) == []


def test_the_steps_are_counted_right(destination: Path) -> None:
    arguments = [str(destination), RUN, "0", repr((DATA, FILES))]
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], check=True, capture_output=True, text=True)
    assert done.stdout.split() == [str(STEPS)]


def test_what_cannot_be_removed_of_an_ended_run_is_not_its_manifest(
    destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Completed once more, a run could add to tables what is in them, or miss files that were removed on purpose."""

    def failing(_: Path) -> None:
        raise OSError(5, "Input/output error")

    staging = destination / STAGING / RUN
    (staging / "manifest.json").write_text(written())
    monkeypatch.setattr(LOCAL, "remove_tree", failing)
    end_run(Destination.local(destination), staging)
    assert staging.exists()
    assert not (staging / "manifest.json").exists()


def test_a_run_that_lists_the_files_of_one_format_is_completed(
    tmp_path: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the last run then, and yet not late."""
    source, lake = tmp_path / "source", tmp_path / "lake"
    source.mkdir()
    for format in ("active", "tenant"):
        shutil.copy(vectors / format / "typical.bin", source / f"a.{format}")
    place = LOCAL.place

    def failing(staged: Path, final: Path) -> None:
        if final.parent == lake / "tenant/files":
            raise OSError(5, "Input/output error")
        place(staged, final)

    with monkeypatch.context() as patched:
        patched.setattr(LOCAL, "place", failing)
        with pytest.raises(IngestError, match=r"Input/output error\. A part of it .* completes it"):
            seglake.ingest(source, lake, threads=1)
    assert len(list(lake.glob("active/files/*"))) == 1
    assert seglake.ingest(source, lake, threads=1).run_id is None
    assert len(list(lake.glob("tenant/files/*"))) == 1


@pytest.mark.parametrize("step", range(1, len(DATA) + len(FILES) + 1))
def test_a_rename_that_fails_is_completed_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    destination = tmp_path / "lake"
    staging = destination / STAGING / RUN

    def read(*_: object) -> list[TaskOutcome]:
        (staging / "t").mkdir()
        for staged, _ in (*DATA, *FILES):
            (staging / staged).write_text(staged)
        return []

    monkeypatch.setattr(IngestDriver, "_read", read)
    monkeypatch.setattr(driver, "_by_format", lambda *_: {})
    monkeypatch.setattr(driver, "new_run_id", lambda _: RUN)
    monkeypatch.setattr(IngestDriver, "_manifest", lambda *_: Manifest(RUN, [*DATA, *FILES]))
    place, calls = LOCAL.place, list[Path]()

    def failing(staged: Path, final: Path) -> None:
        calls.append(final)
        if len(calls) == step:
            raise OSError(5, "Input/output error")
        place(staged, final)

    run = IngestDriver([], destination, None, FormatOptions(), None, None, 1, "record", False, "parquet", None, None)
    with monkeypatch.context() as patched:
        patched.setattr(LOCAL, "place", failing)
        with pytest.raises(
            IngestError,
            match=r"publishing the files .*Input/output error\. A part of it .* completes it",
        ):
            run._run(cast("Any", None), Destination.local(destination), None, State(), [])
    assert len([path for path in visible(destination) if "/files/" in path]) == max(0, step - 1 - len(DATA))
    settle_dead_runs(Destination.local(destination))
    assert visible(destination) == {final: staged for staged, final in (*DATA, *FILES)}
    assert list((destination / STAGING).iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "null",
        "[]",
        '{"publisher": "r"}',
        written(place=[["a", "../../x"]]),
        written(place=[["a", f"../{RUN}-x"]]),
        written(place=[["a", f"/tmp/{RUN}-x"]]),
        written(place=[["a", EARLIER]]),
        written(place=[["a", f"active/{RUN}/x"]]),
        written(remove=["/etc/passwd"]),
        written(remove=[EARLIER]),
        written(place=[["a", f"active/others/{RUN}.parquet"]]),
        written(place=[["a", f"{RUN}.parquet"]]),
        written(place=[["/etc/passwd", f"active/files/{RUN}.parquet"]]),
        written("20230131T000000Z-0000beef"),
    ],
)
def test_a_foreign_manifest_deletes_nothing(destination: Path, content: str) -> None:
    (destination / STAGING / RUN / "manifest.json").write_text(content)
    with pytest.raises(IngestError, match=r"manifest\.json: expected the manifest of an ingest that died, .*remove"):
        settle_dead_runs(Destination.local(destination))
    assert visible(destination) == NOTHING
    assert (destination / STAGING / RUN).is_dir()


def test_a_link_in_the_place_of_the_staging_folder_clears_nothing(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "precious").mkdir(parents=True)
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / STAGING).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IngestError, match="this is a link"):
        settle_dead_runs(Destination.local(tmp_path / "lake"))
    assert (tmp_path / "elsewhere" / "precious").is_dir()


def test_a_link_in_the_staging_folder_is_not_entered(destination: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "precious").mkdir(parents=True)
    (destination / STAGING / "linked").symlink_to(tmp_path / "elsewhere")
    settle_dead_runs(Destination.local(destination))
    assert (tmp_path / "elsewhere" / "precious").is_dir()


def test_a_link_in_the_place_of_the_lock_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("of somebody else")
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / LOCK).symlink_to(tmp_path / "victim")
    with pytest.raises(IngestError, match="the lock cannot be opened"), locked(Destination.local(tmp_path / "lake")):
        pass
    assert (tmp_path / "victim").read_text() == "of somebody else"


def test_there_may_be_nothing_to_clear(tmp_path: Path) -> None:
    settle_dead_runs(Destination.local(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def other_process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    script = (
        "import sys, pathlib; from seglake._ingestion.commit import locked\n"
        "from seglake._ingestion.destination import Destination\n"
        "with locked(Destination.local(pathlib.Path(sys.argv[1]))):\n"
        "    print('locked', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_one_run_at_a_time(tmp_path: Path, other_process: subprocess.Popen[str]) -> None:
    destination = Destination.local(tmp_path)
    holder = rf"process {other_process.pid} on .*"
    with (
        pytest.raises(IngestError, match=f"another ingest is writing here .{holder}"),
        locked(destination),
    ):
        pass
    os.kill(other_process.pid, signal.SIGKILL)
    other_process.wait()
    with (
        locked(destination),
        pytest.raises(IngestError, match="another ingest is writing here"),
        locked(destination),
    ):
        pass
    with locked(destination):
        pass
