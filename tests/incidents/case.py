"""What a staged incident is, and the forms of commands that can be right."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Step(StrEnum):
    """The form of the next step: of the command, or that there is none because only another copy helps."""

    RESTORE = "restore"
    LOOK = "look"
    RECOVER = "recover"
    PATCH = "dd"
    EXTRACT = "extract"
    REPAIR = "repair"
    INDEX = "index"
    KEY = "--key-file"
    DIALECT = "--dialect"
    FORMAT = "--format"
    DECOMPRESS = "gunzip"
    BASE64 = "base64"
    RECODE = "iconv"
    LINES = "line ends"
    SWAP = "swap"
    LOG_WRITE = "log write"
    OTHER = "other"


_FORMS: Sequence[tuple[Step, str]] = (
    (Step.DECOMPRESS, r"\b(gunzip|zcat|unzstd|unxz|bunzip2|unlz4|unzip|(gzip|zstd|xz|bzip2|lz4) -\w*d\w*)\b"),
    (Step.BASE64, r"\bbase64 (-d|--decode|-D)\b"),
    (Step.RECODE, r"\biconv\b"),
    (Step.LINES, r"\b(tr -d|sed|perl -pe|dos2unix|unix2dos)\b"),
    (Step.SWAP, r"\bxxd -e\b|\bconv=swab\b"),
    (Step.PATCH, r"\bprintf\b.*\bdd\b"),
    (Step.LOOK, r"\bseglake extract\b.*--hex\b"),
    (Step.EXTRACT, r"\bseglake extract\b"),
    (Step.RECOVER, r"\bseglake (recover|log tail .*--on-damage skip)\b"),
    (Step.REPAIR, r"\bseglake repair\b"),
    (Step.INDEX, r"\bseglake index\b"),
    (Step.LOG_WRITE, r"\bseglake log write\b"),
    (Step.KEY, r"--key-file\b|\bSEGLAKE_KEY="),
    (Step.DIALECT, r"--dialect\b"),
    (Step.FORMAT, r"--format\b"),
)


def form_of(command: str | None) -> Step:
    """The form of a command line; `None` is that nothing but another copy helps."""
    if command is None:
        return Step.RESTORE
    return next((step for step, pattern in _FORMS if re.search(pattern, command, re.DOTALL)), Step.OTHER)


NOT_SEEN = "sound"
"""Where a reason would be: `verify` calls the file sound."""


@dataclass(frozen=True)
class Case:
    """A broken file as whoever is on call finds it, and the truth about it.

    `how` says how it is made. `file` is its name in a folder of its own, or "" where the folder is a log. `files` are
    all files of the folder. `reasons` and `steps` are what is right: several where two are the same thing. `sound` is
    the file as it was. `key` is its secret.
    """

    name: str
    incident: str
    how: str
    file: str
    files: Mapping[str, bytes]
    reasons: frozenset[str]
    steps: frozenset[Step]
    sound: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)

    @property
    def data(self) -> bytes:
        """The bytes of the broken file."""
        return self.files[self.file]
