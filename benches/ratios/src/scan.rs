//! Scanning and verifying an active segment, beside hashing the same messages one by one with the `highway` crate.

use std::hint::black_box;

use highway::{HighwayHash, HighwayHasher};
use seglake::format::Options;
use seglake::verbs::verify;

use crate::compare::{Comparison, Work};
use crate::messages::{Lengths, SEGMENT_BYTES, Segment};

/// Of each kind of messages the ratios that the AVX-512 kernels are to reach.
const TARGETS: [f64; 5] = [4.0, 2.5, 2.5, 2.5, 2.0];

pub(crate) fn run(comparison: &mut Comparison) {
    for ((name, lengths), target) in Lengths::ALL.into_iter().zip(TARGETS) {
        let segment = Segment::active(lengths, SEGMENT_BYTES);
        let work = Work::Bytes(segment.bytes.len());
        let source = segment.source();
        comparison.run(
            format!("verify {name}"),
            "highway, one by one",
            work,
            target,
            || {
                let report = verify(source.clone(), &Options::default(), |_| Ok(())).unwrap();
                assert_eq!(report.records, segment.records.len() as u64);
            },
            || one_by_one(&segment),
        );
    }
}

/// Hashes each record with the crate, and does nothing else.
pub(crate) fn one_by_one(segment: &Segment) {
    for (start, len) in &segment.records {
        let bytes = &segment.bytes[*start..*start + *len];
        black_box(HighwayHasher::new(highway::Key([0; 4])).hash64(bytes));
    }
}
