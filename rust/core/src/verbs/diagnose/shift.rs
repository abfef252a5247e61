//! Detects inserted and missing bytes, which move later bytes, and files that end too early.

use super::budget::Budget;
use super::excerpt::Excerpt;
use super::reason::Explanation;
use super::sectors;
use crate::engine::Format;
use crate::engine::candidate::{Candidate, Candidates, MAX_TRIED_BYTES, Misplaced, read_piece};
use crate::error::Result;
use crate::ledger::{Cause, Kind, Span};
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::verbs::diagnosis::{Certainty, Reason};

/// How far from its expected offset a unit is searched, in bytes.
const MAX_SHIFT: u64 = 4096;
/// How many bytes of a range are searched for a verified unit at an offset that is impossible for it.
const MAX_SEARCHED: usize = 64 << 10;
/// Multiples of this are round lengths: buffers of copying programs, blocks of object stores.
const ROUND_BYTES: u64 = 64 << 10;
/// How many bytes of the record must remain before and after inserted bytes. Fewer could belong to another record and
/// match by chance.
const MIN_KEPT: usize = 20;
/// The page size of file systems.
const PAGE_BYTES: u64 = 4096;

/// Detects bytes inserted in a record: without them the checksum matches.
pub(super) fn inserted(
    source: &dyn Source,
    candidate: &mut Candidate,
    span: &Span,
    budget: &mut Budget,
) -> Result<Option<Explanation>> {
    if !candidate.elsewhere.is_empty() {
        return Ok(None);
    }
    let piece = candidate.body.clone();
    let Some(stated) = candidate.stated else {
        return Ok(None);
    };
    let whole = saturating_usize(span.end.saturating_sub(piece.start));
    let Some(extra) = whole.checked_sub(stated).filter(|extra| *extra > 0) else {
        return Ok(None);
    };
    let bytes = candidate.read(source)?;
    if bytes.len() < whole || stated as u64 > MAX_TRIED_BYTES {
        return Ok(None);
    }
    budget.begin();
    for place in MIN_KEPT..stated.saturating_sub(MIN_KEPT) {
        let behind = place + extra..stated + extra;
        let (Some(front), Some(back)) = (bytes.get(..place), bytes.get(behind)) else {
            break;
        };
        let Some(trial) = budget.attempt(candidate, &[front, back].concat()) else {
            break;
        };
        if trial.end.is_some() {
            let at = piece.start + place as u64;
            let evidence = format!(
                "without {} from {at} on, the {} at {} is verified",
                bytes_of(extra as u64),
                candidate.what,
                piece.start
            );
            let reason = Reason::InsertedBytes;
            return Ok(Some(Explanation::new(reason, Certainty::Proven, evidence)));
        }
    }
    Ok(None)
}

/// Detects converted line ends: with each CR LF turned back into LF the checksum matches.
pub(super) fn line_ends(
    source: &dyn Source,
    candidate: &mut Candidate,
    budget: &mut Budget,
) -> Result<Option<Explanation>> {
    if !candidate.elsewhere.is_empty() {
        return Ok(None);
    }
    // Bytes that the insertion moved past the body's end belong to it.
    let body = candidate.body.clone();
    let len = body.end.saturating_sub(body.start);
    let end = body.end.saturating_add(len).min(source.len());
    let mut bytes = Vec::new();
    read_piece(source, &(body.start..end), &mut bytes)?;
    let mut guess = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().peekable();
    while let Some(byte) = rest.next() {
        if !(*byte == b'\r' && rest.peek() == Some(&&b'\n')) {
            guess.push(*byte);
        }
    }
    if guess.len() == bytes.len() {
        return Ok(None);
    }
    guess.truncate(saturating_usize(len));
    budget.begin();
    let trial = budget.attempt(candidate, &guess);
    Ok(trial.and_then(|trial| trial.end).map(|_| {
        let evidence = format!(
            "with each CR LF turned back into LF, the {} at {} is verified",
            candidate.what, body.start
        );
        Explanation::new(Reason::TextConversion, Certainty::Proven, evidence)
    }))
}

/// Detects a unit that is a few bytes before or after the offset that an index states.
pub(super) fn misplaced(
    mut misplaced: Misplaced,
    len: u64,
    budget: &mut Budget,
) -> Result<Option<Explanation>> {
    let Misplaced { what, offset, .. } = misplaced;
    budget.begin();
    let nearest_first =
        (1..=MAX_SHIFT).flat_map(|by| [offset.checked_add(by), offset.checked_sub(by)]);
    for at in nearest_first.flatten().filter(|at| *at < len) {
        if !budget.is_left() {
            break;
        }
        let trial = (misplaced.check)(at)?;
        budget.spend(trial);
        if trial.end.is_none() {
            continue;
        }
        let (reason, by, words) = if at > offset {
            (Reason::InsertedBytes, at - offset, "inserted")
        } else {
            (Reason::MissingBytes, offset - at, "missing")
        };
        let evidence = format!(
            "the {what} that was expected at {offset} is at {at}: {} {words} before it",
            bytes_are(by)
        );
        // A checksum proves where the unit is, but not that the index is correct.
        return Ok(Some(Explanation::new(reason, Certainty::Likely, evidence)));
    }
    Ok(None)
}

