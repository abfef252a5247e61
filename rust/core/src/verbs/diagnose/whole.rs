//! What may have happened to all of a file on its way: what undoes it is tried, and verified.

use std::sync::Arc;

use super::reason::Explanation;
use super::{Case, shift};
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::source::BytesSource;
use crate::verbs::diagnosis::{Certainty, Reason};

/// How many bytes of a file are transformed, to see whether that brings any record back.
const PROBE_BYTES: u64 = 16 << 20;
/// How many are transformed where it does. They are in memory twice.
const MAX_BYTES: u64 = 256 << 20;
/// Fewer line ends, or replaced characters, may be a coincidence.
const MIN_FOUND: usize = 4;
/// The replacement character of UTF-8 decoders for invalid bytes.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();
/// So many bytes of a binary file are not all below 0x80 by chance.
const MIN_ASCII_BYTES: usize = 512;
/// How much of a file has to be of one alphabet.
const MIN_BASE64_BYTES: usize = 64;

/// A transformation, and what is said of it. `undo` is `None` where the bytes do not look like its result.
struct Transformed {
    reason: Reason,
    undo: fn(&[u8]) -> Option<Vec<u8>>,
    evidence: &'static str,
}

const TRANSFORMED: &[Transformed] = &[
    Transformed {
        reason: Reason::TextConversion,
        undo: without_carriage_returns,
        evidence: "every line feed has a carriage return before it",
    },
    Transformed {
        reason: Reason::Reencoded,
        undo: latin1,
        evidence: "all bytes are UTF-8 of the characters U+0000 to U+00FF, as of a file that was taken for Latin-1",
    },
    Transformed {
        reason: Reason::Reencoded,
        undo: utf16,
        evidence: "all bytes are UTF-16 of the characters U+0000 to U+00FF, as of a file that was taken for Latin-1",
    },
    Transformed {
        reason: Reason::Base64,
        undo: base64,
        evidence: "all bytes are base64",
    },
    Transformed {
        reason: Reason::ByteOrder,
        undo: |bytes| swapped(bytes, 2),
        evidence: "the bytes of each 2 are in the other order",
    },
    Transformed {
        reason: Reason::ByteOrder,
        undo: |bytes| swapped(bytes, 4),
        evidence: "the bytes of each 4 are in the other order",
    },
    Transformed {
        reason: Reason::ByteOrder,
        undo: |bytes| swapped(bytes, 8),
        evidence: "the bytes of each 8 are in the other order",
    },
];

/// Explains a file as transformed, if more of its records are verified without the transformation.
pub(super) fn transformed(case: &mut Case<'_>) -> Result<Option<Explanation>> {
    let len = case.source.len();
    // What a log says that is missing is not the file's.
    if case.report.summary.damage.iter().any(|own| own.end > len) {
        return Ok(None);
    }
    if let Some(found) = blank(len, case.data_end) {
        return Ok(Some(found));
    }
    let untried = |end: u64| match end == len {
        true => String::new(),
        false => format!("not tried: what is behind the first {end} bytes"),
    };
    let probe = first(case, PROBE_BYTES)?;
    let before = case.report.summary.records;
    for Transformed {
        reason,
        undo,
        evidence,
    } in TRANSFORMED
    {
        // Any bytes have another order: it is tried only where nothing else is known.
        if *reason == Reason::ByteOrder && before > 0 {
            continue;
        }
        let Some(undone) = undo(&probe) else { continue };
        let Some(mut report) = case.try_source(Arc::new(BytesSource::new(undone)))? else {
            continue;
        };
        let mut end = probe.len() as u64;
        if end < len && report.summary.records > before {
            let more = first(case, MAX_BYTES)?;
            let Some(undone) = undo(&more) else { continue };
            if let Some(found) = case.try_source(Arc::new(BytesSource::new(undone)))? {
                (report, end) = (found, more.len() as u64);
            }
        }
        let records = report.summary.records;
        let is_sound = report.is_sound() && end == len;
        let regained = records.saturating_sub(before);
        // Some records are sound as they are: undoing it must not cost them.
        if regained == 0 || before > 0 && !is_sound {
            continue;
        }
        let (certainty, rest) = match is_sound {
            true => (Certainty::Proven, "the file is sound"),
            false => (Certainty::Likely, "these are verified"),
        };
        let evidence = format!("{evidence}; with that undone {records} records, and {rest}");
        return Ok(Some(Explanation {
            regained,
            is_sound,
            against: untried(end),
            ..Explanation::new(*reason, certainty, evidence).at(0..len)
        }));
    }
    let found = decoded(&probe, before > 0);
    Ok(found.map(|found| found.but(untried(probe.len() as u64)).at(0..len)))
}

