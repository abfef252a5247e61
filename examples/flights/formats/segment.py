"""What the demo knows of a file, whatever its format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..damage import Damage
from ..layout import Layout


class Segment(ABC):
    """One file: what is in it, how it is written, where that lies, and how it is broken, if it is.

    `folder` has the files of all formats, a folder for each. `name` is the file's name without its extension.
    `messages` are what is in it, in the file's order: with all of `columns`, and `offset`, the number of the flight in
    the year (null where a message is no flight).
    """

    format: ClassVar[str]
    """The format's name."""
    extension: ClassVar[str]
    columns: ClassVar[list[str]]
    """What the format keeps of a message, and so has to give back."""

    def __init__(self, folder: Path, name: str, messages: pa.Table) -> None:
        self.name = name
        self.path = folder / self.format / f"{name}.{self.extension}"
        self.messages = messages

    @classmethod
    def of_months(cls, folder: Path, months: Mapping[str, pa.Table]) -> Sequence[Self]:
        """All files of this format: here, one for each month."""
        return [cls(folder, month, messages) for month, messages in months.items()]

    @abstractmethod
    def write(self) -> None:
        """Write the file, sound, into its folder, which is there. So are the active segments, all of them sound."""

    @abstractmethod
    def locate(self) -> Layout:
        """Where the messages lie: from the format alone, or where that cannot tell, from the file without seglake."""

    def plan(self) -> Damage | None:
        """What is to be done to the file; None if it is to stay sound."""
        return None

    @cached_property
    def layout(self) -> Layout:
        """Where the messages lie."""
        return self.locate()

    @cached_property
    def damage(self) -> Damage | None:
        """What is done to the file; None if it stays sound."""
        return self.plan()

    @cached_property
    def records(self) -> pa.Table:
        """What a reader must give back: all messages but those that are lost."""
        if not self.damage:
            return self.messages
        kept = np.ones(self.messages.num_rows, dtype=np.bool_)
        kept[list(self.damage.lost)] = False
        return self.messages.filter(pa.array(kept))

    @property
    def flights(self) -> int:
        """How many flights are in the file."""
        return count_flights(self.messages)

    @property
    def flights_lost(self) -> int:
        """How many of them are lost."""
        return self.flights - count_flights(self.records)

    def lengths(self, column: str) -> npt.NDArray[np.int64]:
        """The length in bytes of each message's text or bytes in a column."""
        return pc.binary_length(self.messages[column]).to_numpy().astype(np.int64)


def count_flights(messages: pa.Table) -> int:
    """How many of the messages are flights."""
    return messages.num_rows - messages["offset"].null_count
