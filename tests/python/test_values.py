"""Values that people type: what a text stands for, and what is said of one that stands for nothing."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seglake
from seglake import _values as values
from seglake._text import unescape

SOME_UUID = "1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3"
NOT_V6 = "0d7a4d9c-6a0b-4b3e-9a59-3c1f5d2b8e11"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("4096", 4096),
        ("1b", 1),
        ("64KiB", 64 << 10),
        ("3kb", 3 << 10),
        ("128m", 128 << 20),
        (" 1 GB ", 1 << 30),
        ("2t", 2 << 40),
        ("8191P", 8191 << 50),
        ("999999999999999999", 10**18 - 1),
    ],
)
def test_sizes(text: str, number: int) -> None:
    assert values.size(text) == number


@pytest.mark.parametrize(
    "text", ["", "many", "1.5", "-1", "+1", "5ib", "1 K i B", "8192P", "1" * 19, "\N{ARABIC-INDIC DIGIT ONE}", "0x10"]
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(values.WrongValueError, match="expected a number of bytes such as 4096 or 64MiB") as raised:
        values.size(text)
    assert raised.value.text == text


def test_a_size_of_nothing() -> None:
    with pytest.raises(values.WrongValueError, match="'0k': expected at least one byte"):
        values.size("0k", 1)


@pytest.mark.parametrize(
    ("text", "zone", "moment"),
    [
        ("2024-06-15T05:00", None, datetime(2024, 6, 15, 5, tzinfo=UTC)),
        ("2024-06-15T05:00", ZoneInfo("Europe/Berlin"), datetime(2024, 6, 15, 3, tzinfo=UTC)),
        ("2024-06-15T05:00:00Z", None, datetime(2024, 6, 15, 5, tzinfo=UTC)),
        ("2024-06-15T07:00:00.000001+02:00", None, datetime(2024, 6, 15, 5, 0, 0, 1, tzinfo=UTC)),
        ("2024-06-15", ZoneInfo("Europe/Berlin"), datetime(2024, 6, 14, 22, tzinfo=UTC)),
        ("2024-06-15T05:00:00Z", ZoneInfo("Europe/Berlin"), datetime(2024, 6, 15, 5, tzinfo=UTC)),
    ],
)
def test_times(text: str, zone: ZoneInfo | None, moment: datetime) -> None:
    assert values.time(text, zone) == moment
    assert values.bound(text, zone) == values.moment(text, zone) == moment


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (values.time, "yesterday", "'yesterday': expected a time such as 2024-06-15T05:00:00Z"),
        (values.time, "2024-06-15T05:00:00.1234567Z", "at most six digits"),
        (values.bound, "noon", "or 1h for an hour ago, or a UUID"),
        (values.bound, NOT_V6, "a UUID of version 6"),
        (values.byte_offset, "-1", "expected an offset in bytes"),
        (values.byte_offset, "0x", "expected an offset in bytes"),
        (values.flag, "yes", "expected true or false"),
        (values.moment, "tomorrow", "a date, now, today, yesterday, or 1h for an hour ago"),
        (values.moment, "99999999w", "a time after the year 1"),
        (values.moment, "2024-06-15T05:00:00.1234567Z", "at most six digits"),
        (values.duration, "7", "a duration such as 90s, 15m, 12h, 7d or 2w"),
        (values.duration, "1.5h", "a duration"),
        (values.not_empty, "", "expected something"),
    ],
)
def test_what_stands_for_nothing_is_said(read: Callable[[str], Any], text: str, said: str) -> None:
    with pytest.raises(values.WrongValueError, match=said):
        read(text)


def test_a_record_may_be_named_in_place_of_a_time() -> None:
    assert values.bound(SOME_UUID) == uuid.UUID(SOME_UUID)


def test_offsets_names_and_lists() -> None:
    assert (values.byte_offset("225"), values.byte_offset("0xE1")) == (225, 225)
    assert values.one_of("Failfast", ("PERMISSIVE", "FAILFAST")) == "FAILFAST"
    assert values.comma_list("a, b,c") == ["a", "b", "c"]
    assert values.numbers("0, 7", 7) == (0, 7)
    assert values.names(r"AA, \xff\x5c", "names") == (b"AA", b"\xff\\")
    assert values.names('["a,b", ""]', "names") == (b"a,b", b"")
    for text in ("a,,b", '["a", 5]', "[", r"a\q"):
        with pytest.raises(values.WrongValueError):
            values.names(text, "names")
    with pytest.raises(values.WrongValueError, match="whole numbers from 0 to 7 with commas between them"):
        values.numbers("0,8", 7)


def test_moments_and_durations() -> None:
    midnight = datetime(2024, 6, 15, tzinfo=UTC)
    assert values.moment("2024-06-15") == values.moment(" 20240615 ") == midnight
    now = datetime.now(UTC)
    assert values.duration("2w") == timedelta(days=14)
    assert [values.duration(text) for text in ("100ms", "90s", "15m", "12 h", "7d")] == [
        timedelta(milliseconds=100),
        timedelta(seconds=90),
        timedelta(minutes=15),
        timedelta(hours=12),
        timedelta(days=7),
    ]
    assert timedelta(0) <= values.moment("now") - now < timedelta(minutes=1)
    assert timedelta(0) <= values.moment("1h") - (now - timedelta(hours=1)) < timedelta(minutes=1)
    for zone in (None, ZoneInfo("Pacific/Auckland")):
        days = [values.moment(text, zone).astimezone(zone or UTC) for text in ("today", "Yesterday", "now")]
        assert [day.time().isoformat() for day in days[:2]] == ["00:00:00", "00:00:00"]
        assert (days[0].date() - days[1].date(), days[2].date()) == (timedelta(days=1), days[0].date())


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))
def test_an_instant_that_is_written_is_read_again(moment: datetime) -> None:
    utc = moment.replace(tzinfo=UTC)
    assert values.time(values.instant(utc)) == utc


def test_texts_stand_for_the_bytes_that_show_so(tmp_path: Path) -> None:
    random = Random(1)
    kinds = [bytes(random.choice(b"\\x5cA\xff\xc3\xa4") for _ in range(random.randrange(6))) for _ in range(200)]
    with seglake.create(tmp_path / "kinds.active", format="active") as writer:
        for kind in kinds:
            writer.write(type=kind, value=b"")
    assert [unescape(record.type) for record in seglake.open(tmp_path / "kinds.active")] == kinds


def test_texts_that_are_not_shown_so_stand_for_nothing() -> None:
    assert [unescape(text) for text in ("\\", "\\x", "\\x5", "a\\n", "\\xgg", "\ud800")] == [None] * 6
