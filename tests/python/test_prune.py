"""Reading no more of a file than wanted records can be in: the same records, and only what has to be read of it."""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pytest
from damaged_files import damaged
from golden import Case, cases
from hypothesis import given, settings
from hypothesis import strategies as st

import seglake

pytestmark = pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START = datetime(2024, 2, 29, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
GOLDEN = {case.id: case for case in cases()}
# Its table of contents states another tenant than the block under a checksum that is right, which no damage makes.
LIES = "tenant/toc_disagrees_tenant"
Fields = dict[str, Any]


def read(
    source: Any, part: seglake.incremental.Part | None = None, **options: Any
) -> tuple[list[Fields], seglake.Report]:
    """The records of a pass, and its report."""
    with seglake.open(source, on_damage="skip", **arguments(options)) as whole:
        reader = whole if part is None else whole.part(part)
        found = [record.to_dict() | {"position": record.position} for record in reader]
        return found, reader.report


def arguments(options: Fields) -> Fields:
    """The arguments of `open` for options that choose records, and for others."""
    conditions = {
        "since": ("timestamp", ">="),
        "until": ("timestamp", "<"),
        "start_offset": ("offset", ">="),
        "end_offset": ("offset", "<"),
        "partitions": ("partition", "in"),
        "tenants": ("tenant", "in"),
        "types": ("type", "in"),
    }
    found: Fields = {name: value for name, value in options.items() if name not in conditions}
    for name, value in options.items():
        if name in conditions:
            column, operator = conditions[name]
            column = "uuid" if isinstance(value, uuid.UUID) else column
            found.setdefault("filters", []).append((column, operator, value))
    return found


def is_wanted(fields: Fields, wanted: Fields) -> bool:
    """Whether a record is among those that are chosen."""

    def at_least(bound: datetime | uuid.UUID) -> bool:
        if isinstance(bound, uuid.UUID):
            return bool(fields["uuid"].bytes >= bound.bytes)
        return bool(fields["timestamp_us"] >= (bound - EPOCH) // timedelta(microseconds=1))

    checks: dict[str, Callable[[Any], bool]] = {
        "since": at_least,
        "until": lambda bound: not at_least(bound),
        "start_offset": lambda first: bool(fields["offset"] >= first),
        "end_offset": lambda end: bool(fields["offset"] < end),
        "partitions": lambda ids: fields["partition"] in ids,
        "tenants": lambda ids: fields["tenant_bytes"] in ids,
        "types": lambda types: fields["type_bytes"] in types,
    }
    return all(checks[name](value) for name, value in wanted.items())


def some_of(values: list[Any], other: Any) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from([*values, other]), max_size=3)


@st.composite
def choices(draw: st.DrawFn, format: str, records: list[Fields]) -> Fields:
    """What to want of these records: nothing that a format's do not have, bounds at records or beside them."""
    wanted: Fields = {}

    def perhaps(name: str, strategy: st.SearchStrategy[Any]) -> None:
        if draw(st.booleans()):
            wanted[name] = draw(strategy)

    def values(name: str) -> list[Any]:
        return [fields[name] for fields in records]

    times = [EPOCH + timedelta(microseconds=us) for us in values("timestamp_us") if 0 <= us < 1 << 52] if (
        format in ("active", "sealed", "chunked")
    ) else []  # fmt: skip
    time = st.builds(
        lambda time, beside: time + beside * timedelta(microseconds=1),
        st.sampled_from(times or [START]),
        st.integers(-1, 1),
    )
    if format in ("active", "sealed"):
        known = [each.int for each in values("uuid")] or [seglake.uuid6(START).int]
        beside = st.builds(lambda number, by: uuid.UUID(int=number + by), st.sampled_from(known), st.integers(-1, 1))
        sixth = beside.filter(lambda each: each.version == 6)
        perhaps("since", st.one_of(time, sixth))
        perhaps("until", st.one_of(time, sixth))
        perhaps("types", some_of(values("type_bytes"), b"\xff none"))
    elif format == "tenant":
        perhaps("partitions", some_of(values("partition"), 77))
        perhaps("tenants", some_of(values("tenant_bytes"), b"none"))
    elif format == "chunked":
        offset = st.builds(lambda at, by: max(0, at + by), st.sampled_from(values("offset") or [0]), st.integers(-1, 1))
        perhaps("start_offset", offset)
        perhaps("end_offset", offset)
        perhaps("since", time)
        perhaps("until", time)
    return wanted


class Content(bytes):
    """A file's bytes, which no failure need show."""

    def __repr__(self) -> str:
        return f"{len(self)} bytes"


def check(source: Any, wanted: Fields, **options: Any) -> None:
    """Pruning gives what reading everything and choosing does, and a report of no more than what is there."""
    everything, whole = read(source, **options)
    expected = [fields for fields in everything if is_wanted(fields, wanted)]
    assert read(source, **options, **wanted)[0] == expected
    found, report = read(source, **options, **wanted, prune=True)
    assert found == expected
    assert report.nbytes <= whole.nbytes
    good = {(total["kind"], total["cause"]): total["nbytes"] for total in whole.to_dict()["totals"]}
    for total in report.to_dict()["totals"]:
        assert total["nbytes"] <= good[total["kind"], total["cause"]]
    for span in report.damage:
        same = [own for own in whole.damage if (own.kind, own.cause) == (span.kind, span.cause)]
        assert any(own.start <= span.start and span.end <= own.end for own in same)
    with seglake.open(
        source, on_damage="skip", **options, **arguments(wanted), prune=True, columns=["position"]
    ) as reader:
        positions = pa.table(reader).column("position").to_pylist()
    assert positions == [fields["position"] for fields in expected]


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_pruning_golden_files_gives_what_choosing_does(data: st.DataObject) -> None:
    case: Case = GOLDEN[data.draw(st.sampled_from(sorted(GOLDEN.keys() - {LIES})))]
    index = {"options": {"index": case.index or False}} if case.format == "chunked" else {}
    options = {**case.options, **index}
    wanted = data.draw(choices(case.format, read(case.path, **options)[0]))
    check(case.path, wanted, **options)


def test_pruning_goes_by_a_table_of_contents_whose_checksum_is_right() -> None:
    path = GOLDEN[LIES].path
    found, _ = read(path, format="tenant", tenants=["globex"])
    pruned, _ = read(path, format="tenant", tenants=["globex"], prune=True)
    assert [fields["partition"] for fields in found] == [0, 0, 3]
    assert pruned == [fields for fields in found if fields["partition"] == 0]


WRITTEN: dict[str, tuple[str, Fields]] = {
    "active": ("active", {}),
    "sealed": ("sealed", {}),
    "sealed without trailer": ("sealed", {"options": {"trailer": False}}),
    "tenant": ("tenant", {}),
    "tenant version 1": ("tenant", {"options": {"version": 1}}),
    "chunked": ("chunked", {"options": {"chunk_records": 3}}),
    "oplog": ("oplog", {}),
}


def fields_of(format: str, number: int) -> Fields:
    """Record number `number`: of each format several of a kind, and bodies that hold what could be records."""
    value = b"%d " % number * (number % 5 * 3)
    match format:
        case "active" | "sealed":
            node = uuid.UUID(int=seglake.uuid6(START + number * SECOND).int >> 48 << 48 | number)
            return {"uuid": node, "type": "abc"[number % 3], "value": value}
        case "tenant":
            return {"partition": number // 12, "tenant": f"t{number // 4 % 3}", "value": value}
        case "chunked":
            time = START + (number * 7 % 40) * SECOND
            return {"offset": 10 + number + number // 6, "timestamp": time, "value": value}
        case _:
            return {"version": 1, "checkpointer": 1, "clock": [], "abi": 0, "batch": 1, "value": value}


def written(name: str, records: int, value: bytes | None = None, **more: Any) -> bytes:
    """A file's bytes."""
    format, options = WRITTEN[name]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        kwargs: Any = {"format": format, **options, **more}
        with seglake.create(path, **kwargs) as writer:
            for number in range(records):
                fields = fields_of(format, number)
                if value is not None:
                    # What is to be compressed must not become small.
                    fields["value"] = Random(number).randbytes(len(value)) if format == "chunked" else value
                writer.write(fields)
        return path.read_bytes()


@cache
def original(name: str) -> tuple[bytes, tuple[int, ...]]:
    """A small file, and where its records begin."""
    data = written(name, 48)
    found, _ = read(data, format=WRITTEN[name][0])
    assert len(found) == 48
    return data, tuple(fields["position"] for fields in found)


@pytest.mark.parametrize("name", WRITTEN)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_pruning_damaged_files_gives_what_choosing_does(data: st.DataObject, name: str) -> None:
    format = WRITTEN[name][0]
    sound, places = original(name)
    content = data.draw(damaged(sound, places=places).map(Content))
    wanted = data.draw(choices(format, read(sound, format=format)[0]))
    check(content, wanted, format=format)


@pytest.mark.parametrize("name", ["sealed", "tenant", "chunked"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_parts_give_together_what_choosing_does(data: st.DataObject, name: str) -> None:
    sound, places = original(name)
    content = data.draw(damaged(sound, places=places, most=2).map(Content))
    wanted = data.draw(choices(name, read(sound, format=name)[0]))
    everything, whole = read(content, format=name)
    with seglake.open(content, format=cast("Any", name), on_damage="skip") as reader:
        parts = reader.split(data.draw(st.integers(1, 700)))
    found: list[Fields] = []
    for part in parts:
        some, report = read(content, part, format=name, prune=True, **wanted)
        found += some
        assert all(
            any(own.start <= span.start and span.end <= own.end for own in whole.damage) for span in report.damage
        )
    assert found == [fields for fields in everything if is_wanted(fields, wanted)]


class Counting(io.RawIOBase):
    """A file object that counts the bytes that are read of it."""

    def __init__(self, content: bytes) -> None:
        self._file = io.BytesIO(content)
        self.bytes = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any, /) -> int:
        count = self._file.readinto(buffer)
        self.bytes += count
        return count


VALUE = bytes(range(256)) * 16
RECORDS = 4000
WINDOW = 1 << 20


@cache
def large(name: str) -> bytes:
    """A file of about 16 MiB in which windows are small."""
    return written(
        name, RECORDS, VALUE, **({"options": {"level": 1, "chunk_records": 50}} if name == "chunked" else {})
    )


def cost(content: bytes, format: str, part: seglake.incremental.Part | None = None, **options: Any) -> tuple[int, int]:
    """How many bytes are read, and how many records that gives."""
    file = Counting(content)
    kwargs: Any = {"format": format, "on_damage": "raise", "prune": True, **arguments(options)}
    with seglake.open(cast("BinaryIO", file), **kwargs) as whole:
        reader = whole if part is None else whole.part(part)
        records = sum(batch.num_rows for batch in reader.batches())
        assert reader.report.nbytes <= file.bytes
    return file.bytes, records


def moment(number: int) -> datetime:
    return START + number * SECOND


def test_of_an_active_file_nothing_is_read_behind_what_is_wanted() -> None:
    bytes_read, records = cost(large("active"), "active", until=moment(10))
    assert (records, bytes_read <= 2 * WINDOW) == (10, True)


@pytest.mark.parametrize("name", ["sealed", "sealed without trailer"])
def test_of_a_sealed_file_only_the_index_and_the_stretch_are_read(name: str) -> None:
    content = large(name)
    index = 24 * (RECORDS + 1) + 8 * RECORDS
    for first in (0, 2000, RECORDS - 10):
        bytes_read, records = cost(content, "sealed", since=moment(first), until=moment(first + 10))
        assert records == 10
        assert bytes_read <= 2 * index + 2 * WINDOW
    for nothing in ({"since": moment(RECORDS)}, {"until": moment(0)}, {"since": moment(RECORDS), "types": ["a"]}):
        bytes_read, records = cost(content, "sealed", **nothing)
        assert (records, bytes_read <= 2 * index + 2 * WINDOW) == (0, True)
    assert len(content) > 8 * (index + WINDOW)


@pytest.mark.parametrize("name", ["tenant", "tenant version 1"])
def test_of_a_tenant_file_only_the_contents_and_the_blocks_are_read(name: str) -> None:
    content = large(name)
    block = 4 * (len(VALUE) + 4) + 10
    if name == "tenant":
        bytes_read, records = cost(content, "tenant", partitions=[200], tenants=["t1"])
        assert (records, bytes_read <= 64 * RECORDS // 4 + 2 * block) == (4, True)
    bytes_read, records = cost(content, "tenant", partitions=[200])
    # Version 1 knows of partitions alone, and checks one before it gives it out.
    assert (records, bytes_read <= 64 * RECORDS // 4 + 7 * block) == (12, True)
    bytes_read, records = cost(content, "tenant", partitions=[100_000])
    assert (records, bytes_read <= 64 * RECORDS // 4) == (0, True)


def test_of_a_chunked_file_only_headers_and_the_chunks_are_read(tmp_path: Path) -> None:
    content = large("chunked")
    chunk = len(content) // (RECORDS // 50)
    headers = 40 * RECORDS // 50
    for first in (10, 2311, 10 + RECORDS * 7 // 6 - 13):
        bytes_read, records = cost(
            content, "chunked", options={"index": False}, start_offset=first, end_offset=first + 12
        )
        assert records == sum(first <= 10 + number + number // 6 < first + 12 for number in range(RECORDS))
        assert bytes_read <= headers + 4 * chunk + WINDOW
    path = tmp_path / "log.chunks"
    path.write_bytes(content)
    seglake.index(path)
    index = path.with_suffix(".index").read_bytes()
    bytes_read, records = cost(content, "chunked", options={"index": index}, start_offset=2310, end_offset=2317)
    assert (records, bytes_read < headers + 4 * chunk + WINDOW) == (6, True)


@pytest.mark.parametrize(
    ("name", "wanted", "front"),
    [
        ("sealed", {"since": moment(2000), "until": moment(2010)}, 0),
        ("tenant", {"partitions": [200]}, 64 * RECORDS // 4),
        ("tenant", {"tenants": ["t1"], "partitions": [5, 200]}, 64 * RECORDS // 4),
        ("chunked", {"start_offset": 2310, "end_offset": 2317}, 0),
    ],
)
def test_of_a_part_no_more_is_read_than_wanted_records_can_be_in(name: str, wanted: Fields, front: int) -> None:
    content = large(name)
    with seglake.open(content, format=cast("Any", name)) as reader:
        parts = reader.split(len(content) // 4)
        expected = sum(1 for _ in reader.range(arguments(wanted)["filters"]))
    assert len(parts) > 3
    costs = [cost(content, name, part, **wanted) for part in parts]
    assert sum(records for _, records in costs) == expected > 0
    # A part begins with the record in front of it, which takes a window, and so do records and entries.
    assert sum(bytes_read for bytes_read, _ in costs) < len(parts) * front + len(content) // 3
    assert min(bytes_read for bytes_read, _ in costs) < front + len(content) // 100


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("active", {"since": moment(5), "until": moment(5)}),
        ("sealed", {"since": moment(5), "until": moment(4)}),
        ("sealed", {"types": []}),
        ("tenant", {"partitions": []}),
        ("tenant", {"tenants": []}),
        ("chunked", {"start_offset": 5, "end_offset": 5}),
        ("chunked", {"since": moment(5), "until": moment(5)}),
    ],
)
def test_of_what_contradicts_itself_nothing_is_read(name: str, wanted: Fields) -> None:
    assert cost(original(name)[0], WRITTEN[name][0], **wanted) == (0, 0)


@pytest.mark.parametrize("name", WRITTEN)
def test_without_values_every_record_is_checked_and_none_is_copied(name: str) -> None:
    format = WRITTEN[name][0]
    content = large(name) if format != "oplog" else written(name, 100, VALUE)
    file = Counting(content)
    kwargs: Any = {"format": format, "columns": ["position"]}
    with seglake.open(cast("BinaryIO", file), **kwargs) as reader:
        batches = list(reader.batches())
    assert sum(batch.value_bytes for batch in batches) == 0
    tables = [pa.record_batch(batch) for batch in batches]
    assert sum(table.nbytes for table in tables) == 8 * sum(table.num_rows for table in tables)
    if name != "sealed without trailer":  # which has nothing to check bodies by
        assert file.bytes >= len(content), "bodies are checked all the same"


def test_types_are_chosen_as_they_show_or_as_bytes(tmp_path: Path) -> None:
    path = tmp_path / "types.active"
    kinds = [b"a", b"b\\", b"\xff", b"a", b""]
    with seglake.create(path, format="active") as writer:
        for number, kind in enumerate(kinds):
            writer.write(uuid=seglake.uuid6(moment(number)), type=kind, value=b"%d" % number)
    seglake.seal(path, tmp_path / "types.sealed")
    for file in (path, tmp_path / "types.sealed"):
        for given_, expected in [
            ([b"a"], [0, 3]),
            (["b\\x5c", "\\xff"], [1, 2]),
            ([b"b\\", b"\xff", ""], [1, 2, 4]),
            (["none"], []),
        ]:
            wanted: Any = {"types": given_}
            with seglake.open(file, **arguments(wanted)) as reader:
                assert [int(record.value) for record in reader] == expected
                assert reader.report.records == len(expected)
            with seglake.open(file) as reader:
                assert [int(record.value) for record in reader.range(arguments(wanted)["filters"])] == expected
    with pytest.raises(ValueError, match="cannot filter tenant records by type: they have no such column"):
        seglake.open(original("tenant")[0], format="tenant", filters=[("type", "in", ["a"])]).batches()


def test_damage_is_met_where_it_is_read_and_only_there() -> None:
    for name, wanted in (
        ("sealed", {"since": moment(2000), "until": moment(2010)}),
        ("tenant", {"partitions": [200]}),
        ("chunked", {"start_offset": 2310, "end_offset": 2320, "options": {"index": False}}),
    ):
        format = WRITTEN[name][0]
        content = bytearray(large(name))
        found, _ = read(bytes(content), format=format, **wanted)
        for position, is_read in ((found[0]["position"] + 60, True), (read_first(name) + 60, False)):
            content[position] ^= 1
            kwargs: Any = {"format": format, **wanted}
            if is_read:
                with pytest.raises(seglake.DamageError):
                    cost(bytes(content), **kwargs)
            else:
                assert cost(bytes(content), **kwargs)[1] == len(found)
                with pytest.raises(seglake.DamageError):
                    cost(bytes(content), **kwargs, prune=False)
            content[position] ^= 1


def read_first(name: str) -> int:
    with seglake.open(large(name), format=WRITTEN[name][0]) as reader:
        return next(reader.__iter__()).position


def test_a_tenant_files_report_is_of_the_front_and_the_blocks_that_were_read() -> None:
    data, _ = original("tenant")
    _, whole = read(data, format="tenant")
    _, report = read(data, format="tenant", partitions=[1], tenants=["t0", "t2"], prune=True)
    ranges = {total["kind"]: total["ranges"] for total in report.to_dict()["totals"]}
    # In front of the entries, those of the two blocks, and behind the entries.
    assert ranges == {"header": 4, "block": 2}
    assert report.nbytes < whole.nbytes == len(data)


def test_a_damaged_block_that_is_wanted_is_reported_with_the_rest_of_the_file() -> None:
    for version in ("tenant", "tenant version 1"):
        data = bytearray(original(version)[0])
        found, _ = read(bytes(data), format="tenant", partitions=[1])
        at = found[-1]["position"]
        data[at : at + 4] = b"\xff\xff\xff\xff"  # its length
        everything, whole = read(bytes(data), format="tenant")
        chosen, report = read(bytes(data), format="tenant", partitions=[0, 1, 3], prune=True)
        assert chosen == [fields for fields in everything if fields["partition"] in (0, 1, 3)]
        assert report.damage == whole.damage
        assert report.damage


def test_pickling_keeps_the_choice(tmp_path: Path) -> None:
    import pickle

    path = tmp_path / "file.active"
    path.write_bytes(original("active")[0])
    with seglake.open(path, filters=[("type", "==", "b")], prune=True) as reader:
        again: seglake.Reader = pickle.loads(pickle.dumps(reader))
        assert [record.position for record in again] == [record.position for record in reader]
        assert len(list(again)) == 16
