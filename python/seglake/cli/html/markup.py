r"""HTML, made so that no text in it can be markup: the one place that escapes.

Names, types, tenants, values and errors are bytes that somebody else chose. What is not printable, or not seen, is
spelled out as `\u{202e}`, a byte that is not UTF-8 as `\xff`.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any, Final

__all__ = ["Html", "data", "data_bytes", "element", "join", "script_json", "visible"]

# Printable by their category, and yet nothing to see.
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_VOID: Final = ("br", "meta", "input")
_UNSAFE_IN_SCRIPT: Final = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


class Html(str):
    """Markup that is ready to be put into a page."""

    __slots__ = ()


def visible(text: str) -> str:
    r"""The text with all that is not printable or not seen spelled out as `\u{…}`, and lone bytes as `\xNN`."""
    text = _INVISIBLE.sub(lambda own: _spelled(own[0]), text)
    return text if text.isprintable() else "".join(own if own.isprintable() else _spelled(own) for own in text)


def _spelled(character: str) -> str:
    code = ord(character)
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{{{code:x}}}"


def element(name: str, /, *content: str | None, **attributes: object) -> Html:
    """An element: text in it and in its attributes is escaped, markup in it is kept, and None is left out.

    Attributes that are None or False are left out, and those that are True have no value. An underscore at the end of
    a name is dropped, others are hyphens.
    """
    said = "".join(
        f" {_attribute(key)}" if own is True else f' {_attribute(key)}="{html.escape(visible(str(own)))}"'
        for key, own in attributes.items()
        if own is not None and own is not False
    )
    if name in _VOID:
        return Html(f"<{name}{said}>")
    return Html(f"<{name}{said}>{join(*content)}</{name}>")


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def join(*content: str | None) -> Html:
    """Texts, which are escaped, and markup one after the other."""
    return Html("".join(own if isinstance(own, Html) else html.escape(visible(own)) for own in content if own))


def data(text: str, most: int = 200) -> Html:
    """Somebody else's text, apart from ours also in its direction; cut after `most` characters with a count."""
    rest = f"… {len(text):,} characters" if len(text) > most else None
    return join(element("bdi", text[:most]), rest and element("i", rest))


def data_bytes(content: bytes, most: int = 80) -> Html:
    """Somebody else's bytes as UTF-8, cut after `most` characters with a count of bytes."""
    # No character takes more than four bytes.
    text = content[: 4 * most].decode("utf-8", "surrogateescape")
    rest = f"… {len(content):,} bytes" if len(text) > most or len(content) > 4 * most else None
    return join(element("bdi", text[:most]), rest and element("i", rest))


def script_json(identifier: str, value: Any) -> Html:
    """Data for the script of a page: an element that no browser runs, and that no text in it can end."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True).translate(_UNSAFE_IN_SCRIPT)
    return Html(f'<script type="application/json" id="{identifier}">{text}</script>')
