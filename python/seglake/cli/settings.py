"""`--set NAME=VALUE`: values for columns, read from text as the column's kind demands."""

from __future__ import annotations

import base64
import binascii
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn, cast

import click

from .options import parse_bound
from .reading import shown_bytes

_INTEGER = re.compile(r"-?[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16}")
NOW = "now"
NULL = "null"


def parse_settings(
    _context: click.Context | None, _parameter: click.Parameter | None, given: Sequence[str]
) -> dict[str, str]:
    """The names and values of `NAME=VALUE`, as text.

    Raises:
        click.BadParameter: one is nothing of the kind, or a name is there twice.
    """
    settings: dict[str, str] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{setting!r} is not NAME=VALUE, such as type=order")
        if name in settings:
            raise click.BadParameter(f"{name} is set twice")
        settings[name] = value
    return settings


def typed(settings: Mapping[str, str], kinds: Mapping[str, str]) -> dict[str, Any]:
    """The values as the library takes them. Names of no column are left for the library to refuse.

    Raises:
        click.BadParameter: a value is not of its column's kind.
    """
    return {name: _typed(name, text, kinds.get(name)) for name, text in settings.items()}


def _typed(name: str, text: str, kind: str | None) -> Any:
    if kind in ("uuid", "timestamp") and text == NOW:
        # What the library makes values of the present of.
        return None
    # In text and bytes the letters are what they say.
    if kind not in ("text", "binary") and text == NULL:
        return None
    return typed_value(name, text, kind, hint="--set")


def typed_value(name: str, text: str, kind: str | None, *, hint: str) -> Any:
    """The value of a column of this kind that a text stands for.

    Raises:
        click.BadParameter: the text is not a value of that kind; `hint` is the option that it was given with.
    """
    parse = _PARSERS.get(kind, shown_bytes)
    try:
        return parse(text)
    except click.BadParameter as error:
        raise click.BadParameter(f"{name}: {error.message}", param_hint=hint) from error
    except ValueError as error:
        raise click.BadParameter(f"{name}={text}: {error}", param_hint=hint) from error


def _uuid(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise ValueError("not a UUID; `now` makes a new one for each record") from None


def _time(text: str) -> datetime | int:
    if _INTEGER.fullmatch(text):
        return int(text, 0)
    bound = parse_bound(text)
    if isinstance(bound, uuid.UUID):
        raise ValueError("not a time: give ISO 8601 with a zone, microseconds since 1970, or `now`")
    return bound


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError("not a whole number")
    return int(text, 0) if "x" in text.lower() else int(text)


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("neither true nor false")
    return text == "true"


def _bytes(text: str) -> bytes:
    known = shown_bytes(text)
    return known.encode() if isinstance(known, str) else known


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_hook=_bytes_within, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None


def _bytes_within(fields: dict[str, Any]) -> Any:
    """`{"hex": "..."}` and `{"base64": "..."}` as bytes: JSON has none of its own."""
    if len(fields) != 1:
        return fields
    [(name, text)] = fields.items()
    if name not in _BYTES or not isinstance(text, str):
        return fields
    try:
        return _BYTES[name](text)
    except (ValueError, binascii.Error):
        raise ValueError(f"{text!r} is not {name}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_BYTES: dict[str, Callable[[str], bytes]] = {
    "hex": bytes.fromhex,
    "base64": lambda text: base64.b64decode(text, validate=True),
}
_PARSERS = cast(
    "dict[str | None, Callable[[str], Any]]",
    {
        "uuid": _uuid,
        "timestamp": _time,
        "text": shown_bytes,
        "binary": _bytes,
        "int64": _integer,
        "uint64": _integer,
        "boolean": _boolean,
        "list": _json,
        "struct": _json,
    },
)
