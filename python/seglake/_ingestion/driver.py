"""Leads through one ingest, on whatever engine."""

import os
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

import pyarrow as pa

import seglake
from seglake._by_sidecar import covered
from seglake._files import FileFilter, FileListing, SegmentFile, find_files
from seglake._formats import FormatOptions, column_names
from seglake._publish.manifest import Manifest, Move
from seglake._tasks import pack, task_bytes
from seglake._text import error_text, path_text, printable_path
from seglake._types import DialectName

from .commit import commit, end_run, locked, settle_dead_runs
from .destination import Destination, Staging
from .engine import Engine, StartEngine
from .exchange import Exchange, FolderExchange, StoreExchange
from .lake.tables import LakeTables, lake_tables, settle_kind
from .layout import (
    STAGED_SUFFIX,
    data_path,
    files_path,
    new_run_id,
    records_folder,
)
from .outcome import WRONG_KEY, FileOutcome, TaskOutcome
from .plan import PlannedFile, PlannedGroup, plan_files, write_plan
from .result import (
    INGESTED,
    DamageTotal,
    FileError,
    FileStatus,
    IngestError,
    IngestProgress,
    IngestResult,
    OnDamage,
    OnWrongKey,
    TableKind,
    can_pass,
    no_files,
)
from .sidecars import BESIDE, Sidecars
from .state import State, load_state, refuse_other_columns, save_state
from .tables import DAMAGE_SCHEMA, FILES_SCHEMA, is_dated, records_schema, uint64_type_of, write_table
from .task import TaskRunner

__all__ = ["IngestDriver"]

_TASK_BYTES: Final = 512 << 20
_OPEN_COST_BYTES: Final = 4 << 20
# More tasks than cores, so that the cores finish together although files differ.
_TASKS_PER_CORE: Final = 2


