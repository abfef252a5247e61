//! Sectors: blocks of 512 or 4,096 bytes at multiples of their size, which disks write and lose as a whole.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::budget::Budget;
use super::excerpt::Excerpt;
use super::reason::Explanation;
use crate::bug::OrBug;
use crate::engine::candidate::{Candidate, MAX_TRIED_BYTES, read_piece};
use crate::error::{Error, Result};
use crate::ledger::Span;
use crate::saturating::saturating_usize;
use crate::source::{Fill, Source};
use crate::verbs::diagnosis::{Certainty, Missing, Reason};

/// The larger one first: a range that fits both is a page.
pub(super) const SECTORS: [u64; 2] = [4096, 512];
/// How many bytes next to a sector may continue its pattern by chance, and how many zeros may end what is before it.
pub(super) const CHANCE_BYTES: u64 = 16;
/// How many zeros padding and small numbers may add to a zeroed sector.
const ZEROS_BYTES: u64 = 128;
/// How many bytes a record must have in a replaced sector, and outside of it. Fewer could match by chance.
const MIN_KEPT_BYTES: u64 = 20;
/// The most sectors of one range that are searched for elsewhere.
const MAX_SECTORS: usize = 64;
/// The largest block that is looked for where one was written over.
pub(super) const LARGE: u64 = 64 << 10;
/// How much longer the damage may be than a sector that explains it: a record at either end.
const MAX_SLACK: u64 = 1024;
/// How many bytes of a file are searched for a sector's.
pub(super) const MAX_COMPARED: u64 = 256 << 20;
/// How many bytes are read at once to compare them: a multiple of all sizes.
const PIECE_BYTES: u64 = 1 << 20;
/// A sector with fewer different bytes could match others by chance.
const MIN_DIFFERENT_BYTES: usize = 8;

pub(super) const fn floor(offset: u64, size: u64) -> u64 {
    offset / size * size
}

const fn ceil(offset: u64, size: u64) -> u64 {
    floor(offset.saturating_add(size - 1), size)
}

/// The sectors where a range begins, and those where it ends.
pub(super) fn ends(source: &dyn Source, span: &Span) -> Result<[Excerpt; 2]> {
    let [page, _] = SECTORS;
    let file_len = source.len();
    let sectors = |at: u64| {
        let start = floor(at.min(file_len), page);
        let mut bytes = Vec::new();
        read_piece(source, &(start..file_len.min(start + 2 * page)), &mut bytes)?;
        Ok::<_, Error>(Excerpt { start, bytes })
    };
    let last = span.end.saturating_sub(page).max(span.start);
    Ok([sectors(span.start)?, sectors(last)?])
}

/// Detects zeros from a page on to the end of the file, at the end of this range: of a file that is written whole, or whose
/// length is not one that space is filled up to in advance.
pub(super) fn zeroed_tail(
    len: u64,
    data_end: u64,
    span: &Span,
    is_written_whole: bool,
) -> Option<Explanation> {
    let [page, _] = SECTORS;
    let at = boundary_near(data_end).filter(|at| *at > 0 && at + 512 <= len)?;
    let touches = at <= span.end.saturating_add(CHANCE_BYTES);
    let is_preallocated = len.is_multiple_of(page) || !at.is_multiple_of(page);
    if !touches || is_preallocated && !is_written_whole {
        return None;
    }
    let evidence = format!(
        "the last {} bytes of the file are zeros, from {at}{} on",
        len - at,
        round(at)
    );
    let explanation = Explanation::new(Reason::ZeroedTail, Certainty::Likely, evidence);
    Some(Explanation {
        missing: Some(Missing {
            bytes: len - at,
            records: None,
        }),
        ..explanation.at(at..len)
    })
}

/// What is said of an offset that is a multiple of a large power of two.
pub(super) fn round(at: u64) -> String {
    let sizes = [
        (1 << 20, "1 MiB"),
        (64 << 10, "64 KiB"),
        (4096, "4 KiB"),
        (512, "512 bytes"),
    ];
    let found = sizes.iter().find(|(size, _)| at.is_multiple_of(*size));
    found.map_or_else(String::new, |(size, name)| {
        format!(" ({name} x {})", at / size)
    })
}

