"""The demo's parts that need no Spark: the messages, where they lie, how they are broken, and the checks themselves."""

from __future__ import annotations

import json
import sys
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

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from flights import checks, damage, delays, messages, segments, source
from flights.lake import Lake
from flights.layout import Segment

GREGORIAN_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    return messages.in_segment_order(source.load_flights())


@pytest.fixture(scope="module")
def year(flights: pd.DataFrame) -> list[Segment]:
    return [Segment(month, table) for month, table in messages.messages_by_month(flights).items()]


@pytest.fixture(scope="module")
def small(year: list[Segment]) -> list[Segment]:
    """The first messages of one sound and of all broken months."""
    months = {"2013-01", *damage.DAMAGES}
    return [Segment(whole.month, whole.messages.slice(0, 400)) for whole in year if whole.month in months]


def test_every_flight_of_the_year_is_a_message(year: list[Segment]) -> None:
    assert [segment.month for segment in year] == [f"2013-{month:02}" for month in range(1, 13)]
    assert sum(segment.messages.num_rows for segment in year) == 336_776


def test_uuids_are_version_6_and_ascend_within_and_across_segments(year: list[Segment]) -> None:
    raw = [value for segment in year for value in segment.messages["uuid"].to_pylist()]
    assert all(first < second for first, second in pairwise(raw))
    sample = [uuid.UUID(bytes=value) for value in raw[::997]]
    assert {(value.version, value.variant) for value in sample} == {(6, uuid.RFC_4122)}