@dataclass(frozen=True)
class IngestDriver:
    """One ingest. The attributes are the arguments of `seglake.ingest`."""

    sources: Sequence[str]
    destination: str | os.PathLike[str]
    format: str | None
    format_options: FormatOptions
    record_bytes: int | None
    key_files: Sequence[str] | None
    target_file_bytes: int
    on_wrong_key: OnWrongKey
    final: bool
    table: TableKind
    catalog: str | Mapping[str, str] | None
    progress: Callable[[IngestProgress], object] | None
    filesystem: object | None = None
    storage_options: Mapping[str, str] | None = None
    parity: str | None = "auto"
    on_damage: OnDamage = "repair"

    def run(self, start: StartEngine) -> IngestResult:
        """Runs it on an engine."""
        self._check_format()
        self._check_key()  # the tasks do too; the driver needs it to know files by their records
        destination = Destination.of(os.fspath(self.destination), self.filesystem)
        listing = find_inputs(self.sources, destination, self.key_files)
        if not listing.files:
            unread = tuple(listing.unread)
            return IngestResult(run_id=None, destination=destination.name, skipped=_skipped(listing), unread=unread)
        sidecars = self._sidecars(listing)
        tables = lake_tables(self.table, destination, self.catalog, self.storage_options)
        destination.store.make_folder(destination.folder)
        with locked(destination, self._waits):
            settle_kind(destination, self.table)
            settle_dead_runs(destination, tables)
            state = load_state(destination, tables)
            save_state(destination, state)
            if tables is not None and state.last_run is None:
                _refuse_unknown_tables(destination)
            planned, unchanged = plan_files(
                listing, state, final=self.final, identify=partial(self._identity, sidecars)
            )
            read = {file.path for group in planned for file in group.files}
            others = IngestResult(
                None,
                destination.name,
                unchanged=unchanged,
                unchanged_damaged=sum(state.is_damaged(file) for file in listing.files if file.real_path not in read),
                skipped=_skipped(listing),
                unread=tuple(listing.unread),
            )
            if not planned:
                return others
            if self.format is not None:  # without it, the formats are known only when the files are read
                refuse_other_columns(destination, tables, [self.format], self.format_options, self.table)
            with start() as engine:
                result = self._run(engine, destination, tables, state, planned, sidecars)
        return replace(
            result,
            unchanged=others.unchanged,
            unchanged_damaged=others.unchanged_damaged,
            skipped=others.skipped + result.skipped,
            unread=others.unread,
        )

    def _check_format(self) -> None:
        dialect, dialects = self.format_options.dialect, get_args(DialectName)
        if dialect is not None and dialect not in dialects:
            raise IngestError(f"there is no dialect {dialect!r}: it is one of {', '.join(dialects)}")
        if self.format is None:
            return
        try:
            column_names(self.format)
        except ValueError as error:
            raise IngestError(str(error)) from None
        foreign = self.format_options.foreign(self.format)
        if foreign:
            raise IngestError(f"{foreign[0]} does not concern {self.format} files")

    def _waits(self, what: str) -> None:
        if self.progress is not None:
            self.progress(IngestProgress(0, 0, 0, 0, 0, waiting=what))

    def _check_key(self) -> None:
        try:
            seglake.detect(b"", key=self.key_files)
        except (OSError, ValueError) as error:
            raise IngestError(f"the key cannot be used: {error}", may_pass=can_pass(error)) from error

    def _sidecars(self, listing: FileListing) -> Sidecars:
        if self.parity in ("auto", None):
            return Sidecars(self.parity)
        files = listing.files
        if len(files) != 1 or files[0].segment is not None:
            raise IngestError(
                f"{printable_path(self.parity)}: expected one file that is not of a log, as `parity` names "
                f"the sidecar of one file; found {len(files)} in the sources. Name one file, or leave it out: then "
                "the sidecars beside the files are used"
            )
        path = str(Path(self.parity).absolute())
        try:
            found = covered(files[0].real_path, path)
        except (OSError, seglake.SeglakeError):
            found = None  # reading the file raises the error
        if found is not None and found.state == "no_frame":
            raise IngestError(
                f"{printable_path(self.parity)}: expected the parity sidecar of {printable_path(files[0].path)}, found "
                "a file without any frame. Name its sidecar with `parity`, or leave that out"
            )
        return Sidecars(path, files[0].real_path)

    def _identity(self, sidecars: Sidecars, file: SegmentFile, format: str | None) -> str | None:
        """Returns what identifies a file; None if that cannot be told: reading it raises the error."""
        own: dict[str, Any]
        format = format or self.format
        if format is None:
            own = {"dialect": self.format_options.dialect, "limits": dict(self.format_options.limits) or None}
        else:
            own = {**self.format_options.arguments(format), "format": format}
        try:
            path = file.real_path
            size = sidecars.size(path, file.size)
            return seglake.identity(path, size=size, key=self.key_files, parity=sidecars.of(path), **own)
        except (OSError, seglake.SeglakeError):
            return None

    def _run(
        self,
        engine: Engine,
        destination: Destination,
        tables: LakeTables | None,
        state: State,
        planned: Sequence[PlannedGroup],
        sidecars: Sidecars = BESIDE,
    ) -> IngestResult:
        started = time.monotonic()
        run_id = new_run_id(state.last_run)
        staging = destination.staging(run_id)
        destination.store.make_staging(staging)
        try:
            with _exchange(destination, staging, engine) as exchange:
                outcomes = self._read(engine, Staging(destination.store, staging, exchange), planned, sidecars)
            gone = _gone(planned, outcomes)
            files = [file for outcome in outcomes for file in outcome.files if file.path not in gone]
            if gone and not files:
                destination.store.remove_tree(staging)
                return IngestResult(None, destination.name, skipped=tuple(gone.items()))
            if not state.ingested:
                _refuse_wrong_key(files)
            by_format = _by_format(self.format, destination, files)
            refuse_other_columns(destination, tables, by_format, self.format_options, self.table)
            news = {format: [file for file in own if _is_news(file, state)] for format, own in by_format.items()}
            news = {format: own for format, own in news.items() if own}
            manifest = self._manifest(destination, staging, state.last_run, outcomes, news)
        except BaseException:
            destination.store.remove_tree(staging)
            raise
        # If it fails, the next run needs what is staged to complete it.
        if manifest.place:
            commit(destination, manifest, tables, 0 if tables is None else tables.next_run())
        end_run(destination, staging)
        result = _result(run_id if manifest.place else None, destination, by_format, files, time.monotonic() - started)
        return replace(result, skipped=tuple(gone.items()))

    def _read(
        self, engine: Engine, staging: Staging, groups: Sequence[PlannedGroup], sidecars: Sidecars
    ) -> list[TaskOutcome]:
        """Has the engine read all files; returns what the tasks say, in the order of the files."""
        limit = task_bytes(
            groups,
            most=_TASK_BYTES,
            open_cost_bytes=_OPEN_COST_BYTES,
            parallelism=_TASKS_PER_CORE * engine.parallelism(),
        )
        tasks = pack(groups, limit, _OPEN_COST_BYTES)
        staging.exchange.begin()
        for number, task in enumerate(tasks):
            write_plan(staging.exchange, number, [file for group in task for file in group.files])
        files = [file for group in groups for file in group.files]
        key_files = None if self.key_files is None else [str(Path(path).absolute()) for path in self.key_files]
        runner = TaskRunner(
            staging,
            self.format,
            self.format_options,
            self.record_bytes,
            key_files,
            self.target_file_bytes,
            stops_on_wrong_key=self.on_wrong_key == "stop",
            final=self.final,
            uint64_type=uint64_type_of(self.table),
            sidecars=sidecars,
            on_damage=self.on_damage,
        )
        report = self.progress
        watch = None if report is None else _Watch(lambda: report(_progress(staging.exchange, files)), staging.exchange)
        outcomes = engine.run_tasks(runner, len(tasks), watch)
        if watch is not None:
            watch.last()
        for outcome in outcomes:
            if outcome.key_error is not None:
                raise IngestError(f"the key cannot be used: {outcome.key_error}")
            if outcome.wrong_key is not None:
                raise IngestError(
                    f"{printable_path(outcome.wrong_key)}: {WRONG_KEY}. Nothing was ingested. Give the right key "
                    "(`key` or SEGLAKE_KEY), leave the file out, or have it recorded with `on_wrong_key`"
                )
        return outcomes

    def _manifest(
        self,
        destination: Destination,
        staging: Path,
        last_run: str | None,
        outcomes: Sequence[TaskOutcome],
        by_format: Mapping[str, Sequence[FileOutcome]],
    ) -> Manifest:
        """Writes the tables `files` and lists everything that is to become visible."""
        run_id = staging.name
        data: list[Move] = []
        for outcome in outcomes:
            numbers: dict[tuple[str, str], int] = {}
            for file in outcome.staged:
                number = numbers.get((file.format, file.folder), 0)
                numbers[file.format, file.folder] = number + 1
                data.append((file.staged, data_path(file.format, file.folder, run_id, outcome.task, number)))
        data.extend(self._empty_tables(destination, staging, run_id, by_format, outcomes))
        files: list[Move] = []
        for format, entries in by_format.items():
            name = f"files-{format}{STAGED_SUFFIX}"
            rows = [{**asdict(entry), "run": run_id} for entry in entries]
            _stage(destination, staging / name, pa.Table.from_pylist(rows, FILES_SCHEMA))
            files.append((name, files_path(format, run_id)))
        return Manifest(run_id, [*data, *files], after=last_run or "")

    def _empty_tables(
        self,
        destination: Destination,
        staging: Path,
        run_id: str,
        formats: Iterable[str],
        outcomes: Sequence[TaskOutcome],
    ) -> Iterator[Move]:
        """Writes an empty file for each table that there would not be at all: a query of no damage is no error."""
        staged = {(file.format, file.folder.partition("/")[0]) for outcome in outcomes for file in outcome.staged}
        for format in formats:
            records = records_schema(format, self.format_options, uint64_type_of(self.table))
            for folder, schema in (
                (records_folder(None, dated=is_dated(records)), records),
                ("damage", DAMAGE_SCHEMA),
            ):
                table = folder.partition("/")[0]
                is_there = (format, table) in staged or destination.store.exists(destination.folder / format / table)
                if not is_there:
                    name = f"empty-{format}-{table}{STAGED_SUFFIX}"
                    _stage(destination, staging / name, schema.empty_table())
                    yield name, data_path(format, folder, run_id, 0, 0)


