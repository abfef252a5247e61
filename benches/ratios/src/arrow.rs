//! An active segment as Arrow batches of all columns, beside copying its bytes and beside the arrow crate's builders.
//!
//! Batches are dropped as they come, as a query would. So does the copy that they are measured beside: the file's bytes, out of
//! every cache but the last, go into fresh buffers of a batch's size, one after the other.

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::{
    BinaryBuilder, FixedSizeBinaryBuilder, StringBuilder, TimestampMicrosecondBuilder,
};
use seglake::checksum::{Key, hash_many};
use seglake::columns::{Batches, Limits, Selection, UuidType};
use seglake::format::{Options, Start, Step, Value, active, open};

use crate::compare::{Comparison, Work};
use crate::messages::{Lengths, SEGMENT_BYTES, Segment};

pub(crate) fn run(comparison: &mut Comparison) {
    for (name, lengths) in Lengths::ALL {
        let segment = Segment::active(lengths, SEGMENT_BYTES);
        let work = Work::Bytes(segment.bytes.len());
        // Of 64 KiB messages nothing but copying and hashing is left.
        let target = |ratio: f64| (name != "64 KiB").then_some(ratio);
        comparison.run(
            format!("arrow {name}"),
            "memcpy",
            work,
            target(0.7),
            || batches(&segment, false),
            || copy(&segment.bytes),
        );
        comparison.run(
            format!("arrow {name}"),
            "hashes of all, then memcpy",
            work,
            None,
            || batches(&segment, false),
            || (hashes(&segment), copy(&segment.bytes)),
        );
        comparison.run(
            format!("arrow {name}"),
            "the walk with arrow's builders",
            work,
            target(2.0),
            || batches(&segment, false),
            || builders(&segment),
        );
        comparison.run(
            format!("arrow views {name}"),
            "memcpy",
            work,
            target(0.85),
            || batches(&segment, true),
            || copy(&segment.bytes),
        );
        comparison.run(
            format!("arrow views {name}"),
            "hashes of all",
            work,
            None,
            || batches(&segment, true),
            || hashes(&segment),
        );
    }
}

fn batches(segment: &Segment, views: bool) {
    let (source, options) = (segment.source(), Options::default());
    let selection = Selection::new(&active::FORMAT, &options, None, UuidType::Fixed).unwrap();
    let selection = if views {
        selection.with_views(&active::FORMAT, &source).unwrap()
    } else {
        selection
    };
    let batches = Batches::new(source, &options, selection, Limits::default()).unwrap();
    let rows: usize = batches
        .map(|batch| black_box(batch.unwrap()).num_rows())
        .sum();
    assert_eq!(rows, segment.records.len());
}

/// Copies bytes into buffers of a batch's size, each of which is let go before the next.
fn copy(bytes: &[u8]) {
    for piece in bytes.chunks(Limits::default().bytes) {
        black_box(piece.to_vec());
    }
}

/// Hashes all records, in groups as the walk does.
fn hashes(segment: &Segment) {
    let mut hashes = Vec::new();
    for group in segment.records.chunks(512) {
        hash_many(&Key::DEFAULT, &segment.bytes, group, &mut hashes);
        black_box(&hashes);
    }
}

/// The builders of one batch.
struct Builders {
    uuids: FixedSizeBinaryBuilder,
    timestamps: TimestampMicrosecondBuilder,
    types: StringBuilder,
    values: BinaryBuilder,
    rows: usize,
    bytes: usize,
}

impl Builders {
    fn new() -> Self {
        let limits = Limits::default();
        Self {
            uuids: FixedSizeBinaryBuilder::new(16),
            timestamps: TimestampMicrosecondBuilder::new().with_timezone("UTC"),
            types: StringBuilder::new(),
            values: BinaryBuilder::with_capacity(0, limits.bytes),
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

/// The same records, verified by the same walk, through the arrow crate's builders.
fn builders(segment: &Segment) {
    let limits = Limits::default();
    let mut walk = open(segment.source(), &Options::default(), Start::Beginning).unwrap();
    let (mut batch, mut all) = (Builders::new(), 0);
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        for row in 0..rows.len() {
            let value = rows.value(row);
            if batch.rows == limits.rows || batch.bytes + value.len() > limits.bytes {
                let full = std::mem::replace(&mut batch, Builders::new());
                all += black_box(full.finish()).num_rows();
            }
            if let Value::Uuid(uuid) = rows.field(row, 0) {
                batch.uuids.append_value(uuid).unwrap();
            }
            batch.timestamps.append_value(rows.timestamp(row).unwrap());
            if let Value::Text(text) = rows.field(row, 2) {
                batch.types.append_value(std::str::from_utf8(text).unwrap());
            }
            batch.values.append_value(value);
            batch.rows += 1;
            batch.bytes += value.len();
        }
    }
    all += black_box(batch.finish()).num_rows();
    assert_eq!(all, segment.records.len());
}
