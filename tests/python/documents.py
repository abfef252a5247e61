"""The project's documents, taken apart: code blocks, links and tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: the document it stands in, its first line there, the words behind the fence, and its text."""

    document: Path
    line: int
    info: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT).as_posix()}:{self.line}"


def blocks(document: Path, language: str) -> list[Block]:
    """The blocks of one language in a document, in order."""
    text = document.read_text(encoding="utf-8")
    found = [
        Block(document, text.count("\n", 0, match.start()) + 2, tuple(match["info"].split()), match["text"])
        for match in _FENCE.finditer(text)
    ]
    return [block for block in found if block.info[:1] == (language,)]


def links(document: Path) -> list[str]:
    """The targets of all links in a document, but for those in code."""
    prose = _FENCE.sub("", document.read_text(encoding="utf-8"))
    return [match["target"] for match in _LINK.finditer(re.sub(r"`[^`\n]*`", "", prose))]


def anchors(document: Path) -> set[str]:
    """What a link may name behind `#`: each heading in lower case, without punctuation, spaces as hyphens."""
    prose = _FENCE.sub("", document.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(prose)}


def table(document: Path, heading: str) -> list[dict[str, str]]:
    """The first table behind a heading, a row each, with links reduced to their text."""
    text = f"\n{document.read_text(encoding='utf-8')}"
    lines = text[text.index(f"\n{heading}\n") :].splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows: list[list[str]] = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        rows.append([_LINK.sub(_link_text, cell).strip() for cell in line.strip("|").split("|")])
    return [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]


def _link_text(match: re.Match[str]) -> str:
    return match[0][1 : match[0].index("]")]
