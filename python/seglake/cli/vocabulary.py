"""What the words of a report mean: kinds of ranges, causes of damage, and likely reasons. No other text says that.

docs/verify.md has the same tables, and its test compares them.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Word(NamedTuple):
    """What a kind or a cause stands for.

    Attributes:
        meaning: what it is, in a few words.
        lost: what cannot be read because of it.
        next: what to do, a paragraph for each case.
        example: how it may come about.
    """

    meaning: str
    lost: str
    next: tuple[str, ...]
    example: str


TORN_LOG: Final = (
    "Torn tail: the last write was cut off. Every record before it can be read as it is. To append to the file, "
    "let the program that writes it clear the tail, or open it with "
    '`seglake.create(..., if_exists="append", zero_torn_tail=True)`, which moves it into a file beside it. `seglake '
    "recover` writes a sound file, and keeps the tail."
)
TORN_COPY: Final = (
    "Torn tail: the file ends too early, as after a copy that was cut off: files of this format are written whole. "
    "What there is of it stays readable; copy or make it again for the rest."
)
TORN_OTHERWISE: Final = (
    "Torn tail: nothing sound follows, but the bytes do not look like one write that was cut off: see what "
    "they probably come from. Do not clear it before that is settled."
)
REPAIRED: Final = (
    "Repaired: bytes that are not as they were protected, and that the parity sidecar has. Nothing was "
    "changed: `seglake repair FILE` restores them in the file, `seglake repair FILE COPY` in a copy."
)
CORRUPT: Final = (
    "Corrupt: bytes that changed after they were written, or never were a record of this file. The sound "
    "records around them stay readable: `seglake cat --on-damage skip`, `seglake ingest`. `seglake recover` "
    "writes them to a sound file, and every other byte to a quarantine. Keep this file as it is, restore it "
    "from a copy if there is one, and look at the disk it lay on."
)
DIRECTORY: Final = (
    "Directory: what the file says of itself (index, table of contents, counts) is damaged, or does not fit "
    "the data. Records that check by themselves are read all the same."
)
DANGLING: Final = (
    "Dangling reference: these records are whole, but name a key that no record before them declares. "
    "`seglake cat --on-damage skip` prints them without that key; with `--columns position,cause` it marks "
    "them."
)
OUT_OF_ORDER: Final = (
    "Out of order: these records are whole, but not newer than the ones before them, as after a write "
    "done twice or a clock set back. They are kept out of what is read."
)
SEARCH_LIMIT: Final = (
    "Search limit: the damage is so dense that the search for sound records was given up. What follows may "
    "hold some; a copy of the file is the better source."
)
TEXTS_OF_CAUSES: Final = (DIRECTORY, DANGLING, OUT_OF_ORDER, SEARCH_LIMIT)
"""What is said of causes, after what is said of kinds."""
KEY_NEXT: Final = "give the key that it was written with: --key-file FILE, or SEGLAKE_KEY"
WRONG_KEY: Final = (
    "No checksum matches, but the structure is sound. The file is probably intact and the key is not its own: "
    f"{KEY_NEXT}. Change nothing in the file."
)

_NOTHING: Final = "Nothing: it is not damage."
_UNIT: Final = "The record, block or chunk with these bytes. The sound ones around it are read."
_DIRECTORY_LOST: Final = (
    "Often nothing: records that are verified by themselves are read. The others are damage of their own."
)
_SIDECAR_LOST: Final = "By itself nothing: the file is judged by its own format, too."

KINDS: Final[dict[str, Word]] = {
    "header": Word("bytes with the places or counts of other units", _NOTHING, (), "the index of a sealed segment"),
    "record": Word(
        "a record; with a cause, one of which something is missing",
        "Without a cause nothing. With one, what the cause says.",
        (DANGLING,),
        "an order in an active segment, whose checksum matches",
    ),
    "chunk": Word("a chunk of compressed records", _NOTHING, (), "20 messages of a chunked log"),
    "block": Word(
        "the messages of one tenant in one partition", _NOTHING, (), "what the tenant acme wrote to partition 3"
    ),
    "padding": Word(
        "zeros up to the next aligned offset",
        _NOTHING,
        (),
        "the bytes between two chunks, which begin at multiples of 128",
    ),
    "unused": Word(
        "zeros to the end of the file, which were never written to",
        _NOTHING,
        (),
        "an active segment that was made 64 MiB long in advance",
    ),
    "trailer": Word(
        "the checksums at the end of a sealed segment", _NOTHING, (), "what `seglake seal` writes without --no-trailer"
    ),
    "unproven": Word(
        "bytes of a frozen segment of a log that no reader was promised",
        "Nothing: no reader was told of a record there.",
        (),
        "a power failure struck while a record was written, before its sync",
    ),
    "pending": Word(
        "the end of the file, which its writer has not finished",
        "Nothing: the writer goes on.",
        (),
        "a record of which half is written",
    ),
    "torn_tail": Word(
        "damage with nothing sound after it",
        "What was written last. Every record before it is whole.",
        (TORN_LOG, TORN_COPY, TORN_OTHERWISE),
        "the machine lost power while a record was written",
    ),
    "corrupt": Word("any other damage", _UNIT, (CORRUPT,), "a bit of a value flipped on the disk"),
    "repaired": Word(
        "damaged bytes that the parity sidecar has",
        "Nothing: `--on-damage repair` reads them.",
        (REPAIRED,),
        "a sector of the file reads as zeros, and FILE.par has it",
    ),
    "lost": Word(
        "damaged bytes that the parity sidecar cannot restore",
        "These bytes. What is sound of the file by its own format is read.",
        (
            "Restore the file from a copy. If there is none, `seglake recover FILE NEW` writes what is sound of it to "
            "a new file.",
        ),
        "10 blocks of a group are damaged, and its parity restores 8",
    ),
    "unverified": Word(
        "bytes that were covered by a parity sidecar, and that nothing can verify now",
        _SIDECAR_LOST,
        ("If the file is sound by its own format, `seglake protect --as-it-is FILE` begins a new sidecar.",),
        "the part of FILE.par with their hashes was overwritten",
    ),
    "uncovered": Word(
        "bytes that no parity sidecar ever covered",
        _NOTHING,
        ("`seglake protect FILE` covers them.",),
        "what was appended after `seglake protect`",
    ),
    "superseded": Word(
        "a part of a parity sidecar that a newer part replaces", _NOTHING, (), "FILE has grown, and was protected again"
    ),
    "sound": Word("bytes that a parity sidecar proves", _NOTHING, (), "a block whose hash is in FILE.par"),
}
"""Of the ranges of a ledger, those of parity sidecars included."""

_CHANGED: Final = (CORRUPT,)
_LISTED: Final = (DIRECTORY,)

CAUSES: Final[dict[str, Word]] = {
    "truncated_header": Word(
        "the file ends inside the fields that say how long things are",
        "The unit that begins there, and what the file had after it.",
        (TORN_LOG, TORN_COPY),
        "a copy of the file stopped in the middle",
    ),
    "truncated_trailer": Word(
        "the file ends inside the trailer",
        "Checksums that the trailer had. Their messages are read if they can be verified in another way.",
        (TORN_COPY,),
        "the last bytes of a sealed segment were not copied",
    ),
    "truncated": Word(
        "bytes that the parity sidecar covers are missing at the end of the file",
        "Nothing if the kind is repaired; else these bytes.",
        (REPAIRED,),
        "the file was cut off after it was protected",
    ),
    "length_out_of_bounds": Word(
        "a length or count reaches beyond what holds it",
        "The unit with the length. Reading goes on at the next unit that is verified.",
        (*_CHANGED, TORN_LOG),
        "a bit flipped in the length of a value, which now reaches past the end of the file",
    ),
    "offset_out_of_bounds": Word(
        "an offset points outside the data",
        "What only this offset leads to.",
        _CHANGED,
        "an entry of an index was overwritten",
    ),
    "checksum_mismatch": Word(
        "the bytes do not match their checksum", _UNIT, _CHANGED, "a bit of a value flipped on the disk"
    ),
    "header_checksum_mismatch": Word(
        "a header does not match its checksum",
        "What the header leads to, if nothing else does.",
        _CHANGED,
        "a byte of a chunk's header changed",
    ),
    "payload_invalid": Word(
        "a payload is not what its header says",
        "All records of the chunk.",
        _CHANGED,
        "a byte of a compressed chunk changed",
    ),
    "trailing_bytes": Word(
        "bytes are left over after the last field", _UNIT, _CHANGED, "an oplog that is read in the wrong dialect"
    ),
    "count_mismatch": Word(
        "a count differs from what is there",
        "Units that the count has and the file has not, if the count is right.",
        _LISTED,
        "whole messages at the end of a segment are missing",
    ),
    "out_of_order": Word(
        "it checks, but does not come after the one before it",
        "These records: they are left out of what is read. `seglake extract` copies their bytes.",
        (OUT_OF_ORDER,),
        "a program wrote again what it had written already",
    ),
    "bad_uuid": Word(
        "it checks, but its UUID is not of version 6",
        "The record: it has no time.",
        ("The disk is not at fault: look at the program that wrote it.",),
        "a program wrote a random UUID",
    ),
    "dangling_reference": Word(
        "a reference points nowhere",
        "The key that is named. The rest of the record is read.",
        (DANGLING,),
        "the beginning of an oplog is missing",
    ),
    "index_disagrees": Word(
        "an index entry and what it points at disagree",
        _DIRECTORY_LOST,
        _LISTED,
        "an offset in the index of a sealed segment changed",
    ),
    "unreferenced": Word(
        "no intact index entry accounts for these bytes",
        _DIRECTORY_LOST,
        _LISTED,
        "the entry of a message was overwritten",
    ),
    "nonzero_unused": Word(
        "bytes that must be zero are not",
        "No record: nothing was written there.",
        _CHANGED,
        "another file's sector was written to unused space",
    ),
    "nonzero_padding": Word(
        "bytes that must be zero are not",
        "No record: the units on both sides are read.",
        _CHANGED,
        "a bit flipped between two chunks",
    ),
    "bad_magic": Word(
        "the magic number is wrong", _DIRECTORY_LOST, _LISTED, "the first bytes of a tenant segment were overwritten"
    ),
    "bad_terminator": Word(
        "no intact terminator where the index ends",
        _DIRECTORY_LOST,
        _LISTED,
        "bytes after the index of a sealed segment changed",
    ),
    "unsupported_version": Word(
        "a version that this reader does not know",
        "What has that version.",
        ("Read it with a version of the program that knows it. If there is none, the number is damaged.",),
        "a bit flipped in the version of a message",
    ),
    "unsupported_flags": Word(
        "flags that this reader does not know",
        "What has these flags.",
        ("Read it with a version of the program that knows them. If there is none, they are damaged.",),
        "a bit flipped in the flags of a message",
    ),
    "search_limit": Word(
        "the search for the next sound record reached its limit: what follows was not looked at",
        "All that follows, though some of it may be sound.",
        (SEARCH_LIMIT,),
        "a file whose second half is random bytes that look like lengths",
    ),
    "wrong_key": Word(
        "nothing checks, all else fits: probably another key",
        "Nothing: the file is probably intact.",
        (WRONG_KEY,),
        "the file was written with a secret key, and read with the public default key",
    ),
}
"""Of damage, in every format."""


class Reason(NamedTuple):
    """What damage probably comes from.

    Attributes:
        title: what it is, in a few words.
        shown_by: the evidence that it takes.
    """

    title: str
    shown_by: str


REASONS: Final[dict[str, Reason]] = {
    "flipped_bit": Reason(
        "single flipped bit",
        "with one bit flipped back, the record, message, block, chunk header, payload, index entry, table of "
        "contents, count or trailer is verified, or padding and unused space are zero again",
    ),
    "zeroed_sector": Reason("zeroed sector", "a run of zeros begins and ends at multiples of 512 or 4,096"),
    "erased_sector": Reason(
        "erased sector (0xff)", "a run of 0xff, as in erased flash, begins and ends at multiples of 512 or 4,096"
    ),
    "moved_sector": Reason(
        "sector written to the wrong place", "with another sector's bytes in place of its own a record is verified"
    ),
    "duplicated_sector": Reason(
        "duplicated sector", "a sector has the same bytes as another one nearby, and their neighbours differ"
    ),
    "duplicated_records": Reason("records written twice", "verified records whose bytes are nearby once more"),
    "stale_data": Reason(
        "older records",
        "verified records that are not newer than those before them: an earlier file's sectors, a clock set back, two "
        "writers",
    ),
    "inserted_bytes": Reason(
        "bytes inserted",
        "without some bytes in its middle a record is verified; or a unit is after the offset that an index states; "
        "or a verified chunk header is not at a multiple of 0x80",
    ),
    "missing_bytes": Reason(
        "bytes missing",
        "a unit is before the offset that an index states; or a record's lengths reach a little past the next sound "
        "one",
    ),
    "interrupted_write": Reason(
        "interrupted write", "a torn tail after a sound record: the written bytes end within the next record"
    ),
    "truncated": Reason(
        "file cut off",
        "the file ends too early: at a multiple of 64 KiB, or it is of a format that is written whole, or its log or "
        "its index says that it was longer",
    ),
    "text_conversion": Reason(
        "copied as text",
        "with each CR LF turned back into LF it is verified; or all of it is UTF-8 with replacement characters "
        "(U+FFFD)",
    ),
    "wrong_key": Reason("another key", "no checksum in the file matches, and the structure is sound to its end"),
    "other_dialect": Reason(
        "another dialect", "an oplog's first messages decode in another dialect, and not in this one"
    ),
    "other_content": Reason(
        "something else's content",
        "no record is verified, and the file begins like another program's (gzip, zstd, Parquet, HTML and so on), is "
        "text, or is of another of these formats; or a damaged range begins with text, or like another program's file",
    ),
    "as_written": Reason(
        "intact, but written wrong",
        "the checksum matches, but its content is invalid: unknown flags, or a UUID that is not of version 6. The "
        "disk is not at fault",
    ),
    "lost_reference": Reason(
        "reference to what is not there", "an oplog's message names a key that no earlier message declares"
    ),
    "restorable": Reason(
        "not as it was protected", "the file's parity sidecar has other bytes there, which agree with its hash"
    ),
    "consequence": Reason(
        "follows from other damage",
        "the range is sound once the bits that are proposed elsewhere are flipped back. For example, a sealed file's "
        "index hash mismatches because of a bit in the index",
    ),
    "unknown": Reason("unknown", "none of these"),
}
"""Of damage, as diagnoses name them."""


def meaning(cause: str) -> str:
    """A cause of the ledger in words."""
    word = CAUSES.get(cause)
    return "damaged" if word is None else word.meaning


def title(reason: str) -> str:
    """A reason in a few words."""
    found = REASONS.get(reason)
    return reason if found is None else found.title