@contextmanager
def _exchange(destination: Destination, staging: Path, engine: Engine) -> Generator[Exchange]:
    """Makes the folder in which the driver and the tasks tell each other things, which is one of both of them."""
    if destination.is_local:
        yield FolderExchange(staging)
    elif engine.is_here:
        with tempfile.TemporaryDirectory(prefix="seglake-") as folder:
            yield FolderExchange(Path(folder))
    else:
        yield StoreExchange(destination.store, staging)


def _refuse_unknown_tables(destination: Destination) -> None:
    """Sees to it that files of tables are not ingested once more into other tables at the same place.

    Only for a destination whose tables have no run, when nothing is left of dead ones.

    Raises:
        IngestError: there are files of such tables.
    """
    found = destination.files_tables()
    if found:
        raise IngestError(
            f"{destination.shown(next(iter(found)))}: expected a run that the tables have, they have none: they are "
            "others than those of earlier runs. Name the same catalog and the same store as before (catalog, "
            "storage_options), or another destination"
        )


class _Watch:
    """Shows the progress, no more often than looking at it is cheap."""

    def __init__(self, show: Callable[[], object], exchange: Exchange) -> None:
        self._show = show
        self._interval_s = exchange.interval_s
        self._shown_at = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._shown_at >= self._interval_s:
            self._show()
            self._shown_at = time.monotonic()

    def last(self) -> None:
        """Shows it at the end, where it was not shown just now."""
        if self._interval_s:
            self._show()


