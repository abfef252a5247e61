"""Every way to read a file; all of them must say the same of it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import warnings
from collections.abc import Iterator, Set
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

import seglake
from seglake.cli import main

from .judge import Reading
from .layouts import Fields, Identity, Layout, fields_of
from .specimens import Specimen


@contextlib.contextmanager
def _permissive(source: bytes | Path, layout: Layout, **options: Any) -> Iterator[seglake.Reader]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
        with seglake.open(source, on_damage="skip", **layout.options, **options) as reader:
            yield reader


def read(source: bytes | Path, layout: Layout, **options: Any) -> Reading:
    """The records and the ledger, damage being skipped."""
    with _permissive(source, layout, **options) as reader:
        records = [fields_of(record) for record in reader]
        ledger = [(span.start, span.end, span.kind, span.cause) for span in reader.ledger()]
        return Reading(records, ledger, reader.report.checked == "checksum")


def disagreements(
    specimen: Specimen, data: bytes, reading: Reading, thoroughness: int, named: Set[Identity] = frozenset()
) -> list[str]:
    """Where another way of reading says something else than `reading` did.

    With a higher `thoroughness`, from 0 to 2, slower ways are tried too: files in windows and mapped, look-ups, and the
    command line. `named` are missing records that a strict look-up has to say are damaged, not absent.
    """
    layout = specimen.layout
    wrong = [*_arrow(layout, data, reading), *_verify(layout, data, reading), *_strict(layout, data, reading)]
    if thoroughness > 0:
        wrong += _explained(specimen, data, reading)
        wrong += _look_ups(specimen, data, reading, named)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "damaged"
            path.write_bytes(data)
            for mmap in (False, True):
                again = read(path, layout, memory_map=mmap)
                if again.records != reading.records or again.ledger != reading.ledger:
                    wrong.append(f"a file (memory_map={mmap}) reads otherwise than bytes")
            if thoroughness > 1:
                wrong += _command_line(layout, path, reading)
    return wrong


def _arrow(layout: Layout, data: bytes, reading: Reading) -> list[str]:
    columns = [*(name.removesuffix("_bytes") for name in layout.identity), "value", "position"]
    with _permissive(data, layout, columns=columns) as reader:
        table: list[Fields] = pa.table(reader).to_pylist()
    plain = [
        {"position": at, **{name: _in_arrow(fields[name]) for name in columns[:-1]}} for at, fields in reading.records
    ]
    return [] if table == plain else [f"Arrow has {len(table)} rows, the records are {len(plain)}, or not the same"]


def _in_arrow(value: Any) -> Any:
    return value.bytes if hasattr(value, "bytes") else value


def _verify(layout: Layout, data: bytes, reading: Reading) -> list[str]:
    report = seglake.verify(data, **layout.options)
    wrong: list[str] = []
    if report.records != len(reading.records):
        wrong.append(f"verify counts {report.records} records, {len(reading.records)} are read")
    if [tuple(span) for span in report.damage] != reading.damage:
        wrong.append("verify names other damage than the ledger")
    if report.ok is not (not reading.damage):
        wrong.append(f"verify says ok={report.ok}")
    if sum(total.nbytes for total in report.totals) != len(data) or report.nbytes != len(data):
        wrong.append("the totals of verify are not the file's size")
    return wrong


def _explained(specimen: Specimen, data: bytes, reading: Reading) -> list[str]:
    """Every damaged range is explained, and of a single flipped bit nothing is proposed but to flip it back."""
    diagnoses = seglake.verify(data, explain=True, **specimen.layout.options).diagnoses
    wrong: list[str] = []
    if [(found.start, found.end, found.kind, found.cause) for found in diagnoses] != reading.damage:
        wrong.append("verify explains other damage than the ledger names")
    changed = _differences(data, specimen.data)
    if len(data) == len(specimen.data) and len(changed) == 1:
        proposed = {(repair.byte_offset, repair.new) for found in diagnoses for repair in found.repairs}
        if not proposed <= {(changed[0], specimen.data[changed[0]])}:
            wrong.append(f"of byte {changed[0]}, verify proposes {proposed}")
    return wrong


def _differences(data: bytes, sound: bytes) -> list[int]:
    """Returns the offsets at which two files differ, up to the end of the shorter one."""
    size = 1 << 12  # blocks are compared first: most of them are equal
    found: list[int] = []
    for start in range(0, min(len(data), len(sound)), size):
        now, was = data[start : start + size], sound[start : start + size]
        if now != was:
            found += [start + at for at, pair in enumerate(zip(now, was, strict=False)) if pair[0] != pair[1]]
    return found


def _strict(layout: Layout, data: bytes, reading: Reading) -> list[str]:
    """Strict reading raises the ledger's first damage, if there is any, behind records that are right."""
    given: list[tuple[int, Fields]] = []
    raised: seglake.DamageError | None = None
    with seglake.open(data, **layout.options) as reader:
        try:
            for record in reader:
                given.append(fields_of(record))
        except seglake.DamageError as error:
            raised = error
    first = reading.damage[0] if reading.damage else None
    wrong: list[str] = []
    met = None if raised is None else (raised.byte_offset, raised.cause)
    if met != (None if first is None else (first[0], first[3])):
        wrong.append(f"strict reading raises {raised!r}, the first damage is {first}")
    if given != list(reading.records)[: len(given)] or (raised is None and len(given) != len(reading.records)):
        wrong.append("strict reading gives other records")
    return wrong


