"""The commit and its undoing, without Spark: killed at every step, and set right by the next run."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from seglake._formats import FormatOptions
from seglake._ingestion import driver
from seglake._ingestion.commit import clear_dead_runs, commit, locked
from seglake._ingestion.driver import IngestDriver
from seglake._ingestion.layout import LOCK, STAGING
from seglake._ingestion.outcome import TaskOutcome
from seglake._ingestion.result import IngestError
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
destination, run, fatal = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
data, files = eval(sys.argv[4])
calls = 0
def deadly(function):
    def call(*arguments):
        global calls
        calls += 1
        if calls == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)
    return call
for name in ("write_durably", "place", "sync_names"):
    setattr(LOCAL, name, deadly(getattr(LOCAL, name)))
commit(destination, Manifest(run, data, files))
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
    return json.dumps({"publisher": publisher, "place": [], "records": [], "remove": [], **content})


NOTHING = {EARLIER: "earlier"}
ALL = NOTHING | {final: staged for staged, final in (*DATA, *FILES)}
STEPS = 3 + len(DATA) + 1 + len(FILES) + 1
FIRST_AFTER_COMMIT = 3 + len(DATA) + 1 + 2


def test_a_commit_makes_everything_visible(destination: Path) -> None:
    commit(destination, Manifest(RUN, DATA, FILES))
    assert visible(destination) == ALL
    clear_dead_runs(destination)
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
    clear_dead_runs(destination)
    assert visible(destination) == (ALL if step >= FIRST_AFTER_COMMIT else NOTHING)
    assert list((destination / STAGING).iterdir()) == []
    # Nor is an empty folder left that would look like a table or a partition.
    if step < FIRST_AFTER_COMMIT:
        assert sorted(path.name for path in destination.iterdir()) == [STAGING, "active"]
        assert [path.name for path in (destination / "active/records").iterdir()] == ["date=2024-01-31"]


def test_the_steps_are_counted_right(destination: Path) -> None:
    arguments = [str(destination), RUN, "0", repr((DATA, FILES))]
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], check=True, capture_output=True, text=True)
    assert done.stdout.split() == [str(STEPS)]


@pytest.mark.parametrize(("step", "message"), [(2, "Nothing of it is visible"), (5, "All of it is visible")])
def test_a_rename_that_fails_is_set_right_at_once(
    destination: Path, monkeypatch: pytest.MonkeyPatch, step: int, message: str
) -> None:
    place = LOCAL.place
    calls: list[Path] = []

    def failing(staged: Path, final: Path) -> None:
        calls.append(final)
        if len(calls) == step:
            raise OSError(28, "No space left on device")
        place(staged, final)

    monkeypatch.setattr(LOCAL, "place", failing)
    with pytest.raises(IngestError, match=f"giving the files their names failed: .*No space left.*{message}"):
        commit(destination, Manifest(RUN, DATA, FILES))
    assert visible(destination) == (ALL if step > len(DATA) else NOTHING)


@pytest.mark.parametrize("step", [2, 3, 4, 5])
def test_what_cannot_be_set_right_at_once_is_by_the_next_run(
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
    monkeypatch.setattr(IngestDriver, "_manifest", lambda *_: Manifest(RUN, DATA, FILES))
    calls: list[Path] = []

    def failing(function: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any, **named: Any) -> None:
            calls.append(arguments[0])
            if len(calls) >= step:
                raise OSError(5, "Input/output error")
            function(*arguments, **named)

        return call

    run = IngestDriver([], destination, None, FormatOptions(), None, None, 1, "record", None)
    with monkeypatch.context() as patched:
        patched.setattr(LOCAL, "place", failing(LOCAL.place))
        patched.setattr(LOCAL, "move_back", failing(LOCAL.move_back))
        patched.setattr(LOCAL, "remove", failing(LOCAL.remove))
        with pytest.raises(IngestError, match=r"Input/output error\. A part of it may be visible"):
            run._run(cast("Any", None), destination, RUN, cast("Any", SimpleNamespace(files=[])))
    clear_dead_runs(destination)
    whole = {final: staged for staged, final in (*DATA, *FILES)}
    assert visible(destination) == (whole if step > len(DATA) + 1 else {})
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
        written(records=[["/etc/passwd", f"active/files/{RUN}.parquet"]]),
        written("20230131T000000Z-0000beef"),
    ],
)
def test_a_foreign_manifest_deletes_nothing(destination: Path, content: str) -> None:
    (destination / STAGING / RUN / "manifest.json").write_text(content)
    with pytest.raises(IngestError, match=r"manifest\.json: expected the manifest of an ingest that died, .*remove"):
        clear_dead_runs(destination)
    assert visible(destination) == NOTHING
    assert (destination / STAGING / RUN).is_dir()


def test_a_link_in_the_place_of_the_staging_folder_clears_nothing(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "precious").mkdir(parents=True)
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / STAGING).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IngestError, match="this is a link"):
        clear_dead_runs(tmp_path / "lake")
    assert (tmp_path / "elsewhere" / "precious").is_dir()


def test_a_link_in_the_staging_folder_is_not_entered(destination: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "precious").mkdir(parents=True)
    (destination / STAGING / "linked").symlink_to(tmp_path / "elsewhere")
    clear_dead_runs(destination)
    assert (tmp_path / "elsewhere" / "precious").is_dir()


def test_a_link_in_the_place_of_the_lock_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("of somebody else")
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / LOCK).symlink_to(tmp_path / "victim")
    with pytest.raises(IngestError, match="the lock cannot be opened"), locked(tmp_path / "lake", "mine"):
        pass
    assert (tmp_path / "victim").read_text() == "of somebody else"


def test_there_may_be_nothing_to_clear(tmp_path: Path) -> None:
    clear_dead_runs(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def other_process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    script = (
        "import sys, pathlib; from seglake._ingestion.commit import locked\n"
        "with locked(pathlib.Path(sys.argv[1]), 'run-of-the-other'):\n"
        "    print('locked', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_one_run_at_a_time(tmp_path: Path, other_process: subprocess.Popen[str]) -> None:
    holder = rf"process {other_process.pid} on .*, run run-of-the-other"
    with pytest.raises(IngestError, match=f"another ingest is writing here .{holder}"), locked(tmp_path, "mine"):
        pass
    os.kill(other_process.pid, signal.SIGKILL)
    other_process.wait()
    with (
        locked(tmp_path, "mine"),
        pytest.raises(IngestError, match="run mine"),
        locked(tmp_path, "in the same process"),
    ):
        pass
    with locked(tmp_path, "again"):
        pass
