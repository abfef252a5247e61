//! What may have happened at one place of a file: what undoes it is applied to a view of the file, and verified.

use std::ops::Range;
use std::sync::Arc;

use super::Case;
use super::reason::Explanation;
use super::sectors::{LARGE, SECTORS, floor, same_as};
use crate::engine::candidate::read_piece;
use crate::engine::{Format, Likelihood};
use crate::error::Result;
use crate::format::{FORMATS, is_text};
use crate::ledger::{Cause, Span};
use crate::saturating::saturating_usize;
use crate::source::{Fill, Source, View};
use crate::verbs::diagnosis::{Certainty, Reason};

/// The longest block that is searched for a second time, in bytes; the shortest is a sector.
const MAX_BLOCK: u64 = 8 << 20;
/// How much of a damaged range is searched for the end of such a block, in bytes.
const MAX_SEARCHED: u64 = 4 << 20;
/// How much of a block is compared first.
const PROBE_BYTES: u64 = 64;
/// The most files in one.
const MAX_FILES: usize = 16;
/// How many bytes of a file's beginning may be a header that does not belong to it.
const MAX_HEAD: u64 = 4096;
/// How far before and after the beginning of a damaged range a sector is suspected.
pub(super) const NEAR_BYTES: u64 = 4096;

/// Blocks of whole sectors that are in the file a second time right after the first, within the range: a part of an upload
/// or copy that was sent twice. All later bytes are that much further on.
pub(super) fn repeated(case: &mut Case<'_>, span: &Span) -> Result<Vec<Explanation>> {
    let source = &**case.source;
    let [_, sector] = SECTORS;
    let end = span.end.min(span.start.saturating_add(MAX_SEARCHED));
    let first = span.start.next_multiple_of(sector);
    let start = first.saturating_sub(MAX_BLOCK);
    let mut bytes = Vec::new();
    let read = start..end.saturating_add(MAX_BLOCK).min(source.len());
    if span.len() < sector || !case.compared.afford(read.end.saturating_sub(read.start)) {
        return Ok(Vec::new());
    }
    read_piece(source, &read, &mut bytes)?;
    let piece = |at: u64, size: u64| {
        let from = saturating_usize(at.checked_sub(start)?);
        bytes.get(from..from.saturating_add(saturating_usize(size)))
    };
    let is_twice = |at: u64, before: u64, size: u64| {
        let own = piece(at, size);
        let differs = |own: &[u8]| own.iter().any(|byte| Some(byte) != own.first());
        own.is_some_and(differs) && own == piece(before, size)
    };
    let mut found = Vec::new();
    for at in (first..=end).step_by(512) {
        let sizes = std::iter::successors(Some(sector), |size| Some(size * 2));
        for size in sizes.take_while(|size| *size <= MAX_BLOCK.min(at)) {
            let before = at - size;
            if !is_twice(at, before, PROBE_BYTES) || !is_twice(at, before, size) {
                continue;
            }
            let evidence = format!("the {size} bytes at {at} are those at {before} once more");
            let place = at..at + size;
            let explanation = Explanation::new(Reason::RepeatedBlock, Certainty::Likely, evidence);
            found.push(explanation.without(place));
        }
    }
    Ok(found)
}

/// Sectors that begin near the range and were written over: what is in them, such as a newer record, hides what follows.
pub(super) fn written_over(source: &dyn Source, span: &Span) -> Result<Vec<Explanation>> {
    let mut found = Vec::new();
    let from = span.start.saturating_sub(NEAR_BYTES);
    let to = span.end.min(span.start.saturating_add(NEAR_BYTES));
    for size in [SECTORS[0], SECTORS[1], LARGE] {
        for at in (floor(from, size)..to).step_by(saturating_usize(size)) {
            if at + size <= from || at + size > source.len() {
                continue;
            }
            let place = at..at + size;
            let evidence = format!(
                "what the {size} bytes at {at}, a sector, hold hides records after it: without them these are verified"
            );
            let explanation = Explanation::new(Reason::ForeignSector, Certainty::Likely, evidence);
            found.push(Explanation {
                changes: vec![(place.clone(), Fill::Zeros(size))],
                ..explanation.at(place)
            });
        }
    }
    Ok(found)
}

