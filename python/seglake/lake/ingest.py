"""Leads through one ingest, on whatever engine: lists, plans, has the tasks read, commits, and applies."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, get_args

import pyarrow as pa

import seglake
from seglake._text import error_text, path_text, printable_path
from seglake._types import DialectName
from seglake.parity.by_sidecar import covered, listed_size
from seglake.stores import FileFilter, FileListing, SegmentFile, Stores, find_files
from seglake.tracking.files import is_gone
from seglake.tracking.log import LOG
from seglake.tracking.place import LocalPlace, Place, place_of
from seglake.tracking.state import FileState, Sums
from seglake.tracking.status import INGESTED, FileStatus
from seglake.tracking.tasks import pack, task_bytes

from .engine import Engine, StartEngine
from .log import DataFile, LakeLog, LakeState, RunEntry, lake_log, new_run_id, save
from .options import IngestOptions
from .parquet import DAMAGE_SCHEMA, FILES_SCHEMA, RUNS_SCHEMA, Target, records_folder, records_schema
from .parquet import write_rows as write_table
from .plan import Plan, moved_away, plan_files
from .progress import Progress
from .read import FileRow
from .result import (
    DamageTotal,
    FileError,
    IngestError,
    IngestProgress,
    IngestResult,
    add_damage,
    can_pass,
    no_files,
)
from .table import TableChangedError
from .tables import Tables, commit, tables_of
from .task import TaskOutcome, TaskRunner
from .views import VIEWS, views

__all__ = ["Ingest"]

_TASK_BYTES: Final = 512 << 20
_OPEN_COST_BYTES: Final = 4 << 20
# More tasks than cores, so that the cores finish together although files differ.
_TASKS_PER_CORE: Final = 2
_APPLIED: Final = "_log/_applied"
_MOST_ROUNDS: Final = 100


class _LostRaceError(Exception):
    """Another run has committed what this one was to: it is planned again."""


@dataclass
class Ingest:
    """One ingest.

    Attributes:
        sources: what is to be read.
        place: the lake.
        options: how.
        progress: called now and then with how far it is.
    """

    sources: Sequence[str]
    place: Place
    options: IngestOptions
    progress: Callable[[IngestProgress], object] | None

    @classmethod
    def of(
        cls,
        sources: Sequence[str],
        lake: str | os.PathLike[str],
        options: IngestOptions,
        progress: Callable[[IngestProgress], object] | None,
    ) -> Ingest:
        """Makes it of what callers give."""
        try:
            place = place_of(os.fspath(lake), options.storage_options)
        except ValueError as error:
            raise IngestError(str(error)) from None
        return cls(sources, place, options, progress)

    def run(self, start: StartEngine) -> IngestResult:
        """Runs it on an engine."""
        started = time.monotonic()
        options = self.options
        tables = tables_of(options.table, self.place, options.catalog, options.storage_options)
        log = lake_log(self.place)
        state, listing = self._seen(log, tables)
        result = IngestResult(
            None,
            self.place.uri(),
            skipped=tuple((path_text(path), reason) for path, reason in listing.skipped),
            unread=tuple(listing.unread),
        )
        if not listing.files:
            return result
        plan = self._plan(listing, state, tables)
        result = _unchanged(result, plan)
        if not plan.groups and not plan.renamed:
            return result
        with start() as engine:
            for _ in range(_MOST_ROUNDS):
                run = _Run(self, engine, log, tables, state, plan, listing)
                try:
                    more = run.run()
                except _LostRaceError:
                    again: set[str] | None = None
                else:
                    result = _sum(result, more)
                    again = run.again
                    if not again:
                        return replace(result, seconds=time.monotonic() - started)
                state, listing = self._seen(log, tables)
                plan = self._plan(listing, state, tables, again)
                if result.run_id is None:
                    result = _unchanged(result, plan)
                if not plan.groups and not plan.renamed:
                    return replace(result, seconds=time.monotonic() - started)
        raise IngestError(
            f"{self.place.uri()}: others committed the same files each of {_MOST_ROUNDS} times. Ingest again later",
            may_pass=True,
        )

    def _listing(self) -> FileListing:
        """Finds the files to ingest; folders are searched with all that is below them.

        Raises:
            IngestError: a source does not exist or cannot be listed, the key is not that of a log, or the lake is
                among the sources.
        """
        if not self.sources:
            raise IngestError("no sources are given: name files, folders or patterns")
        try:
            chosen = FileFilter(recursive=True)
            listing = find_files(
                self.sources, chosen, Stores(None, self.options.storage_options), key=self.options.key_files
            )
        except (OSError, ValueError, seglake.SeglakeError) as error:
            raise IngestError(error_text(error), may_pass=can_pass(error)) from error
        for folder in listing.folders:
            if isinstance(self.place, LocalPlace) and self.place.folder.is_relative_to(folder):
                raise IngestError(
                    f"{printable_path(self.place.uri())}: the destination is in {printable_path(folder)}, which is to "
                    "be ingested; the next ingest would take the tables for segments. Write to a folder beside it"
                )
        if isinstance(self.place, LocalPlace) and (name := _stranger(self.place.folder)) is not None:
            raise IngestError(
                f"{printable_path(self.place.uri())}: expected a lake, or a new or empty folder to make one in, found "
                f"{printable_path(name)} and no {LOG}. Name the folder of a lake as the destination, which is the last "
                "argument of the command line"
            )
        return listing

    def _check_sidecar(self, listing: FileListing) -> None:
        sidecar = self.options.sidecar
        if sidecar in ("auto", None):
            return
        files = listing.files
        if len(files) != 1 or files[0].segment is not None:
            raise IngestError(
                f"{printable_path(sidecar)}: expected one file that is not of a log, as `sidecar` names "
                f"the sidecar of one file; found {len(files)} in the sources. Name one file, or leave it out: then "
                "the sidecars beside the files are used"
            )
        try:
            found = covered(files[0].real_path, sidecar)
        except (OSError, seglake.SeglakeError):
            found = None  # reading the file raises the error
        if found is not None and found.state == "no_frame":
            raise IngestError(
                f"{printable_path(sidecar)}: expected the parity sidecar of {printable_path(files[0].path)}, found "
                "a file without any frame. Name its sidecar with `sidecar`, or leave that out"
            )

    def _seen(self, log: LakeLog, tables: Tables) -> tuple[LakeState, FileListing]:
        """Reads the state and lists the files, and makes visible what runs that were killed have committed.

        They are listed after the state was read: in the other order one that grew meanwhile would count as cut.
        """
        state = log.load()
        listing = self._listing()
        self._check_sidecar(listing)
        if not state.number and not listing.files:
            return state, listing  # nothing is made
        if isinstance(self.place, LocalPlace):
            self.place.make()
        other = None if state.number else tables.other()
        if other is not None:
            # Of another lake, unless a run has begun this one since.
            state = log.load()
            listing = self._listing()
            if not state.number:
                raise IngestError(
                    f"{printable_path(other)}: expected no table, as there is no log of a lake (_log). Ingest into an "
                    "empty folder, with a catalog or namespace of its own"
                )
        if state.table_format not in (None, self.options.table):
            raise IngestError(
                f"{printable_path(self.place.uri())}: its tables are of the kind {state.table_format}, and "
                f"{self.options.table} is asked for. Ask for {state.table_format}, or ingest into another lake"
            )
        apply(self.place, log, tables, state)
        tables.remove_dead()  # after that: what a run has committed that died is not dead
        return state, listing

    def _plan(self, listing: FileListing, state: LakeState, tables: Tables, only: set[str] | None = None) -> Plan:
        sidecar = self.options.sidecar
        return plan_files(
            listing,
            state,
            final=self.options.final,
            identify=self._identity,
            sidecar=lambda path: None if sidecar is None else f"{path}.par" if sidecar == "auto" else sidecar,
            files_with=lambda format, source: tables.files_with(format, source, state),
            only=only,
        )

    def _identity(self, file: SegmentFile) -> str | None:
        """Returns what identifies a file; None if that cannot be told: reading it raises the error."""
        options, path = self.options, file.real_path
        try:
            if file.segment is not None:
                return seglake.incremental.identity(file.segment, key=options.key_files)
            size = listed_size(path, file.size, options.sidecar)
            return seglake.incremental.identity(
                path,
                size=size,
                key=options.key_files,
                sidecar=options.sidecar,
                storage_options=options.storage_options,
                format=options.format,
                **options.format_options.arguments(options.format),
            )
        except (OSError, seglake.SeglakeError):
            return None


def apply(place: Place, log: LakeLog, tables: Tables, state: LakeState) -> None:
    """Makes all entries of the log visible, in their order, as far as they are not.

    Raises:
        IngestError: that failed. The next run does it.
    """
    hint = place.read(_APPLIED)
    applied = int(hint) if hint is not None and hint.isdigit() else 0
    try:
        entries = [(number, log.read(number)) for number in range(applied + 1, state.number + 1)]
        gone = {name for _, entry in entries for names in entry.removed.values() for name in names}
        for number, entry in entries:
            schemas = {name: pa.ipc.read_schema(pa.py_buffer(columns)) for name, columns in entry.tables.items()}
            tables.apply(number, entry, schemas, gone)
        if applied < state.number:
            place.put(_APPLIED, str(state.number).encode())
    except (OSError, TableChangedError) as error:
        raise IngestError(
            f"{printable_path(place.uri())}: the run is committed, and making it visible failed: {error}. The next "
            "ingest completes it",
            may_pass=isinstance(error, TableChangedError) or can_pass(error),
        ) from error


class _Run:
    """One entry of the log: from the plan to the tables."""

    def __init__(
        self,
        ingest: Ingest,
        engine: Engine,
        log: LakeLog,
        tables: Tables,
        state: LakeState,
        plan: Plan,
        listing: FileListing,
    ) -> None:
        self.again: set[str] = set()
        self._ingest = ingest
        self._engine = engine
        self._log = log
        self._tables = tables
        self._state = state
        self._plan = plan
        self._listing = listing
        self._started = datetime.now(UTC)
        self._clock = time.monotonic()
        self._id = new_run_id(state.run)
        self._options = ingest.options
        self._place = ingest.place

    def run(self) -> IngestResult:
        """Reads, commits and applies.

        Raises:
            _LostRaceError: another run was first.
            IngestError: it has to stop.
        """
        data: dict[str, list[DataFile]] = {}
        try:
            outcomes = self._read()
            for outcome in outcomes:
                for table, files in outcome.data.items():
                    data.setdefault(table, []).extend(files)
            self.again = {file.now.path for outcome in outcomes for file in outcome.again}
            rows = [row for outcome in outcomes for row in outcome.files]
            gone = self._gone(rows)
            rows = [row for row in rows if row.state.path not in gone]
            self._refuse_wrong_key(rows)
            entry = self._entry(rows, data)
            # One without rows tells the next run of a time alone.
            result = _result(self._id if data else None, self._place, rows, gone)
            if entry is None:
                self._discard(data)
                return result
        except BaseException:
            self._discard(data)
            raise
        try:
            # What an error in here leaves may be committed, as when an answer is lost: then its files are needed.
            self._commit(entry)
        except _LostRaceError:
            self._discard(data)
            raise
        except OSError as error:
            raise IngestError(
                f"{printable_path(self._place.uri())}: committing the run failed: {error}. The next ingest "
                "completes it, or finds nothing of it",
                may_pass=can_pass(error),
            ) from error
        apply(self._place, self._log, self._tables, self._state)
        save(self._log, self._state)
        if self._state.number == 1:
            self._place.put(VIEWS, views(self._place.uri(), self._options.table).encode())
        return result

    def _read(self) -> list[TaskOutcome]:
        groups, options = self._plan.groups, self._options
        if not groups:
            return []
        limit = task_bytes(
            groups,
            most=_TASK_BYTES,
            open_cost_bytes=_OPEN_COST_BYTES,
            parallelism=_TASKS_PER_CORE * self._engine.parallelism(),
        )
        tasks = pack(groups, limit, _OPEN_COST_BYTES)
        files_total = sum(len(group.files) for group in groups)
        bytes_total = sum(group.size for group in groups)
        progress, report = Progress(), self._ingest.progress

        def watch() -> None:
            if report is not None:
                done = (progress.files, files_total, progress.nbytes, bytes_total, progress.records, progress.damage)
                report(IngestProgress(*done))

        outcomes = self._engine.run_tasks(TaskRunner(self._place, self._id, options), tasks, progress, watch)
        for outcome in outcomes:
            if outcome.key_error is not None:
                raise IngestError(f"the key cannot be used: {outcome.key_error}")
        return outcomes

    def _gone(self, rows: Sequence[FileRow]) -> dict[str, str]:
        """Returns the files that could not be read, and are not where they were listed any more, each with why.

        This process asks, which has listed them: an executor may not see the folder.
        """
        paths = {path_text(file.path): file.path for group in self._plan.groups for file in group.files}
        failed = {row.state.path for row in rows if row.state.status == "unreadable"}
        why = "gone since it was listed: if it was renamed or sealed, the next run ingests it"
        return {path: why for path in sorted(failed & paths.keys()) if is_gone(paths[path])}

    def _refuse_wrong_key(self, rows: Sequence[FileRow]) -> None:
        """Sees to it that a wrong key does not fill the table with files of which nothing can be read.

        Raises:
            IngestError: the key seems to be wrong for every file that is a segment.
        """
        wrong = [row for row in rows if row.state.status == "wrong_key"]
        known = (*(row.state for row in rows), *self._state.files.values())
        if wrong and not any(state.status in INGESTED for state in known):
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            raise IngestError(
                f"{wrong[0].state.error}{more}. That is so of every file that could be read. Nothing was ingested. "
                "Give the right key (`key` or SEGLAKE_KEY)"
            )

    def _entry(self, rows: Sequence[FileRow], data: dict[str, list[DataFile]]) -> RunEntry | None:
        """Writes the tables of the run itself, and returns its entry; None if nothing is new."""
        known, here = self._state.files, [path_text(file.real_path) for file in self._listing.files]
        states = [row.state for row in rows] + self._plan.renamed
        states += moved_away(states, self._plan, self._state, here)
        states = [state for state in states if known.get(state.path) != state]
        shown = [row for row in rows if row.has_row]
        said = {row.state.path for row in rows}
        shown += [FileRow(state, row_sums=_sums(state)) for state in states if state.path not in said]
        if not states and not shown:
            return None
        schemas: dict[str, pa.Schema] = {}
        if shown:
            schemas = self._schemas(shown, data)
            target = Target(self._place, self._id, "run", self._options.table == "parquet", 1)
            table = pa.Table.from_pylist([_row(row, self._id) for row in shown], FILES_SCHEMA)
            data["files"] = [write_table(target, "files", table)]
            run = self._run_row(shown)
            data["runs"] = [write_table(target, "runs", pa.Table.from_pylist([run], RUNS_SCHEMA))]
            for name, schema in schemas.items():
                if name not in data:
                    # A query of no damage is no error.
                    folder = records_folder(name, None, schema)
                    is_plain = self._options.table == "parquet"
                    data[name] = [write_table(target, folder, schema.empty_table())] if is_plain else []
        columns = {name: schema.serialize().to_pybytes() for name, schema in schemas.items()}
        added: dict[str, int] = {}
        for row in rows:
            if row.added:
                added[row.state.source] = added.get(row.state.source, 0) + row.added
        return RunEntry(self._id, self._options.table, columns, data, states, added)

    def _schemas(self, rows: Sequence[FileRow], data: Mapping[str, object]) -> dict[str, pa.Schema]:
        """Returns the schemas of the tables that the run adds to, and of those that are to be there.

        Raises:
            IngestError: an earlier run has written records with other columns, as those of another dialect are.
        """
        options, state = self._options, self._state
        formats = {row.state.format for row in rows if row.state.format is not None}
        formats |= {name for name in data if name in seglake.formats()}
        schemas: dict[str, pa.Schema] = {}
        for format in sorted(formats):
            schema = records_schema(format, options)
            before = state.tables.get(format)
            found = schema if before is None else pa.ipc.read_schema(pa.py_buffer(before))
            if found != schema:
                dialects = [
                    dialect
                    for dialect in get_args(DialectName)
                    if found == records_schema(format, options.with_dialect(dialect))
                ]
                raise IngestError(
                    f"{printable_path(self._place.uri(format))}: its records have other columns than those of dialect "
                    f"{options.format_options.dialect or get_args(DialectName)[0]}: {', '.join(dialects) or found}. "
                    "Name the dialect of the files, or another lake"
                )
            if before is None or format in data:
                schemas[format] = schema
        own = {"damage": DAMAGE_SCHEMA, "files": FILES_SCHEMA, "runs": RUNS_SCHEMA}
        wanted = {"files", "runs", *data} | ({"damage"} if "damage" not in state.tables else set[str]())
        return schemas | {name: schema for name, schema in own.items() if name in wanted}

    def _run_row(self, rows: Sequence[FileRow]) -> dict[str, Any]:
        worst = "sound" if all(row.state.status in ("sound", "pending", "renamed") for row in rows) else "damaged"
        refused = any(row.state.status not in (*INGESTED, "renamed") for row in rows)
        return {
            "run": self._id,
            "started": self._started,
            "seconds": time.monotonic() - self._clock,
            "files": len(rows),
            "records": sum(row.added for row in rows),
            "bytes": sum(row.row_sums.nbytes for row in rows if row.row_sums is not None and row.start is not None),
            "outcome": "refused" if refused else worst,
        }

    def _commit(self, entry: RunEntry) -> None:
        """Puts the entry. From then on the run is certain.

        Raises:
            _LostRaceError: another run has committed something that this one was planned on.
        """
        paths = {file.path for file in entry.files}
        sources = {file.source for file in entry.files if file.source}
        state = self._state

        def is_lost(other: RunEntry) -> bool:
            is_same = any(file.path in paths or file.source in sources for file in other.files)
            return is_same or any(state.tables.get(name, own) != own for name, own in entry.tables.items())

        if not commit(self._log, self._tables, state, entry, is_lost):
            raise _LostRaceError

    def _discard(self, data: Mapping[str, Sequence[DataFile]]) -> None:
        """Removes the files of a run that is not to be."""
        self._tables.remove(self._id)
        if self._options.table != "parquet":
            self._place.remove(file.path for files in data.values() for file in files)


def _sums(state: FileState) -> Sums | None:
    """Returns what a file is that was not read again."""
    if state.status not in INGESTED:
        return None
    return state.sums.plus(Sums(unused_bytes=max(0, state.size - state.sums.nbytes - state.pending_bytes)))


def _row(row: FileRow, run: str) -> dict[str, Any]:
    state, sums = row.state, row.row_sums
    numbers: dict[str, Any] = {}
    if sums is not None:
        numbers = {name: getattr(sums, name) for name in Sums.__struct_fields__ if name != "ranges"}
        numbers |= {"nbytes": sums.nbytes + state.pending_bytes, "pending_bytes": state.pending_bytes}
    return {
        "records": 0,
        **numbers,
        "source": state.source,
        "run": run,
        "path": state.path,
        "status": state.status,
        "format": state.format,
        "checked": row.checked,
        "start": row.start,
        "end": row.end,
        "added": row.added,
        "size": state.size,
        "modified": state.modified,
        "error": state.error,
    }


def _result(run: str | None, place: Place, rows: Sequence[FileRow], gone: Mapping[str, str]) -> IngestResult:
    damage: dict[str, DamageTotal] = {}
    statuses: dict[FileStatus, int] = no_files()
    known = [row for row in rows if row.state.status not in INGESTED and not row.has_row]
    rows = [row for row in rows if row.state.status in INGESTED or row.has_row]
    for row in rows:
        statuses[row.state.status] += 1
        add_damage(damage, row.damage)
    states = [row.state for row in rows]
    return IngestResult(
        run,
        place.uri(),
        formats=tuple(sorted({state.format for state in states if state.format is not None})),
        statuses=statuses,
        known_damaged=sum(row.is_known_damage for row in rows),
        unchanged=len(known),
        unchanged_refused=len(known),
        pending_bytes=sum(state.pending_bytes for state in states),
        records=sum(row.added for row in rows),
        repaired_records=sum(row.repaired_records for row in rows),
        nbytes=sum(row.row_sums.nbytes + row.state.pending_bytes for row in rows if row.row_sums is not None),
        damage=damage,
        errors=tuple(FileError(state.path, state.status, state.error) for state in states if state.error),
        refused_sidecars=tuple((row.state.path, row.refused_sidecar) for row in rows if row.refused_sidecar),
        skipped=tuple(gone.items()),
    )


def _unchanged(result: IngestResult, plan: Plan) -> IngestResult:
    return replace(
        result,
        unchanged=plan.unchanged,
        unchanged_damaged=plan.unchanged_damaged,
        unchanged_refused=plan.unchanged_refused,
    )


_ADDED: Final = (
    *("known_damaged", "unchanged", "unchanged_refused", "pending_bytes", "records", "repaired_records", "nbytes"),
    *("errors", "refused_sidecars", "skipped"),
)


def _sum(one: IngestResult, other: IngestResult) -> IngestResult:
    """Returns what two rounds did."""
    damage = dict(one.damage)
    add_damage(damage, other.damage)
    added: dict[str, Any] = {name: getattr(one, name) + getattr(other, name) for name in _ADDED}
    return replace(
        one,
        run_id=other.run_id or one.run_id,
        formats=tuple(sorted({*one.formats, *other.formats})),
        statuses={name: number + other.statuses[name] for name, number in one.statuses.items()},
        damage=damage,
        **added,
    )


def _stranger(folder: Path) -> str | None:
    """Returns a name in a folder that is no lake, and which no run that died has left there."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set[str]()
    own = {"damage", "files", "runs", *seglake.formats().names}
    others = (name for name in sorted(names - own) if not name.startswith(("_", ".")))
    return None if LOG in names else next(others, None)
