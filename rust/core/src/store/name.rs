//! Names of the files in a log's folder: docs/formats/log.md, "Names".

use std::fmt;

use uuid::Uuid;

use crate::engine::Format;
use crate::format::{active, sealed};
use crate::output::{is_quarantine_offset, quarantine_suffix};
use crate::verbs::repaired_name;

/// The name of the file of the synced mark.
pub(super) const MARK: &str = "_mark";
/// How many decimal digits a sequence number has in a name: all that 64 bits need, so that names sort as numbers.
const SEQUENCE_DIGITS: usize = 20;
const UUID_CHARACTERS: usize = 36;
/// How the name ends of a parity sidecar, after that of the file that it covers.
const SIDECAR: &str = ".par";
/// How many hexadecimal digits the name of a temporary file has.
const TEMPORARY_DIGITS: usize = 16;

/// The layout of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SegmentKind {
    /// Records are or were appended to it.
    Active,
    /// It is complete and indexed by UUID.
    Sealed,
}

impl SegmentKind {
    /// The extension of its file.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Sealed => "sealed",
        }
    }

    /// The format of its file.
    pub(super) const fn format(self) -> &'static Format {
        match self {
            Self::Active => &active::FORMAT,
            Self::Sealed => &sealed::FORMAT,
        }
    }
}

/// What names a segment, whether it is sealed or not: its place in the log, and the UUID of its first record, which is its
/// identity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct SegmentId {
    /// The place in the log, counted from 1.
    pub sequence: u64,
    /// The UUID of the first record.
    pub first: Uuid,
}

impl SegmentId {
    /// The name of its file.
    #[must_use]
    pub(super) fn file_name(&self, kind: SegmentKind) -> String {
        format!("{self}.{}", kind.extension())
    }

    /// The name of the file that says why it is frozen.
    pub(super) fn frozen_name(&self) -> String {
        format!("_{self}.frozen")
    }

    /// The name of the file that says where it ends.
    pub(super) fn end_name(&self) -> String {
        format!("_{self}.end")
    }

    /// The name of the parity sidecar of its file.
    pub(super) fn sidecar_name(&self, kind: SegmentKind) -> String {
        format!("{}{SIDECAR}", self.file_name(kind))
    }

    /// The name of the file that keeps what recovery removed from its end.
    pub(super) fn quarantine_name(&self, offset: u64, number: u64) -> String {
        format!("_{self}{}", quarantine_suffix(offset, number))
    }

    /// What a file's name says, if it is that of a segment.
    pub(super) fn parse(name: &str) -> Option<(Self, SegmentKind)> {
        let (stem, extension) = name.split_once('.')?;
        let kind = [SegmentKind::Active, SegmentKind::Sealed]
            .into_iter()
            .find(|kind| kind.extension() == extension)?;
        Self::parse_stem(stem).map(|id| (id, kind))
    }

    /// What a file's name says, if it is that of a segment or of a file beside one.
    pub(super) fn parse_part(name: &str) -> Option<(Self, Part)> {
        if let Some(name) = name.strip_prefix('_') {
            let (stem, rest) = name.split_once('.')?;
            let part = match rest {
                "end" => Part::End,
                "frozen" => Part::Frozen,
                "sealed" => Part::Aside,
                _ if is_quarantine(rest) => Part::Quarantine,
                _ => return None,
            };
            return Self::parse_stem(stem).map(|id| (id, part));
        }
        let (file, part): (_, fn(SegmentKind) -> Part) = match repaired_name(name) {
            Some(file) => (file, Part::Damaged),
            None => match name.strip_suffix(SIDECAR) {
                Some(file) => (file, Part::Sidecar),
                None => (name, Part::File),
            },
        };
        Self::parse(file).map(|(id, kind)| (id, part(kind)))
    }

    fn parse_stem(stem: &str) -> Option<Self> {
        let (sequence, first) = stem.split_once('-')?;
        let is_canonical = sequence.len() == SEQUENCE_DIGITS
            && sequence.bytes().all(|byte| byte.is_ascii_digit())
            && first.len() == UUID_CHARACTERS;
        if !is_canonical {
            return None;
        }
        let id = Self {
            sequence: sequence.parse().ok()?,
            first: Uuid::try_parse(first).ok()?,
        };
        let is_counted = id.sequence > 0 && id.sequence < u64::MAX;
        (is_counted && id.first.to_string() == first).then_some(id)
    }

    /// Whether a file's name is exactly one that a writer gives to a file of a segment before that has its name: such a file was left
    /// by a dead writer. Anything else is somebody's file.
    pub(super) fn is_temporary(name: &str) -> bool {
        let inner = name
            .strip_prefix('.')
            .and_then(|rest| rest.strip_suffix(".tmp"));
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        inner
            .and_then(|inner| inner.rsplit_once('.'))
            .is_some_and(|(name, random)| {
                // Those get their names when they are complete. A repair writes an active segment anew, too.
                let is_made_whole = |part| !matches!(part, Part::Damaged(_) | Part::Aside);
                random.len() == TEMPORARY_DIGITS
                    && random.bytes().all(is_digit)
                    && Self::parse_part(name).is_some_and(|(_, part)| is_made_whole(part))
            })
    }
}

