"""What becomes of input files. Importing this needs no package."""

from __future__ import annotations

from typing import Final, Literal

__all__ = ["INGESTED", "FileStatus"]

FileStatus = Literal[
    "sound", "damaged", "pending", "conflict", "wrong_key", "limit", "unreadable", "not_a_segment", "renamed"
]
"""What became of an input file."""

INGESTED: Final[tuple[FileStatus, ...]] = ("sound", "damaged", "pending")
"""The files that were read to their end. Their records and damage are in the tables."""
