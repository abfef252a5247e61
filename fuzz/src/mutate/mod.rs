//! Mutations that keep a file plausible. A fuzzer that only changes bytes never gets past a checksum. So most inputs
//! get matching checksums again, and some are cut and joined at the boundaries of the walk's records.

mod active;
mod chunked;
mod oplog;
mod sealed;
mod tenant;
mod tfrecord;

use std::ops::Range;
use std::sync::Arc;

use seglake::format::{Format, IndexSource, Options};
use seglake::source::BytesSource;
use seglake::verbs::Ledger;

use crate::properties::Draw;

/// Changes the first `size` bytes of a buffer, which may grow up to `max`, without knowing the format. Returns the new
/// size.
pub type Change = fn(&mut [u8], usize, usize) -> usize;

/// Changes the first `size` bytes of `data`, which can grow to `max`. Returns the new size. The same seed makes the
/// same changes, if `change` does.
pub fn mutate(
    change: Change,
    is_index: bool,
    format: &'static Format,
    data: &mut [u8],
    size: usize,
    max: usize,
    seed: u32,
) -> usize {
    let mut draw = Draw::new(seed.into());
    let mut bytes = data[..size].to_vec();
    match draw.below(8) {
        0..=3 => change_bytes(change, &mut bytes, max, &mut draw),
        4..=5 if !is_index => move_ranges(format, &mut bytes, &mut draw),
        _ => match format.name {
            "active" => active::edit(&mut bytes, &mut draw),
            "sealed" => sealed::edit(&mut bytes, &mut draw),
            "tenant" => tenant::edit(&mut bytes, &mut draw),
            "chunked" if is_index => chunked::edit_index(&mut bytes, &mut draw),
            "chunked" => chunked::edit(change, &mut bytes, max, &mut draw),
            "oplog" => oplog::edit(change, &mut bytes, max, &mut draw),
            "tfrecord" => tfrecord::edit(&mut bytes, &mut draw),
            // For a format without mutations of its own.
            _ => change_bytes(change, &mut bytes, max, &mut draw),
        },
    }
    if draw.below(4) > 0 {
        match format.name {
            "active" => active::mend(&mut bytes, &mut draw),
            "sealed" => sealed::mend(&mut bytes),
            "tenant" => tenant::mend(&mut bytes),
            "chunked" if is_index => chunked::mend_index(&mut bytes),
            "chunked" => chunked::mend(&mut bytes),
            "tfrecord" => tfrecord::mend(&mut bytes),
            _ => {}
        }
    }
    bytes.truncate(max.min(data.len()));
    data[..bytes.len()].copy_from_slice(&bytes);
    bytes.len()
}

/// Applies `change` to any bytes. They may grow to `max`.
fn change_bytes(change: Change, bytes: &mut Vec<u8>, max: usize, draw: &mut Draw) {
    let size = bytes.len();
    bytes.resize(max.max(size), 0);
    let grown = if draw.below(2) == 0 {
        (size + 64).min(max)
    } else {
        max
    };
    let size = change(bytes, size, grown.max(size));
    bytes.truncate(size);
}

/// The ranges of a walk.
fn ranges(format: &'static Format, bytes: &[u8]) -> Vec<Range<usize>> {
    let options = Options::default()
        .format(format)
        .index(IndexSource::None)
        .strict(false);
    let Ok(ledger) = Ledger::new(Arc::new(BytesSource::new(bytes.to_vec())), &options) else {
        return Vec::new();
    };
    let range = |span: seglake::ledger::Span| {
        let place = |offset| usize::try_from(offset).unwrap();
        place(span.start)..place(span.end)
    };
    ledger.map_while(Result::ok).map(range).collect()
}

/// Removes, doubles, swaps or nests ranges, cuts the file at the end of one, or fills one with zeros.
fn move_ranges(format: &'static Format, bytes: &mut Vec<u8>, draw: &mut Draw) {
    let ranges = ranges(format, bytes);
    if ranges.is_empty() {
        return;
    }
    let (one, other) = (
        draw.of_these(&ranges).clone(),
        draw.of_these(&ranges).clone(),
    );
    let copy = bytes[one.clone()].to_vec();
    match draw.below(7) {
        0 => drop(bytes.drain(one)),
        1 => drop(bytes.splice(other.start..other.start, copy)),
        2 => drop(bytes.splice(other, copy)),
        // Into the middle of another, like a record in a record's body.
        3 => {
            let at = other.start + draw.below(other.len());
            bytes.splice(at..at, copy);
        }
        4 => bytes.truncate(one.end),
        5 => bytes[one].fill(0),
        _ => bytes.resize(bytes.len() + draw.below(300), 0),
    }
}

/// An unsigned integer of `N` bytes, most significant first.
fn uint<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let own = bytes.get(at..at.checked_add(N)?)?;
    Some(
        own.iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)),
    )
}

fn uint_usize<const N: usize>(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(uint::<N>(bytes, at)?).ok()
}

/// Writes a number's last `N` bytes, most significant first, if they are within the file.
fn put<const N: usize>(bytes: &mut [u8], at: usize, number: u64) {
    let end = at.checked_add(N).filter(|end| *end <= bytes.len());
    if let Some(end) = end {
        bytes[at..end].copy_from_slice(&number.to_be_bytes()[8 - N..]);
    }
}

/// A number that differs by a little, or is extreme.
fn off(number: u64, draw: &mut Draw) -> u64 {
    match draw.below(8) {
        0 => 0,
        1 => u64::MAX,
        2 => draw.any(),
        3 => 1 << draw.below(64),
        4 => number.wrapping_add(24),
        5 => number.wrapping_sub(24),
        6 => number.wrapping_add(1),
        _ => number.wrapping_sub(1),
    }
}
