"""Trials of the index beside a chunked log: it may be damaged in any way, and never costs or changes a record."""

from __future__ import annotations

from random import Random

import seglake

from .image import Image
from .judge import Reading, Verdict, faults_of_ledger
from .kinds import KINDS, Surroundings
from .layouts import LAYOUTS, fields_of
from .specimens import specimen

LAYOUT = "chunked"
NAME = "chunked-index"
ITEM = 20


def damaged(kind: str, seed: int) -> Image:
    """The index, damaged. The same each time."""
    sound = specimen(LAYOUT).index or b""
    items = range(0, len(sound), ITEM)
    # An earlier log's index has the same items, but for the offsets.
    earlier = b"".join(bytes(8) + sound[at + 8 : at + ITEM] for at in items)
    around = Surroundings(places=list(items), sectors=(4, 20, 64), earlier=earlier, longest=80)
    return KINDS[kind](Image.of(sound), Random(f"{NAME}/{kind}/{seed}"), around)


def run(kind: str, seed: int) -> Verdict:
    """Damage the index, look up and choose by it, and hold that against the log."""
    sound, image, random = specimen(LAYOUT), damaged(kind, seed), Random(seed)
    records, wanted = sound.records, random.sample(list(sound.records), 20)
    verdict = Verdict(records=len(records), good=len(records), damaged=image.data != sound.index)
    with seglake.open(sound.data, options={"index": image.data}, **LAYOUTS[LAYOUT].options) as reader:
        read = [fields_of(record)[1] for record in reader]
        verdict.kept = verdict.right = sum(one == other for one, other in zip(read, records.values(), strict=False))
        if read != list(records.values()):
            verdict.silent.append("the log's records are not what they are without the index")
        for identity in wanted:
            found = reader.get(*identity)
            if found is None or fields_of(found)[1] != records[identity]:
                verdict.silent.append(f"looked up, {identity} is {found}")
            if reader.get(identity[0] + len(records)) is not None:
                verdict.silent.append(f"{identity[0] + len(records)} was never written, and is found")
        start, end = sorted(identity[0] for identity in random.sample(list(records), 2))
        chosen = [fields_of(record)[1] for record in reader.range([("offset", ">=", start), ("offset", "<", end)])]
        if chosen != [fields for fields in records.values() if start <= fields["offset"] < end]:
            verdict.silent.append(f"{len(chosen)} records are chosen of the offsets {start} to {end}")
        index = reader.index()
    if index is not None:
        ledger = [(span.start, span.end, span.kind, span.cause) for span in index.ledger()]
        verdict.faults += faults_of_ledger(Reading([], ledger, checked=True), len(image))
    elif image.data:
        verdict.faults.append("the index is not read")
    return verdict
