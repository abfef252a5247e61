//! Sectors: blocks of 512 or 4,096 bytes at multiples of their size, which disks write and lose as a whole.

use std::ops::Range;

use super::budget::Budget;
use super::excerpt::Excerpt;
use super::reason::Explanation;
use crate::bug::OrBug;
use crate::engine::candidate::Candidate;
use crate::error::Result;
use crate::ledger::{Kind, Span};
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::verbs::diagnosis::{Certainty, Reason};

/// The larger one first: a range that fits both is a page.
const SECTORS: [u64; 2] = [4096, 512];
/// How many bytes next to a sector may continue its pattern by chance.
const CHANCE_BYTES: u64 = 16;
/// How many zeros padding and small numbers may add to a zeroed sector.
const ZEROS_BYTES: u64 = 128;
/// How many bytes a record must keep outside a replaced sector. Fewer could match by chance.
const MIN_KEPT_BYTES: u64 = 20;
/// The most sectors of one range that are searched for elsewhere.
const MAX_SECTORS: u64 = 64;
/// A sector with fewer different bytes could match others by chance.
const MIN_DIFFERENT_BYTES: usize = 8;

const fn floor(offset: u64, size: u64) -> u64 {
    offset / size * size
}

const fn ceil(offset: u64, size: u64) -> u64 {
    floor(offset.saturating_add(size - 1), size)
}

/// Detects a run of zeros or of 0xff that begins and ends at sector boundaries.
pub(super) fn constant(excerpt: &Excerpt, span: &Span) -> Option<Explanation> {
    for (byte, reason) in [(0x00, Reason::ZeroedSector), (0xff, Reason::ErasedSector)] {
        for run in runs(excerpt, span, byte) {
            let inner = ceil(run.start, 512)..floor(run.end, 512);
            let is_within = inner.start < span.end.min(inner.end) && span.start < inner.end;
            // Zeros to the end were never reached by an interrupted write.
            let goes_on = run.end == excerpt.end();
            let is_last = run.end == excerpt.file_len || span.kind == Kind::TornTail;
            if !is_within || byte == 0 && goes_on && is_last {
                continue;
            }
            let at_end = if goes_on { 0 } else { run.end - inner.end };
            let slack = [inner.start - run.start, at_end];
            let near = slack.iter().filter(|slack| **slack <= CHANCE_BYTES).count();
            let certainty = match near {
                2 => Certainty::Likely,
                1 if slack.iter().all(|slack| *slack <= ZEROS_BYTES) => Certainty::Possible,
                _ => continue,
            };
            let size = size_of(&inner);
            let evidence = format!(
                "bytes {} to {} are {byte:#04x} throughout: {}{} of {size} bytes",
                inner.start,
                inner.end,
                if goes_on { "at least " } else { "" },
                sectors((inner.end - inner.start) / size)
            );
            return Some(Explanation::new(reason, certainty, evidence));
        }
    }
    None
}

fn sectors(count: u64) -> String {
    match count {
        1 => "one sector".to_owned(),
        count => format!("{count} sectors"),
    }
}

/// The sector size of a run of sectors: the smaller one fits every run.
fn size_of(run: &Range<u64>) -> u64 {
    let [page, sector] = SECTORS;
    let is_pages = run.start.is_multiple_of(page) && run.end.is_multiple_of(page);
    if is_pages { page } else { sector }
}

/// The runs of one byte value that touch the range and are at least a sector long, in file order, including their bytes
/// outside the range.
fn runs(excerpt: &Excerpt, span: &Span, byte: u8) -> Vec<Range<u64>> {
    let (mut found, mut start) = (Vec::new(), None::<u64>);
    let from = span.start.saturating_sub(4096).max(excerpt.start);
    let to = excerpt.end();
    let bytes = excerpt.get(from..to);
    let mut close = |start: Option<u64>, end: u64| {
        if let Some(start) = start
            && end - start >= 512
            && start < span.end
            && span.start < end
        {
            found.push(start..end);
        }
    };
    for (at, own) in (from..).zip(bytes) {
        if *own == byte {
            start.get_or_insert(at);
        } else {
            close(start.take(), at);
        }
    }
    close(start, to);
    found
}

/// Detects sectors with the same content as others nearby, whose neighbours differ.
pub(super) fn duplicated(excerpt: &Excerpt, span: &Span) -> Option<Explanation> {
    for size in SECTORS {
        let first = floor(span.start, size).max(ceil(excerpt.start, size));
        for nth in 0..MAX_SECTORS {
            let at = first.saturating_add(nth * size);
            if at >= span.end {
                break;
            }
            if let Some(other) = same_elsewhere(excerpt, at, size) {
                let evidence =
                    format!("the {size} bytes at {at}, a sector, are the same as those at {other}");
                return Some(Explanation::new(
                    Reason::DuplicatedSector,
                    Certainty::Likely,
                    evidence,
                ));
            }
        }
    }
    None
}

