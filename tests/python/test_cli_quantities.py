"""How the command line writes numbers, sizes, times and sums, at their bounds."""

from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from seglake._values import instant, instant_us
from seglake.cli.render import count, exact_size, size
from seglake.cli.verdict import Tally


@pytest.mark.parametrize(
    ("number", "short", "exact"),
    [
        (0, "0 bytes", "0 bytes"),
        (1, "1 byte", "1 byte"),
        (2, "2 bytes", "2 bytes"),
        (1023, "1,023 bytes", "1,023 bytes"),
        (1024, "1.0 KiB", "1,024 bytes (1.0 KiB)"),
        (1536, "1.5 KiB", "1,536 bytes (1.5 KiB)"),
        (1 << 20, "1.0 MiB", "1,048,576 bytes (1.0 MiB)"),
        ((1 << 20) - 1, "1024.0 KiB", "1,048,575 bytes (1024.0 KiB)"),
        (1 << 30, "1.0 GiB", "1,073,741,824 bytes (1.0 GiB)"),
        (1 << 40, "1.0 TiB", "1,099,511,627,776 bytes (1.0 TiB)"),
        (1 << 50, "1.0 PiB", "1,125,899,906,842,624 bytes (1.0 PiB)"),
        (1 << 60, "1.0 EiB", "1,152,921,504,606,846,976 bytes (1.0 EiB)"),
        ((1 << 64) - 1, "16.0 EiB", "18,446,744,073,709,551,615 bytes (16.0 EiB)"),
        (1 << 70, "1024.0 EiB", "1,180,591,620,717,411,303,424 bytes (1024.0 EiB)"),
    ],
)
def test_sizes(number: int, short: str, exact: str) -> None:
    assert size(number) == short
    assert exact_size(number) == exact


def test_counts() -> None:
    records = [count(number, "record") for number in (0, 1, 2, 1234)]
    assert records == ["0 records", "1 record", "2 records", "1,234 records"]
    assert [count(number, "entry", "entries") for number in (0, 1, 2)] == ["0 entries", "1 entry", "2 entries"]


def test_instants() -> None:
    moment = datetime(2024, 1, 31, 12, 30, tzinfo=UTC)
    assert instant(moment) == "2024-01-31T12:30:00.000000Z"
    assert instant(moment.astimezone(timezone(timedelta(hours=5)))) == "2024-01-31T12:30:00.000000Z"
    assert instant_us(0) == "1970-01-01T00:00:00.000000Z"
    assert instant_us(-1) == "1969-12-31T23:59:59.999999Z"
    assert instant_us(1_706_704_200_000_001) == "2024-01-31T12:30:00.000001Z"
    last = 253_402_300_799_999_999
    assert instant_us(last) == "9999-12-31T23:59:59.999999Z"
    assert instant_us(last + 1) == f"{last + 1} µs since 1970"
    first = -62_135_596_800_000_000
    assert instant_us(first) == "0001-01-01T00:00:00.000000Z"
    assert instant_us(first - 1) == f"{first - 1} µs since 1970"
    assert instant_us(1 << 62) == f"{1 << 62} µs since 1970"


def test_a_sum_of_files() -> None:
    def report(ok: bool, wrong_key: bool, records: int, bytes: int) -> Any:
        return SimpleNamespace(ok=ok, wrong_key=wrong_key, records=records, nbytes=bytes, parity=None, diagnoses=())

    tally = Tally()
    assert tally.summary() == "0 files: ; 0 records, 0 bytes"
    tally.add(report(True, False, 5, 1000))
    assert tally.summary() == "1 file: 1 sound; 5 records, 1,000 bytes"
    tally.add(report(False, False, 3, 24))
    tally.add(report(False, True, 0, 1024))
    tally.add(report(True, False, 1, 0))
    tally.unreadable += 1
    assert tally.summary() == (
        "5 files: 2 sound, 1 damaged, 1 not read with the right key, 1 unreadable; 9 records, 2.0 KiB"
    )
