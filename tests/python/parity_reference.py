"""The rules for parity sidecars as slow, plain code: what the library is compared with.

Written from the document alone. The numbers in brackets are those of its rules. `parity_layout` has the bytes and the
code.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ledger_reference import Range
from parity_layout import (
    ENTRY_BYTES,
    HEAD_BYTES,
    MAGIC,
    Head,
    Set,
    Shape,
    decode_head,
    encode_frame,
    entry,
    masked,
    value,
)


class Refused(Exception):
    """Extending a sidecar is refused."""


# Reading a sidecar


@dataclass(frozen=True)
class Frame:
    """A frame of a sidecar. Bytes at or after `end`, or after the end of the sidecar, are missing."""

    start: int
    end: int
    head: Head
    data: bytes = field(repr=False)
    """The bytes that are there."""

    @cached_property
    def shape(self) -> Shape:
        """The sizes and counts that its head gives."""
        return self.head.shape

    @property
    def is_whole(self) -> bool:
        """Whether no byte is missing."""
        return len(self.data) == self.shape.frame_bytes

    @cached_property
    def tables(self) -> tuple[list[bytes], list[bytes]]:
        """Both tables, each up to its last entry that is there."""
        nbytes = self.shape.front_bytes - HEAD_BYTES
        found = (self.data[at + HEAD_BYTES : at + HEAD_BYTES + nbytes] for at in (0, self.shape.second))
        first, second = (
            [table[at : at + ENTRY_BYTES] for at in range(0, len(table) - ENTRY_BYTES + 1, ENTRY_BYTES)]
            for table in found
        )
        return first, second

    def parity(self, j: int) -> bytes | None:
        """A parity block as stored, if it is there."""
        start = self.shape.front_bytes + j * self.shape.b
        block = self.data[start : start + self.shape.b]
        return block if len(block) == self.shape.b else None

    def matches(self, t: int, block: bytes) -> bool:
        """Whether the block has the hash that either table has for it."""
        entries = [table[t] for table in self.tables if t < len(table)]
        return bool(entries) and entry(self.head, t, block) in entries


def find_heads(sidecar: bytes) -> dict[int, Head]:
    """All heads and their places (1)."""
    found: dict[int, Head] = {}
    at = sidecar.find(MAGIC)
    while at >= 0:
        head = decode_head(sidecar[at : at + HEAD_BYTES])
        if head is not None:
            found[at] = head
        at = sidecar.find(MAGIC, at + 1)
    return found


def find_pairs(heads: dict[int, Head]) -> list[int]:
    """The places of the first heads of all pairs (1)."""
    return [
        at
        for at, head in heads.items()
        if head.copy == 0 and heads.get(at + head.shape.second) == head._replace(copy=1)
    ]


def find_frames(sidecar: bytes) -> list[Frame]:
    """All frames in file order (1 to 3)."""
    heads = find_heads(sidecar)
    pairs = find_pairs(heads)
    if not heads:
        return []
    of = heads[pairs[0] if pairs else max(heads)].set
    heads = {at: head for at, head in heads.items() if head.set == of}
    pairs = [at for at in pairs if at in heads]
    frames: list[Frame] = []
    searched = 0
    for at, head in heads.items():
        start = at - head.copy * head.shape.second
        if start < searched:
            continue
        end = start + head.shape.frame_bytes
        follows = heads.get(end)
        if end != len(sidecar) and (follows is None or follows.copy != 0):
            inside = bisect_right(pairs, start)
            if inside < len(pairs) and pairs[inside] < end:
                end = pairs[inside]
        frames.append(Frame(start, end, head._replace(copy=0), sidecar[start:end]))
        searched = end
    return frames


def choose(frames: Iterable[Frame], size: int) -> list[Frame]:
    """The current frames in the order of their bands (4)."""
    chosen: dict[int, Frame] = {}
    for frame in frames:
        band = frame.head.band
        if band not in chosen or frame.head.length > chosen[band].head.length:
            chosen[band] = frame
    current: list[Frame] = []
    for band, frame in sorted(chosen.items()):
        before = current[-1].head if current else None
        if frame.head.start <= size or (
            before is not None and before.band == band - 1 and before.length == before.set.band_bytes
        ):
            current.append(frame)
    return current


# Judging current frames


class Image:
    """The bytes of FILE in a band, with those that are known in place."""

    def __init__(self, file: bytes, head: Head) -> None:
        self.data = bytearray(file[head.start : head.start + head.length])
        self.present = bytearray(b"\1" * len(self.data))
        self.known = bytearray(len(self.data))
        """Which bytes are in a block that a frame verified or accepted."""
        self.proven = bytearray(len(self.data))
        """Which bytes are in a block that a superseded frame verified or accepted."""

    def block(self, head: Head, i: int) -> bytes | None:
        """Data block i of a frame, padded, if none of its bytes is missing."""
        b = head.shape.b
        start, end = i * b, min((i + 1) * b, head.length)
        return bytes(self.data[start:end]).ljust(b, b"\0") if _all(self.present, start, end) else None

    def is_proven(self, head: Head, i: int) -> bool:
        """Whether each byte of data block i is in a block that a superseded frame verified or accepted."""
        b = head.shape.b
        return _all(self.proven, i * b, min((i + 1) * b, head.length))

    def agrees(self, start: int, block: bytes) -> bool:
        """Whether no byte of a block contradicts one that is known."""
        end = start + len(block)
        if self.known.find(1, start, end) < 0 or self.data[start:end] == block:
            return True
        there = zip(self.known[start:end], self.data[start:end], block, strict=False)
        return all(not known or byte == own for known, byte, own in there)

    def put(self, start: int, block: bytes, *, proven: bool) -> None:
        """Puts a block in its place."""
        end = start + len(block)
        for each in (self.data, self.present, self.known, self.proven):
            each.extend(bytes(max(0, end - len(each))))
        self.data[start:end] = block
        self.present[start:end] = self.known[start:end] = b"\1" * len(block)
        if proven:
            self.proven[start:end] = b"\1" * len(block)


def _all(flags: bytearray, start: int, end: int) -> bool:
    return end <= len(flags) and flags.find(0, start, end) < 0


def verify_blocks(frame: Frame, image: Image, *, proven: bool = False) -> dict[int, bytes]:
    """The blocks that verify (5), data blocks first, as parity is stored; with `proven` also by the end of rule 7."""
    found: dict[int, bytes] = {}
    head, n = frame.head, frame.shape.n
    for t in range(max(map(len, frame.tables))):
        block = image.block(head, t) if t < n else frame.parity(t - n)
        if block is not None and frame.matches(t, block):
            found[t] = block
    if proven:
        for i in range(min(n, -(-len(image.proven) // frame.shape.b))):
            if i not in found and image.is_proven(head, i):
                block = image.block(head, i)
                assert block is not None
                found[i] = block
    return found


def compute_blocks(frame: Frame, image: Image, verified: dict[int, bytes]) -> dict[int, bytes]:
    """The data blocks that do not verify, as far as they are computed and accepted (6)."""
    of, (b, n, g, *_) = frame.head.set, frame.shape
    known: dict[int, dict[int, bytes | None]] = {}
    for t, block in verified.items():
        if t < n:
            known.setdefault(t % g, {})[t // g] = block
        else:
            j = t - n
            known.setdefault(j % g, {})[of.k + j // g] = masked(of, block)
    accepted: dict[int, bytes] = {}
    for group, points in known.items():
        missing = [i for i in range(group, n, g) if i not in verified]
        if not missing:
            continue
        points.update((point, None) for point in range(len(range(group, n, g)), of.k))
        if len(points) < of.k:
            continue
        first = {point: points[point] for point in sorted(points)[: of.k]}
        for i in missing:
            block = value(first, i // g, b)
            if frame.matches(i, block) or block == image.block(frame.head, i):
                accepted[i] = block
    return accepted


@dataclass
class Band:
    """What is known of a band that has a current frame."""

    frame: Frame
    superseded: list[Frame]
    image: Image
    verified: dict[int, bytes]
    """The blocks that verify by rule 5 alone."""
    known: set[int] = field(default_factory=set[int])
    """The data blocks that are verified or accepted."""

    @property
    def data_verified(self) -> set[int]:
        """The data blocks that verify by rule 5 alone."""
        return {t for t in self.verified if t < self.frame.shape.n}

    def place(self, frame: Frame, verified: Iterable[int], accepted: dict[int, bytes]) -> set[int]:
        """Puts the blocks in place that a frame verified or accepted, and returns the numbers of data blocks."""
        head, b, n = frame.head, frame.shape.b, frame.shape.n
        placed: set[int] = set()
        for i in (*(t for t in verified if t < n), *accepted):
            start, end = i * b, min((i + 1) * b, head.length)
            block = accepted[i][: end - start] if i in accepted else bytes(self.image.data[start:end])
            # A frame of the set has other bytes here only if it was forged. What was known first stays.
            if self.image.agrees(start, block):
                self.image.put(start, block, proven=frame is not self.frame)
                placed.add(i)
        return placed

    def judge(self) -> None:
        """Rules 6 and 7."""
        self.known = self.place(self.frame, self.verified, compute_blocks(self.frame, self.image, self.verified))
        if len(self.known) == self.frame.shape.n or not self.superseded:
            return
        for frame in sorted(self.superseded, key=lambda frame: -frame.head.length):
            verified = verify_blocks(frame, self.image)
            self.place(frame, verified, compute_blocks(frame, self.image, verified))
        verified = verify_blocks(self.frame, self.image, proven=True)
        self.known |= self.place(self.frame, verified, compute_blocks(self.frame, self.image, verified))

    def block(self, i: int) -> tuple[int, int, bytes]:
        """Where a data block begins and ends in FILE, and its bytes as repaired."""
        head, b = self.frame.head, self.frame.shape.b
        start, end = i * b, min((i + 1) * b, head.length)
        return head.start + start, head.start + end, bytes(self.image.data[start:end])

    def sidecar_kind(self) -> str:
        """What the frame is (10)."""
        frame, n = self.frame, self.frame.shape.n
        if frame.is_whole:
            second = frame.shape.second
            heads = [frame.data[at : at + HEAD_BYTES] for at in (0, second)]
            right = [frame.head._replace(copy=copy).encode() for copy in (0, 1)]
            first, other = frame.tables
            if heads == right and first == other and all(self._is_entry_right(t) for t in range(len(first))):
                return "sound"
        return "repaired" if len(self.known) == n else "lost"

    def _is_entry_right(self, t: int) -> bool:
        n = self.frame.shape.n
        if t < n:
            if t not in self.known:
                return True
            block = self.image.block(self.frame.head, t)
        else:
            block = self.frame.parity(t - n)
        return block is not None and self.frame.matches(t, block)


# The report


@dataclass
class Report:
    """What is found of FILE and its sidecar."""

    file: bytes
    sidecar: bytes
    frames: list[Frame]
    bands: list[Band]
    refused: bool
    sidecar_ledger: list[Range]
    ledger: list[Range]

    @property
    def covered(self) -> int:
        """The greatest C of any frame."""
        return max((frame.head.covered for frame in self.frames), default=0)

    @property
    def outcome(self) -> str:
        """Rule 13."""
        ranges = self.ledger + self.sidecar_ledger
        if self.refused:
            return "refused"
        if any(span.kind in ("lost", "unverified") for span in ranges):
            return "lost"
        return "repaired" if any(span.cause for span in ranges) else "sound"

    @property
    def strict_error(self) -> Range | None:
        """The first range of FILE's ledger that has a cause."""
        return next((span for span in self.ledger if span.cause), None)