def _stage(destination: Destination, staged: Path, table: pa.Table) -> None:
    """Stages a table as a Parquet file."""
    with destination.store.scratch(staged.parent) as scratch:
        write_table(scratch / staged.name, table)
        destination.store.stage(scratch / staged.name, staged)


def _refuse_wrong_key(files: Sequence[FileOutcome]) -> None:
    """Sees to it that a wrong key does not fill the table with files of which nothing can be read.

    Raises:
        IngestError: the key seems to be wrong for every file that is a segment.
    """
    wrong = [file for file in files if file.status == "wrong_key"]
    if wrong and not any(file.status in INGESTED for file in files):
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise IngestError(
            f"{printable_path(wrong[0].path)}{more}: {WRONG_KEY}. That is so of every file that could be read. Nothing "
            "was ingested. Give the right key (key file or SEGLAKE_KEY)"
        )


def _by_format(
    format: str | None, destination: Destination, files: Sequence[FileOutcome]
) -> dict[str, list[FileOutcome]]:
    """Sorts the files by the format under which they are listed.

    Raises:
        IngestError: no file's format is known.
    """
    known = [format] if format is not None else sorted({file.format for file in files if file.format is not None})
    store, folder = destination.store, destination.folder
    known = known or [each for each in seglake.formats() if store.is_folder(folder / each / "files")]
    if not known:
        more = f" (and {len(files) - 1} more)" if len(files) > 1 else ""
        raise IngestError(f"no file could be read: {files[0].error}{more}", may_pass=True)
    by_format: dict[str, list[FileOutcome]] = {name: [] for name in known}
    for file in files:
        # A file that could not be read may be of any format: it is listed with the first, so that it is listed once.
        by_format[file.format or known[0]].append(file)
    return by_format


