"""Iterating over Records, which are made several at a time and share texts that repeat."""

import threading
import tracemalloc
import types
from pathlib import Path

import pytest

import seglake

MIB = 1 << 20


def test_records_keep_their_order_and_fields(tmp_path: Path) -> None:
    # 100 types share few places among the texts that are kept. Values of 0 to 40 kB end a turn early or fill it.
    names = [f"{number:02}" for number in range(100)]
    expected = [(names[number * 7 % 100], b"v" * (number * 997 % 40_000)) for number in range(500)]
    path = tmp_path / "many.active"
    with seglake.create(path, format="active") as writer:
        for name, value in expected:
            writer.write(type=name, value=value)
    records = list(seglake.open(path))
    assert [(record.type, record.value) for record in records] == expected
    assert [record.type_bytes for record in records] == [name.encode() for name, _ in expected]
    assert [record.to_dict()["value"] for record in records] == [value for _, value in expected]
    positions = [record.position for record in records]
    assert positions == sorted(set(positions))


def test_types_that_are_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "odd.active"
    with seglake.create(path, format="active") as writer:
        for name in (b"\xff\\", b"\xfe\\", b"\xff\\"):
            writer.write(type=name, value=b"")
    assert [record.type for record in seglake.open(path)] == [r"\xff\x5c", r"\xfe\x5c", r"\xff\x5c"]


def test_tenants_of_any_length(tmp_path: Path) -> None:
    tenants = [b"", b"a" * 255, b"b" * 254 + b"a", b"a" * 256, b"b" * 255 + b"a"]
    path = tmp_path / "tenants.tseg"
    with seglake.create(path, format="tenant") as writer:
        for tenant in tenants:
            for value in (b"1", b"2"):
                writer.write(partition=7, tenant=tenant, value=value)
    found = [(record.partition, record.tenant_bytes, record.index, record.value) for record in seglake.open(path)]
    assert sorted(found) == sorted(
        (7, tenant, index, b"12"[index : index + 1]) for tenant in tenants for index in (0, 1)
    )


def test_value_is_a_member_that_python_reads_without_a_call(tmp_path: Path) -> None:
    path = tmp_path / "one.active"
    with seglake.create(path, format="active") as writer:
        writer.write(type="t", value=b"v")
    record = next(iter(seglake.open(path)))
    assert isinstance(vars(seglake.Record)["value"], types.MemberDescriptorType)
    assert (seglake.Record.value.__doc__ or "").startswith("The message; None where an oplog's has none.")
    with pytest.raises(AttributeError):
        record.value = b"w"  # pyright: ignore[reportAttributeAccessIssue]
    assert "value=<1 bytes>" in repr(record)


def test_a_large_record_is_made_alone(tmp_path: Path) -> None:
    path = tmp_path / "large.active"
    with seglake.create(path, format="active") as writer:
        for _ in range(8):
            writer.write(type="t", value=bytes(MIB))
    records = iter(seglake.open(path))
    tracemalloc.start()
    try:
        first = next(records)
        made, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(first.value) == MIB
    assert MIB <= made < 1.5 * MIB
    assert len(list(records)) == 7


def test_closing_ends_records_that_were_made_ahead(tmp_path: Path) -> None:
    path = tmp_path / "closed.active"
    with seglake.create(path, format="active") as writer:
        for _ in range(10):
            writer.write(type="t", value=b"v")
    reader = seglake.open(path)
    records = iter(reader)
    first = next(records)
    reader.close()
    with pytest.raises(ValueError, match="closed"):
        next(records)
    assert first.value == b"v"


def test_threads_take_each_record_once(tmp_path: Path) -> None:
    path = tmp_path / "shared.active"
    with seglake.create(path, format="active") as writer:
        for number in range(20_000):
            writer.write(type="t", value=b"%d" % number)
    records = iter(seglake.open(path))
    taken: list[list[int]] = []

    def take() -> None:
        taken.append([int(record.value) for record in records])

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(numbers == sorted(numbers) for numbers in taken)
    assert sorted(number for numbers in taken for number in numbers) == list(range(20_000))