def report(file: bytes, sidecar: bytes, *, force: bool = False) -> Report:
    """Judge FILE and its sidecar (5 to 13)."""
    frames = find_frames(sidecar)
    current = choose(frames, len(file))
    chosen = {frame.start for frame in current}
    older: dict[int, list[Frame]] = {}
    for frame in frames:
        if frame.start not in chosen:
            older.setdefault(frame.head.band, []).append(frame)
    bands: list[Band] = []
    for frame in current:
        image = Image(file, frame.head)
        bands.append(Band(frame, older.get(frame.head.band, []), image, verify_blocks(frame, image)))
    another = bool(bands) and not any(band.data_verified for band in bands) and any(file)
    refused = bool(sidecar and not frames) or (another and not force)
    for band in bands:
        if refused:
            band.known = band.place(band.frame, band.verified, {})
        else:
            band.judge()
    found = Report(file, sidecar, frames, bands, refused, [], [])
    found.sidecar_ledger = list(_sidecar_ledger(found))
    found.ledger = _join(_file_ledger(found))
    return found


def _sidecar_ledger(found: Report) -> Iterator[Range]:
    """Rule 11."""
    current = {band.frame.start: band for band in found.bands}
    at = 0
    for frame in found.frames:
        if frame.start > at:
            yield Range(at, frame.start, "corrupt", "unreferenced")
        at = frame.end
        if frame.start not in current:
            yield Range(frame.start, frame.end, "superseded", None)
            continue
        kind = current[frame.start].sidecar_kind()
        cause = None if kind == "sound" else "checksum_mismatch" if frame.is_whole else "truncated"
        yield Range(frame.start, frame.end, kind, cause)
    if at < len(found.sidecar):
        torn = found.frames and not any(found.sidecar[at : at + HEAD_BYTES])
        yield Range(at, len(found.sidecar), "torn_tail" if torn else "corrupt", "unreferenced")


