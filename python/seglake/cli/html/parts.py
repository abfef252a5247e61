"""What pages are made of again and again: tables, lists of facts, commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seglake._values import instant_us

from .markup import Html, element, join

__all__ = ["cell", "command", "facts", "number", "scrolled", "table", "time"]


def cell(*content: str | None, **attributes: object) -> Html:
    """A cell of a table."""
    return element("td", *content, **attributes)


def number(own: int | None) -> Html:
    """A cell with a number; empty for None."""
    return cell("" if own is None else f"{own:,}", class_="number")


def time(timestamp_us: int | None) -> Html:
    """A cell with an instant; empty for None."""
    return cell("" if timestamp_us is None else instant_us(timestamp_us))


def scrolled(label: str, *content: str) -> Html:
    """What may be wider than the page: scrolled by itself, also with the keyboard."""
    return element("div", *content, class_="wide", tabindex="0", role="region", aria_label=label)


def table(label: str, head: Sequence[str], rows: Iterable[Html]) -> Html:
    """A table with its name above it."""
    titles = (element("th", name, scope="col") for name in head)
    parts = (element("caption", label), element("thead", element("tr", *titles)), element("tbody", *rows))
    return scrolled(label, element("table", *parts))


def facts(rows: Iterable[tuple[str, str | None]]) -> Html:
    """A list of names and what there is to say; nothing where there is nothing."""
    said = [join(element("dt", name), element("dd", text)) for name, text in rows if text]
    return element("dl", *said, class_="facts") if said else Html()


def command(text: str) -> Html:
    """A command on lines of its own, which the page's script gives a button."""
    return element("pre", element("code", text), class_="command")
