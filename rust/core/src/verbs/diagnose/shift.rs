//! Detects inserted and missing bytes, which move later bytes, and files that end too early.

use super::budget::Budget;
use super::excerpt::Excerpt;
use super::reason::Explanation;
use super::sectors;
use crate::bug::OrBug;
use crate::engine::candidate::{Candidate, Candidates, MAX_TRIED_BYTES, Misplaced, read_piece};
use crate::engine::{Format, Stated};
use crate::error::Result;
use crate::ledger::{Cause, Kind, Span};
use crate::saturating::saturating_usize;
use crate::source::{Fill, Source};
use crate::verbs::diagnosis::{Certainty, Missing, Reason};

/// How far from its expected offset a unit is searched, in bytes.
const MAX_SHIFT: u64 = 4096;
/// The same in whole sectors, and in whole pages.
const MAX_SECTORS_SHIFT: u64 = 64 << 10;
const MAX_PAGES_SHIFT: u64 = 1 << 20;
/// The longest range that may be beginnings of what follows it, in bytes.
const MAX_RETRIED: u64 = 64 << 10;
/// Multiples of this are round lengths: buffers of copying programs, blocks of object stores.
const ROUND_BYTES: u64 = 64 << 10;
/// How many bytes of the record must remain before and after inserted bytes. Fewer could belong to another record and
/// match by chance.
const MIN_KEPT: usize = 20;
/// How many line feeds of a unit are tried, each by itself.
const MAX_RETURNS: usize = 1024;
/// How many of its first ones are left out, one after the other.
const MAX_SKIPPED: usize = 4;
/// How many bytes that are missing at the beginning of a unit are tried.
pub(super) const MAX_CUT_OUT: u64 = 64;
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
            let found = Explanation::new(Reason::InsertedBytes, Certainty::Likely, evidence);
            return Ok(Some(found.without(at..at + extra as u64)));
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
    let mut guess = without_returns(&bytes);
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

/// The bytes with each CR LF turned into LF.
pub(super) fn without_returns(bytes: &[u8]) -> Vec<u8> {
    let mut found = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().peekable();
    while let Some(byte) = rest.next() {
        if !(*byte == b'\r' && rest.peek() == Some(&&b'\n')) {
            found.push(*byte);
        }
    }
    found
}

/// Detects line ends converted the other way: with a CR put back before each LF, or before one, the checksum matches.
pub(super) fn lost_return(
    source: &dyn Source,
    candidate: &mut Candidate,
    budget: &mut Budget,
) -> Result<Option<Explanation>> {
    let bytes = candidate.read(source)?;
    let body = saturating_usize(candidate.body.end - candidate.body.start).min(bytes.len());
    let (own, elsewhere) = bytes.split_at(body);
    if own.windows(2).any(|pair| pair == b"\r\n") {
        return Ok(None);
    }
    budget.begin();
    let feeds: Vec<_> = (0..own.len())
        .filter(|at| own.get(*at) == Some(&b'\n'))
        .collect();
    // Those of lengths and identifiers come first, and were none.
    let all = (0..feeds.len().min(MAX_SKIPPED)).filter_map(|skipped| feeds.get(skipped..));
    let single = feeds.iter().take(MAX_RETURNS).map(std::slice::from_ref);
    for feeds in all.chain(single) {
        let mut guess = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for at in feeds {
            guess.extend_from_slice(own.get(from..*at).or_bug_default("an LF in the bytes"));
            guess.push(b'\r');
            from = *at;
        }
        guess.extend_from_slice(own.get(from..).or_bug_default("an LF in the bytes"));
        guess.truncate(body);
        guess.extend_from_slice(elsewhere);
        let Some(trial) = budget.attempt(candidate, &guess) else {
            break;
        };
        if trial.end.is_some() {
            let (what, at) = (candidate.what, candidate.body.start);
            let evidence = format!(
                "with a CR before {}, the {what} at {at} is verified: CR LF were turned into LF",
                match feeds {
                    [one] => format!("the LF at {}", at + *one as u64),
                    all => format!("each of {} LF", all.len()),
                }
            );
            let reason = Reason::TextConversion;
            return Ok(Some(Explanation::new(reason, Certainty::Proven, evidence)));
        }
    }
    Ok(None)
}

/// Detects a unit that is a few bytes before or after the offset where it belongs: bytes are missing from the range on, or too many.
pub(super) fn misplaced(
    mut misplaced: Misplaced,
    span: &Span,
    len: u64,
    budget: &mut Budget,
) -> Result<Option<Explanation>> {
    let Misplaced { what, offset, .. } = misplaced;
    budget.begin();
    // Whole sectors and pages first: they are few.
    let sectors = (512..=MAX_SECTORS_SHIFT).step_by(512);
    let pages = (MAX_SECTORS_SHIFT..=MAX_PAGES_SHIFT).step_by(4096);
    let all = sectors.chain(pages).chain(1..=MAX_SHIFT);
    let all = all.flat_map(|by| [offset.checked_add(by), offset.checked_sub(by)]);
    for at in all.flatten().filter(|at| *at < len) {
        if !budget.is_left() {
            break;
        }
        let trial = (misplaced.check)(at)?;
        budget.spend(trial);
        if trial.end.is_none() {
            continue;
        }
        let (reason, words) = match at > offset {
            true => (Reason::InsertedBytes, "inserted"),
            false => (Reason::MissingBytes, "missing"),
        };
        let (extra, short) = (at.saturating_sub(offset), offset.saturating_sub(at));
        let are = if extra + short == 1 { "is" } else { "are" };
        let evidence = format!(
            "the {what} that was expected at {offset} is at {at}: {} {are} {words} before it",
            bytes_of(extra + short)
        );
        // A checksum proves where the unit is, but not that the index is correct.
        let explanation =
            Explanation::new(reason, Certainty::Likely, evidence).but(misplaced.against);
        let change = match at > offset {
            true => (span.start..span.start + extra, Fill::Zeros(0)),
            false => (at..at, Fill::Zeros(short)),
        };
        return Ok(Some(Explanation {
            changes: vec![change],
            ..explanation.at(match at > offset {
                true => span.start..span.start + extra,
                false => span.start.min(at)..offset,
            })
        }));
    }
    Ok(None)
}

