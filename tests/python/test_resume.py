"""`resume`, `identity` and `Position`: reading what a file grew by."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import seglake
from seglake._native import list_log


def segment(path: Path, count: int) -> list[bytes]:
    values = [b'{"order": %d}' % own for own in range(count)]
    with seglake.create(path, format="active") as writer:
        for value in values:
            writer.write(type="order", value=value)
    return values


def test_growth_after_growth_gives_each_record_once(tmp_path: Path) -> None:
    path = tmp_path / "orders.active"
    values = segment(path, 5)
    size = path.stat().st_size
    found: list[bytes] = []
    position = None
    for listed in (0, 10, size // 2, size - 1, size):
        with seglake.incremental.resume(path, position, size=listed) as reader:
            assert (reader.position, reader.pending_bytes) == (None, None)
            found += [record.value for record in reader]
            assert reader.position is not None
            assert reader.pending_bytes is not None
            assert reader.position.byte_offset + reader.pending_bytes <= listed
            position = pickle.loads(pickle.dumps(reader.position))
            assert position == reader.position
            assert hash(position) == hash(reader.position)
            assert seglake.incremental.Position.from_json(position.to_json()) == position
    assert found == values
    assert position is not None
    assert position.format == "active"
    assert position.identity == seglake.incremental.identity(path)
    assert position.uuid == list(seglake.open(path))[-1].uuid
    assert seglake.incremental.identity(path, size=10) is None


def test_every_pass_is_of_what_was_added(tmp_path: Path) -> None:
    path = tmp_path / "orders.active"
    segment(path, 5)
    size = path.stat().st_size
    first = seglake.incremental.resume(path, None, size=size // 2)
    assert first.count_rows() == 2
    rest = seglake.incremental.resume(path, first.position)
    assert pa.table(rest).num_rows == 3
    assert rest.report.records == 3
    assert sum(batch.num_rows for batch in rest.batches(ahead=True)) == 3
    assert [span.kind for span in rest.ledger()] == ["record"] * 3
    assert rest.position is not None
    assert rest.position.byte_offset == size
    again = pickle.loads(pickle.dumps(rest))
    assert (again.count_rows(), again.position) == (3, rest.position)
    with path.open("rb") as file:
        assert seglake.incremental.resume(file, first.position).count_rows() == 3
    assert seglake.incremental.resume(io.BytesIO(path.read_bytes()), first.position).count_rows() == 3
    types = seglake.incremental.resume(path, first.position, filters=[("type", "==", "none")])
    assert types.count_rows() == 0
    assert types.position is not None
    assert types.position.byte_offset == size


def test_an_unfinished_record_is_damage_where_the_file_is_final(tmp_path: Path) -> None:
    path = tmp_path / "orders.active"
    segment(path, 3)
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    reader = seglake.incremental.resume(path, None)
    # A part of a checksum may end with zeros, which are nothing that waits.
    unfinished = whole[len(whole) // 3 * 2 : -3].rstrip(b"\0")
    assert (reader.count_rows(), reader.pending_bytes) == (2, len(unfinished))
    assert reader.damage == []
    with pytest.raises(seglake.DamageError):
        seglake.incremental.resume(path, None, final=True).count_rows()
    final = seglake.incremental.resume(path, None, final=True, on_damage="skip")
    batches = list(final.batches(warn=False))
    assert [span.kind for batch in batches for span in batch.damage] == ["torn_tail"]
    path.write_bytes(whole)
    assert seglake.incremental.resume(path, final.position).count_rows() == 1


def test_a_replaced_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "orders.active"
    segment(path, 3)
    reader = seglake.incremental.resume(path, None)
    reader.count_rows()
    whole = path.read_bytes()
    path.unlink()
    segment(path, 4)
    with pytest.raises(seglake.exceptions.ReplacedError) as replaced:
        seglake.incremental.resume(path, reader.position)
    error = replaced.value
    assert (error.path, error.byte_offset) == (str(path), 0)
    assert seglake.incremental.identity(path) in error.actual
    assert error.next == "read it from the beginning, as another file"
    assert pickle.loads(pickle.dumps(error)).expected == error.expected
    path.write_bytes(whole[:-5])
    with pytest.raises(seglake.exceptions.ReplacedError, match=f"expected at least the {len(whole)} bytes"):
        seglake.incremental.resume(path, reader.position)


def test_a_wrong_key_is_told(tmp_path: Path) -> None:
    path = tmp_path / "orders.active"
    segment(path, 3)
    with pytest.raises(seglake.WrongKeyError):
        seglake.incremental.resume(path, None, key=b"k" * 32).count_rows()
    reader = seglake.incremental.resume(path, None, key=b"k" * 32, on_damage="skip")
    assert (reader.count_rows(), reader.report.wrong_key) == (0, True)
    # A checksum may end with zeros, which no key tells from unused space.
    assert reader.pending_bytes == len(path.read_bytes().rstrip(b"\0"))


def test_a_segment_that_is_sealed_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "orders.active"
    values = segment(path, 6)
    first = seglake.incremental.resume(path, None, size=path.stat().st_size // 2)
    found = [record.value for record in first]
    sealed = tmp_path / "orders.sealed"
    seglake.seal(path, sealed)
    assert seglake.incremental.identity(sealed) == seglake.incremental.identity(path)
    rest = seglake.incremental.resume(sealed, first.position)
    found += [record.value for record in rest]
    assert found == values
    assert rest.position is not None
    assert seglake.incremental.resume(sealed, rest.position).count_rows() == 0


def test_a_log_is_read_on_across_its_seals(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    positions: dict[int, seglake.incremental.Position | None] = {}
    found: list[bytes] = []

    def read_on() -> None:
        for listed in list_log(folder)[0]:
            reader = seglake.incremental.resume(listed, positions.get(listed.sequence))
            found.extend(record.value for record in reader)
            assert reader.pending_bytes == 0
            positions[listed.sequence] = reader.position

    written: list[bytes] = []
    with seglake.SegmentLog(folder, segment_bytes=1 << 16) as log:
        for number in range(60):
            value = b"%4d" % number * 1000
            log.write("order", value)
            written.append(value)
            if number % 7 == 0:
                read_on()
                assert found == written
    read_on()
    assert found == written
    assert len(positions) > 2
    with pytest.raises(ValueError, match="size does not concern a segment of a log"):
        seglake.incremental.resume(list_log(folder)[0][0], None, size=1)


@pytest.mark.parametrize("format", ["sealed", "tenant"])
def test_the_position_after_all_of_a_complete_file(tmp_path: Path, format: str) -> None:
    path = tmp_path / "orders"
    fields = {"sealed": {"type": "order"}, "tenant": {"partition": 1, "tenant": "a"}}[format]
    with seglake.create(path, format=format) as writer:
        writer.write(value=b"1", **fields)
    reader = seglake.incremental.resume(path, None)
    position = reader.position_after_all()
    assert reader.position is None
    assert reader.count_rows() == 1
    assert position == reader.position
    assert seglake.incremental.resume(path, position).position_after_all() is None
    assert seglake.open(path).position_after_all() is None
    reader.close()
    with pytest.raises(ValueError, match="closed"):
        reader.position_after_all()


def test_a_pass_for_the_end_alone_leaves_chunks_out(tmp_path: Path) -> None:
    path = tmp_path / "orders.chunks"
    with seglake.create(path, format="chunked", options={"chunk_records": 10}) as writer:
        for number in range(95):
            writer.write(timestamp=number, value=b"%d" % number)
    begins = sorted({record.position for record in seglake.open(path)})
    damaged = bytearray(path.read_bytes())
    damaged[begins[4] + 30] ^= 0x55
    path.write_bytes(damaged)
    size = begins[-1] + 30  # the last chunk is unfinished
    whole = seglake.incremental.resume(path, None, size=size, on_damage="skip")
    end = seglake.incremental.resume(path, None, size=size, on_damage="skip", only_end=True)
    with pytest.warns(seglake.exceptions.DamageWarning):
        assert whole.count_rows() == 80
    assert end.count_rows() == 10
    assert end.report.damage == []
    assert (end.position, end.pending_bytes) == (whole.position, whole.pending_bytes)
    assert pickle.loads(pickle.dumps(end)).count_rows() == 10
    # Reading strictly, it changes nothing.
    with pytest.raises(seglake.DamageError):
        seglake.incremental.resume(path, None, size=size, only_end=True).count_rows()


def test_the_position_after_all_of_a_file_that_may_grow_takes_a_pass(tmp_path: Path) -> None:
    segment(tmp_path / "orders.active", 2)
    assert seglake.incremental.resume(tmp_path / "orders.active", None).position_after_all() is None


def test_a_position_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "orders.active"
    segment(path, 3)
    reader = seglake.incremental.resume(path, None)
    reader.count_rows()
    assert reader.position is not None
    fields = json.loads(reader.position.to_json())
    for change in ({"version": 2}, {"offset": 1}, {"format": "none"}, {"more": 1}):
        with pytest.raises(ValueError, match="this is not a position in a file"):
            seglake.incremental.Position.from_json(json.dumps({**fields, **change}))
    assert seglake.open(path).position is None
