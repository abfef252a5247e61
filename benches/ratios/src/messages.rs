//! The data of the ratios: messages of given lengths, the same in every run, and active segments of them.

use std::sync::Arc;

use seglake::checksum::Key;
use seglake::format::active;
use seglake::source::{BytesSource, Source};
use uuid::{Timestamp, Uuid};

/// Enough to be out of every cache but the last.
pub(crate) const SEGMENT_BYTES: usize = 16 << 20;
/// The type of every message.
pub(crate) const TYPE: &[u8] = b"order.created";

/// Pseudo-random numbers (xorshift64*), the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A length from a lognormal distribution of median 120: the sum of twelve uniform numbers is close to normal.
    pub(crate) fn lognormal(&mut self, sigma: f64) -> usize {
        let uniform = |bits: u64| (bits >> 11) as f64 / (1_u64 << 53) as f64;
        let normal: f64 = (0..12).map(|_| uniform(self.next())).sum::<f64>() - 6.0;
        (120.0 * (sigma * normal).exp()) as usize
    }
}

/// The lengths of messages.
#[derive(Clone, Copy)]
pub(crate) enum Lengths {
    Each(usize),
    Lognormal(f64),
}

impl Lengths {
    /// Those that the tables name. The mixed ones are lognormal: median 120 B, and one of six is longer than 326 B.
    pub(crate) const ALL: [(&'static str, Self); 4] = [
        ("128 B", Self::Each(128)),
        ("1 KiB", Self::Each(1 << 10)),
        ("mixed lengths", Self::Lognormal(1.0)),
        ("64 KiB", Self::Each(64 << 10)),
    ];

    pub(crate) fn next(self, random: &mut Random) -> usize {
        match self {
            Self::Each(len) => len,
            Self::Lognormal(sigma) => random.lognormal(sigma),
        }
    }
}

/// Records of an active segment, one after the other: for segments that need not fit into memory.
pub(crate) struct Messages {
    lengths: Lengths,
    random: Random,
    /// The time of the last message, in ticks of UUIDs.
    tick: u64,
    value: Vec<u8>,
}

impl Messages {
    pub(crate) const fn new(lengths: Lengths) -> Self {
        Self {
            lengths,
            random: Random::new(42),
            tick: 0x01ee_0000_0000_0000,
            value: Vec::new(),
        }
    }

    /// Appends the next record.
    pub(crate) fn encode(&mut self, out: &mut Vec<u8>, type_: &[u8]) {
        self.tick += self.random.next() % 100_000 + 1;
        let time = Timestamp::from_gregorian_time(self.tick, 7);
        let uuid = Uuid::new_v6(time, &[1, 2, 3, 4, 5, 6]);
        let len = self.lengths.next(&mut self.random);
        self.value.clear();
        while self.value.len() < len {
            self.value
                .extend_from_slice(&self.random.next().to_le_bytes());
        }
        self.value.truncate(len);
        active::encode(out, &Key::DEFAULT, uuid.as_bytes(), type_, &self.value).unwrap();
    }
}

/// An active segment, and where its messages are.
pub(crate) struct Segment {
    pub(crate) bytes: Arc<Vec<u8>>,
    /// Where each record begins, and how many bytes of it are hashed, in bytes.
    pub(crate) records: Vec<(usize, usize)>,
}

/// A source that shares its bytes with the other side of the comparison.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Segment {
    /// A segment of at least `bytes` bytes, with messages of these lengths, without checksum and UUID.
    pub(crate) fn active(lengths: Lengths, bytes: usize) -> Self {
        let mut messages = Messages::new(lengths);
        let (mut out, mut records) = (Vec::with_capacity(bytes + (1 << 20)), Vec::new());
        while out.len() < bytes {
            let start = out.len();
            messages.encode(&mut out, TYPE);
            records.push((start, out.len() - 8 - start));
        }
        Self {
            bytes: Arc::new(out),
            records,
        }
    }

    pub(crate) fn source(&self) -> Arc<dyn Source> {
        Arc::new(BytesSource::new(Shared(self.bytes.clone())))
    }
}