/// Other files that follow in the file, the first where the range begins. Each has to be sound by itself.
pub(super) fn concatenated(case: &mut Case<'_>, span: &Span) -> Result<Option<Explanation>> {
    let (len, own) = (case.source.len(), case.format);
    let rest = vec![(0..span.start, Fill::Zeros(0))];
    let rest: Arc<dyn Source> = Arc::new(View::new(case.source.clone(), rest));
    if format_of(case, &rest, false)?.is_none() {
        return Ok(None);
    }
    let mut seams = vec![0, span.start];
    let (mut records, mut names) = (0, Vec::new());
    for nth in 0..MAX_FILES {
        let Some(&start) = seams.get(nth) else { break };
        let end = seams.get(nth + 1).copied().unwrap_or(len);
        if start >= end {
            return Ok(None);
        }
        let changes = vec![(0..start, Fill::Zeros(0)), (end..len, Fill::Zeros(0))];
        let part: Arc<dyn Source> = Arc::new(View::new(case.source.clone(), changes));
        let Some(format) = format_of(case, &part, nth == 0)? else {
            return Ok(None);
        };
        let Some(report) = case.try_as(part, format)? else {
            return Ok(None);
        };
        let found = report.summary;
        match found.damage.first() {
            _ if found.records == 0 => return Ok(None),
            None => {}
            // What no entry of its index accounts for may be the next file.
            Some(rest) if rest.cause == Some(Cause::Unreferenced) && end == len => {
                seams.push(start + rest.start);
            }
            Some(_) => return Ok(None),
        }
        records += found.records;
        names.push(format!("{} ({} records)", format.name, found.records));
    }
    if names.len() != seams.len() {
        return Ok(None);
    }
    let at = span.start;
    let evidence = format!(
        "at {at} another file begins, and each is sound by itself: {}",
        names.join(", ")
    );
    let explanation = Explanation::new(Reason::Concatenated, Certainty::Proven, evidence);
    let explanation = match own.is_appended_to() {
        true => Explanation {
            certainty: Some(Certainty::Likely),
            ..explanation
                .but("older records also follow a clock that was set back, or another writer")
        },
        false => explanation,
    };
    Ok(Some(Explanation {
        regained: records.saturating_sub(case.report.summary.records),
        is_sound: true,
        ..explanation.without(at..len)
    }))
}

/// The format of a part of the file: its own, or another one that a checksum proves.
fn format_of(
    case: &Case<'_>,
    part: &Arc<dyn Source>,
    is_first: bool,
) -> Result<Option<&'static Format>> {
    let own = case.format;
    if is_first || (own.detect)(&**part, case.options)? != Likelihood::No {
        return Ok(Some(own));
    }
    for other in FORMATS.iter().filter(|other| **other != own) {
        if let Likelihood::Certain(_) = (other.detect)(&**part, case.options)? {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

/// Bytes that programs put before or after a file's own: a byte order mark, the header of a response, a line end.
pub(super) fn added(case: &Case<'_>, span: &Span) -> Result<Vec<Explanation>> {
    let source = &**case.source;
    let len = source.len();
    let mut head = Vec::new();
    let mut found = Vec::new();
    if span.start == 0 {
        read_piece(source, &(0..len.min(MAX_HEAD)), &mut head)?;
        let marks: [(&[u8], &str); 3] = [
            (b"\xef\xbb\xbf", "a byte order mark of UTF-8"),
            (b"\xff\xfe", "a byte order mark of UTF-16"),
            (b"\xfe\xff", "a byte order mark of UTF-16"),
        ];
        let mark = marks.iter().find(|(mark, _)| head.starts_with(mark));
        found.extend(mark.map(|(mark, what)| (0..mark.len() as u64, *what)));
        if head.get(257..262) == Some(b"ustar") {
            found.push((0..512, "a header of tar"));
        }
        let end = head.windows(4).position(|own| own == b"\r\n\r\n");
        if let Some(end) = end.filter(|end| head.get(..*end).is_some_and(is_text)) {
            found.push((0..end as u64 + 4, "a header of text, as of HTTP"));
        }
    }
    // In a file that is appended to they may begin a record.
    if !case.format.is_appended_to() && span.end == len && span.len() <= 2 {
        let mut end = Vec::new();
        read_piece(source, &(span.start..len), &mut end)?;
        if end.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
            found.push((span.start..len, "a line end"));
        }
    }
    let proposal = |(place, what): (Range<u64>, &str)| {
        let at = place.start;
        let evidence = format!("at {at} the file has {what}, which does not belong to it");
        let explanation = Explanation::new(Reason::InsertedBytes, Certainty::Likely, evidence);
        explanation.without(place)
    };
    Ok(found.into_iter().map(proposal).collect())
}

/// Where else a sector that was written over comes from, for what is said of it.
pub(super) fn with_origin(case: &mut Case<'_>, explanation: Explanation) -> Result<Explanation> {
    let Some(place) = explanation.place.clone() else {
        return Ok(explanation);
    };
    let found = same_as(
        &**case.source,
        std::slice::from_ref(&place),
        &mut case.compared,
    )?;
    Ok(match found {
        Some((_, other)) => Explanation {
            reason: Reason::DuplicatedSector,
            evidence: format!(
                "the {} bytes at {}, a sector, are those at {other}: a write went to the wrong place, and hides records after it",
                place.end - place.start,
                place.start
            ),
            ..explanation
        },
        None => explanation,
    })
}
