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
        example: how it may come about.
        next: what to do, where verifying the file does not tell it.
    """

    meaning: str
    lost: str
    example: str
    next: str = ""


KEY_NEXT: Final = "give the key that it was written with: --key-file FILE, or SEGLAKE_KEY"
_DANGLING: Final = (
    "`seglake cat --on-damage skip` prints these records without that key; with `--columns position,cause` it marks "
    "them."
)
_NOTHING: Final = "Nothing: it is not damage."
_UNIT: Final = "The record, block or chunk with these bytes. The sound ones around it are read."
_DIRECTORY_LOST: Final = (
    "Often nothing: records that are verified by themselves are read. The others are damage of their own."
)
_SIDECAR_LOST: Final = "By itself nothing: the file is judged by its own format, too."

KINDS: Final[dict[str, Word]] = {
    "header": Word("bytes with the places or counts of other units", _NOTHING, "the index of a sealed segment"),
    "record": Word(
        "a record; with a cause, one of which something is missing",
        "Without a cause nothing. With one, what the cause says.",
        "an order in an active segment, whose checksum matches",
        next=_DANGLING,
    ),
    "chunk": Word("a chunk of compressed records", _NOTHING, "20 messages of a chunked log"),
    "block": Word("the messages of one tenant in one partition", _NOTHING, "what the tenant acme wrote to partition 3"),
    "padding": Word(
        "zeros up to the next aligned offset", _NOTHING, "the bytes between two chunks, which begin at multiples of 128"
    ),
    "unused": Word(
        "zeros to the end of the file, which were never written to",
        _NOTHING,
        "an active segment that was made 64 MiB long in advance",
    ),
    "trailer": Word(
        "the checksums at the end of a sealed segment", _NOTHING, "what `seglake seal` writes without --no-trailer"
    ),
    "unproven": Word(
        "bytes of a frozen segment of a log that no reader was promised",
        "Nothing: no reader was told of a record there.",
        "a power failure struck while a record was written, before its sync",
    ),
    "pending": Word(
        "the end of the file, which its writer has not finished",
        "Nothing: the writer goes on.",
        "a record of which half is written",
    ),
    "torn_tail": Word(
        "damage with nothing sound after it",
        "What was written last. Every record before it is whole.",
        "the machine lost power while a record was written",
    ),
    "corrupt": Word("any other damage", _UNIT, "a bit of a value flipped on the disk"),
    "repaired": Word(
        "damaged bytes that the parity sidecar has",
        "Nothing: `--on-damage repair` reads them.",
        "a sector of the file reads as zeros, and FILE.par has it",
        next="`seglake repair FILE` restores them in the file, `seglake repair FILE COPY` in a copy.",
    ),
    "lost": Word(
        "damaged bytes that the parity sidecar cannot restore",
        "These bytes. What is sound of the file by its own format is read.",
        "10 blocks of a group are damaged, and its parity restores 8",
        next="Restore the file from a copy. If there is none, `seglake recover FILE NEW` writes what is sound of it to "
        "a new file.",
    ),
    "unverified": Word(
        "bytes that were covered by a parity sidecar, and that nothing can verify now",
        _SIDECAR_LOST,
        "the part of FILE.par with their hashes was overwritten",
        next="If the file is sound by its own format, `seglake protect --as-it-is FILE` begins a new sidecar.",
    ),
    "uncovered": Word(
        "bytes that no parity sidecar ever covered",
        _NOTHING,
        "what was appended after `seglake protect`",
        next="`seglake protect FILE` covers them.",
    ),
    "superseded": Word(
        "a part of a parity sidecar that a newer part replaces", _NOTHING, "FILE has grown, and was protected again"
    ),
    "sound": Word("bytes that a parity sidecar proves", _NOTHING, "a block whose hash is in FILE.par"),
}
"""Of the ranges of a ledger, those of parity sidecars included."""

CAUSES: Final[dict[str, Word]] = {
    "truncated_header": Word(
        "the file ends inside the fields that say how long things are",
        "The unit that begins there, and what the file had after it.",
        "a copy of the file stopped in the middle",
    ),
    "truncated_trailer": Word(
        "the file ends inside the trailer",
        "Checksums that the trailer had. Their messages are read if they can be verified in another way.",
        "the last bytes of a sealed segment were not copied",
    ),
    "truncated": Word(
        "bytes that the parity sidecar covers are missing at the end of the file",
        "Nothing if the kind is repaired; else these bytes.",
        "the file was cut off after it was protected",
    ),
    "length_out_of_bounds": Word(
        "a length or count reaches beyond what holds it",
        "The unit with the length. Reading goes on at the next unit that is verified.",
        "a bit flipped in the length of a value, which now reaches past the end of the file",
    ),
    "offset_out_of_bounds": Word(
        "an offset points outside the data", "What only this offset leads to.", "an entry of an index was overwritten"
    ),
    "checksum_mismatch": Word("the bytes do not match their checksum", _UNIT, "a bit of a value flipped on the disk"),
    "header_checksum_mismatch": Word(
        "a header does not match its checksum",
        "What the header leads to, if nothing else does.",
        "a byte of a chunk's header changed",
    ),
    "payload_invalid": Word(
        "a payload is not what its header says", "All records of the chunk.", "a byte of a compressed chunk changed"
    ),
    "trailing_bytes": Word(
        "bytes are left over after the last field", _UNIT, "an oplog that is read in the wrong dialect"
    ),
    "count_mismatch": Word(
        "a count differs from what is there",
        "Units that the count has and the file has not, if the count is right.",
        "whole messages at the end of a segment are missing",
    ),
    "out_of_order": Word(
        "it checks, but does not come after the one before it",
        "These records: they are left out of what is read. `seglake extract` copies their bytes.",
        "a program wrote again what it had written already",
    ),
    "bad_uuid": Word(
        "it checks, but its UUID is not of version 6",
        "The record: it has no time.",
        "a program wrote a random UUID",
        next="The disk is not at fault: look at the program that wrote it.",
    ),
    "dangling_reference": Word(
        "a reference points nowhere",
        "The key that is named. The rest of the record is read.",
        "the beginning of an oplog is missing",
        next=_DANGLING,
    ),
    "index_disagrees": Word(
        "an index entry and what it points at disagree",
        _DIRECTORY_LOST,
        "an offset in the index of a sealed segment changed",
    ),
    "unreferenced": Word(
        "no intact index entry accounts for these bytes", _DIRECTORY_LOST, "the entry of a message was overwritten"
    ),
    "nonzero_unused": Word(
        "bytes that must be zero are not",
        "No record: nothing was written there.",
        "another file's sector was written to unused space",
    ),
    "nonzero_padding": Word(
        "bytes that must be zero are not",
        "No record: the units on both sides are read.",
        "a bit flipped between two chunks",
    ),
    "bad_magic": Word(
        "the magic number is wrong", _DIRECTORY_LOST, "the first bytes of a tenant segment were overwritten"
    ),
    "bad_terminator": Word(
        "no intact terminator where the index ends",
        _DIRECTORY_LOST,
        "bytes after the index of a sealed segment changed",
    ),
    "unsupported_version": Word(
        "a version that this reader does not know",
        "What has that version.",
        "a bit flipped in the version of a message",
        next="Read it with a version of the program that knows it. If there is none, the number is damaged.",
    ),
    "unsupported_flags": Word(
        "flags that this reader does not know",
        "What has these flags.",
        "a bit flipped in the flags of a message",
        next="Read it with a version of the program that knows them. If there is none, they are damaged.",
    ),
    "search_limit": Word(
        "the search for the next sound record reached its limit: what follows was not looked at",
        "All that follows, though some of it may be sound.",
        "a file whose second half is random bytes that look like lengths",
    ),
    "wrong_key": Word(
        "nothing checks, all else fits: probably another key",
        "Nothing: the file is probably intact.",
        "the file was written with a secret key, and read with the public default key",
    ),
}
"""Of damage, in every format."""


TERMS: Final[dict[str, str]] = {
    "torn tail": KINDS["torn_tail"].meaning,
    "ledger": "all ranges of a file, and whether each is sound or why not",
    "unit": "what is verified together: a record, a block, a chunk or an index",
    "sector": "512 or 4,096 bytes, which a disk reads and writes at once",
    "parity sidecar": "FILE.par, which `seglake protect` writes: it restores damaged bytes",
    "synced mark": "up to where the records of a log are known to be on the disk",
    "quarantine": "the file with the bytes that recovering left out",
}
"""What pages explain where they use it first."""


class Reason(NamedTuple):
    """What damage comes from, and what to do about it.

    In the texts `{name}` stands for a fact of `seglake.cli.advice`. Of several texts the first is taken whose facts are
    all known; none if there is no such text.

    Attributes:
        title: what it is, in a few words.
        happened: what happened, a sentence without its end.
        shown_by: the evidence that it takes.
        example: how it may come about.
        lost: what is not in the file any more; None: the records between the sound ones around it.
        back: what comes back with the command; None: the records that are verified then.
        until: until what something cannot be read, and what that is.
        advice: what to do as well; the command is named in it after "or" where that does not undo it.
        then: what to do as well, in any case.
        commands: what to do, as a command to paste. It changes no file.
        do_not: what would make it worse, after "do not".
        question: what decides where it is not proven.
        other: which option the file is read with wrongly. Then it is not damaged.
    """

    title: str
    happened: str | tuple[str, ...]
    shown_by: str
    example: str
    lost: str | None = None
    back: str | None = None
    until: str | None = None
    advice: str | None = None
    then: str | None = None
    commands: tuple[str, ...] = ("{recover}", "{look}")
    do_not: str | None = None
    question: str | None = None
    other: str | None = None


_INSIDE: Final = "append to it, clear it or recover it: its records are all inside"
_KEEP: Final = "append to it or delete its source"
_COPY: Final = "copy it again"
_COPY_BINARY: Final = "copy it again, in binary mode"
_RESTORE: Final = "restore a copy"
_DISK: Final = "check disk and memory"
_SAVE: Final = "seglake log tail{key} --from start --no-follow --on-damage skip --json {log} > {saved}"
_UNDO: Final = ("{undo}", "{recover}", "{look}")

REASONS: Final[dict[str, Reason]] = {
    "empty": Reason(
        "empty file",
        "the file has no bytes",
        "the file has 0 bytes",
        "a copy onto a full disk",
        lost="all that it had, if it had records",
        advice="compare its size with the source's, and copy it again",
        commands=("{listing}",),
        do_not=_KEEP,
        question="was it new, or did it have records?",
    ),
    "only_zeros": Reason(
        "only zeros",
        "all {size} of the file are zeros",
        "every byte of the file is zero",
        "a copy that made the file long first and then stopped",
        lost="all that it had",
        advice=_COPY,
        commands=("{look}",),
        do_not=_KEEP,
    ),
    "wrong_key": Reason(
        "probably the wrong key",
        "no checksum matches, and the structure is sound: the file is probably intact",
        "no checksum in the file matches, and the structure is sound to its end",
        "the file was written with a secret key, and read with the public default key",
        lost="probably nothing",
        until="the right key is given: all of it",
        commands=("{verify} --key-file KEY {file}",),
        do_not="change or recover the file",
        other="key",
    ),
    "other_dialect": Reason(
        "another dialect",
        ("the messages are of the dialect {dialect}", "the messages are of another dialect"),
        "an oplog's first messages decode in another dialect, and not in this one",
        "an oplog of draft-1.1 that is read without --dialect",
        lost="probably nothing",
        until="the right dialect is given: all of it",
        commands=("{verify} --dialect {dialect} {file}", "{look}"),
        do_not="change or recover the file",
        other="dialect",
    ),
    "other_format": Reason(
        "another format",
        ("the file is of the format {other}", "the file is of another format of seglake"),
        "no record is verified, and the file is of another of these formats",
        "a sealed segment whose name ends in .active",
        lost="probably nothing",
        until="the right format is given: all of it",
        commands=("{verify} --format {other} {file}", "{look}"),
        do_not=_INSIDE,
        other="format",
    ),
    "other_content": Reason(
        "another program's file",
        (
            "the file {begins}, and nothing in it is of the format {whole}",
            "nothing in the file is of the format {whole}",
            "another program's bytes are at {start}",
        ),
        "no record is verified, and the file begins like another program's (Parquet, SQLite, HTML and so on), is text, "
        "or is of another of these formats; or a damaged range begins with text, or like another program's file",
        "a download that was answered with an error page",
        advice=_COPY,
        do_not=_KEEP,
        question="which program wrote to this path, or what was the answer to the download?",
    ),
    "compressed": Reason(
        "compressed",
        ("the file is compressed, with {packer}", "the file is compressed"),
        "the file begins like one of gzip, zstd, xz, bzip2, lz4 or zip",
        "a nightly job that compressed a segment and kept its name",
        lost="nothing, if what is inside is sound",
        back="all that is inside",
        commands=("{unpack} {content} > {plain} && {verify} {plain}", "{look}"),
        do_not=_INSIDE,
    ),
    "base64": Reason(
        "base64",
        "the file is text, in base64",
        "all bytes are of the alphabet of base64",
        "a segment that was sent by mail",
        lost="nothing, if what is inside is sound",
        back="all that is inside",
        commands=("base64 -d {content} > {plain} && {verify} {plain}",),
        do_not=_INSIDE,
    ),
    "text_conversion": Reason(
        "copied as text",
        "line ends were converted",
        "with the line ends turned back, records are verified: each LF has a CR before it, or CR LF are missing",
        "a transfer by FTP in text mode",
        advice=_COPY_BINARY,
        commands=("perl -pe '{lines}' < {content} > {undone} && {verify} {undone}", "{recover}", "{look}"),
        do_not="append to it or clear it",
    ),
    "reencoded": Reason(
        "re-encoded as text",
        "it was read as text and written in another encoding",
        "all bytes are UTF-8 of U+0000 to U+00FF, or UTF-8 with replacement characters (U+FFFD); or they are UTF-16; "
        "or no byte is above 0x7f",
        "a script that read a binary file as Latin-1 text and wrote it as UTF-8",
        lost="what was no text",
        advice=_COPY_BINARY,
        commands=("iconv -f {charset} -t ISO-8859-1 {content} > {undone} && {verify} {undone}", "{recover}", "{look}"),
        do_not="append to it or clear it",
    ),
    "byte_order": Reason(
        "bytes in reverse order",
        ("each {width} bytes are in reverse order", "bytes are in reverse order"),
        "with each group of 2, 4 or 8 bytes reversed, records are verified",
        "a memory dump of a machine with the other byte order",
        commands=("xxd -e -g{width} {content} | xxd -r > {plain} && {verify} {plain}", "{look}"),
        do_not=_INSIDE,
    ),
    "concatenated": Reason(
        "two files in one",
        "another file begins at {place_start}",
        "at the start of the damage another file of one of these formats begins",
        "cat today.sealed yesterday.sealed > both.sealed",
        back="all, each part by itself",
        commands=("{split}", "{look}"),
        do_not="append to it, clear it or recover it",
    ),
    "repeated_block": Reason(
        "block in the file twice",
        "{place} repeat the {place_nbytes} before them",
        "bytes repeat the same number of bytes before them, and without them the rest is verified",
        "an upload that was tried again and sent a part twice",
        advice=_COPY,
        commands=_UNDO,
    ),
    "inserted_bytes": Reason(
        "bytes inserted",
        ("{inserted} at {place_start}", "within {range}"),
        "without some bytes in its middle a record is verified; or a unit is after the offset that an index states; "
        "or a verified chunk header is not at a multiple of 0x80",
        "two programs that wrote to one file",
        advice=_COPY,
        commands=_UNDO,
    ),
    "missing_bytes": Reason(
        "bytes missing",
        ("{missing_bytes} within {range}", "within {range}"),
        "a unit is before the offset that an index states; or a record's lengths reach a little past the next sound "
        "one, or do once bytes are put in at its beginning",
        "a download that went on at the wrong place after it was interrupted",
        advice=_COPY,
        commands=_UNDO,
    ),
    "moved_sector": Reason(
        "sector written to the wrong place",
        "{place} are from elsewhere in the file",
        "with another sector's bytes in place of its own a record is verified",
        "a disk that wrote a sector to the wrong place",
        advice=_RESTORE,
        then=_DISK,
        commands=_UNDO,
    ),
    "foreign_sector": Reason(
        "sector of another file",
        "{place_nbytes} at {place_start}",
        "damage begins and ends at multiples of 512 or 4,096, and what is there is of no record of this file",
        "a disk that wrote another file's sector to this one",
        advice=_RESTORE,
        then=_DISK,
        commands=_UNDO,
    ),
    "duplicated_sector": Reason(
        "duplicated sector",
        "{place} are the bytes of another one",
        "a sector has the same bytes as another one nearby, and their neighbours differ",
        "a disk that wrote a sector to two places",
        advice=_RESTORE,
        then=_DISK,
        commands=_UNDO,
    ),
    "zeroed_sector": Reason(
        "zeroed sector",
        "zeros at {place}",
        "a run of zeros begins and ends at multiples of 512 or 4,096; or it takes at least half of the range",
        "pages that never reached the disk before the power failed",
        advice=_RESTORE,
        then=_DISK,
        commands=_UNDO,
    ),
    "erased_sector": Reason(
        "erased sector (0xff)",
        "at {place}, as in erased flash",
        "a run of 0xff, as in erased flash, begins and ends at multiples of 512 or 4,096; or it takes at least half of "
        "the range",
        "a worn flash drive",
        advice=_RESTORE,
        then=_DISK,
        commands=_UNDO,
    ),
    "zeroed_tail": Reason(
        "zeros up to the end",
        "from {place_start} on",
        "zeros begin at a multiple of 512 or 4,096 and go on to the end",
        "a copy that made the file long first and then stopped, or pages that never reached the disk",
        lost="all after {before}, if anything was",
        do_not="append to it or clear it until that is settled",
        question="was the file filled in advance? If not, compare with what was acknowledged",
    ),
    "stale_data": Reason(
        "older records",
        "within {range}",
        "verified records that are not newer than those before them: an earlier file's sectors, a clock set back, two "
        "writers",
        "a disk that lost a write, so that a deleted file's sector is still there",
        advice=_RESTORE,
        commands=_UNDO,
        question="a clock set back, or two writers?",
    ),
    "duplicated_records": Reason(
        "records written twice",
        "within {range}",
        "verified records whose bytes are nearby once more",
        "a program that wrote again what it had written already",
        lost="nothing, if the same records come before",
        question="was a write tried again, or are there two writers?",
    ),
    "flipped_bit": Reason(
        "single flipped bit",
        ("bit {bit} of the byte at {byte_offset}", "{bits} within {range}"),
        "with one bit flipped back, the record, message, block, chunk header, payload, index entry, table of "
        "contents, count or trailer is verified, or padding and unused space are zero again",
        "a worn memory module",
        advice=_RESTORE,
        then=_DISK,
        commands=_UNDO,
    ),
    "changed_bytes": Reason(
        "bytes changed",
        "within {range}",
        "a record, message, block or payload has its length, and what is beside it is sound; only its checksum fails, "
        "and no change that was tried explains it",
        "a flipped bit in a record of 1 MiB, or an older sector within a block",
        advice=_RESTORE,
        then=_DISK,
        question="one bit, or a sector? `cmp -l` with a copy shows it",
    ),
    "interrupted_write": Reason(
        "interrupted write",
        "what begins at {start} is not complete",
        "a torn tail after a sound record: the written bytes end within the next record; or a range is beginnings of "
        "the record after it, which was written again",
        "the machine lost power while a record was written",
        lost="what was being written, after {before}",
        question="is a program to go on with it? Opened with zero_torn_tail=True it is: the tail is kept beside it",
    ),
    "truncated": Reason(
        "file cut off",
        ("at least {missing_bytes} missing", "the file ends too early"),
        "the file ends too early: at a multiple of 64 KiB, or it is of a format that is written whole, or its log or "
        "its index says that it was longer",
        "a copy that stopped in the middle",
        advice=_COPY,
        do_not=_KEEP,
    ),
    "as_written": Reason(
        "intact, but written wrong",
        "the bytes are as they were written, and what was written is wrong",
        "the checksum matches, but its content is invalid: unknown flags, or a UUID that is not of version 6. The "
        "disk is not at fault",
        "a program that writes random UUIDs",
        advice="look at the program that wrote it",
        commands=("{look_there}",),
        do_not="restore it from a copy: that has the same",
    ),
    "lost_reference": Reason(
        "reference to what is not there",
        "messages name a key that no message before them declares",
        "an oplog's message names a key that no earlier message declares",
        "the beginning of an oplog is missing",
        lost="nothing, if the part that declares the key is found",
        until="that part is read with it: the key's name",
        advice="look for the other parts of the oplog",
        commands=("seglake cat --on-damage skip --columns position,cause {file}",),
        do_not="delete other parts of the oplog: one of them may declare the key",
    ),
    "restorable": Reason(
        "not as it was protected",
        "the file differs in {nbytes}, which the parity sidecar has",
        "the file's parity sidecar has other bytes there, which agree with its hash",
        "a sector reads as zeros, and FILE.par has it",
        lost="nothing",
        back="{nbytes}",
        commands=("{repair} {file} {new}",),
        do_not="protect it anew before that, or the sidecar forgets what it restores",
    ),
    "consequence": Reason(
        "follows from other damage",
        "the range is sound once the other damage is undone",
        "the range is sound once the bits that are proposed elsewhere are flipped back. For example, a sealed file's "
        "index hash mismatches because of a bit in the index",
        "a flipped bit in an index, whose checksum is in the trailer",
        lost="nothing more",
        commands=(),
    ),
    "unknown": Reason(
        "cause not found",
        "{meaning}, at {start}",
        "none of these",
        "random bytes in the middle of a file",
        advice=_RESTORE,
    ),
    "older_mark": Reason(
        "older synced mark",
        "{records} not read, in {nbytes} of segment {sequence} from offset {start} on: the synced mark is older or "
        "lost, and no writer has the log open",
        "sound records follow the synced mark, and no writer has the log open",
        "a mark that came from a backup, or a writer that was killed",
        lost="what of these bytes does not check, if anything",
        back="{unread}",
        commands=("cp -a {log} {copy} && seglake log write{key} {copy} < /dev/null && seglake log verify{key} {copy}",),
        do_not="delete the mark or the segment",
    ),
    "other_segment": Reason(
        "another segment",
        ("{found}", "the file has another segment than its name says"),
        "the first record is sound, and is not the one that the file's name has",
        "a file that was restored under the name of another one",
        lost="nothing, if the right file is found",
        until="the right file is back under its name: the segment",
        advice="move the file elsewhere and restore the right one; `info` shows which it is",
        commands=("seglake info {file}",),
        do_not="open the log for writing",
    ),
    "missing_segment": Reason(
        "segment missing",
        ("{found}", "a segment of the log is not there, or the newest ones are not"),
        "the numbers of segments have a gap, or the synced mark is in a segment after the last one",
        "a folder of which not all files were restored",
        lost="nothing, if its file is found",
        until="its file is back: the segment",
        advice="restore its file, or save the rest",
        commands=(_SAVE,),
        do_not="replace the mark, or number segments anew",
    ),
    "doubled_segment": Reason(
        "two segments in one place",
        ("{found}", "two segments of the log have one number"),
        "two files have one number and different first records",
        "files of two logs that were restored into one folder",
        lost="nothing, if the right one is known",
        until="the file that does not belong to the log is elsewhere: the log",
        advice="move the one that does not belong to this log elsewhere: `seglake info FILE` shows the times of each",
        commands=("cp -a {log} {copy}",),
        do_not="delete either of them",
    ),
    "foreign_segment": Reason(
        "segments of different logs",
        ("{found}", "the segments of the folder are not of one log"),
        "the first records of segments do not ascend as their numbers do",
        "files of two logs that were restored into one folder",
        lost="nothing, if those of this log are known",
        until="the files that do not belong to the log are elsewhere: the log",
        advice="move those that do not belong to this log elsewhere: `seglake info FILE` shows the times of each",
        commands=("cp -a {log} {copy}",),
        do_not="delete any of them",
    ),
    "short_segment": Reason(
        "segment shorter than its log says",
        "the segment ends before the end that its log says",
        "the synced mark, or the next segment, is after the end of the file",
        "a segment that was restored from an earlier backup",
        until="the newer file is back: what is after the end",
        advice="get the newer file back",
        do_not="open the log for writing or replace the mark",
    ),
    "stale_index": Reason(
        "stale index",
        "the index is not that of the log as it is",
        "entries of the index disagree with the chunks of the log",
        "a log that was restored from a backup without its index",
        lost="nothing, the log is whole without it, only looking up takes longer",
        commands=("seglake index --overwrite {file}",),
    ),
    "lost_index": Reason(
        "no index",
        "the log has no index",
        "no index is beside the log",
        "a log that was copied without its index",
        lost="nothing, the log is whole without it, only looking up takes longer",
        commands=("seglake index {file}",),
    ),
}
"""Of damage, as diagnoses name them; the last eight of logs and of the index of a chunked log."""
WRONG_KEY: Final = f"{REASONS['wrong_key'].title}: {REASONS['wrong_key'].happened}"


def meaning(cause: str) -> str:
    """A cause of the ledger, or the kind of a range, in words."""
    word = CAUSES.get(cause) or KINDS.get(cause)
    return "damaged" if word is None else word.meaning