/// What a file is of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The segment.
    File(SegmentKind),
    /// The parity sidecar of that file.
    Sidecar(SegmentKind),
    /// What a repair of that file or its sidecar kept.
    Damaged(SegmentKind),
    /// It says where the segment ends.
    End,
    /// It says why it is frozen.
    Frozen,
    /// A sealed file that was put aside.
    Aside,
    /// Bytes that recovery removed.
    Quarantine,
}

/// Whether the rest of a name is that of bytes that recovery removed, after the segment.
fn is_quarantine(rest: &str) -> bool {
    rest.strip_suffix(".quarantine")
        .is_some_and(is_quarantine_offset)
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0SEQUENCE_DIGITS$}-{}", self.sequence, self.first)
    }
}

impl fmt::Debug for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SegmentId({self})")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const NAME: &str = "00000000000000000012-1eeafd69-b6b0-69f3-b9f1-1b8e6a30ade3";

    #[test]
    fn a_name_is_what_it_is_parsed_to() {
        for kind in [SegmentKind::Active, SegmentKind::Sealed] {
            let name = format!("{NAME}.{}", kind.extension());
            let (id, parsed) = SegmentId::parse(&name).unwrap();
            assert_eq!((id.sequence, parsed), (12, kind));
            assert_eq!(id.file_name(kind), name);
        }
        let last = SegmentId {
            sequence: u64::MAX - 1,
            first: Uuid::max(),
        };
        let name = last.file_name(SegmentKind::Sealed);
        assert_eq!(SegmentId::parse(&name), Some((last, SegmentKind::Sealed)));
    }

    #[test]
    fn other_names_are_not_segments() {
        for name in [
            "",
            ".active",
            "_mark",
            NAME,
            &format!("{NAME}.index"),
            &format!("{NAME}.active.tmp"),
            &format!("_{NAME}.active"),
            &format!("{}.active", NAME.to_uppercase()),
            &format!("{}.active", &NAME[1..]),
            &format!("{}.active", NAME.replace("12-", "00-")),
            &format!("{}.active", NAME.replacen("0000", "+000", 1)),
            &format!("{}.active", NAME.replace("1eeafd69-b6b0", "1eeafd69b6b0-")),
            "99999999999999999999-1eeafd69-b6b0-69f3-b9f1-1b8e6a30ade3.active",
        ] {
            assert_eq!(SegmentId::parse(name), None, "{name}");
        }
    }

    #[test]
    fn temporary_files_of_segments_are_told_from_others() {
        const RANDOM: &str = "0123456789abcdef";
        for name in [
            format!(".{NAME}.sealed.{RANDOM}.tmp"),
            format!(".{NAME}.active.{RANDOM}.tmp"),
            format!(".{NAME}.sealed.par.{RANDOM}.tmp"),
            format!(".{NAME}.active.par.{RANDOM}.tmp"),
            format!("._{NAME}.frozen.{RANDOM}.tmp"),
            format!("._{NAME}.end.{RANDOM}.tmp"),
            format!("._{NAME}.84.quarantine.{RANDOM}.tmp"),
            format!("._{NAME}.84-12.quarantine.{RANDOM}.tmp"),
        ] {
            assert!(SegmentId::is_temporary(&name), "{name}");
        }
        for name in [
            "seglake.tmp".to_owned(),
            format!("{NAME}.sealed.{RANDOM}.tmp"),
            format!(".{NAME}.sealed"),
            format!(".{NAME}.sealed.{RANDOM}"),
            format!(".{NAME}.sealed.tmp"),
            format!(".{NAME}.sealed.backup.tmp"),
            format!(".{NAME}.sealed.{}.tmp", &RANDOM[1..]),
            format!(".{NAME}.sealed.{}.tmp", RANDOM.to_uppercase()),
            format!(".{NAME}.sealed.old.{RANDOM}.tmp"),
            format!(".{NAME}.{RANDOM}.tmp"),
            format!("._{NAME}.sealed.{RANDOM}.tmp"),
            format!("._{NAME}.index.{RANDOM}.tmp"),
            format!("._{NAME}.quarantine.{RANDOM}.tmp"),
            format!("._{NAME}.8x.quarantine.{RANDOM}.tmp"),
            format!("._{NAME}.84-.quarantine.{RANDOM}.tmp"),
            format!(".other.sealed.{RANDOM}.tmp"),
        ] {
            assert!(!SegmentId::is_temporary(&name), "{name}");
        }
    }
}
