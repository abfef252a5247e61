//! Reading an active segment as Arrow batches of all columns, with checksums verified. It is compared with hashing the segment and
//! writing as many bytes once, and with a parser by hand that fills the builders of the crate `arrow`.
//!
//! All drop each batch before the next, as a query would.

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::{
    BinaryBuilder, FixedSizeBinaryBuilder, StringBuilder, TimestampMicrosecondBuilder,
};
use seglake::checksum::{Key, hash_many};
use seglake::columns::{Batches, Limits, Selection, UuidType};
use seglake::format::{Options, active};

use crate::compare::{Beside, Comparison, Work};
use crate::messages::{Lengths, SEGMENT_BYTES, Segment, TYPE};

/// The shares of the limits' speeds to reach.
const TARGET: f64 = 0.7;
/// Records and bytes that are hashed together, so that they are still in the second cache when they are copied.
const GROUP: usize = 512;
const GROUP_BYTES: usize = 256 << 10;
/// The bytes of a record besides its value in an active segment: UUID, type and its length, the value's length and the
/// checksum.
const FRAME_BYTES: usize = 16 + 1 + TYPE.len() + 4 + 8;
/// The bytes of a record in a batch besides its value: UUID, timestamp, type, and the ends of type and value.
const FIXED_BYTES: usize = 16 + 8 + TYPE.len() + 4 + 4;

pub(crate) fn run(comparison: &mut Comparison) {
    for (name, lengths) in Lengths::ALL {
        let segment = Segment::active(lengths, SEGMENT_BYTES);
        let work = Work::Bytes(segment.bytes.len());
        comparison.run(
            format!("Arrow, {name}"),
            Beside::Limit("hashing, then writing the same bytes once"),
            work,
            TARGET,
            || batches(&segment),
            || hash_and_write(&segment),
        );
        comparison.run(
            format!("Arrow, {name}"),
            Beside::Peer("arrow's builders, filled by hand"),
            work,
            1.0,
            || batches(&segment),
            || by_hand(&segment),
        );
    }
}

fn batches(segment: &Segment) {
    let (source, options) = (segment.source(), Options::default());
    let selection = Selection::new(&active::FORMAT, &options, None, UuidType::Fixed).unwrap();
    let batches = Batches::new(source, &options, selection, Limits::default()).unwrap();
    let rows: usize = batches
        .map(|batch| black_box(batch.unwrap()).num_rows())
        .sum();
    assert_eq!(rows, segment.records.len());
}

/// The records in groups.
fn groups(segment: &Segment) -> impl Iterator<Item = &[(usize, usize)]> {
    let mut rest = &*segment.records;
    std::iter::from_fn(move || {
        let first = rest.first()?.0;
        let within = |(start, len): &&(usize, usize)| start + len - first <= GROUP_BYTES;
        let count = rest.iter().take(GROUP).take_while(within).count().max(1);
        let (group, others) = rest.split_at(count);
        rest = others;
        Some(group)
    })
}

/// Hashes all records, and writes as many bytes as their columns have into new memory of a batch's size: group by
/// group, so that the copied bytes were just hashed.
fn hash_and_write(segment: &Segment) {
    let limits = Limits::default();
    let (mut hashes, mut batch) = (Vec::new(), Vec::<u8>::new());
    for group in groups(segment) {
        hash_many(&Key::DEFAULT, &segment.bytes, group, &mut hashes);
        black_box(&hashes);
        let (start, (last, len)) = (group[0].0, group[group.len() - 1]);
        let end = last + len + 8;
        let values = end - start - FRAME_BYTES * group.len();
        let mut rest = values + FIXED_BYTES * group.len();
        while rest > 0 {
            if batch.len() == batch.capacity() {
                black_box(&batch);
                batch = Vec::with_capacity(limits.bytes);
            }
            let piece = rest.min(batch.capacity() - batch.len()).min(end - start);
            batch.extend_from_slice(&segment.bytes[start..start + piece]);
            rest -= piece;
        }
    }
    black_box(&batch);
}