/// Detects a verified unit at an offset that is impossible for its kind. Bytes after a torn tail are searched too,
/// because no sound unit follows it.
pub(super) fn unaligned(
    candidates: &dyn Candidates,
    excerpt: &Excerpt,
    span: &Span,
) -> Option<Explanation> {
    let bytes = match span.kind {
        Kind::TornTail => excerpt.get(span.start..excerpt.file_len),
        _ => excerpt.of(span),
    };
    let found = (1..bytes.len().min(MAX_SEARCHED)).find(|place| {
        let rest = bytes.get(*place..);
        rest.is_some_and(|rest| candidates.begins(rest))
    })?;
    let at = span.start + found as u64;
    let off = at % candidates.alignment();
    let evidence = format!(
        "a verified unit begins at {at}, which is not a multiple of {}: {} inserted before it, or {} missing",
        candidates.alignment(),
        bytes_are(off),
        candidates.alignment() - off
    );
    (off != 0).then(|| Explanation::new(Reason::InsertedBytes, Certainty::Likely, evidence))
}

/// `1 byte is`, `2 bytes are`.
fn bytes_are(count: u64) -> String {
    match count {
        1 => "1 byte is".to_owned(),
        count => format!("{count} bytes are"),
    }
}

/// `1 byte`, `2 bytes`.
fn bytes_of(count: u64) -> String {
    match count {
        1 => "1 byte".to_owned(),
        count => format!("{count} bytes"),
    }
}

/// Detects a record whose lengths reach a little past the next sound record.
pub(super) fn missing(candidates: &mut dyn Candidates, span: &Span) -> Result<Option<Explanation>> {
    if span.kind != Kind::Corrupt {
        return Ok(None);
    }
    let candidates = candidates.candidates(span)?;
    let found = candidates.iter().find_map(|candidate| {
        let stated = candidate.stated? as u64;
        let begins = candidate.body.start == span.start;
        let short = stated.checked_sub(span.len())?;
        (begins && (1..=MAX_SHIFT).contains(&short)).then_some((candidate.what, stated, short))
    });
    Ok(found.map(|(what, stated, short)| {
        let sector = if short.is_multiple_of(512) {
            ", whole sectors"
        } else {
            ""
        };
        let evidence = format!(
            "the {what} states {stated} bytes, and the next sound one follows after {}: {}{sector} fewer",
            span.len(),
            bytes_of(short)
        );
        Explanation::new(Reason::MissingBytes, Certainty::Possible, evidence)
    }))
}

fn interrupted(certainty: Certainty, evidence: String) -> Explanation {
    Explanation::new(Reason::InterruptedWrite, certainty, evidence)
}

/// The explanation for an unfinished write in a file that was preallocated, or that was longer before.
fn followed_by_zeros(excerpt: &Excerpt, span: &Span) -> Explanation {
    let own = excerpt.of(span);
    let zeros = own.iter().rev().take_while(|byte| **byte == 0).count();
    let written = span.start + (own.len() - zeros) as u64;
    let (at, boundary) = match sectors::boundary_near(written) {
        Some(at) => (at, ", a sector boundary"),
        None => (written, ""),
    };
    let evidence = format!(
        "the written bytes end at {at}{boundary}, and zeros follow: space that was filled in advance, or later records that never reached the disk"
    );
    interrupted(Certainty::Likely, evidence)
}

/// Detects a segment of a log that ends before what it has to reach, so that a part of the range is not in the file.
pub(super) fn short(len: u64, span: &Span) -> Option<Explanation> {
    (len < span.end).then(|| {
        let evidence = format!(
            "the file ends at {len}, and its log says that it was on the disk up to {}",
            span.end
        );
        Explanation::new(Reason::Truncated, Certainty::Likely, evidence)
    })
}

/// Explains a file whose index names a unit after its end, at this offset.
pub(super) fn known_by_index(len: u64, beyond: u64) -> Explanation {
    let evidence =
        format!("the file ends at {len}, and its index has a unit at {beyond}: a truncated copy");
    Explanation::new(Reason::Truncated, Certainty::Likely, evidence)
}

/// Explains a file that ends too early, within a unit: an unfinished write, or a truncated copy.
pub(super) fn torn(format: &Format, excerpt: &Excerpt, span: &Span) -> Explanation {
    let len = excerpt.file_len;
    if span.end < len {
        return followed_by_zeros(excerpt, span);
    }
    let is_written_whole = !format.is_appended_to();
    if len.is_multiple_of(ROUND_BYTES) && len > 0 {
        let evidence = format!(
            "the file ends at {len}, a multiple of 64 KiB, within the unit at {}: a truncated copy",
            span.start
        );
        return Explanation::new(Reason::Truncated, Certainty::Likely, evidence);
    }
    let is_page = len.is_multiple_of(PAGE_BYTES) && len > 0;
    let page = if is_page { ", a multiple of 4,096" } else { "" };
    if is_written_whole {
        // At the file's beginning nothing confirms the length, so the length itself may be damaged.
        let doubtful = span.start == 0 && span.cause == Some(Cause::LengthOutOfBounds);
        let (certainty, or) = if doubtful {
            (Certainty::Possible, ", or its first length is wrong")
        } else {
            (Certainty::Likely, "")
        };
        let evidence = format!(
            "files of this format are written whole, and this one ends too early, at {len}{page}{or}"
        );
        return Explanation::new(Reason::Truncated, certainty, evidence);
    }
    if is_page {
        let evidence = format!(
            "the file ends at {len}{page}, within the unit at {}: written page by page, or a truncated copy",
            span.start
        );
        return interrupted(Certainty::Possible, evidence);
    }
    let evidence = format!("the file ends at {len}, within the unit at {}", span.start);
    interrupted(Certainty::Likely, evidence)
}
