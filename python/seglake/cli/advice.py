"""What the ledger's words mean, and what to do about damage. Words are those of every format."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seglake import Report

DAMAGE_NEXT = "`seglake verify` lists every damaged range; `--on-damage skip` reads all that still checks"
KEY_NEXT = "give the key that it was written with: --key-file FILE, or SEGLAKE_KEY"

_MEANINGS = {
    "truncated_header": "the file ends inside the fields that say how long things are",
    "truncated_trailer": "the file ends inside the trailer",
    "length_out_of_bounds": "a length or count reaches beyond what holds it",
    "offset_out_of_bounds": "an offset points outside the data",
    "checksum_mismatch": "the bytes do not match their checksum",
    "header_checksum_mismatch": "a header does not match its checksum",
    "payload_invalid": "a payload is not what its header says",
    "trailing_bytes": "bytes are left over behind the last field",
    "count_mismatch": "a count differs from what is there",
    "out_of_order": "it checks, but does not come after the one before it",
    "bad_uuid": "it checks, but its UUID is not of version 6",
    "dangling_reference": "a reference points nowhere",
    "index_disagrees": "an index entry and what it points at disagree",
    "unreferenced": "no intact index entry accounts for these bytes",
    "nonzero_unused": "bytes that must be zero are not",
    "nonzero_padding": "bytes that must be zero are not",
    "bad_magic": "the magic number is wrong",
    "bad_terminator": "no intact terminator where the index ends",
    "unsupported_version": "a version that this reader does not know",
    "unsupported_flags": "flags that this reader does not know",
    "search_limit": "the search for the next good record reached its limit: what follows was not looked at",
    "wrong_key": "nothing checks, all else fits: probably another key",
}


def meaning(cause: str) -> str:
    """A cause of the ledger in words."""
    return _MEANINGS.get(cause, "damaged")


_TORN_LOG = (
    "Torn tail: the last write was cut off. Every record in front of it can be read as it is. To append to the file, "
    "let the program that writes it clear the tail, or open it with "
    '`seglake.create(..., if_exists="append", zero_torn_tail=True)`, which clears it. `seglake recover` writes a sound '
    "file beside it, and keeps the tail."
)
_TORN_COPY = (
    "Torn tail: the file ends too early, as after a copy that was cut off: files of this format are written whole. "
    "What there is of it stays readable; copy or make it again for the rest."
)
_TORN_OTHERWISE = (
    "Torn tail: nothing good follows, but the bytes do not look like a write that was cut off: see above. Do not clear "
    "it before that is settled."
)
# What a torn tail that may be cleared comes from.
_TORN_REASONS = {"interrupted_write", "truncated", "consequence", "unknown"}


def _grows(report: Report) -> bool:
    """Whether files of its format grow by appending."""
    from seglake import formats

    return "append" in formats()[report.format].create_options["if_exists"].choices


def advice(report: Report) -> list[str]:
    """What to do about the damage in a report, a sentence or two for each sort of it; nothing for a sound file.

    For a file that is probably read with the wrong key the only advice is the key: cutting or repairing it would
    destroy sound data.
    """
    if report.wrong_key:
        return [
            "No checksum matches, but the structure is sound. The file is probably "
            f"intact and the key is not its own: {KEY_NEXT}. Change nothing in the file."
        ]
    kinds = {span["kind"] for span in report.totals if span["cause"] is not None}
    causes = {span["cause"] for span in report.totals}
    found: list[str] = []
    torn = {own.reason for own in report.diagnoses if own.kind == "torn_tail"}
    if torn - _TORN_REASONS:
        found.append(_TORN_OTHERWISE)
    elif "torn_tail" in kinds:
        found.append(_TORN_LOG if _grows(report) else _TORN_COPY)
    if "corrupt" in kinds:
        found.append(
            "Corrupt: bytes that changed after they were written, or never were a record of this file. The sound "
            "records around them stay readable: `seglake cat --on-damage skip`, `seglake ingest`. `seglake recover` "
            "writes them to a sound file, and every other byte to a quarantine. Keep this file as it is, restore it "
            "from a copy if there is one, and look at the disk it lay on."
        )
    if causes & {"index_disagrees", "count_mismatch", "bad_terminator", "bad_magic", "unreferenced"}:
        found.append(
            "Directory: what the file says of itself (index, table of contents, counts) is damaged, or does not fit "
            "the data. Records that check by themselves are read all the same."
        )
    if "dangling_reference" in causes:
        found.append(
            "Dangling reference: these records are whole, but name a key that no record in front of them declares. "
            "`seglake cat --on-damage skip` prints them without that key; with `--columns position,cause` it marks "
            "them."
        )
    if "out_of_order" in causes:
        found.append(
            "Out of order: these records are whole, but not newer than the ones in front of them, as after a write "
            "done twice or a clock set back. They are kept out of what is read."
        )
    if "search_limit" in causes:
        found.append(
            "Search limit: the damage is so dense that the search for sound records was given up. What follows may "
            "hold some; a copy of the file is the better source."
        )
    return found