def _look_ups(specimen: Specimen, data: bytes, reading: Reading, named: Set[Identity]) -> list[str]:
    layout, random = specimen.layout, Random(len(data))
    wanted = random.sample(list(specimen.records), 8) + random.sample(sorted(named), min(4, len(named)))
    by_identity = {layout.identity_of(fields): fields for _, fields in reading.records}
    wrong: list[str] = []
    for index in {None, specimen.index}:
        options: dict[str, Any] = {} if index is None else {"options": {"index": index}}
        with _permissive(data, layout, **options) as lenient, seglake.open(data, **layout.options, **options) as strict:
            for identity in wanted:
                expected = by_identity.get(identity)
                found = lenient.get(*identity)
                if (None if found is None else fields_of(found)[1]) != expected:
                    wrong.append(f"looked up, {identity} is {found}; read, {expected}")
                try:
                    found = strict.get(*identity)
                except seglake.DamageError:
                    if not reading.damage:
                        wrong.append(f"looking up {identity} raises, and the ledger names no damage")
                    continue
                # Without checksums absence is unproven, and the documents say so.
                unproven = identity in named and reading.checked and layout.checked
                if (None if found is None else fields_of(found)[1]) != expected or (found is None and unproven):
                    wrong.append(f"looked up strictly, {identity} is {found}; read, {expected}")
    return wrong


def _command_line(layout: Layout, path: Path, reading: Reading) -> list[str]:
    options = ["--format", layout.format]
    if "options" in layout.reading:
        options += ["--dialect", layout.reading["options"]["dialect"]]
    wrong: list[str] = []
    status, lines = _run("cat", "--json", "--on-damage", "skip", "--columns", "position", *options, str(path))
    if [json.loads(line)["position"] for line in lines] != [position for position, _ in reading.records]:
        wrong.append("seglake cat shows other records")
    if status != (1 if reading.damage else 0):
        wrong.append(f"seglake cat ends with {status}")
    status, lines = _run("verify", "--json", *options, str(path))
    report = json.loads(lines[0])
    if [tuple(span[name] for name in ("start", "end", "kind", "cause")) for span in report["damage"]] != reading.damage:
        wrong.append("seglake verify shows other damage")
    if status != (1 if reading.damage else 0):
        wrong.append(f"seglake verify ends with {status}")
    return wrong


def _run(*arguments: str) -> tuple[int, list[str]]:
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([os.fsdecode(argument) for argument in arguments])
        out.flush()
    return status, out.buffer.getvalue().decode().splitlines()  # pyright: ignore
