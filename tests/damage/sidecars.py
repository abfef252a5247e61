"""The same damage to a file that has a parity sidecar: what is read by that, and what `repair` makes of the file."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import seglake

from .layouts import fields_of
from .specimens import Specimen, specimen


@dataclass
class Restored:
    """What came of a damaged file that has a sound sidecar.

    `right` is how many of all records are read as they were written, with `on_damage="repair"`. `whole` is whether
    `repair` makes all that was covered what it was. `faults` name what must not be.
    """

    right: int = 0
    whole: bool = False
    faults: list[str] = field(default_factory=list[str])


@cache
def _sidecar(name: str, count: int) -> tuple[bytes, int]:
    """The sidecar of a file of this layout, and how many of its bytes that covers."""
    sound = specimen(name, count)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "segment"
        path.write_bytes(sound.data)
        protected = seglake.protect(path, **sound.layout.options)
        return Path(protected.sidecar).read_bytes(), protected.covered_bytes


def restored(sound: Specimen, data: bytes) -> Restored:
    """Read a damaged file by the sidecar of the sound one, and repair it."""
    sidecar, covered = _sidecar(sound.name, len(sound.records))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "segment"
        path.write_bytes(data)
        Path(f"{path}.par").write_bytes(sidecar)
        found = _read(sound, path, covered)
        found.whole, faults = _repaired(sound, path, covered)
        found.faults += faults
        return found


def _read(sound: Specimen, path: Path, covered: int) -> Restored:
    layout, found, returned = sound.layout, Restored(), set[object]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
        with seglake.open(path, on_damage="repair", **layout.options) as reader:
            records = [fields_of(record) for record in reader]
    report = seglake.verify(path, **layout.options)
    assert report.parity is not None
    is_refused = report.parity.outcome == "refused"
    for position, fields in records:
        identity = layout.identity_of(fields)
        if identity not in returned and sound.records.get(identity) == fields:
            returned.add(identity)
        # What was never covered is judged by the format alone, and so is all if the sidecar is refused.
        elif position < covered and not is_refused and sound.strangers.get(identity) != fields:
            found.faults.append(f"{identity} at {position} was never written, or comes twice")
    found.right = len(returned)
    if report.ok and report.parity.outcome == "sound" and found.right < len(sound.records):
        found.faults.append(f"{len(sound.records) - found.right} records are gone, and nothing says so")
    return found


def _repaired(sound: Specimen, path: Path, covered: int) -> tuple[bool, list[str]]:
    options = sound.layout.options
    try:
        outcome = seglake.repair(path, **options).outcome
    except ValueError:
        # Whole records of an earlier file, for example, are proven, and most of a file may be of one.
        outcome = seglake.repair(path, force=True, **options).outcome
    is_whole = path.read_bytes()[:covered] == sound.data[:covered]
    wrong = outcome != "lost" and not is_whole
    return is_whole, [f"repair says {outcome}, and the file is not what was covered"] if wrong else []
