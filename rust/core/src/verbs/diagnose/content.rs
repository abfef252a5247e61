//! Detects bytes of another dialect, another format, or another program's file.

use super::Case;
use super::excerpt::Excerpt;
use super::reason::Explanation;
use crate::cursor::Cursor;
use crate::engine::Likelihood;
use crate::error::Result;
use crate::format::{Other, is_text, magic_of, other_content};
use crate::ledger::Span;
use crate::spec::Dialect;
use crate::verbs::diagnosis::{Certainty, Reason};

/// How many bytes of a text's first line are shown.
const MAX_SHOWN: usize = 80;

/// A dialect in which the first messages decode, if they do not decode in the given one.
pub(super) fn other_dialect(case: &Case<'_>) -> Result<Option<Explanation>> {
    let (source, options, format) = (case.source, case.options, case.format);
    if !format.reads_with("dialect") || (format.detect)(&**source, options)? != Likelihood::No {
        return Ok(None);
    }
    for dialect in Dialect::ALL
        .iter()
        .filter(|dialect| **dialect != options.dialect)
    {
        let other = options.clone().dialect(*dialect);
        if let Likelihood::Likely(reason) | Likelihood::Certain(reason) =
            (format.detect)(&**source, &other)?
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
pub(super) fn other_file(case: &Case<'_>) -> Result<Option<Explanation>> {
    let (source, options, format) = (case.source, case.options, case.format);
    let Some((found, head)) = other_content(&**source, options, format)? else {
        return Ok(None);
    };
    let mut evidence = format!("no record was verified as {}, and {found}", format.name);
    let (reason, certainty) = match found {
        Other::Compressed(_) => (Reason::Compressed, Certainty::Likely),
        Other::Format(..) => (Reason::OtherFormat, Certainty::Proven),
        Other::Program(_) | Other::Text => (Reason::OtherContent, Certainty::Likely),
    };
    if reason == Reason::OtherContent && is_text(&head) {
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = Cursor::new(line).run_up_to(MAX_SHOWN);
        evidence.push_str(&format!(": {:?}", String::from_utf8_lossy(line)));
    }
    let whole = 0..source.len();
    Ok(Some(
        Explanation::new(reason, certainty, evidence).at(whole),
    ))
}

/// Explains a damaged range by what it begins with.
pub(super) fn other_bytes(excerpt: &Excerpt, span: &Span) -> Option<Explanation> {
    let bytes = excerpt.of(span);
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
