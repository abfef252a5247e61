"""One task of an ingest, on whatever engine: reads its files, each once, and stages their records and damage."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import seglake
from seglake._formats import FormatOptions, column_names
from seglake._text import path_text

from .carry import Carry, Damaged, Looked
from .destination import Staging
from .digest import record_batches
from .growth import Opening, WrongKeyFoundError, read_growth
from .kin import read_kin
from .known import KnownRecords, ReplacedError, SealedAnew, is_sealed_anew
from .outcome import AFTER_REPLACED, WRONG_KEY, FileOutcome, RefusedError, StagedData, TaskOutcome
from .output import Output
from .plan import PlannedFile, groups_of, read_plan
from .progress import StopError, TaskProgress
from .repaired import (
    can_be_read_again,
    change_time_ns,
    cut_at_known,
    damage_after,
    is_listed,
    known_records,
    only_damage_changed,
)
from .result import OnDamage
from .same import UNKNOWN, Damage, Related, other_tail, relation
from .sidecars import BESIDE, Sidecars
from .sink import FileSink, UnreadableError
from .state import Ingested
from .tables import StagedFile, Uint64Type

__all__ = ["TaskRunner"]


class _WrongKeyError(Exception):
    """The key seems to be wrong for the file that is the argument, and the run is to stop."""


class _RestartError(Exception):
    """Reading a file failed when rows of it were in output files that others share."""


@dataclass(frozen=True)
class TaskRunner:
    """Runs tasks. Spark sends it to its executors, so it can be pickled and holds no key.

    Attributes:
        staging: the run's staging folder.
        format: the format of all files; None finds it for each.
        format_options: what concerns files of some formats only.
        record_bytes: the largest record that is read, in bytes; None is the library's default.
        key_files: the files of the keys to try; None takes it from the environment of the process, or the default key.
        target_bytes: the size from which on an output file is not added to.
        stops_on_wrong_key: whether all tasks stop at a file for which the key seems to be wrong.
        final: whether no file grows any more, so that an unfinished tail is damage.
        uint64_type: how unsigned integers of 64 bits are written.
        sidecars: by which parity sidecars the files are read.
        on_damage: what becomes of records that these restore.
    """

    staging: Staging
    format: str | None
    format_options: FormatOptions
    record_bytes: int | None
    key_files: Sequence[str] | None
    target_bytes: int
    stops_on_wrong_key: bool = False
    final: bool = False
    uint64_type: Uint64Type = "uint64"
    sidecars: Sidecars = BESIDE
    on_damage: OnDamage = "repair"

    def run(self, task: int, is_stopped: Callable[[], bool] = lambda: False) -> TaskOutcome:
        """Runs one task.

        Args:
            task: its number.
            is_stopped: asked now and then whether to stop before the end.

        Raises:
            OSError: the output cannot be written.
        """
        try:
            seglake.detect(b"", key=self.key_files)
        except (OSError, ValueError) as error:
            return TaskOutcome(task, key_error=str(error))
        files = read_plan(self.staging.exchange, task)
        try:
            # All files of the task share the output files. If reading one fails when rows of it are in them already,
            # those rows cannot be taken out again: the task starts anew, with output files for each input file.
            try:
                return self._run(task, files, is_stopped, shares_output=True)
            except _RestartError:
                return self._run(task, files, is_stopped, shares_output=False)
        except _WrongKeyError as error:
            self.staging.exchange.stop()
            return TaskOutcome(task, wrong_key=path_text(str(error)))
        except StopError:
            return TaskOutcome(task, stopped=True)

    def _run(
        self, task: int, files: Sequence[PlannedFile], is_stopped: Callable[[], bool], *, shares_output: bool
    ) -> TaskOutcome:
        """Reads files, into the same output files or each into its own.

        Raises:
            _RestartError: reading one failed when rows of it had been written to the files that all share.
        """
        outcome = TaskOutcome(task)
        staging = self.staging
        # Spark may run a task twice, also at the same time: each attempt has a folder of its own.
        attempt = staging.folder / f"task-{task:05d}-{uuid.uuid4().hex[:8]}"
        staging.store.make_within(attempt)
        progress = TaskProgress(staging.exchange, task, is_stopped)
        with staging.store.scratch(attempt) as scratch:
            outputs = _Outputs(self, scratch, lambda written: staging.complete(written, attempt), shares_output)
            reading = _Reading(self, outputs, progress)
            try:
                for kin in groups_of(files):
                    outcome.files.extend(read_kin(kin, reading))
                    for file in kin:
                        progress.file_done(file.new_bytes)
                for format, staged in outputs.finish():
                    name = f"{attempt.name}/{staged.path.name}"
                    outcome.staged.append(StagedData(name, format, staged.folder))
            except BaseException:
                outputs.discard()
                raise
        progress.write()
        return outcome


def _refused(reader: seglake.Reader) -> str | None:
    """Returns why the sidecar of a file that was read was ignored.

    Raises:
        UnreadableError: it cannot be read.
    """
    try:
        return reader.parity_refused
    except (OSError, seglake.SeglakeError) as error:
        raise UnreadableError(error) from None


class _Reread(NamedTuple):
    """What is known of a file whose damage may have been repaired.

    Attributes:
        carry: what earlier runs have noted, and what this one saw (`Looked`).
        is_changed: whether its damage is not as it was.
        known: if it is read again from its start, which of its records are known.
    """

    carry: Carry
    is_changed: bool
    known: KnownRecords | None


def _reread(file: PlannedFile, carry: Carry, opening: Opening, *, has_sidecar: bool) -> _Reread:
    """Tells whether damage of a file is not as it was, and if it is read again from its start, what is known of it."""

    def open_at(position: seglake.Position | None) -> seglake.Reader:
        return opening(position, final=False)

    if has_sidecar and carry.damage is not None:
        carry = replace(carry, damage=carry.damage._replace(looked=None))
    is_changed = only_damage_changed(carry, open_at)
    known = known_records(carry, open_at) if is_changed else None
    if isinstance(known, Looked):
        assert carry.damage is not None
        known, carry = None, replace(carry, damage=carry.damage._replace(looked=known))
    if known is None and file.copy is not None:
        with open_at(carry.position) as reader:  # it goes on as the segment did, maybe sealed since
            if can_be_read_again(carry, reader.format, file.size):
                known = KnownRecords(carry)
    return _Reread(carry, is_changed, known)


def _replaced(file: PlannedFile, error: ReplacedError, format: str | None, *, wrote: bool) -> RefusedError:
    reason = f"{path_text(file.path)}: {error}. {AFTER_REPLACED}"
    return RefusedError("replaced", reason, format, wrote=wrote)


def _damage_after(
    before: Carry | None,
    sink: FileSink,
    changed: int | None,
    reader: seglake.Reader,
    known: KnownRecords | None = None,
) -> Damaged | None:
    """Returns what is noted of the damage of a file, of which some records may be known.

    Raises:
        UnreadableError: it cannot be read.
    """
    try:
        damage = damage_after(before, sink.damaged, changed, reader)
        return damage if known is None else cut_at_known(damage, known, reader)
    except (OSError, seglake.SeglakeError) as error:
        raise UnreadableError(error) from None


class _Outputs:
    """The output files of a task: shared by its input files, or some for each."""

    def __init__(self, runner: TaskRunner, folder: Path, complete: Callable[[Path], object], shares: bool) -> None:
        self._runner = runner
        self._folder = folder
        self._complete = complete
        self._shares = shares
        self._made = 0
        self._present: Output | None = None
        self._finished: list[tuple[str, StagedFile]] = []

    def present(self) -> Output:
        """Returns what rows go to."""
        if self._present is None:
            own = self._runner
            name = f"{self._made:05d}"
            self._present = Output(
                self._folder, name, own.format_options, own.target_bytes, own.uint64_type, self._complete
            )
            self._made += 1
        return self._present

    def file_done(self) -> None:
        """Ends an input file."""
        if not self._shares:
            self._finished = self.finish()

    def take_back(self) -> None:
        """Takes out what the present input file has written.

        Raises:
            _RestartError: that cannot be done.
        """
        if self._shares:
            raise _RestartError
        self.discard()

    def finish(self) -> list[tuple[str, StagedFile]]:
        """Closes all files; returns them with their formats."""
        present, self._present = self._present, None
        finished, self._finished = self._finished, []
        return finished if present is None else [*finished, *present.finish()]

    def discard(self) -> None:
        """Closes the present files and forgets them."""
        present, self._present = self._present, None
        if present is not None:
            present.discard()


@dataclass(frozen=True)
class _Reading:
    """Reads the files of a task."""

    runner: TaskRunner
    outputs: _Outputs
    progress: TaskProgress

    def ingest(self, file: PlannedFile, copy_of: str | None = None, *, found: Related | None = None) -> FileOutcome:
        """Reads what is new of one file to its end.

        Args:
            file: the file.
            copy_of: for a copy, the text for the column `error`. None of its records is ingested.
            found: how it is related to its segment, if it was compared with that.

        Raises:
            RefusedError: nothing of it is to be ingested.
        """
        try:
            outcome = self._ingest(file, self.outputs.present(), copy_of, found)
        except RefusedError as error:
            if error.status == "wrong_key" and self.runner.stops_on_wrong_key:
                raise _WrongKeyError(file.path) from None
            if error.wrote:
                self.outputs.take_back()
            raise
        self.outputs.file_done()
        return outcome

    def goes_on(self, file: PlannedFile, before: Ingested) -> bool:
        """Tells whether a file begins and goes on as a segment did."""
        position = before.carry.position
        try:
            with self._open(file, before.format, position, final=False) as reader:
                if reader.format == position.format or position.uuid is None:
                    return True
                # Of one that was sealed since, that does not say that all is there that was read.
                with self._open(file, reader.format, None, final=False) as found:
                    return found.get(position.uuid) is not None
        except (OSError, seglake.SeglakeError):
            return False

    def relation(self, file: PlannedFile, known: str, before: Ingested) -> Related:
        """Compares a file with the one of a segment."""
        return relation(self._open_all, file.path, file.size, known, before)

    def other_tail(self, file: PlannedFile, known: str, before: Ingested) -> int:
        """Returns how many bytes the unfinished tail of a file has, if they differ from what another has there."""
        return other_tail(self._open_all, file.path, known, before)

    def list_damage(self, file: PlannedFile, damage: Damage, reason: str) -> FileOutcome:
        """Lists the damage of a copy, without its records: all of it, or only what is new if the rest is listed.

        Raises:
            RefusedError: it cannot be read.
        """
        before = file.copy if file.copy is not None and self._is_listed(file, file.copy, damage) else None
        return self.ingest(file._replace(before=before, name="", copy=None), reason, found=Related("copy", damage))

    def is_as_listed(self, file: PlannedFile, before: Ingested) -> bool:
        """Tells whether a damaged copy is as it was when an earlier run compared it and listed its damage."""
        return file.size == before.size and self._is_listed(file, before, UNKNOWN)

    def _is_listed(self, file: PlannedFile, before: Ingested, damage: Damage) -> bool:
        found = damage.listed if damage.is_all else None
        try:
            with self._open_all(file.path, file.size, before.format) as reader:
                return is_listed(before.carry, found, reader) and self.goes_on(file, before)
        except (OSError, seglake.SeglakeError):
            return False

    def as_active(self, file: PlannedFile, before: Ingested) -> Ingested:
        """Returns a segment that was ingested from a sealed file as if from an active one, which has its records."""
        number, size = 0, file.size
        with self._open(file, "active", None, final=False) as reader:
            for batch in record_batches(reader):
                if number + batch.num_rows > before.records:
                    size = batch.column("position")[before.records - number].as_py()
                    break
                number += batch.num_rows
        with self._open(file._replace(size=size), "active", None, final=False) as reader:
            for _ in reader.batches(warn=False):
                pass
            position = reader.position
        if position is None:
            raise RuntimeError("a pass that ended has no position")
        # Its damage was noted by places in the sealed file.
        carry = replace(before.carry, position=position, tail=None, damage=None)
        return replace(before, format="active", end=position.byte_offset).with_carry(carry)

    def _ingest(self, file: PlannedFile, output: Output, copy_of: str | None, found: Related | None) -> FileOutcome:
        runner = self.runner
        format = runner.format
        carry = None if file.before is None else file.before.carry
        before = None if carry is None else carry.position
        is_same = before is not None and file.segment is None
        self.progress.begin(before.byte_offset if before is not None and is_same else 0, file.new_bytes)
        changed = change_time_ns(file.path)  # before it is read
        # Mostly another file has what the tail of a copy begins.
        has_tail = copy_of is None or (found is not None and found.damage.tail > 0)
        is_final = (runner.final and has_tail) or (file.segment is not None and file.segment.is_frozen)

        def opening(position: seglake.Position | None, *, final: bool) -> seglake.Reader:
            return self._open(file, str(format), position, final=final)

        try:
            reread = None if found is None else found.known
            # Read from its start, its own format counts, and not that of the segment.
            format = self.format_of(file if reread is None else file._replace(before=None))
            is_changed = reread is not None
            if carry is not None and reread is None:
                has_sidecar = runner.sidecars.covers(file.path)
                carry, is_changed, reread = _reread(file, carry, opening, has_sidecar=has_sidecar)
            if reread is not None:
                # Its damage was repaired, or was that of a copy: it is listed as if for the first time.
                before, file = None, file._replace(before=None)
            reader = opening(before, final=False)
            is_unproven = carry is not None and reread is None and found is None and file.segment is None
            if carry is not None and is_unproven and is_sealed_anew(carry, reader.format, reader.nbytes):
                # It is read as a whole, so that all that is in the tables is compared.
                format, reread, is_changed, file = reader.format, SealedAnew(carry), True, file._replace(before=None)
                reader.close()
                reader = opening(None, final=False)
        except ReplacedError as error:
            raise _replaced(file, error, format, wrote=False) from None
        except (OSError, seglake.SeglakeError) as error:
            raise RefusedError.by(error, format, wrote=False) from None
        with reader:
            sink = FileSink(file, runner.staging.run_id, output, reread if copy_of is None else KnownRecords(None))
            try:
                grown = read_growth(
                    file, reader, opening, sink, self.progress, final=is_final, uint64_type=runner.uint64_type
                )
                if carry is None or reread is None:
                    damage = _damage_after(carry, sink, changed, reader)
                else:
                    damage = _damage_after(None, sink, changed, reader, reread)
                    grown = grown.with_records(carry.sums.records + sink.records)
                restored = grown.repaired_records if runner.on_damage == "repair" else 0
                carried = replace(grown.carry, damage=damage)
                grown = replace(grown, carry=carried, repaired_records=restored, refused_sidecar=_refused(reader))
                # A copy of which only the time changed gets a row, too: without one, each run would compare it again.
                is_touched = copy_of is not None and carry is not None and damage != carry.damage
                return FileOutcome.of(file, grown, sink, copy_of=copy_of, is_news=is_changed or is_touched)
            except WrongKeyFoundError:
                reason = f"{path_text(file.path)}: {WRONG_KEY}"
                raise RefusedError("wrong_key", reason, reader.format, wrote=sink.wrote) from None
            except ReplacedError as error:
                raise _replaced(file, error, reader.format, wrote=sink.wrote) from None
            except UnreadableError as error:
                raise RefusedError.by(error.error, reader.format, wrote=sink.wrote) from None

    def format_of(self, file: PlannedFile) -> str:
        """Returns the format of a file, from which follows how it is read."""
        if self.runner.format is not None:
            return self.runner.format
        if file.segment is not None:  # it says itself which format it has by now
            return file.segment.format
        if file.before is not None and file.before.carry.position.identity is not None:
            # It is of that one, or of one with the same columns.
            return file.before.format
        how: dict[str, Any] = {"dialect": self.runner.format_options.dialect, "key": self.runner.key_files}
        restored = self.runner.sidecars.format(file.path, **how)
        if restored is not None:
            return restored
        found = seglake.detect(file.path, **how)  # pyright: ignore[reportArgumentType]
        if found.format is None:
            raise seglake.FormatError(f"cannot tell the format: {found.reason}", path=file.path)
        return found.format

    def _open(
        self, file: PlannedFile, format: str, position: seglake.Position | None, *, final: bool
    ) -> seglake.Reader:
        runner, path = self.runner, file.path
        is_known = position is not None and position.identity is not None
        return seglake.resume(
            file.source,
            position,
            size=runner.sidecars.size(path, file.size) if file.segment is None else None,
            final=final,
            format=self.runner.format if file.segment is not None or is_known else format,
            key=self.runner.key_files,
            on_damage=runner.on_damage,
            parity=runner.sidecars.of(path),
            columns=[*column_names(format, self.runner.format_options), "position"],
            uuid_type="string",
            **self.runner.format_options.arguments(format, record_bytes=self.runner.record_bytes),
        )

    def _open_all(self, path: str, size: int | None, format: str | None) -> seglake.Reader:
        file = PlannedFile(path, size=size or Path(path).stat().st_size)
        return self._open(file, format or self.format_of(file), None, final=False)
