"""Publishing on any storage: a process killed at every step, and the next publisher that puts its work in order."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dying import deadly, in_a_process

from seglake._publish.manifest import MANIFEST, Manifest, left_over
from seglake._publish.store import LocalStore
from seglake.write import durable

PUBLISHER = "p-1"
PLACE = [("a", f"deep/{PUBLISHER}-a"), ("b", f"{PUBLISHER}-b")]
OLD = ["old-1", "old-2"]
STEPS = ("write_durably", "place", "move_back", "remove", "sync_names")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of this process")


class CopyingStore(LocalStore):
    """A storage without renames: a copy appears whole, and then its source is removed."""

    def place(self, staged: Path, final: Path) -> None:
        final.parent.mkdir(parents=True, exist_ok=True)
        self._copy(staged, final)

    def move_back(self, final: Path, staged: Path) -> None:
        if final.exists():
            self._copy(final, staged)

    def _copy(self, source: Path, target: Path) -> None:
        whole = target.with_name(f".{target.name}")  # what no reader sees, as of an upload that is not complete
        shutil.copyfile(source, whole)
        whole.replace(target)
        self.remove(source)


def published(*, replaces: bool) -> Manifest:
    return Manifest(PUBLISHER, PLACE, remove=OLD if replaces else ())


def staged_in(root: Path) -> Path:
    staging = root / "_staging" / PUBLISHER
    staging.mkdir(parents=True)
    for name, _ in PLACE:
        (staging / name).write_text(name)
    for name in OLD:
        (root / name).write_text(name)
    return staging


def visible(root: Path) -> set[str]:
    paths = (path.relative_to(root) for path in root.rglob("*"))
    return {str(path) for path in paths if not path.parts[0].startswith("_") and (root / path).is_file()}


def killed(work: Callable[[], object]) -> bool:
    """Runs something in a fork; tells whether that was killed."""
    status = in_a_process(work)
    assert status in (0, -signal.SIGKILL)
    return status != 0


@pytest.mark.parametrize("replaces", [False, True])
@pytest.mark.parametrize("kind", [LocalStore, CopyingStore])
def test_all_or_nothing_is_published_wherever_it_is_killed(
    tmp_path: Path, kind: type[LocalStore], replaces: bool
) -> None:
    manifest = published(replaces=replaces)
    new = {final for _, final in manifest.place}
    kept = set() if manifest.remove else set(OLD)
    outcomes: list[bool] = []
    for fatal in range(1, 100):
        root = tmp_path / str(fatal)
        staging = staged_in(root)

        def carry_out(root: Path = root, staging: Path = staging, fatal: int = fatal) -> None:
            store = kind()
            deadly(store, STEPS, fatal)
            manifest.carry_out(root, staging, kind="test", store=store)

        if not killed(carry_out):
            assert visible(root) == new | kept
            break
        for left in left_over(root / "_staging", kind="test"):
            found = Manifest.read(left, kind="test")
            if found is not None:
                assert (found.place, found.remove) == (list(manifest.place), list(manifest.remove))
                found.settle(root, left, kind="test", store=kind())
        assert visible(root) in (set(OLD), new | kept)
        outcomes.append(visible(root) == new | kept)
        assert outcomes[-1] or not (root / "deep").exists()
    else:
        pytest.fail("it did not end")
    assert outcomes == sorted(outcomes)
    assert 0 < sum(outcomes) < len(outcomes)


@pytest.mark.parametrize("replaces", [False, True])
def test_a_step_that_fails_is_told_with_what_is_visible(tmp_path: Path, replaces: bool) -> None:
    manifest = published(replaces=replaces)
    states: list[str] = []
    for step in range(1, len(manifest.place) + 1):
        root = tmp_path / str(step)
        staging = staged_in(root)
        store, calls = LocalStore(), iter(range(1, 100))

        def place(staged: Path, final: Path, step: int = step, calls: Any = calls, store: Any = store) -> None:
            if next(calls) == step:
                raise OSError(28, "No space left on device")
            LocalStore.place(store, staged, final)

        store.place = place
        with pytest.raises(OSError, match=r"giving the files their names failed: .*No space left") as raised:
            manifest.carry_out(root, staging, kind="test", store=store)
        states.append(str(raised.value).rpartition(". ")[2])
        assert visible(root) == set(OLD)
    assert states == ["Nothing of it is visible"] * 2


def test_a_staged_file_that_is_missing_stops_it_before_anything_is_changed(tmp_path: Path) -> None:
    staging = staged_in(tmp_path)
    (staging / "b").unlink()
    with pytest.raises(FileNotFoundError, match=r"b: expected the file that a task of this ingest has put there"):
        published(replaces=True).carry_out(tmp_path, staging, kind="ingest")
    assert visible(tmp_path) == set(OLD)
    assert not (staging / MANIFEST).exists()


def test_one_process_holds_a_lock(tmp_path: Path) -> None:
    store, path = LocalStore(), tmp_path / "lock"
    with store.lock(path) as is_ours, store.lock(path) as is_others:
        assert (is_ours, is_others) == (True, False)
    with store.lock(path) as is_ours:
        assert is_ours
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError), store.lock(path):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_small_file_may_be_written_by_several_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rename = tmp_path / "_SUCCESS", durable.rename

    def other_first(new: Path, final: Path) -> None:
        monkeypatch.setattr(durable, "rename", rename)
        LocalStore().write_durably(tmp_path, path, b"other")
        rename(new, final)

    monkeypatch.setattr(durable, "rename", other_first)
    LocalStore().write_durably(tmp_path, path, b"own")
    assert path.read_bytes() == b"own"
    monkeypatch.setattr(durable, "sync_file", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        LocalStore().write_durably(tmp_path, path, b"more")
    assert list(tmp_path.iterdir()) == [path]