/// Detects a run of zeros or of 0xff: one that begins and ends at sector boundaries, or most of the range.
pub(super) fn constant(
    source: &dyn Source,
    excerpt: &Excerpt,
    span: &Span,
) -> Result<Option<Explanation>> {
    for (byte, reason) in [(0x00, Reason::ZeroedSector), (0xff, Reason::ErasedSector)] {
        for mut run in runs(excerpt, span, byte) {
            if run.end == excerpt.end() {
                run.end = end_of_run(source, run.end, byte)?;
            }
            let inner = ceil(run.start, 512)..floor(run.end, 512);
            let is_within = inner.start < span.end.min(inner.end) && span.start < inner.end;
            // Zeros to the end were never reached by an interrupted write.
            if !is_within || byte == 0 && run.end == source.len() {
                continue;
            }
            let at_end = match run.end == source.len() {
                true => 0,
                false => run.end - inner.end,
            };
            let slack = [inner.start - run.start, at_end];
            let near = slack.iter().filter(|slack| **slack <= CHANCE_BYTES).count();
            let of_sectors = match near {
                2 => Some(Certainty::Likely),
                1 if slack.iter().all(|slack| *slack <= ZEROS_BYTES) => Some(Certainty::Possible),
                _ => None,
            };
            let is_most = run.end - run.start >= SECTORS[0].max(span.len() / 2);
            let (certainty, place) = match of_sectors {
                Some(certainty) => (certainty, inner),
                // Most of a long range, wherever it begins and ends.
                None if is_most => (Certainty::Possible, run),
                None => continue,
            };
            let mut evidence = format!(
                "bytes {} to {} are {byte:#04x} throughout",
                place.start, place.end
            );
            if of_sectors.is_some() {
                let size = size_of(&place);
                let count = sectors((place.end - place.start) / size);
                evidence.push_str(&format!(": {count} of {size} bytes"));
            }
            let found = Explanation::new(reason, certainty, evidence);
            return Ok(Some(found.at(place)));
        }
    }
    Ok(None)
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
    let mut at = span.start.saturating_sub(4096).max(excerpt.start);
    let bytes = excerpt.get(at..excerpt.end());
    let all = bytes.chunk_by(|own, next| own == next).map(|run| {
        let start = at;
        at += run.len() as u64;
        (run.first(), start..at)
    });
    let is_long = |own: &Range<u64>| own.end - own.start >= 512;
    let touches = |own: &Range<u64>| own.start < span.end && span.start < own.end;
    all.filter(|(own, run)| *own == Some(&byte) && is_long(run) && touches(run))
        .map(|(_, run)| run)
        .collect()
}

/// Where a run of one byte value ends that goes on at `at`, as far as that is looked at.
fn end_of_run(source: &dyn Source, mut at: u64, byte: u8) -> Result<u64> {
    let mut piece = Vec::new();
    let most = source.len().min(at.saturating_add(MAX_COMPARED));
    while at < most {
        piece.clear();
        let end = at.saturating_add(PIECE_BYTES).min(source.len());
        read_piece(source, &(at..end), &mut piece)?;
        if let Some(place) = piece.iter().position(|own| *own != byte) {
            return Ok(at + place as u64);
        }
        at = end;
    }
    Ok(at)
}

/// Detects sectors with the same bytes as others in the file, whose neighbours differ, in ranges that follow each other.
pub(super) fn duplicated(
    source: &dyn Source,
    ranges: &[Span],
    budget: &mut Budget,
) -> Result<Option<Explanation>> {
    let Some(range) = extended(ranges, source.len()) else {
        return Ok(None);
    };
    for size in SECTORS {
        let (first, end) = (ceil(range.start, size), range.end);
        let own = (first..end).step_by(saturating_usize(size));
        let places = own.take(MAX_SECTORS).map(|at| at..at + size);
        let places: Vec<_> = places.filter(|own| own.end <= end).collect();
        if let Some((place, other)) = same_as(source, &places, budget)? {
            let evidence = format!(
                "the {size} bytes at {}, a sector, are the same as those at {other}: a write went to the wrong place",
                place.start
            );
            let found = Explanation::new(Reason::DuplicatedSector, Certainty::Likely, evidence);
            return Ok(Some(found.at(place)));
        }
    }
    Ok(None)
}

/// The first of these sectors, which are of one size, whose bytes are also at another offset in the file that is a multiple of it. Those
/// within a longer repetition are ignored: they may be the records' own content.
pub(super) fn same_as(
    source: &dyn Source,
    places: &[Range<u64>],
    budget: &mut Budget,
) -> Result<Option<(Range<u64>, u64)>> {
    let mut sectors = HashMap::new();
    for place in places {
        let mut sector = Vec::new();
        read_piece(source, place, &mut sector)?;
        if sector.iter().collect::<HashSet<_>>().len() >= MIN_DIFFERENT_BYTES {
            sectors.insert(sector, place);
        }
    }
    let Some(size) = sectors.keys().next().map(Vec::len) else {
        return Ok(None);
    };
    let compared = source.len().min(MAX_COMPARED);
    if !budget.afford(compared) {
        return Ok(None);
    }
    let mut piece = Vec::new();
    for start in (0..compared).step_by(saturating_usize(PIECE_BYTES)) {
        piece.clear();
        let end = start.saturating_add(PIECE_BYTES).min(source.len());
        read_piece(source, &(start..end), &mut piece)?;
        for (own, at) in piece.chunks_exact(size).zip((start..).step_by(size)) {
            let Some(&place) = sectors.get(own) else {
                continue;
            };
            if at != place.start && !continues(source, place, at)? {
                return Ok(Some((place.clone(), at)));
            }
        }
    }
    Ok(None)
}