/// Where else the sector at `at` is. A match within a longer repetition is ignored: that may be the records' own
/// content.
fn same_elsewhere(excerpt: &Excerpt, at: u64, size: u64) -> Option<u64> {
    let sector = whole(excerpt, at, size)?;
    let mut seen = [false; 256];
    for byte in sector {
        if let Some(seen) = seen.get_mut(usize::from(*byte)) {
            *seen = true;
        }
    }
    if seen.iter().filter(|seen| **seen).count() < MIN_DIFFERENT_BYTES {
        return None;
    }
    let mut other = ceil(excerpt.start, size);
    while other.saturating_add(size) <= excerpt.end() {
        if other != at && whole(excerpt, other, size) == Some(sector) {
            let (before, behind) = common_around(excerpt, at, other, size);
            let stands_alone = before <= CHANCE_BYTES && behind <= CHANCE_BYTES;
            return stands_alone.then_some(other);
        }
        other += size;
    }
    None
}

fn whole(excerpt: &Excerpt, at: u64, size: u64) -> Option<&[u8]> {
    let bytes = excerpt.get(at..at.saturating_add(size));
    (bytes.len() as u64 == size).then_some(bytes)
}

/// How many bytes before and after two equal sectors are equal.
fn common_around(excerpt: &Excerpt, at: u64, other: u64, size: u64) -> (u64, u64) {
    let front = |at: u64| excerpt.get(at.saturating_sub(size)..at).iter().rev();
    let back = |at: u64| excerpt.get(at + size..at.saturating_add(2 * size)).iter();
    let same = |(own, other): &(&u8, &u8)| own == other;
    let before = front(at).zip(front(other)).take_while(same).count();
    let behind = back(at).zip(back(other)).take_while(same).count();
    (before as u64, behind as u64)
}

/// Detects a sector whose correct bytes are in another sector: with these in its place the checksum matches.
pub(super) fn moved(
    source: &dyn Source,
    candidate: &mut Candidate,
    span: &Span,
    budget: &mut Budget,
) -> Result<Option<Explanation>> {
    let Range { start, end } = candidate.body;
    let body_end = end;
    // The candidate's length by its own length fields. If that is implausible, the fields are in the bad sector.
    let stated = candidate
        .stated
        .and_then(|stated| start.checked_add(stated as u64));
    let end = match stated.filter(|stated| *stated <= end) {
        Some(stated) => stated,
        None => end.min(ceil(start + 1, SECTORS[0])),
    };
    let excerpt = Excerpt::around(source, span)?;
    let mut bytes = candidate.read(source)?;
    budget.begin();
    for size in SECTORS {
        let mut target = floor(start, size);
        while target < end {
            let own = target.max(start)..(target + size).min(end);
            let mut other = ceil(excerpt.start, size);
            while other.saturating_add(size) <= excerpt.end() {
                let from = other + (own.start - target);
                let theirs = excerpt.get(from..from + (own.end - own.start));
                let place = own.start - start;
                let kept = replace(&mut bytes, place, theirs)?;
                let Some(trial) = budget.attempt(candidate, &bytes) else {
                    return Ok(None);
                };
                // A unit that lies mostly in the other place would only show that it is there as well.
                let is_mostly_own = trial.end.is_some_and(|end| {
                    let end = end.min(body_end);
                    own.start - start + end.saturating_sub(own.end) >= MIN_KEPT_BYTES
                });
                if is_mostly_own && other != target {
                    let evidence = format!(
                        "with the {size} bytes at {other} in place of those at {target}, the {} at {start} is verified",
                        candidate.what
                    );
                    let reason = Reason::MovedSector;
                    return Ok(Some(Explanation::new(reason, Certainty::Proven, evidence)));
                }
                replace(&mut bytes, place, &kept)?;
                other += size;
            }
            target += size;
        }
    }
    Ok(None)
}

/// Replaces the bytes from `at` on. Returns the old bytes.
fn replace(bytes: &mut [u8], at: u64, by: &[u8]) -> Result<Vec<u8>> {
    let place = saturating_usize(at);
    let own = bytes.get_mut(place..place.saturating_add(by.len()));
    let own = own.or_bug("a sector within the tried bytes")?;
    let kept = own.to_vec();
    own.copy_from_slice(by);
    Ok(kept)
}

/// The sector boundary where bytes end that end at this offset, or in zeros soon after it.
pub(super) fn boundary_near(end: u64) -> Option<u64> {
    let boundary = ceil(end, 512);
    (boundary - end <= CHANCE_BYTES).then_some(boundary)
}
