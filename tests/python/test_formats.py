"""What holds for every format alike: what is written is read, by each way of reading, and conversions lose nothing."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import seglake

Fields = dict[str, Any]

U64 = st.integers(0, 2**64 - 1)
KEY = st.binary(min_size=32, max_size=32)
VALUE = st.binary(max_size=200)
EPOCH = 1_700_000_000_000_000


def checkpointed(fields: Fields) -> Fields:
    """A draft's message carries a checkpoint where its checkpointer is 0, and only there."""
    return fields if fields["checkpointer"] == 0 else {**fields, "checkpoint": None}


def oplog(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[Fields]:
    return st.fixed_dictionaries(
        {
            "version": U64,
            "checkpointer": st.integers(0, 3),
            "checkpoint": st.fixed_dictionaries({"tree_hash": KEY, "length": U64}),
            "clock": st.lists(st.fixed_dictionaries({"key": KEY, "length": U64}), max_size=4),
            "abi": U64,
            "batch": U64,
            "value": VALUE,
            **more,
        }
    ).map(checkpointed)


INDEX_CHECKPOINT = st.fixed_dictionaries(
    {
        "checkpointer": st.integers(0, 9),
        "signature": st.none() | st.binary(min_size=64, max_size=64),
        "length": st.none(),
    }
).map(lambda point: {**point, "length": None if point["signature"] is None else 7})

AUTOBASE = st.fixed_dictionaries(
    {
        "version": st.just(2),
        "clock": st.lists(st.fixed_dictionaries({"key": KEY, "length": U64}), max_size=3),
        "batch": U64,
        "value": st.none() | st.binary(min_size=1, max_size=100),
        "optimistic": st.booleans(),
        "checkpoint": st.none()
        | st.fixed_dictionaries(
            {
                "system": st.none() | INDEX_CHECKPOINT,
                "encryption": st.none() | INDEX_CHECKPOINT,
                "user": st.none() | st.lists(INDEX_CHECKPOINT, max_size=3),
            }
        ),
        "digest": st.none() | st.fixed_dictionaries({"pointer": U64, "key": st.none() | KEY}),
        "trace": st.none()
        | st.fixed_dictionaries(
            {
                "system": st.lists(U64, max_size=3),
                "encryption": st.lists(U64, max_size=3),
                "user": st.lists(st.fixed_dictionaries({"view": U64, "blocks": st.lists(U64, max_size=3)}), max_size=2),
            }
        ),
    }
)


def ascending(times: list[int], fields: list[tuple[bytes, bytes]]) -> list[Fields]:
    """Records with version-6 UUIDs in the order of `times`."""
    ticks = sorted({EPOCH * 10 + 122_192_928_000_000_000 + time for time in times})
    records: list[Fields] = []
    for tick, (type_, value) in zip(ticks, fields, strict=False):
        head = tick >> 12 << 16 | 0x6000 | tick & 0xFFF
        records.append({"uuid": uuid.UUID(int=head << 64 | 0x8000 << 48), "type_bytes": type_, "value": value})
    return records


UUID_RECORDS = st.builds(
    ascending,
    st.lists(st.integers(0, 2**40), max_size=30),
    st.lists(st.tuples(st.binary(max_size=20), VALUE), min_size=30, max_size=30),
)


def by_block(messages: list[tuple[int, bytes, bytes]]) -> list[Fields]:
    """Messages as a tenant file has them: by partition, then tenant, numbered within each."""
    counts: dict[tuple[int, bytes], int] = {}
    records: list[Fields] = []
    for partition, tenant, value in sorted(messages, key=lambda message: message[:2]):
        index = counts[partition, tenant] = counts.get((partition, tenant), -1) + 1
        records.append({"partition": partition, "tenant_bytes": tenant, "index": index, "value": value})
    return records


TENANT_RECORDS = st.lists(
    st.tuples(st.sampled_from([0, 1, 7, 2**32 - 1]), st.sampled_from([b"", b"a", b"b\\", b"\xff", b"z" * 40]), VALUE),
    max_size=40,
).map(by_block)


def numbered(steps: list[tuple[int, int, bytes]]) -> list[Fields]:
    """Records whose offsets ascend, with gaps; times do not."""
    offset = -1
    records: list[Fields] = []
    for step, time, value in steps:
        offset += step
        records.append({"offset": offset, "timestamp_us": time, "value": value})
    return records


CHUNKED_RECORDS = st.lists(
    st.tuples(st.sampled_from([1, 1, 1, 5, 2**40]), st.integers(-(2**63), 2**63 - 1), VALUE), max_size=40
).map(numbered)

CASES: dict[str, tuple[str, Fields, st.SearchStrategy[list[Fields]]]] = {
    "active": ("active", {}, UUID_RECORDS),
    "sealed": ("sealed", {}, UUID_RECORDS),
    "sealed without trailer": ("sealed", {"options": {"trailer": False}}, UUID_RECORDS),
    "tenant 1": ("tenant", {"options": {"version": 1}}, TENANT_RECORDS),
    "tenant 2": ("tenant", {"options": {"version": 2, "memory_bytes": 300}}, TENANT_RECORDS),
    "chunked": ("chunked", {"options": {"chunk_records": 3}}, CHUNKED_RECORDS),
    "draft": ("oplog", {"options": {"dialect": "draft"}}, st.lists(oplog(), max_size=10)),
    "draft-1.1": ("oplog", {"options": {"dialect": "draft-1.1"}}, st.lists(oplog(), max_size=10)),
    "autobase": ("oplog", {"options": {"dialect": "autobase"}}, st.lists(AUTOBASE, max_size=10)),
}


def subset(expected: Any, found: Any) -> bool:
    """Whether what was written is in what was read, field by field; a reader may know more."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(subset(value, found[name]) for name, value in expected.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType, reportUnknownMemberType]
    if isinstance(expected, list):
        return len(expected) == len(found) and all(map(subset, expected, found))  # pyright: ignore[reportUnknownArgumentType]
    return bool(expected == found)


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_written_is_read(case: str, data: st.DataObject, tmp_path: Path) -> None:
    format, options, records = CASES[case]
    written = data.draw(records)
    path = tmp_path / f"{uuid.uuid4().hex}.file"
    reading = {name: options[name] for name in options if "dialect" in options.get("options", {})}
    with seglake.create(path, format=format, **options) as writer:
        ids = [writer.write(fields) for fields in written]

    reader = seglake.open(path, format=format, **reading)
    found = list(reader)
    assert subset(written, [record.to_dict() for record in found])
    assert seglake.verify(path, format=format, **reading).ok
    ledger = list(reader.ledger())
    assert sum(span.nbytes for span in ledger) == path.stat().st_size

    # Each record is found again by what the writer said, and copied from Arrow it makes the same file.
    for record, id in zip(found, ids, strict=True):
        if id is not None:
            assert reader.get(*(id if isinstance(id, tuple) else (id,))) == record
    table = pa.table(reader)
    again = path.with_name("again.file")
    with seglake.create(again, format=format, **options) as writer:
        assert writer.write_batch(table) == len(written)
    assert again.read_bytes() == path.read_bytes()
    for file in tmp_path.iterdir():
        file.unlink()


def sample(path: Path, format: str) -> Path:
    """A small file of a format."""
    make: dict[str, Callable[[int], Fields]] = {
        "active": lambda number: {"type": f"t{number % 3}", "value": b"%d" % number},
        "sealed": lambda number: {"type": f"t{number % 3}", "value": b"%d" % number},
        "tenant": lambda number: {"partition": number % 2, "tenant": f"t{number % 3}", "value": b"%d" % number},
        "chunked": lambda number: {"timestamp": EPOCH + number, "value": b"%d" % number},
        "oplog": lambda number: {
            "version": 1, "checkpointer": 1, "clock": [], "abi": 0, "batch": 1, "value": b"%d" % number,
        },
    }  # fmt: skip
    with seglake.create(path, format=format) as writer:
        for number in range(20):
            writer.write(make[format](number))
    return path


EXTENSIONS = {"active": "active", "sealed": "sealed", "tenant": "tenant", "chunked": "chunks", "oplog": "oplog"}
NEEDED: dict[str, Fields] = {
    "active": {"uuid": None, "type": "t"},
    "sealed": {"uuid": None, "type": "t"},
    "tenant": {"partition": 1, "tenant": "x"},
    "chunked": {"timestamp": None},
    "oplog": {"version": 1, "checkpointer": 1, "clock": [], "abi": 0, "batch": 1},
}


@pytest.mark.parametrize("source", EXTENSIONS)
@pytest.mark.parametrize("to", EXTENSIONS)
def test_every_conversion(source: str, to: str, tmp_path: Path) -> None:
    path = sample(tmp_path / f"source.{EXTENSIONS[source]}", source)
    destination = tmp_path / f"destination.{EXTENSIONS[to]}"
    columns = seglake.open(path).schema.names
    kept = seglake.open(b"", format=to).schema.names
    lost = [name for name in columns if name not in kept and not (name == "timestamp" and "uuid" in kept)]
    missing = {name: value for name, value in NEEDED[to].items() if name not in columns}
    if "timestamp" in columns and "uuid" in missing:
        del missing["uuid"]
    if lost:
        with pytest.raises(ValueError, match=", ".join(lost)):
            seglake.convert(path, destination, set=missing)
    if missing:
        with pytest.raises(ValueError, match=", ".join(missing)):
            seglake.convert(path, destination, drop=lost)
    assert not list(tmp_path.glob("destination*"))
    assert not list(tmp_path.glob(".*"))

    report = seglake.convert(path, destination, drop=lost, set=missing)
    assert report.records == 20
    before, after = (list(seglake.open(file)) for file in (path, destination))
    assert sorted(record.value for record in before) == sorted(record.value for record in after)
    for name in set(columns) & set(kept):
        assert [getattr(record, name) for record in before] == [getattr(record, name) for record in after]
    if "timestamp" in kept and "timestamp" in columns:
        assert [record.timestamp_us for record in before] == [record.timestamp_us for record in after]
    with pytest.raises(FileExistsError):
        seglake.convert(path, destination, drop=lost, set=missing)
    seglake.convert(path, destination, drop=lost, set=missing, if_exists="overwrite")
    assert not list(tmp_path.glob(".*"))


def test_converting_keeps_tenants_without_messages(tmp_path: Path) -> None:
    path, other = tmp_path / "one.tenant", tmp_path / "two.tenant"
    with seglake.create(path, format="tenant") as writer:
        writer.write(partition=1, tenant="a", value=b"1")
        writer.write(partition=1, tenant="b")
        writer.write(partition=2, tenant="c")
    seglake.convert(path, other, options={"version": 1})
    assert seglake.open(other).tenants() == ["a", "b", "c"]
    seglake.convert(seglake.open(path, filters=[("partition", "in", [1])]), other, if_exists="overwrite")
    assert seglake.open(other).tenants() == ["a", "b"]
    assert seglake.open(other).partitions() == [1]


@pytest.mark.parametrize("format", EXTENSIONS)
def test_detection(format: str, tmp_path: Path) -> None:
    path = sample(tmp_path / f"file.{EXTENSIONS[format]}", format)
    assert seglake.detect(path).format == format
    # Detected by content alone: an oplog has no checksum that could confirm it.
    found = seglake.detect(path.read_bytes())
    assert (found.format, found.confidence) == (format, "likely" if format == "oplog" else "certain")


@pytest.mark.parametrize("format", EXTENSIONS)
def test_options_of_other_formats_are_refused(format: str, tmp_path: Path) -> None:
    foreign: list[Fields] = [
        {"options": {"version": 2}},
        {"options": {"trailer": True}},
        {"options": {"dialect": "draft"}},
        {"options": {"preallocate": 9}},
        {"zero_torn_tail": True},
        {"options": {"level": 3}},
        {"options": {"memory_bytes": 9}},
        {"key": bytes(32)},
    ]
    refused = 0
    for one in foreign:
        try:
            with seglake.create(tmp_path / "file", format=format, **one):
                pass
            (tmp_path / "file").unlink(missing_ok=True)
        except ValueError as error:
            assert next(iter(one.get("options", one))) in str(error)
            assert format in str(error)
            refused += 1
    assert refused >= 5
    if format != "oplog":
        with pytest.raises(
            ValueError, match=f"dialect does not concern {format} files: options of reading them here are "
        ):
            seglake.open(b"", format=format, options={"dialect": "draft"})


@pytest.mark.parametrize("format", ["sealed", "tenant"])
def test_what_is_written_whole_is_there_whole_or_not_at_all(format: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(ZeroDivisionError), seglake.create(path, format=format) as writer:
        if format == "sealed":
            writer.write(type="t", value=b"")
        else:
            writer.write(partition=1, tenant="t", value=b"")
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", ["active", "chunked", "oplog"])
def test_what_is_appended_is_there_up_to_the_exception(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"file.{EXTENSIONS[format]}"
    fields: dict[str, Fields] = {
        "active": {"type": "t"},
        "chunked": {"timestamp": 5},
        "oplog": {"version": 1, "checkpointer": 1, "clock": [], "abi": 0, "batch": 1},
    }
    with pytest.raises(ZeroDivisionError), seglake.create(path, format=format) as writer:
        writer.write(value=b"1", **fields[format])
        raise ZeroDivisionError
    with seglake.create(path, format=format, if_exists="append") as writer:
        assert writer.found is not None
        assert writer.found.records == 1
        writer.write(value=b"2", **fields[format])
    assert [record.value for record in seglake.open(path)] == [b"1", b"2"]
    assert seglake.verify(path).ok


def ids_of(reader: seglake.Reader) -> list[Any]:
    """What each record of a file is found by, in file order."""
    names = [name for name in ("uuid", "offset", "seq") if name in reader.schema.names]
    if names:
        return [getattr(record, names[0]) for record in reader]
    return [(record.partition, record.tenant_bytes, record.index) for record in reader]


ABSENT: Fields = {
    "active": seglake.uuid6(),
    "sealed": seglake.uuid6(),
    "tenant": (9, "nobody", 0),
    "chunked": 1000,
    "oplog": 1000,
}


@pytest.mark.parametrize("format", EXTENSIONS)
def test_looking_up_many(format: str, tmp_path: Path) -> None:
    reader = seglake.open(sample(tmp_path / f"file.{EXTENSIONS[format]}", format))
    records, ids = list(reader), ids_of(reader)
    wanted = [ids[7], ids[0], ABSENT[format], ids[19], ids[7]]
    expected = [records[7], records[0], None, records[19], records[7]]
    assert reader.get_many(wanted) == expected
    assert reader.get_many([]) == []
    if "uuid" in reader.schema.names:
        assert reader.get_many([id.bytes for id in wanted]) == expected
        assert reader.get_many([str(id) for id in wanted]) == expected
        assert [reader.get(id.bytes) for id in wanted] == expected
        for wrong in (b"x" * 15, "no UUID", 7, None, object()):
            with pytest.raises((TypeError, ValueError)):
                reader.get_many([wrong])

    array: Any
    if format == "tenant":
        array = pa.StructArray.from_arrays(
            [
                pa.array([partition for partition, _, _ in wanted]),
                pa.array([tenant if isinstance(tenant, bytes) else tenant.encode() for _, tenant, _ in wanted]),
                pa.array([index for _, _, index in wanted]),
            ],
            names=["partition", "tenant", "index"],
        )
    elif "uuid" in reader.schema.names:
        array = pa.array([id.bytes for id in wanted], pa.binary(16))
    else:
        array = pa.array(wanted)
    for given_ids in (array, pa.chunked_array([array[:2], array[2:]])):
        found = pa.record_batch(reader.get_many(given_ids))
        assert found.num_rows == 5
        assert found.column("value").to_pylist() == [record and record.value for record in expected]
    with pytest.raises(TypeError):
        reader.get()
    with pytest.raises((TypeError, ValueError)):
        reader.get(object())


def test_ranges_read_what_they_say(tmp_path: Path) -> None:
    reader = seglake.open(sample(tmp_path / "file.sealed", "sealed"))
    ids = ids_of(reader)
    assert [record.uuid for record in reader.range([("uuid", ">=", ids[3]), ("uuid", "<", ids[6])])] == ids[3:6]
    chunked = seglake.open(sample(tmp_path / "file.chunks", "chunked"))
    assert [record.offset for record in chunked.range([("offset", ">=", 5), ("offset", "<", 8)])] == [5, 6, 7]
    assert [record.offset for record in chunked.range([("offset", ">=", 18)])] == [18, 19]
    tenant = seglake.open(sample(tmp_path / "file.tenant", "tenant"))
    assert {record.tenant for record in tenant.range([("tenant", "==", "t1")])} == {"t1"}
    assert {record.partition for record in tenant.range([("partition", "==", 1)])} == {1}
    assert tenant.tenants(1) == ["t0", "t1", "t2"]
    for wrong in ("partition", "offset"):
        with pytest.raises(ValueError, match=f"cannot filter sealed records by {wrong}"):
            reader.range([(wrong, "==", 1)])
    with pytest.raises(ValueError, match="cannot filter tenant records by uuid"):
        tenant.range([("uuid", "==", ids[0])])


def test_sealing_carries_checksums_over(tmp_path: Path) -> None:
    path = sample(tmp_path / "file.active", "active")
    assert seglake.seal(path, tmp_path / "file.sealed").records == 20
    assert [record.value for record in seglake.open(tmp_path / "file.sealed")] == [
        record.value for record in seglake.open(path)
    ]
    with pytest.raises(FileExistsError):
        seglake.seal(path, tmp_path / "file.sealed")
    damaged = bytearray(path.read_bytes())
    damaged[30] ^= 1
    with pytest.raises(seglake.DamageError):
        seglake.seal(bytes(damaged), tmp_path / "part.sealed")
    report = seglake.seal(bytes(damaged), tmp_path / "part.sealed", on_damage="skip")
    assert (report.records, report.ok) == (19, False)
    assert seglake.verify(tmp_path / "part.sealed").ok


@pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")
def test_a_record_tells_what_is_wrong_with_it(vectors: Path) -> None:
    path = vectors / "autobase" / "dangling.oplog"
    with seglake.open(path, options={"dialect": "draft-1.1"}, on_damage="skip") as reader:
        records = list(reader)
        causes = {span.start: span.cause for span in reader.ledger() if span.kind == "record"}
        bad = next(record for record in records if causes[record.position] is not None)
        found = reader.get(bad.seq)
    assert {record.position: record.cause for record in records} == causes
    assert found is not None
    assert found.cause == "dangling_reference"
    assert repr(found).endswith('cause="dangling_reference")')
    assert "cause" not in found.to_dict()
    sound = next(iter(seglake.open(vectors / "active" / "typical.bin")))
    assert sound.cause is None
    assert "cause" not in repr(sound)


def test_a_conversion_that_loses_columns_names_them(tmp_path: Path) -> None:
    path = tmp_path / "a.active"
    with seglake.create(path, format="active") as writer:
        writer.write(type="a", value=b"b")
    with pytest.raises(seglake.exceptions.ColumnsError) as caught:
        seglake.convert(path, tmp_path / "a.tenant")
    assert (caught.value.lost, caught.value.missing) == (["uuid", "timestamp", "type"], ["partition", "tenant"])
    assert str(caught.value) == (
        "tenant records cannot store uuid, timestamp, type: name in `drop` what to omit; "
        "they need partition, tenant, which the source lacks: set a value for each"
    )
    with pytest.raises(seglake.exceptions.ColumnsError) as less:
        seglake.convert(path, tmp_path / "a.tenant", drop=caught.value.lost)
    again = pickle.loads(pickle.dumps(less.value))
    assert (type(again), again.lost, again.missing) == (seglake.exceptions.ColumnsError, [], ["partition", "tenant"])
    assert (str(again), isinstance(again, ValueError)) == (str(less.value), True)
    assert not (tmp_path / "a.tenant").exists()


# What has an argument of its own; all else is in `options`.
OPENS = {"key"}
CREATES = {"key", "if_exists", "zero_torn_tail"}


def some_value(option: seglake.types.FormatOption) -> Any:
    """A value that an option takes, another than its own where there is one."""
    values: dict[str, Any] = {"flag": not option.default, "key": bytes(32), "index": False}
    return values.get(option.kind, option.choices[-1] if option.choices else option.maximum)


def all_options(which: str) -> dict[str, seglake.types.FormatOption]:
    return {name: option for own in seglake.formats() for name, option in getattr(own, which).items()}


@pytest.mark.parametrize("name", seglake.formats().names)
def test_what_formats_says_is_what_reading_and_writing_do(tmp_path: Path, name: str) -> None:
    own = seglake.formats()[name]
    assert own.name == name

    def opened(option: seglake.types.FormatOption, value: Any) -> None:
        given = {option.name: value} if option.name in OPENS else {"options": {option.name: value}}
        seglake.open(b"", format=name, on_damage="skip", **given).close()

    for option in all_options("open_options").values():
        # A key is taken for every format: which one a file has may not be known.
        if option.name in own.open_options or option.name == "key":
            opened(option, some_value(own.open_options.get(option.name, option)))
        else:
            with pytest.raises(ValueError, match=option.name):
                opened(option, some_value(option))

    def created(option: seglake.types.FormatOption, value: Any) -> seglake.Writer:
        given = {option.name: value} if option.name in CREATES else {"options": {option.name: value}}
        if option.name == "preallocate":
            given = {"options": {option.name: 4096}}
        return seglake.create(tmp_path / f"{option.name}.{own.extension}", format=name, **given)

    for option in all_options("create_options").values():
        if option.name in own.create_options:
            writer = created(option, some_value(own.create_options[option.name]))
            assert writer.extension == own.extension
            if option.name != "dialect":  # on which the columns depend
                assert list(writer.required) == [column.name for column in own.columns if not column.optional]
            writer.abandon()
        else:
            with pytest.raises(ValueError, match=option.name):
                created(option, some_value(option))


@pytest.mark.parametrize("name", seglake.formats().names)
def test_options_of_formats_are_within_their_bounds(tmp_path: Path, name: str) -> None:
    own = seglake.formats()[name]
    for option in own.create_options.values():
        assert option.about and option.kind in ("flag", "number", "bytes", "name", "key")
        if option.name in CREATES or option.kind in ("flag", "name"):
            continue
        assert option.minimum is not None and option.maximum is not None
        wrong: list[tuple[Any, str]] = [(option.minimum - 1, "expected"), (True, "expected a number")]
        if option.maximum < 2**63 - 1:  # as good as no limit
            wrong += [(option.maximum + 1, "expected"), (2**200, "expected"), (-(2**200), "expected")]
        for value, text in wrong:
            with pytest.raises(ValueError, match=f"{option.name} is .*{text}"):
                seglake.create(tmp_path / "new", format=name, options={option.name: value})
        with pytest.raises(TypeError, match=option.name):
            seglake.create(tmp_path / "new", format=name, options={option.name: "5"})
    for name_ in ("none", "append" if "append" not in own.create_options["if_exists"].choices else "overwrite"):
        with pytest.raises(ValueError, match="if_exists is"):
            seglake.create(tmp_path / "new", format=name, if_exists=name_)
    with pytest.raises(ValueError, match="nonsense does not concern"):
        seglake.create(tmp_path / "new", format=name, options={"nonsense": 1})
    for argument in CREATES:
        with pytest.raises(ValueError, match=f"{argument} is an argument of its own"):
            seglake.create(tmp_path / "new", format=name, options={argument: "append"})
    for argument in CREATES - {"key"}:
        with pytest.raises(ValueError, match=f"{argument} is an argument of its own, not one of `options`"):
            seglake.convert(b"", tmp_path / "new", to=name, options={argument: True})
    with pytest.raises(ValueError, match='there is no option "nonsense" here: there are record_bytes, batch_bytes'):
        seglake.open(b"", format=name, options={"nonsense": 1})
    limits: dict[Any, Any] = {each.name: each.minimum for each in own.open_options.values() if each.kind == "bytes"}
    for limit, least in {"record_bytes": 1, "batch_bytes": 1, **limits}.items():
        for format in (name, None):
            with pytest.raises(ValueError, match=f"{limit} is {least - 1}: expected at least {least}, in bytes"):
                seglake.open(b"", format=format, options={limit: least - 1})
            with pytest.raises(ValueError, match=f"{limit} is true or false: expected a number"):
                seglake.open(b"", format=format, options={limit: True})
    with pytest.raises(ValueError, match='there is no option "record_bytes" here'):
        seglake.verify(b"", format=name, options={"record_bytes": 1})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dialect", [None, "draft", "draft-1.1", "autobase"])
def test_columns_of_formats_are_those_of_readers(dialect: Any) -> None:
    for own in seglake.formats(options={"dialect": dialect}):
        given: Any = {"options": {"dialect": dialect}} if "dialect" in own.open_options else {}
        with seglake.open(b"", format=own.name, on_damage="skip", **given) as reader:
            assert reader.schema.names == [column.name for column in own.columns]
        assert set(own.identifier) <= {"position", *(column.name for column in own.columns)}
    with pytest.raises(ValueError, match="nonsense"):
        seglake.formats(options={"dialect": "nonsense"})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", EXTENSIONS)
def test_values_follow_one_another_as_their_column_says(name: str, tmp_path: Path) -> None:
    own = seglake.formats()[name]
    records = list(seglake.open(sample(tmp_path / f"file.{own.extension}", name)))
    assert {column.order for column in own.columns} <= {"any", "ascending", "counting"}
    orders = {column.name: column.order for column in own.columns}
    assert orders[own.identifier[-1]] != "any"
    for column, order in orders.items():
        values = [getattr(record, column) for record in records]
        if order == "ascending":
            assert all(one < other for one, other in pairwise(values))
        if order == "counting":
            groups = [name for name in own.identifier if name != column]
            counted: dict[tuple[Any, ...], int] = {}
            for record, value in zip(records, values, strict=True):
                group = tuple(getattr(record, name) for name in groups)
                assert value == counted.get(group, 0)
                counted[group] = value + 1