def _is_news(file: FileOutcome, state: State) -> bool:
    """Tells whether a file needs a row: not one that says what its last one did."""
    if file.error is None:
        return file.is_news or file.path in state.refused
    if file.status in INGESTED and file.is_news:
        return True
    copy = state.copies.get(file.path)
    if file.status == "copy" and (copy is None or (copy.size, copy.modified) != (file.size, file.modified)):
        return True
    return state.refused.get(file.path) != (file.status, file.error)


def _progress(exchange: Exchange, files: Sequence[PlannedFile]) -> IngestProgress:
    states = exchange.reports()
    return IngestProgress(
        files_done=sum(done for done, _, _, _ in states),
        files_total=len(files),
        bytes_done=sum(size for _, size, _, _ in states),
        bytes_total=sum(file.new_bytes for file in files),
        records=sum(records for _, _, records, _ in states),
        damage=sum(damage for _, _, _, damage in states),
    )


def _gone(planned: Sequence[PlannedGroup], outcomes: Sequence[TaskOutcome]) -> dict[str, str]:
    """Returns the files that could not be read, and are not where they were listed any more, each with why.

    This process asks, which has listed them: an executor may not see the folder.
    """
    paths = {path_text(file.path): file.path for group in planned for file in group.files if file.segment is None}
    failed = {file.path for outcome in outcomes for file in outcome.files if file.status == "unreadable"}
    why = "gone since it was listed: if it was renamed or sealed, the next run ingests it"
    return {path: why for path in sorted(failed & paths.keys()) if not os.path.lexists(paths[path])}


def _skipped(listing: FileListing) -> tuple[tuple[str, str], ...]:
    return tuple((path_text(path), reason) for path, reason in listing.skipped)


def _result(
    run_id: str | None,
    destination: Destination,
    by_format: Mapping[str, object],
    files: Sequence[FileOutcome],
    seconds: float,
) -> IngestResult:
    damage: dict[str, DamageTotal] = {}
    for file in files:
        for cause, (ranges, size) in file.damage.items():
            before = damage.get(cause, DamageTotal(0, 0))
            damage[cause] = DamageTotal(before.ranges + ranges, before.nbytes + size)
    return IngestResult(
        run_id=run_id,
        destination=destination.name,
        formats=tuple(by_format),
        statuses=_statuses(files),
        pending_bytes=sum(file.pending_bytes or 0 for file in files),
        records=sum(file.added for file in files),
        repaired_records=sum(file.repaired_records for file in files),
        nbytes=sum(file.nbytes or 0 for file in files),
        damage=damage,
        errors=tuple(
            FileError(file.path, file.status, file.error)
            for file in files
            if file.error and file.status not in ("copy", *INGESTED)
        ),
        refused_sidecars=tuple((file.path, file.refused_sidecar) for file in files if file.refused_sidecar),
        seconds=seconds,
    )


def _statuses(files: Iterable[FileOutcome]) -> dict[FileStatus, int]:
    numbers = no_files()
    for file in files:
        numbers[file.status] += 1
    return numbers


def find_inputs(sources: Sequence[str], destination: Destination, key_files: Sequence[str] | None) -> FileListing:
    """Finds the files to ingest; folders are searched with all that is below them.

    Raises:
        IngestError: a source does not exist or cannot be listed, the key is not that of a log, or the destination
            is among the sources.
    """
    if not sources:
        raise IngestError("no sources are given: name files, folders or patterns")
    try:
        listing = find_files(sources, FileFilter(recursive=True), key=key_files)
    except (OSError, ValueError, seglake.SeglakeError) as error:
        raise IngestError(error_text(error), may_pass=can_pass(error)) from error
    for folder in listing.folders:
        if destination.is_local and destination.folder.is_relative_to(folder):
            raise IngestError(
                f"{destination.shown()}: the destination is in {printable_path(folder)}, which is to be "
                "ingested; the next ingest would take the tables for segments. Write to a folder beside it"
            )
    return listing
