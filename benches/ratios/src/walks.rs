//! Verifying sealed and tenant segments and oplogs, compared with the checks of each format alone, without a report, a search or an
//! order; sealed segments also with the crate `highway`. Chunked segments have a suite of their own.

use std::hint::black_box;

use highway::{HighwayHash, HighwayHasher};
use seglake::checksum::Key;
use seglake::checksum::batch::Batch;
use seglake::format::{WriteOptions, oplog, sealed, tenant};

use crate::compare::{Beside, Comparison, Work};
use crate::messages::{Lengths, SEGMENT_BYTES, Segment};
use crate::segments::{oplog_fields, sealed_fields, tenant_fields, write};

/// The shares of the limits' speeds to reach.
const HASHING_TARGET: f64 = 0.85;
const TARGET: f64 = 0.5;

pub(crate) fn run(comparison: &mut Comparison) {
    let (folder, options) = (tempfile::tempdir().unwrap(), WriteOptions::default());
    for (name, lengths) in Lengths::ALL {
        let segment = Segment::active(lengths, SEGMENT_BYTES);
        let file = write(
            &sealed::FORMAT,
            &options,
            folder.path(),
            &segment,
            sealed_fields,
        );
        let (mut batch, mut hashes) = (Batch::new(), Vec::new());
        let what = format!("verify sealed, {name}");
        let bytes = Work::Bytes(file.bytes.len());
        comparison.run(
            &what,
            Beside::Limit("hashing the messages, many at once"),
            bytes,
            HASHING_TARGET,
            || file.verify(),
            || batch.hash(&Key::DEFAULT, &segment.bytes, &segment.records, &mut hashes),
        );
        comparison.run(
            &what,
            Beside::Peer("highway, one after the other"),
            bytes,
            1.0,
            || file.verify(),
            || one_by_one(&segment),
        );
        let file = write(
            &tenant::FORMAT,
            &options,
            folder.path(),
            &segment,
            tenant_fields,
        );
        let blocks = Block::all(&file.bytes);
        comparison.run(
            format!("verify tenant, {name}"),
            Beside::Limit("the CRCs of its blocks, and its lengths"),
            Work::Bytes(file.bytes.len()),
            TARGET,
            || file.verify(),
            || blocks.iter().for_each(|block| block.check(&file.bytes)),
        );
        let file = write(
            &oplog::FORMAT,
            &options,
            folder.path(),
            &segment,
            oplog_fields,
        );
        comparison.run(
            format!("verify oplog, {name}"),
            Beside::Limit("parsing its fields by hand"),
            Work::Items(segment.records.len()),
            TARGET,
            || file.verify(),
            || assert_eq!(parse_oplog(&file.bytes), file.records),
        );
    }
}

/// A block of a tenant segment of version 2, as its table of contents names it.
struct Block {
    partition: [u8; 4],
    start: usize,
    end: usize,
    crc: u32,
}

impl Block {
    /// The blocks of a segment, read from its table of contents once, outside of the measured time.
    fn all(bytes: &[u8]) -> Vec<Self> {
        let (mut at, mut blocks) = (10, Vec::new());
        for _ in 0..u32_at(bytes, 6) {
            let partition = *bytes[at..].first_chunk().unwrap();
            at += 8 + u32_at(bytes, at + 4) as usize;
            let place = |at: usize| {
                let number = u64::from_be_bytes(*bytes[at..].first_chunk().unwrap());
                usize::try_from(number).unwrap()
            };
            let start = place(at + 4);
            blocks.push(Self {
                partition,
                start,
                end: start + place(at + 12),
                crc: u32_at(bytes, at + 20),
            });
            at += 24;
        }
        blocks
    }

    /// Its CRC, and whether the lengths of its messages lead to its end.
    fn check(&self, bytes: &[u8]) {
        let own = &bytes[self.start..self.end];
        let mut crc = crc32fast::Hasher::new();
        crc.update(&self.partition);
        crc.update(own);
        assert_eq!(crc.finalize(), self.crc);
        let mut at = 8 + u32_at(own, 4) as usize;
        for _ in 0..u32_at(own, 0) {
            at += 4 + u32_at(own, at) as usize;
        }
        assert_eq!(at, own.len());
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(*bytes[at..].first_chunk().unwrap())
}

/// Parses all fields of an oplog's messages (dialect `draft`). Returns the number of messages.
fn parse_oplog(bytes: &[u8]) -> u64 {
    let (mut at, mut messages) = (0, 0);
    while at < bytes.len() {
        let len = usize::try_from(uint(bytes, &mut at)).unwrap();
        let end = at + len;
        let version = uint(bytes, &mut at);
        if uint(bytes, &mut at) == 0 {
            at += 32; // the checkpoint's hash
            black_box(uint(bytes, &mut at));
        }
        for _ in 0..uint(bytes, &mut at) {
            at += 32; // a writer's key
            black_box(uint(bytes, &mut at));
        }
        let (abi, batch) = (uint(bytes, &mut at), uint(bytes, &mut at));
        black_box((version, abi, batch));
        at += usize::try_from(uint(bytes, &mut at)).unwrap();
        assert_eq!(at, end);
        messages += 1;
    }
    messages
}

/// An integer of compact-encoding.
fn uint(bytes: &[u8], at: &mut usize) -> u64 {
    let first = bytes[*at];
    *at += 1;
    let wide = match first {
        0xfd => 2,
        0xfe => 4,
        0xff => 8,
        _ => return first.into(),
    };
    let mut number = [0; 8];
    number[..wide].copy_from_slice(&bytes[*at..*at + wide]);
    *at += wide;
    u64::from_le_bytes(number)
}

/// Hashes each message with the crate: UUID, then its bytes in the data.
fn one_by_one(segment: &Segment) {
    for (start, len) in &segment.records {
        let (uuid, message) = segment.bytes[*start..*start + *len].split_at(16);
        let mut hasher = HighwayHasher::new(highway::Key([0; 4]));
        hasher.append(uuid);
        hasher.append(message);
        black_box(hasher.finalize64());
    }
}