def _file_ledger(found: Report) -> Iterator[Range]:
    """Rule 12, without joining what touches."""
    corrupt = any(span.kind == "corrupt" for span in found.sidecar_ledger)
    at, unverified_until = 0, len(found.file) if corrupt else min(len(found.file), found.covered)
    for band in found.bands:
        head, b = band.frame.head, band.frame.shape.b
        yield from _uncovered(found, at, head.start, unverified_until)
        left = 0
        for i in (*sorted(band.known), band.frame.shape.n):
            yield from _lost(found, head.start + left * b, head.start + min(i * b, head.length), b)
            left = i + 1
            if i == band.frame.shape.n:
                break
            start, end, data = band.block(i)
            if found.file[start:end] == data:
                yield Range(start, end, "sound", None)
            else:
                missing = end > len(found.file)
                yield Range(start, end, "repaired", "truncated" if missing else "checksum_mismatch")
        at = head.start + head.length
    yield from _uncovered(found, at, max(len(found.file), found.covered), unverified_until)


def _lost(found: Report, start: int, end: int, b: int) -> Iterator[Range]:
    """Blocks that are lost. `start` is where the first of them begins."""
    size = len(found.file)
    cut = end if end <= size else max(start, start + (size - start) // b * b)
    yield Range(start, cut, "lost", "checksum_mismatch")
    yield Range(cut, end, "lost", "truncated")


def _uncovered(found: Report, start: int, end: int, unverified_until: int) -> Iterator[Range]:
    """Bytes that are in no block of a current frame."""
    size = len(found.file)
    yield Range(start, min(end, unverified_until), "unverified", "unreferenced")
    yield Range(max(start, unverified_until), min(end, size), "uncovered", None)
    yield Range(max(start, size), end, "lost", "truncated")


def _join(ranges: Iterable[Range]) -> list[Range]:
    """Ranges that are not empty; those that touch are one if they are alike."""
    joined: list[Range] = []
    for span in ranges:
        if span.start >= span.end:
            continue
        if joined and joined[-1][2:] == span[2:]:
            span = joined.pop()._replace(end=span.end)
        joined.append(span)
    return joined


# repair and protect


def repair(found: Report) -> tuple[bytes, bytes]:
    """FILE and its sidecar as repair leaves them (18)."""
    if found.refused:
        return found.file, found.sidecar
    file = bytearray(found.file)
    for band in found.bands:
        for i in sorted(band.known):
            start, end, data = band.block(i)
            if found.file[start:end] != data:
                file.extend(bytes(max(0, end - len(file))))
                file[start:end] = data
    keeps = any(span.kind == "unverified" for span in found.ledger)
    bands = {band.frame.start: band.frame.head for band in found.bands}
    sidecar: list[bytes] = []
    for start, end, kind, _ in found.sidecar_ledger:
        if kind == "repaired":
            head = bands[start]
            sidecar.append(encode_frame(head, bytes(file[head.start : head.start + head.length])))
        elif keeps or kind not in ("corrupt", "torn_tail"):
            sidecar.append(found.sidecar[start:end])
    return bytes(file), b"".join(sidecar)


def protect(file: bytes, of: Set, covered: int) -> bytes:
    """A new sidecar (14)."""
    bands = range(-(-covered // of.band_bytes))
    return b"".join(_frame(file, of, band, covered, covered) for band in bands)


def _frame(file: bytes, of: Set, band: int, end: int, covered: int | None = None) -> bytes:
    """The frame for as much of a band as lies before `end`."""
    start = band * of.band_bytes
    end = min(end, start + of.band_bytes)
    return encode_frame(Head(of, 0, band, end - start, end if covered is None else covered), file[start:end])


def extend(file: bytes, sidecar: bytes, covered: int) -> bytes:
    """The sidecar after it was extended to cover FILE up to `covered` (15 and 16)."""
    file = file[:covered]
    found = report(file, sidecar)
    if not found.frames or found.covered > covered:
        raise Refused("no frame, or one that covered more")
    corrupt = any(span.kind == "corrupt" for span in found.sidecar_ledger)
    if corrupt or not all(band.frame.is_whole for band in found.bands):
        if found.strict_error:
            raise Refused("the sidecar has to be healed, and FILE has damage")
        found = report(file, repair(found)[1])
    last = found.bands[-1]
    if not _covers_all(found) or len(last.data_verified) < last.frame.shape.n:
        raise Refused("covered bytes are not verified")
    of, kept = last.frame.head.set, len(found.sidecar)
    start, end, kind, _ = found.sidecar_ledger[-1]
    if kind == "torn_tail" or (kind == "superseded" and end > len(found.sidecar)):
        kept = start
    head = last.frame.head
    grown = [head.band] if min(of.band_bytes, covered - head.start) > head.length else []
    later = range(head.band + 1, -(-covered // of.band_bytes))
    extended = found.sidecar[:kept] + b"".join(_frame(file, of, band, covered) for band in (*grown, *later))
    return _collected(extended, covered)


def _covers_all(found: Report) -> bool:
    """Whether each byte before the greatest C is in a block of a current frame."""
    at = 0
    for head in (band.frame.head for band in found.bands):
        if head.start > at:
            break
        at = head.start + head.length
    return at >= found.covered


def _collected(sidecar: bytes, size: int) -> bytes:
    """The sidecar, written anew if superseded frames have more bytes than current ones (16)."""
    frames = find_frames(sidecar)
    current = choose(frames, size)
    whole = b"".join(frame.data for frame in current)
    return whole if sum(len(frame.data) for frame in frames) > 2 * len(whole) else sidecar


# What the golden files have


def as_golden(file: bytes, sidecar: bytes, *, force: bool = False) -> dict[str, Any]:
    """What the golden file of a case has to say of it, but for how it was made."""
    found = report(file, sidecar, force=force)
    first = found.strict_error
    repaired = repair(found)
    try:
        extended = _digest(extend(file, sidecar, len(file)))
    except Refused:
        extended = None
    return {
        "outcome": found.outcome,
        "strict_error": {"offset": first.start, "cause": first.cause} if first else None,
        "ledger": [list(span) for span in found.ledger],
        "frames": [
            [frame.start, frame.end, frame.head.band, frame.head.length, frame.shape.b, frame.shape.g]
            for frame in found.frames
        ],
        "sidecar_ledger": [list(span) for span in found.sidecar_ledger],
        "repaired": {"file": _digest(repaired[0]), "sidecar": _digest(repaired[1])},
        "extended": extended,
    }


def _digest(data: bytes) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(data).hexdigest(), "length": len(data)}
