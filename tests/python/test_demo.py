"""The demo's parts that need no Spark: the messages, where they lie, how they are broken, and the checks themselves."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import seglake
from flights import checks, delays, files, messages, source
from flights.damage import DamagedRange
from flights.formats import FORMATS, Segment, all_segments, oplog
from flights.lake import Lake
from flights.layout import Layout

GREGORIAN_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)
BROKEN = ["2013-03.active", "2013-06.active", "2013-09.active", "2013-12.active"]
BROKEN += ["2013-03.sealed", "2013-06.tenant", "2013-09.chunks", "JFK.oplog"]
DAMAGED_MONTHS = {name[:7] for name in BROKEN if name.startswith("2013")}


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    return messages.in_segment_order(source.load_flights())


@pytest.fixture(scope="module")
def year(flights: pd.DataFrame) -> dict[str, pa.Table]:
    return messages.messages_by_month(flights)


@pytest.fixture
def small(tmp_path: Path, year: dict[str, pa.Table]) -> list[Segment]:
    """Segments of the first messages of one month that stays sound in all formats, and of those that are broken."""
    months = {month: table.slice(0, 1200) for month, table in year.items() if month in {"2013-01", *DAMAGED_MONTHS}}
    return all_segments(tmp_path / "segments", months)


def named(segments: list[Segment], name: str) -> Segment:
    return next(segment for segment in segments if segment.path.name == name)


def open_segment(segment: Segment, **options: object) -> seglake.Reader:
    dialect = oplog.DIALECT if segment.format == "oplog" else None
    return seglake.open(segment.path, format=segment.format, options={"dialect": dialect}, **options)


def test_every_flight_of_the_year_is_a_message(year: dict[str, pa.Table]) -> None:
    assert list(year) == [f"2013-{month:02}" for month in range(1, 13)]
    assert sum(table.num_rows for table in year.values()) == 336_776
    assert pa.concat_tables(year.values())["offset"].to_pylist() == list(range(336_776))


def test_uuids_are_version_6_and_ascend_within_and_across_months(year: dict[str, pa.Table]) -> None:
    texts = [text for table in year.values() for text in table["uuid"].to_pylist()]
    assert all(first < second for first, second in pairwise(texts))
    sample = [uuid.UUID(text) for text in texts[::997]]
    assert {(value.version, value.variant) for value in sample} == {(6, uuid.RFC_4122)}


def test_a_uuid_and_the_timestamp_hold_the_scheduled_departure(
    flights: pd.DataFrame, year: dict[str, pa.Table]
) -> None:
    rows = pa.concat_tables(year.values()).select(["uuid", "timestamp"])
    for row in range(0, rows.num_rows, 1999):
        bits = uuid.UUID(rows["uuid"][row].as_py()).int
        ticks = bits >> 80 << 12 | bits >> 64 & 0xFFF
        scheduled = flights["scheduled"].iloc[row].to_pydatetime()
        assert GREGORIAN_EPOCH + timedelta(microseconds=ticks // 10) == scheduled
        assert rows["timestamp"][row].as_py() == scheduled


def test_partition_and_tenant_are_airport_and_airline(flights: pd.DataFrame, year: dict[str, pa.Table]) -> None:
    rows = pa.concat_tables(year.values())
    assert rows["partition"].to_pylist() == flights["origin"].map({"EWR": 1, "JFK": 2, "LGA": 3}).tolist()
    assert rows["tenant"].to_pylist() == flights["carrier"].tolist()


def test_the_scheduled_departure_is_new_york_time(flights: pd.DataFrame) -> None:
    # The table has the hour in UTC too; in summer and in winter both ways must agree.
    assert (pd.to_datetime(flights["time_hour"]) + pd.to_timedelta(flights["minute"], unit="min")).equals(
        flights["scheduled"]
    )
    july = flights[(flights["month"] == 7) & (flights["sched_dep_time"] == 1545)].iloc[0]
    local = datetime(2013, 7, int(july["day"]), 15, 45, tzinfo=ZoneInfo("America/New_York"))
    assert july["scheduled"] == local


def test_sequence_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="14 bits, 16384 needs more"):
        messages.pack_uuids(np.zeros(1, np.uint64), np.full(1, 1 << 14, np.uint64))


def test_types_say_what_happened(flights: pd.DataFrame, year: dict[str, pa.Table]) -> None:
    kinds = pa.concat_tables(year.values())["type"].to_pandas()
    assert kinds.value_counts().to_dict() == {
        "flight.arrived": int((flights["arr_delay"] < 15).sum()),
        "flight.delayed": int((flights["arr_delay"] >= 15).sum()),
        "flight.diverted": 1_175,
        "flight.cancelled": 8_255,
    }


def test_values_are_the_rows_as_json(flights: pd.DataFrame, year: dict[str, pa.Table]) -> None:
    january = year["2013-01"]
    for record in (0, 838, january.num_rows - 1):
        decoded = json.loads(january["value"][record].as_py())
        row = flights.iloc[record]
        assert list(decoded) == messages.FIELDS
        assert decoded == {name: None if pd.isna(row[name]) else row[name] for name in messages.FIELDS}


def test_the_data_set_missing_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PACKAGE", "no_such_package_of_flights")
    with pytest.raises(ModuleNotFoundError, match="pip install"):
        source.data_file("flights.csv.zip")


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.format)
def test_layouts_are_those_of_the_reader(format: type[Segment], small: list[Segment]) -> None:
    for segment in small:
        if segment.format == "active" or isinstance(segment, format):
            files.write_segment(segment)
    segment = next(segment for segment in small if isinstance(segment, format))
    with open_segment(segment, columns=segment.columns, uuid_type="string") as reader:
        pieces = [(span.start, span.end) for span in reader.ledger() if span.kind in {"record", "block", "chunk"}]
        records = pa.table(reader)
    layout = segment.layout
    assert pieces == [layout.extent(piece) for piece in range(layout.pieces)]
    assert layout.size == segment.path.stat().st_size
    expected = segment.messages.select(segment.columns)
    assert records.cast(expected.schema).equals(expected)


def test_a_layout_that_is_wrong_is_noticed(small: list[Segment], monkeypatch: pytest.MonkeyPatch) -> None:
    january = named(small, "2013-01.active")
    sound = january.layout
    monkeypatch.setattr(january, "locate", lambda: replace(sound, size=sound.size + 1))
    del january.layout
    with pytest.raises(RuntimeError, match="disagree"):
        files.write_segment(january)


def test_touched_names_the_messages_in_the_pieces_that_own_bytes() -> None:
    # Three pieces with gaps between them: of two messages, of none, of three.
    layout = Layout(np.array([10, 30, 40]), np.array([20, 40, 60]), np.array([0, 2, 2, 5]), 64)
    assert layout.touched([(0, 10)]) == ()
    assert layout.touched([(10, 11)]) == layout.touched([(19, 20)]) == layout.touched([(0, 30)]) == (0, 1)
    assert layout.touched([(20, 30)]) == layout.touched([(30, 40)]) == ()
    assert layout.touched([(39, 41)]) == layout.touched([(59, 64)]) == (2, 3, 4)
    assert layout.touched([(50, 51), (12, 13), (13, 14)]) == (0, 1, 2, 3, 4)


def test_the_oplogs_have_to_hold_the_flights_of_the_table(tmp_path: Path, year: dict[str, pa.Table]) -> None:
    with pytest.raises(RuntimeError, match="expected the first flights from EWR"):
        oplog.Oplog.of_months(tmp_path, {"2013-01": year["2013-02"]})


def test_the_files_that_are_broken(small: list[Segment]) -> None:
    files.ensure_files(small[0].path.parents[1], small)
    assert [segment.path.name for segment in small if segment.damage] == BROKEN
    # The pieces that are lost: records, a block, a chunk.
    lost = {segment.path.name: segment.flights_lost for segment in small if segment.damage}
    assert lost == dict(zip(BROKEN, [3, 1, 1, 1, 1, 2, 500, 1], strict=True))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_reads_as_planned(name: str, small: list[Segment]) -> None:
    files.ensure_files(small[0].path.parents[1], small)
    segment = named(small, name)
    assert segment.damage
    with open_segment(segment) as reader:
        found = [DamagedRange(*span) for span in reader.ledger() if span.cause is not None]
    assert found == list(segment.damage.ranges)
    with pytest.warns(seglake.exceptions.DamageWarning):
        kept = pa.table(open_segment(segment, on_damage="skip", columns=segment.columns, uuid_type="string"))
    expected = segment.records.select(segment.columns)
    assert kept.cast(expected.schema).equals(expected)


def test_files_are_built_once(small: list[Segment]) -> None:
    folder = small[0].path.parents[1]
    written: list[str] = []
    assert files.ensure_files(folder, small, written.append)
    assert written == [segment.path.name for segment in small]
    assert not files.ensure_files(folder, small, written.append)
    assert len(written) == len(small)


@pytest.mark.parametrize("change", ["a byte", "a file more", "a file less", "no marker"])
def test_files_are_built_again_when_they_are_not_what_was_built(change: str, small: list[Segment]) -> None:
    folder = small[0].path.parents[1]
    files.ensure_files(folder, small)
    built = sorted(folder.rglob("*"))
    january = named(small, "2013-01.active").path
    sound = january.read_bytes()
    match change:
        case "a byte":
            january.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
        case "a file more":
            january.with_name("2012-12.active").write_bytes(sound)
        case "a file less":
            january.unlink()
        case _:
            (folder / files.MARKER).unlink()
    assert files.ensure_files(folder, small)
    assert january.read_bytes() == sound
    assert sorted(folder.rglob("*")) == built


def faultless(segments: list[Segment]) -> Lake:
    """What a faultless ingest of some segments writes, made here from the plan and the files."""
    damaged: list[dict[str, object]] = []
    listed: list[dict[str, object]] = []
    records: list[pa.Table] = []
    for segment in sorted(segments, key=lambda segment: segment.path):
        path = str(segment.path)
        data = segment.path.read_bytes()
        ranges = segment.damage.ranges if segment.damage else ()
        for part in ranges:
            fields = {"start": part.start, "end": part.end, "kind": part.kind, "cause": part.cause, "part": 0}
            damaged.append({"path": path, **fields, "raw": data[part.start : part.end]})
        size = {kind: sum(p.end - p.start for p in ranges if p.kind == kind) for kind in ("torn_tail", "corrupt")}
        sizes = dict.fromkeys(checks.BYTE_COLUMNS, 0)
        sizes |= {"torn_bytes": size["torn_tail"], "corrupt_bytes": size["corrupt"]}
        sizes["record_bytes"] = len(data) - sum(size.values())
        status = "damaged" if ranges else "sound"
        listed.append({"path": path, "nbytes": len(data), **sizes, "status": status, "error": None})
        records.append(segment.records.append_column("path", pa.array([path] * segment.records.num_rows)))
    return Lake(pa.concat_tables(records), pa.Table.from_pylist(damaged), pa.Table.from_pylist(listed))


def failing(segments: list[Segment], lake: Lake) -> list[str]:
    return [check.claim for check in checks.all_checks(segments, lake) if not check.holds]


@pytest.fixture(params=FORMATS, ids=lambda format: format.format)
def ingested(request: pytest.FixtureRequest, small: list[Segment]) -> tuple[list[Segment], Lake]:
    """The segments of a format, and what a faultless ingest makes of them."""
    files.ensure_files(small[0].path.parents[1], small)
    segments = [segment for segment in small if isinstance(segment, request.param)]
    return segments, faultless(segments)


def test_checks_hold_for_a_faultless_ingest(ingested: tuple[list[Segment], Lake]) -> None:
    segments, lake = ingested
    assert failing(segments, lake) == []


def with_value(table: pa.Table, column: str, row: int, value: object) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    return table.set_column(table.column_names.index(column), column, pa.array(values, table.schema.field(column).type))


def test_each_check_notices_what_it_is_for(ingested: tuple[list[Segment], Lake]) -> None:
    segments, lake = ingested
    records, damaged, listed = lake.records, lake.damage, lake.files
    arrived = "every undamaged message arrived, unchanged, once"
    one_less, one_twice = records.slice(1), pa.concat_tables([records.slice(0, 1), records])
    another_key = with_value(records, segments[0].columns[0], 5, records[segments[0].columns[0]][-1].as_py())
    other_file = with_value(records, "path", 0, records["path"][-1].as_py())
    for wrong in (one_less, one_twice, with_value(records, "value", 5, b"{}"), another_key, other_file):
        assert failing(segments, replace(lake, records=wrong)) == [arrived]

    all_listed = "every file is listed, and the damaged ones are known"
    for wrong in (listed.slice(1), with_value(listed, "status", 0, "limit")):
        assert failing(segments, replace(lake, files=wrong)) == [all_listed]

    counted = "every byte of every file is counted"
    off_by_one = listed["record_bytes"][2].as_py() - 1
    assert failing(segments, replace(lake, files=with_value(listed, "record_bytes", 2, off_by_one))) == [counted]

    found = "the damage found is the damage done, byte for byte"
    for wrong in (damaged.slice(1), with_value(damaged, "cause", 0, "bad_uuid")):
        assert failing(segments, replace(lake, damage=wrong))[0] == found

    kept = "every damaged byte is kept as it stands in its file"
    shorter = damaged["raw"][0].as_py()[:-1]
    assert failing(segments, replace(lake, damage=with_value(damaged, "raw", 0, shorter))) == [kept]


def test_the_undamaged_rows_are_those_that_are_not_lost(flights: pd.DataFrame, small: list[Segment]) -> None:
    march = named(small, "2013-03.active")
    assert march.damage
    first = march.messages["offset"][0].as_py()
    expected = [first + number for number in range(march.messages.num_rows) if number not in march.damage.lost]
    assert delays.undamaged(flights, [march]).index.tolist() == expected
    # 200 flights, the last of them torn, and none for what the writers say to each other.
    assert len(delays.undamaged(flights, [named(small, "JFK.oplog")])) == 199


def test_mean_delay_of_the_table(flights: pd.DataFrame) -> None:
    answer = {delay.carrier: delay for delay in delays.delays_by_table(flights)}
    hawaiian = flights[(flights["carrier"] == "HA") & flights["arr_delay"].notna()]["arr_delay"].tolist()
    assert answer["HA"] == ("HA", len(hawaiian), sum(hawaiian), sum(hawaiian) / len(hawaiian))
    assert sum(delay.flights for delay in answer.values()) == 327_346


def test_answers_that_differ_do_not_hold(flights: pd.DataFrame) -> None:
    answer = delays.delays_by_table(flights)
    assert delays.same_answer(answer, list(answer)).holds
    assert not delays.same_answer(answer, answer[1:]).holds
    assert not delays.same_answer(answer, [answer[0]._replace(total_minutes=0), *answer[1:]]).holds
