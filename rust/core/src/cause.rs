//! Why bytes are damage: the vocabulary of ledgers, reports and errors.

use crate::words::words;

words! {
    /// Why a range is damage: a closed list, the same for every format.
    Cause {
        /// The file ends inside the fields that say how long things are.
        TruncatedHeader = "truncated_header",
        /// The file ends inside the trailer that these records would have.
        TruncatedTrailer = "truncated_trailer",
        /// A length or count reaches beyond the file, or beyond what holds it.
        LengthOutOfBounds = "length_out_of_bounds",
        /// An offset points outside the data.
        OffsetOutOfBounds = "offset_out_of_bounds",
        /// A record, block or index item fails its own checksum.
        ChecksumMismatch = "checksum_mismatch",
        /// A header, index or table of contents fails its own checksum.
        HeaderChecksumMismatch = "header_checksum_mismatch",
        /// A chunk's payload is not the records that its header says.
        PayloadInvalid = "payload_invalid",
        /// Bytes are left over behind a message's last field.
        TrailingBytes = "trailing_bytes",
        /// A count differs from what is there.
        CountMismatch = "count_mismatch",
        /// It checks, but does not ascend.
        OutOfOrder = "out_of_order",
        /// It checks, but its UUID is not version 6, variant 10.
        BadUuid = "bad_uuid",
        /// A key reference points nowhere.
        DanglingReference = "dangling_reference",
        /// An index entry and what it points at disagree.
        IndexDisagrees = "index_disagrees",
        /// No intact index entry accounts for these bytes.
        Unreferenced = "unreferenced",
        /// Unused space that is not zero.
        NonzeroUnused = "nonzero_unused",
        /// Padding that is not zero.
        NonzeroPadding = "nonzero_padding",
        /// The magic is wrong.
        BadMagic = "bad_magic",
        /// No intact terminator where the index ends.
        BadTerminator = "bad_terminator",
        /// A version that is not known.
        UnsupportedVersion = "unsupported_version",
        /// Flags that are not known.
        UnsupportedFlags = "unsupported_flags",
        /// The search for the next good record reached its budget.
        SearchLimit = "search_limit",
        /// Every checksum fails and all else fits.
        WrongKey = "wrong_key",
    }
}
