"""Recovering a damaged file: what is written must be sound and hold what was read, and undone give the damage back."""

from __future__ import annotations

import tempfile
from pathlib import Path

import seglake

from .judge import Reading
from .layouts import Fields, Layout
from .surfaces import read


def faults(layout: Layout, data: bytes, reading: Reading) -> list[str]:
    """What is wrong with what `recover` makes of a damaged file that reads so."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged"
        path.write_bytes(data)
        found = _faults(layout, path, reading)
        if path.read_bytes() != data:
            found.append("recover changed its input")
        return found


def _faults(layout: Layout, path: Path, reading: Reading) -> list[str]:
    data, wrong = path.read_bytes(), list[str]()
    recovered, again, undone = (path.with_name(name) for name in ("recovered", "again", "undone"))
    oplog = layout.format == "oplog"
    try:
        result = seglake.recover(path, recovered, force=True, renumber=oplog, **layout.options)
    except ValueError as error:
        # The messages of an oplog refer to one another: where one that is referred to is damaged, none can be left out.
        refused = oplog and reading.damage and "cannot be renumbered" in str(error)
        left = [other.name for other in path.parent.iterdir() if other != path]
        return [*([] if refused else [f"recover refuses: {error}"]), *(f"it leaves {name} behind" for name in left)]
    written = read(recovered, layout)
    if any(cause != "dangling_reference" for _, _, _, cause in written.damage):
        wrong.append(f"what is recovered is damaged: {written.damage[:3]}")
    if _kept(written, renumbered=oplog) != _kept(reading, renumbered=oplog):
        wrong.append(f"{len(reading.records)} records are good, {len(written.records)} recovered, or not the same")
    if written.checked != reading.checked and reading.records:
        wrong.append("checksums were lost or made up")
    if result.lost is not bool(reading.damage):
        wrong.append(f"recover says lost={result.lost}, the damage is {reading.damage[:3]}")
    if not reading.damage and recovered.read_bytes() != data:
        wrong.append("a sound file is recovered as another")
    seglake.recover(recovered, again, force=True, **layout.options)
    if again.read_bytes() != recovered.read_bytes():
        wrong.append("recovering what was recovered changes it")
    if result.quarantine is None:
        undone = recovered
    else:
        seglake.undo_recover(recovered, undone, quarantine=result.quarantine)
    if undone.read_bytes() != data:
        wrong.append("undoing does not give the damaged file back")
    return wrong


def _kept(reading: Reading, *, renumbered: bool) -> list[Fields]:
    """What must be the same of the records. Renumbering changes numbers, and not to which key a clock leads."""
    if not renumbered:
        return [fields for _, fields in reading.records]
    numbers = ("seq", "checkpointer", "checkpoint", "digest", "trace", "clock")
    return [
        {
            **{name: value for name, value in fields.items() if name not in numbers},
            "clock": [(entry["key"], entry["length"]) for entry in fields["clock"]],
        }
        for _, fields in reading.records
    ]