/// The builders of one batch, with room for all that it will have.
struct Builders {
    uuids: FixedSizeBinaryBuilder,
    timestamps: TimestampMicrosecondBuilder,
    types: StringBuilder,
    values: BinaryBuilder,
    rows: usize,
    bytes: usize,
}

impl Builders {
    fn new(rows: usize, bytes: usize) -> Self {
        Self {
            uuids: FixedSizeBinaryBuilder::with_capacity(rows, 16),
            timestamps: TimestampMicrosecondBuilder::with_capacity(rows).with_timezone("UTC"),
            types: StringBuilder::with_capacity(rows, rows * TYPE.len()),
            values: BinaryBuilder::with_capacity(rows, bytes),
            rows: 0,
            bytes: 0,
        }
    }

    fn finish(mut self) -> RecordBatch {
        let columns: [(&str, arrow_array::ArrayRef); 4] = [
            ("uuid", Arc::new(self.uuids.finish())),
            ("timestamp", Arc::new(self.timestamps.finish())),
            ("type", Arc::new(self.types.finish())),
            ("value", Arc::new(self.values.finish())),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }
}

/// The same batches from a parser for this format alone: records are hashed in groups by seglake, and each field is put into the builder
/// of its type. It stops at the first damage without saying where that is.
fn by_hand(segment: &Segment) {
    let (limits, bytes) = (Limits::default(), &*segment.bytes);
    let record = bytes.len() / segment.records.len();
    let rows = limits.rows.min(limits.bytes / (record - FRAME_BYTES) + 1);
    let values = limits.bytes.min(bytes.len());
    let mut batch = Builders::new(rows, values);
    let (mut at, mut last, mut all) = (0, [0; 16], 0);
    let (mut extents, mut hashes) = (Vec::with_capacity(GROUP), Vec::new());
    while at < bytes.len() {
        extents.clear();
        let first = at;
        while at < bytes.len() && extents.len() < GROUP && at - first < GROUP_BYTES {
            let type_end = at + 17 + usize::from(bytes[at + 16]);
            let len = u32::from_be_bytes(*bytes[type_end..].first_chunk().unwrap());
            let end = type_end + 4 + usize::try_from(len).unwrap();
            extents.push((at, end - at));
            at = end + 8;
        }
        hash_many(&Key::DEFAULT, bytes, &extents, &mut hashes);
        for ((start, len), hash) in extents.iter().zip(&hashes) {
            let (record, rest) = bytes[*start..].split_at(*len);
            assert_eq!(*hash, u64::from_be_bytes(*rest.first_chunk().unwrap()));
            let (uuid, rest) = record.split_first_chunk::<16>().unwrap();
            assert!(last < *uuid);
            last = *uuid;
            let (type_, value) = rest[1..].split_at(usize::from(rest[0]));
            let value = &value[4..];
            if batch.rows == limits.rows || batch.bytes + value.len() > limits.bytes {
                let full = std::mem::replace(&mut batch, Builders::new(rows, values));
                all += black_box(full.finish()).num_rows();
            }
            batch.uuids.append_value(uuid).unwrap();
            batch.timestamps.append_value(micros(uuid));
            batch
                .types
                .append_value(std::str::from_utf8(type_).unwrap());
            batch.values.append_value(value);
            batch.rows += 1;
            batch.bytes += value.len();
        }
    }
    all += black_box(batch.finish()).num_rows();
    assert_eq!(all, segment.records.len());
}

/// The time of a UUID of version 6, in microseconds since 1970.
fn micros(uuid: &[u8; 16]) -> i64 {
    const TO_1970: u64 = 0x01b2_1dd2_1381_4000; // from 1582, in units of 100 ns
    let first = u64::from_be_bytes(*uuid.first_chunk().unwrap());
    let ticks = first >> 16 << 12 | first & 0xfff;
    (ticks.cast_signed() - TO_1970.cast_signed()).div_euclid(10)
}
