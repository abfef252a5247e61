"""All files on disk, built once: written by seglake, then broken as planned."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import seglake

from .formats import Segment

MARKER = "_built.json"
"""Its name begins with an underscore, so that the ingest passes it over."""


def ensure_files(folder: Path, segments: list[Segment], progress: Callable[[str], object] = lambda file: None) -> bool:
    """Make sure that `folder` holds the segments as built and broken by this code; returns whether it had to be done.

    Files that are there already are kept only if each is, byte for byte, what an earlier run left, and that run's code
    and version of seglake were today's. `progress` is called with each file's name before it is written. A run that is
    interrupted leaves no marker, so that the next one begins anew.
    """
    marker = {"generator": _generator(), "files": [str(segment.path.relative_to(folder)) for segment in segments]}
    if _is_current(folder, marker):
        return False
    if folder.exists():
        shutil.rmtree(folder)
    for segment in segments:
        progress(segment.path.name)
        write_segment(segment)
    # The active segments are sealed while they are sound: broken are all of them only now.
    for segment in segments:
        if segment.damage:
            segment.damage.apply(segment.path)
    marker["digests"] = _digests(folder)
    (folder / MARKER).write_text(json.dumps(marker, indent=2) + "\n", encoding="utf-8")
    return True


def write_segment(segment: Segment) -> None:
    """Write one segment, sound. Raises `RuntimeError` if its size or number of messages is not what was worked out."""
    segment.path.parent.mkdir(parents=True, exist_ok=True)
    segment.write()
    expected = (segment.layout.size, segment.layout.first[-1])
    written = (segment.path.stat().st_size, segment.messages.num_rows)
    if written != expected:
        raise RuntimeError(
            f"{segment.path}: expected {expected[0]} bytes with {expected[1]} messages, wrote {written[0]} bytes "
            f"with {written[1]}: formats/{segment.format}.py and the writer disagree"
        )


def _is_current(folder: Path, marker: Mapping[str, object]) -> bool:
    try:
        found = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return found == {**marker, "digests": _digests(folder)}


def _digests(folder: Path) -> dict[str, str]:
    digests: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != MARKER:
            with path.open("rb") as file:
                digests[str(path.relative_to(folder))] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def _generator() -> str:
    """Changes with the code that decides what is in the files."""
    digest = hashlib.sha256(seglake.__version__.encode())
    here = Path(__file__).parent
    modules = [here / f"{module}.py" for module in ("source", "messages", "layout", "damage", "files")]
    for path in [*modules, *sorted(here.glob("formats/*.py")), *sorted(here.glob("../autobase/*.oplog"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()
