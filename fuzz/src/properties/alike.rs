//! What has to be alike of a file that is read whole and one that is read in parts. The tests of parts compare by it, too.

use seglake::ledger::{Kind, Span};
use seglake::verbs::Report;

/// Ranges in file order, those that touch and are of the same kind and cause being one.
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

/// What a report says, but for what it was made with.
pub(crate) fn told(report: &Report) -> String {
    format!(
        "{:?} {:?} {:?} {} {} {:?} {:?} {} {}",
        report.totals,
        report.damage,
        report.checked,
        report.bytes,
        report.records,
        report.first_timestamp,
        report.last_timestamp,
        report.truncated,
        report.wrong_key()
    )
}
