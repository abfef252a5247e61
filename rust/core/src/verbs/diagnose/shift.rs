//! Bytes that were inserted or are missing, so that what follows stands elsewhere, and files that end too early.

use super::budget::Budget;
use super::reason::Explanation;
use super::region::Region;
use super::sectors;
use crate::engine::Format;
use crate::engine::suspect::{MAX_TRIED_BYTES, Misplaced, Suspect, Suspects, read_piece};
use crate::error::Result;
use crate::ledger::{Cause, Kind, Span};
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::verbs::diagnosis::{Certainty, Reason};

/// How far something is looked for from where it should stand, in bytes.
const MAX_SHIFT: u64 = 4096;
/// How much of a range is searched for something that checks at an offset at which it cannot stand.
const MAX_SEARCHED: usize = 64 << 10;
/// A length that is a multiple of this is round: buffers of copying programs, blocks of object stores.
const ROUND_BYTES: u64 = 64 << 10;
/// Of the record in front of inserted bytes, and of what is behind them, at least so many bytes are there: fewer could come from
/// another record, and be the same by chance.
const MIN_KEPT: usize = 20;
/// What file systems write at once.
const PAGE_BYTES: u64 = 4096;

/// Bytes in a record that do not belong there: without them the checksum is right.
pub(super) fn inserted(
    source: &dyn Source,
    suspect: &mut Suspect,
    span: &Span,
    budget: &mut Budget,
) -> Result<Option<Explanation>> {
    if !suspect.elsewhere.is_empty() {
        return Ok(None);
    }
    let piece = suspect.body.clone();
    let Some(stated) = suspect.stated else {
        return Ok(None);
    };
    let whole = saturating_usize(span.end.saturating_sub(piece.start));
    let Some(extra) = whole.checked_sub(stated).filter(|extra| *extra > 0) else {
        return Ok(None);
    };
    let bytes = suspect.read(source)?;
    if bytes.len() < whole || stated as u64 > MAX_TRIED_BYTES {
        return Ok(None);
    }
    budget.begin();
    for place in MIN_KEPT..stated.saturating_sub(MIN_KEPT) {
        let behind = place + extra..stated + extra;
        let (Some(front), Some(back)) = (bytes.get(..place), bytes.get(behind)) else {
            break;
        };
        let Some(trial) = budget.attempt(suspect, &[front, back].concat()) else {
            break;
        };
        if trial.end.is_some() {
            let at = piece.start + place as u64;
            let evidence = format!(
                "without {} from {at} on the {} at {} checks",
                bytes_of(extra as u64),
                suspect.what,
                piece.start
            );
            let reason = Reason::InsertedBytes;
            return Ok(Some(Explanation::new(reason, Certainty::Proven, evidence)));
        }
    }
    Ok(None)
}

/// Line ends that were made longer on the way: with each CR LF an LF again the checksum is right.
pub(super) fn line_ends(
    source: &dyn Source,
    suspect: &mut Suspect,
    budget: &mut Budget,
) -> Result<Option<Explanation>> {
    if !suspect.elsewhere.is_empty() {
        return Ok(None);
    }
    // What was pushed out of it at its end belongs to it as well.
    let body = suspect.body.clone();
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
    let trial = budget.attempt(suspect, &guess);
    Ok(trial.and_then(|trial| trial.end).map(|_| {
        let evidence = format!(
            "with each CR LF turned back into LF the {} at {} checks",
            suspect.what, body.start
        );
        Explanation::new(Reason::TextConversion, Certainty::Proven, evidence)
    }))
}

/// Something that stands not where an index says, but so many bytes before or behind it.
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
            "the {what} that should stand at {offset} stands at {at}: {} {words} in front of it",
            bytes_are(by)
        );
        // That it stands there is proven; that the index was right is not.
        return Ok(Some(Explanation::new(reason, Certainty::Likely, evidence)));
    }
    Ok(None)
}