/// `1 byte`, `2 bytes`.
pub(super) fn bytes_of(count: u64) -> String {
    match count {
        1 => "1 byte".to_owned(),
        count => format!("{count} bytes"),
    }
}

/// Detects a unit that is not as long as it states, so that its beginning and what follows do not belong together.
pub(super) fn missing(candidates: &mut dyn Candidates, span: &Span) -> Result<Option<Explanation>> {
    if span.kind != Kind::Corrupt {
        return Ok(None);
    }
    let candidates = candidates.candidates(span)?;
    let found = candidates.iter().find_map(|candidate| {
        let stated = candidate.stated? as u64;
        // What is joined is no longer than two units, of which the first one states its length.
        let is_own =
            candidate.by_checksum && candidate.body.start == span.start && stated != span.len();
        (is_own && span.len() < 2 * stated).then_some((candidate.what, stated))
    });
    let evidence = match found {
        Some((what, stated)) => {
            let fewer = match stated.checked_sub(span.len()) {
                Some(short) => format!(": {} fewer", bytes_of(short)),
                None => String::new(),
            };
            format!(
                "the {what} states {stated} bytes, and the next sound one follows after {}{fewer}",
                span.len()
            )
        }
        None if span.start == 0 => format!(
            "the file does not begin with a record, and a sound one follows at {}",
            span.end
        ),
        None => return Ok(None),
    };
    let explanation = Explanation::new(Reason::MissingBytes, Certainty::Possible, evidence);
    let against = "bytes that were written over would look the same";
    Ok(Some(explanation.but(against)))
}

/// Explains a unit that has its length once bytes are put in at its beginning.
pub(super) fn cut_out(what: &str, span: &Span, missing: u64) -> Explanation {
    let evidence = format!(
        "with {} put in before its lengths, the {what} at {} ends where the next sound one begins",
        bytes_of(missing),
        span.start
    );
    Explanation::new(Reason::MissingBytes, Certainty::Likely, evidence)
}

/// Detects writes that were cut short and made again: the range is beginnings of the unit that follows it.
pub(super) fn retried(source: &dyn Source, span: &Span) -> Result<Option<Explanation>> {
    if span.kind != Kind::Corrupt || span.len() > MAX_RETRIED {
        return Ok(None);
    }
    let (mut own, mut next) = (Vec::new(), Vec::new());
    read_piece(source, &(span.start..span.end), &mut own)?;
    let end = span.end.saturating_add(span.len()).min(source.len());
    read_piece(source, &(span.end..end), &mut next)?;
    let (mut rest, mut writes) = (own.as_slice(), 0);
    while !rest.is_empty() {
        let pairs = rest.iter().zip(&next);
        let same = pairs.take_while(|(own, theirs)| own == theirs).count();
        let Some((_, behind)) = rest.split_at_checked(same).filter(|_| same >= MIN_KEPT) else {
            return Ok(None);
        };
        (rest, writes) = (behind, writes + 1);
    }
    let evidence = format!(
        "{} at {} begin what is whole at {}: it was written anew, after {writes} {} cut short",
        bytes_of(span.len()),
        span.start,
        span.end,
        if writes == 1 { "write" } else { "writes" },
    );
    let found = interrupted(Certainty::Likely, evidence);
    Ok(Some(found.without(span.start..span.end)))
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

/// Detects a file that ends before what it has to reach, so that a part of a range is not in it. `by`: what says so.
pub(super) fn short(len: u64, end: u64, by: &str) -> Option<Explanation> {
    (len < end).then(|| {
        let evidence = format!("the file ends at {len}, and {by} up to {end}");
        Explanation::new(Reason::Truncated, Certainty::Likely, evidence)
    })
}

/// Explains a file whose index or table of contents has units after its end, and what is missing of them.
pub(super) fn known_by_index(len: u64, stated: Stated, records: u64) -> Explanation {
    let evidence = format!(
        "the file ends at {len}{}, and its index has a unit up to {}",
        sectors::round(len),
        stated.end
    );
    Explanation {
        missing: Some(Missing {
            bytes: stated.end.saturating_sub(len),
            records: stated.records.map(|all| all.saturating_sub(records)),
        }),
        ..Explanation::new(Reason::Truncated, Certainty::Likely, evidence).at(len..len)
    }
}

/// Explains a file that ends too early, within a unit: an unfinished write, or a truncated copy.
pub(super) fn torn(format: &Format, len: u64, excerpt: &Excerpt, span: &Span) -> Explanation {
    // A few zeros may be the unit's own.
    if len - span.end.min(len) > sectors::CHANCE_BYTES {
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
