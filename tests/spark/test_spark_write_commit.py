"""The commit of a write, without Spark: killed at every step and put in order by the next, and never half a file."""

import fcntl
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from dying import deadly, in_a_process
from samples import SAMPLES
from segments import write_segment

from seglake.spark.write import folders
from seglake.spark.write.existing import Existing, PartFile
from seglake.spark.write.job import Job
from seglake.write import durable

STEPS = ("write_durably", "place", "remove", "sync_names", "remove_tree")
OLD = ["old-1.chunks", "old-1.index", "old-2.active"]


def begin(folder: Path, *, overwrites: bool = False) -> Job:
    return Job.begin(folder, overwrites=overwrites, success_file=True)


def written(**content: Any) -> str:
    return json.dumps({"place": [], "remove": [], **content})


def staged(job: Job) -> list[PartFile]:
    """What three tasks have put aside, one of them with an index, and what an attempt has that does not count."""
    files: list[PartFile] = []
    for task, extension in enumerate(("active", "chunks", "active")):
        part = Path(f"part-{task:05d}-{job.id}-{task}-c000.{extension}")
        names = [part, part.with_suffix(".index")] if extension == "chunks" else [part]
        for name in names:
            (job.staging / name).write_text(str(name))
        files.append(PartFile(tuple(map(str, names)), 1))
    (job.staging / f"part-00000-{job.id}-7-c000.active").write_text("lost")
    return files


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(("_", ".")))