/// Something that checks, at an offset at which none of its kind can begin. In a torn tail nothing good is behind the range
/// either, so what follows tells as well.
pub(super) fn unaligned(
    suspects: &dyn Suspects,
    region: &Region,
    span: &Span,
) -> Option<Explanation> {
    let bytes = match span.kind {
        Kind::TornTail => region.get(span.start..region.file_len),
        _ => region.of(span),
    };
    let found = (1..bytes.len().min(MAX_SEARCHED)).find(|place| {
        let rest = bytes.get(*place..);
        rest.is_some_and(|rest| suspects.begins(rest))
    })?;
    let at = span.start + found as u64;
    let off = at % suspects.alignment();
    let evidence = format!(
        "something that checks begins at {at}, which is no multiple of {}: {} inserted in front of it, or {} missing",
        suspects.alignment(),
        bytes_are(off),
        suspects.alignment() - off
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

/// A record whose lengths lead behind the next good one, a little.
pub(super) fn missing(suspects: &mut dyn Suspects, span: &Span) -> Result<Option<Explanation>> {
    if span.kind != Kind::Corrupt {
        return Ok(None);
    }
    let suspects = suspects.suspects(span)?;
    let found = suspects.iter().find_map(|suspect| {
        let stated = suspect.stated? as u64;
        let begins = suspect.body.start == span.start;
        let short = stated.checked_sub(span.len())?;
        (begins && (1..=MAX_SHIFT).contains(&short)).then_some((suspect.what, stated, short))
    });
    Ok(found.map(|(what, stated, short)| {
        let sector = if short.is_multiple_of(512) {
            ", whole sectors"
        } else {
            ""
        };
        let evidence = format!(
            "the {what} says that it has {stated} bytes, and the next good one follows after {}: {}{sector} fewer",
            span.len(),
            bytes_of(short)
        );
        Explanation::new(Reason::MissingBytes, Certainty::Possible, evidence)
    }))
}

fn interrupted(certainty: Certainty, evidence: String) -> Explanation {
    Explanation::new(Reason::InterruptedWrite, certainty, evidence)
}

/// A write that was not finished, in a file that was longer before; what it wrote is cut off, or may be.
fn followed_by_zeros(region: &Region, span: &Span, is_cut: bool) -> Explanation {
    if let Some(at) = sectors::zeros_from(region, span) {
        let evidence =
            format!("what was written ends at {at}, where a sector ends, and zeros follow");
        return interrupted(Certainty::Likely, evidence);
    }
    let evidence = format!("what was written ends at {}, and zeros follow", span.end);
    let certainty = if is_cut {
        Certainty::Likely
    } else {
        Certainty::Possible
    };
    interrupted(certainty, evidence)
}

/// A file that ends too early: a write that was not finished, or a copy that was cut off. `stated` is where the last record
/// would end by its own lengths.
pub(super) fn torn(
    format: &Format,
    region: &Region,
    span: &Span,
    stated: Option<u64>,
) -> Explanation {
    let len = region.file_len;
    let is_missing = matches!(
        span.cause,
        Some(Cause::TruncatedHeader | Cause::TruncatedTrailer | Cause::LengthOutOfBounds)
    );
    if span.end < len {
        let is_cut = is_missing || stated.is_some_and(|end| end > span.end);
        return followed_by_zeros(region, span, is_cut);
    }
    if !is_missing {
        let evidence = format!(
            "the file ends with what begins at {}, all of it there by its lengths: part of it never reached the disk, or changed later",
            span.start
        );
        return interrupted(Certainty::Possible, evidence);
    }
    let is_written_whole = !format.is_appended_to();
    if len.is_multiple_of(ROUND_BYTES) && len > 0 {
        let evidence = format!(
            "the file ends at {len}, a multiple of 64 KiB, within what begins at {}: a copy that was cut off",
            span.start
        );
        return Explanation::new(Reason::Truncated, Certainty::Likely, evidence);
    }
    let is_page = len.is_multiple_of(PAGE_BYTES) && len > 0;
    let page = if is_page { ", a multiple of 4,096" } else { "" };
    if is_written_whole {
        // At the beginning nothing vouches for the length: that may be what is damaged.
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
            "the file ends at {len}{page}, within what begins at {}: written page by page, or a copy that was cut off",
            span.start
        );
        return interrupted(Certainty::Possible, evidence);
    }
    let evidence = format!(
        "the file ends at {len}, within what begins at {}",
        span.start
    );
    interrupted(Certainty::Likely, evidence)
}
