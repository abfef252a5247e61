"""`--set NAME=VALUE`: text to values, by the kind of the column."""

import uuid
from datetime import UTC, datetime
from typing import Any

import click
import pytest

from seglake.cli.options import parse_settings, typed

SOME_UUID = "1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("text", "a=b null", "a=b null"),
        ("text", "", ""),
        ("text", "null", "null"),
        ("text", "a\udcff", b"a\xff"),
        ("binary", "größe", "größe".encode()),
        ("binary", "a\udcff", b"a\xff"),
        ("binary", "null", b"null"),
        ("int64", "-5", -5),
        ("int64", "0x10", 16),
        ("int64", "007", 7),
        ("int64", "null", None),
        ("uint64", "18446744073709551615", 2**64 - 1),
        ("boolean", "true", True),
        ("boolean", "false", False),
        ("uuid", SOME_UUID, uuid.UUID(SOME_UUID)),
        ("uuid", "now", None),
        ("timestamp", "now", None),
        ("timestamp", "2024-01-10T16:00:00Z", datetime(2024, 1, 10, 16, tzinfo=UTC)),
        ("timestamp", "-62135596800000001", -62135596800000001),
        ("list", "[]", []),
        (
            "list",
            '[{"key": {"hex": "00ff"}, "length": 18446744073709551615}]',
            [{"key": b"\x00\xff", "length": 2**64 - 1}],
        ),
        ("struct", '{"tree_hash": {"base64": "AP8="}, "length": 1}', {"tree_hash": b"\x00\xff", "length": 1}),
        ("struct", '{"pointer": 3}', {"pointer": 3}),
        ("struct", "null", None),
    ],
)
def test_a_value_is_what_its_column_holds(kind: str, text: str, value: Any) -> None:
    [found] = typed({"name": text}, {"name": kind}).values()
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("int64", "five", "expected a whole number"),
        ("int64", "1.5", "expected a whole number"),
        ("int64", "", "expected a whole number"),
        ("boolean", "yes", "expected true or false"),
        ("uuid", "5", "now"),
        ("timestamp", SOME_UUID, "expected a time"),
        ("timestamp", "yesterday", "expected a time such as"),
        ("list", "[", "expected JSON"),
        ("list", "[NaN]", "NaN"),
        ("list", "[" * 100_000, "nested too deeply"),
        ("list", '[{"hex": "0"}]', "not hex"),
        ("struct", '{"base64": "?"}', "not base64"),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_refused_with_its_name(kind: str, text: str, said: str) -> None:
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
