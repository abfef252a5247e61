//! Whether a damaged range is a torn tail or corrupt.

use serde::{Deserialize, Serialize};

use super::{Cause, Kind};

/// What follows damage in a file that is appended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fate {
    /// A sound unit follows, or the search for it was ended by its budget.
    Corrupt,
    /// No sound unit follows.
    Torn,
    /// No sound unit follows, and nothing in the file was verified. The key may be wrong.
    Unchecked,
}

impl Fate {
    /// The fate if no sound unit follows. `checked` says whether anything in the file was verified.
    pub(crate) const fn of_tail(checked: bool) -> Self {
        if checked { Self::Torn } else { Self::Unchecked }
    }

    /// Rule 3: the kind of damage with this cause, in a file that is appended to.
    pub(crate) const fn kind(self, cause: Cause) -> Kind {
        let is_torn = match self {
            Self::Corrupt => false,
            Self::Torn => !is_refused(cause),
            Self::Unchecked => is_missing(cause),
        };
        if is_torn {
            Kind::TornTail
        } else {
            Kind::Corrupt
        }
    }
}

/// Rule 5: the kind of damage with this cause, in a file that is written whole. `reaches_end` says whether it reaches
/// the end of the file.
pub(crate) const fn whole_kind(cause: Cause, reaches_end: bool) -> Kind {
    if reaches_end && is_missing(cause) {
        Kind::TornTail
    } else {
        Kind::Corrupt
    }
}

/// Rule 4: where a torn tail ends. Its last nonzero byte is before `data_end`, the file has `len` bytes, and units
/// begin at multiples of `alignment`. The bytes after the tail are unused.
pub(crate) const fn tail_end(data_end: u64, alignment: u64, len: u64) -> u64 {
    match data_end.checked_next_multiple_of(alignment) {
        Some(end) if end < len => end,
        _ => len,
    }
}

/// Whether a verified unit was refused for this cause. Then the cause stays, whatever follows.
pub(crate) const fn is_refused(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::OutOfOrder
            | Cause::BadUuid
            | Cause::UnsupportedFlags
            | Cause::OffsetOutOfBounds
            | Cause::IndexDisagrees
    )
}

/// Whether the cause says that bytes are missing, as after an interrupted write.
const fn is_missing(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::TruncatedHeader | Cause::TruncatedTrailer | Cause::LengthOutOfBounds
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_to_is_torn_where_nothing_good_follows() {
        for cause in Cause::ALL.iter().copied() {
            assert_eq!(Fate::Corrupt.kind(cause), Kind::Corrupt);
            let is_torn = |checked| Fate::of_tail(checked).kind(cause) == Kind::TornTail;
            assert_eq!(is_torn(true), !is_refused(cause), "{cause}");
            // Under another key nothing is verified. Then only damage of missing bytes is torn.
            assert_eq!(is_torn(false), is_missing(cause), "{cause}");
            assert!(!(is_refused(cause) && is_missing(cause)), "{cause}");
        }
    }

    #[test]
    fn what_is_written_whole_is_torn_where_bytes_are_missing_at_its_end() {
        assert_eq!(whole_kind(Cause::LengthOutOfBounds, true), Kind::TornTail);
        assert_eq!(whole_kind(Cause::LengthOutOfBounds, false), Kind::Corrupt);
        assert_eq!(whole_kind(Cause::ChecksumMismatch, true), Kind::Corrupt);
    }

    #[test]
    fn a_torn_tail_ends_where_the_next_thing_could_begin_or_the_file_does() {
        assert_eq!(tail_end(129, 1, 300), 129);
        assert_eq!(tail_end(129, 128, 300), 256);
        assert_eq!(tail_end(256, 128, 300), 256);
        assert_eq!(tail_end(257, 128, 300), 300);
        assert_eq!(tail_end(u64::MAX, 128, u64::MAX), u64::MAX);
    }
}
