"""The oplogs of examples/autobase: that they hold what their README says, which takes no Node.js to see."""

import json
from pathlib import Path

import pytest

import seglake
from flights import messages, source

OPLOGS = Path(__file__).parents[2] / "examples" / "autobase"
AIRPORTS = ["EWR", "JFK", "LGA"]
FLIGHTS_EACH = 200
KEY_BYTES = 32


@pytest.fixture(scope="module")
def january() -> list[bytes]:
    """The flights of January as the demo's segments hold them, in their order."""
    flights = messages.in_segment_order(source.load_flights())
    return messages.messages_by_month(flights)["2013-01"]["value"].to_pylist()


@pytest.mark.parametrize("airport", AIRPORTS)
def test_they_hold_the_first_flights_of_the_airport(airport: str, january: list[bytes]) -> None:
    with seglake.open(OPLOGS / f"{airport}.oplog", format="oplog", options={"dialect": "autobase"}) as reader:
        values = [record.value for record in reader]
    flights = [value for value in values if value is not None and len(value) != KEY_BYTES]
    departures = [flight for flight in january if json.loads(flight)["origin"] == airport]
    assert flights == departures[:FLIGHTS_EACH]
    # All else are keys of writers to add, which only the first one does, and acknowledgements.
    keys = [value for value in values if value is not None and len(value) == KEY_BYTES]
    assert len(keys) == (2 if airport == AIRPORTS[0] else 0)
    assert values.count(None) == len(values) - FLIGHTS_EACH - len(keys) > 0
