//! Enums of which each variant is a word in ledgers, reports and errors, and the one that all of these have: the causes of damage.

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        $crate::words::names! { $name { $($variant = $word,)* } }
    };
}

/// What an enum has of which each variant is a word.
macro_rules! names {
    ($name:ident { $($variant:ident = $word:literal,)* }) => {
        impl $name {
            /// All of them.
            #[doc(hidden)] // public for the Python extension and tests
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word that callers, ledgers, reports and errors use: what [`AsRef`] and `Display` give.
            #[doc(hidden)] // public for the Python extension
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use {names, words};

words! {
    /// The cause of a damaged range. Every format uses the same list.
    Cause {
        /// The file ends inside a header or length field.
        TruncatedHeader = "truncated_header",
        /// The file ends inside the trailer of these records.
        TruncatedTrailer = "truncated_trailer",
        /// A length or count reaches past the end of the file or of the enclosing unit.
        LengthOutOfBounds = "length_out_of_bounds",
        /// An offset points outside the data.
        OffsetOutOfBounds = "offset_out_of_bounds",
        /// A record, block or index item fails its own checksum.
        ChecksumMismatch = "checksum_mismatch",
        /// A header, index or table of contents fails its own checksum.
        HeaderChecksumMismatch = "header_checksum_mismatch",
        /// A chunk's payload does not contain the records that its header states.
        PayloadInvalid = "payload_invalid",
        /// Bytes follow a message's last field.
        TrailingBytes = "trailing_bytes",
        /// A count differs from the number of units found.
        CountMismatch = "count_mismatch",
        /// The record is verified, but does not ascend.
        OutOfOrder = "out_of_order",
        /// The record is verified, but its UUID is not version 6, variant 10.
        BadUuid = "bad_uuid",
        /// A key reference points nowhere.
        DanglingReference = "dangling_reference",
        /// An index entry and the unit that it names disagree.
        IndexDisagrees = "index_disagrees",
        /// No intact index entry names these bytes.
        Unreferenced = "unreferenced",
        /// Unused space that is not zero.
        NonzeroUnused = "nonzero_unused",
        /// Padding that is not zero.
        NonzeroPadding = "nonzero_padding",
        /// The magic is wrong.
        BadMagic = "bad_magic",
        /// The index does not end with an intact terminator.
        BadTerminator = "bad_terminator",
        /// An unknown version.
        UnsupportedVersion = "unsupported_version",
        /// Unknown flags.
        UnsupportedFlags = "unsupported_flags",
        /// The search for the next sound record exhausted its budget.
        SearchLimit = "search_limit",
        /// Every checksum mismatches and the structure is sound.
        WrongKey = "wrong_key",
    }
}
