//! Hashing many messages at once, by each kernel that the processor has, beside hashing them one by one with the `highway`
//! crate. What is hashed is what is in an active segment, so that the suite `scan` can be compared with it.

use seglake::checksum::batch::{Batch, Kernel};
use seglake::checksum::{Key, hash};

use crate::compare::{Comparison, Work};
use crate::messages::{Lengths, Segment};
use crate::scan::one_by_one;

/// Out of the nearer caches.
const BYTES: usize = 16 << 20;

/// The ratios to reach, of each kind of messages.
fn targets(kernel: Kernel) -> [Option<f64>; 5] {
    match kernel {
        Kernel::Avx2 => [3.3, 2.6, 2.4, 2.4, 1.7].map(Some),
        Kernel::Avx512 => [4.7, 3.0, 3.0, 3.0, 2.1].map(Some),
        _ => [None; 5],
    }
}

pub(crate) fn run(comparison: &mut Comparison) {
    for (index, (name, lengths)) in Lengths::ALL.into_iter().enumerate() {
        let segment = Segment::active(lengths, BYTES);
        let work = Work::Bytes(segment.records.iter().map(|(_, len)| len).sum());
        for kernel in Kernel::available() {
            let mut batch = Batch::with_kernel(kernel);
            let mut hashes = Vec::new();
            comparison.run(
                format!("hash {name}, {kernel}"),
                "highway, one by one",
                work,
                targets(kernel)[index],
                || batch.hash(&Key::DEFAULT, &segment.bytes, &segment.records, &mut hashes),
                || one_by_one(&segment),
            );
        }
        comparison.run(
            format!("hash {name}, one by one"),
            "highway, one by one",
            work,
            None,
            || {
                let hashes = segment
                    .records
                    .iter()
                    .map(|(start, len)| hash(&Key::DEFAULT, &segment.bytes[*start..*start + *len]));
                hashes.fold(0, |all, hash| all ^ hash)
            },
            || one_by_one(&segment),
        );
    }
}
