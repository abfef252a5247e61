//! The rules for a record: one function for each check, in their order, with the numbers that an error needs.

use super::BODY_BYTES;
use super::layout::{HASHED_HEADER_BYTES, HEADER_BYTES, Header};
use crate::engine::Options;
use crate::error::{Finding, Result};
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};

/// The bytes where a record should begin, judged by their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Structure {
    /// A record that lies within the file.
    Record(Header),
    /// No record lies within the file here.
    Bad(Fault),
    /// The header extends past the available bytes, but not past the end of the file.
    NeedMore,
}

impl Structure {
    /// The header of a record that lies within the file.
    pub(super) const fn record(self) -> Option<Header> {
        match self {
            Self::Record(header) => Some(header),
            Self::Bad(_) | Self::NeedMore => None,
        }
    }
}

/// What is wrong with a record: the first check that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The header extends past the end of the file.
    Truncated { available: u64 },
    /// The body extends past the end of the file.
    TooLong { needed: u64, available: u64 },
    /// The body is larger than allowed.
    TooLarge { needed: u64, allowed: u64 },
    /// The checksum does not match. `hashed` is how many bytes were hashed to find it.
    Checksum {
        stored: u32,
        computed: u32,
        hashed: u64,
    },
}

impl Fault {
    /// The text and numbers of the error.
    pub(super) fn finding(self) -> Finding {
        match self {
            Self::Truncated { available } => Finding::Truncated {
                needed: HEADER_BYTES as u64,
                available,
            },
            Self::TooLong { needed, available }
            | Self::TooLarge {
                needed,
                allowed: available,
            } => Finding::TooLong { needed, available },
            Self::Checksum {
                stored, computed, ..
            } => Finding::Checksum {
                stored: stored.into(),
                computed: Some(computed.into()),
            },
        }
    }
}

/// How many bytes a record may have.
pub(super) fn allowed(options: &Options) -> u64 {
    HEADER_BYTES as u64 + options.bytes(&BODY_BYTES)
}

/// The first three checks: the record that begins `bytes` is at most as long as allowed, and lies within the file.
/// `left` is the file's length from there on, `bytes` included.
pub(super) fn structure(bytes: &[u8], left: u64, allowed: u64) -> Structure {
    match Header::parse(bytes) {
        Some(header) if header.total() > allowed => Structure::Bad(Fault::TooLarge {
            needed: header.total(),
            allowed,
        }),
        Some(header) if header.total() <= left => Structure::Record(header),
        Some(header) => Structure::Bad(Fault::TooLong {
            needed: header.total(),
            available: left,
        }),
        None if bytes.len() as u64 >= left => Structure::Bad(Fault::Truncated { available: left }),
        None => Structure::NeedMore,
    }
}

/// The fourth check. `computed` is the CRC-32 of the record's bytes.
pub(super) const fn checksum(header: &Header, computed: u32) -> std::result::Result<(), Fault> {
    match header.checksum == computed {
        true => Ok(()),
        false => Err(Fault::Checksum {
            stored: header.checksum,
            computed,
            hashed: header.total(),
        }),
    }
}

/// The CRC-32 of this header's record, which begins `bytes`. `None` if it is incomplete.
pub(super) fn crc_in(bytes: &[u8], header: &Header) -> Option<u32> {
    let mut crc = crc32fast::Hasher::new();
    crc.update(bytes.get(..HASHED_HEADER_BYTES)?);
    crc.update(bytes.get(HEADER_BYTES..saturating_usize(header.total()))?);
    Some(crc.finalize())
}

/// The CRC-32 of this header's record at `at`, read in pieces: a false length costs no memory.
pub(super) fn crc_of(
    source: &dyn Source,
    options: &Options,
    window: &mut Window,
    (at, header): (u64, &Header),
) -> Result<u32> {
    let mut crc = crc32fast::Hasher::new();
    let fields = window.exact(source, at, HASHED_HEADER_BYTES, HEADER_BYTES)?;
    crc.update(fields);
    let (mut from, end) = (at + HEADER_BYTES as u64, at + header.total());
    while from < end {
        options.poll()?;
        let piece = saturating_usize(end - from).min(LIMITS.search_piece_bytes);
        crc.update(window.exact(source, from, piece, piece)?);
        from += piece as u64;
    }
    Ok(crc.finalize())
}

/// Whether a file begins with a verified record.
pub(super) fn first_is_sound(source: &dyn Source, options: &Options) -> Result<bool> {
    let mut window = Window::default();
    let front = saturating_usize(source.len()).min(HEADER_BYTES);
    let bytes = window.exact(source, 0, front, front)?;
    let Some(header) = structure(bytes, source.len(), allowed(options)).record() else {
        return Ok(false);
    };
    if header.total() > options.window_bytes as u64 {
        return Ok(false);
    }
    let computed = crc_of(source, options, &mut window, (0, &header))?;
    Ok(checksum(&header, computed).is_ok())
}
