"""One trial: one file, one damage, one verdict. Its name is all that it takes to do it again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from . import recovery, sidecars, surfaces
from .image import Image
from .judge import Verdict, judge
from .kinds import KINDS
from .specimens import SMALL, Specimen, specimen

TARGET = 0.999
"""The share of good records that every trial of a checksummed format must give back where one bit is flipped."""


@dataclass(frozen=True)
class Trial:
    """A trial: which file, of how many messages, what is done to it, and the seed of all that is random in it."""

    layout: str
    kind: str
    seed: int
    count: int = SMALL

    def __str__(self) -> str:
        count = "" if self.count == SMALL else f"@{self.count}"
        return f"{self.layout}{count}/{self.kind}/{self.seed}"

    @staticmethod
    def named(name: str) -> Trial:
        """The trial of that name. Raises ValueError for a name that none has."""
        layout, kind, seed = name.rsplit("/", 2)
        layout, _, count = layout.partition("@")
        if kind not in KINDS:
            raise ValueError(f"{name}: no kind of damage is called {kind}; there are {', '.join(KINDS)}")
        return Trial(layout, kind, int(seed), int(count) if count else SMALL)

    @property
    def specimen(self) -> Specimen:
        """The undamaged file."""
        return specimen(self.layout, self.count)

    def damaged(self) -> Image:
        """The file, damaged. The same each time."""
        sound = self.specimen
        around = sound.surroundings
        if self.count != SMALL:
            # Of large files it is asked what damage costs on average: it falls anywhere.
            around = replace(around, places=())
        return KINDS[self.kind](Image.of(sound.data), Random(str(self)), around)

    def run(self) -> Verdict:
        """Damage the file, read it, and judge."""
        sound, image = self.specimen, self.damaged()
        reading = surfaces.read(image.data, sound.layout)
        verdict = judge(sound, image, reading, rules=self.count == SMALL)
        if self.count != SMALL and sound.layout.checked and verdict.kept < TARGET * verdict.good:
            # Slow, and rare: are these records out of reach of the rules, too?
            verdict = judge(sound, image, reading)
        if self.count != SMALL and self.seed % 32:
            # A share takes many trials to be known: most large files are read in one way only.
            return verdict
        thoroughness = 0 if self.seed % 4 else 1 if self.seed % 16 else 2
        verdict.faults += surfaces.disagreements(sound, image.data, reading, thoroughness, verdict.named)
        if thoroughness > 0:
            verdict.faults += recovery.faults(sound.layout, image.data, reading)
        verdict.restored = sidecars.restored(sound, image.data)
        verdict.faults += [f"with a sidecar: {fault}" for fault in verdict.restored.faults]
        return verdict
