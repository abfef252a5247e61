"""What is promised of any damage, asserted of the rules as plain code."""

from __future__ import annotations

from parity_reference import Refused, Report, extend, repair, report

from .patterns import Pattern, is_within


def check(found: Pattern) -> list[str]:
    """Assert what is promised of a pattern, and return what it was an example of."""
    own = found.of.file
    before = report(found.file, found.sidecar, force=found.force)
    file, sidecar = repair(before)
    after = report(file, sidecar, force=found.force)
    _check_ledgers(before)
    names = [before.outcome, _check_repeated(before, file, sidecar, after, crafted=found.is_crafted)]
    # A forged frame, or one of another file, has its own truth: whoever can write the sidecar can forge.
    if not found.is_forged and all(frame.head.set == found.of.set for frame in before.frames):
        names.append("proven")
        _check_bytes(before, file, own)
        _check_bytes(after, repair(after)[0], own)
        names.append(_check_extended(found, before, own))
        if is_within(found):
            names.append("within")
            assert before.outcome in ("sound", "repaired")
            covered = found.of.covered
            assert file[:covered] == own[:covered]
            assert file[covered:] == found.file[covered:]
            assert after.outcome == "sound"
    return names


def _check_ledgers(found: Report) -> None:
    """Each ledger has each byte once, and no range of the sidecar's is empty."""
    at = 0
    for start, end, *_ in found.ledger:
        assert start == at < end
        at = end
    assert at == max(len(found.file), found.covered)
    at = 0
    for start, end, *_ in found.sidecar_ledger:
        assert start == at < end
        at = end
    assert at >= len(found.sidecar)


def _check_repeated(before: Report, file: bytes, sidecar: bytes, after: Report, *, crafted: bool) -> str:
    """Repaired again, FILE is never worse and soon the same. Return what was special.

    More may be repaired: what a superseded frame did not have enough blocks for, it may have after the current frame's
    were written; and zeros between repaired blocks of a FILE that grew may be right.
    """
    if before.outcome == "refused":
        assert (file, sidecar) == (before.file, before.sidecar)
        return "refused"
    if before.outcome in ("sound", "repaired"):
        assert after.outcome == "sound" or crafted, "what was repaired is not sound"
    first = (file, sidecar)
    for _ in range(10):
        if after.outcome == "refused" and not any(before.file):
            return "refused by the next repair"
        if not _not_proven(after) <= _not_proven(before):
            # Heads in parity come back when it is encoded anew.
            assert crafted, "worse"
            return "worse after repair"
        again = repair(after)
        if again == (file, sidecar):
            return "steady" if again == first else "more is repaired by the next repair"
        (file, sidecar), before = again, after
        after = report(*again)
    raise AssertionError("each repair changes something")


def _not_proven(found: Report) -> set[int]:
    """The bytes that FILE's ledger has as lost or unverified. Of a very long range, the first ones."""
    return {
        at
        for start, end, kind, _ in found.ledger
        if kind in ("lost", "unverified")
        for at in range(start, min(end, start + 10_000))
    }


def _check_bytes(found: Report, file: bytes, own: bytes) -> None:
    """No byte is wrong that is said to be right, and none is changed to anything but the right one.

    Of bytes that FILE does not have, those between blocks that were repaired are zeros, and the ledger has them as
    lost.
    """
    damaged = found.file
    for start, end, kind, _ in found.ledger:
        if kind in ("sound", "repaired"):
            assert file[start:end] == own[start:end], "silent"
        else:
            there = damaged[start:end]
            assert file[start : start + len(there)] == there, "changed"
            assert not any(file[start + len(there) : end]), "invented"


def _check_extended(found: Pattern, before: Report, own: bytes) -> str:
    """Protecting again launders nothing: no damaged byte that was covered is sound afterwards.

    That holds up to the greatest C that a frame tells, and for all that was covered if the sidecar has bytes of no
    frame that no interrupted extension leaves.
    """
    try:
        sidecar = extend(found.file, found.sidecar, len(found.file))
    except Refused:
        return "extending refused"
    after = report(found.file, sidecar)
    assert after.covered >= before.covered
    corrupt = any(span.kind == "corrupt" for span in before.sidecar_ledger)
    covered = max(before.covered, found.of.covered) if corrupt else before.covered
    repaired = repair(after)[0]
    for start, end, kind, _ in after.ledger:
        end = min(end, covered)
        if kind in ("sound", "repaired") and start < end:
            assert repaired[start:end] == own[start:end], "laundered"
    # What could be repaired before can be repaired still, unless rule 16 dropped a superseded frame that it took.
    lost = any(span.kind in ("lost", "unverified") for span in after.ledger)
    worse = lost and not any(span.kind in ("lost", "unverified") for span in before.ledger)
    return "extended, and less is repaired" if worse else "extended"
