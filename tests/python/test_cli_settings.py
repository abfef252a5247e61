"""`--set NAME=VALUE`: text to values, by the kind of the column."""

import uuid
from datetime import UTC, datetime
from typing import Any

import click
import pytest

from seglake.cli.columns import Kind
from seglake.cli.settings import parse_settings, typed

SOME_UUID = "1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.TEXT, "a=b null", "a=b null"),
        (Kind.TEXT, "", ""),
        (Kind.TEXT, "null", "null"),
        (Kind.TEXT, "a\udcff", b"a\xff"),
        (Kind.BINARY, "größe", "größe".encode()),
        (Kind.BINARY, "a\udcff", b"a\xff"),
        (Kind.BINARY, "null", b"null"),
        (Kind.INTEGER, "-5", -5),
        (Kind.INTEGER, "0x10", 16),
        (Kind.INTEGER, "007", 7),
        (Kind.INTEGER, "null", None),
        (Kind.COUNTER, "18446744073709551615", 2**64 - 1),
        (Kind.BOOLEAN, "true", True),
        (Kind.BOOLEAN, "false", False),
        (Kind.UUID, SOME_UUID, uuid.UUID(SOME_UUID)),
        (Kind.UUID, "now", None),
        (Kind.TIMESTAMP, "now", None),
        (Kind.TIMESTAMP, "2024-01-10T16:00:00Z", datetime(2024, 1, 10, 16, tzinfo=UTC)),
        (Kind.TIMESTAMP, "-62135596800000001", -62135596800000001),
        (Kind.LIST, "[]", []),
        (
            Kind.LIST,
            '[{"key": {"hex": "00ff"}, "length": 18446744073709551615}]',
            [{"key": b"\x00\xff", "length": 2**64 - 1}],
        ),
        (Kind.STRUCT, '{"tree_hash": {"base64": "AP8="}, "length": 1}', {"tree_hash": b"\x00\xff", "length": 1}),
        (Kind.STRUCT, '{"pointer": 3}', {"pointer": 3}),
        (Kind.STRUCT, "null", None),
    ],
)
def test_a_value_is_what_its_column_holds(kind: Kind, text: str, value: Any) -> None:
    [found] = typed({"name": text}, {"name": kind}).values()
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (Kind.INTEGER, "five", "not a whole number"),
        (Kind.INTEGER, "1.5", "not a whole number"),
        (Kind.INTEGER, "", "not a whole number"),
        (Kind.BOOLEAN, "yes", "neither true nor false"),
        (Kind.UUID, "5", "now"),
        (Kind.TIMESTAMP, SOME_UUID, "not a time"),
        (Kind.TIMESTAMP, "yesterday", "ISO 8601"),
        (Kind.TIMESTAMP, "2024-01-10T16:00:00", "no time zone"),
        (Kind.LIST, "[", "not JSON"),
        (Kind.LIST, "[NaN]", "NaN"),
        (Kind.LIST, "[" * 100_000, "nested too deeply"),
        (Kind.LIST, '[{"hex": "0"}]', "not hex"),
        (Kind.STRUCT, '{"base64": "?"}', "not base64"),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_refused_with_its_name(kind: Kind, text: str, said: str) -> None:
    with pytest.raises(click.BadParameter) as raised:
        typed({"name": text}, {"name": kind})
    assert said in raised.value.message
    assert "name" in raised.value.message


@pytest.mark.parametrize("setting", ["", "type", "=order"])
def test_what_is_no_setting_is_refused(setting: str) -> None:
    with pytest.raises(click.BadParameter, match="NAME=VALUE"):
        parse_settings(None, None, [setting])


def test_a_name_is_set_once() -> None:
    assert parse_settings(None, None, ["a=1=2", "b="]) == {"a": "1=2", "b": ""}
    with pytest.raises(click.BadParameter, match="a is set twice"):
        parse_settings(None, None, ["a=1", "a=2"])
