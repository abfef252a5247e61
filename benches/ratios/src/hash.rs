//! Hashing many messages at once, with each kernel of the processor. It is compared with hashing them one after the
//! other with the crate `highway`, and with the steps of the hash alone. The messages are those of an active segment,
//! as in the suite `scan`.

use std::hint::black_box;

use seglake::checksum::batch::{Batch, Kernel};
use seglake::checksum::{Key, hash};

use crate::compare::{Beside, Comparison, Work};
use crate::messages::{Lengths, Segment};
use crate::scan::one_by_one;

/// More than fits into the second cache.
const BYTES: usize = 16 << 20;
/// The hash takes a message in packets, with one step for each, and some more steps at its end.
const PACKET_BYTES: usize = 32;
const LAST_STEPS: usize = 4;
/// Long messages in the second cache, hashed in lockstep, so that the steps take nearly all of the time. 24 is a
/// multiple of the numbers of messages that the kernels hash in lockstep.
const NEAR_MESSAGES: usize = 24;
const NEAR_BYTES: usize = 8 << 10;
/// The share of the steps' speed to reach. The rest is loading messages, setting them up and their ends.
const TARGET: f64 = 0.7;

pub(crate) fn run(comparison: &mut Comparison) {
    for (name, lengths) in Lengths::ALL {
        let segment = Segment::active(lengths, BYTES);
        let work = Work::Bytes(segment.records.iter().map(|(_, len)| len).sum());
        for kernel in Kernel::available() {
            if kernel == Kernel::Portable {
                continue; // the crate itself
            }
            let mut batch = Batch::with_kernel(kernel);
            let mut hashes = Vec::new();
            let mut ours =
                || batch.hash(&Key::DEFAULT, &segment.bytes, &segment.records, &mut hashes);
            let name = format!("hash many, {name} ({kernel})");
            let steps = Steps::of(&segment);
            let limit = Beside::Limit("the steps of the hash, from the second cache");
            let mut near = Batch::with_kernel(kernel);
            let works = [work, steps.work(work)];
            comparison.run_each(
                &name,
                limit,
                works,
                TARGET,
                || (),
                &mut ours,
                || steps.take(&mut near),
            );
            let peer = Beside::Peer("highway, one after the other");
            comparison.run(&name, peer, work, 1.0, ours, || one_by_one(&segment));
        }
        comparison.run(
            format!("hash one, {name}"),
            Beside::Peer("highway, one after the other"),
            work,
            1.0,
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

/// About as many steps of the hash as a segment's records take, of a few long messages.
struct Steps {
    bytes: Vec<u8>,
    extents: Vec<(usize, usize)>,
    times: usize,
    /// How many times as many steps as those of the segment.
    share: f64,
}

impl Steps {
    fn of(segment: &Segment) -> Self {
        let steps = |len: usize| len.div_ceil(PACKET_BYTES) + LAST_STEPS;
        let all: usize = segment.records.iter().map(|(_, len)| steps(*len)).sum();
        let once = NEAR_MESSAGES * steps(NEAR_BYTES);
        let times = all.div_ceil(once);
        Self {
            bytes: vec![0x5a; NEAR_MESSAGES * NEAR_BYTES],
            extents: (0..NEAR_MESSAGES)
                .map(|place| (place * NEAR_BYTES, NEAR_BYTES))
                .collect(),
            times,
            share: (times * once) as f64 / all as f64,
        }
    }

    /// The work of these steps, if that of the segment is `work`.
    fn work(&self, work: Work) -> Work {
        match work {
            Work::Bytes(bytes) => Work::Bytes((bytes as f64 * self.share) as usize),
            Work::Items(items) => Work::Items((items as f64 * self.share) as usize),
        }
    }

    fn take(&self, batch: &mut Batch) {
        let mut hashes = Vec::new();
        for _ in 0..self.times {
            batch.hash(&Key::DEFAULT, &self.bytes, &self.extents, &mut hashes);
            black_box(&hashes);
        }
    }
}
