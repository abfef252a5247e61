"""How numbers, sizes and instants are written for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def count(number: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun: `1 record`, `1,234 records`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def size(number: int) -> str:
    """A number of bytes in the largest fitting binary unit: `999 bytes`, `11.8 MiB`."""
    scaled, unit = float(number), 0
    while scaled >= 1024 and unit < len(_UNITS) - 1:
        scaled, unit = scaled / 1024, unit + 1
    if unit == 0:
        return count(number, "byte")
    return f"{scaled:.1f} {_UNITS[unit]}"


def exact_size(number: int) -> str:
    """A number of bytes exactly, with a rounded one behind it where that helps: `12,345,678 bytes (11.8 MiB)`."""
    exact = count(number, "byte")
    return exact if number < 1024 else f"{exact} ({size(number)})"


def instant(moment: datetime) -> str:
    """An instant in UTC to the microsecond, always of the same width: `2024-01-10T16:37:53.194315Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def instant_us(microseconds: int) -> str:
    """Microseconds since 1970 as `instant`; as the number itself where no calendar date exists (years 1 to 9999)."""
    try:
        return instant(_EPOCH + timedelta(microseconds=microseconds))
    except OverflowError:
        return f"{microseconds} µs since 1970"
