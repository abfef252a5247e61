"""How numbers and sizes are written for people."""

from __future__ import annotations

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