def names(files: list[PartFile]) -> list[str]:
    return sorted(name for file in files for name in file.names)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with segments of an earlier write."""
    folder = tmp_path / "out"
    folder.mkdir()
    for name in OLD:
        (folder / name).write_text(name)
    return folder


@pytest.mark.parametrize("overwrites", [False, True])
def test_a_commit_shows_what_counts_and_leaves_nothing_else(folder: Path, overwrites: bool) -> None:
    job = begin(folder, overwrites=overwrites)
    files = staged(job)
    assert visible(folder) == OLD
    job.commit(files)
    assert visible(folder) == sorted([*names(files), *([] if overwrites else OLD)])
    assert {path.name for path in folder.iterdir()} - set(visible(folder)) == {"_SUCCESS"}
    for name in names(files):
        assert (folder / name).read_text() == name


@pytest.mark.parametrize("made", [False, True])
def test_an_abort_leaves_nothing(tmp_path: Path, made: bool) -> None:
    folder = tmp_path / "a" / "b"
    if not made:
        folder.mkdir(parents=True)
    job = begin(folder)
    staged(job)
    job.abort()
    job.abort()
    assert folder.exists() != made
    assert made or list(folder.iterdir()) == []


@pytest.mark.parametrize("overwrites", [False, True])
def test_a_commit_that_dies_is_put_in_order_by_the_next_write(
    tmp_path: Path, overwrites: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[bool] = []
    for fatal in range(1, 100):
        folder = tmp_path / f"{fatal}"
        folder.mkdir()
        for name in OLD:
            (folder / name).write_text(name)
        job = begin(folder, overwrites=overwrites)
        files = staged(job)
        with monkeypatch.context() as patched:
            deadly(folders, STEPS, fatal, patched.setattr)
            ended = in_a_process(lambda job=job, files=files: job.commit(files))
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        shown = set(visible(folder))
        # In between there may be some of both; never less than all of one.
        assert set(OLD) <= shown or set(names(files)) <= shown
        for name in shown - set(OLD):
            assert (folder / name).read_text() == name
        begin(folder).abort()
        after = visible(folder)
        new = sorted([*names(files), *([] if overwrites else OLD)])
        assert after in (OLD, new)
        outcomes.append(after == new)
        waiting = folder / "_temporary"
        if waiting.exists():  # it had not come to its manifest, and could be at work still
            assert fatal <= 2
            job.abort()
        assert not waiting.exists()
    else:
        pytest.fail("the commit did not end")
    # First nothing of it stays, and from some step on everything does.
    assert outcomes == sorted(outcomes)
    assert 0 < sum(outcomes) < len(outcomes)
    assert len(outcomes) == (17 if overwrites else 12)


def test_a_commit_at_work_is_left_alone(folder: Path) -> None:
    job = begin(folder)
    files = staged(job)
    (name,) = files[0].names
    (job.staging / "manifest.json").write_text(written(place=[name]))
    with (job.staging / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begin(folder).abort()
        assert (job.staging / name).exists()
    begin(folder).abort()
    assert not job.staging.exists()


def test_a_write_that_has_not_come_to_its_commit_is_left_alone(folder: Path) -> None:
    first, second = begin(folder), begin(folder)
    files = staged(first), staged(second)
    first.commit(files[0])
    second.commit(files[1])
    assert visible(folder) == sorted([*OLD, *names(files[0]), *names(files[1])])


def test_what_a_write_was_removing_when_it_died_is_removed(folder: Path) -> None:
    job = begin(folder)
    staged(job)
    (job.staging / "manifest.json").write_text("not looked at any more")
    job.staging.rename(job.staging.with_name(f".{job.id}"))
    begin(folder).abort()
    assert sorted(path.name for path in folder.iterdir()) == OLD


FULL = OSError(28, "No space left on device")


def failing(monkeypatch: pytest.MonkeyPatch, name: str, step: int, error: BaseException = FULL) -> None:
    function = getattr(folders, name)
    calls: list[Any] = []

    def call(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == step:
            raise error
        return function(*arguments)

    monkeypatch.setattr(folders, name, call)


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_rename_that_fails_is_taken_back(folder: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    job = begin(folder, overwrites=True)
    failing(monkeypatch, "place", step)
    with pytest.raises(OSError, match=r"giving the files their names failed: .*No space.*Nothing of it is visible"):
        job.commit(staged(job))
    assert visible(folder) == OLD
    job.abort()
    assert sorted(path.name for path in folder.iterdir()) == OLD


@pytest.mark.parametrize("aborts", [False, True])
@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()], ids=["full", "interrupted"])
@pytest.mark.parametrize(
    ("step", "is_new"), [(1, False), (2, False), (3, False), (4, True), (5, True), (6, True)], ids=str
)
def test_a_sync_that_fails_loses_neither_old_nor_new(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: int, is_new: bool, error: BaseException, aborts: bool
) -> None:
    job = begin(folder, overwrites=True)
    files = staged(job)
    with monkeypatch.context() as patched:
        failing(patched, "sync_names", step, error)
        with pytest.raises(type(error)):
            job.commit(files)
    expected = names(files) if is_new else OLD
    assert set(visible(folder)) >= set(expected)
    if aborts:
        job.abort()
    begin(folder).abort()
    assert visible(folder) == expected


def test_files_that_cannot_be_moved_back_are_finished_later(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = begin(folder, overwrites=True)
    files = staged(job)
    with monkeypatch.context() as patched:
        failing(patched, "sync_names", 3)
        move, moves = durable.rename, iter(range(100))

        def sticking(path: Path, target: Path) -> None:
            if path.parent == folder and next(moves) == 0:
                raise FULL
            move(path, target)

        patched.setattr(durable, "rename", sticking)
        with pytest.raises(OSError, match=r"names failed: .*: the next write into the folder puts it in order"):
            job.commit(files)
    job.abort()
    assert visible(folder) == names(files)


@pytest.mark.parametrize("gone", [1, 4])
def test_a_staged_file_that_is_gone_costs_nothing(folder: Path, gone: int) -> None:
    job = begin(folder, overwrites=True)
    files = staged(job)
    for name in [name for file in files for name in file.names][:gone]:
        (job.staging / name).unlink()
    with pytest.raises(
        FileNotFoundError, match=r"expected the file that a task .* there is none\. Nothing was changed"
    ):
        job.commit(files)
    assert visible(folder) == OLD
    job.abort()
    assert sorted(path.name for path in folder.iterdir()) == OLD


def test_a_manifest_of_files_that_are_nowhere_removes_nothing(folder: Path) -> None:
    job = begin(folder, overwrites=True)
    (job.staging / "manifest.json").write_text(written(place=[f"gone-{job.id}.active"], remove=OLD))
    begin(folder).abort()
    assert visible(folder) == OLD
    assert not job.staging.exists()


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_removal_that_fails_is_tried_again(folder: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    job = begin(folder, overwrites=True)
    files = staged(job)
    with monkeypatch.context() as patched:
        failing(patched, "remove", step)
        with pytest.raises(OSError, match=r"removing what is overwritten failed: .*All of the new is visible"):
            job.commit(files)
    assert set(names(files)) <= set(visible(folder))
    # What Spark does then.
    job.abort()
    assert visible(folder) == names(files)


@pytest.mark.parametrize("step", [4, 5])
def test_clearing_up_that_fails_takes_nothing_back(folder: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    job = begin(folder)
    files = staged(job)
    with monkeypatch.context() as patched:
        failing(patched, "sync_names", step)
        with pytest.raises(OSError, match=r"out: clearing up .* failed: .*No space.*All of the write is visible: do"):
            job.commit(files)
    job.abort()
    assert visible(folder) == sorted([*OLD, *names(files)])
    begin(folder).abort()
    assert not (folder / "_temporary").exists()


def test_two_writes_may_end_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = begin(folder), begin(folder)
    files = staged(first), staged(second)
    rename = durable.rename

    def other_first(path: Path, target: Path) -> None:
        if target.name == "_SUCCESS":
            monkeypatch.setattr(durable, "rename", rename)
            second.commit(files[1])
        rename(path, target)

    monkeypatch.setattr(durable, "rename", other_first)
    first.commit(files[0])
    assert visible(folder) == sorted([*OLD, *names(files[0]), *names(files[1])])
    assert {path.name for path in folder.iterdir()} - set(visible(folder)) == {"_SUCCESS"}


def test_a_folder_that_another_write_removes_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = begin(folder)
    is_dir, sync = Path.is_dir, durable.sync_folder
    removed: list[Path] = []

    def end_of_another(path: Path) -> None:
        # It begins and removes what the first has moved aside, and then the empty folder above.
        if path.name == "_temporary" and not removed and next(path.iterdir()).name.startswith("."):
            folders.remove_tree(path)
            removed.append(path)

    def looked(path: Path) -> bool:
        found = is_dir(path)
        end_of_another(path)
        return found

    def synced(path: Path) -> None:
        end_of_another(path)
        sync(path)

    monkeypatch.setattr(Path, "is_dir", looked)
    monkeypatch.setattr(durable, "sync_folder", synced)
    files = staged(job)
    job.commit(files)
    assert removed
    assert visible(folder) == sorted([*OLD, *names(files)])


def test_only_segments_are_overwritten(folder: Path) -> None:
    for name, sample in SAMPLES.items():
        sample.write(folder / f"{name}.{sample.extension}", 2)
    SAMPLES["tenant"].write(folder / "without-extension", 2)
    (folder / "_hidden").write_text("hidden")
    found = Existing.of_folder(folder)
    assert found.others == []
    assert set(found.segments) == set(visible(folder))
    # In front of its log, since an index alone would be taken for a segment.
    assert found.segments.index("old-1.index") < found.segments.index("old-1.chunks")


@pytest.mark.parametrize("name", ["notes.txt", "lonely.index", "sub"])
def test_what_is_no_segment_is_not_overwritten(folder: Path, name: str) -> None:
    if name == "sub":
        write_segment(folder / "sub" / "a.active", 1)
    else:
        (folder / name).write_text("some text that is no segment")
    with pytest.raises(
        ValueError, match=rf"expected nothing but segments .*{name}\. Nothing was changed: move that away"
    ):
        begin(folder, overwrites=True)
    assert not (folder / "_temporary").exists()
    begin(folder).abort()
    assert visible(folder) == sorted([*OLD, name])


def test_a_destination_that_is_a_file(folder: Path) -> None:
    with pytest.raises(NotADirectoryError, match="expected a folder to write files into, or nothing; this is a file"):
        begin(folder / OLD[0], overwrites=True)


def test_a_link_in_the_place_of_the_staging_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / "_temporary").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotADirectoryError, match=r"_temporary: expected a folder .* this is a link"):
        begin(folder)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("no json", "it is no JSON: "),
        pytest.param("[" * 100_000, "it is no JSON: ", id="deep"),
        ("null", "it is no JSON object"),
        ("[]", "it is no JSON object"),
        ("{}", "it does not name the files of a write"),
        (written(place=["../JOB"]), r"\.\./JOB is no name of a file in a folder"),
        (written(place=[".."]), r"\.\. is no name of a file"),
        (written(place=[["a", "JOB"]]), r"\['a', 'JOB'\] is no name of a file"),
        (written(remove="abc"), "it does not name the files of a write"),
        (written(remove=["/etc/passwd"]), "/etc/passwd is no name of a file in a folder"),
        (written(remove=["a/b"]), "a/b is no name of a file in a folder"),
        (written(remove=[""]), " is no name of a file in a folder"),
        (written(place=["b"]), "b is no file of write JOB"),
        (written(place=["JOB/b"]), "JOB/b is no name of a file in a folder"),
    ],
)
def test_a_manifest_that_no_commit_has_written(folder: Path, content: str, reason: str) -> None:
    staging = folder / "_temporary" / "JOB"
    staging.mkdir(parents=True)
    (staging / "manifest.json").write_text(content)
    with pytest.raises(ValueError, match=f"manifest.json: expected .*{reason}.*Nothing was changed"):
        begin(folder)
    assert visible(folder) == OLD