/// Whether the bytes before or after two equal sectors are equal as well.
fn continues(source: &dyn Source, place: &Range<u64>, other: u64) -> Result<bool> {
    let size = place.end - place.start;
    let around = |at: u64| -> Result<(Vec<u8>, Vec<u8>)> {
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        read_piece(source, &(at.saturating_sub(CHANCE_BYTES)..at), &mut before)?;
        let end = at.saturating_add(size);
        let last = end.saturating_add(CHANCE_BYTES).min(source.len());
        read_piece(source, &(end..last), &mut behind)?;
        Ok((before, behind))
    };
    let (own, theirs) = (around(place.start)?, around(other)?);
    let is_same = |own: &[u8], theirs: &[u8]| !own.is_empty() && own == theirs;
    Ok(is_same(&own.0, &theirs.0) || is_same(&own.1, &theirs.1))
}

/// Where a sector may lie that damaged these ranges: its first and last bytes may be as they were by chance.
fn extended(ranges: &[Span], file_len: u64) -> Option<Range<u64>> {
    let start = ranges.first()?.start.saturating_sub(CHANCE_BYTES);
    let end = ranges.last()?.end.saturating_add(CHANCE_BYTES);
    Some(start..end.min(file_len))
}

/// Explains damage by a sector of unknown bytes, where it is hardly longer than one, or where what the units of several ranges have
/// in common is one. `ranges` follow each other without a gap.
pub(super) fn foreign(ranges: &[Span], file_len: u64) -> Option<Explanation> {
    let Range { start, end } = extended(ranges, file_len)?;
    for size in [LARGE, 4096, 512] {
        let blocks = (ceil(start, size)..).step_by(saturating_usize(size));
        let is_within = |at: &u64| at.saturating_add(size) <= end;
        let covers = |at: &u64| {
            let mut inner = ranges.iter().skip(1).map(|own| own.start);
            inner.all(|own| *at <= own && own <= at + size)
        };
        let Some(at) = blocks.take_while(is_within).find(covers) else {
            continue;
        };
        let is_tight = end - start - size <= MAX_SLACK;
        let certainty = match ranges.len() {
            1 if !is_tight => continue,
            1 => Certainty::Possible,
            _ => Certainty::Likely,
        };
        let evidence = format!(
            "the damage is that of the records that touch the {size} bytes at {at}{}, a sector",
            round(at)
        );
        let found = Explanation::new(Reason::ForeignSector, certainty, evidence);
        let against = "nothing shows where other bytes there could come from";
        return Some(found.but(against).at(at..at + size));
    }
    None
}

/// Detects a sector whose correct bytes are in another sector of these places: with these in its place the checksum matches. One of each
/// size.
pub(super) fn moved<'a>(
    source: &dyn Source,
    candidate: &mut Candidate,
    places: impl Iterator<Item = &'a Excerpt> + Clone,
    budget: &mut Budget,
) -> Result<Vec<Explanation>> {
    let Range { start, end } = candidate.body;
    // The candidate's length by its own length fields. If that is implausible, the fields are in the bad sector.
    let stated = candidate
        .stated
        .and_then(|stated| start.checked_add(stated as u64));
    // What is in the bad sector may be sound records, so that the range ends before the candidate does.
    let most = match candidate.elsewhere.is_empty() {
        true => end.max(source.len().min(start + MAX_TRIED_BYTES)),
        false => end,
    };
    let (end, body_end) = match stated.filter(|stated| *stated <= most) {
        Some(stated) => (stated, end.max(stated)),
        None => (end.min(ceil(start + 1, SECTORS[0])), end),
    };
    candidate.body.end = body_end;
    let mut bytes = candidate.read(source)?;
    budget.begin();
    let mut all = Vec::new();
    'size: for size in SECTORS {
        for target in (floor(start, size)..end).step_by(saturating_usize(size)) {
            let own = target.max(start)..(target + size).min(end);
            if own.end - own.start < MIN_KEPT_BYTES {
                continue;
            }
            let others = places.clone().flat_map(|excerpt| {
                let all = (ceil(excerpt.start, size)..).step_by(saturating_usize(size));
                let within = all.take_while(move |at| at.saturating_add(size) <= excerpt.end());
                within.map(move |at| (excerpt, at))
            });
            for (excerpt, other) in others {
                let from = other + (own.start - target);
                let theirs = excerpt.get(from..from + (own.end - own.start));
                let place = own.start - start;
                let kept = replace(&mut bytes, place, theirs)?;
                let Some(trial) = budget.attempt(candidate, &bytes) else {
                    return Ok(all);
                };
                replace(&mut bytes, place, &kept)?;
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
                    let found = Explanation::new(reason, Certainty::Likely, evidence);
                    let len = size.min(source.len() - target.max(other));
                    let mut changes = vec![
                        (target..target + len, Fill::From(other, len)),
                        (other..other + len, Fill::From(target, len)),
                    ];
                    changes.sort_by_key(|(place, _)| place.start);
                    all.push(Explanation {
                        changes,
                        ..found.at(target..target + len)
                    });
                    continue 'size;
                }
            }
        }
    }
    Ok(all)
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
