"""How instants are written: ISO 8601 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["instant", "instant_us"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(moment: datetime) -> str:
    """An instant in UTC to the microsecond, always of the same width: `2024-01-10T16:37:53.194315Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def instant_us(microseconds: int) -> str:
    """Microseconds since 1970 as `instant`; as the number itself where no calendar date exists (years 1 to 9999)."""
    try:
        return instant(_EPOCH + timedelta(microseconds=microseconds))
    except OverflowError:
        return f"{microseconds} µs since 1970"
