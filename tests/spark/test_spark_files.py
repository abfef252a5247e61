import os
import socket
from pathlib import Path

import pytest

from seglake.stores import FileFilter, FileListing, SegmentFile, find_files
from seglake.tracking.tasks import pack, task_bytes

RECURSIVE = FileFilter(recursive=True)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    root = tmp_path / "logs"
    for name in ("a.active", "b.active", "_hidden", ".hidden", "c.txt", "2024/d.active", "2024/01/e.active", "_x/f"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 7)
    return root


def names(listing: FileListing, root: Path) -> list[str]:
    return [str(Path(file.path).relative_to(root)) for file in listing.files]


def test_a_folder_gives_its_own_files(logs: Path) -> None:
    assert find_files([str(logs)], FileFilter(name_pattern="a*")).left_out == 2
    listing = find_files([str(logs)], FileFilter())
    assert names(listing, logs) == ["a.active", "b.active", "c.txt"]
    assert listing.folders_not_entered == 1
    assert {file.size for file in listing.files} == {7}


def test_recursive(logs: Path) -> None:
    listing = find_files([str(logs)], RECURSIVE)
    assert names(listing, logs) == ["2024/01/e.active", "2024/d.active", "a.active", "b.active", "c.txt"]


def test_name_pattern(logs: Path) -> None:
    assert names(find_files([str(logs)], FileFilter(name_pattern="*.{txt,none}")), logs) == ["c.txt"]
    assert names(find_files([str(logs)], FileFilter(name_pattern="[^a]*")), logs) == ["b.active", "c.txt"]


def test_modification_times_are_exclusive(logs: Path) -> None:
    for name, at in (("a.active", 100), ("b.active", 200), ("c.txt", 300)):
        os.utime(logs / name, (at, at))
    assert names(find_files([str(logs)], FileFilter(modified_after=100, modified_before=300)), logs) == ["b.active"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.active", ["a.active", "b.active"]),
        ("{a,c}.*", ["a.active", "c.txt"]),
        ("[ab].active", ["a.active", "b.active"]),
        ("[!a].active", ["b.active"]),
        ("[^a].active", ["b.active"]),
        ("*/d.active", ["2024/d.active"]),
        ("20??", ["2024/d.active"]),
        ("*/f", []),
        ("_*/f", ["_x/f"]),
    ],
)
def test_patterns(logs: Path, pattern: str, found: list[str]) -> None:
    assert names(find_files([str(logs / pattern)], FileFilter()), logs) == found


def test_patterns_relative_to_the_working_folder(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strange = logs / "[x]"
    strange.mkdir()
    (strange / "g.active").write_bytes(b"")
    monkeypatch.chdir(strange)
    assert names(find_files(["*.active"], FileFilter()), logs) == ["[x]/g.active"]


def test_a_missing_relative_path_is_named_with_the_working_folder(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(logs)
    with pytest.raises(FileNotFoundError, match=f"^{logs}/none: there is no such file or folder"):
        find_files(["none"], FileFilter())


def test_what_is_named_is_taken_whatever_its_name(logs: Path) -> None:
    (logs / "[1].active").write_bytes(b"")
    listing = find_files([str(logs / "_hidden"), str(logs / "[1].active"), str(logs / "_x")], FileFilter())
    assert names(listing, logs) == ["[1].active", "_hidden", "_x/f"]


def test_file_urls(logs: Path) -> None:
    for url in (f"file:{logs}/a.active", f"file://{logs}/a.active", f"FILE:{logs}/a.active"):
        assert names(find_files([url], FileFilter()), logs) == ["a.active"]


@pytest.mark.parametrize("url", ["s3://bucket/a", "hdfs://host/a", "file://host/a"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=url):
        find_files([url], FileFilter())


@pytest.mark.parametrize("name", ["none", "none/*.active", "x?"])
def test_missing_paths_are_named(logs: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=name.replace("*", r"\*").replace("?", r"\?")):
        find_files([str(logs), str(logs / name)], FileFilter())


def test_each_file_once(logs: Path) -> None:
    (logs / "link").symlink_to(logs / "a.active")
    (logs.parent / "other").symlink_to(logs)
    again = [str(logs), str(logs / "a.active"), str(logs / "*"), str(logs.parent / "other")]
    listing = find_files(again, FileFilter())
    found = sorted(Path(file.real_path).name for file in listing.files)
    assert found == ["a.active", "b.active", "c.txt", "d.active"]


def test_linked_folders_and_other_things_are_passed_over_and_told(logs: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "o.active").write_bytes(b"")
    (logs / "linked").symlink_to(outside)
    (logs / "broken").symlink_to(tmp_path / "none")
    (logs / "round").symlink_to(logs)
    os.mkfifo(logs / "pipe")
    listing = find_files([str(logs)], RECURSIVE)
    assert len(listing.files) == 5
    assert sorted((Path(path).name, reason) for path, reason in listing.skipped) == [
        ("broken", "a link that leads nowhere"),
        ("linked", "a linked folder"),
        ("pipe", "a named pipe"),
        ("round", "a linked folder"),
    ]
    by_pattern = find_files([str(logs / "*")], RECURSIVE)
    assert {Path(path).name for path, _ in by_pattern.skipped} == {"broken", "linked", "pipe", "round"}
    assert len(by_pattern.files) == 5
    # Named as such it is taken.
    assert len(find_files([str(logs / "linked")], RECURSIVE).files) == 1


def test_what_is_no_file_is_refused_where_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken").symlink_to(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="this link leads nowhere"):
        find_files(["broken"], FileFilter())
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        with pytest.raises(ValueError, match="socket: expected a regular file or a folder, this is a socket"):
            find_files(["socket"], FileFilter())


def sized(*sizes: int) -> list[SegmentFile]:
    return [SegmentFile(f"/{number}", f"/{number}", size) for number, size in enumerate(sizes)]


def test_small_files_are_packed_in_order() -> None:
    tasks = pack(sized(10, 10, 10, 100, 10, 10), 40, 2)
    assert [[file.size for file in task] for task in tasks] == [[10, 10, 10], [100], [10, 10]]
    assert pack([], 40, 2) == []


def test_the_share_of_a_task() -> None:
    files = sized(100, 100, 100, 100)
    assert task_bytes(files, most=1000, open_cost_bytes=10, parallelism=2) == 220
    assert task_bytes(files, most=150, open_cost_bytes=10, parallelism=2) == 150
    assert task_bytes(files, most=1000, open_cost_bytes=300, parallelism=8) == 300