/// The first bytes of the file, and at most so many.
fn first(case: &Case<'_>, most: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; saturating_usize(case.source.len().min(most))];
    case.source.read_exact_at(0, &mut bytes)?;
    Ok(bytes)
}

/// Detects a file without any byte but zeros.
fn blank(len: u64, data_end: u64) -> Option<Explanation> {
    let (reason, evidence) = match (len, data_end) {
        (0, _) => (Reason::Empty, "the file has 0 bytes".to_owned()),
        (_, 0) => (
            Reason::OnlyZeros,
            format!("all {len} bytes of the file are zeros"),
        ),
        _ => return None,
    };
    Some(Explanation::new(reason, Certainty::Proven, evidence).at(0..len))
}

/// The bytes with each CR LF turned into LF, if no LF is alone.
fn without_carriage_returns(bytes: &[u8]) -> Option<Vec<u8>> {
    let feeds = bytes.iter().filter(|byte| **byte == b'\n').count();
    let pairs = bytes.windows(2).filter(|pair| pair == b"\r\n").count();
    (feeds == pairs && pairs >= MIN_FOUND).then(|| shift::without_returns(bytes))
}

/// The bytes as a text of UTF-8, as far as they are whole characters.
fn as_utf8(bytes: &[u8]) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => {
            let whole = bytes.get(..error.valid_up_to())?;
            std::str::from_utf8(whole).ok()
        }
        Err(_) => None,
    }
}

fn latin1(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.is_ascii() {
        return None;
    }
    let text = as_utf8(bytes)?;
    text.chars().map(|own| u8::try_from(own).ok()).collect()
}

/// The units of UTF-16 after a byte order mark, in either order.
fn utf16_units(bytes: &[u8]) -> Option<impl Iterator<Item = u16>> {
    let (mark, units) = bytes.as_chunks::<2>().0.split_first()?;
    let read = match mark {
        b"\xff\xfe" => u16::from_le_bytes,
        b"\xfe\xff" => u16::from_be_bytes,
        _ => return None,
    };
    Some(units.iter().map(move |unit| read(*unit)))
}

fn utf16(bytes: &[u8]) -> Option<Vec<u8>> {
    utf16_units(bytes)?
        .map(|unit| u8::try_from(unit).ok())
        .collect()
}

/// Whether bytes are UTF-16 of any characters, as of a file that was taken for another encoding than Latin-1.
fn is_utf16(bytes: &[u8]) -> bool {
    utf16_units(bytes).is_some_and(|units| char::decode_utf16(units).all(|own| own.is_ok()))
}

fn swapped(bytes: &[u8], width: usize) -> Option<Vec<u8>> {
    let mut undone = bytes.to_vec();
    undone.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    Some(undone)
}

/// Decodes base64 in lines of any length. Python's and other tools' decoders refuse what this does.
fn base64(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut undone = Vec::with_capacity(bytes.len() / 4 * 3);
    let (mut bits, mut held) = (0_u32, 0);
    for byte in bytes {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' | b'\r' | b'\n' => continue,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            undone.push((bits >> held).to_le_bytes()[0]);
            bits &= (1 << held) - 1;
        }
    }
    (bytes.len() >= MIN_BASE64_BYTES).then_some(undone)
}

/// Whether a binary file has no byte with its highest bit, and enough that are not zero. An archive of text has none either.
fn is_seven_bit(bytes: &[u8]) -> bool {
    let written = bytes.iter().filter(|byte| **byte != 0).count();
    let is_archive = bytes.get(257..262) == Some(b"ustar");
    bytes.is_ascii() && written >= MIN_ASCII_BYTES && written < bytes.len() && !is_archive
}

/// Detects bytes that a text decoder changed, and that nothing brings back: all of them are UTF-8 and invalid ones were replaced, or
/// none of them has its highest bit, or they are UTF-16.
fn decoded(bytes: &[u8], has_records: bool) -> Option<Explanation> {
    let windows = bytes.windows(REPLACEMENT.len());
    let replaced = windows.filter(|own| *own == REPLACEMENT).count();
    let found = if replaced >= MIN_FOUND && as_utf8(bytes).is_some() {
        format!("all bytes are UTF-8, with {replaced} replacement characters (U+FFFD)")
    } else if !has_records && is_seven_bit(bytes) {
        "no byte is above 0x7f, as half of those of checksums are".to_owned()
    } else if !has_records && is_utf16(bytes) {
        "all bytes are UTF-16, with a byte order mark".to_owned()
    } else {
        return None;
    };
    let evidence =
        format!("{found}: they were decoded as text on the way, and what was no text is lost");
    Some(Explanation::new(
        Reason::Reencoded,
        Certainty::Likely,
        evidence,
    ))
}
