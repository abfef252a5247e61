//! Compares a file that is read whole with one that is read in parts. The tests of parts use it too.

use seglake::ledger::{Kind, Span};
use seglake::verbs::Report;

/// Ranges in file order. Adjacent ones of the same kind and cause are merged.
pub(crate) fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.start, span.end));
    let mut out = Vec::<Span>::new();
    for span in spans {
        let is_single = matches!(span.kind, Kind::Record | Kind::Chunk | Kind::Block);
        match out.last_mut() {
            Some(last)
                if !is_single
                    && (last.end, last.kind, last.cause) == (span.start, span.kind, span.cause) =>
            {
                last.end = span.end;
            }
            _ => out.push(span),
        }
    }
    out
}

/// The content of a report, without its options.
pub(crate) fn told(report: &Report) -> String {
    format!(
        "{:?} {:?} {:?} {} {} {:?} {:?} {} {}",
        report.summary.totals,
        report.summary.damage,
        report.summary.checked,
        report.summary.bytes,
        report.summary.records,
        report.summary.first_timestamp,
        report.summary.last_timestamp,
        report.summary.truncated,
        report.summary.wrong_key()
    )
}
