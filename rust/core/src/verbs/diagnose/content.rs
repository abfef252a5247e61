//! Detects bytes of another dialect, another format, or another program's file.

use std::sync::Arc;

use super::excerpt::Excerpt;
use super::reason::Explanation;
use crate::cursor::Cursor;
use crate::engine::{Dialect, Format, Likelihood, Options};
use crate::error::Result;
use crate::format::FORMATS;
use crate::ledger::Span;
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::verbs::diagnosis::{Certainty, Reason};

/// How much of a file's beginning is read.
const HEAD_BYTES: usize = 4096;
/// Fewer bytes are not classified as text.
const MIN_TEXT_BYTES: usize = 32;
/// Fewer replacement characters may be a coincidence.
const MIN_REPLACED: usize = 4;
/// The replacement character of UTF-8 decoders for invalid bytes.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// The first bytes of other programs' files.
const MAGICS: &[(&[u8], &str)] = &[
    (b"\x1f\x8b\x08", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bzip2"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xff\x06\x00\x00sNaPpY", "framed snappy"),
    (b"PK\x03\x04", "zip"),
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow IPC"),
    (b"Obj\x01", "Avro"),
    (b"ORC", "ORC"),
    (b"SQLite format 3\x00", "SQLite"),
    (b"\x89MCAP0\r\n", "MCAP"),
    (b"\x7fELF", "ELF"),
    (b"%PDF-", "PDF"),
    (b"\x89PNG\r\n", "PNG"),
    (b"version https://git-lfs", "Git LFS pointer"),
    (b"<!DOCTYPE", "HTML"),
    (b"<!doctype", "HTML"),
    (b"<html", "HTML"),
    (b"<?xml", "XML"),
];

fn magic_of(bytes: &[u8]) -> Option<&'static str> {
    let found = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic));
    found.map(|(_, name)| *name)
}

/// A dialect in which the first messages decode, if they do not decode in the given one.
pub(super) fn other_dialect(
    source: &Arc<dyn Source>,
    options: &Options,
    format: &Format,
) -> Result<Option<Explanation>> {
    if !format.reads_with("dialect") || format.likelihood(&**source, options)? != Likelihood::No {
        return Ok(None);
    }
    for dialect in Dialect::ALL
        .iter()
        .filter(|dialect| **dialect != options.dialect)
    {
        let other = options.clone().dialect(*dialect);
        if let Likelihood::Likely(reason) | Likelihood::Certain(reason) =
            format.likelihood(&**source, &other)?
        {
            let evidence = format!(
                "{reason}; in the dialect {} they do not",
                options.dialect.as_str()
            );
            return Ok(Some(Explanation::new(
                Reason::OtherDialect,
                Certainty::Likely,
                evidence,
            )));
        }
    }
    Ok(None)
}

/// Explains a file without any verified record by its beginning.
pub(super) fn other_file(
    source: &Arc<dyn Source>,
    options: &Options,
    format: &Format,
) -> Result<Option<Explanation>> {
    let len = saturating_usize(source.len()).min(HEAD_BYTES);
    let mut head = vec![0; len];
    source.read_exact_at(0, &mut head)?;
    if let Some(name) = magic_of(&head) {
        let evidence = format!("no record was verified, and the file begins like a file of {name}");
        return Ok(Some(Explanation::new(
            Reason::OtherContent,
            Certainty::Likely,
            evidence,
        )));
    }
    for other in FORMATS.iter().filter(|other| **other != format) {
        if let Likelihood::Certain(reason) = other.likelihood(&**source, options)? {
            let evidence = format!(
                "no record was verified as {}, but it is {}: {reason}",
                format.name, other.name
            );
            return Ok(Some(Explanation::new(
                Reason::OtherContent,
                Certainty::Proven,
                evidence,
            )));
        }
    }
    Ok(is_text(&head).then(|| {
        let evidence = "no record was verified, and the file begins with text";
        Explanation::new(Reason::OtherContent, Certainty::Likely, evidence)
    }))
}

/// Explains a damaged range by what it begins with.
pub(super) fn other_content(excerpt: &Excerpt, span: &Span) -> Option<Explanation> {
    let bytes = excerpt.of(span);
    if let Some(explanation) = replaced_characters(bytes) {
        return Some(explanation);
    }
    let sector = span.start.next_multiple_of(512);
    let starts = [span.start, sector].into_iter().filter(|at| *at < span.end);
    for at in starts {
        let bytes = excerpt.get(at..span.end);
        if let Some(name) = magic_of(bytes) {
            let evidence = format!("the bytes at {at} begin like a file of {name}");
            return Some(Explanation::new(
                Reason::OtherContent,
                Certainty::Possible,
                evidence,
            ));
        }
    }
    let head = Cursor::new(bytes).run_up_to(512);
    is_text(head).then(|| {
        let evidence = format!(
            "{} bytes from {} on are text, where lengths and identifiers were expected",
            head.len(),
            span.start
        );
        Explanation::new(Reason::OtherContent, Certainty::Likely, evidence)
    })
}

/// Whether all bytes are readable text.
fn is_text(bytes: &[u8]) -> bool {
    let is_readable = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
    // A character that is cut off at the end is valid.
    let is_utf8 = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    bytes.len() >= MIN_TEXT_BYTES && is_utf8 && bytes.iter().all(is_readable)
}

/// Detects bytes that a text decoder changed: all of them are UTF-8, and invalid ones were replaced.
fn replaced_characters(bytes: &[u8]) -> Option<Explanation> {
    let is_utf8 = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    let replaced = bytes
        .windows(REPLACEMENT.len())
        .filter(|own| *own == REPLACEMENT)
        .count();
    (is_utf8 && replaced >= MIN_REPLACED).then(|| {
        let evidence = format!(
            "all bytes are UTF-8, with {replaced} replacement characters (U+FFFD): they were decoded as text on the way"
        );
        Explanation::new(Reason::TextConversion, Certainty::Likely, evidence)
    })
}