def test_a_uuid_holds_the_scheduled_departure(flights: pd.DataFrame, year: list[Segment]) -> None:
    raw = [value for segment in year for value in segment.messages["uuid"].to_pylist()]
    for row in range(0, len(raw), 1999):
        bits = int.from_bytes(raw[row], "big")
        ticks = bits >> 80 << 12 | bits >> 64 & 0xFFF
        scheduled = flights["scheduled"].iloc[row].to_pydatetime()
        assert GREGORIAN_EPOCH + timedelta(microseconds=ticks // 10) == scheduled


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


def test_types_say_what_happened(flights: pd.DataFrame, year: list[Segment]) -> None:
    kinds = pa.concat_tables([segment.messages for segment in year])["type"].to_pandas()
    assert kinds.value_counts().to_dict() == {
        "flight.arrived": int((flights["arr_delay"] < 15).sum()),
        "flight.delayed": int((flights["arr_delay"] >= 15).sum()),
        "flight.diverted": 1_175,
        "flight.cancelled": 8_255,
    }


def test_values_are_the_rows_as_json(flights: pd.DataFrame, year: list[Segment]) -> None:
    january = year[0]
    for record in (0, 838, january.messages.num_rows - 1):
        decoded = json.loads(january.value(record))
        row = flights.iloc[record]
        assert list(decoded) == messages.FIELDS
        assert decoded == {name: None if pd.isna(row[name]) else row[name] for name in messages.FIELDS}


def test_the_data_set_missing_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PACKAGE", "no_such_package_of_flights")
    with pytest.raises(ModuleNotFoundError, match="pip install"):
        source.data_file("flights.csv.zip")


def test_positions_are_those_of_the_reader(tmp_path: Path, small: list[Segment]) -> None:
    january = small[0]
    path = tmp_path / january.file_name
    segments.write_segment(path, january, None)
    with seglake.open(path) as reader:
        found = [(record.position, record.uuid.bytes, record.type, record.value) for record in reader]
    rows = january.messages.to_pylist()
    assert found == [
        (int(position), row["uuid"], row["type"], row["value"])
        for position, row in zip(january.positions, rows, strict=False)
    ]
    assert path.stat().st_size == january.end


def test_touched_names_the_owners_of_bytes(small: list[Segment]) -> None:
    january = small[0]
    start, end = january.extent(7)
    assert list(january.touched(start, start + 1)) == [7]
    assert list(january.touched(end - 1, end)) == [7]
    assert list(january.touched(end - 1, end + 1)) == [7, 8]
    assert list(january.touched(january.extent(398)[0], january.end + 1000)) == [398, 399]


@pytest.mark.parametrize("month", sorted(damage.DAMAGES))
def test_a_broken_segment_reads_as_planned(month: str, tmp_path: Path, small: list[Segment]) -> None:
    segment = next(segment for segment in small if segment.month == month)
    plan = damage.DAMAGES[month](segment)
    path = tmp_path / segment.file_name
    segments.write_segment(path, segment, plan)
    with seglake.open(path) as reader:
        found = [damage.DamagedRange(*span) for span in reader.ledger() if span.cause is not None]
    assert found == list(plan.ranges)
    with pytest.warns(seglake.DamageWarning), seglake.open(path, on_damage="skip") as reader:
        kept = [record.uuid.bytes for record in reader]
    expected = segment.messages["uuid"].to_pylist()
    assert kept == [value for number, value in enumerate(expected) if number not in plan.lost]


def test_segments_are_built_once(tmp_path: Path, small: list[Segment]) -> None:
    folder = tmp_path / "segments"
    plans = damage.plan(small)
    written: list[str] = []
    assert segments.ensure_segments(folder, small, plans, written.append)
    assert written == [segment.month for segment in small]
    assert not segments.ensure_segments(folder, small, plans, written.append)
    assert len(written) == len(small)


@pytest.mark.parametrize("change", ["a byte", "a file more", "a file less", "no marker"])
def test_segments_are_built_again_when_they_are_not_what_was_built(
    change: str, tmp_path: Path, small: list[Segment]
) -> None:
    folder = tmp_path / "segments"
    plans = damage.plan(small)
    segments.ensure_segments(folder, small, plans)
    january = folder / "2013-01.active"
    sound = january.read_bytes()
    match change:
        case "a byte":
            january.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
        case "a file more":
            (folder / "2012-12.active").write_bytes(sound)
        case "a file less":
            january.unlink()
        case _:
            (folder / segments.MARKER).unlink()
    assert segments.ensure_segments(folder, small, plans)
    assert january.read_bytes() == sound
    assert sorted(path.name for path in folder.glob("*.active")) == [segment.file_name for segment in small]


@pytest.fixture
def ingested(tmp_path: Path, small: list[Segment]) -> tuple[Path, Lake]:
    """What a faultless ingest of the small segments writes, made here from the plan and the files."""
    folder = tmp_path / "segments"
    plans = damage.plan(small)
    segments.ensure_segments(folder, small, plans)
    damaged: list[dict[str, object]] = []
    files: list[dict[str, object]] = []
    for segment in small:
        path = folder / segment.file_name
        data = path.read_bytes()
        ranges = plans[segment.month].ranges if segment.month in plans else ()
        for part in ranges:
            fields = {"start": part.start, "end": part.end, "kind": part.kind, "cause": part.cause, "part": 0}
            damaged.append({"path": str(path), **fields, "raw": data[part.start : part.end]})
        size = {kind: sum(p.end - p.start for p in ranges if p.kind == kind) for kind in ("torn_tail", "corrupt")}
        unused = len(data) - len(data.rstrip(b"\0")) if segment.month == "2013-12" else 0
        files.append(
            {
                "path": str(path),
                "bytes": len(data),
                "record_bytes": len(data) - unused - sum(size.values()),
                "header_bytes": 0,
                "padding_bytes": 0,
                "unused_bytes": unused,
                "torn_bytes": size["torn_tail"],
                "corrupt_bytes": size["corrupt"],
                "ok": not ranges,
                "error": None,
            }
        )
    records = checks.expected_records(small, plans)
    return folder, Lake(records, pa.Table.from_pylist(damaged), pa.Table.from_pylist(files))


def failing(folder: Path, small: list[Segment], lake: Lake) -> list[str]:
    return [check.claim for check in checks.all_checks(folder, small, damage.plan(small), lake) if not check.holds]


def test_checks_hold_for_a_faultless_ingest(ingested: tuple[Path, Lake], small: list[Segment]) -> None:
    folder, lake = ingested
    assert failing(folder, small, lake) == []


def with_value(table: pa.Table, column: str, row: int, value: object) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    return table.set_column(table.column_names.index(column), column, pa.array(values, table.schema.field(column).type))


def test_each_check_notices_what_it_is_for(ingested: tuple[Path, Lake], small: list[Segment]) -> None:
    folder, lake = ingested
    records, damaged, files = lake.records, lake.damage, lake.files
    arrived = "every undamaged flight arrived, unchanged, once"
    one_less, one_twice = records.slice(1), pa.concat_tables([records.slice(0, 1), records])
    for wrong in (one_less, one_twice, with_value(records, "value", 5, b"{}"), with_value(records, "type", 5, "?")):
        assert failing(folder, small, replace(lake, records=wrong)) == [arrived]

    listed = "every file is listed, and the damaged ones are known"
    for wrong in (files.slice(1), with_value(files, "ok", 0, False)):
        assert failing(folder, small, replace(lake, files=wrong)) == [listed]

    counted = "every byte of every file is counted"
    off_by_one = files["record_bytes"][2].as_py() - 1
    assert failing(folder, small, replace(lake, files=with_value(files, "record_bytes", 2, off_by_one))) == [counted]

    named = "the damage found is the damage done, byte for byte"
    for wrong in (damaged.slice(1), with_value(damaged, "cause", 0, "bad_uuid")):
        assert failing(folder, small, replace(lake, damage=wrong)) == [named]

    kept = "every damaged byte is kept as it stands in its file"
    shorter = damaged["raw"][0].as_py()[:-1]
    assert failing(folder, small, replace(lake, damage=with_value(damaged, "raw", 0, shorter))) == [kept]


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
