//! A durable log: one writer compared with the plain active writer, many threads that sync together compared with bare syncs and
//! with other logs, and how long a record takes to a reader in another process.

mod batches;
mod follow;
mod many;
mod peers;
mod single;

use std::path::Path;

use seglake::store::{Durability, LogOptions, SegmentLog};

use crate::compare::{Clock, Comparison};

pub(crate) use batches::{BATCHES, print_rate};
pub(crate) use follow::{FOLLOW, print_arrivals};

/// The bytes of each value.
const VALUE_BYTES: usize = 128;
/// A segment that does not end while it is measured.
const ENDLESS: u64 = 1 << 40;

pub(crate) fn run(comparison: &mut Comparison) {
    single::run(comparison);
    comparison.clock(Clock::Wall);
    many::run(comparison);
    follow::run(comparison);
}

/// A new log, whose segments end after so many bytes.
fn open(path: &Path, durability: Durability, segment_bytes: u64) -> SegmentLog {
    let options = LogOptions::default()
        .durability(durability)
        .segment_bytes(segment_bytes);
    SegmentLog::open(path, options).unwrap()
}
