"""Twelve segments on disk, built once: written by seglake, then broken where the plan says."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import seglake

from .damage import Damage
from .layout import Segment

# Names that begin with an underscore are no segments to the ingest.
MARKER = "_built.json"


def ensure_segments(
    folder: Path,
    segments: list[Segment],
    damages: Mapping[str, Damage],
    progress: Callable[[str], object] = lambda month: None,
) -> bool:
    """Make sure that `folder` holds the segments as built and broken by this code; returns whether it had to be done.

    Files that are there already are kept only if each is, byte for byte, what an earlier run left, and that run's code
    and version of seglake were today's. `progress` is called with each month before it is written. The folder is made
    under another name and renamed when complete, so that an interrupted run leaves nothing half built.
    """
    marker = {"generator": _generator(), "files": [segment.file_name for segment in segments]}
    if _is_current(folder, marker):
        return False
    building = folder.with_name(folder.name + ".building")
    for leftover in (building, folder):
        if leftover.exists():
            shutil.rmtree(leftover)
    building.mkdir(parents=True)
    for segment in segments:
        progress(segment.month)
        write_segment(building / segment.file_name, segment, damages.get(segment.month))
    marker["digests"] = _digests(building)
    (building / MARKER).write_text(json.dumps(marker, indent=2) + "\n", encoding="utf-8")
    building.rename(folder)
    return True


def write_segment(path: Path, segment: Segment, damage: Damage | None) -> None:
    """Write one segment's messages to a new file at `path`, and then break it where there is `damage`."""
    with seglake.create(path, format="active", preallocate=damage.preallocate if damage else 0) as writer:
        writer.write_batch(segment.messages)
        if writer.position != segment.end:
            raise RuntimeError(
                f"{path}: expected to end at byte {segment.end} after {segment.messages.num_rows} "
                f"messages, is at {writer.position}: layout.py and the writer disagree"
            )
    if damage:
        damage.apply(path)


def _is_current(folder: Path, marker: Mapping[str, object]) -> bool:
    try:
        found = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return found == {**marker, "digests": _digests(folder)}


def _digests(folder: Path) -> dict[str, str]:
    digests: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        if path.name != MARKER:
            with path.open("rb") as file:
                digests[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def _generator() -> str:
    """Changes with the code that decides what is in the segments."""
    digest = hashlib.sha256(seglake.__version__.encode())
    for module in ("source", "messages", "layout", "damage", "segments"):
        digest.update(Path(__file__).with_name(f"{module}.py").read_bytes())
    return digest.hexdigest()
