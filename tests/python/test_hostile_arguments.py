"""Arguments that make no sense get an error that says so: of the right kind, with words, and never a crash."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cli_samples import sample
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import seglake

FORMATS = ("active", "sealed", "tenant", "chunked", "oplog", "tfrecord")
OF_READING = (
    *("format", "key", "on_damage", "filters", "columns", "options", "uuid_type"),
    *("memory_map", "threads", "prune", "filesystem"),
)
OF_WRITING = (*("key", "if_exists", "zero_torn_tail", "options"),)
OPTIONS = (
    "trailer",
    "version",
    "chunk_bytes",
    "chunk_records",
    "level",
    "index",
    "memory_bytes",
    "key",
    "dialect",
    "preallocate",
)
OF_OPENING = ("dialect", "index", "record_bytes", "batch_bytes", "chunk_bytes", "lookup_table_bytes")
OF_CONVERTING = (*("to", "drop", "set", "options", "if_exists", "progress"),)
OF_RECORDS = (
    *("uuid", "type", "value", "partition", "tenant", "index", "timestamp", "timestamp_us", "offset", "version"),
    *("checkpointer", "checkpoint", "clock", "abi", "batch", "keys", "digest", "trace", "extra", "optimistic"),
)

numbers = (
    st.integers() | st.sampled_from([-1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 2**200]) | st.floats()
)
texts = st.text(st.characters(exclude_categories=()), max_size=20) | st.sampled_from(
    ["", "a\0b", "\udcff", "\ud800", "x" * 5000, "none", "draft", "active", "../..", "%s", "{0}"]
)
plain: st.SearchStrategy[Any] = st.one_of(
    numbers,
    texts,
    st.binary(max_size=40),
    st.none(),
    st.booleans(),
    st.sampled_from(
        [object(), type, NotImplemented, range(3), uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), Path("a\0b")]
    ),
    st.sampled_from([datetime(1, 1, 1), datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]),
)
anything = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))
# Nothing of this is there, and nothing can be made of it.
no_path = st.one_of(
    st.sampled_from(
        ["", "\0", "a\0b", "\ud800", "x" * 5000, "no/such/folder", ".", "/", b"a\0b", Path("a\0b"), 3.5, object()]
    ),
    st.floats(),
    st.none(),
)

short = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a file of each format."""
    monkeypatch.chdir(tmp_path)
    for format in FORMATS:
        sample(tmp_path, format)
    return tmp_path


def files() -> list[str]:
    return sorted(path.name for path in Path().glob("sample.*") if path.suffix != ".index")


