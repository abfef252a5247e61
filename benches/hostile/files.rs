//! Files that are as expensive as possible: of any length, each made from a fixed seed. Tests use shorter ones made in
//! the same way.

use super::{active, chunked, oplog, sealed, tenant};

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

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.next().to_be_bytes());
        }
        bytes.truncate(len);
        bytes
    }

    /// A length from a lognormal distribution of median 120 and sigma 1: the sum of twelve uniform numbers is close to normal.
    pub(crate) fn lognormal(&mut self) -> usize {
        let uniform = |bits: u64| (bits >> 11) as f64 / (1_u64 << 53) as f64;
        let normal: f64 = (0..12).map(|_| uniform(self.next())).sum::<f64>() - 6.0;
        (120.0 * normal.exp()) as usize
    }
}

/// A file of about `len` bytes.
pub(crate) type Make = fn(len: usize) -> Vec<u8>;

/// One format's files.
pub(crate) struct Family {
    /// Its name in the table.
    pub(crate) name: &'static str,
    pub(crate) format: &'static str,
    /// The dialect of an oplog.
    pub(crate) dialect: &'static str,
    /// Whether verifying hashes records.
    pub(crate) hashes_records: bool,
    /// The sound file that the others are compared with.
    pub(crate) clean: Make,
    pub(crate) hostile: Vec<(&'static str, Make)>,
}

pub(crate) fn families() -> Vec<Family> {
    let family = |name, format, clean, own: Vec<(&'static str, Make)>| Family {
        name,
        format,
        dialect: "draft",
        hashes_records: matches!(name, "active" | "sealed"),
        clean,
        hostile: [
            ("random bytes", random as Make),
            ("0x00", |len| vec![0; len]),
            ("0xff", |len| vec![0xff; len]),
        ]
        .into_iter()
        .chain(own)
        .collect(),
    };
    vec![
        family("active", "active", active::clean, active::hostile()),
        family("sealed", "sealed", sealed::clean, sealed::hostile()),
        family(
            "sealed, no trailer",
            "sealed",
            sealed::bare,
            sealed::hostile_bare(),
        ),
        family("tenant 1", "tenant", tenant::clean_1, tenant::hostile_1()),
        family("tenant 2", "tenant", tenant::clean_2, tenant::hostile_2()),
        family("chunked", "chunked", chunked::clean, chunked::hostile()),
        family("oplog", "oplog", oplog::clean, oplog::hostile()),
        Family {
            dialect: "draft-1.1",
            ..family("oplog 1.1", "oplog", oplog::clean_11, oplog::hostile_11())
        },
    ]
}

pub(crate) fn random(len: usize) -> Vec<u8> {
    Random::new(1).bytes(len)
}

/// The file with 1 MiB (of a short file, a quarter) of random bytes in its middle.
pub(crate) fn struck(mut bytes: Vec<u8>) -> Vec<u8> {
    let len = (1 << 20).min(bytes.len() / 4);
    let start = bytes.len() / 2;
    bytes[start..start + len].copy_from_slice(&Random::new(2).bytes(len));
    bytes
}

/// A version-6 UUID with this time.
pub(crate) fn uuid(tick: u64) -> [u8; 16] {
    let tick = 0x01ee_0000_0000_0000 + tick;
    let head = (tick >> 12) << 16 | 0x6000 | tick & 0xfff;
    let mut uuid = [0x80; 16];
    uuid[..8].copy_from_slice(&head.to_be_bytes());
    uuid
}

/// A length or count as the formats store it.
pub(crate) fn u32_of(value: usize) -> [u8; 4] {
    u32::try_from(value).unwrap().to_be_bytes()
}

/// Whether the target applies to this file. The other files have none.
pub(crate) fn is_listed(name: &str) -> bool {
    let parts = ["random bytes", "0x00", "0xff", "false lengths", "nested in"];
    parts.iter().any(|part| name.contains(part))
}
