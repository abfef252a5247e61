"""Values as JSON has them, in plain ASCII on one line, which no terminal acts on and no encoding loses."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any, Final, Literal, NoReturn, TypeAlias, get_args

__all__ = ["VALUE_FORMS", "ValueForm", "base64_text", "is_json", "json_compact", "json_text", "json_value"]

ValueForm: TypeAlias = Literal["text", "json", "base64", "hex"]
VALUE_FORMS: Final[tuple[ValueForm, ...]] = get_args(ValueForm)

_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode
_encode_compact = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
_NOT_PLAIN_ASCII = re.compile(r"[^\x20-\x7e]")


def json_text(value: Any) -> str:
    """The value as one line of JSON in plain ASCII, which no terminal acts on and no encoding loses."""
    # Of all that the encoder leaves as it is only DEL is not printable, and that can only stand within a string.
    return _encode(value).replace("\x7f", "\\u007f")


def json_compact(value: Any) -> str:
    """Like `json_text`, without blanks."""
    return _encode_compact(value).replace("\x7f", "\\u007f")


def json_ascii(document: str) -> str:
    r"""A JSON document, valid already, in plain ASCII on one line, with the same meaning.

    In valid JSON a control character stands only between tokens, where a blank does as well, and any other character
    that is not plain ASCII only within a string, where `\uNNNN` is the same character.
    """
    if document.isascii() and document.isprintable():
        return document
    return _NOT_PLAIN_ASCII.sub(_json_spelled, document)


def _json_spelled(match: re.Match[str]) -> str:
    character = match.group()
    if character < " ":
        return " "
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def base64_text(value: bytes) -> str:
    """Bytes in base64."""
    return base64.b64encode(value).decode("ascii")


def json_value(value: bytes | None, form: ValueForm) -> str:
    """The member of a JSON object that a record's value is.

    What its form cannot show without loss (a value that is not UTF-8, or not JSON) is base64 under `value_base64`.
    """
    if value is None:
        # Told apart from a value that is JSON's null.
        return f'"{"value_base64" if form == "json" else "value"}": null'
    encoded = _ENCODERS[form](value)
    return f'"value_base64": {_base64(value)}' if encoded is None else f'"value": {encoded}'


def _base64(value: bytes) -> str:
    return f'"{base64_text(value)}"'


def _hex(value: bytes) -> str:
    return f'"{value.hex()}"'


def _text(value: bytes) -> str | None:
    try:
        return json_text(value.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _json(value: bytes) -> str | None:
    """The value's own text where it is valid JSON: numbers keep all digits, objects all names in their order."""
    return json_ascii(value.decode("utf-8")).strip(" ") if is_json(value) else None


def is_json(value: bytes) -> bool:
    """Tells whether bytes are a JSON document in UTF-8."""
    try:
        _decode(value.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# Whether it is JSON is all that is asked: numbers stay text, however long they are.
_decode = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_constant).decode
_ENCODERS: Final[dict[ValueForm, Callable[[bytes], str | None]]] = {
    "base64": _base64,
    "hex": _hex,
    "text": _text,
    "json": _json,
}
