//! Detects bytes of another dialect, another format, or another program's file.

use std::sync::Arc;

use super::excerpt::Excerpt;
use super::reason::Explanation;
use crate::cursor::Cursor;
use crate::engine::{Format, Likelihood};
use crate::error::Result;
use crate::format::{is_text, magic_of, other_content};
use crate::ledger::Span;
use crate::source::Source;
use crate::spec::Dialect;
use crate::verbs::diagnosis::{Certainty, Reason};
use crate::walk::Options;

/// Fewer replacement characters may be a coincidence.
const MIN_REPLACED: usize = 4;
/// The replacement character of UTF-8 decoders for invalid bytes.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

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
    let found = other_content(&**source, options, format)?;
    Ok(found.map(|(what, is_proven)| {
        let evidence = format!("no record was verified as {}, and {what}", format.name);
        let certainty = match is_proven {
            true => Certainty::Proven,
            false => Certainty::Likely,
        };
        Explanation::new(Reason::OtherContent, certainty, evidence)
    }))
}

/// Explains a damaged range by what it begins with.
pub(super) fn other_bytes(excerpt: &Excerpt, span: &Span) -> Option<Explanation> {
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
