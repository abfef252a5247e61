"""Makes what a run has staged visible, all or nothing, and clears away what a dead run has left.

The order: the manifest, which says what is to be renamed where, is on the disk before the first rename; the files of
`records` and `damage` get their names; then those of `files`. The first of these commits the run. A run that died
before that is rolled back, one that died after it is finished, in both cases by the next run.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglake._publish.store import LOCAL
from seglake._text import printable, printable_path

from .layout import STAGING
from .result import IngestError

__all__ = ["Manifest", "Move", "clear_dead_runs", "commit"]

_MANIFEST: Final = "manifest.json"

Move = tuple[str, str]
"""A rename: from where in the run's staging folder, to where below the destination."""


@dataclass(frozen=True)
class Manifest:
    """What a run makes visible.

    Attributes:
        run_id: the run.
        data: the files of `records` and `damage`.
        files: the files of `files`, one for each format: the commit records.
    """

    run_id: str
    data: Sequence[Move]
    files: Sequence[Move]


def commit(destination: Path, manifest: Manifest) -> None:
    """Makes a run visible. Its staging folder stays for the caller to remove.

    Raises:
        OSError: a rename failed. `clear_dead_runs` puts that in order, as it does after a death.
    """
    staging = destination / STAGING / manifest.run_id
    content = {"run": manifest.run_id, "data": manifest.data, "files": manifest.files}
    LOCAL.write_durably(destination, staging / _MANIFEST, json.dumps(content).encode())
    _rename(destination, staging, manifest.data)
    _rename(destination, staging, manifest.files)


def clear_dead_runs(destination: Path) -> None:
    """Finishes or rolls back the runs whose staging folders are still there. Only for the holder of the lock.

    Raises:
        IngestError: a manifest is there that no run has written, or a link is in the place of the staging folder.
    """
    staging = destination / STAGING
    if staging.is_symlink():
        raise IngestError(
            f"{printable_path(staging)}: expected a folder of the ingest's own, in which it deletes what dead runs "
            "have left; this is a link. Remove it"
        )
    if not staging.is_dir():
        return
    for folder in sorted(staging.iterdir()):
        manifest = _read_manifest(folder)
        # Without a manifest nothing has been renamed.
        if manifest is not None:
            if any((destination / final).exists() for _, final in manifest.files):
                _finish(destination, folder, manifest)
            else:
                _roll_back(destination, manifest)
        LOCAL.remove_tree(folder)


def _rename(destination: Path, staging: Path, moves: Sequence[Move]) -> None:
    for staged, final in moves:
        LOCAL.place(staging / staged, destination / final)
    LOCAL.sync_names(destination, [destination / final for _, final in moves])


def _finish(destination: Path, staging: Path, manifest: Manifest) -> None:
    _rename(destination, staging, [move for move in manifest.files if (staging / move[0]).exists()])


def _roll_back(destination: Path, manifest: Manifest) -> None:
    finals = [destination / final for _, final in manifest.data]
    for final in finals:
        final.unlink(missing_ok=True)
    # Their folders as well, where nothing of other runs is in them.
    for folder in sorted({folder for final in finals for folder in final.parents}, reverse=True):
        if folder.is_relative_to(destination) and folder != destination and folder.is_dir():
            try:
                folder.rmdir()
            except OSError:
                continue  # not empty
    LOCAL.sync_names(destination, finals)


def _read_manifest(folder: Path) -> Manifest | None:
    path = folder / _MANIFEST
    try:
        content = LOCAL.read_json(path)
    except ValueError as error:
        raise _foreign(path, str(error)) from None
    if content is None:
        return None
    try:
        data = [(str(staged), str(final)) for staged, final in content["data"]]
        files = [(str(staged), str(final)) for staged, final in content["files"]]
        run_id = str(content["run"])
    except (LookupError, TypeError, ValueError):
        raise _foreign(path, "it does not name a run and its files") from None
    # Files are going to be deleted by this list, so it has to be one of this run's own files.
    for staged, final in (*data, *files):
        place = Path(final)
        source = Path(staged)
        inside = not (place.is_absolute() or source.is_absolute() or ".." in (*place.parts, *source.parts))
        if not (inside and place.name.startswith(run_id)):
            raise _foreign(path, f"it names {printable_path(final)}, which is no file of run {printable(run_id)}")
    if run_id != folder.name:
        raise _foreign(path, f"it is of run {printable(run_id)}")
    return Manifest(run_id, data, files)


def _foreign(path: Path, reason: str) -> IngestError:
    return IngestError(
        f"{printable_path(path)}: expected the manifest of an ingest that died, {reason}. Nothing was changed; "
        f"look at what is there and remove {printable_path(path.parent)}"
    )
