"""A segment that a stream follows: each record says which one it is."""

from pathlib import Path

import seglake


class Segment:
    """A segment of text records that grows."""

    def __init__(self, path: Path, name: str = "") -> None:
        self.path = path
        self.name = name or path.stem
        self.number = 0

    def grow(self, count: int) -> list[str]:
        """Appends records. Returns their values."""
        values = [f"{self.name}-{self.number + own}" for own in range(count)]
        with seglake.create(self.path, format="active", if_exists="append") as writer:
            for value in values:
                writer.write(type="t", value=value.encode())
        self.number += count
        return values