def attempt(call: Callable[[], Any]) -> None:
    """Does what is asked and looks at what comes of it. What goes wrong has to be said in words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call()
            if isinstance(result, (seglake.Reader, seglake.types.Records)):
                for _ in result:
                    pass
            if isinstance(result, (seglake.Reader, seglake.Writer)):
                result.close()
        except (TypeError, ValueError, OSError, seglake.SeglakeError) as error:
            assert str(error)


def fresh() -> str:
    """The name of a file that is not there."""
    for path in Path().glob("new*"):
        path.unlink()
    return "new"


def integers(name: str, number: Any) -> Iterator[Callable[[], Any]]:
    """Calls that take an integer as the argument of this name."""
    given: dict[str, Any] = {name: number}
    if name == "batch_size":
        yield lambda: seglake.open("sample.active").batches(**given)
        yield lambda: seglake.incremental.resume("sample.active", None).batches(**given)
        with seglake.SegmentLog("log") as log:
            yield lambda: log.batches(**given)
    elif name == "threads":
        for function in (seglake.open, seglake.verify):
            yield lambda function=function: function("sample.active", **given)
    elif name == "size":
        yield lambda: seglake.incremental.resume("sample.active", None, **given)
        yield lambda: seglake.incremental.identity("sample.active", **given)
    elif name == "explain":
        yield lambda: seglake.verify("sample.active", **given)
    elif name == "seq":
        yield lambda: seglake.oplog.decode(b"", **given)
    elif name in ("segment_bytes", "retention bytes"):
        options: dict[str, Any] = {"retention": {"bytes": number}} if name != "segment_bytes" else given
        yield lambda: seglake.SegmentLog("log", **options)
    else:
        with seglake.open("sample.tenant") as reader:
            calls: dict[str, Callable[[], Any]] = {
                "partition": lambda: reader.tenants(number),
                "position": lambda: reader.records_from(number),
                "start": lambda: reader.read_bytes(number, 1),
                "end": lambda: reader.read_bytes(0, number),
                "max_bytes": lambda: reader.split(number),
                "rows": lambda: reader.head(number),
            }
            yield calls[name]


INTEGERS = (
    *("batch_size", "threads", "size", "explain", "seq", "segment_bytes", "retention bytes"),
    *("partition", "position", "start", "end", "max_bytes", "rows"),
)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("number", [-1, -(2**63) - 1, 2**64, 2**200])
def test_integers_out_of_range(name: str, number: int) -> None:
    bound = "at least [01]" if number < 0 else "at most [0-9]+"
    for call in integers(name, number):
        with pytest.raises(ValueError, match=f"^{name} is {number}: it is {bound}"):
            call()


@pytest.mark.parametrize("name", INTEGERS)
def test_what_is_not_an_integer(name: str) -> None:
    for wrong in ("1", 1.5, object()):
        for call in integers(name, wrong):
            with pytest.raises(TypeError, match=f"{name}.*int|int.*{name}"):
                call()


@short
@given(name=st.sampled_from(OF_READING), value=anything)
def test_of_reading(name: str, value: Any) -> None:
    for file in files():
        attempt(lambda file=file: seglake.open(file, **{name: value}))
        attempt(lambda file=file: seglake.verify(file, **{name: value}))
        attempt(lambda file=file: seglake.detect(file, **{name: value}))


@short
@given(path=no_path | anything)
def test_sources(path: Any) -> None:
    for function in (seglake.open, seglake.verify, seglake.detect):
        attempt(lambda function=function: function(path))
    attempt(lambda: seglake.oplog.decode(path))
    attempt(lambda: seglake.oplog.decode_system(path, dialect="draft-1.1"))


@short
@given(path=no_path)
def test_places(path: Any) -> None:
    before = sorted(Path().iterdir())
    attempt(lambda: seglake.create(path, format="active"))
    attempt(lambda: seglake.convert("sample.active", path, to="sealed"))
    attempt(lambda: seglake.seal("sample.active", path))
    attempt(lambda: seglake.recover("sample.active", path))
    attempt(lambda: seglake.recover("sample.active", fresh(), quarantine=path))
    fresh()
    if path is not None:
        attempt(lambda: seglake.index("sample.chunks", path))
    assert sorted(Path().iterdir()) == before


@short
@given(name=st.sampled_from(OF_WRITING), value=anything, format=st.sampled_from(FORMATS))
def test_of_writing(name: str, value: Any, format: Any) -> None:
    attempt(lambda: seglake.create(fresh(), format=format, **{name: value}))


@short
@given(name=st.sampled_from(OPTIONS), value=anything, format=st.sampled_from(FORMATS))
def test_of_options(name: str, value: Any, format: Any) -> None:
    attempt(lambda: seglake.create(fresh(), format=format, options={name: value}))
    attempt(lambda: seglake.convert("sample.active", fresh(), to=format, options={name: value}))


@short
@given(name=st.sampled_from(OF_OPENING) | texts, value=anything)
def test_of_options_of_reading(name: str, value: Any) -> None:
    for file in files():
        for function in (seglake.open, seglake.verify):
            attempt(lambda file=file, function=function: function(file, options={name: value}))


@short
@given(column=texts | st.sampled_from(["uuid", "timestamp", "type", "value", "offset", "tenant"]), value=anything)
def test_of_filters(column: str, value: Any) -> None:
    for file in files():
        for operator in ("==", "!=", ">", "in", "not in", column):
            attempt(lambda file=file, operator=operator: seglake.open(file, filters=[(column, operator, value)]))
        attempt(lambda file=file: seglake.open(file, filters=[value]))


@short
@given(name=st.sampled_from(OF_CONVERTING), value=anything)
def test_of_converting(name: str, value: Any) -> None:
    attempt(lambda: seglake.convert("sample.active", fresh(), **{"to": "sealed", name: value}))


@short
@given(name=st.sampled_from(OF_RECORDS), value=anything)
def test_records(name: str, value: Any) -> None:
    for format in FORMATS:
        whole: dict[str, Any] = {
            "active": {"type": "t", "value": b""},
            "sealed": {"type": "t", "value": b""},
            "tenant": {"partition": 1, "tenant": "t", "value": b""},
            "chunked": {"timestamp_us": 0, "value": b""},
            "oplog": {"version": 1, "checkpointer": 1, "clock": [], "abi": 0, "batch": 1, "value": b""},
            "tfrecord": {"value": b""},
        }[format]
        with seglake.create(fresh(), format=format) as writer:
            attempt(lambda writer=writer, whole=whole: writer.write({**whole, name: value}))
            attempt(lambda writer=writer: writer.write(value))
            attempt(lambda writer=writer: writer.write_batch(value))
    for dialect in ("draft", "draft-1.1", "autobase"):
        attempt(lambda dialect=dialect: seglake.oplog.encode(dialect=dialect, **{name: value}))


@short
@given(values=st.lists(anything, max_size=3))
def test_look_ups(values: list[Any]) -> None:
    for file in files():
        with seglake.open(file) as reader:
            for call in look_ups(reader, values):
                attempt(call)


def look_ups(reader: seglake.Reader, values: list[Any]) -> Iterator[Callable[[], Any]]:
    first = values[0] if values else None
    yield lambda: reader.get(*values)
    yield lambda: reader.get_many(values)
    yield lambda: reader.get_many(first)
    yield lambda: reader.range(first)
    yield lambda: reader.range(values)
    yield lambda: reader.range([("offset", ">=", first)])
    yield lambda: reader.range([("tenant", "in", first)])
    yield lambda: reader.range([("partition", "in", first)])
    yield lambda: reader.records_from(first)
    yield lambda: reader.tenants(first)
    yield lambda: reader.read_bytes(first, 10)
    yield lambda: reader.read_bytes(0, first)


def test_types_of_arrow_are_nested_within_a_limit() -> None:
    type = pa.int8()
    for _ in range(2000):
        type = pa.list_(type)
    with seglake.open(files()[0]) as reader, pytest.raises(TypeError, match="nested at most 64 deep"):
        reader.get_many(pa.array([None], type))
