//! Bytes that were inserted or are missing, so that what follows stands elsewhere, and files that end too early.

use super::budget::Budget;
use super::reason::{Certainty, Finding, Reason};
use super::region::Region;
use super::sectors;
use crate::error::Result;
use crate::format::Format;
use crate::format::suspect::{MAX_TRIED_BYTES, Misplaced, Suspect, Suspects};
use crate::ledger::{Kind, Span};
use crate::source::Source;

/// How far something is looked for from where it should stand, in bytes.
const MAX_SHIFT: u64 = 4096;
/// How much of a range is searched for something that checks at an offset at which it cannot stand.
const MAX_SEARCHED: usize = 64 << 10;
/// A length that is a multiple of this is round: buffers of copying programs, blocks of object stores.
const ROUND_BYTES: u64 = 64 << 10;
/// What file systems write at once.
const PAGE_BYTES: u64 = 4096;

/// Bytes in a record that do not belong there: without them the checksum is right.
pub(super) fn inserted(
    source: &dyn Source,
    suspect: &mut Suspect,
    span: &Span,
    budget: &mut Budget,
) -> Result<Option<Finding>> {
    if !suspect.elsewhere.is_empty() {
        return Ok(None);
    }
    let piece = suspect.body.clone();
    let Some(stated) = suspect.stated else {
        return Ok(None);
    };
    let whole = usize::try_from(span.end.saturating_sub(piece.start)).unwrap_or(usize::MAX);
    let Some(extra) = whole.checked_sub(stated).filter(|extra| *extra > 0) else {
        return Ok(None);
    };
    let bytes = suspect.read(source)?;
    if bytes.len() < whole || stated as u64 > MAX_TRIED_BYTES {
        return Ok(None);
    }
    budget.begin();
    for place in 0..=stated {
        let (Some(front), Some(back)) = (bytes.get(..place), bytes.get(place + extra..)) else {
            break;
        };
        let Some(trial) = budget.attempt(suspect, &[front, back].concat()) else {
            break;
        };
        if trial.end.is_some() && place < stated {
            let at = piece.start + place as u64;
            let evidence = format!(
                "without the {extra} bytes from {at} on the {} at {} checks",
                suspect.what, piece.start
            );
            let reason = Reason::InsertedBytes;
            return Ok(Some(Finding::new(reason, Certainty::Proven, evidence)));
        }
    }
    Ok(None)
}

/// Line ends that were made longer on the way: with each CR LF an LF again the checksum is right.
pub(super) fn line_ends(
    source: &dyn Source,
    suspect: &mut Suspect,
    budget: &mut Budget,
) -> Result<Option<Finding>> {
    if !suspect.elsewhere.is_empty() {
        return Ok(None);
    }
    let piece = suspect.body.clone();
    let bytes = suspect.read(source)?;
    let mut guess = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().peekable();
    while let Some(byte) = rest.next() {
        if !(*byte == b'\r' && rest.peek() == Some(&&b'\n')) {
            guess.push(*byte);
        }
    }
    budget.begin();
    let trial = budget
        .attempt(suspect, &guess)
        .filter(|_| guess.len() < bytes.len());
    Ok(trial.and_then(|trial| trial.end).map(|_| {
        let evidence = format!(
            "with each CR LF turned back into LF the {} at {} checks",
            suspect.what, piece.start
        );
        Finding::new(Reason::TextConversion, Certainty::Proven, evidence)
    }))
}

/// Something that stands not where an index says, but so many bytes before or behind it.
pub(super) fn misplaced(
    mut misplaced: Misplaced,
    len: u64,
    budget: &mut Budget,
) -> Result<Option<Finding>> {
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
            "the {what} that should stand at {offset} stands at {at}: {by} bytes are {words} in front of it"
        );
        return Ok(Some(Finding::new(reason, Certainty::Proven, evidence)));
    }
    Ok(None)
}

/// Something that checks, at an offset at which none of its kind can begin.
pub(super) fn unaligned(suspects: &dyn Suspects, region: &Region, span: &Span) -> Option<Finding> {
    let bytes = region.of(span);
    let found = (1..bytes.len().min(MAX_SEARCHED)).find(|place| {
        bytes
            .get(*place..)
            .is_some_and(|rest| suspects.begins(rest))
    })?;
    let at = span.start + found as u64;
    let off = at % 0x80;
    let evidence = format!(
        "a chunk header that checks stands at {at}, which is no multiple of 128: {off} bytes are inserted in front of it, or {} missing",
        0x80 - off
    );
    Some(Finding::new(
        Reason::InsertedBytes,
        Certainty::Likely,
        evidence,
    ))
    .filter(|_| off != 0)
}

/// A record whose lengths lead behind the next good one, a little.
pub(super) fn missing(suspects: &mut dyn Suspects, span: &Span) -> Result<Option<Finding>> {
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
            "the {what} says that it has {stated} bytes, and the next good one follows after {}: {short} bytes{sector} fewer",
            span.len()
        );
        Finding::new(Reason::MissingBytes, Certainty::Possible, evidence)
    }))
}

/// A file that ends too early: a write that was not finished, or a copy that was cut off.
pub(super) fn torn(format: &Format, region: &Region, span: &Span) -> Finding {
    let len = region.file_len;
    let is_appended_to = format.create_options.contains(&"append");
    if span.end < len {
        let evidence = match sectors::zeros_from(region, span) {
            Some(at) => format!(
                "the last write reached the disk up to {at}, where a sector ends, and zeros follow"
            ),
            None => format!("the last write ends at {}, and zeros follow", span.end),
        };
        return Finding::new(Reason::InterruptedWrite, Certainty::Likely, evidence);
    }
    if len > 0 && len.is_multiple_of(ROUND_BYTES) {
        let evidence = format!(
            "the file ends within what begins at {}, at {len}, a multiple of 64 KiB: a copy that was cut off",
            span.start
        );
        return Finding::new(Reason::Truncated, Certainty::Likely, evidence);
    }
    if !is_appended_to {
        let page = if len > 0 && len.is_multiple_of(PAGE_BYTES) {
            ", a multiple of 4,096"
        } else {
            ""
        };
        let evidence = format!(
            "files of this format are written whole, and this one ends too early, at {len}{page}"
        );
        return Finding::new(Reason::Truncated, Certainty::Likely, evidence);
    }
    let (certainty, page) = if len > 0 && len.is_multiple_of(PAGE_BYTES) {
        (
            Certainty::Possible,
            ", a multiple of 4,096: written page by page, or a copy that was cut off",
        )
    } else {
        (Certainty::Likely, ", and nothing good follows")
    };
    let evidence = format!(
        "the last write ends within what begins at {}, at {len}{page}",
        span.start
    );
    Finding::new(Reason::InterruptedWrite, certainty, evidence)
}
